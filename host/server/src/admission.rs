//! Who may come in now: counters that bound what one caller can take from the others.
//!
//! All of it lives in this process and forgets at a restart; nothing else depends on it.

use std::{
    collections::HashMap,
    hash::Hash,
    net::IpAddr,
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
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// In which an allowance that was used up is whole again.
pub(crate) const RATE_WINDOW: Duration = Duration::from_secs(600);
const FAILURE_WINDOW: Duration = Duration::from_secs(60);
/// Counters that have nothing to say are dropped when there are more than this.
const KEPT: usize = 10_000;

/// An allowance of requests for each key: it may be used up at once, and comes back evenly. 0 is no limit. Only who has a
/// working key is counted, so there are no more counters than keys.
struct Rate<K: Clone + Hash + Eq> {
    who: &'static str,
    limiter: Option<DefaultKeyedRateLimiter<K, StateInformationMiddleware>>,
}

/// What the tightest of the allowances that a request uses has to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allowance {
    /// Requests in ten minutes; 0 for any number.
    pub limit: u32,
    /// Of them, those left.
    pub left: u32,
}

/// What counting a request came to.
#[derive(Debug)]
pub(crate) struct Counted {
    /// What is told to the client.
    pub allowance: Allowance,
    /// Why the request is not answered.
    pub refused: Option<Error>,
}

impl<K: Clone + Hash + Eq> Rate<K> {
    fn new(limit: u32, who: &'static str) -> Self {
        let quota = NonZeroU32::new(limit).and_then(|burst| {
            let each = RATE_WINDOW / limit;
            Quota::with_period(each).map(|quota| quota.allow_burst(burst))
        });
        Self { who, limiter: quota.map(|quota| RateLimiter::keyed(quota).with_middleware()) }
    }

    /// Takes one request from an allowance; none where there is no limit.
    fn take(&self, key: &K) -> Option<Result<Allowance, Error>> {
        let taken = self.limiter.as_ref()?.check_key(key);
        Some(match taken {
            Ok(state) => {
                Ok(Allowance { limit: state.quota().burst_size().get(), left: state.remaining_burst_capacity() })
            }
            Err(not_yet) => {
                Err(Error::RateExceeded { who: self.who, after: not_yet.wait_time_from(DefaultClock::default().now()) })
            }
        })
    }
}

/// Counts events in a sliding window: all of this window, and of the last as much as still lies in reach.
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
            self.previous = if index == self.index + 1 { self.current } else { 0 };
            (self.current, self.index) = (0, index);
        }
    }

    fn count(&self, now: Time, length: i64) -> u32 {
        let left = length - now.0.rem_euclid(length);
        let carried = i64::from(self.previous) * left / length;
        self.current.saturating_add(u32::try_from(carried).unwrap_or(u32::MAX))
    }
}

/// One sliding counter per address, with one limit; 0 is no limit.
#[derive(Debug)]
struct Counters {
    limit: u32,
    length: i64,
    windows: Mutex<HashMap<IpAddr, Window>>,
}

impl Counters {
    fn new(limit: u32, length: Duration) -> Self {
        let length = i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
        Self { limit, length, windows: Mutex::default() }
    }

    fn windows(&self) -> MutexGuard<'_, HashMap<IpAddr, Window>> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many are left; `None` when there is no limit.
    fn left(&self, key: &IpAddr, now: Time) -> Option<u32> {
        if self.limit == 0 {
            return None;
        }
        let mut windows = self.windows();
        let Some(window) = windows.get_mut(key) else { return Some(self.limit) };
        window.roll(now, self.length);
        Some(self.limit.saturating_sub(window.count(now, self.length)))
    }

    fn add(&self, key: IpAddr, now: Time) {
        if self.limit == 0 {
            return;
        }
        let length = self.length;
        let mut windows = self.windows();
        if windows.len() >= KEPT {
            windows.retain(|_, window| {
                window.roll(now, length);
                window.count(now, length) > 0
            });
        }
        let window = windows.entry(key).or_default();
        window.roll(now, length);
        window.current = window.current.saturating_add(1);
    }

    /// When this window has passed.
    fn after(&self, now: Time) -> Duration {
        Duration::from_millis(u64::try_from(self.length - now.0.rem_euclid(self.length)).unwrap_or(1))
    }
}

/// All counters.
pub(crate) struct Admission {
    /// Requests of an organisation, of a project, and with one key.
    organisations: Rate<app::ids::OrganisationId>,
    tenants: Rate<Arc<str>>,
    keys: Rate<String>,
    /// What is told before anybody is counted.
    pub allowance: Allowance,
    /// Failed authentications from an address.
    failures: Counters,
    all: Arc<Semaphore>,
    projects: Mutex<HashMap<Arc<str>, Arc<Semaphore>>>,
    per_project: usize,
    wait: Duration,
}

impl Admission {
    pub(crate) fn new(limits: &crate::config::Limits) -> Self {
        Self {
            organisations: Rate::new(limits.rate, "the organization"),
            tenants: Rate::new(limits.rate_per_project, "the project"),
            keys: Rate::new(limits.rate_per_key, "the key"),
            allowance: Allowance { limit: limits.rate, left: limits.rate },
            failures: Counters::new(limits.failed_auth, FAILURE_WINDOW),
            all: Arc::new(Semaphore::new(limits.in_flight)),
            projects: Mutex::default(),
            per_project: limits.in_flight_per_project,
            wait: Duration::from_millis(limits.in_flight_wait_ms),
        }
    }

    /// A place among all requests.
    ///
    /// # Errors
    /// [`Error::NodeBusy`] when none becomes free in time.
    pub(crate) async fn enter(&self) -> Result<OwnedSemaphorePermit, Error> {
        place(&self.all, self.wait).await.ok_or(Error::NodeBusy)
    }

    /// A place among the requests of a project.
    ///
    /// # Errors
    /// [`Error::ProjectBusy`] when none becomes free in time.
    pub(crate) async fn enter_project(&self, project: &Arc<str>) -> Result<OwnedSemaphorePermit, Error> {
        place(&self.of_project(project), self.wait).await.ok_or(Error::ProjectBusy)
    }

    fn of_project(&self, project: &Arc<str>) -> Arc<Semaphore> {
        let mut projects = self.projects.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(places) = projects.get(project) {
            return places.clone();
        }
        if projects.len() >= KEPT {
            projects.retain(|_, places| Arc::strong_count(places) > 1);
        }
        let places = Arc::new(Semaphore::new(self.per_project));
        projects.insert(project.clone(), places.clone());
        places
    }

    /// Counts a request: the narrower allowance first, so that what it refuses takes nothing from the wider ones.
    pub(crate) fn count(&self, holder: &Holder, project: Option<&Arc<str>>) -> Counted {
        let steps: [&dyn Fn() -> Option<Result<Allowance, Error>>; 3] =
            [&|| self.keys.take(&holder.key_id), &|| self.tenants.take(project?), &|| {
                self.organisations.take(holder.organisation())
            }];
        let mut tightest: Option<Allowance> = None;
        for taken in steps.into_iter().filter_map(|step| step()) {
            match taken {
                Ok(own) if tightest.is_none_or(|other| own.left < other.left) => tightest = Some(own),
                Ok(_) => {}
                Err(refused) => {
                    return Counted { allowance: Allowance { left: 0, ..self.allowance }, refused: Some(refused) };
                }
            }
        }
        Counted { allowance: tightest.unwrap_or(self.allowance), refused: None }
    }

    /// Whether an address may still try keys.
    ///
    /// # Errors
    /// [`Error::TooManyFailures`] when it may not.
    pub(crate) fn may_try(&self, address: IpAddr, now: Time) -> Result<(), Error> {
        match self.failures.left(&address, now) {
            Some(0) => Err(Error::TooManyFailures { after: self.failures.after(now) }),
            _ => Ok(()),
        }
    }

    /// Counts a wrong key.
    pub(crate) fn has_failed(&self, address: IpAddr, now: Time) {
        self.failures.add(address, now);
    }
}

async fn place(places: &Arc<Semaphore>, wait: Duration) -> Option<OwnedSemaphorePermit> {
    match places.clone().try_acquire_owned() {
        Ok(permit) => Some(permit),
        Err(_) => timeout(wait, places.clone().acquire_owned()).await.ok()?.ok(),
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
        assert_eq!(counters.left(&OTHER, Time(10)), Some(4), "keys do not share");
    }

    #[test]
    fn no_limit_counts_nothing() {
        let counters = counters(0);
        counters.add(ONE, Time(0));
        assert_eq!(counters.left(&ONE, Time(0)), None);
        assert!(counters.windows().is_empty());
    }

    #[test]
    fn an_allowance_is_used_up_one_by_one_and_says_when_it_comes_back() {
        let rate = Rate::new(3, "the key");
        let left: Vec<_> = (0..3).map(|_| rate.take(&1).unwrap().unwrap()).collect();
        assert_eq!(left, [2, 1, 0].map(|left| Allowance { limit: 3, left }));
        let Some(Err(Error::RateExceeded { who: "the key", after })) = rate.take(&1) else { panic!("it is used up") };
        assert!(after > Duration::ZERO && after <= RATE_WINDOW / 3, "{after:?}");
        assert!(rate.take(&2).unwrap().is_ok(), "keys do not share");
        assert!(Rate::new(0, "the key").take(&1).is_none(), "no limit counts nothing");
    }

    #[tokio::test]
    async fn places_of_one_project_are_bounded_and_come_back() {
        let limits = crate::config::Limits { in_flight_per_project: 1, in_flight_wait_ms: 1, ..Default::default() };
        let admission = Admission::new(&limits);
        let (one, other): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let held = admission.enter_project(&one).await.unwrap();
        assert!(matches!(admission.enter_project(&one).await, Err(Error::ProjectBusy)));
        drop(admission.enter_project(&other).await.unwrap());
        drop(held);
        drop(admission.enter_project(&one).await.unwrap());
    }
}
