//! The cache of key holders, and authentication.

use std::sync::{Arc, atomic::Ordering};

use store::{Record, Time};

use super::{
    ApiKey, Holder, KeyKind, Owner,
    secret::{is_well_formed, masked},
};
use crate::{
    App, Result,
    core::{
        INSTALLATION_PROJECT,
        ids::ProjectId,
        read_cache::ReadCache,
        vault::{HashKey, Vault},
    },
    projects::{self, Organization, Project, SharedProject, errors, members::Member},
};

/// The cache of key holders, by the keyed hash of their secret, and of the projects of requests
/// without a key.
pub struct KeyCache {
    hash_key: HashKey,
    pub(super) holders: ReadCache<[u8; 32], Arc<Holder>>,
    pub(super) projects: ReadCache<ProjectId, SharedProject>,
}

impl KeyCache {
    pub(crate) fn new(vault: &Vault) -> Self {
        Self {
            hash_key: HashKey::new(&vault.derive("api keys")),
            holders: ReadCache::new(usize::MAX),
            projects: ReadCache::new(usize::MAX),
        }
    }

    /// Runs a change that ends keys of an owner or changes the owner, and removes these keys and the
    /// owner from the cache even if the change fails.
    pub(in crate::projects) async fn invalidate<T>(
        &self,
        owner: &str,
        ending: impl Future<Output = T>,
    ) -> T {
        let outcome = ending.await;
        let holders = &self.holders;
        holders.invalidate(|_, holder| holder.owner_id == owner);
        self.projects.invalidate(|id, _| id.as_str() == owner);
        outcome
    }

    pub(super) fn hash(&self, secret: &str) -> [u8; 32] {
        self.hash_key.hash(secret.as_bytes())
    }

    /// Returns the holder of a key if it is cached. Never reads the store.
    #[must_use]
    pub fn cached(&self, secret: &str) -> Option<Arc<Holder>> {
        if !is_well_formed(secret) {
            return None;
        }
        self.holders.get(&self.hash(secret))
    }

    /// Returns the time at which this server last saw the key of a record.
    pub(super) fn used_at(&self, id: &str) -> Option<Time> {
        let mut hash = [0; 32];
        hex::decode_to_slice(id, &mut hash).ok()?;
        let last_use = self.holders.get(&hash)?.last_use.load(Ordering::Relaxed);
        (last_use > 0).then_some(Time(last_use))
    }
}

/// Returns the holder of a key. Fails with [`errors::KEY_INVALID`] if the key is unknown or has
/// ended.
pub async fn authenticate(app: &App, secret: &str) -> Result<Arc<Holder>> {
    if let Some(holder) = app.keys.cached(secret) {
        return Ok(holder);
    }
    let invalid = || errors::key_invalid(masked(secret));
    if !is_well_formed(secret) {
        return Err(invalid());
    }
    let holder = holder_by_hash(app, app.keys.hash(secret)).await?;
    holder.ok_or_else(invalid)
}

/// Returns a project by its id alone, for frequent callers without a key. Fails if the project does
/// not exist.
pub(crate) async fn lookup_cached(app: &App, id: &ProjectId) -> Result<SharedProject> {
    let cache = &app.keys.projects;
    if let Some(project) = cache.get(id) {
        return Ok(project);
    }
    let changes = cache.changes();
    let project: SharedProject = projects::lookup(app, id).await?.into();
    cache.insert(id.clone(), project.clone(), changes);
    Ok(project)
}

/// Returns the holder of the key with this record, or `None` if the key has ended. Fails if the
/// store cannot be read.
pub(crate) async fn holder_by_record(app: &App, id: &str) -> Result<Option<Arc<Holder>>> {
    let mut hash = [0; 32];
    hex::decode_to_slice(id, &mut hash).map_err(errors::internal)?;
    match app.keys.holders.get(&hash) {
        Some(holder) => Ok(Some(holder)),
        None => holder_by_hash(app, hash).await,
    }
}

/// Reads the holder of a key from the store and caches it.
async fn holder_by_hash(app: &App, hash: [u8; 32]) -> Result<Option<Arc<Holder>>> {
    let changes = app.keys.holders.changes();
    let Some(record) = app.store.lookup::<ApiKey>(&hex::encode(hash)).await? else {
        return Ok(None);
    };
    let holder = holder(app, record).await?.map(Arc::new);
    if let Some(holder) = &holder {
        app.keys.holders.insert(hash, holder.clone(), changes);
    }
    Ok(holder)
}

async fn holder(app: &App, record: Record<ApiKey>) -> Result<Option<Holder>> {
    let key = record.body;
    let id = key.organization.as_str();
    let organization: Option<Record<Organization>> =
        app.store.get(INSTALLATION_PROJECT, id).await?;
    let Some(organization) = organization else {
        return Ok(None);
    };
    let owner = match key.kind {
        KeyKind::Organization => Owner::Organization(key.organization),
        KeyKind::Project => match app.store.get(id, &record.project).await? {
            Some(found) => Owner::Project(Project::from_record(found)?.into()),
            None => return Ok(None),
        },
        KeyKind::User => match app.store.get(id, &record.project).await? {
            Some(found) => Owner::Member(Member::from_record(found)?.into()),
            None => return Ok(None),
        },
    };
    let last_use = key.used_at.map_or(0, |time| time.0);
    Ok(Some(Holder {
        key_id: key.key_id,
        key_name: key.name,
        key_created_at: record.created_at,
        owner,
        rights: key.rights,
        organization_name: organization.body.name,
        owner_id: record.project,
        record_id: record.id,
        last_use: last_use.into(),
        written_use: last_use.into(),
    }))
}
