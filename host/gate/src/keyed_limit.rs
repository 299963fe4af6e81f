//! A concurrency limit for each key alone, such as an address or an account.

use std::{hash::Hash, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::keys::Keys;

/// A concurrency limit of the same number for each key.
pub struct KeyedLimit<K> {
    permits: usize,
    keys: Mutex<Keys<K, Arc<Semaphore>>>,
}

impl<K: Clone + Eq + Hash> KeyedLimit<K> {
    /// Returns a limit with a number of permits for each key.
    #[must_use]
    pub fn new(permits: usize) -> Self {
        Self {
            permits: permits.min(Semaphore::MAX_PERMITS),
            keys: Mutex::default(),
        }
    }

    /// Waits for a permit of a key. Permits are given in the order of arrival. There is always one,
    /// because the semaphores are never closed.
    pub async fn acquire(&self, key: &K) -> Option<OwnedSemaphorePermit> {
        self.semaphore(key).acquire_owned().await.ok()
    }

    /// Takes a permit of a key, if one is free.
    pub fn try_acquire(&self, key: &K) -> Option<OwnedSemaphorePermit> {
        self.semaphore(key).try_acquire_owned().ok()
    }

    fn semaphore(&self, key: &K) -> Arc<Semaphore> {
        let mut keys = self.keys.lock();
        let is_idle = |semaphore: &Arc<Semaphore>| Arc::strong_count(semaphore) == 1;
        let new = || Arc::new(Semaphore::new(self.permits));
        keys.entry(key, is_idle, new).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::MAX_IDLE_KEYS;

    #[test]
    fn keys_are_limited_each_and_released() {
        let limit = KeyedLimit::new(2);
        let first = limit.try_acquire(&1).unwrap();
        let _second = limit.try_acquire(&1).unwrap();
        assert!(limit.try_acquire(&1).is_none());
        assert!(limit.try_acquire(&2).is_some());
        drop(first);
        assert!(limit.try_acquire(&1).is_some());
    }

    #[test]
    fn idle_keys_are_dropped() {
        let limit = KeyedLimit::new(1);
        let held = limit.try_acquire(&0).unwrap();
        (0..=MAX_IDLE_KEYS).for_each(|key| drop(limit.try_acquire(&key)));
        assert!(limit.keys.lock().len() < MAX_IDLE_KEYS);
        assert!(limit.try_acquire(&0).is_none(), "a key in use is kept");
        drop(held);
    }
}
