//! Who may come in now: counters that bound what one caller can take from the others.
//!
//! All of it lives in this process and forgets at a restart; nothing else depends on it.

use std::{
    collections::HashMap,
    hash::Hash,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use app::{Error, Time};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// Window of the organisation's allowance.
pub(crate) const RATE_WINDOW: Duration = Duration::from_secs(600);
const FAILURE_WINDOW: Duration = Duration::from_secs(60);
/// Counters that have nothing to say are dropped when there are more than this.
const KEPT: usize = 10_000;

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

/// One sliding counter per key, with one limit; 0 is no limit.
#[derive(Debug)]
pub(crate) struct Counters<K> {
    limit: u32,
    length: i64,
    windows: Mutex<HashMap<K, Window>>,
}

impl<K: Eq + Hash> Counters<K> {
    fn new(limit: u32, length: Duration) -> Self {
        let length = i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
        Self { limit, length, windows: Mutex::default() }
    }

    fn windows(&self) -> MutexGuard<'_, HashMap<K, Window>> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The limit; 0 is none.
    pub(crate) fn limit(&self) -> u32 {
        self.limit
    }

    /// How many are left; `None` when there is no limit.
    fn left(&self, key: &K, now: Time) -> Option<u32> {
        if self.limit == 0 {
            return None;
        }
        let mut windows = self.windows();
        let Some(window) = windows.get_mut(key) else { return Some(self.limit) };
        window.roll(now, self.length);
        Some(self.limit.saturating_sub(window.count(now, self.length)))
    }

    fn add(&self, key: K, now: Time) {
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
#[derive(Debug)]
pub(crate) struct Admission {
    /// Requests of an organisation.
    pub rates: Counters<app::ids::OrganisationId>,
    /// Failed authentications from an address.
    failures: Counters<IpAddr>,
    all: Arc<Semaphore>,
    projects: Mutex<HashMap<Arc<str>, Arc<Semaphore>>>,
    per_project: usize,
    wait: Duration,
}

impl Admission {
    pub(crate) fn new(limits: &crate::config::Limits) -> Self {
        Self {
            rates: Counters::new(limits.rate, RATE_WINDOW),
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

    /// Counts a request of an organisation, and says how many are left.
    ///
    /// # Errors
    /// [`Error::RateExceeded`] when none is.
    pub(crate) fn count(&self, organisation: &app::ids::OrganisationId, now: Time) -> Result<Option<u32>, Error> {
        match self.rates.left(organisation, now) {
            None => Ok(None),
            Some(0) => Err(Error::RateExceeded { after: self.rates.after(now).min(Duration::from_secs(60)) }),
            Some(left) => {
                self.rates.add(organisation.clone(), now);
                Ok(Some(left - 1))
            }
        }
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

    fn counters(limit: u32) -> Counters<u8> {
        Counters::new(limit, Duration::from_millis(1_000))
    }

    #[test]
    fn a_window_slides_and_empties() {
        let counters = counters(4);
        let left = |at: i64| counters.left(&1, Time(at)).unwrap();
        assert_eq!(left(0), 4);
        (0..4).for_each(|_| counters.add(1, Time(10)));
        assert_eq!(left(999), 0);
        assert_eq!(left(1_500), 2, "half of the last window lies in reach");
        assert_eq!(left(2_000), 4);
        assert_eq!(counters.left(&2, Time(10)), Some(4), "keys do not share");
    }

    #[test]
    fn no_limit_counts_nothing() {
        let counters = counters(0);
        counters.add(1, Time(0));
        assert_eq!(counters.left(&1, Time(0)), None);
        assert!(counters.windows().is_empty());
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
