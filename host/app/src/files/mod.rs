//! Files: uploads of callers for tools, and binary results of tools and providers.
//!
//! A record holds the owner and the properties of a file. Its bytes are a blob. Callers transfer
//! them with signed links, so that they need no key, see `link`. An upload is identified by
//! project, toolkit, tool and digest, so that the same content is not sent twice. The bytes are
//! stored as received and are not sealed, because a bucket may serve them directly.

mod answer;
mod arguments;
mod created;
mod erasure;
pub mod errors;
mod link;
pub(crate) mod total;
mod transfers;
mod upload;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use gate::Capacity;
use md5::{Digest, Md5};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sandbox::Refusal;
/// Memory of the node that the content of files takes.
pub use sandbox::Reservation;
use serde::{Deserialize, Serialize};
use store::{
    Collection, Document, Erasure, Field, Kind, Listed, Query, Record, SignedUrlTerms, Time, Window,
};

pub(crate) use answer::link_files;
pub use answer::{beginning, result_as_file};
pub use arguments::{MAX_FILES_PER_CALL, MAX_SEARCH_STEPS};
pub(crate) use arguments::{named_files, resolve_files};
pub(crate) use created::{NewFile, store_new};
pub(crate) use erasure::{erase_old, erase_project};
pub use link::{Link, Links, Parameters, Ticket};
pub use store::SignedOperation;
pub(crate) use total::TOTALS_COLLECTION;
pub use transfers::{
    Files, LARGE_RESULT_SHARES, MAX_LARGE_RESULT_WAIT, Settings, TransferPermit, transfer_shares,
};
use upload::adopt;
pub use upload::{Upload, UploadRequest, put, request};

use crate::{
    App, Result,
    core::ids::FileId,
    projects::{self, Project},
};

/// The characters that stand unencoded in a header parameter, in addition to letters and digits.
const UNENCODED_HEADER_CHARS: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// Maximum length of a file name in characters, and of a media type in bytes.
pub const MAX_NAME_CHARS: usize = 255;

pub(crate) static COLLECTION: Collection = Collection {
    name: "files",
    erasure: Erasure::ProjectWithBlobs,
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
    /// The identity of an upload's content. `None` for files made by tools.
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

    /// Returns the `Content-Disposition` for downloads: an attachment, with its name in both forms
    /// of RFC 6266: in ASCII for older clients, and with all except unreserved bytes
    /// percent-encoded.
    #[must_use]
    pub fn disposition(&self) -> String {
        let plain = self.name.replace(|letter| !is_plain(letter), "_");
        format!(
            "attachment; filename=\"{plain}\"; filename*=UTF-8''{}",
            utf8_percent_encode(&self.name, UNENCODED_HEADER_CHARS)
        )
    }
}

/// Returns true for a character that a quoted file name may contain.
fn is_plain(letter: char) -> bool {
    letter == ' ' || letter.is_ascii_graphic() && !matches!(letter, '"' | '\\' | '%')
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

/// Returns true for `type/subtype` with optional parameters (RFC 9110, 8.3.1) which is valid as a
/// header value and has at most [`MAX_NAME_CHARS`] bytes. A link contains the media type, and the
/// server refuses a request line of more than 8 KiB.
pub(crate) fn is_media_type(text: &str) -> bool {
    let essence = text.split(';').next().unwrap_or_default().trim();
    let parts = essence.split_once('/');
    parts.is_some_and(|(family, rest)| is_token(family) && is_token(rest))
        && text.len() <= MAX_NAME_CHARS
        && text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}

fn is_token(part: &str) -> bool {
    let mut bytes = part.bytes();
    !part.is_empty()
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte))
}

/// Returns a page of the project's files, newest first, and their total number.
pub async fn list(
    app: &App,
    project: &Project,
    toolkit: Option<&str>,
    tool: Option<&str>,
    window: Window,
) -> Result<Listed<Record<File>>> {
    let query = Query::for_project(project.id.as_str())
        .is("state", "kept")
        .filter("toolkit", toolkit.map(str::to_ascii_lowercase))
        .filter("tool", tool.map(str::to_ascii_uppercase))
        .descending()
        .window(window);
    Ok(app.store.list(&query).await?)
}

/// Returns a file and its bytes, as permitted by its link. Fails if the file does not exist.
pub async fn get(app: &App, ticket: &Ticket) -> Result<(File, Bytes, Reservation)> {
    let record = linked_record(app, ticket).await?;
    let memory = reserve_memory(app, &record.project.as_str().into(), record.body.size)?;
    let bytes = app.store.blobs().get(&blob(&record.id)).await?;
    let bytes = bytes.ok_or_else(|| errors::file_not_found(&ticket.id))?;
    Ok((record.body, bytes, memory))
}

/// Returns the file that arguments name, with the size of its bytes. Fails if they were never
/// uploaded.
pub(crate) async fn uploaded(app: &App, project: &Project, key: &str) -> Result<Record<File>> {
    let id = FileId::parse(key)?;
    let mut record = record(app, project.id.as_str(), &id).await?;
    let size = match (record.body.state, record.body.size) {
        (State::Awaited, _) => adopt(app, project, &record).await?,
        // Records of earlier versions have no size.
        (State::Kept, 0) => app.store.blobs().size(&blob(&record.id)).await?,
        (State::Kept, size) => Some(size),
    };
    record.body.size = size.ok_or_else(|| errors::file_not_uploaded(id))?;
    Ok(record)
}

/// Reserves memory of this node for bytes that a project's request holds. Fails with
/// [`errors::PROJECT_BUSY`] or [`errors::NODE_BUSY`] if the project may not have it now.
pub fn reserve_memory(app: &App, tenant: &Arc<str>, bytes: u64) -> Result<Reservation> {
    let reserved = app.sandbox.try_reserve_memory(tenant, bytes);
    reserved.map_err(|refusal| match refusal {
        Refusal::TenantBusy(capacity) => errors::project_busy(capacity),
        _ => errors::node_busy(Capacity::Memory),
    })
}

/// Erases bytes that were written after their record had been erased.
async fn erase_unless_stored(app: &App, id: &str, stored: Result<()>) -> Result<()> {
    if let Err(cause) = &stored
        && cause.is(&errors::FILE_NOT_FOUND)
    {
        app.store.blobs().remove(&blob(id)).await?;
    }
    stored
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
    let signed = app.store.blobs().signed(&blob(id), method, terms).await?;
    let max_bytes = app.files.settings.size;
    let link = server_link(app, project, FileId::parse(id)?, file, method, max_bytes);
    Ok(match signed {
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
    let computed = app
        .large_work
        .run(project, size, move || hex::encode(Md5::digest(&bytes)));
    computed.await
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
            &format!("text/{}", "x".repeat(MAX_NAME_CHARS)),
        ] {
            assert!(!is_media_type(text), "{text:?}");
        }
    }

    #[test]
    fn file_name_cannot_inject_header_parameters() {
        let disposition = |name: &str| File::unlisted(name, "", 0).disposition();
        assert_eq!(
            disposition("a b\".txt"),
            "attachment; filename=\"a b_.txt\"; filename*=UTF-8''a%20b%22.txt"
        );
        assert_eq!(
            disposition("é\r\nx"),
            "attachment; filename=\"___x\"; filename*=UTF-8''%C3%A9%0D%0Ax"
        );
    }
}
