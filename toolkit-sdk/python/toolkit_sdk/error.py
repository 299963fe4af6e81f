"""Why a tool could not do its work."""

from typing import Any, Self


class ToolError(Exception):
    """An answer that says why the work could not be done: a kind for programs, a sentence for people and agents."""

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        retry_after_ms: int | None = None,
        upstream_status: int | None = None,
        details: Any = None,
    ):
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.retry_after_ms = retry_after_ms
        self.upstream_status = upstream_status
        self.details = details

    @classmethod
    def invalid_input(cls, message: str, **more: Any) -> Self:
        """The arguments cannot be worked with."""
        return cls("invalid_input", message, **more)

    @classmethod
    def unauthorized(cls, message: str, **more: Any) -> Self:
        """The provider does not accept the credential."""
        return cls("unauthorized", message, **more)

    @classmethod
    def forbidden(cls, message: str, **more: Any) -> Self:
        """The account may not do this."""
        return cls("forbidden", message, **more)

    @classmethod
    def not_found(cls, message: str, **more: Any) -> Self:
        """The thing is not there."""
        return cls("not_found", message, **more)

    @classmethod
    def conflict(cls, message: str, **more: Any) -> Self:
        """The thing is in a state that does not allow this."""
        return cls("conflict", message, **more)

    @classmethod
    def rate_limited(cls, message: str, **more: Any) -> Self:
        """Too many requests; say when to come back with `retry_after_ms`."""
        return cls("rate_limited", message, **more)

    @classmethod
    def upstream(cls, message: str, **more: Any) -> Self:
        """The provider failed or returned a response that makes no sense."""
        return cls("upstream_error", message, **more)

    @classmethod
    def unavailable(cls, message: str, **more: Any) -> Self:
        """The provider cannot be reached now. A retry may succeed."""
        return cls("upstream_unavailable", message, **more)

    @classmethod
    def denied(cls, message: str, **more: Any) -> Self:
        """The platform does not allow this."""
        return cls("denied", message, **more)

    @classmethod
    def internal(cls, message: str, **more: Any) -> Self:
        """A fault in the toolkit."""
        return cls("internal", message, **more)
