//! The record of a run, from the start of the run until the log has it.
//!
//! A run of a tool or of a proxy request that a client asked for has exactly one record. It is
//! opened before the run, so that the log has capacity for it, and closed with the result. If the
//! future of the run is dropped in between, because the client disconnected or the server stops,
//! the record is closed as cancelled. A refused run leaves no record. The end of a run is also
//! counted, logged and traced here.
use std::time::{Duration, Instant};

use bytes::Bytes;
use sandbox::{Outcome, RequestRecord, RunTrace, cassette::Cassette, kind};
use scopeguard::ScopeGuard;
use store::Time;
use tokio::sync::oneshot;

use super::{
    counts::{ExecutionEnd, HOST_TOOLS},
    log::{Entry, MAX_QUOTA_MULTIPLE, Observed, Slot, Subject},
    present::Presented,
};
use crate::{
    App, Clock, Result,
    core::{
        ids::LogId,
        trace::{OpenSpan, SpanContext, SpanKind, Work},
    },
    projects::{Project, quotas::Kind},
    runs::errors,
};

/// The error message of a run whose future was dropped.
const CANCELLED_MESSAGE: &str = "the client disconnected, or the server stopped, before the result";

/// The record of a run that has not ended. Dropping it cancels it.
pub(super) struct OpenRecord<'a>(ScopeGuard<Box<Open<'a>>, fn(Box<Open<'a>>)>);

/// The start of a run.
#[derive(Clone, Copy)]
pub(super) struct Start {
    /// Time by the clock of the app.
    pub time: Time,
    /// The same time, to measure durations.
    instant: Instant,
}

impl Start {
    /// Returns the start of a run that starts now.
    pub(super) fn now(clock: &Clock) -> Self {
        Self {
            time: clock.now(),
            instant: Instant::now(),
        }
    }
}

/// Reserves the slot for the record of a run. Waits while the buffer of the log is full. Fails if the
/// project has written too much into the log in a day.
pub(super) async fn reserve_slot(app: &App, project: &Project) -> Result<Slot> {
    let (owner, now) = (project.id.as_str(), app.clock.now());
    if app
        .quotas
        .is_past(Kind::Log, owner, MAX_QUOTA_MULTIPLE, now)
    {
        return Err(errors::log_full());
    }
    app.log.reserve().await
}

struct Open<'a> {
    app: &'a App,
    slot: Slot,
    id: LogId,
    start: Start,
    subject: Subject,
    /// The span, if the run is traced.
    span: Option<OpenSpan>,
    /// The observations of the sandbox, once something has run.
    observed: Option<Observed>,
    /// The cassette, in a box, because few runs have one and it is large.
    cassette: Option<Box<Cassette>>,
}

impl<'a> OpenRecord<'a> {
    /// Opens the record of a run that starts now.
    pub(super) fn open(app: &'a App, slot: Slot, subject: Subject) -> Self {
        Self::at(app, slot, subject, Start::now(&app.clock))
    }

    /// Opens the record of a call that started earlier.
    pub(super) fn at(app: &'a App, slot: Slot, subject: Subject, start: Start) -> Self {
        let open = Open {
            app,
            slot,
            id: app.sequence.log(start.time),
            start,
            span: app.tracer.begin(|| subject.request_id.span()),
            subject,
            observed: None,
            cassette: None,
        };
        Self(scopeguard::guard(Box::new(open), Open::cancel))
    }

    pub(super) fn id(&self) -> &LogId {
        &self.0.id
    }

    /// Returns the trace of the run, or `None` if it is not traced.
    pub(super) fn trace(&self) -> Option<RunTrace> {
        self.0.span.map(|span| self.0.app.tracer.run(span))
    }

    /// Takes the observations of the sandbox out of an outcome.
    pub(super) fn observe<T>(&mut self, outcome: &mut Outcome<T>) {
        self.0.observed = Some(Observed {
            requests: std::mem::take(&mut outcome.requests),
            log: std::mem::take(&mut outcome.log),
            usage: outcome.usage,
        });
    }

    /// Returns true if a provider has responded to a request of the run.
    pub(super) fn has_response(&self) -> bool {
        let observed = self.0.observed.as_ref();
        observed.is_some_and(|observed| observed.requests.iter().any(|sent| sent.status.is_some()))
    }

    /// Returns the HTTP status of the last response of a provider.
    pub(super) fn last_status(&self) -> Option<u16> {
        let requests = &self.0.observed.as_ref()?.requests;
        requests.iter().rev().find_map(|sent| sent.status)
    }

    /// Adds the cassette of the run.
    pub(super) fn set_cassette(&mut self, cassette: Option<Box<Cassette>>) {
        self.0.cassette = cassette;
    }

    /// Closes the record with the result. Returns false if the settings require the call to wait for
    /// the record and the record could not be written.
    pub(super) async fn close(self, data: Bytes, error: Option<String>) -> bool {
        let end = match error {
            None => ExecutionEnd::Success,
            Some(_) => ExecutionEnd::Failed,
        };
        match ScopeGuard::into_inner(self.0).end(end, data, error) {
            Some(written) => written.await.is_ok(),
            None => true,
        }
    }
}

impl Open<'_> {
    /// Enters the record into the log. Returns a signal for its durability if the settings require
    /// the call to wait for it.
    fn end(
        self: Box<Self>,
        end: ExecutionEnd,
        data: Bytes,
        error: Option<String>,
    ) -> Option<oneshot::Receiver<()>> {
        self.report(end);
        let log = &self.app.log;
        let cassette = self.cassette;
        let entry = Entry {
            id: self.id,
            subject: self.subject,
            started_at: self.start.time,
            ended_at: self.app.clock.now(),
            data,
            cassette: cassette.and_then(|kept| log.recorder.reserve(kept, error.is_some())),
            error,
            observed: self.observed.unwrap_or_default(),
            trace: self.span.map(|span| span.context.trace),
        };
        log.enter(self.slot, entry)
    }

    fn cancel(self: Box<Self>) {
        if self.observed.is_some() {
            let cancelled = Presented::failure(kind::CANCELLED, CANCELLED_MESSAGE, None);
            // Nothing waits for the record.
            drop(self.end(ExecutionEnd::Cancelled, cancelled.kept, cancelled.error));
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
            outcome = end.into_str(),
            duration_ms = duration.as_micros() as f64 / 1_000.0,
            project = subject.project.id.as_str(),
            request_id = &*subject.request_id,
            log_id = self.id.as_str(),
            trace_id = self.span.map(|span| display(span.context.trace)),
            "execution"
        );
        if let Some(span) = self.span {
            self.report_spans(span, end, duration);
        }
    }

    /// Ends the spans of the run and of its requests.
    fn report_spans(&self, span: OpenSpan, end: ExecutionEnd, duration: Duration) {
        let tracer = &self.app.tracer;
        let requests = self.observed.iter().flat_map(|own| &own.requests);
        for request in requests {
            if let Some(traced) = &request.span {
                let context = SpanContext {
                    span: traced.id,
                    ..span.context
                };
                let place = OpenSpan {
                    context,
                    parent: Some(span.context.span),
                };
                tracer.end(place, traced.started, request.elapsed, || {
                    request_work(request, &traced.host)
                });
            }
        }
        tracer.end(span, self.start.instant, duration, || self.work(end));
    }

    fn work(&self, end: ExecutionEnd) -> Work {
        let subject = &self.subject;
        let mut attributes = vec![
            ("gen_ai.operation.name", "execute_tool".into()),
            ("gen_ai.tool.name", (&*subject.tool).into()),
            ("toolhost.outcome", end.into_str().into()),
            ("toolhost.project", subject.project.id.as_str().into()),
            ("toolhost.log_id", self.id.as_str().into()),
        ];
        if let Some(release) = &subject.release {
            attributes.push(("toolhost.toolkit", (&*release.slug).into()));
            attributes.push(("toolhost.version", release.version.as_str().into()));
        }
        Work {
            name: format!("execute_tool {}", subject.tool),
            kind: SpanKind::Internal,
            attributes,
            failed: end != ExecutionEnd::Success,
        }
    }
}

/// Describes a request of the run. Its URL is left out, because it may contain arguments.
fn request_work(request: &RequestRecord, host: &str) -> Work {
    let mut attributes = vec![
        ("http.request.method", request.method.as_str().into()),
        ("server.address", host.into()),
    ];
    if let Some(status) = request.status {
        attributes.push(("http.response.status_code", status.into()));
    }
    Work {
        name: request.method.clone(),
        kind: SpanKind::Client,
        attributes,
        failed: request.status.is_none_or(|status| status >= 400),
    }
}
