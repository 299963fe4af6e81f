//! Events that wait to be delivered: they are stored in the batch of their cause.
//!
//! An event exists if and only if its cause does, and its deliveries exist with it. The id of an
//! event is chosen by the caller and the ids of its deliveries follow from it, so that an occurrence
//! that is reported twice is one event. Payloads are sealed in the store.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use store::{Batch, Collection, Document, Field, Kind, Query, Record, Store};
use uuid::Uuid;

use super::{
    delivery::Delivery,
    errors,
    event::EventKind,
    subscriptions::Subscription,
    triggers::{ActionMode, actions},
};
use crate::{
    App, Result,
    core::{
        ids::{AccountId, AuthConfigId, LogId, ProjectId, SubscriptionId, TriggerInstanceId},
        vault::{SealContext, Sealed, Vault},
    },
};

/// Collection that this module owns.
pub(crate) static COLLECTION: Collection = Collection {
    name: "events",
    fields: &[
        Field::new("trigger", Kind::Text),
        Field::new("log", Kind::Text),
    ],
};

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
    /// Account that the event is about, if it has no source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) account: Option<AccountId>,
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
            id: Uuid::new_v4(),
            kind: EventKind::TriggerMessage,
            data,
            trigger: Some(source),
            account: None,
        }
    }
}

impl Event {
    /// Returns the id of the account that the event is about.
    pub(super) fn account(&self) -> Option<&AccountId> {
        let source = self.source.as_ref().map(|source| &source.account_id);
        source.or(self.account.as_ref())
    }
}

/// Adds an event to a batch, and one delivery for each subscription that wants it. Returns the batch
/// unchanged if the event is stored already.
///
/// # Errors
/// Fails if the payload is not JSON, or the store cannot be read.
pub(crate) async fn add(
    app: &App,
    project: &ProjectId,
    batch: Batch,
    event: NewEvent,
) -> Result<Batch> {
    let subscriptions = subscriptions(app, project, event.kind).await?;
    add_for(app, project, batch, &event, &subscriptions).await
}

/// Returns the subscriptions of a project that want events of a kind.
pub(super) async fn subscriptions(
    app: &App,
    project: &ProjectId,
    kind: EventKind,
) -> Result<Vec<Record<Subscription>>> {
    subscriptions_in(&app.store, project, kind).await
}

async fn subscriptions_in(
    store: &Store,
    project: &ProjectId,
    kind: EventKind,
) -> Result<Vec<Record<Subscription>>> {
    let query = Query::for_project(project.as_str());
    let mut subscriptions = store.find::<Subscription>(&query).await?.records;
    subscriptions.retain(|subscription| subscription.body.wants(kind));
    Ok(subscriptions)
}

/// Adds an event to a batch as [`add`] does, where there is no app.
pub(super) async fn add_in(
    store: &Store,
    vault: &Vault,
    project: &ProjectId,
    batch: Batch,
    event: NewEvent,
) -> Result<Batch> {
    let subscriptions = subscriptions_in(store, project, event.kind).await?;
    write(vault, project, batch, &event, &subscriptions).await
}

/// Adds an event to a batch, with one delivery for each of the subscriptions and the run of the action
/// that its trigger instance has. Returns the batch unchanged if the event is stored already.
pub(super) async fn add_for(
    app: &App,
    project: &ProjectId,
    batch: Batch,
    event: &NewEvent,
    subscriptions: &[Record<Subscription>],
) -> Result<Batch> {
    let id = event.id.to_string();
    if app.store.lookup::<Event>(&id).await?.is_some() {
        return Ok(batch);
    }
    let source = event.trigger.as_ref();
    let source = source.filter(|_| event.kind == EventKind::TriggerMessage);
    let Some((source, mode)) = source.and_then(|source| Some((source, source.action?))) else {
        return write(&app.vault, project, batch, event, subscriptions).await;
    };
    let batch = actions::add(app, project, batch, source, event.id).await?;
    let subscriptions = match mode {
        ActionMode::InsteadOfWebhooks => &[],
        ActionMode::BesideWebhooks => subscriptions,
    };
    write(&app.vault, project, batch, event, subscriptions).await
}

async fn write(
    vault: &Vault,
    project: &ProjectId,
    batch: Batch,
    event: &NewEvent,
    subscriptions: &[Record<Subscription>],
) -> Result<Batch> {
    let id = event.id.to_string();
    let data: &RawValue = serde_json::from_slice(&event.data).map_err(|cause| {
        errors::internal(format_args!(
            "the payload of event {id} is not JSON: {cause}"
        ))
    })?;
    let key = vault.key(project.as_str(), batch.now).await?;
    let source = event.trigger.clone();
    let stored = Event {
        kind: event.kind,
        trigger: source.as_ref().map(|source| source.trigger_id.clone()),
        log: source.as_ref().map(|source| source.log_id.clone()),
        source,
        account: event.account.clone(),
        data: key.seal(seal_context(project, &id), &data)?.cast(),
    };
    let mut batch = batch.insert(project.as_str(), &id, &stored);
    for subscription in subscriptions {
        let to = SubscriptionId::parse(&subscription.id)?;
        batch = Delivery::add(batch, project.as_str(), &to, event.id, event.kind);
    }
    Ok(batch)
}

/// Returns the id of a stored event.
pub(super) fn event_id(record: &Record<Event>) -> Result<Uuid> {
    let parsed = Uuid::parse_str(&record.id);
    parsed.map_err(|cause| errors::internal(format_args!("the id of event {}: {cause}", record.id)))
}

/// Decrypts the payload of an event.
pub(super) async fn payload(app: &App, record: &Record<Event>) -> Result<Box<RawValue>> {
    let project = ProjectId::parse(&record.project)?;
    let key = app.vault.key(project.as_str(), app.clock.now()).await?;
    key.open(seal_context(&project, &record.id), &record.body.data)
}

fn seal_context<'a>(project: &'a ProjectId, id: &'a str) -> SealContext<'a> {
    SealContext::new::<Event>(project.as_str(), id, "data")
}
