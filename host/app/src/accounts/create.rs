//! Creation of accounts. The credential is part of the request, is obtained from it, or comes from the
//! provider once the user has authorized the connection.

use std::sync::Arc;

use manifest::{AuthMode, AuthScheme};
use store::{Batch, Record, Time};
use uuid::Uuid;

use super::{
    Account, AccountView, Sharing, SharingChange, Status, Values,
    account::{map_alias_conflict, parse_alias, unique_alias},
    attempt::ConnectionAttempt,
    auth_configs::{self, AuthConfig},
    authorize::AuthorizationInput,
    credential::{Credential, REDIRECT_URL_VALUE, access_token, stated_lifetime},
    list::{Connected, connected_view},
    redirect::check_redirect_url,
    scheme,
    tokens::obtains_from_fields,
    user_id::{DEFAULT_USER, parse_user_id},
    verification::verify_values,
};
use crate::{
    App, Error, Result,
    accounts::errors,
    catalog::{LATEST, Release},
    core::{
        clock::time_after,
        ids::{AccountId, AuthConfigId},
    },
    projects::{
        Project, count_record,
        record_limits::{self, RecordKind},
    },
};

/// Maximum size of the values of an account as JSON, in bytes.
pub const MAX_VALUES_BYTES: usize = 64 << 10;

/// Property of requests that names the scheme of an account.
pub(super) const SCHEME_PROPERTY: &str = "connection.state.authScheme";

/// Request to create an account.
#[derive(Debug)]
pub struct NewAccount {
    /// Auth config of the account.
    pub auth_config: AuthConfigId,
    /// The project's own identifier for the user.
    pub user_id: Option<String>,
    /// Scheme that the caller expects, if it names one.
    pub scheme: Option<String>,
    /// Values of the scheme's fields.
    pub values: Values,
    /// Name that the user gives to the account.
    pub alias: Option<String>,
    /// Users who may also use the account; empty by default.
    pub sharing: SharingChange,
    /// Address to which the user's browser is redirected after the callback.
    pub callback_url: Option<String>,
    /// True if the provider must accept the credential before the account is created.
    pub validate: bool,
}

/// Validated request to connect an account.
pub(super) struct ValidatedRequest {
    pub(super) config: Record<AuthConfig>,
    pub(super) release: Arc<Release>,
    pub(super) user_id: String,
    pub(super) alias: Option<String>,
    pub(super) sharing: Sharing,
    /// Given values, merged over the shared values of the auth config.
    pub(super) values: Values,
}

impl ValidatedRequest {
    pub(super) async fn new(
        app: &App,
        project: &Project,
        config: &AuthConfigId,
        user_id: String,
        given: Values,
    ) -> Result<Self> {
        let config = enabled_config(app, project, config).await?;
        let release = app.catalog.release(&config.body.toolkit, LATEST)?;
        let mut values = auth_configs::credentials(app, &config).await?.shared;
        values.extend(given);
        // Clients may send the status among the values, although it is not a field.
        for name in ["status", REDIRECT_URL_VALUE] {
            values.remove(name);
        }
        check_size(&values)?;
        Ok(Self {
            config,
            release,
            user_id,
            alias: None,
            sharing: Sharing::default(),
            values,
        })
    }

    pub(super) fn scheme(&self) -> Option<&AuthScheme> {
        self.release.scheme(self.config.body.scheme)
    }

    /// Fails if the request names no user although the project confirms its users.
    pub(super) fn check_user_verified(&self, project: &Project) -> Result<()> {
        if project.stored.config.verifier_url.is_some() && self.user_id == DEFAULT_USER {
            return Err(errors::account_refused(
                "the project verifies its users (`oauth_callback_verifier_url` is set): `user_id` is required",
            ));
        }
        Ok(())
    }

    /// Builds the initial account.
    pub(super) fn new_account(
        &self,
        status: Status,
        waits_until: Option<Time>,
        now: Time,
    ) -> Result<Account> {
        let user = &self.user_id;
        let slug = &self.release.slug;
        Ok(Account {
            alias_of: self.alias.as_ref().map(|own| unique_alias(user, slug, own)),
            alias: self.alias.clone(),
            user_id: user.clone(),
            toolkit: slug.to_string(),
            auth_config: AuthConfigId::parse(&self.config.id)?,
            scheme: self.config.body.scheme,
            status,
            status_reason: None,
            uuid: Uuid::new_v4(),
            changed_at: now,
            attempt_number: 0,
            waits_until,
            was_connected: status.is_connected(),
            failure: None,
            sharing: self.sharing.clone(),
        })
    }

    /// Inserts the account, its credential and its connection attempt, which has a name, if the auth
    /// config still allows new connections. Returns what was stored, and the auth config with which
    /// it was stored.
    pub(super) async fn insert(
        &self,
        app: &App,
        project: &Project,
        id: &AccountId,
        mut account: Account,
        credential: Credential,
        attempt: Option<(&str, &ConnectionAttempt)>,
    ) -> Result<Connected> {
        let owner = project.id.as_str();
        record_limits::admit(app, &project.id, RecordKind::Account, &super::COLLECTION).await?;
        count_record(app, project, &account)?;
        count_record(app, project, &credential)?;
        if let Some((_, attempt)) = attempt {
            count_record(app, project, attempt)?;
        }
        let configs = &auth_configs::COLLECTION;
        let now = app.clock.now();
        account.changed_at = now;
        let inserted = app.store.change(configs, &self.config.id, || async {
            // A changed auth config does not prevent the insertion; a deleted or disabled one does.
            let config = enabled_config(app, project, &account.auth_config).await?;
            let mut batch = Batch::at(now)
                .check(&config)
                .insert(owner, id.as_str(), &account)
                .insert(owner, id.as_str(), &credential);
            if let Some((name, attempt)) = attempt {
                batch = batch.insert(owner, name, attempt);
            }
            Ok((batch, config))
        });
        let config = inserted.await.map_err(map_alias_conflict)?;
        Ok(Connected {
            account: Record::inserted(owner, id.as_str(), now, account),
            credential: Record::inserted(owner, id.as_str(), now, credential),
            config,
        })
    }

    /// Checks that a scheme that the request names is that of the auth config.
    fn check_scheme(&self, given: &str) -> Result<()> {
        let mode = self.config.body.scheme;
        let given = auth_configs::offered_scheme(&self.release, SCHEME_PROPERTY, given)?;
        if given == mode {
            return Ok(());
        }
        let id = &self.config.id;
        Err(errors::account_refused(format!(
            "{SCHEME_PROPERTY}: auth config {id} connects with {}, not with {}",
            mode.as_str(),
            given.as_str()
        )))
    }

    /// Returns true if the request imports tokens that another system has obtained.
    fn has_tokens(&self) -> bool {
        if self.config.body.scheme != AuthMode::Oauth1 {
            return access_token(&self.values).is_some();
        }
        let names = ["oauth_token", "oauth_token_secret"];
        names.iter().all(|name| self.values.contains_key(*name))
    }
}

/// Fails if the values of an account, unknown ones included, are larger than [`MAX_VALUES_BYTES`].
pub(super) fn check_size(values: &Values) -> Result<()> {
    let text = serde_json::to_vec(values).map_err(errors::internal)?;
    if text.len() > MAX_VALUES_BYTES {
        return Err(errors::invalid(format!(
            "connection: the values have more than {MAX_VALUES_BYTES} bytes as JSON"
        )));
    }
    Ok(())
}

/// Adds the path to the object of the request that describes the account.
fn in_connection(cause: Error) -> Error {
    cause.inside("connection")
}

/// Returns an auth config that allows new connections.
pub(super) async fn enabled_config(
    app: &App,
    project: &Project,
    id: &AuthConfigId,
) -> Result<Record<AuthConfig>> {
    let config = auth_configs::get(app, project, id).await?;
    if config.body.status == auth_configs::Status::Disabled {
        let problem = format!("auth config {id} is disabled");
        return Err(errors::account_refused(problem));
    }
    Ok(config)
}

/// Connects an account, or starts the authorization of its user at the provider. Fails if the auth
/// config is unknown or disabled, fields are missing, the alias is taken, or the provider does not
/// accept the credential.
pub async fn create(app: &App, project: &Project, request: NewAccount) -> Result<AccountView> {
    let user = parse_user_id(request.user_id.as_deref()).map_err(in_connection)?;
    let config = &request.auth_config;
    let mut validated = ValidatedRequest::new(app, project, config, user, request.values).await?;
    let mode = validated.config.body.scheme;
    if let Some(given) = &request.scheme {
        validated.check_scheme(given)?;
    }
    validated.alias = parse_alias(request.alias).map_err(in_connection)?;
    let sharing = Sharing::default().with(&request.sharing);
    validated.sharing = sharing.map_err(in_connection)?;
    if let Some(scheme) = validated.scheme() {
        validated.values =
            scheme::complete(scheme, validated.values.clone()).map_err(errors::account_fields)?;
    }
    let has_tokens = validated.has_tokens();
    if mode.redirects() && !has_tokens {
        return create_pending(app, project, validated, request.callback_url).await;
    }
    let mut lifetime = stated_lifetime(&validated.values);
    let tokens = &app.accounts;
    let obtains = obtains_from_fields(mode) && !has_tokens;
    if let Some(scheme) = validated.scheme().filter(|_| obtains) {
        let values = validated.values.clone();
        (validated.values, lifetime) = tokens.obtain(&validated.config, scheme, values).await?;
    }
    let values = &validated.values;
    if request.validate {
        let (config, release) = (Some(&validated.config), &validated.release);
        verify_values(app, project, config, release, mode, values.clone()).await?;
    }
    let id = AccountId::random();
    let now = app.clock.now();
    let scheme = validated.scheme();
    let credential = tokens
        .build_credential(&project.id, &id, scheme, values, lifetime, now)
        .await?;
    let account = validated.new_account(Status::Active, None, now)?;
    let inserted = validated.insert(app, project, &id, account, credential, None);
    connected_view(app, project, inserted.await?).await
}

/// Creates a pending account and the address at which its user authorizes the connection.
async fn create_pending(
    app: &App,
    project: &Project,
    validated: ValidatedRequest,
    callback_url: Option<String>,
) -> Result<AccountView> {
    validated.check_user_verified(project)?;
    let callback_url = callback_url
        .map(|url| check_redirect_url("connection.callback_url", url))
        .transpose()?;
    let id = AccountId::random();
    let now = app.clock.now();
    let until = time_after(now, app.accounts.settings.pending_ttl);
    let mut account = validated.new_account(Status::Initiated, Some(until), now)?;
    account.attempt_number = 1;
    let input = AuthorizationInput {
        project,
        id: &id,
        attempt_number: account.attempt_number,
        config: &validated.config,
        release: &validated.release,
        values: &validated.values,
        callback_url,
        browser: None,
    };
    let started = input.start_authorization(app).await?;
    let mut values = validated.values.clone();
    values.extend(started.shown);
    let credential = app.accounts.seal(&project.id, &id, &values).await?;
    let attempt = Some((&*started.name, &started.attempt));
    let inserted = validated.insert(app, project, &id, account, credential, attempt);
    connected_view(app, project, inserted.await?).await
}
