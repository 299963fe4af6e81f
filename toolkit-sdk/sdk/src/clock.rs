//! The platform's clock. It has a resolution of 1 ms and is never the guest's own clock.

use std::time::Duration;

use crate::host;

/// Returns the milliseconds since 1970-01-01T00:00:00Z.
#[must_use]
pub fn now() -> u64 {
    host::now()
}

/// Returns the seconds since 1970-01-01T00:00:00Z.
#[must_use]
pub fn now_seconds() -> u64 {
    now() / 1000
}

/// Returns the time since this call started.
#[must_use]
pub fn elapsed() -> Duration {
    Duration::from_millis(host::elapsed())
}

/// Sleeps. Returns early when the deadline of the call is reached.
pub fn sleep(time: Duration) {
    host::sleep(u32::try_from(time.as_millis()).unwrap_or(u32::MAX));
}
