//! Opening of a store in guarded steps. A store that holds less than was acknowledged is refused.
//!
//! Sled opens damaged files as if nothing were missing, panics on others, and may hang on some.
//! Therefore it is opened on a thread of its own, with a timeout, and its panics are caught. Then
//! every key is read, and the result is compared with the position in the tree and with `HEAD`. If
//! they differ, the files that sled derives from its log (snapshots, settings) are moved aside
//! once, and the store is opened from the log alone.

use super::check::{self, Walk};
use super::head::{Head, Said};
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
const CACHE: u64 = 64 * 1024 * 1024;
/// Interval at which sled flushes by itself, in milliseconds. Acknowledging does not wait for this.
const TIDY_EVERY_MS: u64 = 500;
/// Minimum timeout of opening.
const PATIENCE: Duration = Duration::from_secs(20);
/// Number of bytes of the database file that add one second to the timeout.
const BYTES_PER_SECOND: u64 = 8 * 1024 * 1024;
/// Maximum number of waits for sled's file lock, which an earlier store of this process may still
/// hold while it ends.
const LOCK_WAITS: u32 = 200;
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
    pub(super) fn of(root: &Path) -> Paths {
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

/// Opens the folder, creating a store if none exists.
pub(super) fn open(paths: &Paths) -> Result<Opened, OpenError> {
    fs::create_dir_all(&paths.root).map_err(|error| io_error(&paths.root, error))?;
    let lock = lock(paths)?;
    let said = Head::read(&paths.head).map_err(|error| io_error(&paths.head, error))?;
    let length = match fs::metadata(&paths.db) {
        Ok(found) => found.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(io_error(&paths.db, error)),
    };
    match &said {
        Said::Noise => return Err(damaged(&paths.head, "it is damaged")),
        Said::Newer => return Err(newer(&paths.head)),
        // This check comes before sled is opened, because sled would create an empty database here.
        Said::Position(_) if length == 0 => {
            return Err(damaged(&paths.db, "it is missing or empty"));
        }
        Said::Nothing | Said::Position(_) => {}
    }
    fs::create_dir_all(&paths.sled).map_err(|error| io_error(&paths.sled, error))?;
    clear_unfinished(&paths.sled).map_err(|error| io_error(&paths.sled, error))?;
    let (db, position) =
        guarded(paths, &said, length).or_else(|trouble| again(paths, &said, length, trouble))?;
    Ok(Opened { db, position, lock })
}

/// Opens the store once more from sled's log alone, because the damage may be in files that sled
/// derives from the log.
fn again(
    paths: &Paths,
    said: &Said,
    length: u64,
    first: Trouble,
) -> Result<(Db, Position), OpenError> {
    let Trouble::Damaged { .. } = first else {
        return Err(first.into());
    };
    tracing::warn!(
        ?first,
        "the store does not open as it stands; reading its log alone"
    );
    set_aside(paths).map_err(|error| io_error(&paths.sled, error))?;
    guarded(paths, said, length).map_err(|second| match second {
        // The first attempt has never returned and still holds the files.
        Trouble::Locked { .. } => first.into(),
        second => second.into(),
    })
}

fn lock(paths: &Paths) -> Result<File, OpenError> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&paths.lock);
    let file = file.map_err(|error| io_error(&paths.lock, error))?;
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

/// Reason why an attempt failed.
#[derive(Debug)]
enum Trouble {
    Damaged { file: PathBuf, reason: String },
    Locked { root: PathBuf },
    Io { at: PathBuf, error: io::Error },
}

impl From<Trouble> for OpenError {
    fn from(trouble: Trouble) -> OpenError {
        match trouble {
            Trouble::Damaged { file, reason } => damaged(&file, &reason),
            Trouble::Locked { root } => OpenError::Locked { at: root },
            Trouble::Io { at, error } => io_error(&at, error),
        }
    }
}

/// Attempts to open the store on a thread that may panic or hang.
fn guarded(paths: &Paths, said: &Said, length: u64) -> Result<(Db, Position), Trouble> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let (owned, known) = (paths.clone(), said.clone());
    let attempt = move || {
        let result = catch_unwind(AssertUnwindSafe(|| attempt(&owned, &known)));
        let panicked = |_| Trouble::Damaged {
            file: owned.db.clone(),
            reason: "reading it has panicked".to_owned(),
        };
        // The caller may have timed out.
        let _ = sender.send(result.map_err(panicked).flatten());
    };
    let started = std::thread::Builder::new()
        .name(OPENING_THREAD.to_owned())
        .spawn(attempt);
    started.map_err(|error| Trouble::Io {
        at: paths.root.clone(),
        error,
    })?;
    let patience = PATIENCE + Duration::from_secs(length / BYTES_PER_SECOND);
    receiver.recv_timeout(patience).unwrap_or_else(|_| {
        Err(Trouble::Damaged {
            file: paths.db.clone(),
            reason: format!("it did not open in {} s", patience.as_secs()),
        })
    })
}

fn attempt(paths: &Paths, said: &Said) -> Result<(Db, Position), Trouble> {
    let trouble = |file: &Path, reason: String| Trouble::Damaged {
        file: file.to_owned(),
        reason,
    };
    let db = open_sled(paths)?;
    let position = match db
        .get(Key::meta().bytes())
        .map_err(|error| sled_trouble(paths, error))?
    {
        Some(value) => Position::decode(&value)
            .ok_or_else(|| trouble(&paths.db, "its position is damaged".into()))?,
        None if db.is_empty() && *said == Said::Nothing => create(paths, &db)?,
        None => {
            return Err(trouble(
                &paths.db,
                "it does not say which store it is".into(),
            ));
        }
    };
    match said {
        Said::Nothing | Said::Noise | Said::Newer if position.sequence > 0 || position.keys > 0 => {
            return Err(trouble(&paths.head, "it is missing".into()));
        }
        Said::Position(head) => {
            compare(&position, head).map_err(|reason| trouble(&paths.db, reason))?
        }
        Said::Nothing | Said::Noise | Said::Newer => {}
    }
    let Walk {
        position: found,
        damage,
        marks,
    } = check::walk(&db, &position).map_err(|error| sled_trouble(paths, error))?;
    if let Some(first) = damage.first() {
        return Err(trouble(&paths.db, first.clone()));
    }
    if found != position {
        let (records, expected) = (
            found.records.iter().sum::<u64>(),
            position.records.iter().sum::<u64>(),
        );
        return Err(trouble(
            &paths.db,
            format!("of {expected} records {records} were found, or some have older values"),
        ));
    }
    for mark in marks {
        db.remove(mark)
            .map_err(|error| sled_trouble(paths, error))?;
    }
    Ok((db, position))
}

fn compare(position: &Position, head: &Position) -> Result<(), String> {
    if position.store != head.store {
        return Err("it belongs to another store than the HEAD file beside it".to_owned());
    }
    if position.sequence < head.sequence {
        let (holds, acknowledged) = (position.sequence, head.sequence);
        return Err(format!(
            "it ends with change {holds}, but change {acknowledged} was acknowledged"
        ));
    }
    if position.sequence == head.sequence && position != head {
        return Err("it differs from what was acknowledged".to_owned());
    }
    Ok(())
}

fn open_sled(paths: &Paths) -> Result<Db, Trouble> {
    let config = ::sled::Config::new()
        .path(&paths.sled)
        .cache_capacity(CACHE)
        .flush_every_ms(Some(TIDY_EVERY_MS));
    for _ in 0..LOCK_WAITS {
        match config.open() {
            // The store holds the folder's own lock. Therefore sled's lock can only belong to a
            // store that this process has closed before.
            Err(::sled::Error::Io(error))
                if error.to_string().starts_with("could not acquire lock") =>
            {
                std::thread::sleep(LOCK_WAIT);
            }
            result => return result.map_err(|error| sled_trouble(paths, error)),
        }
    }
    Err(Trouble::Locked {
        root: paths.root.clone(),
    })
}

/// Creates a new store. `HEAD` is written later, so a start that is interrupted between the two
/// leaves an empty store.
fn create(paths: &Paths, db: &Db) -> Result<Position, Trouble> {
    let mut id = [0; 16];
    let failed = |error: io::Error| Trouble::Io {
        at: paths.root.clone(),
        error,
    };
    getrandom::fill(&mut id).map_err(|error| failed(io::Error::other(error.to_string())))?;
    let position = Position::start(id);
    db.insert(Key::meta().bytes(), position.encode())
        .map_err(|error| sled_trouble(paths, error))?;
    Ok(position)
}

fn sled_trouble(paths: &Paths, error: ::sled::Error) -> Trouble {
    match error {
        ::sled::Error::Io(error) if environment(&error) => Trouble::Io {
            at: paths.sled.clone(),
            error,
        },
        error => Trouble::Damaged {
            file: paths.db.clone(),
            reason: error.to_string(),
        },
    }
}

/// Returns true if an error concerns rights, space or the device, and not the content of the files.
fn environment(error: &io::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    matches!(
        error.kind(),
        PermissionDenied | QuotaExceeded | ReadOnlyFilesystem | StorageFull
    )
}

pub(super) fn damaged(file: &Path, reason: &str) -> OpenError {
    let repair = "nothing was started: move the data folder away and bring back a backup with `toolhost import FILE`, or \
                  begin with an empty one";
    OpenError::Damaged {
        file: file.to_owned(),
        reason: reason.to_owned(),
        repair: repair.to_owned(),
    }
}

fn newer(head: &Path) -> OpenError {
    let repair = "nothing was changed: start that version again, or bring back a backup that this one has made, with \
                  `toolhost import FILE`";
    let reason = "a newer version of this program has written the store".to_owned();
    OpenError::Damaged {
        file: head.to_owned(),
        reason,
        repair: repair.to_owned(),
    }
}

pub(super) fn io_error(at: &Path, error: io::Error) -> OpenError {
    OpenError::Io {
        at: at.to_owned(),
        error,
    }
}
