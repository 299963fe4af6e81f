//! Mounts of a session: its files, which scripts, shell commands and applications share.

use app::{
    agents::session_files::{self, SANDBOX_FOLDER, SessionFile},
    core::{clock::iso, ids::SessionId},
    files::Link,
};
use http::{ApiResult, Created, IN_TABLE, Json, Page, Path, ProjectKey, Query};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::open;

/// Items on a page of a request that names no limit.
const DEFAULT_ITEMS: f64 = 100.0;
/// Maximum number of items on a page.
const MAX_ITEMS: u64 = 500;

/// Selection of files.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ItemsQuery {
    /// Beginning of the paths.
    mount_relative_prefix: Option<String>,
    /// Items on a page, 100 without it. More than 500 means 500.
    limit: Option<f64>,
    /// `next_cursor` of the page before; the limit that it contains takes precedence over `limit`.
    cursor: Option<String>,
}

/// A file to upload.
#[derive(Deserialize, ToSchema)]
#[schema(as = MountUpload)]
pub(crate) struct UploadBody {
    /// Path, relative to the mount.
    mount_relative_path: String,
    /// Media type; one that fits the ending of the path without it.
    mimetype: Option<String>,
}

/// A file of a mount.
#[derive(Deserialize, ToSchema)]
#[schema(as = MountPath)]
pub(crate) struct PathBody {
    /// Path, relative to the mount.
    mount_relative_path: String,
}

view! {
    /// A file of a mount.
    #[schema(as = MountItem)]
    pub(crate) struct ItemView from file: SessionFile {
        mount_relative_path: String = file.path,
        /// Folder of the mount in the workbench.
        sandbox_mount_prefix: &'static str = SANDBOX_FOLDER,
        /// Size, in bytes.
        size: u64 = file.size,
        last_modified: String = iso(file.modified_at),
    }
}

/// A page of the files of a mount, in the order of their paths.
#[derive(Serialize, ToSchema)]
#[schema(as = MountItems)]
pub(crate) struct ItemsView {
    items: Vec<ItemView>,
    /// Cursor of the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next_cursor: Option<String>,
}

view! {
    /// Link to which the content of a file is sent with PUT.
    #[schema(as = MountUploadUrl)]
    pub(crate) struct UploadUrlView from (path: String, link: Link) {
        upload_url: String = link.url,
        mount_relative_path: String = path,
        /// Folder of the mount in the workbench.
        sandbox_mount_prefix: &'static str = SANDBOX_FOLDER,
        expires_at: String = iso(link.expires_at),
    }
}

view! {
    /// Link to the content of a file.
    #[schema(as = MountDownloadUrl)]
    pub(crate) struct DownloadUrlView from (path: String, link: Link) {
        download_url: String = link.url,
        mount_relative_path: String = path,
        /// Folder of the mount in the workbench.
        sandbox_mount_prefix: &'static str = SANDBOX_FOLDER,
        expires_at: String = iso(link.expires_at),
    }
}

view! {
    /// A deleted file.
    #[schema(as = MountDeleted)]
    pub(crate) struct DeletedView from path: String {
        mount_relative_path: String = path,
        /// Folder of the mount in the workbench.
        sandbox_mount_prefix: &'static str = SANDBOX_FOLDER,
    }
}

/// Lists the files of a session, in the order of their paths.
#[utoipa::path(get, path = IN_TABLE, operation_id = "mount_items")]
pub(crate) async fn items(
    key: ProjectKey,
    Path((id, mount)): Path<(SessionId, String)>,
    Query(query): Query<ItemsQuery>,
) -> ApiResult<Json<ItemsView>> {
    let caller = open(&key, &id).await?;
    session_files::check_mount(&mount)?;
    let limit = query.limit.or(Some(DEFAULT_ITEMS));
    let page = Page::admit(limit, query.cursor.as_deref())
        .await?
        .at_most(MAX_ITEMS);
    let prefix = query.mount_relative_prefix.unwrap_or_default();
    let found = session_files::list(key.app(), &caller, &prefix).await?;
    let (found, total) = page.cut(found);
    Ok(Json(ItemsView {
        items: found.into_iter().map(ItemView::from).collect(),
        next_cursor: page.next_cursor(total),
    }))
}

/// Returns a link to upload a file of a session.
#[utoipa::path(post, path = IN_TABLE, operation_id = "mount_upload_url")]
pub(crate) async fn upload_url(
    key: ProjectKey,
    Path((id, mount)): Path<(SessionId, String)>,
    Json(body): Json<UploadBody>,
) -> ApiResult<Created<UploadUrlView>> {
    let caller = open(&key, &id).await?;
    session_files::check_mount(&mount)?;
    let path = body.mount_relative_path;
    let media_type = body.mimetype.as_deref();
    let link = session_files::upload_link(key.app(), &caller, &path, media_type).await?;
    Ok(Created(UploadUrlView::new(path, link)))
}

/// Returns a link to download a file of a session.
#[utoipa::path(post, path = IN_TABLE, operation_id = "mount_download_url")]
pub(crate) async fn download_url(
    key: ProjectKey,
    Path((id, mount)): Path<(SessionId, String)>,
    Json(body): Json<PathBody>,
) -> ApiResult<Created<DownloadUrlView>> {
    let caller = open(&key, &id).await?;
    session_files::check_mount(&mount)?;
    let path = body.mount_relative_path;
    let link = session_files::download_link(key.app(), &caller, &path).await?;
    Ok(Created(DownloadUrlView::new(path, link)))
}

/// Deletes a file of a session.
#[utoipa::path(post, path = IN_TABLE, operation_id = "mount_delete")]
pub(crate) async fn delete(
    key: ProjectKey,
    Path((id, mount)): Path<(SessionId, String)>,
    Json(body): Json<PathBody>,
) -> ApiResult<Json<DeletedView>> {
    let caller = open(&key, &id).await?;
    session_files::check_mount(&mount)?;
    let path = body.mount_relative_path;
    session_files::delete(key.app(), &caller, &path).await?;
    Ok(Json(path.into()))
}
