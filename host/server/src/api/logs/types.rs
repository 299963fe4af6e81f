//! The search in the execution log, and the records that it finds.

use app::{
    accounts::Source,
    core::clock::iso,
    runs::log::{self, ExecutionRecord},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Filters and position of the list.
#[derive(Deserialize, ToSchema)]
#[schema(as = SearchRuns)]
pub(crate) struct Search {
    #[serde(default)]
    pub limit: Option<f64>,
    #[serde(default)]
    pub cursor: Option<String>,
    #[serde(default)]
    pub filters: Option<Vec<ConditionBody>>,
    #[serde(default)]
    pub time_range: Option<TimeRange>,
}

/// A condition on one field of the log.
#[derive(Deserialize, ToSchema)]
#[schema(as = RunFilter)]
pub(crate) struct ConditionBody {
    pub field: String,
    /// `==`, `!=`, `contains` or `not_contains`.
    pub operator: String,
    pub value: String,
}

/// Range of start times, in milliseconds since 1970. Both ends are included.
#[derive(Deserialize, ToSchema)]
pub(crate) struct TimeRange {
    pub from: f64,
    pub to: f64,
}

/// A page of the execution log.
#[derive(Serialize, ToSchema)]
#[schema(as = Runs)]
pub(crate) struct ListView {
    pub logs: Vec<View>,
    /// Cursor of the next page; null on the last one.
    #[schema(required)]
    pub next_cursor: Option<String>,
}

/// The record of an execution.
#[derive(Serialize, ToSchema)]
#[schema(as = Run)]
pub(crate) struct View {
    id: String,
    #[schema(format = DateTime)]
    timestamp: String,
    r#type: &'static str,
    status: Status,
    /// `error` if the execution failed, `info` otherwise.
    level: &'static str,
    message: String,
    metadata: Metadata,
    metrics: Metrics,
    /// Null: no execution is part of another one.
    #[schema(required)]
    parent: Option<Parent>,
}

impl From<ExecutionRecord> for View {
    fn from(record: ExecutionRecord) -> Self {
        let message = match &record.failure {
            Some(kind) => format!("{} failed: {kind}", record.tool),
            None => format!("{} succeeded", record.tool),
        };
        Self {
            id: record.id.to_string(),
            timestamp: iso(record.started_at),
            r#type: "tool_execution",
            status: record.status.into(),
            level: match record.status {
                log::Status::Failed => "error",
                log::Status::Success => "info",
            },
            message,
            metrics: Metrics::from(&record),
            metadata: record.into(),
            parent: None,
        }
    }
}

impl View {
    /// Adds the digest of the component that ran.
    pub(crate) fn with_component(mut self, component: Option<String>) -> Self {
        self.metadata.component = component;
        self
    }
}

/// Outcome of an execution.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = RunStatus)]
pub(crate) enum Status {
    Success,
    Failed,
}

impl From<log::Status> for Status {
    fn from(status: log::Status) -> Self {
        match status {
            log::Status::Success => Self::Success,
            log::Status::Failed => Self::Failed,
        }
    }
}

/// Origin of the credential of an execution.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CredentialSource {
    ConnectedAccount,
    InstantAccount,
    CustomAuth,
    NoAuth,
}

impl From<Source> for CredentialSource {
    fn from(source: Source) -> Self {
        match source {
            Source::ConnectedAccount => Self::ConnectedAccount,
            Source::InstantAccount => Self::InstantAccount,
            Source::CustomAuth => Self::CustomAuth,
            Source::NoAuth => Self::NoAuth,
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = RunMetadata)]
struct Metadata {
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
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    component: Option<String>,
}

impl From<ExecutionRecord> for Metadata {
    fn from(record: ExecutionRecord) -> Self {
        Self {
            tool_slug: record.tool,
            toolkit_slug: record.toolkit,
            version: record.version,
            user_id: record.user,
            connected_account_id: record.account.map(|id| id.to_string()),
            auth_config_id: record.auth_config.map(|id| id.to_string()),
            request_id: record.request,
            error_kind: record.failure,
            credential_source: record.source.into(),
            component: None,
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = RunMetrics)]
struct Metrics {
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

impl From<&ExecutionRecord> for Metrics {
    fn from(record: &ExecutionRecord) -> Self {
        Self {
            cpu_us: record.cpu_us,
            wall_us: record.wall_us,
            peak_memory_bytes: record.memory,
            host_calls: record.host_calls.into(),
            requests: record.requests as u64,
            language_model: record.tokens.as_ref().map(|tokens| ModelUse {
                model: tokens.model.clone(),
                prompt_tokens: tokens.prompt,
                completion_tokens: tokens.completion,
            }),
        }
    }
}

#[derive(Serialize, ToSchema)]
struct ModelUse {
    model: String,
    prompt_tokens: u64,
    completion_tokens: u64,
}

#[derive(Serialize, ToSchema)]
#[schema(as = RunParent)]
struct Parent {
    log_id: String,
    tool_slug: String,
}
