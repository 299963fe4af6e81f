//! The account with which a tool runs in a session.
//!
//! Accounts that the session pins for a toolkit are the only ones it uses; the first is the default.
//! Otherwise the newest active private account of the user is used, of the auth config that the
//! session names for the toolkit, or else of any that sessions may use.

use super::{Config, SessionCaller, errors};
use crate::{
    App, Result,
    accounts::{self, SessionAccount, auth_configs},
    catalog::Release,
    core::{ids::AccountId, shown_slug},
};

/// Problem of a call that names an account without a value. With another account instead, a program whose
/// variable is empty would act for the wrong one.
pub(super) const EMPTY_ACCOUNT: &str =
    "is empty; leave it out for the account that the session uses by default";

/// Returns the account with which a session uses a toolkit. `named` is the id or the alias of an
/// account that the call asks for. Fails if the user lacks a usable account; if the named account
/// is empty, does not exist, belongs to another user or toolkit, is not one of those that the
/// session pins, or is of an auth config that the session may not use; or if the session requires
/// the call to name one of several accounts.
pub async fn select(
    app: &App,
    caller: &SessionCaller,
    release: &Release,
    named: Option<&str>,
) -> Result<AccountId> {
    let (config, toolkit) = (caller.config(), &*release.slug);
    let pinned = config.connected_accounts.get(toolkit);
    if let Some(named) = named {
        return select_named(app, caller, release, pinned, named).await;
    }
    let (count, first) = match pinned {
        Some(pinned) => (pinned.len(), pinned.first().cloned()),
        None => {
            let usable = usable_accounts(app, caller, toolkit).await?;
            let newest = usable
                .first()
                .map(|account| AccountId::parse(&account.record.id));
            (usable.len(), newest.transpose()?)
        }
    };
    if count > 1 && requires_selection(config) {
        return Err(errors::session_invalid(format!(
            "account: the session has several accounts of toolkit {toolkit}, and the call must name one"
        )));
    }
    match first {
        Some(account) => Ok(account),
        None => {
            let user = &config.user_id;
            let note = accounts::inactive_account_note(app, &caller.project, user, toolkit).await?;
            Err(errors::no_active_connection(user, toolkit, &note))
        }
    }
}

/// Returns the accounts that a session may use for a toolkit without pinning them, newest first.
pub async fn usable_accounts(
    app: &App,
    caller: &SessionCaller,
    toolkit: &str,
) -> Result<Vec<SessionAccount>> {
    let config = caller.config();
    let auth_config = config.auth_configs.get(toolkit);
    accounts::session_accounts(app, &caller.project, &config.user_id, toolkit, auth_config).await
}

async fn select_named(
    app: &App,
    caller: &SessionCaller,
    release: &Release,
    pinned: Option<&Vec<AccountId>>,
    named: &str,
) -> Result<AccountId> {
    if named.trim().is_empty() {
        return Err(errors::session_invalid(format!("account: {EMPTY_ACCOUNT}")));
    }
    let config = caller.config();
    let unknown = || {
        let named = shown_slug(named);
        errors::session_invalid(format!(
            "account: {named} is not an account that the session may use for toolkit {}",
            release.slug
        ))
    };
    let user = &config.user_id;
    let toolkit = &release.slug;
    let account = accounts::find_by_id_or_alias(app, &caller.project, user, toolkit, named)
        .await?
        .ok_or_else(unknown)?;
    let id = AccountId::parse(&account.id)?;
    let auth_config = &account.body.auth_config;
    let is_usable = match (pinned, config.auth_configs.get(&**toolkit)) {
        (Some(pinned), _) => pinned.contains(&id),
        (None, Some(permitted)) => auth_config == permitted,
        (None, None) => {
            let config = auth_configs::find(&app.store, &caller.project.id, auth_config).await?;
            config.is_some_and(|config| config.body.in_sessions)
        }
    };
    if is_usable { Ok(id) } else { Err(unknown()) }
}

fn requires_selection(config: &Config) -> bool {
    let several = config.multi_account.as_ref();
    several.is_some_and(|several| several.explicit_selection)
}
