//! Cassettes of executions. They are sealed like other execution data, have one record each, and
//! are kept only if the operator enables them.
//!
//! A cassette contains responses of the provider. It is therefore kept only for projects that store
//! their data, and its size is limited. Cassettes that wait to be written share the buffer with log
//! records. If the buffer is full, an execution leaves no cassette, but loses nothing else.

use std::sync::Arc;

use sandbox::cassette::Cassette;
use serde::{Deserialize, Serialize};
use store::{Collection, Document, Erasure};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    core::vault::Sealed,
    projects::{LogVisibility, Project},
};

/// The collection of cassettes, under the id of the execution.
pub(crate) static CASSETTES_COLLECTION: Collection = Collection {
    name: "execution_cassettes",
    erasure: Erasure::Other("the retention of the execution log erases them"),
    fields: &[],
};

/// The executions that leave a cassette.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CassettePolicy {
    /// No execution.
    #[default]
    Off,
    /// Failed executions.
    Failed,
    /// All executions.
    All,
}

#[derive(Serialize, Deserialize)]
pub(super) struct StoredCassette {
    #[serde(serialize_with = "Sealed::serialize_unescaped")]
    pub(super) sealed: Sealed<Cassette>,
}

impl Document for StoredCassette {
    const COLLECTION: &'static Collection = &CASSETTES_COLLECTION;
}

/// The component that decides which executions are recorded and which cassettes are kept.
pub(crate) struct Recorder {
    policy: CassettePolicy,
    max_bytes: usize,
    /// The bytes of the buffer that are free for waiting records and cassettes.
    buffer_room: Arc<Semaphore>,
}

/// A cassette that waits to be written.
pub(crate) struct PendingCassette {
    pub(super) cassette: Box<Cassette>,
    _reserved: OwnedSemaphorePermit,
}

impl Recorder {
    pub(super) fn new(
        policy: CassettePolicy,
        max_bytes: usize,
        buffer_room: Arc<Semaphore>,
    ) -> Self {
        Self {
            policy,
            max_bytes,
            buffer_room,
        }
    }

    /// Returns the number of bytes that an execution of this project may record, or `None` if it is
    /// not recorded.
    pub(crate) fn max_bytes(&self, project: &Project) -> Option<usize> {
        let stored = project.stored.config.log_visibility == LogVisibility::ShowAll;
        (self.policy != CassettePolicy::Off && stored).then_some(self.max_bytes)
    }

    /// Returns the cassette for writing, if it is to be kept and the buffer has capacity.
    pub(crate) fn reserve(&self, cassette: Box<Cassette>, failed: bool) -> Option<PendingCassette> {
        let is_wanted = self.policy == CassettePolicy::All || failed;
        if !is_wanted {
            return None;
        }
        let bytes = u32::try_from(self.max_bytes).unwrap_or(u32::MAX);
        let reserved = self.buffer_room.clone().try_acquire_many_owned(bytes);
        Some(PendingCassette {
            cassette,
            _reserved: reserved.ok()?,
        })
    }
}
