//! Authorization requests: the address at which a user authorizes a connection, for a new account and
//! for another attempt of an existing one.

use manifest::{AuthMode, AuthScheme};
use oauth::{AuthorizeParams, Refusal};
use store::{Batch, Record};

use super::{
    Event, Status, Values,
    account::{COLLECTION, record},
    attempt::{ConnectionAttempt, PendingSecrets, Step, secret},
    auth_configs::{self, AuthConfig},
    credential::{REDIRECT_URL_VALUE, open_credential},
    oauth_clients::{self, RegistrationRequest, client_metadata_url},
    redirect::{callback_url, check_redirect_url},
    scheme,
};
use crate::{
    App, Error, Result,
    accounts::errors,
    catalog::{LATEST, Release},
    core::{
        clock::time_after,
        ids::{AccountId, AuthConfigId},
    },
    projects::{Project, count_record},
};

/// Names of account values that come from the provider, not from the user.
const PROVIDER_VALUES: [&str; 9] = [
    "access_token",
    "refresh_token",
    "id_token",
    "token_type",
    "scope",
    "expires_in",
    "oauth_token",
    "oauth_token_secret",
    AUTH_URI_VALUE,
];

/// Name under which OAuth 1 clients expect the authorization address.
const AUTH_URI_VALUE: &str = "authUri";

/// A new connection attempt for an account.
#[derive(Debug)]
pub struct Reconnection {
    /// Status of the account.
    pub status: Status,
    /// Authorization address; absent if the scheme does not redirect.
    pub redirect_url: Option<String>,
}

/// Starts another connection attempt for an account. An account of a scheme without redirect stays
/// as it is. Fails if the account does not exist, fields are missing, its auth config is deleted or
/// disabled, or the store refuses.
pub async fn reconnect(
    app: &App,
    project: &Project,
    id: &AccountId,
    callback_url: Option<String>,
) -> Result<Reconnection> {
    let callback_url = callback_url
        .map(|url| check_redirect_url("redirect_url", url))
        .transpose()?;
    let started = app.store.change(&COLLECTION, id.as_str(), || {
        start_again(app, project, id, callback_url.as_deref())
    });
    Ok(started.await?)
}

/// Returns the batch that starts another attempt for an account.
async fn start_again(
    app: &App,
    project: &Project,
    id: &AccountId,
    callback_url: Option<&str>,
) -> Result<(Batch, Reconnection)> {
    let mut account = record(app, project, id).await?;
    if !account.body.scheme.redirects() {
        let unchanged = Reconnection {
            status: account.body.status,
            redirect_url: None,
        };
        return Ok((Batch::at(app.clock.now()), unchanged));
    }
    let config = auth_configs::find(&app.store, &project.id, &account.body.auth_config)
        .await?
        .filter(|config| config.body.status == auth_configs::Status::Enabled)
        .ok_or_else(|| {
            errors::account_refused(format!(
                "the auth config of account {id} is deleted or disabled"
            ))
        })?;
    let release = app.catalog.release(&account.body.toolkit, LATEST)?;
    let (old, credential) = open_credential(app, &account).await?;
    let mut values = user_values(account.body.scheme, &old);
    if let Some(scheme) = release.scheme(account.body.scheme) {
        values = scheme::complete(scheme, values).map_err(errors::account_fields)?;
    }
    let status = account
        .body
        .status
        .after(Event::ReconnectRequested)
        .ok_or_else(|| errors::unavailable("the account is being changed by another request"))?;
    let now = app.clock.now();
    account.body.attempt_number += 1;
    let input = AuthorizationInput {
        project,
        id,
        attempt_number: account.body.attempt_number,
        config: &config,
        release: &release,
        values: &values,
        callback_url: callback_url.map(str::to_owned),
        browser: None,
    };
    let started = input.start_authorization(app).await?;
    count_record(app, project, &started.attempt)?;
    let mut batch =
        Batch::at(now)
            .check(&config)
            .insert(project.id.as_str(), &started.name, &started.attempt);
    if status == Status::Initiated {
        account.body.set_status(status, None, now);
        account.body.waits_until = Some(time_after(now, app.accounts.settings.pending_ttl));
        values.extend(started.shown);
        let body = app.accounts.seal(&project.id, id, &values).await?;
        batch = batch.update(&Record { body, ..credential });
    }
    let reconnection = Reconnection {
        status,
        redirect_url: Some(started.url),
    };
    Ok((batch.update(&account), reconnection))
}

pub(super) struct AuthorizationInput<'a> {
    pub(super) project: &'a Project,
    pub(super) id: &'a AccountId,
    pub(super) attempt_number: u32,
    pub(super) config: &'a Record<AuthConfig>,
    pub(super) release: &'a Release,
    pub(super) values: &'a Values,
    pub(super) callback_url: Option<String>,
    pub(super) browser: Option<String>,
}

impl AuthorizationInput<'_> {
    /// Creates the state and the authorization address. Fails if the scheme is not offered, the
    /// provider refuses to register a client, or the store refuses.
    pub(super) async fn start_authorization(self, app: &App) -> Result<AuthorizationStarted> {
        let mode = self.config.body.scheme;
        let declared_scheme = self
            .release
            .scheme(mode)
            .ok_or_else(|| errors::scheme_not_offered(&self.release.slug, mode.as_str()))?;
        let mut context = app.accounts.client_context(self.config).await?;
        context.add_tool_scopes(&self.config.body, declared_scheme, self.release);
        let redirect_uri = context
            .redirect_uri
            .take()
            .unwrap_or_else(|| callback_url(app));
        let now = app.clock.now();
        let declared_flow = context.flow(declared_scheme, self.values);
        let scheme = app.accounts.metadata.resolve(&declared_flow).await?;
        let mut values = self.values.clone();
        if context.client.id.is_empty() {
            let client = self.own_client(app, &context.net, &scheme, &redirect_uri);
            values.extend(client.await?);
        }
        let state = secret("");
        let verifier = secret("");
        let oauth_flow = context.flow(&scheme, &values);
        let params = AuthorizeParams {
            redirect_uri: &redirect_uri,
            state: &state,
            verifier: Some(&verifier),
            scopes: &context.scopes,
            user_scopes: &context.user_scopes,
        };
        let (url, mut shown) = match &scheme.oauth1 {
            Some(_) => oauth_flow.authorize_oauth1(&redirect_uri, &state).await?,
            None => (oauth_flow.authorize(params)?, Values::new()),
        };
        values.extend(shown.clone());
        if !shown.is_empty() {
            shown.insert(AUTH_URI_VALUE.to_owned(), url.as_str().into());
        }
        shown.insert(REDIRECT_URL_VALUE.to_owned(), url.as_str().into());
        let name = app.attempt_record_id(Step::Authorize, &state);
        let secrets = PendingSecrets {
            values,
            verifier,
            redirect_uri,
            ..PendingSecrets::default()
        };
        let attempt = ConnectionAttempt {
            step: Step::Authorize,
            account: self.id.clone(),
            attempt_number: self.attempt_number,
            organization: self.project.organization.clone(),
            callback_url: self.callback_url,
            browser: self.browser,
            until: time_after(now, app.accounts.settings.authorization_ttl),
            secrets: app.seal_secrets(self.project, &name, &secrets).await?,
        };
        Ok(AuthorizationStarted {
            name,
            attempt,
            url: url.into(),
            shown,
        })
    }

    /// Returns the values of the client that this server creates itself, if the scheme asks for one.
    async fn own_client(
        &self,
        app: &App,
        net: &net::Client,
        scheme: &AuthScheme,
        redirect_uri: &str,
    ) -> Result<Values> {
        match self.config.body.scheme {
            AuthMode::DcrOauth => {
                let registration = RegistrationRequest {
                    project: self.project.id.clone(),
                    auth_config: AuthConfigId::parse(&self.config.id)?,
                    scheme: scheme.clone(),
                    net: net.clone(),
                    values: self.values.clone(),
                    redirect_uri: redirect_uri.to_owned(),
                    name: self.project.shown_name().to_owned(),
                };
                app.accounts.dynamic_client(registration).await
            }
            AuthMode::CimdOauth => {
                let id = client_metadata_url(app, &self.config.id)?;
                Ok(Values::from_iter([("client_id".to_owned(), id.into())]))
            }
            _ => Ok(Values::new()),
        }
    }
}

pub(super) struct AuthorizationStarted {
    /// Name of the record of the state.
    pub(super) name: String,
    pub(super) attempt: ConnectionAttempt,
    /// Address at which the user authorizes the connection.
    pub(super) url: String,
    /// Values that the account shows while it waits for its user.
    pub(super) shown: Values,
}

impl From<Refusal> for Error {
    /// Converts the refusal of an authorization request or a client registration.
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Unavailable { .. } => errors::unavailable(refusal),
            refusal => errors::account_refused(refusal),
        }
    }
}

/// Returns the values that come from the user, without those that come from the provider.
pub(super) fn user_values(mode: AuthMode, values: &Values) -> Values {
    values
        .iter()
        .filter(|(name, _)| !is_from_provider(mode, name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Returns true for a value that the provider or this server sets, not the user.
fn is_from_provider(mode: AuthMode, name: &str) -> bool {
    // If the server creates the client itself, the client's id and secret are not fields.
    let is_server_created = matches!(mode, AuthMode::DcrOauth | AuthMode::CimdOauth);
    PROVIDER_VALUES.contains(&name)
        || name == REDIRECT_URL_VALUE
        || is_server_created && oauth_clients::ACCOUNT_VALUES.contains(&name)
}
