//! The operator's OAuth apps at providers. Auth configs of the managed kind connect accounts with
//! them.

use std::sync::Arc;

use app::{
    Record,
    clock::iso,
    connections::apps::{self, NewOauthApp, OauthApp},
};
use axum::{extract::State, response::Response};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    Server,
    http::{auth::OrganizationKey, error::ApiResult, path::Path, reply::Json, scaffold::ok},
    shapes,
};

#[derive(Deserialize, ToSchema)]
#[schema(as = SetOauthApp)]
pub(crate) struct Set {
    client_id: String,
    /// Left out for a client without one.
    #[serde(default)]
    client_secret: Option<String>,
    /// Scopes requested for every connection, in addition to those of the toolkit.
    #[serde(default)]
    scopes: Option<Vec<String>>,
}

/// Lists the OAuth apps by toolkit, without their secrets.
#[utoipa::path(
    get,
    path = "/org/oauth_apps",
    operation_id = "list_oauth_apps",
    responses((status = 200, description = "The clients", body = shapes::OauthApps)),
    security(("organization" = [])),
)]
pub(crate) async fn list(
    _key: OrganizationKey,
    State(server): State<Arc<Server>>,
) -> ApiResult<Response> {
    let all = apps::list(&server.app).await?;
    ok(&json!({"items": all.iter().map(view).collect::<Vec<_>>()}))
}

/// Sets the OAuth app of a toolkit and replaces an earlier one.
///
/// Projects can then use the managed kind of auth config.
#[utoipa::path(
    put,
    path = "/org/oauth_apps/{slug}",
    operation_id = "set_oauth_app",
    request_body = Set,
    responses(
        (status = 200, description = "The client", body = shapes::OauthApp),
        (status = 404, description = "There is no such toolkit"),
    ),
    security(("organization" = [])),
)]
pub(crate) async fn set(
    _key: OrganizationKey,
    State(server): State<Arc<Server>>,
    Path(slug): Path<String>,
    Json(body): Json<Set>,
) -> ApiResult<Response> {
    let new = NewOauthApp {
        toolkit: slug,
        client_id: body.client_id,
        client_secret: body.client_secret.unwrap_or_default(),
        scopes: body.scopes.unwrap_or_default(),
    };
    ok(&view(&apps::set(&server.app, new).await?))
}

/// Removes an OAuth app. Accounts that were connected with it work until their tokens expire.
#[utoipa::path(
    delete,
    path = "/org/oauth_apps/{slug}",
    operation_id = "remove_oauth_app",
    responses((status = 200, description = "It is forgotten", body = crate::http::reply::Deleted)),
    security(("organization" = [])),
)]
pub(crate) async fn remove(
    _key: OrganizationKey,
    State(server): State<Arc<Server>>,
    Path(slug): Path<String>,
) -> ApiResult<Response> {
    apps::remove(&server.app, &slug).await?;
    ok(&json!({"status": "success"}))
}

fn view(record: &Record<OauthApp>) -> Value {
    json!({
        "toolkit": record.id,
        "client_id": record.body.client_id,
        "scopes": record.body.scopes,
        "created_at": iso(record.created_at),
        "updated_at": iso(record.updated_at),
    })
}
