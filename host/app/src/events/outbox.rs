//! Events that wait to be delivered: they are stored in the batch of their cause.
//!
//! An event exists if and only if its cause does, and its deliveries exist with it. The ids of the
//! deliveries follow from that of the event.

use std::{collections::HashSet, sync::Arc};

use store::{Batch, Query, Record, Store, Time};
use uuid::Uuid;

use super::{
    delivery::Delivery,
    errors,
    event::{Event, NewEvent},
    ordering::Lanes,
    sink,
    subscriptions::Subscription,
    triggers::actions,
};
use crate::{
    App, Result,
    core::{
        ids::{DeliveryId, ProjectId, SubscriptionId},
        vault::Vault,
    },
    projects::quotas::{Kind as QuotaKind, Quotas},
};

/// Bytes that an event counts toward the quota of its project in addition to its payload.
const RECORD_BYTES: usize = 1 << 10;

/// The parts of the app that store events.
pub(crate) struct Outbox {
    pub(crate) store: Store,
    pub(crate) vault: Arc<Vault>,
    pub(crate) quotas: Arc<Quotas>,
    /// True if the sink gets every event.
    pub(crate) has_sink: bool,
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
    let events = app.outbox.new_events(project, events).await?;
    app.outbox.take_quota(project, &events, batch.now)?;
    let runs: Vec<_> = events
        .iter()
        .filter_map(|event| Some((event.action()?.0, event.id)))
        .collect();
    let batch = actions::add(app, project, batch, &runs).await?;
    let batch = app.outbox.write(project, batch, &events).await?;
    let ids = events.iter().map(|event| event.id).collect();
    Ok(Added { batch, ids })
}

/// Returns the bytes that events count toward a quota.
fn size(events: &[&NewEvent]) -> usize {
    let sizes = events.iter().map(|event| event.data.len() + RECORD_BYTES);
    sizes.sum()
}

impl Outbox {
    /// Adds a new event of this server to a batch. The event is added even if it exceeds the quota of
    /// its project, and counts toward it. A retried commit counts again. Fails if the payload is not
    /// JSON.
    pub(super) async fn add(
        &self,
        project: &ProjectId,
        batch: Batch,
        event: &NewEvent,
    ) -> Result<Batch> {
        let bytes = size(&[event]);
        self.quotas
            .count(QuotaKind::Events, project.as_str(), bytes, batch.now);
        self.write(project, batch, &[event]).await
    }

    /// Adds an event not yet stored to a batch, and a delivery for a subscription. Fails if the event
    /// exceeds the quota of its project.
    pub(super) async fn add_for(
        &self,
        project: &ProjectId,
        batch: Batch,
        event: &NewEvent,
        subscription: &Record<Subscription>,
    ) -> Result<Batch> {
        self.take_quota(project, &[event], batch.now)?;
        let mut lanes = Lanes::new(&self.store, project);
        let to = [subscription].into_iter();
        let batch = self.insert(project, &mut lanes, batch, event, to).await?;
        Ok(lanes.finish(batch))
    }

    /// Counts events toward the quota of their project. Fails if they exceed it.
    fn take_quota(&self, project: &ProjectId, events: &[&NewEvent], now: Time) -> Result<()> {
        let (owner, bytes) = (project.as_str(), size(events));
        // Stored events need no further capacity, even if others have exceeded the quota.
        if bytes == 0 || self.quotas.take(QuotaKind::Events, owner, bytes, now) {
            return Ok(());
        }
        Err(errors::events_full())
    }

    async fn new_events<'a>(
        &self,
        project: &ProjectId,
        events: &'a [NewEvent],
    ) -> Result<Vec<&'a NewEvent>> {
        let ids: Vec<_> = events.iter().map(|event| event.id.to_string()).collect();
        let ids: Vec<_> = ids.iter().map(String::as_str).collect();
        let stored = self.store.get_many::<Event>(project.as_str(), &ids).await?;
        let mut seen = HashSet::new();
        let new = events
            .iter()
            .filter(|event| seen.insert(event.id) && !stored.contains_key(&event.id.to_string()));
        Ok(new.collect())
    }

    /// Adds events that are not stored to a batch, with one delivery for each subscription that wants
    /// one.
    async fn write(
        &self,
        project: &ProjectId,
        mut batch: Batch,
        events: &[&NewEvent],
    ) -> Result<Batch> {
        if events.is_empty() {
            return Ok(batch);
        }
        let query = Query::for_project(project.as_str()).uncounted();
        let subscriptions = self.store.find::<Subscription>(&query).await?.records;
        let mut lanes = Lanes::new(&self.store, project);
        for event in events {
            let wanting = subscriptions.iter().filter(|subscription| {
                subscription.body.wants(event.kind) && !event.is_for_action_only()
            });
            let inserted = self.insert(project, &mut lanes, batch, event, wanting);
            batch = inserted.await?;
        }
        Ok(lanes.finish(batch))
    }

    /// Inserts a new event, its message for the sink, if there is one, and its deliveries to
    /// subscriptions.
    async fn insert(
        &self,
        project: &ProjectId,
        lanes: &mut Lanes<'_>,
        batch: Batch,
        event: &NewEvent,
        subscriptions: impl Iterator<Item = &Record<Subscription>>,
    ) -> Result<Batch> {
        let owner = project.as_str();
        let id = event.id.to_string();
        let stored = Event::seal(&self.vault, owner, &id, event, batch.now).await?;
        let mut batch = batch.insert(owner, &id, &stored);
        if self.has_sink {
            batch = sink::add(batch, owner, &id);
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
}
