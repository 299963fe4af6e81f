//! A disk so small that a test can fill it.

use std::{fs::File, io::Write, path::PathBuf, process::Command};

use crate::{host::Setup, room::Room};

/// A file system in memory that only programs in its [`Room`] see.
#[derive(Debug)]
pub struct SmallDisk {
    room: Room,
    /// The data directory, seen from outside.
    root: PathBuf,
}

impl SmallDisk {
    /// One of so many MiB, where the data directory is; none where the system lets this user make no namespace, as in some
    /// containers.
    ///
    /// # Panics
    /// When there is a data directory already.
    #[must_use]
    pub fn below(setup: &Setup, mib: usize) -> Option<Self> {
        let data = setup.data();
        std::fs::create_dir(&data).expect("the data directory is not there yet");
        let script = format!("mount -t tmpfs -o size={mib}m,mode=700 tmpfs \"$0\"");
        let room = Room::furnished(&script, &[&data])?;
        let root = PathBuf::from(format!("{}{}", room.root().display(), data.display()));
        Some(Self { room, root })
    }

    /// The same settings for a server that sees the disk.
    #[must_use]
    pub fn hold(&self, setup: Setup) -> Setup {
        self.room.hold(setup)
    }

    /// Free bytes.
    ///
    /// # Panics
    /// When the system does not say.
    #[must_use]
    pub fn free(&self) -> usize {
        let said =
            Command::new("stat").args(["-f", "-c", "%a %S"]).arg(&self.root).output().expect("`stat` can be run");
        let text = String::from_utf8_lossy(&said.stdout);
        let numbers: Vec<usize> = text.split_whitespace().map(|number| number.parse().expect("a number")).collect();
        numbers.iter().product()
    }

    /// Fills it with something else, but for so many bytes; again, with more of it.
    ///
    /// # Panics
    /// When that cannot be written.
    pub fn fill_but_for(&self, bytes: usize) {
        let filler = vec![0; self.free().saturating_sub(bytes)];
        let file = File::options().create(true).append(true).open(self.root.join("filler"));
        file.and_then(|mut file| file.write_all(&filler)).expect("there is space for the filler");
    }

    /// Takes that away again.
    ///
    /// # Panics
    /// When it is not there.
    pub fn clear(&self) {
        std::fs::remove_file(self.root.join("filler")).expect("it was filled");
    }
}
