//! `triggers.*`: instances of triggers, and their polling.

use std::time::Duration;

use app::events::triggers::Settings as TriggerSettings;

use super::{Config, setting::settings};

settings! {
    /// Instances of triggers, and their polling.
    pub struct Triggers {
        /// Interval between two polls of an instance that does not ask for one, and the shortest
        /// one that an instance may ask for. Raise it if providers limit how often they may be
        /// asked.
        #[setting(unit = "s", range = 1..=86_400)] pub poll_interval_s: u64 = 60,
    }
}

impl Config {
    /// Returns the settings of trigger instances.
    pub fn triggers(&self) -> TriggerSettings {
        TriggerSettings {
            poll_interval: Duration::from_secs(self.triggers.poll_interval_s),
            max_instances: self.limits.trigger_instances(),
            disable_after: self.events.disable_after(),
            max_pending_actions: self.limits.pending_actions(),
        }
    }
}
