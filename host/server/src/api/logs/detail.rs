//! Views of a single execution: its record with arguments and result, and its cassette.

use app::runs::log::{self, Cassette, ExecutionRecord};
use serde::Serialize;
use serde_json::{Map, Value, value::RawValue};
use utoipa::ToSchema;

use super::types::View;

view! {
    /// The record of an execution, with its arguments and its result.
    #[schema(as = RunDetail)]
    pub(crate) struct DetailView from (
        record: ExecutionRecord,
        detail: Option<log::Detail>,
        component: Option<String>,
    ) where {
        let timings = Timings {
            start_time: record.started_at.0,
            end_time: record.ended_at.0,
        };
        let context = Context {
            session_id: record.session.as_ref().map(ToString::to_string),
            request_id: record.request.clone(),
        };
    } {
        #[serde(flatten)] run: View = View::from(record).with_component(component),
        timings: Timings = timings,
        context: Context = context,
        source: Map<String, Value> = Map::new(),
        /// Arguments and result; empty if the project stores no data.
        data: Data = detail.map(Data::from).unwrap_or_default(),
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
    /// Tool router session in which the tool ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    session_id: Option<String>,
    request_id: String,
}

view! {
    #[derive(Default)]
    #[schema(as = RunData)]
    struct Data {
        #[schema(value_type = Option<Value>)] arguments?: Option<Box<RawValue>>,
        response?: Option<ResponseView>,
        log?: Option<Vec<LineView>>,
        requests?: Option<Vec<SentRequestView>>,
    }
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

view! {
    /// A line that the tool logged.
    #[schema(as = RunLine)]
    struct LineView from line: log::Line {
        /// `debug`, `info`, `warn` or `error`.
        level: String = line.level,
        /// Time since the start, in milliseconds.
        at_ms: u64 = line.at_ms,
        message: String = line.message,
    }
}

view! {
    /// A request that the tool sent to the provider.
    #[schema(as = RunRequest)]
    struct SentRequestView from request: log::SentRequest {
        method: String = request.method,
        /// URL without secrets.
        url: String = request.url,
        /// HTTP status code of the response; null if no response was received.
        status!: Option<u16> = request.status,
        /// Null if a response was received.
        error!: Option<String> = request.error,
        /// Duration in milliseconds.
        elapsed_ms: u64 = request.elapsed_ms,
        /// Size of the request body in bytes.
        sent: u64 = request.sent,
        /// Size of the response body in bytes.
        received: u64 = request.received,
    }
}

/// Cassette: the recorded inputs and interactions of an execution, with which it can be replayed.
#[derive(Serialize, ToSchema)]
#[serde(transparent)]
#[schema(as = Cassette, value_type = Object)]
pub(crate) struct CassetteView(pub Cassette);
