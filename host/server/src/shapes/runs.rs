//! Runs of tools, and the records of them.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// What came of a run.
#[derive(ToSchema)]
pub(crate) struct Execution {
    /// What the tool answered; past 4 MiB `result_file` alone, with a link to it in `s3url`, `name`, `mimetype`, `size` and
    /// `expires_at`. When it failed, what is known about the failure.
    data: Map<String, Value>,
    /// Null when it succeeded.
    #[schema(required)]
    error: Option<String>,
    successful: bool,
    #[schema(required)]
    session_info: Option<Map<String, Value>>,
    log_id: String,
}

/// A page of the execution log.
#[derive(ToSchema)]
pub(crate) struct Runs {
    logs: Vec<Run>,
    #[schema(required)]
    next_cursor: Option<String>,
}

/// The record of a run.
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
    /// Null when it succeeded.
    #[schema(required)]
    error_kind: Option<String>,
    credential_source: CredentialSource,
    /// Digest of the component that ran; in the record alone.
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
    /// What arguments of a sentence took; null when none were made.
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
    /// What was said; empty when the project stores no data.
    data: RunData,
}

/// Milliseconds since 1970.
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

/// What a run said and was told, to run it again.
#[derive(ToSchema)]
#[schema(value_type = Object)]
pub(crate) struct Cassette(Map<String, Value>);

/// Arguments for a tool.
#[derive(ToSchema)]
pub(crate) struct Arguments {
    arguments: Map<String, Value>,
}

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

/// A page of runs, as older clients know them.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ActionLogs {
    data: Vec<ActionLogItem>,
    /// How many runs to pass over for the page after; null on the last one.
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
    /// Milliseconds.
    execution_time: u64,
    minimal_response: String,
    /// Milliseconds since 1970.
    created_at: i64,
    credential_source: CredentialSource,
}

#[derive(ToSchema)]
struct ActionLogApp {
    icon: String,
    name: String,
}

/// A run, as older clients know it.
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

/// What an application answered to a request of the caller's own.
#[derive(ToSchema)]
pub(crate) struct Proxied {
    /// The application's.
    status: u16,
    /// Names in lower case, without cookies.
    headers: BTreeMap<String, String>,
    /// Parsed JSON, else text; null when there was no body, and empty when it is a file.
    data: Value,
    #[schema(nullable = false)]
    binary_data: Option<ProxiedFile>,
    log_id: String,
}

/// A body that is no text, kept as a file.
#[derive(ToSchema)]
struct ProxiedFile {
    /// A link to get it from.
    url: String,
    content_type: String,
    size: u64,
    /// Then the link ends.
    expires_at: String,
}

#[derive(ToSchema)]
pub(crate) struct File {
    toolkit_slug: String,
    tool_slug: String,
    filename: String,
    mimetype: String,
    md5: String,
}

/// Where to put a file, and how to name it in arguments.
#[derive(ToSchema)]
pub(crate) struct Upload {
    id: String,
    /// The `s3key` of arguments.
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
    /// Headers that the PUT must have, where the bucket itself takes it.
    #[schema(nullable = false)]
    headers: Option<BTreeMap<String, String>>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum UploadKind {
    New,
    /// The same content is there already.
    Existing,
}

#[derive(ToSchema)]
struct UploadMetadata {
    /// `s3`: a plain PUT.
    storage_backend: String,
}
