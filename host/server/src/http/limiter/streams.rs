//! Limits on streams of announcements. Clients keep such a stream open without work, so that it holds no
//! concurrency permit of a request.

use std::sync::Arc;

use app::core::keyed_limit::KeyedLimit;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::Limits;

/// Maximum number of open streams, as a multiple of `limits.in_flight`.
pub(crate) const STREAMS_PER_REQUEST: usize = 2;
/// Maximum number of open streams of one project, as a multiple of `limits.in_flight_per_project`.
pub(crate) const STREAMS_PER_PROJECT_REQUEST: usize = 4;

/// Streams that are open.
pub(crate) struct Streams {
    all: Arc<Semaphore>,
    projects: KeyedLimit<Arc<str>>,
}

/// Permit of an open stream, released when it is dropped.
pub(crate) struct StreamPermit {
    _permits: (OwnedSemaphorePermit, OwnedSemaphorePermit),
}

impl Streams {
    pub(super) fn new(limits: &Limits) -> Self {
        let all = limits.in_flight.saturating_mul(STREAMS_PER_REQUEST);
        let of_project = limits.in_flight_per_project;
        Self {
            all: Arc::new(Semaphore::new(all.min(Semaphore::MAX_PERMITS))),
            projects: KeyedLimit::new(of_project.saturating_mul(STREAMS_PER_PROJECT_REQUEST)),
        }
    }

    /// Takes a permit for one more stream of a project. Returns none if the project or the server has
    /// too many.
    pub(crate) fn try_enter(&self, project: &Arc<str>) -> Option<StreamPermit> {
        let of_project = self.projects.try_acquire(project)?;
        let of_node = self.all.clone().try_acquire_owned().ok()?;
        Some(StreamPermit {
            _permits: (of_project, of_node),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_limited_and_released() {
        let limits = Limits {
            in_flight: 3,
            in_flight_per_project: 1,
            ..Default::default()
        };
        let streams = Streams::new(&limits);
        let (one, other): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let mut open = [(); STREAMS_PER_PROJECT_REQUEST]
            .map(|()| streams.try_enter(&one).unwrap())
            .into_iter();
        assert!(streams.try_enter(&one).is_none());
        let _others = [(); 2].map(|()| streams.try_enter(&other).unwrap());
        assert!(streams.try_enter(&other).is_none(), "the server is full");
        drop(open.next());
        assert!(streams.try_enter(&other).is_some());
    }
}
