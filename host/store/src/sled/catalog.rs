//! The catalog of collections: the number of each collection in keys, and the declaration that its
//! indexes were built for.
//!
//! A number is given once and never to another collection, not even after the first one is retired.
//! If a declaration has changed since the last start, the indexes of the collection are rebuilt.
//! The entry lacks a declaration until then, so a start after an interruption rebuilds them again.

use super::keys::{Key, Prefix};
use super::position::{Changes, Position};
use super::records::{self, CollectionRef};
use crate::{Collection, Error, Field};
use ::sled::Db;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

/// The collections of a running store.
#[derive(Debug)]
pub(super) struct Catalog(HashMap<&'static str, CollectionRef>);

impl Catalog {
    pub(super) fn collection(&self, declaration: &'static Collection) -> Option<CollectionRef> {
        self.0.get(declaration.name).copied()
    }

    /// Returns the declared collection with the given number, if one has it.
    pub(super) fn numbered(&self, number: u16) -> Option<CollectionRef> {
        self.0
            .values()
            .copied()
            .find(|collection| collection.number == number)
    }
}

/// An entry as it is stored.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Entry {
    number: u16,
    /// Declaration that the indexes were built for, or `None` while they are being built.
    fields: Option<Vec<String>>,
}

/// Number of keys that one step of a rebuild writes.
const REBUILD_BATCH_KEYS: usize = 4096;

/// Gives every declared collection its number and brings its indexes up to date.
///
/// The outer error concerns the tree. The inner one concerns a declaration that the stored records
/// do not allow.
pub(super) fn bring_up_to_date(
    db: &Db,
    position: &mut Position,
    collections: &[&'static Collection],
) -> Result<Result<Catalog, String>, Error> {
    let mut known = read(db)?;
    let mut next = known
        .values()
        .map(|entry| entry.number + 1)
        .max()
        .unwrap_or(0);
    let mut collections_by_name = HashMap::new();
    for declaration in collections {
        let fields: Vec<_> = declaration.fields.iter().map(describe).collect();
        let old = known.remove(declaration.name);
        let number = old.as_ref().map_or(next, |entry| entry.number);
        next = next.max(number + 1);
        let collection = CollectionRef {
            number,
            declaration,
        };
        collections_by_name.insert(declaration.name, collection);
        if old
            .as_ref()
            .is_some_and(|old| old.fields.as_ref() == Some(&fields))
        {
            continue;
        }
        let name = declaration.name;
        let [rebuilding, rebuilt] = [None, Some(fields)].map(|fields| Entry { number, fields });
        if let Some(old) = &old {
            write_entry(db, position, name, Some(old), &rebuilding)?;
            if let Err(reason) = rebuild(db, position, collection)? {
                return Ok(Err(reason));
            }
        }
        let replaced = old.map(|_| &rebuilding);
        write_entry(db, position, name, replaced, &rebuilt)?;
    }
    Ok(Ok(Catalog(collections_by_name)))
}

/// Describes the parts of a field's declaration that the keys of its index depend on.
fn describe(field: &Field) -> String {
    let Field {
        name, kind, unique, ..
    } = field;
    format!("Field {{ name: {name:?}, kind: {kind:?}, unique: {unique} }}")
}

fn read(db: &Db) -> Result<HashMap<String, Entry>, Error> {
    let entries = db.scan_prefix(Key::from_prefix(Prefix::Catalog).bytes());
    entries
        .map(|entry| {
            let (key, value) = entry.map_err(|error| records::unreachable_tree(&error))?;
            let name = String::from_utf8_lossy(&key[1..]).into_owned();
            let entry = serde_json::from_slice(&value).map_err(|error| Error::Damaged {
                what: "the catalog".into(),
                reason: error.to_string(),
            })?;
            Ok((name, entry))
        })
        .collect()
}

fn write_entry(
    db: &Db,
    position: &mut Position,
    name: &str,
    old: Option<&Entry>,
    new: &Entry,
) -> Result<(), Error> {
    let mut changes = Changes::new(position);
    let old = old.map(encode).transpose()?;
    changes.put(Key::catalog(name), encode(new)?, old.as_deref());
    apply(db, position, changes)
}

fn encode(entry: &Entry) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(entry)
        .map_err(|error| Error::Unavailable(format!("cannot write the catalog: {error}")))
}

fn apply(db: &Db, position: &mut Position, changes: Changes) -> Result<(), Error> {
    *position = changes
        .apply(db)
        .map_err(|error| records::unreachable_tree(&error))?;
    Ok(())
}

fn rebuild(
    db: &Db,
    position: &mut Position,
    collection: CollectionRef,
) -> Result<Result<(), String>, Error> {
    for prefix in [Prefix::Age, Prefix::Index, Prefix::Unique] {
        clear(db, position, Key::collection(prefix, collection.number))?;
    }
    let mut changes = Changes::new(position);
    let mut claimed = HashSet::new();
    let mut pending = 0;
    let start = Key::collection(Prefix::Document, collection.number);
    for entry in db.scan_prefix(start.bytes()) {
        let (key, value) = entry.map_err(|error| records::unreachable_tree(&error))?;
        let id = String::from_utf8_lossy(&key[start.len()..]).into_owned();
        let row = records::assemble(
            db,
            collection,
            &Key::document(collection.number, &id),
            &id,
            value,
        )?
        .row;
        let values = records::values(collection, &row)?;
        for (place, key) in records::claims(collection, &row, &values) {
            if !claimed.insert(key.bytes().to_vec()) {
                let field = collection.declaration.fields[place].name;
                return Ok(Err(format!(
                    "{} of {} is declared unique, but records share a value",
                    field, collection.declaration.name
                )));
            }
            changes.put(key, id.as_bytes(), None);
            pending += 1;
        }
        for key in records::entries(collection, &row, &values) {
            changes.put(key, [].as_slice(), None);
            pending += 1;
        }
        if pending >= REBUILD_BATCH_KEYS {
            apply(db, position, changes)?;
            changes = Changes::new(position);
            pending = 0;
        }
    }
    apply(db, position, changes).map(Ok)
}

fn clear(db: &Db, position: &mut Position, start: Key) -> Result<(), Error> {
    loop {
        let mut changes = Changes::new(position);
        let mut found = 0;
        for entry in db.scan_prefix(start.bytes()).take(REBUILD_BATCH_KEYS) {
            let (key, value) = entry.map_err(|error| records::unreachable_tree(&error))?;
            changes.remove(Key::from_bytes(&key), &value);
            found += 1;
        }
        if found == 0 {
            return Ok(());
        }
        apply(db, position, changes)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_keep_their_stored_form() {
        assert_eq!(
            describe(&Field::due("due")),
            "Field { name: \"due\", kind: Time, unique: false }"
        );
    }
}
