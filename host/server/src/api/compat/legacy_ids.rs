//! Translation of the legacy ids of older clients to current ids.

use std::sync::Arc;

use app::{
    Error,
    legacy::{self, Kind},
};
use axum::{extract::State, response::Response};
use serde_json::json;
use uuid::Uuid;

use crate::{
    Server,
    http::{auth::ProjectKey, error::ApiResult, scaffold::RawQuery, scaffold::ok},
    shapes,
};

/// Names of [`KINDS`], in the same order.
const NAMES: [&str; 3] = ["CONNECTED_ACCOUNT", "AUTH_CONFIG", "TRIGGER_INSTANCE"];
const KINDS: [Kind; 3] = [
    Kind::ConnectedAccount,
    Kind::AuthConfig,
    Kind::TriggerInstance,
];

/// Returns the current id for a legacy id.
#[utoipa::path(
    get,
    path = "/migration/get-nanoid",
    params(
        ("type" = inline(shapes::LegacyKind), Query, description = "What it is the id of"),
        ("uuid" = String, Query, description = "The older id"),
    ),
    responses(
        (status = 200, description = "The id of today", body = shapes::NanoId),
        (status = 404, description = "The id leads to nothing of the project"),
        (status = 410, description = "What it leads to is deleted"),
    ),
)]
pub(crate) async fn translate(
    key: ProjectKey,
    State(server): State<Arc<Server>>,
    query: RawQuery,
) -> ApiResult<Response> {
    let kind = query
        .choice("type", &NAMES)?
        .ok_or_else(|| Error::invalid("type: is required"))?;
    let uuid = query
        .text("uuid")?
        .ok_or_else(|| Error::invalid("uuid: is required"))?;
    let uuid = Uuid::parse_str(uuid).map_err(|_| Error::invalid("uuid: is not a UUID"))?;
    let id = legacy::translate(&server.app, &key.project, KINDS[kind], uuid).await?;
    ok(&json!({ "nanoid": id }))
}
