"""What a toolkit says about itself. What it means is read by `toolkit build`, which makes the manifest of it."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from .trigger import Polled, Received
from .types import EMPTY, fields, schema

Function = TypeVar("Function", bound=Callable[..., Any])
TRIGGERS = {"poll": Polled, "webhook": Received}


class Declared(NamedTuple):
    """A function with its types and what is said about it."""

    function: Callable[..., Any]
    hints: dict[str, Any]
    about: dict[str, Any]


class Toolkit:
    """A toolkit: `toolkit = Toolkit(slug=…)` in `tools.py`, then functions under `@toolkit.tool()`."""

    def __init__(
        self,
        *,
        slug: str,
        name: str,
        description: str,
        categories: list[str] = [],
        version: str | None = None,
        logo: str | None = None,
        auth: list[dict[str, Any]] = [],
        egress: list[str] = [],
        limits: dict[str, int] = {},
    ):
        self.slug = slug
        self.about = {
            "slug": slug,
            "name": name,
            "description": description,
            "categories": categories,
            "version": version,
            "logo": logo,
            "auth": auth,
            "egress": egress,
            "limits": limits,
        }
        self.tools: dict[str, Declared] = {}
        self.triggers: dict[str, Declared] = {}

    def tool(
        self,
        *,
        slug: str | None = None,
        name: str | None = None,
        read_only: bool = False,
        destructive: bool = False,
        idempotent: bool = False,
        open_world: bool = False,
        important: bool = False,
        no_auth: bool = False,
        tags: list[str] = [],
        synonyms: list[str] = [],
        scopes: list[str] = [],
        egress: list[str] | None = None,
        examples: list[dict[str, Any]] = [],
    ) -> Callable[[Function], Function]:
        """Makes a tool of a function: its parameters are the arguments, its docstring is the description."""

        def declare(function: Function) -> Function:
            hints = _hints(function)
            output = hints.get("return", EMPTY)
            if output is EMPTY:
                raise TypeError(f"`{function.__name__}` says what it answers: `-> Item`, or `-> dict[str, Any]`")
            key = slug or function.__name__
            about = {
                "key": key,
                "name": name,
                "description": _description(function),
                "input": fields([(name, hints[name], default) for name, default in _parameters(function, hints)]),
                "output": schema(output, output=True),
                "read_only": read_only,
                "destructive": destructive,
                "idempotent": idempotent,
                "open_world": open_world,
                "important": important,
                "no_auth": no_auth,
                "tags": tags,
                "synonyms": synonyms,
                "scopes": scopes,
                "egress": egress,
                "examples": examples,
            }
            self.tools[key.lower()] = Declared(function, hints, about)
            return function

        return declare

    def poll(self, **about: Any) -> Callable[[Function], Function]:
        """Makes a trigger that asks for news: `def new_item(config: Config, cursor) -> Polled[Item]`."""
        return self._trigger("poll", **about)

    def webhook(self, **about: Any) -> Callable[[Function], Function]:
        """Makes a trigger that is told: `def pushed(config: Config, request: Inbound) -> Received[Push]`."""
        return self._trigger("webhook", **about)

    def _trigger(
        self,
        kind: str,
        *,
        slug: str | None = None,
        name: str | None = None,
        scopes: list[str] = [],
        egress: list[str] | None = None,
    ) -> Callable[[Function], Function]:
        def declare(function: Function) -> Function:
            hints = _hints(function)
            config = next(iter(inspect.signature(function).parameters))
            answer = hints.get("return")
            if get_origin(answer) is not TRIGGERS[kind] or config not in hints:
                wanted = f"({config}: Config, …) -> {TRIGGERS[kind].__name__}[Item]"
                raise TypeError(f"`{function.__name__}` says what it takes and answers: `{wanted}`")
            key = slug or function.__name__
            about = {
                "key": key,
                "kind": kind,
                "name": name,
                "description": _description(function),
                "config": schema(hints[config]),
                "payload": schema(get_args(answer)[0], output=True),
                "scopes": scopes,
                "egress": egress,
            }
            self.triggers[key.lower()] = Declared(function, hints, about)
            return function

        return declare

    def described(self) -> dict[str, Any]:
        """The declaration as `toolkit build` reads it."""
        about = lambda all: [declared.about for declared in all.values()]
        return self.about | {"tools": about(self.tools), "triggers": about(self.triggers)}


def _scheme(mode: str) -> Callable[..., dict[str, Any]]:
    def declare(
        *,
        name: str | None = None,
        title: str | None = None,
        help: str | None = None,
        header: str | None = None,
        query: str | None = None,
        value: str | None = None,
        fields: list[dict[str, Any]] | None = None,
        request: list[dict[str, str]] | None = None,
        base_url: str | None = None,
        verify: str | None = None,
        sign: dict[str, Any] | None = None,
        client_certificate: dict[str, str] | None = None,
        oauth2: dict[str, Any] | None = None,
        oauth1: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        return {"mode": mode, **locals()}

    return declare


api_key = _scheme("api_key")
bearer_token = _scheme("bearer_token")
basic = _scheme("basic")
no_auth = _scheme("no_auth")
_oauth2 = _scheme("oauth2")


def oauth2(*, flow: dict[str, Any], **rest: Any) -> dict[str, Any]:
    """A flow in the browser; `flow` has `authorize_url`, `token_url` and the rest of what a manifest says about one."""
    return _oauth2(oauth2=flow, **rest)


def oauth1(*, flow: dict[str, Any], **rest: Any) -> dict[str, Any]:
    """The same with OAuth 1.0, where `flow` has `request_url`, too."""
    return _scheme("oauth1")(oauth1=flow, **rest)


def flow(mode: str, *, flow: dict[str, Any], **rest: Any) -> dict[str, Any]:
    """Another mode in which the provider issues a token, for example `s2s_oauth2`."""
    return _scheme(mode)(oauth2=flow, **rest)


def _field(secret: bool) -> Callable[..., dict[str, Any]]:
    def declare(
        name: str,
        *,
        title: str | None = None,
        help: str | None = None,
        default: str | None = None,
        pattern: str | None = None,
        optional: bool = False,
        format: str | None = None,
        one_of: list[str] = [],
        prefix: str = "",
        suffix: str = "",
        hidden: bool = False,
    ) -> dict[str, Any]:
        return {"secret": secret, **locals()}

    return declare


secret = _field(True)
text = _field(False)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    if inspect.iscoroutinefunction(function):
        raise TypeError(f"`{function.__name__}` is a synchronous function: requests block until the response arrives, there is nothing to await")
    return get_type_hints(function, include_extras=True)


def _parameters(function: Callable[..., Any], hints: dict[str, Any]) -> list[tuple[str, Any]]:
    named = inspect.signature(function).parameters.values()
    for parameter in named:
        if parameter.name not in hints:
            raise TypeError(f"the parameter `{parameter.name}` of `{function.__name__}` has no type")
    return [(one.name, EMPTY if one.default is inspect.Parameter.empty else one.default) for one in named]


def _description(function: Callable[..., Any]) -> str:
    text = inspect.getdoc(function)
    if not text:
        raise TypeError(f"`{function.__name__}` has no docstring; it is what agents read to choose it")
    return text
