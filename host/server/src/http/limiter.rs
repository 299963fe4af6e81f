//! Rate and concurrency limits, which bound what one caller can take from the others.
//!
//! All counters live in this process and are reset by a restart; nothing else depends on them.
use std::{
    collections::HashMap,
    hash::Hash,
    net::{IpAddr, Ipv6Addr},
    num::NonZeroU32,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use app::{Error, Time, projects::Holder};
use governor::{
    DefaultKeyedRateLimiter, Quota, RateLimiter,
    clock::{Clock, DefaultClock},
    middleware::StateInformationMiddleware,
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit},
    time::timeout,
};

use crate::http::errors;

/// Time in which a used-up rate limit is fully restored.
pub(crate) const RATE_WINDOW: Duration = Duration::from_secs(600);
const FAILURE_WINDOW: Duration = Duration::from_secs(60);
/// Number of counters above which expired counters are dropped.
const MAX_KEPT_WINDOWS: usize = 10_000;
/// Concurrency limit, for each kind of secret, of checks for addresses with too many wrong secrets.
pub(crate) const SUSPECTS_AT_ONCE: usize = 8;
/// Timeout of a secret that waits for such a check.
const SUSPECT_WAIT: Duration = Duration::from_secs(5);
/// Divisor of the memory for arriving bodies that one project may use; below, the one for an
/// address without a key.
const OWNER_PART: usize = 4;
const ADDRESS_PART: usize = 16;

/// Returns the address that is counted: an IPv6 address counts as its /64, which belongs to one
/// caller as a whole.
pub(crate) fn counted_as(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX))),
    }
}

/// Rate limit of requests for each key: it may be used up at once and is restored evenly. 0 means
/// no limit. Only requests with a valid key are counted, so there are no more counters than keys.
struct Rate<K: Clone + Hash + Eq> {
    who: &'static str,
    limiter: Option<DefaultKeyedRateLimiter<K, StateInformationMiddleware>>,
}

/// State of the tightest rate limit that applies to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allowance {
    /// Requests in ten minutes; 0 means no limit.
    pub limit: u32,
    /// Remaining requests of the limit.
    pub left: u32,
}

/// Outcome of counting a request.
#[derive(Debug)]
pub(crate) struct Counted {
    /// Rate limit that is reported to the client.
    pub allowance: Allowance,
    /// Reason why the request is refused, if it is.
    pub refused: Option<Error>,
}

impl<K: Clone + Hash + Eq> Rate<K> {
    fn new(limit: u32, who: &'static str) -> Self {
        let quota = NonZeroU32::new(limit).and_then(|burst| {
            let each = RATE_WINDOW / limit;
            Quota::with_period(each).map(|quota| quota.allow_burst(burst))
        });
        Self {
            who,
            limiter: quota.map(|quota| RateLimiter::keyed(quota).with_middleware()),
        }
    }

    /// Takes one request from the rate limit of a key; returns none if there is no limit.
    fn take(&self, key: &K) -> Option<Result<Allowance, Error>> {
        let taken = self.limiter.as_ref()?.check_key(key);
        Some(match taken {
            Ok(state) => Ok(Allowance {
                limit: state.quota().burst_size().get(),
                left: state.remaining_burst_capacity(),
            }),
            Err(not_yet) => Err(errors::rate_exceeded(
                self.who,
                not_yet.wait_time_from(DefaultClock::default().now()),
            )),
        })
    }
}

/// Counts events in a sliding window: all events of this window, and the share of the previous one
/// that is still in reach.
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

    fn windows(&self) -> MutexGuard<'_, HashMap<IpAddr, Window>> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the remaining number of events, or `None` if there is no limit.
    fn left(&self, key: &IpAddr, now: Time) -> Option<u32> {
        if self.limit == 0 {
            return None;
        }
        let mut windows = self.windows();
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
        let mut windows = self.windows();
        if windows.len() >= MAX_KEPT_WINDOWS {
            windows.retain(|_, window| {
                window.roll(now, length);
                window.count(now, length) > 0
            });
            // So many addresses at once belong to one caller, who could force a scan of all
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
pub(crate) enum SecretKind {
    /// An API key.
    Key,
    /// A link token.
    Link,
    /// The state of a callback.
    Callback,
}

/// Wrong secrets of one kind, and the turns of addresses with too many of them.
struct Suspects {
    failures: Counters,
    turns: Semaphore,
}

impl Suspects {
    fn new(limit: u32) -> Self {
        Self {
            failures: Counters::new(limit, FAILURE_WINDOW),
            turns: Semaphore::new(SUSPECTS_AT_ONCE),
        }
    }
}

/// Bodies that are arriving. Their requests hold no concurrency permit in the meantime.
pub(crate) struct Arrivals {
    per_address: usize,
    per_owner: usize,
    bytes: usize,
    arriving: Mutex<Arriving>,
}

#[derive(Debug, Default)]
struct Arriving {
    bytes: usize,
    shares: HashMap<Payer, Share>,
}

/// Bodies of one payer, and their bytes that have arrived.
#[derive(Debug, Default)]
struct Share {
    bodies: usize,
    bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Payer {
    Address(IpAddr),
    /// A project, or the organization for requests with its own key.
    Owner(Arc<str>),
}

/// One arriving body, counted until it is dropped.
pub(crate) struct Arrival<'a> {
    of: &'a Arrivals,
    address: Payer,
    owner: Option<Payer>,
    bytes: usize,
}

impl Arrivals {
    fn new(limits: &crate::config::Limits) -> Self {
        Self {
            per_address: limits.bodies_per_address,
            per_owner: limits.bodies_per_project,
            bytes: limits.bodies_mib << 20,
            arriving: Mutex::default(),
        }
    }

    fn arriving(&self) -> MutexGuard<'_, Arriving> {
        self.arriving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more body. A request without a valid key has no owner.
    ///
    /// # Errors
    /// [`errors::ADDRESS_BUSY`] or [`errors::PROJECT_BUSY`] if the address or the owner is at its
    /// limit of arriving bodies.
    pub(crate) fn enter(
        &self,
        address: IpAddr,
        owner: Option<Arc<str>>,
    ) -> Result<Arrival<'_>, Error> {
        let (address, owner) = (Payer::Address(counted_as(address)), owner.map(Payer::Owner));
        let mut arriving = self.arriving();
        let bodies = |payer: &Payer| arriving.shares.get(payer).map_or(0, |share| share.bodies);
        if bodies(&address) >= self.per_address {
            return Err(errors::address_busy());
        }
        if owner
            .as_ref()
            .is_some_and(|owner| bodies(owner) >= self.per_owner)
        {
            return Err(errors::project_busy());
        }
        for payer in [Some(&address), owner.as_ref()].into_iter().flatten() {
            arriving.shares.entry(payer.clone()).or_default().bodies += 1;
        }
        drop(arriving);
        Ok(Arrival {
            of: self,
            address,
            owner,
            bytes: 0,
        })
    }
}

impl Arrival<'_> {
    /// Counts bytes that have arrived. A payer's only body may exceed the payer's share.
    ///
    /// # Errors
    /// If the memory for arriving bodies, or the payer's share of it, is used up.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Error> {
        let mut arriving = self.of.arriving();
        let arriving = &mut *arriving;
        if arriving.bytes + bytes > self.of.bytes && arriving.bytes > self.bytes {
            return Err(errors::node_busy());
        }
        let (payer, part) = match &self.owner {
            Some(owner) => (owner, OWNER_PART),
            None => (&self.address, ADDRESS_PART),
        };
        let share = arriving.shares.entry(payer.clone()).or_default();
        if share.bytes + bytes > self.of.bytes / part && share.bytes > self.bytes {
            return Err(match &self.owner {
                Some(_) => errors::project_busy(),
                None => errors::address_busy(),
            });
        }
        share.bytes += bytes;
        arriving.bytes += bytes;
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        let mut arriving = self.of.arriving();
        arriving.bytes -= self.bytes;
        let payer = self.owner.as_ref().unwrap_or(&self.address);
        if let Some(share) = arriving.shares.get_mut(payer) {
            share.bytes -= self.bytes;
        }
        for payer in [Some(&self.address), self.owner.as_ref()]
            .into_iter()
            .flatten()
        {
            if let Some(share) = arriving.shares.get_mut(payer) {
                share.bodies -= 1;
                if share.bodies == 0 {
                    arriving.shares.remove(payer);
                }
            }
        }
    }
}

/// All counters.
pub(crate) struct RequestLimiter {
    /// Requests of an organization, of a project, and with one key.
    organizations: Rate<app::core::ids::OrganizationId>,
    tenants: Rate<Arc<str>>,
    keys: Rate<String>,
    /// Rate limit that is reported before a request is counted.
    pub allowance: Allowance,
    /// Failed authentications from an address, by [`SecretKind`].
    suspects: [Suspects; 3],
    /// Bodies that are arriving.
    pub arrivals: Arrivals,
    all: Arc<Semaphore>,
    projects: Mutex<HashMap<Arc<str>, Arc<Semaphore>>>,
    per_project: usize,
    wait: Duration,
}

impl RequestLimiter {
    pub(crate) fn new(limits: &crate::config::Limits) -> Self {
        Self {
            organizations: Rate::new(limits.rate, "the organization"),
            tenants: Rate::new(limits.rate_per_project, "the project"),
            keys: Rate::new(limits.rate_per_key, "the key"),
            allowance: Allowance {
                limit: limits.rate,
                left: limits.rate,
            },
            suspects: [(); 3].map(|()| Suspects::new(limits.failed_auth)),
            arrivals: Arrivals::new(limits),
            all: Arc::new(Semaphore::new(limits.in_flight)),
            projects: Mutex::default(),
            per_project: limits.in_flight_per_project,
            wait: Duration::from_millis(limits.in_flight_wait_ms),
        }
    }

    /// Acquires a concurrency permit of the node.
    ///
    /// # Errors
    /// [`errors::NODE_BUSY`] if none becomes free in time.
    pub(crate) async fn enter(&self) -> Result<OwnedSemaphorePermit, Error> {
        place(&self.all, self.wait)
            .await
            .ok_or_else(errors::node_busy)
    }

    /// Acquires a concurrency permit of a project, if one is free.
    pub(crate) fn try_enter_project(&self, project: &Arc<str>) -> Option<OwnedSemaphorePermit> {
        self.of_project(project).try_acquire_owned().ok()
    }

    /// Acquires a concurrency permit of a project.
    ///
    /// # Errors
    /// [`errors::PROJECT_BUSY`] if none becomes free in time.
    pub(crate) async fn enter_project(
        &self,
        project: &Arc<str>,
    ) -> Result<OwnedSemaphorePermit, Error> {
        place(&self.of_project(project), self.wait)
            .await
            .ok_or_else(errors::project_busy)
    }

    fn of_project(&self, project: &Arc<str>) -> Arc<Semaphore> {
        let mut projects = self.projects.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(places) = projects.get(project) {
            return places.clone();
        }
        if projects.len() >= MAX_KEPT_WINDOWS {
            projects.retain(|_, places| Arc::strong_count(places) > 1);
        }
        let places = Arc::new(Semaphore::new(self.per_project));
        projects.insert(project.clone(), places.clone());
        places
    }

    /// Counts a request. The narrower limit comes first, so that a request it refuses takes nothing
    /// from the wider ones.
    pub(crate) fn count(&self, holder: &Holder, project: Option<&Arc<str>>) -> Counted {
        let steps: [&dyn Fn() -> Option<Result<Allowance, Error>>; 3] = [
            &|| self.keys.take(&holder.key_id),
            &|| self.tenants.take(project?),
            &|| self.organizations.take(holder.organization()),
        ];
        let mut tightest: Option<Allowance> = None;
        for taken in steps.into_iter().filter_map(|step| step()) {
            match taken {
                Ok(own) if tightest.is_none_or(|other| own.left < other.left) => {
                    tightest = Some(own)
                }
                Ok(_) => {}
                Err(refused) => {
                    return Counted {
                        allowance: Allowance {
                            left: 0,
                            ..self.allowance
                        },
                        refused: Some(refused),
                    };
                }
            }
        }
        Counted {
            allowance: tightest.unwrap_or(self.allowance),
            refused: None,
        }
    }

    /// Returns the time until an address with too many wrong secrets of a kind is trusted again;
    /// none for any other address.
    pub(crate) fn suspected(
        &self,
        kind: SecretKind,
        address: IpAddr,
        now: Time,
    ) -> Option<Duration> {
        let failures = &self.suspects[kind as usize].failures;
        (failures.left(&counted_as(address), now) == Some(0)).then(|| failures.after(now))
    }

    /// Waits until one more secret of a suspected address may be checked.
    ///
    /// # Errors
    /// [`errors::TOO_MANY_FAILURES`] if too many are waiting.
    pub(crate) async fn turn(&self, kind: SecretKind) -> Result<SemaphorePermit<'_>, Error> {
        let turn = timeout(SUSPECT_WAIT, self.suspects[kind as usize].turns.acquire()).await;
        turn.ok()
            .and_then(Result::ok)
            .ok_or_else(|| errors::too_many_failures(SUSPECT_WAIT))
    }

    /// Counts a wrong secret.
    pub(crate) fn has_failed(&self, kind: SecretKind, address: IpAddr, now: Time) {
        self.suspects[kind as usize]
            .failures
            .add(counted_as(address), now);
    }
}

async fn place(places: &Arc<Semaphore>, wait: Duration) -> Option<OwnedSemaphorePermit> {
    match places.clone().try_acquire_owned() {
        Ok(permit) => Some(permit),
        Err(_) => timeout(wait, places.clone().acquire_owned())
            .await
            .ok()?
            .ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    fn counters(limit: u32) -> Counters {
        Counters::new(limit, Duration::from_millis(1_000))
    }

    #[test]
    fn a_window_slides_and_empties() {
        let counters = counters(4);
        let left = |at: i64| counters.left(&ONE, Time(at)).unwrap();
        assert_eq!(left(0), 4);
        (0..4).for_each(|_| counters.add(ONE, Time(10)));
        assert_eq!(left(999), 0);
        assert_eq!(left(1_500), 2, "half of the last window lies in reach");
        assert_eq!(left(2_000), 4);
        assert_eq!(
            counters.left(&OTHER, Time(10)),
            Some(4),
            "keys do not share"
        );
    }

    #[test]
    fn no_limit_counts_nothing() {
        let counters = counters(0);
        counters.add(ONE, Time(0));
        assert_eq!(counters.left(&ONE, Time(0)), None);
        assert!(counters.windows().is_empty());
    }

    #[test]
    fn rate_limit_counts_down_and_reports_retry_time() {
        let rate = Rate::new(3, "the key");
        let left: Vec<_> = (0..3).map(|_| rate.take(&1).unwrap().unwrap()).collect();
        assert_eq!(left, [2, 1, 0].map(|left| Allowance { limit: 3, left }));
        let Some(Err(refused)) = rate.take(&1) else {
            panic!("it is used up")
        };
        assert!(refused.is(&errors::RATE_EXCEEDED), "{refused}");
        assert!(refused.to_string().starts_with("the key "), "{refused}");
        let retry_after = refused.retry_after().unwrap();
        assert!(
            retry_after > Duration::ZERO && retry_after <= RATE_WINDOW / 3,
            "{retry_after:?}"
        );
        assert!(rate.take(&2).unwrap().is_ok(), "keys do not share");
        assert!(
            Rate::new(0, "the key").take(&1).is_none(),
            "no limit counts nothing"
        );
    }

    #[test]
    fn ipv6_addresses_count_as_their_network() {
        let counted = |text: &str| counted_as(text.parse().unwrap()).to_string();
        assert_eq!(counted("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(counted("2001:db8:1:3::6"), "2001:db8:1:3::");
        assert_eq!(counted("192.0.2.1"), "192.0.2.1");
    }

    #[test]
    fn counters_of_countless_addresses_are_dropped() {
        let counters = counters(4);
        (0..=MAX_KEPT_WINDOWS as u32)
            .for_each(|number| counters.add(IpAddr::V4(number.into()), Time(10)));
        assert!(counters.windows().len() < MAX_KEPT_WINDOWS);
    }

    #[test]
    fn arriving_bodies_are_bounded_by_number_and_bytes() {
        let limits = crate::config::Limits {
            bodies_per_address: 3,
            bodies_per_project: 2,
            bodies_mib: 1,
            ..Default::default()
        };
        let arrivals = Arrivals::new(&limits);
        let owner: Arc<str> = "a".into();
        let mut first = arrivals.enter(ONE, Some(owner.clone())).unwrap();
        let mut second = arrivals.enter(ONE, Some(owner.clone())).unwrap();
        assert!(
            arrivals
                .enter(OTHER, Some(owner.clone()))
                .is_err_and(|error| error.is(&errors::PROJECT_BUSY))
        );
        let mut stranger = arrivals.enter(ONE, None).unwrap();
        assert!(
            arrivals
                .enter(ONE, None)
                .is_err_and(|error| error.is(&errors::ADDRESS_BUSY))
        );
        first.grow((1 << 20) / OWNER_PART).unwrap();
        assert!(
            second
                .grow(1)
                .is_err_and(|error| error.is(&errors::PROJECT_BUSY))
        );
        stranger.grow((1 << 20) / ADDRESS_PART + 1).unwrap();
        assert!(
            stranger
                .grow(1 << 20)
                .is_err_and(|error| error.is(&errors::NODE_BUSY))
        );
        let mut neighbor = arrivals.enter(OTHER, None).unwrap();
        neighbor.grow(1).unwrap();
        drop((first, second, stranger, neighbor));
        let left = arrivals.arriving();
        assert!(left.shares.is_empty() && left.bytes == 0, "{left:?}");
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
        assert!(
            limiter
                .enter_project(&one)
                .await
                .is_err_and(|error| error.is(&errors::PROJECT_BUSY))
        );
        drop(limiter.enter_project(&other).await.unwrap());
        drop(held);
        drop(limiter.enter_project(&one).await.unwrap());
    }
}
