//! Why a tool could not do its work.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use serde_json::Value;

/// What a tool, poll or receive answers, or why it could not.
pub type Result<T, E = ToolError> = core::result::Result<T, E>;

/// An answer that says why the work could not be done. The call itself succeeded; the agent reads this.
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
    /// An error of any kind. `kind` is stable, in snake_case, for programs; `message` is one sentence for people and agents.
    pub fn new(kind: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { kind: kind.into(), message: message.into(), retry_after: None, upstream_status: None, details: None }
    }

    /// The arguments cannot be worked with.
    pub fn invalid_input(message: impl Into<String>) -> Self {
        Self::new("invalid_input", message)
    }

    /// The application does not accept the credential.
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::new("unauthorized", message)
    }

    /// The account may not do this.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new("forbidden", message)
    }

    /// The thing is not there.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new("not_found", message)
    }

    /// The thing is in a state that does not allow this.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new("conflict", message)
    }

    /// Too many requests; say when to come back with [`Self::retry_after`].
    pub fn rate_limited(message: impl Into<String>) -> Self {
        Self::new("rate_limited", message)
    }

    /// The application failed or answered something that makes no sense.
    pub fn upstream(message: impl Into<String>) -> Self {
        Self::new("upstream_error", message)
    }

    /// The application cannot be reached now; trying again may help.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new("upstream_unavailable", message)
    }

    /// The platform does not allow this.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new("denied", message)
    }

    /// A fault in the toolkit.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new("internal", message)
    }

    /// Adds how long to wait before trying again.
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Adds the HTTP status that the application answered.
    pub fn upstream_status(mut self, status: u16) -> Self {
        self.upstream_status = Some(status);
        self
    }

    /// Adds detail as JSON, for example the application's own error body. At most 64 KiB when written.
    pub fn details(mut self, details: Value) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// Replaces the message and keeps the rest.
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// The kind, for example `not_found`.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The sentence for people.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.message
    }

    /// How long to wait, when that is known.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        self.retry_after
    }

    /// HTTP status of the application, when it answered.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.upstream_status
    }

    /// More detail, when there is any.
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
        Self::internal(format!("cannot read or write JSON: {error}"))
    }
}

impl From<std::string::FromUtf8Error> for ToolError {
    fn from(error: std::string::FromUtf8Error) -> Self {
        Self::invalid_input(format!("the text is not UTF-8: {error}"))
    }
}
