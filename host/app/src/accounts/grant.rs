//! Selection of the credential of a call.
//!
//! A named account must belong to the project and the toolkit, and must belong to the user or be
//! shared with the user. If the call names no account, the newest active private account of the
//! user and toolkit is used whose auth config still exists. The credential is decrypted for one
//! call and dropped with it. A token that expires soon is refreshed before the call, except before
//! the reception of a webhook, which rarely sends a request. A token that the provider rejects is
//! refreshed once, and the call continues with the new token.

use std::{collections::HashSet, sync::Arc};

use manifest::AuthMode;
use store::{Query, Record};

use super::{
    Account, AccountType, CustomCredential, Granted, Source, Status, Values,
    account::record,
    auth_configs::{self, AuthConfig},
    credential::open_credential,
    custom::{custom_grant, validate_values},
    granted::{refreshing_grant, static_grant},
    refresh::RefreshReason,
    scheme,
    tokens::TokenOwner,
    unusable::inactive_account_note,
    user_id::parse_user_id,
};
use crate::{
    App, Result,
    accounts::errors,
    catalog::{LATEST, Release, ResolvedTool},
    core::ids::AccountId,
    projects::Project,
};

/// Name of the value with the scopes of a token.
const SCOPE_VALUE: &str = "scope";
/// Page size of reads after the first one, whose only account had a deleted auth config.
const ACCOUNT_PAGE_SIZE: u64 = 100;

/// Account or credential that a caller selects.
#[derive(Debug)]
pub(crate) struct CredentialChoice {
    /// User whose account is used; absent for the default user.
    pub user_id: Option<String>,
    /// Account; if a user is named, one that this user may use.
    pub account: Option<AccountId>,
    /// Credential that the request itself has. No account is used then.
    pub custom: Option<Box<CustomCredential>>,
}

/// Selects the credential for a tool.
pub(crate) async fn grant(
    app: &App,
    project: &Project,
    found: &ResolvedTool,
    user: &str,
    choice: CredentialChoice,
) -> Result<Granted> {
    let toolkit = &found.release.slug;
    let record = match (choice.custom, choice.account) {
        (Some(custom), _) => return custom_grant(found, *custom),
        (None, Some(id)) => {
            let user = choice.user_id.is_some().then_some(user);
            if user.is_none() && project.stored.config.two_factor {
                return Err(errors::account_user_missing(id));
            }
            let record = Box::pin(named_account(app, project, &id, user)).await?;
            if *record.body.toolkit != **toolkit {
                let note = format!(": {id} belongs to toolkit {}", record.body.toolkit);
                return Err(errors::no_account(record.body.user_id, toolkit, &note));
            }
            record
        }
        (None, None) if found.tool.no_auth => return Ok(Granted::default()),
        (None, None) => Box::pin(newest_active(app, project, toolkit, user)).await?,
    };
    let tool = Some(&*found.tool.slug);
    let token = FirstToken::Fresh;
    let granting = grant_account(app, project, &found.release, &record, tool, token);
    let (granted, _) = Box::pin(granting).await?;
    Ok(granted)
}

/// Returns the account that a call names, if the user may use it.
async fn named_account(
    app: &App,
    project: &Project,
    id: &AccountId,
    user: Option<&str>,
) -> Result<Record<Account>> {
    let record = record(app, project, id).await.map_err(|cause| {
        cause.replace_if(&errors::ACCOUNT_NOT_FOUND, || {
            errors::named_account_not_found(id)
        })
    })?;
    check_user_allowed(&record, user)?;
    Ok(record)
}

/// Rejects a user who may not use the account. If no user is named, the project itself uses the
/// account.
pub(super) fn check_user_allowed(record: &Record<Account>, user: Option<&str>) -> Result<()> {
    let sharing = &record.body.sharing;
    let Some(user) = user.filter(|user| !sharing.admits(&record.body.user_id, user)) else {
        return Ok(());
    };
    let user = crate::core::truncate(user);
    Err(match sharing.account_type {
        AccountType::Private => errors::account_user_mismatch(&record.id, user),
        AccountType::Shared => errors::account_not_shared(&record.id, user),
    })
}

/// Returns the newest active private account of a user whose auth config still exists.
pub(super) async fn newest_active(
    app: &App,
    project: &Project,
    toolkit: &str,
    user: &str,
) -> Result<Record<Account>> {
    let mut query = Query::for_project(project.id.as_str())
        .is("user_id", user)
        .is("toolkit", toolkit)
        .is("status", Status::Active.into_str())
        .is_not("account_type", AccountType::Shared.into_str())
        .descending()
        .page(0, 1);
    let mut gone = HashSet::new();
    loop {
        let page = app.store.list::<Account>(&query).await?;
        for record in page.items {
            if gone.contains(&record.body.auth_config) {
                continue;
            }
            let config =
                auth_configs::find(&app.store, &project.id, &record.body.auth_config).await?;
            if config.is_some() {
                return Ok(record);
            }
            gone.insert(record.body.auth_config);
        }
        let Some(next) = page.next else {
            let note = inactive_account_note(app, project, user, toolkit).await?;
            let user = crate::core::truncate(user);
            return Err(errors::no_account(user, toolkit, &note));
        };
        query = query.after(next).page(0, ACCOUNT_PAGE_SIZE);
    }
}

/// Returns the auth config of an active account. Fails if the account is not active, or if its auth
/// config is deleted.
pub(super) async fn active_config(
    app: &App,
    project: &Project,
    record: &Record<Account>,
) -> Result<Record<AuthConfig>> {
    if record.body.status != Status::Active {
        let status = record.body.status.into_str();
        return Err(errors::account_not_active(&record.id, status));
    }
    let config = auth_configs::find(&app.store, &project.id, &record.body.auth_config).await?;
    config.ok_or_else(|| {
        let state = "without its auth config, which was deleted";
        errors::account_not_active(&record.id, state)
    })
}

/// Initial token of a granted credential. A token that the provider rejects is refreshed once in
/// either case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstToken {
    /// A token that has not expired. It is refreshed first if necessary.
    Fresh,
    /// The stored token, even if it has expired.
    Stored,
}

/// Grants the credential of an active account, which the tool must be allowed to use if there is
/// one. Returns its values, too.
pub(super) async fn grant_account(
    app: &App,
    project: &Project,
    release: &Release,
    record: &Record<Account>,
    tool: Option<&str>,
    token: FirstToken,
) -> Result<(Granted, Values)> {
    let config = active_config(app, project, record).await?;
    if let Some(tool) = tool.filter(|tool| !config.body.allows(tool)) {
        return Err(errors::tool_not_allowed(config.id, tool));
    }
    let proxy = auth_configs::net_proxy(app, &config).await?;
    let account_values = match token {
        FirstToken::Fresh => usable_values(app, record).await?,
        FirstToken::Stored => open_credential(app, record).await?.0,
    };
    let values = with_client(app, &config, account_values).await?;
    let mut granted = refreshing_grant(app, release, record, &values)?.via_proxy(proxy);
    granted.account = Some(AccountId::parse(&record.id)?);
    granted.auth_config = Some(record.body.auth_config.clone());
    granted.source = Source::ConnectedAccount;
    let scopes = values.get(SCOPE_VALUE).and_then(|scopes| scopes.as_str());
    granted.scopes = scopes.map(str::to_owned);
    Ok((granted, values))
}

/// Returns the values of an account. If the account is connected, a token that expires soon is
/// refreshed first.
pub(super) async fn usable_values(app: &App, record: &Record<Account>) -> Result<Values> {
    if record.body.scheme.has_flow() && record.body.status.is_connected() {
        let owner = TokenOwner::for_account(app, record)?;
        let manager = &app.accounts;
        let fresh = manager.fresh_values(&owner, RefreshReason::ExpiresSoon);
        return fresh.await;
    }
    let (values, _) = open_credential(app, record).await?;
    Ok(values)
}

/// Adds the client's keys to the values if the scheme needs them to sign: an OAuth 1 request is
/// signed by client and account.
pub(super) async fn with_client(
    app: &App,
    config: &Record<AuthConfig>,
    values: Values,
) -> Result<Values> {
    if config.body.scheme != AuthMode::Oauth1 {
        return Ok(values);
    }
    let context = app.accounts.client_context(config).await?;
    Ok(context.client.merge_into(values))
}

/// Context of a proxy request: the provider's address and the credential.
pub(crate) struct ProxyContext {
    /// Version of the toolkit of the account.
    pub release: Arc<Release>,
    /// User to whom the account belongs.
    pub user: String,
    /// Base URL of the provider's API for this account, if known.
    pub base_url: Option<String>,
    /// Credential and the fields of the account.
    pub granted: Granted,
}

/// Selects the credential for a proxy request. `tool` is the name that the auth config must allow.
pub(crate) async fn proxy_context(
    app: &App,
    project: &Project,
    tool: &str,
    choice: CredentialChoice,
) -> Result<ProxyContext> {
    let named = choice.user_id.as_deref();
    let user = named.map(|user| parse_user_id(Some(user))).transpose()?;
    if let Some(CustomCredential::Connection {
        scheme,
        toolkit,
        values,
    }) = choice.custom.map(|custom| *custom)
    {
        let release = app.catalog.release(&toolkit, LATEST)?;
        let (mode, values) = validate_values(&release, &scheme, values)?;
        let granted = static_grant(&release, mode, &values)?;
        let user = user.map_or_else(|| parse_user_id(None), Ok)?;
        return Ok(ProxyContext {
            user,
            base_url: base_url(&release, mode, &values),
            release,
            granted,
        });
    }
    let id = choice.account.ok_or_else(errors::auth_context_missing)?;
    let record = named_account(app, project, &id, user.as_deref()).await?;
    let release = app.catalog.release(&record.body.toolkit, LATEST)?;
    let token = FirstToken::Fresh;
    let granting = grant_account(app, project, &release, &record, Some(tool), token);
    let (granted, values) = granting.await?;
    Ok(ProxyContext {
        user: user.unwrap_or(record.body.user_id),
        base_url: base_url(&release, record.body.scheme, &values),
        release,
        granted,
    })
}

/// Returns the base URL of the scheme, or of the first exact host that the toolkit declares.
pub(super) fn base_url(release: &Release, mode: AuthMode, values: &Values) -> Option<String> {
    let scheme = release.scheme(mode);
    let named = scheme.and_then(|scheme| scheme::base_url(scheme, values));
    named.or_else(|| {
        let mut rules = release.egress.iter();
        let rule = rules.find(|rule| !rule.host.starts_with('*'))?;
        let port = rule.port.map(|port| format!(":{port}")).unwrap_or_default();
        Some(format!("https://{}{port}", rule.host))
    })
}
