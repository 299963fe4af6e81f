//! Pace of the messages to each endpoint, so that one endpoint does not delay the others.
//!
//! An endpoint gets few messages concurrently until it has accepted some, fewer after each failure,
//! and no message for a pause after [`FAILURES_BEFORE_PAUSE`] failures in a row. A delivery for
//! which no permit is free waits in memory. If many wait, they are deferred in the store, and sent
//! earlier if a permit frees up. The state is in memory: a restart resets every endpoint.
//!
//! Polls, subscriptions at providers and actions acquire permits of their project in the same way, and are
//! not deferred.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use store::Time;
use tokio::time::Instant;

use crate::{core::clock::time_after, work::MAX_DEFERRAL};

/// Maximum number of concurrent messages to an endpoint before it has accepted one.
const FIRST_CONCURRENT_MESSAGES: usize = 2;
/// Failures in a row after which an endpoint is paused.
const FAILURES_BEFORE_PAUSE: u32 = 10;
/// Number of endpoints above which the state of idle ones is dropped.
const MAX_ENDPOINTS: usize = 10_000;
/// Weight of a new measurement in the average time of a message, as a divisor.
const AVERAGE_WEIGHT: u32 = 8;
/// Time that a message is expected to take before one was measured.
const FIRST_ESTIMATE: Duration = Duration::from_millis(10);
/// Minimum time between the due times of two deferred deliveries.
const MIN_INTERVAL: Duration = Duration::from_micros(100);

/// Pace of the messages to each endpoint that this server has sent some to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pacer(Arc<Mutex<HashMap<String, Endpoint>>>);

#[derive(Debug)]
struct Endpoint {
    /// Start times of the messages in progress.
    open: Vec<Time>,
    /// Maximum number of concurrent messages.
    limit: usize,
    failures: u32,
    paused_until: Time,
    /// Average time of a message.
    average: Duration,
    /// Last due time of a deferred delivery, since the epoch. Several may be in one millisecond.
    last_retry: Duration,
}

impl Default for Endpoint {
    fn default() -> Self {
        Self {
            open: Vec::new(),
            limit: FIRST_CONCURRENT_MESSAGES,
            failures: 0,
            paused_until: Time(0),
            average: FIRST_ESTIMATE,
            last_retry: Duration::ZERO,
        }
    }
}

/// Permit for one message, until it is dropped. The measured time of the message ends then.
pub(crate) struct Permit {
    pacer: Pacer,
    id: String,
    begun: Time,
    acquired: Instant,
    /// True if an attempt was made.
    attempted: bool,
}

impl Pacer {
    /// Acquires the permit for a message to an endpoint, if one is free.
    pub(super) fn acquire(&self, id: &str, now: Time) -> Option<Permit> {
        let mut all = self.0.lock();
        if all.len() >= MAX_ENDPOINTS {
            all.retain(|_, endpoint| !endpoint.open.is_empty() || endpoint.paused_until > now);
        }
        let endpoint = all.entry(id.to_owned()).or_default();
        if endpoint.paused_until > now || endpoint.open.len() >= endpoint.limit {
            return None;
        }
        endpoint.open.push(now);
        Some(Permit {
            pacer: self.clone(),
            id: id.to_owned(),
            begun: now,
            acquired: Instant::now(),
            attempted: false,
        })
    }

    /// Returns the due time to which a message is deferred for which no permit was free.
    pub(super) fn retry_at(&self, id: &str, now: Time) -> Time {
        let mut all = self.0.lock();
        let endpoint = all.entry(id.to_owned()).or_default();
        endpoint.retry_after(endpoint.paused_until.max(now), now)
    }
}

impl Endpoint {
    fn measure(&mut self, took: Duration) {
        self.average = (self.average * (AVERAGE_WEIGHT - 1) + took) / AVERAGE_WEIGHT;
    }

    /// Returns the next due time after a time. Due times are as far apart as messages can be sent. If all
    /// messages under way take long, the intervals are longer.
    fn retry_after(&mut self, from: Time, now: Time) -> Time {
        let newest = self.open.iter().max().map_or(0, |begun| now.0 - begun.0);
        let newest = Duration::from_millis(u64::try_from(newest).unwrap_or(0));
        let limit = u32::try_from(self.limit).unwrap_or(u32::MAX).max(1);
        let interval = (self.average.max(newest) / limit).clamp(MIN_INTERVAL, MAX_DEFERRAL);
        let from = since_epoch(from);
        let next = self.last_retry.max(from) + interval;
        self.last_retry = if next > from + MAX_DEFERRAL {
            from + interval
        } else {
            next
        };
        let milliseconds = self.last_retry.as_micros().div_ceil(1_000);
        Time(i64::try_from(milliseconds).unwrap_or(i64::MAX))
    }
}

impl Permit {
    /// Notes that the endpoint accepted the message.
    pub(super) fn accepted(&mut self, max_limit: usize) {
        self.attempted = true;
        let mut all = self.pacer.0.lock();
        let endpoint = all.entry(self.id.clone()).or_default();
        if endpoint.failures >= FAILURES_BEFORE_PAUSE {
            // An endpoint that has recovered starts over.
            endpoint.average = self.acquired.elapsed();
        }
        endpoint.failures = 0;
        endpoint.paused_until = Time(0);
        endpoint.limit = (endpoint.limit + 1).min(max_limit);
    }

    /// Notes a failure. Returns the number of failures in a row.
    pub(super) fn failed(&mut self, now: Time, pause: Duration) -> u32 {
        self.attempted = true;
        let mut all = self.pacer.0.lock();
        let endpoint = all.entry(self.id.clone()).or_default();
        endpoint.failures = endpoint.failures.saturating_add(1);
        endpoint.limit = endpoint.limit.saturating_sub(1).max(1);
        if endpoint.failures >= FAILURES_BEFORE_PAUSE {
            endpoint.paused_until = time_after(now, pause);
            endpoint.last_retry = since_epoch(endpoint.paused_until);
        }
        endpoint.failures
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut all = self.pacer.0.lock();
        let Some(endpoint) = all.get_mut(&self.id) else {
            return;
        };
        if self.attempted {
            endpoint.measure(self.acquired.elapsed());
        }
        if let Some(place) = endpoint.open.iter().position(|begun| *begun == self.begun) {
            endpoint.open.swap_remove(place);
        }
    }
}

fn since_epoch(time: Time) -> Duration {
    Duration::from_millis(u64::try_from(time.0).unwrap_or(0))
}

#[cfg(test)]
mod tests;
