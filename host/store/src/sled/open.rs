//! Opening of a store in guarded steps. A store that holds less than was acknowledged is refused.
//!
//! Sled opens damaged files as if nothing were missing, panics on others, and may hang on some.
//! Therefore it is opened on a thread of its own, with a timeout, and its panics are caught. Then
//! every key is read, and the result is compared with the position in the tree and with `HEAD`. If
//! they differ, the files that sled derives from its log (snapshots, settings) are moved aside
//! once, and the store is opened from the log alone.

use super::check::{self, Walk};
use super::head::{Head, HeadContent};
use super::keys::Key;
use super::position::Position;
use crate::{OPENING_THREAD, OpenError};
use ::sled::Db;
use std::fs::{self, File, TryLockError};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

/// Size of sled's page cache, in bytes. Sled's own default is one gibibyte.
const CACHE_BYTES: u64 = 32 * 1024 * 1024;
/// Interval at which sled flushes by itself, in milliseconds. Acknowledging does not wait for this.
const FLUSH_INTERVAL_MS: u64 = 500;
/// Minimum timeout of opening.
const MIN_OPEN_TIMEOUT: Duration = Duration::from_secs(20);
/// Number of bytes of the database file that add one second to the timeout.
const BYTES_PER_SECOND: u64 = 8 * 1024 * 1024;
/// Maximum number of waits for sled's file lock, which an earlier store of this process may still
/// hold while it ends.
const MAX_LOCK_WAITS: u32 = 200;
/// Duration of one such wait.
const LOCK_WAIT: Duration = Duration::from_millis(10);

/// The paths of a store.
#[derive(Clone, Debug)]
pub(super) struct Paths {
    pub(super) root: PathBuf,
    pub(super) lock: PathBuf,
    pub(super) head: PathBuf,
    pub(super) sled: PathBuf,
    pub(super) db: PathBuf,
}

impl Paths {
    pub(super) fn new(root: &Path) -> Paths {
        let sled = root.join("sled");
        Paths {
            root: root.to_owned(),
            lock: root.join("LOCK"),
            head: root.join("HEAD"),
            db: sled.join("db"),
            sled,
        }
    }
}

/// Result of opening: the tree, its position, and the lock on the folder, which must be kept as
/// long as the tree.
pub(super) struct Opened {
    pub(super) db: Db,
    pub(super) position: Position,
    pub(super) lock: File,
}

/// Opens the folder, creating a store if it does not exist.
pub(super) fn open(paths: &Paths) -> Result<Opened, OpenError> {
    fs::create_dir_all(&paths.root).map_err(|error| io_error(&paths.root, error))?;
    let lock = lock(paths)?;
    // This check comes before sled is opened, because sled would create an empty database.
    let (head, length) = examine(paths)?;
    fs::create_dir_all(&paths.sled).map_err(|error| io_error(&paths.sled, error))?;
    clear_unfinished(&paths.sled).map_err(|error| io_error(&paths.sled, error))?;
    let (db, position) = open_with_timeout(paths, &head, length)
        .or_else(|failed| reopen_from_log(paths, &head, length, failed))?;
    Ok(Opened { db, position, lock })
}

/// Reads the head of the store and the length of its database file, and refuses a pair that cannot
/// be opened. Changes nothing.
fn examine(paths: &Paths) -> Result<(HeadContent, u64), OpenError> {
    let head = Head::read(&paths.head).map_err(|error| io_error(&paths.head, error))?;
    let length = match fs::metadata(&paths.db) {
        Ok(found) => found.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(io_error(&paths.db, error)),
    };
    match &head {
        HeadContent::Damaged => Err(damaged(&paths.head, "it is damaged")),
        HeadContent::Newer => Err(newer(&paths.head)),
        HeadContent::Position(_) if length == 0 => {
            Err(damaged(&paths.db, "it is missing or empty"))
        }
        HeadContent::Missing | HeadContent::Position(_) => Ok((head, length)),
    }
}

/// Checks the files of a store without opening it. Returns true if a store exists. Changes nothing.
pub(crate) fn inspect(root: &Path) -> Result<bool, OpenError> {
    let (head, length) = examine(&Paths::new(root))?;
    Ok(head != HeadContent::Missing || length > 0)
}

/// Opens the store once more from sled's log alone, because the damage may be in files that sled
/// derives from the log.
fn reopen_from_log(
    paths: &Paths,
    head: &HeadContent,
    length: u64,
    first: OpenError,
) -> Result<(Db, Position), OpenError> {
    let OpenError::Damaged { .. } = first else {
        return Err(first);
    };
    tracing::warn!(
        ?first,
        "the store cannot be opened; trying again from its log only"
    );
    set_aside(paths).map_err(|error| io_error(&paths.sled, error))?;
    open_with_timeout(paths, head, length).map_err(|second| match second {
        // The first attempt has never returned and still holds the files.
        OpenError::Locked { .. } => first,
        second => second,
    })
}

fn lock(paths: &Paths) -> Result<File, OpenError> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&paths.lock)
        .map_err(|error| io_error(&paths.lock, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::Locked {
            at: paths.root.clone(),
        }),
        Err(TryLockError::Error(error)) => Err(io_error(&paths.lock, error)),
    }
}

/// Deletes unfinished snapshots. Sled would use one as its newest snapshot.
fn clear_unfinished(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry
            .file_name()
            .as_encoded_bytes()
            .ends_with(b".generating")
        {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Moves the files that sled can rebuild from its log to the `aside` folder, replacing those moved
/// there before.
fn set_aside(paths: &Paths) -> io::Result<()> {
    let aside = paths.root.join("aside");
    fs::create_dir_all(&aside)?;
    for entry in fs::read_dir(&paths.sled)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == "conf" || name.as_encoded_bytes().starts_with(b"snap.") {
            fs::rename(entry.path(), aside.join(name))?;
        }
    }
    File::open(&paths.sled)?.sync_all()
}

/// Attempts to open the store on a thread that may panic or hang.
fn open_with_timeout(
    paths: &Paths,
    head: &HeadContent,
    length: u64,
) -> Result<(Db, Position), OpenError> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let owned = paths.clone();
    let known_head = head.clone();
    let thread = std::thread::Builder::new().name(OPENING_THREAD.to_owned());
    let started = thread.spawn(move || {
        let caught = catch_unwind(AssertUnwindSafe(|| attempt(&owned, &known_head)));
        let result = caught.unwrap_or_else(|_| Err(damaged(&owned.db, "reading it has panicked")));
        // The caller may have timed out.
        let _ = sender.send(result);
    });
    started.map_err(|error| io_error(&paths.root, error))?;
    let timeout = MIN_OPEN_TIMEOUT + Duration::from_secs(length / BYTES_PER_SECOND);
    receiver.recv_timeout(timeout).unwrap_or_else(|_| {
        let reason = format!("it did not open in {} s", timeout.as_secs());
        Err(damaged(&paths.db, &reason))
    })
}

fn attempt(paths: &Paths, head: &HeadContent) -> Result<(Db, Position), OpenError> {
    let db = open_sled(paths)?;
    let position = match db
        .get(Key::meta().bytes())
        .map_err(|error| sled_error(paths, error))?
    {
        Some(value) => {
            Position::decode(&value).ok_or_else(|| damaged(&paths.db, "its position is damaged"))?
        }
        None if db.is_empty() && *head == HeadContent::Missing => create(paths, &db)?,
        None => return Err(damaged(&paths.db, "it has no store id")),
    };
    match head {
        HeadContent::Missing | HeadContent::Damaged | HeadContent::Newer
            if position.sequence > 0 || position.keys > 0 =>
        {
            return Err(damaged(&paths.head, "it is missing"));
        }
        HeadContent::Position(head) => {
            compare(&position, head).map_err(|reason| damaged(&paths.db, &reason))?
        }
        HeadContent::Missing | HeadContent::Damaged | HeadContent::Newer => {}
    }
    let Walk {
        position: found,
        damage,
        marks,
    } = check::walk(&db, &position).map_err(|error| sled_error(paths, error))?;
    if let Some(first) = damage.first() {
        return Err(damaged(&paths.db, first));
    }
    if found != position {
        let records = found.records.iter().sum::<u64>();
        let expected = position.records.iter().sum::<u64>();
        let reason =
            format!("of {expected} records {records} were found, or some have older values");
        return Err(damaged(&paths.db, &reason));
    }
    for mark in marks {
        db.remove(mark).map_err(|error| sled_error(paths, error))?;
    }
    Ok((db, position))
}

fn compare(position: &Position, head: &Position) -> Result<(), String> {
    if position.store != head.store {
        return Err("it belongs to another store than the HEAD file beside it".to_owned());
    }
    if position.sequence < head.sequence {
        let holds = position.sequence;
        let acknowledged = head.sequence;
        return Err(format!(
            "it ends with change {holds}, but change {acknowledged} was acknowledged"
        ));
    }
    if position.sequence == head.sequence && position != head {
        return Err("it differs from the acknowledged state".to_owned());
    }
    Ok(())
}

fn open_sled(paths: &Paths) -> Result<Db, OpenError> {
    let config = ::sled::Config::new()
        .path(&paths.sled)
        .cache_capacity(CACHE_BYTES)
        .flush_every_ms(Some(FLUSH_INTERVAL_MS));
    for _ in 0..MAX_LOCK_WAITS {
        match config.open() {
            // The store holds the folder's own lock. Therefore sled's lock can only belong to a
            // store that this process has closed before.
            Err(::sled::Error::Io(error))
                if error.to_string().starts_with("could not acquire lock") =>
            {
                std::thread::sleep(LOCK_WAIT);
            }
            result => return result.map_err(|error| sled_error(paths, error)),
        }
    }
    Err(OpenError::Locked {
        at: paths.root.clone(),
    })
}

/// Creates a new store. `HEAD` is written later, so a start interrupted between the two leaves an
/// empty store.
fn create(paths: &Paths, db: &Db) -> Result<Position, OpenError> {
    let mut id = [0; 16];
    getrandom::fill(&mut id)
        .map_err(|error| io_error(&paths.root, io::Error::other(error.to_string())))?;
    let position = Position::empty(id);
    db.insert(Key::meta().bytes(), position.encode())
        .map_err(|error| sled_error(paths, error))?;
    Ok(position)
}

fn sled_error(paths: &Paths, error: ::sled::Error) -> OpenError {
    match error {
        ::sled::Error::Io(error) if is_environmental(&error) => io_error(&paths.sled, error),
        error => damaged(&paths.db, &error.to_string()),
    }
}

/// Returns true if an error concerns rights, space or the device, and not the content of the files.
fn is_environmental(error: &io::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(
        error.kind(),
        PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull
    )
}

pub(super) fn damaged(file: &Path, reason: &str) -> OpenError {
    let repair = "nothing was started: move the data folder away and restore a backup with `toolhost import FILE`, or \
                  start with an empty folder";
    unusable(file, reason, repair)
}

fn newer(head: &Path) -> OpenError {
    let repair = "nothing was changed: start that version again, or restore a backup of this version with \
                  `toolhost import FILE`";
    unusable(
        head,
        "a newer version of this program has written the store",
        repair,
    )
}

fn unusable(file: &Path, reason: &str, repair: &str) -> OpenError {
    OpenError::Damaged {
        file: file.to_owned(),
        reason: reason.to_owned(),
        repair: repair.to_owned(),
    }
}

pub(super) fn io_error(at: &Path, error: io::Error) -> OpenError {
    OpenError::Io {
        at: at.to_owned(),
        error,
    }
}
