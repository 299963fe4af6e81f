//! Durability of sled's files and of `HEAD`.
//!
//! Sled's own flush hands the log to the kernel. On Linux it syncs neither the size of a grown file
//! nor the drive's cache. Therefore the database file is synced through a separate handle. `HEAD`
//! is written last and is never ahead of what is synced.

use super::head::Head;
use super::position::Position;
use ::sled::Db;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The files of an open store.
pub(super) struct Disk {
    db: Db,
    file: File,
    spilled: PathBuf,
    synced: HashSet<OsString>,
    head: Head,
}

impl Disk {
    /// Makes everything that sled holds durable, and starts `HEAD` with the current position.
    pub(super) fn open(
        db: Db,
        folder: &Path,
        head: &Path,
        position: &Position,
    ) -> io::Result<Disk> {
        let file = File::open(folder.join("db"))?;
        let spilled = folder.join("blobs");
        db.flush().map_err(io::Error::from)?;
        file.sync_all()?;
        File::open(folder)?.sync_all()?;
        let head = Head::begin(head, position)?;
        Ok(Disk {
            db,
            file,
            spilled,
            synced: HashSet::new(),
            head,
        })
    }

    /// Makes everything up to a position durable.
    pub(super) fn sync(&mut self, position: &Position) -> io::Result<()> {
        self.db.flush().map_err(io::Error::from)?;
        self.file.sync_data()?;
        self.sync_spilled()?;
        self.head.write(position)
    }

    /// Syncs the files that sled creates for pages above 128 KiB and never writes to again. Values
    /// are kept too small for such pages, so the folder is empty in practice.
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
