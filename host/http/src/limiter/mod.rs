//! Rate and concurrency limits, which bound what one caller can take from the others.
//!
//! All counters live in this process and are reset by a restart; nothing else depends on them.

mod arrivals;
mod callers;
mod held;
mod rates;
mod streams;
mod suspects;

use std::{
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
    time::Duration,
};

use app::Error;
use gate::{Capacity, Gate, Permit, Queue, Shares};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

pub(crate) use self::{
    arrivals::Arrival,
    held::Permits,
    rates::{Allowance, RATE_WINDOW},
};
use self::{
    arrivals::Arrivals,
    callers::{CallerGate, shares_of_strangers},
    rates::Rates,
    suspects::Suspects,
};
pub use self::{
    arrivals::{body_shares, stranger_body_shares},
    callers::{Caller, CallerPermit},
    streams::{stranger_stream_shares, stream_shares},
    suspects::{SUSPECTS_AT_ONCE, SecretKind},
};

use settings::{IN_FLIGHT_WAIT, Limits, Sandbox};

use crate::errors;

/// Part of all requests that a project takes whenever they are free.
const REQUEST_BASE_DIVISOR: u64 = 32;

/// Shares of projects in the pages of lists that are built concurrently. Each may hold some MiB.
pub const PAGE_SHARES: Shares = Shares {
    total: 32,
    reserve: 8,
    base: 1,
    cap: 16,
};
/// Maximum time that a request waits to build a page.
pub const MAX_PAGE_WAIT: Duration = Duration::from_secs(10);

/// Returns the shares of projects in the requests that are answered concurrently.
pub const fn request_shares(limits: &Limits) -> Shares {
    let per_project = limits.in_flight_per_project() as u64;
    Shares::new(limits.in_flight as u64, REQUEST_BASE_DIVISOR, per_project)
}

/// Returns the shares of projects in the requests of callers without a key.
pub const fn stranger_shares(limits: &Limits) -> Shares {
    shares_of_strangers(request_shares(limits), REQUEST_BASE_DIVISOR)
}

/// Permit to build a page of a list.
pub(crate) type PagePermit = Permit<Arc<str>>;

/// Returns the address to count: an IPv6 address counts as its /64, which belongs to one caller as
/// a whole.
pub(crate) fn counted_as(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX))),
    }
}

/// All limits of requests.
pub struct RequestLimiter {
    /// Requests of an organization, of a project, and with one key.
    pub rates: Rates,
    /// Failed authentications from an address, by [`SecretKind`].
    suspects: [Suspects; 3],
    /// Bodies that are arriving.
    pub arrivals: Arrivals,
    /// Streams that are open.
    pub(crate) streams: CallerGate,
    /// Requests without a project, or whose project is not known yet.
    arrived: Arc<Semaphore>,
    /// Requests to projects.
    requests: CallerGate,
    /// Pages of lists, by project or organization.
    pages: Gate<Arc<str>>,
}

impl RequestLimiter {
    pub(crate) fn new(limits: &Limits, sandbox: &Sandbox) -> Self {
        let of_requests = [request_shares(limits), stranger_shares(limits)];
        let of_streams = [stream_shares(limits), stranger_stream_shares(limits)];
        Self {
            rates: Rates::new(limits),
            suspects: [(); 3].map(|()| Suspects::new(limits.failed_auth)),
            arrivals: Arrivals::new(sandbox),
            streams: CallerGate::new(Capacity::Streams, of_streams),
            arrived: Arc::new(Semaphore::new(limits.in_flight.min(Semaphore::MAX_PERMITS))),
            requests: CallerGate::new(Capacity::Calls, of_requests),
            pages: Gate::new(PAGE_SHARES),
        }
    }

    /// Returns the wrong secrets of a kind.
    pub(crate) fn suspects(&self, kind: SecretKind) -> &Suspects {
        &self.suspects[kind as usize]
    }

    /// Acquires a concurrency permit for a request whose project is not known.
    ///
    /// # Errors
    /// [`errors::NODE_BUSY`] if no permit becomes free in time.
    pub(crate) async fn acquire(&self) -> Result<OwnedSemaphorePermit, Error> {
        // Most requests find a permit and set no timer.
        if let Ok(permit) = self.arrived.clone().try_acquire_owned() {
            return Ok(permit);
        }
        let permit = Box::pin(timeout(
            IN_FLIGHT_WAIT,
            self.arrived.clone().acquire_owned(),
        ));
        permit
            .await
            .ok()
            .and_then(Result::ok)
            .ok_or_else(|| errors::node_busy(Capacity::Calls))
    }

    /// Acquires a concurrency permit for a request to a project, if one is free.
    pub(crate) fn try_acquire_for_project(&self, caller: &Caller) -> Option<CallerPermit> {
        self.requests.try_acquire(caller).ok()
    }

    /// Acquires a concurrency permit for a request to a project.
    ///
    /// # Errors
    /// [`errors::PROJECT_BUSY`], [`errors::ADDRESS_BUSY`] or [`errors::NODE_BUSY`] if no permit
    /// becomes free in time.
    pub(crate) async fn acquire_for_project(&self, caller: &Caller) -> Result<CallerPermit, Error> {
        let queue = Queue::time(IN_FLIGHT_WAIT);
        self.requests.acquire(caller, queue).await
    }

    /// Acquires a permit to build a page of a list for a project or an organization.
    ///
    /// # Errors
    /// [`errors::PROJECT_BUSY`] or [`errors::NODE_BUSY`] if no permit becomes free within
    /// [`MAX_PAGE_WAIT`].
    pub(crate) async fn acquire_page(&self, owner: &Arc<str>) -> Result<PagePermit, Error> {
        let permit = self.pages.acquire(owner, Queue::time(MAX_PAGE_WAIT));
        permit
            .await
            .map_err(|busy| errors::busy(Capacity::Pages, busy))
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
    async fn strangers_take_no_permit_of_keys() {
        let limits = Limits {
            in_flight: 64,
            ..Limits::default()
        };
        let limiter = RequestLimiter::new(&limits, &Sandbox::default());
        let caller = |stranger| Caller {
            tenant: "a".into(),
            stranger,
        };
        let mut held = Vec::new();
        for address in 1..=4 {
            let stranger = caller(Some([192, 0, 2, address].into()));
            held.extend((0..6).map(|_| limiter.try_acquire_for_project(&stranger).unwrap()));
            let refused = limiter.acquire_for_project(&stranger).await.err().unwrap();
            assert!(refused.is(&errors::ADDRESS_BUSY), "{refused}");
        }
        let late = caller(Some([192, 0, 2, 9].into()));
        let refused = limiter.acquire_for_project(&late).await.err().unwrap();
        assert!(refused.is(&errors::PROJECT_BUSY), "{refused}");
        let keys = (0..16).map(|_| limiter.try_acquire_for_project(&caller(None)));
        assert!(keys.collect::<Vec<_>>().iter().all(Option::is_some));
    }
}
