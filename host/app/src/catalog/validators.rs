//! Compiled validators, and the threads that do what is too long for those that answer requests.
//!
//! A validator takes many times the memory of its schema, most of it for patterns. So those not used for longest are let go when
//! there are too many or they take too much together, and are compiled anew when they are needed.

use std::{
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use arc_swap::ArcSwapOption;
use tokio::{
    sync::{Mutex as AsyncMutex, Semaphore},
    time::timeout,
};

use super::check::Check;
use crate::{Error, Result};

/// Validators that are kept.
pub const MAX_VALIDATORS: usize = 4_000;
/// Estimated memory of the validators that are kept, in bytes.
pub const MAX_VALIDATOR_BYTES: usize = 256 << 20;
/// Largest value that is checked by the thread that answers the request, in bytes.
pub const MAX_INLINE_CHECK_BYTES: usize = 64 << 10;
/// Larger values that are checked at once.
pub const MAX_LARGE_CHECKS: usize = 4;
/// Time in which a larger value has to be checked, waiting for a place included.
pub const LARGE_CHECK_DEADLINE: Duration = Duration::from_secs(20);
/// Validators that may be compiled at once; one schema is never compiled twice at once.
const LANES: usize = 4;

/// Where a schema's validator is while it is kept.
pub(super) type Slot = ArcSwapOption<Loaded>;

/// A compiled schema.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) check: Check,
    used: AtomicU64,
}

/// All validators of a catalogue.
#[derive(Debug)]
pub(crate) struct Validators {
    kept: Mutex<Kept>,
    /// Counts what was compiled; tells roughly which validator was used last.
    now: AtomicU64,
    lanes: [AsyncMutex<()>; LANES],
    large_checks: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Kept {
    entries: Vec<Entry>,
    /// Of all entries, in bytes.
    weight: usize,
}

#[derive(Debug)]
struct Entry {
    /// Gone together with its version of a toolkit.
    slot: Weak<Slot>,
    weight: usize,
}

impl Default for Validators {
    fn default() -> Self {
        Self {
            kept: Mutex::default(),
            now: AtomicU64::new(0),
            lanes: Default::default(),
            large_checks: Arc::new(Semaphore::new(MAX_LARGE_CHECKS)),
        }
    }
}

impl Loaded {
    pub(super) fn new(check: Check) -> Self {
        Self { check, used: AtomicU64::new(0) }
    }
}

impl Validators {
    /// Notes that a validator is used.
    pub(super) fn touch(&self, loaded: &Loaded) {
        let now = self.now.load(Relaxed);
        // Most calls find it noted already, and write nothing that other threads read.
        if loaded.used.load(Relaxed) != now {
            loaded.used.store(now, Relaxed);
        }
    }

    /// The lock that is held while the schema of a slot is compiled.
    pub(super) fn lane(&self, slot: &Arc<Slot>) -> &AsyncMutex<()> {
        &self.lanes[(Arc::as_ptr(slot) as usize / align_of::<Slot>()) % LANES]
    }

    /// Keeps a validator, and lets others go for it. `weight` is its estimated memory in bytes, zero for one that takes none.
    pub(super) fn keep(&self, slot: &Arc<Slot>, loaded: Arc<Loaded>, weight: usize) {
        loaded.used.store(self.now.fetch_add(1, Relaxed), Relaxed);
        if weight > MAX_VALIDATOR_BYTES {
            return;
        }
        if weight > 0 {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.make_room(weight);
            kept.entries.push(Entry { slot: Arc::downgrade(slot), weight });
            kept.weight += weight;
        }
        slot.store(Some(loaded));
    }

    /// Does work whose length goes with the size of a value: at once for a small one, on a thread of its own for a larger one.
    ///
    /// # Errors
    /// When too many larger ones are worked on for too long.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        size: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        if size <= MAX_INLINE_CHECK_BYTES {
            return Ok(work());
        }
        let places = self.large_checks.clone();
        let done = async {
            let place = places.acquire_owned().await;
            // The thread gives the place back, since the request may be gone before it is done.
            let work = move || {
                let _place = place;
                work()
            };
            tokio::task::spawn_blocking(work).await
        };
        match timeout(LARGE_CHECK_DEADLINE, done).await {
            Ok(done) => done.map_err(|broken| Error::Unavailable(format!("a value cannot be checked: {broken}"))),
            Err(_) => Err(Error::Deadline(LARGE_CHECK_DEADLINE)),
        }
    }
}

impl Kept {
    /// Lets go of those not used for longest until one more fits.
    fn make_room(&mut self, weight: usize) {
        self.entries.retain(|entry| entry.slot.strong_count() > 0);
        self.weight = self.entries.iter().map(|entry| entry.weight).sum();
        while !self.entries.is_empty()
            && (self.entries.len() >= MAX_VALIDATORS || self.weight + weight > MAX_VALIDATOR_BYTES)
        {
            let used = |entry: &Entry| {
                let slot = entry.slot.upgrade()?;
                slot.load().as_ref().map(|loaded| loaded.used.load(Relaxed))
            };
            let oldest = self.entries.iter().enumerate().min_by_key(|(_, entry)| used(entry));
            let Some(oldest) = oldest.map(|(place, _)| place) else { return };
            let entry = self.entries.swap_remove(oldest);
            self.weight -= entry.weight;
            if let Some(slot) = entry.slot.upgrade() {
                slot.store(None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(validators: &Validators, weight: usize) -> Arc<Slot> {
        let slot = Arc::<Slot>::default();
        validators.keep(&slot, Arc::new(Loaded::new(Check::Anything)), weight);
        slot
    }

    fn is_kept(slot: &Slot) -> bool {
        slot.load().is_some()
    }

    #[test]
    fn validators_used_longest_ago_are_let_go() {
        let validators = Validators::default();
        let third = MAX_VALIDATOR_BYTES / 3;
        let slots = [third, third, third].map(|weight| kept(&validators, weight));
        validators.touch(slots[0].load().as_ref().unwrap());
        let newest = kept(&validators, third);
        assert_eq!(slots.each_ref().map(|slot| is_kept(slot)), [true, false, true]);
        assert!(is_kept(&newest));
        let weightless = kept(&validators, 0);
        kept(&validators, MAX_VALIDATOR_BYTES);
        assert!(is_kept(&weightless) && !is_kept(&newest));
    }

    #[test]
    fn validators_of_dropped_schemas_take_no_room() {
        let validators = Validators::default();
        for _ in 0..3 {
            assert!(is_kept(&kept(&validators, MAX_VALIDATOR_BYTES)));
        }
        let small = kept(&validators, 1);
        let all: Vec<_> = (0..MAX_VALIDATORS).map(|_| kept(&validators, 1)).collect();
        assert!(!is_kept(&small) && all.iter().all(|slot| is_kept(slot)));
        assert!(!is_kept(&kept(&validators, MAX_VALIDATOR_BYTES + 1)));
    }

    #[tokio::test]
    async fn large_checks_wait_for_a_place() {
        let validators = Validators::default();
        let places: Vec<_> = (0..MAX_LARGE_CHECKS).map(|_| validators.large_checks.try_acquire().unwrap()).collect();
        let mut large = Box::pin(validators.run(MAX_INLINE_CHECK_BYTES + 1, || 1));
        assert!(futures::poll!(&mut large).is_pending());
        assert_eq!(validators.run(1, || 2).await.unwrap(), 2);
        drop(places);
        assert_eq!(large.await.unwrap(), 1);
    }
}
