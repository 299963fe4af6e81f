//! Files: listing and upload.

use std::sync::Arc;

use app::files::{self, File, Upload, UploadRequest};
use axum::{extract::State, response::Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::{
    Server,
    http::{
        auth::ProjectKey, error::ApiResult, reply::Json, scaffold::RawQuery, scaffold::ok,
        scaffold::record_list,
    },
    shapes,
};

#[derive(Deserialize, ToSchema)]
#[schema(as = RequestUpload)]
pub(crate) struct UploadBody {
    toolkit_slug: String,
    tool_slug: String,
    /// A name, not a path.
    filename: String,
    mimetype: String,
    /// Digest of the bytes, as 32 hexadecimal digits.
    md5: String,
}

/// Lists files, newest first.
#[utoipa::path(
    get,
    path = "/files/list",
    params(
        ("toolkit_slug" = Option<String>, Query, description = "For this toolkit, or made by it"),
        ("tool_slug" = Option<String>, Query, description = "For this tool, or made by it"),
        shapes::Paging,
    ),
    responses((status = 200, description = "A page of files", body = shapes::Listed<shapes::File>)),
)]
pub(crate) async fn list(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    query: RawQuery,
) -> ApiResult<Response> {
    let page = query.page()?;
    let (toolkit, tool) = (query.text("toolkit_slug")?, query.text("tool_slug")?);
    let found = files::list(
        &server.app,
        &key.project,
        toolkit,
        tool,
        page.window(false)?,
    )
    .await?;
    let items = found
        .items
        .iter()
        .map(|record| view(&record.body))
        .collect();
    ok(&record_list("items", items, page, found.total, found.next))
}

/// Returns a link to upload a file, or reports that the file exists already.
#[utoipa::path(
    post,
    path = "/files/upload/request",
    request_body = UploadBody,
    responses(
        (status = 200, description = "A link to put the bytes to, and the key to name them by", body = shapes::Upload),
        (status = 404, description = "There is no such toolkit, or it has no such tool"),
    ),
)]
pub(crate) async fn request(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    Json(body): Json<UploadBody>,
) -> ApiResult<Response> {
    let request = UploadRequest {
        toolkit: body.toolkit_slug,
        tool: body.tool_slug,
        name: body.filename,
        media_type: body.mimetype,
        md5: body.md5,
    };
    ok(&upload(
        &files::request(&server.app, &key.project, request).await?,
    ))
}

fn view(file: &File) -> Value {
    json!({
        "toolkit_slug": file.toolkit,
        "tool_slug": file.tool,
        "filename": file.name,
        "mimetype": file.media_type,
        "md5": file.md5,
    })
}

/// Returns the view of an upload. Clients read `new_presigned_url` regardless of the type.
fn upload(upload: &Upload) -> Value {
    let mut view = json!({
        "id": upload.id,
        "key": upload.id,
        "type": if upload.existing.is_some() { "existing" } else { "new" },
        "new_presigned_url": upload.put.url,
        "newPresignedUrl": upload.put.url,
        "metadata": {"storage_backend": "s3"},
    });
    if let Some(existing) = &upload.existing {
        view["existing_url"] = existing.url.clone().into();
        view["existingUrl"] = existing.url.clone().into();
    }
    if !upload.put.headers.is_empty() {
        let headers = upload
            .put
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.clone().into()));
        view["headers"] = headers.collect::<Map<_, _>>().into();
    }
    view
}
