//! Replays: events that are sent again.

use store::{Batch, Query, Time};
use uuid::Uuid;

use super::{COLLECTION, Delivery, DeliveryStatus, DeliveryView, record, url_context};
use crate::{
    App, Error, Result,
    core::{
        ids::{DeliveryId, ProjectId, SubscriptionId},
        vault::Sealed,
    },
    events::{
        errors,
        event::{self, EVENTS_PER_READ, Event, EventKind},
        subscriptions,
    },
    projects::Project,
};

/// Number of events after which a batch of replayed ones is committed.
const REPLAYED_PER_BATCH: usize = 100;

/// Sends the event of a delivery again, with the whole schedule of retries, to a URL or to the
/// endpoint of the subscription. Fails if the delivery or its event does not exist, the URL may not
/// be reached, or a delivery that has not ended would go to another URL.
pub async fn replay(
    app: &App,
    project: &Project,
    subscription: &SubscriptionId,
    id: &DeliveryId,
    url: Option<&str>,
) -> Result<DeliveryView> {
    if let Some(url) = url {
        subscriptions::check_url(app, project, url).await?;
    }
    let replayed = app.store.change(&COLLECTION, id.as_str(), || async {
        let mut record = record(app, project, subscription, id).await?;
        if url.is_some() && record.body.status == DeliveryStatus::Pending {
            return Err(errors::delivery_pending(id));
        }
        let now = app.clock.now();
        let url = seal_url(app, &project.id, id, url).await?;
        record.body.replay(url, now);
        let event_id = record.body.event.to_string();
        let stored = app
            .store
            .get::<Event>(project.id.as_str(), &event_id)
            .await?;
        let event = stored.ok_or_else(|| errors::delivery_not_found(id))?;
        Ok::<_, Error>((Batch::at(now).check(&event).update(&record), ()))
    });
    replayed.await?;
    DeliveryView::read(app, project, subscription, id).await
}

/// Events that are to be replayed.
#[derive(Debug, Clone)]
pub struct ReplayRange {
    /// Time of the first event; `None` for the oldest one.
    pub since: Option<Time>,
    /// Time before which the last event happened; `None` for the present.
    pub until: Option<Time>,
    /// True to replay events that were delivered, too.
    pub delivered: bool,
    /// URL that gets the events; `None` for the endpoint of the subscription.
    pub url: Option<String>,
}

/// Sends the events of a time range again that were not delivered, or that have no delivery because
/// the subscription did not exist, did not want them or was disabled. An event that was delivered
/// to another URL counts as not delivered to the endpoint. An event for which a tool runs instead
/// of a webhook is not sent. Returns their number. Fails if the subscription does not exist, the
/// URL may not be reached, or the range has more events than one replay may have.
pub async fn replay_range(
    app: &App,
    project: &Project,
    id: &SubscriptionId,
    range: ReplayRange,
) -> Result<u64> {
    let subscription = subscriptions::record(app, project, id).await?;
    if let Some(url) = &range.url {
        subscriptions::check_url(app, project, url).await?;
    }
    // Events of the present millisecond may be committed later.
    let until = range.until.unwrap_or_else(|| app.clock.now());
    let mut query = Query::for_project(project.id.as_str())
        .at_least("created_at", range.since.unwrap_or_default().0)
        .below("created_at", until.0)
        .page(0, EVENTS_PER_READ);
    let mut wanted = Vec::new();
    let mut replayed = 0;
    loop {
        let page = app.store.list::<Event>(&query).await?;
        let most = app.webhooks.max_replayed_events;
        if page.total > most {
            return Err(errors::invalid(format!(
                "since, until: the range has {} events, and one replay has at most {most}",
                page.total
            )));
        }
        for event in &page.items {
            let is_wanted = subscription.body.events.contains(&event.body.kind);
            if is_wanted && !event.body.for_action_only {
                wanted.push((event::id_of(event)?, event.body.kind));
            }
        }
        if wanted.len() >= REPLAYED_PER_BATCH || page.next.is_none() {
            let done = app.store.change(&COLLECTION, id.as_str(), || async {
                replay_batch(app, project, id, &wanted, &range).await
            });
            replayed += done.await?;
            wanted.clear();
        }
        match page.next {
            // The first page has the number of all events.
            Some(next) => query = query.after(next).uncounted(),
            None => return Ok(replayed),
        }
    }
}

/// Returns the batch that replays some events, and their number.
async fn replay_batch(
    app: &App,
    project: &Project,
    id: &SubscriptionId,
    events: &[(Uuid, EventKind)],
    range: &ReplayRange,
) -> Result<(Batch, u64)> {
    let owner = project.id.as_str();
    let now = app.clock.now();
    // A subscription deleted meanwhile gets no deliveries.
    let mut batch = Batch::at(now).check(&subscriptions::record(app, project, id).await?);
    let mut replayed = 0;
    for (event, kind) in events {
        let delivery = DeliveryId::for_event(*event, id);
        let url = seal_url(app, &project.id, &delivery, range.url.as_deref()).await?;
        let found = app.store.get::<Delivery>(owner, delivery.as_str());
        batch = match found.await? {
            None => {
                let mut body = Delivery::new(now, id.clone(), *event, *kind);
                body.url = url;
                batch.insert(owner, delivery.as_str(), &body)
            }
            Some(mut record) => {
                let is_delivered = match range.url {
                    Some(_) => record.body.status == DeliveryStatus::Delivered,
                    None => record.body.is_acknowledged(),
                };
                let is_pending = record.body.status == DeliveryStatus::Pending;
                if is_pending || (is_delivered && !range.delivered) {
                    continue;
                }
                record.body.replay(url, now);
                batch.update(&record)
            }
        };
        replayed += 1;
    }
    Ok((batch, replayed))
}

async fn seal_url(
    app: &App,
    project: &ProjectId,
    id: &DeliveryId,
    url: Option<&str>,
) -> Result<Option<Sealed<String>>> {
    let key = app.vault.key(project.as_str(), app.clock.now()).await?;
    let context = url_context(project, id.as_str());
    let sealed = url.map(|url| key.seal(context, &url.to_owned()));
    sealed.transpose()
}
