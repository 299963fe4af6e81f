//! `sessions.*`: time limits of meta tools in tool router sessions.

use std::time::Duration;

use app::agents;

use super::{Config, setting::settings};

settings! {
    /// Time limits of meta tools in tool router sessions.
    pub(crate) struct Sessions {
        /// Time that `SERVICE_WAIT_FOR_CONNECTIONS` waits for a user to connect accounts. Many
        /// clients give up a call after 60 s.
        #[setting(unit = "s", range = 1..=600)] pub connection_wait_s: u64 = 50,
        /// Time that the calls of `SERVICE_MULTI_EXECUTE_TOOL` have together. Those that still run
        /// then are cancelled, and the others have their results.
        #[setting(unit = "s", range = 1..=600)] pub multi_execute_s: u64 = 180,
    }
}

impl Config {
    /// Returns the settings of tool router sessions.
    pub(crate) fn sessions(&self) -> agents::Settings {
        agents::Settings {
            connection_wait: Duration::from_secs(self.sessions.connection_wait_s),
            multi_execute_timeout: Duration::from_secs(self.sessions.multi_execute_s),
        }
    }
}
