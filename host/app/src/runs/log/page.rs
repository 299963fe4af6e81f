//! Storage of executions in pages of one project, with sealed details next to them.
//!
//! A page holds executions that ended within a second of each other. Its creation time is the end
//! of the last of them. The time in an execution's id therefore leads to its page: either the page
//! was created soon after the execution started ([`SLOW_RUN_MS`] and [`MAX_PAGE_SPAN_MS`]), or the
//! page lists the execution as slow.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use store::{Collection, Document, Erasure, Field, Kind, Time};
use strum::IntoStaticStr;

use crate::{
    accounts::Source,
    core::{
        ids::{AccountId, AuthConfigId, LogId, SessionId},
        trace::TraceId,
        vault::Sealed,
    },
    runs::prompt::Tokens,
};

/// Maximum number of executions on a page. Moving larger pages costs the store more than they save.
pub(super) const MAX_PAGE_RUNS: usize = 64;
/// Maximum time between the end of the first execution on a page and the end of any other, in
/// milliseconds.
pub(super) const MAX_PAGE_SPAN_MS: i64 = 1_000;
/// Duration from which a page lists an execution as slow, in milliseconds.
pub(super) const SLOW_RUN_MS: i64 = 2_000;

/// The collection of pages. Each list contains a value once.
pub(crate) static PAGES_COLLECTION: Collection = Collection {
    name: "execution_pages",
    erasure: Erasure::Other("the retention of the execution log erases them"),
    fields: &[
        Field::new("tools", Kind::List),
        Field::new("toolkits", Kind::List),
        Field::new("statuses", Kind::List),
        Field::new("users", Kind::List),
        Field::new("accounts", Kind::List),
        Field::new("auth_configs", Kind::List),
        Field::new("sessions", Kind::List),
        Field::new("slow", Kind::List),
    ],
};

/// The collection of details, under the id of the page.
pub(crate) static DETAILS_COLLECTION: Collection = Collection {
    name: "execution_details",
    erasure: Erasure::Other("the retention of the execution log erases them"),
    fields: &[],
};

/// The executions of one project on a page, in the order of their ids. A page borrows its text when
/// it is written.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Page<Text = String> {
    pub runs: Vec<ExecutionRecord<Text>>,
    pub(super) tools: Vec<Text>,
    pub(super) toolkits: Vec<Text>,
    pub(super) statuses: Vec<Text>,
    pub(super) users: Vec<Text>,
    pub(super) accounts: Vec<Text>,
    pub(super) auth_configs: Vec<Text>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) sessions: Vec<Text>,
    pub(super) slow: Vec<Text>,
}

impl Document for Page {
    const COLLECTION: &'static Collection = &PAGES_COLLECTION;
}

/// The details of the executions on a page, in the same order. Executions of projects that store no
/// data lack details.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Details {
    #[serde(serialize_with = "Sealed::serialize_unescaped")]
    pub sealed: Sealed<Vec<Option<Detail>>>,
}

impl Document for Details {
    const COLLECTION: &'static Collection = &DETAILS_COLLECTION;
}

/// An execution as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ExecutionRecord<Text = String> {
    /// The id of the log record.
    pub id: LogId,
    /// The slug of the tool.
    pub tool: Text,
    /// The slug of the toolkit.
    pub toolkit: Text,
    /// The exact version of the toolkit.
    pub version: Text,
    /// The outcome.
    pub status: Status,
    /// The user of the execution.
    pub user: Text,
    /// The connected account that was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<AccountId>,
    /// The auth config of the account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_config: Option<AuthConfigId>,
    /// The source of the credential.
    pub source: Source,
    /// The tool router session in which the tool ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The id of the request that started the execution.
    pub request: Text,
    /// The trace that the execution is a part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceId>,
    /// The start time.
    pub started_at: Time,
    /// The end time.
    pub ended_at: Time,
    /// The processor time, in microseconds.
    pub cpu_us: u64,
    /// The elapsed time, in microseconds.
    pub wall_us: u64,
    /// The maximum size of the guest's memory, in bytes.
    pub memory: u64,
    /// The number of host function calls.
    pub host_calls: u32,
    /// The number of requests to the provider.
    pub requests: usize,
    /// The tokens used, if a language model made the arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// The kind of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Text>,
}

/// The outcome of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum Status {
    /// The tool returned a result.
    Success,
    /// The tool failed or was stopped.
    Failed,
}

/// The input and output of an execution. The JSON is a `RawJson` when it is written, and a `RawValue`
/// when it is read.
#[derive(Debug, Serialize, Deserialize)]
pub struct Detail<Json = Box<RawValue>> {
    /// The arguments as received, or a note that they were too large to keep.
    pub arguments: Json,
    /// The data as returned, or a note that it was too large to keep.
    pub data: Json,
    /// The error of a failed execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The lines that the tool logged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<Line>,
    /// The requests that the tool sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<SentRequest>,
}

/// A line that the tool logged.
#[derive(Debug, Serialize, Deserialize)]
pub struct Line {
    /// The level: `debug`, `info`, `warn` or `error`.
    pub level: String,
    /// The time since the start, in milliseconds.
    pub at_ms: u64,
    /// The text.
    pub message: String,
}

/// A request that the tool sent.
#[derive(Debug, Serialize, Deserialize)]
pub struct SentRequest {
    /// The HTTP method.
    pub method: String,
    /// The URL, without secrets.
    pub url: String,
    /// The HTTP status code of the provider's response.
    pub status: Option<u16>,
    /// The reason why the request was not sent or got no response.
    pub error: Option<String>,
    /// The duration, in milliseconds.
    pub elapsed_ms: u64,
    /// The size of the request body, in bytes.
    pub sent: u64,
    /// The size of the response body, in bytes.
    pub received: u64,
}

impl<'a> Page<&'a str> {
    /// Returns the values of the declared fields of [`PAGES_COLLECTION`], in their order.
    pub(super) fn lists(&self) -> [&[&'a str]; 8] {
        [
            &self.tools,
            &self.toolkits,
            &self.statuses,
            &self.users,
            &self.accounts,
            &self.auth_configs,
            &self.sessions,
            &self.slow,
        ]
    }
}
