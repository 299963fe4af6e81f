//! Organisation, projects, and the keys that speak for them.
//!
//! The id of a key's document is the keyed hash of its secret, so that authentication is one `get` and a stolen store holds
//! nothing that authenticates. Holders are remembered in memory; whatever ends a key forgets it there in the same step.

mod keys;
pub mod members;
mod remove;
pub mod scope;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use store::{
    Batch, Collection, CommitError, Document, EditError, Field, Kind, Listed, Query, Record, Store, Time, Window,
};
use uuid::Uuid;
use zeroize::Zeroizing;

pub(crate) use keys::COLLECTION as API_KEYS;
pub use keys::{Holder, KeyKind, Keys, Owner, ShownKey, authenticate, revoke};
pub(crate) use keys::{note_uses, refresh};
pub(crate) use remove::{COLLECTION as REMOVALS, EVERY as REMOVALS_EVERY, erase_left, finish};
pub use remove::{RECORDS_PER_BATCH, remove};
use scope::Rights;

use crate::{
    App, Error, INSTALLATION, Result,
    ids::{OrganisationId, ProjectId},
};

/// The collections this room owns, beside the keys.
pub(crate) static ORGANISATIONS: Collection = Collection {
    name: "organisations",
    // Two servers that start on an empty store at once make one organisation.
    fields: &[Field::unique("name", Kind::Text)],
};
pub(crate) static PROJECTS: Collection = Collection { name: "projects", fields: &[Field::unique("name", Kind::Text)] };

/// Bytes of an address and characters of a name in a project's settings, and what a link to a file may last, in seconds.
const URL: usize = 2_048;
const DISPLAY_NAME: usize = 100;
const FILE_URL_EXPIRY: std::ops::RangeInclusive<u32> = 60..=604_800;

/// The organisation, as stored. There is one per installation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Organisation {
    /// For people.
    pub name: String,
    /// The next number for clients that expect running numbers.
    #[serde(default)]
    next_number: i64,
}

impl Organisation {
    /// Whether a project was ever made: a first start that was interrupted, or is under way elsewhere, has made none yet.
    #[must_use]
    pub fn has_had_projects(&self) -> bool {
        self.next_number > 1
    }
}

impl Document for Organisation {
    const COLLECTION: &'static Collection = &ORGANISATIONS;
}

/// A project, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredProject {
    /// 3 to 75 letters, digits, `_` and `-`; unique in the organisation.
    pub name: String,
    /// A running number.
    pub number: i64,
    /// The id of older clients.
    pub uuid: Uuid,
    /// What the project decided for itself.
    #[serde(default)]
    pub config: Config,
}

impl Document for StoredProject {
    const COLLECTION: &'static Collection = &PROJECTS;
}

/// A project as requests see it.
#[derive(Debug, Clone)]
pub struct Project {
    /// Id.
    pub id: ProjectId,
    /// Its id again, as the sandbox counts its calls.
    pub tenant: Arc<str>,
    /// Who it belongs to.
    pub organisation: OrganisationId,
    /// What is stored.
    pub stored: StoredProject,
    /// When it was made.
    pub created_at: Time,
    /// When it was changed.
    pub updated_at: Time,
}

/// What a project decided for itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// A call that pins an account must name its user too.
    pub two_factor: bool,
    /// Secrets in answers are masked.
    pub mask_secrets: bool,
    /// What the execution log keeps.
    pub log_visibility: LogVisibility,
    /// MCP endpoints want the project's key.
    pub require_mcp_key: bool,
    /// For hosted pages.
    pub logo_url: Option<String>,
    /// For hosted pages.
    pub display_name: Option<String>,
    /// Hosted pages may connect accounts with the server's own credentials.
    pub hosted_links: bool,
    /// Seconds for which a link to a file works.
    pub file_url_expiry: u32,
    /// Where a person's browser is sent before an account becomes active, so that the application can vouch for the person.
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
    /// Refuses what no answer or page could use; one line each.
    fn check(&self) -> Result<()> {
        let mut problems = Vec::new();
        for (name, url) in [("logo_url", &self.logo_url), ("oauth_callback_verifier_url", &self.verifier_url)] {
            let is_web = |url: &String| url.starts_with("https://") || url.starts_with("http://");
            if url.as_ref().is_some_and(|url| !is_web(url) || url.len() > URL) {
                problems.push(format!("{name}: must be an http address of at most {URL} bytes"));
            }
        }
        if self.display_name.as_ref().is_some_and(|name| name.chars().count() > DISPLAY_NAME) {
            problems.push(format!("display_name: at most {DISPLAY_NAME} characters"));
        }
        if !FILE_URL_EXPIRY.contains(&self.file_url_expiry) {
            let (least, most) = (FILE_URL_EXPIRY.start(), FILE_URL_EXPIRY.end());
            problems.push(format!("signed_url_file_expiry_in_seconds: must be {least} to {most}"));
        }
        if problems.is_empty() { Ok(()) } else { Err(Error::Invalid(problems)) }
    }
}

/// What the execution log keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogVisibility {
    /// Arguments and results, sealed.
    ShowAll,
    /// Only that a tool ran.
    DontStoreData,
}

/// A project to be made.
#[derive(Debug, Clone)]
pub struct NewProject {
    /// See [`StoredProject::name`].
    pub name: String,
    /// What it decides for itself.
    pub config: Config,
    /// What restricts the key to make with it; absent for no key.
    pub key: Option<Rights>,
}

/// Makes the organisation of a new installation, with a key that is shown once.
///
/// # Errors
/// [`Error::ProjectNameTaken`] when another server has just made it, or the store refuses.
pub async fn found(app: &App, name: &str) -> Result<(OrganisationId, Zeroizing<String>)> {
    let (id, now) = (OrganisationId::random(), app.clock.now());
    let body = Organisation { name: name.to_owned(), next_number: 1 };
    let (key, batch) =
        keys::mint(app, Batch::at(now), KeyKind::Organisation, id.as_str(), &id, keys::MINTED, Rights::default())
            .await?;
    match app.store.commit(batch.insert(INSTALLATION, id.as_str(), &body)).await {
        Ok(()) => Ok((id, key.secret)),
        Err(CommitError::Taken { .. }) => Err(Error::ProjectNameTaken(name.to_owned())),
        Err(cause) => Err(cause.into()),
    }
}

/// The organisation, when the installation has one already.
///
/// # Errors
/// When the store cannot be read.
pub async fn organisation(app: &App) -> Result<Option<Record<Organisation>>> {
    Ok(app.store.find(&Query::of(INSTALLATION).page(0, 1)).await?.records.into_iter().next())
}

/// The oldest key of the organisation; a new one when all were revoked, so that an operator is never locked out.
///
/// # Errors
/// When the store does not answer.
pub async fn organisation_key(app: &App, id: &OrganisationId) -> Result<Zeroizing<String>> {
    if let Some(key) = show_keys(app, id.as_str()).await?.into_iter().next() {
        return Ok(key.secret);
    }
    let (now, name) = (app.clock.now(), keys::MINTED);
    let (key, batch) =
        keys::mint(app, Batch::at(now), KeyKind::Organisation, id.as_str(), id, name, Rights::default()).await?;
    app.store.commit(batch).await?;
    Ok(key.secret)
}

/// Makes a project.
///
/// # Errors
/// When the name is malformed or taken, or the store refuses.
pub async fn create(
    app: &App,
    organisation: &OrganisationId,
    request: NewProject,
) -> Result<(Project, Option<ShownKey>)> {
    check_name(&request.name)?;
    request.config.check()?;
    let now = app.clock.now();
    let id = ProjectId::random();
    // Another request may take the same number first; then the next one is ours.
    let made = app.store.change(&ORGANISATIONS, organisation.as_str(), || async {
        let mut owner = owner(app, organisation).await?;
        let stored = StoredProject {
            name: request.name.clone(),
            number: owner.body.next_number,
            uuid: Uuid::new_v4(),
            config: request.config.clone(),
        };
        owner.body.next_number += 1;
        let mut batch = Batch::at(now).insert(organisation.as_str(), id.as_str(), &stored).update(&owner);
        let mut key = None;
        if let Some(rights) = request.key.clone() {
            let (made, with_key) =
                keys::mint(app, batch, KeyKind::Project, id.as_str(), organisation, keys::MINTED, rights).await?;
            (key, batch) = (Some(made), with_key);
        }
        Ok((batch, (stored, key)))
    });
    match made.await {
        Ok((stored, key)) => {
            let (organisation, tenant) = (organisation.clone(), id.as_str().into());
            Ok((Project { id, tenant, organisation, stored, created_at: now, updated_at: now }, key))
        }
        Err(EditError::Commit(CommitError::Taken { .. })) => Err(Error::ProjectNameTaken(request.name)),
        Err(cause) => Err(cause.into()),
    }
}

/// A project of the organisation.
///
/// # Errors
/// When there is none.
pub async fn get(app: &App, organisation: &OrganisationId, id: &ProjectId) -> Result<Project> {
    Project::of(organisation.clone(), record(app, organisation, id).await?)
}

/// A project, for whoever comes without a key.
pub(crate) async fn lookup(app: &App, id: &ProjectId) -> Result<Project> {
    let found = app.store.lookup::<StoredProject>(id.as_str()).await?;
    let record = found.ok_or_else(|| Error::ProjectNotFound(id.to_string()))?;
    Project::of(OrganisationId::parse(&record.project)?, record)
}

/// A page of the organisation's projects, newest first, with their total.
///
/// # Errors
/// When the store cannot be read.
pub async fn list(app: &App, organisation: &OrganisationId, window: Window) -> Result<Listed<Project>> {
    let query = Query::of(organisation.as_str()).newest().window(window);
    let listed = app.store.list::<StoredProject>(&query).await?;
    listed.try_map(|record| Project::of(organisation.clone(), record))
}

/// Whether there is such a project, or not any more.
pub(crate) async fn is_live(store: &Store, id: &str) -> Result<bool> {
    Ok(store.lookup::<StoredProject>(id).await?.is_some())
}

/// Makes a record in a project, unless the project has been deleted.
pub(crate) async fn insert<T: Document>(
    app: &App,
    project: &Project,
    id: &str,
    body: &T,
) -> std::result::Result<(), EditError<Error>> {
    let made = app.store.change(&PROJECTS, project.id.as_str(), || async {
        let owner = record(app, &project.organisation, &project.id).await?;
        Ok((Batch::at(app.clock.now()).check(&owner).insert(project.id.as_str(), id, body), ()))
    });
    made.await
}

/// Changes what a project decided for itself, and answers all of it.
///
/// # Errors
/// When the change is refused or breaks a rule, the project is gone, or the store refuses.
pub async fn configure(app: &App, project: &Project, change: impl Fn(&mut Config) -> Result<()>) -> Result<Config> {
    let changed = app.store.change(&PROJECTS, project.id.as_str(), || async {
        let mut record = record(app, &project.organisation, &project.id).await?;
        change(&mut record.body.config)?;
        record.body.config.check()?;
        Ok((Batch::at(app.clock.now()).update(&record).announce(), record.body.config))
    });
    // Keys in memory carry the settings.
    Ok(app.keys.forget(project.id.as_str(), changed).await?)
}

/// Deletes every key of a project and makes one new one.
///
/// # Errors
/// When there is no such project, or the store refuses.
pub async fn regenerate_key(app: &App, organisation: &OrganisationId, id: &ProjectId) -> Result<ShownKey> {
    // The new one is not there yet, so it is not among those that end.
    let replaced = keys::end(
        app,
        id.as_str(),
        |_| true,
        || async {
            let batch = Batch::at(app.clock.now()).check(&record(app, organisation, id).await?);
            let (name, rights) = (keys::MINTED, Rights::default());
            let (key, batch) =
                keys::mint(app, batch, KeyKind::Project, id.as_str(), organisation, name, rights).await?;
            Ok((batch, key))
        },
    );
    replaced.await
}

/// Makes one more key of a project.
///
/// # Errors
/// When there is no such project, it has a hundred keys, the name is no name, or the store refuses.
pub async fn add_key(
    app: &App,
    organisation: &OrganisationId,
    id: &ProjectId,
    name: &str,
    rights: Rights,
) -> Result<ShownKey> {
    let begin = || async { Ok(Batch::at(app.clock.now()).check(&record(app, organisation, id).await?)) };
    keys::add(app, begin, id.as_str(), organisation, name, rights).await
}

/// Ends one key of a project at once.
///
/// # Errors
/// When there is no such project or key, or the store refuses.
pub async fn remove_key(app: &App, organisation: &OrganisationId, id: &ProjectId, key: &str) -> Result<()> {
    record(app, organisation, id).await?;
    if !show_keys(app, id.as_str()).await?.iter().any(|own| own.id == key) {
        return Err(Error::KeyNotFound(crate::cut(key)));
    }
    keys::end(app, id.as_str(), |own| own == key, || async { Ok((Batch::at(app.clock.now()), ())) }).await
}

/// The keys of a project or organisation, opened, oldest first.
///
/// # Errors
/// When the store cannot be read or a key does not open.
pub async fn show_keys(app: &App, owner: &str) -> Result<Vec<ShownKey>> {
    let mut shown = Vec::new();
    for record in keys::of(app, owner).await? {
        shown.push(keys::show(app, &record).await?);
    }
    Ok(shown)
}

async fn owner(app: &App, id: &OrganisationId) -> Result<Record<Organisation>> {
    let found = app.store.get::<Organisation>(INSTALLATION, id.as_str()).await?;
    found.ok_or_else(|| Error::Internal(format!("the organization {id} of a key does not exist")))
}

pub(crate) async fn record(app: &App, organisation: &OrganisationId, id: &ProjectId) -> Result<Record<StoredProject>> {
    let found = app.store.get::<StoredProject>(organisation.as_str(), id.as_str()).await?;
    found.ok_or_else(|| Error::ProjectNotFound(id.to_string()))
}

impl Project {
    /// Its name for people.
    #[must_use]
    pub fn shown_name(&self) -> &str {
        self.stored.config.display_name.as_deref().unwrap_or(&self.stored.name)
    }

    fn of(organisation: OrganisationId, record: Record<StoredProject>) -> Result<Self> {
        let Record { id, created_at, updated_at, body: stored, .. } = record;
        Ok(Self { id: ProjectId::parse(&id)?, tenant: id.into(), organisation, stored, created_at, updated_at })
    }
}

fn check_name(name: &str) -> Result<()> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if (3..=75).contains(&name.len()) && name.bytes().all(allowed) {
        return Ok(());
    }
    Err(Error::invalid("name: must be 3 to 75 letters, digits, `_` and `-`"))
}

/// What a holder of a project key acts for; cheap to clone.
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
