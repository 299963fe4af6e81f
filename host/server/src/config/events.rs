//! `events.*`: events of projects.

use super::setting::settings;

settings! {
    /// Events of projects.
    pub(crate) struct Events {
        /// Payloads of the events that one project stores in a day, with 1 KiB for each event.
        /// Beyond it test events and webhooks of providers are refused, and a poll that finds
        /// events fails and is repeated. Events of the server are counted, but always stored.
        #[setting(unit = "MiB", range = 0..=1 << 20, zero = "no limit")] pub quota_mib: u64 = 1_024,
    }
}
