//! API keys.
//!
//! A key is a prefix, 32 random characters (190 bits) and a checksum. The checksum allows a
//! mistyped key to be refused without a store lookup, and lets a secret scanner tell a key from
//! other text.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use store::{Batch, Collection, Document, Query, Record, Time};
use strum::VariantArray;
use uuid::Uuid;
use zeroize::Zeroizing;

use super::{
    Organization, Project, SharedProject, StoredProject,
    members::{Member, StoredMember},
    permissions::KeyRestrictions,
};
use crate::{
    App, Error, Result,
    core::{
        AUDIT_LOG_TARGET, INSTALLATION_PROJECT, MIN_SHOWN_SECRET_CHARS,
        ids::{self, OrganizationId, ProjectId},
        vault::{HashKey, SealContext, Sealed, Vault},
    },
    projects::errors,
};

/// Number of random characters in a key.
const SECRET_CHARS: usize = 32;
/// Number of characters of the checksum.
const CHECKSUM_CHARS: usize = 6;
/// Maximum number of cached keys that are checked against the store in one query.
const KEYS_PER_QUERY: usize = 500;
/// Maximum number of live keys of one owner.
pub const MAX_KEYS_PER_OWNER: usize = 100;
/// Maximum length of a key's name, in characters.
const MAX_NAME_CHARS: usize = 100;
/// Interval at which last uses are written to the store.
const USE_WRITE_INTERVAL: Duration = Duration::from_secs(60);
/// The name of a key that was created together with its owner.
const FIRST_KEY_NAME: &str = "default";

/// The collection of keys. The owner's id takes the place of the project id of other records.
pub(crate) static COLLECTION: Collection = Collection {
    name: "api_keys",
    fields: &[],
};

/// The kind of a key, by what it gives access to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, VariantArray)]
#[serde(rename_all = "snake_case")]
pub enum KeyKind {
    /// One project.
    Project,
    /// The organization: its projects and the catalog.
    #[serde(rename = "organisation")]
    Organization,
    /// Every project, with the permissions of one member.
    User,
}

impl KeyKind {
    /// Returns the prefix of keys of this kind.
    #[must_use]
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Project => "ak_",
            Self::Organization => "oak_",
            Self::User => "uak_",
        }
    }

    /// Returns the name of the kind, with its article.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Project => "a project",
            Self::Organization => "an organization",
            Self::User => "a user",
        }
    }
}

/// A key, as stored. The id of the record is the keyed hash of the secret.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ApiKey {
    /// The public id of the key, shown where the secret must not appear.
    key_id: String,
    name: String,
    kind: KeyKind,
    /// The secret, kept because the project detail shows it.
    secret: Sealed<String>,
    /// The organization that the key or its project belongs to.
    #[serde(rename = "organisation")]
    organization: OrganizationId,
    #[serde(default)]
    rights: KeyRestrictions,
    /// The time of the last use, accurate to the minute.
    #[serde(default)]
    used_at: Option<Time>,
}

impl Document for ApiKey {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// A key with its secret.
pub struct ShownKey {
    /// The public id of the key.
    pub id: String,
    /// The display name.
    pub name: String,
    /// The secret.
    pub secret: Zeroizing<String>,
    /// The restrictions of the key.
    pub rights: KeyRestrictions,
    /// The creation time.
    pub created_at: Time,
    /// The time of the last request with this key. Uses on this server appear at once, uses on
    /// other servers within a minute.
    pub used_at: Option<Time>,
}

/// The authenticated holder of an API key, that is, the caller of a request.
#[derive(Debug)]
pub struct Holder {
    /// The public id of the key.
    pub key_id: String,
    /// The display name of the key.
    pub key_name: String,
    /// The creation time of the key.
    pub key_created_at: Time,
    /// The owner that the key gives access to.
    pub owner: Owner,
    /// The restrictions of the key.
    pub rights: KeyRestrictions,
    /// The name of the organization.
    pub organization_name: String,
    /// The id of the owner.
    owner_id: String,
    /// The id of the key's record, a keyed hash of the key.
    record_id: String,
    /// The time of the last use, in epoch milliseconds.
    last_use: AtomicI64,
    /// The last use that was written to the store, in epoch milliseconds.
    written_use: AtomicI64,
}

/// The owner that a key gives access to.
#[derive(Debug)]
pub enum Owner {
    /// One project.
    Project(SharedProject),
    /// The organization.
    Organization(OrganizationId),
    /// Every project, with the permissions of this member.
    Member(Box<Member>),
}

impl Holder {
    /// Returns the organization whose quota the request uses.
    #[must_use]
    pub fn organization(&self) -> &OrganizationId {
        match &self.owner {
            Owner::Project(project) => &project.organization,
            Owner::Organization(id) => id,
            Owner::Member(member) => &member.organization,
        }
    }

    /// Returns the kind of the key.
    #[must_use]
    pub fn kind(&self) -> KeyKind {
        match &self.owner {
            Owner::Project(_) => KeyKind::Project,
            Owner::Organization(_) => KeyKind::Organization,
            Owner::Member(_) => KeyKind::User,
        }
    }

    /// Returns the id of the key's owner.
    #[must_use]
    pub fn owner_id(&self) -> &str {
        &self.owner_id
    }

    /// Returns a UUID of the key, for clients that expect one. It is the same on every server.
    #[must_use]
    pub fn uuid(&self) -> Uuid {
        // The id of the record is a keyed hash of the secret, in hexadecimal digits.
        let digits = self.record_id.get(..32).unwrap_or_default();
        let bits = u128::from_str_radix(digits, 16).unwrap_or_default();
        uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
    }

    /// Returns the id of the key's record, which is a keyed hash of the key.
    pub(crate) fn record_id(&self) -> &str {
        &self.record_id
    }

    /// Records that a request came with the key.
    pub fn record_use(&self, now: Time) {
        self.last_use.store(now.0, Ordering::Relaxed);
    }
}

/// The cache of key holders, by the keyed hash of their secret, and of the projects of requests
/// without a key.
pub struct KeyCache {
    hash_key: HashKey,
    holders: RwLock<HashMap<[u8; 32], Arc<Holder>>>,
    projects: RwLock<HashMap<ProjectId, SharedProject>>,
    /// The number of invalidations. A holder that was read before an invalidation is not cached
    /// after it.
    invalidations: AtomicU64,
    /// The same for projects, which are dropped more often.
    project_invalidations: AtomicU64,
}

impl KeyCache {
    pub(crate) fn new(vault: &Vault) -> Self {
        Self {
            hash_key: HashKey::new(&vault.derive("api keys")),
            holders: RwLock::default(),
            projects: RwLock::default(),
            invalidations: AtomicU64::new(0),
            project_invalidations: AtomicU64::new(0),
        }
    }

    /// Runs a change that ends keys of an owner or changes the owner, and removes these keys and the
    /// owner from the cache even if the change fails.
    pub(super) async fn invalidate<T>(&self, owner: &str, ending: impl Future<Output = T>) -> T {
        let outcome = ending.await;
        let mut holders = self.holders.write();
        self.invalidations.fetch_add(1, Ordering::SeqCst);
        holders.retain(|_, holder| holder.owner_id != owner);
        drop(holders);
        let mut projects = self.projects.write();
        self.project_invalidations.fetch_add(1, Ordering::SeqCst);
        projects.retain(|id, _| id.as_str() != owner);
        outcome
    }

    /// Drops the cached projects. They are few and read again on demand.
    fn drop_projects(&self) {
        let mut projects = self.projects.write();
        self.project_invalidations.fetch_add(1, Ordering::SeqCst);
        projects.clear();
    }

    fn drop_all(&self) {
        let mut holders = self.holders.write();
        self.invalidations.fetch_add(1, Ordering::SeqCst);
        holders.clear();
    }

    fn hash(&self, secret: &str) -> [u8; 32] {
        self.hash_key.hash(secret.as_bytes())
    }

    /// Returns the holder of a key if it is cached. Never reads the store.
    #[must_use]
    pub fn cached(&self, secret: &str) -> Option<Arc<Holder>> {
        if !well_formed(secret) {
            return None;
        }
        self.holders.read().get(&self.hash(secret)).cloned()
    }

    /// Returns the time at which this server last saw the key of a record.
    fn used_at(&self, id: &str) -> Option<Time> {
        let mut hash = [0; 32];
        hex::decode_to_slice(id, &mut hash).ok()?;
        let holders = self.holders.read();
        let last_use = holders.get(&hash)?.last_use.load(Ordering::Relaxed);
        (last_use > 0).then_some(Time(last_use))
    }

    fn insert(&self, hash: [u8; 32], holder: &Arc<Holder>, seen: u64) {
        let mut holders = self.holders.write();
        if self.invalidations.load(Ordering::SeqCst) == seen {
            holders.insert(hash, holder.clone());
        }
    }
}

/// Checks the cached keys against the store and drops those that are no longer valid. Drops all
/// cached keys if the store cannot be read, and the cached projects in either case.
pub(crate) async fn refresh(app: &App) -> Result<()> {
    app.keys.drop_projects();
    let cached: Vec<_> = {
        let holders = app.keys.holders.read();
        holders
            .iter()
            .map(|(hash, holder)| (*hash, holder.clone()))
            .collect()
    };
    for some in cached.chunks(KEYS_PER_QUERY) {
        let gone = match outdated(app, some).await {
            Ok(gone) => gone,
            Err(cause) => {
                app.keys.drop_all();
                return Err(cause);
            }
        };
        if !gone.is_empty() {
            let mut holders = app.keys.holders.write();
            app.keys.invalidations.fetch_add(1, Ordering::SeqCst);
            holders.retain(|hash, _| !gone.contains(hash));
        }
    }
    Ok(())
}

async fn outdated(app: &App, cached: &[([u8; 32], Arc<Holder>)]) -> Result<Vec<[u8; 32]>> {
    let all = |ids: Vec<String>| Query::all_projects().any_of("id", ids);
    let projects = cached.iter().filter_map(|(_, holder)| match &holder.owner {
        Owner::Project(project) => Some(project.id.to_string()),
        Owner::Organization(_) | Owner::Member(_) => None,
    });
    let projects = app
        .store
        .find::<StoredProject>(&all(projects.collect()))
        .await?
        .records;
    let projects: HashMap<_, _> = projects
        .into_iter()
        .map(|record| (record.id, record.updated_at))
        .collect();
    let keys = cached.iter().map(|(hash, _)| hex::encode(hash));
    let keys = app
        .store
        .find::<ApiKey>(&all(keys.collect()))
        .await?
        .records;
    let keys: HashSet<_> = keys.into_iter().map(|record| record.id).collect();
    let holds = |hash: &[u8; 32], holder: &Holder| {
        keys.contains(&hex::encode(hash))
            && match &holder.owner {
                Owner::Project(project) => {
                    projects.get(project.id.as_str()) == Some(&project.updated_at)
                }
                Owner::Organization(_) | Owner::Member(_) => true,
            }
    };
    Ok(cached
        .iter()
        .filter(|(hash, holder)| !holds(hash, holder))
        .map(|(hash, _)| *hash)
        .collect())
}

/// Returns the holder of a key.
///
/// # Errors
/// Returns [`errors::KEY_INVALID`] if the key is unknown or has ended.
pub async fn authenticate(app: &App, secret: &str) -> Result<Arc<Holder>> {
    if let Some(holder) = app.keys.cached(secret) {
        return Ok(holder);
    }
    let invalid = || errors::key_invalid(masked(secret));
    if !well_formed(secret) {
        return Err(invalid());
    }
    let holder = holder_by_hash(app, app.keys.hash(secret)).await?;
    holder.ok_or_else(invalid)
}

/// Returns a project by its id alone, for frequent callers without a key.
///
/// # Errors
/// Returns an error if the project does not exist.
pub(crate) async fn lookup_cached(app: &App, id: &ProjectId) -> Result<SharedProject> {
    let cached = app.keys.projects.read().get(id).cloned();
    if let Some(project) = cached {
        return Ok(project);
    }
    let seen = app.keys.project_invalidations.load(Ordering::SeqCst);
    let project: SharedProject = super::lookup(app, id).await?.into();
    let mut projects = app.keys.projects.write();
    if app.keys.project_invalidations.load(Ordering::SeqCst) == seen {
        projects.insert(id.clone(), project.clone());
    }
    Ok(project)
}

/// Returns the holder of the key with this record, or `None` if the key has ended. Fails if the
/// store cannot be read.
pub(crate) async fn holder_by_record(app: &App, id: &str) -> Result<Option<Arc<Holder>>> {
    let mut hash = [0; 32];
    hex::decode_to_slice(id, &mut hash).map_err(errors::internal)?;
    let cached = app.keys.holders.read().get(&hash).cloned();
    match cached {
        Some(holder) => Ok(Some(holder)),
        None => holder_by_hash(app, hash).await,
    }
}

/// Reads the holder of a key from the store and caches it.
async fn holder_by_hash(app: &App, hash: [u8; 32]) -> Result<Option<Arc<Holder>>> {
    let seen = app.keys.invalidations.load(Ordering::SeqCst);
    let Some(record) = app.store.lookup::<ApiKey>(&hex::encode(hash)).await? else {
        return Ok(None);
    };
    let Some(holder) = holder(app, record).await? else {
        return Ok(None);
    };
    let holder = Arc::new(holder);
    app.keys.insert(hash, &holder, seen);
    Ok(Some(holder))
}

async fn holder(app: &App, record: Record<ApiKey>) -> Result<Option<Holder>> {
    let key = record.body;
    let Some(organization) = app
        .store
        .get::<Organization>(INSTALLATION_PROJECT, key.organization.as_str())
        .await?
    else {
        return Ok(None);
    };
    let owner = match key.kind {
        KeyKind::Organization => Owner::Organization(key.organization),
        KeyKind::Project => {
            let found = app
                .store
                .get::<StoredProject>(key.organization.as_str(), &record.project)
                .await?;
            let Some(found) = found else { return Ok(None) };
            Owner::Project(Arc::new(Project::from_record(key.organization, found)?))
        }
        KeyKind::User => {
            let found = app
                .store
                .get::<StoredMember>(key.organization.as_str(), &record.project)
                .await?;
            let Some(found) = found else { return Ok(None) };
            Owner::Member(Box::new(Member::from_record(key.organization, found)?))
        }
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

/// A key to be created.
pub(super) struct NewKey<'a> {
    kind: KeyKind,
    owner: &'a str,
    organization: &'a OrganizationId,
    name: &'a str,
    pub(super) rights: KeyRestrictions,
}

impl<'a> NewKey<'a> {
    /// Returns the key that is created together with its owner.
    pub(super) fn first(kind: KeyKind, owner: &'a str, organization: &'a OrganizationId) -> Self {
        Self {
            kind,
            owner,
            organization,
            name: FIRST_KEY_NAME,
            rights: KeyRestrictions::default(),
        }
    }

    /// Adds the key to a batch.
    pub(super) async fn create(self, app: &App, batch: Batch) -> Result<(ShownKey, Batch)> {
        let owner = self.owner;
        let secret = Zeroizing::new(new_secret(self.kind));
        let id = hex::encode(app.keys.hash(&secret));
        let key = app.vault.key(owner, batch.now).await?;
        let stored = ApiKey {
            key_id: format!("key_{}", ids::random_text(12)),
            name: self.name.to_owned(),
            kind: self.kind,
            secret: key.seal(SealContext::new::<ApiKey>(owner, &id, "secret"), &*secret)?,
            organization: self.organization.clone(),
            rights: self.rights.clone(),
            used_at: None,
        };
        let shown = ShownKey {
            id: stored.key_id.clone(),
            name: stored.name.clone(),
            secret,
            rights: self.rights,
            created_at: batch.now,
            used_at: None,
        };
        Ok((shown, batch.insert(owner, &id, &stored)))
    }
}

/// Adds a key to an owner. The batch of `prepare` can require that the owner exists.
pub(super) async fn add<F: Future<Output = Result<Batch>>>(
    app: &App,
    prepare: impl Fn() -> F,
    owner: &str,
    organization: &OrganizationId,
    name: &str,
    rights: KeyRestrictions,
) -> Result<ShownKey> {
    let name = name.trim();
    if name.is_empty() || name.chars().count() > MAX_NAME_CHARS {
        return Err(errors::invalid(format!(
            "name: must be 1 to {MAX_NAME_CHARS} characters"
        )));
    }
    let added = app.store.change(&COLLECTION, owner, || async {
        let batch = prepare().await?;
        if list(app, owner).await?.len() >= MAX_KEYS_PER_OWNER {
            return Err(errors::invalid(format!(
                "a project has at most {MAX_KEYS_PER_OWNER} keys: revoke a key that is not used"
            )));
        }
        let new = NewKey {
            name,
            rights: rights.clone(),
            ..NewKey::first(KeyKind::Project, owner, organization)
        };
        let (key, batch) = new.create(app, batch).await?;
        Ok((batch, key))
    });
    Ok(added.await?)
}

/// Ends keys of an owner together with the batch that `prepare` makes, and returns the result of
/// `prepare`.
pub(crate) async fn revoke_where<R, F: Future<Output = Result<(Batch, R)>>>(
    app: &App,
    owner: &str,
    which: impl Fn(&str) -> bool,
    prepare: impl Fn() -> F,
) -> Result<R> {
    let ending = app.store.change(&COLLECTION, owner, || async {
        let (batch, answer) = prepare().await?;
        let keys = list(app, owner).await?;
        let ended = keys.iter().filter(|key| which(&key.body.key_id));
        Ok((ended.fold(batch.announce(), Batch::remove), answer))
    });
    Ok(app.keys.invalidate(owner, ending).await?)
}

/// Ends the key with this secret, regardless of its owner. Does nothing if no key has this secret.
///
/// # Errors
/// Fails if the store refuses.
pub async fn revoke(app: &App, secret: &str) -> Result<()> {
    if !well_formed(secret) {
        return Ok(());
    }
    let Some(key) = app
        .store
        .lookup::<ApiKey>(&hex::encode(app.keys.hash(secret)))
        .await?
    else {
        return Ok(());
    };
    revoke_where(
        app,
        &key.project,
        |id| id == key.body.key_id,
        || async { Ok((Batch::at(app.clock.now()), ())) },
    )
    .await?;
    let owner = key.project;
    tracing::info!(target: AUDIT_LOG_TARGET, owner, key = key.body.key_id, "a key was revoked");
    Ok(())
}

/// Writes the last uses of keys to the store every minute, so that no request waits for these
/// writes. Never returns.
pub(crate) async fn write_key_uses(app: &App) {
    loop {
        tokio::time::sleep(USE_WRITE_INTERVAL).await;
        let used_holders: Vec<_> = {
            let holders = app.keys.holders.read();
            let is_new = |holder: &Holder| {
                let last_use = holder.last_use.load(Ordering::Relaxed);
                holder.written_use.swap(last_use, Ordering::Relaxed) != last_use
            };
            holders
                .iter()
                .filter(|(_, holder)| is_new(holder))
                .map(|(hash, holder)| (*hash, holder.clone()))
                .collect()
        };
        for (hash, holder) in used_holders {
            let at = Time(holder.last_use.load(Ordering::Relaxed));
            let change = |key: &mut ApiKey| -> Result<()> {
                key.used_at = key.used_at.max(Some(at));
                Ok(())
            };
            let written = app
                .store
                .edit(
                    &holder.owner_id,
                    &hex::encode(hash),
                    app.clock.now(),
                    change,
                )
                .await;
            if let Err(cause) = written.map_err(Error::from) {
                tracing::debug!(%cause, key = holder.key_id, "the last use of a key could not be written");
            }
        }
    }
}

/// Returns the live keys of an owner, oldest first, at most a thousand. Fails if the store cannot
/// be read.
pub(super) async fn list(app: &App, owner: &str) -> Result<Vec<Record<ApiKey>>> {
    let mut found = app
        .store
        .find(&Query::for_project(owner).page(0, 1_000))
        .await?
        .records;
    found.sort_by_key(|record: &Record<ApiKey>| record.created_at);
    Ok(found)
}

/// Decrypts the secret of a key. Fails if it cannot be decrypted.
pub(super) async fn reveal(app: &App, record: &Record<ApiKey>) -> Result<ShownKey> {
    let (context, now) = (SealContext::of(record, "secret"), app.clock.now());
    let secret = app.vault.unseal(context, &record.body.secret, now).await?;
    Ok(ShownKey {
        id: record.body.key_id.clone(),
        name: record.body.name.clone(),
        secret: Zeroizing::new(secret),
        rights: record.body.rights.clone(),
        created_at: record.created_at,
        used_at: record.body.used_at.max(app.keys.used_at(&record.id)),
    })
}

fn new_secret(kind: KeyKind) -> String {
    let body = format!("{}{}", kind.prefix(), ids::random_text(SECRET_CHARS));
    let sum = checksum(&body);
    body + &sum
}

fn checksum(text: &str) -> String {
    ids::number_text::<CHECKSUM_CHARS>(u64::from(crc32fast::hash(text.as_bytes())))
}

fn well_formed(secret: &str) -> bool {
    let Some(kind) = KeyKind::VARIANTS
        .iter()
        .find(|kind| secret.starts_with(kind.prefix()))
    else {
        return false;
    };
    let split = kind.prefix().len() + SECRET_CHARS;
    secret.is_ascii()
        && secret.len() == split + CHECKSUM_CHARS
        && checksum(&secret[..split]) == secret[split..]
}

/// Masks a key: the first six characters, followed by asterisks. A short key is masked completely.
fn masked(secret: &str) -> String {
    let most = if secret.chars().count() < MIN_SHOWN_SECRET_CHARS {
        0
    } else {
        6
    };
    let shown: String = secret
        .chars()
        .take(most)
        .filter(|c| c.is_ascii_graphic())
        .collect();
    format!("{shown}********")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistyped_key_is_not_well_formed() {
        for kind in KeyKind::VARIANTS {
            let secret = new_secret(*kind);
            assert!(well_formed(&secret), "{secret}");
            for index in 0..secret.len() {
                let mut typed = secret.clone().into_bytes();
                typed[index] = if typed[index] == b'x' { b'y' } else { b'x' };
                assert!(
                    !well_formed(&String::from_utf8(typed).unwrap()),
                    "changed at {index}"
                );
            }
        }
        for other in [
            "",
            "ak_",
            "ak_short",
            "uak_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "ak_å",
        ] {
            assert!(!well_formed(other), "{other}");
        }
    }

    #[test]
    fn refused_key_is_masked() {
        assert_eq!(masked("ak_abcdefgh"), "ak_abc********");
        assert_eq!(masked("\u{7}\u{7}"), "********");
        assert_eq!(masked("ak_abcd"), "********");
    }
}
