//! Remembers: documents with declared fields, changed in batches, and blobs beside them.
//!
//! The seam is three methods wide ([`Backend`]): get one record, find a page of records, commit a batch. A batch that
//! was acknowledged is on the disk; a batch is there wholly or not at all; what is read is what was written, or an
//! error says that it is damaged. The typed front is [`Store`].

#![warn(missing_docs)]

mod batch;
mod blobs;
mod document;
mod error;
mod postgres;
mod query;
mod sled;
mod space;
mod turns;
mod values;

pub use batch::{Batch, Step, Write};
pub use blobs::{Blobs, Bucket, BucketError, BucketSettings, Folder, Signed, SignedUrl, Terms};
pub use document::{Collection, Document, Field, Kind, Record, Row, Time};
pub use error::{CommitError, EditError, Error, OpenError};
pub use query::{Cond, Mark, Order, Page, Query, Test, Window};
pub use values::Scalar;

/// The thread a store is opened on. Reading damaged files may panic there; the panic is caught and told as
/// [`OpenError::Damaged`], so a program that reports panics need not report these.
pub const OPENING_THREAD: &str = "store-open";

use async_trait::async_trait;
use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedRwLockWriteGuard, RwLock};
use turns::Turns;

/// What a database has to do to hold the documents.
#[async_trait]
pub trait Backend: Send + Sync {
    /// Reads a record by id, removed ones included.
    async fn get(&self, at: &'static Collection, id: &str) -> Result<Option<Row>, Error>;
    /// Answers a query as [`Query::run`] over all records would, rows and total from one moment.
    async fn find(&self, at: &'static Collection, query: &Query) -> Result<Page, Error>;
    /// Reads records in order of id, removed ones included: at most `limit` of those whose id comes after `after`, byte by byte.
    async fn scan(&self, at: &'static Collection, after: &str, limit: u64) -> Result<Vec<Row>, Error>;
    /// Applies a batch wholly or not at all. When it returns, the batch is on the disk.
    async fn commit(&self, batch: Batch) -> Result<(), CommitError>;
    /// Waits until another process may have changed something: one has announced it ([`Batch::announce`]), or a second has
    /// passed. Where there are no other processes, waits for ever.
    async fn changed(&self) -> Change {
        std::future::pending().await
    }
    /// What time it is by the clock that all processes share; none where there is only this one.
    async fn now(&self) -> Result<Option<Time>, Error> {
        Ok(None)
    }
    /// Says whether writes are accepted.
    fn health(&self) -> Health;
    /// Reads everything there is and reports what is broken.
    async fn verify(&self) -> Result<Report, Error>;
    /// Makes everything durable and lets go of the files; later calls answer *unavailable*.
    async fn close(&self);
}

/// Why others may have changed something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Somebody has said so, or may have while nobody could listen.
    Announced,
    /// It is time to look.
    Perhaps,
}

/// Whether a store accepts writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Reads and writes are served.
    Ready,
    /// The disk is full: reads are served, writes are refused until there is space.
    Full,
    /// The database does not answer; it is asked again by every call.
    Away(String),
    /// Writing has failed in a way that cannot be trusted again; the process has to be restarted.
    Failed(String),
    /// The store was closed.
    Closed,
}

/// The tables that a PostgreSQL database has for these collections, as a script for people to read.
#[must_use]
pub fn schema(collections: &[&'static Collection]) -> String {
    postgres::render(collections)
}

/// What a walk through everything has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// How many records were read, removed ones included.
    pub records: u64,
    /// How many blobs were read.
    pub blobs: u64,
    /// One line for each thing that is broken; none when all is well.
    pub damage: Vec<String>,
}

/// One page of a list and how many records there are in all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<T> {
    /// The records of the page, in order.
    pub records: Vec<Record<T>>,
    /// How many records meet the conditions, on every page together.
    pub total: u64,
}

/// One page of a list that is read from page to page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed<I> {
    /// The items of the page, in order.
    pub items: Vec<I>,
    /// How many items there are, on every page together.
    pub total: u64,
    /// The mark after which the next page continues; none where nothing follows.
    pub next: Option<Mark>,
}

impl<I> Listed<I> {
    /// Makes every item another.
    pub fn try_map<U, E>(self, change: impl FnMut(I) -> Result<U, E>) -> Result<Listed<U>, E> {
        let Listed { items, total, next } = self;
        Ok(Listed { items: items.into_iter().map(change).collect::<Result<_, _>>()?, total, next })
    }
}

/// Time for which a change is tried again while other writers are faster, in seconds. Less than requests have by default.
pub const CHANGE_PATIENCE_S: u64 = 10;

/// The typed front of a backend and its blobs. Clones share both.
#[derive(Clone)]
pub struct Store {
    backend: Arc<dyn Backend>,
    blobs: Arc<dyn Blobs>,
    /// Held to read by each commit, and to write by whoever needs a moment without any.
    commits: Arc<RwLock<()>>,
    turns: Arc<Turns>,
}

/// As long as this is held, nothing that goes through the store it came from or its clones is committed.
pub struct Pause {
    _commits: OwnedRwLockWriteGuard<()>,
}

impl Store {
    /// Opens the embedded store in a folder, making it where it is missing.
    ///
    /// Reads everything once and compares it with what was acknowledged; a store that holds less is refused as
    /// [`OpenError::Damaged`]. Blocks for as long as that takes; an open may be waited for seconds with a large store.
    pub fn open(at: &Path, collections: &[&'static Collection]) -> Result<Store, OpenError> {
        let backend = Arc::new(sled::Sled::open(at, collections)?);
        let blobs = at.join("blobs");
        let folder = Folder::open(&blobs).map_err(|error| OpenError::Io { at: blobs, error })?;
        Ok(Store::new(backend, Arc::new(folder)))
    }

    /// Opens the embedded store in a folder, as [`Store::open`] does, with its blobs elsewhere.
    pub fn open_beside(
        at: &Path,
        collections: &[&'static Collection],
        blobs: Arc<dyn Blobs>,
    ) -> Result<Store, OpenError> {
        Ok(Store::new(Arc::new(sled::Sled::open(at, collections)?), blobs))
    }

    /// Opens a store in a PostgreSQL database, adding the tables, columns and indexes that are missing.
    ///
    /// `url` is `postgres://user:password@host/database`, with `sslmode` and the other parameters of libpq that concern the
    /// connection; no message shows the password. Any number of processes may open the same database.
    pub async fn connect(
        url: &str,
        blobs: Arc<dyn Blobs>,
        collections: &[&'static Collection],
    ) -> Result<Store, OpenError> {
        Ok(Store::new(Arc::new(postgres::Postgres::open(url, collections).await?), blobs))
    }

    /// Puts the typed front on any backend.
    pub fn new(backend: Arc<dyn Backend>, blobs: Arc<dyn Blobs>) -> Store {
        Store { backend, blobs, commits: Arc::default(), turns: Arc::default() }
    }

    /// Reads a live record of a project. Another project's record is as absent as one that never was.
    pub async fn get<T: Document>(&self, project: &str, id: &str) -> Result<Option<Record<T>>, Error> {
        Ok(self.lookup(id).await?.filter(|record| record.project == project))
    }

    /// Reads a live record by id alone: the id is the hash of a secret, or names a project.
    pub async fn lookup<T: Document>(&self, id: &str) -> Result<Option<Record<T>>, Error> {
        let row = self.backend.get(T::COLLECTION, id).await?;
        row.filter(Record::is_live).map(decode).transpose()
    }

    /// Answers with one page of the records that meet a query, and their total.
    pub async fn find<T: Document>(&self, query: &Query) -> Result<Found<T>, Error> {
        let Page { rows, total } = self.backend.find(T::COLLECTION, query).await?;
        Ok(Found { records: rows.into_iter().map(decode).collect::<Result<_, _>>()?, total })
    }

    /// Answers with one page of a list, and with the mark after which the next one continues.
    ///
    /// Records that come or go between two pages shift nothing: the next page begins behind the last record of this one.
    pub async fn list<T: Document>(&self, query: &Query) -> Result<Listed<Record<T>>, Error> {
        let wanted = Query { limit: query.limit.saturating_add(1), ..query.clone() };
        let Page { mut rows, total } = self.backend.find(T::COLLECTION, &wanted).await?;
        let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
        let follows = rows.len() > limit;
        rows.truncate(limit);
        let last = rows.last().filter(|_| follows);
        let next = last.map(|row| query.mark(T::COLLECTION, row)).transpose()?;
        Ok(Listed { items: rows.into_iter().map(decode).collect::<Result<_, _>>()?, total, next })
    }

    /// Answers with rows of any collection that meet a query, their bodies unread.
    pub async fn rows(&self, at: &'static Collection, query: &Query) -> Result<Page, Error> {
        self.backend.find(at, query).await
    }

    /// Applies a batch wholly or not at all, and returns when it is on the disk.
    pub async fn commit(&self, batch: Batch) -> Result<(), CommitError> {
        match &batch.fault {
            Some(fault) => Err(CommitError::Invalid(fault.clone())),
            None if batch.is_empty() => Ok(()),
            None => {
                let _committing = self.commits.read().await;
                self.backend.commit(batch).await
            }
        }
    }

    /// Waits for the commits under way and holds back later ones of this process, so that what is then read is of one moment.
    pub async fn pause(&self) -> Pause {
        Pause { _commits: self.commits.clone().write_owned().await }
    }

    /// Reads records of any collection in order of id, removed ones included, from after an id: how a store is read out.
    pub async fn scan(&self, at: &'static Collection, after: &str, limit: u64) -> Result<Vec<Row>, Error> {
        self.backend.scan(at, after, limit).await
    }

    /// Runs `attempt`, which reads records and answers with a batch, and commits the batch; again when another writer was faster.
    ///
    /// Between attempts, writers of this process that change the record `id` take turns, and pauses of random length keep
    /// processes apart. After [`CHANGE_PATIENCE_S`] the refusal of the last batch is the answer. An `attempt` must not change the same
    /// record by itself. An id that was made meanwhile counts as a faster writer, so that a batch may insert what it did not find.
    pub async fn change<R, E, F>(
        &self,
        at: &'static Collection,
        id: &str,
        attempt: impl Fn() -> F,
    ) -> Result<R, EditError<E>>
    where
        F: Future<Output = Result<(Batch, R), E>>,
    {
        let mut attempts = self.turns.attempts(at, id, Duration::from_secs(CHANGE_PATIENCE_S));
        loop {
            attempts.turn().await.map_err(EditError::Commit)?;
            let (batch, answer) = attempt().await.map_err(EditError::Change)?;
            match self.commit(batch).await {
                Ok(()) => return Ok(answer),
                Err(error) => attempts.again(error).await.map_err(EditError::Commit)?,
            }
        }
    }

    /// Reads a record, changes it and commits it; again when another writer was faster, as [`Store::change`] does.
    ///
    /// Answers with what the last `change` answered, or nothing where there is no such live record. Where the change
    /// leaves the body as it was, the record is still written and its revision still grows.
    pub async fn edit<T: Document, R, E>(
        &self,
        project: &str,
        id: &str,
        now: Time,
        mut change: impl FnMut(&mut T) -> Result<R, E>,
    ) -> Result<Option<R>, EditError<E>> {
        let mut attempts = self.turns.attempts(T::COLLECTION, id, Duration::from_secs(CHANGE_PATIENCE_S));
        loop {
            attempts.turn().await.map_err(EditError::Commit)?;
            let Some(mut record) = self.get::<T>(project, id).await.map_err(EditError::Read)? else {
                return Ok(None);
            };
            let answer = change(&mut record.body).map_err(EditError::Change)?;
            match self.commit(Batch::at(now).update(&record)).await {
                Ok(()) => return Ok(Some(answer)),
                Err(error) => attempts.again(error).await.map_err(EditError::Commit)?,
            }
        }
    }

    /// Waits until another process may have changed something; for ever where there is none.
    pub async fn changed(&self) -> Change {
        self.backend.changed().await
    }

    /// What time it is by the clock that all processes on this store share; none where there is only this one.
    pub async fn now(&self) -> Result<Option<Time>, Error> {
        self.backend.now().await
    }

    /// The blobs beside the documents.
    pub fn blobs(&self) -> &dyn Blobs {
        &*self.blobs
    }

    /// Says whether writes are accepted.
    pub fn health(&self) -> Health {
        self.backend.health()
    }

    /// Makes everything durable and lets go of the files. Clones answer *unavailable* from then on.
    pub async fn close(self) {
        self.backend.close().await;
    }

    /// Reads every record, index entry and blob, and reports what is broken. Writes wait meanwhile.
    pub async fn verify(&self) -> Report {
        let mut report = self.backend.verify().await.unwrap_or_else(|error| broken(&error));
        match self.blobs.verify().await {
            Ok((count, damaged)) => {
                report.blobs = count;
                report.damage.extend(damaged.into_iter().map(|key| format!("blob {key} is damaged")));
            }
            Err(error) => report.damage.push(error.to_string()),
        }
        report
    }
}

fn decode<T: Document>(row: Row) -> Result<Record<T>, Error> {
    match serde_json::from_slice(&row.body) {
        Ok(body) => Ok(row.map(|_| body)),
        Err(error) => Err(Error::unreadable(T::COLLECTION, &row.id, &error)),
    }
}

fn broken(error: &dyn Display) -> Report {
    Report { damage: vec![error.to_string()], ..Report::default() }
}
