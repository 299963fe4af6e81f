//! One thread makes batches durable, for everybody who waits.
//!
//! Whoever has applied a batch leaves its position here and waits. The thread takes the newest position, syncs
//! everything up to it, and then answers all who wait for it or for an earlier one; those who come meanwhile share the
//! next sync. A sync that fails is never tried again as if nothing had happened: the kernel may have thrown the data
//! away, so nothing is acknowledged from then on.

use super::head::Head;
use super::position::Position;
use ::sled::Db;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::watch;

/// The thread, and the way to ask it.
#[derive(Debug)]
pub(super) struct Flusher {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    asked: Mutex<Asked>,
    wake: Condvar,
    done: watch::Sender<Done>,
}

#[derive(Debug, Default)]
struct Asked {
    /// The newest position that is not durable yet.
    position: Option<Position>,
    stop: bool,
}

/// How far the disk has come.
#[derive(Clone, Debug)]
struct Done {
    sequence: u64,
    failed: Option<String>,
}

impl Flusher {
    /// Starts the thread. `sync` makes everything up to a position durable.
    pub(super) fn start(
        sequence: u64,
        sync: impl FnMut(&Position) -> io::Result<()> + Send + 'static,
    ) -> io::Result<Flusher> {
        let done = watch::Sender::new(Done { sequence, failed: None });
        let shared = Arc::new(Shared { asked: Mutex::default(), wake: Condvar::new(), done });
        let thread = std::thread::Builder::new().name("store-flush".to_owned()).spawn({
            let shared = shared.clone();
            move || shared.run(sync)
        })?;
        Ok(Flusher { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Asks for a position to be made durable. Positions come in order.
    pub(super) fn ask(&self, position: Position) {
        self.shared.asked().position = Some(position);
        self.shared.wake.notify_one();
    }

    /// Waits until the batch with this sequence is durable, or never will be known to be.
    pub(super) async fn wait(&self, sequence: u64) -> Result<(), String> {
        let mut done = self.shared.done.subscribe();
        let reached = done.wait_for(|done| done.sequence >= sequence || done.failed.is_some()).await;
        match reached {
            Ok(done) if done.sequence >= sequence => Ok(()),
            Ok(done) => Err(done.failed.clone().unwrap_or_default()),
            Err(_) => Err("the store was closed".to_owned()),
        }
    }

    /// Why nothing is acknowledged any more, if that is so.
    pub(super) fn failure(&self) -> Option<String> {
        self.shared.done.borrow().failed.clone()
    }

    /// Ends all acknowledging, for good.
    pub(super) fn fail(&self, reason: &str) {
        self.shared.fail(reason);
    }

    /// Makes durable what was asked for and ends the thread.
    pub(super) fn stop(&self) {
        self.shared.asked().stop = true;
        self.shared.wake.notify_one();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            self.fail("the thread that syncs has panicked");
        }
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn asked(&self) -> MutexGuard<'_, Asked> {
        // No code panics while it holds the lock, and a position is replaced as a whole.
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, mut sync: impl FnMut(&Position) -> io::Result<()>) {
        let _failed = FailWhenDropped(self);
        while let Some(position) = self.next() {
            if let Err(error) = sync(&position) {
                return self.fail(&format!("cannot sync the database: {error}"));
            }
            let failed = self.done.borrow().failed.is_some();
            if failed {
                return;
            }
            self.done.send_modify(|done| done.sequence = position.sequence);
        }
    }

    /// Waits for the next position; none when the thread is to end.
    fn next(&self) -> Option<Position> {
        let mut asked = self.asked();
        loop {
            if let Some(position) = asked.position.take() {
                return Some(position);
            }
            if asked.stop {
                return None;
            }
            asked = self.wake.wait(asked).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn fail(&self, reason: &str) {
        tracing::error!(reason, "the store acknowledges no more writes");
        self.done.send_modify(|done| {
            done.failed.get_or_insert_with(|| reason.to_owned());
        });
    }
}

/// Answers those who wait when the thread ends, a panic included.
struct FailWhenDropped<'a>(&'a Shared);

impl Drop for FailWhenDropped<'_> {
    fn drop(&mut self) {
        let reason = if std::thread::panicking() { "syncing has panicked" } else { "the store was closed" };
        self.0.done.send_modify(|done| {
            done.failed.get_or_insert_with(|| reason.to_owned());
        });
    }
}

/// Makes sled's files durable, then `HEAD`.
///
/// Sled's own flush hands the log to the kernel; on Linux it syncs neither a grown file's size nor the drive's cache.
/// So the database file is synced through a handle of our own.
pub(super) struct Disk {
    db: Db,
    file: File,
    spilled: PathBuf,
    synced: HashSet<OsString>,
    head: Head,
}

impl Disk {
    pub(super) fn open(db: Db, folder: &Path, head: &Path, position: &Position) -> io::Result<Disk> {
        let (file, spilled) = (File::open(folder.join("db"))?, folder.join("blobs"));
        db.flush().map_err(io::Error::from)?;
        file.sync_all()?;
        File::open(folder)?.sync_all()?;
        let head = Head::begin(head, position)?;
        Ok(Disk { db, file, spilled, synced: HashSet::new(), head })
    }

    /// Makes everything up to a position durable.
    pub(super) fn sync(&mut self, position: &Position) -> io::Result<()> {
        self.db.flush().map_err(io::Error::from)?;
        self.file.sync_data()?;
        self.sync_spilled()?;
        self.head.write(position)
    }

    /// Syncs the files that sled makes of pages above 128 KiB and never writes to again. Values are kept too small for
    /// that, so the folder is empty.
    fn sync_spilled(&mut self) -> io::Result<()> {
        let synced = self.synced.len();
        for entry in fs::read_dir(&self.spilled)? {
            let entry = entry?;
            if self.synced.insert(entry.file_name()) {
                match File::open(entry.path()) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    file => file?.sync_all()?,
                }
            }
        }
        if self.synced.len() > synced {
            File::open(&self.spilled)?.sync_all()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(sequence: u64) -> Position {
        Position { sequence, ..Position::start([0; 16]) }
    }

    #[tokio::test]
    async fn a_failed_sync_ends_all_acknowledging() {
        let mut syncs = 0;
        let flusher = Flusher::start(0, move |_| {
            syncs += 1;
            if syncs == 2 { Err(io::Error::other("lost")) } else { Ok(()) }
        })
        .unwrap();
        flusher.ask(at(1));
        flusher.wait(1).await.unwrap();
        flusher.ask(at(2));
        assert!(flusher.wait(2).await.unwrap_err().contains("lost"));
        flusher.ask(at(3));
        assert!(flusher.wait(3).await.is_err());
        assert!(flusher.wait(1).await.is_ok(), "what was durable stays acknowledged");
        assert!(flusher.failure().is_some());
    }

    #[tokio::test]
    async fn a_panic_while_syncing_answers_those_who_wait() {
        let flusher = Flusher::start(0, |_| panic!("sled has panicked")).unwrap();
        flusher.ask(at(1));
        assert!(flusher.wait(1).await.is_err());
    }

    #[tokio::test]
    async fn stopping_makes_durable_what_was_asked_for() {
        let synced = Arc::new(Mutex::new(0));
        let flusher = Flusher::start(0, {
            let synced = synced.clone();
            move |position| {
                *synced.lock().unwrap() = position.sequence;
                Ok(())
            }
        })
        .unwrap();
        flusher.ask(at(4));
        flusher.stop();
        assert_eq!(*synced.lock().unwrap(), 4);
        flusher.wait(4).await.unwrap();
    }
}
