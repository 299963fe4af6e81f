//! Accounts that exist and cannot be used, for users without an active one.

use store::{Query, Record};

use super::{Account, AccountType, Status, account::MAX_CANDIDATES};
use crate::{App, Result, catalog::LATEST, core::ids::AuthConfigId, projects::Project};

/// Note about a toolkit without credentials, whose accounts only name a user.
const NO_CREDENTIAL_NOTE: &str = "; the toolkit has no credentials: create an auth config with `authScheme` `NO_AUTH`, and an account of it with POST /connected_accounts";

/// Returns the newest private account of a user and toolkit that is not active. Considers only the
/// accounts of the auth config, if there is one.
pub(crate) async fn newest_inactive(
    app: &App,
    project: &Project,
    user: &str,
    toolkit: &str,
    auth_config: Option<&AuthConfigId>,
) -> Result<Option<Record<Account>>> {
    let query = Query::for_project(project.id.as_str())
        .is("user_id", user)
        .is("toolkit", toolkit)
        .filter("auth_config", auth_config.map(AuthConfigId::as_str))
        .descending()
        .page(0, MAX_CANDIDATES);
    let accounts = app.store.find::<Account>(&query).await?.records;
    Ok(accounts.into_iter().find(|account| {
        account.body.sharing.account_type == AccountType::Private
            && account.body.status != Status::Active
    }))
}

/// Returns the end of the message that a user has no active account of a toolkit: the account that the
/// user has instead, its status, and how to make it active; else, for a toolkit without credentials, how to
/// create one.
pub(crate) async fn inactive_account_note(
    app: &App,
    project: &Project,
    user: &str,
    toolkit: &str,
) -> Result<String> {
    let Some(account) = newest_inactive(app, project, user, toolkit, None).await? else {
        let release = app.catalog.release(toolkit, LATEST);
        return Ok(if release.is_ok_and(|release| release.no_auth()) {
            NO_CREDENTIAL_NOTE.to_owned()
        } else {
            String::new()
        });
    };
    let id = &account.id;
    let status = account.body.status;
    let way = match status {
        Status::Inactive => format!("enable it with PATCH /connected_accounts/{id}/status"),
        _ if status.is_pending() => "its user has not connected it yet".to_owned(),
        _ => format!("connect it again with POST /connected_accounts/{id}/refresh"),
    };
    Ok(format!("; account {id} is {}: {way}", status.into_str()))
}
