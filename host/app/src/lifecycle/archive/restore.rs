//! Restoration of an archive into an empty store.
//!
//! The data keys of the vault are restored last, and that of the installation after all others. Without
//! it, a store does not count as used. A start that finds other records but not this key reports it
//! instead of creating new keys.

use std::sync::Arc;

use store::{Batch, Collection, Row, Store, Time};
use tokio::sync::mpsc;

use super::{
    ArchiveError, CheckedArchive, Counts, Unlock,
    frame::{BLOB_FRAME, END_FRAME, Entry},
};
use crate::{
    COLLECTIONS, Error, Result,
    core::{INSTALLATION_PROJECT, vault},
};

/// Maximum number of records in a batch.
const MAX_BATCH_RECORDS: usize = 256;
/// Maximum size of a batch in bytes, unless a single record has more.
const MAX_BATCH_BYTES: usize = 4 << 20;
/// Maximum number of frames that wait to be written.
const MAX_QUEUED_FRAMES: usize = 16;

/// Returns true if a store holds no record. Fails if the store cannot be read.
pub async fn is_empty(store: &Store) -> Result<bool> {
    for collection in COLLECTIONS {
        if !store.scan(collection, "", 1).await?.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Restores the content of a checked archive into an empty store. Fails if the store is not empty,
/// the archive was changed after the check, or the store refuses. In the last two cases the store
/// is incomplete and must be emptied before another attempt.
pub async fn restore(
    store: &Store,
    archive: CheckedArchive,
    unlock: Arc<Unlock>,
    progress: &mut (dyn FnMut(Counts) + Send),
) -> std::result::Result<(), ArchiveError> {
    if !is_empty(store).await? {
        return Err(ArchiveError::NotEmpty);
    }
    let (frames, mut waiting) = mpsc::channel(MAX_QUEUED_FRAMES);
    let reading = tokio::task::spawn_blocking(move || {
        let mut all = archive.frames(&unlock)?;
        loop {
            let frame = all.next()?;
            if frame.kind == END_FRAME || frames.blocking_send(frame).is_err() {
                return Ok::<_, ArchiveError>(());
            }
        }
    });
    let mut counts = Counts::default();
    let mut batch = BatchBuilder::new();
    let mut keys = Vec::new();
    while let Some(frame) = waiting.recv().await {
        counts.add(&frame);
        if frame.kind == BLOB_FRAME {
            // The records are written before the blobs, because a store with blobs alone would look
            // unused.
            batch.commit(store).await?;
            let (key, bytes) = frame.as_blob().ok_or_else(|| unreadable("blob"))?;
            store.blobs().put(key, bytes).await.map_err(Error::from)?;
        } else {
            let (collection, row) = row(&frame.content).ok_or_else(|| unreadable("record"))?;
            if collection.name == vault::COLLECTION.name {
                keys.push(row);
            } else {
                batch.add(store, collection, row).await?;
            }
        }
        progress(counts);
    }
    reading.await.map_err(|_| unreadable("archive"))??;
    batch.commit(store).await?;
    keys.sort_by_key(|row| row.id == INSTALLATION_PROJECT);
    for row in keys {
        batch.add(store, &vault::COLLECTION, row).await?;
    }
    batch.commit(store).await
}

/// Reads a record and its collection.
fn row(content: &[u8]) -> Option<(&'static Collection, Row)> {
    let entry: Entry = serde_json::from_slice(content).ok()?;
    let mut known = COLLECTIONS.iter().copied();
    let collection = known.find(|known| known.name == entry.collection)?;
    Some((collection, entry.into_row()))
}

/// A batch being filled.
struct BatchBuilder {
    batch: Batch,
    bytes: usize,
}

impl BatchBuilder {
    fn new() -> Self {
        // Restored records keep their own times, so the time of the batch is not used.
        Self {
            batch: Batch::at(Time(0)),
            bytes: 0,
        }
    }

    /// Adds a record, and commits the batch if it is full.
    async fn add(
        &mut self,
        store: &Store,
        collection: &'static Collection,
        row: Row,
    ) -> std::result::Result<(), ArchiveError> {
        self.bytes += row.body.len();
        let batch = std::mem::replace(&mut self.batch, Batch::at(Time(0)));
        self.batch = batch.restore(collection, row);
        if self.batch.writes.len() >= MAX_BATCH_RECORDS || self.bytes >= MAX_BATCH_BYTES {
            self.commit(store).await?;
        }
        Ok(())
    }

    async fn commit(&mut self, store: &Store) -> std::result::Result<(), ArchiveError> {
        let Self { batch, .. } = std::mem::replace(self, Self::new());
        let committed = store.commit(batch).await;
        committed.map_err(|cause| ArchiveError::Store(cause.into()))
    }
}

/// Returns the error for a part of the archive that was readable during the check.
fn unreadable(part: &str) -> ArchiveError {
    ArchiveError::Incomplete(format!(
        "a {part} of the archive that was readable before cannot be read: empty the store before another import"
    ))
}
