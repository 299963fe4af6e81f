//! `sandbox.*`: execution of toolkits.

use std::time::Duration;

use sandbox::child::ChildLimits;
use serde::{Deserialize, Serialize};

use super::{setting::settings, three_quarters};

settings! {
    /// Execution of toolkits. `live` and `memory_mib` follow the size of the machine; other limits
    /// follow from them.
    pub struct Sandbox {
        /// `pooling` takes instances from a pool made at start: fast, but it reserves address
        /// space. `on_demand` makes instances when needed, for systems that limit address space.
        pub allocator: Allocator = Allocator::Pooling,
        /// Calls that run concurrently, including those that wait for a provider; of one project at
        /// most three quarters. The numbers of waiting calls, of deliveries of webhooks, of transfers of
        /// files and of prompts follow from it. Change it with the size of the machine.
        #[setting(range = 1..=1 << 20)] pub live: usize = 512,
        /// Memory of all calls together. In addition, slots of the pool that wait for a call take at
        /// most half as much, arriving bodies and records that wait to be written a quarter each,
        /// and the compilation of a component twice as much. As much machine code is kept loaded,
        /// mapped from files. Lower it on a small machine.
        #[setting(unit = "MiB", range = 1..=1 << 24)] pub memory_mib: u64 = 1_024,
        /// Processor time for compiling one component, which may take twice as long by the clock.
        /// Raise it on a slow machine.
        #[setting(unit = "s", range = 1..=600)] pub compile_cpu_s: u64 = 60,
    }
}

/// `sandbox.allocator`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Allocator {
    /// Instances are taken from a pool made at start: fast, but reserves address space.
    Pooling,
    /// Instances are made when needed.
    #[serde(alias = "on-demand")]
    OnDemand,
}

/// Calls of one project that have used enough processor time to be moved to threads of their own.
pub const MAX_BUSY_CALLS_PER_PROJECT: usize = 8;
/// Timeout of a call in the queue.
pub const QUEUE_TIMEOUT: Duration = Duration::from_secs(2);
/// Minimum memory for compiling one component, in bytes.
const MIN_COMPILE_BYTES: u64 = 128 << 20;

impl Sandbox {
    /// Returns a part of the concurrent calls, at least 1.
    pub(super) const fn live_part(&self, divisor: usize) -> usize {
        let part = self.live / divisor;
        if part == 0 { 1 } else { part }
    }

    /// Returns the number of calls of one project that run concurrently.
    pub const fn live_per_project(&self) -> usize {
        three_quarters(self.live)
    }

    /// Returns the number of calls that wait in the queue.
    pub const fn queue(&self) -> usize {
        self.live_part(4)
    }

    /// Returns the number of calls of one project that wait in the queue.
    pub const fn queue_per_project(&self) -> usize {
        self.live_part(32)
    }

    /// Returns the memory of all calls, in bytes.
    pub const fn memory_bytes(&self) -> u64 {
        self.memory_mib << 20
    }

    /// Returns the memory of all arriving bodies, and that of all records that wait to be written,
    /// in bytes.
    pub const fn buffer_bytes(&self) -> u64 {
        self.memory_bytes() / 4
    }

    /// Returns the limits on compiling one component.
    pub fn compile_limits(&self) -> ChildLimits {
        ChildLimits {
            cpu_seconds: self.compile_cpu_s,
            wall: Duration::from_secs(2 * self.compile_cpu_s),
            memory: MIN_COMPILE_BYTES.max(2 * self.memory_bytes()),
        }
    }
}
