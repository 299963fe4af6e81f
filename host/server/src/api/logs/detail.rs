//! Views of a single execution: its record with arguments and result, and its cassette.

use app::runs::log::{self, Cassette, ExecutionRecord};
use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};
use utoipa::ToSchema;

use super::types::View;

/// The record of an execution, with its arguments and its result.
#[derive(Serialize, ToSchema)]
#[schema(as = RunDetail)]
pub(crate) struct DetailView {
    #[serde(flatten)]
    run: View,
    timings: Timings,
    context: Context,
    source: Map<String, Value>,
    /// Arguments and result; empty if the project stores no data.
    data: Data,
}

impl DetailView {
    /// Builds the view of a record. `component` is the digest of the component that ran, if it is
    /// known.
    pub(crate) fn new(
        record: ExecutionRecord,
        detail: Option<log::Detail>,
        component: Option<String>,
    ) -> Self {
        let timings = Timings {
            start_time: record.started_at.0,
            end_time: record.ended_at.0,
        };
        let context = Context {
            request_id: record.request.clone(),
        };
        Self {
            run: View::from(record).with_component(component),
            timings,
            context,
            source: Map::new(),
            data: detail.map(Data::from).unwrap_or_default(),
        }
    }
}

/// Times in milliseconds since 1970.
#[derive(Serialize, ToSchema)]
#[schema(as = RunTimes)]
struct Timings {
    start_time: i64,
    end_time: i64,
}

#[derive(Serialize, ToSchema)]
#[schema(as = RunContext)]
struct Context {
    request_id: String,
}

#[derive(Default, Serialize, ToSchema)]
#[schema(as = RunData)]
struct Data {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Value>)]
    arguments: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    response: Option<ResponseView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    log: Option<Vec<LineView>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    requests: Option<Vec<SentRequestView>>,
}

impl From<log::Detail> for Data {
    fn from(detail: log::Detail) -> Self {
        let requests = detail.requests.into_iter().map(SentRequestView::from);
        Self {
            arguments: Some(detail.arguments),
            response: Some(ResponseView {
                data: detail.data,
                successful: detail.error.is_none(),
                error: detail.error,
            }),
            log: Some(detail.log.into_iter().map(LineView::from).collect()),
            requests: Some(requests.collect()),
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = RunResponse)]
struct ResponseView {
    #[schema(value_type = Value)]
    data: Box<RawValue>,
    #[schema(required)]
    error: Option<String>,
    successful: bool,
}

/// A line that the tool logged.
#[derive(Serialize, ToSchema)]
#[schema(as = RunLine)]
struct LineView {
    /// `debug`, `info`, `warn` or `error`.
    level: String,
    /// Time since the start, in milliseconds.
    at_ms: u64,
    message: String,
}

impl From<log::Line> for LineView {
    fn from(line: log::Line) -> Self {
        Self {
            level: line.level,
            at_ms: line.at_ms,
            message: line.message,
        }
    }
}

/// A request that the tool sent to the provider.
#[derive(Serialize, ToSchema)]
#[schema(as = RunRequest)]
struct SentRequestView {
    method: String,
    /// URL without secrets.
    url: String,
    /// HTTP status code of the response; null if no response was received.
    #[schema(required)]
    status: Option<u16>,
    /// Null if a response was received.
    #[schema(required)]
    error: Option<String>,
    /// Duration in milliseconds.
    elapsed_ms: u64,
    /// Size of the request body in bytes.
    sent: u64,
    /// Size of the response body in bytes.
    received: u64,
}

impl From<log::SentRequest> for SentRequestView {
    fn from(request: log::SentRequest) -> Self {
        Self {
            method: request.method,
            url: request.url,
            status: request.status,
            error: request.error,
            elapsed_ms: request.elapsed_ms,
            sent: request.sent,
            received: request.received,
        }
    }
}

/// Cassette: the recorded inputs and interactions of an execution, with which it can be replayed.
#[derive(Serialize, ToSchema)]
#[serde(transparent)]
#[schema(as = Cassette, value_type = Object)]
pub(crate) struct CassetteView(pub Cassette);
