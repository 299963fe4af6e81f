//! The record of a run, from the start of the run until the log has it.
//!
//! Everything that ran has exactly one record. It is opened before the run, so that the log has room
//! for it, and closed with the result. If the future of the run is dropped in between, because the
//! client disconnected or the server stops, the record is closed as cancelled. A run that was refused
//! leaves none.
use bytes::Bytes;
use sandbox::{Outcome, cassette::Cassette, kind};
use scopeguard::ScopeGuard;
use store::Time;

use super::{
    log::{Entry, Observed, Slot, Subject},
    present::Presented,
};
use crate::{App, Result, core::ids::LogId};

/// The error message of a run whose future was dropped.
const CANCELLED_MESSAGE: &str = "the client disconnected, or the server stopped, before the result";

/// The record of a run that has not ended. Dropping it cancels it.
pub(super) struct OpenRecord<'a>(ScopeGuard<Open<'a>, fn(Open<'a>)>);

struct Open<'a> {
    app: &'a App,
    slot: Slot,
    id: LogId,
    started_at: Time,
    subject: Subject,
    /// The observations of the sandbox, once something has run.
    observed: Option<Observed>,
    cassette: Option<Cassette>,
}

impl<'a> OpenRecord<'a> {
    /// Opens the record of a run. Waits while the log has no room.
    pub(super) async fn open(app: &'a App, subject: Subject) -> Result<Self> {
        let slot = app.log.reserve().await?;
        Ok(Self::at(app, slot, subject, app.clock.now()))
    }

    /// Opens the record of a call that began at a time.
    pub(super) fn at(app: &'a App, slot: Slot, subject: Subject, started_at: Time) -> Self {
        let open = Open {
            app,
            slot,
            id: app.sequence.log(started_at),
            started_at,
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
        let (slot, entry) = ScopeGuard::into_inner(self.0).end(data, error);
        slot.submit(entry).await
    }
}

impl Open<'_> {
    fn end(self, data: Bytes, error: Option<String>) -> (Slot, Entry) {
        let recorder = &self.app.log.recorder;
        let cassette = self.cassette;
        let entry = Entry {
            id: self.id,
            subject: self.subject,
            started_at: self.started_at,
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
            let (slot, entry) = self.end(cancelled.kept, cancelled.error);
            // Nothing waits for the record.
            drop(slot.enter(entry));
        }
    }
}
