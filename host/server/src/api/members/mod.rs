//! Members of the organization: the organization and its projects as a member sees them, and the
//! management of members.

mod types;

use std::sync::Arc;

use app::{
    core::ids::{MemberId, ProjectId},
    projects::{
        self,
        members::{self, StoredMember},
    },
};
use axum::extract::State;

use self::types::{Create, CreatedView, OrganizationList, View};
use crate::{
    Server, api,
    http::{
        auth::{OrganizationKey, UserKey},
        error::ApiResult,
        errors,
        page::{Listed, Page, ShortPage},
        path::Path,
        reply::{Created, Deleted, Json},
        signature::IN_TABLE,
    },
};

/// Lists the user's organizations. There is exactly one.
#[utoipa::path(get, path = IN_TABLE, operation_id = "organisations")]
pub(crate) async fn organizations(
    key: UserKey,
    State(server): State<Arc<Server>>,
    ShortPage(page): ShortPage,
) -> ApiResult<Json<OrganizationList>> {
    let found = projects::organization(&server.app)
        .await?
        .filter(|found| found.id == key.organization().as_str());
    let found =
        found.ok_or_else(|| errors::internal("the organization of a key does not exist"))?;
    Ok(Json(OrganizationList::new(found, &page)))
}

/// Lists the projects of the organization, newest first. A member sees all of them.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn projects(
    key: UserKey,
    State(server): State<Arc<Server>>,
    ShortPage(page): ShortPage,
) -> ApiResult<Json<api::projects::List>> {
    let found = projects::list(&server.app, key.organization(), page.window(false)?).await?;
    Ok(Json(api::projects::List::new(found, &page)))
}

/// Creates a member with a key, which only this response shows.
#[utoipa::path(post, path = IN_TABLE, operation_id = "create_member")]
pub(crate) async fn create(
    key: OrganizationKey,
    State(server): State<Arc<Server>>,
    Json(body): Json<Create>,
) -> ApiResult<Created<CreatedView>> {
    let project = body.project_id.as_deref().map(ProjectId::parse);
    let new = StoredMember {
        email: body.email,
        name: body.name.unwrap_or_default(),
        role: body.role.into(),
        project: project.transpose()?,
    };
    let (member, secret) = members::add(&server.app, &key.organization, new).await?;
    Ok(Created(CreatedView {
        member: member.into(),
        key: secret.to_string(),
    }))
}

/// Lists the members, newest first.
#[utoipa::path(get, path = IN_TABLE, operation_id = "list_members")]
pub(crate) async fn list(
    key: OrganizationKey,
    State(server): State<Arc<Server>>,
    page: Page,
) -> ApiResult<Json<Listed<View>>> {
    let found = members::list(&server.app, &key.organization, page.window(false)?).await?;
    let items = found.items.into_iter().map(View::from).collect();
    Ok(Json(Listed::after(items, &page, found.total, found.next)))
}

/// Removes a member. The member's key stops working at once.
#[utoipa::path(delete, path = IN_TABLE, operation_id = "remove_member")]
pub(crate) async fn remove(
    key: OrganizationKey,
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
) -> ApiResult<Json<Deleted>> {
    members::remove(&server.app, &key.organization, &MemberId::parse(&id)?).await?;
    Ok(Json(Deleted::DONE))
}
