//! Events: their kinds, their records, and the versions of the messages that carry them.
//!
//! The id of an event is chosen by the one who reports it, so that an occurrence reported twice is one
//! event. Payloads are sealed in the store.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use store::{Collection, Document, Erasure, Field, Kind, Record, Time};
use strum::IntoStaticStr;
use uuid::Uuid;

use super::errors;
use crate::{
    App, Result,
    core::{
        ids::{AccountId, AuthConfigId, LogId, TriggerInstanceId},
        vault::{SealContext, Sealed, Vault},
    },
};

pub(crate) static COLLECTION: Collection = Collection {
    name: "events",
    erasure: Erasure::Project,
    fields: &[
        Field::new("trigger", Kind::Text),
        Field::new("log", Kind::Text),
    ],
};

/// Number of events that lists read at a time. Each may have a payload of some MiB.
pub(super) const EVENTS_PER_READ: u64 = 8;
/// Field of an event with its sealed payload.
const DATA_FIELD: &str = "data";

/// Kind of an event. The name on the wire carries the operator word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(const_into_str)]
pub enum EventKind {
    /// A trigger fired.
    #[strum(serialize = "trigger.message")]
    TriggerMessage,
    /// A connected account expired.
    #[strum(serialize = "connected_account.expired")]
    AccountExpired,
    /// The server disabled a trigger.
    #[strum(serialize = "trigger.disabled")]
    TriggerDisabled,
    /// The server disabled a webhook subscription. Only streams and the sink carry it.
    #[strum(serialize = "webhook_subscription.disabled")]
    SubscriptionDisabled,
}

/// Version of the messages that carry events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[strum(const_into_str)]
pub enum MessageVersion {
    /// Flat message with the payload of the trigger.
    V1,
    /// Message whose data mixes the payload with ids.
    V2,
    /// Envelope with metadata and data.
    V3,
}

impl EventKind {
    /// The kinds that webhook subscriptions may name.
    pub const SUBSCRIBABLE_KINDS: [Self; 3] = [
        Self::TriggerMessage,
        Self::AccountExpired,
        Self::TriggerDisabled,
    ];

    /// Returns the name on the wire.
    #[must_use]
    pub fn name(self, operator_word: &str) -> String {
        format!("{operator_word}.{}", self.into_str())
    }

    /// Returns the kind with this name on the wire, if webhook subscriptions may name it.
    pub(crate) fn parse(name: &str, operator_word: &str) -> Option<Self> {
        let base = name.strip_prefix(operator_word)?.strip_prefix('.')?;
        Self::SUBSCRIBABLE_KINDS
            .into_iter()
            .find(|kind| kind.into_str() == base)
    }

    /// Returns a description for developers.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            Self::TriggerMessage => "a trigger instance received an event from its provider",
            Self::AccountExpired => "a connected account expired and must be connected again",
            Self::TriggerDisabled => "the server disabled a trigger instance",
            Self::SubscriptionDisabled => "the server disabled a webhook subscription",
        }
    }

    /// Returns the versions of messages that can carry this kind.
    #[must_use]
    pub fn versions(self) -> &'static [MessageVersion] {
        match self {
            Self::TriggerMessage => &[MessageVersion::V1, MessageVersion::V2, MessageVersion::V3],
            Self::AccountExpired | Self::TriggerDisabled | Self::SubscriptionDisabled => {
                &[MessageVersion::V3]
            }
        }
    }
}

/// Relation of the action of a trigger instance to webhooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ActionMode {
    BesideWebhooks,
    InsteadOfWebhooks,
}

/// Trigger instance that an event came from.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TriggerSource {
    /// Id of the event's entry in the log of triggers.
    pub log_id: LogId,
    /// Slug of the trigger type.
    pub trigger_slug: String,
    /// Id of the trigger instance.
    pub trigger_id: TriggerInstanceId,
    /// Legacy id of the trigger instance.
    pub trigger_uuid: Uuid,
    /// Id of the account.
    pub account_id: AccountId,
    /// Legacy id of the account.
    pub account_uuid: Uuid,
    /// Id of the auth config.
    pub auth_config_id: AuthConfigId,
    /// Id of the user.
    pub user_id: String,
    /// Present if a tool runs for every event of the instance.
    #[serde(skip)]
    pub(crate) action: Option<ActionMode>,
}

/// An event before it is stored.
pub(crate) struct NewEvent {
    /// Id of the event: the same for the same occurrence.
    pub(crate) id: Uuid,
    pub(crate) kind: EventKind,
    /// Payload, as JSON.
    pub(crate) data: Bytes,
    /// Trigger instance that the event came from, if it came from one.
    pub(crate) trigger: Option<TriggerSource>,
    /// Account that the event is about, if it came from no trigger instance.
    pub(crate) account: Option<AccountId>,
}

/// An event, as stored under its id.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Event {
    pub(super) kind: EventKind,
    /// Trigger instance of the source, for lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trigger: Option<TriggerInstanceId>,
    /// Log id of the source, for reads by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    log: Option<LogId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<TriggerSource>,
    /// Account that the event is about, if it lacks a source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) account: Option<AccountId>,
    /// True if a tool runs for the event instead of a webhook.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) for_action_only: bool,
    data: Sealed<Box<RawValue>>,
}

impl Document for Event {
    const COLLECTION: &'static Collection = &COLLECTION;
}

impl NewEvent {
    /// Creates an event of this server, with a new id.
    pub(super) fn new(kind: EventKind, data: Bytes) -> Self {
        Self {
            id: Uuid::new_v4(),
            kind,
            data,
            trigger: None,
            account: None,
        }
    }

    /// Returns the instance whose action runs for the event, and the relation of the action to webhooks.
    pub(super) fn action(&self) -> Option<(&TriggerSource, ActionMode)> {
        let source = self.trigger.as_ref();
        let source = source.filter(|_| self.kind == EventKind::TriggerMessage)?;
        Some((source, source.action?))
    }

    /// Returns true if the event is not sent to webhook subscriptions.
    pub(super) fn is_for_action_only(&self) -> bool {
        let action = self.action();
        action.is_some_and(|(_, mode)| mode == ActionMode::InsteadOfWebhooks)
    }
}

impl Event {
    /// Creates the record of an event with its id. Fails if the payload is not JSON.
    pub(super) async fn seal(
        vault: &Vault,
        project: &str,
        id: &str,
        event: &NewEvent,
        now: Time,
    ) -> Result<Self> {
        let data: &RawValue = serde_json::from_slice(&event.data).map_err(|cause| {
            errors::internal(format_args!(
                "the payload of event {id} is not JSON: {cause}"
            ))
        })?;
        let key = vault.key(project, now).await?;
        let context = SealContext::new::<Self>(project, id, DATA_FIELD);
        let source = event.trigger.clone();
        Ok(Self {
            kind: event.kind,
            trigger: source.as_ref().map(|source| source.trigger_id.clone()),
            log: source.as_ref().map(|source| source.log_id.clone()),
            source,
            account: event.account.clone(),
            for_action_only: event.is_for_action_only(),
            data: key.seal_compressed(context, &data)?.cast(),
        })
    }

    /// Returns the id of the account that the event is about.
    pub(super) fn account(&self) -> Option<&AccountId> {
        let source = self.source.as_ref().map(|source| &source.account_id);
        source.or(self.account.as_ref())
    }
}

/// Returns the id of a stored event. Fails if the record is damaged.
pub(super) fn id_of(record: &Record<Event>) -> Result<Uuid> {
    let parsed = Uuid::parse_str(&record.id);
    parsed.map_err(|cause| errors::internal(format_args!("the id of event {}: {cause}", record.id)))
}

/// Decrypts the payload of an event. Fails if it cannot be decrypted.
pub(super) async fn payload(app: &App, record: &Record<Event>) -> Result<Box<RawValue>> {
    let context = SealContext::of(record, DATA_FIELD);
    let now = app.clock.now();
    app.vault.unseal(context, &record.body.data, now).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_names_carry_operator_word() {
        for kind in EventKind::SUBSCRIBABLE_KINDS {
            let name = kind.name("acme");
            assert!(name.starts_with("acme."), "{name}");
            assert_eq!(EventKind::parse(&name, "acme"), Some(kind));
            assert_eq!(EventKind::parse(&name, "service"), None);
        }
        assert_eq!(EventKind::parse("acme", "acme"), None);
    }
}
