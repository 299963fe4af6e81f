//! Webhook subscriptions.

pub(crate) mod deliveries;
mod types;

use app::{
    core::ids::SubscriptionId,
    events::{
        event::EventKind,
        subscriptions::{self, Opened},
    },
};

use self::types::{Create, EventTypeView, EventTypes, SecretView, Update, View};
pub(crate) use self::{
    deliveries::{DetailView as DeliveryDetail, Status as DeliveryStatus},
    types::Version,
};
use http::{
    ApiResult, Created, IN_TABLE, Json, Listed, OptionalJson, Path, Position, ProjectKey,
    ShortPage, Success,
};

/// Creates the webhook subscription of a project.
#[utoipa::path(post, path = IN_TABLE, responses(
    (status = 409, description = "The project has a subscription already"),
))]
pub(crate) async fn create(key: ProjectKey, Json(body): Json<Create>) -> ApiResult<Created<View>> {
    let created = subscriptions::create(key.app(), &key.project, body.into()).await?;
    let word = &key.server.config.operator_word;
    Ok(Created(View::new(created, word, true)))
}

/// Lists the webhook subscriptions, at most one.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn list(
    key: ProjectKey,
    ShortPage(page): ShortPage,
) -> ApiResult<Json<Listed<View>>> {
    let found = subscriptions::list(key.app(), &key.project, page.window(false)?).await?;
    let position = Position::after(&page, found.total, found.next);
    let items = found.items.into_iter().map(|one| view(&key, one)).collect();
    Ok(Json(Listed { items, position }))
}

/// Lists the kinds of events that a subscription can have.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn event_types(key: ProjectKey) -> ApiResult<Json<EventTypes>> {
    let word = &key.server.config.operator_word;
    let items = EventKind::SUBSCRIBABLE_KINDS.map(|kind| EventTypeView::new(kind, word));
    Ok(Json(EventTypes {
        items: items.into(),
    }))
}

/// Reads a webhook subscription.
#[utoipa::path(get, path = IN_TABLE)]
pub(crate) async fn read(key: ProjectKey, Path(id): Path<SubscriptionId>) -> ApiResult<Json<View>> {
    let found = subscriptions::get(key.app(), &key.project, &id).await?;
    Ok(Json(view(&key, found)))
}

/// Changes a webhook subscription: members that are left out stay as they are.
#[utoipa::path(patch, path = IN_TABLE)]
pub(crate) async fn update(
    key: ProjectKey,
    Path(id): Path<SubscriptionId>,
    OptionalJson(body): OptionalJson<Update>,
) -> ApiResult<Json<View>> {
    let changed = subscriptions::change(key.app(), &key.project, &id, body.into()).await?;
    Ok(Json(view(&key, changed)))
}

/// Deletes a webhook subscription. No delivery starts afterwards.
#[utoipa::path(delete, path = IN_TABLE)]
pub(crate) async fn remove(
    key: ProjectKey,
    Path(id): Path<SubscriptionId>,
) -> ApiResult<Json<Success>> {
    subscriptions::remove(key.app(), &key.project, &id).await?;
    Ok(Json(Success::WITHOUT_MESSAGE))
}

/// Replaces the secret that signs messages.
#[utoipa::path(post, path = IN_TABLE)]
pub(crate) async fn rotate_secret(
    key: ProjectKey,
    Path(id): Path<SubscriptionId>,
) -> ApiResult<Json<SecretView>> {
    let rotated = subscriptions::rotate_secret(key.app(), &key.project, &id).await?;
    Ok(Json(rotated.into()))
}

fn view(key: &ProjectKey, subscription: Opened) -> View {
    let config = &key.server.config;
    View::new(subscription, &config.operator_word, config.keys.reveal)
}
