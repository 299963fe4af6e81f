//! Trigger instances.

pub(crate) mod actions;
mod requests;
mod views;

use app::{
    core::ids::TriggerInstanceId,
    events::triggers,
    projects::permissions::{Access, Area},
};
use http::{
    ApiResult, IN_TABLE, Json, Listed, OptionalJson, Page, Path, ProjectKey, Query,
    reply::CreatedOrExisting,
};

use self::{
    requests::{Change, ListQuery, UpsertBody, WantedStatus},
    views::{ChangedView, PolledView, RemovedView, UpsertedView, View},
};

/// Creates an instance (201), or enables the one with an equal configuration (200).
#[utoipa::path(post, path = IN_TABLE, responses(
    (status = 410, description = "The account is deleted"),
    (status = 422, description = "The account is not active, or the project has too many instances"),
))]
pub(crate) async fn upsert(
    key: ProjectKey,
    Path(slug): Path<String>,
    OptionalJson(body): OptionalJson<UpsertBody>,
) -> ApiResult<CreatedOrExisting<UpsertedView>> {
    if let Some(Some(_)) = &body.action {
        // Otherwise an action would do what the key may not.
        key.may(Access::Write, &[Area::ToolExecution])?;
    }
    let request = body.into_upsert(slug)?;
    let upserted = triggers::upsert(key.app(), &key.project, request).await?;
    Ok(CreatedOrExisting(upserted.created, upserted.into()))
}

/// Lists instances, newest first.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn list(
    key: ProjectKey,
    Query(query): Query<ListQuery>,
    page: Page,
) -> ApiResult<Json<Listed<View>>> {
    let page = query.page(page);
    let filter = query.into_filter(page.as_of()?);
    let found = triggers::list(key.app(), &key.project, &filter, page.window(false)?).await?;
    let newest = found.items.first();
    let page = page.with_newest(newest.map(|newest| newest.record.created_at));
    Ok(Json(Listed::after(found, &page)))
}

/// Enables or disables an instance.
#[utoipa::path(patch, path = IN_TABLE, responses(
    (status = 409, description = "The instance is in this state already"),
    (status = 410, description = "The instance is deleted"),
    (status = 422, description = "The account is not active"),
))]
pub(crate) async fn change(
    key: ProjectKey,
    Path(id): Path<TriggerInstanceId>,
    Json(body): Json<Change>,
) -> ApiResult<Json<ChangedView>> {
    let enabled = body.status.map(|status| status == WantedStatus::Enable);
    let user = body.user_id.as_deref();
    triggers::set_enabled(key.app(), &key.project, &id, user, enabled).await?;
    Ok(Json(ChangedView::SUCCESS))
}

/// Polls an instance now, to try out its configuration.
#[utoipa::path(post, path = IN_TABLE, responses(
    (status = 409, description = "The instance is disabled, or is being polled"),
    (status = 410, description = "The instance is deleted"),
))]
pub(crate) async fn poll(
    key: ProjectKey,
    Path(id): Path<TriggerInstanceId>,
) -> ApiResult<Json<PolledView>> {
    let polled = triggers::poll_now(key.app(), &key.project, &id).await?;
    Ok(Json(polled.into()))
}

/// Deletes an instance and erases its configuration.
#[utoipa::path(delete, path = IN_TABLE, responses(
    (status = 410, description = "The instance is deleted already"),
))]
pub(crate) async fn remove(
    key: ProjectKey,
    Path(id): Path<TriggerInstanceId>,
) -> ApiResult<Json<RemovedView>> {
    triggers::remove(key.app(), &key.project, &id).await?;
    Ok(Json(RemovedView::new(&id)))
}
