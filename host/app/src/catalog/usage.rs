//! The number of executions per toolkit, used only to order lists by usage.
//!
//! Executions are counted in memory where the log writes them, and added to one record once a
//! second and at shutdown. Counting therefore costs a call nothing, several servers share the
//! counts, and a killed server loses at most the counts since its last write.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use store::{Batch, Collection, Document, Erasure, Store, Time};

use crate::{App, Error, Result, core::INSTALLATION_PROJECT};

/// The collection of the single record.
pub(crate) static USAGE_COLLECTION: Collection = Collection {
    name: "toolkit_usage",
    erasure: Erasure::Other("it has one record, which counts by toolkit"),
    fields: &[],
};
const RECORD_ID: &str = "runs";

/// The number of executions by toolkit.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Counts {
    runs: BTreeMap<String, u64>,
}

impl Document for Counts {
    const COLLECTION: &'static Collection = &USAGE_COLLECTION;
}

impl Counts {
    /// Returns the number of executions of a toolkit.
    #[must_use]
    pub fn get(&self, toolkit: &str) -> u64 {
        self.runs.get(toolkit).copied().unwrap_or(0)
    }

    fn add(&mut self, counted: &HashMap<Arc<str>, u64>) {
        for (toolkit, runs) in counted {
            *self.runs.entry(toolkit.to_string()).or_default() += runs;
        }
    }
}

/// The counts of this server that are not yet in the record.
#[derive(Debug, Default)]
pub(crate) struct Usage(Mutex<HashMap<Arc<str>, u64>>);

impl Usage {
    pub(crate) fn count(&self, toolkit: &Arc<str>, runs: u64) {
        let mut counted = self.0.lock();
        match counted.get_mut(toolkit) {
            Some(count) => *count += runs,
            None => drop(counted.insert(toolkit.clone(), runs)),
        }
    }

    /// Returns true if counts wait to be added to the record.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.0.lock().is_empty()
    }

    /// Adds the counts to the record. Counts that cannot be added are kept for the next attempt.
    /// Fails if the store refuses.
    pub(crate) async fn save(&self, store: &Store, now: Time) -> Result<()> {
        let counted = self.0.lock().clone();
        if counted.is_empty() {
            return Ok(());
        }
        let added = store.edit(
            INSTALLATION_PROJECT,
            RECORD_ID,
            now,
            |counts: &mut Counts| {
                counts.add(&counted);
                Ok::<_, Error>(())
            },
        );
        if added.await?.is_none() {
            let mut first = Counts::default();
            first.add(&counted);
            let batch = Batch::at(now).insert(INSTALLATION_PROJECT, RECORD_ID, &first);
            store.commit(batch).await?;
        }
        let mut left = self.0.lock();
        left.retain(|toolkit, runs| {
            *runs -= counted.get(toolkit).copied().unwrap_or(0);
            *runs > 0
        });
        Ok(())
    }
}

/// Returns the number of executions of each toolkit, including counts of this server that are not
/// yet written.
pub async fn usage(app: &App) -> Result<Counts> {
    let record = app.store.get(INSTALLATION_PROJECT, RECORD_ID).await?;
    let mut counts: Counts = record.map(|record| record.body).unwrap_or_default();
    counts.add(&app.usage.0.lock());
    Ok(counts)
}

#[cfg(test)]
mod tests;
