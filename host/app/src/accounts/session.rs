//! Accounts of tool router sessions. A session acts for one user, and uses a shared account only if
//! it is named.

use std::collections::HashSet;

use store::{CommitSignal, Query, Record};
use strum::VariantArray as _;

use super::{
    Account, AccountType, Status,
    account::{COLLECTION, MAX_CANDIDATES, record, unique_alias},
    auth_configs::{self, AuthConfig},
    errors,
    grant::{active_config, check_user_allowed},
};
use crate::{
    App, Result,
    core::ids::{AccountId, AuthConfigId},
    projects::Project,
};

/// Maximum number of accounts of one user that the list of a session's toolkits regards.
const MAX_ACCOUNTS_OF_USER: u64 = 1_000;

/// Checks that an account is active and of a toolkit, and that a user may use it. Fails with the
/// reason if not.
pub(crate) async fn check_usable(
    app: &App,
    project: &Project,
    id: &AccountId,
    toolkit: &str,
    user: &str,
) -> Result<()> {
    let account = record(app, project, id).await?;
    check_user_allowed(&account, Some(user))?;
    if account.body.toolkit != toolkit {
        return Err(errors::no_account(account.body.user_id, toolkit, ""));
    }
    active_config(app, project, &account).await?;
    Ok(())
}

/// Returns a signal of each change of an account by this server.
#[must_use]
pub fn commit_signal(app: &App) -> CommitSignal {
    app.store.commit_signal(&COLLECTION)
}

/// An active account whose auth config exists.
#[derive(Debug)]
pub struct SessionAccount {
    /// The account.
    pub record: Record<Account>,
    /// True if its auth config uses the operator's OAuth app.
    pub managed: bool,
    /// True if sessions may use its auth config.
    pub in_sessions: bool,
}

impl SessionAccount {
    /// Returns true if the account is shared, so that sessions use it only if they pin it.
    pub(crate) fn is_shared(&self) -> bool {
        self.record.body.sharing.account_type == AccountType::Shared
    }
}

/// Returns the active private accounts of a user and toolkit whose auth config sessions may use,
/// newest first; only those of one auth config if it is given.
pub(crate) async fn session_accounts(
    app: &App,
    project: &Project,
    user: &str,
    toolkit: &str,
    auth_config: Option<&AuthConfigId>,
) -> Result<Vec<SessionAccount>> {
    let query = active_accounts(project, user)
        .is("toolkit", toolkit)
        .filter("auth_config", auth_config.map(AuthConfigId::as_str))
        .page(0, MAX_CANDIDATES);
    let records = app.store.find::<Account>(&query).await?.records;
    let mut accounts = with_configs(app, project, records).await?;
    accounts
        .retain(|account| !account.is_shared() && (auth_config.is_some() || account.in_sessions));
    Ok(accounts)
}

/// Returns the number of accounts of a user and toolkit that are connected, or that their user may still
/// connect, and whose auth config sessions may use; only those of one auth config if it is given.
pub(crate) async fn count_of_session(
    app: &App,
    project: &Project,
    user: &str,
    toolkit: &str,
    auth_config: Option<&AuthConfigId>,
) -> Result<usize> {
    let statuses = Status::VARIANTS
        .iter()
        .filter(|status| status.is_connected() || status.is_pending());
    let query = Query::for_project(project.id.as_str())
        .is("user_id", user)
        .is("toolkit", toolkit)
        .filter("auth_config", auth_config.map(AuthConfigId::as_str))
        .any_of("status", statuses.map(|status| status.into_str()))
        .page(0, MAX_CANDIDATES);
    let records = app.store.find::<Account>(&query).await?.records;
    let accounts = with_configs(app, project, records).await?;
    let counted = accounts
        .iter()
        .filter(|account| auth_config.is_some() || account.in_sessions);
    Ok(counted.count())
}

/// Returns the active accounts of a user, newest first, and those that a session pins.
pub(crate) async fn accounts_of_session(
    app: &App,
    project: &Project,
    user: &str,
    pinned: &[&AccountId],
) -> Result<Vec<SessionAccount>> {
    let query = active_accounts(project, user).page(0, MAX_ACCOUNTS_OF_USER);
    let mut accounts = app.store.find::<Account>(&query).await?.records;
    let pinned_ids: Vec<_> = pinned.iter().map(|id| id.as_str()).collect();
    let pinned_accounts = app
        .store
        .get_many::<Account>(project.id.as_str(), &pinned_ids)
        .await?
        .into_values();
    accounts.extend(pinned_accounts.filter(|account| {
        account.body.status == Status::Active && check_user_allowed(account, Some(user)).is_ok()
    }));
    with_configs(app, project, accounts).await
}

fn active_accounts(project: &Project, user: &str) -> Query {
    Query::for_project(project.id.as_str())
        .is("user_id", user)
        .is("status", Status::Active.into_str())
        .descending()
}

/// Adds the facts about their auth configs to accounts. Leaves out accounts without one.
async fn with_configs(
    app: &App,
    project: &Project,
    accounts: Vec<Record<Account>>,
) -> Result<Vec<SessionAccount>> {
    let distinct_ids: HashSet<_> = accounts
        .iter()
        .map(|account| account.body.auth_config.as_str())
        .collect();
    let ids: Vec<_> = distinct_ids.into_iter().collect();
    let configs = app
        .store
        .get_many::<AuthConfig>(project.id.as_str(), &ids)
        .await?;
    let with_config = accounts.into_iter().filter_map(|record| {
        let config = configs.get(record.body.auth_config.as_str())?;
        Some(SessionAccount {
            managed: config.body.managed,
            in_sessions: config.body.in_sessions,
            record,
        })
    });
    Ok(with_config.collect())
}

/// Returns the newest enabled auth config of a toolkit that sessions may use.
pub(crate) async fn newest_session_config(
    app: &App,
    project: &Project,
    toolkit: &str,
) -> Result<Option<AuthConfigId>> {
    let query = Query::for_project(project.id.as_str())
        .is("toolkit", toolkit)
        .is("status", auth_configs::Status::Enabled.into_str())
        .descending()
        .page(0, MAX_CANDIDATES);
    let configs = app.store.find::<AuthConfig>(&query).await?.records;
    configs
        .iter()
        .find(|config| config.body.in_sessions)
        .map(|config| AuthConfigId::parse(&config.id))
        .transpose()
}

/// Returns an account of a toolkit that a user may use, by its id or by the alias that the user gave
/// to it.
pub(crate) async fn find_by_id_or_alias(
    app: &App,
    project: &Project,
    user: &str,
    toolkit: &str,
    named: &str,
) -> Result<Option<Record<Account>>> {
    // No alias contains it, and not every store can compare it.
    if named.contains('\0') {
        return Ok(None);
    }
    let owner = project.id.as_str();
    let account = match AccountId::parse(named) {
        Ok(id) => app.store.get::<Account>(owner, id.as_str()).await?,
        Err(_) => {
            let alias = unique_alias(user, toolkit, named.trim());
            let query = Query::for_project(owner).is("alias_of", alias);
            app.store.first::<Account>(query).await?
        }
    };
    Ok(account.filter(|account| {
        account.body.toolkit == toolkit && check_user_allowed(account, Some(user)).is_ok()
    }))
}
