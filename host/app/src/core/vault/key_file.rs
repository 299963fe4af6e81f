//! The file that holds the master key: one line, `toolhost-key-1 <id> <64 hexadecimal digits>`.
//! While the key is being replaced, a second line holds the previous key.
//!
//! A key file must be a regular file that only its owner can read, and the owner must be the user
//! who runs the server. A key that other users can read protects nothing.

use std::{
    fs::{File, Metadata, OpenOptions},
    io::{Read, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::process::geteuid;
use zeroize::Zeroizing;

use crate::core::ids;

const LINE_HEADER: &str = "toolhost-key-1";

/// The content of a key file.
#[derive(Clone)]
pub struct KeyFile {
    /// The key that seals new values.
    pub(super) current: MasterKey,
    /// The replaced key. It still opens data keys until all of them are sealed by the current key.
    pub(super) previous: Option<MasterKey>,
}

#[derive(Clone)]
pub(super) struct MasterKey {
    /// The id of the key, written into every value it seals.
    pub(super) id: String,
    pub(super) key: Zeroizing<[u8; 32]>,
}

/// The reason why a key file is not used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The file does not exist.
    #[error("the key file {} does not exist: restore it, because the stored secrets cannot be read without it", .0.display())]
    Missing(PathBuf),
    /// The file is readable by other users, is not a regular file, or belongs to another user.
    #[error("the key file {} {problem}; {hint}", path.display())]
    Unsafe {
        /// The path of the file.
        path: PathBuf,
        /// The problem found.
        problem: &'static str,
        /// The instruction for the operator.
        hint: &'static str,
    },
    /// The file does not hold a key.
    #[error("the key file {} contains no key: restore the file that the server created", .0.display())]
    Malformed(PathBuf),
    /// The file holds a different key than the one being restored.
    #[error("the key file {} contains another key than the backup; nothing was changed: move the file away, or set `key_file` to another path", .0.display())]
    OtherKey(PathBuf),
    /// The operating system refused the access.
    #[error("cannot {operation} the key file {}: {cause}", path.display())]
    Io {
        /// The operation: `read` or `write`.
        operation: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        cause: std::io::Error,
    },
}

impl KeyFile {
    /// Reads a key file. Fails if the file does not exist, is not safe, or does not hold a key.
    pub fn read(path: &Path) -> Result<Self, KeyFileError> {
        let io = |cause: std::io::Error| match cause.kind() {
            std::io::ErrorKind::NotFound => KeyFileError::Missing(path.to_owned()),
            _ => io_error("read", path)(cause),
        };
        let found = std::fs::symlink_metadata(path).map_err(io)?;
        if let Some((problem, hint)) = access_problem(&found) {
            let path = path.to_owned();
            return Err(KeyFileError::Unsafe {
                path,
                problem,
                hint,
            });
        }
        let mut text = Zeroizing::new(String::new());
        let file = File::open(path).map_err(io)?;
        file.take(1024).read_to_string(&mut text).map_err(io)?;
        Self::parse(&text).ok_or_else(|| KeyFileError::Malformed(path.to_owned()))
    }

    /// Creates a key file with a new key. Fails if the file exists already or the operating system
    /// refuses.
    pub fn create(path: &Path) -> Result<Self, KeyFileError> {
        let created = Self {
            current: MasterKey::random(),
            previous: None,
        };
        created.write_new(path)?;
        Ok(created)
    }

    /// Creates a key file with this key, or accepts an existing file that holds the same key. Fails
    /// if the file holds another key or the operating system refuses.
    pub fn restore(&self, path: &Path) -> Result<(), KeyFileError> {
        match Self::read(path) {
            Ok(existing) if existing.render() == self.render() => Ok(()),
            Ok(_) => Err(KeyFileError::OtherKey(path.to_owned())),
            Err(KeyFileError::Missing(_)) => self.write_new(path),
            Err(cause) => Err(cause),
        }
    }

    /// Returns a key file with a new key and this file's key as the previous one. Returns this file
    /// unchanged if it already holds a previous key.
    pub(super) fn with_new_key(self) -> Self {
        match self.previous {
            Some(_) => self,
            None => Self {
                current: MasterKey::random(),
                previous: Some(self.current),
            },
        }
    }

    /// Returns the key file without the previous key.
    pub(super) fn without_previous(self) -> Self {
        Self {
            previous: None,
            ..self
        }
    }

    /// Replaces the key file at `path` atomically and durably.
    pub(super) fn replace(&self, path: &Path) -> Result<(), KeyFileError> {
        let io = io_error("write", path);
        let mut new = path.as_os_str().to_owned();
        new.push(".new");
        let new = PathBuf::from(new);
        // A file left by a killed process was never used.
        match std::fs::remove_file(&new) {
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => return Err(io(cause)),
            _ => self.write_new(&new)?,
        }
        std::fs::rename(&new, path)
            .and_then(|()| sync_folder(path))
            .map_err(io)
    }

    fn write_new(&self, path: &Path) -> Result<(), KeyFileError> {
        self.try_write_new(path).map_err(io_error("write", path))
    }

    fn try_write_new(&self, path: &Path) -> std::io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        file.write_all(self.render().as_bytes())?;
        file.sync_all()?;
        sync_folder(path)
    }

    pub(crate) fn render(&self) -> Zeroizing<String> {
        let previous = self
            .previous
            .as_ref()
            .map(MasterKey::line)
            .unwrap_or_default();
        Zeroizing::new([self.current.line().as_str(), &previous].concat())
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().map(MasterKey::parse);
        let file = Self {
            current: lines.next()??,
            previous: lines.next().map_or(Some(None), |key| key.map(Some))?,
        };
        lines.next().is_none().then_some(file)
    }
}

impl MasterKey {
    fn line(&self) -> Zeroizing<String> {
        let digits = Zeroizing::new(hex::encode(self.key.as_slice()));
        Zeroizing::new(format!("{LINE_HEADER} {} {}\n", self.id, digits.as_str()))
    }

    fn random() -> Self {
        Self {
            id: format!("mk_{}", ids::random_text(8)),
            key: Zeroizing::new(ids::random()),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.split_ascii_whitespace();
        let header = parts.next()?;
        let id = parts.next()?;
        let digits = parts.next()?;
        let mut key = Zeroizing::new([0; 32]);
        hex::decode_to_slice(digits, key.as_mut_slice()).ok()?;
        let valid = header == LINE_HEADER && parts.next().is_none() && *key != [0; 32];
        valid.then(|| Self {
            id: id.to_owned(),
            key,
        })
    }
}

/// Syncs the folder of a file. The file's name is part of the folder's content and must be as
/// durable as the file.
pub(crate) fn sync_folder(path: &Path) -> std::io::Result<()> {
    let folder = path.parent().filter(|own| !own.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn io_error(operation: &'static str, path: &Path) -> impl Fn(std::io::Error) -> KeyFileError {
    move |cause| KeyFileError::Io {
        operation,
        path: path.to_owned(),
        cause,
    }
}

/// Returns the reason why a key file is not safe, and what to do.
fn access_problem(file: &Metadata) -> Option<(&'static str, &'static str)> {
    if !file.file_type().is_file() {
        let hint = "replace the link or folder with the file";
        Some(("is not a regular file", hint))
    } else if file.mode() & 0o177 != 0 {
        let problem = "can be read or changed by other users";
        Some((problem, "run `chmod 600` on it"))
    } else if file.uid() != geteuid().as_raw() {
        let hint = "run the server and its commands as the owner of the file";
        Some(("belongs to another user", hint))
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
