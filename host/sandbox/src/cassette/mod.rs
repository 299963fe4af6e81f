//! Cassette: one call as data, with all external input of the guest.
//!
//! Problem: a call that failed on a server cannot be reproduced on the author's machine. The
//! provider's responses depend on the account and on the time.
//!
//! Guarantee: the same component with a cassette returns byte for byte the recorded result, without
//! a network and at any later time. A request that differs from the recorded one ends the call, and
//! the error shows both. A cassette holds no credential: it stores requests as the guest wrote
//! them, with the name of the credential slot, and responses as the guest saw them.
//!
//! The guarantee rests on the fact that imports are the only input of a guest. Provider responses,
//! results of signature checks, time and randomness are recorded in order. Changes of state and files are not recorded, because
//! they follow from the input of the call, which the cassette holds completely. Processor time and
//! memory use are not recorded, so a call that failed at a limit may end differently.

mod content;
mod input;
mod interaction;
mod result;
mod session;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use content::Content;
pub use input::{Import, InputFile, RecordedAction, SignedMessage, Verification, Webhook};
pub use interaction::{Body, CredentialSlot, Interaction, Part, Request, RequestError, Response};
pub use result::{CreatedFile, Event, RecordedError, RecordedOutput, RecordedResult};
use session::Recorded;
pub(crate) use session::{CassetteSession, Nondeterminism};

use crate::{Action, Call, Digest, Outcome};

/// Format version that this host writes and reads.
pub const FORMAT_VERSION: u32 = 1;
/// Maximum size of a cassette to read, in bytes of JSON.
pub const MAX_CASSETTE_BYTES: usize = 64 << 20;

/// One recorded call.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cassette {
    /// Format version, [`FORMAT_VERSION`].
    pub cassette: u32,
    /// Digest of the component that ran.
    pub component: Digest,
    /// Action that the component performed.
    pub call: RecordedAction,
    /// Id of the run in logs.
    pub run_id: String,
    /// Id that the project uses for the user.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user_id: String,
    /// Non-secret fields of the connected account.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<(String, String)>,
    /// Wall-clock time available to the call, in milliseconds.
    pub remaining_ms: u64,
    /// Files given to the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<InputFile>,
    /// Content of `state` at the beginning of the call.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub state: BTreeMap<String, Content>,
    /// Recorded imports in order.
    pub imports: Vec<Import>,
    /// Result of the call.
    pub ended: RecordedResult,
    /// Messages whose signatures were right. They are not written, because a replay needs only the
    /// results in `imports`.
    #[serde(skip)]
    pub signed: Vec<SignedMessage>,
}

/// Reason why a cassette cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum InvalidCassette {
    /// The text is too large.
    #[error("the cassette is larger than {} MiB", MAX_CASSETTE_BYTES >> 20)]
    TooLarge,
    /// The cassette has another format version.
    #[error("the cassette has format version {0}; this release reads version {FORMAT_VERSION}")]
    Version(u64),
    /// The text does not have the format of a cassette.
    #[error("the text is not a cassette: {0}")]
    Format(#[from] serde_json::Error),
}

impl Cassette {
    /// Reads a cassette.
    ///
    /// # Errors
    /// Returns an [`InvalidCassette`] if the text is not a playable cassette.
    pub fn from_json(text: &[u8]) -> Result<Self, InvalidCassette> {
        #[derive(Deserialize)]
        struct Version {
            cassette: u64,
        }
        if text.len() > MAX_CASSETTE_BYTES {
            return Err(InvalidCassette::TooLarge);
        }
        let Version { cassette } = serde_json::from_slice(text)?;
        if cassette != u64::from(FORMAT_VERSION) {
            return Err(InvalidCassette::Version(cassette));
        }
        Ok(serde_json::from_slice(text)?)
    }

    /// Returns true if the outcome equals the recorded one, including files.
    #[must_use]
    pub fn matches(&self, outcome: &Outcome) -> bool {
        self.ended == RecordedResult::new(outcome)
    }

    /// Starts the cassette of a call. `action` is the action as the guest gets it.
    pub(crate) fn begin(call: &Call, action: &Action) -> Self {
        let context = call.context.clone();
        Self {
            cassette: FORMAT_VERSION,
            component: call.component,
            call: RecordedAction::new(action),
            run_id: context.run_id,
            user_id: context.user_id,
            fields: context.fields,
            remaining_ms: call.limits.clamped().wall.as_millis() as u64,
            files: call.files.iter().map(InputFile::new).collect(),
            state: call
                .state
                .iter()
                .map(|(key, value)| (key.clone(), Content::from_bytes(value)))
                .collect(),
            imports: Vec::new(),
            ended: RecordedResult::default(),
            signed: Vec::new(),
        }
    }

    /// Completes the cassette of a call. Returns `None` if it is larger than allowed.
    pub(crate) fn end(
        mut self: Box<Self>,
        session: &CassetteSession,
        outcome: &Outcome,
    ) -> Option<Box<Self>> {
        let Recorded {
            imports,
            signed,
            redactor,
            remaining_bytes,
        } = session.take()?;
        self.imports = imports;
        self.signed = signed;
        self.ended = RecordedResult::new(outcome);
        self.call.redact(&redactor);
        self.imports
            .iter_mut()
            .for_each(|import| import.redact(&redactor));
        self.ended.redact(&redactor);
        let files: usize = self.files.iter().map(|file| file.content.len()).sum();
        let state: usize = self.state.values().map(Content::len).sum();
        (self.call.size() + self.ended.size() + files + state <= remaining_bytes).then_some(self)
    }
}
