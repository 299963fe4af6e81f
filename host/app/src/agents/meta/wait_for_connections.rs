//! Waits until the user of a session has connected toolkits.
//!
//! A commit that writes an account wakes the call, which then reads the accounts of its user. Commits
//! of other servers on the same database wake it too, within a second. A call whose session is deleted, or
//! does not offer it any more, ends within seconds.
//!
//! A call that waits holds its request, and reads accounts whenever an account of any project changes.
//! A project therefore waits in a few calls at a time, and a call reads a few times in a second.

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    MetaResult, MetaTool, Workflow, manage_connections::toolkit_slugs, meta_result, parse,
};
use crate::{
    App, Record, Result,
    accounts::{self, Account, Status},
    agents::{SessionCaller, SessionToolkit, SessionToolkitFilter, errors, toolkits},
    core::clock::iso,
};

/// Maximum number of calls of one project that wait for connections on one server.
pub const MAX_WAITS_PER_PROJECT: usize = 10;
/// Minimum interval between two reads of the accounts.
const MIN_READ_INTERVAL: Duration = Duration::from_millis(200);
/// Interval at which the session is looked at while no account changes.
const SESSION_CHECK_INTERVAL: Duration = Duration::from_secs(2);

#[derive(Deserialize)]
struct Arguments {
    toolkits: Vec<String>,
    #[serde(default)]
    mode: Mode,
    session_id: Option<String>,
}

/// The toolkits that must be connected, or have failed, to end the wait.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Any,
    All,
}

#[derive(Serialize)]
struct Data {
    message: String,
    results: BTreeMap<String, Connection>,
    session: Workflow,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum ConnectionStatus {
    Active,
    Initiated,
    Failed,
    NotFound,
}

#[derive(Serialize)]
struct Connection {
    toolkit: String,
    status: ConnectionStatus,
    has_active_connection: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    connected_account_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    auth_config_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<String>,
}

/// Returns the connections once enough of them are made, have failed or do not exist, or once the
/// time limit is reached. Fails if the session is deleted or does not offer the tool any more.
pub(super) async fn run(app: &App, caller: &SessionCaller, arguments: Value) -> Result<MetaResult> {
    let arguments: Arguments = parse(MetaTool::WaitForConnections, arguments)?;
    let mode = arguments.mode;
    let slugs = toolkit_slugs(MetaTool::WaitForConnections, arguments.toolkits)?;
    let wait = app.connection_waits.try_acquire(&caller.project.id);
    let _wait = wait.ok_or_else(|| errors::too_many_waits(MAX_WAITS_PER_PROJECT))?;
    // The signal remembers commits from now on, so that a commit between a read and a wait is noticed.
    let signal = app.store.commit_signal(&accounts::COLLECTION);
    let max_wait = app.sessions.connection_wait;
    let deadline = Instant::now() + max_wait;
    let mut results = connections(app, caller, &slugs).await?;
    let mut is_over = false;
    while !is_over && !mode.is_done(&results) {
        let waiting = async {
            sleep(MIN_READ_INTERVAL).await;
            signal.committed_within(SESSION_CHECK_INTERVAL).await
        };
        let woken = timeout_at(deadline, waiting).await;
        is_over = woken.is_err();
        let current = caller.current(app).await?;
        MetaTool::WaitForConnections.check_switched_on(current.config())?;
        if woken.unwrap_or(true) || matches!(current, Cow::Owned(_)) {
            results = connections(app, &current, &slugs).await?;
        }
    }
    let data = Data {
        message: message(&results, mode.is_done(&results), max_wait),
        results,
        session: Workflow::new(arguments.session_id.as_deref()),
    };
    meta_result(&data, None)
}

impl Mode {
    /// Returns true if no further wait is needed, or if it could have no effect.
    fn is_done(self, results: &BTreeMap<String, Connection>) -> bool {
        use ConnectionStatus::{Active, Failed, Initiated};
        let mut statuses = results.values().map(|result| result.status);
        let is_waiting = results.values().any(|result| result.status == Initiated);
        match self {
            Self::Any => statuses.any(|status| matches!(status, Active | Failed)) || !is_waiting,
            Self::All => !is_waiting,
        }
    }
}

fn message(results: &BTreeMap<String, Connection>, done: bool, max_wait: Duration) -> String {
    let counts = format!(
        "{} connected, {} not connected yet, {} failed, {} not found",
        count(results, ConnectionStatus::Active),
        count(results, ConnectionStatus::Initiated),
        count(results, ConnectionStatus::Failed),
        count(results, ConnectionStatus::NotFound),
    );
    if done {
        return counts;
    }
    format!(
        "{counts}. The user has not connected them within {} s: call again to wait longer.",
        max_wait.as_secs()
    )
}

fn count(connections: &BTreeMap<String, Connection>, status: ConnectionStatus) -> usize {
    let statuses = connections.values().map(|connection| connection.status);
    statuses.filter(|one| *one == status).count()
}

async fn connections(
    app: &App,
    caller: &SessionCaller,
    slugs: &[String],
) -> Result<BTreeMap<String, Connection>> {
    // They are read before the active accounts, so that an account that becomes active between the
    // two reads is seen as pending or as active.
    let mut newest = BTreeMap::new();
    for slug in slugs {
        newest.insert(slug, newest_inactive(app, caller, slug).await?);
    }
    let filter = SessionToolkitFilter {
        slugs: slugs.to_vec(),
        ..SessionToolkitFilter::default()
    };
    let named = toolkits(app, caller, &app.catalog.snapshot(), filter).await?;
    let connections = newest.into_iter().map(|(slug, inactive)| {
        let toolkit = named.iter().find(|named| *named.toolkit.slug == **slug);
        (slug.clone(), Connection::new(slug, toolkit, inactive))
    });
    Ok(connections.collect())
}

/// Returns the newest account that the session would use for a toolkit if it were active.
async fn newest_inactive(
    app: &App,
    caller: &SessionCaller,
    toolkit: &str,
) -> Result<Option<Record<Account>>> {
    let config = caller.config();
    let project = &caller.project;
    let newest = match config.connected_accounts.get(toolkit) {
        Some(pinned) => {
            let pinned = pinned.first().map_or("", |id| id.as_str());
            app.store.get(project.id.as_str(), pinned).await?
        }
        None => {
            let auth_config = config.auth_configs.get(toolkit);
            accounts::newest_inactive(app, project, &config.user_id, toolkit, auth_config).await?
        }
    };
    Ok(newest.filter(|account| account.body.status != Status::Active))
}

impl Connection {
    fn new(slug: &str, found: Option<&SessionToolkit>, inactive: Option<Record<Account>>) -> Self {
        let Some(found) = found.filter(|found| found.enabled) else {
            let reason = "the toolkit does not exist, or the session does not permit it";
            return Self::without_account(slug, ConnectionStatus::NotFound, Some(reason));
        };
        if let Some(active) = &found.account {
            return Self {
                has_active_connection: true,
                ..Self::of_account(slug, ConnectionStatus::Active, &active.record)
            };
        }
        if found.toolkit.current().no_auth() {
            return Self {
                has_active_connection: true,
                ..Self::without_account(slug, ConnectionStatus::Active, None)
            };
        }
        match inactive {
            Some(account) if account.body.status.is_pending() => {
                Self::of_account(slug, ConnectionStatus::Initiated, &account)
            }
            Some(account) => Self {
                error_message: Some(failure(&account)),
                ..Self::of_account(slug, ConnectionStatus::Failed, &account)
            },
            None => {
                let reason =
                    "the user has no account: create a link with SERVICE_MANAGE_CONNECTIONS";
                Self::without_account(slug, ConnectionStatus::NotFound, Some(reason))
            }
        }
    }

    fn without_account(slug: &str, status: ConnectionStatus, reason: Option<&str>) -> Self {
        Self {
            toolkit: slug.to_owned(),
            status,
            has_active_connection: false,
            connected_account_id: None,
            auth_config_id: None,
            created_at: None,
            error_message: reason.map(str::to_owned),
        }
    }

    fn of_account(slug: &str, status: ConnectionStatus, account: &Record<Account>) -> Self {
        Self {
            connected_account_id: Some(account.id.clone()),
            auth_config_id: Some(account.body.auth_config.to_string()),
            created_at: Some(iso(account.created_at)),
            ..Self::without_account(slug, status, None)
        }
    }
}

/// Returns the reason for which an account is not usable.
fn failure(account: &Record<Account>) -> String {
    let account = &account.body;
    let reason = match (&account.failure, &account.status_reason) {
        (Some(failure), _) => format!(": {} {}", failure.error, failure.description),
        (None, Some(reason)) => format!(": {reason}"),
        (None, None) => String::new(),
    };
    let status = account.status.into_str();
    format!("the account is {status}{}", reason.trim_end())
}
