//! Stores compiled components on disk.
//!
//! Problem: a compiled component is machine code that this process runs, so loading a file of
//! another author would defeat the sandbox.
//!
//! Guarantee: only files that this service wrote are loaded. A file that fails verification is
//! deleted and compiled again.
//!
//! The guarantee rests on a keyed seal at the end of each file, over its name and its bytes. The
//! folder and the files are private to this user. A file is opened once, so the verified bytes are
//! the mapped bytes. The guarantee does not rest on the integrity of the folder. A process with the
//! rights of this user could still change a file while it is mapped.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    os::{
        fd::AsRawFd,
        unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use hmac::{Hmac, KeyInit, Mac};
use rustix::fs::OFlags;
use sha2::Sha256;
use wasmtime::{Engine, Module, component::Component};
use zeroize::Zeroizing;

use crate::Digest;

const SEAL_BYTES: usize = 32;
/// Prefix of the name of a file being written.
const WRITING_PREFIX: &str = ".writing-";
/// Age from which such a file was left by a process that ended. Writing one takes seconds, and other
/// processes may write to the same folder.
const INTERRUPTED_WRITE_AGE: Duration = Duration::from_secs(60 * 60);
/// Domain separation for the seal, so that the same key can serve other purposes.
const SEAL_CONTEXT: &[u8] = b"compiled component\0";

/// Folder of compiled components.
pub(crate) struct Cache {
    folder: PathBuf,
    key: Zeroizing<[u8; 32]>,
    /// Part of each file name, because files of other compilers cannot be used.
    engine_hash: String,
}

impl Cache {
    /// Opens the folder, creates it if it is missing, and removes the files of other compilers.
    pub(crate) fn open(folder: &Path, key: [u8; 32], engine_hash: &str) -> io::Result<Self> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let seen = fs::symlink_metadata(folder)?;
        if !seen.is_dir() || seen.uid() != rustix::process::geteuid().as_raw() {
            let text = format!("`{}` is not a folder of this user", folder.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        if seen.mode() & 0o077 != 0 {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
        }
        let cache = Self {
            folder: folder.canonicalize()?,
            key: Zeroizing::new(key),
            engine_hash: engine_hash.to_owned(),
        };
        cache.clear_foreign()?;
        Ok(cache)
    }

    /// Returns the size of the compiled form of a component, or `None` if the file does not exist.
    /// The file is not verified.
    pub(crate) fn size(&self, digest: &Digest) -> Option<u64> {
        let seen = fs::symlink_metadata(self.path(digest)).ok()?;
        seen.len()
            .checked_sub(SEAL_BYTES as u64)
            .filter(|_| seen.is_file())
    }

    /// Seals and stores a compiled component.
    pub(crate) fn put(&self, digest: &Digest, artifact: &[u8]) -> io::Result<()> {
        let mut file = tempfile::Builder::new()
            .prefix(WRITING_PREFIX)
            .tempfile_in(&self.folder)?;
        let mut seal = self.seal(digest);
        seal.update(artifact);
        file.write_all(artifact)?;
        file.write_all(&seal.finalize().into_bytes())?;
        // The file is not synced: a file torn by a crash fails verification and is compiled again.
        file.persist(self.path(digest))
            .map_err(|failed| failed.error)?;
        Ok(())
    }

    /// Removes a compiled component.
    pub(crate) fn remove(&self, digest: &Digest) -> io::Result<()> {
        fs::remove_file(self.path(digest))
    }

    /// Loads a compiled component. Returns `None` if no file verifies.
    pub(crate) fn load(&self, engine: &Engine, digest: &Digest) -> io::Result<Option<Component>> {
        self.load_with(digest, |file| map(engine, file))
    }

    /// Loads a compiled module. Returns `None` if no file verifies.
    pub(crate) fn load_module(
        &self,
        engine: &Engine,
        digest: &Digest,
    ) -> io::Result<Option<Module>> {
        self.load_with(digest, |file| map_module(engine, file))
    }

    fn load_with<T>(
        &self,
        digest: &Digest,
        map: impl FnOnce(&File) -> wasmtime::Result<T>,
    ) -> io::Result<Option<T>> {
        let path = self.path(digest);
        let file = match OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(&path)
        {
            Ok(file) => file,
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(failed)
                if failed.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) =>
            {
                return self.discard(&path, "it is a link");
            }
            Err(failed) => return Err(failed),
        };
        if !self.verifies(&file, digest)? {
            return self.discard(&path, "its seal is broken");
        }
        match map(&file) {
            Ok(loaded) => Ok(Some(loaded)),
            Err(cause) => self.discard(&path, &format!("it cannot be loaded: {cause:#}")),
        }
    }

    fn verifies(&self, mut file: &File, digest: &Digest) -> io::Result<bool> {
        let seen = file.metadata()?;
        let private = seen.uid() == rustix::process::geteuid().as_raw() && seen.mode() & 0o077 == 0;
        let Some(mut left) = seen
            .len()
            .checked_sub(SEAL_BYTES as u64)
            .filter(|_| seen.is_file() && private)
        else {
            return Ok(false);
        };
        let mut seal = self.seal(digest);
        let mut piece = vec![0; 128 << 10];
        while left > 0 {
            let length = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            file.read_exact(&mut piece[..length])?;
            seal.update(&piece[..length]);
            left -= length as u64;
        }
        let mut written = [0; SEAL_BYTES];
        file.read_exact(&mut written)?;
        Ok(seal.verify_slice(&written).is_ok())
    }

    fn seal(&self, digest: &Digest) -> Hmac<Sha256> {
        let mut seal = <Hmac<Sha256> as KeyInit>::new_from_slice(&*self.key)
            .expect("a key of any length is fine");
        seal.update(SEAL_CONTEXT);
        seal.update(digest.as_bytes());
        seal.update(self.engine_hash.as_bytes());
        seal
    }

    fn discard<T>(&self, path: &Path, why: &str) -> io::Result<Option<T>> {
        tracing::warn!(file = %path.display(), why, "deleted a compiled component; it is compiled again");
        fs::remove_file(path)?;
        Ok(None)
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.folder.join(format!("{digest}-{}", self.engine_hash))
    }

    /// Removes the files of other compilers and of interrupted writes.
    fn clear_foreign(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let ours = name.split_once('-').is_some_and(|(digest, hash)| {
                digest.parse::<Digest>().is_ok()
                    && hash.len() == self.engine_hash.len()
                    && hash != self.engine_hash
            });
            if ours || name.starts_with(WRITING_PREFIX) && is_interrupted(&entry) {
                match fs::remove_file(entry.path()) {
                    // Another process removed it, or has finished writing.
                    Err(missing) if missing.kind() == io::ErrorKind::NotFound => {}
                    removed => removed?,
                }
            }
        }
        Ok(())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "files have times of the real clock"
)]
fn is_interrupted(file: &fs::DirEntry) -> bool {
    let written = file.metadata().and_then(|seen| seen.modified());
    written
        .ok()
        .and_then(|at| SystemTime::now().duration_since(at).ok())
        .is_some_and(|age| age > INTERRUPTED_WRITE_AGE)
}

/// Maps the verified file through its descriptor, because its name may refer to another file by
/// now.
#[expect(
    unsafe_code,
    reason = "loading machine code that this process compiled, sealed and has just verified"
)]
fn map(engine: &Engine, file: &File) -> wasmtime::Result<Component> {
    let path = path_of(file);
    // SAFETY: `Engine::precompile_component` produced these bytes for this exact engine
    // configuration. The seal over them proves it, and only this service can make that seal. The
    // file is private to this user and is never written again.
    unsafe { Component::deserialize_file(engine, path) }
}

/// Maps a verified module as [`map`] does.
#[expect(
    unsafe_code,
    reason = "loading machine code that this process compiled, sealed and has just verified"
)]
fn map_module(engine: &Engine, file: &File) -> wasmtime::Result<Module> {
    let path = path_of(file);
    // SAFETY: as in `map`, with `Engine::precompile_module`. A file of the other kind is refused.
    unsafe { Module::deserialize_file(engine, path) }
}

fn path_of(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine;

    const EMPTY_COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

    fn kept() -> (tempfile::TempDir, Engine, Cache, Digest) {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::new(&engine::config()).unwrap();
        let cache = Cache::open(&folder.path().join("cache"), [7; 32], "0123456789abcdef").unwrap();
        let digest = Digest::compute(EMPTY_COMPONENT);
        keep(&engine, &cache, &digest);
        (folder, engine, cache, digest)
    }

    fn keep(engine: &Engine, cache: &Cache, digest: &Digest) {
        let artifact = engine.precompile_component(EMPTY_COMPONENT).unwrap();
        cache.put(digest, &artifact).unwrap();
    }

    #[test]
    fn what_was_kept_is_loaded_and_private() {
        let (_folder, engine, cache, digest) = kept();
        assert!(cache.load(&engine, &digest).unwrap().is_some());
        assert_eq!(
            fs::metadata(cache.path(&digest)).unwrap().mode() & 0o777,
            0o600
        );
        assert_eq!(fs::metadata(&cache.folder).unwrap().mode() & 0o777, 0o700);
        assert!(
            cache
                .load(&engine, &Digest::compute(b"another"))
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn changed_file_is_deleted_and_not_loaded() {
        let (_folder, engine, cache, digest) = kept();
        let path = cache.path(&digest);
        let good = fs::read(&path).unwrap();
        let seal = good.len() - SEAL_BYTES;
        let changed = [0, 64, good.len() / 2, seal, good.len() - 1].map(|at| {
            let mut bad = good.clone();
            bad[at] ^= 1;
            bad
        });
        let cut = [0, 10, SEAL_BYTES, good.len() - 1].map(|length| good[..length].to_vec());
        for (number, bad) in changed.iter().chain(&cut).enumerate() {
            fs::write(&path, bad).unwrap();
            let loaded = cache.load(&engine, &digest).unwrap();
            assert!(loaded.is_none() && !path.exists(), "change {number}");
            cache.put(&digest, &good[..seal]).unwrap();
        }
        assert!(cache.load(&engine, &digest).unwrap().is_some());
    }

    #[test]
    fn foreign_seal_or_wrong_component_is_not_loaded() {
        let (folder, engine, cache, digest) = kept();
        let other = Digest::compute(b"another");
        fs::rename(cache.path(&digest), cache.path(&other)).unwrap();
        assert!(cache.load(&engine, &other).unwrap().is_none());
        keep(&engine, &cache, &digest);
        let stranger =
            Cache::open(&folder.path().join("cache"), [8; 32], "0123456789abcdef").unwrap();
        assert!(stranger.load(&engine, &digest).unwrap().is_none());
    }

    #[test]
    fn links_and_writable_files_are_not_loaded() {
        let (folder, engine, cache, digest) = kept();
        let path = cache.path(&digest);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(cache.load(&engine, &digest).unwrap().is_none());
        keep(&engine, &cache, &digest);
        let elsewhere = folder.path().join("elsewhere");
        fs::rename(&path, &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        assert!(cache.load(&engine, &digest).unwrap().is_none());
        assert!(elsewhere.exists());
    }

    #[test]
    fn files_of_others_and_interrupted_writes_are_removed() {
        let (folder, _engine, cache, digest) = kept();
        let precious = cache.folder.join("precious-file");
        fs::write(&precious, "x").unwrap();
        let [written, interrupted] = [".writing-a", ".writing-b"].map(|name| {
            let path = cache.folder.join(name);
            fs::write(&path, "x").unwrap();
            path
        });
        let file = File::options().write(true).open(&interrupted).unwrap();
        let old = file.metadata().unwrap().modified().unwrap() - 2 * INTERRUPTED_WRITE_AGE;
        file.set_modified(old).unwrap();
        Cache::open(&folder.path().join("cache"), [7; 32], "ffffffffffffffff").unwrap();
        assert!(precious.exists() && written.exists() && !interrupted.exists());
        assert!(cache.size(&digest).is_none());
    }
}
