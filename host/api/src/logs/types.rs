//! The search in the execution log, and the records that it finds.

use app::{
    accounts::Source,
    core::clock::iso,
    runs::{
        log::{self, ExecutionRecord},
        prompt::Tokens,
    },
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Filters and position of the list.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SearchRuns)]
pub(crate) struct Search {
    pub limit: Option<f64>,
    pub cursor: Option<String>,
    pub filters: Option<Vec<ConditionBody>>,
    pub time_range: Option<TimeRange>,
}

/// A condition on one field of the log.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RunFilter)]
pub(crate) struct ConditionBody {
    pub field: String,
    /// `==`, `!=`, `contains` or `not_contains`.
    pub operator: String,
    pub value: String,
}

/// Range of start times, in milliseconds since 1970. Both ends are included.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
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

view! {
    /// The record of an execution.
    #[schema(as = Run)]
    pub(crate) struct View from record: ExecutionRecord where {
        let message = match &record.failure {
            Some(kind) => format!("{} failed: {kind}", record.tool),
            None => format!("{} succeeded", record.tool),
        };
        let metrics = Metrics::from(&record);
    } {
        id: String = record.id.to_string(),
        #[schema(format = DateTime)] timestamp: String = iso(record.started_at),
        r#type: &'static str = "tool_execution",
        status: Status = record.status.into(),
        /// `error` if the execution failed, `info` otherwise.
        level: &'static str = match record.status {
            log::Status::Failed => "error",
            log::Status::Success => "info",
        },
        message: String = message,
        pub(super) metadata: Metadata = record.into(),
        metrics: Metrics = metrics,
        /// Null: no execution is part of another one.
        parent!: Option<Parent> = None,
    }
}

mirror! {
    /// Outcome of an execution.
    #[serde(rename_all = "lowercase")]
    #[schema(as = RunStatus)]
    pub(crate) enum Status of log::Status {
        Success,
        Failed,
    }
}

mirror! {
    /// Origin of the credential of an execution.
    #[serde(rename_all = "snake_case")]
    pub(crate) enum CredentialSource of Source {
        ConnectedAccount,
        InstantAccount,
        CustomAuth,
        NoAuth,
    }
}

view! {
    #[schema(as = RunMetadata)]
    pub(super) struct Metadata from record: ExecutionRecord {
        tool_slug: String = record.tool,
        toolkit_slug: String = record.toolkit,
        version: String = record.version,
        user_id: String = record.user,
        connected_account_id!: Option<String> = record.account.map(|id| id.to_string()),
        auth_config_id!: Option<String> = record.auth_config.map(|id| id.to_string()),
        request_id: String = record.request,
        /// Trace at the operator's collector; only if the server traces.
        trace_id?: Option<String> = record.trace.map(|trace| trace.to_string()),
        /// Null if the execution succeeded.
        error_kind!: Option<String> = record.failure,
        credential_source: CredentialSource = record.source.into(),
        /// Digest of the component that ran; only when a single record is read.
        pub(super) component?: Option<String> = None,
    }
}

view! {
    #[schema(as = RunMetrics)]
    struct Metrics from record: &ExecutionRecord {
        cpu_us: u64 = record.cpu_us,
        wall_us: u64 = record.wall_us,
        peak_memory_bytes: u64 = record.memory,
        host_calls: u64 = record.host_calls.into(),
        requests: u64 = record.requests as u64,
        /// Usage of the language model that generated the arguments; null if no arguments were
        /// generated.
        language_model!: Option<ModelUse> = record.tokens.as_ref().map(Into::into),
    }
}

view! {
    struct ModelUse from tokens: &Tokens {
        model: String = tokens.model.clone(),
        prompt_tokens: u64 = tokens.prompt,
        completion_tokens: u64 = tokens.completion,
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = RunParent)]
struct Parent {
    log_id: String,
    tool_slug: String,
}
