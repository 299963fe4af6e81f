//! The position of the store: the data that a start compares to notice losses.
//!
//! Every batch writes the new position to the tree, in the same atomic step as its records. The
//! committer writes it to the `HEAD` file before the batch is acknowledged. The digest is the sum
//! of a hash of every key with its value. A record which is missing or has fallen back to an
//! earlier revision therefore shows even where all counts agree.

use super::keys::Key;
use super::vacancy;
use ::sled::{Batch, Db, IVec};

/// Id of one store, generated at random when the store is created.
pub(super) type StoreId = [u8; 16];

/// The state of the whole tree after a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// Id of the store.
    pub(super) store: StoreId,
    /// Number of batches applied so far.
    pub(super) sequence: u64,
    /// Number of keys in the tree, without the position's own.
    pub(super) keys: u64,
    /// Sum of the hashes of all keys and values, without the position's own.
    pub(super) digest: u64,
    /// Number of records of each collection, removed ones included, by number of the collection.
    pub(super) records: Vec<u64>,
}

impl Position {
    /// Returns the position of an empty store.
    pub(super) fn empty(store: StoreId) -> Position {
        Position {
            store,
            sequence: 0,
            keys: 0,
            digest: 0,
            records: Vec::new(),
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let numbers = [self.sequence, self.keys, self.digest];
        let length = self.store.len() + 8 * (numbers.len() + self.records.len());
        let mut bytes = Vec::with_capacity(length);
        bytes.extend_from_slice(&self.store);
        for number in numbers.iter().chain(&self.records) {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Position> {
        let (store, rest) = bytes.split_first_chunk::<16>()?;
        let (numbers, []) = rest.as_chunks::<8>() else {
            return None;
        };
        let [sequence, keys, digest, records @ ..] = numbers else {
            return None;
        };
        Some(Position {
            store: *store,
            sequence: read_number(sequence),
            keys: read_number(keys),
            digest: read_number(digest),
            records: records.iter().map(read_number).collect(),
        })
    }

    pub(super) fn count(&mut self, collection: u16, change: i64) {
        let place = usize::from(collection);
        if self.records.len() <= place {
            self.records.resize(place + 1, 0);
        }
        self.records[place] = self.records[place].wrapping_add_signed(change);
    }
}

fn read_number(bytes: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*bytes)
}

/// Returns the hash of one key with its value.
pub(super) fn hash(key: &[u8], value: &[u8]) -> u64 {
    // The finalizer of splitmix64 spreads the two checksums over all bits, so that sums do not
    // cancel out.
    let mut bits = u64::from(crc32fast::hash(key)) << 32 | u64::from(crc32fast::hash(value));
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// Changes to the tree that belong together, and the position they lead to.
pub(super) struct Changes {
    writes: Vec<(Key, Option<IVec>)>,
    /// Removed keys whose values took much space.
    vacated: Vec<Key>,
    position: Position,
}

impl Changes {
    pub(super) fn new(position: &Position) -> Changes {
        Changes {
            writes: Vec::new(),
            vacated: Vec::new(),
            position: position.clone(),
        }
    }

    /// Puts a value. `old` is the value that it replaces.
    pub(super) fn put(&mut self, key: Key, value: impl Into<IVec>, old: Option<&[u8]>) {
        let value = value.into();
        let position = &mut self.position;
        position.digest = position.digest.wrapping_add(hash(key.bytes(), &value));
        match old {
            Some(old) => position.digest = position.digest.wrapping_sub(hash(key.bytes(), old)),
            None => position.keys += 1,
        }
        self.writes.push((key, Some(value)));
    }

    /// Removes a key. `old` is its value.
    pub(super) fn remove(&mut self, key: Key, old: &[u8]) {
        self.position.digest = self.position.digest.wrapping_sub(hash(key.bytes(), old));
        self.position.keys = self.position.keys.wrapping_sub(1);
        if vacancy::leaves_much_space(key.bytes(), old) {
            self.vacated.push(key.clone());
        }
        self.writes.push((key, None));
    }

    /// Counts records of a collection that are added or removed.
    pub(super) fn count(&mut self, collection: u16, change: i64) {
        self.position.count(collection, change);
    }

    /// Returns the writes, the removed keys that leave much space behind, and the position after
    /// the changes.
    pub(super) fn finish(
        mut self,
    ) -> (
        impl Iterator<Item = (Key, Option<IVec>)>,
        Vec<Key>,
        Position,
    ) {
        self.position.sequence += 1;
        (self.writes.into_iter(), self.vacated, self.position)
    }

    /// Applies the changes and their position to the tree, in one step.
    pub(super) fn apply(self, db: &Db) -> ::sled::Result<Position> {
        let (writes, _, position) = self.finish();
        let mut batch = Batch::default();
        writes.for_each(|(key, value)| write(&mut batch, key.into_bytes(), value));
        batch.insert(Key::meta().into_bytes(), position.encode());
        db.apply_batch(batch).map(|()| position)
    }
}

/// Adds a write to a batch of sled.
pub(super) fn write(batch: &mut Batch, key: impl Into<IVec>, value: Option<IVec>) {
    match value {
        Some(value) => batch.insert(key, value),
        None => batch.remove(key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn position_round_trips_and_truncated_one_fails() {
        let position = Position {
            sequence: 7,
            keys: 2,
            digest: u64::MAX,
            records: vec![1, 0, 9],
            ..Position::empty([3; 16])
        };
        let bytes = position.encode();
        assert_eq!(Position::decode(&bytes), Some(position));
        assert_eq!(Position::decode(&bytes[..bytes.len() - 1]), None);
        assert_eq!(Position::decode(&bytes[..39]), None);
    }

    #[test]
    fn undone_changes_restore_the_digest() {
        let key = || Key::document(0, "a");
        let mut changes = Changes::new(&Position::empty([0; 16]));
        changes.put(key(), b"one".as_slice(), None);
        changes.put(key(), b"two".as_slice(), Some(b"one"));
        changes.remove(key(), b"two");
        let (_, _, position) = changes.finish();
        assert_eq!((position.keys, position.digest), (0, 0));
    }
}
