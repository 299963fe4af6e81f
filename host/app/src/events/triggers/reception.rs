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
/// Bytes that an event takes in addition to its payload, as an estimate.
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
    /// Stores the events of a webhook, together with those of others. `store` stores either all the
    /// events that it gets or nothing. Fails if the events cannot be stored alone either.
    pub(super) async fn store<F: Future<Output = Result<()>>>(
        &self,
        instance: &str,
        events: Vec<Event>,
        store: impl Fn(Vec<Arc<[Event]>>) -> F,
    ) -> Result<()> {
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
            return Ok(());
        }
        store(vec![events]).await
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
    async fn store_waiting<F: Future<Output = Result<()>>>(
        &self,
        is_stored: &mut oneshot::Receiver<()>,
        store: impl Fn(Vec<Arc<[Event]>>) -> F,
    ) -> bool {
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
        let fitting = waiting.iter().take_while(|webhook| {
            let sizes = webhook.events.iter().map(|event| event.payload.len());
            bytes += sizes.map(|size| size + EVENT_BYTES).sum::<usize>();
            bytes <= MAX_SHARED_BYTES
        });
        let count = fitting.count().max(1).min(waiting.len());
        waiting.drain(..count).collect()
    }
}

#[cfg(test)]
mod tests;
