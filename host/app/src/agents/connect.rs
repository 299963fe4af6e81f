//! Links by which the user of a session connects an account.

use super::{SessionCaller, errors, resolve, scope, toolkits};
use crate::{
    App, Result,
    accounts::{
        self, LinkCreated, NewLink, SharingChange, Values,
        auth_configs::{self, NewAuthConfig},
    },
    catalog::Release,
    core::ids::AuthConfigId,
    projects::permissions::Area,
};

/// A link with which a user connects the account that a tool needs.
#[derive(Debug)]
pub struct ConnectionLink {
    /// User of the account.
    pub user_id: String,
    /// Slug of the toolkit.
    pub toolkit: String,
    /// Address of the page on which the user connects the account.
    pub url: String,
}

/// A request to connect an account in a session.
#[derive(Debug, Default)]
pub struct Connect {
    /// Slug of the toolkit, in upper or lower case.
    pub toolkit: String,
    /// Address to which the browser is redirected at the end; that of the session without it.
    pub callback_url: Option<String>,
    /// Name that the user gives to the account.
    pub alias: Option<String>,
    /// Users who may also use the account; empty by default.
    pub sharing: SharingChange,
}

/// Creates a pending account of the session's user, and the address of the page on which the user
/// connects it. Fails if the key does not permit it, the toolkit does not exist, the session does not permit
/// the toolkit or a further account of it, the toolkit needs no account or lacks an auth config that the
/// session may use, or an address is invalid.
pub async fn link(app: &App, caller: &SessionCaller, request: Connect) -> Result<LinkCreated> {
    if !caller.rights.connect {
        let areas = [Area::ConnectedAccounts, Area::Sessions].map(|area| area.into_str());
        return Err(errors::key_permission("write", &areas.join(" or ")));
    }
    let config = caller.config();
    let catalog = app.catalog.snapshot();
    let release = toolkits::named(&catalog, "toolkit", &request.toolkit)?.current();
    scope::check_toolkit(config, &release.slug)?;
    if release.no_auth() {
        return Err(errors::toolkit_no_auth(&release.slug));
    }
    check_account_limit(app, caller, &release.slug, 1).await?;
    let callback_url = request.callback_url;
    let link = NewLink {
        auth_config: auth_config(app, caller, release).await?,
        user_id: config.user_id.clone(),
        callback_url: callback_url.or_else(|| config.manage_connections.callback_url.clone()),
        values: Values::new(),
        alias: request.alias,
        sharing: request.sharing,
    };
    let created = accounts::link(app, &caller.project, link).await?;
    // Others may have been created concurrently: of those, each that exceeds the limit is removed.
    if let Err(cause) = check_account_limit(app, caller, &release.slug, 0).await {
        accounts::remove(app, &caller.project, &created.account, false).await?;
        return Err(cause);
    }
    Ok(created)
}

/// Checks that the user may have more accounts of a toolkit, if the session limits their number. Accounts that
/// the user has yet to connect count, because the user may connect all of them.
async fn check_account_limit(
    app: &App,
    caller: &SessionCaller,
    toolkit: &str,
    more: usize,
) -> Result<()> {
    let config = caller.config();
    let several = config.multi_account.as_ref();
    let Some(most) = several.and_then(|several| several.max_accounts) else {
        return Ok(());
    };
    let (user, auth_config) = (&config.user_id, config.auth_configs.get(toolkit));
    let held = accounts::count_of_session(app, &caller.project, user, toolkit, auth_config);
    if held.await? + more <= most as usize {
        return Ok(());
    }
    Err(errors::too_many_session_accounts(user, toolkit, most))
}

/// Creates a link with which the user of a session connects an account for a tool. Returns `None` if
/// the session does not manage connections. Fails if the session does not permit the tool, or as
/// [`link`].
pub async fn link_for_tool(
    app: &App,
    caller: &SessionCaller,
    tool: &str,
) -> Result<Option<ConnectionLink>> {
    if !caller.config().manage_connections.enabled {
        return Ok(None);
    }
    let toolkit = resolve(app, caller, tool)?.release.slug.to_string();
    let request = Connect {
        toolkit: toolkit.clone(),
        ..Connect::default()
    };
    Ok(Some(ConnectionLink {
        user_id: caller.config().user_id.clone(),
        toolkit,
        url: link(app, caller, request).await?.url,
    }))
}

/// Returns the auth config with which a session connects accounts of a toolkit: its own, or else the
/// newest one that sessions may use, or else a new one with the operator's OAuth app.
async fn auth_config(app: &App, caller: &SessionCaller, release: &Release) -> Result<AuthConfigId> {
    let toolkit = &*release.slug;
    if let Some(own) = caller.config().auth_configs.get(toolkit) {
        return Ok(own.clone());
    }
    let newest = accounts::newest_session_config(app, &caller.project, toolkit).await?;
    if let Some(newest) = newest {
        return Ok(newest);
    }
    let managed = NewAuthConfig {
        toolkit: toolkit.to_owned(),
        in_sessions: true,
        ..NewAuthConfig::default()
    };
    let created = auth_configs::create(app, &caller.project, managed)
        .await
        .map_err(|cause| {
            cause.replace_if(&errors::NO_MANAGED_AUTH, || errors::no_auth_config(toolkit))
        })?;
    AuthConfigId::parse(&created.id)
}
