//! The organization that owns the projects.

use serde::{Deserialize, Serialize};
use store::{Batch, Collection, CommitError, Document, Erasure, Field, Kind, Query, Record};
use zeroize::Zeroizing;

use super::keys::{KeyKind, NewKey, show_keys};
use crate::{
    App, Result,
    core::{INSTALLATION_PROJECT, ids::OrganizationId},
    projects::errors,
};

pub(crate) static ORGANIZATIONS_COLLECTION: Collection = Collection {
    name: "organisations",
    erasure: Erasure::Other("organizations are not deleted"),
    // Two servers that start on an empty store at the same time must create only one organization.
    fields: &[Field::unique("name", Kind::Text)],
};
/// The organization as stored. An installation has exactly one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Organization {
    /// The display name.
    pub name: String,
    /// The number of the next project, for clients that expect running numbers.
    #[serde(default)]
    pub(super) next_number: i64,
}

impl Organization {
    /// Returns true if a project was ever created. After a first start that was interrupted or is
    /// still running on another server, no project was created yet.
    #[must_use]
    pub fn has_had_projects(&self) -> bool {
        self.next_number > 1
    }
}

impl Document for Organization {
    const COLLECTION: &'static Collection = &ORGANIZATIONS_COLLECTION;
}

/// Creates the organization of a new installation with a key. The key is shown only once. Fails
/// with [`errors::PROJECT_NAME_TAKEN`] if another server has just created it.
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
    let batch = batch.insert(INSTALLATION_PROJECT, id.as_str(), &body);
    match app.store.commit(batch).await {
        Ok(()) => Ok((id, key.secret)),
        Err(CommitError::Taken { .. }) => Err(errors::project_name_taken(name)),
        Err(cause) => Err(cause.into()),
    }
}

/// Returns the organization, or `None` if it does not exist yet.
pub async fn organization(app: &App) -> Result<Option<Record<Organization>>> {
    let query = Query::for_project(INSTALLATION_PROJECT);
    Ok(app.store.first(query).await?)
}

/// Returns the oldest key of the organization. Creates a new key if all were revoked, so that an
/// operator is never locked out. Fails if a key cannot be decrypted.
pub async fn organization_key(app: &App, id: &OrganizationId) -> Result<Zeroizing<String>> {
    if let Some(key) = show_keys(app, id.as_str()).await?.into_iter().next() {
        return Ok(key.secret);
    }
    let new = NewKey::first(KeyKind::Organization, id.as_str(), id);
    let (key, batch) = new.create(app, Batch::at(app.clock.now())).await?;
    app.store.commit(batch).await?;
    Ok(key.secret)
}

/// Returns the organization of a key.
pub(super) async fn owner(app: &App, id: &OrganizationId) -> Result<Record<Organization>> {
    let found = app.store.get(INSTALLATION_PROJECT, id.as_str()).await?;
    found.ok_or_else(|| errors::internal(format!("the organization {id} of a key does not exist")))
}
