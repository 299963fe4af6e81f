//! Files: listing and upload.

mod types;

use app::files;
use http::{ApiResult, IN_TABLE, Json, Listed, Page, ProjectKey, Query};

use self::types::{ListQuery, UploadBody, UploadView, View};

/// Lists files, newest first.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn list(
    key: ProjectKey,
    Query(query): Query<ListQuery>,
    page: Page,
) -> ApiResult<Json<Listed<View>>> {
    let toolkit = query.toolkit_slug.as_deref();
    let tool = query.tool_slug.as_deref();
    let window = page.window(false)?;
    let found = files::list(key.app(), &key.project, toolkit, tool, window).await?;
    Ok(Json(Listed::after(found, &page)))
}

/// Returns a link to upload a file, or reports that the file exists already.
#[utoipa::path(post, path = IN_TABLE, responses(
    (status = 404, description = "The toolkit or the tool does not exist"),
))]
pub(crate) async fn request(
    key: ProjectKey,
    Json(body): Json<UploadBody>,
) -> ApiResult<Json<UploadView>> {
    let upload = files::request(key.app(), &key.project, body.into()).await?;
    Ok(Json(upload.into()))
}
