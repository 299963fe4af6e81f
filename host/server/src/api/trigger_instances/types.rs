//! Requests and views of trigger instances.

use std::collections::HashMap;

use app::{
    Time,
    catalog::{LATEST, VersionSelector},
    core::{clock::iso, ids::TriggerInstanceId},
    events::triggers::{self, Filter, InstanceView, Polled, RecentEvent, Schedule, Upserted},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use super::actions::Action;
use crate::{
    api::{
        auth_configs::types::present_or_null, tools::types::ToolkitVersions,
        webhook_subscriptions::DeliveryStatus,
    },
    http::Page,
};

/// Filters of the list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Of these accounts.
    #[serde(default)]
    #[param(explode = false)]
    connected_account_ids: Vec<String>,
    /// Of accounts of these auth configs.
    #[serde(default)]
    #[param(explode = false)]
    auth_config_ids: Vec<String>,
    /// Of these users.
    #[serde(default)]
    #[param(explode = false)]
    user_ids: Vec<String>,
    /// With these ids.
    #[serde(default)]
    #[param(explode = false)]
    trigger_ids: Vec<String>,
    /// Of these trigger types.
    #[serde(default)]
    #[param(explode = false)]
    trigger_names: Vec<String>,
    /// Disabled ones too.
    show_disabled: Option<bool>,
    /// Number of the page, from 1; a cursor takes precedence.
    page: Option<f64>,
    /// Older spelling of `connected_account_ids`.
    #[serde(default, rename = "connectedAccountIds")]
    #[param(explode = false)]
    #[deprecated]
    older_account_ids: Vec<String>,
    /// Older spelling of `auth_config_ids`.
    #[serde(default, rename = "authConfigIds")]
    #[param(explode = false)]
    #[deprecated]
    older_auth_config_ids: Vec<String>,
    /// Older spelling of `trigger_ids`.
    #[serde(default, rename = "triggerIds")]
    #[param(explode = false)]
    #[deprecated]
    older_trigger_ids: Vec<String>,
    /// Older spelling of `trigger_names`.
    #[serde(default, rename = "triggerNames")]
    #[param(explode = false)]
    #[deprecated]
    older_trigger_names: Vec<String>,
    /// Older spelling of `show_disabled`.
    #[serde(rename = "showDisabled")]
    #[deprecated]
    older_show_disabled: Option<bool>,
    /// Of the accounts with these legacy ids.
    #[serde(default, rename = "deprecatedConnectedAccountUuids")]
    #[param(explode = false)]
    #[deprecated]
    account_uuids: Vec<String>,
    /// Of accounts of the auth configs with these legacy ids.
    #[serde(default, rename = "deprecatedAuthConfigUuids")]
    #[param(explode = false)]
    #[deprecated]
    auth_config_uuids: Vec<String>,
}

impl ListQuery {
    /// Returns the requested page.
    pub(crate) fn page(&self, page: Page) -> Page {
        match self.page {
            Some(number) if page.number == 1 => Page {
                number: (number as u64).max(1),
                ..page
            },
            _ => page,
        }
    }

    /// Returns the filter for instances that were created until the given time.
    #[expect(deprecated, reason = "older clients send the older spellings")]
    pub(crate) fn into_filter(self, until: Option<Time>) -> Filter {
        let or = |given: Vec<String>, older| if given.is_empty() { older } else { given };
        let disabled = self.show_disabled.or(self.older_show_disabled);
        Filter {
            ids: or(self.trigger_ids, self.older_trigger_ids),
            triggers: or(self.trigger_names, self.older_trigger_names),
            accounts: or(self.connected_account_ids, self.older_account_ids),
            account_uuids: self.account_uuids,
            auth_configs: or(self.auth_config_ids, self.older_auth_config_ids),
            auth_config_uuids: self.auth_config_uuids,
            users: self.user_ids,
            disabled: disabled.unwrap_or(false),
            until,
        }
    }
}

#[derive(Default, Deserialize, ToSchema)]
#[schema(as = UpsertTriggerInstance)]
pub(crate) struct UpsertBody {
    /// The account of the trigger; without it, the newest active account of the user.
    connected_account_id: Option<String>,
    /// Older spelling of `connected_account_id`.
    #[serde(rename = "connectedAuthId")]
    older_account_id: Option<String>,
    pub user_id: Option<String>,
    trigger_config: Option<Map<String, Value>>,
    /// Older spelling of `trigger_config`.
    #[serde(rename = "triggerConfig")]
    older_config: Option<Map<String, Value>>,
    /// A version or `latest` for every toolkit, or a version for each toolkit.
    toolkit_versions: Option<Versions>,
    /// Older spelling of `toolkit_versions`.
    version: Option<String>,
    /// Interval between two polls; at least the default of the server.
    poll_interval_seconds: Option<u64>,
    /// Cron expression of the times of polls, instead of an interval: minute, hour, day of the
    /// month, month and day of the week.
    #[schema(example = "*/10 8-18 * * MON-FRI")]
    poll_cron: Option<String>,
    /// Time zone of the cron expression, a name of the IANA database; UTC by default.
    #[schema(example = "Europe/Paris")]
    poll_time_zone: Option<String>,
    /// Tool that runs for every event of the instance; null for none. Without this member, an
    /// existing instance keeps its own.
    #[schema(value_type = Option<Action>)]
    #[serde(default, deserialize_with = "present_or_null")]
    pub action: Option<Option<Action>>,
}

/// Version for every toolkit, or versions by toolkit.
#[derive(Deserialize, ToSchema)]
#[serde(untagged)]
#[schema(as = ToolkitVersions)]
pub(crate) enum Versions {
    All(String),
    ByToolkit(HashMap<String, String>),
}

impl UpsertBody {
    /// Returns the selection of versions.
    pub(crate) fn versions(&self) -> VersionSelector {
        match (&self.toolkit_versions, &self.version) {
            (Some(Versions::ByToolkit(versions)), _) => {
                ToolkitVersions::new(versions.clone()).selector(LATEST)
            }
            (Some(Versions::All(version)), _) | (None, Some(version)) => {
                VersionSelector::all(version)
            }
            (None, None) => VersionSelector::all(LATEST),
        }
    }

    /// Returns the id of the account.
    pub(crate) fn account(&self) -> Option<&str> {
        let given = self.connected_account_id.as_ref();
        given.or(self.older_account_id.as_ref()).map(String::as_str)
    }

    /// Returns the schedule of polls.
    pub(crate) fn schedule(&self) -> Schedule {
        Schedule {
            interval_s: self.poll_interval_seconds,
            cron: self.poll_cron.clone(),
            time_zone: self.poll_time_zone.clone(),
        }
    }

    /// Returns the configuration; empty if none is given.
    pub(crate) fn config(self) -> Map<String, Value> {
        self.trigger_config
            .or(self.older_config)
            .unwrap_or_default()
    }
}

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

#[derive(Deserialize, ToSchema)]
#[schema(as = ChangeTriggerInstance)]
pub(crate) struct Change {
    #[schema(inline)]
    pub status: WantedStatus,
    /// The user that the caller expects.
    pub user_id: Option<String>,
}

/// State that an instance is to have.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = WantedTriggerStatus)]
pub(crate) enum WantedStatus {
    Enable,
    Disable,
}

impl WantedStatus {
    pub(crate) fn is_enable(&self) -> bool {
        matches!(self, Self::Enable)
    }
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

/// Success of a deletion.
#[derive(Serialize, ToSchema)]
#[schema(as = RemovedTriggerInstance)]
pub(crate) struct RemovedView {
    trigger_id: String,
}

impl RemovedView {
    pub(crate) fn new(id: &TriggerInstanceId) -> Self {
        Self {
            trigger_id: id.to_string(),
        }
    }
}

view! {
    /// Result of a poll.
    #[schema(as = PolledTriggerInstance)]
    pub(crate) struct PolledView from polled: Polled {
        /// Number of new events.
        events: u64 = polled.events as u64,
        /// True if another poll follows at once.
        more: bool = polled.more,
        /// Error of the poll, if it failed.
        #[schema(required)]
        error: Option<String> = polled.error,
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
        #[schema(format = DateTime)]
        updated_at: String = updated_at.clone(),
        /// Time of the disabling; null if the instance is enabled.
        #[schema(required, format = DateTime)]
        disabled_at: Option<String> = disabled_at.clone(),
        /// Reason of an automatic disabling.
        #[schema(required)]
        disabled_reason: Option<DisabledReason> = instance.disabled_reason.map(DisabledReason::from),
        /// Tool that runs for every event.
        #[schema(required)]
        action: Option<Action> = view.action.map(Action::from),
        /// Interval between two polls that the instance asked for.
        #[schema(required)]
        poll_interval_seconds: Option<u64> = view.schedule.interval_s,
        /// Cron expression of the times of polls.
        #[schema(required)]
        poll_cron: Option<String> = view.schedule.cron,
        /// Time zone of the cron expression; null for UTC.
        #[schema(required)]
        poll_time_zone: Option<String> = view.schedule.time_zone,
        /// Time of the last poll.
        #[schema(required, format = DateTime)]
        last_poll_at: Option<String> = view.poll.last_poll_at.map(iso),
        /// Time of the next poll.
        #[schema(required, format = DateTime)]
        next_poll_at: Option<String> = view.poll.next_poll_at.map(iso),
        /// Error of the last poll or of the last webhook, if it failed.
        #[schema(required)]
        last_error: Option<String> = view.poll.last_error,
        /// Subscription at the provider; null if the toolkit does not subscribe for the instance.
        #[schema(required)]
        subscription: Option<SubscriptionView> = view.subscription.map(Into::into),
        /// The ten newest events, newest first.
        recent_events: Vec<RecentEventView> = view.events.into_iter().map(Into::into).collect(),
        #[serde(flatten)]
        older: OlderView = OlderView {
            connected_account_id: instance.account.to_string(),
            trigger_name: instance.trigger,
            trigger_config: view.config,
            updated_at,
            disabled_at,
        },
        deprecated: DeprecatedView = DeprecatedView {
            created_at: iso(view.record.created_at),
        },
    }
}

view! {
    /// The subscription of a trigger instance at its provider.
    #[schema(as = TriggerInstanceSubscription)]
    struct SubscriptionView from view: triggers::SubscriptionView {
        status: SubscriptionStatus = view.state.into(),
        /// Time from which the provider sends no more events, unless the subscription is renewed.
        #[schema(required, format = DateTime)]
        expires_at: Option<String> = view.expires_at.map(iso),
        /// Time at which the provider is asked next.
        #[schema(required, format = DateTime)]
        next_attempt_at: Option<String> = view.next_attempt_at.map(iso),
        /// Error of the last attempt, if it failed.
        #[schema(required)]
        last_error: Option<String> = view.last_error,
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
        #[schema(format = DateTime)]
        created_at: String = iso(event.at),
        /// Status of the delivery by webhook; null if there is none.
        #[schema(required)]
        delivery_status: Option<DeliveryStatus> = event.delivery.map(Into::into),
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

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = TriggerInstanceDeprecated)]
struct DeprecatedView {
    #[schema(format = DateTime)]
    created_at: String,
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
