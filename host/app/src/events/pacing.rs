//! Pace of the messages to each endpoint, so that one endpoint does not delay the others.
//!
//! An endpoint gets few messages at a time until it has accepted some, fewer after each failure, and
//! none for a pause after [`FAILURES_BEFORE_PAUSE`] failures in a row. A delivery that finds no room
//! waits in memory. If many wait, they stay in the store with a later due time, their turn, before
//! which they are sent only if there is room. The state is in memory: after a restart every endpoint
//! begins anew.
//!
//! Polls, subscriptions at providers and actions take room of their project in the same way, and have no turns.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use store::Time;
use tokio::time::Instant;

use crate::{core::clock::time_after, work::MAX_TURN_DELAY};

/// Messages that an endpoint gets at a time before it has accepted one.
const FIRST_ROOM_MESSAGES: usize = 2;
/// Failures in a row after which an endpoint is paused.
const FAILURES_BEFORE_PAUSE: u32 = 10;
/// Number of endpoints above which the state of idle ones is dropped.
const MAX_ENDPOINTS: usize = 10_000;
/// Weight of a new measurement in the average time of a message, as a divisor.
const AVERAGE_WEIGHT: u32 = 8;
/// Time that a message is expected to take before one was measured.
const FIRST_ESTIMATE: Duration = Duration::from_millis(10);
/// Minimum time between two turns.
const MIN_INTERVAL: Duration = Duration::from_micros(100);

/// The endpoints that this server has sent messages to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Endpoints(Arc<Mutex<HashMap<String, Endpoint>>>);

#[derive(Debug)]
struct Endpoint {
    /// Times at which the messages under way began.
    open: Vec<Time>,
    /// Messages that it may get at a time.
    room: usize,
    failures: u32,
    paused_until: Time,
    /// Average time of a message.
    average: Duration,
    /// Time of the last turn that a waiting delivery got, since the epoch. Several turns may be in one
    /// millisecond.
    last_turn: Duration,
}

impl Default for Endpoint {
    fn default() -> Self {
        Self {
            open: Vec::new(),
            room: FIRST_ROOM_MESSAGES,
            failures: 0,
            paused_until: Time(0),
            average: FIRST_ESTIMATE,
            last_turn: Duration::ZERO,
        }
    }
}

/// Room for one message. Dropping it frees the room. The time of a message lasts until then.
pub(crate) struct Room {
    endpoints: Endpoints,
    id: String,
    begun: Time,
    entered: Instant,
    /// True if an attempt was made.
    attempted: bool,
}

impl Endpoints {
    /// Takes room for a message to an endpoint, if there is some.
    pub(super) fn enter(&self, id: &str, now: Time) -> Option<Room> {
        let mut all = self.0.lock();
        if all.len() >= MAX_ENDPOINTS {
            all.retain(|_, endpoint| !endpoint.open.is_empty() || endpoint.paused_until > now);
        }
        let endpoint = all.entry(id.to_owned()).or_default();
        if endpoint.paused_until > now || endpoint.open.len() >= endpoint.room {
            return None;
        }
        endpoint.open.push(now);
        Some(Room {
            endpoints: self.clone(),
            id: id.to_owned(),
            begun: now,
            entered: Instant::now(),
            attempted: false,
        })
    }

    /// Returns the time of a later turn for a message that found no room.
    pub(super) fn turn(&self, id: &str, now: Time) -> Time {
        let mut all = self.0.lock();
        let endpoint = all.entry(id.to_owned()).or_default();
        endpoint.turn_after(endpoint.paused_until.max(now), now)
    }
}

impl Endpoint {
    fn measure(&mut self, took: Duration) {
        self.average = (self.average * (AVERAGE_WEIGHT - 1) + took) / AVERAGE_WEIGHT;
    }

    /// Returns the next turn after a time. Turns are as far apart as messages can be sent. If all
    /// messages under way take long, the intervals are longer.
    fn turn_after(&mut self, from: Time, now: Time) -> Time {
        let newest = self.open.iter().max().map_or(0, |begun| now.0 - begun.0);
        let newest = Duration::from_millis(u64::try_from(newest).unwrap_or(0));
        let room = u32::try_from(self.room).unwrap_or(u32::MAX).max(1);
        let interval = (self.average.max(newest) / room).clamp(MIN_INTERVAL, MAX_TURN_DELAY);
        let from = since_epoch(from);
        let next = self.last_turn.max(from) + interval;
        self.last_turn = if next > from + MAX_TURN_DELAY {
            from + interval
        } else {
            next
        };
        let milliseconds = self.last_turn.as_micros().div_ceil(1_000);
        Time(i64::try_from(milliseconds).unwrap_or(i64::MAX))
    }
}

impl Room {
    /// Notes that the endpoint accepted the message.
    pub(super) fn accepted(&mut self, max_room: usize) {
        self.attempted = true;
        let mut all = self.endpoints.0.lock();
        let endpoint = all.entry(self.id.clone()).or_default();
        if endpoint.failures >= FAILURES_BEFORE_PAUSE {
            // An endpoint that has recovered begins anew.
            endpoint.average = self.entered.elapsed();
        }
        endpoint.failures = 0;
        endpoint.paused_until = Time(0);
        endpoint.room = (endpoint.room + 1).min(max_room);
    }

    /// Notes a failure. Returns the number of failures in a row.
    pub(super) fn failed(&mut self, now: Time, pause: Duration) -> u32 {
        self.attempted = true;
        let mut all = self.endpoints.0.lock();
        let endpoint = all.entry(self.id.clone()).or_default();
        endpoint.failures = endpoint.failures.saturating_add(1);
        endpoint.room = endpoint.room.saturating_sub(1).max(1);
        if endpoint.failures >= FAILURES_BEFORE_PAUSE {
            endpoint.paused_until = time_after(now, pause);
            endpoint.last_turn = since_epoch(endpoint.paused_until);
        }
        endpoint.failures
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut all = self.endpoints.0.lock();
        let Some(endpoint) = all.get_mut(&self.id) else {
            return;
        };
        if self.attempted {
            endpoint.measure(self.entered.elapsed());
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
