//! Times at which the connections of a round send their requests.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

/// Times of the requests of one round, shared by its connections.
pub(crate) struct Schedule {
    begun: Instant,
    end: Instant,
    /// Time between two requests of all connections together. Without one, each connection sends a
    /// request when it has the response to the one before.
    interval: Option<Duration>,
    /// Number of requests that the connections have started.
    count: Cell<usize>,
}

impl Schedule {
    /// Starts a round of a duration.
    pub(crate) fn start(duration: Duration, interval: Option<Duration>) -> Self {
        let begun = Instant::now();
        Self {
            begun,
            end: begun + duration,
            interval,
            count: Cell::new(0),
        }
    }

    /// Waits until the next request is due. Returns its number and the time from which its latency
    /// counts, or `None` after the end.
    pub(crate) async fn next(&self) -> Option<(usize, Instant)> {
        let number = self.count.replace(self.count.get() + 1);
        let now = Instant::now();
        let due = match self.interval {
            Some(interval) => self.begun + interval.mul_f64(number as f64),
            None => now,
        };
        if due.max(now) >= self.end {
            return None;
        }
        if due <= now {
            return Some((number, due));
        }
        tokio::time::sleep_until(due.into()).await;
        // The timer has a resolution of 1 ms. Its delay is not the server's.
        Some((number, Instant::now()))
    }

    /// Returns the time since the start of the round.
    pub(crate) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }
}
