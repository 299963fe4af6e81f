"""Requests to providers. The platform adds the credential before it sends them."""

import json as _json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self
from urllib.parse import quote

from componentize_py_types import Err, Ok
from wit_world.imports import http as _host

from .context import context
from .error import ToolError
from .failure import refusal
from .file import File
from .types import write


class Response:
    """Response of a provider."""

    def __init__(self, answer: Any):
        self.status: int = answer.status
        self.headers: list[tuple[str, str]] = answer.headers
        self.content: bytes = answer.body
        self._blob: str | None = answer.blob

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def header(self, name: str) -> str | None:
        """The first header of this name, in any case."""
        return next((value for header, value in self.headers if header == name.lower()), None)

    def text(self) -> str:
        return self.content.decode(errors="replace")

    def json(self) -> Any:
        try:
            return _json.loads(self.content)
        except ValueError as error:
            message = f"the provider's response is not JSON: {error}"
            raise ToolError.upstream(message, upstream_status=self.status) from None

    def file(self) -> File:
        """The file of a request that asked for one with `into_file`."""
        if self._blob is None:
            raise ToolError.internal("the response is in memory; request a file with `into_file()`")
        return File.existing(self._blob)

    def checked(self, errors: "Errors | None") -> Self:
        error = (errors(self) if errors else None) or (None if self.ok else refusal(self))
        if error:
            raise error
        return self


Errors = Callable[[Response], ToolError | None]


class Request:
    """One request. Each method changes it and answers it, so that calls are written one after the other."""

    def __init__(self, method: str, url: str, headers: Mapping[str, str], errors: Errors | None):
        self._method = method
        self._url = url
        self._errors = errors
        self._pairs: list[tuple[str, object]] = []
        self._headers = [(name.lower(), value) for name, value in headers.items()]
        self._body: Any = _host.Body_Empty()
        self._credential = ""
        self._timeout = 0
        self._into_file = False

    def path(self, name: str, value: object) -> Self:
        """Fills `{name}` in the address with one segment."""
        segment = _text(value)
        if segment in ("", ".", ".."):
            raise ToolError.invalid_input(f"`{name}` cannot be `{segment}`")
        return self._fill(name, _escaped(segment))

    def path_segments(self, name: str, value: str) -> Self:
        """Fills `{name}` in the address with several segments."""
        segments = [segment for segment in value.split("/") if segment]
        if "." in segments or ".." in segments:
            raise ToolError.invalid_input(f"`{name}` cannot be the path `{value}`")
        return self._fill(name, "/".join(map(_escaped, segments)))

    def query(self, name: str, value: object) -> Self:
        """Adds a query parameter, one for each item of a list, none for None."""
        values = value if isinstance(value, (list, tuple)) else [value]
        self._pairs += [(name, one) for one in values if one is not None]
        return self

    def query_list(self, name: str, values: Iterable[object], separator: str = ",") -> Self:
        """Adds one query parameter with all values, joined; nothing when there are none."""
        joined = separator.join(map(_text, values))
        return self.query(name, joined) if joined else self

    def header(self, name: str, value: object) -> Self:
        """Adds a header, unless the value is None."""
        if value is not None:
            self._headers.append((name.lower(), _text(value)))
        return self

    def json(self, value: Any) -> Self:
        return self.body(_json.dumps(write(value)).encode(), "application/json")

    def form(self, fields: Mapping[str, object] | Iterable[tuple[str, object]]) -> Self:
        """Sends an `application/x-www-form-urlencoded` form."""
        pairs = fields.items() if isinstance(fields, Mapping) else fields
        return self.body(_joined(pairs).encode(), "application/x-www-form-urlencoded")

    def multipart(self, **parts: str | bytes | File) -> Self:
        """Sends a form with parts."""
        self._body = _host.Body_Multipart([_part(name, value) for name, value in parts.items()])
        return self

    def body_file(self, file: File) -> Self:
        """Sends a file, whose bytes do not pass through the toolkit."""
        self._body = _host.Body_Content(_host.Content_Blob(file.id))
        return self.header("content-type", file.mimetype)

    def body(self, content: bytes | str, media_type: str) -> Self:
        """Sends bytes or a text. At most 4 MiB; larger ones go by `body_file`."""
        content = content.encode() if isinstance(content, str) else content
        self._body = _host.Body_Content(_host.Content_Bytes(content))
        return self.header("content-type", media_type)

    def anonymous(self) -> Self:
        """Sends no credential."""
        self._credential = "none"
        return self

    def timeout(self, ms: int) -> Self:
        """Allows the whole exchange this long; otherwise it is 30 s."""
        self._timeout = ms
        return self

    def into_file(self) -> Self:
        """Puts the body of the answer into a file. Needed past 10 MiB."""
        self._into_file = True
        return self

    def send(self) -> Response:
        """Sends the request and waits for the answer; a status that is not a success is raised as an error."""
        return self.send_any().checked(self._errors)

    def send_any(self) -> Response:
        """Like `send`, but hands over the answer whatever its status."""
        try:
            return Response(_host.send(self._finished()))
        except Err as refused:
            raise _transport(refused.value) from None

    def _fill(self, name: str, value: str) -> Self:
        hole = "{" + name + "}"
        if hole not in self._url:
            raise ToolError.internal(f"the address `{self._url}` has no `{hole}`")
        self._url = self._url.replace(hole, value)
        return self

    def _finished(self) -> Any:
        url = re.sub(r"\{([^{}]*)\}", self._field, self._url)
        if self._pairs:
            url += ("&" if "?" in url else "?") + _joined(self._pairs)
        return _host.Request(
            self._method, url, self._headers, self._body, self._credential, self._timeout, self._into_file
        )

    def _field(self, hole: re.Match[str]) -> str:
        value = context.field(hole[1])
        if value is None:
            hint = "fill it with `.path(…)`, or declare it as a field of the account"
            raise ToolError.internal(f"the address `{self._url}` needs `{hole[1]}`; {hint}")
        return _escaped(value)


class Client:
    """Settings of all requests to one provider. `{field}` in the base is a field of the account."""

    def __init__(self, base: str, *, headers: Mapping[str, str] = {}, errors: Errors | None = None):
        self._base = base
        self._headers = headers
        self._errors = errors

    def _request(self, method: str, path: str) -> Request:
        return Request(method, self._base + path, self._headers, self._errors)

    def get(self, path: str) -> Request:
        return self._request("GET", path)

    def head(self, path: str) -> Request:
        return self._request("HEAD", path)

    def post(self, path: str) -> Request:
        return self._request("POST", path)

    def put(self, path: str) -> Request:
        return self._request("PUT", path)

    def patch(self, path: str) -> Request:
        return self._request("PATCH", path)

    def delete(self, path: str) -> Request:
        return self._request("DELETE", path)


http = Client("")
"""Requests to whole addresses."""


def send_all(requests: Iterable[Request]) -> list[Response | ToolError]:
    """Sends several at once, at most six of them in flight, and answers in their order; a failed one is its error."""
    requests = list(requests)
    answers = _host.send_all([request._finished() for request in requests])
    return [_settled(answer, request._errors) for answer, request in zip(answers, requests)]


def _settled(answer: Any, errors: Errors | None) -> Response | ToolError:
    if not isinstance(answer, Ok):
        return _transport(answer.value)
    try:
        return Response(answer.value).checked(errors)
    except ToolError as error:
        return error


def _transport(refused: Any) -> ToolError:
    match refused.kind:
        case "denied":
            return ToolError.denied(refused.message)
        case "credential":
            return ToolError.unauthorized(refused.message)
        case "dns" | "connect" | "tls" | "timeout" | "protocol":
            return ToolError.unavailable(refused.message)
        case "too_large":
            return ToolError.upstream(refused.message)
        case _:
            return ToolError.internal(refused.message)


def _part(name: str, value: str | bytes | File) -> Any:
    if isinstance(value, File):
        return _host.Part(name, value.name, value.mimetype, _host.Content_Blob(value.id))
    return _host.Part(name, None, None, _host.Content_Bytes(value.encode() if isinstance(value, str) else value))


def _text(value: object) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _escaped(value: object) -> str:
    return quote(_text(value), safe="")


def _joined(pairs: Iterable[tuple[str, object]]) -> str:
    return "&".join(f"{_escaped(name)}={_escaped(value)}" for name, value in pairs)
