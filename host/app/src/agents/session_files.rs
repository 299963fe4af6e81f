//! Files of tool router sessions.
//!
//! Problem: scripts and shell commands of a session expect files that last from call to call, and
//! applications exchange files with them.
//!
//! Guarantee: a set of changes is stored whole or not at all. Number, size and paths of files are
//! limited, and their sizes count against the quota of the project. The files are erased with their
//! session and with their project. A record names each blob at all times, so that a crash does not
//! leave one behind.
//!
//! It rests on blobs that are never overwritten. A change writes new blobs under temporary records,
//! exchanges the blobs of temporary and lasting records in one batch, and then erases the temporary
//! records with their blobs. Blobs that an export has yet to copy are erased by a later change.

mod access;
mod check;
mod erasure;
mod links;
mod plan;
mod record;
pub(crate) mod turns;

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use futures::{TryStreamExt, stream};
use sandbox::FileChange;
use store::{Batch, Record, Time};

pub(super) use self::erasure::erase_session;
pub use self::{
    access::{SessionFile, delete, list, read, variables},
    check::{MAX_FILES, MAX_PATH_BYTES, MAX_TOTAL_BYTES, MOUNT_ID, check_mount},
    links::{download, download_link, put, upload_link},
    turns::MAX_TURN_WAIT,
};
use self::{
    check::{MOUNT_PATH_FIELD, check_limits, check_path},
    erasure::{discard, erase},
    plan::Plan,
    record::{Owner, Stored},
};
pub(crate) use self::{
    erasure::erase_project,
    record::{COLLECTION, blob_key},
    turns::Turn,
};
use super::SessionCaller;
use crate::{
    App, Error, Result,
    core::ids::FileId,
    files::{self, total},
};

/// Folder of the files in the workbench.
pub const SANDBOX_FOLDER: &str = "/mnt/files";
/// Path of the variables of the workbench. No file has it.
const VARIABLES_PATH: &str = "";
/// Number of blobs that are written or removed at the same time.
const CONCURRENT_BLOBS: usize = 8;
/// Time after which a change is certainly finished, in milliseconds.
const MAX_CHANGE_MS: i64 = 3_600_000;

/// Stores a set of changes, whole or not at all. Each path is relative to the folder of the
/// session's files. `variables` are those of the workbench; `None` leaves them as they are. `turn`
/// is the turn of the script or command that made the changes. Fails if a path is invalid, if the
/// files would exceed a limit of the session or the quota of the project, if the session was
/// deleted, or if the turn is lost.
pub(crate) async fn apply(
    app: &App,
    caller: &SessionCaller,
    changes: Vec<FileChange>,
    variables: Option<Bytes>,
    turn: Option<&Turn>,
) -> Result<()> {
    let mut by_path = BTreeMap::new();
    for change in changes {
        check_path("path", &change.path)?;
        by_path.insert(change.path, change.content);
    }
    if let Some(variables) = variables {
        by_path.insert(VARIABLES_PATH.to_owned(), Some(variables));
    }
    write(app, caller.into(), by_path, turn).await
}

/// Stores changes by path.
async fn write(
    app: &App,
    owner: Owner<'_>,
    changes: BTreeMap<String, Option<Bytes>>,
    turn: Option<&Turn>,
) -> Result<()> {
    let sizes: BTreeMap<_, _> = changes
        .iter()
        .map(|(path, content)| {
            let size = content.as_ref().map(|bytes| bytes.len() as u64);
            (path.clone(), size)
        })
        .collect();
    check_limits(&owner.records(app).await?, &sizes, app.clock.now())?;
    let written = insert_temporary(app, owner, &sizes).await?;
    let stored = async {
        let contents = changes
            .into_iter()
            .filter_map(|(path, content)| Some((path, content?)));
        put_blobs(app, contents, &written).await?;
        exchange(app, owner, &sizes, &written, turn).await
    };
    match stored.await {
        Ok(mut replaced) => {
            replaced.retain(|record| {
                let blob = record.body.blob.as_ref();
                blob.is_none_or(|key| !app.store.keeps_blob(key))
            });
            // A later change erases what stays here.
            if let Err(cause) = erase(app, owner.project, &replaced).await {
                tracing::warn!(%cause, session = owner.session, "replaced files of a session were not erased");
            }
            Ok(())
        }
        Err(cause) => {
            let ids: Vec<_> = written.into_values().collect();
            if let Err(cause) = discard(app, owner.project, &ids).await {
                tracing::warn!(%cause, session = owner.session, "files of a failed change were not erased");
            }
            Err(cause)
        }
    }
}

/// Inserts a temporary record for each new content. Returns their ids by path.
async fn insert_temporary(
    app: &App,
    owner: Owner<'_>,
    sizes: &BTreeMap<String, Option<u64>>,
) -> Result<HashMap<String, String>> {
    let now = app.clock.now();
    let records: Vec<_> = sizes
        .iter()
        .filter_map(|(path, size)| Some((path, (*size)?)))
        .map(|(path, size)| {
            let id = FileId::of_session().to_string();
            let stored = Stored {
                session: owner.session.to_owned(),
                place: None,
                path: path.clone(),
                blob: Some(files::blob(&id)),
                media_type: media_type_of(path).to_owned(),
                size,
                modified_at: now,
                expires_at: Some(Time(now.0.saturating_add(MAX_CHANGE_MS))),
            };
            (id, stored)
        })
        .collect();
    let inserted = app.store.change(&COLLECTION, owner.session, || async {
        let checked = Batch::at(now).check(&owner.session(app).await?);
        let batch = records.iter().fold(checked, |batch, (id, stored)| {
            batch.insert(owner.project, id, stored)
        });
        Ok::<_, Error>((batch, ()))
    });
    inserted.await?;
    let written = records.into_iter().map(|(id, stored)| (stored.path, id));
    Ok(written.collect())
}

async fn put_blobs(
    app: &App,
    contents: impl Iterator<Item = (String, Bytes)>,
    written: &HashMap<String, String>,
) -> Result<()> {
    let puts = contents.filter_map(|(path, bytes)| Some((files::blob(written.get(&path)?), bytes)));
    stream::iter(puts.map(Ok::<_, Error>))
        .try_for_each_concurrent(CONCURRENT_BLOBS, async |(key, bytes)| {
            Ok(app.store.blobs().put(&key, bytes).await?)
        })
        .await
}

/// Gives the new blobs to the files in one batch. Returns the records that are not needed any more.
async fn exchange(
    app: &App,
    owner: Owner<'_>,
    sizes: &BTreeMap<String, Option<u64>>,
    written: &HashMap<String, String>,
    turn: Option<&Turn>,
) -> Result<Vec<Record<Stored>>> {
    let exchanged = app
        .store
        .change(&total::TOTALS_COLLECTION, owner.project, || async {
            let session = owner.session(app).await?;
            let records = owner.records(app).await?;
            let now = app.clock.now();
            check_limits(&records, sizes, now)?;
            let plan = Plan::new(records, sizes, written, now)?;
            // A change that does not need more space is possible also above the quota.
            let grows = plan.added_bytes > plan.removed_bytes;
            let quota = app.files.settings.quota.filter(|_| grows);
            let total = total::load(app, owner.project)
                .await?
                .subtract(plan.removed_bytes)
                .add(plan.added_bytes, quota)?;
            let counted = total.batch(now).check(&session);
            let batch = plan.updated.iter().fold(counted, Batch::update);
            let guarded = match turn {
                Some(turn) => turn.guard(batch).await?,
                None => batch,
            };
            Ok::<_, Error>((guarded, plan.replaced))
        });
    Ok(exchanged.await?)
}

/// Returns a media type for a path whose content a script wrote.
fn media_type_of(path: &str) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or_default();
    match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "txt" | "log" | "md" => "text/plain",
        "csv" => "text/csv",
        "json" => "application/json",
        "html" => "text/html",
        "xml" => "application/xml",
        "pdf" => "application/pdf",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "zip" => "application/zip",
        _ => "application/octet-stream",
    }
}
