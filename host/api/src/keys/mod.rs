//! Additional keys of a project: created, listed and removed by the organization.
//!
//! Revoking needs only the key itself, so that anyone who finds a leaked key can revoke it.

mod types;

use std::sync::Arc;

use app::{core::ids::ProjectId, projects};
use axum::extract::State;

use self::types::{Create, List, Received, Revoke};
pub(crate) use self::types::{Permission, View, restrictions};
use http::{
    ApiResult, Created, Deleted, IN_TABLE, Json, NoKey, OrganizationKey, Path, Server, auth, errors,
};

/// Maximum number of keys that one request revokes.
pub const MAX_REVOKED: usize = 100;

/// Creates a key.
#[utoipa::path(post, path = IN_TABLE, operation_id = "create_key")]
pub(crate) async fn create(
    key: OrganizationKey,
    Path(id): Path<ProjectId>,
    Json(body): Json<Create>,
) -> ApiResult<Created<View>> {
    let rights = restrictions("", body.permissions, body.allowed_ips)?;
    let added = projects::add_key(key.app(), &key.organization, &id, &body.name, rights).await?;
    Ok(Created(View::new(added, true)))
}

/// Lists the keys of a project, oldest first, with the time of their last use.
#[utoipa::path(get, path = IN_TABLE, operation_id = "list_keys")]
pub(crate) async fn list(key: OrganizationKey, Path(id): Path<ProjectId>) -> ApiResult<Json<List>> {
    let project = projects::get(key.app(), &key.organization, &id).await?;
    let items = views(&key, &project.id).await?;
    Ok(Json(List { items }))
}

/// Returns the views of a project's keys, oldest first.
pub(super) async fn views(key: &OrganizationKey, project: &ProjectId) -> ApiResult<Vec<View>> {
    let in_full = key.server.config.keys.reveal;
    let keys = projects::show_keys(key.app(), project.as_str()).await?;
    Ok(keys
        .into_iter()
        .map(|key| View::new(key, in_full))
        .collect())
}

/// Deletes a key immediately.
#[utoipa::path(delete, path = IN_TABLE, operation_id = "remove_key")]
pub(crate) async fn remove(
    key: OrganizationKey,
    Path((id, name)): Path<(ProjectId, String)>,
) -> ApiResult<Json<Deleted>> {
    projects::remove_key(key.app(), &key.organization, &id, &name).await?;
    Ok(Json(Deleted::SUCCESS_STATUS))
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
