//! `sandbox.*`: execution of toolkits.

use serde::{Deserialize, Serialize};

use super::setting::settings;

settings! {
    /// Execution of toolkits.
    pub(crate) struct Sandbox {
        /// `pooling` takes instances from a pool made at start: fast, but it reserves address
        /// space. `on_demand` makes instances when needed.
        pub allocator: Allocator = Allocator::Pooling,
        /// Calls that run concurrently, including those that wait for a provider.
        #[setting(range = 1..)] pub live: usize = 512,
        /// Calls of one project that run concurrently.
        #[setting(range = 1..)] pub live_per_project: usize = 384,
        /// Calls of one project that have used enough processor time to be moved to threads of
        /// their own.
        #[setting(range = 1..)] pub busy_per_project: usize = 8,
        /// Calls that wait in the queue.
        pub queue: usize = 128,
        /// Calls of one project that wait in the queue.
        pub queue_per_project: usize = 16,
        /// Timeout of a call in the queue.
        #[setting(unit = "ms")] pub queue_wait_ms: u64 = 2_000,
        /// A call or proxy request ends when its client disconnects: its guest stops, its outgoing
        /// request is aborted, and its record says `cancelled`. If false, it runs to its end. One
        /// with an `Idempotency-Key` always does.
        pub cancel_on_disconnect: bool = true,
        /// Memory of all calls together. Slots of the pool that wait for a call keep at most half
        /// as much in addition.
        #[setting(unit = "MiB", range = 1..)] pub memory_mib: u64 = 1_024,
        /// Threads for calls that need much processor time.
        #[setting(unset = "one per core", example = 4)] pub threads: Option<usize>,
        /// Machine code of all components that are kept loaded together. It is mapped from files,
        /// so that the system takes back what is not used; those called least are unloaded first.
        #[setting(unit = "MiB", range = 1..=65_536)] pub resident_mib: u64 = 1_024,
        /// Processor time for compiling one component.
        #[setting(unit = "s", range = 1..=600)] pub compile_cpu_s: u64 = 60,
        /// Wall-clock time for compiling one component.
        #[setting(unit = "s", range = 1..=1_200)] pub compile_wall_s: u64 = 120,
        /// Memory for compiling one component.
        #[setting(unit = "MiB", range = 64..=16_384)] pub compile_memory_mib: u64 = 2_048,
    }
}

/// `sandbox.allocator`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Allocator {
    /// Instances are taken from a pool made at start: fast, but reserves address space.
    Pooling,
    /// Instances are made when needed.
    #[serde(alias = "on-demand")]
    OnDemand,
}
