//! Daily quotas: the bytes that each project writes into the execution log, as kept responses of
//! idempotency keys, as events, as ended runs of recipes, and as other records.
//!
//! The bytes are counted in memory where they are written. Every minute and at shutdown, the counts
//! are added to one record, which also returns the counts of other servers. Counting therefore adds
//! no write to a request and needs no query. A killed server loses the counts of its last minute,
//! and several servers together may exceed a quota by what they write in one minute. A day is
//! counted in parts of four hours, so that written bytes count for 24 to 28 hours.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use store::{Batch, Collection, Document, Erasure, Store, Time};
use strum::VariantArray;

use super::record_limits::{RecordKind, RecordLimits};
use crate::{
    App, Error, Result,
    core::{INSTALLATION_PROJECT, ids::ProjectId},
};

/// The collection of the single record.
pub(crate) static COLLECTION: Collection = Collection {
    name: "daily_amounts",
    erasure: Erasure::Other(
        "it has one record, in which the bytes of a project count for 28 hours",
    ),
    fields: &[],
};
const RECORD_ID: &str = "written";
/// Length of a part of a day, in milliseconds.
const PART_MS: i64 = 4 * 3_600_000;
/// Number of past parts that count in addition to the current one.
const COUNTED_PARTS: i64 = 6;
/// Bytes that a record counts in addition to its body: its envelope and its index entries.
const RECORD_BYTES: usize = 512;
/// Interval at which counts are added to the record.
const SAVE_INTERVAL: Duration = Duration::from_secs(60);

/// The bytes that a project may write in a day. `None` means no limit.
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings {
    /// The quota of the execution log, in bytes.
    pub log: Option<u64>,
    /// The quota of kept responses of idempotency keys, in bytes.
    pub responses: Option<u64>,
    /// The quota of events, in bytes.
    pub events: Option<u64>,
    /// The quota of runs of recipes, in bytes.
    pub runs: Option<u64>,
    /// The quota of other records, in bytes.
    pub records: Option<u64>,
    /// The numbers of records, which do not depend on the day.
    pub numbers: RecordLimits,
}

impl Settings {
    fn quota(self, kind: Kind) -> Option<u64> {
        match kind {
            Kind::Log => self.log,
            Kind::Responses => self.responses,
            Kind::Events => self.events,
            Kind::Runs => self.runs,
            Kind::Records => self.records,
        }
    }
}

/// The kind of counted data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, VariantArray)]
pub(crate) enum Kind {
    /// Records of executions with their inputs and outputs, and cassettes.
    Log,
    /// Kept responses of idempotency keys.
    Responses,
    /// Events with their deliveries, and the kept responses of endpoints.
    Events,
    /// Runs of recipes: what they are given, and what is kept at their end.
    Runs,
    /// Records that are bounded by no other quota.
    Records,
}

/// Bytes by owner and part of a day.
type Owners = BTreeMap<String, BTreeMap<i64, u64>>;

/// The bytes of all kinds.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Amounts {
    log: Owners,
    #[serde(rename = "answers")]
    responses: Owners,
    events: Owners,
    runs: Owners,
    records: Owners,
}

impl Document for Amounts {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// The counter of written bytes, which checks the quotas.
#[derive(Debug, Default)]
pub(crate) struct Quotas {
    settings: Settings,
    counted: Mutex<Counted>,
    /// Records that a project may add before they are counted again, by kind.
    grants: Mutex<HashMap<(ProjectId, RecordKind), u64>>,
}

#[derive(Debug, Default)]
struct Counted {
    /// The counts of all servers, as last read from the record.
    shared: Amounts,
    /// The counts of this server that are not yet in the record.
    own: Amounts,
}

impl Amounts {
    fn owners(&self, kind: Kind) -> &Owners {
        match kind {
            Kind::Log => &self.log,
            Kind::Responses => &self.responses,
            Kind::Events => &self.events,
            Kind::Runs => &self.runs,
            Kind::Records => &self.records,
        }
    }

    fn owners_mut(&mut self, kind: Kind) -> &mut Owners {
        match kind {
            Kind::Log => &mut self.log,
            Kind::Responses => &mut self.responses,
            Kind::Events => &mut self.events,
            Kind::Runs => &mut self.runs,
            Kind::Records => &mut self.records,
        }
    }

    /// Returns the bytes of an owner that still count.
    fn sum(&self, kind: Kind, owner: &str, part: i64) -> u64 {
        let parts = self.owners(kind).get(owner).into_iter().flatten();
        let counted = parts.filter(|(at, _)| **at >= part - COUNTED_PARTS);
        counted.map(|(_, bytes)| bytes).sum()
    }

    fn add(&mut self, kind: Kind, owner: &str, part: i64, bytes: u64) {
        let owners = self.owners_mut(kind);
        match owners.get_mut(owner) {
            Some(parts) => *parts.entry(part).or_default() += bytes,
            None => drop(owners.insert(owner.to_owned(), BTreeMap::from([(part, bytes)]))),
        }
    }

    fn add_all(&mut self, other: &Self) {
        for &kind in Kind::VARIANTS {
            for (owner, parts) in other.owners(kind) {
                for (part, bytes) in parts {
                    self.add(kind, owner, *part, *bytes);
                }
            }
        }
    }

    /// Subtracts the counts of `other` and drops the parts that no longer count.
    fn subtract(&mut self, other: &Self, part: i64) {
        for &kind in Kind::VARIANTS {
            self.owners_mut(kind).retain(|owner, parts| {
                let others = other.owners(kind).get(owner);
                parts.retain(|at, bytes| {
                    let other = others.and_then(|others| others.get(at));
                    *bytes = bytes.saturating_sub(other.copied().unwrap_or(0));
                    *bytes > 0 && *at >= part - COUNTED_PARTS
                });
                !parts.is_empty()
            });
        }
    }

    fn is_empty(&self) -> bool {
        let mut kinds = Kind::VARIANTS.iter();
        kinds.all(|kind| self.owners(*kind).is_empty())
    }
}

impl Quotas {
    /// Opens the quotas with the counts of the stored record. Fails if the record cannot be read.
    pub(crate) async fn open(settings: Settings, store: &Store) -> Result<Self> {
        let (shared, own) = (stored(store).await?, Amounts::default());
        Ok(Self {
            settings,
            counted: Mutex::new(Counted { shared, own }),
            grants: Mutex::default(),
        })
    }

    /// Returns the numbers of records that a project may have.
    pub(super) fn record_limits(&self) -> &RecordLimits {
        &self.settings.numbers
    }

    /// Uses up one granted record. Returns false without a remaining one.
    pub(super) fn use_grant(&self, project: &ProjectId, kind: RecordKind) -> bool {
        let mut grants = self.grants.lock();
        let Some(left) = grants.get_mut(&(project.clone(), kind)) else {
            return false;
        };
        *left -= 1;
        if *left == 0 {
            grants.remove(&(project.clone(), kind));
        }
        true
    }

    /// Grants records that a project may add before they are counted again.
    pub(super) fn grant(&self, project: &ProjectId, kind: RecordKind, records: u64) {
        if records > 0 {
            self.grants.lock().insert((project.clone(), kind), records);
        }
    }

    /// Returns true if an owner has written at least a multiple of its quota.
    pub(crate) fn is_past(&self, kind: Kind, owner: &str, multiple: u64, now: Time) -> bool {
        let Some(quota) = self.settings.quota(kind) else {
            return false;
        };
        let part = now.0.div_euclid(PART_MS);
        let counted = self.counted.lock();
        let used = counted.shared.sum(kind, owner, part) + counted.own.sum(kind, owner, part);
        used >= quota.saturating_mul(multiple)
    }

    /// Counts bytes of an owner. Returns false without counting them if they exceed its quota.
    pub(crate) fn take(&self, kind: Kind, owner: &str, bytes: usize, now: Time) -> bool {
        let Some(quota) = self.settings.quota(kind) else {
            return true;
        };
        let (part, bytes) = (now.0.div_euclid(PART_MS), bytes as u64);
        let mut counted = self.counted.lock();
        let used = counted.shared.sum(kind, owner, part) + counted.own.sum(kind, owner, part);
        let fits = used.saturating_add(bytes) <= quota;
        if fits {
            counted.own.add(kind, owner, part, bytes);
        }
        fits
    }

    /// Counts a record of an owner with a body of `bytes`. Returns false without counting it if it
    /// exceeds the quota of records.
    pub(super) fn take_record(&self, owner: &str, bytes: usize, now: Time) -> bool {
        self.take(
            Kind::Records,
            owner,
            bytes.saturating_add(RECORD_BYTES),
            now,
        )
    }

    /// Counts bytes of an owner, also those that exceed its quota.
    pub(crate) fn count(&self, kind: Kind, owner: &str, bytes: usize, now: Time) {
        if self.settings.quota(kind).is_some() {
            let part = now.0.div_euclid(PART_MS);
            let mut counted = self.counted.lock();
            counted.own.add(kind, owner, part, bytes as u64);
        }
    }

    /// Adds the counts to the record and reads those of other servers. Counts that cannot be added
    /// are kept for the next attempt.
    pub(crate) async fn save(&self, store: &Store, now: Time) {
        if let Err(cause) = self.add(store, now).await {
            tracing::warn!(%cause, "the daily quotas could not be saved");
        }
    }

    async fn add(&self, store: &Store, now: Time) -> Result<()> {
        let (part, own) = (now.0.div_euclid(PART_MS), self.counted.lock().own.clone());
        let shared = if own.is_empty() {
            stored(store).await?
        } else {
            let added = store.edit(INSTALLATION_PROJECT, RECORD_ID, now, |all: &mut Amounts| {
                all.add_all(&own);
                all.subtract(&Amounts::default(), part);
                Ok::<_, Error>(all.clone())
            });
            match added.await? {
                Some(shared) => shared,
                None => {
                    let batch = Batch::at(now).insert(INSTALLATION_PROJECT, RECORD_ID, &own);
                    store.commit(batch).await?;
                    own.clone()
                }
            }
        };
        let mut counted = self.counted.lock();
        counted.shared = shared;
        counted.own.subtract(&own, part);
        Ok(())
    }
}

/// Returns the counts of the record. Fails if the store cannot be read.
async fn stored(store: &Store) -> Result<Amounts> {
    let record = store.get(INSTALLATION_PROJECT, RECORD_ID).await?;
    Ok(record.map(|record| record.body).unwrap_or_default())
}

/// Adds the counts to the record every minute. Never returns.
pub(crate) async fn keep_counts(app: &App) {
    loop {
        tokio::time::sleep(SAVE_INTERVAL).await;
        app.quotas.save(&app.store, app.clock.now()).await;
    }
}

#[cfg(test)]
mod tests;
