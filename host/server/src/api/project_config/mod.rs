//! Settings of a project.

mod types;

use std::sync::Arc;

use app::projects::{self, Config};
use axum::extract::State;

pub(crate) use self::types::Update;
use self::types::View;
use crate::{
    Server,
    http::{
        auth::ProjectKey, body::OptionalJson, error::ApiResult, reply::Json, signature::IN_TABLE,
    },
};

/// Reads the settings of the project.
#[utoipa::path(get, path = IN_TABLE, operation_id = "read_config")]
pub(crate) async fn read(key: ProjectKey) -> ApiResult<Json<View>> {
    Ok(Json(key.project.stored.config.clone().into()))
}

/// Changes the given settings, effective from the next request.
#[utoipa::path(patch, path = IN_TABLE, operation_id = "update_config")]
pub(crate) async fn update(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    OptionalJson(update): OptionalJson<Update>,
) -> ApiResult<Json<View>> {
    let change = |config: &mut Config| update.apply(config);
    let config = projects::configure(&server.app, &key.project, change).await?;
    Ok(Json(config.into()))
}
