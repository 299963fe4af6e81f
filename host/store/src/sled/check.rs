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
use crate::{Error, Report};
use ::sled::{Db, IVec};
use std::collections::HashMap;

/// Maximum number of broken items that a report names. It only counts the rest.
const MAX_REPORTED_DAMAGE: usize = 100;

/// Result of a walk.
pub(super) struct Walk {
    /// Position computed from the keys, with the sequence of the expected one.
    pub(super) position: Position,
    /// One line for each broken item.
    pub(super) damage: Vec<String>,
    /// Keys of the marks that a crash has left behind.
    pub(super) marks: Vec<IVec>,
}

/// Reads every key.
pub(super) fn walk(db: &Db, position: &Position) -> ::sled::Result<Walk> {
    let mut found = Position {
        sequence: position.sequence,
        ..Position::empty(position.store)
    };
    let mut damage = Vec::new();
    let mut marks = Vec::new();
    for entry in db.iter() {
        let (key, value) = entry?;
        let prefix = Prefix::from_key(&key);
        if prefix == Some(Prefix::Meta) {
            continue;
        }
        if vacancy::may_be_marked(&key) && vacancy::is_mark(&value) {
            marks.push(key);
            continue;
        }
        found.keys += 1;
        found.digest = found.digest.wrapping_add(hash(&key, &value));
        match (prefix, collection_of(&key)) {
            (Some(Prefix::Document), Some(collection)) => {
                found.count(collection, 1);
                let id = String::from_utf8_lossy(&key[DOCUMENT_ID_OFFSET..]);
                if let Err(reason) = envelope::decode(&Key::document(collection, &id), &id, &value)
                {
                    damage.push(format!(
                        "record {id} of collection {collection} is damaged: {reason}"
                    ));
                }
            }
            (None, _) => damage.push("there is a key of an unknown kind".to_owned()),
            _ => {}
        }
    }
    // A collection without records counts the same whether it is listed or not.
    found
        .records
        .resize(position.records.len().max(found.records.len()), 0);
    Ok(Walk {
        position: found,
        damage,
        marks,
    })
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
    let Checker { mut damage, .. } = checker;
    if damage.len() > MAX_REPORTED_DAMAGE {
        let more = damage.len() - MAX_REPORTED_DAMAGE;
        damage.truncate(MAX_REPORTED_DAMAGE);
        damage.push(format!("and {more} more"));
    }
    Ok(Report {
        records: found.records.iter().sum(),
        blobs: 0,
        damage,
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
