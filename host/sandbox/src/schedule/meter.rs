//! Resource usage of one call, readable from outside while it runs and after it was stopped.

use std::{
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};

use super::ticker::TICK_INTERVAL;

/// Maximum extension of a call's wall-clock time for its waits for a processor, all together.
pub(crate) const MAX_HELD_UP: Duration = Duration::from_secs(60);

/// Counters of one call. Processor time is the time of the thread that polls the guest, so waiting
/// costs nothing and a busy machine does not count against the guest.
///
/// Reading a thread's own clock costs a system call, and most polls are too short for it to be
/// useful. A poll is therefore first timed by the monotonic clock, which costs nothing. The
/// thread's clock takes over at the first tick that finds the poll running. The time before that
/// counts as at most one tick.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// Processor time of finished polls, and of the running one up to `since`, in nanoseconds.
    used: AtomicU64,
    /// Start of the running poll by the monotonic clock. After `watched` is set, time of the last
    /// reading of the thread's clock.
    since: AtomicU64,
    /// True if the thread's clock times the running poll.
    watched: AtomicBool,
    /// True if the guest is long-running and has to take turns with others.
    long: AtomicBool,
    /// True if the guest was interrupted and could continue immediately.
    yielded: AtomicBool,
    /// Time for which the guest was ready and had no processor, in nanoseconds.
    held_up: AtomicU64,
    /// Time since which the guest is ready, by the monotonic clock; 0 if it is not ready.
    ready: AtomicU64,
    peak_memory: AtomicU64,
    host_calls: AtomicU32,
}

impl Meter {
    /// Returns the processor time so far. Call it only from inside a poll that a tick has found.
    pub(crate) fn used_now(&self) -> Duration {
        let thread = now(ClockId::ThreadCPUTime);
        if self.watched.swap(true, Relaxed) {
            self.advance(thread);
        } else {
            self.count_unwatched(now(ClockId::Monotonic));
            self.since.store(thread, Relaxed);
        }
        self.used()
    }

    /// Counts the time of a poll that no tick has found yet, at most one tick. Most of a longer
    /// time went to other threads.
    fn count_unwatched(&self, now: u64) {
        let nanos = now
            .saturating_sub(self.since.load(Relaxed))
            .min(TICK_INTERVAL.as_nanos() as u64);
        self.used.fetch_add(nanos, Relaxed);
    }

    fn advance(&self, thread: u64) {
        self.used.fetch_add(
            thread.saturating_sub(self.since.swap(thread, Relaxed)),
            Relaxed,
        );
    }

    /// Returns the processor time of finished polls.
    pub(crate) fn used(&self) -> Duration {
        Duration::from_nanos(self.used.load(Relaxed))
    }

    pub(crate) fn set_long(&self) {
        self.long.store(true, Relaxed);
    }

    pub(crate) fn is_long(&self) -> bool {
        self.long.load(Relaxed)
    }

    /// Records that the guest was interrupted to give others a turn.
    pub(crate) fn set_yielded(&self) {
        self.yielded.store(true, Relaxed);
    }

    /// Returns true if the last turn ended with such an interruption.
    pub(crate) fn has_yielded(&self) -> bool {
        self.yielded.load(Relaxed)
    }

    /// Marks the guest as ready to continue.
    pub(crate) fn set_ready(&self) {
        let _ = self
            .ready
            .compare_exchange(0, now(ClockId::Monotonic), Relaxed, Relaxed);
    }

    /// Runs and times one poll of the guest on this thread. The time since [`Meter::set_ready`] and
    /// the processor time that others used during the poll count as time held up.
    pub(crate) fn measure_turn<T>(&self, poll: impl FnOnce() -> T) -> T {
        self.yielded.store(false, Relaxed);
        self.watched.store(false, Relaxed);
        let begun = now(ClockId::Monotonic);
        self.since.store(begun, Relaxed);
        let used_before = self.used.load(Relaxed);
        let ready = self.ready.swap(0, Relaxed);
        if ready > 0 {
            self.held_up.fetch_add(begun.saturating_sub(ready), Relaxed);
        }
        let polled = poll();
        let ended = now(ClockId::Monotonic);
        if self.watched.load(Relaxed) {
            self.advance(now(ClockId::ThreadCPUTime));
        } else {
            self.count_unwatched(ended);
        }
        let used = self.used.load(Relaxed).saturating_sub(used_before);
        let took = ended.saturating_sub(begun);
        self.held_up.fetch_add(took.saturating_sub(used), Relaxed);
        polled
    }

    /// Returns the time for which the guest was ready and had no processor.
    pub(crate) fn held_up(&self) -> Duration {
        let since = self.ready.load(Relaxed);
        let waiting = if since == 0 {
            0
        } else {
            now(ClockId::Monotonic).saturating_sub(since)
        };
        Duration::from_nanos(self.held_up.load(Relaxed) + waiting)
    }

    /// Returns the actual end of a call with this deadline: later by the time it was held up, up to
    /// [`MAX_HELD_UP`].
    pub(crate) fn extended_deadline(&self, deadline: Instant) -> Instant {
        deadline + self.held_up().min(MAX_HELD_UP)
    }

    pub(crate) fn record_memory(&self, bytes: u64) {
        self.peak_memory.fetch_max(bytes, Relaxed);
    }

    pub(crate) fn peak_memory(&self) -> u64 {
        self.peak_memory.load(Relaxed)
    }

    /// Counts a host call and returns the number of calls so far.
    pub(crate) fn count_host_call(&self) -> u32 {
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
