//! Reading and deletion of files.

use std::collections::BTreeMap;

use bytes::Bytes;
use store::Time;

use super::{MOUNT_PATH_FIELD, Owner, SessionCaller, VARIABLES_PATH, check_path, write};
use crate::{App, Result, agents::errors};

/// A file of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFile {
    /// Path, relative to the folder of the session's files.
    pub path: String,
    /// Size, in bytes.
    pub size: u64,
    /// Time of the last change of the content.
    pub modified_at: Time,
}

/// Returns the files of a session whose paths start with `prefix`, in the order of their paths.
pub async fn list(app: &App, caller: &SessionCaller, prefix: &str) -> Result<Vec<SessionFile>> {
    let records = Owner::from(caller).records(app).await?.into_iter();
    let listed = records.map(|record| record.body).filter(|file| {
        file.place.is_some()
            && file.blob.is_some()
            && file.path != VARIABLES_PATH
            && file.path.starts_with(prefix)
    });
    let mut files: Vec<_> = listed
        .map(|file| SessionFile {
            path: file.path,
            size: file.size,
            modified_at: file.modified_at,
        })
        .collect();
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

/// Returns the content of a file. Fails if the file does not exist.
pub async fn read(app: &App, caller: &SessionCaller, path: &str) -> Result<Bytes> {
    check_path("path", path)?;
    let bytes = content(app, caller.into(), path).await?;
    bytes.ok_or_else(|| errors::session_file_not_found(path))
}

/// Returns the variables of the workbench, if it has stored any.
pub async fn variables(app: &App, caller: &SessionCaller) -> Result<Option<Bytes>> {
    content(app, caller.into(), VARIABLES_PATH).await
}

/// Deletes a file. Fails if the file does not exist.
pub async fn delete(app: &App, caller: &SessionCaller, path: &str) -> Result<()> {
    check_path(MOUNT_PATH_FIELD, path)?;
    let owner = Owner::from(caller);
    let existing = owner.at(app, path).await?;
    existing.ok_or_else(|| errors::session_file_not_found(path))?;
    let change = BTreeMap::from([(path.to_owned(), None)]);
    write(app, owner, change, None).await
}

/// Returns the content at a path. A blob is missing only if the file was replaced after its record
/// was read, so the record is read once more.
async fn content(app: &App, owner: Owner<'_>, path: &str) -> Result<Option<Bytes>> {
    for _ in 0..2 {
        let file = owner.at(app, path).await?;
        let Some(key) = file.and_then(|file| file.body.blob) else {
            return Ok(None);
        };
        if let Some(bytes) = app.store.blobs().get(&key).await? {
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}
