//! `files.*`: files of projects.

use std::time::Duration;

use app::files::Settings as FileSettings;

use super::{Config, Sandbox, mib, retention, setting::settings};

settings! {
    /// Files of projects.
    pub struct Files {
        /// One file that a client uploads or a tool creates, and all files given to one call
        /// together. A file is held in memory while it is transferred: lower it on a small machine.
        #[setting(unit = "MiB", range = 1..=1_024)] pub size_mib: u64 = 100,
        /// Time that a file is kept. Change it for the space on the disk, or for rules on data.
        #[setting(unit = "days", range = 0..=36_500, zero = "forever")] pub keep_days: u32 = 30,
        /// Timeout for the upload or download of a file. Raise it for large files on slow lines.
        #[setting(unit = "s", range = 1..=3_600)] pub transfer_s: u64 = 600,
        /// All files of one project together. Set it by the space on the disk and the number of
        /// projects.
        #[setting(unit = "MiB", range = 0..=1 << 30, zero = "no limit")]
        pub quota_mib: u64 = 10_240,
    }
}

impl Files {
    /// Returns the timeout for the upload or download of a file.
    pub fn transfer(&self) -> Duration {
        Duration::from_secs(self.transfer_s)
    }
}

impl Sandbox {
    /// Returns the number of files that are transferred by links concurrently.
    pub const fn transfers(&self) -> usize {
        self.live_part(32)
    }

    /// Returns the number of files of one project that are transferred by links concurrently.
    pub const fn transfers_per_project(&self) -> usize {
        self.live_part(64)
    }
}

impl Config {
    /// Returns the limits on files.
    pub fn files(&self) -> FileSettings {
        let Files {
            size_mib,
            keep_days,
            quota_mib,
            ..
        } = self.files;
        FileSettings {
            size: size_mib << 20,
            retention: retention(keep_days),
            transfers: self.sandbox.transfers(),
            transfers_per_project: self.sandbox.transfers_per_project(),
            transfer: self.files.transfer(),
            quota: mib(quota_mib),
        }
    }
}
