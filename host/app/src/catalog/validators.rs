//! The cache of compiled validators.
//!
//! A validator takes many times the memory of its schema, most of it for patterns. If the cached
//! validators are too many or take too much memory, some that were not used lately are dropped, and
//! compiled again when they are needed.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use quick_cache::{
    DefaultHashBuilder, OptionsBuilder, Weighter,
    sync::{Cache, DefaultLifecycle},
};
use tokio::sync::Mutex as AsyncMutex;

use super::check::Check;

/// Maximum number of cached validators.
pub const MAX_VALIDATORS: usize = 16_000;
/// Maximum estimated memory of the cached validators, in bytes.
pub const MAX_VALIDATOR_BYTES: usize = 256 << 20;
/// Estimated memory with which a validator counts at least, in bytes. It limits their number.
const MIN_VALIDATOR_BYTES: usize = MAX_VALIDATOR_BYTES / MAX_VALIDATORS;
/// Maximum number of validators that are compiled at the same time. One schema is never compiled
/// twice at the same time.
const MAX_VALIDATOR_COMPILATIONS: usize = 4;

#[derive(Debug)]
pub(crate) struct Validators {
    /// The cached validators by the id of their slot.
    kept: Cache<usize, Arc<CompiledSchema>, SizeInBudget>,
    compile_locks: [AsyncMutex<()>; MAX_VALIDATOR_COMPILATIONS],
    next_id: AtomicUsize,
}

/// The position of a schema's validator in the cache. The validator is dropped with it.
#[derive(Debug)]
pub(super) struct Slot {
    validators: Arc<Validators>,
    id: usize,
}

#[derive(Debug)]
pub(super) struct CompiledSchema {
    pub(super) check: Check,
    /// The estimated memory in bytes, or zero if it takes none.
    weight: usize,
}

/// Size of a validator in the budget. One that takes no memory has none, and is not dropped for
/// others.
#[derive(Debug, Clone)]
struct SizeInBudget;

impl Weighter<usize, Arc<CompiledSchema>> for SizeInBudget {
    fn weight(&self, _: &usize, loaded: &Arc<CompiledSchema>) -> u64 {
        match loaded.weight {
            0 => 0,
            weight => weight.max(MIN_VALIDATOR_BYTES) as u64,
        }
    }
}

impl CompiledSchema {
    pub(super) fn new(check: Check) -> Self {
        let weight = check.weight();
        Self { check, weight }
    }
}

impl Validators {
    /// Creates an empty cache. Fails if its limits are invalid.
    pub(super) fn new() -> io::Result<Self> {
        let options = OptionsBuilder::new()
            // The budget is not divided, because one part could not hold the largest validators.
            .shards(1)
            .estimated_items_capacity(MAX_VALIDATORS)
            .weight_capacity(MAX_VALIDATOR_BYTES as u64)
            .build()
            .map_err(io::Error::other)?;
        let kept = Cache::with_options(
            options,
            SizeInBudget,
            DefaultHashBuilder::default(),
            DefaultLifecycle::default(),
        );
        Ok(Self {
            kept,
            compile_locks: Default::default(),
            next_id: AtomicUsize::new(0),
        })
    }

    /// Creates the slot of a schema.
    pub(super) fn slot(self: &Arc<Self>) -> Arc<Slot> {
        Arc::new(Slot {
            validators: self.clone(),
            id: self.next_id.fetch_add(1, Relaxed),
        })
    }
}

impl Slot {
    /// Returns the validator if it is cached, and records its use.
    pub(super) fn load(&self) -> Option<Arc<CompiledSchema>> {
        self.validators.kept.get(&self.id)
    }

    /// Caches the validator, and drops others if the budget is exceeded.
    pub(super) fn keep(&self, loaded: Arc<CompiledSchema>) {
        self.validators.kept.insert(self.id, loaded);
    }

    /// Returns the lock that is held while the schema is compiled.
    pub(super) fn compile_lock(&self) -> &AsyncMutex<()> {
        &self.validators.compile_locks[self.id % MAX_VALIDATOR_COMPILATIONS]
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.validators.kept.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn validators() -> Arc<Validators> {
        Arc::new(Validators::new().unwrap())
    }

    fn kept(validators: &Arc<Validators>, weight: usize) -> Arc<Slot> {
        let slot = validators.slot();
        let check = Check::Anything;
        slot.keep(Arc::new(CompiledSchema { check, weight }));
        slot
    }

    /// Returns true if a validator is cached, without using it.
    fn is_kept(slot: &Slot) -> bool {
        slot.validators.kept.contains_key(&slot.id)
    }

    #[test]
    fn validators_used_longest_ago_are_let_go() {
        let validators = validators();
        let third = MAX_VALIDATOR_BYTES / 3;
        let slots = [third, third, third].map(|weight| kept(&validators, weight));
        for used in &slots[..2] {
            assert!(used.load().is_some());
        }
        let newest = kept(&validators, third);
        assert_eq!(
            slots.each_ref().map(|slot| is_kept(slot)),
            [true, true, false]
        );
        assert!(is_kept(&newest));
        let weightless = kept(&validators, 0);
        let large = kept(&validators, MAX_VALIDATOR_BYTES / 10 * 9);
        assert!(is_kept(&weightless) && is_kept(&large) && !is_kept(&newest));
    }

    #[test]
    fn validators_of_dropped_schemas_take_no_room() {
        let validators = validators();
        for _ in 0..3 {
            assert!(is_kept(&kept(&validators, MAX_VALIDATOR_BYTES / 10 * 9)));
            assert_eq!(validators.kept.len(), 0);
        }
        let all: Vec<_> = (0..MAX_VALIDATORS).map(|_| kept(&validators, 1)).collect();
        assert!(all.iter().all(|slot| is_kept(slot)));
        let newest = kept(&validators, 1);
        assert!(is_kept(&newest));
        assert_eq!(validators.kept.len(), MAX_VALIDATORS);
        assert!(!is_kept(&kept(&validators, MAX_VALIDATOR_BYTES + 1)));
    }
}
