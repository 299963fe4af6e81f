//! Links: addresses of the page on which a user connects an account.

use store::{Record, Time};

use super::{
    Sharing, SharingChange, Status, Values,
    account::parse_alias,
    attempt::{ConnectionAttempt, PendingSecrets, Step, secret},
    auth_configs::AuthConfig,
    create::ValidatedRequest,
    credential::REDIRECT_URL_VALUE,
    oauth_apps,
    redirect::check_redirect_url,
    scheme,
    user_id::parse_user_id,
};
use crate::{
    App, Error, Result,
    accounts::errors,
    core::{
        clock::time_after,
        ids::{AccountId, AuthConfigId},
    },
    projects::Project,
};

const LINK_TOKEN_PREFIX: &str = "lt_";

/// Request to connect an account on the page.
#[derive(Debug)]
pub struct NewLink {
    /// Auth config of the account.
    pub auth_config: AuthConfigId,
    /// The project's own identifier for the user.
    pub user_id: String,
    /// Address to which the browser is redirected at the end.
    pub callback_url: Option<String>,
    /// Values of fields that are known already.
    pub values: Values,
    /// Name that the user gives to the account.
    pub alias: Option<String>,
    /// Users who may also use the account; empty by default.
    pub sharing: SharingChange,
}

/// A created link.
#[derive(Debug)]
pub struct LinkCreated {
    /// Link token.
    pub token: String,
    /// Address of the page.
    pub url: String,
    /// Time at which the link expires.
    pub expires_at: Time,
    /// Id of the pending account.
    pub account: AccountId,
    /// Users who may use the account.
    pub sharing: Sharing,
}

/// Creates a pending account and the address of the page on which its user connects it. Fails if
/// the auth config is unknown or disabled, the toolkit needs no account, the project does not allow
/// its users to connect through the operator's OAuth apps, the operator has removed the one of the
/// toolkit, or an address is invalid.
pub async fn link(app: &App, project: &Project, request: NewLink) -> Result<LinkCreated> {
    let callback_url = request
        .callback_url
        .map(|url| check_redirect_url("callback_url", url))
        .transpose()?;
    let user = parse_user_id(Some(&request.user_id))?;
    let config = &request.auth_config;
    let mut validated = ValidatedRequest::new(app, project, config, user, request.values).await?;
    validated.check_user_verified(project)?;
    validated.alias = parse_alias(request.alias)?;
    validated.sharing = Sharing::default().with(&request.sharing)?;
    let config_id = &validated.config.id;
    let scheme = validated.scheme().ok_or_else(|| {
        let reason =
            "the toolkit has no credentials: create the account with POST /connected_accounts";
        config_refused(config_id, reason)
    })?;
    if validated.config.body.managed {
        check_oauth_app(app, project, &validated.config).await?;
    }
    let mut values = scheme::normalize_names(scheme, validated.values.clone());
    scheme::check_values(scheme, &values).map_err(errors::account_fields)?;
    let id = AccountId::random();
    let now = app.clock.now();
    let until = time_after(now, app.accounts.settings.pending_ttl);
    let status = match scheme::complete(scheme, values.clone()) {
        Ok(_) => Status::Initiated,
        Err(_) => Status::Initializing,
    };
    let mut account = validated.new_account(status, Some(until), now)?;
    account.attempt_number = 1;
    let token = secret(LINK_TOKEN_PREFIX);
    let name = app.attempt_record_id(Step::Link, &token);
    let secrets = PendingSecrets::default();
    let attempt = ConnectionAttempt {
        step: Step::Link,
        account: id.clone(),
        attempt_number: account.attempt_number,
        organization: project.organization.clone(),
        callback_url,
        browser: None,
        until,
        secrets: app.seal_secrets(project, &name, &secrets).await?,
    };
    let url = format!("{}/link/{token}", app.base_url());
    values.insert(REDIRECT_URL_VALUE.to_owned(), url.clone().into());
    let credential = app.accounts.seal(&project.id, &id, &values).await?;
    let named_attempt = Some((&*name, &attempt));
    let inserted = validated.insert(app, project, &id, account, credential, named_attempt);
    inserted.await?;
    Ok(LinkCreated {
        token,
        url,
        expires_at: until,
        account: id,
        sharing: validated.sharing,
    })
}

/// Refuses a link through the operator's OAuth app if the project does not allow it or the operator has
/// removed the app.
async fn check_oauth_app(app: &App, project: &Project, config: &Record<AuthConfig>) -> Result<()> {
    if !project.stored.config.hosted_links {
        return Err(config_refused(
            &config.id,
            "the project does not allow connections through the operator's OAuth app on the hosted page",
        ));
    }
    let toolkit = &config.body.toolkit;
    match oauth_apps::find(&app.store, toolkit).await? {
        Some(_) => Ok(()),
        None => Err(errors::no_managed_auth(toolkit)),
    }
}

fn config_refused(config: &str, why: &str) -> Error {
    errors::account_refused(format!("auth config {config}: {why}"))
}
