//! The record of a run, from the start of the run until the log has it.
//!
//! Everything that ran has exactly one record. It is opened before the run, so that the log has room
//! for it, and closed with the result. If the future of the run is dropped in between, because the
//! client disconnected or the server stops, the record is closed as cancelled. A run that was refused
//! leaves none. The end of a run is also counted and logged here.
use std::time::Instant;

use bytes::Bytes;
use sandbox::{Outcome, cassette::Cassette, kind};
use scopeguard::ScopeGuard;
use store::Time;

use super::{
    counts::{ExecutionEnd, HOST_TOOLS},
    log::{Entry, Observed, Slot, Subject},
    present::Presented,
};
use crate::{App, Clock, Result, core::ids::LogId};

/// The error message of a run whose future was dropped.
const CANCELLED_MESSAGE: &str = "the client disconnected, or the server stopped, before the result";

/// The record of a run that has not ended. Dropping it cancels it.
pub(super) struct OpenRecord<'a>(ScopeGuard<Open<'a>, fn(Open<'a>)>);

/// The start of a run.
#[derive(Clone, Copy)]
pub(super) struct Start {
    /// Time by the clock of the app.
    pub time: Time,
    /// The same time, to measure durations.
    instant: Instant,
}

impl Start {
    /// Returns the start of a run that begins now.
    pub(super) fn now(clock: &Clock) -> Self {
        Self {
            time: clock.now(),
            instant: Instant::now(),
        }
    }
}

struct Open<'a> {
    app: &'a App,
    slot: Slot,
    id: LogId,
    start: Start,
    subject: Subject,
    /// The observations of the sandbox, once something has run.
    observed: Option<Observed>,
    cassette: Option<Cassette>,
}

impl<'a> OpenRecord<'a> {
    /// Opens the record of a run. Waits while the log has no room.
    pub(super) async fn open(app: &'a App, subject: Subject) -> Result<Self> {
        let slot = app.log.reserve().await?;
        Ok(Self::at(app, slot, subject, Start::now(&app.clock)))
    }

    /// Opens the record of a call that began earlier.
    pub(super) fn at(app: &'a App, slot: Slot, subject: Subject, start: Start) -> Self {
        let open = Open {
            app,
            slot,
            id: app.sequence.log(start.time),
            start,
            subject,
            observed: None,
            cassette: None,
        };
        Self(scopeguard::guard(open, Open::cancel))
    }

    /// Returns the id of the record.
    pub(super) fn id(&self) -> &LogId {
        &self.0.id
    }

    /// Takes the observations of the sandbox out of an outcome.
    pub(super) fn observe<T>(&mut self, outcome: &mut Outcome<T>) {
        self.0.observed = Some(Observed {
            requests: std::mem::take(&mut outcome.requests),
            log: std::mem::take(&mut outcome.log),
            usage: outcome.usage,
        });
    }

    /// Adds the cassette of the run.
    pub(super) fn set_cassette(&mut self, cassette: Option<Cassette>) {
        self.0.cassette = cassette;
    }

    /// Closes the record with the result. Returns false if the settings require the call to wait for
    /// the record and the record could not be written.
    pub(super) async fn close(self, data: Bytes, error: Option<String>) -> bool {
        let end = match error {
            None => ExecutionEnd::Success,
            Some(_) => ExecutionEnd::Failed,
        };
        let (slot, entry) = ScopeGuard::into_inner(self.0).end(end, data, error);
        slot.submit(entry).await
    }
}

impl Open<'_> {
    fn end(self, end: ExecutionEnd, data: Bytes, error: Option<String>) -> (Slot, Entry) {
        self.report(end);
        let recorder = &self.app.log.recorder;
        let cassette = self.cassette;
        let entry = Entry {
            id: self.id,
            subject: self.subject,
            started_at: self.start.time,
            ended_at: self.app.clock.now(),
            data,
            cassette: cassette.and_then(|cassette| recorder.reserve(cassette, error.is_some())),
            error,
            observed: self.observed.unwrap_or_default(),
        };
        (self.slot, entry)
    }

    fn cancel(self) {
        if self.observed.is_some() {
            let cancelled = Presented::failure(kind::CANCELLED, CANCELLED_MESSAGE, None);
            let (slot, entry) = self.end(ExecutionEnd::Cancelled, cancelled.kept, cancelled.error);
            // Nothing waits for the record.
            drop(slot.enter(entry));
        }
    }

    /// Counts and logs the end of the run. Arguments, results and errors of tools are not logged,
    /// because they may contain data of users.
    fn report(&self, end: ExecutionEnd) {
        let duration = self.start.instant.elapsed();
        let subject = &self.subject;
        let release = subject.release.as_deref();
        let toolkit = release.map_or(HOST_TOOLS, |release| &*release.slug);
        self.app.executions.count(toolkit, end, duration);
        tracing::info!(
            target: "toolhost::execution",
            toolkit,
            tool = &*subject.tool,
            version = release.map(|release| release.version.as_str()),
            outcome = end.as_str(),
            duration_ms = duration.as_micros() as f64 / 1_000.0,
            project = subject.project.id.as_str(),
            request_id = subject.request_id.as_str(),
            log_id = self.id.as_str(),
            "execution"
        );
    }
}
