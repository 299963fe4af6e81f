//! Metrics for the operator, in the text format of Prometheus, on a listener of their own.
//!
//! Requests and executions are counted in atomic counters where they end. Everything else is read
//! when metrics are scraped or exported. `docs/operator.md` describes each metric.

mod families;
mod text;

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use app::lifecycle::measures::{self, Measures, QueueDepth};
use axum::{
    Router,
    extract::State,
    http::{HeaderValue, header},
    response::{IntoResponse, Response},
    routing::get,
};
use tokio::time::timeout;

pub(crate) use self::families::{Families, Family, Kind, Sample, SampleValue};
use http::{Server, routes::Routes};
use web::missing;

use crate::memory;

/// Path of the metrics.
pub(crate) const METRICS_PATH: &str = "/metrics";
/// Content type of the text format of Prometheus.
const CONTENT_TYPE: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
/// Time that a scrape waits for the depths of queues. Without them, the other metrics still show
/// why the store does not answer.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(3);

/// Builds the router of the listener for metrics.
pub(crate) fn router(server: Arc<Server>) -> Router {
    Routes::new(server)
        .probe(METRICS_PATH, get(scrape))
        .finish(missing::answer)
}

/// Answers with all metrics.
async fn scrape(State(server): State<Arc<Server>>) -> Response {
    let text = text::format(&collect(&server).await);
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response()
}

/// Reads all metrics.
pub(crate) async fn collect(server: &Server) -> Families {
    let depths = timeout(QUEUE_TIMEOUT, measures::queue_depths(&server.app)).await;
    let queues = match depths {
        Ok(Ok(queues)) => queues,
        Ok(Err(cause)) => {
            tracing::warn!(%cause, "the depths of queues cannot be read for the metrics");
            Vec::new()
        }
        Err(_) => {
            tracing::warn!("the depths of queues were not read in time for the metrics");
            Vec::new()
        }
    };
    let mut families = Families::default();
    write_server(&mut families, server);
    write_requests(&mut families, server);
    let measures = measures::measure(&server.app);
    write_executions(&mut families, &measures);
    write_load(&mut families, server, &measures);
    write_refreshes(&mut families, &measures);
    write_commits(&mut families, &measures);
    write_queues(&mut families, &queues);
    write_spans(&mut families, server);
    families
}

fn write_server(families: &mut Families, server: &Server) {
    let help = "Version of the server; the value is always 1";
    families.family("toolhost_build_info", Kind::Gauge, help);
    families.sample(&[("version", env!("CARGO_PKG_VERSION"))], 1_u64);
    let is_ready = server.is_serving() && server.app.store_problem().is_none();
    let help = "1 if the server is ready for requests, as /health/ready reports it";
    families.gauge("toolhost_ready", help, u64::from(is_ready));
    if let Some(bytes) = memory::resident_bytes() {
        let help = "Resident memory of the process";
        families.gauge("process_resident_memory_bytes", help, bytes);
    }
}

fn write_requests(families: &mut Families, server: &Server) {
    let counted = server.requests.read();
    let help = "Requests, by method, route and class of status";
    families.family("toolhost_http_requests_total", Kind::Counter, help);
    for counts in &counted {
        for (class, count) in &counts.statuses {
            let labels = [
                ("method", counts.method),
                ("route", &*counts.path),
                ("status", class),
            ];
            families.sample(&labels, *count);
        }
    }
    let name = "toolhost_http_request_duration_seconds";
    let help = "Time from the head of a request to the head of its response";
    families.family(name, Kind::Histogram, help);
    for counts in counted {
        let labels = [("method", counts.method), ("route", &*counts.path)];
        families.sample(&labels, counts.durations);
    }
}

fn write_executions(families: &mut Families, measures: &Measures<'_>) {
    let help = "Executions of tools and proxy requests, by toolkit and outcome";
    families.family("toolhost_executions_total", Kind::Counter, help);
    for (toolkit, counts) in &measures.executions {
        for (outcome, count) in counts.outcomes() {
            let labels = [("toolkit", &**toolkit), ("outcome", outcome)];
            families.sample(&labels, count);
        }
    }
    let name = "toolhost_execution_duration_seconds";
    let help = "Time from the start of an execution to its result";
    families.family(name, Kind::Histogram, help);
    for (toolkit, counts) in &measures.executions {
        families.sample(&[("toolkit", &**toolkit)], counts.durations.read());
    }
}

#[rustfmt::skip]
fn write_load(families: &mut Families, server: &Server, measures: &Measures<'_>) {
    let sandbox = &measures.sandbox;
    let max_calls = server.config.sandbox.live as u64;
    for (name, help, value) in [
        ("toolhost_sandbox_calls", "Calls in the sandbox, running or waiting for a provider", sandbox.live as u64),
        ("toolhost_sandbox_calls_max", "Calls that may be in the sandbox at a time (sandbox.live)", max_calls),
        ("toolhost_sandbox_calls_waiting", "Calls that wait for a place in the sandbox", sandbox.queued as u64),
        ("toolhost_sandbox_components", "Components of toolkits that are loaded", sandbox.loaded as u64),
        ("toolhost_sandbox_memory_bytes", "Memory of all calls in the sandbox", sandbox.memory),
        ("toolhost_log_slots_used", "Running executions and records that wait to be written to the execution log", measures.log_slots as u64),
    ] {
        families.gauge(name, help, value);
    }
}

fn write_refreshes(families: &mut Families, measures: &Measures<'_>) {
    let name = "toolhost_token_refreshes_total";
    let help = "Attempts to refresh tokens of connected accounts, by result";
    let refreshes = measures.refreshes;
    let counts = [
        ("refreshed", refreshes.refreshed.load(Ordering::Relaxed)),
        ("expired", refreshes.expired.load(Ordering::Relaxed)),
        ("retried", refreshes.retried.load(Ordering::Relaxed)),
    ];
    families.counts_by_result(name, help, &counts);
}

fn write_commits(families: &mut Families, measures: &Measures<'_>) {
    let durations = measures.commits.durations.read();
    let name = "toolhost_store_commits_total";
    let help = "Batches that were given to the store, by result";
    let counts = [
        ("committed", durations.count),
        ("refused", measures.commits.refused.load(Ordering::Relaxed)),
        ("failed", measures.commits.failed.load(Ordering::Relaxed)),
    ];
    families.counts_by_result(name, help, &counts);
    let name = "toolhost_store_commit_duration_seconds";
    families.family(name, Kind::Histogram, "Time until a batch is durable");
    families.sample(&[], durations);
}

fn write_queues(families: &mut Families, queues: &[QueueDepth]) {
    let help = "Records of a queue that are due and that no worker holds";
    families.family("toolhost_queue_due", Kind::Gauge, help);
    for queue in queues {
        families.sample(&[("queue", queue.queue)], queue.due);
    }
    let help = "Time for which the earliest record of a queue has been due";
    families.family("toolhost_queue_age_seconds", Kind::Gauge, help);
    for queue in queues {
        families.sample(&[("queue", queue.queue)], queue.age.as_secs_f64());
    }
}

fn write_spans(families: &mut Families, server: &Server) {
    let help = "Spans of recorded traces, by result of the export";
    let spans = server.app.tracer.counts();
    let counts = [
        ("exported", spans.exported.load(Ordering::Relaxed)),
        ("dropped", spans.dropped.load(Ordering::Relaxed)),
    ];
    families.counts_by_result("toolhost_spans_total", help, &counts);
}
