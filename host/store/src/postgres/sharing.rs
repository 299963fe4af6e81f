//! Calls of this process that share a statement.
//!
//! A statement on one record costs much more for its way to the server and back than for the
//! record. Calls that start while [`MAX_STATEMENTS`] statements run wait, and share the next one.
//! On an idle server each call has its own statement. Nothing is executed for a caller that no
//! longer waits.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot};

/// Number of statements of one kind that run at a time on a collection.
const MAX_STATEMENTS: usize = 2;
/// Maximum number of calls that share a statement.
const MAX_CALLS: usize = 64;
/// Maximum bytes of the calls that share a statement. One call may have more.
const MAX_BYTES: usize = 1 << 20;

/// Calls of one kind on a collection.
pub(super) struct SharedCalls<Q, A> {
    waiting: Mutex<Vec<Waiting<Q, A>>>,
    turns: Semaphore,
}

struct Waiting<Q, A> {
    call: Arc<Q>,
    bytes: usize,
    answer: oneshot::Sender<A>,
}

impl<Q, A> Default for SharedCalls<Q, A> {
    fn default() -> Self {
        SharedCalls {
            waiting: Mutex::default(),
            turns: Semaphore::new(MAX_STATEMENTS),
        }
    }
}

impl<Q, A> SharedCalls<Q, A> {
    /// Makes a call of a size in bytes, perhaps together with others. `run` makes some calls and
    /// returns their answers in the same order. Returns `None` if the statement has failed or was
    /// cut off, so that the outcome of the call is unknown.
    pub(super) async fn make<F>(
        &self,
        call: Q,
        bytes: usize,
        run: impl Fn(Vec<Arc<Q>>) -> F,
    ) -> Option<A>
    where
        F: Future<Output = Option<Vec<A>>>,
    {
        let (sender, mut answer) = oneshot::channel();
        self.waiting.lock().push(Waiting {
            call: Arc::new(call),
            bytes,
            answer: sender,
        });
        let turn = tokio::select! {
            biased;
            answered = &mut answer => return answered.ok(),
            turn = self.turns.acquire() => turn,
        };
        loop {
            match answer.try_recv() {
                Ok(answered) => return Some(answered),
                Err(oneshot::error::TryRecvError::Closed) => return None,
                Err(oneshot::error::TryRecvError::Empty) => {}
            }
            let group = self.next_group();
            if group.is_empty() {
                // The call is part of another statement.
                drop(turn);
                return answer.await.ok();
            }
            let calls = group.iter().map(|waiting| waiting.call.clone());
            let answers = run(calls.collect()).await;
            for (waiting, answer) in group.into_iter().zip(answers.unwrap_or_default()) {
                // The caller may wait no longer.
                let _ = waiting.answer.send(answer);
            }
        }
    }

    /// Takes the first of the waiting calls, as many as share a statement.
    fn next_group(&self) -> Vec<Waiting<Q, A>> {
        let mut waiting = self.waiting.lock();
        waiting.retain(|waiting| !waiting.answer.is_closed());
        let mut bytes = 0;
        let fitting = waiting.iter().take(MAX_CALLS).take_while(|call| {
            bytes += call.bytes;
            bytes <= MAX_BYTES
        });
        let count = fitting.count().max(1).min(waiting.len());
        waiting.drain(..count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::join_all;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::Notify;

    #[tokio::test]
    async fn calls_share_the_next_statement() {
        let calls = SharedCalls::<usize, usize>::default();
        let sizes = Mutex::new(Vec::new());
        let first_end = Notify::new();
        let run = |group: Vec<Arc<usize>>| {
            let (sizes, first_end) = (&sizes, &first_end);
            async move {
                let is_first = {
                    let mut sizes = sizes.lock();
                    sizes.push(group.len());
                    sizes.len() <= MAX_STATEMENTS
                };
                if is_first {
                    first_end.notified().await;
                }
                Some(group.iter().map(|number| **number * 2).collect())
            }
        };
        let all = (0..100).map(|number| calls.make(number, 1, run));
        let ending = async {
            for _ in 0..MAX_STATEMENTS {
                first_end.notify_one();
                tokio::task::yield_now().await;
            }
        };
        let (answers, ()) = tokio::join!(join_all(all), ending);
        let expected: Vec<_> = (0..100).map(|number| Some(number * 2)).collect();
        assert_eq!(answers, expected);
        let sizes = sizes.into_inner();
        assert_eq!(sizes[..MAX_STATEMENTS], [1; MAX_STATEMENTS]);
        assert_eq!(sizes.iter().sum::<usize>(), 100);
        assert!(sizes.len() <= MAX_STATEMENTS + 3, "{sizes:?}");
    }

    #[tokio::test]
    async fn failed_or_cut_off_statement_has_no_answer() {
        let calls = SharedCalls::<usize, usize>::default();
        assert_eq!(calls.make(1, 1, |_| async { None }).await, None);
        let runs = AtomicUsize::new(0);
        let run = |group: Vec<Arc<usize>>| {
            let number = runs.fetch_add(1, Ordering::SeqCst);
            async move {
                if number < MAX_STATEMENTS {
                    std::future::pending::<()>().await;
                }
                Some(vec![0; group.len()])
            }
        };
        let mut cut_off: Vec<_> = (0..MAX_STATEMENTS)
            .map(|number| Box::pin(calls.make(number, 1, run)))
            .collect();
        for call in &mut cut_off {
            assert!(futures::poll!(call).is_pending());
        }
        let mut abandoned = Box::pin(calls.make(7, 1, run));
        assert!(futures::poll!(&mut abandoned).is_pending());
        drop(abandoned);
        drop(cut_off);
        assert_eq!(calls.make(8, 1, run).await, Some(0));
        assert_eq!(runs.load(Ordering::SeqCst), MAX_STATEMENTS + 1);
    }

    #[tokio::test]
    async fn statement_has_bounded_bytes() {
        let calls = SharedCalls::<usize, usize>::default();
        let sizes = Mutex::new(Vec::new());
        let run = |group: Vec<Arc<usize>>| {
            sizes.lock().push(group.len());
            async move {
                tokio::task::yield_now().await;
                Some(vec![0; group.len()])
            }
        };
        let all = (0..5).map(|number| calls.make(number, MAX_BYTES - 1, run));
        join_all(all).await;
        assert_eq!(*sizes.lock(), [1; 5]);
    }
}
