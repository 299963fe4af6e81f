//! Rotation of the master key while the server runs.
//!
//! Every value that the master key sealed (the data keys of all projects) is sealed again by a new
//! master key. Values sealed by the data keys stay as they are. The process may be killed after any
//! step:
//!
//! 1. The key file gets the new key in addition to the old one.
//! 2. The data keys are sealed again in batches. A reader opens each data key with the master key
//!    it names.
//! 3. When no data key names the old key, the key file drops it.
//!
//! A restarted rotation continues with the keys it finds in the file. Other processes on the same
//! store must not run during a rotation, because they do not learn of the new key.

use std::{collections::BTreeMap, path::Path};

use store::{Batch, CommitError, Record, Time};

use super::{
    COLLECTION, KeyFile, KeyFileError, Vault,
    masters::{MasterKeys, WrappedKey, wrapping_context},
};
use crate::{
    Error, Result,
    core::{AUDIT_LOG_TARGET, errors},
};

/// Maximum number of data keys that are sealed again in one batch.
const REWRAP_BATCH_SIZE: u64 = 64;

/// A master key and the number of data keys it seals.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct MasterKeyUsage {
    /// The id of the key.
    pub id: String,
    /// True if new values are sealed by this key.
    pub current: bool,
    /// The number of data keys it seals. Each project has one data key, and the installation has
    /// one.
    pub seals: u64,
}

/// The reason why the master key was not replaced. Completed steps stay valid, and another rotation
/// continues from them.
#[derive(Debug, thiserror::Error)]
pub enum RotateError {
    /// The key file cannot be read or written.
    #[error(transparent)]
    File(#[from] KeyFileError),
    /// The file holds another key than the one in use.
    #[error("the key file does not contain the key in use: restore the previous key file")]
    OtherKey,
    /// The store could not be read or written.
    #[error(transparent)]
    Store(#[from] Error),
}

impl Vault {
    /// Returns the known master keys and the number of data keys each one seals.
    pub async fn masters(&self) -> Result<Vec<MasterKeyUsage>> {
        let mut sealed = BTreeMap::<String, u64>::new();
        let mut after = String::new();
        while let Some(page) = self.wrapped_page(&after).await? {
            for record in page.iter().filter(|record| record.is_live()) {
                let id = record.body.key.key_id().unwrap_or("unknown");
                *sealed.entry(id.to_owned()).or_default() += 1;
            }
            after = last_id(page);
        }
        let masters = self.masters.read().await;
        let known = std::iter::once(&masters.current).chain(&masters.previous);
        for key in known {
            sealed.entry(key.id.clone()).or_default();
        }
        let current = masters.current.id.as_str();
        let usages = sealed.into_iter().map(|(id, seals)| MasterKeyUsage {
            current: id == current,
            id,
            seals,
        });
        Ok(usages.collect())
    }

    /// Seals all data keys by a new master key, which replaces the old one in the key file.
    /// Continues a rotation that was interrupted. Fails if the key file or the store refuses. Both
    /// keys are in the key file in this case, and every data key opens.
    pub async fn rotate(&self, path: &Path, now: Time) -> std::result::Result<(), RotateError> {
        let found = KeyFile::read(path)?;
        let file = {
            // The write lock waits for all commits of data keys sealed by the old key.
            let mut masters = self.masters.write().await;
            let ours = &masters.current.id;
            if found.current.id != *ours
                && found.previous.as_ref().is_none_or(|key| key.id != *ours)
            {
                return Err(RotateError::OtherKey);
            }
            let file = found.with_new_key();
            file.replace(path)?;
            *masters = MasterKeys::from_file(&file);
            file
        };
        let mut after = String::new();
        while let Some(page) = self.wrapped_page(&after).await? {
            if self.rewrap(&page, now).await? {
                after = last_id(page);
            }
        }
        let rotated = file.without_previous();
        rotated.replace(path)?;
        *self.masters.write().await = MasterKeys::from_file(&rotated);
        tracing::info!(target: AUDIT_LOG_TARGET, "the master key was replaced");
        Ok(())
    }

    /// Returns the next page of data keys after an id, or `None` at the end.
    async fn wrapped_page(&self, after: &str) -> Result<Option<Vec<Record<WrappedKey>>>> {
        let rows = self.store.scan(&COLLECTION, after, REWRAP_BATCH_SIZE);
        let rows = rows.await?.into_iter();
        let page = rows.map(parse_key).collect::<Result<Vec<_>>>()?;
        Ok((!page.is_empty()).then_some(page))
    }

    /// Seals data keys by the current master key. Returns false, having changed nothing, if one of
    /// the records changed in the meantime.
    async fn rewrap(&self, page: &[Record<WrappedKey>], now: Time) -> Result<bool> {
        let masters = self.masters.read().await;
        let mut batch = Batch::at(now);
        for record in page.iter().filter(|record| record.is_live()) {
            let WrappedKey { key_id, key } = &record.body;
            if key.key_id() == Some(&masters.current.id) {
                continue;
            }
            let plain = masters.unwrap_key(&record.id, key)?;
            let context = wrapping_context(&record.id);
            let body = WrappedKey {
                key_id: key_id.clone(),
                key: masters.current.seal(context, &*plain)?,
            };
            batch = batch.update(&Record {
                body,
                id: record.id.clone(),
                project: record.project.clone(),
                ..*record
            });
        }
        match self.store.commit(batch).await {
            Ok(()) => Ok(true),
            Err(CommitError::Stale) => Ok(false),
            Err(cause) => Err(cause.into()),
        }
    }
}

fn parse_key(row: store::Row) -> Result<Record<WrappedKey>> {
    match serde_json::from_slice(&row.body) {
        Ok(body) => Ok(row.map(|_| body)),
        Err(cause) => Err(errors::internal(format!(
            "data key {} cannot be read: {cause}",
            row.id
        ))),
    }
}

fn last_id(page: Vec<Record<WrappedKey>>) -> String {
    let last = page.into_iter().next_back();
    last.map(|record| record.id).unwrap_or_default()
}
