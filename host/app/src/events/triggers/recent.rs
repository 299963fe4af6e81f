//! The newest events of an instance, which reads of the instance show with the state of their
//! deliveries. They stand in the progress of the instance, so that a page of instances costs the same
//! reads however many events there are.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use store::{Query, Record, Time};
use uuid::Uuid;

use crate::{
    App, Result,
    core::ids::{DeliveryId, SubscriptionId},
    events::{
        delivery::{Delivery, DeliveryStatus},
        message_id,
        subscriptions::Subscription,
    },
    projects::Project,
};

/// Number of events that reads of an instance show.
pub const MAX_RECENT_EVENTS: usize = 10;

/// The newest events of an instance, newest first.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct RecentEvents(Vec<Noted>);

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Noted {
    id: Uuid,
    at: Time,
}

/// An event of an instance.
#[derive(Debug)]
pub struct RecentEvent {
    /// Id of the message.
    pub message_id: String,
    /// Time of the event.
    pub at: Time,
    /// Status of the delivery by webhook. None if there is no delivery.
    pub delivery: Option<DeliveryStatus>,
}

impl RecentEvents {
    /// Adds an event that is newer than all others.
    pub(super) fn add(&mut self, id: Uuid, at: Time) {
        self.0.truncate(MAX_RECENT_EVENTS - 1);
        self.0.insert(0, Noted { id, at });
    }

    /// Returns the events with the status of their deliveries.
    pub(super) fn with(&self, deliveries: &Deliveries) -> Vec<RecentEvent> {
        let shown = |noted: &Noted| RecentEvent {
            message_id: message_id(&noted.id.to_string()),
            at: noted.at,
            delivery: deliveries.status(noted.id),
        };
        self.0.iter().map(shown).collect()
    }
}

/// Deliveries of the events of several instances.
#[derive(Default)]
pub(super) struct Deliveries {
    subscriptions: Vec<SubscriptionId>,
    found: HashMap<String, Record<Delivery>>,
}

impl Deliveries {
    /// Reads the deliveries of all events at once.
    pub(super) async fn read<'a>(
        app: &App,
        project: &Project,
        events: impl Iterator<Item = &'a RecentEvents>,
    ) -> Result<Self> {
        let events: Vec<_> = events.flat_map(|events| &events.0).collect();
        if events.is_empty() {
            return Ok(Self::default());
        }
        let owner = project.id.as_str();
        let query = Query::for_project(owner);
        let subscriptions = app.store.find::<Subscription>(&query).await?.records;
        let subscriptions = subscriptions.iter();
        let subscriptions = subscriptions
            .map(|subscription| SubscriptionId::parse(&subscription.id))
            .collect::<Result<Vec<_>>>()?;
        let ids = subscriptions.iter().flat_map(|subscription| {
            let ids = events.iter();
            ids.map(|event| DeliveryId::for_event(event.id, subscription))
        });
        let ids: Vec<_> = ids.collect();
        let ids: Vec<_> = ids.iter().map(DeliveryId::as_str).collect();
        let found = app.store.get_many(owner, &ids).await?;
        Ok(Self {
            subscriptions,
            found,
        })
    }

    fn status(&self, event: Uuid) -> Option<DeliveryStatus> {
        let mut found = self.subscriptions.iter().filter_map(|subscription| {
            let id = DeliveryId::for_event(event, subscription);
            self.found.get(id.as_str())
        });
        found.next().map(|delivery| delivery.body.status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_ten_events_are_kept() {
        let mut events = RecentEvents::default();
        for at in 0..25 {
            events.add(Uuid::new_v4(), Time(at));
        }
        let times: Vec<_> = events.0.iter().map(|noted| noted.at.0).collect();
        assert_eq!(times, (15..25).rev().collect::<Vec<_>>());
    }
}
