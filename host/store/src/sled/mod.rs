//! The embedded backend: one process, one folder, sled 0.34.
//!
//! Sled keeps ordered keys and applies a batch of changes in one step that a crash does not split.
//! This module adds everything else by hand, because sled lacks it: indexes and unique keys,
//! durability of acknowledged batches (`committer`, `disk`), checksums on every record
//! (`envelope`), and detection of missing data at the next start (`position`, `head`, `open`).
//!
//! | file | content |
//! |---|---|
//! | `sled/` | sled's own files |
//! | `HEAD` | the newest acknowledged position, outside of the files that sled may lose |
//! | `LOCK` | the lock held while the store is open |
//! | `aside/` | snapshots and settings of sled that could not be used |

mod catalog;
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
use crate::{
    Backend, Batch, Collection, CommitError, Error, Health, OpenError, Page, Query, Report, Row,
    document,
};
use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use catalog::Catalog;
use committer::{Committer, Work};
use disk::Disk;
pub(crate) use open::inspect;
use open::{Opened, Paths};
use parking_lot::RwLock;
use position::Position;
use records::CollectionRef;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use write::{Planned, Prepared, Round};

/// The embedded store of one folder.
#[derive(Clone)]
pub(crate) struct Sled(Arc<Core>);

struct Core {
    /// Dropped first, so that all queued batches are done before the folder is unlocked.
    committer: Committer<Prepared>,
    /// The open files, or `None` after closing.
    files: ArcSwapOption<Files>,
    catalog: Catalog,
    state: Arc<State>,
    space: Space,
}

/// State that readers share with the commit thread.
struct State {
    /// Current position of the tree. Locked while the tree is changed.
    position: Mutex<Position>,
    /// Locked for writing while a round is applied to the tree. A reader that holds it for reading
    /// never sees a part of a round. Readers leave no partial changes behind, so the panic of one
    /// does not affect others.
    round_lock: RwLock<()>,
}

impl State {
    /// Locks the position for the commit thread.
    fn position(&self) -> Result<MutexGuard<'_, Position>, String> {
        let position = self.position.lock();
        position.map_err(|_| "a commit has panicked".to_owned())
    }
}

/// The open files. The fields are dropped in this order: the folder stays locked until sled has
/// closed its files.
struct Files {
    db: ::sled::Db,
    _lock: File,
}

/// Maximum number of waits for running reads when the store is closed.
const MAX_CLOSE_WAITS: u32 = 5_000;
/// Duration of one such wait.
const CLOSE_WAIT: Duration = Duration::from_millis(1);

impl Sled {
    /// Opens the store in a folder, creating it if it is missing.
    pub(crate) fn open(at: &Path, collections: &[&'static Collection]) -> Result<Sled, OpenError> {
        let declaration = |reason: String| OpenError::Declaration {
            at: at.to_owned(),
            reason,
        };
        document::check(collections).map_err(declaration)?;
        let paths = Paths::new(at);
        let Opened {
            db,
            mut position,
            lock,
        } = open::open(&paths)?;
        let updated = catalog::bring_up_to_date(&db, &mut position, collections);
        let catalog = updated
            .map_err(|error| open::damaged(&paths.db, &error.to_string()))?
            .map_err(declaration)?;
        let disk = Disk::open(db.clone(), &paths.sled, &paths.head, &position)
            .map_err(|error| open::io_error(&paths.root, error))?;
        let state = Arc::new(State {
            position: Mutex::new(position),
            round_lock: RwLock::new(()),
        });
        let writer = Writer {
            db: db.clone(),
            state: state.clone(),
            disk,
            vacated: Vec::new(),
        };
        Ok(Sled(Arc::new(Core {
            committer: Committer::start(writer)
                .map_err(|error| open::io_error(&paths.root, error))?,
            files: ArcSwapOption::from_pointee(Files { db, _lock: lock }),
            catalog,
            state,
            space: Space::new(&paths.root),
        })))
    }

    /// Runs blocking work on the runtime's threads for such work.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Core) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let core = self.0.clone();
        let done = tokio::task::spawn_blocking(move || work(&core)).await;
        // The message of sled's panic is a dump of its tree, keys included. It is therefore
        // dropped.
        done.unwrap_or_else(|_| {
            Err(Error::Unavailable(
                "reading the database has panicked".to_owned(),
            ))
        })
    }

    /// Reads a collection while nothing is written.
    async fn read<T: Send + 'static>(
        &self,
        declaration: &'static Collection,
        read: impl FnOnce(&::sled::Db, CollectionRef) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.blocking(move |core| {
            let files = core.files()?;
            let collection = core.collection(declaration)?;
            let _round_lock = core.state.round_lock.read();
            read(&files.db, collection)
        })
        .await
    }
}

#[async_trait]
impl Backend for Sled {
    async fn get(&self, declaration: &'static Collection, id: &str) -> Result<Option<Row>, Error> {
        // The read concerns one key of a tree mostly in memory. Passing it to another thread would
        // cost more than the read.
        self.0.get(declaration, id)
    }

    async fn find(&self, declaration: &'static Collection, query: &Query) -> Result<Page, Error> {
        let query = query.clone();
        self.read(declaration, move |db, collection| {
            find::find(db, collection, &query)
        })
        .await
    }

    async fn scan(
        &self,
        declaration: &'static Collection,
        after: &str,
        limit: u64,
    ) -> Result<Vec<Row>, Error> {
        let after = after.to_owned();
        self.read(declaration, move |db, collection| {
            find::scan_from(db, collection, &after, limit)
        })
        .await
    }

    async fn commit(&self, batch: Batch) -> Result<(), CommitError> {
        let core = &self.0;
        let prepared = write::prepare(&core.catalog, batch)?;
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
        // After a panic in `close`, the store is closed as far as possible.
        let _ = tokio::task::spawn_blocking(move || core.close()).await;
    }
}

impl Core {
    fn files(&self) -> Result<Arc<Files>, Error> {
        self.files
            .load_full()
            .ok_or_else(|| Error::Unavailable("the store was closed".to_owned()))
    }

    fn collection(&self, declaration: &'static Collection) -> Result<CollectionRef, Error> {
        self.catalog.collection(declaration).ok_or_else(|| {
            Error::Unavailable(format!(
                "the collection {} was not declared",
                declaration.name
            ))
        })
    }

    fn get(&self, declaration: &'static Collection, id: &str) -> Result<Option<Row>, Error> {
        let files = self.files()?;
        let collection = self.collection(declaration)?;
        let first = records::read(&files.db, collection, id);
        let read = match first {
            // The pieces of a large body may have been replaced while they were read.
            Err(_) => {
                let _round_lock = self.state.round_lock.read();
                records::read(&files.db, collection, id)
            }
            read => read,
        };
        Ok(read?.map(|stored| stored.row))
    }

    fn verify(&self) -> Result<Report, Error> {
        let files = self.files()?;
        // Nothing commits while this lock is held, so tree and position match.
        let position = self
            .state
            .position
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        check::cross_check(&files.db, &self.catalog, &position)
    }

    /// Makes everything durable and closes the files.
    fn close(&self) {
        let files = self.files.swap(None);
        self.committer.stop();
        let Some(mut files) = files else { return };
        for _ in 0..MAX_CLOSE_WAITS {
            match Arc::try_unwrap(files) {
                Ok(files) => return drop(files),
                Err(shared) => files = shared,
            }
            std::thread::sleep(CLOSE_WAIT);
        }
    }
}

/// State of the commit thread.
struct Writer {
    db: ::sled::Db,
    state: Arc<State>,
    disk: Disk,
    /// Keys that the last round has removed and whose space is still in use.
    vacated: Vec<::sled::IVec>,
}

impl Work for Writer {
    type Batch = Prepared;

    fn apply(&mut self, batches: Vec<Prepared>) -> Result<Vec<Result<(), CommitError>>, String> {
        let mut position = self.state.position()?;
        let mut round = Round::new(&self.db, &position);
        let results = batches.into_iter().map(|batch| round.add(batch)).collect();
        if let Some(Planned {
            batch,
            vacated,
            position: reached,
        }) = round.finish()
        {
            let _round_lock = self.state.round_lock.write();
            // After a failure, a part of the round may be in memory. It is not sealed, so the next
            // start does not see it.
            self.db
                .apply_batch(batch)
                .map_err(|error| format!("cannot write the database: {error}"))?;
            *position = reached;
            self.vacated = vacated;
        }
        Ok(results)
    }

    fn sync(&mut self) -> Result<(), String> {
        let position = self.state.position()?.clone();
        self.disk
            .sync(&position)
            .map_err(|error| format!("cannot sync the database: {error}"))
    }

    fn tidy(&mut self) -> Result<(), String> {
        let vacated = std::mem::take(&mut self.vacated);
        if vacated.is_empty() {
            return Ok(());
        }
        let _unverified = self.state.position()?;
        vacancy::release(&self.db, &vacated)
            .map_err(|error| format!("cannot write the database: {error}"))
    }
}
