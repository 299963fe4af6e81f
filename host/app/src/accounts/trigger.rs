//! Accounts of trigger instances and of their actions: their selection and their credential. The
//! tools that an auth config allows do not limit triggers.

use store::{Query, Record};

use super::{
    Account, Granted,
    account::record,
    errors,
    grant::{FirstToken, active_config, check_user_allowed, grant_account, newest_active},
    user_id::parse_user_id,
};
use crate::{
    App, Result,
    catalog::{Release, ResolvedTool},
    core::ids::AccountId,
    projects::Project,
};

/// Returns the account that a new trigger instance uses: the named one, or the newest active one of
/// the user. Fails if the account does not exist, is deleted, is not active, or is of another toolkit
/// or user.
pub(crate) async fn account_for_trigger(
    app: &App,
    project: &Project,
    toolkit: &str,
    id: Option<&AccountId>,
    user: Option<String>,
) -> Result<Record<Account>> {
    let is_user_named = user.is_some();
    let user = parse_user_id(user.as_deref())?;
    let Some(id) = id else {
        return newest_active(app, project, toolkit, &user).await;
    };
    let account = active_account(app, project, id).await?;
    check_user_allowed(&account, is_user_named.then_some(&*user))?;
    if account.body.toolkit != toolkit {
        let problem = format!(
            "connected_account_id: belongs to toolkit {}",
            account.body.toolkit
        );
        return Err(errors::invalid(problem));
    }
    Ok(account)
}

/// Checks that a tool can run with the named account, or else with the newest active one of the
/// user. Fails if the account does not exist, is deleted, is not active, or is of another toolkit or
/// user, or if its auth config does not allow the tool.
pub(crate) async fn check_account_for_tool(
    app: &App,
    project: &Project,
    found: &ResolvedTool,
    user: Option<String>,
    id: Option<&AccountId>,
) -> Result<()> {
    match id {
        None if found.tool.no_auth => return Ok(()),
        Some(id) if user.is_none() && project.stored.config.two_factor => {
            return Err(errors::account_user_missing(id));
        }
        _ => {}
    }
    let account = account_for_trigger(app, project, &found.release.slug, id, user).await?;
    let config = active_config(app, project, &account).await?;
    if config.body.allows(&found.tool.slug) {
        Ok(())
    } else {
        Err(errors::tool_not_allowed(config.id, &found.tool.slug))
    }
}

/// Returns an active account whose auth config exists. Fails if the account does not exist, is
/// deleted or is not active.
pub(crate) async fn active_account(
    app: &App,
    project: &Project,
    id: &AccountId,
) -> Result<Record<Account>> {
    let owner = project.id.as_str();
    let Some(account) = app.store.get::<Account>(owner, id.as_str()).await? else {
        let query = Query::for_project(owner).is("id", id.as_str());
        let deleted = app.store.first::<Account>(query.with_deleted()).await?;
        return Err(if deleted.is_none() {
            errors::account_not_found(id)
        } else {
            errors::account_deleted(id)
        });
    };
    active_config(app, project, &account).await?;
    Ok(account)
}

/// Grants the credential of an account to a trigger. Fails if the account does not exist or is not
/// active, or if a fresh token is asked for and cannot be had.
pub(crate) async fn grant_trigger(
    app: &App,
    project: &Project,
    release: &Release,
    id: &AccountId,
    token: FirstToken,
) -> Result<Granted> {
    let account = record(app, project, id).await?;
    let (granted, _) = grant_account(app, project, release, &account, None, token).await?;
    Ok(granted)
}
