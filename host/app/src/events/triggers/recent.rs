//! The newest events of an instance, which reads of the instance show with the state of their
//! deliveries. They stand in the progress of the instance, so that a page of instances costs the same
//! reads however many events there are.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use store::{Record, Time};
use uuid::Uuid;

use crate::events::{
    delivery::{Delivery, DeliveryStatus},
    message_id,
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
    /// Status of the delivery by webhook. `None` without a delivery.
    pub delivery: Option<DeliveryStatus>,
}

impl RecentEvents {
    /// Adds an event newer than all others.
    pub(super) fn add(&mut self, id: Uuid, at: Time) {
        self.0.truncate(MAX_RECENT_EVENTS - 1);
        self.0.insert(0, Noted { id, at });
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = Uuid> {
        self.0.iter().map(|noted| noted.id)
    }

    /// Returns the events with the status of their deliveries.
    pub(super) fn with(
        &self,
        deliveries: &HashMap<Uuid, Vec<Record<Delivery>>>,
    ) -> Vec<RecentEvent> {
        let events = self.0.iter().map(|noted| {
            let delivery = deliveries.get(&noted.id).and_then(|all| all.first());
            RecentEvent {
                message_id: message_id(&noted.id.to_string()),
                at: noted.at,
                delivery: delivery.map(|delivery| delivery.body.status),
            }
        });
        events.collect()
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
