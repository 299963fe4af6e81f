//! Complete, checked records read from the tree, and the index keys of each record.

use super::envelope::{self, Body};
use super::keys::{Key, State};
use super::vacancy;
use crate::values::Values;
use crate::{Collection, Error, Kind, Record, Row};
use ::sled::{Db, IVec};
use bytes::Bytes;

/// A collection with its number in keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct CollectionRef {
    pub(super) number: u16,
    pub(super) declaration: &'static Collection,
}

/// A source of values: the tree, or the tree as a round of batches will leave it.
pub(super) trait Reader {
    /// Reads the value of a key.
    fn value(&self, key: &Key) -> Result<Option<IVec>, Error>;
}

impl Reader for Db {
    fn value(&self, key: &Key) -> Result<Option<IVec>, Error> {
        self.get(key.bytes())
            .map_err(|error| unreachable_tree(&error))
    }
}

/// A record as stored in the tree.
#[derive(Debug)]
pub(super) struct Stored {
    /// Value of the envelope.
    pub(super) value: IVec,
    /// Pieces of a large body, in order.
    pub(super) pieces: Vec<IVec>,
    /// Record decoded from value and pieces.
    pub(super) row: Row,
}

/// Reads a record, removed or not.
pub(super) fn read(
    reader: &impl Reader,
    collection: CollectionRef,
    id: &str,
) -> Result<Option<Stored>, Error> {
    let key = Key::document(collection.number, id);
    match reader.value(&key)? {
        Some(value) if !vacancy::is_mark(&value) => {
            assemble(reader, collection, &key, id, value).map(Some)
        }
        _ => Ok(None),
    }
}

/// Decodes a record from its value, reading the pieces of a large body.
pub(super) fn assemble(
    reader: &impl Reader,
    collection: CollectionRef,
    key: &Key,
    id: &str,
    value: IVec,
) -> Result<Stored, Error> {
    let damaged = |reason: &str| Error::unreadable(collection.declaration, id, &reason);
    let record = envelope::decode(key, id, &value).map_err(damaged)?;
    let revision = record.revision;
    let (body, pieces) = match record.body {
        Body::Whole(ref body) => (body.clone(), Vec::new()),
        Body::Pieces {
            count,
            length,
            checksum,
        } => {
            let mut body = Vec::with_capacity(length as usize);
            let mut pieces = Vec::with_capacity(count as usize);
            for place in 0..count {
                let key = Key::piece(collection.number, id, revision, place);
                let piece = reader
                    .value(&key)?
                    .ok_or_else(|| damaged("a piece of its body is missing"))?;
                body.extend_from_slice(&piece);
                pieces.push(piece);
            }
            if crc32fast::hash(&body) != checksum {
                return Err(damaged("the checksum of its body does not match"));
            }
            (Bytes::from(body), pieces)
        }
    };
    Ok(Stored {
        value,
        pieces,
        row: record.map(|_| body),
    })
}

/// Returns the age and index keys of a record, each once, in order.
pub(super) fn entries<T>(
    collection: CollectionRef,
    record: &Record<T>,
    values: &Values,
) -> Vec<Key> {
    let state = State::from_deleted_at(record.deleted_at);
    let suffix = |key: Key| key.suffix(record.created_at, &record.id);
    let mut keys = vec![suffix(Key::age(collection.number, state, &record.project))];
    for (place, field) in collection.declaration.fields.iter().enumerate() {
        let key = || Key::index(collection.number, state, &record.project, place);
        match values.at(place) {
            // An absent value has a key too, so that the index alone gives the order by this field.
            [] if field.kind != Kind::List => keys.push(suffix(key().value(None))),
            found => keys.extend(found.iter().map(|value| suffix(key().value(Some(value))))),
        }
    }
    keys
}

/// Returns the unique keys that a record holds, with the position of the field. A removed record
/// holds no unique keys.
pub(super) fn claims<T>(
    collection: CollectionRef,
    record: &Record<T>,
    values: &Values,
) -> Vec<(usize, Key)> {
    if !record.is_live() {
        return Vec::new();
    }
    let unique = collection
        .declaration
        .fields
        .iter()
        .enumerate()
        .filter(|(_, field)| field.unique);
    unique
        .flat_map(|(place, _)| values.at(place).iter().map(move |value| (place, value)))
        .map(|(place, value)| {
            (
                place,
                Key::unique(collection.number, &record.project, place, value),
            )
        })
        .collect()
}

/// Returns the values of a stored record's declared fields.
pub(super) fn values(collection: CollectionRef, row: &Row) -> Result<Values, Error> {
    Values::from_body(collection.declaration, &row.body)
        .map_err(|error| Error::unreadable(collection.declaration, &row.id, &error))
}

/// Converts an error of the tree to the error of a read.
pub(super) fn unreachable_tree(error: &::sled::Error) -> Error {
    match error {
        ::sled::Error::Corruption { .. } => Error::Damaged {
            what: "the database file".into(),
            reason: "a page of it cannot be read".into(),
        },
        error => Error::Unavailable(format!("cannot read the database: {error}")),
    }
}
