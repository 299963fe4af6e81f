//! What the store keeps: documents in collections, each with a list of declared fields.
//!
//! A declared field is one the store may filter, sort or guard by. Everything else in a body is opaque to it.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::collections::HashSet;

/// A moment, in milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(pub i64);

/// How the value of a declared field is read, compared and ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A string, ordered by its UTF-8 bytes. A JSON boolean counts as `"true"` or `"false"`.
    Text,
    /// A whole number that fits 64 bits.
    Int,
    /// Milliseconds since the epoch.
    Time,
    /// A list of strings and numbers. A condition holds when one element meets it; lists have no order.
    List,
}

/// A top-level member of a body that the store may filter, sort or guard by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    /// The member's name in the JSON body.
    pub name: &'static str,
    /// How its value is read.
    pub kind: Kind,
    /// Whether two live records of one project may not share a value. An absent or null value is never shared.
    pub unique: bool,
}

impl Field {
    /// Declares a field that may be filtered and sorted by.
    pub const fn new(name: &'static str, kind: Kind) -> Field {
        Field { name, kind, unique: false }
    }

    /// Declares a field whose value one live record of a project may hold at a time.
    pub const fn unique(name: &'static str, kind: Kind) -> Field {
        Field { name, kind, unique: true }
    }
}

/// A named set of documents of one type.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Collection {
    /// The name, in `snake_case`; it is written to disk and reserved for ever.
    pub name: &'static str,
    /// The declared fields. Adding or removing one makes the next start rebuild the collection's indexes.
    pub fields: &'static [Field],
}

impl Collection {
    /// Finds a declared field by name, with its place in the declaration.
    pub fn field(&self, name: &str) -> Option<(usize, &'static Field)> {
        self.fields.iter().enumerate().find(|(_, field)| field.name == name)
    }
}

/// Members of a record that are not in its body, and so no names for fields.
const RESERVED: [&str; 7] = ["id", "project", "revision", "created_at", "updated_at", "deleted_at", "body"];

/// Says what is wrong with the declarations themselves.
pub(crate) fn check(collections: &[&'static Collection]) -> Result<(), String> {
    let mut names = HashSet::new();
    for at in collections {
        if !names.insert(at.name) {
            return Err(format!("the collection {} is declared twice", at.name));
        }
        let mut fields: HashSet<_> = RESERVED.into();
        if let Some(field) = at.fields.iter().find(|field| !fields.insert(field.name)) {
            return Err(format!("the field {} of {} is declared twice or is one of every record", field.name, at.name));
        }
        if let Some(field) = at.fields.iter().find(|field| field.unique && field.kind == Kind::List) {
            return Err(format!("the field {} of {} is a list, which cannot be unique", field.name, at.name));
        }
    }
    Ok(())
}

/// A type whose values the store keeps.
///
/// Stored bodies only grow: a member added later has a serde default, so that every body ever written still reads.
pub trait Document: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The collection that holds the type.
    const COLLECTION: &'static Collection;
}

/// A document with its envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<T> {
    /// The id, unique in the collection over all projects, deleted records included.
    pub id: String,
    /// The project that owns the record.
    pub project: String,
    /// One for a new record, one more with each change.
    pub revision: i64,
    /// When the record was made.
    pub created_at: Time,
    /// When it was last changed.
    pub updated_at: Time,
    /// When it was removed; a removed record is hidden unless a query asks for it.
    pub deleted_at: Option<Time>,
    /// The document.
    pub body: T,
}

/// A record as backends hold it: the body is JSON text.
pub type Row = Record<bytes::Bytes>;

impl<T> Record<T> {
    /// Keeps the envelope and replaces the body.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Record<U> {
        let Record { id, project, revision, created_at, updated_at, deleted_at, body } = self;
        Record { id, project, revision, created_at, updated_at, deleted_at, body: change(body) }
    }

    /// Whether the record has not been removed.
    pub fn is_live(&self) -> bool {
        self.deleted_at.is_none()
    }
}
