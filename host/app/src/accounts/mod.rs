//! Connected accounts: access of one user to one provider, with its credential.
//!
//! An account of a scheme without redirect is ACTIVE as soon as its fields are complete. For all
//! other schemes its user must first authorize the connection at the provider (`flow`). `state` is
//! the only place that decides which changes of status are allowed, and every change asks it inside
//! its transaction. The credential is a separate record, so that the deletion of an account hides
//! the account and erases the credential in one step. `refresh` renews the token while the account
//! exists.

pub mod auth_configs;
mod flow;
mod grant;
pub mod oauth_apps;
mod oauth_clients;
mod refresh;
mod scheme;
mod sharing;
mod state;

use std::{sync::Arc, time::Duration};

use manifest::{AuthMode, AuthScheme};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{
    Batch, Collection, CommitError, Document, EditError, Field, Kind, Listed, Query, Record, Time,
    Window,
};
use uuid::Uuid;

pub use flow::{
    Brand, Completion, Form, FormField, LinkCreated, LinkPage, NewLink, Reconnection, RedirectTo,
    Submitted, callback, complete, link, open_link, reconnect, submit,
};
pub(crate) use flow::{COLLECTION as CONNECTION_ATTEMPTS, SWEEP_INTERVAL, sweep};
use grant::verify_values;
pub(crate) use grant::{
    CredentialCheck, CredentialChoice, Granted, ProxyContext, VerifyCredential, grant,
    proxy_context,
};
pub use grant::{CustomCredential, CustomParameter, Source};
pub use oauth::Values;
pub use oauth_clients::client_metadata;
pub(crate) use oauth_clients::{COLLECTION as CLIENTS, delete_clients, purge_clients};
pub(crate) use refresh::{CREDENTIALS, IDLE_REFRESH_INTERVAL, refresh_idle};
use refresh::{Credential, TokenOwner, obtains_from_fields, seal_context};
pub use refresh::{RevokedToken, Settings, TokenManager};
pub use scheme::mask;
pub use sharing::{AccountType, AclChange, MAX_LISTED_USERS, Sharing, SharingChange};
pub use state::{Event, Status};

use crate::{
    App, Error, Result,
    accounts::auth_configs::AuthConfig,
    catalog::{LATEST, Release},
    core::ids::{AccountId, AuthConfigId},
    projects::Project,
};

/// User id if the request names none.
pub const DEFAULT_USER: &str = "default";
const MAX_USER_ID_CHARS: usize = 256;
/// Number of accounts read at once when the accounts of an auth config or of a project are revoked.
const REVOCATION_PAGE_SIZE: u64 = 100;

/// Collection that this module owns.
pub(crate) static COLLECTION: Collection = Collection {
    name: "connected_accounts",
    fields: &[
        Field::new("user_id", Kind::Text),
        Field::new("toolkit", Kind::Text),
        Field::new("auth_config", Kind::Text),
        Field::new("status", Kind::Text),
        Field::new("changed_at", Kind::Time),
        Field::new("waits_until", Kind::Time),
        Field::unique("uuid", Kind::Text),
        Field::unique("alias_of", Kind::Text),
        Field::new("account_type", Kind::Text),
    ],
};

/// Name of the collection of credentials, which `refresh` owns.
const CREDENTIALS_NAME: &str = "credentials";
/// Status reason of an account whose user did not connect it in time.
const TIMED_OUT_REASON: &str = "INITIATION_TIMEOUT";
/// Name of the value with the authorization address of a pending account.
const REDIRECT_URL_VALUE: &str = "redirectUrl";

/// A connected account, as stored.
#[derive(Debug, Serialize, Deserialize)]
pub struct Account {
    /// The project's own identifier for the user.
    pub user_id: String,
    /// Slug of the toolkit.
    pub toolkit: String,
    /// Auth config with which the account was connected.
    pub auth_config: AuthConfigId,
    /// Auth scheme. It is stored here as well because the auth config may be deleted.
    pub scheme: AuthMode,
    /// Current status.
    pub status: Status,
    /// Reason of the status, if the status alone does not explain it.
    #[serde(default)]
    pub status_reason: Option<String>,
    /// Legacy id, for older clients.
    pub uuid: Uuid,
    /// Name that the user gave to the account; unique for user and toolkit.
    #[serde(default)]
    pub alias: Option<String>,
    #[serde(default)]
    alias_of: Option<String>,
    /// Time of the last change, for sorted lists.
    changed_at: Time,
    /// Number of the current connection attempt. Records of an earlier attempt have no effect.
    #[serde(default, rename = "attempt")]
    attempt_number: u32,
    /// Time until which a pending account waits for its user.
    #[serde(default)]
    waits_until: Option<Time>,
    /// Reason that the provider gave when it refused the connection.
    #[serde(default)]
    pub failure: Option<Failure>,
    /// Users who may use the account.
    #[serde(flatten)]
    pub sharing: Sharing,
}

/// Reason why a provider did not connect an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Error code, for example `access_denied` (RFC 6749, section 4.1.2.1).
    pub error: String,
    /// Description; may be empty.
    pub description: String,
}

impl Document for Account {
    const COLLECTION: &'static Collection = &COLLECTION;
}

impl Account {
    /// Changes the status. The caller has checked the change with [`Status::after`].
    fn set_status(&mut self, status: Status, reason: Option<&str>, now: Time) {
        if !matches!(status, Status::Initializing | Status::Initiated) {
            self.waits_until = None;
        }
        (self.status, self.status_reason, self.changed_at) =
            (status, reason.map(str::to_owned), now);
        self.failure = None;
    }
}

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
    /// Users who may also use the account; none by default.
    pub sharing: SharingChange,
    /// Address to which the user's browser is redirected after the callback.
    pub callback_url: Option<String>,
    /// True if the provider must accept the credential before the account is created.
    pub validate: bool,
}

/// An account as responses show it.
#[derive(Debug)]
pub struct AccountView {
    /// The account.
    pub record: Record<Account>,
    /// Values of the account, masked unless the project has disabled masking.
    pub values: Values,
    /// Legacy id of the auth config, if the config still exists.
    pub config_uuid: Option<Uuid>,
    /// True if the auth config is disabled or deleted.
    pub config_disabled: bool,
    /// True if the auth config uses the operator's OAuth app.
    pub managed: bool,
    /// Authorization address, while the account waits for its user.
    pub redirect_url: Option<String>,
}

/// Filter for lists of accounts. Empty fields do not filter.
#[derive(Debug, Default)]
pub struct Filter {
    /// Slugs of toolkits.
    pub toolkits: Vec<String>,
    /// Statuses.
    pub statuses: Vec<Status>,
    /// User ids.
    pub users: Vec<String>,
    /// Ids of auth configs.
    pub auth_configs: Vec<String>,
    /// Ids of accounts.
    pub ids: Vec<String>,
    /// Private or shared accounts; both if absent.
    pub account_type: Option<AccountType>,
    /// True to sort by last change instead of by creation.
    pub by_change: bool,
    /// True for the oldest first.
    pub ascending: bool,
    /// Latest time of creation.
    pub until: Option<Time>,
}

/// Validated request to connect an account.
struct ValidatedRequest {
    config: Record<AuthConfig>,
    release: Arc<Release>,
    user_id: String,
    alias: Option<String>,
    sharing: Sharing,
    /// Given values, merged over the shared values of the auth config.
    values: Values,
}

impl ValidatedRequest {
    async fn new(
        app: &App,
        project: &Project,
        config: &AuthConfigId,
        user: Option<String>,
        given: Values,
    ) -> Result<Self> {
        let config = enabled_config(app, project, config).await?;
        let release = app.catalog.release(&config.body.toolkit, LATEST)?;
        let mut values = auth_configs::credentials(app, project, &config)
            .await?
            .shared;
        values.extend(given);
        // Clients may send the status among the values; it is no field.
        for name in ["status", REDIRECT_URL_VALUE] {
            values.remove(name);
        }
        let user_id = crate::accounts::parse_user_id(user)?;
        Ok(Self {
            config,
            release,
            user_id,
            alias: None,
            sharing: Sharing::default(),
            values,
        })
    }

    fn scheme(&self) -> Option<&AuthScheme> {
        self.release.scheme(self.config.body.scheme)
    }

    /// Requires a user id if the project confirms its users.
    fn check_user_verified(&self, project: &Project) -> Result<()> {
        if project.stored.config.verifier_url.is_some() && self.user_id == DEFAULT_USER {
            return Err(Error::AccountRefused(
                "the project verifies its users (`oauth_callback_verifier_url` is set): `user_id` is required".into(),
            ));
        }
        Ok(())
    }

    /// Builds the initial account.
    fn new_account(&self, status: Status, waits_until: Option<Time>, now: Time) -> Result<Account> {
        let user = &self.user_id;
        let slug = &self.release.slug;
        Ok(Account {
            alias_of: self
                .alias
                .as_ref()
                .map(|alias| unique_alias(user, slug, alias)),
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
            failure: None,
            sharing: self.sharing.clone(),
        })
    }
}

/// Returns an auth config that allows new connections.
async fn enabled_config(
    app: &App,
    project: &Project,
    id: &AuthConfigId,
) -> Result<Record<AuthConfig>> {
    let config = auth_configs::get(app, project, id).await?;
    if config.body.status == auth_configs::Status::Disabled {
        return Err(Error::AccountRefused(format!(
            "auth config {id} is disabled"
        )));
    }
    Ok(config)
}

/// Connects an account, or starts the authorization of its user at the provider.
///
/// # Errors
/// Fails if the auth config is unknown or disabled, fields are missing, the alias is taken, the
/// provider does not accept the credential, or the store refuses.
pub async fn create(app: &App, project: &Project, request: NewAccount) -> Result<AccountView> {
    let mut validated = ValidatedRequest::new(
        app,
        project,
        &request.auth_config,
        request.user_id,
        request.values,
    )
    .await?;
    let mode = validated.config.body.scheme;
    if let Some(given) = &request.scheme
        && auth_configs::offered_scheme(&validated.release, given)? != mode
    {
        let id = &validated.config.id;
        let own = mode.as_str();
        return Err(Error::AccountRefused(format!(
            "auth config {id} connects with {own}, not with {}",
            crate::core::truncate(given)
        )));
    }
    validated.alias = parse_alias(request.alias)?;
    validated.sharing = Sharing::default().with(&request.sharing)?;
    if let Some(scheme) = validated.scheme() {
        validated.values =
            scheme::complete(scheme, validated.values.clone()).map_err(Error::AccountFields)?;
    }
    // Tokens that another system has obtained are imported.
    let has_tokens = match mode {
        AuthMode::Oauth1 => ["oauth_token", "oauth_token_secret"]
            .iter()
            .all(|name| validated.values.contains_key(*name)),
        _ => refresh::access_token(&validated.values).is_some(),
    };
    if mode.redirects() && !has_tokens {
        return flow::create(app, project, validated, request.callback_url).await;
    }
    let lifetime = validated
        .values
        .get("expires_in")
        .and_then(scheme::text)
        .and_then(|text| text.parse().ok());
    let mut lifetime = lifetime.map(Duration::from_secs);
    if let Some(scheme) = validated
        .scheme()
        .filter(|_| obtains_from_fields(mode) && !has_tokens)
    {
        let values = validated.values.clone();
        (validated.values, lifetime) = app
            .accounts
            .obtain(&project.id, &validated.config, scheme, values)
            .await?;
    }
    if request.validate {
        let (config, release) = (&validated.config, &validated.release);
        verify_values(
            app,
            project,
            config,
            release,
            mode,
            validated.values.clone(),
        )
        .await?;
    }
    let id = AccountId::random();
    let now = app.clock.now();
    let credential = app
        .accounts
        .build_credential(
            &project.id,
            &id,
            validated.scheme(),
            &validated.values,
            lifetime,
        )
        .await?;
    insert(
        app,
        project,
        &validated,
        &id,
        &validated.new_account(Status::Active, None, now)?,
        &credential,
        |batch| batch,
    )
    .await?;
    get(app, project, &id).await
}

/// Inserts a new account, its credential and its other records, if the auth config still allows new
/// connections.
async fn insert(
    app: &App,
    project: &Project,
    validated: &ValidatedRequest,
    id: &AccountId,
    account: &Account,
    credential: &Credential,
    add_records: impl Fn(Batch) -> Batch,
) -> Result<()> {
    let owner = project.id.as_str();
    let inserted = app
        .store
        .change(&auth_configs::COLLECTION, &validated.config.id, || async {
            // A changed auth config does not prevent the insertion; a deleted or disabled one does.
            let config = enabled_config(app, project, &account.auth_config).await?;
            let batch =
                Batch::at(app.clock.now())
                    .check(&config)
                    .insert(owner, id.as_str(), account);
            Ok((
                add_records(batch.insert(owner, id.as_str(), credential)),
                (),
            ))
        });
    inserted.await.map_err(map_alias_conflict)
}

/// Converts a conflict of the alias into its error.
fn map_alias_conflict(cause: EditError<Error>) -> Error {
    match cause {
        EditError::Commit(CommitError::Taken {
            field: "alias_of", ..
        }) => alias_taken(),
        cause => cause.into(),
    }
}

fn unique_alias(user: &str, toolkit: &str, alias: &str) -> String {
    format!("{user}\u{1f}{toolkit}\u{1f}{alias}")
}

fn alias_taken() -> Error {
    Error::AccountRefused("the alias is used by another account of this user and toolkit".into())
}

/// Returns an account of the project.
///
/// # Errors
/// Fails if the account does not exist.
pub async fn get(app: &App, project: &Project, id: &AccountId) -> Result<AccountView> {
    let record = record(app, project, id).await?;
    let config = auth_configs::find(app, project, &record.body.auth_config).await?;
    to_view(app, project, record, config.as_ref()).await
}

/// Returns a page of accounts and their total number.
///
/// # Errors
/// Fails if the store cannot be read or a credential cannot be decrypted.
pub async fn list(
    app: &App,
    project: &Project,
    filter: &Filter,
    window: Window,
) -> Result<Listed<AccountView>> {
    let mut query = Query::for_project(project.id.as_str()).window(window);
    for (field, accepted) in [
        ("toolkit", &filter.toolkits),
        ("user_id", &filter.users),
        ("auth_config", &filter.auth_configs),
        ("id", &filter.ids),
    ] {
        if !accepted.is_empty() {
            query = query.any_of(field, accepted.iter().map(String::as_str));
        }
    }
    if !filter.statuses.is_empty() {
        query = query.any_of(
            "status",
            filter.statuses.iter().map(|status| status.as_str()),
        );
    }
    query = match filter.account_type {
        None => query,
        // Accounts that are older than sharing have no account type.
        Some(AccountType::Private) => query.is_not("account_type", AccountType::Shared.as_str()),
        Some(AccountType::Shared) => query.is("account_type", AccountType::Shared.as_str()),
    };
    if let Some(until) = filter.until {
        query = query.below("created_at", until.0.saturating_add(1));
    }
    if filter.by_change {
        query = query.order_by("changed_at");
    }
    if !filter.ascending {
        query = query.descending();
    }
    let Listed {
        items: records,
        total,
        next,
    } = app.store.list::<Account>(&query).await?;
    let mut configs = std::collections::HashMap::new();
    let mut views = Vec::with_capacity(records.len());
    for record in records {
        let id = record.body.auth_config.clone();
        if !configs.contains_key(&id) {
            configs.insert(id.clone(), auth_configs::find(app, project, &id).await?);
        }
        let config = configs.get(&id).and_then(Option::as_ref);
        match to_view(app, project, record, config).await {
            // The account was deleted after the page was read.
            Err(Error::AccountNotFound(_)) => {}
            done => views.push(done?),
        }
    }
    Ok(Listed {
        items: views,
        total,
        next,
    })
}

/// Pauses or resumes an account.
///
/// # Errors
/// Fails if the account does not exist or is not connected, or if the store refuses.
pub async fn set_enabled(
    app: &App,
    project: &Project,
    id: &AccountId,
    enabled: bool,
) -> Result<()> {
    let now = app.clock.now();
    let event = if enabled {
        Event::Enabled
    } else {
        Event::Disabled
    };
    let change = |account: &mut Account| -> Result<()> {
        let status = account
            .status
            .after(event)
            .ok_or_else(|| status_conflict(id, account.status, event))?;
        account.set_status(status, None, now);
        Ok(())
    };
    let done = app
        .store
        .edit(project.id.as_str(), id.as_str(), now, change)
        .await
        .map_err(Error::from)?;
    done.ok_or_else(|| Error::AccountNotFound(id.to_string()))
}

/// Changes of an account. Absent fields stay as they are.
#[derive(Debug, Default)]
pub struct Changes {
    /// Name that the user gives to the account; an empty text removes it.
    pub alias: Option<String>,
    /// Scheme that the caller expects, and values of its fields; null removes a value.
    pub fields: Option<(String, Values)>,
    /// Users who may use the account.
    pub sharing: SharingChange,
}

/// Changes the alias, the sharing or the field values of an account. Returns its status.
///
/// # Errors
/// Fails if the account does not exist, the alias is taken, lists are given for a private account,
/// the fields are incomplete, the tokens come from the provider, or the store refuses.
pub async fn change(
    app: &App,
    project: &Project,
    id: &AccountId,
    changes: Changes,
) -> Result<Status> {
    let alias = changes
        .alias
        .map(|alias| parse_alias(Some(alias)))
        .transpose()?;
    let changed = app.store.change(&COLLECTION, id.as_str(), || async {
        let now = app.clock.now();
        let mut account = record(app, project, id).await?;
        let mut batch = Batch::at(now);
        let sharing = account.body.sharing.with(&changes.sharing)?;
        if sharing != account.body.sharing {
            (account.body.sharing, account.body.changed_at) = (sharing, now);
        }
        if let Some(alias) = &alias {
            let body = &mut account.body;
            body.alias_of = alias.as_ref().map(|alias| unique_alias(&body.user_id, &body.toolkit, alias));
            body.alias.clone_from(alias);
            body.changed_at = now;
        }
        if let Some((scheme, given)) = &changes.fields {
            let release = app.catalog.release(&account.body.toolkit, LATEST)?;
            let mode = auth_configs::offered_scheme(&release, scheme)?;
            if mode != account.body.scheme || mode.redirects() {
                return Err(Error::AccountRefused(format!(
                    "account {id} is connected with {}: only fields of this scheme can be changed, and tokens cannot be set",
                    account.body.scheme.as_str()
                )));
            }
            let (values, credential) = open_credential(app, project, &account).await?;
            let scheme = release.scheme(mode);
            let mut values = merged_values(scheme, flow::user_values(mode, &values), given)?;
let mut lifetime = None;
            if let Some(scheme) = scheme.filter(|_| obtains_from_fields(mode)) {
                let config = auth_configs::get(app, project, &account.body.auth_config).await?;
                (values, lifetime) = app.accounts.obtain(&project.id, &config, scheme, values).await?;
            }
            let body = app.accounts.build_credential(&project.id, id, scheme, &values, lifetime).await?;
            batch = batch.update(&Record { body, ..credential });
            let status = account.body.status;
            let status = status.after(Event::Filled).ok_or_else(|| status_conflict(id, status, Event::Filled))?;
            account.body.set_status(status, None, now);
        }
        Ok((batch.update(&account), account.body.status))
    });
    changed.await.map_err(map_alias_conflict)
}

/// Merges given values over existing ones; null removes a value.
fn merged_values(
    scheme: Option<&AuthScheme>,
    mut values: Values,
    given: &Values,
) -> Result<Values> {
    let given = match scheme {
        // A key may also be sent under a general name.
        Some(scheme) => scheme::normalize_names(scheme, given.clone()),
        None => given.clone(),
    };
    values.extend(given);
    values.retain(|_, value| !value.is_null());
    match scheme {
        Some(scheme) => scheme::complete(scheme, values).map_err(Error::AccountFields),
        None => Ok(values),
    }
}

/// Asks the provider to verify the credential of an account. The account fails if the provider
/// rejects it. Returns the status.
///
/// # Errors
/// Fails if the account does not exist, the toolkit has no request to verify a credential, the
/// provider does not answer, or the store refuses.
pub async fn verify_credential(app: &App, project: &Project, id: &AccountId) -> Result<Status> {
    let account = record(app, project, id).await?;
    let release = app.catalog.release(&account.body.toolkit, LATEST)?;
    let (values, _) = open_credential(app, project, &account).await?;
    let mode = account.body.scheme;
    let config = auth_configs::find(app, project, &account.body.auth_config).await?;
    let verified = match &config {
        Some(config) => verify_values(app, project, config, &release, mode, values).await,
        None => {
            let check = CredentialCheck {
                project,
                release: &release,
                mode,
                values: &values,
                proxy: None,
            };
            (app.verify_credential)(app, check).await
        }
    };
    let rejected = match verified {
        Ok(()) => return Ok(account.body.status),
        Err(Error::CredentialRejected(why)) => why,
        Err(cause) => return Err(cause),
    };
    let now = app.clock.now();
    let change = |account: &mut Account| -> Result<Status> {
        if let Some(status) = account.status.after(Event::CredentialRejected) {
            account.set_status(status, Some(&rejected), now);
        }
        Ok(account.status)
    };
    let done = app
        .store
        .edit(project.id.as_str(), id.as_str(), now, change)
        .await
        .map_err(Error::from)?;
    done.ok_or_else(|| Error::AccountNotFound(id.to_string()))
}

/// Revokes an account's credential: the provider is asked to revoke its tokens, and the server
/// erases them. Returns the tokens that the provider revoked, or the credential if only this server
/// erased it.
///
/// # Errors
/// Fails if the account does not exist, it has no credential yet, the provider does not answer, or
/// the store refuses. In these cases nothing has changed.
pub async fn revoke(app: &App, project: &Project, id: &AccountId) -> Result<Vec<RevokedToken>> {
    let account = record(app, project, id).await?;
    let not_revocable = |status| status_conflict(id, status, Event::Revoked);
    account
        .body
        .status
        .after(Event::Revoked)
        .ok_or_else(|| not_revocable(account.body.status))?;
    if account.body.status == Status::Revoked {
        return Ok(Vec::new());
    }
    let (values, _) = open_credential(app, project, &account).await?;
    let revoked = match account.body.scheme {
        mode if mode.has_flow() => {
            app.accounts
                .revoke(&TokenOwner::for_account(app, project, &account)?, &values)
                .await?
        }
        _ => vec![RevokedToken::Credential],
    };
    let erased = app.store.change(&COLLECTION, id.as_str(), || async {
        let mut account = record(app, project, id).await?;
        let now = app.clock.now();
        let status = account.body.status;
        let status = status
            .after(Event::Revoked)
            .ok_or_else(|| not_revocable(status))?;
        account.body.set_status(status, None, now);
        // A user who is at the provider now cannot complete the attempt any more.
        account.body.attempt_number += 1;
        let (_, credential) = open_credential(app, project, &account).await?;
        let body = Credential::new(app.accounts.seal(&project.id, id, &Values::new()).await?);
        Ok((
            Batch::at(now)
                .update(&account)
                .update(&Record { body, ..credential }),
            (),
        ))
    });
    erased.await?;
    Ok(revoked)
}

/// Deletes an account and erases its credential. With `revoke`, the provider is then asked to
/// revoke the tokens, if it can be reached.
///
/// # Errors
/// Fails if the account does not exist, or the store refuses.
pub async fn remove(app: &App, project: &Project, id: &AccountId, revoke: bool) -> Result<()> {
    let removed = app.store.change(&COLLECTION, id.as_str(), || async {
        let account = record(app, project, id).await?;
        let (values, credential) = open_credential(app, project, &account).await?;
        let batch = Batch::at(app.clock.now())
            .remove(&account)
            .purge(&credential);
        Ok::<_, Error>((batch, (account, values)))
    });
    let (account, values) = removed.await?;
    if revoke && account.body.scheme.has_flow() {
        app.accounts
            .revoke_best_effort(&TokenOwner::for_account(app, project, &account)?, &values)
            .await;
    }
    Ok(())
}

/// Deletes the accounts of a project and asks their providers to revoke the tokens, if they can be
/// reached. A repeated call continues an interrupted deletion.
///
/// # Errors
/// Fails if the store refuses.
pub(crate) async fn remove_all(app: &App, project: &Project) -> Result<()> {
    let mut query = Query::for_project(project.id.as_str()).page(0, REVOCATION_PAGE_SIZE);
    loop {
        let found = app.store.list::<Account>(&query).await?;
        for account in found.items {
            match remove(app, project, &AccountId::parse(&account.id)?, true).await {
                // The account has no credential that could be revoked.
                Ok(()) | Err(Error::AccountNotFound(_)) => {}
                Err(cause) => return Err(cause),
            }
        }
        let Some(next) = found.next else {
            return Ok(());
        };
        query = query.after(next);
    }
}

/// Revokes the credentials of all accounts of an auth config, if the provider can be reached. The
/// accounts stay.
pub(crate) async fn revoke_all(app: &App, project: &Project, config: &AuthConfigId) -> Result<()> {
    let mut query = Query::for_project(project.id.as_str())
        .is("auth_config", config.as_str())
        .any_of(
            "status",
            [Status::Active, Status::Inactive, Status::Expired].map(Status::as_str),
        )
        .page(0, REVOCATION_PAGE_SIZE);
    loop {
        let found = app.store.list::<Account>(&query).await?;
        for account in found.items {
            if let Err(cause) = revoke(app, project, &AccountId::parse(&account.id)?).await {
                tracing::warn!(account = account.id, %cause, "a credential was not revoked with its auth config");
            }
        }
        let Some(next) = found.next else {
            return Ok(());
        };
        query = query.after(next);
    }
}

fn status_conflict(id: &AccountId, status: Status, event: Event) -> Error {
    let action = match event {
        Event::Enabled => "resumed",
        Event::Disabled => "paused",
        Event::Revoked => "revoked",
        _ => "changed",
    };
    Error::AccountRefused(format!(
        "account {id} is {} and cannot be {action}",
        status.as_str()
    ))
}

pub(crate) async fn record(
    app: &App,
    project: &Project,
    id: &AccountId,
) -> Result<Record<Account>> {
    let found = app.store.get(project.id.as_str(), id.as_str()).await?;
    found.ok_or_else(|| Error::AccountNotFound(id.to_string()))
}

/// Returns the decrypted values of an account and the record that holds them.
async fn open_credential(
    app: &App,
    project: &Project,
    record: &Record<Account>,
) -> Result<(Values, Record<Credential>)> {
    let missing = || Error::AccountNotFound(record.id.clone());
    // A missing record means that the account was deleted after it was read.
    let credential = app
        .store
        .get::<Credential>(project.id.as_str(), &record.id)
        .await?
        .ok_or_else(missing)?;
    let key = app.vault.key(project.id.as_str(), app.clock.now()).await?;
    Ok((
        key.open(
            seal_context(&project.id, &record.id),
            &credential.body.values,
        )?,
        credential,
    ))
}

async fn to_view(
    app: &App,
    project: &Project,
    mut record: Record<Account>,
    config: Option<&Record<AuthConfig>>,
) -> Result<AccountView> {
    let (mut values, credential) = open_credential(app, project, &record).await?;
    if record.body.status.is_connected() && credential.body.is_uncertain(app.clock.now()) {
        record.body.status_reason = Some(refresh::OUTCOME_UNKNOWN_REASON.to_owned());
    }
    if !matches!(record.body.status, Status::Initializing | Status::Initiated) {
        // The address contains a secret and is no longer valid.
        values.remove(REDIRECT_URL_VALUE);
    }
    let redirect_url = values
        .get(REDIRECT_URL_VALUE)
        .and_then(Value::as_str)
        .map(str::to_owned);
    if project.stored.config.mask_secrets {
        let release = app.catalog.release(&record.body.toolkit, LATEST).ok();
        values = scheme::mask_values(
            release
                .as_deref()
                .and_then(|release| scheme_of(release, &record.body)),
            &values,
        );
    }
    Ok(AccountView {
        values,
        redirect_url,
        config_uuid: config.map(|config| config.body.uuid),
        config_disabled: config
            .is_none_or(|config| config.body.status == auth_configs::Status::Disabled),
        managed: config.is_some_and(|config| config.body.managed),
        record,
    })
}

fn scheme_of<'a>(release: &'a Release, account: &Account) -> Option<&'a manifest::AuthScheme> {
    release.scheme(account.scheme)
}

/// Returns the user id of a request.
///
/// # Errors
/// Fails if the user id is longer than 256 characters.
pub fn parse_user_id(given: Option<String>) -> Result<String> {
    let user = given
        .map(|user| user.trim().to_owned())
        .filter(|user| !user.is_empty());
    let user = user.unwrap_or_else(|| DEFAULT_USER.to_owned());
    if user.chars().count() > MAX_USER_ID_CHARS {
        return Err(Error::invalid("user_id: at most 256 characters"));
    }
    Ok(user)
}

fn parse_alias(given: Option<String>) -> Result<Option<String>> {
    let alias = given
        .map(|alias| alias.trim().to_owned())
        .filter(|alias| !alias.is_empty());
    match alias {
        Some(alias) if alias.chars().count() > 100 || alias.contains('\u{1f}') => Err(
            Error::invalid("connection.alias: at most 100 printable characters"),
        ),
        alias => Ok(alias),
    }
}
