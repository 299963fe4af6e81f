//! Rate and concurrency limits, which bound what one caller can take from the others.
//!
//! All counters live in this process and are reset by a restart; nothing else depends on them.

mod arrivals;
mod rates;
mod streams;
mod suspects;

use std::{
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
    time::Duration,
};

use app::{Error, core::keyed_limit::KeyedLimit};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

pub(crate) use self::{
    arrivals::Arrival,
    rates::{Allowance, RATE_WINDOW},
    streams::{STREAMS_PER_PROJECT_REQUEST, STREAMS_PER_REQUEST, StreamPermit},
    suspects::{SUSPECTS_AT_ONCE, SecretKind},
};
use self::{arrivals::Arrivals, rates::Rates, streams::Streams, suspects::Suspects};

use crate::http::errors;

/// Returns the address that is counted: an IPv6 address counts as its /64, which belongs to one
/// caller as a whole.
pub(crate) fn counted_as(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX))),
    }
}

/// All limits of requests.
pub(crate) struct RequestLimiter {
    /// Requests of an organization, of a project, and with one key.
    pub rates: Rates,
    /// Failed authentications from an address, by [`SecretKind`].
    suspects: [Suspects; 3],
    /// Bodies that are arriving.
    pub arrivals: Arrivals,
    /// Streams of announcements that are open.
    pub streams: Streams,
    all: Arc<Semaphore>,
    projects: KeyedLimit<Arc<str>>,
    wait: Duration,
}

impl RequestLimiter {
    pub(crate) fn new(limits: &crate::config::Limits) -> Self {
        Self {
            rates: Rates::new(limits),
            suspects: [(); 3].map(|()| Suspects::new(limits.failed_auth)),
            arrivals: Arrivals::new(limits),
            streams: Streams::new(limits),
            all: Arc::new(Semaphore::new(limits.in_flight)),
            projects: KeyedLimit::new(limits.in_flight_per_project),
            wait: Duration::from_millis(limits.in_flight_wait_ms),
        }
    }

    /// Returns the wrong secrets of a kind.
    pub(crate) fn suspects(&self, kind: SecretKind) -> &Suspects {
        &self.suspects[kind as usize]
    }

    /// Acquires a concurrency permit of the node.
    ///
    /// # Errors
    /// [`errors::NODE_BUSY`] if none becomes free in time.
    pub(crate) async fn enter(&self) -> Result<OwnedSemaphorePermit, Error> {
        // Most requests find a permit and set no timer.
        if let Ok(permit) = self.all.clone().try_acquire_owned() {
            return Ok(permit);
        }
        let permit = Box::pin(timeout(self.wait, self.all.clone().acquire_owned()));
        permit
            .await
            .ok()
            .and_then(Result::ok)
            .ok_or_else(errors::node_busy)
    }

    /// Acquires a concurrency permit of a project, if one is free.
    pub(crate) fn try_enter_project(&self, project: &Arc<str>) -> Option<OwnedSemaphorePermit> {
        self.projects.try_acquire(project)
    }

    /// Acquires a concurrency permit of a project.
    ///
    /// # Errors
    /// [`errors::PROJECT_BUSY`] if none becomes free in time.
    pub(crate) async fn enter_project(
        &self,
        project: &Arc<str>,
    ) -> Result<OwnedSemaphorePermit, Error> {
        let permit = Box::pin(timeout(self.wait, self.projects.acquire(project)));
        permit.await.ok().flatten().ok_or_else(errors::project_busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv6_addresses_count_as_their_network() {
        let counted = |text: &str| counted_as(text.parse().unwrap()).to_string();
        assert_eq!(counted("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(counted("2001:db8:1:3::6"), "2001:db8:1:3::");
        assert_eq!(counted("192.0.2.1"), "192.0.2.1");
    }

    #[tokio::test]
    async fn project_concurrency_limit_releases_permits() {
        let limits = crate::config::Limits {
            in_flight_per_project: 1,
            in_flight_wait_ms: 1,
            ..Default::default()
        };
        let limiter = RequestLimiter::new(&limits);
        let (one, other): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let held = limiter.enter_project(&one).await.unwrap();
        let refused = limiter.enter_project(&one).await.unwrap_err();
        assert!(refused.is(&errors::PROJECT_BUSY), "{refused}");
        drop(limiter.enter_project(&other).await.unwrap());
        drop(held);
        drop(limiter.enter_project(&one).await.unwrap());
    }
}
