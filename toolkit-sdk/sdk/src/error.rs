//! Errors of tools, polls and receives.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::mismatch;

/// Result of a tool, a poll or a receive.
pub type Result<T, E = ToolError> = core::result::Result<T, E>;

/// Reason why the work could not be done. The call itself succeeded; the agent reads this error.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct ToolError {
    kind: Cow<'static, str>,
    message: String,
    retry_after: Option<Duration>,
    upstream_status: Option<u16>,
    details: Option<Box<Value>>,
}

impl ToolError {
    /// Creates an error of any kind. `kind` is a stable identifier in snake_case for programs.
    /// `message` is one readable sentence for people and agents.
    pub fn new(kind: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            message: message.into(),
            retry_after: None,
            upstream_status: None,
            details: None,
        }
    }

    /// Creates an error for arguments that cannot be used.
    pub fn invalid_input(message: impl Into<String>) -> Self {
        Self::new("invalid_input", message)
    }

    /// Creates an error for a credential that the provider does not accept.
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::new("unauthorized", message)
    }

    /// Creates an error for an action that the account is not permitted to do.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new("forbidden", message)
    }

    /// Creates an error for a resource that does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new("not_found", message)
    }

    /// Creates an error for a resource whose state does not allow the action.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new("conflict", message)
    }

    /// Creates an error for too many requests. Add the time to wait with [`Self::retry_after`].
    pub fn rate_limited(message: impl Into<String>) -> Self {
        Self::new("rate_limited", message)
    }

    /// Creates an error for a provider that failed or returned a response that makes no sense.
    pub fn upstream(message: impl Into<String>) -> Self {
        Self::new("upstream_error", message)
    }

    /// Creates an error for a provider that cannot be reached now. A retry may succeed.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new("upstream_unavailable", message)
    }

    /// Creates an error for an action that the platform does not allow.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new("denied", message)
    }

    /// Creates an error for a defect in the toolkit.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new("internal", message)
    }

    /// Adds the time to wait before a retry.
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Adds the HTTP status of the provider's response.
    pub fn upstream_status(mut self, status: u16) -> Self {
        self.upstream_status = Some(status);
        self
    }

    /// Adds detail as JSON, for example the provider's own error body. At most 64 KiB when
    /// serialized.
    pub fn details(mut self, details: Value) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// Replaces the message and keeps the rest.
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// Returns the kind, for example `not_found`.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Returns the readable message.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.message
    }

    /// Returns the time to wait before a retry, if it is known.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Returns the HTTP status of the provider's response, if there was one.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.upstream_status
    }

    /// Returns the detail, if there is any.
    #[must_use]
    pub fn detail(&self) -> Option<&Value> {
        self.details.as_deref()
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}

impl std::error::Error for ToolError {}

impl From<serde_json::Error> for ToolError {
    fn from(error: serde_json::Error) -> Self {
        let reason = mismatch::reason(&error);
        Self::internal(format!("cannot read or write JSON: {reason}"))
    }
}

impl From<std::string::FromUtf8Error> for ToolError {
    fn from(error: std::string::FromUtf8Error) -> Self {
        Self::invalid_input(format!("the text is not UTF-8: {error}"))
    }
}
