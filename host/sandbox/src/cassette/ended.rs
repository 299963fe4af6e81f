//! What came of a call.

use serde::{Deserialize, Serialize};

use super::Content;
use crate::{Answer, Digest, Failure, Outcome, redact::Redactor};

/// How a call ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ended {
    /// What the toolkit answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Said>,
    /// Why it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failed>,
    /// Files that it made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<Made>,
}

/// What a toolkit answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Said {
    /// Of a tool.
    Data(Content),
    /// Of a poll.
    Polled {
        /// In order.
        events: Vec<Event>,
        /// For the next poll.
        cursor: Content,
        /// Another poll right away would find more.
        more: bool,
    },
    /// Of a webhook request.
    Received {
        /// In order.
        events: Vec<Event>,
        /// Answered to the application.
        status: u16,
        /// Of the body.
        media_type: String,
        /// Answered to the application.
        body: Content,
    },
}

/// Something that a trigger found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// Identifies it at its source.
    pub id: String,
    /// JSON.
    pub payload: Content,
}

/// Why a call did not come to an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failed {
    /// For programs.
    pub kind: String,
    /// For people.
    pub message: String,
    /// When another attempt makes sense.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// What the application answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream_status: Option<u16>,
    /// JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Content>,
}

/// A file that a call made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Made {
    /// For people.
    pub name: String,
    /// For example `text/csv`.
    pub media_type: String,
    /// In bytes.
    pub size: usize,
    /// SHA-256 of its content.
    pub sha256: Digest,
}

impl Ended {
    /// How this call ended.
    #[must_use]
    pub fn of(outcome: &Outcome) -> Self {
        let made = outcome.files.iter().map(|file| Made {
            name: file.name.clone(),
            media_type: file.media_type.clone(),
            size: file.bytes.len(),
            sha256: Digest::of(&file.bytes),
        });
        let (answer, error) = match &outcome.answer {
            Ok(answer) => (Some(Said::of(answer)), None),
            Err(failure) => (None, Some(Failed::of(failure))),
        };
        Self { answer, error, files: made.collect() }
    }

    /// Bytes of content.
    pub(super) fn weight(&self) -> usize {
        let events = |events: &[Event]| events.iter().map(|event| event.id.len() + event.payload.len()).sum::<usize>();
        match &self.answer {
            None => 0,
            Some(Said::Data(data)) => data.len(),
            Some(Said::Polled { events: found, cursor, .. }) => events(found) + cursor.len(),
            Some(Said::Received { events: found, body, .. }) => events(found) + body.len(),
        }
    }

    pub(super) fn clean(&mut self, redactor: &Redactor) {
        let events = |events: &mut [Event]| events.iter_mut().for_each(|event| event.payload.clean(redactor));
        match &mut self.answer {
            None => {}
            Some(Said::Data(data)) => data.clean(redactor),
            Some(Said::Polled { events: found, cursor, .. }) => {
                events(found);
                cursor.clean(redactor);
            }
            Some(Said::Received { events: found, body, .. }) => {
                events(found);
                body.clean(redactor);
            }
        }
        if let Some(failed) = &mut self.error {
            failed.message = redactor.text(&failed.message);
            failed.details.iter_mut().for_each(|details| details.clean(redactor));
        }
    }
}

impl Said {
    fn of(answer: &Answer) -> Self {
        let events = |events: &[crate::Event]| {
            let event = |event: &crate::Event| Event { id: event.id.clone(), payload: event.payload.clone().into() };
            events.iter().map(event).collect()
        };
        match answer {
            Answer::Data(data) => Self::Data(data.clone().into()),
            Answer::Polled { events: found, cursor, more } => {
                Self::Polled { events: events(found), cursor: cursor.clone().into(), more: *more }
            }
            Answer::Received { events: found, status, media_type, body } => Self::Received {
                events: events(found),
                status: *status,
                media_type: media_type.clone(),
                body: body.clone().into(),
            },
        }
    }
}

impl Failed {
    fn of(failure: &Failure) -> Self {
        Self {
            kind: failure.kind.clone(),
            message: failure.message.clone(),
            retry_after_ms: failure.retry_after.map(|wait| wait.as_millis() as u64),
            upstream_status: failure.upstream_status,
            details: failure.details.clone().map(Content::from),
        }
    }
}
