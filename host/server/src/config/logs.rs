//! `logs.*`: the execution log.

use std::time::Duration;

use app::{
    projects::quotas::Settings as QuotaSettings,
    runs::log::{CassettePolicy, Retention, Settings as LogSettings},
};

use super::{Config, mib, setting::settings, sources::Problem};

settings! {
    /// The execution log.
    pub(crate) struct Logs {
        /// An execution is answered only when its record is durable. Otherwise the record trails by
        /// at most 20 ms.
        pub wait: bool = false,
        /// Records that may wait to be written; when this many wait, new executions wait too.
        #[setting(range = 1..=1_000_000)] pub buffer: usize = 4_096,
        /// Arguments and result kept in a record, each; larger ones are left out and marked as
        /// such.
        #[setting(unit = "KiB")] pub payload_kib: usize = 64,
        /// Time that an execution stays in the log after it ended.
        #[setting(unit = "days", range = 0..=36_500, zero = "forever")] pub keep_days: u32 = 30,
        /// Newest executions of each project that stay in the log; up to 63 more do.
        #[setting(zero = "any number")] pub keep_count: u64 = 0,
        /// Executions that leave a cassette, with which `toolhost logs export` and `toolkit replay`
        /// run them again on another machine: `off`, `failed` or `all`. A cassette holds the
        /// responses of the provider, encrypted. Projects that store no data leave no cassettes.
        pub cassettes: CassettePolicy = CassettePolicy::Off,
        /// Content of a cassette; a larger execution leaves no cassette.
        #[setting(unit = "KiB", range = 1..=8_192)] pub cassette_kib: usize = 256,
        /// Records and cassettes that may wait to be written; when no more fits, new executions
        /// wait. An execution reserves twice `logs.payload_kib` before it starts.
        #[setting(unit = "MiB", range = 1..=65_536)] pub buffer_mib: usize = 256,
        /// Size of the records of one project in a day. Beyond it records have neither arguments nor
        /// result, and say so. Beyond twice as much no tool of the project runs.
        #[setting(unit = "MiB", range = 0..=1 << 20, zero = "no limit")] pub quota_mib: u64 = 2_048,
    }
}

impl Logs {
    /// Size of a record in addition to its arguments and its result, in KiB.
    const RECORD_KIB: usize = 16;

    pub(super) fn check(&self) -> Result<(), Problem> {
        let Self {
            buffer_mib,
            payload_kib,
            ..
        } = *self;
        let record = payload_kib
            .saturating_mul(2)
            .saturating_add(Self::RECORD_KIB);
        Problem::unless(
            buffer_mib.saturating_mul(1024) > record,
            "logs.buffer_mib",
            format!(
                "is {buffer_mib}: a record with twice `logs.payload_kib` must fit, which is {payload_kib}"
            ),
        )
    }
}

impl Config {
    /// Returns the settings of the execution log for the app.
    pub(crate) fn recording(&self) -> LogSettings {
        let logs = &self.logs;
        let age = Duration::from_secs(u64::from(logs.keep_days) * 86_400);
        LogSettings {
            wait_until_durable: logs.wait,
            max_waiting_records: logs.buffer,
            max_waiting_bytes: logs.buffer_mib << 20,
            max_payload_bytes: logs.payload_kib * 1024,
            cassettes: logs.cassettes,
            max_cassette_bytes: logs.cassette_kib * 1024,
            retention: Retention {
                age: (logs.keep_days > 0).then_some(age),
                runs: (logs.keep_count > 0).then_some(logs.keep_count),
            },
        }
    }

    /// Returns the daily storage quotas of each project.
    pub(crate) fn quotas(&self) -> QuotaSettings {
        QuotaSettings {
            log: mib(self.logs.quota_mib),
            responses: mib(self.limits.answers_mib),
            events: mib(self.events.quota_mib),
            runs: mib(self.limits.recipe_runs_mib),
            records: mib(self.limits.records_mib),
            numbers: self.limits.record_limits(),
        }
    }
}
