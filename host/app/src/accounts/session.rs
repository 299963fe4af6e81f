//! Accounts of tool router sessions. A session acts for one user, and uses a shared account only if
//! it is named.

use store::{Query, Record};

use super::{
    Account, AccountType, Status,
    account::{record, unique_alias},
    auth_configs::AuthConfig,
    errors,
    grant::{active_config, check_user_allowed},
};
use crate::{
    App, Result,
    core::ids::{AccountId, AuthConfigId},
    projects::Project,
};

/// Maximum number of accounts of one user and toolkit among which a session looks for usable ones.
const MAX_CANDIDATES: u64 = 100;

/// Checks that an account is active and of a toolkit, and that a user may use it.
///
/// # Errors
/// Fails with the reason if not.
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
        return Err(errors::no_account(account.body.user_id, toolkit));
    }
    active_config(app, project, &account).await?;
    Ok(())
}

/// Returns the active private accounts of a user and toolkit whose auth config sessions may use,
/// newest first; only those of one auth config if it is given.
pub(crate) async fn session_accounts(
    app: &App,
    project: &Project,
    user: &str,
    toolkit: &str,
    auth_config: Option<&AuthConfigId>,
) -> Result<Vec<Record<Account>>> {
    let owner = project.id.as_str();
    let mut query = Query::for_project(owner)
        .is("user_id", user)
        .is("toolkit", toolkit)
        .is("status", Status::Active.into_str())
        .is_not("account_type", AccountType::Shared.into_str())
        .descending()
        .page(0, MAX_CANDIDATES);
    if let Some(id) = auth_config {
        query = query.is("auth_config", id.as_str());
    }
    let mut accounts = app.store.find::<Account>(&query).await?.records;
    let ids: Vec<_> = accounts
        .iter()
        .map(|account| account.body.auth_config.as_str())
        .collect();
    let configs = app.store.get_many::<AuthConfig>(owner, &ids).await?;
    accounts.retain(|account| {
        let config = configs.get(account.body.auth_config.as_str());
        config.is_some_and(|config| auth_config.is_some() || config.body.in_sessions)
    });
    Ok(accounts)
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
    let owner = project.id.as_str();
    let found = match AccountId::parse(named) {
        Ok(id) => app.store.get::<Account>(owner, id.as_str()).await?,
        Err(_) => {
            let alias = unique_alias(user, toolkit, named.trim());
            let query = Query::for_project(owner).is("alias_of", alias);
            app.store.first::<Account>(query).await?
        }
    };
    Ok(found.filter(|account| {
        account.body.toolkit == toolkit && check_user_allowed(account, Some(user)).is_ok()
    }))
}
