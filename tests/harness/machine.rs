//! A machine with a settings file of its own, `/etc/toolhost/toolhost.toml`.

use tempfile::TempDir;

use crate::{host::Setup, room::Room};

/// A settings file in `/etc/toolhost`, visible only to programs in its [`Room`].
#[derive(Debug)]
pub struct MachineSettings {
    room: Room,
    /// Content of `/etc`.
    _folder: TempDir,
}

impl MachineSettings {
    /// Replaces `/etc` by a folder with this settings file. Returns `None` if the system does not
    /// allow this user to create a namespace, as in some containers.
    pub fn with(text: &str) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let own = folder.path().join("toolhost");
        std::fs::create_dir(&own).expect("a folder can be made");
        std::fs::write(own.join("toolhost.toml"), text).expect("a file can be written");
        let room = Room::prepare("mount --bind \"$0\" /etc", &[folder.path()])?;
        Some(Self {
            room,
            _folder: folder,
        })
    }

    /// Returns the same settings for a command that sees the file.
    pub fn hold(&self, setup: Setup) -> Setup {
        self.room.hold(setup)
    }
}
