//! Keys of the one tree. The byte order of keys is the order of the values they encode.
//!
//! | prefix | key | value |
//! |---|---|---|
//! | meta | | the position: store id, sequence, digest, counts |
//! | catalog | collection name | number and declared fields, as JSON |
//! | document | collection, id | envelope and body |
//! | piece | collection, id, revision, position | a part of a body too large for one value |
//! | age | collection, state, project, created, id | |
//! | index | collection, state, project, field, value, created, id | |
//! | unique | collection, project, field, value | id of the live record that holds the value |
//! | counter | collection, project | how many live and removed records there are |
//!
//! Keys refer to a collection by its number in the catalog, and to a field by its position in the
//! declaration. The last two parts of age and index keys, the *suffix*, name a record and order
//! records by age.
//!
//! No key contains the byte `ff`. When sled 0.34 walks backwards, it guesses the position of the
//! previous page by subtracting one from the last byte of the current page's lower bound and
//! appending `ff` four times. With keys beyond that guess it panics.

use crate::{Scalar, Time};

/// The first byte of a key. A letter that was ever used is reserved forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Prefix {
    Age = b'a',
    Counter = b'c',
    Document = b'd',
    Index = b'i',
    Catalog = b'k',
    Meta = b'm',
    Piece = b'p',
    Unique = b'u',
}

impl Prefix {
    pub(super) fn from_key(key: &[u8]) -> Option<Prefix> {
        use Prefix::*;
        let first = *key.first()?;
        [Age, Counter, Document, Index, Catalog, Meta, Piece, Unique]
            .into_iter()
            .find(|p| *p as u8 == first)
    }
}

/// The state of a record. Removed records have index entries of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    Live = 0,
    Removed = 1,
}

impl State {
    pub(super) fn from_deleted_at(deleted_at: Option<Time>) -> State {
        if deleted_at.is_some() {
            State::Removed
        } else {
            State::Live
        }
    }
}

/// Offset of the id in the key of a document, in bytes.
pub(super) const DOCUMENT_ID_OFFSET: usize = 3;

/// Length of an encoded number, in bytes.
const INT_BYTES: usize = 10;
const SIGN_BIT: u64 = 1 << 63;

const TAG_ABSENT: u8 = 0;
const TAG_INT: u8 = 1;
const TAG_TEXT: u8 = 2;

/// A key under construction.
#[derive(Clone, Debug)]
pub(super) struct Key(Vec<u8>);

impl Key {
    fn new(prefix: Prefix, collection: u16) -> Key {
        let mut bytes = Vec::with_capacity(96);
        bytes.push(prefix as u8);
        bytes.extend_from_slice(&collection.to_be_bytes());
        Key(bytes)
    }

    pub(super) fn meta() -> Key {
        Key(vec![Prefix::Meta as u8])
    }

    pub(super) fn catalog(name: &str) -> Key {
        Key([&[Prefix::Catalog as u8], name.as_bytes()].concat())
    }

    /// Wraps a key that was read from the tree.
    pub(super) fn from_bytes(bytes: &[u8]) -> Key {
        Key(bytes.to_vec())
    }

    pub(super) fn from_prefix(prefix: Prefix) -> Key {
        Key(vec![prefix as u8])
    }

    pub(super) fn collection(prefix: Prefix, collection: u16) -> Key {
        Key::new(prefix, collection)
    }

    pub(super) fn document(collection: u16, id: &str) -> Key {
        Key::new(Prefix::Document, collection).raw(id.as_bytes())
    }

    pub(super) fn piece(collection: u16, id: &str, revision: i64, place: u32) -> Key {
        Key::new(Prefix::Piece, collection)
            .text(id)
            .int(revision)
            .raw(&place.to_be_bytes())
    }

    pub(super) fn counter(collection: u16, project: &str) -> Key {
        Key::new(Prefix::Counter, collection).raw(project.as_bytes())
    }

    /// Returns the prefix of a project's age keys. A suffix completes a key.
    pub(super) fn age(collection: u16, state: State, project: &str) -> Key {
        Key::new(Prefix::Age, collection)
            .raw(&[state as u8])
            .text(project)
    }

    /// Returns the prefix of the index keys of one field of a project. A value and a suffix
    /// complete a key.
    pub(super) fn index(collection: u16, state: State, project: &str, field: usize) -> Key {
        Key::new(Prefix::Index, collection)
            .raw(&[state as u8])
            .text(project)
            .place(field)
    }

    pub(super) fn unique(collection: u16, project: &str, field: usize, value: &Scalar) -> Key {
        Key::new(Prefix::Unique, collection)
            .text(project)
            .place(field)
            .value(Some(value))
    }

    pub(super) fn value(self, value: Option<&Scalar>) -> Key {
        match value {
            None => self.raw(&[TAG_ABSENT]),
            Some(Scalar::Int(number)) => self.raw(&[TAG_INT]).int(*number),
            Some(Scalar::Text(text)) => self.raw(&[TAG_TEXT]).text(text),
        }
    }

    /// Encodes a suffix alone.
    pub(super) fn encode_suffix(created_at: Time, id: &str) -> Vec<u8> {
        Key(Vec::new()).suffix(created_at, id).into_bytes()
    }

    pub(super) fn suffix(self, created_at: Time, id: &str) -> Key {
        self.int(created_at.0).raw(id.as_bytes())
    }

    /// Returns the prefix of this field's keys whose value is a number.
    pub(super) fn numbers(self) -> Key {
        self.raw(&[TAG_INT])
    }

    /// Returns the start of this field's keys whose value is a number of at least `low`.
    pub(super) fn numbers_from(self, low: i64) -> Key {
        self.raw(&[TAG_INT]).int(low)
    }

    /// Returns the start of the keys whose records were created at `low` or later.
    pub(super) fn created_from(self, low: i64) -> Key {
        self.int(low)
    }

    /// Returns the first key after all keys that start with this one.
    pub(super) fn range_end(&self) -> Vec<u8> {
        let mut end = self.0.clone();
        while let Some(last) = end.pop() {
            if last < u8::MAX {
                end.push(last + 1);
                break;
            }
        }
        end
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub(super) fn raw(mut self, bytes: &[u8]) -> Key {
        self.0.extend_from_slice(bytes);
        self
    }

    fn place(self, field: usize) -> Key {
        let place = u16::try_from(field).unwrap_or(u16::MAX);
        self.raw(&place.to_be_bytes())
    }

    /// Appends a number with seven bits per byte, so that no byte is `ff`. With the sign bit
    /// flipped, the order of the bytes is the order of the numbers.
    fn int(self, number: i64) -> Key {
        let bits = number as u64 ^ SIGN_BIT;
        let mut bytes = [0; INT_BYTES];
        for (place, byte) in bytes.iter_mut().rev().enumerate() {
            *byte = (bits >> (7 * place)) as u8 & 0x7f;
        }
        self.raw(&bytes)
    }

    /// Appends a string. A zero byte becomes `00 02`, and the end is `00 01`, so a string comes
    /// before every longer string that starts with it.
    fn text(mut self, text: &str) -> Key {
        for part in text.as_bytes().split_inclusive(|byte| *byte == 0) {
            self.0.extend_from_slice(part);
            if part.last() == Some(&0) {
                self.0.push(2);
            }
        }
        self.raw(&[0, 1])
    }
}

/// Returns the number of the collection that a key belongs to.
pub(super) fn collection_of(key: &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(key.get(1..3)?.try_into().ok()?))
}

/// Splits the part of an index key after the field into value and suffix.
pub(super) fn split_value(rest: &[u8]) -> Option<(Option<Scalar>, &[u8])> {
    let (tag, rest) = rest.split_first()?;
    match *tag {
        TAG_ABSENT => Some((None, rest)),
        TAG_INT => {
            let (number, suffix) = rest.split_first_chunk::<INT_BYTES>()?;
            Some((Some(Scalar::Int(read_int(*number))), suffix))
        }
        TAG_TEXT => {
            let (text, suffix) = split_text(rest)?;
            Some((Some(Scalar::Text(text)), suffix))
        }
        _ => None,
    }
}

fn split_text(rest: &[u8]) -> Option<(String, &[u8])> {
    let mut text = Vec::new();
    let mut at = 0;
    loop {
        match *rest.get(at)? {
            0 if *rest.get(at + 1)? == 1 => {
                return Some((String::from_utf8(text).ok()?, &rest[at + 2..]));
            }
            0 => {
                text.push(0);
                at += 2;
            }
            byte => {
                text.push(byte);
                at += 1;
            }
        }
    }
}

/// Returns the id that a suffix names.
pub(super) fn suffix_id(suffix: &[u8]) -> Option<&str> {
    std::str::from_utf8(suffix.get(INT_BYTES..)?).ok()
}

fn read_int(bytes: [u8; INT_BYTES]) -> i64 {
    (bytes
        .iter()
        .fold(0_u64, |bits, byte| bits << 7 | u64::from(*byte))
        ^ SIGN_BIT) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scalar() -> impl Strategy<Value = Option<Scalar>> {
        let text = prop_oneof![
            any::<String>(),
            "[\\x00-\\x02a]{0,6}",
            "[\u{0}\u{7f}\u{80}\u{7ff}\u{ffff}\u{10ffff}]{0,3}"
        ];
        let number = prop_oneof![any::<i64>(), -3_i64..3, Just(i64::MIN), Just(i64::MAX)];
        prop_oneof![
            Just(None),
            text.prop_map(|t| Some(Scalar::Text(t))),
            number.prop_map(|n| Some(Scalar::Int(n)))
        ]
    }

    proptest! {
        #[test]
        fn no_key_contains_the_byte_ff(value in scalar(), at: i64, id: String, place in 0_u32..9) {
            let index = Key::index(3, State::Removed, &id, 2).value(value.as_ref()).suffix(Time(at), &id);
            for key in [index, Key::piece(3, &id, at, place), Key::unique(3, &id, 2, &Scalar::Int(at))] {
                prop_assert!(!key.bytes().contains(&0xff));
            }
        }

        #[test]
        fn keys_sort_as_value_age_and_id_do(
            a in (scalar(), -2_i64..2, "[a-b]{1,2}"), b in (scalar(), -2_i64..2, "[a-b]{1,2}"),
        ) {
            let key = |(value, at, id): &(Option<Scalar>, i64, String)| {
                Key::index(1, State::Live, "p", 0).value(value.as_ref()).suffix(Time(*at), id).into_bytes()
            };
            prop_assert_eq!(key(&a).cmp(&key(&b)), a.cmp(&b));
        }

        #[test]
        fn value_and_tail_split_round_trips(value in scalar(), at: i64, id in "\\PC{1,9}") {
            let field = Key::index(7, State::Removed, "p\0q", 3);
            let start = field.len();
            let key = field.value(value.as_ref()).suffix(Time(at), &id);
            let (read, suffix) = split_value(&key.bytes()[start..]).unwrap();
            prop_assert_eq!((read, suffix_id(suffix)), (value, Some(id.as_str())));
        }

        #[test]
        fn range_end_is_after_all_its_keys(project in any::<String>(), rest: String) {
            let start = Key::age(1, State::Live, &project);
            let inside = start.clone().suffix(Time(0), &rest);
            prop_assert!(inside.bytes() < start.range_end().as_slice());
        }
    }
}
