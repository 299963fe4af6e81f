//! Input of a recorded call.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{Content, Interaction, RequestError, interaction::redact_headers};
use crate::{
    Action, File, Inbound,
    contract::v1::webhook::{self, Algorithm},
    redact::Redactor,
    webhook_signature,
};

/// Action that a toolkit was asked to perform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RecordedAction {
    /// Run of a tool.
    Execute {
        /// Slug of the tool.
        tool: String,
        /// Arguments as received.
        arguments: Content,
    },
    /// Poll for events.
    Poll {
        /// Slug of the trigger type.
        trigger: String,
        /// Configuration as received.
        config: Content,
        /// Cursor returned by the previous poll.
        cursor: Content,
    },
    /// Processing of a webhook request.
    Receive {
        /// Slug of the trigger type.
        trigger: String,
        /// Configuration as received.
        config: Content,
        /// Request that the provider sent.
        request: Webhook,
    },
}

/// A webhook request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// Method in upper case.
    pub method: String,
    /// Path below the trigger's own URL.
    pub path: String,
    /// Headers in order.
    pub headers: Vec<(String, String)>,
    /// Body as the exact bytes.
    pub body: Content,
}

/// File given to the call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputFile {
    /// Id that the guest uses.
    pub id: String,
    /// Human-readable file name.
    pub name: String,
    /// Media type, for example `text/csv`.
    pub media_type: String,
    /// Complete content.
    pub content: Content,
}

/// Recorded external input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Import {
    /// Wall-clock time, in milliseconds since 1970.
    Now(u64),
    /// Milliseconds since the start of the call.
    Elapsed(u64),
    /// Random bytes.
    Random(Content),
    /// Request and its result.
    Http(Box<Interaction>),
    /// Result of the verification of a webhook request.
    Webhook(Verification),
}

/// Message of a webhook request whose signature was right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedMessage {
    pub(crate) algorithm: Algorithm,
    pub(crate) message: Bytes,
    pub(crate) signature: Bytes,
}

/// Result of the verification of a webhook request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verification {
    /// True if the signature was right.
    Verified(bool),
    /// Reason that nothing was verified.
    Refused(RequestError),
}

impl From<Inbound> for Webhook {
    fn from(request: Inbound) -> Self {
        Self {
            method: request.method,
            path: request.path,
            headers: request.headers,
            body: request.body.into(),
        }
    }
}

impl From<Webhook> for Inbound {
    fn from(request: Webhook) -> Self {
        Self {
            method: request.method,
            path: request.path,
            headers: request.headers,
            body: request.body.bytes(),
        }
    }
}

impl RecordedAction {
    pub(super) fn new(action: &Action) -> Self {
        match action {
            Action::Execute { tool, arguments } => Self::Execute {
                tool: tool.to_string(),
                arguments: Content::from(arguments.clone()),
            },
            Action::Poll {
                trigger,
                config,
                cursor,
            } => Self::Poll {
                trigger: trigger.to_string(),
                config: Content::from(config.clone()),
                cursor: Content::from(cursor.clone()),
            },
            Action::Receive {
                trigger,
                config,
                request,
            } => Self::Receive {
                trigger: trigger.to_string(),
                config: Content::from(config.clone()),
                request: Webhook::from(request.clone()),
            },
        }
    }

    /// Returns the action for a replay.
    #[must_use]
    pub fn action(&self) -> Action {
        match self {
            Self::Execute { tool, arguments } => Action::Execute {
                tool: tool.as_str().into(),
                arguments: arguments.bytes(),
            },
            Self::Poll {
                trigger,
                config,
                cursor,
            } => Action::Poll {
                trigger: trigger.as_str().into(),
                config: config.bytes(),
                cursor: cursor.bytes(),
            },
            Self::Receive {
                trigger,
                config,
                request,
            } => Action::Receive {
                trigger: trigger.as_str().into(),
                config: config.bytes(),
                request: request.clone().into(),
            },
        }
    }

    /// Returns the size of the content, in bytes.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Execute { arguments, .. } => arguments.len(),
            Self::Poll { config, cursor, .. } => config.len() + cursor.len(),
            Self::Receive {
                config, request, ..
            } => config.len() + request.body.len(),
        }
    }

    pub(super) fn redact(&mut self, redactor: &Redactor) {
        match self {
            Self::Execute { arguments, .. } => arguments.redact(redactor),
            Self::Poll { config, cursor, .. } => [config, cursor]
                .into_iter()
                .for_each(|held| held.redact(redactor)),
            Self::Receive {
                config, request, ..
            } => {
                [config, &mut request.body]
                    .into_iter()
                    .for_each(|held| held.redact(redactor));
                redact_headers(&mut request.headers, redactor);
            }
        }
    }
}

impl InputFile {
    pub(super) fn new(file: &File) -> Self {
        Self {
            id: file.id.clone(),
            name: file.name.clone(),
            media_type: file.media_type.clone(),
            content: file.bytes.clone().into(),
        }
    }

    /// Returns the file as input of a call.
    #[must_use]
    pub fn file(&self) -> File {
        File {
            id: self.id.clone(),
            name: self.name.clone(),
            media_type: self.media_type.clone(),
            bytes: self.content.bytes(),
        }
    }
}

impl SignedMessage {
    /// Signs a message with each algorithm, for a toolkit that verifies by itself.
    #[must_use]
    pub fn of(message: &Bytes, secret: &str) -> Vec<Self> {
        let algorithms = [
            Algorithm::HmacSha256,
            Algorithm::HmacSha1,
            Algorithm::HmacSha512,
            Algorithm::StandardWebhooks,
        ];
        algorithms
            .into_iter()
            .filter_map(|algorithm| {
                Some(Self {
                    algorithm,
                    message: message.clone(),
                    signature: webhook_signature::sign(algorithm, secret, message)?.into(),
                })
            })
            .collect()
    }

    /// Returns the bytes of the signature.
    #[must_use]
    pub fn signature(&self) -> &[u8] {
        &self.signature
    }

    /// Returns the signature of the message under another secret. Returns `None` if the secret is
    /// malformed, or if the request carries the secret itself.
    #[must_use]
    pub fn sign(&self, secret: &str) -> Option<Vec<u8>> {
        webhook_signature::sign(self.algorithm, secret, &self.message)
    }
}

impl Verification {
    pub(super) fn new(result: &Result<bool, webhook::Error>) -> Self {
        match result {
            Ok(verified) => Self::Verified(*verified),
            Err(webhook::Error { kind, message }) => Self::Refused(RequestError {
                kind: kind.clone(),
                message: message.clone(),
            }),
        }
    }

    pub(super) fn into_result(self) -> Result<bool, webhook::Error> {
        match self {
            Self::Verified(verified) => Ok(verified),
            Self::Refused(RequestError { kind, message }) => Err(webhook::Error { kind, message }),
        }
    }
}

impl Import {
    pub(super) fn redact(&mut self, redactor: &Redactor) {
        if let Self::Http(interaction) = self {
            interaction.redact(redactor);
        }
    }
}
