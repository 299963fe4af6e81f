//! Files: listing and upload.

mod types;

use std::sync::Arc;

use app::files;
use axum::extract::State;

use self::types::{ListQuery, UploadBody, UploadView, View};
use crate::{
    Server,
    http::{
        auth::ProjectKey,
        error::ApiResult,
        page::{Listed, Page},
        query::Query,
        reply::Json,
        signature::IN_TABLE,
    },
};

/// Lists files, newest first.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn list(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Query(query): Query<ListQuery>,
    page: Page,
) -> ApiResult<Json<Listed<View>>> {
    let found = files::list(
        &server.app,
        &key.project,
        query.toolkit_slug.as_deref(),
        query.tool_slug.as_deref(),
        page.window(false)?,
    )
    .await?;
    let files = found.items.into_iter().map(|record| record.body.into());
    let files = files.collect();
    Ok(Json(Listed::after(files, &page, found.total, found.next)))
}

/// Returns a link to upload a file, or reports that the file exists already.
#[utoipa::path(
    post,
    path = IN_TABLE,
    responses((status = 404, description = "The toolkit or the tool does not exist")),
)]
pub(crate) async fn request(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Json(body): Json<UploadBody>,
) -> ApiResult<Json<UploadView>> {
    let upload = files::request(&server.app, &key.project, body.into()).await?;
    Ok(Json(upload.into()))
}
