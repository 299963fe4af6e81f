//! The archive file: writing, and complete reading.

use std::{
    fmt::Display,
    fs::File,
    io::{Read, Write},
    path::{Path, PathBuf},
};

use zeroize::Zeroizing;

use super::{
    ArchiveError, Counts, Lock, Unlock,
    frame::{
        ARCHIVE_FORMAT, BLOB_FRAME, END_FRAME, Entry, Format, Frame, RECORD_FRAME, START_FRAME,
        Start,
    },
};
use crate::{
    COLLECTIONS,
    core::vault::{KeyFile, KeyVerifier, sync_folder},
};

/// Writes a new archive of the frames that [`export_frames`](super::export_frames) gives. The file
/// is durable and readable by its owner only. This function blocks. Fails if the file exists
/// already or cannot be written, if the frames end early, or if the key does not open the exported
/// data keys, because such a backup would be useless. No file is left in these cases.
pub fn pack<R: Read>(
    from: impl FnOnce() -> Result<R, String>,
    file: &Path,
    lock: &Lock,
    key: &KeyFile,
    progress: &mut dyn FnMut(Counts),
) -> Result<Counts, ArchiveError> {
    let failed = |cause| ArchiveError::Io {
        operation: "write",
        file: file.to_owned(),
        cause,
    };
    if file.exists() {
        return Err(ArchiveError::Exists(file.to_owned()));
    }
    // Two exports to the same file must not write into one another, so each has a name of its own
    // until it is complete. An incomplete file is removed when it is dropped.
    let partial = tempfile::Builder::new()
        .prefix(file.file_name().unwrap_or_default())
        .suffix(".partial")
        .tempfile_in(file.parent().unwrap_or(file))
        .map_err(failed)?;
    let opened = partial.reopen().map_err(failed)?;
    let written = write(from, opened, lock, key, progress).and_then(|counts| {
        let moved = partial.persist(file).map_err(std::io::Error::from);
        let synced = moved.and_then(|_| sync_folder(file));
        synced.map(|()| counts).map_err(PackError::Io)
    });
    written.map_err(|error| match error {
        PackError::Frames(reason) => ArchiveError::Incomplete(reason),
        PackError::OtherKey => ArchiveError::OtherKey,
        PackError::Io(cause) => failed(cause),
    })
}

enum PackError {
    Frames(String),
    OtherKey,
    Io(std::io::Error),
}

fn write<R: Read>(
    from: impl FnOnce() -> Result<R, String>,
    file: File,
    lock: &Lock,
    key: &KeyFile,
    progress: &mut dyn FnMut(Counts),
) -> Result<Counts, PackError> {
    let mut sealed = lock.lock(file).map_err(PackError::Io)?;
    let start = Start {
        format: ARCHIVE_FORMAT,
        made_by: env!("CARGO_PKG_VERSION").into(),
        key: key.render().to_string(),
    };
    let start =
        Frame::json(START_FRAME, &start).map_err(|cause| PackError::Frames(cause.to_string()))?;
    sealed.write_all(&start.encode()).map_err(PackError::Io)?;
    // The export starts only now, because deriving a key from a passphrase takes a second, and
    // writers wait during the export.
    let mut from = from().map_err(PackError::Frames)?;
    let verifier = KeyVerifier::new(key);
    let mut counts = Counts::default();
    loop {
        let frame = Frame::read(&mut from).map_err(|cause| PackError::Frames(cause.to_string()))?;
        if frame.kind == RECORD_FRAME {
            let entry = serde_json::from_slice::<Entry>(&frame.content);
            let entry = entry.map_err(|cause| PackError::Frames(cause.to_string()))?;
            let collection = entry.collection;
            if !verifier.can_open(collection, &entry.into_row()) {
                return Err(PackError::OtherKey);
            }
        }
        sealed.write_all(&frame.encode()).map_err(PackError::Io)?;
        if frame.kind == END_FRAME {
            break;
        }
        counts.add(&frame);
        progress(counts);
    }
    let finished = sealed.finish().and_then(|buffer| {
        let file = buffer.into_inner().map_err(std::io::Error::from)?;
        file.sync_all()
    });
    finished.map(|()| counts).map_err(PackError::Io)
}

/// An archive that was read to its end and is complete.
pub struct CheckedArchive {
    file: PathBuf,
    /// The content of the archive.
    pub counts: Counts,
    /// The master key of the content.
    pub key: KeyFile,
    /// The version of toolhost that made the archive.
    pub made_by: String,
}

/// Reads an archive to its end and returns its content. This function blocks. Fails if the archive
/// cannot be decrypted, is damaged or truncated, or holds data that this version does not know.
pub fn check(
    file: &Path,
    unlock: &Unlock,
    progress: &mut dyn FnMut(Counts),
) -> Result<CheckedArchive, ArchiveError> {
    let mut frames = Frames::open(file, unlock)?;
    let (key, made_by) = frames.start()?;
    let verifier = KeyVerifier::new(&key);
    let mut counts = Counts::default();
    loop {
        let frame = frames.next()?;
        match frame.kind {
            RECORD_FRAME => frames.check_record(&frame, &verifier)?,
            BLOB_FRAME if frame.as_blob().is_some() => {}
            BLOB_FRAME => return Err(frames.damaged(&"a blob cannot be read")),
            END_FRAME => {
                frames.check_end(&frame, counts)?;
                return Ok(CheckedArchive {
                    file: file.to_owned(),
                    counts,
                    key,
                    made_by,
                });
            }
            _ => return Err(frames.damaged(&"it contains a second start frame")),
        }
        counts.add(&frame);
        progress(counts);
    }
}

impl CheckedArchive {
    /// Reads the records and blobs again. Fails if the file cannot be decrypted.
    pub(super) fn frames(&self, unlock: &Unlock) -> Result<Frames, ArchiveError> {
        let mut frames = Frames::open(&self.file, unlock)?;
        frames.next()?;
        Ok(frames)
    }
}

/// The frames of an opened archive.
pub(super) struct Frames {
    file: PathBuf,
    from: Box<dyn Read + Send>,
}

impl Frames {
    fn open(file: &Path, unlock: &Unlock) -> Result<Self, ArchiveError> {
        let opened = File::open(file).map_err(|cause| ArchiveError::Io {
            operation: "read",
            file: file.to_owned(),
            cause,
        })?;
        Ok(Self {
            file: file.to_owned(),
            from: Box::new(unlock.unlock(file, opened)?),
        })
    }

    pub(super) fn next(&mut self) -> Result<Frame, ArchiveError> {
        Frame::read(&mut self.from).map_err(|cause| self.damaged(&cause))
    }

    fn is_at_end(&mut self) -> Result<bool, ArchiveError> {
        let read = self.from.read(&mut [0]);
        read.map(|count| count == 0)
            .map_err(|cause| self.damaged(&cause))
    }

    /// Reads the start frame. Returns the master key, and the version that made the archive.
    fn start(&mut self) -> Result<(KeyFile, String), ArchiveError> {
        let start = self.next()?;
        let unreadable = |_| self.damaged(&"the start frame cannot be read");
        let Format { format } = serde_json::from_slice(&start.content).map_err(unreadable)?;
        if format != ARCHIVE_FORMAT {
            return Err(self.newer(format!(
                "it has format {format}, and this version reads format {ARCHIVE_FORMAT}"
            )));
        }
        let start: Start = serde_json::from_slice(&start.content).map_err(unreadable)?;
        let text = Zeroizing::new(start.key);
        let key = KeyFile::parse(&text);
        let key = key.ok_or_else(|| self.damaged(&"the start frame contains no master key"))?;
        Ok((key, start.made_by))
    }

    /// Checks that this version knows the collection of a record, and that the master key opens it
    /// if it is a data key.
    fn check_record(&self, frame: &Frame, verifier: &KeyVerifier) -> Result<(), ArchiveError> {
        let entry = serde_json::from_slice::<Entry>(&frame.content);
        let entry = entry.map_err(|_| self.damaged(&"a record cannot be read"))?;
        let collection = entry.collection;
        if COLLECTIONS.iter().all(|known| known.name != collection) {
            return Err(self.newer(format!(
                "it contains records of the unknown collection {collection}"
            )));
        }
        if !verifier.can_open(collection, &entry.into_row()) {
            return Err(self.damaged(&"its master key does not open its data keys"));
        }
        Ok(())
    }

    /// Checks that the end frame has the counts of the frames before it, and that no frame follows.
    fn check_end(&mut self, frame: &Frame, counts: Counts) -> Result<(), ArchiveError> {
        let expected: Counts = serde_json::from_slice(&frame.content)
            .map_err(|_| self.damaged(&"the end frame cannot be read"))?;
        if counts != expected || !self.is_at_end()? {
            return Err(self.damaged(&"its content does not match the end frame"));
        }
        Ok(())
    }

    fn damaged(&self, reason: &dyn Display) -> ArchiveError {
        ArchiveError::Damaged {
            file: self.file.clone(),
            reason: reason.to_string(),
        }
    }

    fn newer(&self, reason: String) -> ArchiveError {
        ArchiveError::Newer {
            file: self.file.clone(),
            reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_format_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("newer.age");
        let start = Frame::json(
            START_FRAME,
            &serde_json::json!({ "format": ARCHIVE_FORMAT + 1, "else": "unknown" }),
        )
        .unwrap();
        let passphrase = "four words that rhyme";
        let mut locked = Lock::passphrase(passphrase)
            .unwrap()
            .lock(File::create(&file).unwrap())
            .unwrap();
        locked.write_all(&start.encode()).unwrap();
        locked.finish().unwrap().into_inner().unwrap();
        let refused = check(&file, &Unlock::passphrase(passphrase), &mut |_| {})
            .map(drop)
            .unwrap_err();
        assert!(matches!(refused, ArchiveError::Newer { .. }), "{refused}");
        assert!(
            refused.to_string().contains("format 2") && refused.to_string().contains("newer one"),
            "{refused}"
        );
    }
}
