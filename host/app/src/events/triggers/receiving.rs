//! Webhooks of a provider, as one trigger instance receives them.
//!
//! The guest verifies the signature and turns the request into events. They are stored in one batch
//! that depends on the instance, so that a disabled or deleted instance reports nothing. The id of
//! an event follows from the instance and from the id that the guest gives it: a request that the
//! provider repeats adds nothing while its event is stored.

use std::{collections::BTreeMap, sync::Arc};

use sandbox::{Action, Event, Inbound, Output};
use store::{Batch, Listed, Predicate, Query, Record, Window};

use super::{
    COLLECTION, DisabledReason, Instance, MAX_EVENTS,
    config::{self, Config},
    disabling,
    progress::{Progress, Seal},
    source,
};
use crate::{
    App, Error, Result, accounts,
    catalog::{Release, ResolvedTrigger},
    core::{ids::TriggerInstanceId, truncate},
    events::{endpoints::Values, errors, outbox},
    projects::Project,
    runs::{self, TriggerCall},
};

/// Number of trigger instances that are read at a time at the start.
const INSTANCES_PER_PAGE: u64 = 500;
/// Failure kind with which a guest refuses a signature.
const UNAUTHORIZED_KIND: &str = "unauthorized";
/// Failure kind with which a guest refuses a body.
const INVALID_INPUT_KIND: &str = "invalid_input";

/// Response to a provider.
#[derive(Debug)]
pub(in crate::events) struct Answer {
    pub(in crate::events) status: u16,
    pub(in crate::events) media_type: String,
    /// Body, for example the challenge of a handshake.
    pub(in crate::events) body: bytes::Bytes,
}

/// Compiles the components of all enabled trigger instances that this server has not compiled yet, so that
/// no webhook waits for that after an upgrade.
pub(crate) async fn compile_all(app: &App) {
    let releases = match enabled_releases(app).await {
        Ok(releases) => releases,
        Err(cause) => {
            tracing::warn!(%cause, "the toolkits of enabled triggers are compiled when they are called");
            return;
        }
    };
    for release in releases.values() {
        if let Err(cause) = runs::compile(app, release).await {
            let (toolkit, version) = (&release.slug, release.version.as_str());
            tracing::warn!(%cause, %toolkit, version, "the toolkit of an enabled trigger is not compiled");
        }
    }
}

/// Returns the releases whose components enabled trigger instances call, each once.
async fn enabled_releases(app: &App) -> Result<BTreeMap<String, Arc<Release>>> {
    let is_set = Predicate::AtLeast(i64::MIN);
    let enabled = Query::all_projects().test("disabled_at", Predicate::Not(Box::new(is_set)));
    let mut releases = BTreeMap::new();
    let mut window = Some(Window::first(INSTANCES_PER_PAGE));
    while let Some(next) = window.take() {
        let query = enabled.clone().window(next.clone()).uncounted();
        let page = app.store.list::<Instance>(&query).await?;
        for Record { body, .. } in page.items {
            if let Ok(found) = app.catalog.trigger(&body.trigger, &body.version) {
                releases.insert(found.release.digest.to_string(), found.release);
            }
        }
        window = page.next.map(|cursor| next.after(cursor));
    }
    Ok(releases)
}

/// Returns a page of the instances of these trigger types that receive, or that do again when their
/// account is active: the one with an address of its own, or those without.
pub(in crate::events) async fn receivers(
    app: &App,
    project: &Project,
    triggers: &[&str],
    own: Option<&TriggerInstanceId>,
    window: Window,
) -> Result<Listed<Record<Instance>>> {
    let owner = project.id.as_str();
    let mut page = if let Some(id) = own {
        let found = app.store.get::<Instance>(owner, id.as_str()).await?;
        let found = found.filter(|found| triggers.contains(&found.body.trigger.as_str()));
        Listed {
            items: found.into_iter().collect(),
            total: 0,
            next: None,
        }
    } else {
        let query = Query::for_project(owner)
            .any_of("trigger", triggers.iter().copied())
            .window(window)
            .uncounted();
        app.store.list(&query).await?
    };
    page.items.retain(|instance| {
        let is_addressed = instance.body.subscription.is_some() == own.is_some();
        is_addressed && (instance.body.is_enabled() || instance.body.waits_for_account())
    });
    Ok(page)
}

/// A trigger instance to which a provider sent a request.
pub(in crate::events) struct Receiver<'a> {
    pub(in crate::events) project: &'a Project,
    pub(in crate::events) instance: Record<Instance>,
    /// Values of the endpoint, which take precedence over the configuration.
    pub(in crate::events) values: &'a Values,
}

impl Receiver<'_> {
    /// Has the guest process a request, and stores its events. Returns `None` if the instance
    /// receives nothing, because its account is not active, which disables the instance, or because
    /// its version of the toolkit is polled.
    pub(in crate::events) async fn receive(
        &self,
        app: &App,
        request: &Inbound,
    ) -> Result<Option<Answer>> {
        let progress = match Progress::get(app, &self.project.id, &self.instance.id).await {
            Ok(progress) => progress,
            Err(cause) if is_gone(&cause) => return Ok(None),
            Err(cause) => return Err(cause),
        };
        let received = self.process(app, &progress, request).await;
        let error = match &received {
            Ok(Some(_)) => None,
            Err(cause) if is_of_toolkit(cause) => Some(cause.to_string()),
            _ => return received,
        };
        if let Err(cause) = self.note(app, &progress, error).await {
            tracing::debug!(%cause, "the error of a webhook is not kept");
        }
        received
    }

    async fn process(
        &self,
        app: &App,
        progress: &Record<Progress>,
        request: &Inbound,
    ) -> Result<Option<Answer>> {
        let body = &self.instance.body;
        let found = app.catalog.trigger(&body.trigger, &body.version)?;
        if !found.trigger.kind.receives_webhooks() {
            return Ok(None);
        }
        if !self.instance.body.is_enabled() && !self.resume(app).await? {
            return Ok(None);
        }
        let received = match self.call(app, &found, progress, request).await {
            Ok(received) => received,
            Err(cause) if cause.is(&errors::ACCOUNT_NOT_ACTIVE) => {
                self.disable(app, progress).await?;
                return Ok(None);
            }
            Err(cause) if is_gone(&cause) => return Ok(None),
            Err(cause) => return Err(cause),
        };
        let Output::Received {
            events,
            status,
            media_type,
            body,
        } = received
        else {
            return Err(errors::webhook_not_processed(runs::wrong_output()));
        };
        check(app, self.project, &found, &events).await?;
        if !events.is_empty() {
            let receptions = &app.receptions;
            let stored = receptions.store(&self.instance.id, events, |webhooks| {
                self.commit(app, webhooks)
            });
            stored.await?;
        }
        Ok(Some(Answer {
            status,
            media_type,
            body,
        }))
    }

    async fn call(
        &self,
        app: &App,
        found: &ResolvedTrigger,
        progress: &Record<Progress>,
        request: &Inbound,
    ) -> Result<Output> {
        let account = &self.instance.body.account;
        // Most receivers send no request, and a token that cannot be refreshed must delay no webhook.
        let token = accounts::FirstToken::Stored;
        let granted =
            accounts::grant_trigger(app, self.project, &found.release, account, token).await?;
        let mut config = self.config(app, progress).await?;
        config.extend(self.values.clone());
        let call = TriggerCall {
            project: self.project,
            found,
            action: Action::Receive {
                trigger: found.trigger.slug.clone(),
                config: config::text(&config)?.into(),
                request: request.clone(),
            },
            state: BTreeMap::new(),
            user_id: self.instance.body.user_id.clone(),
            granted,
            webhook_secret: None,
        };
        let outcome = runs::call_trigger(app, call).await?;
        outcome.output.map_err(|failure| match &*failure.kind {
            UNAUTHORIZED_KIND => errors::webhook_not_signed(failure.message),
            INVALID_INPUT_KIND => errors::webhook_invalid(failure.message),
            _ => errors::webhook_not_processed(failure),
        })
    }

    /// Returns the configuration of the instance.
    async fn config(&self, app: &App, progress: &Record<Progress>) -> Result<Config> {
        let seal = Seal::new(app, &self.project.id, &self.instance.id).await?;
        seal.open_config(&progress.body)
    }

    /// Keeps the error of the last webhook, which lists of instances show. Nothing is written if
    /// the same error is stored.
    async fn note(
        &self,
        app: &App,
        progress: &Record<Progress>,
        error: Option<String>,
    ) -> Result<()> {
        let (project, id) = (&self.project.id, &self.instance.id);
        let seal = Seal::new(app, project, id).await?;
        if seal.open_status(&progress.body)?.last_error == error {
            return Ok(());
        }
        let error = error.map(|error| seal.error(&error)).transpose()?;
        let now = app.clock.now();
        let edited = app.store.edit(
            project.as_str(),
            id,
            now,
            |progress: &mut Progress| -> Result<()> {
                progress.last_error.clone_from(&error);
                Ok(())
            },
        );
        edited.await?;
        Ok(())
    }

    /// Reads the instance anew, unless it was deleted.
    async fn current(&self, app: &App) -> Result<Option<Record<Instance>>> {
        let project = self.project.id.as_str();
        Ok(app.store.get(project, &self.instance.id).await?)
    }

    /// Enables the instance if its account is active again. Returns true if it is enabled.
    async fn resume(&self, app: &App) -> Result<bool> {
        let resumed = app.store.change(&COLLECTION, &self.instance.id, || async {
            let batch = Batch::at(app.clock.now());
            let Some(mut instance) = self.current(app).await? else {
                return Ok((batch, false));
            };
            if !instance.body.waits_for_account() {
                return Ok((batch, instance.body.is_enabled()));
            }
            let account = &instance.body.account;
            match accounts::active_account(app, self.project, account).await {
                Ok(account) => {
                    instance.body.enable(batch.now);
                    Ok((batch.check(&account).update(&instance), true))
                }
                Err(cause) if cause.is(&errors::ACCOUNT_NOT_ACTIVE) || is_gone(&cause) => {
                    Ok((batch, false))
                }
                Err(cause) => Err(cause),
            }
        });
        Ok(resumed.await?)
    }

    /// Disables the instance, whose account is not active.
    async fn disable(&self, app: &App, progress: &Record<Progress>) -> Result<()> {
        let disabled = app.store.change(&COLLECTION, &self.instance.id, || async {
            let batch = Batch::at(app.clock.now());
            let instance = self.current(app).await?;
            let Some(instance) = instance.filter(|instance| instance.body.is_enabled()) else {
                return Ok::<_, Error>((batch, ()));
            };
            let config = self.config(app, progress).await?;
            let reason = DisabledReason::ConnectionExpired;
            let batch = disabling::add(app, self.project, batch, instance, config, reason);
            Ok((batch.await?, ()))
        });
        Ok(disabled.await?)
    }

    /// Commits the events of several webhooks in one batch, unless the instance was disabled or
    /// deleted in the meantime. Fails if they exceed the quota of the project.
    async fn commit(&self, app: &App, webhooks: Vec<Arc<[Event]>>) -> Result<()> {
        let (project, id) = (&self.project.id, &self.instance.id);
        let events: Vec<_> = webhooks.iter().flat_map(|events| events.iter()).collect();
        let stored = app.store.change(&COLLECTION, id, || async {
            let mut batch = Batch::at(app.clock.now());
            let instance = self.current(app).await?;
            let Some(instance) = instance.filter(|instance| instance.body.is_enabled()) else {
                return Ok::<_, Error>((batch, ()));
            };
            batch = batch.check(&instance);
            let new_events = events
                .iter()
                .map(|event| source::new_event(app, &instance, event))
                .collect::<Result<Vec<_>>>()?;
            let now = batch.now;
            let added = outbox::add_all(app, project, batch, &new_events).await?;
            let outbox::Added { batch, ids } = added;
            if ids.is_empty() {
                return Ok((batch, ()));
            }
            let mut progress = Progress::get(app, project, id).await?;
            for event in ids {
                progress.body.recent.add(event, now);
            }
            Ok((batch.update(&progress), ()))
        });
        Ok(stored.await?)
    }
}

fn is_of_toolkit(cause: &Error) -> bool {
    let of_toolkit = [
        &errors::WEBHOOK_NOT_SIGNED,
        &errors::WEBHOOK_INVALID,
        &errors::WEBHOOK_NOT_PROCESSED,
    ];
    of_toolkit.into_iter().any(|info| cause.is(info))
}

/// Returns true if the instance or its account was deleted.
fn is_gone(cause: &Error) -> bool {
    disabling::is_account_gone(cause) || cause.is(&errors::INSTANCE_DELETED)
}

/// Checks the number of events, and their data against the schema of the trigger type.
async fn check(
    app: &App,
    project: &Project,
    found: &ResolvedTrigger,
    events: &[Event],
) -> Result<()> {
    if events.len() > MAX_EVENTS {
        let count = events.len();
        return Err(errors::webhook_not_processed(format_args!(
            "{} reported {count} events of one webhook; at most {MAX_EVENTS} are allowed",
            found.trigger.slug
        )));
    }
    for event in events {
        let payload = &found.trigger.payload;
        let (large, data) = (&app.large_work, &event.payload);
        let problems = payload.problems(large, &project.tenant, data);
        if let Some(problem) = problems.await?.first() {
            return Err(errors::webhook_not_processed(format_args!(
                "the data of event {} does not match the payload schema of {}: {problem}",
                truncate(&event.id),
                found.trigger.slug
            )));
        }
    }
    Ok(())
}
