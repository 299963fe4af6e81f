//! How runs are stored: in pages of one project, with what was said beside them under seal.
//!
//! A page holds runs that ended within a second of each other and was created, by its own account, when the last of them
//! did. So the time in a run's id leads to its page: it was created soon after the run began ([`SLOW`] and [`SPAN`]), or the
//! page names the run as slow.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use store::{Collection, Document, Field, Kind, Time};

use super::Pending;
use crate::{
    connections::Source,
    ids::{AccountId, AuthConfigId, LogId},
    tools::text::Tokens,
    vault::{Place, Sealed},
};

/// Runs on a page at most. Larger pages cost the store more when they are moved than they save.
pub(super) const RUNS: usize = 64;
/// Bytes of what was said on a page, unless one run alone has more.
pub(super) const SAID: usize = 32 << 10;
/// Milliseconds between the end of the first run that came to a page and any other's.
pub(super) const SPAN: i64 = 1_000;
/// Milliseconds from which a run is named by its page.
pub(super) const SLOW: i64 = 2_000;

/// Pages of runs. Lists hold each value once.
pub(crate) static PAGES: Collection = Collection {
    name: "execution_pages",
    fields: &[
        Field::new("tools", Kind::List),
        Field::new("toolkits", Kind::List),
        Field::new("statuses", Kind::List),
        Field::new("users", Kind::List),
        Field::new("accounts", Kind::List),
        Field::new("auth_configs", Kind::List),
        Field::new("slow", Kind::List),
    ],
};

/// What was said, under the id of the page.
pub(crate) static DETAILS: Collection = Collection { name: "execution_details", fields: &[] };

/// Runs of one project, in the order of their ids.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Page {
    pub runs: Vec<Executed>,
    tools: Vec<String>,
    toolkits: Vec<String>,
    statuses: Vec<String>,
    users: Vec<String>,
    accounts: Vec<String>,
    auth_configs: Vec<String>,
    slow: Vec<String>,
}

impl Document for Page {
    const COLLECTION: &'static Collection = &PAGES;
}

/// What was said by the runs of a page, in the same order; nothing for runs whose project keeps no data.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Details {
    pub sealed: Sealed<Vec<Option<Detail>>>,
}

impl Document for Details {
    const COLLECTION: &'static Collection = &DETAILS;
}

/// A run, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Executed {
    /// Its name.
    pub id: LogId,
    /// Slug.
    pub tool: String,
    /// Slug.
    pub toolkit: String,
    /// Exact.
    pub version: String,
    /// How it ended.
    pub status: Status,
    /// On whose behalf.
    pub user: String,
    /// With which account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<AccountId>,
    /// How that was connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_config: Option<AuthConfigId>,
    /// Where the credential came from.
    pub source: Source,
    /// The request that asked for it.
    pub request: String,
    /// When it began.
    pub started_at: Time,
    /// When it ended.
    pub ended_at: Time,
    /// Processor time in microseconds.
    pub cpu_us: u64,
    /// Wall-clock time in microseconds.
    pub wall_us: u64,
    /// Bytes of guest memory at most.
    pub memory: u64,
    /// Calls of host functions.
    pub host_calls: u32,
    /// Requests to the external application.
    pub requests: usize,
    /// What a model used that made the arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// Kind of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The tool answered.
    Success,
    /// The tool failed or was stopped.
    Failed,
}

impl Status {
    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failed => "failed",
        }
    }
}

/// What was said, in and out.
#[derive(Debug, Serialize, Deserialize)]
pub struct Detail {
    /// As they came, or a note that they were too large to keep.
    pub arguments: Box<RawValue>,
    /// As it was answered, or such a note.
    pub data: Box<RawValue>,
    /// Of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What the tool wrote.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<Line>,
    /// What it sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<Sent>,
}

/// A line the tool wrote.
#[derive(Debug, Serialize, Deserialize)]
pub struct Line {
    /// `debug`, `info`, `warn` or `error`.
    pub level: String,
    /// Milliseconds since the start.
    pub at_ms: u64,
    /// The text.
    pub message: String,
}

/// A request the tool sent.
#[derive(Debug, Serialize, Deserialize)]
pub struct Sent {
    /// GET, POST and so on.
    pub method: String,
    /// Without secrets.
    pub url: String,
    /// What the application answered.
    pub status: Option<u16>,
    /// Why it was not sent or not answered.
    pub error: Option<String>,
    /// How long it took.
    pub elapsed_ms: u64,
    /// Bytes of the request's body.
    pub sent: u64,
    /// Bytes of the answer's body.
    pub received: u64,
}

impl Page {
    /// A page of runs, which are in the order of their ids.
    pub(super) fn of(runs: Vec<Executed>) -> Self {
        let list = |value: fn(&Executed) -> Option<&str>| {
            let mut values: Vec<_> = runs.iter().filter_map(value).map(str::to_owned).collect();
            values.sort_unstable();
            values.dedup();
            values
        };
        Self {
            tools: list(|run| Some(&run.tool)),
            toolkits: list(|run| Some(&run.toolkit)),
            statuses: list(|run| Some(run.status.as_str())),
            users: list(|run| Some(&run.user)),
            accounts: list(|run| run.account.as_ref().map(AccountId::as_str)),
            auth_configs: list(|run| run.auth_config.as_ref().map(AuthConfigId::as_str)),
            slow: list(|run| run.is_slow().then(|| run.id.as_str())),
            runs,
        }
    }
}

impl Executed {
    /// Whether its page may lie further from its beginning than the others'. A clock set back counts too.
    fn is_slow(&self) -> bool {
        !(0..SLOW).contains(&(self.ended_at.0 - self.started_at.0))
    }
}

/// Cuts entries of one project, in order of arrival, into pages.
pub(super) fn cut<'a>(entries: &[&'a Pending]) -> Vec<Vec<&'a Pending>> {
    let mut pages: Vec<Vec<&Pending>> = Vec::new();
    let (mut said, mut first) = (0, Time(0));
    for entry in entries {
        let size = entry.said.as_ref().map_or(0, Detail::size);
        let fits = pages
            .last()
            .is_some_and(|page| page.len() < RUNS && said + size <= SAID && (entry.ended_at.0 - first.0).abs() < SPAN);
        if !fits {
            pages.push(Vec::with_capacity(RUNS.min(entries.len())));
            (said, first) = (0, entry.ended_at);
        }
        said += size;
        if let Some(page) = pages.last_mut() {
            page.push(entry);
        }
    }
    for page in &mut pages {
        page.sort_by(|one, other| one.id.cmp(&other.id));
    }
    pages
}

/// Where the details of a page are sealed.
pub(super) fn place<'a>(project: &'a str, page: &'a str) -> Place<'a> {
    Place { collection: DETAILS.name, project, id: page, field: "sealed" }
}
