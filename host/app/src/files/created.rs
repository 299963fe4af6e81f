//! Files whose bytes were made on the server.

use bytes::Bytes;
use store::SignedOperation;

use super::{
    File, Link, MAX_NAME_CHARS, State, blob, digest, erase_unless_stored, is_media_type, make_link,
    record, total,
};
use crate::{
    App, Error, Result,
    core::ids::FileId,
    projects::{self, Project},
};

/// A file whose bytes were made on the server.
pub(crate) struct NewFile<'a> {
    /// Slug of the toolkit that made the file.
    pub toolkit: &'a str,
    /// Slug of the tool that made the file.
    pub tool: &'a str,
    /// File name with extension. Slashes and control characters are removed.
    pub name: &'a str,
    /// Media type. An invalid one is replaced by `application/octet-stream`.
    pub media_type: &'a str,
    /// Content, which counts toward the storage quota of the project.
    pub bytes: Bytes,
}

pub(crate) struct StoredFile {
    pub id: FileId,
    /// Link to download the file.
    pub link: Link,
}

/// Stores bytes as a file of the project. Fails if they would exceed the storage quota.
pub(crate) async fn store_new(
    app: &App,
    project: &Project,
    made: NewFile<'_>,
) -> Result<StoredFile> {
    let id = FileId::random();
    let media_type = match made.media_type {
        valid if is_media_type(valid) => valid,
        _ => "application/octet-stream",
    };
    let file = File {
        toolkit: made.toolkit.to_owned(),
        tool: made.tool.to_owned(),
        name: safe_name(made.name),
        media_type: media_type.to_owned(),
        md5: digest(app, &project.tenant, made.bytes.clone()).await?,
        size: made.bytes.len() as u64,
        state: State::Kept,
        content: None,
    };
    // The record is written first, because bytes without a record would never be erased.
    let size = file.size;
    let made_room = app
        .store
        .change(&total::TOTALS_COLLECTION, project.id.as_str(), async || {
            let owner = projects::record(app, &project.organization, &project.id).await?;
            let total = total::load(app, project.id.as_str()).await?;
            let total = total.add(size, app.files.settings.quota)?;
            let batch = total.batch(app.clock.now()).check(&owner);
            Ok::<_, Error>((batch.insert(project.id.as_str(), id.as_str(), &file), ()))
        });
    made_room.await?;
    let key = blob(id.as_str());
    if let Err(cause) = app.store.blobs().put(&key, made.bytes).await {
        if let Err(cause) = mark_not_stored(app, project, &id).await {
            tracing::warn!(%cause, project = %project.id, file = %id, "a file that could not be stored still counts");
        }
        return Err(cause.into());
    }
    let current = record(app, project.id.as_str(), &id).await;
    erase_unless_stored(app, id.as_str(), current.map(drop)).await?;
    let link = make_link(app, project, id.as_str(), &file, SignedOperation::Get).await?;
    let link = Link {
        size: Some(size),
        ..link
    };
    Ok(StoredFile { id, link })
}

/// Records that the bytes of a file could not be stored, so that it is not listed and does not
/// count against the quota. The record remains until the end of its retention and is erased with
/// any bytes that were stored nevertheless.
async fn mark_not_stored(app: &App, project: &Project, id: &FileId) -> Result<()> {
    let project = project.id.as_str();
    let marked = app
        .store
        .change(&total::TOTALS_COLLECTION, project, async || {
            let mut file = record(app, project, id).await?;
            let total = total::load(app, project).await?.subtract(file.body.size);
            (file.body.state, file.body.size) = (State::Awaited, 0);
            Ok::<_, Error>((total.batch(app.clock.now()).update(&file), ()))
        });
    Ok(marked.await?)
}

/// Converts an untrusted name to a plain file name without a path.
fn safe_name(given: &str) -> String {
    let name: String = given
        .chars()
        .filter(|c| !c.is_control() && !matches!(c, '/' | '\\'))
        .take(MAX_NAME_CHARS)
        .collect();
    if name.trim_matches('.').is_empty() {
        "file".to_owned()
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_from_outside_is_never_a_path() {
        for (given, name) in [
            ("report.pdf", "report.pdf"),
            ("../../etc/passwd", "....etcpasswd"),
            ("..", "file"),
            ("", "file"),
            ("a\0b", "ab"),
        ] {
            assert_eq!(safe_name(given), name);
        }
    }
}
