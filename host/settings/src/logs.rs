//! `logs.*`: the execution log.

use app::runs::log::{CassettePolicy, Settings as LogSettings};

use super::{Config, retention, setting::settings};

settings! {
    /// The execution log.
    pub struct Logs {
        /// An execution is answered only when its record is durable, for rules that demand a record
        /// of every call. Otherwise the record trails by at most 20 ms.
        pub wait: bool = false,
        /// Time that an execution stays in the log after it ended. Change it for the space on the disk, or for
        /// rules on data.
        #[setting(unit = "days", range = 0..=36_500, zero = "forever")] pub keep_days: u32 = 30,
        /// Executions that leave a cassette, with which `toolhost logs export` and `toolkit replay`
        /// run them again on another machine: `off`, `failed` or `all`. A cassette holds the
        /// responses of the provider, encrypted. Projects that store no data leave no cassettes.
        pub cassettes: CassettePolicy = CassettePolicy::Off,
    }
}

/// Records that may wait to be written; when this many wait, new executions wait too.
const MAX_WAITING_RECORDS: usize = 4_096;
/// Arguments and result kept in a record, each, in bytes.
pub const MAX_PAYLOAD_BYTES: usize = 64 << 10;
/// Content of a cassette, in bytes.
pub const MAX_CASSETTE_BYTES: usize = 256 << 10;

impl Config {
    /// Returns the settings of the execution log for the app.
    pub fn recording(&self) -> LogSettings {
        let logs = &self.logs;
        let buffer = usize::try_from(self.sandbox.buffer_bytes());
        LogSettings {
            wait_until_durable: logs.wait,
            max_waiting_records: MAX_WAITING_RECORDS,
            max_waiting_bytes: buffer.unwrap_or(usize::MAX),
            max_payload_bytes: MAX_PAYLOAD_BYTES,
            cassettes: logs.cassettes,
            max_cassette_bytes: MAX_CASSETTE_BYTES,
            retention: retention(logs.keep_days),
        }
    }
}
