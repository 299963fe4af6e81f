//! Accounts that exist and cannot be used, for users without an active one.

use store::{Query, Record};

use super::{Account, AccountType, Status};
use crate::{App, Result, core::ids::AuthConfigId, projects::Project};

/// Maximum number of accounts of one user and toolkit that are searched.
const MAX_CANDIDATES: u64 = 100;

/// Returns the newest private account of a user and toolkit that is not active. Considers only the
/// accounts of the auth config, if there is one.
pub(crate) async fn newest_inactive(
    app: &App,
    project: &Project,
    user: &str,
    toolkit: &str,
    auth_config: Option<&AuthConfigId>,
) -> Result<Option<Record<Account>>> {
    let mut query = Query::for_project(project.id.as_str())
        .is("user_id", user)
        .is("toolkit", toolkit)
        .descending()
        .page(0, MAX_CANDIDATES);
    if let Some(id) = auth_config {
        query = query.is("auth_config", id.as_str());
    }
    let accounts = app.store.find::<Account>(&query).await?.records;
    Ok(accounts.into_iter().find(|account| {
        account.body.sharing.account_type == AccountType::Private
            && account.body.status != Status::Active
    }))
}

/// Returns the end of the message that a user has no active account of a toolkit: the account that the
/// user has instead, its status, and how to make it active. Empty if the user has no other account.
pub(crate) async fn inactive_account_note(
    app: &App,
    project: &Project,
    user: &str,
    toolkit: &str,
) -> Result<String> {
    let newest = newest_inactive(app, project, user, toolkit, None).await?;
    Ok(newest.map_or_else(String::new, |account| {
        let id = &account.id;
        let status = account.body.status;
        let way = match status {
            Status::Inactive => format!("enable it with PATCH /connected_accounts/{id}/status"),
            _ if status.is_pending() => "its user has not connected it yet".to_owned(),
            _ => format!("connect it again with POST /connected_accounts/{id}/refresh"),
        };
        format!("; account {id} is {}: {way}", status.into_str())
    }))
}
