//! The commit thread, which serves all waiting callers.
//!
//! It takes all batches that have arrived since the last round, applies them in one step, makes
//! them durable with one sync, answers, and clears up. Batches that arrive meanwhile share the next
//! round, so each batch costs less the more of them there are. A failed sync is final and never
//! retried: the kernel may have discarded the data. Therefore nothing is acknowledged from then on.

use crate::CommitError;
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

/// Maximum number of batches in one round.
const MAX_ROUND_BATCHES: usize = 128;

/// The work of the thread on the batches of a round.
pub(super) trait Work: Send + 'static {
    /// A batch.
    type Batch: Send;
    /// Applies the valid batches and returns one result for each batch, in order. A failure is
    /// final.
    fn apply(&mut self, batches: Vec<Self::Batch>) -> Result<Vec<Result<(), CommitError>>, String>;
    /// Makes durable what has been applied. A failure is final.
    fn sync(&mut self) -> Result<(), String>;
    /// Clears up after the round, when every caller has been answered. A failure is final.
    fn tidy(&mut self) -> Result<(), String>;
}

/// Handle of the commit thread.
pub(super) struct Committer<B> {
    /// Queue of batches, or `None` after closing.
    queue: Mutex<Option<Sender<QueuedBatch<B>>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    failure: Arc<OnceLock<String>>,
}

struct QueuedBatch<B> {
    batch: B,
    reply: oneshot::Sender<Result<(), CommitError>>,
}

impl<B: Send + 'static> Committer<B> {
    /// Starts the thread.
    pub(super) fn start(work: impl Work<Batch = B>) -> std::io::Result<Committer<B>> {
        let (queue, queued) = mpsc::channel();
        let failure = Arc::new(OnceLock::new());
        let thread = std::thread::Builder::new()
            .name("store-commit".to_owned())
            .spawn({
                let failure = failure.clone();
                move || run(work, &queued, &failure)
            })?;
        Ok(Committer {
            queue: Mutex::new(Some(queue)),
            thread: Mutex::new(Some(thread)),
            failure,
        })
    }

    /// Applies a batch and waits until it is durable, or until its outcome can no longer be known.
    pub(super) async fn commit(&self, batch: B) -> Result<(), CommitError> {
        let (reply, replied) = oneshot::channel();
        let queued = match &*self.queue.lock() {
            Some(queue) => queue.send(QueuedBatch { batch, reply }).is_ok(),
            None => false,
        };
        if queued {
            replied.await.unwrap_or_else(|_| Err(closed()))
        } else {
            Err(closed())
        }
    }

    /// Returns the reason why nothing is acknowledged any more, if the thread has failed.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }
}

fn closed() -> CommitError {
    CommitError::Unavailable("the store was closed".to_owned())
}

impl<B> Committer<B> {
    /// Ends the thread after it has answered every batch in the queue.
    pub(super) fn stop(&self) {
        drop(self.queue.lock().take());
        if let Some(thread) = self.thread.lock().take() {
            // The thread's panics are caught. A caller that still waits is answered when the queue
            // is dropped.
            let _ = thread.join();
        }
    }
}

impl<B> Drop for Committer<B> {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run<W: Work>(mut work: W, queued: &Receiver<QueuedBatch<W::Batch>>, failure: &OnceLock<String>) {
    while let Ok(first) = queued.recv() {
        let (batches, replies): (Vec<_>, Vec<_>) = std::iter::once(first)
            .chain(queued.try_iter().take(MAX_ROUND_BATCHES - 1))
            .map(|queued| (queued.batch, queued.reply))
            .unzip();
        if let Some(reason) = failure.get() {
            refuse(replies, reason);
            continue;
        }
        if let Err((replies, reason)) = round(&mut work, batches, replies) {
            tracing::error!(
                reason,
                "writing failed: the store refuses all further writes until a restart"
            );
            refuse(replies, failure.get_or_init(|| reason));
        }
    }
}

type ReplySenders = Vec<oneshot::Sender<Result<(), CommitError>>>;

fn round<W: Work>(
    work: &mut W,
    batches: Vec<W::Batch>,
    replies: ReplySenders,
) -> Result<(), (ReplySenders, String)> {
    let applied = catch_unwind(AssertUnwindSafe(|| work.apply(batches)));
    let results = match applied.unwrap_or_else(|_| Err("committing has panicked".to_owned())) {
        Ok(results) => results,
        Err(reason) => return Err((replies, reason)),
    };
    let mut waiting = Vec::with_capacity(replies.len());
    for (reply, result) in replies.into_iter().zip(results) {
        match result {
            Ok(()) => waiting.push(reply),
            // The caller may no longer wait for the reply.
            Err(_) => drop(reply.send(result)),
        }
    }
    if !waiting.is_empty() {
        let synced = catch_unwind(AssertUnwindSafe(|| work.sync()));
        if let Err(reason) = synced.unwrap_or_else(|_| Err("syncing has panicked".to_owned())) {
            return Err((waiting, reason));
        }
    }
    waiting
        .into_iter()
        .for_each(|reply| drop(reply.send(Ok(()))));
    let tidied = catch_unwind(AssertUnwindSafe(|| work.tidy()));
    tidied
        .unwrap_or_else(|_| Err("tidying has panicked".to_owned()))
        .map_err(|reason| (Vec::new(), reason))
}

fn refuse(replies: ReplySenders, reason: &str) {
    for reply in replies {
        drop(reply.send(Err(CommitError::Unavailable(reason.to_owned()))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Counts synced batches, and fails or panics when `fails_at` is reached.
    #[derive(Clone, Default)]
    struct Fake {
        applied: Arc<AtomicUsize>,
        synced: Arc<AtomicUsize>,
        fails_at: Option<usize>,
        panics: bool,
    }

    impl Work for Fake {
        type Batch = Result<(), CommitError>;

        fn apply(
            &mut self,
            batches: Vec<Self::Batch>,
        ) -> Result<Vec<Result<(), CommitError>>, String> {
            self.applied.fetch_add(batches.len(), Ordering::SeqCst);
            Ok(batches)
        }

        fn sync(&mut self) -> Result<(), String> {
            let applied = self.applied.load(Ordering::SeqCst);
            if self.fails_at.is_some_and(|at| applied >= at) {
                assert!(!self.panics, "as asked");
                return Err("the disk is gone".to_owned());
            }
            self.synced.store(applied, Ordering::SeqCst);
            Ok(())
        }

        fn tidy(&mut self) -> Result<(), String> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_failed_or_panicking_sync_ends_all_acknowledging() {
        for panics in [false, true] {
            let fake = Fake {
                fails_at: Some(2),
                panics,
                ..Fake::default()
            };
            let committer = Committer::start(fake.clone()).unwrap();
            committer.commit(Ok(())).await.unwrap();
            for _ in 0..2 {
                let refused = committer.commit(Ok(())).await;
                assert!(matches!(refused, Err(CommitError::Unavailable(_))));
            }
            assert!(committer.failure().is_some());
            assert_eq!(
                fake.applied.load(Ordering::SeqCst),
                2,
                "nothing is applied after a failure"
            );
        }
    }

    #[tokio::test]
    async fn acknowledged_batches_are_synced_before_stop() {
        let fake = Fake::default();
        let committer = Arc::new(Committer::start(fake.clone()).unwrap());
        let mut queued = tokio::task::JoinSet::new();
        for _ in 0..300 {
            let committer = committer.clone();
            let fake = fake.clone();
            queued.spawn(async move {
                committer.commit(Ok(())).await.unwrap();
                assert!(fake.synced.load(Ordering::SeqCst) > 0);
            });
        }
        queued.join_all().await;
        committer.stop();
        assert_eq!(fake.synced.load(Ordering::SeqCst), 300);
        assert!(committer.commit(Ok(())).await.is_err());
    }
}
