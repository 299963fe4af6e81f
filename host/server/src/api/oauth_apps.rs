//! The operator's OAuth apps at providers. Auth configs of the managed kind connect accounts with
//! them.

use std::sync::Arc;

use app::{
    Record,
    accounts::oauth_apps::{self, NewOauthApp, OauthApp},
    core::clock::iso,
};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    Server,
    http::{
        auth::OrganizationKey,
        error::ApiResult,
        path::Path,
        reply::{Deleted, Json},
        signature::IN_TABLE,
    },
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

/// The operator's OAuth app at a provider, without its secret.
#[derive(Serialize, ToSchema)]
#[schema(as = OauthApp)]
pub(crate) struct View {
    /// Slug of the toolkit.
    toolkit: String,
    client_id: String,
    scopes: Vec<String>,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
}

impl From<Record<OauthApp>> for View {
    fn from(record: Record<OauthApp>) -> Self {
        Self {
            toolkit: record.id,
            client_id: record.body.client_id,
            scopes: record.body.scopes,
            created_at: iso(record.created_at),
            updated_at: iso(record.updated_at),
        }
    }
}

/// All OAuth apps.
#[derive(Serialize, ToSchema)]
#[schema(as = OauthApps)]
pub(crate) struct ListView {
    items: Vec<View>,
}

/// Lists the OAuth apps by toolkit, without their secrets.
#[utoipa::path(get, path = IN_TABLE, operation_id = "list_oauth_apps")]
pub(crate) async fn list(
    _key: OrganizationKey,
    State(server): State<Arc<Server>>,
) -> ApiResult<Json<ListView>> {
    let apps = oauth_apps::list(&server.app).await?;
    let items = apps.into_iter().map(View::from).collect();
    Ok(Json(ListView { items }))
}

/// Sets the OAuth app of a toolkit and replaces an earlier one.
///
/// Projects can then use the managed kind of auth config.
#[utoipa::path(
    put,
    path = IN_TABLE,
    operation_id = "set_oauth_app",
    responses((status = 404, description = "The toolkit does not exist")),
)]
pub(crate) async fn set(
    _key: OrganizationKey,
    State(server): State<Arc<Server>>,
    Path(slug): Path<String>,
    Json(body): Json<Set>,
) -> ApiResult<Json<View>> {
    let new = NewOauthApp {
        toolkit: slug,
        client_id: body.client_id,
        client_secret: body.client_secret.unwrap_or_default(),
        scopes: body.scopes.unwrap_or_default(),
    };
    let record = oauth_apps::set(&server.app, new).await?;
    Ok(Json(record.into()))
}

/// Removes an OAuth app. Accounts that were connected with it work until their tokens expire.
#[utoipa::path(delete, path = IN_TABLE, operation_id = "remove_oauth_app")]
pub(crate) async fn remove(
    _key: OrganizationKey,
    State(server): State<Arc<Server>>,
    Path(slug): Path<String>,
) -> ApiResult<Json<Deleted>> {
    oauth_apps::remove(&server.app, &slug).await?;
    Ok(Json(Deleted::DONE))
}
