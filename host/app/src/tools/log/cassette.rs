//! Cassettes of runs: sealed like what was said, one record each, and only when the operator asks for them.
//!
//! A cassette holds what the external application answered, so it is kept only for projects that let their data be stored,
//! it is bounded in size, and those that wait to be written take room that records do, too: where there is none left a run
//! leaves no cassette, and loses nothing else.

use std::sync::Arc;

use sandbox::cassette::Cassette;
use serde::{Deserialize, Serialize};
use store::{Batch, Collection, Document};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Pending, Writer, get};
use crate::{
    App, Error, Result,
    ids::LogId,
    projects::{LogVisibility, Project},
    quotas::Kind,
    vault::{Place, Sealed},
};

/// Cassettes, under the id of the run.
pub(crate) static CASSETTES: Collection = Collection { name: "execution_cassettes", fields: &[] };

/// Which runs leave a cassette.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// None.
    #[default]
    Off,
    /// Those that failed.
    Failed,
    /// Each.
    All,
}

/// A cassette as stored.
#[derive(Serialize, Deserialize)]
pub(super) struct Stored {
    sealed: Sealed<Cassette>,
}

impl Document for Stored {
    const COLLECTION: &'static Collection = &CASSETTES;
}

/// Decides what is recorded and what of it is kept.
pub(crate) struct Recorder {
    keep: Keep,
    most: usize,
    /// Bytes that are free for records and cassettes that wait.
    waiting: Arc<Semaphore>,
}

/// A cassette on its way into the store.
pub(crate) struct Kept {
    cassette: Cassette,
    _room: OwnedSemaphorePermit,
}

impl Recorder {
    pub(super) fn new(keep: Keep, most: usize, waiting: Arc<Semaphore>) -> Self {
        Self { keep, most, waiting }
    }

    /// Bytes that a run of this project may record; none when it is not to be recorded.
    pub(crate) fn room(&self, project: &Project) -> Option<usize> {
        let stored = project.stored.config.log_visibility == LogVisibility::ShowAll;
        (self.keep != Keep::Off && stored).then_some(self.most)
    }

    /// The cassette, when it is one to be kept and there is room.
    pub(crate) fn keep(&self, cassette: Cassette, failed: bool) -> Option<Kept> {
        let wanted = self.keep == Keep::All || failed;
        let room = u32::try_from(self.most).unwrap_or(u32::MAX);
        let room = if wanted { self.waiting.clone().try_acquire_many_owned(room).ok()? } else { return None };
        Some(Kept { cassette, _room: room })
    }
}

impl Writer {
    /// Writes the cassettes of a group. One that cannot be written is said to be lost: the record of its run counts more.
    pub(super) async fn keep_cassettes(&self, entries: &[Pending]) {
        for entry in entries {
            if let Some(kept) = &entry.cassette
                && let Err(cause) = self.keep_cassette(entry, kept).await
            {
                tracing::warn!(%cause, log = %entry.id, "a cassette could not be written");
            }
        }
    }

    async fn keep_cassette(&self, entry: &Pending, kept: &Kept) -> Result<()> {
        let (project, id) = (entry.project.id.as_str(), entry.id.as_str());
        let now = self.clock.now();
        let key = self.vault.key(project, now).await?;
        let stored = Stored { sealed: key.seal(place(project, id), &kept.cassette)? };
        if !self.quotas.take(Kind::Log, project, stored.sealed.size(), now) {
            return Ok(());
        }
        Ok(self.store.commit(Batch::at(now).insert(project, id, &stored)).await?)
    }
}

/// The cassette of a run.
///
/// # Errors
/// When there is no such run, or it left none.
pub async fn cassette(app: &App, project: &Project, id: &LogId) -> Result<Cassette> {
    let (run, _) = get(app, project, id).await?;
    let project = project.id.as_str();
    let stored = app.store.get::<Stored>(project, run.id.as_str()).await?;
    let stored = stored.ok_or_else(|| Error::NoCassette(id.to_string()))?;
    let key = app.vault.key(project, app.clock.now()).await?;
    key.open(place(project, id.as_str()), &stored.body.sealed)
}

/// Where the cassette of a run is sealed.
fn place<'a>(project: &'a str, run: &'a str) -> Place<'a> {
    Place { collection: CASSETTES.name, project, id: run, field: "sealed" }
}
