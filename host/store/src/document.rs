//! The data model of the store: documents in collections, each with a list of declared fields.
//!
//! A declared field is one that the store may filter by, sort by or keep unique. Everything else in
//! a body is opaque to it.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::collections::HashSet;

/// A point in time, in milliseconds since 1970-01-01T00:00:00Z.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(pub i64);

/// The type of a declared field. It decides how the value is read, compared and ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A string, ordered by its UTF-8 bytes. A JSON boolean counts as `"true"` or `"false"`.
    Text,
    /// A whole number that fits 64 bits.
    Int,
    /// Milliseconds since the epoch.
    Time,
    /// A list of strings and numbers. A condition holds when one element meets it; lists have no
    /// order.
    List,
}

/// A top-level field of a body that the store may filter by, sort by or keep unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    /// The field's name in the JSON body.
    pub name: &'static str,
    /// Type of its value.
    pub kind: Kind,
    /// True if two live records of one project must not share a value. An absent or null value is
    /// never shared.
    pub unique: bool,
    /// True if records of all projects are found by this time, earliest first.
    pub across_projects: bool,
}

impl Field {
    /// Declares a field that lists can filter and sort by.
    pub const fn new(name: &'static str, kind: Kind) -> Field {
        Field {
            name,
            kind,
            unique: false,
            across_projects: false,
        }
    }

    /// Declares the time at which work on a record is due. The records of all projects that are due
    /// are found at a cost that does not depend on the number of those that are not.
    pub const fn due(name: &'static str) -> Field {
        Field {
            across_projects: true,
            ..Field::new(name, Kind::Time)
        }
    }

    /// Declares a field whose value at most one live record of a project may hold at a time.
    pub const fn unique(name: &'static str, kind: Kind) -> Field {
        Field {
            unique: true,
            ..Field::new(name, kind)
        }
    }
}

/// The deletion with which the records of a collection are erased. The store does not act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Erasure {
    /// The deletion of the project that owns the record.
    Project,
    /// The deletion of the project that owns the record. A record removed before stays hidden for a
    /// time.
    HidingProject,
    /// The deletion of the project that owns the record, by the module of the collection, because
    /// the record has a blob.
    ProjectWithBlobs,
    /// Not the deletion of a project, for this reason.
    Other(&'static str),
}

/// A named set of documents of one type.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Collection {
    /// Name in `snake_case`. It is written to disk and reserved forever.
    pub name: &'static str,
    /// The deletion with which the records are erased.
    pub erasure: Erasure,
    /// Declared fields. Adding or removing one makes the next start rebuild the collection's
    /// indexes.
    pub fields: &'static [Field],
}

impl Collection {
    /// Finds a declared field by name, with its position in the declaration.
    pub fn field(&self, name: &str) -> Option<(usize, &'static Field)> {
        self.fields
            .iter()
            .enumerate()
            .find(|(_, field)| field.name == name)
    }
}

/// Names of the envelope's columns, which declared fields must not use.
const RESERVED_NAMES: [&str; 7] = [
    "id",
    "project",
    "revision",
    "created_at",
    "updated_at",
    "deleted_at",
    "body",
];

/// Checks the declarations themselves.
pub(crate) fn check(collections: &[&'static Collection]) -> Result<(), String> {
    let mut names = HashSet::new();
    for collection in collections {
        if !names.insert(collection.name) {
            return Err(format!(
                "the collection {} is declared twice",
                collection.name
            ));
        }
        let mut fields: HashSet<_> = RESERVED_NAMES.into();
        if let Some(field) = collection
            .fields
            .iter()
            .find(|field| !fields.insert(field.name))
        {
            return Err(format!(
                "the field {} of {} is declared twice or has a reserved name",
                field.name, collection.name
            ));
        }
        if let Some(field) = collection
            .fields
            .iter()
            .find(|field| field.unique && field.kind == Kind::List)
        {
            return Err(format!(
                "the field {} of {} is a list, which cannot be unique",
                field.name, collection.name
            ));
        }
    }
    Ok(())
}

/// A type that the store can hold.
///
/// Stored bodies only grow: a field added later has a serde default, so that every stored body can
/// still be read.
pub trait Document: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The collection that holds the type.
    const COLLECTION: &'static Collection;
}

/// A document with its envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<T> {
    /// Id, unique in the collection over all projects, removed records included.
    pub id: String,
    /// Project that owns the record.
    pub project: String,
    /// Revision: one for a new record, increased by one with each change.
    pub revision: i64,
    /// Creation time.
    pub created_at: Time,
    /// Time of the last change.
    pub updated_at: Time,
    /// Time of removal. A removed record is hidden unless a query asks for it.
    pub deleted_at: Option<Time>,
    /// The document.
    pub body: T,
}

/// A record as backends hold it: the body is JSON text.
pub type Row = Record<bytes::Bytes>;

impl<T> Record<T> {
    /// Returns a record as a batch of this time inserts it. An answer that shows it does not show
    /// what another writer stored after the commit, as a read would.
    pub fn inserted(project: &str, id: &str, now: Time, body: T) -> Self {
        Self {
            id: id.to_owned(),
            project: project.to_owned(),
            revision: 1,
            created_at: now,
            updated_at: now,
            deleted_at: None,
            body,
        }
    }

    /// Returns a record that was read and changed as a batch of this time stores it, for the same
    /// reason as [`inserted`](Self::inserted).
    pub fn updated(self, now: Time) -> Self {
        Self {
            revision: self.revision + 1,
            updated_at: now,
            ..self
        }
    }

    /// Replaces the body and keeps the envelope.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Record<U> {
        Record {
            id: self.id,
            project: self.project,
            revision: self.revision,
            created_at: self.created_at,
            updated_at: self.updated_at,
            deleted_at: self.deleted_at,
            body: change(self.body),
        }
    }

    /// Returns true if the record has not been removed.
    pub fn is_live(&self) -> bool {
        self.deleted_at.is_none()
    }
}
