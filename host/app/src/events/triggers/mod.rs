//! Trigger instances: trigger types that a project configured for accounts of its users.
//!
//! An instance is identified by its trigger type, its account and its configuration, so that a
//! repeated request finds it instead of creating another. The record of an instance holds what
//! lists filter by. Its configuration and its progress are a second record ([`progress`]), which is
//! erased when the instance is deleted. Both are written in one batch that depends on the account,
//! so that no instance is created for an account being deleted.

pub mod actions;
mod change;
mod config;
mod disabling;
mod list;
mod poll_now;
pub(crate) mod polling;
pub(crate) mod progress;
pub(crate) mod receiving;
mod recent;
mod reception;
mod schedule;
mod seen;
mod source;
pub(crate) mod subscribing;
mod upsert;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use store::{Collection, Document, Erasure, Field, Kind, Query, Record, Time};
use uuid::Uuid;

pub(super) use self::receiving::{Answer, Receiver, receivers};
pub(crate) use self::{change::remove_of_account, reception::Receptions};
pub use self::{
    change::{remove, set_enabled},
    list::{Filter, InstanceView, list},
    poll_now::poll_now,
    polling::{MAX_EVENTS, MAX_ROUNDS, POLL_SHARES, Polled},
    progress::MAX_MEMORY_BYTES,
    recent::{MAX_RECENT_EVENTS, RecentEvent},
    schedule::{MAX_CRON_CHARS, Schedule},
    seen::MAX_SEEN_EVENTS,
    subscribing::{
        MAX_UNSUBSCRIBE_ATTEMPTS, SUBSCRIPTION_SHARES, SubscriptionState, SubscriptionView,
    },
    upsert::{MAX_CONFIG_BYTES, Upsert, Upserted, upsert},
};
use crate::{
    App, Result,
    core::{
        clock::time_after,
        ids::{AccountId, AuthConfigId, EndpointId, TriggerInstanceId},
        vault::{SealContext, Sealed},
    },
    events::{errors, event::ActionMode},
    projects::Project,
};

pub(crate) static COLLECTION: Collection = Collection {
    name: "trigger_instances",
    erasure: Erasure::HidingProject,
    fields: &[
        Field::new("trigger", Kind::Text),
        Field::new("account", Kind::Text),
        Field::new("account_uuid", Kind::Text),
        Field::new("auth_config", Kind::Text),
        Field::new("auth_config_uuid", Kind::Text),
        Field::new("user_id", Kind::Text),
        Field::new("disabled_at", Kind::Time),
        Field::unique("uuid", Kind::Text),
        Field::unique("identity", Kind::Text),
    ],
};

/// Maximum length of a stored error, in characters.
const MAX_ERROR_CHARS: usize = 1_000;

/// Seals the start of an error.
async fn seal_error(app: &App, context: SealContext<'_>, error: &str) -> Result<Sealed<String>> {
    let error = error.chars().take(MAX_ERROR_CHARS).collect();
    app.vault.seal(context, &error, app.clock.now()).await
}

/// Settings of trigger instances.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Default interval between two polls of an instance, and the shortest one.
    pub poll_interval: Duration,
    /// Number of instances that a project may have.
    pub max_instances: u64,
    /// Time of nothing but failures after which an instance is disabled, or `None` if it never is.
    pub disable_after: Option<Duration>,
    /// Number of actions that a project may have pending.
    pub max_pending_actions: u64,
}

impl Settings {
    /// Returns true if an instance that has failed since a time is to be disabled.
    pub(super) fn disables(&self, failing_since: Time, now: Time) -> bool {
        let after = self.disable_after;
        after.is_some_and(|after| time_after(failing_since, after) <= now)
    }
}

/// A trigger instance, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Instance {
    /// Slug of the trigger type, in upper case.
    pub trigger: String,
    /// Slug of the toolkit.
    pub toolkit: String,
    /// Version of the toolkit that the instance runs.
    pub version: String,
    /// User of the account.
    pub user_id: String,
    /// Account that the trigger uses.
    pub account: AccountId,
    /// Legacy id of the account.
    pub account_uuid: Uuid,
    /// Auth config of the account.
    pub auth_config: AuthConfigId,
    /// Legacy id of the auth config.
    auth_config_uuid: Uuid,
    /// Legacy id, for older clients.
    pub uuid: Uuid,
    /// Keyed hash of trigger type, account and configuration.
    identity: String,
    /// Present if a tool runs for every event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    action: Option<ActionMode>,
    /// Address of its own, at which a provider sends events to which the toolkit has subscribed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subscription: Option<EndpointId>,
    /// Time of the disabling. `None` while the instance is enabled.
    #[serde(default)]
    pub disabled_at: Option<Time>,
    /// Reason of the disabling, unless the project disabled the instance.
    #[serde(default)]
    pub disabled_reason: Option<DisabledReason>,
    /// Time of the last change by a request or by an automatic disabling.
    pub changed_at: Time,
}

impl Document for Instance {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// Reason of an automatic disabling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DisabledReason {
    /// The account is not active. The instance is enabled again when the account is.
    ConnectionExpired,
    /// Polls have failed for too long.
    PollingFailure,
    /// The account may not subscribe at the provider.
    SubscriptionAuthFailure,
    /// Subscribing at the provider, or renewing the subscription, has failed for good.
    SubscriptionRefreshFailure,
}

impl DisabledReason {
    /// Returns the name on the wire.
    fn name(self, operator_word: &str) -> String {
        match self {
            Self::ConnectionExpired => "connection_expired".to_owned(),
            Self::SubscriptionAuthFailure => "subscription_auth_failure".to_owned(),
            Self::SubscriptionRefreshFailure => "subscription_refresh_failure".to_owned(),
            Self::PollingFailure => format!("polling_failure_in_{operator_word}_infra"),
        }
    }
}

impl Instance {
    fn disable(&mut self, reason: Option<DisabledReason>, now: Time) {
        (self.disabled_at, self.disabled_reason) = (Some(now), reason);
        self.changed_at = now;
    }

    fn enable(&mut self, now: Time) {
        (self.disabled_at, self.disabled_reason) = (None, None);
        self.changed_at = now;
    }

    /// Returns true unless the instance is disabled.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.disabled_at.is_none()
    }

    /// Returns true if the instance is disabled because its account was not active.
    fn waits_for_account(&self) -> bool {
        self.disabled_reason == Some(DisabledReason::ConnectionExpired)
    }
}

/// Returns an instance of the project. Fails if the instance does not exist or is deleted.
async fn record(app: &App, project: &Project, id: &TriggerInstanceId) -> Result<Record<Instance>> {
    let owner = project.id.as_str();
    if let Some(found) = app.store.get(owner, id.as_str()).await? {
        return Ok(found);
    }
    let query = Query::for_project(owner).is("id", id.as_str());
    let deleted = app.store.first::<Instance>(query.with_deleted()).await?;
    Err(if deleted.is_none() {
        errors::instance_not_found(id)
    } else {
        errors::instance_deleted(id)
    })
}
