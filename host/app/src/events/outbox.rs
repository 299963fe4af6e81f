//! Events that wait to be delivered: they are stored in the batch of their cause.
//!
//! An event exists if and only if its cause does, and its deliveries exist with it. The id of an
//! event is chosen by the caller and the ids of its deliveries follow from it, so that an
//! occurrence reported twice is one event. Payloads are sealed in the store.

use std::collections::HashSet;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use store::{Batch, Collection, Document, Erasure, Field, Kind, Query, Record, Store, Time};
use uuid::Uuid;

use super::{
    delivery::Delivery,
    errors,
    event::EventKind,
    ordering::Lanes,
    sink::Sink,
    subscriptions::Subscription,
    triggers::{ActionMode, actions},
};
use crate::{
    App, Result,
    core::{
        ids::{
            AccountId, AuthConfigId, DeliveryId, LogId, ProjectId, SubscriptionId,
            TriggerInstanceId,
        },
        vault::{SealContext, Sealed, Vault},
    },
    projects::quotas::{Kind as QuotaKind, Quotas},
};

/// Collection of events.
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
/// Bytes that an event counts toward the quota of its project in addition to its payload.
const RECORD_BYTES: usize = 1 << 10;

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
    /// Creates an event of a trigger that does not exist, for tests of an endpoint.
    pub(super) fn test(app: &App, data: Bytes) -> Self {
        let source = TriggerSource {
            log_id: app.sequence.log(app.clock.now()),
            trigger_slug: "TEST_EVENT".to_owned(),
            trigger_id: TriggerInstanceId::random(),
            trigger_uuid: Uuid::new_v4(),
            account_id: AccountId::random(),
            account_uuid: Uuid::new_v4(),
            auth_config_id: AuthConfigId::random(),
            user_id: "test".to_owned(),
            action: None,
        };
        Self {
            trigger: Some(source),
            ..Self::new(EventKind::TriggerMessage, data)
        }
    }

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
    fn action(&self) -> Option<(&TriggerSource, ActionMode)> {
        let source = self.trigger.as_ref();
        let source = source.filter(|_| self.kind == EventKind::TriggerMessage)?;
        Some((source, source.action?))
    }

    /// Returns true if the event is not sent to webhook subscriptions.
    fn is_for_action_only(&self) -> bool {
        let action = self.action();
        action.is_some_and(|(_, mode)| mode == ActionMode::InsteadOfWebhooks)
    }
}

impl Event {
    /// Returns the id of the account that the event is about.
    pub(super) fn account(&self) -> Option<&AccountId> {
        let source = self.source.as_ref().map(|source| &source.account_id);
        source.or(self.account.as_ref())
    }
}

/// Adds an event of this server to a batch as [`add_in`] does.
pub(crate) async fn add(
    app: &App,
    project: &ProjectId,
    batch: Batch,
    event: NewEvent,
) -> Result<Batch> {
    add_in(
        &app.store,
        &app.vault,
        app.sink.as_deref(),
        &app.quotas,
        project,
        batch,
        &event,
    )
    .await
}

/// Adds a new event of this server to a batch, for callers without an [`App`]. The event is added
/// even if it exceeds the quota of its project, and counts toward it. A retried commit counts
/// again. Fails if the payload is not JSON.
pub(super) async fn add_in(
    store: &Store,
    vault: &Vault,
    sink: Option<&Sink>,
    quotas: &Quotas,
    project: &ProjectId,
    batch: Batch,
    event: &NewEvent,
) -> Result<Batch> {
    let bytes = size(&[event]);
    quotas.count(QuotaKind::Events, project.as_str(), bytes, batch.now);
    write(store, vault, sink, project, batch, &[event]).await
}

/// A batch to which events were added.
pub(crate) struct Added {
    pub(crate) batch: Batch,
    /// Ids of the events that were not stored already.
    pub(crate) ids: Vec<Uuid>,
}

/// Adds the events that are not stored to a batch, in the order of ordered deliveries, with their
/// actions. A batch takes events once. Fails if the events exceed the quota of their project, or if a
/// payload is not JSON.
pub(crate) async fn add_all(
    app: &App,
    project: &ProjectId,
    batch: Batch,
    events: &[NewEvent],
) -> Result<Added> {
    let events = new_events(&app.store, project, events).await?;
    take_quota(&app.quotas, project, &events, batch.now)?;
    let runs: Vec<_> = events
        .iter()
        .filter_map(|event| Some((event.action()?.0, event.id)))
        .collect();
    let batch = actions::add(app, project, batch, &runs).await?;
    let sink = app.sink.as_deref();
    let batch = write(&app.store, &app.vault, sink, project, batch, &events).await?;
    let ids = events.iter().map(|event| event.id).collect();
    Ok(Added { batch, ids })
}

/// Counts events toward the quota of their project. Fails if they exceed it.
fn take_quota(quotas: &Quotas, project: &ProjectId, events: &[&NewEvent], now: Time) -> Result<()> {
    let bytes = size(events);
    // Stored events need no further capacity, even if others have exceeded the quota.
    if bytes == 0 || quotas.take(QuotaKind::Events, project.as_str(), bytes, now) {
        return Ok(());
    }
    Err(errors::events_full())
}

/// Returns the bytes that events count toward a quota.
fn size(events: &[&NewEvent]) -> usize {
    let sizes = events.iter().map(|event| event.data.len() + RECORD_BYTES);
    sizes.sum()
}

/// Returns the events that are not stored, each once.
async fn new_events<'a>(
    store: &Store,
    project: &ProjectId,
    events: &'a [NewEvent],
) -> Result<Vec<&'a NewEvent>> {
    let ids: Vec<_> = events.iter().map(|event| event.id.to_string()).collect();
    let ids: Vec<_> = ids.iter().map(String::as_str).collect();
    let stored = store.get_many::<Event>(project.as_str(), &ids).await?;
    let mut seen = HashSet::new();
    let new = events
        .iter()
        .filter(|event| seen.insert(event.id) && !stored.contains_key(&event.id.to_string()));
    Ok(new.collect())
}

/// Adds events that are not stored to a batch, with one delivery for each subscription that wants
/// one.
async fn write(
    store: &Store,
    vault: &Vault,
    sink: Option<&Sink>,
    project: &ProjectId,
    batch: Batch,
    events: &[&NewEvent],
) -> Result<Batch> {
    if events.is_empty() {
        return Ok(batch);
    }
    let query = Query::for_project(project.as_str()).uncounted();
    let subscriptions = store.find::<Subscription>(&query).await?.records;
    let mut lanes = Lanes::new(store, project);
    let mut batch = batch;
    for event in events {
        let wanting = subscriptions.iter().filter(|subscription| {
            subscription.body.wants(event.kind) && !event.is_for_action_only()
        });
        batch = insert(vault, sink, project, &mut lanes, batch, event, wanting).await?;
    }
    Ok(lanes.finish(batch))
}

/// Adds an event not yet stored to a batch, and a delivery for a subscription. Fails if the event
/// exceeds the quota of its project.
pub(super) async fn add_for(
    app: &App,
    project: &ProjectId,
    batch: Batch,
    event: &NewEvent,
    subscription: &Record<Subscription>,
) -> Result<Batch> {
    take_quota(&app.quotas, project, &[event], batch.now)?;
    let sink = app.sink.as_deref();
    let mut lanes = Lanes::new(&app.store, project);
    let to = [subscription].into_iter();
    let batch = insert(&app.vault, sink, project, &mut lanes, batch, event, to).await?;
    Ok(lanes.finish(batch))
}

/// Inserts a new event, its message for the sink, if there is one, and its deliveries to
/// subscriptions.
async fn insert(
    vault: &Vault,
    sink: Option<&Sink>,
    project: &ProjectId,
    lanes: &mut Lanes<'_>,
    batch: Batch,
    event: &NewEvent,
    subscriptions: impl Iterator<Item = &Record<Subscription>>,
) -> Result<Batch> {
    let owner = project.as_str();
    let id = event.id.to_string();
    let data: &RawValue = serde_json::from_slice(&event.data).map_err(|cause| {
        errors::internal(format_args!(
            "the payload of event {id} is not JSON: {cause}"
        ))
    })?;
    let key = vault.key(owner, batch.now).await?;
    let context = SealContext::new::<Event>(owner, &id, DATA_FIELD);
    let source = event.trigger.clone();
    let stored = Event {
        kind: event.kind,
        trigger: source.as_ref().map(|source| source.trigger_id.clone()),
        log: source.as_ref().map(|source| source.log_id.clone()),
        source,
        account: event.account.clone(),
        for_action_only: event.is_for_action_only(),
        data: key.seal(context, &data)?.cast(),
    };
    let mut batch = batch.insert(owner, &id, &stored);
    if let Some(sink) = sink {
        batch = sink.add(batch, owner, &id, event.kind);
    }
    for subscription in subscriptions {
        let to = SubscriptionId::parse(&subscription.id)?;
        let id = DeliveryId::for_event(event.id, &to);
        let mut delivery = Delivery::new(batch.now, to.clone(), event.id, event.kind);
        if subscription.body.ordered {
            lanes.append(&to, event, &id, &mut delivery).await?;
        }
        batch = batch.insert(owner, id.as_str(), &delivery);
    }
    Ok(batch)
}

/// Returns the id of a stored event. Fails if the record is damaged.
pub(super) fn event_id(record: &Record<Event>) -> Result<Uuid> {
    let parsed = Uuid::parse_str(&record.id);
    parsed.map_err(|cause| errors::internal(format_args!("the id of event {}: {cause}", record.id)))
}

/// Decrypts the payload of an event. Fails if it cannot be decrypted.
pub(super) async fn payload(app: &App, record: &Record<Event>) -> Result<Box<RawValue>> {
    let context = SealContext::of(record, DATA_FIELD);
    let now = app.clock.now();
    app.vault.unseal(context, &record.body.data, now).await
}
