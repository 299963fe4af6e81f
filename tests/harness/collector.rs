//! Exports of OpenTelemetry to an [`Inbox`], which the official Python library reads.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{CONDITION_TIMEOUT, Finished, Inbox, inbox::Message, wait_until};

/// Folders of the libraries.
const LIBRARY_FOLDERS: [&str; 2] = [
    "descriptions/opentelemetry-proto-1.45.2",
    "descriptions/protobuf-7.36.2",
];

/// The contents of exports.
#[derive(Debug, Deserialize)]
struct Exported {
    spans: Vec<Span>,
    metrics: Vec<ExportedMetric>,
}

/// An exported span.
#[derive(Debug, Clone, Deserialize)]
pub struct Span {
    pub service: String,
    pub trace: String,
    pub id: String,
    /// Empty for the first span of a trace.
    pub parent: String,
    pub name: String,
    pub kind: String,
    /// Nanoseconds since 1970.
    pub start: u64,
    /// Nanoseconds since 1970.
    pub end: u64,
    pub attributes: BTreeMap<String, Value>,
    pub failed: bool,
}

/// An exported metric.
#[derive(Debug, Deserialize)]
pub struct ExportedMetric {
    pub service: String,
    pub name: String,
    /// `counter`, `gauge` or `histogram`.
    pub kind: String,
    pub help: String,
    /// Labels and value of each point; of a histogram, the number of its values.
    pub points: Vec<(BTreeMap<String, String>, f64)>,
}

/// Waits until spans of a trace were exported, and returns all of them by their start.
pub async fn spans(collector: &Inbox, trace: &str, count: usize) -> Vec<Span> {
    let exported = exported(collector, |exported| {
        let of_trace = exported.spans.iter().filter(|span| span.trace == trace);
        of_trace.count() >= count
    });
    let mut spans = exported.await.spans;
    spans.retain(|span| span.trace == trace);
    spans.sort_by_key(|span| span.start);
    spans
}

/// Waits until metrics were exported, and returns those of the first export.
pub async fn metrics(collector: &Inbox) -> Vec<ExportedMetric> {
    let exported = exported(collector, |exported| !exported.metrics.is_empty());
    exported.await.metrics
}

/// Waits until the exports that were taken are complete.
async fn exported(collector: &Inbox, is_complete: impl Fn(&Exported) -> bool) -> Exported {
    let waiting = async {
        let mut seen = 0;
        loop {
            wait_until("more is exported", async || {
                collector.received().len() > seen
            })
            .await;
            let received = collector.received();
            let exported = read(&received);
            if is_complete(&exported) {
                return exported;
            }
            seen = received.len();
        }
    };
    let waited = tokio::time::timeout(CONDITION_TIMEOUT, waiting).await;
    waited.expect("the exports are complete in time")
}

fn read(messages: &[Message]) -> Exported {
    let taken = messages.iter().filter(|message| message.is_accepted());
    let bodies = taken.map(|message| json!([message.path, BASE64.encode(&message.body)]));
    let bodies = Value::from_iter(bodies).to_string();
    let script = "python/otlp.py";
    let read = Finished::run_script("python3", script, &LIBRARY_FOLDERS, bodies.as_bytes());
    serde_json::from_str(&read).expect("the exports are JSON")
}
