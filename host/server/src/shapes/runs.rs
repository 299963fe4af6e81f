//! Shapes of executions, their records, and files.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// A page of the execution log.
#[derive(ToSchema)]
pub(crate) struct Runs {
    logs: Vec<Run>,
    #[schema(required)]
    next_cursor: Option<String>,
}

/// The record of an execution.
#[derive(ToSchema)]
pub(crate) struct Run {
    id: String,
    #[schema(format = DateTime)]
    timestamp: String,
    r#type: String,
    status: RunStatus,
    level: String,
    message: String,
    metadata: RunMetadata,
    metrics: RunMetrics,
    #[schema(required)]
    parent: Option<RunParent>,
}

#[derive(ToSchema)]
struct RunParent {
    log_id: String,
    tool_slug: String,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum RunStatus {
    Success,
    Failed,
}

#[derive(ToSchema)]
struct RunMetadata {
    tool_slug: String,
    toolkit_slug: String,
    version: String,
    user_id: String,
    #[schema(required)]
    connected_account_id: Option<String>,
    #[schema(required)]
    auth_config_id: Option<String>,
    request_id: String,
    /// Null if the execution succeeded.
    #[schema(required)]
    error_kind: Option<String>,
    credential_source: CredentialSource,
    /// Digest of the component that ran; only when a single record is read.
    #[schema(nullable = false)]
    component: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum CredentialSource {
    ConnectedAccount,
    InstantAccount,
    CustomAuth,
    NoAuth,
}

#[derive(ToSchema)]
struct RunMetrics {
    cpu_us: u64,
    wall_us: u64,
    peak_memory_bytes: u64,
    host_calls: u64,
    requests: u64,
    /// Usage of the language model that generated the arguments; null if no arguments were
    /// generated.
    #[schema(required)]
    language_model: Option<ModelUse>,
}

#[derive(ToSchema)]
struct ModelUse {
    model: String,
    prompt_tokens: u64,
    completion_tokens: u64,
}

#[derive(ToSchema)]
pub(crate) struct RunDetail {
    #[serde(flatten)]
    run: Run,
    timings: RunTimes,
    context: RunContext,
    source: Map<String, Value>,
    /// Arguments and result; empty if the project stores no data.
    data: RunData,
}

/// Times in milliseconds since 1970.
#[derive(ToSchema)]
struct RunTimes {
    start_time: i64,
    end_time: i64,
}

#[derive(ToSchema)]
struct RunContext {
    request_id: String,
}

#[derive(ToSchema)]
struct RunData {
    #[schema(nullable = false)]
    arguments: Option<Value>,
    #[schema(nullable = false)]
    response: Option<RunResponse>,
    #[schema(nullable = false)]
    log: Option<Vec<Value>>,
    #[schema(nullable = false)]
    requests: Option<Vec<Value>>,
}

#[derive(ToSchema)]
struct RunResponse {
    data: Value,
    #[schema(required)]
    error: Option<String>,
    successful: bool,
}

/// Cassette: the recorded inputs and interactions of an execution, with which it can be replayed.
#[derive(ToSchema)]
#[schema(value_type = Object)]
pub(crate) struct Cassette(Map<String, Value>);

#[derive(ToSchema)]
pub(crate) struct ActionLogFields {
    fields: SearchableFields,
}

#[derive(ToSchema)]
struct SearchableFields {
    action_execution: Vec<SearchableField>,
}

#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
struct SearchableField {
    id: String,
    display_name: String,
    r#type: String,
}

/// A page of executions, in the format of older clients.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ActionLogs {
    data: Vec<ActionLogItem>,
    /// Number of executions to skip for the next page; null on the last one.
    #[schema(required)]
    next_cursor: Option<u64>,
}

#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
struct ActionLogItem {
    id: String,
    action_key: String,
    app_key: String,
    app: ActionLogApp,
    connected_account_id: String,
    entity_id: String,
    status: RunStatus,
    /// Duration in milliseconds.
    execution_time: u64,
    minimal_response: String,
    /// Time in milliseconds since 1970.
    created_at: i64,
    credential_source: CredentialSource,
}

#[derive(ToSchema)]
struct ActionLogApp {
    icon: String,
    name: String,
}

/// An execution, in the format of older clients.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ActionLog {
    action_log_id: String,
    action_id: String,
    status: String,
    app: ActionLogToolkit,
    version: String,
    connection: ActionLogConnection,
    session: Map<String, Value>,
    execution_metadata: ActionLogMetadata,
    steps: Vec<ActionLogStep>,
    payload_received: Value,
    start_time: i64,
    end_time: i64,
    total_duration: String,
    response: Value,
    error: ActionLogError,
    credential_source: CredentialSource,
}

#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
struct ActionLogToolkit {
    name: String,
    unique_id: String,
    icon: String,
}

#[derive(ToSchema)]
struct ActionLogConnection {
    id: String,
    entity: String,
}

#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
struct ActionLogMetadata {
    request_id: String,
    cpu_us: u64,
    peak_memory_bytes: u64,
}

#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
struct ActionLogStep {
    r#type: String,
    start_time: i64,
    end_time: i64,
    total_duration: i64,
    status: String,
    message: String,
    logs: Vec<Map<String, Value>>,
}

#[derive(ToSchema)]
struct ActionLogError {
    #[schema(nullable = false)]
    message: Option<String>,
}

#[derive(ToSchema)]
pub(crate) struct File {
    toolkit_slug: String,
    tool_slug: String,
    filename: String,
    mimetype: String,
    md5: String,
}

/// Link to upload a file, and the key that names the file in arguments.
#[derive(ToSchema)]
pub(crate) struct Upload {
    id: String,
    /// The value for `s3key` in arguments.
    key: String,
    r#type: UploadKind,
    new_presigned_url: String,
    #[serde(rename = "newPresignedUrl")]
    new_presigned_url_older: String,
    #[schema(nullable = false)]
    existing_url: Option<String>,
    #[serde(rename = "existingUrl")]
    #[schema(nullable = false)]
    existing_url_older: Option<String>,
    metadata: UploadMetadata,
    /// Headers that the PUT request must have, if the bucket itself receives it.
    #[schema(nullable = false)]
    headers: Option<BTreeMap<String, String>>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum UploadKind {
    New,
    /// A file with the same content exists already.
    Existing,
}

#[derive(ToSchema)]
struct UploadMetadata {
    /// Always `s3`: the client uploads with a plain PUT request.
    storage_backend: String,
}
