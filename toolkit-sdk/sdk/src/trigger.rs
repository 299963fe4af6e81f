//! Inputs and outputs of triggers.

use serde::Serialize;

use crate::{Result, ToolError, mismatch};

/// Result of a poll.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Polled<T, C> {
    pub(crate) events: Vec<(String, T)>,
    pub(crate) cursor: C,
    pub(crate) more: bool,
}

impl<T, C> Polled<T, C> {
    /// Creates a result without events. The next poll receives this cursor, which may have at most
    /// 64 KiB as JSON.
    pub fn new(cursor: C) -> Self {
        Self {
            events: Vec::new(),
            cursor,
            more: false,
        }
    }

    /// Adds an event. `id` identifies the item at its source; the platform drops items that it has
    /// already seen.
    pub fn event(mut self, id: impl ToString, item: T) -> Self {
        self.events.push((id.to_string(), item));
        self
    }

    /// Adds several events.
    pub fn events<I: ToString>(mut self, items: impl IntoIterator<Item = (I, T)>) -> Self {
        self.events
            .extend(items.into_iter().map(|(id, item)| (id.to_string(), item)));
        self
    }

    /// Sets whether an immediate further poll would find more events.
    pub fn more(mut self, more: bool) -> Self {
        self.more = more;
        self
    }
}

/// A webhook request as the provider sent it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inbound {
    /// HTTP method in upper case.
    pub method: String,
    /// Path and query below the trigger's own address.
    pub path: String,
    /// Headers in order of arrival, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// Exact bytes of the body, so that a signature over them can be verified.
    pub body: Vec<u8>,
}

impl Inbound {
    /// Returns the first header with this name, compared without regard to case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(header, _)| header.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Parses the body as JSON.
    ///
    /// # Errors
    /// `invalid_input` if the body is not the expected JSON.
    pub fn json<T: serde::de::DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.body).map_err(|error| {
            let reason = mismatch::reason_with_path(&self.body, &error);
            ToolError::invalid_input(format!(
                "the webhook's body is not the expected JSON: {reason}"
            ))
        })
    }
}

/// Result of a webhook request: events for the project, and the response to the provider.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Received<T> {
    pub(crate) events: Vec<(String, T)>,
    pub(crate) status: u16,
    pub(crate) media_type: String,
    pub(crate) body: Vec<u8>,
}

impl<T> Received<T> {
    /// Creates a result without events, for example for a ping. The response has status 200.
    pub fn nothing() -> Self {
        Self {
            events: Vec::new(),
            status: 200,
            media_type: "text/plain".to_owned(),
            body: Vec::new(),
        }
    }

    /// Creates a result with one event. The response has status 200.
    pub fn event(id: impl ToString, item: T) -> Self {
        Self::nothing().and(id, item)
    }

    /// Adds an event.
    pub fn and(mut self, id: impl ToString, item: T) -> Self {
        self.events.push((id.to_string(), item));
        self
    }

    /// Sets the text of the response body, for example the challenge of a handshake.
    pub fn answer(mut self, text: impl Into<String>) -> Self {
        self.body = text.into().into_bytes();
        self
    }

    /// Sets JSON as the response body.
    ///
    /// # Errors
    /// The value cannot be written as JSON.
    pub fn answer_json(mut self, value: &impl Serialize) -> Result<Self> {
        self.media_type = "application/json".to_owned();
        self.body = serde_json::to_vec(value)?;
        Ok(self)
    }

    /// Sets a response status other than 200.
    pub fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }
}
