//! Order of deliveries, for subscriptions that want it.
//!
//! The messages of one trigger instance, or of one account for events without an instance, are a
//! lane. A delivery of a lane names the one before it, and the record of the lane names the last
//! one. A worker that claims a delivery whose predecessor has not ended makes it wait: it is due no
//! more. The commit that ends a delivery makes its successor due. Each of the two commits depends
//! on the revision of the other delivery, so that no delivery waits for one that has ended. A
//! delivery costs a bounded number of reads, however many wait. A delivery replayed after its end
//! waits for no other, and no other waits for it.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use store::{Batch, Collection, Document, Erasure, Field, Kind, Query, Record, Store, Time};

use super::{
    delivery::{Delivery, DeliveryStatus},
    event::NewEvent,
};
use crate::{
    App, Result,
    core::ids::{DeliveryId, ProjectId, SubscriptionId},
    work::{Claim, Next},
};

pub(crate) static COLLECTION: Collection = Collection {
    name: "webhook_lanes",
    erasure: Erasure::Project,
    fields: &[Field::new("last_at", Kind::Time)],
};

#[derive(Debug, Serialize, Deserialize)]
struct DeliveryOrder {
    last: DeliveryId,
    /// Time of the newest delivery.
    last_at: Time,
}

impl Document for DeliveryOrder {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// The lanes to which a batch adds deliveries.
pub(super) struct Lanes<'a> {
    store: &'a Store,
    project: &'a ProjectId,
    changed: HashMap<String, (Option<Record<DeliveryOrder>>, DeliveryId)>,
}

impl<'a> Lanes<'a> {
    pub(super) fn new(store: &'a Store, project: &'a ProjectId) -> Self {
        Self {
            store,
            project,
            changed: HashMap::new(),
        }
    }

    /// Gives a new delivery its position in the lane of its event.
    pub(super) async fn append(
        &mut self,
        subscription: &SubscriptionId,
        event: &NewEvent,
        id: &DeliveryId,
        delivery: &mut Delivery,
    ) -> Result<()> {
        let Some(subject) = subject(event) else {
            return Ok(());
        };
        let lane = format!("{subscription}:{subject}");
        delivery.ordered = true;
        if let Some((_, last)) = self.changed.get_mut(&lane) {
            delivery.after = Some(std::mem::replace(last, id.clone()));
            return Ok(());
        }
        let found = self
            .store
            .get::<DeliveryOrder>(self.project.as_str(), &lane)
            .await?;
        delivery.after = found.as_ref().map(|found| found.body.last.clone());
        self.changed.insert(lane, (found, id.clone()));
        Ok(())
    }

    /// Adds the changes of the lanes to the batch.
    pub(super) fn finish(self, mut batch: Batch) -> Batch {
        for (lane, (found, last)) in self.changed {
            let body = DeliveryOrder {
                last,
                last_at: batch.now,
            };
            batch = match found {
                Some(record) => batch.update(&Record { body, ..record }),
                None => batch.insert(self.project.as_str(), &lane, &body),
            };
        }
        batch
    }
}

/// Returns the id of the instance or of the account that an event is about.
fn subject(event: &NewEvent) -> Option<&str> {
    let trigger = event.trigger.as_ref();
    let trigger = trigger.map(|source| source.trigger_id.as_str());
    trigger.or(event.account.as_ref().map(|account| account.as_str()))
}

/// Makes a claimed delivery wait if the one before it has not ended, which ends the claim. Returns
/// false if the delivery may be sent. Fails if the claim is lost or the store refuses.
pub(super) async fn wait(app: &App, claim: &Claim<Delivery>) -> Result<bool> {
    loop {
        let delivery = claim.body().await;
        if delivery.replayed {
            return Ok(false);
        }
        let Some(previous) = delivery.after else {
            return Ok(false);
        };
        let found = app.store.get(claim.project(), previous.as_str()).await?;
        let Some(previous) = found.filter(holds_up) else {
            return Ok(false);
        };
        let batch = claim.batch().await?.check(&previous);
        let ended = claim.end(batch, Delivery::wait).await;
        if claim.succeeded(ended).await? {
            return Ok(true);
        }
    }
}

/// Ends the claim on a delivery with a change that ends the delivery, and makes the one after it due.
pub(super) async fn end(
    app: &App,
    claim: &Claim<Delivery>,
    change: impl Fn(&mut Delivery),
) -> Result<Next> {
    loop {
        let batch = with_next(app, claim).await?;
        let ended = claim.end(batch, &change).await;
        if claim.succeeded(ended).await? {
            return Ok(Next::Ended);
        }
    }
}

/// Erases a claimed delivery, and makes the one after it due. Fails if the claim is lost or the
/// store refuses.
pub(super) async fn erase(app: &App, claim: &Claim<Delivery>) -> Result<Next> {
    loop {
        let batch = with_next(app, claim).await?;
        let erased = claim.erase(batch).await;
        if claim.succeeded(erased).await? {
            return Ok(Next::Ended);
        }
    }
}

/// Returns a batch that makes the delivery after a claimed one due if it waits, and that depends on
/// its not beginning to wait meanwhile.
async fn with_next(app: &App, claim: &Claim<Delivery>) -> Result<Batch> {
    let batch = claim.batch().await?;
    if !claim.body().await.ordered {
        return Ok(batch);
    }
    let query = Query::for_project(claim.project()).is("after", claim.id());
    let next = app.store.first::<Delivery>(query).await?;
    Ok(match next.filter(is_pending) {
        None => batch,
        Some(mut next) if next.body.is_waiting() => {
            next.body.resume(batch.now);
            batch.update(&next)
        }
        Some(next) => batch.check(&next),
    })
}

fn is_pending(delivery: &Record<Delivery>) -> bool {
    delivery.body.status == DeliveryStatus::Pending
}

/// Returns true if the delivery after this one has to wait.
fn holds_up(delivery: &Record<Delivery>) -> bool {
    is_pending(delivery) && !delivery.body.replayed
}
