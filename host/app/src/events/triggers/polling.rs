//! Polling of trigger instances.
//!
//! Each instance of a polling trigger is a record due at its next poll ([`Progress`]). A worker
//! claims it, runs the guest's `poll`, and commits the events, the new cursor and the state of the
//! guest under its claim. Many or large events are committed in parts, the cursor with the last of
//! them. After a worker that dies or loses its claim, the next one therefore polls again from the
//! old cursor. An event that the guest reports twice is delivered once.

use std::time::Duration;

use gate::{PacedPermit, Shares};
use net::MAX_RETRY_AFTER;
use sandbox::{Action, Event, Failure, Output, Reservation};
use store::{Batch, CommitError, Record, Time};

use super::{
    DisabledReason, Instance,
    config::{self, Config},
    disabling,
    progress::{MAX_MEMORY_BYTES, Memory, Progress, Seal},
    schedule::not_below,
    source,
};
use crate::{
    App, Result, accounts,
    catalog::ResolvedTrigger,
    core::{clock::time_after, ids::ProjectId, truncate},
    events::{errors, event::NewEvent, outbox},
    files,
    projects::{self, Project},
    runs::{self, TriggerCall},
    work::{Admission, Claim, LEASE_TTL, Next, Queue, doubled},
};

/// Shares of projects in the polls that one server runs at a time.
pub const POLL_SHARES: Shares = Shares {
    total: 24,
    reserve: 8,
    base: 1,
    cap: 16,
};
/// Delay before a poll that could not run is tried again.
pub(super) const RETRY_DELAY: Duration = Duration::from_secs(15);
/// Maximum number of polls that follow one another without an interval.
pub const MAX_ROUNDS: u32 = 20;
/// Maximum number of events of one poll.
pub const MAX_EVENTS: usize = 1_000;
/// Bytes of the payloads of the events of a poll that are committed together, unless one event has more.
const MAX_PART_BYTES: usize = 1 << 20;
/// Maximum interval between polls that fail.
const MAX_FAILURE_INTERVAL: Duration = Duration::from_secs(3_600);
/// Number of failures in a row after which an instance may be disabled.
const MIN_FAILURES: u32 = 3;

/// Result of one poll.
#[derive(Debug)]
pub struct Polled {
    /// Number of events that the poll found.
    pub events: usize,
    /// True if another poll follows immediately.
    pub more: bool,
    /// Error of the poll, if it failed.
    pub error: Option<String>,
}

impl Polled {
    fn failed(error: String) -> Self {
        Self {
            events: 0,
            more: false,
            error: Some(error),
        }
    }
}

pub(crate) fn queue() -> Queue<Progress, App, PacedPermit> {
    Queue {
        name: "trigger_polls",
        shares: POLL_SHARES,
        lease_ttl: LEASE_TTL,
        retry_delay: |_| RETRY_DELAY,
        admission: Admission {
            key: |progress| format!("polls {}", progress.project),
            acquire: |app, key, now| app.pacer.acquire(key, now.0),
            retry_at: None,
        },
        work: |app: &App, claim, mut permit| {
            Box::pin(async move {
                poll(app, &claim).await?;
                permit.accepted(POLL_SHARES.cap as usize);
                Ok(Next::Ended)
            })
        },
    }
}

/// Polls a claimed instance and ends the claim. Fails if the poll could not run, for example
/// because the server is busy. The claim is still held then.
pub(super) async fn poll(app: &App, claim: &Claim<Progress>) -> Result<Polled> {
    let Some(mut subject) = Subject::load(app, claim).await? else {
        claim.erase(claim.batch().await?).await?;
        return Err(errors::instance_deleted(claim.id()));
    };
    match subject.resume_and_run(app, claim).await {
        Ok(Ok(found)) => subject.commit(app, claim, found).await,
        Ok(Err(failed)) => subject.fail(app, claim, failed).await,
        Err(cause) if cause.is(&errors::ACCOUNT_NOT_ACTIVE) => {
            let reason = DisabledReason::ConnectionExpired;
            subject.disable(app, claim, reason, cause.to_string()).await
        }
        Err(cause) if disabling::is_account_gone(&cause) => {
            let batch = claim.batch().await?.remove(&subject.instance);
            claim.erase(batch).await?;
            Err(errors::instance_deleted(claim.id()))
        }
        Err(cause) => Err(cause),
    }
}

/// A polled instance.
struct Subject {
    project: Project,
    instance: Record<Instance>,
    progress: Progress,
    found: ResolvedTrigger,
    config: Config,
    memory: Option<Memory>,
}

/// Result of a poll that succeeded.
struct Found {
    events: Vec<Event>,
    /// Reservation for the memory of the events.
    reserved: Reservation,
    memory: Memory,
    more: bool,
}

struct Failed {
    error: String,
    retry_after: Option<Duration>,
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        Self {
            error: failure.to_string(),
            retry_after: failure.retry_after,
        }
    }
}

impl Subject {
    /// Reads all that a poll needs. Returns `None` if the instance or its project does not exist.
    async fn load(app: &App, claim: &Claim<Progress>) -> Result<Option<Self>> {
        let Some(instance) = app.store.lookup::<Instance>(claim.id()).await? else {
            return Ok(None);
        };
        let project = ProjectId::parse(&instance.project)?;
        let Some(project) = projects::find(app, &project).await? else {
            return Ok(None);
        };
        let body = &instance.body;
        let found = app.catalog.trigger(&body.trigger, &body.version)?;
        let progress = claim.body().await;
        let seal = Seal::new(app, &project.id, claim.id()).await?;
        Ok(Some(Self {
            config: seal.open_config(&progress)?,
            memory: seal.open_memory(&progress)?,
            project,
            instance,
            progress,
            found,
        }))
    }

    /// Enables the instance again if its account is active again, and runs the guest. An outer error
    /// means that nothing ran.
    async fn resume_and_run(
        &mut self,
        app: &App,
        claim: &Claim<Progress>,
    ) -> Result<std::result::Result<Found, Failed>> {
        if !self.instance.body.is_enabled() {
            if !self.instance.body.waits_for_account() {
                return Err(errors::instance_disabled(claim.id()));
            }
            disabling::resume(app, &self.project, claim, &mut self.instance).await?;
        }
        self.run(app).await
    }

    /// Runs the guest. An outer error means that nothing ran.
    async fn run(&self, app: &App) -> Result<std::result::Result<Found, Failed>> {
        let outcome = runs::call_trigger(app, self.call(app).await?).await?;
        let (events, cursor, more) = match outcome.output {
            Ok(Output::Polled {
                events,
                cursor,
                more,
            }) => (events, cursor, more),
            Ok(_) => return Ok(Err(runs::wrong_output().into())),
            Err(failure) => return Ok(Err(failure.into())),
        };
        let memory = Memory::new(&cursor, outcome.state);
        let retry_after = None;
        let failed = |error: String| Ok(Err(Failed { error, retry_after }));
        if memory.size() > MAX_MEMORY_BYTES {
            return failed(format!(
                "the cursor and the state of the trigger have more than {MAX_MEMORY_BYTES} bytes"
            ));
        }
        if events.len() > MAX_EVENTS {
            let count = events.len();
            return failed(format!(
                "the poll reported {count} events; at most {MAX_EVENTS} are allowed, and `more` for the rest"
            ));
        }
        let bytes = events.iter().map(|event| event.payload.len() as u64).sum();
        let reserved = files::reserve_memory(app, &self.project.tenant, bytes)?;
        if let Some(problem) = self.payload_problem(app, &events).await? {
            return failed(problem);
        }
        Ok(Ok(Found {
            events,
            reserved,
            memory,
            more,
        }))
    }

    /// Returns the call of the guest. Fails if the account cannot be used.
    async fn call(&self, app: &App) -> Result<TriggerCall<'_>> {
        let (release, account) = (&self.found.release, &self.instance.body.account);
        let token = accounts::FirstToken::Fresh;
        let granted = accounts::grant_trigger(app, &self.project, release, account, token).await?;
        let memory = self.memory.as_ref();
        Ok(TriggerCall {
            project: &self.project,
            found: &self.found,
            action: Action::Poll {
                trigger: self.found.trigger.slug.clone(),
                config: config::text(&self.config)?.into(),
                cursor: memory.map(Memory::cursor).unwrap_or_default(),
            },
            state: memory.map(Memory::state).unwrap_or_default(),
            user_id: self.instance.body.user_id.clone(),
            granted,
            webhook_secret: None,
        })
    }

    /// Returns the problem of the first event whose data does not match the payload schema.
    async fn payload_problem(&self, app: &App, events: &[Event]) -> Result<Option<String>> {
        let payload = &self.found.trigger.payload;
        for event in events {
            let problems = payload.problems(&app.large_work, &self.project.tenant, &event.payload);
            if let Some(problem) = problems.await?.first() {
                return Ok(Some(format!(
                    "the data of event {} does not match the payload schema: {problem}",
                    truncate(&event.id)
                )));
            }
        }
        Ok(None)
    }

    /// Commits the events and the new cursor, and ends the claim. The poll has failed if the events
    /// exceed the quota of the project.
    async fn commit(&self, app: &App, claim: &Claim<Progress>, found: Found) -> Result<Polled> {
        let _reserved = found.reserved;
        let mut seen = self.progress.seen.clone();
        let mut recent = self.progress.recent.clone();
        let is_first = self.memory.is_none();
        let mut events = Vec::new();
        for event in found.events {
            // The first poll only sets the cursor. The events that it reports are older than the
            // instance.
            if seen.insert(&event.id) && !is_first {
                events.push(source::new_event(app, &self.instance, &event)?);
            }
        }
        let mut count = 0;
        let mut parts = parts(events).into_iter();
        let (batch, now) = loop {
            let part = parts.next().unwrap_or_default();
            let batch = claim.batch().await?;
            let now = batch.now;
            let added = match outbox::add_all(app, &self.project.id, batch, &part).await {
                Err(cause) if cause.is(&errors::EVENTS_FULL) => {
                    // The cursor stays, so that a later poll finds the events again.
                    let error = cause.to_string();
                    let retry_after = None;
                    return self.fail(app, claim, Failed { error, retry_after }).await;
                }
                added => added?,
            };
            for id in &added.ids {
                recent.add(*id, now);
            }
            count += added.ids.len();
            if parts.len() == 0 {
                break (added.batch, now);
            }
            let stored = claim.edit_with(added.batch, |progress| progress.recent = recent.clone());
            unless_changed(claim, stored.await)?;
        };
        let more = found.more && self.progress.rounds < MAX_ROUNDS;
        let due = if more {
            now
        } else {
            self.next_poll(app, now, self.interval(app))
        };
        let memory = self.seal(app).await?.memory(&found.memory)?;
        end(claim, batch, |progress| {
            progress.succeed(memory, seen, now);
            progress.recent = recent;
            progress.rounds = if more { progress.rounds + 1 } else { 0 };
            progress.work.reschedule(due);
        })
        .await?;
        Ok(Polled {
            events: count,
            more,
            error: None,
        })
    }

    /// Notes a failure, and disables the instance if it has failed for too long.
    async fn fail(&self, app: &App, claim: &Claim<Progress>, failed: Failed) -> Result<Polled> {
        let batch = claim.batch().await?;
        let now = batch.now;
        let failures = self.progress.failures.saturating_add(1);
        let since = self.progress.failing_since.unwrap_or(now);
        if failures >= MIN_FAILURES && app.triggers.disables(since, now) {
            let reason = DisabledReason::PollingFailure;
            return self.disable(app, claim, reason, failed.error).await;
        }
        let interval = self.interval(app);
        let delay = doubled(interval, MAX_FAILURE_INTERVAL.max(interval), failures);
        let asked = failed.retry_after.unwrap_or_default().min(MAX_RETRY_AFTER);
        let due = self.next_poll(app, now, delay.max(asked));
        let error = self.seal(app).await?.error(&failed.error)?;
        end(claim, batch, |progress| {
            progress.fail(error, now);
            progress.work.reschedule(due);
        })
        .await?;
        Ok(Polled::failed(failed.error))
    }

    /// Disables the instance and ends the claim.
    async fn disable(
        &self,
        app: &App,
        claim: &Claim<Progress>,
        reason: DisabledReason,
        error: String,
    ) -> Result<Polled> {
        let batch = claim.batch().await?;
        let now = batch.now;
        let sealed = self.seal(app).await?.error(&error)?;
        // The instance of an inactive account stays due, so that it is enabled again when the
        // account is.
        let due = (reason == DisabledReason::ConnectionExpired)
            .then(|| time_after(now, not_below(self.interval(app))));
        let batch = if self.instance.body.is_enabled() {
            let instance = self.instance.clone();
            let config = self.config.clone();
            disabling::add(app, &self.project, batch, instance, config, reason).await?
        } else {
            batch
        };
        end(claim, batch, |progress| {
            progress.fail(sealed, now);
            progress.stop();
            progress.work.due = due;
            // An instance enabled again has not failed yet.
            (progress.failing_since, progress.failures) = (None, 0);
        })
        .await?;
        Ok(Polled::failed(error))
    }

    async fn seal(&self, app: &App) -> Result<Seal<'_>> {
        Seal::new(app, &self.project.id, &self.instance.id).await
    }

    fn interval(&self, app: &App) -> Duration {
        self.progress.schedule.interval(app.triggers.poll_interval)
    }

    /// Returns the time of the next poll, which is at least `delay` after `now`.
    fn next_poll(&self, app: &App, now: Time, delay: Duration) -> Time {
        let schedule = &self.progress.schedule;
        schedule.next(now, delay, app.triggers.poll_interval)
    }
}

/// Returns events in parts of [`MAX_PART_BYTES`], in their order.
fn parts(events: Vec<NewEvent>) -> Vec<Vec<NewEvent>> {
    let mut parts = Vec::<Vec<NewEvent>>::new();
    let mut bytes = 0;
    for event in events {
        bytes += event.data.len();
        match parts.last_mut() {
            Some(part) if bytes <= MAX_PART_BYTES => part.push(event),
            _ => {
                bytes = event.data.len();
                parts.push(vec![event]);
            }
        }
    }
    parts
}

/// Ends a claim, unless the instance was changed meanwhile.
async fn end(
    claim: &Claim<Progress>,
    batch: Batch,
    change: impl FnOnce(&mut Progress),
) -> Result<()> {
    unless_changed(claim, claim.end(batch, change).await)
}

/// Returns the result of a commit under a claim. A stale one fails because the instance was changed.
fn unless_changed(
    claim: &Claim<Progress>,
    committed: std::result::Result<(), CommitError>,
) -> Result<()> {
    match committed {
        Err(CommitError::Stale) => Err(errors::instance_changed(claim.id())),
        done => Ok(done?),
    }
}
