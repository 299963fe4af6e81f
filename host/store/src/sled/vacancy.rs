//! Gives the space of large values back when they go.
//!
//! Sled keeps a page as a base and the changes since, and writes the page anew, letting go of all that, only once ten
//! changes have come together. Where records are made in order, no more changes come to a page that had a large value
//! taken out, and the value stays in the file for good. So the changes are made: where a large value was, an empty one, the *mark*,
//! is put and taken away until sled has written the page anew. No record and no piece of one is ever empty, so a mark
//! that a crash leaves behind counts for nothing, and the next start removes it.

use super::keys::Prefix;
use ::sled::{Batch, Db, IVec, Result};

/// Values of fewer bytes are not worth writing a page anew.
const LARGE: usize = 1024;
/// Two changes each; together with the one that took the value away more than the ten that sled waits for.
const ROUNDS: usize = 6;

/// Whether a value that goes leaves much space behind.
pub(super) fn is_worth_it(key: &[u8], value: &[u8]) -> bool {
    value.len() >= LARGE && may_be_marked(key)
}

/// Whether a mark may stand at a key.
pub(super) fn may_be_marked(key: &[u8]) -> bool {
    matches!(Prefix::of(key), Some(Prefix::Document | Prefix::Piece))
}

/// Whether a value, at a key where one may stand, is a mark.
pub(super) fn is_mark(value: &[u8]) -> bool {
    value.is_empty()
}

/// Has sled write the pages of these keys anew, which are in no use.
pub(super) fn release(db: &Db, vacated: &[IVec]) -> Result<()> {
    for _ in 0..ROUNDS {
        for value in [Some(IVec::default()), None] {
            let mut batch = Batch::default();
            vacated.iter().for_each(|key| super::position::write(&mut batch, key, value.clone()));
            db.apply_batch(batch)?;
        }
    }
    Ok(())
}
