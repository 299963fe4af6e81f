//! The cache of compiled validators.
//!
//! A validator takes many times the memory of its schema, most of it for patterns. If the cached
//! validators are too many or take too much memory, some that were not used lately are dropped, and
//! compiled again when they are needed.
use std::{
    collections::VecDeque,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;

use super::check::Check;

/// Maximum number of cached validators.
pub const MAX_VALIDATORS: usize = 16_000;
/// Maximum estimated memory of the cached validators, in bytes.
pub const MAX_VALIDATOR_BYTES: usize = 256 << 20;
/// Maximum number of validators that are compiled at the same time. One schema is never compiled
/// twice at the same time.
const MAX_COMPILATIONS: usize = 4;

/// Insertions between two searches for validators of dropped schemas, as a part of all entries.
const PRUNE_DIVISOR: usize = 8;

/// The place of a schema's validator while it is cached.
pub(super) type Slot = ArcSwapOption<CompiledSchema>;

/// A compiled schema.
#[derive(Debug)]
pub(super) struct CompiledSchema {
    pub(super) check: Check,
    /// True if it was used since it last came up for being dropped.
    used: AtomicBool,
}

/// All validators of a catalog.
#[derive(Debug, Default)]
pub(crate) struct Validators {
    kept: Mutex<Cache>,
    compile_locks: [AsyncMutex<()>; MAX_COMPILATIONS],
}

#[derive(Debug, Default)]
struct Cache {
    /// Those that come up for being dropped first are at the front. One that was used goes to the
    /// back instead.
    entries: VecDeque<Entry>,
    /// The total weight of all entries, in bytes.
    weight: usize,
    /// The number of insertions since entries of dropped schemas were removed.
    insertions: usize,
}

#[derive(Debug)]
struct Entry {
    /// The slot of the schema, which is dropped together with its version of a toolkit.
    slot: Weak<Slot>,
    weight: usize,
}

impl CompiledSchema {
    pub(super) fn new(check: Check) -> Self {
        Self {
            check,
            used: AtomicBool::new(false),
        }
    }
}

impl Validators {
    /// Records the use of a validator.
    pub(super) fn touch(&self, loaded: &CompiledSchema) {
        // Most calls find the use already recorded, and avoid a write to memory that other threads
        // read.
        if !loaded.used.load(Relaxed) {
            loaded.used.store(true, Relaxed);
        }
    }

    /// Returns the lock that is held while the schema of a slot is compiled.
    pub(super) fn compile_lock(&self, slot: &Arc<Slot>) -> &AsyncMutex<()> {
        &self.compile_locks[(Arc::as_ptr(slot) as usize / align_of::<Slot>()) % MAX_COMPILATIONS]
    }

    /// Caches a validator, and drops others to make room for it. `weight` is its estimated memory
    /// in bytes, or zero if it takes none.
    pub(super) fn keep(&self, slot: &Arc<Slot>, loaded: Arc<CompiledSchema>, weight: usize) {
        if weight > MAX_VALIDATOR_BYTES {
            return;
        }
        if weight > 0 {
            let mut kept = self.kept.lock();
            kept.make_room(weight);
            kept.entries.push_back(Entry {
                slot: Arc::downgrade(slot),
                weight,
            });
            kept.weight += weight;
            kept.insertions += 1;
        }
        slot.store(Some(loaded));
    }
}

impl Cache {
    /// Drops validators until one more fits.
    fn make_room(&mut self, weight: usize) {
        if self.has_room(weight) {
            return;
        }
        if self.insertions >= self.entries.len() / PRUNE_DIVISOR {
            self.prune();
        }
        while !self.has_room(weight) {
            let Some(entry) = self.entries.pop_front() else {
                return;
            };
            let slot = entry.slot.upgrade();
            let was_used = |slot: &Arc<Slot>| {
                let loaded = slot.load();
                loaded
                    .as_ref()
                    .is_some_and(|loaded| loaded.used.swap(false, Relaxed))
            };
            if slot.as_ref().is_some_and(was_used) {
                self.entries.push_back(entry);
                continue;
            }
            self.weight -= entry.weight;
            if let Some(slot) = slot {
                slot.store(None);
            }
        }
    }

    fn has_room(&self, weight: usize) -> bool {
        self.entries.len() < MAX_VALIDATORS && self.weight + weight <= MAX_VALIDATOR_BYTES
    }

    /// Removes the entries of dropped schemas.
    fn prune(&mut self) {
        self.entries.retain(|entry| entry.slot.strong_count() > 0);
        self.weight = self.entries.iter().map(|entry| entry.weight).sum();
        self.insertions = 0;
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
}
