//! The tool of a call in a session, the account with which it runs, and whether the user of the session has
//! to approve the call first.

use super::{Permission, SessionCaller, errors, meta::meta_tool_error, scope, selection};
use crate::{
    App, Result,
    catalog::{LATEST, ResolvedTool},
    core::ids::AccountId,
};

/// Finds a tool that a session permits, in the latest version of its toolkit. Fails if the tool
/// does not exist, or if the session does not permit it.
pub fn resolve(app: &App, caller: &SessionCaller, tool: &str) -> Result<ResolvedTool> {
    let found = app.catalog.tool(tool, LATEST);
    let resolved = found.map_err(|cause| meta_tool_error(app, tool).unwrap_or(cause))?;
    scope::check(caller.config(), &resolved)?;
    Ok(resolved)
}

/// Finds a tool that a session permits without approval, and the account of its calls.
pub(super) async fn permit(
    app: &App,
    caller: &SessionCaller,
    tool: &str,
    named: Option<&str>,
) -> Result<(ResolvedTool, Option<AccountId>)> {
    let found = resolve(app, caller, tool)?;
    let account = account(app, caller, &found, named).await?;
    refuse_unapproved(caller, &found, account.as_ref())?;
    Ok((found, account))
}

/// Refuses a call that its user has to approve first.
pub(super) fn refuse_unapproved(
    caller: &SessionCaller,
    found: &ResolvedTool,
    account: Option<&AccountId>,
) -> Result<()> {
    if is_approval_missing(caller, found, account) {
        return Err(errors::approval_required(&found.tool.slug));
    }
    Ok(())
}

/// Returns the account with which a call runs a tool, or `None` if it does not need one. `named` is
/// the one that the call asks for.
pub(super) async fn account(
    app: &App,
    caller: &SessionCaller,
    found: &ResolvedTool,
    named: Option<&str>,
) -> Result<Option<AccountId>> {
    if found.tool.no_auth && named.is_none() {
        return Ok(None);
    }
    let selected = selection::select(app, caller, &found.release, named);
    selected.await.map(Some)
}

/// Returns true if the user of a session has to approve a call with an account, and has not approved
/// the tool for the rest of the session.
pub(super) fn is_approval_missing(
    caller: &SessionCaller,
    found: &ResolvedTool,
    account: Option<&AccountId>,
) -> bool {
    match scope::permission(caller.config(), &found.into()) {
        Permission::AlwaysAllow => false,
        Permission::AskOnce | Permission::AskAlways => {
            let is_remembered = caller.session.body.has_approved(&found.tool.slug, account);
            !(is_remembered && scope::honors_approvals(caller.config(), found))
        }
        Permission::AlwaysDeny => true,
    }
}
