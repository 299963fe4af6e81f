//! Events of webhooks that one trigger instance receives at the same time.
//!
//! Every webhook changes the progress of its instance, so that their commits follow one another. The
//! webhooks that arrive during a commit share the next one, in the order of their arrival. Each is
//! told of its events only after the commit that has stored them. If a commit fails or is cut off,
//! each webhook in it stores its own events.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use sandbox::Event;
use tokio::sync::{Mutex as AsyncMutex, oneshot};

use crate::Result;

/// Maximum bytes of the events in a commit that webhooks share. One webhook may have more.
const MAX_SHARED_BYTES: usize = 1 << 20;
/// Bytes that an event takes besides its payload, as an estimate.
const EVENT_BYTES: usize = 1 << 10;

/// The instances for which webhooks are being stored.
#[derive(Debug, Default)]
pub(crate) struct Receptions(Mutex<HashMap<String, Weak<Reception>>>);

/// The webhooks of an instance that are being stored.
#[derive(Debug, Default)]
struct Reception {
    /// Held by the webhook that commits for others.
    turn: AsyncMutex<()>,
    waiting: Mutex<Vec<Waiting>>,
}

#[derive(Debug)]
struct Waiting {
    events: Arc<[Event]>,
    stored: oneshot::Sender<()>,
}

impl Receptions {
    /// Stores the events of a webhook, together with those of others. `store` stores all the events
    /// that it gets or none.
    ///
    /// # Errors
    /// Fails if the events cannot be stored alone either.
    pub(super) async fn store<F>(
        &self,
        instance: &str,
        events: Vec<Event>,
        store: impl Fn(Vec<Arc<[Event]>>) -> F,
    ) -> Result<()>
    where
        F: Future<Output = Result<()>>,
    {
        let events: Arc<[Event]> = events.into();
        let reception = self.reception(instance);
        let (stored, mut is_stored) = oneshot::channel();
        reception.waiting.lock().push(Waiting {
            events: events.clone(),
            stored,
        });
        let shared = tokio::select! {
            biased;
            shared = &mut is_stored => shared.is_ok(),
            turn = reception.turn.lock() => {
                let shared = reception.store_waiting(&mut is_stored, &store).await;
                drop(turn);
                shared
            }
        };
        if shared {
            Ok(())
        } else {
            store(vec![events]).await
        }
    }

    fn reception(&self, instance: &str) -> Arc<Reception> {
        let mut all = self.0.lock();
        if let Some(known) = all.get(instance).and_then(Weak::upgrade) {
            return known;
        }
        all.retain(|_, reception| reception.strong_count() > 0);
        let new = Arc::default();
        all.insert(instance.to_owned(), Arc::downgrade(&new));
        new
    }
}

impl Reception {
    /// Stores events of waiting webhooks until those of one of them are stored. Returns false if they
    /// could not be stored.
    async fn store_waiting<F>(
        &self,
        is_stored: &mut oneshot::Receiver<()>,
        store: impl Fn(Vec<Arc<[Event]>>) -> F,
    ) -> bool
    where
        F: Future<Output = Result<()>>,
    {
        loop {
            match is_stored.try_recv() {
                Ok(()) => return true,
                Err(oneshot::error::TryRecvError::Closed) => return false,
                Err(oneshot::error::TryRecvError::Empty) => {}
            }
            let group = self.next_group();
            let events = group.iter().map(|waiting| waiting.events.clone());
            if let Err(cause) = store(events.collect()).await {
                tracing::debug!(%cause, "the events of several webhooks are stored one by one");
                continue;
            }
            for waiting in group {
                // The webhook may wait no longer.
                let _ = waiting.stored.send(());
            }
        }
    }

    /// Takes the first of the waiting webhooks, as many as share a commit.
    fn next_group(&self) -> Vec<Waiting> {
        let mut waiting = self.waiting.lock();
        let mut bytes = 0;
        let fits = |waiting: &&Waiting| {
            let own = waiting.events.iter();
            bytes += own
                .map(|event| event.payload.len() + EVENT_BYTES)
                .sum::<usize>();
            bytes <= MAX_SHARED_BYTES
        };
        let count = waiting.iter().take_while(fits).count().max(1);
        let count = count.min(waiting.len());
        waiting.drain(..count).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::join_all;
    use tokio::sync::Notify;

    use super::*;
    use crate::core::errors;

    fn event(id: usize, payload_bytes: usize) -> Event {
        Event {
            id: id.to_string(),
            payload: vec![b' '; payload_bytes].into(),
        }
    }

    fn ids(groups: &[Arc<[Event]>]) -> Vec<String> {
        let events = groups.iter().flat_map(|events| events.iter());
        events.map(|event| event.id.clone()).collect()
    }

    #[tokio::test]
    async fn webhooks_during_a_commit_share_the_next() {
        let receptions = Receptions::default();
        let commits = Mutex::new(Vec::new());
        let first_ends = Notify::new();
        let store = |groups: Vec<Arc<[Event]>>| {
            let (commits, first_ends) = (&commits, &first_ends);
            async move {
                let is_first = commits.lock().is_empty();
                commits.lock().push(ids(&groups));
                if is_first {
                    first_ends.notified().await;
                }
                Ok(())
            }
        };
        let webhooks =
            (0..20).map(|number| receptions.store("ti_a", vec![event(number, 10)], store));
        let ending = async {
            first_ends.notify_one();
        };
        let (stored, ()) = tokio::join!(join_all(webhooks), ending);
        assert!(stored.iter().all(Result::is_ok));
        let expected: Vec<_> = (0..20).map(|number| number.to_string()).collect();
        assert_eq!(*commits.lock(), [&expected[..1], &expected[1..]]);
    }

    #[tokio::test]
    async fn refused_events_do_not_stop_others() {
        let receptions = Receptions::default();
        let store = |groups: Vec<Arc<[Event]>>| async move {
            tokio::task::yield_now().await;
            if ids(&groups).contains(&"3".to_owned()) {
                return Err(errors::internal("it is refused"));
            }
            Ok(())
        };
        let webhooks =
            (0..8).map(|number| receptions.store("ti_a", vec![event(number, 10)], store));
        let stored = join_all(webhooks).await;
        let refused = stored.iter().map(Result::is_err).collect::<Vec<_>>();
        assert_eq!(refused.iter().filter(|refused| **refused).count(), 1);
        assert!(refused[3]);
    }

    #[tokio::test]
    async fn cut_off_commit_leaves_no_webhook_behind() {
        let receptions = Receptions::default();
        let calls = AtomicUsize::new(0);
        let store = |_: Vec<Arc<[Event]>>| async {
            if calls.fetch_add(1, Ordering::SeqCst) == 0 {
                std::future::pending::<()>().await;
            }
            Ok(())
        };
        let mut first = Box::pin(receptions.store("ti_a", vec![event(0, 10)], store));
        assert!(futures::poll!(&mut first).is_pending());
        let mut second = Box::pin(receptions.store("ti_a", vec![event(1, 10)], store));
        assert!(futures::poll!(&mut second).is_pending());
        drop(first);
        second.await.unwrap();
        assert_eq!(calls.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn shared_commit_has_bounded_bytes() {
        let receptions = Receptions::default();
        let sizes = Mutex::new(Vec::new());
        let store = |groups: Vec<Arc<[Event]>>| {
            sizes.lock().push(groups.len());
            async {
                tokio::task::yield_now().await;
                Ok(())
            }
        };
        let large = MAX_SHARED_BYTES / 2;
        let webhooks =
            (0..4).map(|number| receptions.store("ti_a", vec![event(number, large)], store));
        assert!(join_all(webhooks).await.iter().all(Result::is_ok));
        assert_eq!(*sizes.lock(), [1; 4]);
    }
}
