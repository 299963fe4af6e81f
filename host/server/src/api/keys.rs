//! Additional keys of a project: created, listed and removed by the organization.
//!
//! Revoking needs only the key itself, so that anyone who finds a leaked key can revoke it.

use std::sync::Arc;

use app::{
    Error,
    clock::iso,
    ids::ProjectId,
    projects::{
        self, ShownKey,
        scope::{Access, Area, Ranges, Rights, Scopes},
    },
};
use axum::{extract::State, response::Response};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::{
    Server,
    http::{
        auth::{self, OrganizationKey},
        error::ApiResult,
        path::Path,
        reply::Json,
        scaffold::created,
        scaffold::ok,
    },
    shapes,
};

/// Maximum number of keys that one request revokes.
const REVOKED: usize = 100;

#[derive(Deserialize, ToSchema)]
#[schema(as = CreateKey)]
pub(crate) struct Create {
    name: String,
    /// Permissions of the key; all of them without it, none if it is empty.
    #[serde(default)]
    permissions: Option<Vec<Permission>>,
    /// Addresses and ranges from which the key may be used; any address without it.
    #[serde(default)]
    allowed_ips: Option<Vec<String>>,
}

/// Permission of a key in one area.
#[derive(Deserialize, ToSchema)]
#[schema(as = GivenPermission)]
pub(crate) struct Permission {
    #[schema(value_type = shapes::Area)]
    preset: Area,
    #[schema(value_type = shapes::Access)]
    access: Access,
}

#[derive(Deserialize, ToSchema)]
#[schema(as = RevokeKeys)]
pub(crate) struct Revoke {
    /// 1 to 100 keys.
    api_keys: Vec<String>,
}

/// Builds the restrictions of a key. No permissions mean no restriction; an empty list means that
/// nothing is allowed.
pub(crate) fn rights(
    permissions: Option<Vec<Permission>>,
    allowed_ips: Option<Vec<String>>,
) -> ApiResult<Rights> {
    let pairs = |given: Vec<Permission>| {
        given
            .into_iter()
            .map(|one| (one.preset, one.access))
            .collect::<Scopes>()
    };
    let addresses = Ranges::try_from(allowed_ips.unwrap_or_default());
    let addresses =
        addresses.map_err(|problem| Error::invalid(format!("allowed_ips: {problem}")))?;
    Ok(Rights {
        scopes: permissions.map(pairs),
        addresses,
    })
}

/// Creates a key.
#[utoipa::path(
    post,
    path = "/org/owner/project/{nano_id}/api_keys",
    operation_id = "create_key",
    request_body = Create,
    responses((status = 201, description = "The key, in full", body = shapes::Key)),
    security(("organization" = [])),
)]
pub(crate) async fn create(
    key: OrganizationKey,
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
    Json(body): Json<Create>,
) -> ApiResult<Response> {
    let (id, rights) = (
        ProjectId::parse(&id)?,
        rights(body.permissions, body.allowed_ips)?,
    );
    let made = projects::add_key(&server.app, &key.organization, &id, &body.name, rights).await?;
    created(&view(&made, true))
}

/// Lists the keys of a project, oldest first, with the time of their last use.
#[utoipa::path(
    get,
    path = "/org/owner/project/{nano_id}/api_keys",
    operation_id = "list_keys",
    responses((status = 200, description = "The keys", body = shapes::Keys)),
    security(("organization" = [])),
)]
pub(crate) async fn list(
    key: OrganizationKey,
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
) -> ApiResult<Response> {
    let project = projects::get(&server.app, &key.organization, &ProjectId::parse(&id)?).await?;
    let keys = projects::show_keys(&server.app, project.id.as_str()).await?;
    ok(
        &json!({"items": keys.iter().map(|key| view(key, server.config.keys.reveal)).collect::<Vec<_>>()}),
    )
}

/// Deletes a key at once.
#[utoipa::path(
    delete,
    path = "/org/owner/project/{nano_id}/api_keys/{key_id}",
    operation_id = "remove_key",
    responses((status = 200, description = "It is ended", body = shapes::Deleted)),
    security(("organization" = [])),
)]
pub(crate) async fn remove(
    key: OrganizationKey,
    State(server): State<Arc<Server>>,
    Path((id, name)): Path<(String, String)>,
) -> ApiResult<Response> {
    projects::remove_key(
        &server.app,
        &key.organization,
        &ProjectId::parse(&id)?,
        &name,
    )
    .await?;
    ok(&json!({"status": "success"}))
}

/// Revokes the given keys. The response does not reveal which of them were valid.
#[utoipa::path(
    post,
    path = "/api_key_revocation",
    request_body = Revoke,
    responses((status = 200, description = "Those that worked do not any more", body = shapes::Received)),
    security(()),
)]
pub(crate) async fn revoke(
    State(server): State<Arc<Server>>,
    Json(body): Json<Revoke>,
) -> ApiResult<Response> {
    if !(1..=REVOKED).contains(&body.api_keys.len()) {
        return Err(Error::invalid(format!("api_keys: must be 1 to {REVOKED} keys")).into());
    }
    for secret in &body.api_keys {
        auth::revoke(&server, secret).await?;
    }
    ok(&json!({"received": true}))
}

/// Returns a key with its restrictions; with its secret if `reveal` is set.
pub(super) fn view(key: &ShownKey, reveal: bool) -> Value {
    let masked = || format!("{}...", key.secret.chars().take(4).collect::<String>());
    let permissions = key.rights.scopes.as_ref().map(|scopes| {
        scopes
            .iter()
            .map(|(preset, access)| json!({"preset": preset, "access": access}))
            .collect::<Vec<_>>()
    });
    json!({
        "id": key.id,
        "name": key.name,
        "key": if reveal { key.secret.to_string() } else { masked() },
        "permissions": permissions,
        "allowed_ips": key.rights.addresses,
        "created_at": iso(key.created_at),
        "last_used_at": key.used_at.map(iso),
    })
}
