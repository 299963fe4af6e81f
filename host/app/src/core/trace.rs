//! Traces of the work of this server, for a collector of the operator (W3C Trace Context).
//!
//! A request, an execution and each request of a tool is a span. Spans that have ended wait in a
//! bounded buffer until they are exported. A span that finds the buffer full is dropped and counted,
//! so that tracing never delays work. Spans contain names of routes, tools and hosts, and ids;
//! arguments, results, paths and messages of errors are left out.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use sandbox::RunTrace;
pub use sandbox::{SpanContext, SpanId, TraceId};
use tokio::sync::mpsc;

use super::{clock::Clock, ids::random};

/// Maximum number of spans that wait to be exported.
pub const MAX_WAITING_SPANS: usize = 4_096;

/// The operator's settings of traces.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The share of the traces started here which is recorded, from 0 to 1. The caller decides for
    /// a trace that it started.
    pub sample_ratio: f64,
    /// True if providers get the `traceparent` of the requests of tools.
    pub propagates: bool,
}

/// Starts spans, and adds those that have ended to the buffer. By default it does neither.
#[derive(Debug, Default)]
pub struct Tracer {
    active: Option<Active>,
    counts: Arc<SpanCounts>,
}

/// The counts of spans of recorded traces.
#[derive(Debug, Default)]
pub struct SpanCounts {
    /// The number that was exported.
    pub exported: AtomicU64,
    /// The number that was not: the buffer was full, or the collector did not take them.
    pub dropped: AtomicU64,
}

/// The spans that have ended, for export.
#[derive(Debug)]
pub struct EndedSpans {
    /// The buffer. It ends with the tracer.
    pub buffer: mpsc::Receiver<Span>,
    /// The counts, which the export completes.
    pub counts: Arc<SpanCounts>,
}

#[derive(Debug)]
struct Active {
    sender: mpsc::Sender<Span>,
    clock: Clock,
    /// A trace is recorded if the lower 63 bits of its id are less.
    sample_below: u64,
    propagates: bool,
}

/// A span that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenSpan {
    /// The span.
    pub context: SpanContext,
    /// The span that caused it, or `None` for the first span of a trace.
    pub parent: Option<SpanId>,
}

/// A span that has ended.
#[derive(Debug)]
pub struct Span {
    /// The position of the span in its trace.
    pub place: OpenSpan,
    /// The time from 1970 to the start.
    pub start: Duration,
    /// The time from 1970 to the end.
    pub end: Duration,
    /// The description of the work.
    pub work: Work,
}

/// Description of the work of a span.
#[derive(Debug)]
pub struct Work {
    /// The name, which many spans share.
    pub name: String,
    /// The kind.
    pub kind: SpanKind,
    /// Names and values.
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// True if the work failed.
    pub failed: bool,
}

/// The side of the work that a span describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// Work inside the server.
    Internal,
    /// The answer to a request.
    Server,
    /// A request to another server.
    Client,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttributeValue {
    /// A string.
    Text(String),
    /// A number.
    Number(i64),
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u16> for AttributeValue {
    fn from(number: u16) -> Self {
        Self::Number(number.into())
    }
}

impl Tracer {
    /// Creates a tracer, and the other end of its buffer.
    #[must_use]
    pub fn new(settings: Settings, clock: Clock) -> (Self, EndedSpans) {
        let (sender, buffer) = mpsc::channel(MAX_WAITING_SPANS);
        let active = Active {
            sender,
            clock,
            sample_below: (settings.sample_ratio * (1_u64 << 63) as f64) as u64,
            propagates: settings.propagates,
        };
        let tracer = Self {
            active: Some(active),
            counts: Arc::default(),
        };
        let counts = tracer.counts.clone();
        (tracer, EndedSpans { buffer, counts })
    }

    /// Starts a span below its parent, or a new trace without a parent. Returns `None` if nothing
    /// is traced; the parent is not asked for then.
    pub fn begin(&self, parent: impl FnOnce() -> Option<SpanContext>) -> Option<OpenSpan> {
        let active = self.active.as_ref()?;
        let parent = parent();
        let context = match parent {
            Some(parent) => SpanContext {
                span: SpanId(random()),
                ..parent
            },
            None => active.new_trace(),
        };
        Some(OpenSpan {
            context,
            parent: parent.map(|parent| parent.span),
        })
    }

    /// Ends a span that started at `started` and took `elapsed`. The work is described only if the
    /// trace is recorded.
    pub fn end(
        &self,
        place: OpenSpan,
        started: Instant,
        elapsed: Duration,
        work: impl FnOnce() -> Work,
    ) {
        let active = self.active.as_ref();
        let Some(active) = active.filter(|_| place.context.is_sampled) else {
            return;
        };
        let start = active.clock.since_1970().saturating_sub(started.elapsed());
        let span = Span {
            place,
            start,
            end: start + elapsed,
            work: work(),
        };
        if active.sender.try_send(span).is_err() {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the counts of spans.
    pub fn counts(&self) -> &SpanCounts {
        &self.counts
    }

    /// Returns the trace of a run with this span.
    pub(crate) fn run(&self, span: OpenSpan) -> RunTrace {
        RunTrace {
            run: span.context,
            propagates: self.active.as_ref().is_some_and(|active| active.propagates),
        }
    }
}

impl Active {
    fn new_trace(&self) -> SpanContext {
        let trace: [u8; 16] = random();
        let lower = trace.last_chunk().copied().map_or(0, u64::from_be_bytes);
        SpanContext {
            trace: TraceId(trace),
            span: SpanId(random()),
            is_sampled: lower >> 1 < self.sample_below,
        }
    }
}

#[cfg(test)]
mod tests;
