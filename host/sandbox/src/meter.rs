//! What one call has used, readable from outside while it runs and after it was cut off.

use std::{
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};

/// Counters of one call. Processor time is the time of the thread that polls the guest, so waiting costs nothing and a
/// busy machine is not held against the guest.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// Nanoseconds of finished polls.
    used: AtomicU64,
    /// The thread's clock when the running poll began.
    since: AtomicU64,
    /// The guest has run for more than a moment and should take turns with others.
    long: AtomicBool,
    peak_memory: AtomicU64,
    host_calls: AtomicU32,
}

impl Meter {
    /// A poll of the guest begins on this thread.
    pub(crate) fn begin(&self) {
        self.since.store(thread_time(), Relaxed);
    }

    /// The poll ends.
    pub(crate) fn end(&self) {
        let spent = thread_time().saturating_sub(self.since.load(Relaxed));
        self.used.fetch_add(spent, Relaxed);
    }

    /// Processor time so far, asked from inside a poll.
    pub(crate) fn used_now(&self) -> Duration {
        let running = thread_time().saturating_sub(self.since.load(Relaxed));
        Duration::from_nanos(self.used.load(Relaxed) + running)
    }

    /// Processor time of finished polls.
    pub(crate) fn used(&self) -> Duration {
        Duration::from_nanos(self.used.load(Relaxed))
    }

    pub(crate) fn set_long(&self) {
        self.long.store(true, Relaxed);
    }

    pub(crate) fn is_long(&self) -> bool {
        self.long.load(Relaxed)
    }

    pub(crate) fn memory_is(&self, bytes: u64) {
        self.peak_memory.fetch_max(bytes, Relaxed);
    }

    pub(crate) fn peak_memory(&self) -> u64 {
        self.peak_memory.load(Relaxed)
    }

    /// Counts a host call and answers how many there were.
    pub(crate) fn host_call(&self) -> u32 {
        self.host_calls.fetch_add(1, Relaxed).saturating_add(1)
    }

    pub(crate) fn host_calls(&self) -> u32 {
        self.host_calls.load(Relaxed)
    }
}

fn thread_time() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
