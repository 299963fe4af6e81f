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
        let timings = Timings::from(&record);
        let context = Context::from(&record);
        let mut run = View::from(record);
        run.metadata.component = component;
    } {
        #[serde(flatten)] run: View = run,
        timings: Timings = timings,
        context: Context = context,
        source: Map<String, Value> = Map::new(),
        /// Arguments and result; empty if the project stores no data.
        data: Data = detail.map(Data::from).unwrap_or_default(),
    }
}

view! {
    /// Times in milliseconds since 1970.
    #[schema(as = RunTimes)]
    struct Timings from record: &ExecutionRecord {
        start_time: i64 = record.started_at.0,
        end_time: i64 = record.ended_at.0,
    }
}

view! {
    #[schema(as = RunContext)]
    struct Context from record: &ExecutionRecord {
        /// Tool router session in which the tool ran.
        session_id?: Option<String> = record.session.as_ref().map(ToString::to_string),
        request_id: String = record.request.clone(),
    }
}

view! {
    #[derive(Default)]
    #[schema(as = RunData)]
    struct Data from detail: log::Detail where {
        let requests = detail.requests.into_iter().map(Into::into);
    } {
        #[schema(value_type = Option<Value>)]
        arguments?: Option<Box<RawValue>> = Some(detail.arguments),
        response?: Option<ResponseView> = Some(ResponseView::new(detail.data, detail.error)),
        log?: Option<Vec<LineView>> = Some(detail.log.into_iter().map(Into::into).collect()),
        requests?: Option<Vec<SentRequestView>> = Some(requests.collect()),
    }
}

view! {
    #[schema(as = RunResponse)]
    struct ResponseView from (data: Box<RawValue>, error: Option<String>) where {
        let successful = error.is_none();
    } {
        #[schema(value_type = Value)] data: Box<RawValue> = data,
        error!: Option<String> = error,
        successful: bool = successful,
    }
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
