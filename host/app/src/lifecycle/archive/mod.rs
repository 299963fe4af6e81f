//! A whole installation in one encrypted file, for backup, restore, and migration from one kind of
//! store to another.
//!
//! The file is an age file (age-encryption.org/v1) for a passphrase or an age recipient. Its
//! content is described in [`frame`]. Age authenticates every byte and the end of the file, so a
//! file that was changed or truncated anywhere cannot be read. An import reads the file twice:
//! first to the end without changing anything, and only then to restore its content.
//!
//! **The master key is in the file.** An operator who has lost a machine has also lost its key
//! file, and without the key the rest is worthless. A thief of the file alone gets nothing, with or
//! without the key in it. A thief of the file and the passphrase gets everything in both cases,
//! unless the operator keeps the key elsewhere. A passphrase must therefore not be short. A machine
//! that writes backups automatically should hold only a recipient, which cannot decrypt anything.
//!
//! The exported records are a consistent snapshot of this process: its commits wait while records
//! (not blobs) are read, and blobs that its sessions replace are kept until they are copied. Other
//! nodes on a shared database do neither. Each record that they write in the meantime is complete,
//! but it is undefined which of these records are in the file. A file of a session that they replace
//! may be without content.

mod frame;
mod lock;
mod pack;
mod read_out;
mod restore;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use lock::{Lock, MIN_PASSPHRASE_CHARS, Unlock};
pub use pack::{CheckedArchive, check, pack};
pub use read_out::export_frames;
pub use restore::{is_empty, restore};

/// The content of an archive, or the part of it that was processed so far. The end frame has it as
/// JSON.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// The number of records, including deleted ones.
    pub records: u64,
    /// The number of blobs: components, files and other large values.
    pub blobs: u64,
    /// The number of bytes of records and blobs.
    pub bytes: u64,
}

/// The reason why an archive was not written, not read or not restored.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The passphrase is too short for a file that holds every secret.
    #[error(
        "the passphrase is shorter than {MIN_PASSPHRASE_CHARS} characters: choose a longer one, because the archive contains all secrets"
    )]
    WeakPassphrase,
    /// The text is not an age recipient.
    #[error(
        "`{0}` is not an age recipient: a recipient begins with `age1` and is created by `age-keygen`"
    )]
    InvalidRecipient(String),
    /// The file to create is already there.
    #[error("{} already exists: delete it, or write to another file", .0.display())]
    Exists(PathBuf),
    /// The file holds no age identity.
    #[error("{} contains no age identity: it needs a line that begins with `AGE-SECRET-KEY-1`", .0.display())]
    NoIdentity(PathBuf),
    /// The archive cannot be decrypted.
    #[error("{} cannot be decrypted: {reason}; nothing was changed", file.display())]
    Undecryptable {
        /// The path of the archive.
        file: PathBuf,
        /// The problem found.
        reason: String,
    },
    /// The archive can be decrypted, but is damaged further on.
    #[error("{} is damaged or truncated: {reason}; nothing was changed, use another backup", file.display())]
    Damaged {
        /// The path of the archive.
        file: PathBuf,
        /// The problem found.
        reason: String,
    },
    /// The archive was made by a newer version.
    #[error("{} cannot be restored by this version: {reason}; use the version of toolhost that created it, or a newer one", file.display())]
    Newer {
        /// The path of the archive.
        file: PathBuf,
        /// The part that this version does not know.
        reason: String,
    },
    /// The store is not empty.
    #[error(
        "the store already contains records: import into an empty store, with another data directory in --data"
    )]
    NotEmpty,
    /// The key file belongs to another installation, or was replaced in the meantime.
    #[error(
        "the key file does not open the data keys of the store: restore the matching key file, or repeat the export if the key \
             was just replaced"
    )]
    OtherKey,
    /// The export ended early.
    #[error("the export ended early: {0}")]
    Incomplete(String),
    /// The operating system refused the access.
    #[error("cannot {operation} {}: {cause}", file.display())]
    Io {
        /// The operation: `read` or `write`.
        operation: &'static str,
        /// The path of the file.
        file: PathBuf,
        /// The error of the operating system.
        cause: std::io::Error,
    },
    /// The store could not be read or written.
    #[error(transparent)]
    Store(#[from] crate::Error),
}
