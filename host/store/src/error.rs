//! Errors of the store, in words an operator can act on.

use crate::Collection;
use std::path::PathBuf;
use thiserror::Error;

/// Reason why a store could not be opened. The attempt changed no record.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Another process holds the folder.
    #[error("the data directory {} is in use by another process: stop it, or choose another directory", at.display())]
    Locked {
        /// The store's folder.
        at: PathBuf,
    },
    /// A file is broken, is missing, belongs to another store, holds less than was acknowledged, or
    /// has a newer format.
    #[error("cannot start on {}: {reason}; {repair}", file.display())]
    Damaged {
        /// Damaged file, as far as can be determined.
        file: PathBuf,
        /// Problem that was found.
        reason: String,
        /// Steps to repair it.
        repair: String,
    },
    /// The program declares a collection in a way that the stored data does not allow.
    #[error("cannot start on {}: {reason}", at.display())]
    Declaration {
        /// The store's folder.
        at: PathBuf,
        /// Declaration and the reason.
        reason: String,
    },
    /// The database cannot be reached or cannot be used.
    #[error("cannot start on {at}: {reason}; {hint}")]
    Database {
        /// Database, without its password.
        at: String,
        /// Problem that was found.
        reason: String,
        /// Steps to fix it.
        hint: String,
        /// True if a later attempt may succeed with the same settings.
        temporary: bool,
    },
    /// The folder cannot be read or written: missing rights, a full disk, a file at its path.
    #[error("cannot open {}: {error}; check that it is a folder this user may write to", at.display())]
    Io {
        /// Path that was accessed.
        at: PathBuf,
        /// Error of the operating system.
        error: std::io::Error,
    },
}

/// Reason why something could not be read, or why a blob could not be written.
#[derive(Clone, Debug, Error)]
pub enum Error {
    /// Stored data is broken.
    #[error("{what} is damaged: {reason}")]
    Damaged {
        /// Damaged record or blob.
        what: String,
        /// Problem that was found.
        reason: String,
    },
    /// A query names a field that its collection does not declare, or orders by a list.
    #[error(
        "{collection} cannot be queried by {field}: it is not a declared field of a matching kind"
    )]
    Undeclared {
        /// The collection.
        collection: &'static str,
        /// The field that was named.
        field: String,
    },
    /// A blob's key is malformed.
    #[error(
        "`{0}` is not a blob key: use 1 to 200 letters, digits, `_`, `-`, `.`, no dot in front"
    )]
    Key(String),
    /// The disk is full; nothing was written.
    #[error("the disk is full")]
    Full,
    /// The storage does not answer, or has answered wrongly and is no longer trusted.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
}

impl Error {
    pub(crate) fn unreadable(
        collection: &Collection,
        id: &str,
        error: &dyn std::fmt::Display,
    ) -> Error {
        Error::Damaged {
            what: format!("record {id} of {}", collection.name),
            reason: error.to_string(),
        }
    }
}

/// Reason why a batch was not applied. No step was applied, except that `Unavailable` leaves this
/// open.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CommitError {
    /// An id or a unique value is in use. In the first case, `field` is `id`.
    #[error("another record of {collection} has this {field}")]
    Taken {
        /// The collection of the record that could not be written.
        collection: &'static str,
        /// The field whose value is in use.
        field: &'static str,
    },
    /// A record was changed or removed after it was read.
    #[error("a record has been changed since it was read")]
    Stale,
    /// The disk is full. Reads continue, and writes resume when space is available again.
    #[error("the disk is full")]
    Full,
    /// The batch can never be applied: a malformed id, a value over a limit, a record named twice.
    #[error("the batch cannot be stored: {0}")]
    Invalid(String),
    /// The storage does not answer, or has failed to sync and is no longer trusted with writes.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
}

/// Reason why an edit was not made.
#[derive(Debug, Error)]
pub enum EditError<E> {
    /// The change itself returned an error.
    #[error("{0}")]
    Change(E),
    /// The record could not be read.
    #[error(transparent)]
    Read(Error),
    /// The changed record could not be written.
    #[error(transparent)]
    Commit(CommitError),
}
