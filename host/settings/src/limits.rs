//! `limits.*`: limits on the requests of clients, and on what projects store.

use std::time::Duration;

use app::projects::{RecordLimits, quotas::Settings as QuotaSettings};

use super::{mib, setting::settings, three_quarters};

/// Body of an execution, in bytes.
pub const MAX_EXECUTE_BODY_BYTES: usize = 4 << 20;
/// Any other JSON body, in bytes.
pub const MAX_BODY_BYTES: usize = 1 << 20;
/// Timeout of a request that waits because of a concurrency limit.
pub const IN_FLIGHT_WAIT: Duration = Duration::from_millis(250);
/// Arriving bodies from one address.
pub const BODIES_PER_ADDRESS: usize = 128;
/// Arriving bodies of one project.
pub const BODIES_PER_PROJECT: usize = 64;
/// Requests of one project in ten minutes from which the rates of requests without a key follow if
/// `limits.rate_per_project` is 0.
const KEYLESS_RATE_BASE: u32 = 10_000;
/// Auth configs of one project.
const MAX_AUTH_CONFIGS: u64 = 1_000;
/// MCP servers of one project.
const MAX_MCP_SERVERS: u64 = 1_000;
/// Time over which `limits.min_rate_kib` is measured.
pub const PACE_WINDOW: Duration = Duration::from_secs(5);

settings! {
    /// Limits on the requests of clients, and on what projects store.
    pub struct Limits {
        /// Requests answered concurrently; of one project at most three quarters. Change it with the
        /// size of the machine.
        #[setting(range = 1..=1 << 20)] pub in_flight: usize = 512,
        /// Minimum speed at which a body arrives and a response is read, over five seconds. Set it
        /// to 0 for clients on lines that stall for longer.
        #[setting(unit = "KiB/s", range = 0..=1_024, zero = "any speed")] pub min_rate_kib: u64 = 1,
        /// Deadline of an operation; executions, publications and files have limits of their own.
        /// Two thirds of it are the timeout of the arrival of a body, and of a call that waits for
        /// the refresh of a token; a refresh whose server is lost is tried after three times as long.
        /// Raise it for slow databases and providers.
        #[setting(unit = "s", range = 1..=300)] pub deadline_s: u64 = 30,
        /// Timeout of a connection for the next request, or for the whole head of one. It must be
        /// longer than that of a proxy in front of the server.
        #[setting(unit = "s", range = 1..=600)] pub idle_s: u64 = 75,
        /// Requests of one project in ten minutes. The keys of the organization itself have twice as
        /// many. Callers without a key have half as many in addition, and providers may send two
        /// fifths as many webhooks to one address in a minute; if it is 0, these two follow from
        /// 10,000. Set it if strangers get projects on this server.
        #[setting(zero = "no limit")] pub rate_per_project: u32 = 0,
        /// Requests with one key in ten minutes. Set it if the programs of one project should not
        /// use up its rate for one another.
        #[setting(zero = "no limit of its own")] pub rate_per_key: u32 = 0,
        /// Failed authentications from one address in a minute, counted separately for keys, links
        /// and callbacks. An IPv6 address counts as its /64. Raise it if many users share an
        /// address.
        #[setting(zero = "no limit")] pub failed_auth: u32 = 30,
        /// Open connections; from one address, except a trusted proxy, at most a sixteenth. Change
        /// it with the number of files that the system lets a process open.
        #[setting(range = 1..=1 << 20)] pub connections: usize = 4_096,
        /// Time that a stopping server waits for running requests. It should be shorter than the
        /// time after which the service manager kills the server.
        #[setting(unit = "s")] pub drain_s: u64 = 30,
        /// Connected accounts of one project. It may have as many instances of MCP servers, half as
        /// many tool router sessions, a tenth as many trigger instances, and a twentieth as many
        /// recipes, pending actions of triggers and events in one replay. Raise it for a project
        /// with more users.
        #[setting(range = 1..=100_000_000)] pub accounts_per_project: u64 = 200_000,
        /// Bytes that one project adds to its execution log in a day, and to its other records, with
        /// 512 bytes for each one; half as much for events and for runs of recipes, each, and an
        /// eighth for responses stored for `Idempotency-Key`s. Set it by the space on the disk and
        /// the number of projects.
        #[setting(unit = "MiB", range = 0..=1 << 20, zero = "no limit")] pub records_mib: u64 = 2_048,
    }
}

impl Limits {
    /// Returns the number of requests of one project answered concurrently.
    pub const fn in_flight_per_project(&self) -> usize {
        three_quarters(self.in_flight)
    }

    /// Returns the number of open connections from one address.
    pub const fn connections_per_address(&self) -> usize {
        self.connections.div_ceil(16)
    }

    /// Returns the number of requests in ten minutes with the keys of the organization itself; 0 means
    /// no limit.
    pub const fn rate(&self) -> u32 {
        self.rate_per_project.saturating_mul(2)
    }

    /// Returns the number of requests without a key to one project in ten minutes.
    pub const fn stranger_rate(&self) -> u32 {
        self.keyless_rate_base().div_ceil(2)
    }

    /// Returns the number of requests without a key from one address to one project in ten minutes.
    pub const fn stranger_address_rate(&self) -> u32 {
        self.stranger_rate().div_ceil(4)
    }

    /// Returns the number of webhooks that providers may send to one address in a minute.
    pub const fn webhook_rate(&self) -> u32 {
        self.keyless_rate_base().saturating_mul(2).div_ceil(5)
    }

    /// Returns the rate per project from which the rates of requests without a key follow. They are
    /// limited even if the projects are not.
    const fn keyless_rate_base(&self) -> u32 {
        match self.rate_per_project {
            0 => KEYLESS_RATE_BASE,
            rate => rate,
        }
    }

    /// Returns the maximum numbers of records of one project.
    pub const fn record_limits(&self) -> RecordLimits {
        RecordLimits {
            accounts: self.accounts_per_project,
            auth_configs: MAX_AUTH_CONFIGS,
            sessions: self.accounts_part(2),
            mcp_servers: MAX_MCP_SERVERS,
            mcp_instances: self.accounts_per_project,
            recipes: self.accounts_part(20),
        }
    }

    /// Returns the maximum number of trigger instances of one project.
    pub const fn trigger_instances(&self) -> u64 {
        self.accounts_part(10)
    }

    /// Returns the maximum number of actions of triggers of one project that wait or run.
    pub const fn pending_actions(&self) -> u64 {
        self.accounts_part(20)
    }

    /// Returns the maximum number of events in the time range of one replay.
    pub const fn replayed_events(&self) -> u64 {
        self.accounts_part(20)
    }

    /// Returns a part of the accounts of one project, at least 1.
    const fn accounts_part(&self, divisor: u64) -> u64 {
        let part = self.accounts_per_project / divisor;
        if part == 0 { 1 } else { part }
    }

    /// Returns the bytes that one project may add in a day.
    pub fn quotas(&self) -> QuotaSettings {
        let records = mib(self.records_mib);
        let part = |divisor: u64| records.map(|bytes| bytes / divisor);
        QuotaSettings {
            log: records,
            responses: part(8),
            events: part(2),
            runs: part(2),
            records,
            numbers: self.record_limits(),
        }
    }

    /// Returns the deadline of an operation.
    pub fn deadline(&self) -> Duration {
        Duration::from_secs(self.deadline_s)
    }

    /// Returns the timeout for the arrival of a body, and for the refresh of a token that a call
    /// waits for.
    pub fn wait(&self) -> Duration {
        self.deadline() * 2 / 3
    }

    /// Returns the time after which another server may try the refresh of a token by a lost one. A
    /// server that lives extends it.
    pub fn refresh_lease(&self) -> Duration {
        self.deadline() * 3
    }

    /// Returns the bytes that must be transferred within each [`PACE_WINDOW`].
    pub fn pace(&self) -> usize {
        usize::try_from(self.min_rate_kib * 1024 * PACE_WINDOW.as_secs()).unwrap_or(usize::MAX)
    }

    /// Returns the timeout of a connection for a request, or for its head.
    pub fn idle(&self) -> Duration {
        Duration::from_secs(self.idle_s)
    }
}
