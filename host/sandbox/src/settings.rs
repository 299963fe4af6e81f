//! What the operator decides about the sandbox.

use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

/// How guests run on this node.
#[derive(Clone)]
pub struct Settings {
    /// Folder for compiled components, made when missing, readable by this user alone.
    pub cache: PathBuf,
    /// Seals what is in the folder. Another key makes everything there worthless, not wrong: it is compiled again.
    pub seal_key: [u8; 32],
    /// Where components are compiled.
    pub compiler: Compiler,
    /// Where guests' memory comes from.
    pub allocator: Allocator,
    /// Guests alive at once on this node, most of them waiting for an answer from outside. The pool is sized by it.
    pub live: usize,
    /// The same for one tenant.
    pub live_per_tenant: usize,
    /// Guests of one tenant that may use a processor for more than a tick (2 ms) at the same time; the rest take turns.
    pub busy_per_tenant: usize,
    /// Calls that wait for a place on this node.
    pub queue: usize,
    /// The same for one tenant.
    pub queue_per_tenant: usize,
    /// How long a call waits for a place.
    pub queue_wait: Duration,
    /// Memory of all guests together, in bytes.
    pub node_memory: u64,
    /// Threads for guests that need more than a moment; 0 means one for each processor.
    pub guest_threads: usize,
    /// Components kept loaded; the one not used for longest goes first.
    pub resident: usize,
    /// Where guests get the time of day from.
    pub clock: Clock,
    /// The way out.
    pub net: net::Client,
}

/// Where components are compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compiler {
    /// In a child process with limits: this program, run with [`crate::COMPILE_ARG`], which has to call
    /// [`crate::compile_child`]. Components come from strangers, and a compiler can be made to use any amount of time and
    /// memory.
    Child(PathBuf, CompileLimits),
    /// In this process, for the author's own command, where the component is the author's.
    InProcess,
}

/// Bounds of compiling one component in a child process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompileLimits {
    /// Processor time, in seconds.
    pub cpu_seconds: u64,
    /// Wall-clock time.
    pub wall: Duration,
    /// Writable memory, in bytes.
    pub memory: u64,
}

impl Default for CompileLimits {
    fn default() -> Self {
        Self { cpu_seconds: 60, wall: Duration::from_secs(120), memory: 2 << 30 }
    }
}

/// Where guests' memory comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocator {
    /// From slots reserved at start and used again: three to five times the calls under concurrency.
    Pooling,
    /// From the operating system for each call. Taken on its own when the address space is too short for a pool.
    OnDemand,
}

/// Where guests get the time of day from. Deadlines and durations are real in any case.
#[derive(Debug, Clone)]
pub enum Clock {
    /// The system.
    System,
    /// The cell, in milliseconds since 1970, for the author's own command, whose cases state when they happen. It may be
    /// set between calls.
    Set(Arc<AtomicU64>),
}

impl Settings {
    /// The defaults. Components are compiled in this process: a server sets [`Settings::compiler`].
    ///
    /// 512 live guests, 64 for a tenant, because most calls wait for an application outside and a waiting guest costs
    /// memory only; processor time is shared by the narrower bound of 8 busy guests for a tenant.
    #[must_use]
    pub fn new(cache: PathBuf, seal_key: [u8; 32], net: net::Client) -> Self {
        Self {
            cache,
            seal_key,
            compiler: Compiler::InProcess,
            allocator: Allocator::Pooling,
            live: 512,
            live_per_tenant: 64,
            busy_per_tenant: 8,
            queue: 128,
            queue_per_tenant: 16,
            queue_wait: Duration::from_secs(2),
            node_memory: 1 << 30,
            guest_threads: 0,
            resident: 256,
            clock: Clock::System,
            net,
        }
    }
}
