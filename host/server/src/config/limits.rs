//! `limits.*`: limits on the requests of clients.

use std::time::Duration;

use app::projects::RecordLimits;

use super::setting::settings;

/// Time over which `limits.min_rate_kib` is measured.
pub(crate) const PACE_WINDOW: Duration = Duration::from_secs(5);

settings! {
    /// Limits on the requests of clients.
    pub(crate) struct Limits {
        /// Body of an execution.
        #[setting(unit = "KiB", range = 1..=16_384)] pub execute_body_kib: usize = 4_096,
        /// Any other JSON body.
        #[setting(unit = "KiB", range = 1..=16_384)] pub body_kib: usize = 1_024,
        /// Requests answered concurrently.
        #[setting(range = 1..)] pub in_flight: usize = 512,
        /// Requests of one project answered concurrently.
        #[setting(range = 1..)] pub in_flight_per_project: usize = 384,
        /// Timeout of a request that waits because of these limits.
        #[setting(unit = "ms", range = 0..=5_000)] pub in_flight_wait_ms: u64 = 250,
        /// Timeout for the arrival of a body; files have `files.transfer_s`.
        #[setting(unit = "s", range = 1..=300)] pub body_s: u64 = 30,
        /// Minimum speed at which a body arrives and a response is read, over five seconds.
        #[setting(unit = "KiB/s", range = 0..=1_024, zero = "any speed")] pub min_rate_kib: u64 = 1,
        /// Arriving bodies from one address.
        #[setting(range = 1..)] pub bodies_per_address: usize = 128,
        /// Arriving bodies of one project.
        #[setting(range = 1..)] pub bodies_per_project: usize = 64,
        /// Memory of all arriving bodies, of which one project has at most half. Requests without a
        /// key have a quarter as much in addition. It should be at least twice as large as the
        /// largest body.
        #[setting(unit = "MiB", range = 1..=65_536)] pub bodies_mib: usize = 256,
        /// Deadline of an operation, including the arrival of its body; executions, publications
        /// and files have limits of their own.
        #[setting(unit = "s", range = 1..=300)] pub deadline_s: u64 = 30,
        /// Timeout of a connection for the next request, or for the whole head of one.
        #[setting(unit = "s", range = 1..=600)] pub idle_s: u64 = 75,
        /// Requests in ten minutes with the keys of the organization itself, and of projects without a
        /// rate of their own together.
        #[setting(zero = "no limit")] pub rate: u32 = 20_000,
        /// Requests of one project in ten minutes.
        #[setting(zero = "no limit of its own")] pub rate_per_project: u32 = 10_000,
        /// Requests with one key in ten minutes.
        #[setting(zero = "no limit of its own")] pub rate_per_key: u32 = 0,
        /// Failed authentications from one address in a minute, counted separately for keys, links
        /// and callbacks. An IPv6 address counts as its /64.
        #[setting(zero = "no limit")] pub failed_auth: u32 = 30,
        /// Webhooks that providers may send to one address in a minute.
        #[setting(zero = "no limit")] pub webhook_rate: u32 = 4_000,
        /// Open connections.
        #[setting(range = 1..)] pub connections: usize = 4_096,
        /// Open connections from one address, except a trusted proxy.
        #[setting(range = 1..)] pub connections_per_address: usize = 256,
        /// Time that a stopping server waits for running requests.
        #[setting(unit = "s")] pub drain_s: u64 = 30,
        /// Responses that are stored for the `Idempotency-Key`s of one project in a day. Requests
        /// beyond it are performed, but their responses are not stored.
        #[setting(unit = "MiB", range = 0..=1 << 20, zero = "no limit")] pub answers_mib: u64 = 256,
        /// Connected accounts of one project.
        #[setting(range = 1..=100_000_000)] pub accounts_per_project: u64 = 200_000,
        /// Auth configs of one project.
        #[setting(range = 1..=100_000_000)] pub auth_configs_per_project: u64 = 1_000,
        /// Tool router sessions of one project.
        #[setting(range = 1..=100_000_000)] pub sessions_per_project: u64 = 100_000,
        /// MCP servers of one project.
        #[setting(range = 1..=100_000_000)] pub mcp_servers_per_project: u64 = 1_000,
        /// Instances of the MCP servers of one project.
        #[setting(range = 1..=100_000_000)] pub mcp_instances_per_project: u64 = 200_000,
        /// Recipes of all users of one project.
        #[setting(range = 1..=100_000_000)] pub recipes_per_project: u64 = 10_000,
        /// Runs of recipes of one project in a day: their arguments when they start, and what is
        /// kept of them when they end.
        #[setting(unit = "MiB", range = 0..=1 << 20, zero = "no limit")] pub recipe_runs_mib: u64 = 1_024,
        /// Records that one project adds in a day and that no other quota counts, with 512 bytes for
        /// each one: accounts, auth configs, sessions and their versions, recipes, MCP servers,
        /// trigger instances, `Idempotency-Key`s and uploads that are asked for.
        #[setting(unit = "MiB", range = 0..=1 << 20, zero = "no limit")] pub records_mib: u64 = 2_048,
    }
}

impl Limits {
    /// Returns the maximum numbers of records of one project.
    pub(super) fn record_limits(&self) -> RecordLimits {
        RecordLimits {
            accounts: self.accounts_per_project,
            auth_configs: self.auth_configs_per_project,
            sessions: self.sessions_per_project,
            mcp_servers: self.mcp_servers_per_project,
            mcp_instances: self.mcp_instances_per_project,
            recipes: self.recipes_per_project,
        }
    }

    /// Returns the timeout for the arrival of a body.
    pub(crate) fn body(&self) -> Duration {
        Duration::from_secs(self.body_s)
    }

    /// Returns the deadline of an operation.
    pub(crate) fn deadline(&self) -> Duration {
        Duration::from_secs(self.deadline_s)
    }

    /// Returns the bytes that must be transferred within each [`PACE_WINDOW`].
    pub(crate) fn pace(&self) -> usize {
        usize::try_from(self.min_rate_kib * 1024 * PACE_WINDOW.as_secs()).unwrap_or(usize::MAX)
    }

    /// Returns the timeout of a connection for a request, or for its head.
    pub(crate) fn idle(&self) -> Duration {
        Duration::from_secs(self.idle_s)
    }
}
