//! A batch: a set of preconditions and changes as data, applied in full or not at all.
//!
//! A batch carries its own time, so the code that builds it owns the clock. Nothing is awaited
//! inside a batch. All preconditions are checked against the state before the batch. Therefore a
//! unique value cannot pass from one record to another inside a batch, and a batch names each
//! record at most once.

use crate::values::{Scalar, Values};
use crate::{Collection, CommitError, Document, Record, Row, Time};
use bytes::Bytes;
use serde::Serialize;

/// Maximum length of an id or a project, in bytes.
const MAX_ID_BYTES: usize = 256;
/// Maximum length of a string in a declared field, in bytes.
pub(crate) const MAX_TEXT_BYTES: usize = 1024;
/// Maximum size of a body, in bytes.
const MAX_BODY_BYTES: usize = 32 * 1024 * 1024;
/// Initial size of the buffer into which a body is written, in bytes.
const MIN_BODY_CAPACITY: usize = 128;
/// Maximum number of elements in a list of a declared field.
const MAX_LIST_ELEMENTS: usize = 256;

/// One step of a batch. It concerns one record.
#[derive(Clone, Debug)]
pub struct Write {
    /// The collection of the record.
    pub collection: &'static Collection,
    /// The project that owns the record. No step moves a record to another project.
    pub project: String,
    /// The record's id.
    pub id: String,
    /// The precondition and the change.
    pub step: Step,
    /// The declared fields of the body, if the caller passed them.
    pub(crate) values: Option<Values>,
}

impl Write {
    /// Returns the record that the step creates in a batch of this time, or `None` if it changes an
    /// existing one.
    pub(crate) fn into_created(self, now: Time) -> Option<Row> {
        let (revision, created_at, updated_at, deleted_at, body) = match self.step {
            Step::Insert { created_at, body } => (1, created_at, now, None, body),
            Step::Restore {
                revision,
                created_at,
                updated_at,
                deleted_at,
                body,
            } => (revision, created_at, updated_at, deleted_at, body),
            _ => return None,
        };
        Some(Record {
            id: self.id,
            project: self.project,
            revision,
            created_at,
            updated_at,
            deleted_at,
            body,
        })
    }

    /// Returns the collection's name and the id. A batch names each such pair at most once.
    fn target(&self) -> (&'static str, &str) {
        (self.collection.name, &self.id)
    }

    /// Checks form and limits, and returns the declared fields of the body. They are read from it
    /// unless the caller passed them. Returns no values for a step without a body.
    fn take_values(&mut self) -> Result<Values, CommitError> {
        let refuse = |why: String| {
            CommitError::Invalid(format!("{} {}: {why}", self.collection.name, self.id))
        };
        let Some(body) = self.step.body() else {
            return Ok(Values::default());
        };
        if self.id.is_empty() || self.id.len() > MAX_ID_BYTES || self.project.len() > MAX_ID_BYTES {
            return Err(refuse(format!(
                "an id must have 1 to {MAX_ID_BYTES} bytes, a project at most {MAX_ID_BYTES}"
            )));
        }
        if body.len() > MAX_BODY_BYTES {
            return Err(refuse(format!("a body has at most {MAX_BODY_BYTES} bytes")));
        }
        let read = || Values::from_body(self.collection, body);
        let passed = self.values.take();
        debug_assert!(
            passed
                .iter()
                .all(|passed| read().is_ok_and(|values| values == *passed)),
            "lists differ from body"
        );
        let values = passed
            .map_or_else(read, Ok)
            .map_err(|error| refuse(format!("the body is not an object: {error}")))?;
        for (place, field) in self.collection.fields.iter().enumerate() {
            let found = values.at(place);
            if found.len() > MAX_LIST_ELEMENTS {
                return Err(refuse(format!(
                    "{} has more than {MAX_LIST_ELEMENTS} elements",
                    field.name
                )));
            }
            if found
                .iter()
                .any(|value| matches!(value, Scalar::Text(text) if text.len() > MAX_TEXT_BYTES))
            {
                return Err(refuse(format!(
                    "{} has more than {MAX_TEXT_BYTES} bytes",
                    field.name
                )));
            }
        }
        Ok(values)
    }
}

/// The precondition and the change of a step. If the given revision is not the stored one, the
/// whole batch is stale.
#[derive(Clone, Debug)]
pub enum Step {
    /// Creates a record. Fails as *taken* when the id or a unique value is in use.
    Insert {
        /// Creation time of the record.
        created_at: Time,
        /// Body as JSON text, an object.
        body: Bytes,
    },
    /// Creates a record as another store held it. Fails as *taken* when the id, or a unique value
    /// of a live record, is in use.
    Restore {
        /// Revision in the other store.
        revision: i64,
        /// Creation time of the record.
        created_at: Time,
        /// Time of the last change.
        updated_at: Time,
        /// Time of removal, if the record was removed.
        deleted_at: Option<Time>,
        /// Body as JSON text, an object.
        body: Bytes,
    },
    /// Replaces the body of a live record. Fails as *taken* when a unique value is in use.
    Update {
        /// The revision that was read.
        revision: i64,
        /// Body as JSON text, an object.
        body: Bytes,
    },
    /// Hides a live record and frees its unique values.
    Remove {
        /// The revision that was read.
        revision: i64,
    },
    /// Erases a record, hidden or not. Nothing of it stays.
    Purge {
        /// The revision that was read.
        revision: i64,
    },
    /// Demands that a live record still has the revision that was read, and leaves it unchanged.
    Check {
        /// The revision that was read.
        revision: i64,
    },
}

impl Step {
    /// Returns the body of the step, if it has one.
    pub fn body(&self) -> Option<&Bytes> {
        match self {
            Step::Insert { body, .. } | Step::Restore { body, .. } | Step::Update { body, .. } => {
                Some(body)
            }
            Step::Remove { .. } | Step::Purge { .. } | Step::Check { .. } => None,
        }
    }
}

/// A set of steps that [`Store::commit`](crate::Store::commit) applies in full or not at all.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The time written into every record the batch touches.
    pub now: Time,
    /// The steps, in the order they were added.
    pub writes: Vec<Write>,
    /// True if other processes on the same database are notified of the commit.
    pub announced: bool,
    /// The first body that could not be written as JSON; a batch that has one is refused.
    pub fault: Option<String>,
}

impl Batch {
    /// Creates an empty batch with the time `now`.
    pub fn at(now: Time) -> Batch {
        Batch {
            now,
            writes: Vec::new(),
            announced: false,
            fault: None,
        }
    }

    /// Notifies other processes on the same database as soon as the batch is committed, so that
    /// they refresh what they keep in memory. An announcement costs all writers of the database
    /// something. It is therefore not for changes that happen with every request.
    #[must_use]
    pub fn announce(self) -> Batch {
        Batch {
            announced: true,
            ..self
        }
    }

    /// Returns true if the batch is empty.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.fault.is_none()
    }

    /// Returns the steps in order of collection and id, each with the declared fields of its body.
    /// The order makes sure that the reported failure does not depend on the backend. Fails if the
    /// batch can never be applied.
    pub(crate) fn checked(self) -> Result<Vec<(Write, Values)>, CommitError> {
        let pairs = self
            .writes
            .into_iter()
            .map(|mut write| write.take_values().map(|values| (write, values)));
        let mut writes = pairs.collect::<Result<Vec<_>, _>>()?;
        writes.sort_by(|(a, _), (b, _)| a.target().cmp(&b.target()));
        if let Some(pair) = writes
            .windows(2)
            .find(|pair| pair[0].0.target() == pair[1].0.target())
        {
            let (collection, id) = pair[0].0.target();
            return Err(CommitError::Invalid(format!(
                "it changes {collection} {id} twice"
            )));
        }
        Ok(writes)
    }

    /// Creates a record with the batch's time as its creation time.
    pub fn insert<T: Document>(self, project: &str, id: &str, body: &T) -> Batch {
        let created_at = self.now;
        self.insert_created(created_at, project, id, body)
    }

    /// Creates a record with its own creation time, such as a late log line or a record from
    /// another store.
    pub fn insert_created<T: Document>(
        mut self,
        created_at: Time,
        project: &str,
        id: &str,
        body: &T,
    ) -> Batch {
        let body = self.encode::<T>(id, body, 0);
        let step = Step::Insert { created_at, body };
        self.push(T::COLLECTION, project.to_owned(), id.to_owned(), step)
    }

    /// Creates a record as [`insert_created`](Self::insert_created) does, from a value that borrows
    /// the content of the record and is written as the same JSON. `capacity` is the expected size
    /// of the body, in bytes.
    ///
    /// `lists` are the values of all declared fields in the order of their declaration, so that
    /// they are not read from the body. Each field is a list of texts, sorted and without
    /// duplicates.
    pub fn insert_listed<T: Document>(
        mut self,
        created_at: Time,
        project: &str,
        id: &str,
        body: &impl Serialize,
        capacity: usize,
        lists: &[&[&str]],
    ) -> Batch {
        let body = self.encode::<T>(id, body, capacity);
        self.writes.push(Write {
            collection: T::COLLECTION,
            project: project.to_owned(),
            id: id.to_owned(),
            step: Step::Insert { created_at, body },
            values: Some(Values::from_lists(lists)),
        });
        self
    }

    /// Replaces the body of a record by the one that `record` carries, if the stored revision is
    /// the one that was read.
    pub fn update<T: Document>(mut self, record: &Record<T>) -> Batch {
        let body = self.encode::<T>(&record.id, &record.body, 0);
        let revision = record.revision;
        self.change(T::COLLECTION, record, Step::Update { revision, body })
    }

    /// Hides a record, if the stored revision is the one that was read.
    pub fn remove<T: Document>(self, record: &Record<T>) -> Batch {
        let revision = record.revision;
        self.change(T::COLLECTION, record, Step::Remove { revision })
    }

    /// Erases a record for good, hidden or not, if the stored revision is the one that was read.
    pub fn purge<T: Document>(self, record: &Record<T>) -> Batch {
        let revision = record.revision;
        self.change(T::COLLECTION, record, Step::Purge { revision })
    }

    /// Erases a record whose body was not decoded, hidden or not, if the stored revision is that of
    /// `row`.
    pub fn purge_row(self, collection: &'static Collection, row: &Row) -> Batch {
        let revision = row.revision;
        self.change(collection, row, Step::Purge { revision })
    }

    /// Creates a record as it was read from another store, with its revision and its times.
    pub fn restore(self, collection: &'static Collection, row: Row) -> Batch {
        let step = Step::Restore {
            revision: row.revision,
            created_at: row.created_at,
            updated_at: row.updated_at,
            deleted_at: row.deleted_at,
            body: row.body,
        };
        self.push(collection, row.project, row.id, step)
    }

    /// Demands that a record that the batch does not change still has the revision that was read.
    pub fn check<T: Document>(self, record: &Record<T>) -> Batch {
        let revision = record.revision;
        self.change(T::COLLECTION, record, Step::Check { revision })
    }

    /// Adds a step that concerns an existing record.
    fn change<T>(self, collection: &'static Collection, record: &Record<T>, step: Step) -> Batch {
        self.push(collection, record.project.clone(), record.id.clone(), step)
    }

    fn push(
        mut self,
        collection: &'static Collection,
        project: String,
        id: String,
        step: Step,
    ) -> Batch {
        self.writes.push(Write {
            collection,
            project,
            id,
            step,
            values: None,
        });
        self
    }

    fn encode<T: Document>(&mut self, id: &str, body: &impl Serialize, capacity: usize) -> Bytes {
        let mut json = Vec::with_capacity(capacity.max(MIN_BODY_CAPACITY));
        if let Err(error) = serde_json::to_writer(&mut json, body) {
            self.fault.get_or_insert_with(|| {
                format!("cannot write {} {id} as json: {error}", T::COLLECTION.name)
            });
            return Bytes::new();
        }
        json.into()
    }
}
