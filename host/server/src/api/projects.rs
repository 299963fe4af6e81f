//! Projects of the organization.

use std::sync::Arc;

use app::{
    clock::iso,
    ids::ProjectId,
    projects::{self, Config, NewProject, Project},
};
use axum::{extract::State, response::Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::{
    Server,
    api::{keys, project_config},
    http::{
        auth::OrganizationKey, error::ApiResult, path::Path, reply::Json, scaffold::RawQuery,
        scaffold::ok, scaffold::record_list,
    },
    shapes,
};

#[derive(Deserialize, ToSchema)]
#[schema(as = CreateProject)]
pub(crate) struct Create {
    name: String,
    #[serde(default)]
    should_create_api_key: Option<bool>,
    #[serde(default)]
    #[schema(value_type = Option<shapes::ProjectSettings>)]
    config: Option<project_config::Given>,
    /// Permissions of the key; all of them without it.
    #[serde(default)]
    api_key_permissions: Option<Vec<keys::Permission>>,
    /// Addresses and ranges from which the key may be used; any address without it.
    #[serde(default)]
    api_key_allowed_ips: Option<Vec<String>>,
}

/// Creates a project.
#[utoipa::path(
    post,
    path = "/org/owner/project/new",
    request_body = Create,
    responses((status = 200, description = "The project, with its key where one was asked for", body = shapes::NewProject)),
    security(("organization" = [])),
)]
pub(crate) async fn create(
    key: OrganizationKey,
    State(server): State<Arc<Server>>,
    Json(body): Json<Create>,
) -> ApiResult<Response> {
    let mut config = Config::default();
    if let Some(given) = &body.config {
        given.apply(&mut config, &server.branding)?;
    }
    let rights = keys::rights(body.api_key_permissions, body.api_key_allowed_ips)?;
    let request = NewProject {
        name: body.name,
        config,
        key: body
            .should_create_api_key
            .unwrap_or(false)
            .then_some(rights),
    };
    let (project, made) = projects::create(&server.app, &key.organization, request).await?;
    ok(&json!({
        "id": project.id,
        "name": project.stored.name,
        "api_key": made.as_ref().map(|key| key.secret.as_str()),
    }))
}

/// Lists the projects, newest first.
#[utoipa::path(
    get,
    path = "/org/owner/project/list",
    params(shapes::Paging),
    responses((status = 200, description = "A page of projects", body = shapes::Projects)),
    security(("organization" = [])),
)]
pub(crate) async fn list(
    key: OrganizationKey,
    State(server): State<Arc<Server>>,
    query: RawQuery,
) -> ApiResult<Response> {
    let page = query.page()?;
    let found = projects::list(&server.app, &key.organization, page.window(false)?).await?;
    let items = found
        .items
        .iter()
        .map(|project| Value::Object(project_fields(project)))
        .collect();
    ok(&record_list("data", items, page, found.total, found.next))
}

/// Reads a project with its keys.
#[utoipa::path(
    get,
    path = "/org/owner/project/{nano_id}",
    responses((status = 200, description = "The project", body = shapes::ProjectWithKeys)),
    security(("organization" = [])),
)]
pub(crate) async fn read(
    key: OrganizationKey,
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
) -> ApiResult<Response> {
    let project = projects::get(&server.app, &key.organization, &ProjectId::parse(&id)?).await?;
    let all = projects::show_keys(&server.app, project.id.as_str()).await?;
    let mut view = project_fields(&project);
    let keys = all
        .iter()
        .map(|key| keys::view(key, server.config.keys.reveal))
        .collect();
    view.insert("api_keys".into(), Value::Array(keys));
    ok(&view)
}

/// Deletes a project. Its keys stop working at once; its credentials and files are erased.
#[utoipa::path(
    delete,
    path = "/org/owner/project/{nano_id}",
    params(("revoke_on_delete" = Option<bool>, Query, description = "Its accounts go first, and applications are told to forget their tokens; 503 when that takes long, and the same request goes on")),
    responses((status = 200, description = "It is deleted", body = shapes::Deleted)),
    security(("organization" = [])),
)]
pub(crate) async fn remove(
    key: OrganizationKey,
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
    query: RawQuery,
) -> ApiResult<Response> {
    let revoke = query.boolean("revoke_on_delete")?.unwrap_or(false);
    projects::remove(
        &server.app,
        &key.organization,
        &ProjectId::parse(&id)?,
        revoke,
    )
    .await?;
    ok(&json!({"status": "success"}))
}

/// Deletes every key of a project and creates a new one.
#[utoipa::path(
    post,
    path = "/org/owner/project/{nano_id}/regenerate_api_key",
    responses((status = 200, description = "The new key", body = shapes::RegeneratedKey)),
    security(("organization" = [])),
)]
pub(crate) async fn regenerate_key(
    key: OrganizationKey,
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
) -> ApiResult<Response> {
    let made =
        projects::regenerate_key(&server.app, &key.organization, &ProjectId::parse(&id)?).await?;
    ok(&json!({
        "api_key": keys::view(&made, true),
        "message": "all earlier keys of the project are deleted; this one is shown in full now",
    }))
}

/// Returns the members that every view of a project has.
pub(super) fn project_fields(project: &Project) -> Map<String, Value> {
    let fields = json!({
        "id": project.id,
        "org_id": project.organization,
        "name": project.stored.name,
        "email": "",
        "created_at": iso(project.created_at),
        "updated_at": iso(project.updated_at),
        "webhook_url": null,
        "event_webhook_url": null,
        "webhook_secret": null,
        "triggers_enabled": false,
        "last_subscribed_at": null,
        "is_new_webhook": true,
        "webhook_version": "V3",
        "deleted": false,
    });
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}
