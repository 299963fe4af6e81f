//! `sessions.*`: tool router sessions.

use std::time::Duration;

use app::agents;
use serde::{Deserialize, Serialize};

use super::{Config, retention, setting::settings};

settings! {
    /// Tool router sessions: time limits, how long they are kept, and requests of newer clients.
    pub struct Sessions {
        /// Time that `SERVICE_WAIT_FOR_CONNECTIONS` waits for a user to connect accounts. Many
        /// clients give up a call after 60 s: raise it for clients that wait for longer.
        #[setting(unit = "s", range = 1..=600)] pub connection_wait_s: u64 = 50,
        /// Time without use after which a session is deleted, with its files. It may last up to two days
        /// longer. No session is deleted before this has been set for as long. Set it for the space
        /// on the disk, or for rules on data.
        #[setting(unit = "days", range = 0..=36_500, zero = "sessions are never deleted")] pub keep_days: u32 = 0,
        /// Properties of bodies of sessions that this version does not know: `refuse`, because
        /// ignoring a restriction would permit more, or `warn`, which ignores them and names them
        /// in a header of the response and in the log, for clients that are newer than the server.
        /// A property of `toolkits`, `tools`, `tags` or `permissions`, one whose name is similar to
        /// a known one or to a restriction of sessions, and ten or more unknown properties are
        /// always refused.
        pub unknown_members: UnknownMembers = UnknownMembers::Refuse,
    }
}

/// `sessions.unknown_members`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnknownMembers {
    /// They are refused.
    Refuse,
    /// They are ignored with a warning.
    Warn,
}

impl Config {
    /// Returns the settings of tool router sessions.
    pub fn sessions(&self) -> agents::Settings {
        agents::Settings {
            operator_word: self.operator_word.clone(),
            connection_wait: Duration::from_secs(self.sessions.connection_wait_s),
            multi_execute_timeout: self.workbench.time(),
            retention: retention(self.sessions.keep_days),
        }
    }
}
