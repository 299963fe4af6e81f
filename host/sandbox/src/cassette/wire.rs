//! What a call was given, and what came to it from outside.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{Content, Exchange};
use crate::{Action, File, Inbound, redact::Redactor};

/// What a toolkit was asked to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Asked {
    /// To run a tool.
    Execute {
        /// Slug.
        tool: String,
        /// As they came.
        arguments: Content,
    },
    /// To look for events.
    Poll {
        /// Slug.
        trigger: String,
        /// As it came.
        config: Content,
        /// What the poll before answered.
        cursor: Content,
    },
    /// To read a webhook request.
    Receive {
        /// Slug.
        trigger: String,
        /// As it came.
        config: Content,
        /// What the application sent.
        request: Webhook,
    },
}

/// A webhook request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// Upper case.
    pub method: String,
    /// Below the trigger's own address.
    pub path: String,
    /// In order.
    pub headers: Vec<(String, String)>,
    /// The exact bytes.
    pub body: Content,
}

/// A file that the call was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Given {
    /// What the guest calls it by.
    pub id: String,
    /// For people.
    pub name: String,
    /// For example `text/csv`.
    pub media_type: String,
    /// All of it.
    pub content: Content,
}

/// Something that came from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Import {
    /// The time of day, in milliseconds since 1970.
    Now(u64),
    /// Milliseconds since the call began.
    Elapsed(u64),
    /// Random bytes.
    Random(Content),
    /// A request and what came of it.
    Http(Box<Exchange>),
}

impl Asked {
    pub(super) fn of(action: &Action) -> Self {
        let held = |bytes: &Bytes| Content::from(bytes.clone());
        match action {
            Action::Execute { tool, arguments } => Self::Execute { tool: tool.to_string(), arguments: held(arguments) },
            Action::Poll { trigger, config, cursor } => {
                Self::Poll { trigger: trigger.to_string(), config: held(config), cursor: held(cursor) }
            }
            Action::Receive { trigger, config, request } => {
                let Inbound { method, path, headers, body } = request.clone();
                let request = Webhook { method, path, headers, body: body.into() };
                Self::Receive { trigger: trigger.to_string(), config: held(config), request }
            }
        }
    }

    /// The same, to be done again.
    #[must_use]
    pub fn action(&self) -> Action {
        match self {
            Self::Execute { tool, arguments } => {
                Action::Execute { tool: tool.as_str().into(), arguments: arguments.bytes() }
            }
            Self::Poll { trigger, config, cursor } => {
                Action::Poll { trigger: trigger.as_str().into(), config: config.bytes(), cursor: cursor.bytes() }
            }
            Self::Receive { trigger, config, request } => {
                let Webhook { method, path, headers, body } = request.clone();
                let request = Inbound { method, path, headers, body: body.bytes() };
                Action::Receive { trigger: trigger.as_str().into(), config: config.bytes(), request }
            }
        }
    }

    /// Bytes of content.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Execute { arguments, .. } => arguments.len(),
            Self::Poll { config, cursor, .. } => config.len() + cursor.len(),
            Self::Receive { config, request, .. } => config.len() + request.body.len(),
        }
    }

    pub(super) fn clean(&mut self, redactor: &Redactor) {
        match self {
            Self::Execute { arguments, .. } => arguments.clean(redactor),
            Self::Poll { config, cursor, .. } => [config, cursor].into_iter().for_each(|held| held.clean(redactor)),
            Self::Receive { config, request, .. } => {
                [config, &mut request.body].into_iter().for_each(|held| held.clean(redactor));
                request.headers.iter_mut().for_each(|(_, value)| *value = redactor.text(value));
            }
        }
    }
}

impl Given {
    pub(super) fn of(file: &File) -> Self {
        let File { id, name, media_type, bytes } = file.clone();
        Self { id, name, media_type, content: bytes.into() }
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> File {
        let Self { id, name, media_type, content } = self.clone();
        File { id, name, media_type, bytes: content.bytes() }
    }
}

impl Import {
    pub(super) fn clean(&mut self, redactor: &Redactor) {
        if let Self::Http(exchange) = self {
            exchange.clean(redactor);
        }
    }
}
