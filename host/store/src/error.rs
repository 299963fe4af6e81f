//! What can go wrong, in words an operator can act on.

use crate::Collection;
use std::path::PathBuf;
use thiserror::Error;

/// Why a store could not be opened. No record was changed by trying.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Another process holds the folder.
    #[error("the data folder {} is in use by another process: stop it, or choose another folder", at.display())]
    Locked {
        /// The store's folder.
        at: PathBuf,
    },
    /// A file is broken, is missing, belongs to another store, holds less than was acknowledged, or is of a newer form.
    #[error("cannot start on {}: {reason}; {repair}", file.display())]
    Damaged {
        /// The file that is broken, as far as it can be told.
        file: PathBuf,
        /// What was found.
        reason: String,
        /// What to do.
        repair: String,
    },
    /// The program declares a collection in a way the stored data cannot follow.
    #[error("cannot start on {}: {reason}", at.display())]
    Declaration {
        /// The store's folder.
        at: PathBuf,
        /// Which declaration, and why.
        reason: String,
    },
    /// The database cannot be reached, or is not one that can be used.
    #[error("cannot start on {at}: {reason}; {fix}")]
    Database {
        /// Which database, without its password.
        at: String,
        /// What was found.
        reason: String,
        /// What to do.
        fix: String,
    },
    /// The folder cannot be read or written: rights, a full disk, a file in its place.
    #[error("cannot open {}: {error}; check that it is a folder this user may write to", at.display())]
    Io {
        /// The path that was touched.
        at: PathBuf,
        /// What the system answered.
        error: std::io::Error,
    },
}

/// Why something could not be read, or a blob not be written.
#[derive(Clone, Debug, Error)]
pub enum Error {
    /// What is stored is broken.
    #[error("{what} is damaged: {reason}")]
    Damaged {
        /// The record or blob.
        what: String,
        /// What was found.
        reason: String,
    },
    /// A query names a field that its collection does not declare, or orders by a list.
    #[error("{collection} cannot be queried by {field}: it is not a declared field of a fitting kind")]
    Undeclared {
        /// The collection.
        collection: &'static str,
        /// The field that was named.
        field: String,
    },
    /// A blob's key is malformed.
    #[error("`{0}` is not a blob key: use 1 to 200 letters, digits, `_`, `-`, `.`, no dot in front")]
    Key(String),
    /// The disk is full; nothing was written.
    #[error("the disk is full")]
    Full,
    /// The storage does not answer, or has answered wrongly and is no longer trusted.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
}

impl Error {
    pub(crate) fn unreadable(at: &Collection, id: &str, error: &dyn std::fmt::Display) -> Error {
        Error::Damaged { what: format!("record {id} of {}", at.name), reason: error.to_string() }
    }
}

/// Why a batch was not applied. Nothing of it was, except after `Unavailable`, which leaves it open.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CommitError {
    /// An id or a unique value is in use; `field` is `id` in the first case.
    #[error("another record of {collection} has this {field}")]
    Taken {
        /// The collection of the record that could not be written.
        collection: &'static str,
        /// The field whose value is in use.
        field: &'static str,
    },
    /// A record was changed, or removed, since it was read.
    #[error("a record has been changed since it was read")]
    Stale,
    /// The disk is full; reads go on, and writes resume when there is space again.
    #[error("the disk is full")]
    Full,
    /// The batch can never be applied: a malformed id, a value over a limit, a record named twice.
    #[error("the batch cannot be stored: {0}")]
    Invalid(String),
    /// The storage does not answer, or has failed to sync and is no longer trusted with writes.
    #[error("the store is unavailable: {0}")]
    Unavailable(String),
}

/// Why an edit did not happen.
#[derive(Debug, Error)]
pub enum EditError<E> {
    /// The change itself refused.
    #[error("{0}")]
    Change(E),
    /// The record could not be read.
    #[error(transparent)]
    Read(Error),
    /// The changed record could not be written.
    #[error(transparent)]
    Commit(CommitError),
}
