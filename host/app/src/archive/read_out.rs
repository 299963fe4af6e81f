//! Export of a store as frames, without the start frame.

use std::{io::ErrorKind, time::Duration};

use store::Store;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    time::timeout,
};

use super::{
    Counts,
    frame::{END, End, Entry, Frame, RECORD},
};
use crate::{COLLECTIONS, Error, Result};

/// Number of records that are read in one query.
const ROWS: u64 = 256;
/// Maximum time for which the reader of the frames may block the export, because writers wait as
/// well.
const TAKES: Duration = Duration::from_secs(10);

/// Writes a consistent snapshot of all records, then all blobs, then the end frame.
///
/// # Errors
/// Returns an error if the store cannot be read, or if the frames are not consumed.
pub async fn read_out(store: &Store, to: &mut (impl AsyncWrite + Unpin)) -> Result<()> {
    let mut counts = Counts::default();
    let pause = store.pause().await;
    for at in COLLECTIONS {
        let mut after = String::new();
        loop {
            let rows = store.scan(at, &after, ROWS).await?;
            let Some(last) = rows.last() else { break };
            after.clone_from(&last.id);
            for row in &rows {
                let frame = Entry::of(at.name, row).and_then(|entry| Frame::json(RECORD, &entry));
                let frame = frame.map_err(|cause| {
                    Error::Internal(format!("{} {} is no json: {cause}", at.name, row.id))
                })?;
                give(to, &frame, &mut counts).await?;
            }
        }
    }
    drop(pause);
    // Blobs need no snapshot, because the component that a version names is never removed.
    for key in store.blobs().keys().await? {
        if let Some(bytes) = store.blobs().get(&key).await? {
            give(to, &Frame::blob(&key, &bytes), &mut counts).await?;
        }
    }
    let Counts {
        records,
        blobs,
        bytes,
    } = counts;
    let end = Frame::json(
        END,
        &End {
            records,
            blobs,
            bytes,
        },
    )
    .map_err(|cause| Error::Internal(cause.to_string()))?;
    give(to, &end, &mut counts).await
}

async fn give(
    to: &mut (impl AsyncWrite + Unpin),
    frame: &Frame,
    counts: &mut Counts,
) -> Result<()> {
    counts.add(frame);
    let written = timeout(TAKES, to.write_all(&frame.encode())).await;
    let written = written.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()));
    written.map_err(|cause| Error::Unavailable(format!("what was read out is not taken: {cause}")))
}
