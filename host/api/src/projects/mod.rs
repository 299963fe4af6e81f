//! Projects of the organization.

mod types;

use app::{
    core::ids::ProjectId,
    events::subscriptions,
    lifecycle,
    projects::{self, NewProject},
};

use self::types::{Create, CreatedView, DetailView, RegeneratedView, RemoveQuery};
pub(crate) use self::types::{List, View};
use http::{ApiResult, Deleted, IN_TABLE, Json, OrganizationKey, Page, Path, Query};

use crate::keys;

/// Creates a project.
#[utoipa::path(post, path = IN_TABLE)]
pub(crate) async fn create(
    key: OrganizationKey,
    Json(body): Json<Create>,
) -> ApiResult<Json<CreatedView>> {
    let request = NewProject::try_from(body)?;
    let (project, added) = projects::create(key.app(), &key.organization, request).await?;
    Ok(Json(CreatedView::new(project, added)))
}

/// Lists the projects, newest first.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn list(key: OrganizationKey, page: Page) -> ApiResult<Json<List>> {
    let found = projects::list(key.app(), &key.organization, page.window(false)?).await?;
    let webhooks = subscriptions::of_projects(key.app(), &found.items).await?;
    let in_full = key.server.config.keys.reveal;
    Ok(Json(List::new(found, webhooks, &page, in_full)))
}

/// Reads a project with its keys.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn read(
    key: OrganizationKey,
    Path(id): Path<ProjectId>,
) -> ApiResult<Json<DetailView>> {
    let project = projects::get(key.app(), &key.organization, &id).await?;
    let webhook = subscriptions::of_project(key.app(), &project).await?;
    Ok(Json(DetailView {
        project: View::new(&project, webhook, key.server.config.keys.reveal),
        api_keys: keys::views(&key, &project.id).await?,
    }))
}

/// Deletes a project. Its keys stop working immediately; its credentials and files are erased.
#[utoipa::path(delete, path = IN_TABLE)]
pub(crate) async fn remove(
    key: OrganizationKey,
    Path(id): Path<ProjectId>,
    Query(query): Query<RemoveQuery>,
) -> ApiResult<Json<Deleted>> {
    let revoke = query.revoke_on_delete.unwrap_or(false);
    lifecycle::remove_project::remove(key.app(), &key.organization, &id, revoke).await?;
    Ok(Json(Deleted::SUCCESS_STATUS))
}

/// Deletes every key of a project and creates a new one.
#[utoipa::path(post, path = IN_TABLE)]
pub(crate) async fn regenerate_key(
    key: OrganizationKey,
    Path(id): Path<ProjectId>,
) -> ApiResult<Json<RegeneratedView>> {
    let added = projects::regenerate_key(key.app(), &key.organization, &id).await?;
    Ok(Json(RegeneratedView {
        api_key: keys::View::new(added, true),
        message: "all earlier keys of the project are deleted; this one is shown in full now",
    }))
}
