//! The organization, its projects, and their API keys.
//!
//! The id of a key's record is the keyed hash of its secret. Authentication is therefore one
//! lookup, and a stolen store holds nothing that authenticates. Key holders are cached in memory.
//! Every operation that ends a key also removes it from the cache in the same step.

mod config;
mod create;
pub mod errors;
pub mod idempotency;
mod keys;
pub mod members;
mod organizations;
pub mod permissions;
pub mod quotas;
pub(crate) mod record_limits;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use store::{
    Batch, Collection, Document, EditError, Erasure, Field, Kind, Listed, Query, Record, Store,
    Time, Window,
};
use uuid::Uuid;

pub use config::{Config, LogVisibility};
pub use create::{NewProject, create};
pub(crate) use keys::{
    COLLECTION as API_KEYS, holder_by_record, keep_key_uses, lookup_cached, refresh,
    revoke_where as revoke_keys_where, write_key_uses,
};
pub use keys::{
    Holder, KeyCache, KeyKind, MAX_KEYS_PER_OWNER, Owner, ShownKey, add_key, authenticate,
    regenerate_key, remove_key, revoke, show_keys,
};
pub(crate) use organizations::ORGANIZATIONS_COLLECTION;
pub use organizations::{Organization, create_organization, organization, organization_key};
pub use record_limits::RecordLimits;

use crate::{
    App, Error, Result,
    core::{
        AUDIT_LOG_TARGET,
        ids::{OrganizationId, ProjectId},
        visible::is_plain_line,
    },
};

pub(crate) static PROJECTS_COLLECTION: Collection = Collection {
    name: "projects",
    erasure: Erasure::Other(
        "the hidden record of a deleted project shows that its data must be erased",
    ),
    fields: &[Field::unique("name", Kind::Text)],
};

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

/// Returns a project of the organization. Fails if the project does not exist.
pub async fn get(app: &App, organization: &OrganizationId, id: &ProjectId) -> Result<Project> {
    Project::from_record(record(app, organization, id).await?)
}

/// Returns a project by its id alone, for callers without a key. Fails if it does not exist.
pub(crate) async fn lookup(app: &App, id: &ProjectId) -> Result<Project> {
    let found = find(app, id).await?;
    found.ok_or_else(|| errors::project_not_found(id))
}

/// Returns a project by its id alone, if it exists. Fails if the store cannot be read.
pub(crate) async fn find(app: &App, id: &ProjectId) -> Result<Option<Project>> {
    let found = app.store.lookup::<StoredProject>(id.as_str()).await?;
    found.map(Project::from_record).transpose()
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
    listed.try_map(Project::from_record)
}

/// Returns the oldest project of an organization, if it has any.
pub async fn oldest(app: &App, organization: &OrganizationId) -> Result<Option<Project>> {
    let query = Query::for_project(organization.as_str());
    let oldest = app.store.first(query).await?;
    oldest.map(Project::from_record).transpose()
}

/// Returns true if the project exists: it was created and not deleted. Fails if the store cannot be
/// read.
pub(crate) async fn is_live(store: &Store, id: &str) -> Result<bool> {
    Ok(store.lookup::<StoredProject>(id).await?.is_some())
}

/// Counts a record that a project adds. Fails if the project has added too many bytes in a day.
pub(crate) fn count_record<T: Document>(app: &App, project: &Project, body: &T) -> Result<()> {
    let body = serde_json::to_vec(body).map_err(errors::internal)?;
    record_limits::count_bytes(app, project.id.as_str(), body.len())
}

/// Inserts a record into a project, and returns it as it was stored. Fails if the project has been
/// deleted or has added too many bytes in a day.
pub(crate) async fn insert<T: Document>(
    app: &App,
    project: &Project,
    id: &str,
    body: T,
) -> std::result::Result<Record<T>, EditError<Error>> {
    let owner = project.id.as_str();
    count_record(app, project, &body).map_err(EditError::Change)?;
    let created = app.store.change(&PROJECTS_COLLECTION, owner, || async {
        let record = record(app, &project.organization, &project.id).await?;
        let now = app.clock.now();
        let batch = Batch::at(now).check(&record);
        Ok((batch.insert(owner, id, &body), now))
    });
    let now = created.await?;
    Ok(Record::inserted(owner, id, now, body))
}

/// Changes the settings of a project and returns all of them. Fails if the change breaks a rule, or
/// the project does not exist.
pub async fn configure(
    app: &App,
    project: &Project,
    change: impl Fn(&mut Config),
) -> Result<Config> {
    let id = project.id.as_str();
    let changed = app.store.change(&PROJECTS_COLLECTION, id, || async {
        let mut record = record(app, &project.organization, &project.id).await?;
        change(&mut record.body.config);
        record.body.config.check()?;
        let batch = Batch::at(app.clock.now()).update(&record).announce();
        Ok((batch, record.body.config))
    });
    // Cached key holders contain the project's settings.
    let config = app.keys.invalidate(id, changed).await?;
    tracing::info!(target: AUDIT_LOG_TARGET, project = id, "the settings of a project were changed");
    Ok(config)
}

pub(crate) async fn record(
    app: &App,
    organization: &OrganizationId,
    id: &ProjectId,
) -> Result<Record<StoredProject>> {
    let found = app.store.get(organization.as_str(), id.as_str()).await?;
    found.ok_or_else(|| errors::project_not_found(id))
}

impl Project {
    /// Returns the display name, or the name if no display name is set, or one that misleads a person.
    #[must_use]
    pub fn shown_name(&self) -> &str {
        let StoredProject { name, config, .. } = &self.stored;
        let display_name = config.display_name.as_ref();
        display_name
            .filter(|name| is_plain_line(name))
            .unwrap_or(name)
    }

    fn from_record(record: Record<StoredProject>) -> Result<Self> {
        Ok(Self {
            id: ProjectId::parse(&record.id)?,
            tenant: record.id.into(),
            organization: OrganizationId::parse(&record.project)?,
            stored: record.body,
            created_at: record.created_at,
            updated_at: record.updated_at,
        })
    }
}

/// A project shared by the holders of its keys. It is cheap to clone.
pub type SharedProject = Arc<Project>;
