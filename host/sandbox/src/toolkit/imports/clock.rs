//! Time in whole milliseconds. A finer clock would let a guest observe its neighbors.

use std::{
    sync::atomic::Ordering,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use wasmtime::Result;

use crate::{
    Clock,
    cassette::{CassetteSession, Nondeterminism},
    contract::v1::clock::Host,
    toolkit::State,
};

/// Time beyond the end of a call that a sleep may last. A guest that oversleeps is then always
/// stopped by the deadline.
const SLEEP_PAST_DEADLINE: Duration = Duration::from_secs(1);

impl Host for State {
    fn now(&mut self) -> Result<u64> {
        self.count_host_call()?;
        Ok(read(self.session.as_deref(), Nondeterminism::Now, || {
            now(&self.clock)
        }))
    }

    fn elapsed(&mut self) -> Result<u64> {
        self.count_host_call()?;
        Ok(read(
            self.session.as_deref(),
            Nondeterminism::Elapsed,
            || self.trace.elapsed(),
        ))
    }

    async fn sleep(&mut self, ms: u32) -> Result<()> {
        self.count_host_call()?;
        // In a replay, recorded time has already passed.
        if self
            .session
            .as_ref()
            .is_some_and(|session| session.is_replay())
        {
            return Ok(());
        }
        tokio::time::sleep(
            Duration::from_millis(ms.into()).min(self.remaining_time() + SLEEP_PAST_DEADLINE),
        )
        .await;
        Ok(())
    }
}

/// Reads a clock in whole milliseconds.
pub(super) fn read(
    session: Option<&CassetteSession>,
    source: Nondeterminism,
    real: impl FnOnce() -> Duration,
) -> u64 {
    match session {
        None => real().as_millis() as u64,
        Some(session) => session.time(source, || real().as_millis() as u64),
    }
}

/// Returns the time since 1970, in whole milliseconds.
#[expect(clippy::disallowed_methods, reason = "a guest asks for the real time")]
pub(crate) fn now(clock: &Clock) -> Duration {
    let since = match clock {
        Clock::System => SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_millis() as u64,
        Clock::Set(cell) => cell.load(Ordering::Relaxed),
    };
    Duration::from_millis(since)
}
