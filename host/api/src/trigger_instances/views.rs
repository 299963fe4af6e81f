//! Views of trigger instances.

use app::{
    Time,
    core::{clock::iso, ids::TriggerInstanceId},
    events::triggers::{self, InstanceView, Polled, RecentEvent, Upserted},
};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::actions::Action;
use crate::webhook_subscriptions::DeliveryStatus;

view! {
    /// The created or existing instance.
    #[schema(as = UpsertedTriggerInstance)]
    pub(crate) struct UpsertedView from upserted: Upserted {
        trigger_id: String = upserted.id,
        deprecated: LegacyId = LegacyId { uuid: upserted.uuid.to_string() },
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = TriggerInstanceUuid)]
struct LegacyId {
    uuid: String,
}

/// Success of a change.
#[derive(Serialize, ToSchema)]
#[schema(as = ChangedTriggerInstance)]
pub(crate) struct ChangedView {
    /// Always `success`.
    status: &'static str,
}

impl ChangedView {
    pub(crate) const SUCCESS: Self = Self { status: "success" };
}

view! {
    /// Success of a deletion.
    #[schema(as = RemovedTriggerInstance)]
    pub(crate) struct RemovedView from (id: &TriggerInstanceId) {
        trigger_id: String = id.to_string(),
    }
}

view! {
    /// Result of a poll.
    #[schema(as = PolledTriggerInstance)]
    pub(crate) struct PolledView from polled: Polled {
        /// Number of new events.
        events: u64 = polled.events as u64,
        /// True if another poll follows immediately.
        more: bool = polled.more,
        /// Error of the poll, if it failed.
        error!: Option<String> = polled.error,
    }
}

view! {
    /// A trigger instance.
    #[schema(as = TriggerInstance)]
    pub(crate) struct View from view: InstanceView where {
        let instance = view.record.body;
        let updated_at = iso(instance.changed_at);
        let disabled_at = instance.disabled_at.map(iso);
    } {
        id: String = view.record.id,
        uuid: String = instance.uuid.to_string(),
        trigger_name: String = instance.trigger.clone(),
        version: String = instance.version,
        user_id: String = instance.user_id,
        connected_account_id: String = instance.account.to_string(),
        connected_account_uuid: String = instance.account_uuid.to_string(),
        trigger_config: Map<String, Value> = view.config.clone(),
        /// Always empty.
        trigger_data: &'static str = "",
        /// Always empty.
        state: Map<String, Value> = Map::new(),
        #[schema(format = DateTime)] updated_at: String = updated_at.clone(),
        /// Time of the disabling; null if the instance is enabled.
        #[schema(format = DateTime)] disabled_at!: Option<String> = disabled_at.clone(),
        /// Reason of an automatic disabling.
        disabled_reason!: Option<DisabledReason> = instance.disabled_reason.map(DisabledReason::from),
        /// Tool that runs for every event.
        action!: Option<Action> = view.action.map(Action::from),
        /// Interval between two polls that the instance asked for.
        poll_interval_seconds!: Option<u64> = view.schedule.interval_s,
        /// Cron expression of the times of polls.
        poll_cron!: Option<String> = view.schedule.cron,
        /// Time zone of the cron expression; null for UTC.
        poll_time_zone!: Option<String> = view.schedule.time_zone,
        /// Time of the last poll.
        #[schema(format = DateTime)]
        last_poll_at!: Option<String> = view.poll.last_poll_at.map(iso),
        /// Time of the next poll.
        #[schema(format = DateTime)]
        next_poll_at!: Option<String> = view.poll.next_poll_at.map(iso),
        /// Error of the last poll or of the last webhook, if it failed.
        last_error!: Option<String> = view.poll.last_error,
        /// Subscription at the provider; null if the toolkit does not subscribe for the instance.
        subscription!: Option<SubscriptionView> = view.subscription.map(Into::into),
        /// The ten newest events, newest first.
        recent_events: Vec<RecentEventView> = view.events.into_iter().map(Into::into).collect(),
        #[serde(flatten)] older: OlderView = OlderView {
            connected_account_id: instance.account.to_string(),
            trigger_name: instance.trigger,
            trigger_config: view.config,
            updated_at,
            disabled_at,
        },
        deprecated: DeprecatedView = view.record.created_at.into(),
    }
}

view! {
    /// The subscription of a trigger instance at its provider.
    #[schema(as = TriggerInstanceSubscription)]
    struct SubscriptionView from view: triggers::SubscriptionView {
        status: SubscriptionStatus = view.state.into(),
        /// Time from which the provider sends no more events, unless the subscription is renewed.
        #[schema(format = DateTime)] expires_at!: Option<String> = view.expires_at.map(iso),
        /// Time at which the provider is asked next.
        #[schema(format = DateTime)]
        next_attempt_at!: Option<String> = view.next_attempt_at.map(iso),
        /// Error of the last attempt, if it failed.
        last_error!: Option<String> = view.last_error,
    }
}

mirror! {
    /// State of a subscription at a provider.
    #[serde(rename_all = "snake_case")]
    #[schema(as = TriggerInstanceSubscriptionStatus)]
    enum SubscriptionStatus of triggers::SubscriptionState {
        /// The provider is being asked to send events.
        Pending,
        /// The provider sends events.
        Subscribed,
        /// The provider could not be asked, or has refused.
        Failed,
        /// The provider is being asked to send no more events.
        Unsubscribing,
        /// The provider sends no events.
        Unsubscribed,
    }
}

view! {
    #[schema(as = TriggerInstanceEvent)]
    struct RecentEventView from event: RecentEvent {
        /// Id of the message.
        id: String = event.message_id,
        #[schema(format = DateTime)] created_at: String = iso(event.at),
        /// Status of the delivery by webhook; null without a delivery.
        delivery_status!: Option<DeliveryStatus> = event.delivery.map(Into::into),
    }
}

/// Older spellings of members.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OlderTriggerInstance)]
struct OlderView {
    connected_account_id: String,
    trigger_name: String,
    trigger_config: Map<String, Value>,
    #[schema(format = DateTime)]
    updated_at: String,
    #[schema(required, format = DateTime)]
    disabled_at: Option<String>,
}

view! {
    #[serde(rename_all = "camelCase")]
    #[schema(as = TriggerInstanceDeprecated)]
    struct DeprecatedView from created_at: Time {
        #[schema(format = DateTime)] created_at: String = iso(created_at),
    }
}

mirror! {
    /// Reason of an automatic disabling.
    #[serde(rename_all = "snake_case")]
    #[schema(as = TriggerDisabledReason)]
    enum DisabledReason of triggers::DisabledReason {
        ConnectionExpired,
        #[serde(rename = "polling_failure_in_service_infra")]
        PollingFailure,
        SubscriptionAuthFailure,
        SubscriptionRefreshFailure,
    }
}
