//! Replacing the master key while the server runs.
//!
//! Everything that the master key sealed, the data keys of all projects, is sealed again by a new one; what the data keys
//! sealed stays as it is. Each step may be the last one of a killed process:
//!
//! 1. the key file gets the new key, with the old one beside it;
//! 2. data keys are sealed again, a batch at a time; whoever reads one takes the key it names;
//! 3. when none names the old key, the key file loses it.
//!
//! Started again, it goes on with the keys it finds in the file. Other processes on the same store must not run meanwhile:
//! they do not learn of the new key.

use std::{collections::BTreeMap, path::Path};

use store::{Batch, CommitError, Record, Time};

use super::{COLLECTION, KeyFile, KeyFileError, Masters, Vault, Wrapped, wrapping};
use crate::{Error, Result};

/// Data keys sealed again in one batch.
const AT_ONCE: u64 = 64;

/// A master key and what it seals.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Master {
    /// Its name.
    pub id: String,
    /// Whether what is new is sealed by it.
    pub current: bool,
    /// Data keys, of which each project has one and the installation one.
    pub seals: u64,
}

/// Why the master key was not replaced. Whatever was done stays good, and goes on when it is asked for again.
#[derive(Debug, thiserror::Error)]
pub enum RotateError {
    /// The key file cannot be read or written.
    #[error(transparent)]
    File(#[from] KeyFileError),
    /// The file holds another key than the one in use.
    #[error("the key file does not hold the key in use; put that one back")]
    OtherKey,
    /// The store refuses.
    #[error(transparent)]
    Store(#[from] Error),
}

impl Vault {
    /// The master keys there are, and how much each seals.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn masters(&self) -> Result<Vec<Master>> {
        let mut sealed = BTreeMap::<String, u64>::new();
        let mut after = String::new();
        while let Some(page) = self.wrapped(&after).await? {
            for record in page.iter().filter(|record| record.is_live()) {
                *sealed.entry(record.body.key.key_id().unwrap_or("unknown").to_owned()).or_default() += 1;
            }
            after = page.into_iter().next_back().map(|record| record.id).unwrap_or_default();
        }
        let masters = self.masters.read().await;
        let known = std::iter::once(&masters.current).chain(&masters.previous);
        for key in known {
            sealed.entry(key.id.clone()).or_default();
        }
        let current = masters.current.id.as_str();
        Ok(sealed.into_iter().map(|(id, seals)| Master { current: id == current, id, seals }).collect())
    }

    /// Seals everything by a new master key, which takes the old one's place in the key file; goes on with what was begun.
    ///
    /// # Errors
    /// When key file or store refuse. Both keys are in the file then, and everything opens.
    pub async fn rotate(&self, path: &Path, now: Time) -> std::result::Result<(), RotateError> {
        let found = KeyFile::read(path)?;
        let file = {
            // Nothing is on its way that the key before sealed, once this is held.
            let mut masters = self.masters.write().await;
            let ours = &masters.current.id;
            if found.current.id != *ours && found.previous.as_ref().is_none_or(|key| key.id != *ours) {
                return Err(RotateError::OtherKey);
            }
            let file = found.renewed();
            file.replace(path)?;
            *masters = Masters::of(&file);
            file
        };
        let mut after = String::new();
        while let Some(page) = self.wrapped(&after).await? {
            if self.seal_again(&page, now).await? {
                after = page.into_iter().next_back().map(|record| record.id).unwrap_or_default();
            }
        }
        let settled = file.settled();
        settled.replace(path)?;
        *self.masters.write().await = Masters::of(&settled);
        Ok(())
    }

    /// The data keys after an id; none at the end.
    async fn wrapped(&self, after: &str) -> Result<Option<Vec<Record<Wrapped>>>> {
        let rows = self.store.scan(&COLLECTION, after, AT_ONCE).await?;
        let read = |row: store::Row| {
            let body = serde_json::from_slice(&row.body);
            let body = body.map_err(|cause| Error::Internal(format!("data key {} cannot be read: {cause}", row.id)))?;
            Ok(row.map(|_| body))
        };
        let page = rows.into_iter().map(read).collect::<Result<Vec<_>>>()?;
        Ok((!page.is_empty()).then_some(page))
    }

    /// Seals data keys by the current master key. False when one has changed meanwhile, and nothing was done.
    async fn seal_again(&self, page: &[Record<Wrapped>], now: Time) -> Result<bool> {
        let masters = self.masters.read().await;
        let mut batch = Batch::at(now);
        for record in page.iter().filter(|record| record.is_live()) {
            let Wrapped { key_id, key } = &record.body;
            if key.key_id() == Some(&masters.current.id) {
                continue;
            }
            let plain = masters.unwrap(&record.id, key)?;
            let body = Wrapped { key_id: key_id.clone(), key: masters.current.seal(wrapping(&record.id), &*plain)? };
            batch = batch.update(&Record { body, id: record.id.clone(), project: record.project.clone(), ..*record });
        }
        match self.store.commit(batch).await {
            Ok(()) => Ok(true),
            Err(CommitError::Stale) => Ok(false),
            Err(cause) => Err(cause.into()),
        }
    }
}
