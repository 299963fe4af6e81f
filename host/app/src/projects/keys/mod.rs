//! API keys.

mod cache;
mod holder;
mod of_project;
mod secret;
mod upkeep;

use serde::{Deserialize, Serialize};
use store::{Batch, Collection, Document, Erasure, Query, Record, Time};
use strum::VariantArray;
use zeroize::Zeroizing;

pub use cache::{KeyCache, authenticate};
pub(crate) use cache::{holder_by_record, lookup_cached};
pub use holder::{Holder, Owner};
pub use of_project::{MAX_KEYS_PER_OWNER, add_key, regenerate_key, remove_key, show_keys};
use secret::{is_well_formed, new_secret};
pub(crate) use upkeep::{keep_key_uses, refresh, write_key_uses};

use super::permissions::KeyRestrictions;
use crate::{
    App, Result,
    core::{
        AUDIT_LOG_TARGET,
        ids::{self, OrganizationId},
        vault::{SealContext, Sealed},
    },
};

/// The name of a key that was created together with its owner.
const FIRST_KEY_NAME: &str = "default";

/// The collection of keys. The owner's id replaces the project id of other records.
pub(crate) static COLLECTION: Collection = Collection {
    name: "api_keys",
    erasure: Erasure::HidingProject,
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

    /// Returns the kind of keys with the prefix of a secret.
    #[must_use]
    pub fn of_secret(secret: &str) -> Option<Self> {
        let mut kinds = Self::VARIANTS.iter().copied();
        kinds.find(|kind| secret.starts_with(kind.prefix()))
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
    /// The time of the last request with this key. Uses on this server appear immediately, uses on
    /// other servers within a minute.
    pub used_at: Option<Time>,
}

pub(super) struct NewKey<'a> {
    kind: KeyKind,
    owner: &'a str,
    organization: &'a OrganizationId,
    name: &'a str,
    pub(super) rights: KeyRestrictions,
}

impl<'a> NewKey<'a> {
    /// Returns the key created together with its owner.
    pub(super) fn first(kind: KeyKind, owner: &'a str, organization: &'a OrganizationId) -> Self {
        Self {
            kind,
            owner,
            organization,
            name: FIRST_KEY_NAME,
            rights: KeyRestrictions::default(),
        }
    }

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
pub async fn revoke(app: &App, secret: &str) -> Result<()> {
    if !is_well_formed(secret) {
        return Ok(());
    }
    let id = hex::encode(app.keys.hash(secret));
    let Some(key) = app.store.lookup::<ApiKey>(&id).await? else {
        return Ok(());
    };
    revoke_where(
        app,
        &key.project,
        |id| id == key.body.key_id,
        || async { Ok((Batch::at(app.clock.now()), ())) },
    )
    .await?;
    let owner_if = |kind| (key.body.kind == kind).then_some(key.project.as_str());
    tracing::info!(
        target: AUDIT_LOG_TARGET,
        project = owner_if(KeyKind::Project),
        member = owner_if(KeyKind::User),
        organization = owner_if(KeyKind::Organization),
        key = key.body.key_id,
        "a key was revoked"
    );
    Ok(())
}

/// Returns the live keys of an owner, oldest first, at most a thousand. Fails if the store cannot
/// be read.
async fn list(app: &App, owner: &str) -> Result<Vec<Record<ApiKey>>> {
    let query = Query::for_project(owner).page(0, 1_000);
    let mut found = app.store.find(&query).await?.records;
    found.sort_by_key(|record: &Record<ApiKey>| record.created_at);
    Ok(found)
}
