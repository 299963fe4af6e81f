//! A disk small enough for a test to fill.

use std::{fs::File, io::Write, path::PathBuf, process::Command};

use crate::{host::Setup, room::Room};

/// A file system in memory, visible only to programs in its [`Room`].
#[derive(Debug)]
pub struct LimitedDisk {
    room: Room,
    /// Path of the data directory as seen from outside the namespace.
    root: PathBuf,
}

impl LimitedDisk {
    /// Mounts a disk of `mib` MiB at the data directory. Returns `None` if the system does not
    /// allow this user to create a namespace, as in some containers.
    pub fn below(setup: &Setup, mib: usize) -> Option<Self> {
        let data = setup.data();
        std::fs::create_dir(&data).expect("the data directory is not there yet");
        let script = format!("mount -t tmpfs -o size={mib}m,mode=700 tmpfs \"$0\"");
        let room = Room::prepare(&script, &[&data])?;
        let root = PathBuf::from(format!("{}{}", room.root().display(), data.display()));
        Some(Self { room, root })
    }

    /// Returns the same settings for a server that sees the disk.
    pub fn hold(&self, setup: Setup) -> Setup {
        self.room.hold(setup)
    }

    /// Returns the number of free bytes.
    pub fn free(&self) -> usize {
        let said = Command::new("stat")
            .args(["-f", "-c", "%a %S"])
            .arg(&self.root)
            .output()
            .expect("`stat` can be run");
        let text = String::from_utf8_lossy(&said.stdout);
        let numbers: Vec<usize> = text
            .split_whitespace()
            .map(|number| number.parse().expect("a number"))
            .collect();
        numbers.iter().product()
    }

    /// Fills the disk with a filler file until only `bytes` bytes are free. A repeated call extends
    /// the file.
    pub fn fill_leaving(&self, bytes: usize) {
        let filler = vec![0; self.free().saturating_sub(bytes)];
        let file = File::options()
            .create(true)
            .append(true)
            .open(self.root.join("filler"));
        file.and_then(|mut file| file.write_all(&filler))
            .expect("there is space for the filler");
    }

    /// Deletes the filler file.
    pub fn clear(&self) {
        std::fs::remove_file(self.root.join("filler")).expect("it was filled");
    }
}
