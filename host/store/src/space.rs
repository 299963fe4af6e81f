//! Room on the disk, asked for before each write.
//!
//! Sled cannot go on after a write that found no space. So a batch or a blob is refused while there is still some left,
//! and the last of it is kept for batches that take away; when there is space again, writes go through again.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Kept free by batches that add, and by batches that only take away, in bytes.
const RESERVE: u64 = 8 * 1024 * 1024;
const LAST_RESERVE: u64 = 3 * 1024 * 1024;
/// How many bytes a file may grow by for each byte of a body: index keys, and pages written anew.
const GROWTH: u64 = 4;

/// The file system of one folder.
#[derive(Debug)]
pub(crate) struct Space {
    folder: PathBuf,
    /// Whether the last write found no room.
    refused: AtomicBool,
}

impl Space {
    pub(crate) fn of(folder: &Path) -> Space {
        Space { folder: folder.to_owned(), refused: AtomicBool::new(false) }
    }

    /// Whether so many bytes may be written.
    pub(crate) fn has_room(&self, bytes: u64, frees_only: bool) -> bool {
        let room = self.available().is_none_or(|free| free >= needed(bytes, frees_only));
        if room == self.refused.load(Ordering::Relaxed) {
            self.refused.store(!room, Ordering::Relaxed);
            tracing::warn!(room, folder = %self.folder.display(), "the disk has changed between full and not full");
        }
        room
    }

    /// Whether a write was refused and would be again.
    pub(crate) fn is_short(&self) -> bool {
        self.refused.load(Ordering::Relaxed) && self.available().is_some_and(|free| free < needed(0, false))
    }

    /// Free bytes; none where the system does not say, and then writes have to find out.
    fn available(&self) -> Option<u64> {
        let found = rustix::fs::statvfs(&self.folder).ok()?;
        Some(found.f_bavail.saturating_mul(found.f_frsize))
    }
}

fn needed(bytes: u64, frees_only: bool) -> u64 {
    if frees_only { LAST_RESERVE } else { RESERVE.saturating_add(bytes.saturating_mul(GROWTH)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_space_is_for_batches_that_take_away() {
        assert!(needed(0, true) < needed(0, false));
        assert_eq!(needed(u64::MAX, false), u64::MAX);
    }
}
