//! What one call has used, readable from outside while it runs and after it was cut off.

use std::{
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};

use crate::ticker::TICK;

/// How long a call may be held up beyond its wall-clock time, all its waits for a processor together.
pub(crate) const HELD_UP: Duration = Duration::from_secs(60);

/// Counters of one call. Processor time is the time of the thread that polls the guest, so waiting costs nothing and a
/// busy machine is not held against the guest.
///
/// A thread's own clock costs a system call, and most polls are over before it could tell much. So a poll is first timed by
/// the monotonic clock, which costs nothing; the thread's clock takes over at the first tick that finds the poll running,
/// and what it did not see counts as one tick at most.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// Nanoseconds of finished polls, and of the running one up to `since`.
    used: AtomicU64,
    /// When the running poll began by the monotonic clock, or, once it is `watched`, when that began by the thread's.
    since: AtomicU64,
    /// The thread's clock is in charge of the running poll.
    watched: AtomicBool,
    /// The guest has run for more than a moment and should take turns with others.
    long: AtomicBool,
    /// The guest was interrupted and could go on at once.
    yielded: AtomicBool,
    /// Nanoseconds for which the guest could go on and had no processor.
    held_up: AtomicU64,
    /// Since when that has been so, by the monotonic clock; 0 when it is not so.
    ready: AtomicU64,
    peak_memory: AtomicU64,
    host_calls: AtomicU32,
}

impl Meter {
    /// A poll of the guest begins on this thread.
    pub(crate) fn begin(&self) {
        self.watched.store(false, Relaxed);
        self.since.store(now(ClockId::Monotonic), Relaxed);
    }

    /// The poll ends.
    pub(crate) fn end(&self) {
        if self.watched.load(Relaxed) {
            self.advance(now(ClockId::ThreadCPUTime));
        } else {
            self.used.fetch_add(self.unwatched(), Relaxed);
        }
    }

    /// Processor time so far, asked from inside a poll that a tick has found.
    pub(crate) fn used_now(&self) -> Duration {
        let thread = now(ClockId::ThreadCPUTime);
        if self.watched.swap(true, Relaxed) {
            self.advance(thread);
        } else {
            self.used.fetch_add(self.unwatched(), Relaxed);
            self.since.store(thread, Relaxed);
        }
        self.used()
    }

    /// Nanoseconds of a poll that no tick has found yet. Most of a longer time went to others.
    fn unwatched(&self) -> u64 {
        now(ClockId::Monotonic).saturating_sub(self.since.load(Relaxed)).min(TICK.as_nanos() as u64)
    }

    fn advance(&self, thread: u64) {
        self.used.fetch_add(thread.saturating_sub(self.since.swap(thread, Relaxed)), Relaxed);
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

    /// The guest was interrupted so that others come to their turn.
    pub(crate) fn yields(&self) {
        self.yielded.store(true, Relaxed);
    }

    /// Whether that was why its last turn ended.
    pub(crate) fn has_yielded(&self) -> bool {
        self.yielded.load(Relaxed)
    }

    /// The guest could go on from here.
    pub(crate) fn ready(&self) {
        let _ = self.ready.compare_exchange(0, now(ClockId::Monotonic), Relaxed, Relaxed);
    }

    /// One turn of a guest that was [`Meter::ready`]: what passed before it, and what others got of it, is time it was
    /// held up.
    pub(crate) fn turn<T>(&self, poll: impl FnOnce() -> T) -> T {
        self.yielded.store(false, Relaxed);
        let (begun, used) = (now(ClockId::Monotonic), self.used());
        self.held_up.fetch_add(begun.saturating_sub(self.ready.swap(0, Relaxed)), Relaxed);
        let polled = poll();
        let (took, used) = (now(ClockId::Monotonic).saturating_sub(begun), self.used().saturating_sub(used));
        self.held_up.fetch_add(took.saturating_sub(used.as_nanos() as u64), Relaxed);
        polled
    }

    /// How long the guest could go on and had no processor.
    pub(crate) fn held_up(&self) -> Duration {
        let since = self.ready.load(Relaxed);
        let waiting = if since == 0 { 0 } else { now(ClockId::Monotonic).saturating_sub(since) };
        Duration::from_nanos(self.held_up.load(Relaxed) + waiting)
    }

    /// When a call has to end that should end at `deadline`: later by as much as it was held up, within bounds.
    pub(crate) fn end_of(&self, deadline: Instant) -> Instant {
        deadline + self.held_up().min(HELD_UP)
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

fn now(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
