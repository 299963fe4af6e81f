//! Blobs in a local folder.
//!
//! The bytes are written to a temporary file, synced and renamed to the key; then the folder is
//! synced. Every file ends in a trailer with the length and a checksum. `object_store`'s local
//! store is not used here because it syncs neither the file nor the folder and returns damaged
//! bytes without an error.

use super::{Blobs, TOO_LARGE, check};
use crate::Error;
use crate::space::Space;
use async_trait::async_trait;
use bytes::Bytes;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Blobs as files of one folder.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
    space: Space,
}

/// Length of the trailer, in bytes: length (8), CRC-32 (4) and the mark (4).
const TRAILER_BYTES: usize = 16;
/// Size from which a blob is written by a thread of lower priority, in bytes.
const MIN_BACKGROUND_WRITE_BYTES: usize = 1 << 20;
/// Niceness of such a thread, which lowers its priority when processors are scarce.
const THREAD_NICENESS: i32 = 10;
/// Reason for which a file without the right trailer counts as damaged.
const CHECKSUM_MISMATCH: &str = "its checksum does not match";
/// Mark at the end of every complete file.
const TRAILER_MAGIC: [u8; 4] = *b"blob";

/// Counter for temporary names. These start with a dot, which no key may.
static NEXT_TEMPORARY: AtomicU64 = AtomicU64::new(0);

impl Folder {
    /// Opens the folder, creating it if it is missing, and deletes the temporary files of
    /// interrupted puts.
    pub fn open(root: &Path) -> std::io::Result<Folder> {
        fs::create_dir_all(root)?;
        for entry in fs::read_dir(root)? {
            let entry = entry?;
            if entry.file_name().as_encoded_bytes().starts_with(b".put-") {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(Folder {
            root: root.to_owned(),
            space: Space::new(root),
        })
    }

    fn path(&self, key: &str) -> Result<PathBuf, Error> {
        check(key)?;
        Ok(self.root.join(key))
    }
}

#[async_trait]
impl Blobs for Folder {
    async fn put(&self, key: &str, bytes: Bytes) -> Result<(), Error> {
        let root = self.root.clone();
        let path = self.path(key)?;
        if !self.space.has_room(bytes.len() as u64, false) {
            return Err(Error::Full);
        }
        if bytes.len() < MIN_BACKGROUND_WRITE_BYTES {
            return blocking(path.clone(), move || write(&root, &path, &bytes)).await;
        }
        let (done, result) = tokio::sync::oneshot::channel();
        let put = path.clone();
        std::thread::Builder::new()
            .name("store-put".to_owned())
            .spawn(move || {
                // On Linux this is the priority of the calling thread. If the process may not
                // change it, the write keeps the normal priority.
                let _ = rustix::process::setpriority_process(None, THREAD_NICENESS);
                // The receiver is gone if the request has ended.
                let _ = done.send(write(&root, &path, &bytes));
            })
            .map_err(|error| unavailable(&put, &error))?;
        let result = result.await.map_err(std::io::Error::other).flatten();
        result.map_err(|error| unavailable(&put, &error))
    }

    async fn get_at_most(&self, key: &str, max_bytes: u64) -> Result<Option<Bytes>, Error> {
        let path = self.path(key)?;
        blocking(path.clone(), move || read(&path, max_bytes))
            .await?
            .map(Contents::into_bytes)
            .transpose()
    }

    async fn size(&self, key: &str) -> Result<Option<u64>, Error> {
        let path = self.path(key)?;
        blocking(path.clone(), move || match fs::metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            found => Ok(Some(found?.len().saturating_sub(TRAILER_BYTES as u64))),
        })
        .await
    }

    async fn remove(&self, key: &str) -> Result<(), Error> {
        let root = self.root.clone();
        let path = self.path(key)?;
        blocking(path.clone(), move || match fs::remove_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            result => result.and_then(|()| File::open(&root)?.sync_all()),
        })
        .await
    }

    async fn keys(&self) -> Result<Vec<String>, Error> {
        let root = self.root.clone();
        blocking(self.root.clone(), move || names(&root)).await
    }
}

async fn blocking<T: Send + 'static>(
    path: PathBuf,
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, Error> {
    let result = tokio::task::spawn_blocking(work).await;
    result
        .map_err(|error| std::io::Error::other(error.to_string()))
        .flatten()
        .map_err(|error| unavailable(&path, &error))
}

fn unavailable(path: &Path, error: &std::io::Error) -> Error {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Error::Full,
        _ => Error::Unavailable(format!("cannot reach blob {}: {error}", path.display())),
    }
}

fn write(root: &Path, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let temporary = root.join(format!(
        ".put-{}",
        NEXT_TEMPORARY.fetch_add(1, Ordering::Relaxed)
    ));
    let written = File::create(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        file.write_all(&trailer(bytes))?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        File::open(root)?.sync_all()
    });
    if written.is_err() {
        // The put has already failed. A file that stays is deleted at the next start.
        let _ = fs::remove_file(&temporary);
    }
    written
}

enum Contents {
    Whole(Bytes),
    Damaged(PathBuf, &'static str),
}

impl Contents {
    fn into_bytes(self) -> Result<Bytes, Error> {
        match self {
            Contents::Whole(bytes) => Ok(bytes),
            Contents::Damaged(path, reason) => Err(Error::Damaged {
                what: format!("blob {}", path.display()),
                reason: reason.into(),
            }),
        }
    }
}

fn read(path: &Path, max_bytes: u64) -> std::io::Result<Option<Contents>> {
    let damaged = |reason| Ok(Some(Contents::Damaged(path.to_owned(), reason)));
    let mut file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    if file.metadata()?.len() > max_bytes.saturating_add(TRAILER_BYTES as u64) {
        return damaged(TOO_LARGE);
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let Some(length) = bytes.len().checked_sub(TRAILER_BYTES) else {
        return damaged(CHECKSUM_MISMATCH);
    };
    if trailer(&bytes[..length]) != bytes[length..] {
        return damaged(CHECKSUM_MISMATCH);
    }
    Ok(Some(Contents::Whole(Bytes::from(bytes).slice(..length))))
}

fn names(root: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !name.starts_with('.') {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn trailer(bytes: &[u8]) -> [u8; TRAILER_BYTES] {
    let mut trailer = [0; TRAILER_BYTES];
    trailer[..8].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    trailer[8..12].copy_from_slice(&crc32fast::hash(bytes).to_le_bytes());
    trailer[12..].copy_from_slice(&TRAILER_MAGIC);
    trailer
}
