//! Storage: documents with declared fields, changed in batches, and blobs next to them.
//!
//! The interface to a database is [`Backend`]. Its core: get records by id, find a page of records,
//! count records by value, commit a batch. A batch that was acknowledged is on the disk. A batch is stored
//! in full or not at all. A read returns what was written, or an error that says that it is
//! damaged. The typed interface is [`Store`].

#![warn(missing_docs)]

mod batch;
mod blobs;
mod commit_signal;
mod counts;
mod document;
mod error;
mod postgres;
mod query;
mod sled;
mod space;
mod values;
mod writer_queue;

pub use batch::{Batch, Step, Write};
pub use blobs::{
    Blobs, Bucket, BucketError, BucketSettings, Folder, SignedOperation, SignedUrl, SignedUrlTerms,
};
pub use commit_signal::CommitSignal;
pub use counts::{BUCKETS_US, CommitCounts, DurationCounts, Durations};
pub use document::{Collection, Document, Erasure, Field, Kind, Record, Row, Time};
pub use error::{CommitError, EditError, Error, OpenError};
pub use query::{Condition, Cursor, Order, Page, Predicate, Query, Window};
pub use space::DiskSpace;
pub use values::Scalar;

/// Name of the thread that opens a store. Reading damaged files may panic there. The panic is
/// caught and returned as [`OpenError::Damaged`], so a program that reports panics need not report
/// these.
pub const OPENING_THREAD: &str = "store-open";

/// Maximum bytes of a message to other processes. PostgreSQL permits 8,000.
pub const MAX_MESSAGE_BYTES: usize = 4_000;

use async_trait::async_trait;
use commit_signal::CommitSignals;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedRwLockWriteGuard, RwLock};
use writer_queue::WriterQueues;

/// Operations that a database has to provide to hold the documents.
#[async_trait]
pub trait Backend: Send + Sync {
    /// Reads a record by id, removed ones included.
    async fn get(&self, collection: &'static Collection, id: &str) -> Result<Option<Row>, Error>;
    /// Reads the records with these ids, removed ones included, in any order. An id without a record
    /// adds nothing. All records come from one point in time.
    async fn get_many(
        &self,
        collection: &'static Collection,
        ids: &[&str],
    ) -> Result<Vec<Row>, Error> {
        let query = Query::all_projects().any_of("id", ids.iter().copied());
        Ok(self.find(collection, &query.with_deleted()).await?.rows)
    }
    /// Returns the same page as [`Query::run`] over all records. Rows and total come from one point
    /// in time.
    async fn find(&self, collection: &'static Collection, query: &Query) -> Result<Page, Error>;
    /// Counts the records that meet the conditions of a query, for each of these values of a string
    /// field. A value of no record is absent or zero.
    async fn count_by(
        &self,
        collection: &'static Collection,
        query: &Query,
        field: &str,
        values: &[&str],
    ) -> Result<HashMap<String, u64>, Error> {
        let mut counts = HashMap::with_capacity(values.len());
        for value in values {
            let query = Query {
                counted: true,
                ..query.clone().is(field, *value).page(0, 0)
            };
            let total = self.find(collection, &query).await?.total;
            counts.insert((*value).to_owned(), total);
        }
        Ok(counts)
    }
    /// Returns at most `limit` records whose id comes after `after`, in byte order of the ids,
    /// removed ones included.
    async fn scan(
        &self,
        collection: &'static Collection,
        after: &str,
        limit: u64,
    ) -> Result<Vec<Row>, Error>;
    /// Applies a batch in full or not at all. When it returns, the batch is on the disk.
    async fn commit(&self, batch: Batch) -> Result<(), CommitError>;
    /// Waits until another process may have changed something: a process announced a change
    /// ([`Batch::announce`]), or a second has passed. Waits forever where no other processes exist.
    async fn changed(&self) -> Change {
        std::future::pending().await
    }
    /// Sends a message of at most [`MAX_MESSAGE_BYTES`] to all processes, this one included. It may be
    /// lost. Does nothing where no other processes exist.
    async fn send(&self, _message: &str) -> Result<(), Error> {
        Ok(())
    }
    /// Waits for a message, while another task waits for [`changed`](Self::changed). Waits forever
    /// where no other processes exist.
    async fn message(&self) -> String {
        std::future::pending().await
    }
    /// Returns the time of the clock that all processes share, or `None` where this is the only
    /// process. It may be some milliseconds late, never early.
    async fn now(&self) -> Result<Option<Time>, Error> {
        Ok(None)
    }
    /// Returns the state of the store: ready for writes, or the reason why not.
    fn health(&self) -> Health;
    /// Reads all data and reports what is broken.
    async fn verify(&self) -> Result<Report, Error>;
    /// Makes everything durable and closes the files. Later calls fail as *unavailable*.
    async fn close(&self);
}

/// Reason to expect changes by other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A process announced a change, or may have while no connection listened for announcements.
    Announced,
    /// The poll interval has passed.
    Possible,
}

/// State of a store with regard to reads and writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Reads and writes are served.
    Ready,
    /// The disk is full: reads are served, writes are refused until space is available.
    Full,
    /// The database does not answer. Every call tries it again.
    Unreachable(String),
    /// Writing has failed in a way that cannot be trusted again. The process has to be restarted.
    Failed(String),
    /// The store was closed.
    Closed,
}

/// Renders the tables of a PostgreSQL database for these collections as a readable script.
#[must_use]
pub fn schema(collections: &[&'static Collection]) -> String {
    postgres::render(collections)
}

/// State of a PostgreSQL database, read without changing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabaseState {
    /// True if all tables are missing in the database.
    pub is_new: bool,
    /// Number of tables, indexes and groups of columns that opening the store would add.
    pub missing: usize,
    /// Time of the database server's clock.
    pub now: Time,
}

/// Result of a check of all stored data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Number of records that were read, removed ones included.
    pub records: u64,
    /// Number of blobs that were read.
    pub blobs: u64,
    /// One line for each broken item. Empty when nothing is broken.
    pub damage: Vec<String>,
}

/// One page of a list and the total number of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordPage<T> {
    /// The records of the page, in order.
    pub records: Vec<Record<T>>,
    /// Number of records that meet the conditions, on all pages together.
    pub total: u64,
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed<I> {
    /// The items of the page, in order.
    pub items: Vec<I>,
    /// Number of items on all pages together.
    pub total: u64,
    /// Cursor after which the next page starts, or `None` on the last page.
    pub next: Option<Cursor>,
}

impl<I> Listed<I> {
    /// Converts every item.
    pub fn try_map<U, E>(self, change: impl FnMut(I) -> Result<U, E>) -> Result<Listed<U>, E> {
        let Listed { items, total, next } = self;
        Ok(Listed {
            items: items.into_iter().map(change).collect::<Result<_, _>>()?,
            total,
            next,
        })
    }
}

/// Maximum time for which a change is retried while other writers commit first, in seconds. Less
/// than the default timeout of requests.
pub const CHANGE_TIMEOUT_S: u64 = 10;

/// Bytes of the records on one page of a list. Past them, further records are on the next page.
pub const MAX_PAGE_BYTES: usize = 4 << 20;
/// Maximum number of records of a page that are read before their size is known.
const FIRST_PART_ROWS: usize = 32;

/// Maximum number of broken items that a report names. It only counts the rest.
const MAX_REPORTED_DAMAGE: usize = 100;

/// Maximum number of ids or values in one call of a backend. More are read in several calls.
pub const MAX_VALUES_PER_READ: usize = 1_000;

/// The typed interface to a backend and its blobs. Clones share both. Each read is logged with its
/// collection at the level `trace`.
#[derive(Clone)]
pub struct Store {
    backend: Arc<dyn Backend>,
    blobs: Arc<dyn Blobs>,
    /// Locked for reading by each commit, and for writing by a [`Pause`].
    commits: Arc<RwLock<()>>,
    /// The sets that [`Store::keep_blobs`] has returned.
    kept_blobs: Arc<Mutex<Vec<Weak<HashSet<String>>>>>,
    writer_queues: Arc<WriterQueues>,
    commit_signals: Arc<CommitSignals>,
    commit_counts: Arc<CommitCounts>,
}

/// A guard that holds back all commits through the store it came from and through its clones.
pub struct Pause {
    _commits: OwnedRwLockWriteGuard<()>,
}

impl Store {
    /// Opens the embedded store in a folder, creating it if it is missing.
    ///
    /// Reads all data once and compares it with what was acknowledged. A store that holds less is
    /// refused as [`OpenError::Damaged`]. Blocks for as long as that takes, which is seconds with a
    /// large store.
    pub fn open(at: &Path, collections: &[&'static Collection]) -> Result<Store, OpenError> {
        let backend = Arc::new(sled::Sled::open(at, collections)?);
        let blobs = at.join("blobs");
        let folder = Folder::open(&blobs).map_err(|error| OpenError::Io { at: blobs, error })?;
        Ok(Store::new(backend, Arc::new(folder)))
    }

    /// Opens the embedded store in a folder as [`Store::open`] does, with separate storage for
    /// blobs.
    pub fn open_beside(
        at: &Path,
        collections: &[&'static Collection],
        blobs: Arc<dyn Blobs>,
    ) -> Result<Store, OpenError> {
        Ok(Store::new(
            Arc::new(sled::Sled::open(at, collections)?),
            blobs,
        ))
    }

    /// Opens a store in a PostgreSQL database, adding the tables, columns and indexes that are
    /// missing.
    /// `url` is `postgres://user:password@host/database`, with `sslmode` and the other parameters
    /// of libpq that concern the connection. No message shows the password. Any number of processes
    /// may open the same database.
    pub async fn connect(
        url: &str,
        blobs: Arc<dyn Blobs>,
        collections: &[&'static Collection],
    ) -> Result<Store, OpenError> {
        Ok(Store::new(
            Arc::new(postgres::Postgres::open(url, collections).await?),
            blobs,
        ))
    }

    /// Checks the files of an embedded store without opening it, so that nothing is changed and
    /// another process may have it open. Returns true if the folder has a store.
    ///
    /// The records are not read.
    pub fn inspect(at: &Path) -> Result<bool, OpenError> {
        sled::inspect(at)
    }

    /// Checks that a PostgreSQL database can hold the store, without changing it. `url` is as in
    /// [`Store::connect`].
    pub async fn inspect_database(
        url: &str,
        collections: &[&'static Collection],
    ) -> Result<DatabaseState, OpenError> {
        postgres::inspect(url, collections).await
    }

    /// Creates the typed interface to a backend and its blobs.
    pub fn new(backend: Arc<dyn Backend>, blobs: Arc<dyn Blobs>) -> Store {
        Store {
            backend,
            blobs,
            commits: Arc::default(),
            kept_blobs: Arc::default(),
            writer_queues: Arc::default(),
            commit_signals: Arc::default(),
            commit_counts: Arc::default(),
        }
    }

    /// Reads a live record of a project. A record of another project is treated as one that does
    /// not exist.
    pub async fn get<T: Document>(
        &self,
        project: &str,
        id: &str,
    ) -> Result<Option<Record<T>>, Error> {
        Ok(self
            .lookup(id)
            .await?
            .filter(|record| record.project == project))
    }

    /// Reads a live record by id alone. For ids that are the hash of a secret or that name a
    /// project.
    pub async fn lookup<T: Document>(&self, id: &str) -> Result<Option<Record<T>>, Error> {
        trace_read(T::COLLECTION, "record");
        let row = self.backend.get(T::COLLECTION, id).await?;
        row.filter(Record::is_live).map(decode).transpose()
    }

    /// Returns the revision of a live record of a project. Its body is not decoded.
    pub async fn revision<T: Document>(
        &self,
        project: &str,
        id: &str,
    ) -> Result<Option<i64>, Error> {
        trace_read(T::COLLECTION, "revision");
        let row = self
            .backend
            .get(T::COLLECTION, id)
            .await?
            .filter(|row| row.is_live() && row.project == project);
        Ok(row.map(|row| row.revision))
    }

    /// Reads the live records of a project that have one of these ids. The result lacks ids without
    /// such a record.
    pub async fn get_many<T: Document>(
        &self,
        project: &str,
        ids: &[&str],
    ) -> Result<HashMap<String, Record<T>>, Error> {
        let mut records = HashMap::with_capacity(ids.len());
        for ids in ids.chunks(MAX_VALUES_PER_READ) {
            trace_read(T::COLLECTION, "records");
            for row in self.backend.get_many(T::COLLECTION, ids).await? {
                if row.is_live() && row.project == project {
                    records.insert(row.id.clone(), decode(row)?);
                }
            }
        }
        Ok(records)
    }

    /// Counts the records that meet the conditions of a query, for each of these values of a string
    /// field.
    pub async fn count_by<T: Document>(
        &self,
        query: &Query,
        field: &str,
        values: &[&str],
    ) -> Result<HashMap<String, u64>, Error> {
        let mut counts = HashMap::with_capacity(values.len());
        for values in values.chunks(MAX_VALUES_PER_READ) {
            trace_read(T::COLLECTION, "counts");
            counts.extend(
                self.backend
                    .count_by(T::COLLECTION, query, field, values)
                    .await?,
            );
        }
        Ok(counts)
    }

    /// Returns one page of the records that meet a query, and their total.
    pub async fn find<T: Document>(&self, query: &Query) -> Result<RecordPage<T>, Error> {
        let Page { rows, total } = self.rows(T::COLLECTION, query).await?;
        Ok(RecordPage {
            records: rows.into_iter().map(decode).collect::<Result<_, _>>()?,
            total,
        })
    }

    /// Returns one page of a list and the cursor after which the next page starts. A page whose records
    /// have more than [`MAX_PAGE_BYTES`] ends before its limit.
    ///
    /// Records that are added or removed between two pages shift nothing: the next page starts
    /// after the last record of this one.
    pub async fn list<T: Document>(&self, query: &Query) -> Result<Listed<Record<T>>, Error> {
        let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
        let (mut rows, mut bytes, mut total) = (Vec::<Row>::new(), 0_usize, None);
        let mut part = query.clone();
        let mut part_rows = FIRST_PART_ROWS;
        let follows = loop {
            // One more than the page has shows that another page follows.
            let missing = limit.saturating_add(1) - rows.len();
            part.limit = missing.min(part_rows) as u64;
            let found = self.rows(T::COLLECTION, &part).await?;
            let is_last = (found.rows.len() as u64) < part.limit;
            total.get_or_insert(found.total);
            bytes += found.rows.iter().map(|row| row.body.len()).sum::<usize>();
            rows.extend(found.rows);
            if is_last || rows.len() > limit || (bytes > MAX_PAGE_BYTES && rows.len() > 1) {
                break !is_last;
            }
            if let Some(last) = rows.last() {
                part.after = Some(query.cursor(T::COLLECTION, last)?);
                (part.offset, part.counted) = (0, false);
            }
            // As many as fit if they are as large as those before.
            let left = MAX_PAGE_BYTES.saturating_sub(bytes);
            part_rows = left.saturating_mul(rows.len()) / bytes.max(1) + 1;
        };
        if follows {
            rows.pop();
        }
        let last = rows.last().filter(|_| follows);
        let next = last
            .map(|row| query.cursor(T::COLLECTION, row))
            .transpose()?;
        Ok(Listed {
            items: rows.into_iter().map(decode).collect::<Result<_, _>>()?,
            total: total.unwrap_or_default(),
            next,
        })
    }

    /// Returns the first record that meets a query.
    pub async fn first<T: Document>(&self, query: Query) -> Result<Option<Record<T>>, Error> {
        let query = query.page(0, 1).uncounted();
        let page = self.backend.find(T::COLLECTION, &query).await?;
        page.rows.into_iter().next().map(decode).transpose()
    }

    /// Returns rows of any collection that meet a query. Their bodies are not decoded.
    pub async fn rows(
        &self,
        collection: &'static Collection,
        query: &Query,
    ) -> Result<Page, Error> {
        trace_read(collection, "page");
        self.backend.find(collection, query).await
    }

    /// Applies a batch in full or not at all, and returns when it is on the disk.
    pub async fn commit(&self, batch: Batch) -> Result<(), CommitError> {
        match &batch.fault {
            Some(fault) => Err(CommitError::Invalid(fault.clone())),
            None if batch.is_empty() => Ok(()),
            None => {
                let signals = self.commit_signals.for_batch(&batch);
                let committing = self.commits.read().await;
                let started = Instant::now();
                let committed = self.backend.commit(batch).await;
                self.commit_counts.count(&committed, started.elapsed());
                drop(committing);
                if committed.is_ok() {
                    signals.iter().for_each(|signal| signal.notify_one());
                }
                committed
            }
        }
    }

    /// Returns the counts of the commits of this process.
    pub fn commit_counts(&self) -> &CommitCounts {
        &self.commit_counts
    }

    /// Returns a signal given after each commit of this process that creates or changes records of
    /// a collection, and by [`Store::signal`].
    pub fn commit_signal(&self, collection: &'static Collection) -> CommitSignal {
        self.commit_signals.subscribe(collection)
    }

    /// Gives the signals of a collection, because another process may have changed its records.
    pub fn signal(&self, collection: &'static Collection) {
        let signals = self.commit_signals.of_collection(collection);
        signals.iter().for_each(|signal| signal.notify_one());
    }

    /// Waits for the commits under way and holds back later ones of this process. Reads made while
    /// the guard is held see one state.
    pub async fn pause(&self) -> Pause {
        Pause {
            _commits: self.commits.clone().write_owned().await,
        }
    }

    /// Asks all users of this store and of its clones to keep blobs for as long as the returned set
    /// lives. An export asks before the [`Pause`] ends in which it has read the records.
    pub fn keep_blobs(&self, keys: HashSet<String>) -> Arc<HashSet<String>> {
        let keys = Arc::new(keys);
        let mut kept = self.kept_blobs.lock();
        kept.retain(|other| other.strong_count() > 0);
        kept.push(Arc::downgrade(&keys));
        keys
    }

    /// Returns true if a blob must be kept, see [`Store::keep_blobs`]. A writer asks after it has
    /// committed that no record names the blob: a commit before the pause is part of the export,
    /// and one after the pause sees the set.
    pub fn keeps_blob(&self, key: &str) -> bool {
        let kept = self.kept_blobs.lock();
        let mut sets = kept.iter().filter_map(Weak::upgrade);
        sets.any(|keys| keys.contains(key))
    }

    /// Reads records of any collection in order of id, starting after an id, removed ones included.
    /// Used to export a store.
    pub async fn scan(
        &self,
        collection: &'static Collection,
        after: &str,
        limit: u64,
    ) -> Result<Vec<Row>, Error> {
        self.backend.scan(collection, after, limit).await
    }

    /// Runs `attempt`, which reads records and returns a batch, and commits the batch. Retries when
    /// another writer committed first.
    ///
    /// Between attempts, writers of this process that change the record `id` take turns, and pauses
    /// of random length keep processes apart. After [`CHANGE_TIMEOUT_S`] the error of the last
    /// batch is returned. An `attempt` must not change the same record through this function. An id
    /// that was created in the meantime counts as another writer's commit, so a batch may insert a
    /// record that `attempt` did not find.
    pub async fn change<R, E, F>(
        &self,
        collection: &'static Collection,
        id: &str,
        attempt: impl Fn() -> F,
    ) -> Result<R, EditError<E>>
    where
        F: Future<Output = Result<(Batch, R), E>>,
    {
        let mut attempts =
            self.writer_queues
                .attempts(collection, id, Duration::from_secs(CHANGE_TIMEOUT_S));
        loop {
            attempts.wait_turn().await.map_err(EditError::Commit)?;
            let (batch, answer) = attempt().await.map_err(EditError::Change)?;
            match self.commit(batch).await {
                Ok(()) => return Ok(answer),
                Err(error) => attempts
                    .prepare_retry(error)
                    .await
                    .map_err(EditError::Commit)?,
            }
        }
    }

    /// Reads a record, changes it and commits it. Retries when another writer committed first, as
    /// [`Store::change`] does.
    ///
    /// Returns the result of the last `change`, or `None` where no such live record exists. If the
    /// change leaves the body as it was, the record is still written and its revision still
    /// increases.
    pub async fn edit<T: Document, R, E>(
        &self,
        project: &str,
        id: &str,
        now: Time,
        mut change: impl FnMut(&mut T) -> Result<R, E>,
    ) -> Result<Option<R>, EditError<E>> {
        let mut attempts =
            self.writer_queues
                .attempts(T::COLLECTION, id, Duration::from_secs(CHANGE_TIMEOUT_S));
        loop {
            attempts.wait_turn().await.map_err(EditError::Commit)?;
            let Some(mut record) = self.get::<T>(project, id).await.map_err(EditError::Read)?
            else {
                return Ok(None);
            };
            let answer = change(&mut record.body).map_err(EditError::Change)?;
            match self.commit(Batch::at(now).update(&record)).await {
                Ok(()) => return Ok(Some(answer)),
                Err(error) => attempts
                    .prepare_retry(error)
                    .await
                    .map_err(EditError::Commit)?,
            }
        }
    }

    /// Waits until another process may have changed something. Waits forever where no other process
    /// exists.
    pub async fn changed(&self) -> Change {
        self.backend.changed().await
    }

    /// Sends a message to all processes on this store, this one included. A message longer than
    /// [`MAX_MESSAGE_BYTES`] is not sent, and any other may be lost. Nothing is sent where no other
    /// process exists.
    pub async fn send(&self, message: &str) -> Result<(), Error> {
        if message.len() > MAX_MESSAGE_BYTES {
            return Ok(());
        }
        self.backend.send(message).await
    }

    /// Waits for a message, while another task waits for [`changed`](Self::changed). Waits forever
    /// where no other process exists.
    pub async fn message(&self) -> String {
        self.backend.message().await
    }

    /// Returns the time of the clock that all processes on this store share, or `None` where this
    /// is the only process.
    pub async fn now(&self) -> Result<Option<Time>, Error> {
        self.backend.now().await
    }

    /// Returns the storage of blobs.
    pub fn blobs(&self) -> &dyn Blobs {
        &*self.blobs
    }

    /// Returns the state of the store: ready for writes, or the reason why not.
    pub fn health(&self) -> Health {
        self.backend.health()
    }

    /// Makes everything durable and closes the files. Later calls on clones fail as *unavailable*.
    pub async fn close(self) {
        self.backend.close().await;
    }

    /// Reads every record, index entry and blob, and reports what is broken. Writes wait until the
    /// check is done.
    pub async fn verify(&self) -> Report {
        let mut report = self
            .backend
            .verify()
            .await
            .unwrap_or_else(|error| broken(&error));
        match self.blobs.verify().await {
            Ok((count, damaged)) => {
                report.blobs = count;
                report.damage.extend(
                    damaged
                        .into_iter()
                        .map(|key| format!("blob {key} is damaged")),
                );
            }
            Err(error) => report.damage.push(error.to_string()),
        }
        report
    }
}

fn trace_read(collection: &Collection, kind: &str) {
    tracing::trace!(collection = collection.name, kind, "a read");
}

fn decode<T: Document>(row: Row) -> Result<Record<T>, Error> {
    match serde_json::from_slice(&row.body) {
        Ok(body) => Ok(row.map(|_| body)),
        Err(error) => Err(Error::unreadable(T::COLLECTION, &row.id, &error)),
    }
}

/// Returns the first lines about broken items, and the number of the rest of `count` items.
fn shortened(mut damage: Vec<String>, count: usize) -> Vec<String> {
    if count > MAX_REPORTED_DAMAGE {
        let more = count - MAX_REPORTED_DAMAGE;
        damage.truncate(MAX_REPORTED_DAMAGE);
        damage.push(format!("and {more} more"));
    }
    damage
}

fn broken(error: &dyn Display) -> Report {
    Report {
        damage: vec![error.to_string()],
        ..Report::default()
    }
}
