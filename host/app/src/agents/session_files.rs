//! Files of tool router sessions.
//!
//! Problem: scripts and shell commands of a session expect files that last from call to call, and
//! applications exchange files with them.
//!
//! Guarantee: a set of changes is stored whole or not at all. Number, size and paths of files are
//! limited, and their sizes count against the quota of the project. The files are erased with their
//! session and with their project. A record names each blob at all times, so that a crash leaves
//! none behind.
//!
//! It rests on blobs that are never overwritten. A change writes new blobs under temporary records,
//! exchanges the blobs of temporary and lasting records in one batch, and then erases the temporary
//! records with their blobs.

mod access;
mod links;
mod plan;
pub(crate) mod turns;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;
use futures::{TryStreamExt, stream};
use sandbox::FileChange;
use serde::{Deserialize, Serialize};
use store::{Batch, Collection, CommitError, Document, Field, Kind, Query, Record, Time};

use self::plan::Plan;
pub(crate) use self::turns::Turn;
pub use self::{
    access::{SessionFile, delete, list, read, variables},
    links::{download, download_link, put, upload_link},
    turns::MAX_TURN_WAIT,
};
use super::{Session, SessionCaller, errors};
use crate::{
    App, Error, Result,
    core::ids::{FileId, ProjectId, SessionId},
    files::{self, total},
    work::{Claim, Claimable},
};

/// Collection of the files of sessions.
pub(crate) static COLLECTION: Collection = Collection {
    name: "session_files",
    fields: &[
        Field::new("session", Kind::Text),
        Field::unique("place", Kind::Text),
    ],
};

/// Id of the only mount of a session.
pub const MOUNT_ID: &str = "files";
/// Folder of the files in the workbench.
pub const SANDBOX_FOLDER: &str = "/mnt/files";
/// Maximum number of files of a session.
pub const MAX_FILES: usize = 900;
/// Maximum size of all files of a session together, in bytes.
pub const MAX_TOTAL_BYTES: u64 = 64 << 20;
/// Maximum length of a path, in bytes.
pub const MAX_PATH_BYTES: usize = 512;
/// Path of the variables of the workbench. No file has it.
const VARIABLES_PATH: &str = "";
/// Number of blobs that are written or removed at the same time.
const CONCURRENT_BLOBS: usize = 8;
/// Number of records that are read in one query while a project is erased.
const READ_BATCH: u64 = 64;
/// Time after which a change is certainly finished, in milliseconds.
const MAX_CHANGE_MS: i64 = 3_600_000;

/// A file of a session, or a temporary record, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Stored {
    /// Id of the session.
    session: String,
    /// Session and path. A temporary record has none.
    place: Option<String>,
    /// Path, relative to the folder of the session's files.
    path: String,
    /// Key of the blob. A file that is not uploaded yet has none.
    blob: Option<String>,
    media_type: String,
    /// Size, in bytes.
    size: u64,
    /// Time of the last change of the content.
    modified_at: Time,
    /// Time after which the record is erased. A file with content has none.
    expires_at: Option<Time>,
}

impl Document for Stored {
    const COLLECTION: &'static Collection = &COLLECTION;
}

impl Stored {
    fn is_expired(&self, now: Time) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at < now)
    }
}

/// The session that owns files.
#[derive(Debug, Clone, Copy)]
struct Owner<'a> {
    project: &'a str,
    session: &'a str,
}

impl<'a> From<&'a SessionCaller> for Owner<'a> {
    fn from(caller: &'a SessionCaller) -> Self {
        Self {
            project: caller.project.id.as_str(),
            session: caller.session_id(),
        }
    }
}

impl Owner<'_> {
    fn place(self, path: &str) -> String {
        format!("{}/{path}", self.session)
    }

    async fn session(self, app: &App) -> Result<Record<Session>> {
        let found = app.store.get(self.project, self.session).await?;
        found.ok_or_else(|| errors::tool_router_session_not_found(self.session))
    }

    /// Returns all records of the session.
    async fn records(self, app: &App) -> Result<Vec<Record<Stored>>> {
        let query = Query::for_project(self.project).is("session", self.session);
        Ok(app.store.find(&query).await?.records)
    }

    async fn at(self, app: &App, path: &str) -> Result<Option<Record<Stored>>> {
        let query = Query::for_project(self.project).is("place", self.place(path));
        Ok(app.store.first(query).await?)
    }
}

/// Stores a set of changes, whole or not at all. Each path is relative to the folder of the
/// session's files. `variables` are those of the workbench; none leaves them as they are. `turn` is that
/// of the script or command that made the changes.
///
/// # Errors
/// Fails if a path is invalid, if the files would exceed a limit of the session or the quota of the
/// project, if the session was deleted, if the turn is lost, or if the store refuses.
pub(crate) async fn apply(
    app: &App,
    caller: &SessionCaller,
    changes: Vec<FileChange>,
    variables: Option<Bytes>,
    turn: Option<&Turn>,
) -> Result<()> {
    let mut by_path = BTreeMap::new();
    for change in changes {
        check_path(&change.path)?;
        by_path.insert(change.path, change.content);
    }
    if let Some(variables) = variables {
        by_path.insert(VARIABLES_PATH.to_owned(), Some(variables));
    }
    write(app, caller.into(), by_path, turn).await
}

/// Checks the id of a mount.
///
/// # Errors
/// Fails for every id except [`MOUNT_ID`].
pub fn check_mount(id: &str) -> Result<()> {
    if id == MOUNT_ID {
        return Ok(());
    }
    Err(errors::mount_not_found(crate::core::truncate(id)))
}

/// Checks a path: relative names, separated by single slashes.
fn check_path(path: &str) -> Result<()> {
    let problem = if path.is_empty() || path.len() > MAX_PATH_BYTES {
        format!("must have 1 to {MAX_PATH_BYTES} bytes")
    } else if path.chars().any(char::is_control) || path.contains('\\') {
        "must not contain control characters or backslashes".to_owned()
    } else if path.split('/').any(|name| matches!(name, "" | "." | "..")) {
        "must be relative, with names between single slashes that are not `.` or `..`".to_owned()
    } else {
        return Ok(());
    };
    let path = crate::core::truncate(path);
    Err(errors::session_invalid(format!("path: `{path}` {problem}")))
}

/// Stores changes by path.
async fn write(
    app: &App,
    owner: Owner<'_>,
    changes: BTreeMap<String, Option<Bytes>>,
    turn: Option<&Turn>,
) -> Result<()> {
    let size = |content: &Option<Bytes>| content.as_ref().map(|bytes| bytes.len() as u64);
    let sizes = changes
        .iter()
        .map(|(path, content)| (path.clone(), size(content)));
    let sizes: BTreeMap<_, _> = sizes.collect();
    check_limits(&owner.records(app).await?, &sizes, app.clock.now())?;
    let written = insert_temporary(app, owner, &sizes).await?;
    let stored = async {
        let contents = changes.into_iter();
        let contents = contents.filter_map(|(path, content)| Some((path, content?)));
        put_blobs(app, contents, &written).await?;
        exchange(app, owner, &sizes, &written, turn).await
    };
    match stored.await {
        Ok(replaced) => {
            // The next change erases what stays here.
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
    let written = sizes
        .iter()
        .filter_map(|(path, size)| Some((path, (*size)?)));
    let records = written.map(|(path, size)| {
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
    });
    let records: Vec<_> = records.collect();
    let inserted = app.store.change(&COLLECTION, owner.session, || async {
        let batch = Batch::at(now).check(&owner.session(app).await?);
        let batch = records.iter().fold(batch, |batch, (id, stored)| {
            batch.insert(owner.project, id, stored)
        });
        Ok::<_, Error>((batch, ()))
    });
    inserted.await?;
    Ok(records
        .into_iter()
        .map(|(id, stored)| (stored.path, id))
        .collect())
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
            let total = total::load(app, owner.project).await?;
            // A change that needs no more room is possible also above the quota.
            let grows = plan.added_bytes > plan.removed_bytes;
            let quota = app.files.settings.quota.filter(|_| grows);
            let total = total.subtract(plan.removed_bytes);
            let total = total.add(plan.added_bytes, quota)?;
            let batch = total.batch(now).check(&session);
            let batch = plan.updated.iter().fold(batch, Batch::update);
            let batch = match turn {
                Some(turn) => turn.guard(batch).await?,
                None => batch,
            };
            Ok::<_, Error>((batch, plan.replaced))
        });
    Ok(exchanged.await?)
}

/// Checks the files of a session as they would be after changes.
fn check_limits(
    records: &[Record<Stored>],
    sizes: &BTreeMap<String, Option<u64>>,
    now: Time,
) -> Result<()> {
    let kept = records.iter().map(|record| &record.body);
    let kept = kept.filter(|file| {
        file.place.is_some() && !file.is_expired(now) && !sizes.contains_key(&file.path)
    });
    let kept = kept.map(|file| (file.path.as_str(), file.size));
    let new = sizes
        .iter()
        .filter_map(|(path, size)| Some((path.as_str(), (*size)?)));
    let after: BTreeMap<&str, u64> = kept
        .chain(new)
        .filter(|(path, _)| *path != VARIABLES_PATH)
        .collect();
    let bytes: u64 = after.values().sum();
    if after.len() > MAX_FILES || bytes > MAX_TOTAL_BYTES {
        return Err(errors::session_files_full(MAX_FILES, MAX_TOTAL_BYTES >> 20));
    }
    let paths: BTreeSet<&str> = after.into_keys().collect();
    for path in &paths {
        let mut parents = path.match_indices('/').map(|(at, _)| &path[..at]);
        if let Some(file) = parents.find(|parent| paths.contains(parent)) {
            return Err(errors::session_invalid(format!(
                "path: `{path}` lies in `{file}`, which is a file"
            )));
        }
    }
    Ok(())
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

/// Erases the temporary records of a change that failed, and blobs that were written after their
/// records were erased.
async fn discard(app: &App, project: &str, ids: &[String]) -> Result<()> {
    let references: Vec<_> = ids.iter().map(String::as_str).collect();
    let found = app.store.get_many::<Stored>(project, &references).await?;
    for id in ids.iter().filter(|id| !found.contains_key(*id)) {
        app.store.blobs().remove(&files::blob(id)).await?;
    }
    let found = found.into_values();
    let temporary: Vec<_> = found.filter(|record| record.body.place.is_none()).collect();
    erase(app, project, &temporary).await
}

/// Erases records with their blobs.
async fn erase(app: &App, project: &str, records: &[Record<Stored>]) -> Result<()> {
    if records.is_empty() {
        return Ok(());
    }
    remove_blobs(app, records).await?;
    let erased = app
        .store
        .change(&total::TOTALS_COLLECTION, project, || async {
            let ids: Vec<_> = records.iter().map(|record| record.id.as_str()).collect();
            let current = app.store.get_many::<Stored>(project, &ids).await?;
            // A file whose upload was requested again is kept.
            let unchanged = records.iter().filter_map(|record| {
                let current = current.get(&record.id)?;
                let same_blob = current.body.blob == record.body.blob;
                (same_blob && current.body.expires_at == record.body.expires_at).then_some(current)
            });
            let unchanged: Vec<_> = unchanged.cloned().collect();
            Ok::<_, Error>((purge(app, project, &unchanged).await?, ()))
        });
    Ok(erased.await?)
}

async fn remove_blobs(app: &App, records: &[Record<Stored>]) -> Result<()> {
    let keys = records.iter().filter_map(|record| record.body.blob.clone());
    stream::iter(keys.map(Ok::<_, Error>))
        .try_for_each_concurrent(CONCURRENT_BLOBS, async |key| {
            Ok(app.store.blobs().remove(&key).await?)
        })
        .await
}

/// Returns a batch that purges records and reduces the total size of the project's files.
async fn purge(app: &App, project: &str, records: &[Record<Stored>]) -> Result<Batch> {
    let counted = records.iter().filter(|record| record.body.place.is_some());
    let bytes = counted.map(|record| record.body.size).sum();
    let total = total::load(app, project).await?.subtract(bytes);
    let batch = total.batch(app.clock.now());
    Ok(records.iter().fold(batch, Batch::purge))
}

/// Erases the files of a session, and its turns.
///
/// # Errors
/// Fails if the store refuses.
pub(super) async fn erase_session(app: &App, project: &str, session: &SessionId) -> Result<()> {
    let owner = Owner {
        project,
        session: session.as_str(),
    };
    erase(app, project, &owner.records(app).await?).await?;
    while let Some(turns) = turns::record(app, owner).await? {
        let batch = Batch::at(app.clock.now()).purge(&turns);
        match app.store.commit(batch).await {
            // A command has taken, extended or ended its turn meanwhile.
            Ok(()) | Err(CommitError::Stale) => {}
            Err(cause) => return Err(cause.into()),
        }
    }
    Ok(())
}

/// Erases the files of all sessions of a project.
///
/// # Errors
/// Fails if the store refuses or the claim is lost.
pub(crate) async fn erase_project<T: Claimable>(
    app: &App,
    project: &ProjectId,
    claim: &Claim<T>,
) -> Result<()> {
    let project = project.as_str();
    loop {
        let query = Query::for_project(project).page(0, READ_BATCH);
        let records = app.store.find::<Stored>(&query).await?.records;
        if records.is_empty() {
            return Ok(());
        }
        remove_blobs(app, &records).await?;
        let committed = claim.commit(purge(app, project, &records).await?).await;
        // If another writer has changed a record, the next query returns what is left.
        claim.succeeded(committed).await?;
        tokio::task::yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside_the_folder() {
        for path in ["a", "a b/ü.txt", ".hidden", "a/...", &"x".repeat(512)] {
            assert!(check_path(path).is_ok(), "{path}");
        }
        for path in [
            "",
            "/a",
            "a/",
            "a//b",
            ".",
            "..",
            "a/../b",
            "a/./b",
            "a\0",
            "a\nb",
            "a\\b",
            &"x".repeat(513),
        ] {
            assert!(check_path(path).is_err(), "{path:?}");
        }
    }

    #[test]
    fn file_cannot_be_a_folder() {
        let check = |paths: &[&str]| {
            let sizes = paths.iter().map(|path| ((*path).to_owned(), Some(1)));
            check_limits(&[], &sizes.collect(), Time(0))
        };
        assert!(check(&["a/b", "a/c", "a.txt"]).is_ok());
        assert!(check(&["a", "a/b"]).is_err());
        let full: Vec<_> = (0..=MAX_FILES).map(|at| at.to_string()).collect();
        let full: Vec<_> = full.iter().map(String::as_str).collect();
        assert!(check(&full[1..]).is_ok());
        assert!(check(&full).is_err());
    }
}
