"""What the component exports: the author's functions behind the platform's contract."""

# A toolkit is compiled with its memory as it was after loading, and cannot load anything later. These are what the standard
# library loads only when it needs them.
import _strptime  # noqa: F401
import encodings.ascii  # noqa: F401
import encodings.idna  # noqa: F401
import encodings.latin_1  # noqa: F401
import encodings.utf_16  # noqa: F401
import json
import os.path
import random
import traceback
from collections.abc import Callable
from typing import Any

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import types as wit

from .context import context, log
from .declare import Toolkit
from .error import ToolError
from .trigger import Inbound
from .types import read, write

_toolkit: Toolkit
_declaration: bytes
_folder: str


def start(tools: Any) -> None:
    """Takes the toolkit. The declaration stays in memory, where `toolkit build` finds it in the compiled toolkit."""
    global _toolkit, _declaration, _folder
    if not isinstance(getattr(tools, "toolkit", None), Toolkit):
        raise TypeError("`tools.py` has `toolkit = Toolkit(slug=…)`")
    _toolkit = tools.toolkit
    _folder = os.path.dirname(tools.__file__) + "/"
    text = json.dumps(_toolkit.described())
    _declaration = ":".join(["toolhost", "declaration", f"{len(text):08}", text]).encode()


class Entry(exports.Entry):
    def execute(self, tool: str, arguments: bytes, context: Any) -> bytes:
        def work() -> bytes:
            function, hints, _ = _found(_toolkit.tools, tool, "tool")
            given = json.loads(arguments).items()
            read_in = {name: read(hints[name], value, name) for name, value in given if name in hints and name != "return"}
            return _json(function(**read_in))

        return _answered(context, work)

    def poll(self, trigger: str, config: bytes, cursor: bytes, context: Any) -> Any:
        def work() -> Any:
            polled = _fired(trigger, config, json.loads(cursor) if cursor else None)
            return wit.Polled(_events(polled), _json(polled.cursor), polled.more)

        return _answered(context, work)

    def receive(self, trigger: str, config: bytes, request: Any, context: Any) -> Any:
        def work() -> Any:
            inbound = Inbound(request.method, request.path, request.headers, request.body)
            received = _fired(trigger, config, inbound)
            if received.json is None:
                return wit.Received(_events(received), received.status, "text/plain", received.text.encode())
            return wit.Received(_events(received), received.status, "application/json", _json(received.json))

        return _answered(context, work)


def _found(all: dict[str, Any], slug: str, what: str) -> Any:
    found = all.get(slug[len(_toolkit.slug) + 1 :].lower())
    if found is None:
        raise ToolError.not_found(f"this toolkit has no {what} `{slug}`")
    return found


def _fired(slug: str, config: bytes, about: Any) -> Any:
    function, hints, _ = _found(_toolkit.triggers, slug, "trigger")
    first = next(iter(hints.values()))
    return function(read(first, json.loads(config), "configuration"), about)


def _events(found: Any) -> list[Any]:
    return [wit.Event(str(id), _json(payload)) for id, payload in found.events]


def _json(value: Any) -> bytes:
    return json.dumps(write(value), ensure_ascii=False, allow_nan=False).encode()


def _answered(told: Any, work: Callable[[], Any]) -> Any:
    context.begin(told)
    # The generator would go on from where it stood when the toolkit was compiled, the same in every call.
    random.seed()
    try:
        return work()
    except MemoryError:
        # Nothing more can be done here, and the host knows why the engine stops.
        raise
    except ToolError as error:
        raise _failed(error) from None
    except (Exception, SystemExit) as error:
        log.error(_trace(error))
        raise _failed(ToolError.internal(f"{type(error).__name__}: {error}")) from None


def _trace(error: BaseException) -> str:
    """The trace of an exception, from the author's first frame on, with paths as the author sees them."""
    trace = traceback.TracebackException.from_exception(error)
    frames = [frame.filename.startswith(_folder) for frame in trace.stack]
    del trace.stack[: frames.index(True) if True in frames else 0]
    return "".join(trace.format()).rstrip().replace(f'File "{_folder}', 'File "')


def _failed(error: ToolError) -> Err:
    details = None if error.details is None else _json(error.details)
    return Err(wit.ToolError(error.kind, error.message, error.retry_after_ms, error.upstream_status, details))
