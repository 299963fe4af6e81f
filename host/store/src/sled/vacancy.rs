//! Release of the space of large removed values.
//!
//! Sled keeps a page as a base and the changes since. It rewrites the page, and releases the old
//! data, only after ten changes. If records are created in order, a page from which a large value
//! was removed gets no further changes, and the value stays in the file for good. Therefore this
//! module makes the changes: at the key of the large value, it inserts and removes an empty value,
//! the *mark*, until sled has rewritten the page. No record and no piece of one is ever empty. A
//! mark that a crash leaves behind therefore counts for nothing, and the next start removes it.

use super::keys::Prefix;
use ::sled::{Batch, Db, IVec, Result};

/// Minimum size of a value whose space is released by rewriting its page, in bytes.
const MIN_RELEASED_BYTES: usize = 1024;
/// Number of rounds of two changes each. Together with the removal of the value, these are more
/// than the ten changes that sled waits for.
const REWRITE_ROUNDS: usize = 6;

/// Returns true if the removal of a value leaves much space behind.
pub(super) fn leaves_much_space(key: &[u8], value: &[u8]) -> bool {
    value.len() >= MIN_RELEASED_BYTES && may_be_marked(key)
}

/// Returns true if a mark may be stored at a key.
pub(super) fn may_be_marked(key: &[u8]) -> bool {
    matches!(
        Prefix::from_key(key),
        Some(Prefix::Document | Prefix::Piece)
    )
}

/// Returns true if a value is a mark, at a key where a mark may be stored.
pub(super) fn is_mark(value: &[u8]) -> bool {
    value.is_empty()
}

/// Makes sled rewrite the pages of these keys. The keys must be unused.
pub(super) fn release(db: &Db, vacated: &[IVec]) -> Result<()> {
    for _ in 0..REWRITE_ROUNDS {
        let (mut marks, mut removals) = (Batch::default(), Batch::default());
        for key in vacated {
            marks.insert(key, IVec::default());
            removals.remove(key);
        }
        db.apply_batch(marks)?;
        db.apply_batch(removals)?;
    }
    Ok(())
}
