//! View of a single execution, in the format of older clients.

use app::runs::log::{self, Detail, ExecutionRecord, SentRequest};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value, value::RawValue};
use utoipa::ToSchema;
use uuid::{Builder, Uuid};

use super::types::{AppView, account_id};
use crate::api::logs::CredentialSource;

/// An execution, in the format of older clients.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ActionLog)]
pub(crate) struct View {
    action_log_id: String,
    action_id: String,
    /// `success` or `error`.
    status: &'static str,
    app: ToolkitView,
    version: String,
    connection: Connection,
    session: Map<String, Value>,
    execution_metadata: Metadata,
    steps: Vec<Step>,
    /// Arguments; empty if the project stores no data.
    #[serde(serialize_with = "or_empty_object")]
    #[schema(value_type = Value)]
    payload_received: Option<Box<RawValue>>,
    /// Time in milliseconds since 1970.
    start_time: i64,
    /// Time in milliseconds since 1970.
    end_time: i64,
    /// Duration with its unit.
    total_duration: String,
    /// Result; empty if the project stores no data.
    #[serde(serialize_with = "or_empty_object")]
    #[schema(value_type = Value)]
    response: Option<Box<RawValue>>,
    error: ErrorView,
    credential_source: CredentialSource,
}

impl View {
    /// Builds the view of a record and of the toolkit that ran.
    pub(crate) fn new(record: ExecutionRecord, detail: Option<Detail>, toolkit: AppView) -> Self {
        let requests = detail.as_ref().map_or(&[][..], |detail| &detail.requests);
        let step = Step::new(&record, requests);
        let (arguments, data, message) = match detail {
            Some(detail) => (Some(detail.arguments), Some(detail.data), detail.error),
            None => (None, None, None),
        };
        Self {
            action_log_id: record.id.to_string(),
            action_id: record.tool,
            status: match record.status {
                log::Status::Failed => "error",
                log::Status::Success => "success",
            },
            app: ToolkitView {
                name: toolkit.name,
                unique_id: record.toolkit,
                icon: toolkit.icon,
            },
            version: record.version,
            connection: Connection {
                id: account_id(record.account),
                entity: record.user,
            },
            session: Map::new(),
            execution_metadata: Metadata {
                request_id: record.request,
                cpu_us: record.cpu_us,
                peak_memory_bytes: record.memory,
            },
            payload_received: arguments,
            start_time: step.start_time,
            end_time: step.end_time,
            total_duration: format!("{} ms", step.total_duration),
            response: data,
            error: ErrorView { message },
            credential_source: record.source.into(),
            steps: vec![step],
        }
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

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ActionLogToolkit)]
struct ToolkitView {
    name: String,
    unique_id: String,
    icon: String,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ActionLogConnection)]
struct Connection {
    /// Id of the connected account; empty if no account was used.
    id: String,
    entity: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ActionLogMetadata)]
struct Metadata {
    request_id: String,
    cpu_us: u64,
    peak_memory_bytes: u64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ActionLogStep)]
struct Step {
    r#type: &'static str,
    start_time: i64,
    end_time: i64,
    /// Duration in milliseconds.
    total_duration: i64,
    /// `success` or `failure`.
    status: &'static str,
    message: String,
    logs: Vec<NetworkLog>,
}

impl Step {
    fn new(record: &ExecutionRecord, requests: &[SentRequest]) -> Self {
        let start_time = record.started_at.0;
        let end_time = record.ended_at.0;
        let message = record.failure.as_deref();
        Self {
            r#type: "tool_execution",
            start_time,
            end_time,
            total_duration: end_time - start_time,
            status: match record.status {
                log::Status::Failed => "failure",
                log::Status::Success => "success",
            },
            message: message.unwrap_or("the tool returned a result").to_owned(),
            logs: requests
                .iter()
                .map(|request| NetworkLog::new(record, request))
                .collect(),
        }
    }
}

/// A request that the tool sent to the provider.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ActionLogNetwork)]
struct NetworkLog {
    r#type: &'static str,
    /// `error` if no response was received, `info` otherwise.
    level: &'static str,
    message: String,
    #[schema(required, value_type = Option<String>)]
    request_id: Option<Uuid>,
    /// Start time of the execution, in milliseconds since 1970.
    time: i64,
    request: RequestView,
    response: ResponseView,
}

impl NetworkLog {
    fn new(record: &ExecutionRecord, request: &SentRequest) -> Self {
        let message = request.error.as_deref();
        Self {
            r#type: "network",
            level: match request.error {
                Some(_) => "error",
                None => "info",
            },
            message: message.unwrap_or("the provider responded").to_owned(),
            request_id: uuid(record),
            time: record.started_at.0,
            request: RequestView {
                method: request.method.clone(),
                url: request.url.clone(),
            },
            response: ResponseView {
                status: request.status.unwrap_or(0),
                time: format!("{} ms", request.elapsed_ms),
            },
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = ActionLogRequest)]
struct RequestView {
    method: String,
    /// URL without secrets.
    url: String,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ActionLogResponse)]
struct ResponseView {
    /// HTTP status code; 0 if no response was received.
    status: u16,
    /// Duration with its unit.
    time: String,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ActionLogError)]
struct ErrorView {
    /// Absent if the execution succeeded or the project stores no data.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    message: Option<String>,
}

/// Converts the sixteen characters of an execution's id to the UUID that older clients need.
fn uuid(record: &ExecutionRecord) -> Option<Uuid> {
    let bytes = record.id.as_str().as_bytes().try_into().ok()?;
    Some(Builder::from_random_bytes(bytes).into_uuid())
}
