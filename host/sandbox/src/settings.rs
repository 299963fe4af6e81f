//! Settings of the sandbox.

use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use crate::limits::ChildLimits;

/// Settings for the guests of this node.
#[derive(Clone)]
pub struct Settings {
    /// Folder for compiled components. It is created if missing and is readable by this user only.
    pub cache: PathBuf,
    /// Key of the seals in the folder. After a key change the files fail verification and are
    /// compiled again.
    pub seal_key: [u8; 32],
    /// Process that compiles components.
    pub compiler: Compiler,
    /// Source of the guests' memory.
    pub allocator: Allocator,
    /// Maximum number of live guests on this node, most of them waiting for an external response.
    /// It determines the pool size.
    pub live: usize,
    /// Maximum number of live guests of one tenant.
    pub live_per_tenant: usize,
    /// Maximum number of guests of one tenant that may use a processor for more than a tick (2 ms)
    /// at the same time. The rest take turns.
    pub busy_per_tenant: usize,
    /// Maximum number of calls that wait for a permit on this node.
    pub queue: usize,
    /// Maximum number of waiting calls of one tenant.
    pub queue_per_tenant: usize,
    /// Maximum time that a call waits for a permit.
    pub queue_wait: Duration,
    /// Maximum memory of all guests together, in bytes.
    pub node_memory: u64,
    /// Number of threads for long-running guests; 0 means one per processor.
    pub guest_threads: usize,
    /// Maximum size of the machine code of all loaded components together, in bytes.
    pub resident_bytes: u64,
    /// Source of the wall-clock time for guests.
    pub clock: Clock,
    /// Client for outgoing requests.
    pub net: net::Client,
}

/// Process that compiles components.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compiler {
    /// Child process with limits. It is this program, run with [`crate::COMPILE_ARG`], and has to
    /// call [`crate::compile_child`]. Components are untrusted, and a compiler can be made to use
    /// any amount of time and memory.
    Child(PathBuf, ChildLimits),
    /// This process, for the toolkit author's own command and the author's own component.
    InProcess,
}

impl Compiler {
    /// Returns the same compiler with other limits of the child process.
    pub(crate) fn with_limits(&self, limits: ChildLimits) -> Self {
        match self {
            Self::Child(program, _) => Self::Child(program.clone(), limits),
            Self::InProcess => Self::InProcess,
        }
    }
}

/// Source of the guests' memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocator {
    /// Slots that are reserved at start and reused: three to five times the calls under
    /// concurrency.
    Pooling,
    /// Operating system, for each call. It is also the fallback if the address space is too small
    /// for a pool.
    OnDemand,
}

/// Source of the wall-clock time for guests. Deadlines and durations always use real time.
#[derive(Debug, Clone)]
pub enum Clock {
    /// System clock.
    System,
    /// Cell with milliseconds since 1970, for the toolkit author's own command, whose cases state
    /// their time. It may be set between calls.
    Set(Arc<AtomicU64>),
}

impl Settings {
    /// Creates the default settings. Components are compiled in this process; a server sets
    /// [`Settings::compiler`].
    ///
    /// The default allows 512 live guests, 384 per tenant, because most calls wait for a provider
    /// and a waiting guest costs only memory. The lower limit of 8 busy guests per tenant shares
    /// the processor time.
    #[must_use]
    pub fn new(cache: PathBuf, seal_key: [u8; 32], net: net::Client) -> Self {
        Self {
            cache,
            seal_key,
            compiler: Compiler::InProcess,
            allocator: Allocator::Pooling,
            live: 512,
            live_per_tenant: 384,
            busy_per_tenant: 8,
            queue: 128,
            queue_per_tenant: 16,
            queue_wait: Duration::from_secs(2),
            node_memory: 1 << 30,
            guest_threads: 0,
            resident_bytes: 1 << 30,
            clock: Clock::System,
            net,
        }
    }
}
