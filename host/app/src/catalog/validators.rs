//! The cache of compiled validators, and the threads for checks that take too long for request
//! threads.
//!
//! A validator takes many times the memory of its schema, most of it for patterns. If the cached
//! validators are too many or take too much memory, the least recently used ones are dropped, and
//! compiled again when they are needed.

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

/// Maximum number of cached validators.
pub const MAX_VALIDATORS: usize = 4_000;
/// Maximum estimated memory of the cached validators, in bytes.
pub const MAX_VALIDATOR_BYTES: usize = 256 << 20;
/// Maximum size of a value that is checked on the thread of its request, in bytes.
pub const MAX_INLINE_CHECK_BYTES: usize = 64 << 10;
/// Maximum number of larger values that are checked at the same time.
pub const MAX_LARGE_CHECKS: usize = 4;
/// Time within which a larger value must be checked, including the wait for a permit.
pub const LARGE_CHECK_DEADLINE: Duration = Duration::from_secs(20);
/// Maximum number of validators that are compiled at the same time. One schema is never compiled
/// twice at the same time.
const MAX_COMPILATIONS: usize = 4;

/// The place of a schema's validator while it is cached.
pub(super) type Slot = ArcSwapOption<CompiledSchema>;

/// A compiled schema.
#[derive(Debug)]
pub(super) struct CompiledSchema {
    pub(super) check: Check,
    used: AtomicU64,
}

/// All validators of a catalog.
#[derive(Debug)]
pub(crate) struct Validators {
    kept: Mutex<Cache>,
    /// The number of compilations so far, which serves as a coarse clock for the last use of
    /// validators.
    now: AtomicU64,
    compile_locks: [AsyncMutex<()>; MAX_COMPILATIONS],
    large_checks: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Cache {
    entries: Vec<Entry>,
    /// The total weight of all entries, in bytes.
    weight: usize,
}

#[derive(Debug)]
struct Entry {
    /// The slot of the schema, which is dropped together with its version of a toolkit.
    slot: Weak<Slot>,
    weight: usize,
}

impl Default for Validators {
    fn default() -> Self {
        Self {
            kept: Mutex::default(),
            now: AtomicU64::new(0),
            compile_locks: Default::default(),
            large_checks: Arc::new(Semaphore::new(MAX_LARGE_CHECKS)),
        }
    }
}

impl CompiledSchema {
    pub(super) fn new(check: Check) -> Self {
        Self {
            check,
            used: AtomicU64::new(0),
        }
    }
}

impl Validators {
    /// Records the use of a validator.
    pub(super) fn touch(&self, loaded: &CompiledSchema) {
        let now = self.now.load(Relaxed);
        // Most calls find the use already recorded, and avoid a write to memory that other threads
        // read.
        if loaded.used.load(Relaxed) != now {
            loaded.used.store(now, Relaxed);
        }
    }

    /// Returns the lock that is held while the schema of a slot is compiled.
    pub(super) fn compile_lock(&self, slot: &Arc<Slot>) -> &AsyncMutex<()> {
        &self.compile_locks[(Arc::as_ptr(slot) as usize / align_of::<Slot>()) % MAX_COMPILATIONS]
    }

    /// Caches a validator, and drops others to make room for it. `weight` is its estimated memory
    /// in bytes, or zero if it takes none.
    pub(super) fn keep(&self, slot: &Arc<Slot>, loaded: Arc<CompiledSchema>, weight: usize) {
        loaded.used.store(self.now.fetch_add(1, Relaxed), Relaxed);
        if weight > MAX_VALIDATOR_BYTES {
            return;
        }
        if weight > 0 {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.make_room(weight);
            kept.entries.push(Entry {
                slot: Arc::downgrade(slot),
                weight,
            });
            kept.weight += weight;
        }
        slot.store(Some(loaded));
    }

    /// Runs work that grows with the size of a value: directly for a small value, on a separate
    /// thread for a larger one.
    ///
    /// # Errors
    /// Returns an error if too many larger values are being checked for too long.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        size: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        if size <= MAX_INLINE_CHECK_BYTES {
            return Ok(work());
        }
        let permits = self.large_checks.clone();
        let done = async {
            let permit = permits.acquire_owned().await;
            // The thread releases the permit, because the request may be gone before the work is
            // done.
            let work = move || {
                let _permit = permit;
                work()
            };
            tokio::task::spawn_blocking(work).await
        };
        match timeout(LARGE_CHECK_DEADLINE, done).await {
            Ok(done) => done.map_err(|broken| {
                Error::Unavailable(format!("a value cannot be checked: {broken}"))
            }),
            Err(_) => Err(Error::Deadline(LARGE_CHECK_DEADLINE)),
        }
    }
}

impl Cache {
    /// Drops the least recently used validators until one more fits.
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
            let oldest = self
                .entries
                .iter()
                .enumerate()
                .min_by_key(|(_, entry)| used(entry));
            let Some(oldest) = oldest.map(|(position, _)| position) else {
                return;
            };
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
        validators.keep(
            &slot,
            Arc::new(CompiledSchema::new(Check::Anything)),
            weight,
        );
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
        assert_eq!(
            slots.each_ref().map(|slot| is_kept(slot)),
            [true, false, true]
        );
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
        let permits: Vec<_> = (0..MAX_LARGE_CHECKS)
            .map(|_| validators.large_checks.try_acquire().unwrap())
            .collect();
        let mut large = Box::pin(validators.run(MAX_INLINE_CHECK_BYTES + 1, || 1));
        assert!(futures::poll!(&mut large).is_pending());
        assert_eq!(validators.run(1, || 2).await.unwrap(), 2);
        drop(permits);
        assert_eq!(large.await.unwrap(), 1);
    }
}
