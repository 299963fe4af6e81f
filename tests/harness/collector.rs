//! A collector of OpenTelemetry, whose messages the official Python library reads.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Finished, Inbox,
    inbox::{Message, Reply},
    wait_until,
};

/// Folders of the libraries.
const LIBRARY_FOLDERS: [&str; 2] = [
    "descriptions/opentelemetry-proto-1.45.2",
    "descriptions/protobuf-7.36.2",
];

/// A running collector. It ends with the process.
#[derive(Debug)]
pub struct Collector {
    inbox: Inbox,
}

/// The contents of exports.
#[derive(Debug, Deserialize)]
pub struct Exported {
    pub spans: Vec<Span>,
    pub metrics: Vec<ExportedMetric>,
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

impl Collector {
    /// Starts a collector that takes everything.
    pub fn start() -> Self {
        Self::with(|_| Reply::Status(200))
    }

    /// Starts a collector that answers each export as a function says.
    pub fn with(script: impl Fn(&Message) -> Reply + Send + Sync + 'static) -> Self {
        Self {
            inbox: Inbox::with(script),
        }
    }

    /// Returns the address of the collector.
    pub fn endpoint(&self) -> &str {
        &self.inbox.origin
    }

    /// Returns all exports, oldest first.
    pub fn received(&self) -> Vec<Message> {
        self.inbox.received()
    }

    /// Waits until spans of a trace were exported, and returns all of them by their start.
    pub async fn spans(&self, trace: &str, count: usize) -> Vec<Span> {
        let found = RefCell::new(Vec::new());
        self.wait("the spans of a trace are exported", |mut exported| {
            exported.spans.retain(|span| span.trace == trace);
            exported.spans.sort_by_key(|span| span.start);
            let is_complete = exported.spans.len() >= count;
            found.replace(exported.spans);
            is_complete
        })
        .await;
        found.into_inner()
    }

    /// Waits until metrics were exported, and returns those of the first export.
    pub async fn metrics(&self) -> Vec<ExportedMetric> {
        let found = RefCell::new(Vec::new());
        self.wait("metrics are exported", |exported| {
            found.replace(exported.metrics);
            !found.borrow().is_empty()
        })
        .await;
        found.into_inner()
    }

    /// Waits until the exports that were taken meet a condition.
    async fn wait(&self, what: &str, mut condition: impl FnMut(Exported) -> bool) {
        let seen = Cell::new(0);
        wait_until(what, || {
            let received = self.inbox.received();
            let is_new = seen.replace(received.len()) < received.len();
            let is_met = is_new && condition(read(&received));
            async move { is_met }
        })
        .await;
    }
}

fn read(messages: &[Message]) -> Exported {
    let taken = messages.iter().filter(|message| message.is_accepted());
    let bodies = taken.map(|message| json!([message.path, BASE64.encode(&message.body)]));
    let bodies = Value::from_iter(bodies).to_string();
    let script = "python/otlp.py";
    let read = Finished::run_script("python3", script, &LIBRARY_FOLDERS, bodies.as_bytes());
    serde_json::from_str(&read).expect("the exports are JSON")
}
