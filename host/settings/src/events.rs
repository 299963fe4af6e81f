//! `events.*`: events of projects.

use std::time::Duration;

use super::setting::settings;

settings! {
    /// Events of projects.
    pub struct Events {
        /// Time after which a webhook subscription whose endpoint accepts nothing, and a trigger
        /// instance whose polls all fail, is disabled. Raise it if receivers or providers are down
        /// for longer.
        #[setting(unit = "s", range = 0..=31_536_000, zero = "never")]
        pub disable_after_s: u64 = 432_000,
    }
}

impl Events {
    /// Returns the time after which failing subscriptions and trigger instances are disabled.
    pub(super) fn disable_after(&self) -> Option<Duration> {
        (self.disable_after_s > 0).then(|| Duration::from_secs(self.disable_after_s))
    }
}
