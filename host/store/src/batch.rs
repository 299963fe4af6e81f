//! A batch: preconditions and effects as data, which hold wholly or not at all.
//!
//! A batch carries its own time, so that whoever builds it owns the clock. Nothing is awaited inside one. All
//! preconditions are checked against the state before the batch; hence a unique key cannot pass from one record to
//! another inside a batch, and a batch names each record at most once.

use crate::values::{Scalar, Values};
use crate::{Collection, CommitError, Document, Record, Row, Time};
use bytes::Bytes;

/// How long an id, a project, a text of a declared field and a body may be, in bytes, and how many elements a list may have.
const ID_LIMIT: usize = 256;
pub(crate) const TEXT_LIMIT: usize = 1024;
const BODY_LIMIT: usize = 32 * 1024 * 1024;
const LIST_LIMIT: usize = 256;

/// One step of a batch, about one record.
#[derive(Clone, Debug)]
pub struct Write {
    /// The collection of the record.
    pub at: &'static Collection,
    /// The project that owns the record; no step moves a record to another.
    pub project: String,
    /// The record's id.
    pub id: String,
    /// What has to hold, and what happens then.
    pub step: Step,
}

impl Write {
    /// The collection's name and the id: what no other step of the batch may have.
    fn target(&self) -> (&'static str, &str) {
        (self.at.name, &self.id)
    }

    /// Checks form and limits, and reads the declared fields of the body; none where the step brings no body.
    fn values(&self) -> Result<Values, CommitError> {
        let refuse = |why: String| CommitError::Invalid(format!("{} {}: {why}", self.at.name, self.id));
        let Some(body) = self.step.body() else { return Ok(Values::default()) };
        if self.id.is_empty() || self.id.len() > ID_LIMIT || self.project.len() > ID_LIMIT {
            return Err(refuse(format!("an id has 1 to {ID_LIMIT} bytes, a project at most as many")));
        }
        if body.len() > BODY_LIMIT {
            return Err(refuse(format!("a body has at most {BODY_LIMIT} bytes")));
        }
        let values = Values::of(self.at, body).map_err(|error| refuse(format!("the body is no object: {error}")))?;
        for (place, field) in self.at.fields.iter().enumerate() {
            let found = values.at(place);
            if found.len() > LIST_LIMIT {
                return Err(refuse(format!("{} has more than {LIST_LIMIT} elements", field.name)));
            }
            if found.iter().any(|value| matches!(value, Scalar::Text(text) if text.len() > TEXT_LIMIT)) {
                return Err(refuse(format!("{} has more than {TEXT_LIMIT} bytes", field.name)));
            }
        }
        Ok(values)
    }
}

/// What a step demands and does. A revision that is not the stored one makes the whole batch stale.
#[derive(Clone, Debug)]
pub enum Step {
    /// Makes a record; fails as *taken* when the id or a unique value is in use.
    Insert {
        /// When the record came to be.
        created_at: Time,
        /// JSON text, an object.
        body: Bytes,
    },
    /// Makes a record as another store held it; fails as *taken* when the id, or a unique value of a live one, is in use.
    Restore {
        /// Its revision there.
        revision: i64,
        /// When the record came to be.
        created_at: Time,
        /// When it was last changed.
        updated_at: Time,
        /// When it was removed, if it was.
        deleted_at: Option<Time>,
        /// JSON text, an object.
        body: Bytes,
    },
    /// Replaces the body of a live record; fails as *taken* when a unique value is in use.
    Update {
        /// The revision that was read.
        revision: i64,
        /// JSON text, an object.
        body: Bytes,
    },
    /// Hides a live record and frees its unique values.
    Remove {
        /// The revision that was read.
        revision: i64,
    },
    /// Erases a record, hidden or not; nothing of it stays.
    Purge {
        /// The revision that was read.
        revision: i64,
    },
    /// Demands that a live record is as it was read, and leaves it so.
    Check {
        /// The revision that was read.
        revision: i64,
    },
}

impl Step {
    /// The body it brings, if it brings one.
    pub fn body(&self) -> Option<&Bytes> {
        match self {
            Step::Insert { body, .. } | Step::Restore { body, .. } | Step::Update { body, .. } => Some(body),
            Step::Remove { .. } | Step::Purge { .. } | Step::Check { .. } => None,
        }
    }
}

/// A set of steps that [`Store::commit`](crate::Store::commit) applies wholly or not at all.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The time written into every record the batch touches.
    pub now: Time,
    /// The steps, in the order they were added.
    pub writes: Vec<Write>,
    /// Whether other processes on the same database are told at once that something has changed.
    pub announced: bool,
    /// The first body that could not be written as JSON; a batch that has one is refused.
    pub fault: Option<String>,
}

impl Batch {
    /// Starts an empty batch that happens at `now`.
    pub fn at(now: Time) -> Batch {
        Batch { now, writes: Vec::new(), announced: false, fault: None }
    }

    /// Tells other processes on the same database as soon as the batch is committed: for what they keep in memory. It costs
    /// all writers of the database something, so it is not for what happens with every request.
    #[must_use]
    pub fn announce(self) -> Batch {
        Batch { announced: true, ..self }
    }

    /// Whether the batch has no steps.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.fault.is_none()
    }

    /// The steps in order of collection and id, so that which failure of several is reported does not depend on the
    /// backend, each with the declared fields of its body. Fails where the batch can never be applied.
    pub(crate) fn checked(self) -> Result<Vec<(Write, Values)>, CommitError> {
        let pairs = self.writes.into_iter().map(|write| write.values().map(|values| (write, values)));
        let mut writes = pairs.collect::<Result<Vec<_>, _>>()?;
        writes.sort_by(|(a, _), (b, _)| a.target().cmp(&b.target()));
        if let Some(pair) = writes.windows(2).find(|pair| pair[0].0.target() == pair[1].0.target()) {
            let (at, id) = pair[0].0.target();
            return Err(CommitError::Invalid(format!("it names {at} {id} twice")));
        }
        Ok(writes)
    }

    /// Makes a record created at the batch's time.
    pub fn insert<T: Document>(self, project: &str, id: &str, body: &T) -> Batch {
        let created_at = self.now;
        self.insert_created(created_at, project, id, body)
    }

    /// Makes a record with its own time of creation: a log line written after the fact, a record that is moved in.
    pub fn insert_created<T: Document>(mut self, created_at: Time, project: &str, id: &str, body: &T) -> Batch {
        let body = self.encode::<T>(id, body);
        self.push::<T>(project, id, Step::Insert { created_at, body })
    }

    /// Replaces the body of a record by the one it now carries, if it still has the revision that was read.
    pub fn update<T: Document>(mut self, record: &Record<T>) -> Batch {
        let body = self.encode(&record.id, &record.body);
        self.push::<T>(&record.project, &record.id, Step::Update { revision: record.revision, body })
    }

    /// Hides a record, if it still has the revision that was read.
    pub fn remove<T: Document>(self, record: &Record<T>) -> Batch {
        self.push::<T>(&record.project, &record.id, Step::Remove { revision: record.revision })
    }

    /// Erases a record for good, hidden or not, if it still has the revision that was read.
    pub fn purge<T: Document>(self, record: &Record<T>) -> Batch {
        self.push::<T>(&record.project, &record.id, Step::Purge { revision: record.revision })
    }

    /// Erases a record whose body was not read, hidden or not, if it still has the revision that it was found with.
    pub fn purge_row(mut self, at: &'static Collection, row: &Row) -> Batch {
        let step = Step::Purge { revision: row.revision };
        self.writes.push(Write { at, project: row.project.clone(), id: row.id.clone(), step });
        self
    }

    /// Makes a record as it was read out of another store, with its revision and its times.
    pub fn restore(mut self, at: &'static Collection, row: Row) -> Batch {
        let Row { id, project, revision, created_at, updated_at, deleted_at, body } = row;
        let step = Step::Restore { revision, created_at, updated_at, deleted_at, body };
        self.writes.push(Write { at, project, id, step });
        self
    }

    /// Demands that a record that was read, and is not changed, still has its revision.
    pub fn check<T: Document>(self, record: &Record<T>) -> Batch {
        self.push::<T>(&record.project, &record.id, Step::Check { revision: record.revision })
    }

    fn push<T: Document>(mut self, project: &str, id: &str, step: Step) -> Batch {
        self.writes.push(Write { at: T::COLLECTION, project: project.to_owned(), id: id.to_owned(), step });
        self
    }

    fn encode<T: Document>(&mut self, id: &str, body: &T) -> Bytes {
        serde_json::to_vec(body).map(Bytes::from).unwrap_or_else(|error| {
            let fault = || format!("cannot write {} {id} as json: {error}", T::COLLECTION.name);
            self.fault.get_or_insert_with(fault);
            Bytes::new()
        })
    }
}
