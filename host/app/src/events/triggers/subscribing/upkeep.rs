//! Work on subscriptions: asks providers to send events, to continue, and to stop.
//!
//! The guest's functions are run under a claim on the subscription, and their result is committed
//! under the claim. If the result is lost, the next attempt asks the guest again, which finds the
//! subscription at the provider by its address or makes another. Providers that have no list keep a
//! lost subscription until it expires.

use std::{collections::BTreeMap, time::Duration};

use futures::{StreamExt, stream};
use gate::{PacedPermit, Shares};
use manifest::{SECRET_PLACEHOLDER, Subscription, SubscriptionAction, SubscriptionCall};
use sandbox::{Action, Failure, HandedOverSecret, Output};
use serde_json::Value;
use store::{Batch, Query, Record, Time};
use tokio::time::timeout;

use super::{
    super::{DisabledReason, Instance, disabling},
    record::{Goal, Outcome, Parts, ProviderSubscription},
};
use crate::{
    App, Error, Result, accounts,
    catalog::ResolvedTrigger,
    core::{
        clock::time_after,
        ids::{AccountId, ProjectId},
    },
    events::errors,
    projects::{self, Project},
    runs::{self, TriggerCall},
    work::{Admission, Claim, LEASE_TTL, Next, Queue, doubled},
};

/// Shares of projects in the subscriptions that one server works on at a time.
pub const SUBSCRIPTION_SHARES: Shares = Shares {
    total: 12,
    reserve: 8,
    base: 1,
    cap: 4,
};
/// Delay before work that could not run is tried again.
const RETRY_DELAY: Duration = Duration::from_secs(15);
/// Maximum delay after a failure.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(6 * 3_600);
/// Number of failures in a row after which an instance may be disabled.
const MIN_FAILURES: u32 = 3;
/// Maximum number of attempts to unsubscribe.
pub const MAX_UNSUBSCRIBE_ATTEMPTS: u32 = 5;
/// Time that the removal of an account gives its subscriptions to end: half of the default deadline
/// of the operation, so that the removal itself has the rest.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(15);
/// Number of subscriptions that are ended at a time before an account or a project is removed.
const MAX_CONCURRENT_ENDS: usize = 8;
/// Number of subscriptions that are read at a time before an account or a project is removed.
const SUBSCRIPTIONS_PER_READ: u64 = 100;

/// Kinds of failures that mean that the account may not subscribe.
const REFUSAL_KINDS: [&str; 2] = ["unauthorized", "forbidden"];
/// Kinds of failures that do not pass by themselves.
const LASTING_FAILURES: [&str; 3] = ["invalid_input", "not_found", "denied"];

pub(crate) fn queue() -> Queue<ProviderSubscription, App, PacedPermit> {
    Queue {
        name: "trigger_subscriptions",
        shares: SUBSCRIPTION_SHARES,
        lease_ttl: LEASE_TTL,
        retry_delay: |_| RETRY_DELAY,
        admission: Admission {
            key: |subscription| format!("subscriptions {}", subscription.project),
            acquire: |app, key, now| app.pacer.acquire(key, now.0),
            retry_at: None,
        },
        work: |app: &App, claim, mut permit| {
            Box::pin(async move {
                work(app, &claim).await?;
                permit.accepted(SUBSCRIPTION_SHARES.cap as usize);
                Ok(Next::Ended)
            })
        },
    }
}

async fn work(app: &App, claim: &Claim<ProviderSubscription>) -> Result<()> {
    let Some(subject) = Subject::load(app, claim).await? else {
        return Ok(claim.erase(claim.batch().await?).await?);
    };
    match subject.subscription.goal {
        Goal::Subscribed => subject.subscribe(app, claim).await,
        Goal::Unsubscribed | Goal::Erased => subject.unsubscribe(app, claim).await,
    }
}

/// A claimed subscription.
struct Subject {
    id: String,
    project: Project,
    subscription: ProviderSubscription,
    parts: Parts,
    found: ResolvedTrigger,
}

impl Subject {
    /// Reads all that a call needs. Returns `None` if the project does not exist.
    async fn load(app: &App, claim: &Claim<ProviderSubscription>) -> Result<Option<Self>> {
        let project = ProjectId::parse(claim.project())?;
        let Some(project) = projects::find(app, &project).await? else {
            return Ok(None);
        };
        let subscription = claim.body().await;
        let (trigger, version) = (&subscription.trigger, &subscription.version);
        let found = app.catalog.trigger(trigger, version)?;
        let parts = subscription.open_parts(app, claim.project(), claim.id());
        Ok(Some(Self {
            id: claim.id().to_owned(),
            parts: parts.await?,
            project,
            subscription,
            found,
        }))
    }

    fn place(&self) -> (&str, &str) {
        (self.project.id.as_str(), &self.id)
    }

    /// Runs the guest. An outer error means that nothing ran.
    async fn call(
        &self,
        app: &App,
        action: SubscriptionAction,
    ) -> Result<std::result::Result<Output, Failure>> {
        let (subscription, found, parts) = (&self.subscription, &self.found, &self.parts);
        let account = &subscription.account;
        let token = accounts::FirstToken::Fresh;
        let granted =
            accounts::grant_trigger(app, &self.project, &found.release, account, token).await?;
        let (project, id) = self.place();
        let mut config = parts.config.clone();
        for name in &found.trigger.policy.write_only {
            if config.contains_key(name) || *name == parts.property {
                config.insert(name.clone(), Value::String(name.clone()));
            }
        }
        let call = SubscriptionCall {
            action,
            config,
            url: subscription.url(app, id),
            secret: SECRET_PLACEHOLDER.to_owned(),
            previous: subscription.open_current(app, project, id).await?,
        };
        let arguments = serde_json::to_vec(&call)
            .map_err(|cause| errors::internal(format!("cannot write a call: {cause}")))?;
        let declared = found.trigger.subscription.as_ref();
        let call = TriggerCall {
            project: &self.project,
            found,
            action: Action::Execute {
                tool: found.trigger.slug.clone(),
                arguments: arguments.into(),
            },
            state: BTreeMap::new(),
            user_id: subscription.user_id.clone(),
            granted,
            webhook_secret: declared.map(|declared| HandedOverSecret {
                pointer: declared.pointer.clone(),
                secret: parts.secret.clone().into(),
            }),
        };
        Ok(runs::call_trigger(app, call).await?.output)
    }

    async fn subscribe(&self, app: &App, claim: &Claim<ProviderSubscription>) -> Result<()> {
        let (project, _) = self.place();
        let instance = self.subscription.instance.as_str();
        let instance = app.store.get::<Instance>(project, instance).await?;
        let Some(mut instance) = instance else {
            return Ok(claim.erase(claim.batch().await?).await?);
        };
        let called = async {
            if instance.body.waits_for_account() {
                disabling::resume(app, &self.project, claim, &mut instance).await?;
            }
            self.call(app, SubscriptionAction::Subscribe).await
        };
        let output = match called.await {
            Ok(output) => output,
            Err(cause) if cause.is(&errors::ACCOUNT_NOT_ACTIVE) => {
                return self.wait_for_account(app, claim, instance, &cause).await;
            }
            Err(cause) if disabling::is_account_gone(&cause) => {
                return Ok(claim.erase(claim.batch().await?).await?);
            }
            Err(cause) => return Err(cause),
        };
        let subscription = output.and_then(|output| match output {
            Output::Data(data) => {
                serde_json::from_slice::<Subscription>(&data).map_err(|_| runs::wrong_output())
            }
            _ => Err(runs::wrong_output()),
        });
        match subscription {
            Ok(subscription) => {
                let outcome = Outcome::subscribed(app, self.place(), &subscription).await?;
                let batch = claim.batch().await?;
                let now = batch.now;
                let expires_at = subscription.expires_at_ms.map(Time);
                let due = expires_at.map(|expires_at| self.renewal(app, now, expires_at));
                let ended = claim.end(batch, |record| outcome.note(record, now, due));
                Ok(ended.await?)
            }
            Err(failure) => self.fail(app, claim, instance, &failure).await,
        }
    }

    /// Returns the time at which three quarters of a subscription's life have passed, so that a
    /// renewal can be tried several times.
    fn renewal(&self, app: &App, now: Time, expires_at: Time) -> Time {
        let life = u64::try_from(expires_at.0.saturating_sub(now.0)).unwrap_or_default();
        let delay = Duration::from_millis(life / 4 * 3);
        time_after(now, delay.max(app.triggers.poll_interval.min(RETRY_DELAY)))
    }

    /// Disables the instance, whose account is not active, and looks again later.
    async fn wait_for_account(
        &self,
        app: &App,
        claim: &Claim<ProviderSubscription>,
        instance: Record<Instance>,
        cause: &Error,
    ) -> Result<()> {
        let reason = DisabledReason::ConnectionExpired;
        let batch = self.disabled(app, claim, instance, reason).await?;
        let outcome = Outcome::failed(app, self.place(), &cause.to_string()).await?;
        let now = batch.now;
        let due = time_after(now, app.triggers.poll_interval);
        let ended = claim.end(batch, |record| {
            outcome.note(record, now, Some(due));
            // The subscription itself has not failed.
            (record.failures, record.failing_since) = (0, None);
        });
        Ok(ended.await?)
    }

    /// Adds the disabling of the instance to a batch, unless it is disabled already.
    async fn disabled(
        &self,
        app: &App,
        claim: &Claim<ProviderSubscription>,
        instance: Record<Instance>,
        reason: DisabledReason,
    ) -> Result<Batch> {
        let batch = claim.batch().await?;
        if !instance.body.is_enabled() {
            return Ok(batch);
        }
        let config = self.parts.config.clone();
        disabling::add(app, &self.project, batch, instance, config, reason).await
    }

    /// Notes a failure, and disables the instance if the provider refuses or has failed for too long.
    async fn fail(
        &self,
        app: &App,
        claim: &Claim<ProviderSubscription>,
        instance: Record<Instance>,
        failure: &Failure,
    ) -> Result<()> {
        let outcome = Outcome::failed(app, self.place(), &failure.to_string()).await?;
        let now = app.claims().now().await?;
        let failures = self.subscription.failures.saturating_add(1);
        let since = self.subscription.failing_since.unwrap_or(now);
        let is_too_long = failures >= MIN_FAILURES && app.triggers.disables(since, now);
        let kind = &*failure.kind;
        let reason = if REFUSAL_KINDS.contains(&kind) {
            Some(DisabledReason::SubscriptionAuthFailure)
        } else if LASTING_FAILURES.contains(&kind) || is_too_long {
            Some(DisabledReason::SubscriptionRefreshFailure)
        } else {
            None
        };
        if let Some(reason) = reason {
            let batch = self.disabled(app, claim, instance, reason).await?;
            let ended = claim.end(batch, |record| outcome.note_refusal(record, now));
            return Ok(ended.await?);
        }
        let due = self.retry(app, now, failures, failure);
        let batch = claim.batch().await?;
        let ended = claim.end(batch, |record| outcome.note(record, now, Some(due)));
        Ok(ended.await?)
    }

    fn retry(&self, app: &App, now: Time, failures: u32, failure: &Failure) -> Time {
        let delay = doubled(app.triggers.poll_interval, MAX_RETRY_DELAY, failures);
        let asked = failure.retry_after.unwrap_or_default().min(MAX_RETRY_DELAY);
        time_after(now, delay.max(asked))
    }

    async fn unsubscribe(&self, app: &App, claim: &Claim<ProviderSubscription>) -> Result<()> {
        let failure = match self.call(app, SubscriptionAction::Unsubscribe).await {
            Ok(Ok(_)) => None,
            Ok(Err(failure)) if failure.kind == "not_found" => None,
            Ok(Err(failure)) => Some(failure),
            // Without the account, the provider cannot be asked.
            Err(cause) if cause.is(&errors::ACCOUNT_NOT_ACTIVE) => None,
            Err(cause) if disabling::is_account_gone(&cause) => None,
            Err(cause) => return Err(cause),
        };
        let batch = claim.batch().await?;
        let now = batch.now;
        let failures = self.subscription.failures.saturating_add(1);
        if let Some(failure) = failure {
            if failures < MAX_UNSUBSCRIBE_ATTEMPTS {
                let due = self.retry(app, now, failures, &failure);
                let outcome = Outcome::failed(app, self.place(), &failure.to_string()).await?;
                let ended = claim.end(batch, |record| outcome.note(record, now, Some(due)));
                return Ok(ended.await?);
            }
            let instance = &self.subscription.instance;
            tracing::warn!(%instance, %failure, "the provider may still send events of a trigger instance");
        }
        if self.subscription.goal == Goal::Erased {
            return Ok(claim.erase(batch).await?);
        }
        let ended = claim.end(batch, |record| {
            Outcome::NO_SUBSCRIPTION.note(record, now, None)
        });
        Ok(ended.await?)
    }
}

/// Asks the providers to send no more events for the instances of an account, or of all accounts of
/// a project, before the credentials are erased that this needs. Gives up after some seconds. If the
/// account is not removed after all, its instances are subscribed again.
pub(crate) async fn unsubscribe_before_removal(
    app: &App,
    project: &Project,
    account: Option<&AccountId>,
) {
    let ending = timeout(REMOVAL_TIMEOUT, end_subscriptions(app, project, account));
    let failure = match ending.await {
        Ok(Ok(())) => return,
        Ok(Err(cause)) => cause.to_string(),
        Err(late) => late.to_string(),
    };
    let project = &project.id;
    tracing::warn!(%project, failure, "providers may still send events of removed trigger instances");
}

/// Ends the subscriptions of an account, or of all accounts of a project, as far as the providers
/// allow it.
async fn end_subscriptions(
    app: &App,
    project: &Project,
    account: Option<&AccountId>,
) -> Result<()> {
    let query = Query::for_project(project.id.as_str()).uncounted();
    let mut query = query.page(0, SUBSCRIPTIONS_PER_READ);
    loop {
        let mut page = app.store.list::<ProviderSubscription>(&query).await?;
        page.items
            .retain(|found| account.is_none_or(|account| found.body.account == *account));
        stream::iter(page.items)
            .for_each_concurrent(MAX_CONCURRENT_ENDS, async |record| {
                let instance = record.body.instance.clone();
                let failure = match end_subscription(app, record).await {
                    Ok(None) => return,
                    Ok(Some(failure)) => failure,
                    Err(cause) => cause.to_string(),
                };
                tracing::warn!(%instance, failure, "the provider may still send events of a removed trigger instance");
            })
            .await;
        let Some(next) = page.next else {
            return Ok(());
        };
        query = query.after(next);
    }
}

/// Ends a subscription at its provider. Returns the reason if the provider may not have ended it.
async fn end_subscription(
    app: &App,
    record: Record<ProviderSubscription>,
) -> Result<Option<String>> {
    let Some(claim) = app.claims().take(record, LEASE_TTL).await? else {
        return Ok(Some("a worker has claimed the subscription".to_owned()));
    };
    let ending = async {
        let failure = match Subject::load(app, &claim).await? {
            Some(subject) => {
                let called = subject.call(app, SubscriptionAction::Unsubscribe).await?;
                called.err().filter(|failure| failure.kind != "not_found")
            }
            None => None,
        };
        let batch = claim.batch().await?;
        let (now, due) = (batch.now, time_after(batch.now, RETRY_DELAY));
        let ended = claim.end(batch, |record| {
            Outcome::NO_SUBSCRIPTION.note(record, now, Some(due));
        });
        ended.await?;
        Ok::<_, Error>(failure.map(|failure| failure.to_string()))
    };
    let ended = claim.keep(ending).await;
    ended.map_err(errors::unavailable)?
}
