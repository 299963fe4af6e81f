//! Metadata of OAuth clients whose client id is a URL of this server. Providers fetch it.

use std::sync::Arc;

use app::{accounts, core::ids::AuthConfigId};
use axum::extract::State;
use http::{ApiResult, Json, Path, Server};
use serde_json::{Map, Value};

/// Answers with the metadata of the client of an auth config.
pub async fn read(
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
) -> ApiResult<Json<Map<String, Value>>> {
    let metadata = accounts::client_metadata(&server.app, &AuthConfigId::parse(&id)?).await?;
    Ok(Json(metadata))
}
