//! The subscription of one trigger instance at its provider, as stored. Its id is unguessable,
//! because the address to which the provider sends events has it and needs no key.

use std::collections::HashMap;

use manifest::Subscription;
use serde::{Deserialize, Serialize};
use store::{Collection, Document, Erasure, Field, Record, Time};

use super::super::{Instance, config::Config, seal_error};
use crate::{
    App, Result,
    core::{
        ids::{AccountId, EndpointId, ProjectId, TriggerInstanceId},
        vault::{SealContext, Sealed},
    },
    events::endpoints::Values,
    projects::Project,
    work::{Claimable, WorkState},
};

pub(crate) static COLLECTION: Collection = Collection {
    name: "trigger_subscriptions",
    erasure: Erasure::Project,
    fields: &[Field::due("due")],
};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ProviderSubscription {
    pub(super) instance: TriggerInstanceId,
    pub(super) trigger: String,
    pub(super) toolkit: String,
    pub(super) version: String,
    pub(super) account: AccountId,
    pub(super) user_id: String,
    pub(super) goal: Goal,
    #[serde(flatten)]
    pub(super) work: WorkState,
    parts: Sealed<Parts>,
    /// Subscription that the provider has, if its last response was stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    current: Option<Sealed<Subscription>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_error: Option<Sealed<String>>,
    /// Number of failures in a row.
    #[serde(default)]
    pub(super) failures: u32,
    /// Time of the first of the failures in a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failing_since: Option<Time>,
}

/// State that the provider is to be brought to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Goal {
    /// It sends events.
    Subscribed,
    /// It sends no events until the instance is enabled again.
    Unsubscribed,
    /// It sends no events, and the record is erased.
    Erased,
}

/// Sealed part of a subscription.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Parts {
    /// Configuration of the instance.
    pub(super) config: Config,
    /// Property of the configuration with the signing secret.
    pub(super) property: String,
    pub(super) secret: String,
}

impl Document for ProviderSubscription {
    const COLLECTION: &'static Collection = &COLLECTION;
}

impl Claimable for ProviderSubscription {
    fn work(&mut self) -> &mut WorkState {
        &mut self.work
    }
}

/// State of a subscription at a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubscriptionState {
    /// The provider is being asked to send events.
    Pending,
    /// The provider sends events.
    Subscribed,
    /// The provider could not be asked, or has refused.
    Failed,
    /// The provider is being asked to send no more events.
    Unsubscribing,
    /// The provider sends no events.
    Unsubscribed,
}

/// A subscription as responses show it.
#[derive(Debug)]
pub struct SubscriptionView {
    /// State.
    pub state: SubscriptionState,
    /// Time from which the provider sends no more events, unless the subscription is renewed.
    pub expires_at: Option<Time>,
    /// Time at which the provider is asked next.
    pub next_attempt_at: Option<Time>,
    /// Error of the last attempt, if it failed.
    pub last_error: Option<String>,
}

fn context<'a>(project: &'a str, id: &'a str, field: &'static str) -> SealContext<'a> {
    SealContext::new::<ProviderSubscription>(project, id, field)
}

impl ProviderSubscription {
    /// Creates the subscription of a new instance, due immediately.
    pub(super) async fn new(
        app: &App,
        project: &ProjectId,
        id: &EndpointId,
        (instance_id, instance): (&TriggerInstanceId, &Instance),
        parts: &Parts,
        now: Time,
    ) -> Result<Self> {
        let context = context(project.as_str(), id.as_str(), "parts");
        Ok(Self {
            instance: instance_id.clone(),
            trigger: instance.trigger.clone(),
            toolkit: instance.toolkit.clone(),
            version: instance.version.clone(),
            account: instance.account.clone(),
            user_id: instance.user_id.clone(),
            goal: Goal::Subscribed,
            work: WorkState::due_at(now),
            parts: app.vault.seal(context, parts, now).await?,
            current: None,
            expires_at: None,
            last_error: None,
            failures: 0,
            failing_since: None,
        })
    }

    /// Makes the subscription due to reach a goal. A worker that has claimed it finishes first, or is
    /// stopped with its claim.
    pub(super) fn aim(&mut self, goal: Goal, now: Time) {
        self.goal = goal;
        (self.failures, self.failing_since) = (0, None);
        self.work.reschedule(now);
    }

    /// Aims at being subscribed. Returns false if nothing is to be changed.
    pub(super) fn start(&mut self, version: &str, now: Time) -> bool {
        let is_settled = self.goal == Goal::Subscribed && self.failures == 0;
        if is_settled && self.version == version {
            return false;
        }
        version.clone_into(&mut self.version);
        if !is_settled {
            self.last_error = None;
            self.aim(Goal::Subscribed, now);
        }
        true
    }

    fn state(&self) -> SubscriptionState {
        match self.goal {
            Goal::Subscribed if self.current.is_some() => SubscriptionState::Subscribed,
            Goal::Subscribed if self.failures > 0 => SubscriptionState::Failed,
            Goal::Subscribed => SubscriptionState::Pending,
            Goal::Unsubscribed | Goal::Erased if self.work.due.is_some() => {
                SubscriptionState::Unsubscribing
            }
            _ if self.last_error.is_some() => SubscriptionState::Failed,
            _ => SubscriptionState::Unsubscribed,
        }
    }

    /// Returns the address to which the provider sends events.
    pub(super) fn url(&self, app: &App, id: &str) -> String {
        crate::events::endpoints::address(app, &self.toolkit, id)
    }

    pub(super) async fn open_parts(&self, app: &App, project: &str, id: &str) -> Result<Parts> {
        let (context, now) = (context(project, id, "parts"), app.clock.now());
        app.vault.unseal(context, &self.parts, now).await
    }

    pub(super) async fn open_current(
        &self,
        app: &App,
        project: &str,
        id: &str,
    ) -> Result<Option<Subscription>> {
        let key = app.vault.key(project, app.clock.now()).await?;
        let current = self.current.as_ref();
        let opened = current.map(|current| key.open(context(project, id, "current"), current));
        opened.transpose()
    }
}

/// Changes of a subscription after an attempt.
pub(super) enum Outcome {
    /// The provider has this subscription, or no subscription.
    Reached {
        current: Option<Sealed<Subscription>>,
        expires_at: Option<Time>,
    },
    Failed(Sealed<String>),
}

impl Outcome {
    /// The provider has deleted the subscription.
    pub(super) const NO_SUBSCRIPTION: Self = Self::Reached {
        current: None,
        expires_at: None,
    };

    pub(super) async fn subscribed(
        app: &App,
        (project, id): (&str, &str),
        subscription: &Subscription,
    ) -> Result<Self> {
        let (context, now) = (context(project, id, "current"), app.clock.now());
        Ok(Self::Reached {
            current: Some(app.vault.seal(context, subscription, now).await?),
            expires_at: subscription.expires_at_ms.map(Time),
        })
    }

    pub(super) async fn failed(
        app: &App,
        (project, id): (&str, &str),
        error: &str,
    ) -> Result<Self> {
        let sealed = seal_error(app, context(project, id, "last_error"), error);
        Ok(Self::Failed(sealed.await?))
    }

    /// Writes the outcome into the record, which is due again at a time, or never.
    pub(super) fn note(
        self,
        subscription: &mut ProviderSubscription,
        now: Time,
        due: Option<Time>,
    ) {
        match self {
            Self::Reached {
                current,
                expires_at,
            } => {
                (subscription.current, subscription.expires_at) = (current, expires_at);
                subscription.last_error = None;
                (subscription.failures, subscription.failing_since) = (0, None);
            }
            Self::Failed(error) => {
                subscription.last_error = Some(error);
                subscription.failures = subscription.failures.saturating_add(1);
                subscription.failing_since.get_or_insert(now);
            }
        }
        subscription.work = WorkState::default();
        subscription.work.due = due;
    }

    /// Notes that the provider does not accept the subscription, which is not tried again.
    pub(super) fn note_refusal(self, subscription: &mut ProviderSubscription, now: Time) {
        self.note(subscription, now, None);
        subscription.goal = Goal::Unsubscribed;
        (subscription.current, subscription.expires_at) = (None, None);
    }
}

/// Address of one instance: its project, its toolkit and id, and the secret that verifies requests.
pub(in crate::events) struct OwnAddress {
    pub(in crate::events) project: String,
    pub(in crate::events) toolkit: String,
    pub(in crate::events) instance: TriggerInstanceId,
    pub(in crate::events) values: Values,
}

/// Finds the instance that receives at an address of its own.
pub(in crate::events) async fn receiving_address(
    app: &App,
    id: &EndpointId,
) -> Result<Option<OwnAddress>> {
    let found = app.store.lookup::<ProviderSubscription>(id.as_str());
    let found = found.await?;
    let Some(found) = found.filter(|found| found.body.goal != Goal::Erased) else {
        return Ok(None);
    };
    let parts = found.body.open_parts(app, &found.project, &found.id);
    let parts = parts.await?;
    Ok(Some(OwnAddress {
        project: found.project,
        toolkit: found.body.toolkit,
        instance: found.body.instance,
        values: Values::from_iter([(parts.property, parts.secret.into())]),
    }))
}

/// Returns the subscriptions of instances, by the id of the instance.
pub(in crate::events::triggers) async fn views(
    app: &App,
    project: &Project,
    instances: &[Record<Instance>],
) -> Result<HashMap<String, SubscriptionView>> {
    let ids = instances
        .iter()
        .filter_map(|one| one.body.subscription.as_ref());
    let ids: Vec<_> = ids.map(EndpointId::as_str).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let owner = project.id.as_str();
    let records = app
        .store
        .get_many::<ProviderSubscription>(owner, &ids)
        .await?;
    let key = app.vault.key(owner, app.clock.now()).await?;
    let views = records.into_iter().map(|(id, record)| {
        let subscription = record.body;
        let error = subscription.last_error.as_ref();
        let error = error.map(|error| key.open(context(owner, &id, "last_error"), error));
        let view = SubscriptionView {
            state: subscription.state(),
            expires_at: subscription.expires_at,
            next_attempt_at: subscription.work.due,
            last_error: error.transpose()?,
        };
        Ok((subscription.instance.to_string(), view))
    });
    views.collect()
}
