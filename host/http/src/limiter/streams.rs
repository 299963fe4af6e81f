//! Limits on streams, of announcements and of events. Clients keep such a stream open without work, so
//! that it holds no concurrency permit of a request.

use std::sync::Arc;

use app::Error;
use gate::{Capacity, Gate, Permit, Shares};
use settings::Limits;

use crate::errors;

/// Maximum number of open streams, as a multiple of `limits.in_flight`.
const STREAMS_PER_REQUEST: u64 = 2;
/// Part of all streams that a project takes whenever they are free.
const STREAM_BASE_DIVISOR: u64 = 128;
/// Part of all streams that one project has at most.
const STREAM_CAP_DIVISOR: u64 = 4;

/// Streams that are open.
pub struct Streams(Gate<Arc<str>>);

/// Permit of an open stream, released when it is dropped.
pub type StreamPermit = Permit<Arc<str>>;

/// Returns the shares of projects in streams.
pub const fn stream_shares(limits: &Limits) -> Shares {
    let all = (limits.in_flight as u64).saturating_mul(STREAMS_PER_REQUEST);
    Shares::new(all, STREAM_BASE_DIVISOR, all / STREAM_CAP_DIVISOR)
}

impl Streams {
    pub(super) fn new(limits: &Limits) -> Self {
        Self(Gate::new(stream_shares(limits)))
    }

    /// Takes a permit for one more stream of a project.
    ///
    /// # Errors
    /// [`errors::PROJECT_BUSY`] or [`errors::NODE_BUSY`] if the project may have no further one now.
    pub fn acquire(&self, project: &Arc<str>) -> Result<StreamPermit, Error> {
        let permit = self.0.try_acquire(project);
        permit.map_err(|busy| errors::busy(Capacity::Streams, busy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_limited_and_released() {
        let limits = Limits {
            in_flight: 16,
            ..Default::default()
        };
        let streams = Streams::new(&limits);
        let one: Arc<str> = "a".into();
        let mut open: Vec<_> = (0..8).map(|_| streams.acquire(&one).unwrap()).collect();
        let refused = streams.acquire(&one).err().unwrap();
        assert!(refused.is(&errors::PROJECT_BUSY), "{refused}");
        drop(open.pop());
        assert!(streams.acquire(&one).is_ok());
    }
}
