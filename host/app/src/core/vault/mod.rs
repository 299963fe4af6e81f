//! Secrets at rest.
//!
//! A thief of the data directory must not get a credential. Every secret is sealed with
//! XChaCha20-Poly1305 under a data key of its project. The data keys are in the store, wrapped by
//! the master key. The master key is in a file outside the data directory. The associated data of
//! every seal names the collection, project, record, field and key, so that a ciphertext moved to
//! another field, record or project does not open. The master key is checked against the store
//! before anything is written: a wrong key is an error and never starts a second set of secrets.
//!
//! The guarantee does not depend on the store keeping anything secret, nor on ids being
//! unguessable.

mod compression;
mod hash;
mod key_file;
mod masters;
mod rotate;
mod seal;
mod wiped;

use std::{collections::HashMap, sync::Arc};

use parking_lot::RwLock;
use serde::{Serialize, de::DeserializeOwned};
use store::{CommitError, Record, Store, Time};
use zeroize::Zeroizing;

use compression::Compressor;
pub(crate) use hash::{HashKey, is_keyed_hash, keyed_hash};
pub(crate) use key_file::sync_folder;
pub use key_file::{KeyFile, KeyFileError};
pub(crate) use masters::{COLLECTION, KeyVerifier};
use masters::{MasterKeys, WrappedKey, wrap};
pub use rotate::{MasterKeyUsage, RotateError};
pub use seal::{DataKey, SealContext, Sealed};

use crate::{
    Error, Result,
    core::{INSTALLATION_PROJECT, errors, ids},
};

/// The service that seals and opens secrets and derives keys.
pub struct Vault {
    store: Store,
    /// The master keys. A read lock is held while a data key is sealed and committed, so that a
    /// rotation misses no data key.
    masters: tokio::sync::RwLock<MasterKeys>,
    /// The key from which other keys of the installation are derived. It is created once and never
    /// changes.
    installation: Zeroizing<[u8; 32]>,
    keys: RwLock<HashMap<String, Arc<DataKey>>>,
    /// The compressor that all data keys share.
    compressor: Arc<Compressor>,
}

/// The reason why the vault does not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The key in the file is not the one the store was created with.
    #[error("the key in the file does not open this store")]
    WrongKey,
    /// The store could not be read or written.
    #[error(transparent)]
    Store(Error),
}

impl Vault {
    /// Returns true if the store already has a master key because it was used before.
    pub async fn exists(store: &Store) -> Result<bool> {
        Ok(store
            .get::<WrappedKey>(INSTALLATION_PROJECT, INSTALLATION_PROJECT)
            .await?
            .is_some())
    }

    /// Opens the vault of a store, and creates it if the store is new. Fails with
    /// [`OpenError::WrongKey`] if the store was created with another master key. In this case
    /// nothing was written.
    pub async fn open(
        store: Store,
        file: &KeyFile,
        now: Time,
    ) -> std::result::Result<Self, OpenError> {
        let masters = MasterKeys::from_file(file);
        let record = wrapped_key(&store, &masters.current, INSTALLATION_PROJECT, now).await;
        let record = record.map_err(OpenError::Store)?;
        let installation = masters
            .unwrap_key(INSTALLATION_PROJECT, &record.body.key)
            .map_err(|_| OpenError::WrongKey)?;
        Ok(Self {
            store,
            masters: tokio::sync::RwLock::new(masters),
            installation,
            keys: RwLock::default(),
            compressor: Arc::default(),
        })
    }

    /// Returns the data key of a project, which is created on first use. Fails if the store does
    /// not answer or the key does not open.
    pub async fn key(&self, project: &str, now: Time) -> Result<Arc<DataKey>> {
        if let Some(key) = self.keys.read().get(project) {
            return Ok(key.clone());
        }
        let masters = self.masters.read().await;
        let record = wrapped_key(&self.store, &masters.current, project, now).await?;
        let key = masters.unwrap_key(project, &record.body.key)?;
        drop(masters);
        let compressor = self.compressor.clone();
        let key = Arc::new(DataKey::new(record.body.key_id, &key, compressor));
        let mut keys = self.keys.write();
        Ok(keys.entry(project.to_owned()).or_insert(key).clone())
    }

    /// Seals a value with the data key of its project. Fails in the cases of [`Vault::key`] and
    /// [`DataKey::seal`].
    pub(crate) async fn seal<T: Serialize>(
        &self,
        context: SealContext<'_>,
        value: &T,
        now: Time,
    ) -> Result<Sealed<T>> {
        self.key(context.project, now).await?.seal(context, value)
    }

    /// Seals a value as [`Vault::seal`] does, compressed if it is large. Fails in the cases of
    /// [`Vault::key`] and [`DataKey::seal_compressed`].
    pub(crate) async fn seal_compressed<T: Serialize>(
        &self,
        context: SealContext<'_>,
        value: &T,
        now: Time,
    ) -> Result<Sealed<T>> {
        let key = self.key(context.project, now).await?;
        key.seal_compressed(context, value)
    }

    /// Opens a value with the data key of its project. Fails in the cases of [`Vault::key`] and
    /// [`DataKey::open`].
    pub(crate) async fn unseal<T: DeserializeOwned>(
        &self,
        context: SealContext<'_>,
        sealed: &Sealed<T>,
        now: Time,
    ) -> Result<T> {
        self.key(context.project, now).await?.open(context, sealed)
    }

    /// Derives a key for one purpose. The same purpose always gives the same key in one
    /// installation.
    #[must_use]
    pub fn derive(&self, purpose: &str) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(keyed_hash(&self.installation, purpose.as_bytes()))
    }

    /// Computes the hash of a string with the key for one purpose, in hexadecimal digits.
    pub(crate) fn hash_text(&self, purpose: &str, text: &str) -> String {
        hex::encode(keyed_hash(&self.derive(purpose), text.as_bytes()))
    }
}

/// Returns the stored data key of a project, which is created on first use.
async fn wrapped_key(
    store: &Store,
    master: &DataKey,
    project: &str,
    now: Time,
) -> Result<Record<WrappedKey>> {
    if let Some(found) = store.get(project, project).await? {
        return Ok(found);
    }
    let key = Zeroizing::new(ids::random());
    match store.commit(wrap(master, project, &key, now)?).await {
        // If another process created the key first, that key is used, provided that it has the same
        // master key.
        Ok(()) | Err(CommitError::Taken { .. }) => {}
        Err(cause) => return Err(cause.into()),
    }
    let created = store.get(project, project).await?;
    created.ok_or_else(|| {
        errors::internal(format!(
            "the data key of {project} cannot be read after its creation"
        ))
    })
}
