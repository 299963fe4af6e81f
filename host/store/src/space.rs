//! Free space on the disk, checked before each write.
//!
//! Sled cannot continue after a write that found no space. Therefore a batch or a blob is refused
//! while some space is still left, and the last part of it is reserved for batches that remove
//! data. Writes resume when space is available again.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Space that batches which add data must leave free, in bytes.
const RESERVED_BYTES: u64 = 8 * 1024 * 1024;
/// Space that batches which only remove data must leave free, in bytes.
const RESERVED_BYTES_FOR_REMOVALS: u64 = 3 * 1024 * 1024;
/// Number of bytes that the files may grow by for each byte of a body, for index keys and rewritten
/// pages.
const WRITTEN_BYTES_PER_BODY_BYTE: u64 = 4;

/// Space on the disk of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    /// Number of bytes that may be written.
    pub free: u64,
    /// True if a store in the folder refuses to add data.
    pub is_full: bool,
}

impl DiskSpace {
    /// Returns the space on the disk of a folder. Returns `None` if the system does not report it.
    #[must_use]
    pub fn of(folder: &Path) -> Option<DiskSpace> {
        let free = Space::new(folder).available()?;
        Some(DiskSpace {
            free,
            is_full: free < needed_bytes(0, false),
        })
    }
}

/// The file system of one folder.
#[derive(Debug)]
pub(crate) struct Space {
    folder: PathBuf,
    /// True if the last write found the disk full.
    refused: AtomicBool,
}

impl Space {
    pub(crate) fn new(folder: &Path) -> Space {
        Space {
            folder: folder.to_owned(),
            refused: AtomicBool::new(false),
        }
    }

    /// Returns true if `bytes` may be written.
    pub(crate) fn has_room(&self, bytes: u64, frees_only: bool) -> bool {
        let room = self
            .available()
            .is_none_or(|free| free >= needed_bytes(bytes, frees_only));
        if room == self.refused.load(Ordering::Relaxed) {
            self.refused.store(!room, Ordering::Relaxed);
            tracing::warn!(room, folder = %self.folder.display(), "the state of the disk has changed between full and not full");
        }
        room
    }

    /// Returns true if a write was refused and would be refused again.
    pub(crate) fn is_short(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
            && DiskSpace::of(&self.folder).is_some_and(|space| space.is_full)
    }

    /// Returns the free bytes, or `None` where the system does not report them. Then a write itself
    /// finds out.
    fn available(&self) -> Option<u64> {
        let found = rustix::fs::statvfs(&self.folder).ok()?;
        Some(found.f_bavail.saturating_mul(found.f_frsize))
    }
}

fn needed_bytes(bytes: u64, frees_only: bool) -> u64 {
    if frees_only {
        RESERVED_BYTES_FOR_REMOVALS
    } else {
        RESERVED_BYTES.saturating_add(bytes.saturating_mul(WRITTEN_BYTES_PER_BODY_BYTE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_space_is_reserved_for_removals() {
        assert!(needed_bytes(0, true) < needed_bytes(0, false));
        assert_eq!(needed_bytes(u64::MAX, false), u64::MAX);
    }
}
