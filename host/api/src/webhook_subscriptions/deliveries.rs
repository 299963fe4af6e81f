//! Deliveries of a webhook subscription: what was sent, what failed, and sending it again.

use app::{
    Time,
    core::{
        clock::{iso, parse_iso},
        ids::{DeliveryId, SubscriptionId},
    },
    events::{
        delivery::{self, Attempt, DeliveryStatus, DeliveryView, ReplayRange},
        message_id, send_test_event,
    },
};
use http::{
    ApiResult, Created, IN_TABLE, Json, Listed, OptionalJson, Page, Path, Position, ProjectKey,
    Query, members::present,
};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

/// Filter of the list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Of this status.
    #[serde(default, deserialize_with = "present")]
    #[param(inline)]
    status: Option<Status>,
}

mirror! {
    /// Status of a delivery: `pending` while an attempt is due, `failed` when no attempt follows.
    #[serde(rename_all = "snake_case")]
    #[schema(as = WebhookDeliveryStatus)]
    pub(crate) enum Status of DeliveryStatus {
        Pending,
        Delivered,
        Failed,
    }
}

view! {
    /// A delivery of an event to the endpoint of a subscription.
    #[schema(as = WebhookDelivery)]
    pub(crate) struct View from (shown: DeliveryView, operator_word: &str) where {
        let DeliveryView { record, url } = shown;
        let next_attempt_at = record.body.next_attempt_at();
        let delivery = record.body;
    } {
        id: String = record.id,
        /// Id of the message, the same in every attempt.
        message_id: String = message_id(&delivery.event.to_string()),
        event_type: String = delivery.kind.name(operator_word),
        status: Status = delivery.status.into(),
        /// URL that gets the event instead of the endpoint of the subscription.
        webhook_url?: Option<String> = url,
        /// Attempts since the delivery was created or replayed.
        attempt_count: u32 = delivery.attempt_count,
        #[schema(format = DateTime)] next_attempt_at!: Option<String> = next_attempt_at.map(iso),
        /// Reason why no attempt follows; null unless the delivery failed.
        failure!: Option<String> = delivery.failure,
        #[schema(format = DateTime)] created_at: String = iso(record.created_at),
        #[schema(format = DateTime)] updated_at: String = iso(record.updated_at),
    }
}

view! {
    /// A delivery with its newest attempts, oldest first.
    #[schema(as = WebhookDeliveryWithAttempts)]
    pub(crate) struct DetailView from (
        delivery: DeliveryView,
        attempts: Vec<Attempt>,
        operator_word: &str,
    ) {
        #[serde(flatten)] delivery: View = View::new(delivery, operator_word),
        attempts: Vec<AttemptView> = attempts.into_iter().map(Into::into).collect(),
    }
}

view! {
    #[schema(as = WebhookAttempt)]
    struct AttemptView from attempt: Attempt {
        #[schema(format = DateTime)] at: String = iso(attempt.at),
        duration_ms: u64 = attempt.duration_ms,
        /// Status of the response; null without a response.
        status!: Option<u16> = attempt.status,
        /// Reason why there was no response.
        error!: Option<String> = attempt.error,
        /// Beginning of the response body.
        response!: Option<String> = attempt.response,
    }
}

/// A test event.
#[derive(Deserialize, ToSchema)]
#[schema(as = TestWebhook)]
pub(crate) struct Test {
    /// Payload of the event; `{"test": true}` without it.
    data: Option<Map<String, Value>>,
}

/// Destination of an event to send again.
#[derive(Default, Deserialize, ToSchema)]
#[schema(as = ReplayWebhook)]
pub(crate) struct ReplayOne {
    /// https URL that gets the event; the endpoint of the subscription without it.
    webhook_url: Option<String>,
}

/// Events that are to be sent again.
#[derive(Deserialize, ToSchema)]
#[schema(as = ReplayWebhooks)]
pub(crate) struct Replay {
    /// Time of the first event, in ISO 8601; that of the oldest event without it.
    #[serde(default, deserialize_with = "time")]
    #[schema(value_type = Option<String>)]
    since: Option<Time>,
    /// Time before which the last event happened, in ISO 8601; that of the request without it.
    #[serde(default, deserialize_with = "time")]
    #[schema(value_type = Option<String>)]
    until: Option<Time>,
    /// True to replay events that were delivered, too.
    #[serde(default)]
    include_delivered: bool,
    /// https URL that gets the events; the endpoint of the subscription without it.
    webhook_url: Option<String>,
}

/// Number of events that are sent again.
#[derive(Serialize, ToSchema)]
#[schema(as = ReplayedWebhooks)]
pub(crate) struct Replayed {
    replayed: u64,
}

/// Lists the deliveries of a subscription, newest first.
#[utoipa::path(get, path = IN_TABLE, operation_id = "list_deliveries")]
pub(crate) async fn list(
    key: ProjectKey,
    Path(id): Path<SubscriptionId>,
    Query(query): Query<ListQuery>,
    page: Page,
) -> ApiResult<Json<Listed<View>>> {
    let status = query.status.map(Into::into);
    let window = page.window(false)?;
    let found = delivery::list(key.app(), &key.project, &id, status, window).await?;
    let position = Position::after(&page, found.total, found.next);
    let items = found.items.into_iter().map(|one| view(&key, one)).collect();
    Ok(Json(Listed { items, position }))
}

/// Reads a delivery with its attempts.
#[utoipa::path(get, path = IN_TABLE, operation_id = "read_delivery")]
pub(crate) async fn read(
    key: ProjectKey,
    Path((id, delivery_id)): Path<(SubscriptionId, DeliveryId)>,
) -> ApiResult<Json<DetailView>> {
    let (record, attempts) = delivery::get(key.app(), &key.project, &id, &delivery_id).await?;
    let word = &key.server.config.operator_word;
    Ok(Json(DetailView::new(record, attempts, word)))
}

/// Sends the event of a delivery again.
#[utoipa::path(post, path = IN_TABLE, operation_id = "replay_delivery", responses(
    (status = 409, description = "The delivery has not ended, so that it cannot go to another URL"),
))]
pub(crate) async fn replay(
    key: ProjectKey,
    Path((id, delivery_id)): Path<(SubscriptionId, DeliveryId)>,
    OptionalJson(body): OptionalJson<ReplayOne>,
) -> ApiResult<Json<View>> {
    let url = body.webhook_url.as_deref();
    let replayed = delivery::replay(key.app(), &key.project, &id, &delivery_id, url).await?;
    Ok(Json(view(&key, replayed)))
}

/// Sends the events of a time range again that the endpoint has not acknowledged.
///
/// These are the events whose delivery failed, and those without a delivery because the
/// subscription did not exist, did not want them, or was disabled.
#[utoipa::path(post, path = IN_TABLE, operation_id = "replay_deliveries")]
pub(crate) async fn replay_range(
    key: ProjectKey,
    Path(id): Path<SubscriptionId>,
    Json(body): Json<Replay>,
) -> ApiResult<Json<Replayed>> {
    let range = ReplayRange {
        since: body.since,
        until: body.until,
        delivered: body.include_delivered,
        url: body.webhook_url,
    };
    let replayed = delivery::replay_range(key.app(), &key.project, &id, range).await?;
    Ok(Json(Replayed { replayed }))
}

/// Sends a test event to the endpoint of a subscription.
///
/// The event looks like that of a trigger. It is sent even if the subscription has no events of
/// triggers.
#[utoipa::path(post, path = IN_TABLE)]
pub(crate) async fn send_test(
    key: ProjectKey,
    Path(id): Path<SubscriptionId>,
    OptionalJson(body): OptionalJson<Test>,
) -> ApiResult<Created<View>> {
    let payload = body.data.map(|members| Value::Object(members).to_string());
    let payload = payload.map(Into::into);
    let record = send_test_event(key.app(), &key.project, &id, payload).await?;
    Ok(Created(view(&key, record)))
}

fn view(key: &ProjectKey, shown: DeliveryView) -> View {
    View::new(shown, &key.server.config.operator_word)
}

/// Deserializes a time in ISO 8601, which may be absent.
fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Time>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    let time =
        text.map(|text| parse_iso(&text).ok_or_else(|| D::Error::custom("not a time in ISO 8601")));
    time.transpose()
}
