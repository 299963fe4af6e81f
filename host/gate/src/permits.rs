//! Permits: units that are taken one by one and for which callers may wait.

use std::{
    collections::VecDeque,
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use parking_lot::Mutex;
use tokio::{sync::oneshot, time::timeout};

use crate::{Busy, Queue, Shares, keys::Keys};

/// Issues permits to keys. Cloning is cheap. Each permit carries the state `S` of its key, which is
/// kept for as long as the key has permits.
pub struct Gate<K: Clone + Eq + Hash, S = ()>(Arc<Shared<K, S>>);

/// Right of a key to one unit. It is released when dropped.
pub struct Permit<K: Clone + Eq + Hash, S = ()> {
    gate: Arc<Shared<K, S>>,
    holder: Arc<Holder<S>>,
}

/// Part of a key that its permits share. The key has an entry for as long as it has permits.
struct Holder<S> {
    /// Number of permits. It changes only while the gate is locked.
    held: AtomicU64,
    state: S,
}

struct Shared<K: Clone + Eq + Hash, S> {
    shares: Shares,
    new_state: Box<dyn Fn() -> S + Send + Sync>,
    inner: Mutex<Inner<K, S>>,
}

struct Inner<K: Clone + Eq + Hash, S> {
    used: u64,
    queued: usize,
    keys: Keys<K, Key<K, S>>,
    /// Keys with waiting callers, in the order in which they are served.
    order: VecDeque<K>,
}

struct Key<K: Clone + Eq + Hash, S> {
    holder: Arc<Holder<S>>,
    waiting: VecDeque<(u64, oneshot::Sender<Permit<K, S>>)>,
    next_ticket: u64,
}

impl<K: Clone + Eq + Hash, S> Key<K, S> {
    fn new(state: S) -> Self {
        let held = AtomicU64::new(0);
        Self {
            holder: Arc::new(Holder { held, state }),
            waiting: VecDeque::new(),
            next_ticket: 0,
        }
    }

    fn held(&self) -> u64 {
        self.holder.held.load(Relaxed)
    }

    fn is_idle(&self) -> bool {
        self.held() == 0 && self.waiting.is_empty()
    }
}

impl<K: Clone + Eq + Hash, S> Clone for Gate<K, S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Clone + Eq + Hash> Gate<K> {
    /// Creates a gate whose keys have no state.
    #[must_use]
    pub fn new(shares: Shares) -> Self {
        Self::with_state(shares, || ())
    }
}

impl<K: Clone + Eq + Hash, S> Gate<K, S> {
    /// Creates a gate. `new_state` makes the state of a key.
    #[must_use]
    pub fn with_state(shares: Shares, new_state: impl Fn() -> S + Send + Sync + 'static) -> Self {
        let inner = Inner {
            used: 0,
            queued: 0,
            keys: Keys::default(),
            order: VecDeque::new(),
        };
        Self(Arc::new(Shared {
            shares,
            new_state: Box::new(new_state),
            inner: Mutex::new(inner),
        }))
    }

    /// Returns the number of permits in use and the number of waiting callers.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        let inner = self.0.inner.lock();
        (
            usize::try_from(inner.used).unwrap_or(usize::MAX),
            inner.queued,
        )
    }

    /// Takes a permit for a key, if it may have one now.
    ///
    /// # Errors
    /// Returns the reason if it may not.
    pub fn try_acquire(&self, key: &K) -> Result<Permit<K, S>, Busy> {
        self.0.take(key, &mut self.0.inner.lock())
    }

    /// Takes a permit for a key, immediately or after waiting in the queue.
    ///
    /// # Errors
    /// Returns the reason if the queue is full or the wait is over.
    pub async fn acquire(&self, key: &K, queue: Queue) -> Result<Permit<K, S>, Busy> {
        let (ticket, receiver) = {
            let mut inner = self.0.inner.lock();
            // A caller that waits could not be served, so nobody is overtaken here.
            let busy = match self.0.take(key, &mut inner) {
                Ok(permit) => return Ok(permit),
                Err(busy) => busy,
            };
            inner.enqueue(key, queue).ok_or(busy)?
        };
        let _entry = QueueEntry {
            gate: &self.0,
            key,
            ticket,
        };
        let waited = Box::pin(timeout(queue.wait, receiver)).await;
        waited
            .ok()
            .and_then(Result::ok)
            .ok_or_else(|| self.0.refusal(key))
    }
}

impl<K: Clone + Eq + Hash, S> Shared<K, S> {
    fn take(self: &Arc<Self>, name: &K, inner: &mut Inner<K, S>) -> Result<Permit<K, S>, Busy> {
        let keys = &mut inner.keys;
        let key = keys.entry(name, Key::is_idle, || Key::new((self.new_state)()));
        if let Some(busy) = self.shares.refusal(key.held(), inner.used, 1) {
            return Err(busy);
        }
        inner.used += 1;
        Ok(self.permit(key))
    }

    fn permit(self: &Arc<Self>, key: &Key<K, S>) -> Permit<K, S> {
        key.holder.held.fetch_add(1, Relaxed);
        Permit {
            gate: self.clone(),
            holder: key.holder.clone(),
        }
    }

    /// Issues free permits to waiting callers, one key after the other. Returns the permits whose
    /// callers are gone.
    fn issue_permits(self: &Arc<Self>, inner: &mut Inner<K, S>) -> Vec<Permit<K, S>> {
        let mut unwanted = Vec::new();
        let mut passed = 0;
        while inner.used < self.shares.total && passed < inner.order.len() {
            let Some(name) = inner.order.pop_front() else {
                break;
            };
            let Some(key) = inner.keys.get_mut(&name) else {
                continue;
            };
            if self.shares.refusal(key.held(), inner.used, 1).is_some() {
                inner.order.push_back(name);
                passed += 1;
                continue;
            }
            if let Some((_, sender)) = key.waiting.pop_front() {
                inner.queued -= 1;
                inner.used += 1;
                passed = 0;
                let permit = self.permit(key);
                unwanted.extend(sender.send(permit).err());
            }
            if !key.waiting.is_empty() {
                inner.order.push_back(name);
            }
        }
        unwanted
    }

    fn refusal(&self, key: &K) -> Busy {
        let inner = self.inner.lock();
        let held = inner.keys.get(key).map_or(0, Key::held);
        let refusal = self.shares.refusal(held, inner.used, 1);
        refusal.unwrap_or(Busy::Others)
    }
}

impl<K: Clone + Eq + Hash, S> Inner<K, S> {
    /// Adds a caller to the queue of a key that has an entry. Returns `None` if the queue is full.
    fn enqueue(
        &mut self,
        name: &K,
        queue: Queue,
    ) -> Option<(u64, oneshot::Receiver<Permit<K, S>>)> {
        let key = self.keys.get_mut(name)?;
        if key.waiting.len() >= queue.per_key || self.queued >= queue.all {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        let ticket = key.next_ticket;
        key.next_ticket += 1;
        if key.waiting.is_empty() {
            self.order.push_back(name.clone());
        }
        key.waiting.push_back((ticket, sender));
        self.queued += 1;
        Some((ticket, receiver))
    }
}

impl<K: Clone + Eq + Hash, S> Permit<K, S> {
    /// Returns the state of the key.
    #[must_use]
    pub fn state(&self) -> &S {
        &self.holder.state
    }
}

impl<K: Clone + Eq + Hash, S> Drop for Permit<K, S> {
    fn drop(&mut self) {
        let unwanted = {
            let mut inner = self.gate.inner.lock();
            inner.used -= 1;
            self.holder.held.fetch_sub(1, Relaxed);
            if inner.queued > 0 {
                self.gate.issue_permits(&mut inner)
            } else {
                Vec::new()
            }
        };
        // The callers of these permits are gone. Releasing them takes the lock again.
        drop(unwanted);
    }
}

/// Entry of a waiting caller. Dropping it removes the caller from the queue.
struct QueueEntry<'g, K: Clone + Eq + Hash, S> {
    gate: &'g Shared<K, S>,
    key: &'g K,
    ticket: u64,
}

impl<K: Clone + Eq + Hash, S> Drop for QueueEntry<'_, K, S> {
    fn drop(&mut self) {
        let mut inner = self.gate.inner.lock();
        let inner = &mut *inner;
        let Some(key) = inner.keys.get_mut(self.key) else {
            return;
        };
        let mut waiting = key.waiting.iter();
        if let Some(at) = waiting.position(|(ticket, _)| *ticket == self.ticket) {
            key.waiting.remove(at);
            inner.queued -= 1;
            if key.waiting.is_empty() {
                inner.order.retain(|name| name != self.key);
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tasks of a test end with it")]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use tokio::task::yield_now;

    use super::*;
    use crate::keys::MAX_IDLE_KEYS;

    const LONG_WAIT: Queue = Queue::time(Duration::from_secs(60));

    fn gate(total: u64, cap: u64) -> Gate<u32> {
        Gate::new(Shares::new(total, 32, cap))
    }

    async fn wait_for_queued(gate: &Gate<u32>, callers: usize) {
        while gate.counts().1 < callers {
            yield_now().await;
        }
    }

    #[tokio::test]
    async fn key_at_its_limit_waits_then_is_refused() {
        let gate = gate(10, 1);
        let queue = Queue {
            all: 10,
            per_key: 1,
            wait: Duration::from_millis(50),
        };
        let held = gate.acquire(&1, queue).await.unwrap();
        let waiting = gate.clone();
        let waits = tokio::spawn(async move { waiting.acquire(&1, queue).await.map(drop) });
        wait_for_queued(&gate, 1).await;
        assert_eq!(gate.acquire(&1, queue).await.err(), Some(Busy::Own));
        assert!(gate.acquire(&2, queue).await.is_ok());
        assert_eq!(waits.await.unwrap(), Err(Busy::Own));
        drop(held);
        assert_eq!(gate.counts(), (0, 0));
    }

    #[tokio::test]
    async fn free_permits_go_to_keys_in_turn() {
        let gate = gate(1, 1);
        let held = gate.try_acquire(&0).unwrap();
        let (done, mut seen) = tokio::sync::mpsc::unbounded_channel();
        for (position, key) in [1, 1, 1, 2].into_iter().enumerate() {
            let (waiting, done) = (gate.clone(), done.clone());
            tokio::spawn(async move {
                let permit = waiting.acquire(&key, LONG_WAIT).await.unwrap();
                done.send(key).unwrap();
                drop(permit);
            });
            wait_for_queued(&gate, position + 1).await;
        }
        drop((held, done));
        let mut order = Vec::new();
        while let Some(key) = seen.recv().await {
            order.push(key);
        }
        assert_eq!(order, [1, 2, 1, 1]);
        assert_eq!(gate.counts(), (0, 0));
    }

    #[tokio::test]
    async fn caller_that_stops_waiting_leaves_no_trace() {
        let gate = gate(1, 1);
        let held = gate.try_acquire(&1).unwrap();
        let queue = Queue {
            all: 1,
            ..LONG_WAIT
        };
        let waiting = gate.clone();
        let waits = tokio::spawn(async move { waiting.acquire(&2, queue).await.map(drop) });
        wait_for_queued(&gate, 1).await;
        assert_eq!(gate.acquire(&3, queue).await.err(), Some(Busy::Others));
        waits.abort();
        assert!(waits.await.unwrap_err().is_cancelled());
        assert_eq!(gate.counts(), (1, 0));
        drop(held);
        assert!(gate.try_acquire(&3).is_ok());
    }

    #[tokio::test]
    async fn waiting_newcomer_is_served_before_larger_keys() {
        let gate = gate(4, 4);
        let mut held = vec![gate.try_acquire(&1).unwrap(), gate.try_acquire(&1).unwrap()];
        let others = [2, 3].map(|key| gate.try_acquire(&key).unwrap());
        for key in [1, 9] {
            let waiting = gate.clone();
            tokio::spawn(async move {
                let permit = waiting.acquire(&key, LONG_WAIT).await;
                std::mem::forget(permit);
            });
            wait_for_queued(&gate, if key == 1 { 1 } else { 2 }).await;
        }
        drop(others);
        wait_for_queued(&gate, 1).await;
        assert_eq!(gate.counts(), (3, 1), "the newcomer has a permit");
        held.clear();
        assert_eq!(gate.counts(), (2, 0), "so has the other in the end");
    }

    #[test]
    fn idle_keys_are_forgotten() {
        let gate = gate(10, 1);
        let held = gate.try_acquire(&0).unwrap();
        (1..=2 * MAX_IDLE_KEYS as u32).for_each(|key| drop(gate.try_acquire(&key)));
        assert!(gate.0.inner.lock().keys.len() <= MAX_IDLE_KEYS + 1);
        assert_eq!(gate.try_acquire(&0).err(), Some(Busy::Own));
        drop(held);
    }

    proptest! {
        #[test]
        fn ninth_key_gets_its_base(steps in prop::collection::vec((0u32..8, 0u8..4), 0..2_000)) {
            let gate = Gate::new(Shares::new(128, 32, 96));
            let mut held: Vec<(u32, Permit<u32>)> = Vec::new();
            for (key, step) in steps {
                match held.iter().position(|(holder, _)| *holder == key) {
                    Some(at) if step == 0 => drop(held.swap_remove(at)),
                    _ => held.extend(gate.try_acquire(&key).map(|permit| (key, permit))),
                }
                let base: Vec<_> = (0..4).map(|_| gate.try_acquire(&8)).collect();
                prop_assert!(base.iter().all(Result::is_ok));
            }
            drop(held);
            prop_assert_eq!(gate.counts(), (0, 0));
        }
    }
}
