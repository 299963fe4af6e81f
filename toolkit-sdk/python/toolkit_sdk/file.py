"""Files, by handle: their bytes enter the toolkit only when asked for."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from componentize_py_types import Err
from wit_world.imports import blob

from .error import ToolError

CHUNK = 1 << 20


@dataclass
class File:
    """A file that the caller uploaded, that a response was put into, or that this call makes."""

    name: str
    mimetype: str
    id: str

    @classmethod
    def create(cls, name: str, mimetype: str, content: bytes = b"") -> Self:
        """A new file with these bytes. It outlives the call only as a part of the answer."""
        file = cls(name, mimetype, _asked(blob.create, name, mimetype))
        file.append(content)
        return file

    @classmethod
    def existing(cls, id: str) -> Self:
        info = _asked(blob.stat, id)
        return cls(info.name, info.media_type, info.id)

    def size(self) -> int:
        return _asked(blob.stat, self.id).size

    def read_at(self, offset: int, length: int) -> bytes:
        """At most `length` bytes, and at most 1 MiB, from `offset`; shorter, or empty, at the end."""
        return _asked(blob.read, self.id, offset, length)

    def read(self, limit: int) -> bytes:
        """All bytes, unless there are more than `limit`."""
        size = self.size()
        if size > limit:
            raise ToolError.invalid_input(f"the file `{self.name}` has {size} bytes; at most {limit} can be read")
        content = bytearray()
        while chunk := self.read_at(len(content), CHUNK):
            content += chunk
        return bytes(content)

    def read_text(self, limit: int) -> str:
        """The whole file as text, unless it has more than `limit` bytes."""
        try:
            return self.read(limit).decode()
        except UnicodeDecodeError:
            raise ToolError.invalid_input(f"the file `{self.name}` is not UTF-8 text") from None

    def append(self, content: bytes) -> None:
        """Adds to the end of a file made in this call."""
        for start in range(0, len(content), CHUNK):
            _asked(blob.append, self.id, content[start : start + CHUNK])


def _asked(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except Err as refused:
        kind, message = refused.value.kind, refused.value.message
        kinds = {"not_found": "not_found", "too_large": "invalid_input", "limit": "limit"}
        raise ToolError(kinds.get(kind, "internal"), message) from None
