//! `triggers.*`: instances of triggers, and their polling.

use std::time::Duration;

use app::events::triggers::Settings as TriggerSettings;

use super::{Config, setting::settings};

settings! {
    /// Instances of triggers, and their polling.
    pub(crate) struct Triggers {
        /// Interval between two polls of an instance that does not ask for one, and the shortest
        /// one that an instance may ask for.
        #[setting(unit = "s", range = 1..=86_400)] pub poll_interval_s: u64 = 60,
        /// Trigger instances of one project.
        #[setting(range = 1..=1_000_000)] pub max_per_project: u64 = 1_000,
        /// Time in which every poll of an instance has failed, after which the instance is disabled.
        #[setting(unit = "s", range = 1..=31_536_000)] pub disable_after_s: u64 = 259_200,
        /// Actions of triggers of one project that wait or run. The actions of further events fail.
        #[setting(range = 1..=10_000_000)] pub pending_actions: u64 = 10_000,
    }
}

impl Config {
    /// Returns the settings of trigger instances.
    pub(crate) fn triggers(&self) -> TriggerSettings {
        TriggerSettings {
            poll_interval: Duration::from_secs(self.triggers.poll_interval_s),
            max_instances: self.triggers.max_per_project,
            disable_after: Duration::from_secs(self.triggers.disable_after_s),
            max_pending_actions: self.triggers.pending_actions,
        }
    }
}
