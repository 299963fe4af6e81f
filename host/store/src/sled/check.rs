//! Checks of all data in the tree.
//!
//! [`walk`] reads every key once and computes the position, which the caller compares with the
//! stored one: nothing is missing, nothing has fallen back. [`cross_check`] also decodes every
//! record and compares indexes and counters with the records.

use super::catalog::Catalog;
use super::keys::{DOCUMENT_ID_OFFSET, Key, Prefix, collection_of};
use super::position::{Position, hash};
use super::records::{self, CollectionRef};
use super::{counters, envelope, vacancy};
use crate::{Error, OPENING_THREAD, Report, shortened};
use ::sled::{Db, IVec};
use std::collections::HashMap;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;

/// Number of records from which the keys of a collection are divided among threads.
const MIN_DIVIDED_RECORDS: u64 = 1_024;
/// Number of ranges into which such keys are divided.
const RANGES_PER_COLLECTION: u64 = 8;
/// Maximum number of threads of a walk.
const MAX_WALK_THREADS: usize = 4;
/// Bytes of a value for which its page is accessed once more after reading. Sled counts accesses in
/// blocks of 64 for each of the 256 parts of its cache, and evicts pages only when a block is full.
/// Since reading accesses each page once, up to 16,384 pages of any size would stay in memory.
const BYTES_PER_ACCESS: usize = 1_024;

/// Result of a walk.
pub(super) struct Walk {
    /// Position computed from the keys, with the sequence of the expected one.
    pub(super) position: Position,
    /// One line for each broken item.
    pub(super) damage: Vec<String>,
    /// Keys of the marks that a crash has left behind.
    pub(super) marks: Vec<IVec>,
}

/// Reads every key on several threads. Little of it stays in memory afterwards.
pub(super) fn walk(db: &Db, position: &Position) -> ::sled::Result<Walk> {
    let starts = range_starts(db, position)?;
    let next = AtomicUsize::new(0);
    let work = || -> ::sled::Result<Walk> {
        let mut walk = Walk::new(position);
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(start) = starts.get(index) else {
                return Ok(walk);
            };
            match starts.get(index + 1) {
                Some(end) => walk.read(db, db.range::<&[u8], _>(&start[..]..&end[..]))?,
                None => walk.read(db, db.range::<&[u8], _>(&start[..]..))?,
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let others = threads.min(MAX_WALK_THREADS).min(starts.len()) - 1;
    let mut walk = std::thread::scope(|scope| {
        let spawned = (0..others).flat_map(|_| {
            let named = Builder::new().name(OPENING_THREAD.to_owned());
            named.spawn_scoped(scope, work)
        });
        let others: Vec<_> = spawned.collect();
        let mut walk = work()?;
        for other in others {
            // Sled panics on damage. The caller catches it.
            walk.merge(other.join().unwrap_or_else(|panic| resume_unwind(panic))?);
        }
        Ok::<_, ::sled::Error>(walk)
    })?;
    // A collection without records counts the same whether it is listed or not.
    let records = &mut walk.position.records;
    records.resize(position.records.len().max(records.len()), 0);
    Ok(walk)
}

/// Returns the first keys of the ranges that threads read, in order. The keys of large collections
/// are divided evenly by value, because most ids start with a time or are random.
fn range_starts(db: &Db, position: &Position) -> ::sled::Result<Vec<Vec<u8>>> {
    let mut starts = vec![Vec::new()];
    for prefix in [Prefix::Document, Prefix::Piece] {
        for (collection, records) in (0..).zip(&position.records) {
            if *records < MIN_DIVIDED_RECORDS {
                continue;
            }
            let mut keys = db
                .scan_prefix(Key::collection(prefix, collection).bytes())
                .keys();
            let (Some(first), Some(last)) = (keys.next(), keys.next_back()) else {
                continue;
            };
            let (first, last) = (first?, last?);
            starts
                .extend((1..RANGES_PER_COLLECTION).map(|place| key_between(&first, &last, place)));
        }
    }
    starts.sort_unstable();
    starts.dedup();
    Ok(starts)
}

/// Returns a key at `place` of [`RANGES_PER_COLLECTION`] between two keys.
fn key_between(first: &[u8], last: &[u8], place: u64) -> Vec<u8> {
    let equal = first.iter().zip(last).take_while(|(a, b)| a == b).count();
    let (low, high) = (number_at(first, equal), number_at(last, equal));
    let number = low + high.saturating_sub(low) / RANGES_PER_COLLECTION * place;
    [&first[..equal], &number.to_be_bytes()].concat()
}

/// Returns the eight bytes of a key from a position as a number. Missing bytes count as zero.
fn number_at(key: &[u8], start: usize) -> u64 {
    let bytes = (start..start + 8).map(|at| key.get(at).copied().unwrap_or(0));
    bytes.fold(0, |number, byte| number << 8 | u64::from(byte))
}

impl Walk {
    fn new(position: &Position) -> Walk {
        Walk {
            position: Position {
                sequence: position.sequence,
                ..Position::empty(position.store)
            },
            damage: Vec::new(),
            marks: Vec::new(),
        }
    }

    fn read(&mut self, db: &Db, entries: ::sled::Iter) -> ::sled::Result<()> {
        for entry in entries {
            let (key, value) = entry?;
            for _ in 0..value.len() / BYTES_PER_ACCESS {
                db.contains_key(&key)?;
            }
            self.count(key, &value);
        }
        Ok(())
    }

    fn count(&mut self, key: IVec, value: &[u8]) {
        let prefix = Prefix::from_key(&key);
        if prefix == Some(Prefix::Meta) {
            return;
        }
        if vacancy::may_be_marked(&key) && vacancy::is_mark(value) {
            self.marks.push(key);
            return;
        }
        self.position.keys += 1;
        self.position.digest = self.position.digest.wrapping_add(hash(&key, value));
        match (prefix, collection_of(&key)) {
            (Some(Prefix::Document), Some(collection)) => {
                self.position.count(collection, 1);
                let id = String::from_utf8_lossy(&key[DOCUMENT_ID_OFFSET..]);
                if let Err(reason) = envelope::decode(&Key::document(collection, &id), &id, value) {
                    self.damage.push(format!(
                        "record {id} of collection {collection} is damaged: {reason}"
                    ));
                }
            }
            (None, _) => self
                .damage
                .push("there is a key of an unknown kind".to_owned()),
            _ => {}
        }
    }

    fn merge(&mut self, other: Walk) {
        let position = other.position;
        self.position.keys += position.keys;
        self.position.digest = self.position.digest.wrapping_add(position.digest);
        for (collection, records) in (0..).zip(position.records) {
            self.position.count(collection, records as i64);
        }
        self.damage.extend(other.damage);
        self.marks.extend(other.marks);
    }
}

/// Reads every record and compares indexes, pieces and counters with the records. Nothing may write
/// during the check.
pub(super) fn cross_check(
    db: &Db,
    catalog: &Catalog,
    position: &Position,
) -> Result<Report, Error> {
    let walk = walk(db, position).map_err(|error| records::unreachable_tree(&error))?;
    let Walk {
        position: found,
        mut damage,
        ..
    } = walk;
    if found != *position {
        damage.push(format!(
            "{} keys were found, {} were expected, or some have other values",
            found.keys, position.keys
        ));
    }
    let mut checker = Checker {
        db,
        damage,
        keys: HashMap::new(),
        counts: HashMap::new(),
    };
    for entry in db.scan_prefix(Key::from_prefix(Prefix::Document).bytes()) {
        let (key, value) = entry.map_err(|error| records::unreachable_tree(&error))?;
        if let Some(collection) = collection_of(&key).and_then(|number| catalog.numbered(number)) {
            checker.record(
                collection,
                &String::from_utf8_lossy(&key[DOCUMENT_ID_OFFSET..]),
                value,
            )?;
        }
    }
    checker.orphans(catalog)?;
    checker.counters(catalog)?;
    let damaged = checker.damage.len();
    Ok(Report {
        records: found.records.iter().sum(),
        blobs: 0,
        damage: shortened(checker.damage, damaged),
    })
}

struct Checker<'a> {
    db: &'a Db,
    damage: Vec<String>,
    /// Number of keys that the records account for, by prefix and collection.
    keys: HashMap<(u8, u16), u64>,
    counts: HashMap<(u16, String), counters::Count>,
}

impl Checker<'_> {
    fn record(
        &mut self,
        collection: CollectionRef,
        id: &str,
        value: ::sled::IVec,
    ) -> Result<(), Error> {
        let read = records::assemble(
            self.db,
            collection,
            &Key::document(collection.number, id),
            id,
            value,
        )
        .and_then(|stored| Ok((records::values(collection, &stored.row)?, stored)));
        let (values, stored) = match read {
            Ok(read) => read,
            Err(error) => {
                self.damage.push(error.to_string());
                return Ok(());
            }
        };
        let count = self
            .counts
            .entry((collection.number, stored.row.project.clone()))
            .or_default();
        *(if stored.row.is_live() {
            &mut count.live
        } else {
            &mut count.removed
        }) += 1;
        *self
            .keys
            .entry((Prefix::Piece as u8, collection.number))
            .or_default() += stored.pieces.len() as u64;
        for key in records::entries(collection, &stored.row, &values) {
            self.expect(collection, id, &key, b"")?;
        }
        for (_, key) in records::claims(collection, &stored.row, &values) {
            self.expect(collection, id, &key, id.as_bytes())?;
        }
        Ok(())
    }

    fn expect(
        &mut self,
        collection: CollectionRef,
        id: &str,
        key: &Key,
        value: &[u8],
    ) -> Result<(), Error> {
        *self
            .keys
            .entry((key.bytes()[0], collection.number))
            .or_default() += 1;
        let found = self
            .db
            .get(key.bytes())
            .map_err(|error| records::unreachable_tree(&error))?;
        if found.as_deref() != Some(value) {
            self.damage.push(format!(
                "record {id} of {} is missing from an index",
                collection.declaration.name
            ));
        }
        Ok(())
    }

    /// Reports keys that belong to no record. Every key that a record accounts for was found
    /// before, so keys above that number are orphans.
    fn orphans(&mut self, catalog: &Catalog) -> Result<(), Error> {
        let mut present = HashMap::<(u8, u16), u64>::new();
        for prefix in [Prefix::Age, Prefix::Index, Prefix::Unique, Prefix::Piece] {
            for key in self.db.scan_prefix(Key::from_prefix(prefix).bytes()).keys() {
                let key = key.map_err(|error| records::unreachable_tree(&error))?;
                if let Some(collection) =
                    collection_of(&key).and_then(|number| catalog.numbered(number))
                {
                    *present
                        .entry((prefix as u8, collection.number))
                        .or_default() += 1;
                }
            }
        }
        for ((prefix, number), count) in present {
            let owned = self
                .keys
                .get(&(prefix, number))
                .copied()
                .unwrap_or_default();
            if count > owned {
                let name = catalog
                    .numbered(number)
                    .map_or("?", |collection| collection.declaration.name);
                let more = count - owned;
                self.damage.push(format!(
                    "{more} index entries of {name} belong to no record"
                ));
            }
        }
        Ok(())
    }

    fn counters(&mut self, catalog: &Catalog) -> Result<(), Error> {
        for entry in self
            .db
            .scan_prefix(Key::from_prefix(Prefix::Counter).bytes())
        {
            let (key, value) = entry.map_err(|error| records::unreachable_tree(&error))?;
            let Some(collection) = collection_of(&key).and_then(|number| catalog.numbered(number))
            else {
                continue;
            };
            let project = String::from_utf8_lossy(&key[DOCUMENT_ID_OFFSET..]).into_owned();
            let stored_count = counters::decode(&project, Some(&value))?;
            if self.counts.remove(&(collection.number, project.clone())) != Some(stored_count) {
                self.damage.push(format!(
                    "the counter of {} in project {project} is wrong",
                    collection.declaration.name
                ));
            }
        }
        for (number, project) in self.counts.keys() {
            let name = catalog
                .numbered(*number)
                .map_or("?", |collection| collection.declaration.name);
            self.damage.push(format!(
                "the counter of {name} in project {project} is missing"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_starts_divide_keys_in_order() {
        let keys: [(&[u8], &[u8]); 4] = [
            (b"d\0\x01log_Vc21hiMJMMUg", b"d\0\x01log_Vc223rpX7Qmt"),
            (b"d\0\x01a", b"d\0\x01abc"),
            (b"a\0\0\0\0\0\0\0", b"a\xfe\xff\xff\xff\xff\xff\xff\xff"),
            (b"same", b"same"),
        ];
        for (first, last) in keys {
            let starts = (1..RANGES_PER_COLLECTION).map(|place| key_between(first, last, place));
            let padded = [last, &[0; 8]].concat();
            assert!(starts.clone().is_sorted(), "{first:?}");
            assert!(
                starts
                    .into_iter()
                    .all(|start| *first <= *start && start <= padded)
            );
        }
    }
}
