//! Errors of ids that older clients use. With those of all modules below, these are all errors of
//! the crate.

use std::fmt::Display;

pub use crate::agents::errors::*;

crate::error_table! { pub table:
    /// No object of the project has or had this legacy id.
    LEGACY_NOT_FOUND = legacy_not_found(kind: &str, uuid: impl Display): NotFound, 2601, "Migration_NotFound",
        "no {kind} with the legacy id {uuid}",
        "check `uuid` and `type`; the operator loads legacy ids of an older system with `toolhost import-legacy`";
    /// The object is deleted.
    LEGACY_GONE = legacy_gone(kind: &str, uuid: impl Display): Gone, 2602, "Migration_ObjectDeleted",
        "the {kind} with the legacy id {uuid} is deleted",
        "create a new object; a deleted object cannot be restored";
}
