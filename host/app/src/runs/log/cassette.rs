//! Cassettes of executions. They are sealed like other execution data, have one record each, and
//! are kept only if the operator enables them.
//!
//! A cassette contains responses of the provider. It is therefore kept only for projects that store
//! their data, and its size is limited. Cassettes that wait to be written share the buffer with log
//! records. If the buffer is full, an execution leaves no cassette, but loses nothing else.

use std::sync::Arc;

use sandbox::cassette::Cassette;
use serde::{Deserialize, Serialize};
use store::{Batch, Collection, Document, Erasure};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Pending, Writer, get};
use crate::{
    App, Result,
    core::{
        ids::LogId,
        vault::{SealContext, Sealed},
    },
    projects::{LogVisibility, Project, quotas::Kind},
    runs::errors,
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

/// A cassette as stored.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredCassette {
    sealed: Sealed<Cassette>,
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
    cassette: Cassette,
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
    pub(crate) fn reserve(&self, cassette: Cassette, failed: bool) -> Option<PendingCassette> {
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

impl Writer {
    /// Writes the cassettes of a group. A cassette that cannot be written is lost with a warning,
    /// because the execution's log record is more important.
    pub(super) async fn keep_cassettes(&self, entries: &[Box<Pending>]) {
        for entry in entries {
            if let Some(kept) = &entry.cassette
                && let Err(cause) = self.keep_cassette(entry, kept).await
            {
                tracing::warn!(%cause, log = %entry.id, "a cassette could not be written");
            }
        }
    }

    async fn keep_cassette(&self, entry: &Pending, kept: &PendingCassette) -> Result<()> {
        let (project, id) = (entry.project.id.as_str(), entry.id.as_str());
        let now = self.clock.now();
        let context = SealContext::new::<StoredCassette>(project, id, "sealed");
        let sealed = self.vault.seal(context, &kept.cassette, now).await?;
        let stored = StoredCassette { sealed };
        let size = stored.sealed.size();
        if !self.quotas.take(Kind::Log, project, size, now) {
            return Ok(());
        }
        let batch = Batch::at(now).insert(project, id, &stored);
        Ok(self.store.commit(batch).await?)
    }
}

/// Returns the cassette of an execution. Fails if the execution or its cassette does not exist.
pub async fn cassette(app: &App, project: &Project, id: &LogId) -> Result<Cassette> {
    let (run, _) = get(app, project, id).await?;
    let project = project.id.as_str();
    let id_text = run.id.as_str();
    let stored = app.store.get::<StoredCassette>(project, id_text).await?;
    let stored = stored.ok_or_else(|| errors::no_cassette(id))?;
    let (context, now) = (SealContext::of(&stored, "sealed"), app.clock.now());
    app.vault.unseal(context, &stored.body.sealed, now).await
}
