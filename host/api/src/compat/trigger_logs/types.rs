//! The search in the log of triggers and the entries that it finds, in the format of older clients.

use app::{
    Time,
    core::clock::iso,
    events::{
        delivery::{Attempt, DeliveryView},
        trigger_log::{Entry, Outcome},
    },
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::webhook_subscriptions::DeliveryDetail;

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SearchTriggerLogs)]
pub(crate) struct Search {
    /// Period that ends now.
    pub time: Option<Period>,
    /// Time of the oldest event, in milliseconds since 1970; takes precedence over `time`.
    pub from: Option<f64>,
    /// Time of the newest event, in milliseconds since 1970.
    pub to: Option<f64>,
    pub status: Option<WantedStatus>,
    /// Part of the trigger's name or of an id, in any case.
    pub search: Option<String>,
    /// Legacy id of an auth config.
    #[serde(rename = "integrationId")]
    pub integration_id: Option<String>,
    /// Older name of `userId`.
    #[serde(rename = "entityId")]
    pub entity_id: Option<String>,
    #[serde(rename = "userId")]
    pub user_id: Option<String>,
    pub limit: Option<f64>,
    pub cursor: Option<String>,
    pub search_params: Option<Vec<ConditionBody>>,
    /// False to leave payloads out.
    pub include_payload: Option<bool>,
}

/// A condition on one field.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TriggerLogCondition)]
pub(crate) struct ConditionBody {
    /// `triggerName`, `triggerId`, `connectionId`, `entityId` or `id`.
    pub field: Option<String>,
    /// `contains`, the only one.
    pub operation: Option<String>,
    pub value: Option<String>,
}

/// Period of the log that ends now.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[schema(as = TriggerLogPeriod)]
pub(crate) enum Period {
    #[serde(rename = "5m")]
    FiveMinutes,
    #[serde(rename = "30m")]
    HalfHour,
    #[serde(rename = "6h")]
    SixHours,
    #[serde(rename = "1d")]
    Day,
    #[serde(rename = "1w")]
    Week,
    #[serde(rename = "1month")]
    Month,
    #[serde(rename = "1y")]
    Year,
}

impl Period {
    /// Returns the start of the period.
    pub(crate) fn since(self, now: Time) -> Time {
        const MINUTE_MS: i64 = 60_000;
        const DAY_MS: i64 = 24 * 60 * MINUTE_MS;
        let length = match self {
            Self::FiveMinutes => 5 * MINUTE_MS,
            Self::HalfHour => 30 * MINUTE_MS,
            Self::SixHours => 360 * MINUTE_MS,
            Self::Day => DAY_MS,
            Self::Week => 7 * DAY_MS,
            Self::Month => 30 * DAY_MS,
            Self::Year => 365 * DAY_MS,
        };
        Time(now.0.saturating_sub(length))
    }
}

#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = WantedTriggerLogStatus)]
pub(crate) enum WantedStatus {
    All,
    Success,
    Error,
}

/// A page of the log of triggers.
#[derive(Serialize, ToSchema)]
#[schema(as = TriggerLogs)]
pub(crate) struct ListView {
    pub data: Vec<View>,
    /// Cursor of the next page; null on the last one. A page may have fewer entries than asked for.
    #[serde(rename = "nextCursor")]
    #[schema(required)]
    pub next_cursor: Option<String>,
}

/// An entry of the log of triggers.
#[derive(Serialize, ToSchema)]
#[schema(as = TriggerLogDetail)]
pub(crate) struct DetailView {
    pub log: View,
}

view! {
    /// An event of a trigger, with its deliveries.
    #[serde(rename_all = "camelCase")]
    #[schema(as = TriggerLogEntry)]
    pub(crate) struct View from (entry: Entry, operator_word: &str) where {
        let meta = Meta::new(&entry);
        let status = entry.outcome();
    } {
        id: String = entry.id.to_string(),
        /// Id of the connected account.
        connection_id: String = entry.source.account_id.to_string(),
        /// Id of the project.
        client_id: String = entry.project,
        entity_id: String = entry.source.user_id,
        /// `error` if a delivery has failed, `pending` while one is open, `success` otherwise.
        status: &'static str = match status {
            Outcome::Success => "success",
            Outcome::Error => "error",
            Outcome::Pending => "pending",
        },
        /// Slug of the toolkit.
        app_name: String = entry.toolkit,
        #[schema(format = DateTime)] created_at: String = iso(entry.created_at),
        r#type: &'static str = "trigger",
        meta: Meta = meta,
        deliveries: Vec<DeliveryDetail> = entry
            .deliveries
            .into_iter()
            .map(|(delivery, attempts)| DeliveryDetail::new(delivery, attempts, operator_word))
            .collect(),
    }
}

view! {
    #[serde(rename_all = "camelCase")]
    #[schema(as = TriggerLogMeta)]
    struct Meta from (entry: &Entry) where {
        let last = last_attempt(&entry.deliveries);
        let failure = entry.deliveries.iter().find_map(|(delivery, _)| delivery.record.body.failure.clone());
        let changes = entry.deliveries.iter().map(|(delivery, _)| delivery.record.updated_at);
        let payload = entry.payload.as_ref().map(|payload| payload.get().to_owned());
    } {
        /// Id of the message.
        id: String = entry.message_id.clone(),
        r#type: &'static str = "trigger",
        #[schema(format = DateTime)] created_at: String = iso(entry.created_at),
        #[schema(format = DateTime)]
        updated_at: String = iso(changes.max().unwrap_or(entry.created_at)),
        provider: String = entry.toolkit.clone(),
        client_id: String = entry.project.clone(),
        connection_id: String = entry.source.account_id.to_string(),
        /// Payload of the event as JSON.
        trigger_provider_payload?: Option<String> = payload.clone(),
        /// Payload that messages carry, as JSON.
        trigger_client_payload?: Option<String> = payload,
        /// Error of the last attempt of a delivery, or the reason of its failure.
        trigger_client_error?: Option<String> =
            last.and_then(|attempt| attempt.error.clone()).or(failure),
        trigger_name: String = entry.source.trigger_slug.clone(),
        /// Beginning of the response to the last attempt.
        trigger_client_response?: Option<String> = last.and_then(|attempt| attempt.response.clone()),
        /// Legacy id of the trigger instance.
        trigger_id: String = entry.source.trigger_uuid.to_string(),
        trigger_nano_id: String = entry.source.trigger_id.to_string(),
    }
}

fn last_attempt(deliveries: &[(DeliveryView, Vec<Attempt>)]) -> Option<&Attempt> {
    let attempts = deliveries.iter().flat_map(|(_, attempts)| attempts);
    attempts.max_by_key(|attempt| attempt.at)
}
