//! Subscribing at providers, for trigger instances whose toolkit can do it.
//!
//! Such an instance has an address and a signing secret of its own, which are one record
//! ([`record`]). The record is due in a queue ([`upkeep`]) when the provider has to be asked: to send
//! events to the address, again before the subscription expires, and to stop when the instance is
//! disabled or deleted. An instance whose configuration or endpoint has the secret is not subscribed,
//! because its user has entered a webhook at the provider.

mod record;
mod upkeep;
mod wanted;

use store::{Batch, Record};

pub(in crate::events) use self::record::receiving_address;
use self::record::{Goal, ProviderSubscription};
pub(crate) use self::{
    record::COLLECTION,
    upkeep::{queue, unsubscribe_before_removal},
};
pub(super) use self::{record::views, wanted::Wanted};
pub use self::{
    record::{SubscriptionState, SubscriptionView},
    upkeep::{MAX_UNSUBSCRIBE_ATTEMPTS, SUBSCRIPTION_SHARES},
};
use super::Instance;
use crate::{App, Result};

async fn of_instance(
    app: &App,
    project: &str,
    instance: &Instance,
) -> Result<Option<Record<ProviderSubscription>>> {
    let Some(id) = &instance.subscription else {
        return Ok(None);
    };
    Ok(app.store.get(project, id.as_str()).await?)
}

/// Adds to a batch that an instance is to be subscribed, if it was not or its subscribing fails.
pub(super) async fn start(
    app: &App,
    project: &str,
    batch: Batch,
    instance: &Instance,
) -> Result<Batch> {
    let Some(mut subscription) = of_instance(app, project, instance).await? else {
        return Ok(batch);
    };
    if subscription.body.start(&instance.version, batch.now) {
        return Ok(batch.update(&subscription));
    }
    Ok(batch)
}

/// Adds to a batch that an instance is to be unsubscribed.
pub(super) async fn stop(
    app: &App,
    project: &str,
    batch: Batch,
    instance: &Instance,
    is_deleted: bool,
) -> Result<Batch> {
    let Some(mut subscription) = of_instance(app, project, instance).await? else {
        return Ok(batch);
    };
    let goal = match is_deleted {
        true => Goal::Erased,
        false => Goal::Unsubscribed,
    };
    subscription.body.aim(goal, batch.now);
    Ok(batch.update(&subscription))
}
