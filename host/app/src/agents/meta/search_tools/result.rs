//! The result of a search.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

use super::UseCaseResult;
use crate::{
    accounts::SessionAccount,
    agents::{
        Config,
        meta::{MetaTool, Workflow},
    },
    catalog::Release,
};

/// The result of a search.
#[derive(Debug, Serialize)]
pub struct SearchResult {
    /// The results, in the order of the use cases.
    pub results: Vec<UseCaseResult>,
    /// The schemas of the tools that were found, by slug.
    pub tool_schemas: BTreeMap<String, FoundTool>,
    /// The state of the connections, one entry for each toolkit that was found.
    pub toolkit_connection_statuses: Vec<ConnectionStatus>,
    /// The current time.
    pub time_info: TimeInfo,
    /// The workflow of the search.
    pub session: SearchWorkflow,
    /// Next steps for the assistant.
    pub next_steps_guidance: Vec<String>,
    /// The summary of the use cases that failed.
    #[serde(skip)]
    pub error: Option<String>,
}

/// The time of a search, from which an assistant computes other times.
#[derive(Debug, Serialize)]
pub struct TimeInfo {
    /// The time as a sentence.
    pub message: String,
    /// The time by RFC 3339, in UTC.
    pub current_time_utc: String,
    /// Seconds since the epoch.
    pub current_time_utc_epoch_seconds: i64,
}

/// The workflow of a search.
#[derive(Debug, Serialize)]
pub struct SearchWorkflow {
    /// Id and instructions.
    #[serde(flatten)]
    pub workflow: Workflow,
    /// True if the id is new.
    pub generate_id: bool,
}

/// A tool that was found.
#[derive(Debug, Serialize)]
pub struct FoundTool {
    /// Slug of the tool.
    pub tool_slug: String,
    /// Slug of the toolkit.
    pub toolkit: String,
    /// The description.
    pub description: String,
    /// The schema of the arguments; absent for related tools.
    pub input_schema: Option<Box<RawValue>>,
}

/// The state of the connection of a user to a toolkit.
#[derive(Debug, Serialize)]
pub struct ConnectionStatus {
    /// Slug of the toolkit.
    pub toolkit: String,
    /// Description of the toolkit.
    pub description: String,
    /// True if its tools can be executed now.
    pub has_active_connection: bool,
    /// The account in use.
    pub connection_details: Value,
    /// `PRIVATE` or `SHARED`; absent without an account.
    pub account_type: Option<&'static str>,
    /// The state as a sentence.
    pub status_message: String,
}

impl ConnectionStatus {
    pub(super) fn new(
        release: &Release,
        account: Option<&SessionAccount>,
        config: &Config,
    ) -> Self {
        let is_active = account.is_some() || release.no_auth();
        Self {
            status_message: status_message(release, account, config),
            toolkit: release.slug.to_string(),
            description: release.description.clone(),
            has_active_connection: is_active,
            connection_details: account.map_or_else(
                || json!({}),
                |account| json!({ "connected_account_id": account.record.id, "status": "ACTIVE" }),
            ),
            account_type: account.map(|account| match account.is_shared() {
                true => "SHARED",
                false => "PRIVATE",
            }),
        }
    }
}

fn status_message(release: &Release, account: Option<&SessionAccount>, config: &Config) -> String {
    let toolkit = &release.slug;
    match account {
        Some(account) => format!("{toolkit} is connected with account {}", account.record.id),
        None if release.no_auth() => format!("{toolkit} needs no account"),
        None if MetaTool::ManageConnections.is_enabled(config) => {
            format!("{toolkit} is not connected: use SERVICE_MANAGE_CONNECTIONS")
        }
        None => format!("{toolkit} is not connected"),
    }
}
