//! How many bytes of files each project has: one record, changed by the batches that make and erase files, so that it is right
//! after any kill and for any number of servers, and nothing is added up.
//!
//! An upload counts when its bytes have arrived, or, put into a bucket past the server, when the server first sees them. Files
//! of releases that did not count them have no size here, and go without changing the total.

use serde::{Deserialize, Serialize};
use store::{Batch, Collection, Document, Record, Time};

use crate::{App, Error, Result};

/// Totals, under the id of the project.
pub(crate) static TOTALS: Collection = Collection { name: "file_totals", fields: &[] };

#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    bytes: u64,
}

impl Document for Stored {
    const COLLECTION: &'static Collection = &TOTALS;
}

/// The bytes of a project's files, on their way from what is stored to what will be.
pub(super) struct Total {
    project: String,
    stored: Option<Record<Stored>>,
    bytes: u64,
}

impl Total {
    /// With so many bytes more.
    ///
    /// # Errors
    /// When that is past the quota.
    pub(super) fn and(self, size: u64, quota: Option<u64>) -> Result<Self> {
        let bytes = self.bytes.saturating_add(size);
        match quota {
            Some(quota) if bytes > quota => Err(Error::FilesFull(quota >> 20)),
            _ => Ok(Self { bytes, ..self }),
        }
    }

    /// With so many bytes less.
    pub(super) fn less(self, size: u64) -> Self {
        Self { bytes: self.bytes.saturating_sub(size), ..self }
    }

    /// A batch that stores it: stale or taken when another one was faster. A project without files has no record.
    pub(super) fn batch(self, now: Time) -> Batch {
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

/// What is stored.
pub(super) async fn of(app: &App, project: &str) -> Result<Total> {
    let stored = app.store.get::<Stored>(project, project).await?;
    Ok(Total { project: project.to_owned(), bytes: stored.as_ref().map_or(0, |stored| stored.body.bytes), stored })
}

/// Refuses so many bytes for which a project has no room now.
pub(super) async fn check(app: &App, project: &str, size: u64) -> Result<()> {
    match app.files.settings.quota {
        None => Ok(()),
        quota => of(app, project).await?.and(size, quota).map(drop),
    }
}
