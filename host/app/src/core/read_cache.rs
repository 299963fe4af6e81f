//! A cache of what was read from the store, which keeps nothing that a change has made stale.

use std::{borrow::Borrow, hash::Hash};

use ahash::HashMap;
use parking_lot::RwLock;

/// Values that were read from the store, by key.
pub(crate) struct ReadCache<K, V> {
    capacity: usize,
    entries: RwLock<Entries<K, V>>,
}

struct Entries<K, V> {
    values: HashMap<K, V>,
    /// The number of changes. A value that was read before a change is not kept after it.
    changes: u64,
}

impl<K: Clone + Eq + Hash, V: Clone> ReadCache<K, V> {
    /// Creates a cache that empties when it would exceed `capacity` entries.
    pub(crate) fn new(capacity: usize) -> Self {
        let entries = Entries {
            values: HashMap::default(),
            changes: 0,
        };
        Self {
            capacity,
            entries: RwLock::new(entries),
        }
    }

    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.entries.read().values.get(key).cloned()
    }

    /// Returns the number of changes, which a caller asks for before it reads a value to be kept.
    pub(crate) fn changes(&self) -> u64 {
        self.entries.read().changes
    }

    pub(crate) fn all(&self) -> Vec<(K, V)> {
        let entries = self.entries.read();
        let all = entries.values.iter();
        all.map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }

    /// Keeps a value that was read when there had been a number of changes, unless there are more now.
    pub(crate) fn insert(&self, key: K, value: V, changes: u64) {
        let mut entries = self.entries.write();
        if entries.changes != changes {
            return;
        }
        if entries.values.len() >= self.capacity {
            entries.values.clear();
        }
        entries.values.insert(key, value);
    }

    /// Drops the values that a change has made stale.
    pub(crate) fn invalidate(&self, is_stale: impl Fn(&K, &V) -> bool) {
        let mut entries = self.entries.write();
        entries.changes += 1;
        entries.values.retain(|key, value| !is_stale(key, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_read_before_a_change_is_dropped() {
        let cache = ReadCache::new(9);
        cache.insert("a", 1, cache.changes());
        assert_eq!(cache.get("a"), Some(1));
        cache.invalidate(|key, _| *key == "a");
        assert_eq!(cache.get("a"), None);
        cache.insert("a", 1, 0);
        assert_eq!(cache.get("a"), None, "it was read before the change");
        cache.insert("a", 1, cache.changes());
        assert_eq!(cache.get("a"), Some(1));
    }

    #[test]
    fn full_cache_is_emptied() {
        let cache = ReadCache::new(2);
        (0..5_u8).for_each(|key| cache.insert(key, (), 0));
        assert!(cache.all().len() <= 2 && cache.get(&4_u8).is_some());
    }
}
