//! `files.*`: files of projects.

use std::time::Duration;

use app::files::Settings as FileSettings;

use super::{Config, mib, setting::settings};

settings! {
    /// Files of projects.
    pub(crate) struct Files {
        /// One file that a client uploads or a tool creates, and all files given to one call
        /// together.
        #[setting(unit = "MiB", range = 1..=1_024)] pub size_mib: u64 = 100,
        /// Time that a file is kept.
        #[setting(unit = "days", range = 0..=36_500, zero = "forever")] pub keep_days: u32 = 30,
        /// Files that are uploaded or downloaded by links concurrently; each is held in memory.
        #[setting(range = 1..=1_024)] pub transfers: usize = 16,
        /// Files of one project that are uploaded or downloaded by links concurrently.
        #[setting(range = 1..)] pub transfers_per_project: usize = 8,
        /// Timeout for the upload or download of a file.
        #[setting(unit = "s", range = 1..=3_600)] pub transfer_s: u64 = 600,
        /// All files of one project together.
        #[setting(unit = "MiB", range = 0..=1 << 30, zero = "no limit")]
        pub quota_mib: u64 = 10_240,
    }
}

impl Files {
    /// Returns the timeout for the upload or download of a file.
    pub(crate) fn transfer(&self) -> Duration {
        Duration::from_secs(self.transfer_s)
    }
}

impl Config {
    /// Returns the limits on files.
    pub(crate) fn files(&self) -> FileSettings {
        let Files {
            size_mib,
            keep_days,
            transfers,
            transfers_per_project,
            quota_mib,
            ..
        } = self.files;
        let keep = Duration::from_secs(u64::from(keep_days) * 86_400);
        FileSettings {
            size: size_mib << 20,
            retention: (keep_days > 0).then_some(keep),
            transfers,
            transfers_per_project,
            transfer: self.files.transfer(),
            quota: mib(quota_mib),
        }
    }
}
