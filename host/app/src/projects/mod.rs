//! The organization, its projects, and their API keys.
//!
//! The id of a key's record is the keyed hash of its secret. Authentication is therefore one
//! lookup, and a stolen store holds nothing that authenticates. Key holders are cached in memory.
//! Every operation that ends a key also removes it from the cache in the same step.

pub mod errors;
pub mod idempotency;
mod keys;
pub mod members;
pub mod permissions;
pub mod quotas;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use store::{
    Batch, Collection, CommitError, Document, EditError, Field, Kind, Listed, Query, Record, Store,
    Time, Window,
};
use uuid::Uuid;
use zeroize::Zeroizing;

use keys::NewKey;
pub(crate) use keys::{COLLECTION as API_KEYS, revoke_where as revoke_keys_where};
pub use keys::{
    Holder, KeyCache, KeyKind, MAX_KEYS_PER_OWNER, Owner, ShownKey, authenticate, revoke,
};
pub(crate) use keys::{holder_by_record, lookup_cached, refresh, write_key_uses};
use permissions::KeyRestrictions;

use crate::{
    App, Error, Result,
    core::{
        AUDIT_LOG_TARGET, INSTALLATION_PROJECT,
        ids::{OrganizationId, ProjectId},
    },
};

/// The collection of organizations.
pub(crate) static ORGANIZATIONS_COLLECTION: Collection = Collection {
    name: "organisations",
    // Two servers that start on an empty store at the same time must create only one organization.
    fields: &[Field::unique("name", Kind::Text)],
};
/// The collection of projects.
pub(crate) static PROJECTS_COLLECTION: Collection = Collection {
    name: "projects",
    fields: &[Field::unique("name", Kind::Text)],
};

/// Maximum length of a URL in a project's settings, in bytes.
const MAX_URL_BYTES: usize = 2_048;
/// Maximum length of a display name, in characters.
const MAX_DISPLAY_NAME_CHARS: usize = 100;
/// Allowed lifetimes of a link to a file, in seconds.
const FILE_URL_EXPIRY_SECONDS: std::ops::RangeInclusive<u32> = 60..=604_800;

/// The organization as stored. An installation has exactly one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Organization {
    /// The display name.
    pub name: String,
    /// The number of the next project, for clients that expect running numbers.
    #[serde(default)]
    next_number: i64,
}

impl Organization {
    /// Returns true if a project was ever created. After a first start that was interrupted or is
    /// still running on another server, none was created yet.
    #[must_use]
    pub fn has_had_projects(&self) -> bool {
        self.next_number > 1
    }
}

impl Document for Organization {
    const COLLECTION: &'static Collection = &ORGANIZATIONS_COLLECTION;
}

/// A project as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredProject {
    /// The name: 3 to 75 letters, digits, `_` and `-`, unique in the organization.
    pub name: String,
    /// The running number.
    pub number: i64,
    /// The legacy id.
    pub uuid: Uuid,
    /// The settings of the project.
    #[serde(default)]
    pub config: Config,
}

impl Document for StoredProject {
    const COLLECTION: &'static Collection = &PROJECTS_COLLECTION;
}

/// A project as requests see it.
#[derive(Debug, Clone)]
pub struct Project {
    /// The id.
    pub id: ProjectId,
    /// The id as the tenant that the sandbox counts calls by.
    pub tenant: Arc<str>,
    /// The organization that the project belongs to.
    pub organization: OrganizationId,
    /// The stored body.
    pub stored: StoredProject,
    /// The creation time.
    pub created_at: Time,
    /// The time of the last change.
    pub updated_at: Time,
}

/// The settings of a project.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// If true, a call that names a connected account must also name its user.
    pub two_factor: bool,
    /// If true, secrets in responses are masked.
    pub mask_secrets: bool,
    /// The data that the execution log keeps.
    pub log_visibility: LogVisibility,
    /// If true, MCP endpoints require the project's key.
    pub require_mcp_key: bool,
    /// The logo shown on hosted pages.
    pub logo_url: Option<String>,
    /// The project name shown on hosted pages.
    pub display_name: Option<String>,
    /// If true, hosted pages may connect accounts with the server's own OAuth credentials.
    pub hosted_links: bool,
    /// The lifetime of a link to a file, in seconds.
    pub file_url_expiry: u32,
    /// The URL that a user's browser is sent to before an account becomes active, so that the
    /// application can verify the user.
    pub verifier_url: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            two_factor: true,
            mask_secrets: true,
            log_visibility: LogVisibility::ShowAll,
            require_mcp_key: false,
            logo_url: None,
            display_name: None,
            hosted_links: true,
            file_url_expiry: 3_600,
            verifier_url: None,
        }
    }
}

impl Config {
    /// Checks the settings and reports each invalid value on its own line.
    fn check(&self) -> Result<()> {
        let mut problems = Vec::new();
        for (name, url) in [
            ("logo_url", &self.logo_url),
            ("oauth_callback_verifier_url", &self.verifier_url),
        ] {
            let is_web = |url: &String| url.starts_with("https://") || url.starts_with("http://");
            if url
                .as_ref()
                .is_some_and(|url| !is_web(url) || url.len() > MAX_URL_BYTES)
            {
                problems.push(format!(
                    "{name}: must be an http or https URL of at most {MAX_URL_BYTES} bytes"
                ));
            }
        }
        if self
            .display_name
            .as_ref()
            .is_some_and(|name| name.chars().count() > MAX_DISPLAY_NAME_CHARS)
        {
            problems.push(format!(
                "display_name: at most {MAX_DISPLAY_NAME_CHARS} characters"
            ));
        }
        if !FILE_URL_EXPIRY_SECONDS.contains(&self.file_url_expiry) {
            let (least, most) = (
                FILE_URL_EXPIRY_SECONDS.start(),
                FILE_URL_EXPIRY_SECONDS.end(),
            );
            problems.push(format!(
                "signed_url_file_expiry_in_seconds: must be {least} to {most}"
            ));
        }
        if problems.is_empty() {
            Ok(())
        } else {
            Err(errors::invalid(problems))
        }
    }
}

/// The data that the execution log keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogVisibility {
    /// Arguments and results are kept, sealed.
    ShowAll,
    /// Arguments and results are not kept; only the execution itself is recorded.
    DontStoreData,
}

/// A project to be created.
#[derive(Debug, Clone)]
pub struct NewProject {
    /// The name, with the rules of [`StoredProject::name`].
    pub name: String,
    /// The settings.
    pub config: Config,
    /// The restrictions of the key that is created with the project, or `None` to create no key.
    pub key: Option<KeyRestrictions>,
}

/// Creates the organization of a new installation with a key. The key is shown only once.
///
/// # Errors
/// Returns [`errors::PROJECT_NAME_TAKEN`] if another server has just created it, or another error
/// if the store refuses.
pub async fn create_organization(
    app: &App,
    name: &str,
) -> Result<(OrganizationId, Zeroizing<String>)> {
    let (id, now) = (OrganizationId::random(), app.clock.now());
    let body = Organization {
        name: name.to_owned(),
        next_number: 1,
    };
    let new = NewKey::first(KeyKind::Organization, id.as_str(), &id);
    let (key, batch) = new.create(app, Batch::at(now)).await?;
    match app
        .store
        .commit(batch.insert(INSTALLATION_PROJECT, id.as_str(), &body))
        .await
    {
        Ok(()) => Ok((id, key.secret)),
        Err(CommitError::Taken { .. }) => Err(errors::project_name_taken(name)),
        Err(cause) => Err(cause.into()),
    }
}

/// Returns the organization, or `None` if the installation has none yet.
pub async fn organization(app: &App) -> Result<Option<Record<Organization>>> {
    Ok(app
        .store
        .first(Query::for_project(INSTALLATION_PROJECT))
        .await?)
}

/// Returns the oldest key of the organization. Creates a new key if all were revoked, so that an
/// operator is never locked out.
///
/// # Errors
/// Fails if the store refuses or a key cannot be decrypted.
pub async fn organization_key(app: &App, id: &OrganizationId) -> Result<Zeroizing<String>> {
    if let Some(key) = show_keys(app, id.as_str()).await?.into_iter().next() {
        return Ok(key.secret);
    }
    let new = NewKey::first(KeyKind::Organization, id.as_str(), id);
    let (key, batch) = new.create(app, Batch::at(app.clock.now())).await?;
    app.store.commit(batch).await?;
    Ok(key.secret)
}

/// Creates a project.
///
/// # Errors
/// Returns an error if the name is malformed or taken, a setting is invalid, or the store refuses.
pub async fn create(
    app: &App,
    organization: &OrganizationId,
    request: NewProject,
) -> Result<(Project, Option<ShownKey>)> {
    check_name(&request.name)?;
    request.config.check()?;
    let now = app.clock.now();
    let id = ProjectId::random();
    // If another request takes the same number first, the change runs again with the next number.
    let created = app
        .store
        .change(&ORGANIZATIONS_COLLECTION, organization.as_str(), || async {
            let mut owner = owner(app, organization).await?;
            let stored = StoredProject {
                name: request.name.clone(),
                number: owner.body.next_number,
                uuid: Uuid::new_v4(),
                config: request.config.clone(),
            };
            owner.body.next_number += 1;
            let mut batch = Batch::at(now)
                .insert(organization.as_str(), id.as_str(), &stored)
                .update(&owner);
            let mut key = None;
            if let Some(rights) = request.key.clone() {
                let mut new = NewKey::first(KeyKind::Project, id.as_str(), organization);
                new.rights = rights;
                let (created, with_key) = new.create(app, batch).await?;
                (key, batch) = (Some(created), with_key);
            }
            Ok((batch, (stored, key)))
        });
    match created.await {
        Ok((stored, key)) => {
            let (organization, tenant) = (organization.clone(), id.as_str().into());
            tracing::info!(target: AUDIT_LOG_TARGET, project = id.as_str(), "a project was created");
            Ok((
                Project {
                    id,
                    tenant,
                    organization,
                    stored,
                    created_at: now,
                    updated_at: now,
                },
                key,
            ))
        }
        Err(EditError::Commit(CommitError::Taken { .. })) => {
            Err(errors::project_name_taken(request.name))
        }
        Err(cause) => Err(cause.into()),
    }
}

/// Returns a project of the organization.
///
/// # Errors
/// Returns an error if the project does not exist.
pub async fn get(app: &App, organization: &OrganizationId, id: &ProjectId) -> Result<Project> {
    Project::from_record(organization.clone(), record(app, organization, id).await?)
}

/// Returns a project by its id alone, for callers without a key. Fails if there is no such project.
pub(crate) async fn lookup(app: &App, id: &ProjectId) -> Result<Project> {
    let found = find(app, id).await?;
    found.ok_or_else(|| errors::project_not_found(id))
}

/// Returns a project by its id alone, if it exists. Fails if the store cannot be read.
pub(crate) async fn find(app: &App, id: &ProjectId) -> Result<Option<Project>> {
    let found = app.store.lookup::<StoredProject>(id.as_str()).await?;
    let project =
        found.map(|record| Project::from_record(OrganizationId::parse(&record.project)?, record));
    project.transpose()
}

/// Returns a page of the organization's projects, newest first, and their total number.
pub async fn list(
    app: &App,
    organization: &OrganizationId,
    window: Window,
) -> Result<Listed<Project>> {
    let query = Query::for_project(organization.as_str())
        .descending()
        .window(window);
    let listed = app.store.list::<StoredProject>(&query).await?;
    listed.try_map(|record| Project::from_record(organization.clone(), record))
}

/// Returns the oldest project of an organization, if it has any.
///
/// # Errors
/// Fails if the store cannot be read.
pub async fn oldest(app: &App, organization: &OrganizationId) -> Result<Option<Project>> {
    let query = Query::for_project(organization.as_str());
    let oldest = app.store.first::<StoredProject>(query).await?;
    oldest
        .map(|record| Project::from_record(organization.clone(), record))
        .transpose()
}

/// Returns true if the project exists, that is, was created and not deleted. Fails if the store
/// cannot be read.
pub(crate) async fn is_live(store: &Store, id: &str) -> Result<bool> {
    Ok(store.lookup::<StoredProject>(id).await?.is_some())
}

/// Inserts a record into a project, unless the project has been deleted.
pub(crate) async fn insert<T: Document>(
    app: &App,
    project: &Project,
    id: &str,
    body: &T,
) -> std::result::Result<(), EditError<Error>> {
    let created = app
        .store
        .change(&PROJECTS_COLLECTION, project.id.as_str(), || async {
            let owner = record(app, &project.organization, &project.id).await?;
            Ok((
                Batch::at(app.clock.now())
                    .check(&owner)
                    .insert(project.id.as_str(), id, body),
                (),
            ))
        });
    created.await
}

/// Changes the settings of a project and returns all of them.
///
/// # Errors
/// Returns an error if the change breaks a rule, the project does not exist, or the store refuses.
pub async fn configure(
    app: &App,
    project: &Project,
    change: impl Fn(&mut Config),
) -> Result<Config> {
    let changed = app
        .store
        .change(&PROJECTS_COLLECTION, project.id.as_str(), || async {
            let mut record = record(app, &project.organization, &project.id).await?;
            change(&mut record.body.config);
            record.body.config.check()?;
            Ok((
                Batch::at(app.clock.now()).update(&record).announce(),
                record.body.config,
            ))
        });
    // Cached key holders contain the project's settings.
    let config = app.keys.invalidate(project.id.as_str(), changed).await?;
    tracing::info!(
        target: AUDIT_LOG_TARGET,
        project = project.id.as_str(),
        "the settings of a project were changed"
    );
    Ok(config)
}

/// Deletes every key of a project and creates a new one.
///
/// # Errors
/// Returns an error if the project does not exist or the store refuses.
pub async fn regenerate_key(
    app: &App,
    organization: &OrganizationId,
    id: &ProjectId,
) -> Result<ShownKey> {
    // The new key is not in the store yet, so it is not among the keys that end.
    let replaced = keys::revoke_where(
        app,
        id.as_str(),
        |_| true,
        || async {
            let batch = Batch::at(app.clock.now()).check(&record(app, organization, id).await?);
            let new = NewKey::first(KeyKind::Project, id.as_str(), organization);
            let (key, batch) = new.create(app, batch).await?;
            Ok((batch, key))
        },
    );
    let key = replaced.await?;
    tracing::info!(
        target: AUDIT_LOG_TARGET,
        project = id.as_str(),
        key = key.id,
        "the keys of a project were replaced"
    );
    Ok(key)
}

/// Adds a key to a project.
///
/// # Errors
/// Returns an error if the project does not exist or has a hundred keys, the name is invalid, or
/// the store refuses.
pub async fn add_key(
    app: &App,
    organization: &OrganizationId,
    id: &ProjectId,
    name: &str,
    rights: KeyRestrictions,
) -> Result<ShownKey> {
    let prepare =
        // The project is written, so that requests in parallel count the keys one after another.
        || async { Ok(Batch::at(app.clock.now()).update(&record(app, organization, id).await?)) };
    let key = keys::add(app, prepare, id.as_str(), organization, name, rights).await?;
    tracing::info!(target: AUDIT_LOG_TARGET, project = id.as_str(), key = key.id, "a key was added");
    Ok(key)
}

/// Ends one key of a project at once.
///
/// # Errors
/// Returns an error if the project or the key does not exist, or the store refuses.
pub async fn remove_key(
    app: &App,
    organization: &OrganizationId,
    id: &ProjectId,
    key: &str,
) -> Result<()> {
    record(app, organization, id).await?;
    if !show_keys(app, id.as_str())
        .await?
        .iter()
        .any(|own| own.id == key)
    {
        return Err(errors::key_not_found(crate::core::truncate(key)));
    }
    keys::revoke_where(
        app,
        id.as_str(),
        |own| own == key,
        || async { Ok((Batch::at(app.clock.now()), ())) },
    )
    .await?;
    tracing::info!(target: AUDIT_LOG_TARGET, project = id.as_str(), key, "a key was revoked");
    Ok(())
}

/// Returns the keys of a project or organization with their secrets, oldest first.
///
/// # Errors
/// Returns an error if the store cannot be read or a key does not open.
pub async fn show_keys(app: &App, owner: &str) -> Result<Vec<ShownKey>> {
    let mut shown = Vec::new();
    for record in keys::list(app, owner).await? {
        shown.push(keys::reveal(app, &record).await?);
    }
    Ok(shown)
}

async fn owner(app: &App, id: &OrganizationId) -> Result<Record<Organization>> {
    let found = app
        .store
        .get::<Organization>(INSTALLATION_PROJECT, id.as_str())
        .await?;
    found.ok_or_else(|| errors::internal(format!("the organization {id} of a key does not exist")))
}

pub(crate) async fn record(
    app: &App,
    organization: &OrganizationId,
    id: &ProjectId,
) -> Result<Record<StoredProject>> {
    let found = app
        .store
        .get::<StoredProject>(organization.as_str(), id.as_str())
        .await?;
    found.ok_or_else(|| errors::project_not_found(id))
}

impl Project {
    /// Returns the display name, or the name if no display name is set.
    #[must_use]
    pub fn shown_name(&self) -> &str {
        self.stored
            .config
            .display_name
            .as_deref()
            .unwrap_or(&self.stored.name)
    }

    fn from_record(organization: OrganizationId, record: Record<StoredProject>) -> Result<Self> {
        let Record {
            id,
            created_at,
            updated_at,
            body: stored,
            ..
        } = record;
        Ok(Self {
            id: ProjectId::parse(&id)?,
            tenant: id.into(),
            organization,
            stored,
            created_at,
            updated_at,
        })
    }
}

fn check_name(name: &str) -> Result<()> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if (3..=75).contains(&name.len()) && name.bytes().all(allowed) {
        return Ok(());
    }
    Err(errors::invalid(
        "name: must be 3 to 75 letters, digits, `_` and `-`",
    ))
}

/// A project shared by the holders of its keys. It is cheap to clone.
pub type SharedProject = Arc<Project>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn project_names_keep_their_rule() {
        for name in ["abc", "A_b-9", &"x".repeat(75)] {
            check_name(name).unwrap();
        }
        for name in ["", "ab", "a b", "å-long", &"x".repeat(76)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
