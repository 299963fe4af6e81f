//! The master keys, and the data keys that they wrap.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use store::{Batch, Collection, Document, Erasure, Time};
use zeroize::Zeroizing;

use super::{DataKey, KeyFile, SealContext, Sealed, key_file};
use crate::{Result, core::ids};

/// A data key as stored, under the id of the project it belongs to.
#[derive(Serialize, Deserialize)]
pub(super) struct WrappedKey {
    /// The id of the data key, written into every value it seals.
    pub(super) key_id: String,
    /// The data key, sealed by the master key.
    pub(super) key: Sealed<[u8; 32]>,
}

impl Document for WrappedKey {
    const COLLECTION: &'static Collection = &COLLECTION;
}

pub(crate) static COLLECTION: Collection = Collection {
    name: "data_keys",
    erasure: Erasure::Other(
        "the execution log of a deleted project is opened with its key until its retention ends",
    ),
    fields: &[],
};

/// The master key that wraps data keys, and the previous one during a rotation.
pub(super) struct MasterKeys {
    pub(super) current: DataKey,
    pub(super) previous: Option<DataKey>,
}

impl MasterKeys {
    pub(super) fn from_file(file: &KeyFile) -> Self {
        Self {
            current: data_key(&file.current),
            previous: file.previous.as_ref().map(data_key),
        }
    }

    /// Opens a data key with the master key that wrapped it.
    pub(super) fn unwrap_key(
        &self,
        project: &str,
        wrapped: &Sealed<[u8; 32]>,
    ) -> Result<Zeroizing<[u8; 32]>> {
        let previous = self.previous.as_ref();
        let key = previous.filter(|key| wrapped.key_id() == Some(key.id.as_str()));
        let key = key.unwrap_or(&self.current);
        key.open(wrapping_context(project), wrapped)
            .map(Zeroizing::new)
    }
}

fn data_key(key: &key_file::MasterKey) -> DataKey {
    DataKey::new(key.id.clone(), &key.key, Arc::default())
}

/// Names the field of a stored data key.
pub(super) fn wrapping_context(project: &str) -> SealContext<'_> {
    SealContext::new::<WrappedKey>(project, project, "key")
}

/// Returns the batch that stores a new data key.
pub(super) fn wrap(master: &DataKey, project: &str, key: &[u8; 32], now: Time) -> Result<Batch> {
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
