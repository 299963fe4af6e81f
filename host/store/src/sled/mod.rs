//! The embedded backend: one process, one folder, sled 0.34 underneath.
//!
//! Sled keeps ordered keys and applies a batch of changes in one step that a crash does not split. Everything else is
//! ours: indexes and unique keys, what *acknowledged* means (`committer`, `disk`), checksums on every record
//! (`envelope`), and knowing at the next start whether anything is missing (`position`, `head`, `open`).
//!
//! | file | what it is |
//! |---|---|
//! | `sled/` | sled's own files |
//! | `HEAD` | the newest acknowledged position, outside of what sled may lose |
//! | `LOCK` | held as long as the store is open |
//! | `aside/` | snapshots and settings of sled that could not be used |

mod catalogue;
mod check;
mod committer;
mod counters;
mod disk;
mod envelope;
mod find;
mod head;
mod keys;
mod open;
mod position;
mod records;
mod sources;
#[cfg(test)]
mod tests;
mod vacancy;
mod write;

use crate::space::Space;
use crate::{Backend, Batch, Collection, CommitError, Error, Health, OpenError, Page, Query, Report, Row, document};
use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use catalogue::Catalogue;
use committer::{Committer, Work};
use disk::Disk;
use open::{Opened, Paths};
use position::Position;
use records::Shelf;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use write::{Planned, Prepared, Round};

/// The embedded store of one folder.
#[derive(Clone)]
pub(crate) struct Sled(Arc<Core>);

struct Core {
    /// Dropped first: what was asked of it is done before the folder is let go.
    committer: Committer<Prepared>,
    /// The open files; none after closing.
    files: ArcSwapOption<Files>,
    catalogue: Catalogue,
    state: Arc<State>,
    space: Space,
}

/// What those who read share with the thread that commits.
struct State {
    /// Where the tree stands; held while it is changed.
    position: Mutex<Position>,
    /// Taken to write around the moment a round enters the tree, so that whoever reads under it sees no half of one.
    moment: RwLock<()>,
}

/// Dropped in this order: the folder stays locked until sled has let go of its files.
struct Files {
    db: ::sled::Db,
    _lock: File,
}

/// How long closing waits for reads that are still going on.
const CLOSE_WAITS: u32 = 5_000;
const CLOSE_WAIT: Duration = Duration::from_millis(1);

impl Sled {
    /// Opens the store in a folder, making it where it is missing.
    pub(crate) fn open(at: &Path, collections: &[&'static Collection]) -> Result<Sled, OpenError> {
        let declaration = |reason: String| OpenError::Declaration { at: at.to_owned(), reason };
        document::check(collections).map_err(declaration)?;
        let paths = Paths::of(at);
        let Opened { db, mut position, lock } = open::open(&paths)?;
        let settled = catalogue::settle(&db, &mut position, collections);
        let catalogue = settled.map_err(|error| open::damaged(&paths.db, &error.to_string()))?.map_err(declaration)?;
        let io_error = |error| open::io_error(&paths.root, error);
        let disk = Disk::open(db.clone(), &paths.sled, &paths.head, &position).map_err(io_error)?;
        let state = Arc::new(State { position: Mutex::new(position), moment: RwLock::new(()) });
        let writer = Writer { db: db.clone(), state: state.clone(), disk, vacated: Vec::new() };
        Ok(Sled(Arc::new(Core {
            committer: Committer::start(writer).map_err(io_error)?,
            files: ArcSwapOption::from_pointee(Files { db, _lock: lock }),
            catalogue,
            state,
            space: Space::of(&paths.root),
        })))
    }

    /// Runs work that may block on the runtime's threads for that.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Core) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let core = self.0.clone();
        let done = tokio::task::spawn_blocking(move || work(&core)).await;
        // What a panic of sled says is a dump of its tree, keys included.
        done.unwrap_or_else(|_| Err(Error::Unavailable("reading the database has panicked".to_owned())))
    }
}

#[async_trait]
impl Backend for Sled {
    async fn get(&self, at: &'static Collection, id: &str) -> Result<Option<Row>, Error> {
        // One key of a tree that is mostly in memory: handing it to another thread would cost more than it takes.
        self.0.get(at, id)
    }

    async fn find(&self, at: &'static Collection, query: &Query) -> Result<Page, Error> {
        let query = query.clone();
        self.blocking(move |core| core.find(at, &query)).await
    }

    async fn scan(&self, at: &'static Collection, after: &str, limit: u64) -> Result<Vec<Row>, Error> {
        let after = after.to_owned();
        self.blocking(move |core| core.scan(at, &after, limit)).await
    }

    async fn commit(&self, batch: Batch) -> Result<(), CommitError> {
        let core = &self.0;
        let prepared = write::prepare(&core.catalogue, batch)?;
        if !core.space.has_room(prepared.bytes, prepared.frees_only()) {
            return Err(CommitError::Full);
        }
        core.committer.commit(prepared).await
    }

    fn health(&self) -> Health {
        if self.0.files.load().is_none() {
            return Health::Closed;
        }
        match self.0.committer.failure() {
            Some(reason) => Health::Failed(reason.to_owned()),
            None if self.0.space.is_short() => Health::Full,
            None => Health::Ready,
        }
    }

    async fn verify(&self) -> Result<Report, Error> {
        self.blocking(Core::verify).await
    }

    async fn close(&self) {
        let core = self.0.clone();
        // A panic in here leaves the store as closed as it can be.
        let _ = tokio::task::spawn_blocking(move || core.close()).await;
    }
}

impl Core {
    fn files(&self) -> Result<Arc<Files>, Error> {
        self.files.load_full().ok_or_else(|| Error::Unavailable("the store was closed".to_owned()))
    }

    fn shelf(&self, at: &'static Collection) -> Result<Shelf, Error> {
        let unknown = || Error::Unavailable(format!("the collection {} was not declared", at.name));
        self.catalogue.shelf(at).ok_or_else(unknown)
    }

    fn get(&self, at: &'static Collection, id: &str) -> Result<Option<Row>, Error> {
        let (files, shelf) = (self.files()?, self.shelf(at)?);
        let first = records::read(&files.db, shelf, id);
        let read = match first {
            // The pieces of a large body may have been replaced while they were fetched.
            Err(_) => {
                let _moment = self.state.moment.read().unwrap_or_else(PoisonError::into_inner);
                records::read(&files.db, shelf, id)
            }
            read => read,
        };
        Ok(read?.map(|stored| stored.row))
    }

    fn find(&self, at: &'static Collection, query: &Query) -> Result<Page, Error> {
        let (files, shelf) = (self.files()?, self.shelf(at)?);
        // Readers cannot leave anything half done, so a panic of one of them is no reason to refuse others.
        let _moment = self.state.moment.read().unwrap_or_else(PoisonError::into_inner);
        find::find(&files.db, shelf, query)
    }

    fn scan(&self, at: &'static Collection, after: &str, limit: u64) -> Result<Vec<Row>, Error> {
        let (files, shelf) = (self.files()?, self.shelf(at)?);
        let _moment = self.state.moment.read().unwrap_or_else(PoisonError::into_inner);
        find::scan_from(&files.db, shelf, after, limit)
    }

    fn verify(&self) -> Result<Report, Error> {
        let files = self.files()?;
        // Nothing commits while this is held, so tree and position belong together.
        let position = self.state.position.lock().unwrap_or_else(PoisonError::into_inner);
        check::cross_check(&files.db, &self.catalogue, &position)
    }

    /// Makes everything durable and lets go of the files.
    fn close(&self) {
        let files = self.files.swap(None);
        self.committer.stop();
        let Some(mut files) = files else { return };
        for _ in 0..CLOSE_WAITS {
            match Arc::try_unwrap(files) {
                Ok(files) => return drop(files),
                Err(shared) => files = shared,
            }
            std::thread::sleep(CLOSE_WAIT);
        }
    }
}

/// What the committing thread works with.
struct Writer {
    db: ::sled::Db,
    state: Arc<State>,
    disk: Disk,
    /// Keys that the last round has taken away and whose space is still held.
    vacated: Vec<::sled::IVec>,
}

impl Work for Writer {
    type Batch = Prepared;

    fn apply(&mut self, batches: Vec<Prepared>) -> Result<Vec<Result<(), CommitError>>, String> {
        let mut position = self.state.position.lock().map_err(|_| "a commit has panicked".to_owned())?;
        let mut round = Round::new(&self.db, &position);
        let results = batches.into_iter().map(|batch| round.add(batch)).collect();
        if let Some(Planned { batch, vacated, position: reached }) = round.finish() {
            let _moment = self.state.moment.write().unwrap_or_else(PoisonError::into_inner);
            // After a failure a part may be in memory. It is not sealed, so the next start does not see it.
            self.db.apply_batch(batch).map_err(|error| format!("cannot write the database: {error}"))?;
            *position = reached;
            self.vacated = vacated;
        }
        Ok(results)
    }

    fn sync(&mut self) -> Result<(), String> {
        let position = self.state.position.lock().map_err(|_| "a commit has panicked".to_owned())?.clone();
        self.disk.sync(&position).map_err(|error| format!("cannot sync the database: {error}"))
    }

    fn tidy(&mut self) -> Result<(), String> {
        let vacated = std::mem::take(&mut self.vacated);
        if vacated.is_empty() {
            return Ok(());
        }
        let _unverified = self.state.position.lock().map_err(|_| "a commit has panicked".to_owned())?;
        vacancy::release(&self.db, &vacated).map_err(|error| format!("cannot write the database: {error}"))
    }
}
