//! The embedded backend: one process, one folder, sled 0.34 underneath.
//!
//! Sled keeps ordered keys and applies a batch of changes in one step that a crash does not split. Everything else is
//! ours: indexes and unique keys, what *acknowledged* means (`flusher`), checksums on every record (`envelope`), and
//! knowing at the next start whether anything is missing (`position`, `head`, `open`).
//!
//! | file | what it is |
//! |---|---|
//! | `sled/` | sled's own files |
//! | `HEAD` | the newest acknowledged position, outside of what sled may lose |
//! | `LOCK` | held as long as the store is open |
//! | `aside/` | snapshots and settings of sled that could not be used |

mod catalogue;
mod check;
mod counters;
mod envelope;
mod find;
mod flusher;
mod head;
mod keys;
mod open;
mod position;
mod records;
mod sources;
mod space;
mod write;

use crate::{Backend, Batch, Collection, CommitError, Error, Health, OpenError, Page, Query, Report, Row};
use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use catalogue::Catalogue;
use flusher::{Disk, Flusher};
use open::{Opened, Paths};
use position::Position;
use records::Shelf;
use space::Space;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use write::Prepared;

/// The embedded store of one folder.
#[derive(Clone)]
pub(crate) struct Sled(Arc<Core>);

struct Core {
    /// The open files; none after closing.
    files: ArcSwapOption<Files>,
    catalogue: Catalogue,
    /// Where the tree stands. Whoever holds this commits.
    position: Mutex<Position>,
    /// Taken to write around the moment a batch enters the tree, so that whoever reads under it sees no half of one.
    moment: RwLock<()>,
    flusher: Flusher,
    space: Space,
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
        catalogue::check(collections).map_err(declaration)?;
        let paths = Paths::of(at);
        let Opened { db, mut position, lock } = open::open(&paths)?;
        let settled = catalogue::settle(&db, &mut position, collections);
        let catalogue = settled.map_err(|error| open::damaged(&paths.db, &error.to_string()))?.map_err(declaration)?;
        let io_error = |error| open::io_error(&paths.root, error);
        let mut disk = Disk::open(db.clone(), &paths.sled, &paths.head, &position).map_err(io_error)?;
        let flusher = Flusher::start(position.sequence, move |position| disk.sync(position)).map_err(io_error)?;
        Ok(Sled(Arc::new(Core {
            files: ArcSwapOption::from_pointee(Files { db, _lock: lock }),
            catalogue,
            position: Mutex::new(position),
            moment: RwLock::new(()),
            flusher,
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

    async fn commit(&self, batch: Batch) -> Result<(), CommitError> {
        let core = self.0.clone();
        let applied = tokio::task::spawn_blocking(move || core.commit(batch)).await;
        let sequence = applied.unwrap_or_else(|_| {
            self.0.flusher.fail("committing has panicked");
            Err(CommitError::Unavailable("committing has panicked".to_owned()))
        })?;
        self.0.flusher.wait(sequence).await.map_err(CommitError::Unavailable)
    }

    fn health(&self) -> Health {
        if self.0.files.load().is_none() {
            return Health::Closed;
        }
        match self.0.flusher.failure() {
            Some(reason) => Health::Failed(reason),
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
                let _moment = self.moment.read().unwrap_or_else(PoisonError::into_inner);
                records::read(&files.db, shelf, id)
            }
            read => read,
        };
        Ok(read?.map(|stored| stored.row))
    }

    fn find(&self, at: &'static Collection, query: &Query) -> Result<Page, Error> {
        let (files, shelf) = (self.files()?, self.shelf(at)?);
        // Readers cannot leave anything half done, so a panic of one of them is no reason to refuse others.
        let _moment = self.moment.read().unwrap_or_else(PoisonError::into_inner);
        find::find(&files.db, shelf, query)
    }

    /// Applies a batch and asks for it to be made durable. Answers with its sequence.
    fn commit(&self, batch: Batch) -> Result<u64, CommitError> {
        let unavailable = |error: Error| CommitError::Unavailable(error.to_string());
        let files = self.files().map_err(unavailable)?;
        let prepared = write::prepare(&self.catalogue, batch)?;
        self.room(&prepared)?;
        let Ok(mut position) = self.position.lock() else {
            return Err(CommitError::Unavailable("a commit has panicked".to_owned()));
        };
        if let Some(reason) = self.flusher.failure() {
            return Err(CommitError::Unavailable(reason));
        }
        let (batch, reached) = write::plan(&files.db, &position, prepared)?.finish();
        self.apply(&files, batch)?;
        *position = reached;
        // Asked for while the lock is held, so that positions come in order.
        self.flusher.ask(position.clone());
        Ok(position.sequence)
    }

    fn room(&self, batch: &Prepared) -> Result<(), CommitError> {
        if self.space.has_room(batch.bytes, batch.frees_only()) { Ok(()) } else { Err(CommitError::Full) }
    }

    fn apply(&self, files: &Files, batch: ::sled::Batch) -> Result<(), CommitError> {
        let _moment = self.moment.write().unwrap_or_else(PoisonError::into_inner);
        files.db.apply_batch(batch).map_err(|error| {
            // A part of the batch may be in memory now. It is not sealed, so the next start does not see it.
            let reason = format!("cannot write the database: {error}");
            self.flusher.fail(&reason);
            CommitError::Unavailable(reason)
        })
    }

    fn verify(&self) -> Result<Report, Error> {
        let files = self.files()?;
        // Nothing commits while this is held, so tree and position belong together.
        let position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        check::cross_check(&files.db, &self.catalogue, &position)
    }

    /// Makes everything durable and lets go of the files.
    fn close(&self) {
        let files = {
            let _position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
            self.files.swap(None)
        };
        self.flusher.stop();
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
