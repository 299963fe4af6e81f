//! Time, as the platform sees it: 1 ms coarse, and never the guest's own.

use std::time::Duration;

use crate::host;

/// Milliseconds since 1970-01-01T00:00:00Z.
#[must_use]
pub fn now() -> u64 {
    host::now()
}

/// Seconds since 1970-01-01T00:00:00Z.
#[must_use]
pub fn now_seconds() -> u64 {
    now() / 1000
}

/// Time since this call began.
#[must_use]
pub fn elapsed() -> Duration {
    Duration::from_millis(host::elapsed())
}

/// Waits. Wakes early when the call's time is over.
pub fn sleep(time: Duration) {
    host::sleep(u32::try_from(time.as_millis()).unwrap_or(u32::MAX));
}
