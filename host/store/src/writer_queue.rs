//! Queues of this process's writers at one record, so that they do not make each other's batches
//! stale.
//!
//! The first attempt of a writer does not wait. It costs one atomic read if no writer waits. Only
//! writers whose batch was stale wait in a queue, and later writers behind them. The last one to
//! leave removes the queue, so nothing is kept for a record that is not being changed. A turn
//! guarantees nothing: the revision of the record decides, also against other processes.

use crate::{Collection, CommitError};
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tokio::time::Instant;

/// Maximum first pause between attempts of the writer whose turn it is, in milliseconds. Only other
/// processes, or writers of other records in the batch, can make its batch stale.
const MAX_FIRST_PAUSE_MS: u64 = 4;
/// Maximum length of any later pause, in milliseconds.
const MAX_PAUSE_MS: u64 = 100;

/// Collection and id of a record.
type RecordId = (&'static str, String);

/// The queues of writers, one per record.
#[derive(Debug, Default)]
pub(crate) struct WriterQueues {
    queues: Mutex<HashMap<RecordId, Arc<AsyncMutex<()>>>>,
    /// Number of queues, readable without the lock.
    count: AtomicUsize,
}

impl WriterQueues {
    /// Starts to change a record, for at most `timeout`.
    pub(crate) fn attempts<'a>(
        &'a self,
        collection: &'static Collection,
        id: &'a str,
        timeout: Duration,
    ) -> Attempts<'a> {
        let deadline = Instant::now() + timeout;
        Attempts {
            queues: self,
            collection: collection.name,
            id,
            entry: self.join_existing(collection.name, id),
            deadline,
            count: 0,
        }
    }

    /// Joins the queue for a record, if one exists.
    fn join_existing(&self, collection: &'static str, id: &str) -> Option<QueueEntry<'_>> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let record = (collection, id.to_owned());
        let queue = self.queues().get(&record)?.clone();
        Some(QueueEntry {
            queues: self,
            record,
            queue,
            turn: None,
        })
    }

    /// Joins the queue for a record, or starts one.
    fn join(&self, collection: &'static str, id: &str) -> QueueEntry<'_> {
        let record = (collection, id.to_owned());
        let mut queues = self.queues();
        let queue = queues.entry(record.clone()).or_default().clone();
        self.count.store(queues.len(), Ordering::Relaxed);
        drop(queues);
        QueueEntry {
            queues: self,
            record,
            queue,
            turn: None,
        }
    }

    fn queues(&self) -> MutexGuard<'_, HashMap<RecordId, Arc<AsyncMutex<()>>>> {
        self.queues.lock()
    }
}

/// The attempts of one writer to change a record.
pub(crate) struct Attempts<'a> {
    queues: &'a WriterQueues,
    collection: &'static str,
    id: &'a str,
    /// Entry in the queue. `None` before a batch was stale, if no queue existed at the start.
    entry: Option<QueueEntry<'a>>,
    deadline: Instant,
    count: u32,
}

impl Attempts<'_> {
    /// Waits for the writer's turn.
    pub(crate) async fn wait_turn(&mut self) -> Result<(), CommitError> {
        let Some(entry) = &mut self.entry else {
            return Ok(());
        };
        if entry.wait(self.deadline).await {
            Ok(())
        } else {
            Err(CommitError::Stale)
        }
    }

    /// Pauses before the next attempt after a batch was refused because another writer committed
    /// first. Returns any other refusal as the error, and also this one after the deadline.
    pub(crate) async fn prepare_retry(&mut self, refusal: CommitError) -> Result<(), CommitError> {
        let lost_race = matches!(
            refusal,
            CommitError::Stale | CommitError::Taken { field: "id", .. }
        );
        if !lost_race || Instant::now() >= self.deadline {
            return Err(refusal);
        }
        match self.entry {
            None => self.entry = Some(self.queues.join(self.collection, self.id)),
            Some(_) => {
                tokio::time::sleep(pause(self.count)).await;
                self.count = self.count.saturating_add(1);
            }
        }
        Ok(())
    }
}

/// An entry in the queue for a record. Dropping it leaves the queue.
struct QueueEntry<'a> {
    queues: &'a WriterQueues,
    record: RecordId,
    queue: Arc<AsyncMutex<()>>,
    turn: Option<OwnedMutexGuard<()>>,
}

impl QueueEntry<'_> {
    /// Waits until it is this writer's turn. Returns false if the deadline passes first.
    async fn wait(&mut self, deadline: Instant) -> bool {
        if self.turn.is_none() {
            self.turn = tokio::time::timeout_at(deadline, self.queue.clone().lock_owned())
                .await
                .ok();
        }
        self.turn.is_some()
    }
}

impl Drop for QueueEntry<'_> {
    fn drop(&mut self) {
        self.turn = None;
        let mut queues = self.queues.queues();
        // The two references are this one and the map's. All others were made under the lock.
        if Arc::strong_count(&self.queue) == 2 {
            queues.remove(&self.record);
            self.queues.count.store(queues.len(), Ordering::Relaxed);
        }
    }
}

/// Returns a random part of a pause that grows with the attempts, so that processes do not collide
/// again.
fn pause(attempts: u32) -> Duration {
    let longest = MAX_FIRST_PAUSE_MS
        .saturating_mul(1 << attempts.min(16))
        .min(MAX_PAUSE_MS);
    let mut random = [0; 2];
    // Without random bytes, the whole pause is used.
    let part = getrandom::fill(&mut random).map_or(u16::MAX, |()| u16::from_le_bytes(random));
    Duration::from_millis(longest).mul_f64(f64::from(part) / f64::from(u16::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn line_is_gone_with_its_last_writer() {
        let queues = WriterQueues::default();
        let deadline = Instant::now() + Duration::from_secs(60);
        assert!(queues.join_existing("things", "a").is_none());
        let mut first = queues.join("things", "a");
        assert!(first.wait(deadline).await);
        let mut second = queues.join_existing("things", "a").unwrap();
        assert!(
            queues.join_existing("things", "b").is_none(),
            "other records have queues of their own"
        );
        assert!(!second.wait(Instant::now()).await, "the first has its turn");
        drop(first);
        assert!(second.wait(deadline).await);
        drop(second);
        assert_eq!(
            (queues.queues().len(), queues.count.load(Ordering::Relaxed)),
            (0, 0)
        );
    }

    #[test]
    fn pauses_grow_up_to_a_bound() {
        assert!((0..100).all(|_| pause(0) <= Duration::from_millis(MAX_FIRST_PAUSE_MS)));
        assert!((0..100).all(|_| pause(u32::MAX) <= Duration::from_millis(MAX_PAUSE_MS)));
    }
}
