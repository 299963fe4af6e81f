//! Export of a store as frames, without the start frame.

use std::{collections::HashSet, io::ErrorKind, time::Duration};

use store::Store;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    time::timeout,
};

use super::{
    Counts,
    frame::{END_FRAME, Entry, Frame, MAX_BLOB_BYTES, RECORD_FRAME},
};
use crate::{COLLECTIONS, Result, agents::session_files, lifecycle::errors};

/// Number of records that are read in one query.
const SCAN_PAGE_ROWS: u64 = 256;
/// Maximum time for which the reader of the frames may block the export, because writers wait as
/// well.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Writes a consistent snapshot of all records, then all blobs, then the end frame. Fails if the
/// store cannot be read, or if the frames are not consumed.
pub async fn export_frames(store: &Store, to: &mut (impl AsyncWrite + Unpin)) -> Result<()> {
    let mut counts = Counts::default();
    let mut session_blobs = HashSet::new();
    let pause = store.pause().await;
    for collection in COLLECTIONS {
        let mut last_id = String::new();
        loop {
            let rows = store.scan(collection, &last_id, SCAN_PAGE_ROWS).await?;
            let Some(last) = rows.last() else { break };
            last_id.clone_from(&last.id);
            for row in &rows {
                let frame = Entry::new(collection.name, row)
                    .and_then(|entry| Frame::json(RECORD_FRAME, &entry));
                let frame = frame.map_err(|cause| {
                    errors::internal(format!(
                        "record {1} of {0} is not valid JSON: {cause}",
                        collection.name, row.id
                    ))
                })?;
                write_frame(to, &frame, &mut counts).await?;
            }
            if collection.name == session_files::COLLECTION.name {
                session_blobs.extend(rows.iter().filter_map(session_files::blob_key));
            }
        }
    }
    // Blobs need no snapshot: no blob is changed, a component is never removed, and a file erased
    // meanwhile is left out. Only blobs that sessions replace must be kept, because their records
    // stay.
    let session_blobs = store.keep_blobs(session_blobs);
    let mut copied_session_blobs = 0;
    drop(pause);
    for key in store.blobs().keys().await? {
        // A client can put an object of any size into the bucket, and the server does not accept it later.
        let size = store.blobs().size(&key).await?;
        if size.is_some_and(|size| size > MAX_BLOB_BYTES) {
            tracing::warn!(
                blob = key,
                "an object that is larger than any file is not exported"
            );
            continue;
        }
        if let Some(bytes) = store.blobs().get(&key).await? {
            write_frame(to, &Frame::blob(&key, &bytes), &mut counts).await?;
            copied_session_blobs += usize::from(session_blobs.contains(&key));
        }
    }
    // Their sessions were deleted, or changed by another server.
    let missing = session_blobs.len() - copied_session_blobs;
    if missing > 0 {
        tracing::warn!(
            missing,
            "files of sessions were erased during the export; the archive lists them without content"
        );
    }
    let end = Frame::json(END_FRAME, &counts).map_err(errors::internal)?;
    write_frame(to, &end, &mut counts).await
}

async fn write_frame(
    to: &mut (impl AsyncWrite + Unpin),
    frame: &Frame,
    counts: &mut Counts,
) -> Result<()> {
    counts.add(frame);
    let written = timeout(WRITE_TIMEOUT, to.write_all(&frame.encode())).await;
    let written = written.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()));
    written.map_err(|cause| {
        errors::unavailable(format!("the exported data was not accepted: {cause}"))
    })
}
