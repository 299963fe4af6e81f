//! A cassette: one call as data, with everything that came to the guest from outside.
//!
//! Problem: a call that failed on a server cannot be tried again on the author's machine: the application answers
//! something else today, to another account, at another time.
//!
//! Guarantee: the same component, given a cassette, answers byte for byte what it answered when that was recorded, with no
//! network and at any later time; a request that differs from the recorded one ends the call and is shown beside it. A
//! cassette holds no credential: requests are the guest's own, before the host adds one, with the name of the slot in its
//! place; answers are what the guest saw, after the host removed one.
//!
//! What it rests on: a guest has no source but its imports. Answers of applications, time and randomness are recorded, in
//! order; state and files are not, because they follow from what the call was given, which the cassette holds whole. How
//! much processor time and memory a machine takes is not recorded: a call that broke at a limit may end otherwise.

mod content;
mod ended;
mod exchange;
mod tape;
mod wire;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use content::Content;
pub use ended::{Ended, Event, Failed, Made, Said};
pub use exchange::{Body, Exchange, Part, Refused, Request, Response, Slot};
pub(crate) use tape::{Hand, Tape};
pub use wire::{Asked, Given, Import, Webhook};

use crate::{Call, Context, Digest, Outcome};

/// Version of the format that this host writes and reads.
pub const FORMAT: u32 = 1;
/// Largest cassette that is read, in bytes of JSON.
pub const LARGEST: usize = 64 << 20;

/// One recorded call.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cassette {
    /// Version of the format, [`FORMAT`].
    pub cassette: u32,
    /// The component that ran.
    pub component: Digest,
    /// What it was asked to do.
    pub call: Asked,
    /// Identifies the run in logs.
    pub run_id: String,
    /// The project's own name for the person.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user_id: String,
    /// Non-secret fields of the account.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<(String, String)>,
    /// Wall-clock time that the call had, in milliseconds.
    pub remaining_ms: u64,
    /// Files that it was given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<Given>,
    /// What `state` held.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub state: BTreeMap<String, Content>,
    /// What came from outside, in order.
    pub imports: Vec<Import>,
    /// What came of it.
    pub ended: Ended,
}

/// Why a text is no cassette that can be played.
#[derive(Debug, thiserror::Error)]
pub enum InvalidCassette {
    /// It is too large.
    #[error("it has more than {} MiB, the most that a cassette has", LARGEST >> 20)]
    TooLarge,
    /// Another version of the format.
    #[error("it is of version {0} of the format, and this release reads version {FORMAT}")]
    Version(u64),
    /// Not the format.
    #[error("it is not a cassette: {0}")]
    Format(#[from] serde_json::Error),
}

impl Cassette {
    /// Reads a cassette.
    ///
    /// # Errors
    /// See [`InvalidCassette`].
    pub fn from_json(text: &[u8]) -> Result<Self, InvalidCassette> {
        #[derive(Deserialize)]
        struct Version {
            cassette: u64,
        }
        if text.len() > LARGEST {
            return Err(InvalidCassette::TooLarge);
        }
        let Version { cassette } = serde_json::from_slice(text)?;
        if cassette != u64::from(FORMAT) {
            return Err(InvalidCassette::Version(cassette));
        }
        Ok(serde_json::from_slice(text)?)
    }

    /// Whether a call came out as this one did, files included.
    #[must_use]
    pub fn matches(&self, outcome: &Outcome) -> bool {
        self.ended == Ended::of(outcome)
    }

    /// A cassette of a call that begins.
    pub(crate) fn begin(call: &Call) -> Self {
        let Context { run_id, user_id, fields } = call.context.clone();
        Self {
            cassette: FORMAT,
            component: call.component,
            call: Asked::of(&call.action),
            run_id,
            user_id,
            fields,
            remaining_ms: call.limits.clamped().wall.as_millis() as u64,
            files: call.files.iter().map(Given::of).collect(),
            state: call.state.iter().map(|(key, value)| (key.clone(), Content::of(value))).collect(),
            imports: Vec::new(),
            ended: Ended::default(),
        }
    }

    /// The cassette of the call, ended; none when it is larger than the tape allows.
    pub(crate) fn end(mut self, tape: &Tape, outcome: &Outcome) -> Option<Self> {
        let (imports, redactor, room) = tape.take()?;
        self.imports = imports;
        self.ended = Ended::of(outcome);
        self.call.clean(&redactor);
        self.imports.iter_mut().for_each(|import| import.clean(&redactor));
        self.ended.clean(&redactor);
        let files: usize = self.files.iter().map(|file| file.content.len()).sum();
        let state: usize = self.state.values().map(Content::len).sum();
        (self.call.weight() + self.ended.weight() + files + state <= room).then_some(self)
    }
}
