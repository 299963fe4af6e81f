//! Translation of batches into changes to the tree.
//!
//! Preconditions are read one by one on the commit thread. Nothing else writes during that time, so
//! what was checked still holds when the changes are applied. Batches that arrive together form a
//! round. Each batch sees the changes of those before it. All of them, with index keys and
//! counters, are applied to the tree in one step that a crash cannot split.

use super::catalog::Catalog;
use super::keys::Key;
use super::position::{self, Changes, Position};
use super::records::{self, CollectionRef, Reader, Stored};
use super::{counters, envelope};
use crate::values::Values;
use crate::{Batch, CommitError, Error, Record, Row, Step, Time, Write};
use ::sled::{Db, IVec};
use ahash::{HashMap, HashSet};
use std::collections::BTreeMap;

/// A well-formed batch, with everything that can be computed in advance.
#[derive(Debug)]
pub(super) struct Prepared {
    now: Time,
    /// Steps in order of collection name and id.
    writes: Vec<(CollectionRef, Write, Values)>,
    /// Total size of all bodies, in bytes.
    pub(super) bytes: u64,
}

impl Prepared {
    /// Returns true if the batch only removes data, so that it may use the space reserved for that.
    pub(super) fn frees_only(&self) -> bool {
        self.writes
            .iter()
            .all(|(_, write, _)| write.step.body().is_none())
    }
}

/// Checks the form of a batch and reads the declared fields of its bodies.
pub(super) fn prepare(catalog: &Catalog, batch: Batch) -> Result<Prepared, CommitError> {
    let now = batch.now;
    let mut writes = Vec::with_capacity(batch.writes.len());
    let mut bytes = 0;
    for (write, values) in batch.checked()? {
        let collection = catalog.collection(write.collection).ok_or_else(|| {
            CommitError::Invalid(format!(
                "the collection {} was not declared",
                write.collection.name
            ))
        })?;
        bytes += write.step.body().map_or(0, |body| body.len() as u64);
        writes.push((collection, write, values));
    }
    Ok(Prepared { now, writes, bytes })
}

fn contains_key(claims: &[(usize, Key)], key: &Key) -> bool {
    claims.iter().any(|(_, other)| other.bytes() == key.bytes())
}

fn key_set(keys: &[Key]) -> HashSet<Vec<u8>> {
    keys.iter().map(|key| key.bytes().to_vec()).collect()
}

/// The tree as the batches of a round leave it.
pub(super) struct Round<'a> {
    db: &'a Db,
    position: Position,
    writes: HashMap<IVec, Option<IVec>>,
    vacated: Vec<IVec>,
}

/// Changes of a round to the tree.
pub(super) struct Planned {
    /// Sled batch to apply.
    pub(super) batch: ::sled::Batch,
    /// Removed keys whose values took much space, in order.
    pub(super) vacated: Vec<IVec>,
    /// Position after the batch.
    pub(super) position: Position,
}

impl<'a> Round<'a> {
    pub(super) fn new(db: &'a Db, position: &Position) -> Round<'a> {
        Round {
            db,
            position: position.clone(),
            writes: HashMap::default(),
            vacated: Vec::new(),
        }
    }

    /// Adds a batch. If the batch is refused, nothing changes and the error is the reason.
    pub(super) fn add(&mut self, batch: Prepared) -> Result<(), CommitError> {
        let (writes, vacated, position) = plan(self, batch)?.finish();
        self.writes
            .extend(writes.map(|(key, value)| (key.into_bytes().into(), value)));
        self.vacated
            .extend(vacated.into_iter().map(|key| IVec::from(key.into_bytes())));
        self.position = position;
        Ok(())
    }

    /// Returns the changes of the round, or `None` if nothing changes.
    pub(super) fn finish(mut self) -> Option<Planned> {
        if self.writes.is_empty() {
            return None;
        }
        // A later batch of the round may have written to the key again.
        self.vacated
            .retain(|key| self.writes.get(key) == Some(&None));
        self.vacated.sort();
        let mut batch = ::sled::Batch::default();
        self.writes
            .into_iter()
            .for_each(|(key, value)| position::write(&mut batch, key, value));
        batch.insert(Key::meta().into_bytes(), self.position.encode());
        Some(Planned {
            batch,
            vacated: self.vacated,
            position: self.position,
        })
    }
}

impl Reader for Round<'_> {
    fn value(&self, key: &Key) -> Result<Option<IVec>, Error> {
        match self.writes.get(key.bytes()) {
            Some(written) => Ok(written.clone()),
            None => self.db.value(key),
        }
    }
}

/// Computes the changes of a batch. The error is the reason why it is refused.
fn plan(round: &Round<'_>, batch: Prepared) -> Result<Changes, CommitError> {
    let mut planner = Planner {
        round,
        now: batch.now,
        changes: Changes::new(&round.position),
        claimed: HashSet::default(),
        counts: BTreeMap::new(),
    };
    for (collection, write, values) in batch.writes {
        planner.write(collection, write, values)?;
    }
    planner.count()?;
    Ok(planner.changes)
}

struct Planner<'a> {
    round: &'a Round<'a>,
    now: Time,
    changes: Changes,
    /// Unique keys that the batch itself has taken.
    claimed: HashSet<Vec<u8>>,
    /// Change in the number of live and removed records, by collection and project.
    counts: BTreeMap<u16, BTreeMap<String, counters::Count>>,
}

impl Planner<'_> {
    fn write(
        &mut self,
        collection: CollectionRef,
        write: Write,
        values: Values,
    ) -> Result<(), CommitError> {
        let old = records::read(self.round, collection, &write.id).map_err(unavailable)?;
        let checked = matches!(write.step, Step::Check { .. });
        let removes = matches!(write.step, Step::Remove { .. });
        let outcome = self.outcome(write, old.as_ref())?;
        if checked {
            return Ok(());
        }
        let old_values = match &old {
            Some(old) => records::values(collection, &old.row).map_err(unavailable)?,
            None => Values::default(),
        };
        let new = outcome.map(|row| {
            // A removal keeps the body, and with it the values.
            let values = if removes { old_values.clone() } else { values };
            (row, values)
        });
        self.claim(
            collection,
            old.as_ref().map(|old| (&old.row, &old_values)),
            new.as_ref(),
        )?;
        self.index(
            collection,
            old.as_ref().map(|old| (&old.row, &old_values)),
            new.as_ref(),
        );
        self.store(collection, old, new.map(|(row, _)| row));
        Ok(())
    }

    /// Returns the record after the step, or `None` if it is erased. Fails if the step's
    /// precondition does not hold.
    fn outcome(&self, write: Write, old: Option<&Stored>) -> Result<Option<Row>, CommitError> {
        let now = self.now;
        let old = old.map(|old| &old.row);
        let read = |revision: i64| match old {
            Some(row) if row.project == write.project && row.revision == revision => Ok(row),
            _ => Err(CommitError::Stale),
        };
        let live = |revision: i64| {
            read(revision).and_then(|row| row.is_live().then_some(row).ok_or(CommitError::Stale))
        };
        let next = |row: &Row| Record {
            revision: row.revision + 1,
            updated_at: now,
            ..row.clone()
        };
        Ok(match write.step {
            Step::Insert { .. } | Step::Restore { .. } if old.is_some() => {
                return Err(CommitError::Taken {
                    collection: write.collection.name,
                    field: "id",
                });
            }
            Step::Insert { .. } | Step::Restore { .. } => write.into_created(now),
            Step::Update { revision, ref body } => Some(Record {
                body: body.clone(),
                ..next(live(revision)?)
            }),
            Step::Remove { revision } => Some(Record {
                deleted_at: Some(now),
                ..next(live(revision)?)
            }),
            Step::Purge { revision } => read(revision).map(|_| None)?,
            Step::Check { revision } => live(revision).map(|_| None)?,
        })
    }

    /// Takes the unique values of the new record and releases those of the old one.
    fn claim(
        &mut self,
        collection: CollectionRef,
        old: Option<(&Row, &Values)>,
        new: Option<&(Row, Values)>,
    ) -> Result<(), CommitError> {
        let old_claims = old.map_or_else(Vec::new, |(row, values)| {
            records::claims(collection, row, values)
        });
        let new_claims = new.map_or_else(Vec::new, |(row, values)| {
            records::claims(collection, row, values)
        });
        for (place, key) in new_claims
            .iter()
            .filter(|(_, key)| !contains_key(&old_claims, key))
        {
            let taken = self.round.value(key).map_err(unavailable)?.is_some();
            if taken || !self.claimed.insert(key.bytes().to_vec()) {
                return Err(CommitError::Taken {
                    collection: collection.declaration.name,
                    field: collection.declaration.fields[*place].name,
                });
            }
        }
        let id = new
            .map(|(row, _)| row)
            .or(old.map(|(row, _)| row))
            .map_or("", |row| &row.id);
        let (gone, kept): (Vec<_>, Vec<_>) = old_claims
            .into_iter()
            .partition(|(_, key)| !contains_key(&new_claims, key));
        for (_, key) in gone {
            self.changes.remove(key, id.as_bytes());
        }
        for (_, key) in new_claims
            .into_iter()
            .filter(|(_, key)| !contains_key(&kept, key))
        {
            self.changes.put(key, id.as_bytes(), None);
        }
        Ok(())
    }

    /// Replaces the index keys of the old record by those of the new one. Keys that both have are
    /// not changed.
    fn index(
        &mut self,
        collection: CollectionRef,
        old: Option<(&Row, &Values)>,
        new: Option<&(Row, Values)>,
    ) {
        let old_keys = old.map_or_else(Vec::new, |(row, values)| {
            records::entries(collection, row, values)
        });
        let new_keys = new.map_or_else(Vec::new, |(row, values)| {
            records::entries(collection, row, values)
        });
        if old_keys.is_empty() {
            new_keys
                .into_iter()
                .for_each(|key| self.changes.put(key, [].as_slice(), None));
            return;
        }
        let old_set = key_set(&old_keys);
        let new_set = key_set(&new_keys);
        for key in old_keys
            .into_iter()
            .filter(|key| !new_set.contains(key.bytes()))
        {
            self.changes.remove(key, &[]);
        }
        for key in new_keys
            .into_iter()
            .filter(|key| !old_set.contains(key.bytes()))
        {
            self.changes.put(key, [].as_slice(), None);
        }
    }

    /// Replaces the stored value and its pieces, and updates the counts.
    fn store(&mut self, collection: CollectionRef, old: Option<Stored>, new: Option<Row>) {
        let number = collection.number;
        if let Some(old) = &old {
            self.tally(number, &old.row, -1);
            for (place, piece) in (0..).zip(&old.pieces) {
                self.changes.remove(
                    Key::piece(number, &old.row.id, old.row.revision, place),
                    piece,
                );
            }
        }
        match (&new, &old) {
            (Some(row), _) => {
                self.tally(number, row, 1);
                let key = Key::document(number, &row.id);
                let (value, pieces) = envelope::encode(&key, row);
                for (place, piece) in (0..).zip(pieces) {
                    self.changes.put(
                        Key::piece(number, &row.id, row.revision, place),
                        piece,
                        None,
                    );
                }
                self.changes
                    .put(key, value, old.as_ref().map(|old| &*old.value));
            }
            (None, Some(old)) => self
                .changes
                .remove(Key::document(number, &old.row.id), &old.value),
            (None, None) => {}
        }
    }

    fn tally(&mut self, number: u16, row: &Row, change: i64) {
        self.changes.count(number, change);
        let counts = self.counts.entry(number).or_default();
        let count = match counts.get_mut(&row.project) {
            Some(count) => count,
            None => counts.entry(row.project.clone()).or_default(),
        };
        *(if row.is_live() {
            &mut count.live
        } else {
            &mut count.removed
        }) += change;
    }

    /// Updates the counters.
    fn count(&mut self) -> Result<(), CommitError> {
        for (number, counts) in std::mem::take(&mut self.counts) {
            for (project, change) in counts {
                self.count_one(number, &project, change)
                    .map_err(unavailable)?;
            }
        }
        Ok(())
    }

    fn count_one(
        &mut self,
        number: u16,
        project: &str,
        change: counters::Count,
    ) -> Result<(), Error> {
        let none = counters::Count::default();
        if change == none {
            return Ok(());
        }
        let key = Key::counter(number, project);
        let old = self.round.value(&key)?;
        let stored = counters::decode(project, old.as_deref())?;
        let updated = counters::Count {
            live: stored.live + change.live,
            removed: stored.removed + change.removed,
        };
        match old {
            Some(old) if updated == none => self.changes.remove(key, &old),
            old => self.changes.put(key, updated.encode(), old.as_deref()),
        }
        Ok(())
    }
}

fn unavailable(error: Error) -> CommitError {
    CommitError::Unavailable(error.to_string())
}
