//! Bytes: units that are taken and given back in any amount. Nobody waits for them.

use std::{
    fmt,
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use parking_lot::Mutex;

use crate::{Busy, Shares, keys::Keys};

/// Bytes that keys share. Cloning is cheap.
pub struct ByteCapacity<K>(Arc<Shared<K>>);

/// Bytes that a key holds. They are released when dropped.
pub struct Reservation<K> {
    capacity: Arc<Shared<K>>,
    /// Bytes of all reservations of the key.
    of_key: Arc<AtomicU64>,
    held: AtomicU64,
}

struct Shared<K> {
    shares: Shares,
    inner: Mutex<Inner<K>>,
}

struct Inner<K> {
    used: u64,
    /// Bytes by key. They change only while the capacity is locked.
    keys: Keys<K, Arc<AtomicU64>>,
}

impl<K> Clone for ByteCapacity<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Clone + Eq + Hash> ByteCapacity<K> {
    /// Creates a capacity.
    #[must_use]
    pub fn new(shares: Shares) -> Self {
        let inner = Inner {
            used: 0,
            keys: Keys::default(),
        };
        Self(Arc::new(Shared {
            shares,
            inner: Mutex::new(inner),
        }))
    }

    /// Returns the bytes that all keys hold.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.0.inner.lock().used
    }

    /// Returns an empty reservation of a key.
    #[must_use]
    pub fn reserve(&self, key: &K) -> Reservation<K> {
        let mut inner = self.0.inner.lock();
        let keys = &mut inner.keys;
        let of_key = keys.entry(key, |bytes| Arc::strong_count(bytes) == 1, Arc::default);
        Reservation {
            capacity: self.0.clone(),
            of_key: of_key.clone(),
            held: AtomicU64::new(0),
        }
    }
}

impl<K> Reservation<K> {
    /// Returns true if no bytes are held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.load(Relaxed) == 0
    }

    /// Returns the reason why the key would not get a number of bytes now.
    #[must_use]
    pub fn refusal(&self, bytes: u64) -> Option<Busy> {
        self.refusal_within(&self.capacity.inner.lock(), bytes)
    }

    fn refusal_within(&self, inner: &Inner<K>, bytes: u64) -> Option<Busy> {
        let held = self.of_key.load(Relaxed);
        self.capacity.shares.refusal(held, inner.used, bytes)
    }

    /// Reserves more bytes.
    ///
    /// # Errors
    /// Returns the reason if the key may not have them now.
    pub fn try_grow(&self, bytes: u64) -> Result<(), Busy> {
        if bytes == 0 {
            return Ok(());
        }
        let mut inner = self.capacity.inner.lock();
        if let Some(busy) = self.refusal_within(&inner, bytes) {
            return Err(busy);
        }
        self.of_key.fetch_add(bytes, Relaxed);
        inner.used += bytes;
        self.held.fetch_add(bytes, Relaxed);
        Ok(())
    }

    /// Takes over the bytes that `other`, a reservation of the same key, holds.
    pub fn take_over(&self, other: &Self) {
        self.held.fetch_add(other.held.swap(0, Relaxed), Relaxed);
    }

    /// Creates an empty reservation of the same key.
    #[must_use]
    pub fn empty(&self) -> Self {
        Self {
            capacity: self.capacity.clone(),
            of_key: self.of_key.clone(),
            held: AtomicU64::new(0),
        }
    }

    /// Moves the held bytes into a new reservation.
    #[must_use]
    pub fn split_off(&self) -> Self {
        let taken = self.empty();
        taken.take_over(self);
        taken
    }

    /// Releases all held bytes.
    pub fn release(&self) {
        let bytes = self.held.swap(0, Relaxed);
        // Most reservations are empty, and all processors share the counter.
        if bytes > 0 {
            let mut inner = self.capacity.inner.lock();
            inner.used -= bytes;
            self.of_key.fetch_sub(bytes, Relaxed);
        }
    }
}

impl<K> Drop for Reservation<K> {
    fn drop(&mut self) {
        self.release();
    }
}

impl<K> fmt::Debug for Reservation<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = self.held.load(Relaxed);
        formatter
            .debug_struct("Reservation")
            .field("held", &held)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::keys::MAX_IDLE_KEYS;

    #[test]
    fn idle_keys_are_forgotten() {
        let capacity = ByteCapacity::new(Shares::new(100, 10, 10));
        let held = capacity.reserve(&0);
        (1..=2 * MAX_IDLE_KEYS as u32).for_each(|key| drop(capacity.reserve(&key)));
        assert!(capacity.0.inner.lock().keys.len() <= MAX_IDLE_KEYS + 1);
        held.try_grow(10).unwrap();
        assert_eq!(capacity.reserve(&0).refusal(1), Some(Busy::Own));
    }

    #[test]
    fn bytes_are_counted_and_released() {
        let capacity = ByteCapacity::new(Shares::new(160, 16, 80));
        let one = capacity.reserve(&1);
        one.try_grow(80).unwrap();
        assert_eq!(one.try_grow(1), Err(Busy::Own));
        let part = one.split_off();
        assert!(one.is_empty());
        let other = capacity.reserve(&2);
        assert_eq!(other.try_grow(11), Err(Busy::Others));
        other.try_grow(10).unwrap();
        assert_eq!(capacity.reserve(&3).refusal(10), None);
        drop(part);
        other.try_grow(70).unwrap();
        drop((one, other));
        assert_eq!(capacity.used(), 0);
    }

    proptest! {
        #[test]
        fn ninth_key_gets_its_base(steps in prop::collection::vec((0u32..8, 0u64..90), 0..500)) {
            let capacity = ByteCapacity::new(Shares::new(1_024, 16, 512));
            let mut held = Vec::new();
            for (key, bytes) in steps {
                let part = capacity.reserve(&key);
                match part.try_grow(bytes) {
                    Ok(()) if bytes > 0 => held.push(part),
                    Ok(()) => drop(held.pop()),
                    Err(_) => (),
                }
                prop_assert!(capacity.used() <= 1_024);
                prop_assert_eq!(capacity.reserve(&8).refusal(64), None);
            }
            drop(held);
            prop_assert_eq!(capacity.used(), 0);
        }
    }
}
