//! Complete, checked records read from the tree, and the index keys of each record.

use super::envelope::{self, Body};
use super::keys::{Key, State};
use super::vacancy;
use crate::values::Values;
use crate::{Collection, Error, Kind, Record, Row};
use ::sled::{Db, IVec};
use bytes::Bytes;

/// A collection with the number that stands for it in keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shelf {
    pub(super) number: u16,
    pub(super) at: &'static Collection,
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
pub(super) fn read(reader: &impl Reader, shelf: Shelf, id: &str) -> Result<Option<Stored>, Error> {
    let key = Key::document(shelf.number, id);
    match reader.value(&key)? {
        Some(value) if !vacancy::is_mark(&value) => {
            assemble(reader, shelf, &key, id, value).map(Some)
        }
        _ => Ok(None),
    }
}

/// Decodes a record from its value, reading the pieces of a large body.
pub(super) fn assemble(
    reader: &impl Reader,
    shelf: Shelf,
    key: &Key,
    id: &str,
    value: IVec,
) -> Result<Stored, Error> {
    let damaged = |reason: &str| Error::unreadable(shelf.at, id, &reason);
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
                let key = Key::piece(shelf.number, id, revision, place);
                let piece = reader.value(&key)?;
                let piece = piece.ok_or_else(|| damaged("a piece of its body is missing"))?;
                body.extend_from_slice(&piece);
                pieces.push(piece);
            }
            if crc32fast::hash(&body) != checksum {
                return Err(damaged("the checksum of its body does not fit"));
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
pub(super) fn entries<T>(shelf: Shelf, record: &Record<T>, values: &Values) -> Vec<Key> {
    let state = State::of(record.deleted_at);
    let tail = |key: Key| key.tail(record.created_at, &record.id);
    let mut keys = vec![tail(Key::age(shelf.number, state, &record.project))];
    for (place, field) in shelf.at.fields.iter().enumerate() {
        let key = || Key::index(shelf.number, state, &record.project, place);
        match values.at(place) {
            // An absent value has a key too, so that the index alone gives the order by this field.
            [] if field.kind != Kind::List => keys.push(tail(key().value(None))),
            found => keys.extend(found.iter().map(|value| tail(key().value(Some(value))))),
        }
    }
    keys
}

/// Returns the unique keys that a record holds, with the position of the field. A removed record
/// holds none.
pub(super) fn claims<T>(shelf: Shelf, record: &Record<T>, values: &Values) -> Vec<(usize, Key)> {
    if !record.is_live() {
        return Vec::new();
    }
    let unique = shelf
        .at
        .fields
        .iter()
        .enumerate()
        .filter(|(_, field)| field.unique);
    unique
        .flat_map(|(place, _)| values.at(place).iter().map(move |value| (place, value)))
        .map(|(place, value)| {
            (
                place,
                Key::unique(shelf.number, &record.project, place, value),
            )
        })
        .collect()
}

/// Returns the values of a stored record's declared fields.
pub(super) fn values(shelf: Shelf, row: &Row) -> Result<Values, Error> {
    Values::of(shelf.at, &row.body).map_err(|error| Error::unreadable(shelf.at, &row.id, &error))
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
