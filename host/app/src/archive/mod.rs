//! A whole installation in one encrypted file: backup, restore, and the way from one kind of store to another.
//!
//! The file is an age file (age-encryption.org/v1), for a passphrase or for an age recipient; what is in it is told in
//! [`frame`]. Age authenticates every byte and the end, so a file that was changed or cut anywhere does not read. Importing
//! reads it twice: once to the end, changing nothing, and only then to put back what it holds.
//!
//! **The master key is in the file.** An operator who has lost a machine has lost the key file with it, and without it the
//! rest is worth nothing. A thief of the file alone has nothing either way; a thief of file and passphrase has everything
//! either way, but for an operator who keeps the key apart. So a passphrase may not be short, and a machine that writes
//! backups by itself should hold a recipient only, with which nothing can be read.
//!
//! What is read out is of one moment: commits of the process that reads wait while records (not blobs) are read. Nodes on a
//! shared database do not wait: of what they write meanwhile each record is whole, and which are in the file is open.

mod frame;
mod lock;
mod pack;
mod read_out;
mod restore;

use std::path::PathBuf;

pub use lock::{Lock, PASSPHRASE, Unlock};
pub use pack::{Checked, check, pack};
pub use read_out::read_out;
pub use restore::{is_empty, restore};

/// What an archive holds, or what of it was moved so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Records, removed ones included.
    pub records: u64,
    /// Components and other large values.
    pub blobs: u64,
    /// Bytes of both.
    pub bytes: u64,
}

/// Why an archive was not made, not read or not put back.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The passphrase is too short for a file that holds everything.
    #[error(
        "the passphrase is shorter than {PASSPHRASE} characters, and the file holds every secret; choose a longer one"
    )]
    Weak,
    /// No recipient.
    #[error("`{0}` is not an age recipient: it begins with `age1`, and `age-keygen` makes one")]
    Recipient(String),
    /// No identity.
    #[error("{} holds no age identity: a line that begins with `AGE-SECRET-KEY-1`", .0.display())]
    Identity(PathBuf),
    /// The file does not open.
    #[error("{} does not open: {reason}; nothing was changed", file.display())]
    Locked {
        /// The archive.
        file: PathBuf,
        /// What was found.
        reason: String,
    },
    /// The file opens, and is damaged further on.
    #[error("{} is damaged or cut off: {reason}; nothing was changed, use another backup", file.display())]
    Damaged {
        /// The archive.
        file: PathBuf,
        /// What was found.
        reason: String,
    },
    /// Made by a version that knows more.
    #[error("{} cannot be put back here: {reason}; use the version of toolhost that made it, or a newer one", file.display())]
    Newer {
        /// The archive.
        file: PathBuf,
        /// What is not known here.
        reason: String,
    },
    /// The store has something already.
    #[error("the store holds records already; an import needs an empty one: name another data directory with --data")]
    NotEmpty,
    /// The key file is another installation's, or was replaced meanwhile.
    #[error(
        "the key file does not open what the store holds, so nobody could use the file: put the right one back, or \
             export again when it was just replaced"
    )]
    OtherKey,
    /// What was read out came to no end.
    #[error("what was to be written broke off: {0}")]
    BrokenOff(String),
    /// The system refuses.
    #[error("cannot {what} {}: {cause}", file.display())]
    Io {
        /// `read` or `write`.
        what: &'static str,
        /// Which file.
        file: PathBuf,
        /// The system's word.
        cause: std::io::Error,
    },
    /// The store refuses.
    #[error(transparent)]
    Store(#[from] crate::Error),
}
