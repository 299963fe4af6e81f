//! Wrong secrets, such as keys that strangers guess, and the addresses that sent too many of them.
//!
//! `governor`, which counts rates, cannot say whether an address is at its limit without counting
//! one more event, so this module counts by itself.

use std::{collections::HashMap, net::IpAddr, time::Duration};

use app::{Error, Time};
use parking_lot::Mutex;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

use super::counted_as;
use crate::errors;

const FAILURE_WINDOW: Duration = Duration::from_secs(60);
/// Number of counters above which expired counters are dropped.
const MAX_KEPT_WINDOWS: usize = 10_000;
/// Concurrency limit, for each kind of secret, of checks for addresses with too many wrong secrets.
pub const SUSPECTS_AT_ONCE: usize = 8;
/// Timeout of a secret that waits for such a check.
const SUSPECT_WAIT: Duration = Duration::from_secs(5);

/// Counts events in a sliding window: all events of this window, and the share of the previous one
/// still in reach.
#[derive(Debug, Default, Clone, Copy)]
struct Window {
    index: i64,
    current: u32,
    previous: u32,
}

impl Window {
    fn roll(&mut self, now: Time, length: i64) {
        let index = now.0.div_euclid(length);
        if index != self.index {
            self.previous = if index == self.index + 1 {
                self.current
            } else {
                0
            };
            (self.current, self.index) = (0, index);
        }
    }

    fn count(&self, now: Time, length: i64) -> u32 {
        let left = length - now.0.rem_euclid(length);
        let carried = i64::from(self.previous) * left / length;
        self.current
            .saturating_add(u32::try_from(carried).unwrap_or(u32::MAX))
    }
}

/// One sliding window per address, all with the same limit; 0 means no limit.
#[derive(Debug)]
struct Counters {
    limit: u32,
    length: i64,
    windows: Mutex<HashMap<IpAddr, Window>>,
}

impl Counters {
    fn new(limit: u32, length: Duration) -> Self {
        let length = i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
        Self {
            limit,
            length,
            windows: Mutex::default(),
        }
    }

    /// Returns the remaining number of events, or `None` without a limit.
    fn left(&self, key: &IpAddr, now: Time) -> Option<u32> {
        if self.limit == 0 {
            return None;
        }
        let mut windows = self.windows.lock();
        let Some(window) = windows.get_mut(key) else {
            return Some(self.limit);
        };
        window.roll(now, self.length);
        Some(self.limit.saturating_sub(window.count(now, self.length)))
    }

    fn add(&self, key: IpAddr, now: Time) {
        if self.limit == 0 {
            return;
        }
        let length = self.length;
        let mut windows = self.windows.lock();
        if windows.len() >= MAX_KEPT_WINDOWS {
            windows.retain(|_, window| {
                window.roll(now, length);
                window.count(now, length) > 0
            });
            // So many concurrent addresses belong to one caller, who could force a scan of all
            // counters for each one.
            if windows.len() >= MAX_KEPT_WINDOWS {
                windows.clear();
            }
        }
        let window = windows.entry(key).or_default();
        window.roll(now, length);
        window.current = window.current.saturating_add(1);
    }

    /// Returns the time until the current window ends.
    fn after(&self, now: Time) -> Duration {
        Duration::from_millis(
            u64::try_from(self.length - now.0.rem_euclid(self.length)).unwrap_or(1),
        )
    }
}

/// Kinds of secrets that strangers may guess. Each kind is counted separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretKind {
    /// An API key.
    Key,
    /// A link token.
    Link,
    /// The state of a callback.
    Callback,
}

/// Wrong secrets of one kind, and the permits with which secrets of suspected addresses are checked.
pub(crate) struct Suspects {
    failures: Counters,
    checks: Semaphore,
}

impl Suspects {
    pub(super) fn new(limit: u32) -> Self {
        Self {
            failures: Counters::new(limit, FAILURE_WINDOW),
            checks: Semaphore::new(SUSPECTS_AT_ONCE),
        }
    }

    /// Returns the time until an address with too many wrong secrets is trusted again; `None` for
    /// any other address.
    pub(crate) fn suspected(&self, address: IpAddr, now: Time) -> Option<Duration> {
        let failures = &self.failures;
        (failures.left(&counted_as(address), now) == Some(0)).then(|| failures.after(now))
    }

    /// Waits until one more secret of a suspected address may be checked.
    ///
    /// # Errors
    /// [`errors::TOO_MANY_FAILURES`] if too many are waiting.
    pub(crate) async fn acquire(&self) -> Result<SemaphorePermit<'_>, Error> {
        let permit = timeout(SUSPECT_WAIT, self.checks.acquire()).await;
        permit
            .ok()
            .and_then(Result::ok)
            .ok_or_else(|| errors::too_many_failures(SUSPECT_WAIT))
    }

    /// Counts a wrong secret.
    pub(crate) fn has_failed(&self, address: IpAddr, now: Time) {
        self.failures.add(counted_as(address), now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE_ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const OTHER_ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    fn counters(limit: u32) -> Counters {
        Counters::new(limit, Duration::from_millis(1_000))
    }

    #[test]
    fn a_window_slides_and_empties() {
        let counters = counters(4);
        let left = |at: i64| counters.left(&ONE_ADDRESS, Time(at)).unwrap();
        assert_eq!(left(0), 4);
        (0..4).for_each(|_| counters.add(ONE_ADDRESS, Time(10)));
        assert_eq!(left(999), 0);
        assert_eq!(left(1_500), 2, "half of the last window lies in reach");
        assert_eq!(left(2_000), 4);
        assert_eq!(
            counters.left(&OTHER_ADDRESS, Time(10)),
            Some(4),
            "keys do not share"
        );
    }

    #[test]
    fn no_limit_counts_nothing() {
        let counters = counters(0);
        counters.add(ONE_ADDRESS, Time(0));
        assert_eq!(counters.left(&ONE_ADDRESS, Time(0)), None);
        assert!(counters.windows.lock().is_empty());
    }

    #[test]
    fn counters_of_countless_addresses_are_dropped() {
        let counters = counters(4);
        (0..=MAX_KEPT_WINDOWS as u32)
            .for_each(|number| counters.add(IpAddr::V4(number.into()), Time(10)));
        assert!(counters.windows.lock().len() < MAX_KEPT_WINDOWS);
    }
}
