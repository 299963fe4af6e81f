//! Members of the organization: the organization and its projects as a member sees them, and the
//! management of members.

use std::sync::Arc;

use app::{
    Error,
    clock::iso,
    ids::{MemberId, ProjectId},
    projects::{
        self,
        members::{self, Member, Role, StoredMember},
    },
};
use axum::{extract::State, response::Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::{
    Server,
    api::projects::project_fields,
    http::{
        auth::{OrganizationKey, UserKey},
        error::ApiResult,
        path::Path,
        reply::Json,
        scaffold::RawQuery,
        scaffold::created,
        scaffold::cursor_list,
        scaffold::ok,
        scaffold::record_list,
    },
    shapes,
};

/// Maximum number of items on a page.
const PAGE: u64 = 50;

#[derive(Deserialize, ToSchema)]
#[schema(as = CreateMember)]
pub(crate) struct Create {
    email: String,
    #[serde(default)]
    name: Option<String>,
    #[schema(value_type = shapes::Role)]
    role: Role,
    #[serde(default)]
    project_id: Option<String>,
}

/// Lists the user's organizations. There is exactly one.
#[utoipa::path(
    get,
    path = "/org/list",
    operation_id = "organisations",
    params(shapes::ShortPaging),
    responses((status = 200, description = "The organizations", body = shapes::Organizations)),
    security(("user" = [])),
)]
pub(crate) async fn organizations(
    key: UserKey,
    State(server): State<Arc<Server>>,
    query: RawQuery,
) -> ApiResult<Response> {
    let page = query.page_of(PAGE)?;
    let found = projects::organization(&server.app)
        .await?
        .filter(|found| found.id == key.organization().as_str());
    let found =
        found.ok_or_else(|| Error::Internal("the organization of a key does not exist".into()))?;
    let view = json!({
        "id": found.id,
        "name": found.body.name,
        "created_at": iso(found.created_at),
        "updated_at": iso(found.updated_at),
    });
    let (items, total) = page.cut(vec![view]);
    ok(&cursor_list("organizations", items, page, total))
}

/// Lists the projects of the organization, newest first. A member sees all of them.
#[utoipa::path(
    get,
    path = "/org/project/list",
    params(shapes::ShortPaging),
    responses((status = 200, description = "A page of projects", body = shapes::Projects)),
    security(("user" = [])),
)]
pub(crate) async fn projects(
    key: UserKey,
    State(server): State<Arc<Server>>,
    query: RawQuery,
) -> ApiResult<Response> {
    let page = query.page_of(PAGE)?;
    let found = projects::list(&server.app, key.organization(), page.window(false)?).await?;
    let items = found
        .items
        .iter()
        .map(|project| Value::Object(project_fields(project)))
        .collect();
    ok(&record_list("data", items, page, found.total, found.next))
}

/// Creates a member with a key, which only this response shows.
#[utoipa::path(
    post,
    path = "/org/members",
    operation_id = "create_member",
    request_body = Create,
    responses((status = 201, description = "The member, with the key in full", body = shapes::NewMember)),
    security(("organization" = [])),
)]
pub(crate) async fn create(
    key: OrganizationKey,
    State(server): State<Arc<Server>>,
    Json(body): Json<Create>,
) -> ApiResult<Response> {
    let Create {
        email,
        name,
        role,
        project_id,
    } = body;
    let project = project_id.as_deref().map(ProjectId::parse).transpose()?;
    let new = StoredMember {
        email,
        name: name.unwrap_or_default(),
        role,
        project,
    };
    let (member, secret) = members::add(&server.app, &key.organization, new).await?;
    let mut view = view(&member);
    view.insert("key".into(), secret.as_str().into());
    created(&view)
}

/// Lists the members, newest first.
#[utoipa::path(
    get,
    path = "/org/members",
    operation_id = "list_members",
    params(shapes::Paging),
    responses((status = 200, description = "A page of members", body = shapes::Listed<shapes::OrganizationMember>)),
    security(("organization" = [])),
)]
pub(crate) async fn list(
    key: OrganizationKey,
    State(server): State<Arc<Server>>,
    query: RawQuery,
) -> ApiResult<Response> {
    let page = query.page()?;
    let found = members::list(&server.app, &key.organization, page.window(false)?).await?;
    let items = found
        .items
        .iter()
        .map(|member| Value::Object(view(member)))
        .collect();
    ok(&record_list("items", items, page, found.total, found.next))
}

/// Removes a member. The member's key stops working at once.
#[utoipa::path(
    delete,
    path = "/org/members/{member_id}",
    operation_id = "remove_member",
    responses((status = 200, description = "The person is removed", body = shapes::Deleted)),
    security(("organization" = [])),
)]
pub(crate) async fn remove(
    key: OrganizationKey,
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
) -> ApiResult<Response> {
    members::remove(&server.app, &key.organization, &MemberId::parse(&id)?).await?;
    ok(&json!({"status": "success"}))
}

/// Returns a member as every response shows it.
fn view(member: &Member) -> Map<String, Value> {
    let Member {
        id,
        stored,
        created_at,
        ..
    } = member;
    [
        ("id", json!(id)),
        ("email", json!(stored.email)),
        ("name", json!(stored.name)),
        ("role", json!(stored.role.as_str())),
        ("project_id", json!(stored.project)),
        ("created_at", json!(iso(*created_at))),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into_iter()
    .collect()
}
