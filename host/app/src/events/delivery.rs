//! Deliveries: one event for one endpoint, with the record of its attempts.
//!
//! A delivery is a record in the queue of [`sending`](super::sending). It ends as delivered or as
//! failed, and can be replayed from either until its event is erased. A replay may go to another URL,
//! and does not count as a delivery to the endpoint then.

mod attempt;
mod replay;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use store::{Collection, Document, Erasure, Field, Kind, Listed, Query, Record, Time, Window};
use strum::IntoStaticStr;
use uuid::Uuid;

pub(super) use self::attempt::StoredAttempt;
pub use self::{
    attempt::Attempt,
    replay::{ReplayRange, replay, replay_range},
};
use super::{
    errors,
    event::EventKind,
    subscriptions::{self, Subscription},
};
use crate::{
    App, Result,
    core::{
        ids::{DeliveryId, ProjectId, SubscriptionId},
        vault::{DataKey, SealContext, Sealed},
    },
    projects::Project,
    work::{Claimable, WorkState},
};

pub(crate) static COLLECTION: Collection = Collection {
    name: "webhook_deliveries",
    erasure: Erasure::Project,
    fields: &[
        Field::new("subscription", Kind::Text),
        Field::new("status", Kind::Text),
        Field::new("after", Kind::Text),
        Field::due("due"),
    ],
};

/// Maximum attempts of one delivery that are kept, the newest.
pub const MAX_KEPT_ATTEMPTS: usize = 32;

/// A delivery, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Delivery {
    /// Subscription whose endpoint gets the event.
    pub subscription: SubscriptionId,
    /// Id of the event.
    pub event: Uuid,
    /// Kind of the event.
    pub kind: EventKind,
    /// Status.
    pub status: DeliveryStatus,
    /// Attempts since the delivery was created or replayed.
    pub attempt_count: u32,
    #[serde(flatten)]
    work: WorkState,
    attempt_log: Vec<StoredAttempt>,
    /// Reason why no attempt follows, if the delivery failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// True if the delivery has a position in a lane.
    #[serde(default)]
    pub(super) ordered: bool,
    /// URL that gets the event instead of the subscription's endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<Sealed<String>>,
    /// Delivery that must end before the first attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) after: Option<DeliveryId>,
    /// True if the endpoint of the subscription has acknowledged the event. A replay to another URL
    /// keeps it, and a replay to the endpoint resets it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    acknowledged: bool,
    /// True if the delivery was replayed after it had ended. Its lane does not wait for it any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) replayed: bool,
}

/// Status of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum DeliveryStatus {
    /// An attempt is due or running.
    Pending,
    /// The endpoint has acknowledged the event.
    Delivered,
    /// No attempt follows unless the delivery is replayed.
    Failed,
}

impl Document for Delivery {
    const COLLECTION: &'static Collection = &COLLECTION;
}

impl Claimable for Delivery {
    fn work(&mut self) -> &mut WorkState {
        &mut self.work
    }
}

impl Delivery {
    /// Creates a delivery due at a time.
    pub(super) fn new(
        due: Time,
        subscription: SubscriptionId,
        event: Uuid,
        kind: EventKind,
    ) -> Self {
        Self {
            subscription,
            event,
            kind,
            status: DeliveryStatus::Pending,
            attempt_count: 0,
            work: WorkState::due_at(due),
            attempt_log: Vec::new(),
            failure: None,
            url: None,
            ordered: false,
            after: None,
            acknowledged: false,
            replayed: false,
        }
    }

    /// Returns true if the event goes to another URL than the subscription's endpoint.
    pub(super) fn goes_elsewhere(&self) -> bool {
        self.url.is_some()
    }

    /// Returns the URL that gets the event instead of the subscription's endpoint.
    pub(super) fn open_url(
        &self,
        key: &DataKey,
        project: &ProjectId,
        id: &str,
    ) -> Result<Option<String>> {
        let context = url_context(project, id);
        let url = self.url.as_ref();
        url.map(|url| key.open(context, url)).transpose()
    }

    /// Lets the delivery wait for the one before it.
    pub(super) fn wait(&mut self) {
        self.work.due = None;
    }

    /// Makes a delivery due that has waited.
    pub(super) fn resume(&mut self, now: Time) {
        self.work.due = Some(now);
    }

    /// Returns true while the delivery waits for the one before it.
    pub(super) fn is_waiting(&self) -> bool {
        self.status == DeliveryStatus::Pending && self.work.due.is_none()
    }

    /// Returns the time of the next attempt.
    #[must_use]
    pub fn next_attempt_at(&self) -> Option<Time> {
        self.work.due
    }

    /// Returns true if the endpoint of the subscription has acknowledged the event.
    fn is_acknowledged(&self) -> bool {
        // Records of earlier versions show it by their status alone.
        let is_delivered = self.status == DeliveryStatus::Delivered && !self.goes_elsewhere();
        self.acknowledged || is_delivered
    }

    /// Ends the delivery as acknowledged.
    pub(super) fn deliver(&mut self, attempt: StoredAttempt) {
        self.record(attempt);
        self.status = DeliveryStatus::Delivered;
        self.acknowledged = self.is_acknowledged();
        self.work.due = None;
    }

    /// Ends the delivery as failed.
    pub(super) fn fail(&mut self, reason: &str) {
        self.status = DeliveryStatus::Failed;
        self.failure = Some(reason.to_owned());
        self.work.due = None;
    }

    /// Ends the delivery as failed after an attempt.
    pub(super) fn fail_with(&mut self, attempt: StoredAttempt, reason: &str) {
        self.record(attempt);
        self.fail(reason);
    }

    /// Sets the time of the next attempt after one that failed.
    pub(super) fn retry_at(&mut self, attempt: StoredAttempt, due: Time) {
        self.record(attempt);
        self.work.due = Some(due);
    }

    fn record(&mut self, attempt: StoredAttempt) {
        self.attempt_count += 1;
        if self.attempt_log.len() >= MAX_KEPT_ATTEMPTS {
            self.attempt_log.remove(0);
        }
        self.attempt_log.push(attempt);
    }

    /// Makes the delivery due for a URL, or for the endpoint of the subscription, which is then to
    /// acknowledge the event anew.
    fn replay(&mut self, url: Option<Sealed<String>>, now: Time) {
        self.acknowledged = url.is_some() && self.is_acknowledged();
        self.replayed |= self.status != DeliveryStatus::Pending;
        self.url = url;
        self.status = DeliveryStatus::Pending;
        self.attempt_count = 0;
        self.failure = None;
        self.work.reschedule(now);
    }
}

/// A delivery as responses show it.
#[derive(Debug)]
pub struct DeliveryView {
    /// The record.
    pub record: Record<Delivery>,
    /// URL that gets the event instead of the subscription's endpoint.
    pub url: Option<String>,
}

impl DeliveryView {
    /// Decrypts what responses show of a delivery.
    fn open(key: &DataKey, project: &ProjectId, record: Record<Delivery>) -> Result<Self> {
        let url = record.body.open_url(key, project, &record.id)?;
        Ok(Self { record, url })
    }

    pub(super) async fn read(
        app: &App,
        project: &Project,
        subscription: &SubscriptionId,
        id: &DeliveryId,
    ) -> Result<Self> {
        let record = record(app, project, subscription, id).await?;
        let key = app.vault.key(project.id.as_str(), app.clock.now()).await?;
        Self::open(&key, &project.id, record)
    }
}

/// Returns a page of the deliveries of a subscription, newest first, and their total number. Fails
/// if the subscription does not exist.
pub async fn list(
    app: &App,
    project: &Project,
    subscription: &SubscriptionId,
    status: Option<DeliveryStatus>,
    window: Window,
) -> Result<Listed<DeliveryView>> {
    subscriptions::record(app, project, subscription).await?;
    let query = Query::for_project(project.id.as_str())
        .is("subscription", subscription.as_str())
        .filter("status", status.map(|status| status.into_str()))
        .descending()
        .window(window);
    let found = app.store.list(&query).await?;
    let key = app.vault.key(project.id.as_str(), app.clock.now()).await?;
    found.try_map(|record| DeliveryView::open(&key, &project.id, record))
}

/// Returns a delivery of a subscription and its attempts, oldest first. Fails if the delivery does
/// not exist.
pub async fn get(
    app: &App,
    project: &Project,
    subscription: &SubscriptionId,
    id: &DeliveryId,
) -> Result<(DeliveryView, Vec<Attempt>)> {
    let record = record(app, project, subscription, id).await?;
    open(app, &project.id, record).await
}

/// Decrypts a delivery and its attempts.
pub(super) async fn open(
    app: &App,
    project: &ProjectId,
    mut record: Record<Delivery>,
) -> Result<(DeliveryView, Vec<Attempt>)> {
    let key = app.vault.key(project.as_str(), app.clock.now()).await?;
    let stored = std::mem::take(&mut record.body.attempt_log).into_iter();
    let context = seal_context(project, &record.id);
    let opened = stored.map(|attempt| attempt.try_map(|text| key.open(context, &text)));
    let attempts = opened.collect::<Result<_>>()?;
    Ok((DeliveryView::open(&key, project, record)?, attempts))
}

/// Returns the deliveries of events, by the event. Reads them concurrently.
pub(super) async fn of_events(
    app: &App,
    project: &Project,
    events: &[Uuid],
) -> Result<HashMap<Uuid, Vec<Record<Delivery>>>> {
    let mut deliveries = HashMap::<_, Vec<_>>::new();
    if events.is_empty() {
        return Ok(deliveries);
    }
    let owner = project.id.as_str();
    let query = Query::for_project(owner);
    let subscriptions = app.store.find::<Subscription>(&query).await?.records;
    let mut ids = Vec::new();
    for subscription in &subscriptions {
        let to = SubscriptionId::parse(&subscription.id)?;
        ids.extend(events.iter().map(|id| DeliveryId::for_event(*id, &to)));
    }
    let ids: Vec<_> = ids.iter().map(DeliveryId::as_str).collect();
    let stored = app.store.get_many::<Delivery>(owner, &ids).await?;
    for delivery in stored.into_values() {
        let of_event = deliveries.entry(delivery.body.event).or_default();
        of_event.push(delivery);
    }
    Ok(deliveries)
}

async fn record(
    app: &App,
    project: &Project,
    subscription: &SubscriptionId,
    id: &DeliveryId,
) -> Result<Record<Delivery>> {
    let found = app.store.get::<Delivery>(project.id.as_str(), id.as_str());
    let found = found
        .await?
        .filter(|record| record.body.subscription == *subscription);
    found.ok_or_else(|| errors::delivery_not_found(id))
}

fn url_context<'a>(project: &'a ProjectId, id: &'a str) -> SealContext<'a> {
    SealContext::new::<Delivery>(project.as_str(), id, "url")
}

fn seal_context<'a>(project: &'a ProjectId, id: &'a str) -> SealContext<'a> {
    SealContext::new::<Delivery>(project.as_str(), id, "attempt_log")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_attempts_are_left_out() {
        let subscription = SubscriptionId::random();
        let mut delivery = Delivery::new(
            Time(0),
            subscription,
            Uuid::nil(),
            EventKind::TriggerMessage,
        );
        for at in 0..100 {
            let attempt = StoredAttempt {
                at: Time(at),
                duration_ms: 1,
                status: None,
                error: None,
                response: None,
            };
            delivery.retry_at(attempt, Time(at + 1));
        }
        assert_eq!(delivery.attempt_count, 100);
        assert_eq!(delivery.attempt_log.len(), MAX_KEPT_ATTEMPTS);
        assert_eq!(
            delivery.attempt_log.last().map(|last| last.at),
            Some(Time(99))
        );
    }
}
