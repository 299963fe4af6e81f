//! Additional keys of a project: created, listed and removed by the organization.
//!
//! Revoking needs only the key itself, so that anyone who finds a leaked key can revoke it.

mod types;

use std::sync::Arc;

use app::{core::ids::ProjectId, projects};
use axum::extract::State;

use self::types::{Create, List, Received, Revoke};
pub(crate) use self::types::{Permission, View, restrictions};
use crate::{
    Server,
    http::{
        auth::{self, NoKey, OrganizationKey},
        error::ApiResult,
        errors,
        path::Path,
        reply::{Created, Deleted, Json},
        signature::IN_TABLE,
    },
};

/// Maximum number of keys that one request revokes.
const MAX_REVOKED: usize = 100;

/// Creates a key.
#[utoipa::path(post, path = IN_TABLE, operation_id = "create_key")]
pub(crate) async fn create(
    key: OrganizationKey,
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
    Json(body): Json<Create>,
) -> ApiResult<Created<View>> {
    let id = ProjectId::parse(&id)?;
    let rights = restrictions(body.permissions, body.allowed_ips)?;
    let added = projects::add_key(&server.app, &key.organization, &id, &body.name, rights).await?;
    Ok(Created(View::new(added, true)))
}

/// Lists the keys of a project, oldest first, with the time of their last use.
#[utoipa::path(get, path = IN_TABLE, operation_id = "list_keys")]
pub(crate) async fn list(
    key: OrganizationKey,
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
) -> ApiResult<Json<List>> {
    let project = projects::get(&server.app, &key.organization, &ProjectId::parse(&id)?).await?;
    let items = views(&server, &project.id).await?;
    Ok(Json(List { items }))
}

/// Returns the views of a project's keys, oldest first.
pub(super) async fn views(server: &Server, project: &ProjectId) -> ApiResult<Vec<View>> {
    let in_full = server.config.keys.reveal;
    let keys = projects::show_keys(&server.app, project.as_str()).await?;
    Ok(keys
        .into_iter()
        .map(|key| View::new(key, in_full))
        .collect())
}

/// Deletes a key at once.
#[utoipa::path(delete, path = IN_TABLE, operation_id = "remove_key")]
pub(crate) async fn remove(
    key: OrganizationKey,
    State(server): State<Arc<Server>>,
    Path((id, name)): Path<(String, String)>,
) -> ApiResult<Json<Deleted>> {
    let id = ProjectId::parse(&id)?;
    projects::remove_key(&server.app, &key.organization, &id, &name).await?;
    Ok(Json(Deleted::DONE))
}

/// Revokes the given keys. The response does not reveal which of them were valid.
#[utoipa::path(post, path = IN_TABLE)]
pub(crate) async fn revoke(
    _key: NoKey,
    State(server): State<Arc<Server>>,
    Json(body): Json<Revoke>,
) -> ApiResult<Json<Received>> {
    if !(1..=MAX_REVOKED).contains(&body.api_keys.len()) {
        return Err(errors::invalid(format!("api_keys: must be 1 to {MAX_REVOKED} keys")).into());
    }
    for secret in &body.api_keys {
        auth::revoke(&server, secret).await?;
    }
    Ok(Json(Received { received: true }))
}
