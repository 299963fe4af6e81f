//! Members of the organization: the organization and its projects as a member sees them, and the
//! management of members.

mod types;

use app::{
    core::ids::{MemberId, ProjectId},
    events::subscriptions,
    projects::{
        self,
        members::{self, StoredMember},
    },
};
use http::{
    ApiResult, Created, Deleted, IN_TABLE, Json, Listed, OrganizationKey, Page, Path, ShortPage,
    UserKey, errors,
};

use self::types::{Create, CreatedView, OrganizationList, View};

/// Lists the user's organizations. There is exactly one.
#[utoipa::path(get, path = IN_TABLE, operation_id = "organisations")]
pub(crate) async fn organizations(
    key: UserKey,
    ShortPage(page): ShortPage,
) -> ApiResult<Json<OrganizationList>> {
    let found = projects::organization(key.app())
        .await?
        .filter(|found| found.id == key.organization.as_str());
    let found =
        found.ok_or_else(|| errors::internal("the organization of a key does not exist"))?;
    Ok(Json(OrganizationList::new(found, &page)))
}

/// Lists the projects of the organization, newest first. A member sees all of them.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn projects(
    key: UserKey,
    ShortPage(page): ShortPage,
) -> ApiResult<Json<crate::projects::List>> {
    let found = projects::list(key.app(), &key.organization, page.window(false)?).await?;
    let webhooks = subscriptions::of_projects(key.app(), &found.items).await?;
    Ok(Json(crate::projects::List::new(
        found, webhooks, &page, false,
    )))
}

/// Creates a member with a key, which only this response shows.
#[utoipa::path(post, path = IN_TABLE, operation_id = "create_member")]
pub(crate) async fn create(
    key: OrganizationKey,
    Json(body): Json<Create>,
) -> ApiResult<Created<CreatedView>> {
    if body.name.as_deref().map(str::trim) == Some("") {
        return Err(errors::invalid("name: must not be empty: omit it, or send a name").into());
    }
    let project = body.project_id.as_deref().map(ProjectId::parse);
    let new = StoredMember {
        email: body.email,
        name: body.name.unwrap_or_default(),
        role: body.role.into(),
        project: project.transpose()?,
    };
    let (member, secret) = members::add(key.app(), &key.organization, new).await?;
    Ok(Created(CreatedView {
        member: member.into(),
        key: secret.to_string(),
    }))
}

/// Lists the members, newest first.
#[utoipa::path(get, path = IN_TABLE, operation_id = "list_members")]
pub(crate) async fn list(key: OrganizationKey, page: Page) -> ApiResult<Json<Listed<View>>> {
    let found = members::list(key.app(), &key.organization, page.window(false)?).await?;
    Ok(Json(Listed::after(found, &page)))
}

/// Removes a member. The member's key stops working immediately.
#[utoipa::path(delete, path = IN_TABLE, operation_id = "remove_member")]
pub(crate) async fn remove(
    key: OrganizationKey,
    Path(id): Path<MemberId>,
) -> ApiResult<Json<Deleted>> {
    members::remove(key.app(), &key.organization, &id).await?;
    Ok(Json(Deleted::SUCCESS_STATUS))
}
