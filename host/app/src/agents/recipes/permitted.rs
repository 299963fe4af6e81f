//! The steps of a recipe that a session may store, replace or delete.
//!
//! Problem: one session stores what another one, or the action of a trigger instance, runs later with more
//! rights and without asking.
//!
//! Guarantee: a stored step runs no tool and uses no account that the session which stored it could not have
//! used at that time without the approval of its user. A session that limits the accounts of a step leaves
//! the account in it. A script cannot be checked, and runs only in sessions with the limits of the one that
//! stored it. Only these sessions and those without limits replace or delete it.

use sha2::{Digest, Sha256};

use super::{OpenRecipe, definition::Step, walk::Walk};
use crate::{
    App, Class, Error, Result, accounts,
    agents::{
        Config, ManageConnections, Permission, SessionCaller, errors, meta::MetaTool, resolve,
        scope,
    },
    catalog::{LATEST, ResolvedTool},
    core::ids::AccountId,
};

/// Returns the account with which a session runs the tool of a step without asking, or `None` if the tool
/// does not need one or the user has not connected one yet. Fails if the session may not run it so.
pub(super) async fn account(
    app: &App,
    caller: &SessionCaller,
    found: &ResolvedTool,
    named: Option<&str>,
) -> Result<Option<AccountId>> {
    let account = match resolve::account(app, caller, found, named).await {
        Err(cause) if cause.is(&errors::NO_ACTIVE_CONNECTION) && !is_limited(caller, found) => None,
        resolved => resolved?,
    };
    resolve::refuse_unapproved(caller, found, account.as_ref())?;
    Ok(account)
}

/// Returns true if a session uses only certain accounts for a tool, so that a step keeps its account.
pub(super) fn is_limited(caller: &SessionCaller, found: &ResolvedTool) -> bool {
    let (config, toolkit) = (caller.config(), &*found.release.slug);
    config.connected_accounts.contains_key(toolkit)
        || config.auth_configs.contains_key(toolkit)
        || scope::permission(config, &found.into()) != Permission::AlwaysAllow
}

/// Checks that a session may replace or delete a stored recipe: it could run every step without asking. Fails
/// with the reasons.
pub(super) async fn check_stored(
    app: &App,
    caller: &SessionCaller,
    recipe: &OpenRecipe,
) -> Result<()> {
    let slug = &recipe.record.body.slug;
    let mut problems = Vec::new();
    for (place, step) in Walk::calls_of(&recipe.definition.steps) {
        if let Err(cause) = check_step(app, caller, recipe, step).await {
            problems.push(format!("{place}: {}", problem_of(cause)?));
        }
    }
    errors::refuse_problems(problems, |problems| {
        errors::recipe_protected(slug, problems)
    })
}

async fn check_step(
    app: &App,
    caller: &SessionCaller,
    recipe: &OpenRecipe,
    step: &Step,
) -> Result<()> {
    let Some(tool) = &step.tool_slug else {
        check_script_change(caller, recipe)?;
        return MetaTool::RemoteWorkbench.check_switched_on(caller.config());
    };
    let tool = tool.trim();
    let Some(known) = app.catalog.snapshot().find_tool(tool, LATEST) else {
        // No session runs a removed tool.
        return Ok(());
    };
    resolve(app, caller, tool)?;
    let named = step.account.as_deref();
    if let Some(named) = named {
        let (user, toolkit) = (&caller.config().user_id, &known.release.slug);
        let account = accounts::find_by_id_or_alias(app, &caller.project, user, toolkit, named);
        if account.await?.is_none() {
            return Ok(());
        }
    }
    account(app, caller, &known, named).await.map(|_| ())
}

/// Returns a refusal as a problem of a recipe. Fails with an error that says nothing about the recipe.
pub(super) fn problem_of(cause: Error) -> Result<String> {
    let class = cause.info().class;
    if class == Class::Internal || class.may_pass() {
        Err(cause)
    } else {
        Ok(cause.to_string())
    }
}

/// Checks that a session has the limits of the one that stored the scripts of a recipe.
pub(super) fn check_script(caller: &SessionCaller, recipe: &OpenRecipe) -> Result<()> {
    let stored = recipe.record.body.script_limits.as_ref();
    if stored.is_none() || stored == script_limits(caller.config())?.as_ref() {
        return Ok(());
    }
    Err(errors::recipe_script_refused(&recipe.record.body.slug))
}

/// Checks that the limits of a session are absent, or those of the session that stored the scripts of a
/// recipe. Otherwise it would take scripts away from sessions that may do more.
fn check_script_change(caller: &SessionCaller, recipe: &OpenRecipe) -> Result<()> {
    let limits = script_limits(caller.config())?;
    if limits.is_none() || limits == recipe.record.body.script_limits {
        return Ok(());
    }
    Err(errors::recipe_script_refused(&recipe.record.body.slug))
}

/// Returns a digest of what limits the scripts of a session, or `None` if nothing does.
pub(super) fn script_limits(config: &Config) -> Result<Option<String>> {
    let mut limits = Config {
        user_id: String::new(),
        manage_connections: ManageConnections::default(),
        preload: None,
        search_disabled: false,
        multi_execute_disabled: false,
        // Scripts may send proxy requests without it, too, and have no network.
        proxy_execute: config.proxy_execute.filter(|enabled| !enabled),
        restrict_egress: false,
        ..config.clone().normalized()
    };
    limits.workbench.auto_offload_threshold = None;
    limits.workbench.sandbox_size = None;
    if limits == Config::default() {
        return Ok(None);
    }
    let encoded = serde_json::to_vec(&limits).map_err(errors::internal)?;
    Ok(Some(hex::encode(Sha256::digest(encoded))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::{Filter, Preload};

    #[test]
    fn only_limits_of_tools_bind_scripts() {
        let harmless = Config {
            user_id: "amy".to_owned(),
            preload: Some(Preload::All),
            search_disabled: true,
            proxy_execute: Some(true),
            toolkit_overrides_tags: true,
            ..Config::default()
        };
        assert_eq!(script_limits(&harmless).unwrap(), None);
        let limited = |toolkit: &str| Config {
            toolkits: Some(Filter::Enable(vec![toolkit.to_owned()])),
            ..harmless.clone()
        };
        let limits = |config| script_limits(&config).unwrap();
        assert!(limits(limited("a")).is_some());
        assert_eq!(limits(limited("a")), limits(limited("a")));
        assert_ne!(limits(limited("a")), limits(limited("b")));
    }
}
