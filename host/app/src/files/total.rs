//! The total size of each project's files. It is one record, changed by the batches that create and
//! erase files, so that it is correct after a crash and with any number of servers, and needs no
//! summation.
//!
//! An upload counts when its bytes have arrived. An upload directly to a bucket counts when the
//! server first sees it. Files of earlier versions without a recorded size count as zero and are
//! erased without a change of the total.

use serde::{Deserialize, Serialize};
use store::{Batch, Collection, Document, Erasure, Record, Time};

use crate::{App, Result, files::errors};

/// The collection of totals, under the id of the project.
pub(crate) static TOTALS_COLLECTION: Collection = Collection {
    name: "file_totals",
    erasure: Erasure::Project,
    fields: &[],
};

#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    bytes: u64,
}

impl Document for Stored {
    const COLLECTION: &'static Collection = &TOTALS_COLLECTION;
}

/// The total size of a project's files, with the stored value that it will replace.
pub(crate) struct Total {
    project: String,
    stored: Option<Record<Stored>>,
    bytes: u64,
}

impl Total {
    /// Returns the total plus a number of bytes. Fails if the new total exceeds the quota.
    pub(crate) fn add(self, size: u64, quota: Option<u64>) -> Result<Self> {
        let bytes = self.bytes.saturating_add(size);
        match quota {
            Some(quota) if bytes > quota => Err(errors::files_full(quota >> 20)),
            _ => Ok(Self { bytes, ..self }),
        }
    }

    /// Returns the total minus a number of bytes.
    pub(crate) fn subtract(self, size: u64) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(size),
            ..self
        }
    }

    /// Returns a batch that stores the total. Its commit is stale or taken if another change came
    /// first. A project without files lacks a record.
    pub(crate) fn batch(self, now: Time) -> Batch {
        let batch = Batch::at(now);
        let body = Stored { bytes: self.bytes };
        match self.stored {
            None if self.bytes == 0 => batch,
            None => batch.insert(&self.project, &self.project, &body),
            Some(stored) if self.bytes == 0 => batch.purge(&stored),
            Some(stored) => batch.update(&Record { body, ..stored }),
        }
    }
}

/// Returns the stored total of a project. Fails if the store cannot be read.
pub(crate) async fn load(app: &App, project: &str) -> Result<Total> {
    let stored = app.store.get::<Stored>(project, project).await?;
    Ok(Total {
        project: project.to_owned(),
        bytes: stored.as_ref().map_or(0, |stored| stored.body.bytes),
        stored,
    })
}

/// Refuses a number of bytes that would exceed the storage quota of the project now.
pub(super) async fn check(app: &App, project: &str, size: u64) -> Result<()> {
    match app.files.settings.quota {
        None => Ok(()),
        quota => load(app, project).await?.add(size, quota).map(drop),
    }
}
