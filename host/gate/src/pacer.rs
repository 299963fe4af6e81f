//! Pace of the work for each key, such as the messages to an endpoint, so that one key does not delay
//! the others.
//!
//! A key has few permits until some of its work has succeeded, fewer after each failure, and none for
//! a pause after [`FAILURES_BEFORE_PAUSE`] failures in a row. Work for which no permit is free may be
//! deferred, and done earlier if a permit frees up. The state is in memory: a restart resets every
//! key. Times are in milliseconds since the epoch.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::keys::Keys;

/// Number of concurrent permits of a key before any of its work has succeeded.
const FIRST_LIMIT: usize = 2;
/// Failures in a row after which a key is paused.
const FAILURES_BEFORE_PAUSE: u32 = 10;
/// Weight of a new measurement in the average time of the work, as a divisor.
const AVERAGE_WEIGHT: u32 = 8;
/// Time that work is expected to take before one was measured.
const FIRST_ESTIMATE: Duration = Duration::from_millis(10);
/// Minimum time between the due times of two deferrals.
const MIN_INTERVAL: Duration = Duration::from_micros(100);

/// Pace of the work for each key. Cloning is cheap.
#[derive(Clone)]
pub struct Pacer {
    keys: Arc<Mutex<Keys<String, Pace>>>,
    max_deferral: Duration,
}

/// Pace of one key.
struct Pace {
    /// Start times of the work in progress.
    open: Vec<i64>,
    /// Maximum number of concurrent permits.
    limit: usize,
    failures: u32,
    paused_until: i64,
    /// Average time of the work.
    average: Duration,
    /// Last due time of a deferral, since the epoch. Several may be in one millisecond.
    last_retry: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            open: Vec::new(),
            limit: FIRST_LIMIT,
            failures: 0,
            paused_until: 0,
            average: FIRST_ESTIMATE,
            last_retry: Duration::ZERO,
        }
    }
}

/// Permit for one piece of work, until it is dropped. The measured time of the work ends then.
pub struct PacedPermit {
    pacer: Pacer,
    key: String,
    begun: i64,
    acquired: Instant,
    /// True if an attempt was made.
    attempted: bool,
}

impl Pacer {
    /// Returns a pacer that defers work by at most a time.
    #[must_use]
    pub fn new(max_deferral: Duration) -> Self {
        Self {
            keys: Arc::default(),
            max_deferral,
        }
    }

    /// Acquires a permit of a key, if one is free.
    #[must_use]
    pub fn acquire(&self, key: &str, now: i64) -> Option<PacedPermit> {
        let key = key.to_owned();
        let is_acquired = self.with_pace(&key, now, |pace| {
            let is_free = pace.paused_until <= now && pace.open.len() < pace.limit;
            if is_free {
                pace.open.push(now);
            }
            is_free
        });
        is_acquired.then(|| PacedPermit {
            pacer: self.clone(),
            key,
            begun: now,
            acquired: Instant::now(),
            attempted: false,
        })
    }

    /// Returns the time to which work is deferred for which no permit was free.
    #[must_use]
    pub fn retry_at(&self, key: &str, now: i64) -> i64 {
        self.with_pace(&key.to_owned(), now, |pace| {
            pace.retry_after(pace.paused_until.max(now), now, self.max_deferral)
        })
    }

    /// Changes the pace of a key. A key without work, failures and a pause is idle.
    fn with_pace<R>(&self, key: &String, now: i64, change: impl FnOnce(&mut Pace) -> R) -> R {
        let mut keys = self.keys.lock();
        let is_idle =
            |pace: &Pace| pace.open.is_empty() && pace.failures == 0 && pace.paused_until <= now;
        change(keys.entry(key, is_idle, Pace::default))
    }
}

impl Pace {
    fn measure(&mut self, took: Duration) {
        self.average = (self.average * (AVERAGE_WEIGHT - 1) + took) / AVERAGE_WEIGHT;
    }

    /// Returns the next due time after a time. Due times are as far apart as work can be done. If all work
    /// in progress takes long, the intervals are longer.
    fn retry_after(&mut self, from: i64, now: i64, max_deferral: Duration) -> i64 {
        let newest = self.open.iter().max().map_or(0, |begun| now - begun);
        let limit = u32::try_from(self.limit).unwrap_or(u32::MAX).max(1);
        let interval = self.average.max(milliseconds(newest)) / limit;
        let interval = interval.clamp(MIN_INTERVAL, max_deferral);
        let from = milliseconds(from);
        let next = self.last_retry.max(from) + interval;
        self.last_retry = if next > from + max_deferral {
            from + interval
        } else {
            next
        };
        i64::try_from(self.last_retry.as_micros().div_ceil(1_000)).unwrap_or(i64::MAX)
    }
}

impl PacedPermit {
    /// Notes that the work has succeeded. The limit of the key grows up to `max_limit`.
    pub fn accepted(&mut self, max_limit: usize) {
        self.attempted = true;
        self.pacer.with_pace(&self.key, self.begun, |pace| {
            if pace.failures >= FAILURES_BEFORE_PAUSE {
                // A key that has recovered starts over.
                pace.average = self.acquired.elapsed();
            }
            pace.failures = 0;
            pace.paused_until = 0;
            pace.limit = (pace.limit + 1).min(max_limit);
        });
    }

    /// Notes a failure. Returns the number of failures in a row.
    pub fn failed(&mut self, now: i64, pause: Duration) -> u32 {
        self.attempted = true;
        self.pacer.with_pace(&self.key, now, |pace| {
            pace.failures = pace.failures.saturating_add(1);
            pace.limit = pace.limit.saturating_sub(1).max(1);
            if pace.failures >= FAILURES_BEFORE_PAUSE {
                let pause = i64::try_from(pause.as_millis()).unwrap_or(i64::MAX);
                pace.paused_until = now.saturating_add(pause);
                pace.last_retry = milliseconds(pace.paused_until);
            }
            pace.failures
        })
    }
}

impl Drop for PacedPermit {
    fn drop(&mut self) {
        self.pacer.with_pace(&self.key, self.begun, |pace| {
            if self.attempted {
                pace.measure(self.acquired.elapsed());
            }
            if let Some(at) = pace.open.iter().position(|begun| *begun == self.begun) {
                pace.open.swap_remove(at);
            }
        });
    }
}

fn milliseconds(count: i64) -> Duration {
    Duration::from_millis(u64::try_from(count).unwrap_or(0))
}

#[cfg(test)]
mod tests;
