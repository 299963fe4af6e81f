//! The only clock of the server. Tests use a clock of their own.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use chrono::{DateTime, SecondsFormat};
use store::Time;

/// A source of the current time.
#[derive(Debug, Clone, Default)]
pub struct Clock(Option<Arc<AtomicI64>>);

impl Clock {
    /// Returns the system clock.
    #[must_use]
    pub fn system() -> Self {
        Self(None)
    }

    /// Returns a manual clock, which changes only when it is advanced.
    #[must_use]
    pub fn standing_at(time: Time) -> Self {
        Self(Some(Arc::new(AtomicI64::new(time.0))))
    }

    /// Advances a manual clock. Does nothing to the system clock.
    pub fn advance(&self, by: Duration) {
        if let Some(clock) = &self.0 {
            clock.fetch_add(milliseconds(by), Ordering::SeqCst);
        }
    }

    /// Returns the current time in epoch milliseconds.
    #[must_use]
    pub fn now(&self) -> Time {
        match &self.0 {
            Some(clock) => Time(clock.load(Ordering::SeqCst)),
            None => Time(milliseconds(system())),
        }
    }

    /// Returns the time since 1970, as exact as the machine has it.
    #[must_use]
    pub fn since_1970(&self) -> Duration {
        match &self.0 {
            Some(_) => Duration::from_millis(u64::try_from(self.now().0).unwrap_or(0)),
            None => system(),
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the one place that reads the machine's clock"
)]
fn system() -> Duration {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default()
}

/// Formats a time as ISO 8601 in UTC, with milliseconds and `Z`.
#[must_use]
pub fn iso(time: Time) -> String {
    DateTime::from_timestamp_millis(time.0)
        .unwrap_or_default()
        .to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Reads a time in ISO 8601.
#[must_use]
pub fn parse_iso(text: &str) -> Option<Time> {
    let time = DateTime::parse_from_rfc3339(text).ok()?;
    Some(Time(time.timestamp_millis()))
}

pub(crate) fn time_after(time: Time, by: Duration) -> Time {
    Time(time.0.saturating_add(milliseconds(by)))
}

pub(crate) fn time_before(time: Time, by: Duration) -> Time {
    Time(time.0.saturating_sub(milliseconds(by)))
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_with_milliseconds_and_z() {
        assert_eq!(iso(Time(1_767_225_600_007)), "2026-01-01T00:00:00.007Z");
        let time = Some(Time(1_767_225_600_007));
        assert_eq!(parse_iso("2026-01-01T01:00:00.007+01:00"), time);
        assert_eq!(parse_iso("yesterday"), None);
    }
}
