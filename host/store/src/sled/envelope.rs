//! The stored form of a record: a small binary envelope, followed by the body as JSON text.
//!
//! The checksum covers the key and everything after the checksum. Every read therefore notices a
//! flipped bit, a value cut short, and a value under another record's key. A body too large for one
//! value is kept in pieces under keys of their own. The envelope then holds the body's length and
//! checksum.

use super::keys::Key;
use crate::{Record, Row, Time};
use bytes::Bytes;

/// Maximum size of a body in the envelope, and size of the pieces of a larger body, in bytes. A
/// leaf of sled holds up to seventeen values, and a leaf above 128 KiB would go to a file that sled
/// never syncs.
pub(super) const PIECE_BYTES: usize = 6 * 1024;

const FORMAT_VERSION: u8 = 1;
const FORM_WHOLE: u8 = 0;
const FORM_PIECES: u8 = 1;
/// Length of version, form and checksum, in bytes.
const HEADER_BYTES: usize = 6;
/// Length of the fixed part, in bytes: start, revision, three times, length of the project.
const FIXED_BYTES: usize = HEADER_BYTES + 8 + 3 * 8 + 2;
const NOT_DELETED: i64 = i64::MIN;

/// Location of a stored body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// Body in the envelope itself.
    Whole(Bytes),
    /// Body in pieces under keys of their own.
    Pieces {
        count: u32,
        length: u32,
        checksum: u32,
    },
}

/// Encodes a record: the value of the envelope, and the pieces of a large body.
pub(super) fn encode<'a>(key: &Key, row: &'a Row) -> (Vec<u8>, std::slice::Chunks<'a, u8>) {
    let whole = row.body.len() <= PIECE_BYTES;
    let mut value = Vec::with_capacity(
        FIXED_BYTES + row.project.len() + if whole { row.body.len() } else { 12 },
    );
    value.extend_from_slice(&[
        FORMAT_VERSION,
        if whole { FORM_WHOLE } else { FORM_PIECES },
        0,
        0,
        0,
        0,
    ]);
    let deleted = row.deleted_at.map_or(NOT_DELETED, |at| at.0);
    for number in [row.revision, row.created_at.0, row.updated_at.0, deleted] {
        value.extend_from_slice(&number.to_le_bytes());
    }
    value.extend_from_slice(&(row.project.len() as u16).to_le_bytes());
    value.extend_from_slice(row.project.as_bytes());
    let pieces = if whole {
        value.extend_from_slice(&row.body);
        [].chunks(PIECE_BYTES)
    } else {
        let pieces = row.body.chunks(PIECE_BYTES);
        for number in [
            pieces.len() as u32,
            row.body.len() as u32,
            crc32fast::hash(&row.body),
        ] {
            value.extend_from_slice(&number.to_le_bytes());
        }
        pieces
    };
    let checksum = checksum(key, &value);
    value[2..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
    (value, pieces)
}

/// Decodes an envelope. The error says what is wrong with it.
pub(super) fn decode(key: &Key, id: &str, value: &[u8]) -> Result<Record<Body>, &'static str> {
    let fixed = value.get(..FIXED_BYTES).ok_or("it is truncated")?;
    if u32::from_le_bytes(array(&fixed[2..HEADER_BYTES])) != checksum(key, value) {
        return Err("its checksum does not match");
    }
    if fixed[0] != FORMAT_VERSION {
        return Err("it was written by a newer version");
    }
    let number = |place: usize| i64::from_le_bytes(array(&fixed[HEADER_BYTES + 8 * place..]));
    let length = usize::from(u16::from_le_bytes(array(&fixed[FIXED_BYTES - 2..])));
    let (project, body) = value[FIXED_BYTES..]
        .split_at_checked(length)
        .ok_or("it is truncated")?;
    Ok(Record {
        id: id.to_owned(),
        project: String::from_utf8(project.to_vec()).map_err(|_| "its project is not text")?,
        revision: number(0),
        created_at: Time(number(1)),
        updated_at: Time(number(2)),
        deleted_at: Some(number(3)).filter(|at| *at != NOT_DELETED).map(Time),
        body: decode_body(fixed[1], body)?,
    })
}

fn decode_body(form: u8, rest: &[u8]) -> Result<Body, &'static str> {
    match form {
        FORM_WHOLE => Ok(Body::Whole(Bytes::copy_from_slice(rest))),
        FORM_PIECES if rest.len() == 12 => {
            let number = |place: usize| u32::from_le_bytes(array(&rest[4 * place..]));
            Ok(Body::Pieces {
                count: number(0),
                length: number(1),
                checksum: number(2),
            })
        }
        _ => Err("its form is unknown"),
    }
}

fn checksum(key: &Key, value: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for part in [key.bytes(), &value[..2], &value[HEADER_BYTES..]] {
        hasher.update(part);
    }
    hasher.finalize()
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[..N]);
    array
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(body: Vec<u8>, deleted: Option<i64>) -> Row {
        Record {
            revision: 3,
            updated_at: Time(7),
            deleted_at: deleted.map(Time),
            ..Record::inserted("p", "x", Time(-5), body.into())
        }
    }

    proptest! {
        #[test]
        fn an_envelope_reads_as_it_was_written(body in any::<Vec<u8>>(), deleted in proptest::option::of(0_i64..9)) {
            let key = Key::document(1, "x");
            let row = row(body, deleted);
            let (value, _) = encode(&key, &row);
            prop_assert_eq!(decode(&key, "x", &value).unwrap(), row.map(Body::Whole));
        }

        #[test]
        fn any_flipped_bit_is_noticed(body in proptest::collection::vec(any::<u8>(), 0..64), place: usize, bit in 0_u32..8) {
            let key = Key::document(1, "x");
            let (mut value, _) = encode(&key, &row(body, None));
            let place = place % value.len();
            value[place] ^= 1 << bit;
            prop_assert!(decode(&key, "x", &value).is_err());
        }
    }

    #[test]
    fn a_value_under_another_records_key_is_noticed() {
        let (value, _) = encode(&Key::document(1, "x"), &row(vec![], None));
        assert!(decode(&Key::document(1, "y"), "y", &value).is_err());
    }
}
