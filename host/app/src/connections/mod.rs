//! Connected accounts: one user's account at one external application, with its credential.
//!
//! An account of a scheme without redirect is ACTIVE as soon as its fields are complete; for the others its user has to agree at
//! the application first (`flow`). What may happen to an account is decided in one place (`state`), and whoever changes one asks
//! there inside the change. The credential is a record of its own, so that deleting an account hides the account and erases the
//! credential in one step; while the account lives, `refresh` keeps its token alive.

pub mod apps;
mod clients;
mod flow;
mod grant;
pub mod protocol;
mod refresh;
mod scheme;
mod sharing;
mod state;

use std::{sync::Arc, time::Duration};

use manifest::{AuthMode, AuthScheme};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{Batch, Collection, CommitError, Document, EditError, Field, Kind, Listed, Query, Record, Time, Window};
use uuid::Uuid;

pub use clients::described;
pub(crate) use clients::{COLLECTION as CLIENTS, forget_clients, forgotten};
pub use flow::{
    Brand, Form, FormField, Landed, LinkPage, Linked, NewLink, Submitted, again, callback, complete, link, open_link,
    submit,
};
pub(crate) use flow::{COLLECTION as FLOWS, EVERY, sweep};
use grant::signing;
pub(crate) use grant::{Choice, Granted, Passage, grant, passage, trial};
pub use grant::{Custom, Placed, Source};
pub(crate) use refresh::{CREDENTIALS, EVERY as IDLE_EVERY, idle};
use refresh::{Credential, Whose, obtains, place};
pub use refresh::{Keeper, Settings};
pub use scheme::{Values, mask};
pub use sharing::{AccountType, AclChange, LISTED, Sharing, SharingChange};
pub use state::{Event, Status};

use crate::{
    App, Error, Result,
    auth_configs::{self, AuthConfig},
    catalog::{LATEST, Release},
    ids::{AccountId, AuthConfigId},
    projects::Project,
};

/// The user when none is named.
pub const DEFAULT_USER: &str = "default";
const USER: usize = 256;
/// Accounts that are read at once when their auth config or project goes.
const REVOKED_AT_ONCE: u64 = 100;

/// The collection this room owns.
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
/// Why an account expired that nobody connected.
const TIMED_OUT: &str = "INITIATION_TIMEOUT";
/// Where the user of a pending account goes.
const REDIRECT_URL: &str = "redirectUrl";

/// A connected account, as stored.
#[derive(Debug, Serialize, Deserialize)]
pub struct Account {
    /// The project's own name for the person.
    pub user_id: String,
    /// Slug.
    pub toolkit: String,
    /// How it was connected.
    pub auth_config: AuthConfigId,
    /// Kept beside the config's, which may be deleted.
    pub scheme: AuthMode,
    /// Whether it runs.
    pub status: Status,
    /// Why it does not, where that is not plain.
    #[serde(default)]
    pub status_reason: Option<String>,
    /// The id of older clients.
    pub uuid: Uuid,
    /// A name of the user's own, unique for user and toolkit.
    #[serde(default)]
    pub alias: Option<String>,
    #[serde(default)]
    alias_of: Option<String>,
    /// For lists by last change.
    changed_at: Time,
    /// How often connecting it has begun: what is left of an earlier attempt changes nothing any more.
    #[serde(default)]
    attempt: u32,
    /// Until then it waits for its user.
    #[serde(default)]
    waits_until: Option<Time>,
    /// What the application said when it refused.
    #[serde(default)]
    pub failure: Option<Failure>,
    /// Who may use it.
    #[serde(flatten)]
    pub sharing: Sharing,
}

/// Why an application did not connect an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// A code, for example `access_denied` (RFC 6749, section 4.1.2.1).
    pub error: String,
    /// Words; may be empty.
    pub description: String,
}

impl Document for Account {
    const COLLECTION: &'static Collection = &COLLECTION;
}

impl Account {
    /// Changes the status. Whoever calls has asked [`Status::after`].
    fn pass_to(&mut self, status: Status, reason: Option<&str>, now: Time) {
        if !matches!(status, Status::Initializing | Status::Initiated) {
            self.waits_until = None;
        }
        (self.status, self.status_reason, self.changed_at) = (status, reason.map(str::to_owned), now);
        self.failure = None;
    }
}

/// An account to be made.
#[derive(Debug)]
pub struct NewAccount {
    /// How to connect it.
    pub auth_config: AuthConfigId,
    /// The project's own name for the person.
    pub user_id: Option<String>,
    /// The scheme the caller means, if it says one.
    pub scheme: Option<String>,
    /// What the person filled in.
    pub values: Values,
    /// A name of the user's own.
    pub alias: Option<String>,
    /// Who else may use it; nobody, unless it says so.
    pub sharing: SharingChange,
    /// Where the user's browser goes when the application has answered.
    pub callback_url: Option<String>,
    /// Whether the application is asked first if it takes the credential.
    pub validate: bool,
}

/// An account with all that an answer shows.
#[derive(Debug)]
pub struct Shown {
    /// The account.
    pub record: Record<Account>,
    /// Its values, masked unless the project wants otherwise.
    pub values: Values,
    /// Id of older clients of its config, if the config is still there.
    pub config_uuid: Option<Uuid>,
    /// Whether its config is disabled or deleted.
    pub config_disabled: bool,
    /// Whether its config uses the server's own credentials.
    pub managed: bool,
    /// Where its user goes to connect it, while it waits for that.
    pub redirect_url: Option<String>,
}

/// Which accounts. Empty parts ask for nothing.
#[derive(Debug, Default)]
pub struct Filter {
    /// Of these toolkits.
    pub toolkits: Vec<String>,
    /// In these states.
    pub statuses: Vec<String>,
    /// Of these users.
    pub users: Vec<String>,
    /// Connected with these configs.
    pub auth_configs: Vec<String>,
    /// These.
    pub ids: Vec<String>,
    /// Private or shared; absent for both.
    pub account_type: Option<AccountType>,
    /// By last change instead of creation.
    pub by_change: bool,
    /// Oldest first.
    pub ascending: bool,
    /// Made at this moment or before.
    pub until: Option<Time>,
}

/// What a request to connect names, checked.
struct Wanted {
    config: Record<AuthConfig>,
    release: Arc<Release>,
    user_id: String,
    alias: Option<String>,
    sharing: Sharing,
    /// What was given, over what the auth config shares.
    values: Values,
}

impl Wanted {
    async fn of(
        app: &App,
        project: &Project,
        config: &AuthConfigId,
        user: Option<String>,
        given: Values,
    ) -> Result<Self> {
        let config = enabled_config(app, project, config).await?;
        let release = app.catalog.release(&config.body.toolkit, LATEST)?;
        let mut values = auth_configs::credentials(app, project, &config).await?.shared;
        values.extend(given);
        // What clients say of the state is no field.
        for name in ["status", REDIRECT_URL] {
            values.remove(name);
        }
        let user_id = crate::connections::user(user)?;
        Ok(Self { config, release, user_id, alias: None, sharing: Sharing::default(), values })
    }

    fn scheme(&self) -> Option<&AuthScheme> {
        self.release.scheme(self.config.body.scheme)
    }

    /// A user of a project that vouches for its users has a name.
    fn vouched(&self, project: &Project) -> Result<()> {
        if project.stored.config.verifier_url.is_some() && self.user_id == DEFAULT_USER {
            return Err(Error::AccountRefused(
                "the project vouches for its users (`oauth_callback_verifier_url`), so `user_id` must name one".into(),
            ));
        }
        Ok(())
    }

    /// The account, as it begins.
    fn account(&self, status: Status, waits_until: Option<Time>, now: Time) -> Result<Account> {
        let (user, slug) = (&self.user_id, &self.release.slug);
        Ok(Account {
            alias_of: self.alias.as_ref().map(|alias| alias_of(user, slug, alias)),
            alias: self.alias.clone(),
            user_id: user.clone(),
            toolkit: slug.to_string(),
            auth_config: AuthConfigId::parse(&self.config.id)?,
            scheme: self.config.body.scheme,
            status,
            status_reason: None,
            uuid: Uuid::new_v4(),
            changed_at: now,
            attempt: 0,
            waits_until,
            failure: None,
            sharing: self.sharing.clone(),
        })
    }
}

/// An auth config with which connections may start.
async fn enabled_config(app: &App, project: &Project, id: &AuthConfigId) -> Result<Record<AuthConfig>> {
    let config = auth_configs::get(app, project, id).await?;
    if config.body.status == auth_configs::Status::Disabled {
        return Err(Error::AccountRefused(format!("auth config {id} is disabled")));
    }
    Ok(config)
}

/// Connects an account, or begins to where its user has to agree at the application.
///
/// # Errors
/// When the config is unknown or disabled, fields are missing, the alias is taken, the application does not take the credential,
/// or the store refuses.
pub async fn create(app: &App, project: &Project, request: NewAccount) -> Result<Shown> {
    let mut wanted = Wanted::of(app, project, &request.auth_config, request.user_id, request.values).await?;
    let mode = wanted.config.body.scheme;
    if let Some(given) = &request.scheme
        && auth_configs::offered(&wanted.release, given)? != mode
    {
        let (id, own) = (&wanted.config.id, mode.as_str());
        return Err(Error::AccountRefused(format!(
            "auth config {id} connects with {own}, not with {}",
            crate::cut(given)
        )));
    }
    wanted.alias = alias(request.alias)?;
    wanted.sharing = Sharing::default().with(&request.sharing)?;
    if let Some(scheme) = wanted.scheme() {
        wanted.values = scheme::complete(scheme, wanted.values.clone()).map_err(Error::AccountFields)?;
    }
    // Tokens that another system got go on here.
    let brought = match mode {
        AuthMode::Oauth1 => ["oauth_token", "oauth_token_secret"].iter().all(|name| wanted.values.contains_key(*name)),
        _ => refresh::access_token(&wanted.values).is_some(),
    };
    if mode.redirects() && !brought {
        return flow::create(app, project, wanted, request.callback_url).await;
    }
    let lifetime = wanted.values.get("expires_in").and_then(scheme::text).and_then(|text| text.parse().ok());
    let mut lifetime = lifetime.map(Duration::from_secs);
    if let Some(scheme) = wanted.scheme().filter(|_| obtains(mode) && !brought) {
        let values = wanted.values.clone();
        (wanted.values, lifetime) = app.accounts.obtain(&project.id, &wanted.config, scheme, values).await?;
    }
    if request.validate {
        let values = signing(app, project, &wanted.config, wanted.values.clone()).await?;
        let proxy = auth_configs::way(app, project, &wanted.config).await?;
        trial(app, project, &wanted.release, mode, &values, proxy).await?;
    }
    let (id, now) = (AccountId::random(), app.clock.now());
    let credential = app.accounts.connected(&project.id, &id, wanted.scheme(), &wanted.values, lifetime).await?;
    insert(app, project, &wanted, &id, &wanted.account(Status::Active, None, now)?, &credential, |batch| batch).await?;
    get(app, project, &id).await
}

/// Writes a new account and its credential, with what else belongs to it, if its auth config still lets connections start.
async fn insert(
    app: &App,
    project: &Project,
    wanted: &Wanted,
    id: &AccountId,
    account: &Account,
    credential: &Credential,
    more: impl Fn(Batch) -> Batch,
) -> Result<()> {
    let owner = project.id.as_str();
    let made = app.store.change(&auth_configs::COLLECTION, &wanted.config.id, || async {
        // Changed meanwhile, it lets them start as if the account had been first; deleted or disabled, it does not.
        let config = enabled_config(app, project, &account.auth_config).await?;
        let batch = Batch::at(app.clock.now()).check(&config).insert(owner, id.as_str(), account);
        Ok((more(batch.insert(owner, id.as_str(), credential)), ()))
    });
    made.await.map_err(named_twice)
}

/// Says which account has the alias already, where that is why an account could not be written.
fn named_twice(cause: EditError<Error>) -> Error {
    match cause {
        EditError::Commit(CommitError::Taken { field: "alias_of", .. }) => alias_taken(),
        cause => cause.into(),
    }
}

fn alias_of(user: &str, toolkit: &str, alias: &str) -> String {
    format!("{user}\u{1f}{toolkit}\u{1f}{alias}")
}

fn alias_taken() -> Error {
    Error::AccountRefused("the alias is used by another account of this user and toolkit".into())
}

/// An account of the project.
///
/// # Errors
/// When there is none.
pub async fn get(app: &App, project: &Project, id: &AccountId) -> Result<Shown> {
    let record = record(app, project, id).await?;
    let config = auth_configs::find(app, project, &record.body.auth_config).await?;
    show(app, project, record, config.as_ref()).await
}

/// A page of accounts with their total.
///
/// # Errors
/// When the store cannot be read or a credential does not open.
pub async fn list(app: &App, project: &Project, filter: &Filter, window: Window) -> Result<Listed<Shown>> {
    let mut query = Query::of(project.id.as_str()).window(window);
    for (field, wanted) in [
        ("toolkit", &filter.toolkits),
        ("status", &filter.statuses),
        ("user_id", &filter.users),
        ("auth_config", &filter.auth_configs),
        ("id", &filter.ids),
    ] {
        if !wanted.is_empty() {
            query = query.any_of(field, wanted.iter().map(String::as_str));
        }
    }
    query = match filter.account_type {
        None => query,
        // Accounts from before they could be shared do not say what they are.
        Some(AccountType::Private) => query.is_not("account_type", AccountType::Shared.as_str()),
        Some(AccountType::Shared) => query.is("account_type", AccountType::Shared.as_str()),
    };
    if let Some(until) = filter.until {
        query = query.below("created_at", until.0.saturating_add(1));
    }
    if filter.by_change {
        query = query.by("changed_at");
    }
    if !filter.ascending {
        query = query.newest();
    }
    let Listed { items: records, total, next } = app.store.list::<Account>(&query).await?;
    let mut configs = std::collections::HashMap::new();
    let mut shown = Vec::with_capacity(records.len());
    for record in records {
        let id = record.body.auth_config.clone();
        if !configs.contains_key(&id) {
            configs.insert(id.clone(), auth_configs::find(app, project, &id).await?);
        }
        let config = configs.get(&id).and_then(Option::as_ref);
        match show(app, project, record, config).await {
            // Deleted since the page was read.
            Err(Error::AccountNotFound(_)) => {}
            done => shown.push(done?),
        }
    }
    Ok(Listed { items: shown, total, next })
}

/// Pauses or resumes an account.
///
/// # Errors
/// When there is none, it is not connected, or the store refuses.
pub async fn set_enabled(app: &App, project: &Project, id: &AccountId, enabled: bool) -> Result<()> {
    let now = app.clock.now();
    let event = if enabled { Event::Enabled } else { Event::Disabled };
    let change = |account: &mut Account| -> Result<()> {
        let status = account.status.after(event).ok_or_else(|| cannot(id, account.status, event))?;
        account.pass_to(status, None, now);
        Ok(())
    };
    let done = app.store.edit(project.id.as_str(), id.as_str(), now, change).await.map_err(Error::from)?;
    done.ok_or_else(|| Error::AccountNotFound(id.to_string()))
}

/// Changes of an account. Absent parts stay as they are.
#[derive(Debug, Default)]
pub struct Changes {
    /// A name of the user's own; empty for none.
    pub alias: Option<String>,
    /// The scheme the caller means, and fields of it; null clears one.
    pub fields: Option<(String, Values)>,
    /// Who may use it.
    pub sharing: SharingChange,
}

/// Renames an account, says who may use it, or replaces parts of what was filled in. Answers its status.
///
/// # Errors
/// When there is none, the alias is taken, it is private and lists are given, the fields are not complete, its tokens come from the
/// application, or the store refuses.
pub async fn change(app: &App, project: &Project, id: &AccountId, changes: Changes) -> Result<Status> {
    let alias = changes.alias.map(|alias| self::alias(Some(alias))).transpose()?;
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
            body.alias_of = alias.as_ref().map(|alias| alias_of(&body.user_id, &body.toolkit, alias));
            body.alias.clone_from(alias);
            body.changed_at = now;
        }
        if let Some((scheme, given)) = &changes.fields {
            let release = app.catalog.release(&account.body.toolkit, LATEST)?;
            let mode = auth_configs::offered(&release, scheme)?;
            if mode != account.body.scheme || mode.redirects() {
                return Err(Error::AccountRefused(format!(
                    "account {id} is connected with {}; only fields of that scheme can be changed, and no tokens",
                    account.body.scheme.as_str()
                )));
            }
            let (values, credential) = opened(app, project, &account).await?;
            let scheme = release.scheme(mode);
            let (mut values, mut lifetime) = (replaced(scheme, flow::own(mode, &values), given)?, None);
            if let Some(scheme) = scheme.filter(|_| obtains(mode)) {
                let config = auth_configs::get(app, project, &account.body.auth_config).await?;
                (values, lifetime) = app.accounts.obtain(&project.id, &config, scheme, values).await?;
            }
            let body = app.accounts.connected(&project.id, id, scheme, &values, lifetime).await?;
            batch = batch.update(&Record { body, ..credential });
            let status = account.body.status;
            let status = status.after(Event::Filled).ok_or_else(|| cannot(id, status, Event::Filled))?;
            account.body.pass_to(status, None, now);
        }
        Ok((batch.update(&account), account.body.status))
    });
    changed.await.map_err(named_twice)
}

/// Values with others laid over them; null takes one away.
fn replaced(scheme: Option<&AuthScheme>, mut values: Values, given: &Values) -> Result<Values> {
    let given = match scheme {
        // A key comes under general names, too.
        Some(scheme) => scheme::named(scheme, given.clone()),
        None => given.clone(),
    };
    values.extend(given);
    values.retain(|_, value| !value.is_null());
    match scheme {
        Some(scheme) => scheme::complete(scheme, values).map_err(Error::AccountFields),
        None => Ok(values),
    }
}

/// Asks the application whether it takes the credential of an account, which fails when it does not. Answers the status.
///
/// # Errors
/// When there is no such account, the toolkit has no way to tell, the application does not answer, or the store refuses.
pub async fn check(app: &App, project: &Project, id: &AccountId) -> Result<Status> {
    let account = record(app, project, id).await?;
    let release = app.catalog.release(&account.body.toolkit, LATEST)?;
    let (mut values, _) = opened(app, project, &account).await?;
    let mut proxy = None;
    if let Some(config) = auth_configs::find(app, project, &account.body.auth_config).await? {
        values = signing(app, project, &config, values).await?;
        proxy = auth_configs::way(app, project, &config).await?;
    }
    let rejected = match trial(app, project, &release, account.body.scheme, &values, proxy).await {
        Ok(()) => return Ok(account.body.status),
        Err(Error::CredentialRejected(why)) => why,
        Err(cause) => return Err(cause),
    };
    let now = app.clock.now();
    let change = |account: &mut Account| -> Result<Status> {
        if let Some(status) = account.status.after(Event::Rejected) {
            account.pass_to(status, Some(&rejected), now);
        }
        Ok(account.status)
    };
    let done = app.store.edit(project.id.as_str(), id.as_str(), now, change).await.map_err(Error::from)?;
    done.ok_or_else(|| Error::AccountNotFound(id.to_string()))
}

/// Takes an account's credential back: the application is told to forget its tokens, and they are erased. Answers what the
/// application, or nobody but this server, has forgotten.
///
/// # Errors
/// When there is no such account, it has no credential yet, the application does not answer, or the store refuses; then nothing
/// has changed.
pub async fn revoke(app: &App, project: &Project, id: &AccountId) -> Result<Vec<&'static str>> {
    let account = record(app, project, id).await?;
    let cannot = |status| cannot(id, status, Event::Revoked);
    account.body.status.after(Event::Revoked).ok_or_else(|| cannot(account.body.status))?;
    if account.body.status == Status::Revoked {
        return Ok(Vec::new());
    }
    let (values, _) = opened(app, project, &account).await?;
    let told = match account.body.scheme {
        mode if mode.has_flow() => app.accounts.revoke(&Whose::of(app, project, &account)?, &values).await?,
        _ => vec!["credential"],
    };
    let erased = app.store.change(&COLLECTION, id.as_str(), || async {
        let (mut account, now) = (record(app, project, id).await?, app.clock.now());
        let status = account.body.status;
        let status = status.after(Event::Revoked).ok_or_else(|| cannot(status))?;
        account.body.pass_to(status, None, now);
        // Whoever is at the application just now comes back to nothing.
        account.body.attempt += 1;
        let (_, credential) = opened(app, project, &account).await?;
        let body = Credential::of(app.accounts.seal(&project.id, id, &Values::new()).await?);
        Ok((Batch::at(now).update(&account).update(&Record { body, ..credential }), ()))
    });
    erased.await?;
    Ok(told)
}

/// Deletes an account and erases its credential. With `revoke` the application is told to forget its tokens first, as far as it
/// can be reached.
///
/// # Errors
/// When there is none, or the store refuses.
pub async fn remove(app: &App, project: &Project, id: &AccountId, revoke: bool) -> Result<()> {
    let removed = app.store.change(&COLLECTION, id.as_str(), || async {
        let account = record(app, project, id).await?;
        let (values, credential) = opened(app, project, &account).await?;
        let batch = Batch::at(app.clock.now()).remove(&account).purge(&credential);
        Ok::<_, Error>((batch, (account, values)))
    });
    let (account, values) = removed.await?;
    if revoke && account.body.scheme.has_flow() {
        app.accounts.give_back(&Whose::of(app, project, &account)?, &values).await;
    }
    Ok(())
}

/// Deletes the accounts of a project, and tells their applications to forget the tokens, as far as they can be reached. What is
/// broken off goes on when it is asked for again.
///
/// # Errors
/// When the store refuses.
pub(crate) async fn remove_all(app: &App, project: &Project) -> Result<()> {
    let mut query = Query::of(project.id.as_str()).page(0, REVOKED_AT_ONCE);
    loop {
        let found = app.store.list::<Account>(&query).await?;
        for account in found.items {
            match remove(app, project, &AccountId::parse(&account.id)?, true).await {
                // It has nothing that could be taken back.
                Ok(()) | Err(Error::AccountNotFound(_)) => {}
                Err(cause) => return Err(cause),
            }
        }
        let Some(next) = found.next else { return Ok(()) };
        query = query.after(next);
    }
}

/// Takes back the credentials of every account of an auth config, as far as the application can be reached. The accounts stay.
pub(crate) async fn revoke_all(app: &App, project: &Project, config: &AuthConfigId) -> Result<()> {
    let mut query = Query::of(project.id.as_str())
        .is("auth_config", config.as_str())
        .any_of("status", [Status::Active, Status::Inactive, Status::Expired].map(Status::as_str))
        .page(0, REVOKED_AT_ONCE);
    loop {
        let found = app.store.list::<Account>(&query).await?;
        for account in found.items {
            if let Err(cause) = revoke(app, project, &AccountId::parse(&account.id)?).await {
                tracing::warn!(account = account.id, %cause, "a credential was not taken back with its auth config");
            }
        }
        let Some(next) = found.next else { return Ok(()) };
        query = query.after(next);
    }
}

fn cannot(id: &AccountId, status: Status, event: Event) -> Error {
    let what = match event {
        Event::Enabled => "resumed",
        Event::Disabled => "paused",
        Event::Revoked => "revoked",
        _ => "changed",
    };
    Error::AccountRefused(format!("account {id} is {} and cannot be {what}", status.as_str()))
}

pub(crate) async fn record(app: &App, project: &Project, id: &AccountId) -> Result<Record<Account>> {
    let found = app.store.get(project.id.as_str(), id.as_str()).await?;
    found.ok_or_else(|| Error::AccountNotFound(id.to_string()))
}

/// The values of an account, opened, and the record they are in.
async fn opened(app: &App, project: &Project, record: &Record<Account>) -> Result<(Values, Record<Credential>)> {
    let missing = || Error::AccountNotFound(record.id.clone());
    // Missing means that the account was deleted since it was read.
    let credential = app.store.get::<Credential>(project.id.as_str(), &record.id).await?.ok_or_else(missing)?;
    let key = app.vault.key(project.id.as_str(), app.clock.now()).await?;
    Ok((key.open(place(&project.id, &record.id), &credential.body.values)?, credential))
}

async fn show(
    app: &App,
    project: &Project,
    mut record: Record<Account>,
    config: Option<&Record<AuthConfig>>,
) -> Result<Shown> {
    let (mut values, credential) = opened(app, project, &record).await?;
    if record.body.status.is_connected() && credential.body.is_uncertain(app.clock.now()) {
        record.body.status_reason = Some(refresh::UNKNOWN.to_owned());
    }
    if !matches!(record.body.status, Status::Initializing | Status::Initiated) {
        // It holds a secret, and leads nowhere any more.
        values.remove(REDIRECT_URL);
    }
    let redirect_url = values.get(REDIRECT_URL).and_then(Value::as_str).map(str::to_owned);
    if project.stored.config.mask_secrets {
        let release = app.catalog.release(&record.body.toolkit, LATEST).ok();
        values = scheme::masked(release.as_deref().and_then(|release| scheme_of(release, &record.body)), &values);
    }
    Ok(Shown {
        values,
        redirect_url,
        config_uuid: config.map(|config| config.body.uuid),
        config_disabled: config.is_none_or(|config| config.body.status == auth_configs::Status::Disabled),
        managed: config.is_some_and(|config| config.body.managed),
        record,
    })
}

fn scheme_of<'a>(release: &'a Release, account: &Account) -> Option<&'a manifest::AuthScheme> {
    release.scheme(account.scheme)
}

/// The user a request speaks of.
///
/// # Errors
/// When the name is longer than 256 characters.
pub fn user(given: Option<String>) -> Result<String> {
    let user = given.map(|user| user.trim().to_owned()).filter(|user| !user.is_empty());
    let user = user.unwrap_or_else(|| DEFAULT_USER.to_owned());
    if user.chars().count() > USER {
        return Err(Error::invalid("user_id: at most 256 characters"));
    }
    Ok(user)
}

fn alias(given: Option<String>) -> Result<Option<String>> {
    let alias = given.map(|alias| alias.trim().to_owned()).filter(|alias| !alias.is_empty());
    match alias {
        Some(alias) if alias.chars().count() > 100 || alias.contains('\u{1f}') => {
            Err(Error::invalid("connection.alias: at most 100 printable characters"))
        }
        alias => Ok(alias),
    }
}

/// Reads the `state` or `data` of older clients as values: members of an object.
///
/// # Errors
/// When it is not an object.
pub fn values(name: &str, given: Option<Value>) -> Result<Values> {
    match given {
        None | Some(Value::Null) => Ok(Values::new()),
        Some(Value::Object(members)) => Ok(members),
        Some(_) => Err(Error::invalid(format!("{name}: must be an object"))),
    }
}
