//! Result of a recorded call.

use serde::{Deserialize, Serialize};

use super::Content;
use crate::{Digest, Failure, Outcome, Output, redact::Redactor};

/// Result of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedResult {
    /// Output of the toolkit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<RecordedOutput>,
    /// Error, if the output is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RecordedError>,
    /// Files that the call created.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<CreatedFile>,
}

/// Output of a toolkit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RecordedOutput {
    /// Result of a tool.
    Data(Content),
    /// Result of a poll.
    Polled {
        /// Events in order.
        events: Vec<Event>,
        /// Cursor for the next poll.
        cursor: Content,
        /// True if another poll right away would find more.
        more: bool,
    },
    /// Result of a webhook request.
    Received {
        /// Events in order.
        events: Vec<Event>,
        /// HTTP status of the response to the provider.
        status: u16,
        /// Media type of the response body.
        media_type: String,
        /// Body of the response to the provider.
        body: Content,
    },
}

/// Event that a trigger found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// Id of the event at its source.
    pub id: String,
    /// Payload as JSON.
    pub payload: Content,
}

/// Error of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedError {
    /// Machine-readable kind.
    pub kind: String,
    /// Human-readable message.
    pub message: String,
    /// Delay after which a retry makes sense, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// HTTP status of the provider's response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream_status: Option<u16>,
    /// Details as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Content>,
}

/// File that a call created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreatedFile {
    /// Human-readable file name.
    pub name: String,
    /// Media type, for example `text/csv`.
    pub media_type: String,
    /// Size in bytes.
    pub size: usize,
    /// SHA-256 of the content.
    pub sha256: Digest,
}

impl RecordedResult {
    /// Creates the record of this outcome.
    #[must_use]
    pub fn new(outcome: &Outcome) -> Self {
        let made = outcome.files.iter().map(|file| CreatedFile {
            name: file.name.clone(),
            media_type: file.media_type.clone(),
            size: file.bytes.len(),
            sha256: Digest::compute(&file.bytes),
        });
        let (answer, error) = match &outcome.output {
            Ok(answer) => (Some(RecordedOutput::new(answer)), None),
            Err(failure) => (None, Some(RecordedError::new(failure))),
        };
        Self {
            answer,
            error,
            files: made.collect(),
        }
    }

    /// Returns the size of the content, in bytes.
    pub(super) fn size(&self) -> usize {
        match &self.answer {
            None => 0,
            Some(RecordedOutput::Data(data)) => data.len(),
            Some(RecordedOutput::Polled { events, cursor, .. }) => {
                event_bytes(events) + cursor.len()
            }
            Some(RecordedOutput::Received { events, body, .. }) => event_bytes(events) + body.len(),
        }
    }

    pub(super) fn redact(&mut self, redactor: &Redactor) {
        match &mut self.answer {
            None => {}
            Some(RecordedOutput::Data(data)) => data.redact(redactor),
            Some(RecordedOutput::Polled { events, cursor, .. }) => {
                redact_events(events, redactor);
                cursor.redact(redactor);
            }
            Some(RecordedOutput::Received { events, body, .. }) => {
                redact_events(events, redactor);
                body.redact(redactor);
            }
        }
        if let Some(failed) = &mut self.error {
            failed.message = redactor.redact_text(&failed.message);
            failed
                .details
                .iter_mut()
                .for_each(|details| details.redact(redactor));
        }
    }
}

fn event_bytes(events: &[Event]) -> usize {
    events
        .iter()
        .map(|event| event.id.len() + event.payload.len())
        .sum()
}

fn redact_events(events: &mut [Event], redactor: &Redactor) {
    events
        .iter_mut()
        .for_each(|event| event.payload.redact(redactor));
}

fn recorded_events(events: &[crate::Event]) -> Vec<Event> {
    events
        .iter()
        .map(|event| Event {
            id: event.id.clone(),
            payload: event.payload.clone().into(),
        })
        .collect()
}

impl RecordedOutput {
    fn new(answer: &Output) -> Self {
        match answer {
            Output::Data(data) => Self::Data(data.clone().into()),
            Output::Polled {
                events,
                cursor,
                more,
            } => Self::Polled {
                events: recorded_events(events),
                cursor: cursor.clone().into(),
                more: *more,
            },
            Output::Received {
                events,
                status,
                media_type,
                body,
            } => Self::Received {
                events: recorded_events(events),
                status: *status,
                media_type: media_type.clone(),
                body: body.clone().into(),
            },
        }
    }
}

impl RecordedError {
    fn new(failure: &Failure) -> Self {
        Self {
            kind: failure.kind.clone(),
            message: failure.message.clone(),
            retry_after_ms: failure.retry_after.map(|wait| wait.as_millis() as u64),
            upstream_status: failure.upstream_status,
            details: failure.details.clone().map(Content::from),
        }
    }
}
