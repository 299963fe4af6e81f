//! The subscription that a new instance should have.

use manifest::Subscribing;
use serde_json::Value;
use store::Batch;

use super::record::{Parts, ProviderSubscription};
use crate::{
    App, Result,
    catalog::ResolvedTrigger,
    core::ids::{self, EndpointId, ProjectId, TriggerInstanceId},
    events::{
        endpoints::Values,
        triggers::{Instance, config::Config},
    },
};

/// Characters of a signing secret.
const SECRET_CHARS: usize = 40;

/// A subscription that an instance should have.
pub(in crate::events::triggers) struct Wanted<'a> {
    declared: &'a Subscribing,
    secret: String,
}

impl<'a> Wanted<'a> {
    /// Returns the subscription of an instance with this configuration, or `None` if the trigger
    /// cannot subscribe, or if its user has entered a webhook at the provider. `values` are those
    /// of the endpoints of the toolkit.
    pub(in crate::events::triggers) fn new(
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
    pub(in crate::events::triggers) fn complete(&self, config: &mut Config) {
        let secret = Value::String(self.secret.clone());
        config.insert(self.declared.secret.clone(), secret);
    }

    /// Adds the subscription of a new instance to a batch.
    pub(in crate::events::triggers) async fn add(
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
