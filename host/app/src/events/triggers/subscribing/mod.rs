//! Subscribing at providers, for trigger instances whose toolkit can do it.
//!
//! Such an instance has an address and a signing secret of its own, which are one record
//! ([`record`]). The record is due in a queue ([`upkeep`]) when the provider has to be asked: to send
//! events to the address, again before the subscription expires, and to stop when the instance is
//! disabled or deleted. An instance whose configuration or endpoint has the secret is not subscribed,
//! because its user has entered a webhook at the provider.

mod record;
mod upkeep;

use manifest::Subscribing;
use serde_json::Value;
use store::{Batch, Record};

pub(in crate::events) use self::record::receiving_address;
pub(super) use self::record::views;
use self::record::{Goal, Parts, ProviderSubscription};
pub(crate) use self::{
    record::COLLECTION,
    upkeep::{queue, unsubscribe_before_removal},
};
pub use self::{
    record::{SubscriptionState, SubscriptionView},
    upkeep::MAX_UNSUBSCRIBE_ATTEMPTS,
};
use super::{Instance, config::Config};
use crate::{
    App, Result,
    catalog::ResolvedTrigger,
    core::ids::{self, EndpointId, ProjectId, TriggerInstanceId},
    events::endpoints::Values,
};

/// Characters of a signing secret.
const SECRET_CHARS: usize = 40;

/// A subscription that an instance should have.
pub(super) struct Wanted<'a> {
    declared: &'a Subscribing,
    secret: String,
}

impl<'a> Wanted<'a> {
    /// Returns the subscription of an instance with this configuration; none if the trigger cannot
    /// subscribe, or if its user has entered a webhook at the provider. `values` are those of the
    /// endpoints of the toolkit.
    pub(super) fn new(
        found: &'a ResolvedTrigger,
        config: &Config,
        values: &Values,
    ) -> Option<Self> {
        let declared = found.trigger.subscription.as_ref()?;
        let is_given = |name: &String| config.get(name).is_some_and(|value| !value.is_null());
        let by_hand = is_given(&declared.secret) || values.contains_key(&declared.secret);
        let can = declared.requires.iter().all(is_given);
        (can && !by_hand).then(|| Self {
            declared,
            secret: ids::random_text(SECRET_CHARS),
        })
    }

    /// Adds the secret to a configuration, to check it against its schema.
    pub(super) fn complete(&self, config: &mut Config) {
        let secret = Value::String(self.secret.clone());
        config.insert(self.declared.secret.clone(), secret);
    }

    /// Adds the subscription of a new instance to a batch.
    pub(super) async fn add(
        &self,
        app: &App,
        project: &ProjectId,
        batch: Batch,
        (id, instance): (&TriggerInstanceId, &mut Instance),
        config: &Config,
    ) -> Result<Batch> {
        let own = EndpointId::unguessable();
        let parts = Parts {
            config: config.clone(),
            property: self.declared.secret.clone(),
            secret: self.secret.clone(),
        };
        let made = ProviderSubscription::new(app, project, &own, (id, instance), &parts, batch.now);
        let batch = batch.insert(project.as_str(), own.as_str(), &made.await?);
        instance.subscription = Some(own);
        Ok(batch)
    }
}

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
    let now = batch.now;
    Ok(if subscription.body.start(&instance.version, now) {
        batch.update(&subscription)
    } else {
        batch
    })
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
    let goal = if is_deleted {
        Goal::Erased
    } else {
        Goal::Unsubscribed
    };
    let now = batch.now;
    subscription.body.aim(goal, now);
    Ok(batch.update(&subscription))
}
