//! Connected accounts: one user's account at one external application, with its credential.
//!
//! The schemes here need no redirect, so an account is ACTIVE as soon as its fields are complete; it can be paused
//! (INACTIVE) and resumed. The credential is a record of its own, so that deleting an account hides the account and erases
//! the credential in one step.

mod grant;
pub mod protocol;
mod scheme;

use manifest::AuthMode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::{Batch, Collection, CommitError, Document, Field, Found, Kind, Query, Record, Time};
use uuid::Uuid;

pub(crate) use grant::{Choice, Granted, Passage, grant, passage};
pub use grant::{Custom, Placed, Source};
pub use scheme::{Values, mask};

use crate::{
    App, Error, Result,
    auth_configs::{self, AuthConfig},
    catalog::{LATEST, Release},
    ids::{AccountId, AuthConfigId},
    projects::Project,
    vault::{Place, Sealed},
};

/// The user when none is named.
pub const DEFAULT_USER: &str = "default";
const USER: usize = 256;

/// The collection this room owns.
pub(crate) static COLLECTION: Collection = Collection {
    name: "connected_accounts",
    fields: &[
        Field::new("user_id", Kind::Text),
        Field::new("toolkit", Kind::Text),
        Field::new("auth_config", Kind::Text),
        Field::new("status", Kind::Text),
        Field::new("changed_at", Kind::Time),
        Field::unique("uuid", Kind::Text),
        Field::unique("alias_of", Kind::Text),
    ],
};

/// Credentials of accounts, erased with them.
pub(crate) static CREDENTIALS: Collection = Collection { name: "credentials", fields: &[] };

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
}

impl Document for Account {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// What a person filled in, under the id of the account.
#[derive(Debug, Serialize, Deserialize)]
struct Credential {
    values: Sealed<Values>,
}

impl Document for Credential {
    const COLLECTION: &'static Collection = &CREDENTIALS;
}

/// Where an account stands. Redirect schemes will use the others of the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    /// It runs.
    Active,
    /// Paused by the project.
    Inactive,
}

impl Status {
    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "ACTIVE",
            Self::Inactive => "INACTIVE",
        }
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
    /// By last change instead of creation.
    pub by_change: bool,
    /// Oldest first.
    pub ascending: bool,
    /// Made at this moment or before.
    pub until: Option<Time>,
}

/// Connects an account.
///
/// # Errors
/// When the config is unknown or disabled, fields are missing, the alias is taken, or the store refuses.
pub async fn create(app: &App, project: &Project, request: NewAccount) -> Result<Shown> {
    let config = auth_configs::get(app, project, &request.auth_config).await?;
    if config.body.status == auth_configs::Status::Disabled {
        return Err(Error::AccountRefused(format!("auth config {} is disabled", config.id)));
    }
    let release = app.catalog.release(&config.body.toolkit, LATEST)?;
    if let Some(given) = &request.scheme
        && auth_configs::offered(&release, given)? != config.body.scheme
    {
        let (id, own) = (&config.id, config.body.scheme.as_str());
        return Err(Error::AccountRefused(format!(
            "auth config {id} connects with {own}, not with {}",
            crate::cut(given)
        )));
    }
    let mut values = auth_configs::credentials(app, project, &config).await?.shared;
    values.extend(request.values);
    let values = match release.scheme(config.body.scheme) {
        Some(scheme) => scheme::complete(scheme, values).map_err(Error::AccountFields)?,
        None => values,
    };
    let user_id = user(request.user_id)?;
    let alias = alias(request.alias)?;
    let (id, now) = (AccountId::random(), app.clock.now());
    let key = app.vault.key(project.id.as_str(), now).await?;
    let body = Account {
        alias_of: alias.as_ref().map(|alias| format!("{user_id}\u{1f}{}\u{1f}{alias}", release.slug)),
        alias,
        user_id,
        toolkit: release.slug.to_string(),
        auth_config: request.auth_config,
        scheme: config.body.scheme,
        status: Status::Active,
        status_reason: None,
        uuid: Uuid::new_v4(),
        changed_at: now,
    };
    let credential = Credential { values: key.seal(place(project, id.as_str()), &values)? };
    let batch = Batch::at(now).check(&config).insert(project.id.as_str(), id.as_str(), &body).insert(
        project.id.as_str(),
        id.as_str(),
        &credential,
    );
    match app.store.commit(batch).await {
        Ok(()) => get(app, project, &id).await,
        Err(CommitError::Taken { field: "alias_of", .. }) => {
            Err(Error::AccountRefused("the alias is used by another account of this user and toolkit".into()))
        }
        Err(CommitError::Stale) => Err(Error::AccountRefused(format!("auth config {} is being changed", config.id))),
        Err(cause) => Err(cause.into()),
    }
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
pub async fn list(app: &App, project: &Project, filter: &Filter, offset: u64, limit: u64) -> Result<(Vec<Shown>, u64)> {
    let mut query = Query::of(project.id.as_str()).page(offset, limit);
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
    if let Some(until) = filter.until {
        query = query.below("created_at", until.0.saturating_add(1));
    }
    if filter.by_change {
        query = query.by("changed_at");
    }
    if !filter.ascending {
        query = query.newest();
    }
    let Found { records, total } = app.store.find::<Account>(&query).await?;
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
    Ok((shown, total))
}

/// Pauses or resumes an account.
///
/// # Errors
/// When there is none, or the store refuses.
pub async fn set_enabled(app: &App, project: &Project, id: &AccountId, enabled: bool) -> Result<()> {
    let now = app.clock.now();
    let change = |account: &mut Account| -> Result<()> {
        account.status = if enabled { Status::Active } else { Status::Inactive };
        account.changed_at = now;
        Ok(())
    };
    let done = app.store.edit(project.id.as_str(), id.as_str(), now, change).await.map_err(Error::from)?;
    done.ok_or_else(|| Error::AccountNotFound(id.to_string()))
}

/// Deletes an account and erases its credential.
///
/// # Errors
/// When there is none, or the store refuses.
pub async fn remove(app: &App, project: &Project, id: &AccountId) -> Result<()> {
    // A change that comes between reading and removing makes it necessary to read again.
    for _ in 0..5 {
        let account = record(app, project, id).await?;
        let credential = app.store.get::<Credential>(project.id.as_str(), id.as_str()).await?;
        let mut batch = Batch::at(app.clock.now()).remove(&account);
        if let Some(credential) = &credential {
            batch = batch.purge(credential);
        }
        match app.store.commit(batch).await {
            Err(CommitError::Stale) => {}
            done => return done.map_err(Into::into),
        }
    }
    Err(Error::Unavailable("the account is being changed".into()))
}

pub(crate) async fn record(app: &App, project: &Project, id: &AccountId) -> Result<Record<Account>> {
    let found = app.store.get(project.id.as_str(), id.as_str()).await?;
    found.ok_or_else(|| Error::AccountNotFound(id.to_string()))
}

/// The values of an account, opened.
async fn open(app: &App, project: &Project, record: &Record<Account>) -> Result<Values> {
    let missing = || Error::AccountNotFound(record.id.clone());
    // Missing means that the account was deleted since it was read.
    let credential = app.store.get::<Credential>(project.id.as_str(), &record.id).await?.ok_or_else(missing)?;
    let key = app.vault.key(project.id.as_str(), app.clock.now()).await?;
    key.open(place(project, &record.id), &credential.body.values)
}

async fn show(
    app: &App,
    project: &Project,
    record: Record<Account>,
    config: Option<&Record<AuthConfig>>,
) -> Result<Shown> {
    let mut values = open(app, project, &record).await?;
    if project.stored.config.mask_secrets {
        let release = app.catalog.release(&record.body.toolkit, LATEST).ok();
        values = scheme::masked(release.as_deref().and_then(|release| scheme_of(release, &record.body)), &values);
    }
    Ok(Shown {
        values,
        config_uuid: config.map(|config| config.body.uuid),
        config_disabled: config.is_none_or(|config| config.body.status == auth_configs::Status::Disabled),
        managed: config.is_some_and(|config| config.body.managed),
        record,
    })
}

fn scheme_of<'a>(release: &'a Release, account: &Account) -> Option<&'a manifest::AuthScheme> {
    release.scheme(account.scheme)
}

fn place<'a>(project: &'a Project, id: &'a str) -> Place<'a> {
    Place { collection: CREDENTIALS.name, project: project.id.as_str(), id, field: "values" }
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
