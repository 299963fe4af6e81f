//! Uploads of callers.

use bytes::Bytes;
use store::{Batch, CommitError, EditError, Query, Record, SignedOperation};

use super::{
    File, Link, MAX_NAME_CHARS, State, Ticket, blob, digest, download_link, erase_unless_stored,
    errors, is_media_type, linked_record, make_link, record, reserve_memory, total,
};
use crate::{
    App, Error, Result,
    core::{ids::FileId, shown_slug},
    projects::{self, Project},
};

/// A requested upload of a file.
#[derive(Debug)]
pub struct UploadRequest {
    /// The slug of the toolkit.
    pub toolkit: String,
    /// The slug of the tool.
    pub tool: String,
    /// The display name.
    pub name: String,
    /// The media type, for example `text/csv`.
    pub media_type: String,
    /// The MD5 of the bytes, in hexadecimal.
    pub md5: String,
}

/// The instructions for an upload.
#[derive(Debug)]
pub struct Upload {
    /// The id that names the file in arguments of tools.
    pub id: FileId,
    /// The link for the upload.
    pub put: Link,
    /// The link to the file, if its bytes are already stored.
    pub existing: Option<Link>,
}

/// Creates a record for an upload, or finds the one with the same content. Fails if the toolkit or
/// tool is unknown, the name, media type or digest is invalid, or the storage quota would be
/// exceeded.
pub async fn request(app: &App, project: &Project, upload: UploadRequest) -> Result<Upload> {
    let record = find_or_insert(app, project, checked(app, upload)?).await?;
    let id = FileId::parse(&record.id)?;
    let is_stored = match record.body.state {
        State::Kept => true,
        State::Awaited => adopt(app, project, &record).await?.is_some(),
    };
    let existing = if is_stored {
        Some(download_link(app, project, &record).await?)
    } else {
        None
    };
    Ok(Upload {
        put: make_link(app, project, &record.id, &record.body, SignedOperation::Put).await?,
        id,
        existing,
    })
}

/// Finds the record with the content of a file, or inserts one.
async fn find_or_insert(app: &App, project: &Project, file: File) -> Result<Record<File>> {
    let content = file.content.clone().unwrap_or_default();
    if let Some(record) = same(app, project, &content).await? {
        return Ok(record);
    }
    total::check(app, project.id.as_str(), 1).await?;
    let id = FileId::random();
    match projects::insert(app, project, id.as_str(), file).await {
        // Another request for the same content was made at the same time.
        Ok(_) | Err(EditError::Commit(CommitError::Taken { .. })) => {}
        Err(cause) => return Err(cause.into()),
    }
    let made = same(app, project, &content).await?;
    made.ok_or_else(|| errors::unavailable("the file was removed while it was asked for"))
}

fn checked(app: &App, upload: UploadRequest) -> Result<File> {
    let index = app.catalog.snapshot();
    let toolkit = index.toolkit(&upload.toolkit);
    let toolkit = toolkit.ok_or_else(|| index.unknown_toolkit(&upload.toolkit))?;
    let owner = index.toolkit_of(&upload.tool);
    let owner = owner.filter(|owner| owner.slug == toolkit.slug);
    owner.ok_or_else(|| {
        let similar = index.similar_tool(&upload.tool);
        errors::tool_not_found(shown_slug(&upload.tool), "", &similar)
    })?;
    let mut problems = Vec::new();
    let name = upload.name.trim();
    if name.is_empty()
        || name.chars().count() > MAX_NAME_CHARS
        || matches!(name, "." | "..")
        || name.contains(['/', '\\'])
        || name.chars().any(char::is_control)
    {
        problems.push(format!(
            "filename: must be a name of 1 to {MAX_NAME_CHARS} characters, not a path"
        ));
    }
    let media_type = upload.media_type.trim();
    if !is_media_type(media_type) {
        problems.push("mimetype: must be a media type, such as `text/csv`".to_owned());
    }
    let md5 = upload.md5.trim().to_ascii_lowercase();
    if md5.len() != 32 || !md5.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        problems.push("md5: must be 32 hexadecimal digits".to_owned());
    }
    errors::refuse_problems(problems, errors::invalid)?;
    let (toolkit, tool) = (toolkit.slug.to_string(), upload.tool.to_ascii_uppercase());
    Ok(File {
        content: Some(format!("{toolkit}/{tool}/{md5}")),
        toolkit,
        tool,
        name: name.to_owned(),
        media_type: media_type.to_owned(),
        md5,
        size: 0,
        state: State::Awaited,
    })
}

async fn same(app: &App, project: &Project, content: &str) -> Result<Option<Record<File>>> {
    let query = Query::for_project(project.id.as_str()).is("content", content);
    Ok(app.store.first(query).await?)
}

/// Stores the bytes of an upload, as permitted by its link. Fails if the file does not exist, the
/// bytes differ from those announced, or the storage quota would be exceeded.
pub async fn put(app: &App, ticket: &Ticket, bytes: Bytes) -> Result<()> {
    let record = linked_record(app, ticket).await?;
    let project = record.project.as_str().into();
    let found = digest(app, &project, bytes.clone()).await?;
    if found != record.body.md5 {
        return Err(errors::file_digest(record.body.md5, found));
    }
    let size = bytes.len() as u64;
    if record.body.state == State::Awaited {
        total::check(app, &record.project, size).await?;
    }
    app.store.blobs().put(&blob(&record.id), bytes).await?;
    erase_unless_stored(app, &record.id, mark_stored(app, &record, size).await).await
}

/// Accepts bytes that were uploaded directly to the bucket, if the bucket issues its own links.
/// Returns their number.
pub(super) async fn adopt(
    app: &App,
    project: &Project,
    record: &Record<File>,
) -> Result<Option<u64>> {
    let accepted = match app.store.blobs().size(&blob(&record.id)).await? {
        None => return Ok(None),
        Some(size) if size > app.files.settings.size => None,
        Some(size) => verified_size(app, project, record, size).await?,
    };
    let Some(size) = accepted else {
        tracing::warn!(project = %project.id, file = record.id, "the bytes in the bucket do not match the announced digest or exceed the maximum size");
        app.store.blobs().remove(&blob(&record.id)).await?;
        return Ok(None);
    };
    mark_stored(app, record, size).await?;
    Ok(Some(size))
}

/// Reads at most `max_bytes` that were uploaded directly to the bucket. Returns their number if they
/// have the announced digest.
async fn verified_size(
    app: &App,
    project: &Project,
    record: &Record<File>,
    max_bytes: u64,
) -> Result<Option<u64>> {
    let _memory = reserve_memory(app, &project.tenant, max_bytes)?;
    let blobs = app.store.blobs();
    let bytes = match blobs.get_at_most(&blob(&record.id), max_bytes).await {
        Ok(Some(bytes)) => bytes,
        // The bytes were removed, or do not match their own metadata.
        Ok(None) | Err(store::Error::Damaged { .. }) => return Ok(None),
        Err(cause) => return Err(cause.into()),
    };
    let size = bytes.len() as u64;
    let found = digest(app, &project.tenant, bytes).await?;
    Ok((found == record.body.md5).then_some(size))
}

/// Records that the bytes of a file are stored. They already exist, so they count even if they
/// exceed the quota.
async fn mark_stored(app: &App, awaited: &Record<File>, size: u64) -> Result<()> {
    let id = FileId::parse(&awaited.id)?;
    let marked = app
        .store
        .change(&total::TOTALS_COLLECTION, &awaited.project, async || {
            let mut file = record(app, &awaited.project, &id).await?;
            if file.body.state == State::Kept {
                return Ok::<_, Error>((Batch::at(app.clock.now()), ()));
            }
            (file.body.state, file.body.size) = (State::Kept, size);
            let total = total::load(app, &awaited.project).await?.add(size, None)?;
            Ok((total.batch(app.clock.now()).update(&file), ()))
        });
    Ok(marked.await?)
}
