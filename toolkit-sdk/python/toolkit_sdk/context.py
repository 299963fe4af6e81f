"""What the platform tells a call about itself, and its small services."""

import json
from typing import Any

from wit_world.imports import clock as _clock
from wit_world.imports import log as _log
from wit_world.imports import state as _state


class _Context:
    """What the platform tells a call about itself. Never a secret."""

    def __init__(self) -> None:
        self._told: Any = None

    def begin(self, told: Any) -> None:
        self._told = told

    def field(self, name: str) -> str | None:
        """A non-secret field of the connected account, for example `subdomain`."""
        return dict(self._told.fields).get(name)

    @property
    def run_id(self) -> str:
        return self._told.run_id

    @property
    def user_id(self) -> str:
        return self._told.user_id

    @property
    def remaining_ms(self) -> int:
        """Milliseconds that this call may still take."""
        return max(0, self._told.remaining_ms - _clock.elapsed())


def _print(level: Any, message: object) -> None:
    for line in str(message).split("\n"):
        _log.write(level, line)


class log:
    """Lines for the execution log; what is printed stands there, too."""

    @staticmethod
    def debug(message: object) -> None:
        _print(_log.Level.DEBUG, message)

    @staticmethod
    def info(message: object) -> None:
        _print(_log.Level.INFO, message)

    @staticmethod
    def warn(message: object) -> None:
        _print(_log.Level.WARN, message)

    @staticmethod
    def error(message: object) -> None:
        _print(_log.Level.ERROR, message)


class clock:
    """Time. Python's own modules have it from the same clock."""

    @staticmethod
    def now() -> int:
        """Milliseconds since 1970."""
        return _clock.now()

    @staticmethod
    def sleep(ms: int) -> None:
        """Waits; wakes early when the call's time is over."""
        _clock.sleep(ms)


class state:
    """A small memory: for a trigger from call to call, for a tool to the end of the call. Values are JSON."""

    @staticmethod
    def get(key: str) -> Any:
        value = _state.get(key)
        return None if value is None else json.loads(value)

    @staticmethod
    def set(key: str, value: Any) -> bool:
        """False when it is over the limits: nothing was stored."""
        return _state.set(key, json.dumps(value).encode())

    @staticmethod
    def remove(key: str) -> None:
        _state.remove(key)


context = _Context()
