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

mod key_file;
mod rotate;

use std::{collections::HashMap, marker::PhantomData, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD as BASE64};
use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use hmac::{Hmac, Mac};
use parking_lot::RwLock;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use sha2::Sha256;
use store::{Batch, Collection, CommitError, Document, Record, Store, Time};
use zeroize::Zeroizing;

pub use key_file::{KeyFile, KeyFileError};
pub use rotate::{MasterKeyUsage, RotateError};

use crate::{
    Error, Result,
    core::{INSTALLATION_PROJECT, errors, ids},
};

const NONCE_BYTES: usize = 24;

/// The location of a sealed value. The value opens at no other location.
#[derive(Debug, Clone, Copy)]
pub struct SealContext<'a> {
    /// The name of the collection.
    pub collection: &'static str,
    /// The id of the owning project.
    pub project: &'a str,
    /// The id of the record.
    pub id: &'a str,
    /// The field of the record's body.
    pub field: &'static str,
}

impl<'a> SealContext<'a> {
    /// Names a field of a document.
    pub(crate) fn new<T: Document>(project: &'a str, id: &'a str, field: &'static str) -> Self {
        Self {
            collection: T::COLLECTION.name,
            project,
            id,
            field,
        }
    }

    /// Names a field of a stored record.
    pub(crate) fn of<T: Document>(record: &'a Record<T>, field: &'static str) -> Self {
        Self::new::<T>(&record.project, &record.id, field)
    }
}

/// A value of `T` that only the vault can read. It serializes to ciphertext.
pub struct Sealed<T> {
    /// The ciphertext: `v1.<key id>.<base64 of nonce and ciphertext>`.
    text: String,
    value: PhantomData<fn() -> T>,
}

impl<T> std::fmt::Debug for Sealed<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealed")
    }
}

impl<T> Clone for Sealed<T> {
    fn clone(&self) -> Self {
        Self {
            text: self.text.clone(),
            value: PhantomData,
        }
    }
}

impl<T> Serialize for Sealed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

impl<'de, T> Deserialize<'de> for Sealed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Ok(Self {
            text: String::deserialize(deserializer)?,
            value: PhantomData,
        })
    }
}

impl<T> Sealed<T> {
    /// Returns the id of the key that sealed the value.
    fn key_id(&self) -> Option<&str> {
        Some(self.text.strip_prefix("v1.")?.split_once('.')?.0)
    }

    /// Returns the size of the sealed text in bytes.
    pub(crate) fn size(&self) -> usize {
        self.text.len()
    }

    /// Returns the same ciphertext as a sealed value of another type that reads the same JSON.
    pub(crate) fn cast<U>(self) -> Sealed<U> {
        Sealed {
            text: self.text,
            value: PhantomData,
        }
    }
}

/// A key that seals values.
pub struct DataKey {
    id: String,
    cipher: XChaCha20Poly1305,
}

impl DataKey {
    fn new(id: String, key: &[u8; 32]) -> Self {
        Self {
            id,
            cipher: XChaCha20Poly1305::new(key.into()),
        }
    }

    /// Seals a value for one location.
    ///
    /// # Errors
    /// Returns an error if the value cannot be written as JSON.
    pub fn seal<T: Serialize>(&self, context: SealContext<'_>, value: &T) -> Result<Sealed<T>> {
        let plain = serde_json::to_vec(value).map(Zeroizing::new);
        let plain = plain.map_err(|cause| {
            errors::internal(format!("cannot write {} as JSON: {cause}", context.field))
        })?;
        Ok(Sealed {
            text: self.seal_bytes(context, &plain),
            value: PhantomData,
        })
    }

    /// Opens a value that was sealed for this location.
    ///
    /// # Errors
    /// Returns an error if the value was sealed for another location or with another key, or was
    /// changed.
    pub fn open<T: DeserializeOwned>(
        &self,
        context: SealContext<'_>,
        sealed: &Sealed<T>,
    ) -> Result<T> {
        let plain = self.open_bytes(context, &sealed.text).ok_or_else(|| {
            errors::internal(format!(
                "{} of {} {} cannot be decrypted",
                context.field, context.collection, context.id
            ))
        })?;
        serde_json::from_slice(&plain).map_err(|_| {
            errors::internal(format!(
                "{} of {} {} cannot be parsed",
                context.field, context.collection, context.id
            ))
        })
    }

    fn seal_bytes(&self, context: SealContext<'_>, plain: &[u8]) -> String {
        let nonce: [u8; NONCE_BYTES] = ids::random();
        let aad = associated_data(context, &self.id);
        let cipher = self.cipher.encrypt(
            &XNonce::from(nonce),
            Payload {
                msg: plain,
                aad: &aad,
            },
        );
        let cipher = cipher.expect("a value of this size can always be sealed");
        let mut bytes = Vec::with_capacity(NONCE_BYTES + cipher.len());
        bytes.extend_from_slice(&nonce);
        bytes.extend_from_slice(&cipher);
        let mut text = String::with_capacity(self.id.len() + 4 + bytes.len() * 4 / 3 + 4);
        text.push_str("v1.");
        text.push_str(&self.id);
        text.push('.');
        BASE64.encode_string(&bytes, &mut text);
        text
    }

    fn open_bytes(&self, context: SealContext<'_>, text: &str) -> Option<Zeroizing<Vec<u8>>> {
        let (key, value) = text.strip_prefix("v1.")?.split_once('.')?;
        if key != self.id {
            return None;
        }
        let bytes = BASE64.decode(value).ok()?;
        let (nonce, cipher) = bytes.split_first_chunk::<NONCE_BYTES>()?;
        let aad = associated_data(context, key);
        let plain = self
            .cipher
            .decrypt(
                &XNonce::from(*nonce),
                Payload {
                    msg: cipher,
                    aad: &aad,
                },
            )
            .ok()?;
        Some(Zeroizing::new(plain))
    }
}

/// Builds the associated data. Each part is preceded by its length, so that no two locations give
/// the same bytes.
fn associated_data(context: SealContext<'_>, key: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(96);
    for part in [
        context.collection,
        context.project,
        context.id,
        context.field,
        key,
    ] {
        out.extend_from_slice(&(part.len() as u64).to_le_bytes());
        out.extend_from_slice(part.as_bytes());
    }
    out
}

/// A data key as stored, under the id of the project it belongs to.
#[derive(Serialize, Deserialize)]
struct WrappedKey {
    /// The id of the data key, written into every value it seals.
    key_id: String,
    /// The data key, sealed by the master key.
    key: Sealed<[u8; 32]>,
}

impl Document for WrappedKey {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// The collection of data keys.
pub(crate) static COLLECTION: Collection = Collection {
    name: "data_keys",
    fields: &[],
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
}

/// The master key that wraps data keys, and the previous one during a rotation.
struct MasterKeys {
    current: DataKey,
    previous: Option<DataKey>,
}

impl MasterKeys {
    fn from_file(file: &KeyFile) -> Self {
        let key = |key: &key_file::MasterKey| DataKey::new(key.id.clone(), &key.key);
        Self {
            current: key(&file.current),
            previous: file.previous.as_ref().map(key),
        }
    }

    /// Opens a data key with the master key that wrapped it.
    fn unwrap_key(&self, project: &str, wrapped: &Sealed<[u8; 32]>) -> Result<Zeroizing<[u8; 32]>> {
        let by = |key: &&DataKey| wrapped.key_id() == Some(key.id.as_str());
        let key = self.previous.as_ref().filter(by).unwrap_or(&self.current);
        key.open(wrapping_context(project), wrapped)
            .map(Zeroizing::new)
    }
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
    /// Returns true if the store already has a master key, that is, if it was used before.
    pub async fn exists(store: &Store) -> Result<bool> {
        Ok(store
            .get::<WrappedKey>(INSTALLATION_PROJECT, INSTALLATION_PROJECT)
            .await?
            .is_some())
    }

    /// Opens the vault of a store, and creates it if the store is new.
    ///
    /// # Errors
    /// Returns [`OpenError::WrongKey`] if the store was created with another master key. In this
    /// case nothing was written.
    pub async fn open(
        store: Store,
        file: &KeyFile,
        now: Time,
    ) -> std::result::Result<Self, OpenError> {
        let masters = MasterKeys::from_file(file);
        let read = || async {
            let found = store
                .get::<WrappedKey>(INSTALLATION_PROJECT, INSTALLATION_PROJECT)
                .await;
            found.map_err(|error| OpenError::Store(error.into()))
        };
        let mut found = read().await?;
        if found.is_none() {
            let key = Zeroizing::new(ids::random());
            let batch = wrap(&masters.current, INSTALLATION_PROJECT, &key, now)
                .map_err(OpenError::Store)?;
            match store.commit(batch).await {
                // If another node wrote first, its key is used, provided that it has the same
                // master key.
                Ok(()) | Err(CommitError::Taken { .. }) => found = read().await?,
                Err(cause) => return Err(OpenError::Store(cause.into())),
            }
        }
        let record = found.ok_or_else(|| {
            OpenError::Store(errors::internal(
                "the data key of the installation cannot be read",
            ))
        })?;
        let installation = masters
            .unwrap_key(INSTALLATION_PROJECT, &record.body.key)
            .map_err(|_| OpenError::WrongKey)?;
        Ok(Self {
            store,
            masters: tokio::sync::RwLock::new(masters),
            installation,
            keys: RwLock::default(),
        })
    }

    /// Returns the data key of a project, which is created on first use.
    ///
    /// # Errors
    /// Returns an error if the store does not answer or the key does not open.
    pub async fn key(&self, project: &str, now: Time) -> Result<Arc<DataKey>> {
        if let Some(key) = self.keys.read().get(project) {
            return Ok(key.clone());
        }
        let record = match self.store.get::<WrappedKey>(project, project).await? {
            Some(record) => record,
            None => self.create_key(project, now).await?,
        };
        let key = self
            .masters
            .read()
            .await
            .unwrap_key(project, &record.body.key)?;
        let key = Arc::new(DataKey::new(record.body.key_id, &key));
        let mut keys = self.keys.write();
        Ok(keys.entry(project.to_owned()).or_insert(key).clone())
    }

    /// Seals a value with the data key of its project.
    ///
    /// # Errors
    /// Returns an error in the cases of [`Vault::key`] and [`DataKey::seal`].
    pub(crate) async fn seal<T: Serialize>(
        &self,
        context: SealContext<'_>,
        value: &T,
        now: Time,
    ) -> Result<Sealed<T>> {
        self.key(context.project, now).await?.seal(context, value)
    }

    /// Opens a value with the data key of its project.
    ///
    /// # Errors
    /// Returns an error in the cases of [`Vault::key`] and [`DataKey::open`].
    pub(crate) async fn unseal<T: DeserializeOwned>(
        &self,
        context: SealContext<'_>,
        sealed: &Sealed<T>,
        now: Time,
    ) -> Result<T> {
        self.key(context.project, now).await?.open(context, sealed)
    }

    async fn create_key(&self, project: &str, now: Time) -> Result<Record<WrappedKey>> {
        let key = Zeroizing::new(ids::random());
        let masters = self.masters.read().await;
        match self
            .store
            .commit(wrap(&masters.current, project, &key, now)?)
            .await
        {
            // If another process created the key first, that key is used.
            Ok(()) | Err(CommitError::Taken { .. }) => {}
            Err(cause) => return Err(cause.into()),
        }
        let created = self.store.get::<WrappedKey>(project, project).await?;
        created.ok_or_else(|| {
            errors::internal(format!(
                "the data key of {project} cannot be read after its creation"
            ))
        })
    }

    /// Derives a key for one purpose. The same purpose always gives the same key in one
    /// installation.
    #[must_use]
    pub fn derive(&self, purpose: &str) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(keyed_hash(&self.installation, purpose.as_bytes()))
    }
}

/// Computes HMAC-SHA-256.
pub(crate) fn keyed_hash(key: &[u8; 32], message: &[u8]) -> [u8; 32] {
    HashKey::new(key).hash(message)
}

/// Returns true if a hash is the HMAC-SHA-256 of a message. The time that it takes does not depend on
/// the hash.
pub(crate) fn is_keyed_hash(key: &[u8; 32], message: &[u8], hash: &[u8]) -> bool {
    HashKey::new(key).hmac(message).verify_slice(hash).is_ok()
}

/// A key of HMAC-SHA-256 for many messages. A part of the work is done once for all of them.
pub(crate) struct HashKey(Hmac<Sha256>);

impl HashKey {
    /// Prepares a key.
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        let prepared = Hmac::new_from_slice(key);
        Self(prepared.expect("this hash takes keys of every length"))
    }

    /// Computes the hash of a message, as [`keyed_hash`] does.
    pub(crate) fn hash(&self, message: &[u8]) -> [u8; 32] {
        self.hmac(message).finalize().into_bytes().into()
    }

    fn hmac(&self, message: &[u8]) -> Hmac<Sha256> {
        let mut mac = self.0.clone();
        mac.update(message);
        mac
    }
}

fn wrapping_context(project: &str) -> SealContext<'_> {
    SealContext::new::<WrappedKey>(project, project, "key")
}

fn wrap(master: &DataKey, project: &str, key: &[u8; 32], now: Time) -> Result<Batch> {
    let body = WrappedKey {
        key_id: format!("dk_{}", ids::random_text(8)),
        key: master.seal(wrapping_context(project), key)?,
    };
    Ok(Batch::at(now).insert(project, project, &body))
}

/// A reader for vault records outside a store, for example in an archive.
pub(crate) struct KeyVerifier(MasterKeys);

impl KeyVerifier {
    pub(crate) fn new(file: &KeyFile) -> Self {
        Self(MasterKeys::from_file(file))
    }

    /// Returns true if the record is not a data key, was removed, or can be opened.
    pub(crate) fn can_open(&self, collection: &str, row: &store::Row) -> bool {
        if collection != COLLECTION.name || !row.is_live() {
            return true;
        }
        let wrapped = serde_json::from_slice::<WrappedKey>(&row.body);
        wrapped.is_ok_and(|wrapped| self.0.unwrap_key(&row.id, &wrapped.key).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> DataKey {
        DataKey::new("dk_one".into(), &[7; 32])
    }

    fn place<'a>(project: &'a str, id: &'a str, field: &'static str) -> SealContext<'a> {
        SealContext {
            collection: "connected_accounts",
            project,
            id,
            field,
        }
    }

    #[test]
    fn what_was_sealed_opens_at_its_place() {
        let sealed = key()
            .seal(place("p", "ca_1", "val"), &"secret".to_owned())
            .unwrap();
        assert_eq!(
            key().open(place("p", "ca_1", "val"), &sealed).unwrap(),
            "secret"
        );
        let json = serde_json::to_string(&sealed).unwrap();
        assert!(
            !json.contains("secret") && json.starts_with("\"v1.dk_one."),
            "{json}"
        );
        let read: Sealed<String> = serde_json::from_str(&json).unwrap();
        assert_eq!(
            key().open(place("p", "ca_1", "val"), &read).unwrap(),
            "secret"
        );
    }

    #[test]
    fn two_ciphertexts_cannot_be_swapped() {
        let here = place("p", "ca_1", "val");
        let other = place("p", "ca_2", "val");
        let one = key().seal(here, &1).unwrap();
        let two = key().seal(other, &2).unwrap();
        assert!(key().open(here, &two).is_err());
        assert!(key().open(other, &one).is_err());
    }

    #[test]
    fn a_seal_holds_collection_project_record_and_field() {
        let sealed = key().seal(place("p", "ca_1", "val"), &1).unwrap();
        for elsewhere in [
            place("q", "ca_1", "val"),
            place("p", "ca_2", "val"),
            place("p", "ca_1", "other"),
            place("pca_1", "", "val"),
            SealContext {
                collection: "auth_configs",
                ..place("p", "ca_1", "val")
            },
        ] {
            assert!(key().open(elsewhere, &sealed).is_err(), "{elsewhere:?}");
        }
    }

    #[test]
    fn changed_ciphertext_or_wrong_key_is_refused() {
        let at = place("p", "ca_1", "val");
        let sealed = key().seal(at, &"secret".to_owned()).unwrap();
        for index in 0..sealed.text.len() {
            let mut bytes = sealed.text.clone().into_bytes();
            bytes[index] = if bytes[index] == b'A' { b'B' } else { b'A' };
            let tampered = Sealed::<String> {
                text: String::from_utf8(bytes).unwrap(),
                value: PhantomData,
            };
            assert!(key().open(at, &tampered).is_err(), "byte {index}");
        }
        assert!(
            DataKey::new("dk_one".into(), &[8; 32])
                .open(at, &sealed)
                .is_err()
        );
        assert!(
            DataKey::new("dk_two".into(), &[7; 32])
                .open(at, &sealed)
                .is_err()
        );
    }

    #[test]
    fn no_two_seals_share_a_nonce() {
        let seals = 10_000;
        let nonces = (0..seals).map(|_| {
            let sealed = key().seal(place("p", "ca_1", "val"), &1).unwrap();
            let (_, text) = sealed.text.rsplit_once('.').unwrap();
            BASE64.decode(text).unwrap()[..NONCE_BYTES].to_vec()
        });
        assert_eq!(
            nonces.collect::<std::collections::HashSet<_>>().len(),
            seals
        );
    }

    #[test]
    fn a_sealed_value_shows_nothing_when_printed() {
        let sealed = key()
            .seal(place("p", "ca_1", "val"), &"secret".to_owned())
            .unwrap();
        assert_eq!(format!("{sealed:?}"), "Sealed");
    }
}
