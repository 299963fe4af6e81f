//! Export of traces and metrics to a collector of the operator, by OTLP over HTTP.
//!
//! Spans wait in a bounded buffer, and requests never wait for an export. Spans that the collector
//! does not take are dropped and counted. What it says about an export is logged.

mod measures;
// A field with its number is one row.
#[rustfmt::skip]
mod otlp;
mod spans;

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use anyhow::{Context, Result};
use app::{Clock, core::trace::EndedSpans};
use http::Server;
use net::{
    Body, HeaderMap, Limits, Method, Request,
    header::{CONTENT_TYPE, HeaderValue},
};
use prost::Message;
use settings::Collector;
use tokio::time::{sleep, timeout};
use url::Url;
use uuid::Uuid;

use self::{measures::Times, spans::nanos};
use crate::metrics;

/// Maximum number of spans that are exported together.
const MAX_BATCH_SPANS: usize = 512;
/// Time for which a span waits for others.
const MAX_BATCH_DELAY: Duration = Duration::from_secs(1);
/// Interval between exports of the metrics.
const METRICS_INTERVAL: Duration = Duration::from_secs(60);
/// Timeout of an export.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time before each further attempt to export spans.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];
/// Maximum size of a collector's response, in bytes.
const MAX_RESPONSE_BYTES: u64 = 64 << 10;
/// Maximum length of a collector's message in the log.
const MAX_MESSAGE_CHARS: usize = 500;
/// Statuses after which OTLP lets a client try again.
const TRANSIENT_STATUSES: [u16; 4] = [429, 502, 503, 504];

/// Sends spans and metrics to a collector.
pub(crate) struct Exporter {
    client: net::Client,
    headers: HeaderMap,
    traces_url: Url,
    metrics_url: Url,
    /// Description of this server.
    resource: otlp::Resource,
    clock: Clock,
    /// Start of the counters, in nanoseconds since 1970.
    started: u64,
}

/// Export that failed.
struct Failure {
    reason: String,
    /// True if a later attempt may succeed.
    is_transient: bool,
}

impl Exporter {
    /// Creates the exporter of this server.
    pub(crate) fn new(collector: Collector, clock: Clock) -> Result<Self> {
        let base = collector.endpoint.as_str().trim_end_matches('/');
        let url = |signal| {
            let url = format!("{base}/v1/{signal}").parse::<Url>();
            url.context("read `telemetry.otlp_endpoint`")
        };
        let instance = Uuid::new_v4().to_string();
        let attributes = [
            ("service.name", "toolhost"),
            ("service.version", env!("CARGO_PKG_VERSION")),
            ("service.instance.id", &instance),
        ];
        let attributes = attributes
            .map(|(key, value)| otlp::KeyValue::new(key, otlp::Value::Text(value.to_owned())));
        let mut headers = collector.headers;
        let protobuf = HeaderValue::from_static("application/x-protobuf");
        headers.insert(CONTENT_TYPE, protobuf);
        Ok(Self {
            traces_url: url("traces")?,
            metrics_url: url("metrics")?,
            client: collector.client,
            headers,
            resource: otlp::Resource {
                attributes: attributes.into(),
            },
            started: now(&clock),
            clock,
        })
    }

    /// Exports spans in batches until no more can come.
    pub(crate) async fn export_spans(self: Arc<Self>, ended: EndedSpans) {
        let EndedSpans { mut buffer, counts } = ended;
        let mut batch = Vec::with_capacity(MAX_BATCH_SPANS);
        while buffer.recv_many(&mut batch, MAX_BATCH_SPANS).await > 0 {
            let more = async {
                while batch.len() < MAX_BATCH_SPANS {
                    let room = MAX_BATCH_SPANS - batch.len();
                    if buffer.recv_many(&mut batch, room).await == 0 {
                        return;
                    }
                }
            };
            // The batch is sent when it is full, when no more can come, or now.
            let _ = timeout(MAX_BATCH_DELAY, more).await;
            let spans = batch.len() as u64;
            let request = spans::request(self.resource.clone(), std::mem::take(&mut batch));
            let dropped = match self.send_with_retries(request.encode_to_vec()).await {
                Ok(rejected) => rejected.min(spans),
                Err(failure) => {
                    let reason = failure.reason;
                    tracing::warn!(
                        reason,
                        spans,
                        "spans were dropped: the collector did not take them"
                    );
                    spans
                }
            };
            counts.dropped.fetch_add(dropped, Ordering::Relaxed);
            counts
                .exported
                .fetch_add(spans - dropped, Ordering::Relaxed);
        }
    }

    /// Exports the metrics at each [`METRICS_INTERVAL`]. Never returns.
    pub(crate) async fn export_metrics(self: Arc<Self>, server: Arc<Server>) {
        loop {
            sleep(METRICS_INTERVAL).await;
            let families = metrics::collect(&server).await;
            let times = Times {
                start: self.started,
                now: now(&self.clock),
            };
            let request = measures::request(self.resource.clone(), &families, times);
            let sent = self.send(&self.metrics_url, request.encode_to_vec()).await;
            if let Err(failure) = sent {
                let reason = failure.reason;
                tracing::warn!(
                    reason,
                    "metrics were not exported: the collector did not take them"
                );
            }
        }
    }

    async fn send_with_retries(&self, spans: Vec<u8>) -> Result<u64, Failure> {
        for delay in RETRY_DELAYS {
            match self.send(&self.traces_url, spans.clone()).await {
                Err(failure) if failure.is_transient => sleep(delay).await,
                ended => return ended,
            }
        }
        self.send(&self.traces_url, spans).await
    }

    /// Returns the number of spans or data points that the collector rejected of an export that it
    /// took.
    async fn send(&self, url: &Url, message: Vec<u8>) -> Result<u64, Failure> {
        let request = Request {
            method: Method::POST,
            url: url.clone(),
            headers: self.headers.clone(),
            body: Body::Bytes(message.into()),
            limits: Limits {
                cuts_response: true,
                ..Limits::within(EXPORT_TIMEOUT, MAX_RESPONSE_BYTES)
            },
        };
        let sent = self.client.send(request).await;
        let response = sent.map_err(|cause| Failure {
            reason: cause.message,
            is_transient: true,
        })?;
        if response.status.is_success() {
            return Ok(rejected(url, &response.body));
        }
        let status = response.status.as_u16();
        Err(Failure {
            reason: format!("it responded with status {status}"),
            is_transient: TRANSIENT_STATUSES.contains(&status),
        })
    }
}

/// Logs what a collector says about an export that it took, and returns how many spans or data
/// points it rejected. A body other than a message of OTLP says nothing.
fn rejected(url: &Url, body: &[u8]) -> u64 {
    let response = otlp::ExportResponse::decode(body).unwrap_or_default();
    let said = response.partial_success.unwrap_or_default();
    let rejected = u64::try_from(said.rejected).unwrap_or(0);
    if rejected > 0 || !said.error_message.is_empty() {
        let reason: String = said.error_message.chars().take(MAX_MESSAGE_CHARS).collect();
        let signal = url.path();
        tracing::warn!(
            signal,
            rejected,
            reason,
            "the collector reported a problem with an export"
        );
    }
    rejected
}

fn now(clock: &Clock) -> u64 {
    nanos(clock.since_1970())
}
