//! Map with one entry for each key. Idle entries are removed when there are many.

use std::hash::Hash;

use ahash::HashMap;

/// Number of keys above which idle ones are forgotten.
pub(crate) const MAX_IDLE_KEYS: usize = 1_000;

/// Entries by key.
pub(crate) struct Keys<K, V> {
    entries: HashMap<K, V>,
    /// Number of keys at which idle ones are forgotten next. It grows with the keys in use, so that
    /// many of them do not cause a scan for each new one.
    cleanup_at: usize,
}

impl<K, V> Default for Keys<K, V> {
    fn default() -> Self {
        Self {
            entries: HashMap::default(),
            cleanup_at: MAX_IDLE_KEYS,
        }
    }
}

impl<K: Clone + Eq + Hash, V> Keys<K, V> {
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key)
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key)
    }

    /// Returns the entry of a key, and creates it if necessary. Removes idle entries first if there are
    /// many.
    pub(crate) fn entry(
        &mut self,
        key: &K,
        is_idle: impl Fn(&V) -> bool,
        new: impl FnOnce() -> V,
    ) -> &mut V {
        if self.entries.len() >= self.cleanup_at && !self.entries.contains_key(key) {
            self.entries.retain(|_, entry| !is_idle(entry));
            self.cleanup_at = MAX_IDLE_KEYS.max(2 * self.entries.len());
        }
        self.entries.entry(key.clone()).or_insert_with(new)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}
