//! View of a single execution, in the format of older clients.

use app::runs::log::{self, Detail, ExecutionRecord, SentRequest};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value, value::RawValue};
use utoipa::ToSchema;
use uuid::{Builder, Uuid};

use super::types::{AppView, account_id};
use crate::logs::CredentialSource;

view! {
    /// An execution, in the format of older clients.
    #[serde(rename_all = "camelCase")]
    #[schema(as = ActionLog)]
    pub(crate) struct View from (
        record: ExecutionRecord,
        detail: Option<Detail>,
        toolkit: AppView,
    ) where {
        let requests = detail.as_ref().map_or(&[][..], |detail| &detail.requests);
        let step = Step::new(&record, requests);
        let duration = format!("{} ms", step.total_duration);
        let (arguments, data, message) = match detail {
            Some(detail) => (Some(detail.arguments), Some(detail.data), detail.error),
            None => (None, None, None),
        };
    } {
        action_log_id: String = record.id.to_string(),
        action_id: String = record.tool,
        /// `success` or `error`.
        status: &'static str = match record.status {
            log::Status::Failed => "error",
            log::Status::Success => "success",
        },
        app: ToolkitView = ToolkitView::new(record.toolkit, toolkit),
        version: String = record.version,
        connection: Connection = Connection { id: account_id(record.account), entity: record.user },
        session: Map<String, Value> = Map::new(),
        execution_metadata: Metadata =
            Metadata::new(record.request, record.cpu_us, record.memory),
        steps: Vec<Step> = vec![step],
        /// Arguments; empty if the project stores no data.
        #[serde(serialize_with = "or_empty_object")]
        #[schema(value_type = Value)]
        payload_received: Option<Box<RawValue>> = arguments,
        /// Time in milliseconds since 1970.
        start_time: i64 = record.started_at.0,
        /// Time in milliseconds since 1970.
        end_time: i64 = record.ended_at.0,
        /// Duration with its unit.
        total_duration: String = duration,
        /// Result; empty if the project stores no data.
        #[serde(serialize_with = "or_empty_object")]
        #[schema(value_type = Value)]
        response: Option<Box<RawValue>> = data,
        error: ErrorView = ErrorView { message },
        credential_source: CredentialSource = record.source.into(),
    }
}

/// Serializes a value that may be absent, which is serialized as `{}`.
fn or_empty_object<S: Serializer>(
    value: &Option<Box<RawValue>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => value.serialize(serializer),
        None => serializer.serialize_map(Some(0))?.end(),
    }
}

view! {
    #[serde(rename_all = "camelCase")]
    #[schema(as = ActionLogToolkit)]
    struct ToolkitView from (slug: String, shown: AppView) {
        name: String = shown.name,
        unique_id: String = slug,
        icon: String = shown.icon,
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = ActionLogConnection)]
struct Connection {
    /// Id of the connected account; empty if no account was used.
    id: String,
    entity: String,
}

view! {
    #[serde(rename_all = "camelCase")]
    #[schema(as = ActionLogMetadata)]
    struct Metadata from (request: String, cpu_us: u64, memory: u64) {
        request_id: String = request,
        cpu_us: u64 = cpu_us,
        peak_memory_bytes: u64 = memory,
    }
}

view! {
    #[serde(rename_all = "camelCase")]
    #[schema(as = ActionLogStep)]
    struct Step from (record: &ExecutionRecord, requests: &[SentRequest]) where {
        let start_time = record.started_at.0;
        let end_time = record.ended_at.0;
        let message = record.failure.as_deref();
    } {
        r#type: &'static str = "tool_execution",
        start_time: i64 = start_time,
        end_time: i64 = end_time,
        /// Duration in milliseconds.
        total_duration: i64 = end_time - start_time,
        /// `success` or `failure`.
        status: &'static str = match record.status {
            log::Status::Failed => "failure",
            log::Status::Success => "success",
        },
        message: String = message.unwrap_or("the tool returned a result").to_owned(),
        logs: Vec<NetworkLog> = requests
            .iter()
            .map(|request| NetworkLog::new(record, request))
            .collect(),
    }
}

view! {
    /// A request that the tool sent to the provider.
    #[serde(rename_all = "camelCase")]
    #[schema(as = ActionLogNetwork)]
    struct NetworkLog from (record: &ExecutionRecord, request: &SentRequest) where {
        let message = request.error.as_deref();
    } {
        r#type: &'static str = "network",
        /// `error` if no response was received, `info` otherwise.
        level: &'static str = match request.error {
            Some(_) => "error",
            None => "info",
        },
        message: String = message.unwrap_or("the provider responded").to_owned(),
        #[schema(value_type = Option<String>)] request_id!: Option<Uuid> = uuid(record),
        /// Start time of the execution, in milliseconds since 1970.
        time: i64 = record.started_at.0,
        request: RequestView = request.into(),
        response: ResponseView = request.into(),
    }
}

view! {
    #[schema(as = ActionLogRequest)]
    struct RequestView from request: &SentRequest {
        method: String = request.method.clone(),
        /// URL without secrets.
        url: String = request.url.clone(),
    }
}

view! {
    #[schema(as = ActionLogResponse)]
    struct ResponseView from request: &SentRequest {
        /// HTTP status code; 0 if no response was received.
        status: u16 = request.status.unwrap_or(0),
        /// Duration with its unit.
        time: String = format!("{} ms", request.elapsed_ms),
    }
}

view! {
    #[schema(as = ActionLogError)]
    struct ErrorView {
        /// Absent if the execution succeeded or the project stores no data.
        message?: Option<String>,
    }
}

/// Converts the sixteen characters of an execution's id to the UUID that older clients need.
fn uuid(record: &ExecutionRecord) -> Option<Uuid> {
    let bytes = record.id.as_str().as_bytes().try_into().ok()?;
    Some(Builder::from_random_bytes(bytes).into_uuid())
}
