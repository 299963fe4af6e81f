//! Files: uploads of callers for tools, and binary results of tools and providers.
//!
//! A record holds the owner and the properties of a file. Its bytes are a blob. Callers transfer
//! them with signed links, so that they need no key, see `link`. An upload is identified by
//! project, toolkit, tool and digest, so that the same content is not sent twice. The bytes are
//! stored as received and are not sealed, because a bucket may serve them directly.
mod answer;
mod arguments;
pub mod errors;
mod link;
pub(crate) mod total;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use md5::{Digest, Md5};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use store::{
    Batch, Collection, CommitError, Document, EditError, Field, Kind, Listed, Query, Record,
    SignedUrlTerms, Time, Window,
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit},
    time::{Instant, timeout_at},
};

pub(crate) use answer::{link_files, result_as_file};
pub(crate) use arguments::resolve_files;
pub use arguments::{MAX_FILES_PER_CALL, MAX_SEARCH_STEPS};
pub use link::{Link, Links, Parameters, Ticket};
pub use store::SignedOperation;
pub(crate) use total::TOTALS_COLLECTION;

use crate::{
    App, Error, Result,
    core::{
        clock::time_before,
        ids::{FileId, ProjectId},
        keyed_limit::KeyedLimit,
    },
    projects::{self, Project},
    work::{Claim, Claimable},
};

/// The characters that stand unencoded in a header parameter, in addition to letters and digits.
const UNENCODED_HEADER_CHARS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// Maximum number of large results of tools that are held in memory twice at the same time.
const MAX_LARGE_RESULTS: usize = 16;
/// Maximum time for which a transfer waits for a permit. A transfer waits at most half of its own
/// timeout.
const MAX_TRANSFER_WAIT: Duration = Duration::from_secs(30);
/// Number of records that are read in one query.
const READ_BATCH: u64 = 64;
/// Maximum length of a file name in characters, and of a media type in bytes.
pub const MAX_NAME_CHARS: usize = 255;

/// The collection of files.
pub(crate) static COLLECTION: Collection = Collection {
    name: "files",
    fields: &[
        Field::new("toolkit", Kind::Text),
        Field::new("tool", Kind::Text),
        Field::new("state", Kind::Text),
        Field::unique("content", Kind::Text),
    ],
};

/// A file as stored.
#[derive(Debug, Serialize, Deserialize)]
pub struct File {
    /// The slug of the toolkit that the file is for, or comes from.
    pub toolkit: String,
    /// The slug of the tool that the file is for, or comes from.
    pub tool: String,
    /// The display name, which is never a path.
    pub name: String,
    /// The media type, for example `text/csv`.
    pub media_type: String,
    /// The MD5 of the bytes, in hexadecimal.
    pub md5: String,
    /// The number of bytes that count against the quota of the project.
    #[serde(default)]
    size: u64,
    state: State,
    /// The identity of an upload's content. Files made by tools have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<String>,
}

impl File {
    /// Describes a file that another module keeps, by its path.
    pub(crate) fn unlisted(path: &str, media_type: &str, size: u64) -> Self {
        Self {
            toolkit: String::new(),
            tool: String::new(),
            name: path.rsplit('/').next().unwrap_or(path).to_owned(),
            media_type: media_type.to_owned(),
            md5: String::new(),
            size,
            state: State::Kept,
            content: None,
        }
    }

    /// Returns the `Content-Disposition` for downloads: an attachment, with every byte of its name
    /// that is not unreserved percent-encoded (RFC 6266).
    #[must_use]
    pub fn disposition(&self) -> String {
        format!(
            "attachment; filename*=UTF-8''{}",
            utf8_percent_encode(&self.name, UNENCODED_HEADER_CHARS)
        )
    }
}

impl Document for File {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// The state of the bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Awaited,
    Kept,
}

/// The operator's settings of files.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Maximum size of a file, in bytes.
    pub size: u64,
    /// Time for which a file is kept, or `None` for no limit.
    pub retention: Option<Duration>,
    /// Maximum number of files that are sent or received at the same time. Each is held in memory.
    pub transfers: usize,
    /// Maximum number of files of one project that are sent or received at the same time.
    pub transfers_per_project: usize,
    /// Timeout of one transfer.
    pub transfer: Duration,
    /// Maximum total size of the files of a project in bytes, or `None` for no limit.
    pub quota: Option<u64>,
}

/// The state of this module in the app.
pub struct Files {
    /// The signer of links.
    pub links: Links,
    /// The operator's settings.
    pub settings: Settings,
    transfers: Arc<Semaphore>,
    transfers_of_projects: KeyedLimit<ProjectId>,
    large_results: Semaphore,
}

/// A permit to hold a file in memory. It counts against the limit of all transfers and against that
/// of its project.
#[derive(Debug)]
pub struct TransferPermit {
    _all: OwnedSemaphorePermit,
    _of_project: OwnedSemaphorePermit,
}

impl Files {
    pub(crate) fn new(links: Links, settings: Settings) -> Self {
        Self {
            links,
            settings,
            transfers: Arc::new(Semaphore::new(settings.transfers)),
            transfers_of_projects: KeyedLimit::new(settings.transfers_per_project),
            large_results: Semaphore::new(MAX_LARGE_RESULTS),
        }
    }

    /// Waits for a permit to check and store a large result. The wait does not depend on a client.
    pub(crate) async fn acquire_large_result(&self) -> Option<SemaphorePermit<'_>> {
        self.large_results.acquire().await.ok()
    }

    /// Takes a permit to hold a file in memory, if one is free.
    pub fn try_acquire_transfer(&self, project: &ProjectId) -> Option<TransferPermit> {
        Some(TransferPermit {
            _of_project: self.transfers_of_projects.try_acquire(project)?,
            _all: self.transfers.clone().try_acquire_owned().ok()?,
        })
    }

    /// Waits for a permit to hold a file in memory. The permit of the project is taken first, so
    /// that a project at its limit does not occupy one of the shared permits while it waits.
    ///
    /// # Errors
    /// Returns [`errors::PROJECT_BUSY`] or [`errors::NODE_BUSY`] if no permit becomes free in time.
    pub async fn acquire_transfer(&self, project: &ProjectId) -> Result<TransferPermit> {
        let end = Instant::now() + MAX_TRANSFER_WAIT.min(self.settings.transfer / 2);
        let of_project = timeout_at(end, self.transfers_of_projects.acquire(project)).await;
        let of_project = of_project.ok().flatten().ok_or_else(errors::project_busy)?;
        let all = timeout_at(end, self.transfers.clone().acquire_owned()).await;
        let all = all
            .ok()
            .and_then(std::result::Result::ok)
            .ok_or_else(errors::node_busy)?;
        Ok(TransferPermit {
            _all: all,
            _of_project: of_project,
        })
    }
}

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
    /// Content, for which the project must have room.
    pub bytes: Bytes,
}

/// A file that was stored.
pub(crate) struct StoredFile {
    pub id: FileId,
    /// Link to download the file.
    pub link: Link,
}

/// Creates a record for an upload, or finds the one with the same content.
///
/// # Errors
/// Returns an error if the toolkit or tool is unknown, the name, media type or digest is invalid,
/// or the project has no room.
pub async fn request(app: &App, project: &Project, upload: UploadRequest) -> Result<Upload> {
    let file = checked(app, upload)?;
    let content = file.content.clone().unwrap_or_default();
    let record = match same(app, project, &content).await? {
        Some(record) => record,
        None => {
            total::check(app, project.id.as_str(), 1).await?;
            let id = FileId::random();
            match projects::insert(app, project, id.as_str(), &file).await {
                // Another request for the same content was made at the same time.
                Ok(()) | Err(EditError::Commit(CommitError::Taken { .. })) => {}
                Err(cause) => return Err(cause.into()),
            }
            let made = same(app, project, &content).await?;
            made.ok_or_else(|| errors::unavailable("the file was removed while it was asked for"))?
        }
    };
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
        put: upload_link(app, project, &record).await?,
        id,
        existing,
    })
}

fn checked(app: &App, upload: UploadRequest) -> Result<File> {
    let index = app.catalog.snapshot();
    let toolkit = index
        .toolkit(&upload.toolkit)
        .ok_or_else(|| errors::toolkit_not_found(crate::core::truncate(&upload.toolkit)))?;
    let unknown = || errors::tool_not_found(crate::core::truncate(&upload.tool), "");
    let owner = index
        .toolkit_of(&upload.tool)
        .filter(|owner| owner.slug == toolkit.slug);
    owner.ok_or_else(unknown)?;
    let mut problems = Vec::new();
    let is_path = |name: &str| name == "." || name == ".." || name.contains(['/', '\\']);
    let name = upload.name.trim();
    if name.is_empty()
        || name.chars().count() > MAX_NAME_CHARS
        || is_path(name)
        || name.chars().any(char::is_control)
    {
        problems.push(format!(
            "filename: must be a name of 1 to {MAX_NAME_CHARS} characters, not a path"
        ));
    }
    let media_type = upload.media_type.trim();
    if media_type.len() > MAX_NAME_CHARS || !is_media_type(media_type) {
        problems.push("mimetype: must be a media type, such as `text/csv`".to_owned());
    }
    let md5 = upload.md5.trim().to_ascii_lowercase();
    if md5.len() != 32 || !md5.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        problems.push("md5: must be 32 hexadecimal digits".to_owned());
    }
    if !problems.is_empty() {
        return Err(errors::invalid(problems));
    }
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

/// Returns true for `type/subtype` with optional parameters (RFC 9110, 8.3.1) that is valid as a
/// header value.
pub(crate) fn is_media_type(text: &str) -> bool {
    let token = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&b))
    };
    let essence = text.split(';').next().unwrap_or_default().trim();
    let has_two_parts = essence
        .split_once('/')
        .is_some_and(|(family, rest)| token(family) && token(rest));
    has_two_parts && text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}

async fn same(app: &App, project: &Project, content: &str) -> Result<Option<Record<File>>> {
    let query = Query::for_project(project.id.as_str()).is("content", content);
    Ok(app.store.first(query).await?)
}

/// Returns a page of the project's files, newest first, and their total number.
pub async fn list(
    app: &App,
    project: &Project,
    toolkit: Option<&str>,
    tool: Option<&str>,
    window: Window,
) -> Result<Listed<Record<File>>> {
    let mut query = Query::for_project(project.id.as_str())
        .is("state", "kept")
        .descending()
        .window(window);
    if let Some(toolkit) = toolkit {
        query = query.is("toolkit", toolkit.to_ascii_lowercase());
    }
    if let Some(tool) = tool {
        query = query.is("tool", tool.to_ascii_uppercase());
    }
    Ok(app.store.list(&query).await?)
}

/// Stores the bytes of an upload, as permitted by its link.
///
/// # Errors
/// Returns an error if the file does not exist, the bytes differ from those announced, or the
/// project has no room.
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

/// Returns a file and its bytes, as permitted by its link.
///
/// # Errors
/// Returns an error if the file does not exist.
pub async fn get(app: &App, ticket: &Ticket) -> Result<(File, Bytes)> {
    let record = linked_record(app, ticket).await?;
    let bytes = app.store.blobs().get(&blob(&record.id)).await?;
    let bytes = bytes.ok_or_else(|| errors::file_not_found(&ticket.id))?;
    Ok((record.body, bytes))
}

/// Stores bytes as a file of the project.
///
/// # Errors
/// Returns an error if the project has no room or the store refuses.
pub(crate) async fn store_new(
    app: &App,
    project: &Project,
    made: NewFile<'_>,
) -> Result<StoredFile> {
    let id = FileId::random();
    let file = File {
        toolkit: made.toolkit.to_owned(),
        tool: made.tool.to_owned(),
        name: safe_name(made.name),
        media_type: if is_media_type(made.media_type) {
            made.media_type
        } else {
            "application/octet-stream"
        }
        .to_owned(),
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
            let total = total::load(app, project.id.as_str())
                .await?
                .add(size, app.files.settings.quota)?;
            let batch = total.batch(app.clock.now()).check(&owner);
            Ok::<_, Error>((batch.insert(project.id.as_str(), id.as_str(), &file), ()))
        });
    made_room.await?;
    app.store
        .blobs()
        .put(&blob(id.as_str()), made.bytes)
        .await?;
    let current = record(app, project.id.as_str(), &id).await;
    erase_unless_stored(app, id.as_str(), current.map(drop)).await?;
    let link = make_link(app, project, id.as_str(), &file, SignedOperation::Get).await?;
    let link = Link {
        size: Some(size),
        ..link
    };
    Ok(StoredFile { id, link })
}

/// Converts a name from outside to one that is not a path.
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

/// Returns the file that arguments name, with its bytes.
async fn read(app: &App, project: &Project, key: &str) -> Result<(Record<File>, Bytes)> {
    let id = FileId::parse(key)?;
    let record = record(app, project.id.as_str(), &id).await?;
    let bytes = match record.body.state {
        State::Kept => app.store.blobs().get(&blob(&record.id)).await?,
        State::Awaited => adopt(app, project, &record).await?,
    };
    let bytes = bytes.ok_or_else(|| errors::file_not_uploaded(id))?;
    Ok((record, bytes))
}

/// Accepts bytes that were uploaded directly to the bucket, if the bucket issues its own links.
async fn adopt(app: &App, project: &Project, record: &Record<File>) -> Result<Option<Bytes>> {
    let found = match app.store.blobs().get(&blob(&record.id)).await {
        Ok(None) => return Ok(None),
        Ok(Some(bytes)) if bytes.len() as u64 > app.files.settings.size => None,
        Ok(Some(bytes)) => {
            let found = digest(app, &project.tenant, bytes.clone()).await?;
            (found == record.body.md5).then_some(bytes)
        } // The bytes do not match their own metadata.
        Err(store::Error::Damaged { .. }) => None,
        Err(cause) => return Err(cause.into()),
    };
    let Some(bytes) = found else {
        tracing::warn!(project = %project.id, file = record.id, "the bytes in the bucket do not match the announced digest or exceed the maximum size");
        app.store.blobs().remove(&blob(&record.id)).await?;
        return Ok(None);
    };
    mark_stored(app, record, bytes.len() as u64).await?;
    Ok(Some(bytes))
}

/// Erases bytes that were written after their record had been erased.
async fn erase_unless_stored(app: &App, id: &str, stored: Result<()>) -> Result<()> {
    if stored
        .as_ref()
        .is_err_and(|cause| cause.is(&errors::FILE_NOT_FOUND))
    {
        app.store.blobs().remove(&blob(id)).await?;
    }
    stored
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

async fn record(app: &App, project: &str, id: &FileId) -> Result<Record<File>> {
    let found = app.store.get::<File>(project, id.as_str()).await?;
    found.ok_or_else(|| errors::file_not_found(id))
}

/// Returns the file of a link, unless its project has been deleted.
async fn linked_record(app: &App, ticket: &Ticket) -> Result<Record<File>> {
    if !projects::is_live(&app.store, ticket.project.as_str()).await? {
        return Err(errors::file_not_found(&ticket.id));
    }
    record(app, ticket.project.as_str(), &ticket.id).await
}

async fn download_link(app: &App, project: &Project, record: &Record<File>) -> Result<Link> {
    make_link(app, project, &record.id, &record.body, SignedOperation::Get).await
}

async fn upload_link(app: &App, project: &Project, record: &Record<File>) -> Result<Link> {
    make_link(app, project, &record.id, &record.body, SignedOperation::Put).await
}

/// Returns the bucket's own link if it issues any, or else one of this server.
async fn make_link(
    app: &App,
    project: &Project,
    id: &str,
    file: &File,
    method: SignedOperation,
) -> Result<Link> {
    let disposition = file.disposition();
    let terms = SignedUrlTerms {
        md5: &file.md5,
        media_type: &file.media_type,
        disposition: &disposition,
        ttl: Duration::from_secs(project.stored.config.file_url_expiry.into()),
    };
    let own = app.store.blobs().signed(&blob(id), method, terms).await?;
    let max_bytes = app.files.settings.size;
    let link = server_link(app, project, FileId::parse(id)?, file, method, max_bytes);
    Ok(match own {
        Some(signed) => Link {
            url: signed.url,
            headers: signed.headers,
            ..link
        },
        None => link,
    })
}

/// Returns a link of this server. A body that it permits has at most `max_bytes`.
pub(crate) fn server_link(
    app: &App,
    project: &Project,
    id: FileId,
    file: &File,
    method: SignedOperation,
    max_bytes: u64,
) -> Link {
    let seconds = i64::from(project.stored.config.file_url_expiry);
    let expires_at = Time(app.clock.now().0.saturating_add(seconds * 1_000));
    let ticket = Ticket {
        project: project.id.clone(),
        id,
        expires_at,
    };
    Link {
        url: app.files.links.sign(method, &ticket, file, max_bytes),
        headers: Vec::new(),
        media_type: file.media_type.clone(),
        size: None,
        expires_at,
    }
}

/// Returns the key of a file's blob.
pub(crate) fn blob(id: &str) -> String {
    format!("file.{id}")
}

async fn digest(app: &App, project: &Arc<str>, bytes: Bytes) -> Result<String> {
    let size = bytes.len();
    let compute = move || hex::encode(Md5::digest(&bytes));
    app.large_work.run(project, size, compute).await
}

/// Erases all files of a project.
///
/// # Errors
/// Returns an error if the store refuses or the claim is lost.
pub(crate) async fn erase_project<T: Claimable>(
    app: &App,
    project: &ProjectId,
    claim: &Claim<T>,
) -> Result<()> {
    erase(app, project.as_str(), Time(i64::MAX), claim).await
}

/// Erases the files of a project that have reached the end of their retention.
///
/// # Errors
/// Returns an error if the store refuses or the claim is lost.
pub(crate) async fn erase_old<T: Claimable>(
    app: &App,
    project: &str,
    claim: &Claim<T>,
) -> Result<()> {
    let Some(retention) = app.files.settings.retention else {
        return Ok(());
    };
    let cutoff = time_before(app.clock.now(), retention);
    erase(app, project, cutoff, claim).await
}

/// Erases the files of a project that were created before a time, oldest first.
async fn erase<T: Claimable>(
    app: &App,
    project: &str,
    cutoff: Time,
    claim: &Claim<T>,
) -> Result<()> {
    loop {
        let oldest = app
            .store
            .find::<File>(&Query::for_project(project).page(0, READ_BATCH))
            .await?
            .records;
        let old: Vec<_> = oldest
            .into_iter()
            .filter(|record| record.created_at < cutoff)
            .collect();
        if old.is_empty() {
            return Ok(());
        }
        for record in &old {
            app.store.blobs().remove(&blob(&record.id)).await?;
        }
        let total = total::load(app, project)
            .await?
            .subtract(old.iter().map(|record| record.body.size).sum());
        let batch = old
            .iter()
            .fold(total.batch(app.clock.now()), |batch, record| {
                batch.purge(record)
            });
        // If another writer has changed a record, or created the total, the next query returns what is
        // left.
        claim.succeeded(claim.commit(batch).await).await?;
        tokio::task::yield_now().await;
        // An upload that read its record before the commit may have written the bytes again.
        for record in &old {
            app.store.blobs().remove(&blob(&record.id)).await?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_type_can_stand_in_a_header() {
        for text in [
            "text/csv",
            "image/svg+xml",
            "text/plain; charset=utf-8",
            "application/vnd.a.b-c+json",
        ] {
            assert!(is_media_type(text), "{text}");
        }
        for text in [
            "",
            "text",
            "/",
            "text/",
            "a b/c",
            "text/plain\r\nx: y",
            "text/plain; é",
            "te/xt/x",
        ] {
            assert!(!is_media_type(text), "{text:?}");
        }
    }

    #[test]
    fn file_name_cannot_inject_header_parameters() {
        let disposition = |name: &str| {
            let file = File {
                toolkit: String::new(),
                tool: String::new(),
                name: name.to_owned(),
                media_type: String::new(),
                md5: String::new(),
                size: 0,
                state: State::Kept,
                content: None,
            };
            file.disposition()
        };
        assert_eq!(
            disposition("a b\".txt"),
            "attachment; filename*=UTF-8''a%20b%22.txt"
        );
        assert_eq!(
            disposition("é\r\nx"),
            "attachment; filename*=UTF-8''%C3%A9%0D%0Ax"
        );
    }

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
