//! Putting an archive into an empty store.
//!
//! The keys of the vault come last: without them a store is not one that was used, and a start that finds other records
//! but no keys says so instead of making new ones.

use std::sync::Arc;

use store::{Batch, Collection, Row, Store, Time};
use tokio::sync::mpsc;

use super::{
    ArchiveError, Checked, Counts, Unlock,
    frame::{BLOB, END, Entry},
};
use crate::{COLLECTIONS, Error, Result, vault};

/// Records and bytes of a batch at most, unless one record alone has more.
const RECORDS: usize = 256;
const BYTES: usize = 4 << 20;
/// Frames that wait.
const WAITING: usize = 16;

/// Whether a store holds no record.
///
/// # Errors
/// When it cannot be read.
pub async fn is_empty(store: &Store) -> Result<bool> {
    for at in COLLECTIONS {
        if !store.scan(at, "", 1).await?.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Puts what a checked archive holds into an empty store.
///
/// # Errors
/// When the store is not empty, the archive has changed since, or the store refuses; then it is not whole, and must be
/// emptied before the next try.
pub async fn restore(
    store: &Store,
    archive: Checked,
    unlock: Arc<Unlock>,
    progress: &mut (dyn FnMut(Counts) + Send),
) -> std::result::Result<(), ArchiveError> {
    if !is_empty(store).await? {
        return Err(ArchiveError::NotEmpty);
    }
    let (frames, mut waiting) = mpsc::channel(WAITING);
    let reading = tokio::task::spawn_blocking(move || {
        let mut all = archive.frames(&unlock)?;
        loop {
            let frame = all.next()?;
            if frame.kind == END || frames.blocking_send(frame).is_err() {
                return Ok::<_, ArchiveError>(());
            }
        }
    });
    let mut counts = Counts::default();
    let (mut batch, mut keys) = (Filling::new(), Filling::new());
    while let Some(frame) = waiting.recv().await {
        counts.add(&frame);
        if frame.kind == BLOB {
            // The records come first, so that a store is never one with blobs alone: that looks like one nobody has used.
            batch.commit(store).await?;
            let (key, bytes) = frame.as_blob().ok_or_else(|| unreadable("blob"))?;
            store.blobs().put(key, bytes).await.map_err(Error::from)?;
        } else {
            let entry: Entry = serde_json::from_slice(&frame.content).map_err(|_| unreadable("record"))?;
            let known = COLLECTIONS.iter().find(|known| known.name == entry.collection);
            let at = known.ok_or_else(|| unreadable("record"))?;
            let of_the_vault = at.name == vault::COLLECTION.name;
            (if of_the_vault { &mut keys } else { &mut batch }).add(at, entry.row());
            if batch.is_full() {
                batch.commit(store).await?;
            }
        }
        progress(counts);
    }
    reading.await.map_err(|_| unreadable("archive"))??;
    batch.commit(store).await?;
    keys.commit(store).await
}

/// A batch on its way.
struct Filling {
    batch: Batch,
    bytes: usize,
}

impl Filling {
    fn new() -> Self {
        // The time of a batch is in no record that it restores.
        Self { batch: Batch::at(Time(0)), bytes: 0 }
    }

    fn add(&mut self, at: &'static Collection, row: Row) {
        self.bytes += row.body.len();
        let batch = std::mem::replace(&mut self.batch, Batch::at(Time(0)));
        self.batch = batch.restore(at, row);
    }

    fn is_full(&self) -> bool {
        self.batch.writes.len() >= RECORDS || self.bytes >= BYTES
    }

    async fn commit(&mut self, store: &Store) -> std::result::Result<(), ArchiveError> {
        let Self { batch, .. } = std::mem::replace(self, Self::new());
        store.commit(batch).await.map_err(|cause| ArchiveError::Store(cause.into()))
    }
}

/// It could be read before.
fn unreadable(what: &str) -> ArchiveError {
    ArchiveError::BrokenOff(format!(
        "a {what} of the archive cannot be read any more; empty the store before the next try"
    ))
}
