//! Tells which toolkits of a session are connected, and creates a link for each of the others.
//!
//! Toolkits fail independently: the error of one is a part of its result.

use std::collections::BTreeMap;

use futures::future;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{MetaResult, MetaTool, Workflow, meta_result, parse};
use crate::{
    App, Result,
    accounts::{AccountType, SessionAccount},
    agents::{
        Connect, SessionCaller, SessionToolkit, SessionToolkitFilter, errors, link, toolkits,
    },
    core::clock::iso,
};

/// Maximum number of toolkits of a call.
pub const MAX_TOOLKITS: usize = 20;

#[derive(Deserialize)]
struct Arguments {
    toolkits: Vec<String>,
    #[serde(default)]
    reinitiate_all: bool,
    session_id: Option<String>,
}

#[derive(Serialize)]
struct Data {
    message: String,
    results: BTreeMap<String, Connection>,
    summary: Summary,
    session: Workflow,
}

#[derive(Serialize)]
struct Summary {
    total_toolkits: usize,
    active_connections: usize,
    initiated_connections: usize,
    failed_connections: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum ConnectionStatus {
    Active,
    Initiated,
    Failed,
}

/// The connection of one toolkit. Absent fields are null.
#[derive(Serialize)]
struct Connection {
    toolkit: String,
    status: ConnectionStatus,
    has_active_connection: bool,
    auth_config_id: Option<String>,
    connected_account_id: Option<String>,
    created_at: Option<String>,
    account_type: Option<AccountType>,
    redirect_url: Option<String>,
    was_reinitiated: Option<bool>,
    instruction: Option<String>,
    error_message: Option<String>,
}

impl Connection {
    fn new(toolkit: &str, status: ConnectionStatus, account: Option<&SessionAccount>) -> Self {
        let record = account.map(|account| &account.record);
        Self {
            toolkit: toolkit.to_owned(),
            status,
            has_active_connection: account.is_some(),
            auth_config_id: record.map(|record| record.body.auth_config.to_string()),
            connected_account_id: record.map(|record| record.id.clone()),
            created_at: record.map(|record| iso(record.created_at)),
            account_type: record.map(|record| record.body.sharing.account_type),
            redirect_url: None,
            was_reinitiated: None,
            instruction: None,
            error_message: None,
        }
    }
}

/// Returns the connections, and creates the links.
pub(super) async fn run(app: &App, caller: &SessionCaller, arguments: Value) -> Result<MetaResult> {
    let arguments: Arguments = parse(MetaTool::ManageConnections, arguments)?;
    let slugs = toolkit_slugs(MetaTool::ManageConnections, arguments.toolkits)?;
    let filter = SessionToolkitFilter {
        slugs: slugs.clone(),
        ..SessionToolkitFilter::default()
    };
    let named = toolkits(app, caller, &app.catalog.snapshot(), filter).await?;
    let connections = slugs.iter().map(async |slug| {
        let toolkit = named.iter().find(|named| *named.toolkit.slug == **slug);
        let connection = connection(app, caller, slug, toolkit, arguments.reinitiate_all);
        (slug.clone(), connection.await)
    });
    let results: BTreeMap<_, _> = future::join_all(connections).await.into_iter().collect();
    let summary = Summary {
        total_toolkits: results.len(),
        active_connections: count(&results, ConnectionStatus::Active),
        initiated_connections: count(&results, ConnectionStatus::Initiated),
        failed_connections: count(&results, ConnectionStatus::Failed),
    };
    let data = Data {
        message: format!(
            "{} connected, {} to be connected by the user, {} failed",
            summary.active_connections, summary.initiated_connections, summary.failed_connections
        ),
        results,
        summary,
        session: Workflow::new(arguments.session_id.as_deref()),
    };
    meta_result(&data, None)
}

fn count(connections: &BTreeMap<String, Connection>, status: ConnectionStatus) -> usize {
    let statuses = connections.values().map(|connection| connection.status);
    statuses.filter(|one| *one == status).count()
}

/// Returns the slugs of toolkits that a call names, each once and in lower case. Fails if the list is
/// empty or too long.
pub(super) fn toolkit_slugs(tool: MetaTool, mut slugs: Vec<String>) -> Result<Vec<String>> {
    for slug in &mut slugs {
        *slug = slug.trim().to_lowercase();
    }
    slugs.sort_unstable();
    slugs.dedup();
    if (1..=MAX_TOOLKITS).contains(&slugs.len()) {
        return Ok(slugs);
    }
    let problem = format!("toolkits: must have 1 to {MAX_TOOLKITS} slugs");
    Err(errors::arguments_invalid(tool.slug(), problem))
}

async fn connection(
    app: &App,
    caller: &SessionCaller,
    slug: &str,
    found: Option<&SessionToolkit>,
    reinitiate: bool,
) -> Connection {
    let permitted = found.filter(|found| found.enabled);
    let account = permitted.and_then(|found| found.account.as_deref());
    let needs_none = permitted.is_some_and(|found| found.toolkit.current().no_auth());
    if needs_none || (account.is_some() && !reinitiate) {
        return Connection {
            has_active_connection: true,
            ..Connection::new(slug, ConnectionStatus::Active, account)
        };
    }
    let request = Connect {
        toolkit: slug.to_owned(),
        ..Connect::default()
    };
    match link(app, caller, request).await {
        Ok(created) => Connection {
            connected_account_id: Some(created.account.to_string()),
            instruction: Some(format!(
                "Ask the user to open {} and to connect {slug} there.",
                created.url
            )),
            redirect_url: Some(created.url),
            was_reinitiated: Some(account.is_some()),
            ..Connection::new(slug, ConnectionStatus::Initiated, account)
        },
        Err(cause) => Connection {
            error_message: Some(cause.to_string()),
            ..Connection::new(slug, ConnectionStatus::Failed, account)
        },
    }
}
