//! Files of a session, as resources.

use app::{
    App, Error,
    agents::{SessionCaller, session_files},
};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use bytes::Bytes;
use rmcp::{
    ErrorData,
    model::{ListResourcesResult, ReadResourceResult, Resource, ResourceContents},
};
use serde_json::json;
use url::Url;

use super::cursor;

/// Resources on a page of `resources/list`.
pub const RESOURCES_PER_PAGE: usize = 250;
/// Maximum size of a readable resource, in bytes. Larger files are downloaded by a link.
pub const MAX_RESOURCE_BYTES: u64 = 4 << 20;

/// Returns the page of files after a cursor, in the order of their paths.
pub(super) async fn list(
    app: &App,
    caller: &SessionCaller,
    cursor: Option<&str>,
) -> Result<ListResourcesResult, ErrorData> {
    let files = session_files::list(app, caller, "").await;
    let mut files = files.map_err(|cause| failure(&cause))?;
    if let Some(cursor) = cursor {
        let last = cursor::decode(cursor)?;
        files.retain(|file| file.path > last);
    }
    let page = &files[..files.len().min(RESOURCES_PER_PAGE)];
    let last = page.last().filter(|_| page.len() < files.len());
    let described = page.iter().map(|file| {
        let uri = uri(&file.path);
        Resource::new(uri, &*file.path).with_size(file.size)
    });
    Ok(ListResourcesResult {
        next_cursor: last.map(|last| cursor::encode(&last.path)),
        ..ListResourcesResult::with_all_items(described.collect())
    })
}

/// Reads a file: as text if it is UTF-8, or else as base64.
pub(super) async fn read(
    app: &App,
    caller: &SessionCaller,
    uri: &str,
) -> Result<ReadResourceResult, ErrorData> {
    let path = path(uri).ok_or_else(|| unknown(uri))?;
    let files = session_files::list(app, caller, &path).await;
    let files = files.map_err(|cause| failure(&cause))?;
    let file = files.into_iter().find(|file| file.path == path);
    let file = file.ok_or_else(|| unknown(uri))?;
    if file.size > MAX_RESOURCE_BYTES {
        let message = format!(
            "the file has {} bytes, and a resource at most {MAX_RESOURCE_BYTES}: download it by a link \
             of the operation `mounts/files/download_url` of the session",
            file.size
        );
        return Err(ErrorData::invalid_params(
            message,
            Some(json!({ "uri": uri })),
        ));
    }
    let content = session_files::read(app, caller, &path).await;
    let content = content.map_err(|cause| failure(&cause))?;
    Ok(ReadResourceResult::new(vec![contents(&content, uri)]))
}

fn contents(content: &Bytes, uri: &str) -> ResourceContents {
    match std::str::from_utf8(content) {
        Ok(text) => ResourceContents::text(text, uri),
        Err(_) => ResourceContents::blob(BASE64.encode(content), uri)
            .with_mime_type("application/octet-stream"),
    }
}

/// Returns the address of a file: that of the file in the workbench.
fn uri(path: &str) -> String {
    let path = format!("{}/{path}", session_files::SANDBOX_FOLDER);
    Url::from_file_path(&path).map_or(path, String::from)
}

fn path(uri: &str) -> Option<String> {
    let path = Url::parse(uri).ok()?.to_file_path().ok()?;
    let path = path.strip_prefix(session_files::SANDBOX_FOLDER).ok()?;
    path.to_str().map(str::to_owned)
}

fn unknown(uri: &str) -> ErrorData {
    let data = json!({ "uri": uri });
    ErrorData::resource_not_found("the session has no file with this address", Some(data))
}

fn failure(cause: &Error) -> ErrorData {
    tracing::error!(%cause, "files of a session cannot be read");
    ErrorData::internal_error("internal error", None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_the_workbench() {
        assert_eq!(uri("in/a é.txt"), "file:///mnt/files/in/a%20%C3%A9.txt");
        assert_eq!(
            path("file:///mnt/files/in/a%20%C3%A9.txt").unwrap(),
            "in/a é.txt"
        );
        for foreign in [
            "file:///etc/passwd",
            "https://x.example/mnt/files/a",
            "a.txt",
        ] {
            assert_eq!(path(foreign), None, "{foreign}");
        }
        assert_eq!(path("file:///mnt/files/../../etc/passwd"), None);
    }
}
