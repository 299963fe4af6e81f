"""What triggers take and answer."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from .error import ToolError

Payload = TypeVar("Payload")


@dataclass
class Polled(Generic[Payload]):
    """What a poll found: the cursor of the next poll, and events as `(id, payload)`."""

    cursor: Any
    events: Iterable[tuple[object, Payload]] = ()
    more: bool = False


@dataclass
class Received(Generic[Payload]):
    """What a webhook brought, and what to answer: a text, or JSON."""

    events: Iterable[tuple[object, Payload]] = ()
    status: int = 200
    text: str = ""
    json: Any = None


@dataclass
class Inbound:
    """A webhook request as the provider sent it."""

    method: str
    path: str
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""

    def header(self, name: str) -> str | None:
        """The first header of this name, in any case."""
        return next((value for header, value in self.headers if header == name.lower()), None)

    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise ToolError.invalid_input(f"the webhook's body is not JSON: {error}") from None
