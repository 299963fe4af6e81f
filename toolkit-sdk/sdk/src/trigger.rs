//! What triggers take and answer.

use serde::Serialize;

use crate::{Result, ToolError};

/// What a poll found.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Polled<T, C> {
    pub(crate) events: Vec<(String, T)>,
    pub(crate) cursor: C,
    pub(crate) more: bool,
}

impl<T, C> Polled<T, C> {
    /// Nothing new; the next poll gets this cursor. At most 64 KiB when written as JSON.
    pub fn new(cursor: C) -> Self {
        Self { events: Vec::new(), cursor, more: false }
    }

    /// Adds an item. `id` identifies it at its source; the platform drops an item it has seen before.
    pub fn event(mut self, id: impl ToString, item: T) -> Self {
        self.events.push((id.to_string(), item));
        self
    }

    /// Adds items.
    pub fn events<I: ToString>(mut self, items: impl IntoIterator<Item = (I, T)>) -> Self {
        self.events.extend(items.into_iter().map(|(id, item)| (id.to_string(), item)));
        self
    }

    /// Says whether another poll right away would find more.
    pub fn more(mut self, more: bool) -> Self {
        self.more = more;
        self
    }
}

/// A webhook request as the application sent it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inbound {
    /// In upper case.
    pub method: String,
    /// Path and query below the trigger's own address.
    pub path: String,
    /// In order of arrival; names in lower case.
    pub headers: Vec<(String, String)>,
    /// The exact bytes, so that a signature over them can be verified.
    pub body: Vec<u8>,
}

impl Inbound {
    /// The first header of this name, in any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    ///
    /// # Errors
    /// `invalid_input` when it is something else.
    pub fn json<T: serde::de::DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.body)
            .map_err(|error| ToolError::invalid_input(format!("the webhook's body is not the expected JSON: {error}")))
    }
}

/// What to do with a webhook request: events for the project, and the answer to the application.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Received<T> {
    pub(crate) events: Vec<(String, T)>,
    pub(crate) status: u16,
    pub(crate) media_type: String,
    pub(crate) body: Vec<u8>,
}

impl<T> Received<T> {
    /// Nothing to report, for example a ping; answers 200.
    pub fn nothing() -> Self {
        Self { events: Vec::new(), status: 200, media_type: "text/plain".to_owned(), body: Vec::new() }
    }

    /// One event; answers 200.
    pub fn event(id: impl ToString, item: T) -> Self {
        Self::nothing().and(id, item)
    }

    /// Adds an event.
    pub fn and(mut self, id: impl ToString, item: T) -> Self {
        self.events.push((id.to_string(), item));
        self
    }

    /// Answers text, for example the challenge of a handshake.
    pub fn answer(mut self, text: impl Into<String>) -> Self {
        self.body = text.into().into_bytes();
        self
    }

    /// Answers JSON.
    ///
    /// # Errors
    /// When the value cannot be written as JSON.
    pub fn answer_json(mut self, value: &impl Serialize) -> Result<Self> {
        self.media_type = "application/json".to_owned();
        self.body = serde_json::to_vec(value)?;
        Ok(self)
    }

    /// Answers another status than 200.
    pub fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }
}
