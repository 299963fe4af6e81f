"""The platform while a toolkit loads, which is when it is built: it is not there, and whoever uses it is told so."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import BuiltinFunctionType, FunctionType
from typing import Any

from wit_world.imports import blob, clock, http, log, state


@contextmanager
def loading() -> Iterator[None]:
    """Keeps the functions of the platform away."""
    kept = [
        (module, name, function)
        for module in (blob, clock, http, log, state)
        for name, function in vars(module).items()
        if isinstance(function, (FunctionType, BuiltinFunctionType))
    ]
    for module, name, _ in kept:
        setattr(module, name, _missing(f"{module.__name__.split('.')[-1]}.{name}"))
    yield
    for module, name, function in kept:
        setattr(module, name, function)


def _missing(name: str) -> Callable[..., Any]:
    def missing(*_: Any) -> Any:
        raise RuntimeError(
            f"`{name}` of the platform was asked for while tools.py was loaded, which happens once, when the toolkit is built; "
            "ask inside of a tool or trigger"
        )

    return missing
