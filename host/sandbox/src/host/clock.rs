//! Time, in whole milliseconds: a finer clock would help a guest to watch its neighbours.

use std::{
    sync::atomic::Ordering,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use wasmtime::Result;

use crate::{Clock, abi::v1::clock::Host, state::State};

impl Host for State {
    fn now(&mut self) -> Result<u64> {
        Ok(match &self.clock {
            Clock::System => now().as_millis() as u64,
            Clock::Set(cell) => cell.load(Ordering::Relaxed),
        })
    }

    fn elapsed(&mut self) -> Result<u64> {
        Ok(self.trace.elapsed().as_millis() as u64)
    }

    async fn sleep(&mut self, ms: u32) -> Result<()> {
        tokio::time::sleep(Duration::from_millis(ms.into()).min(self.left())).await;
        Ok(())
    }
}

/// Since 1970, in whole milliseconds.
#[expect(clippy::disallowed_methods, reason = "a guest asks for the real time")]
pub(super) fn now() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Duration::from_millis(now.as_millis() as u64)
}
