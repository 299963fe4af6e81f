"""Converts a provider's error response to a tool error: the kind from the status, the message from the places where providers
put it, the waiting time from the headers."""

import json
from email.utils import parsedate_to_datetime
from typing import Any

from .context import clock
from .error import ToolError

PLACES = [
    "error.message",
    "message",
    "error_description",
    "errors.0.message",
    "errors.0.detail",
    "errors.0.title",
    "detail",
    "error.detail",
    "errorMessages.0",
    "error_message",
    "errors.0",
    "error",
    "reason",
    "title",
    "msg",
    "description",
]
RESETS = ["x-ratelimit-reset-after", "x-ratelimit-reset", "ratelimit-reset", "x-rate-limit-reset"]
LONGEST_MESSAGE = 500
LARGEST_DETAILS = 32 * 1024
LONGEST_WAIT = 7 * 24 * 3600 * 1000


def refusal(response: Any) -> ToolError:
    """The error for an answer that is not a success."""
    status = response.status
    body = _parsed(response)
    said = _sentence(body) or _plain(response)
    exhausted = (response.header("x-ratelimit-remaining") or "").strip() == "0" or response.header("retry-after")
    kind = "rate_limited" if status == 403 and exhausted else _kind(status)
    message = f"the provider responded {status}" + (f": {said[:LONGEST_MESSAGE]}" if said else "")
    return ToolError(
        kind,
        message,
        upstream_status=status,
        retry_after_ms=_wait(response) if kind in ("rate_limited", "upstream_unavailable") else None,
        details=body if len(response.content) <= LARGEST_DETAILS else None,
    )


def _kind(status: int) -> str:
    match status:
        case 400 | 413 | 414 | 422:
            return "invalid_input"
        case 401:
            return "unauthorized"
        case 402 | 403:
            return "forbidden"
        case 404 | 410:
            return "not_found"
        case 409 | 412 | 423:
            return "conflict"
        case 429:
            return "rate_limited"
        case 408 | 425 | 502 | 503 | 504 | 529:
            return "upstream_unavailable"
        case _:
            return "upstream_error"


def _parsed(response: Any) -> Any:
    try:
        return json.loads(response.content)
    except ValueError:
        return None


def _sentence(body: Any) -> str | None:
    if isinstance(body, str):
        return body
    for place in PLACES:
        value = body
        for key in place.split("."):
            if isinstance(value, list) and key.isdigit():
                value = value[int(key)] if int(key) < len(value) else None
            else:
                value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, str) and value.strip():
            return value
    return None


def _plain(response: Any) -> str | None:
    plain = (response.header("content-type") or "").startswith("text/plain")
    return response.text().strip() if plain else None


def _wait(response: Any) -> int | None:
    """Milliseconds to wait, as the provider's response states."""
    try:
        exact = response.header("retry-after-ms")
        hints = (response.header(name) for name in ["retry-after", *RESETS])
        ms = float(exact) if exact else _read(next((hint for hint in hints if hint), "").strip())
        return round(ms) if 0 <= ms <= LONGEST_WAIT else None
    except (ValueError, OverflowError):
        return None


def _read(hint: str) -> float:
    """Seconds from now, a moment in seconds or milliseconds since 1970, or a date."""
    try:
        number = float(hint)
    except ValueError:
        return max(0, parsedate_to_datetime(hint).timestamp() * 1000 - clock.now())
    if number >= 1e12:
        return max(0, number - clock.now())
    return max(0, number * 1000 - clock.now()) if number >= 1e9 else number * 1000
