//! Queues: records that workers take up when they are due.
//!
//! A queue is a collection with the declared field `due`. Whoever inserts a record with a due time
//! has put it into the queue; nothing else is to be done. Each server has a number of workers. A
//! worker claims a record that is due and works on it under the [`Claim`], so that one worker at a
//! time does the work, and its result is stored only if the claim still holds. A record whose
//! worker is lost is due again when the lease ends. Work may therefore happen twice; its result is
//! stored once.
//!
//! Workers look for due records when this server commits a record of the collection, and every
//! [`POLL_INTERVAL`], which covers other servers' commits and the passing of time. One worker looks
//! on behalf of all. It takes the earliest due records in random order, so that servers seldom claim
//! the same ones.

use std::{
    collections::HashSet, convert::Infallible, panic::AssertUnwindSafe, pin::Pin, sync::Arc,
    time::Duration,
};

use futures::{FutureExt as _, future::join_all};
use parking_lot::{Mutex, MutexGuard};
use store::{CommitError, CommitSignal, Query, Record, Time};
use tokio::{sync::Mutex as AsyncMutex, time::sleep};

use super::{
    backoff::jittered,
    claim::{Claim, Claimable, Claims, Committed},
};
use crate::{
    Error, Result,
    core::{clock::time_after, errors, ids},
};

/// Interval at which due records are looked for without a commit.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Minimum number of records that are read at a time.
const MIN_PAGE_RECORDS: usize = 16;

/// A queue with the work on its records. `C` is the context of the work.
pub(crate) struct Queue<T, C> {
    /// Name for the log.
    pub(crate) name: &'static str,
    /// Maximum number of records that this server works on at a time.
    pub(crate) concurrency: usize,
    /// Time after which another worker may take the record of a lost one.
    pub(crate) lease_ttl: Duration,
    /// Returns the delay before the next attempt after a number of failed ones, without jitter.
    /// None gives the record up.
    pub(crate) retry_delay: fn(attempts: u32) -> Option<Duration>,
    /// Works on a claimed record. An error counts as [`Next::Retry`].
    pub(crate) work: for<'a> fn(&'a C, Arc<Claim<T>>) -> WorkFuture<'a>,
}

/// Work in progress.
pub(crate) type WorkFuture<'a> = Pin<Box<dyn Future<Output = Result<Next>> + Send + 'a>>;

/// The continuation after an attempt.
#[derive(Debug)]
pub(crate) enum Next {
    /// The work has ended the claim itself, in one batch with its results.
    Ended,
    /// The record is due at a time. The attempt counts neither as a success nor as a failure.
    At(Time),
    /// The attempt failed.
    Retry {
        reason: String,
        /// Time before which the provider asks not to be tried again.
        not_before: Option<Time>,
    },
    /// No attempt can succeed.
    GiveUp { reason: String },
}

impl<T: Claimable, C: Sync> Queue<T, C> {
    /// Works on due records for as long as the future is polled.
    pub(crate) async fn run(&self, claims: &Claims, context: &C) {
        let due = Due {
            claims,
            signal: claims.store.commit_signal(T::COLLECTION),
            page_records: self.concurrency.saturating_mul(2).max(MIN_PAGE_RECORDS),
            read: AsyncMutex::default(),
            taking: Mutex::default(),
        };
        let workers = (0..self.concurrency).map(|_| self.run_worker(&due, context));
        join_all(workers).await;
    }

    async fn run_worker(&self, due: &Due<'_, T>, context: &C) -> Infallible {
        loop {
            let worked = async {
                match due.claim_next(self.lease_ttl).await? {
                    Some(claim) => self.attempt(Arc::new(claim), context).await,
                    None => Ok(()),
                }
            };
            if let Err(cause) = worked.await {
                tracing::warn!(%cause, queue = self.name, "work on a record could not begin or end; it is retried later");
                sleep(jittered(POLL_INTERVAL)).await;
            }
        }
    }

    /// Works on a claimed record once.
    async fn attempt(&self, claim: Arc<Claim<T>>, context: &C) -> Result<()> {
        let id = claim.id();
        let attempts = claim.body().await.work().attempts;
        let next = if attempts > 0 && (self.retry_delay)(attempts).is_none() {
            let reason = "its workers were lost".to_owned();
            Next::GiveUp { reason }
        } else {
            let work = AssertUnwindSafe((self.work)(context, claim.clone())).catch_unwind();
            match claim.keep(work).await {
                Ok(Ok(Ok(next))) => next,
                Ok(Ok(Err(cause))) => Next::retry(&cause),
                Ok(Err(_)) => Next::retry(&errors::internal("the work has panicked")),
                Err(lost) => {
                    tracing::warn!(
                        id,
                        queue = self.name,
                        "{lost}; this server stops working on it"
                    );
                    return Ok(());
                }
            }
        };
        match self.settle(&claim, next).await {
            // The work has committed its results, or the claim is lost.
            Err(CommitError::Stale) => Ok(()),
            settled => Ok(settled?),
        }
    }

    /// Ends the claim as the work demands.
    async fn settle(&self, claim: &Claim<T>, next: Next) -> Committed {
        let id = claim.id();
        let batch = claim.batch().await?;
        let now = batch.now;
        let attempts = claim.body().await.work().attempts.saturating_add(1);
        let (due, reason) = match next {
            Next::Ended => return Ok(()),
            Next::At(due) => return claim.end(batch, |body| body.work().due = Some(due)).await,
            Next::Retry { reason, not_before } => {
                let delay = (self.retry_delay)(attempts).map(jittered);
                let due = delay.map(|delay| time_after(now, delay).max(not_before.unwrap_or(now)));
                (due, reason)
            }
            Next::GiveUp { reason } => (None, reason),
        };
        match due {
            Some(_) => tracing::warn!(
                id,
                reason,
                queue = self.name,
                "an attempt failed; it is retried"
            ),
            None => tracing::error!(id, reason, queue = self.name, "a record was given up"),
        }
        let change = |body: &mut T| {
            body.work().due = due;
            body.work().attempts = attempts;
            if due.is_none() {
                body.on_give_up(&reason, now);
            }
        };
        claim.end(batch, change).await
    }
}

impl Next {
    fn retry(cause: &Error) -> Self {
        Self::Retry {
            reason: cause.to_string(),
            not_before: None,
        }
    }
}

/// The due records that the workers of one server take up.
struct Due<'a, T> {
    claims: &'a Claims,
    signal: CommitSignal,
    page_records: usize,
    /// Records that were read and are not taken up yet.
    read: AsyncMutex<Vec<Record<T>>>,
    /// Ids of the records that a worker of this server is about to claim.
    taking: Mutex<HashSet<String>>,
}

impl<T: Claimable> Due<'_, T> {
    /// Waits for a due record and claims it. Returns none if another server was faster.
    async fn claim_next(&self, ttl: Duration) -> Result<Option<Claim<T>>> {
        let record = self.next().await?;
        let id = record.id.clone();
        let taken = self.claims.take(record, ttl).await;
        self.taking().remove(&id);
        taken
    }

    /// Returns a due record that no worker held when it was read. Waits for one if necessary.
    async fn next(&self) -> Result<Record<T>> {
        let mut read = self.read.lock().await;
        loop {
            if let Some(record) = read.pop() {
                self.taking().insert(record.id.clone());
                return Ok(record);
            }
            *read = self.read_page().await?;
            if read.is_empty() {
                tokio::select! {
                    () = self.signal.committed() => {}
                    () = sleep(jittered(POLL_INTERVAL)) => {}
                }
            }
        }
    }

    /// Reads a page of due records, in random order.
    async fn read_page(&self) -> Result<Vec<Record<T>>> {
        let now = self.claims.now().await?;
        let query = Query::all_projects()
            .below("due", now.0.saturating_add(1))
            .order_by("due")
            .page(0, self.page_records as u64);
        let mut records = self.claims.store.find::<T>(&query).await?.records;
        let taking = self.taking();
        records.retain_mut(|record| {
            !record.body.work().is_claimed(now) && !taking.contains(&record.id)
        });
        records.sort_by_cached_key(|_| ids::random::<4>());
        Ok(records)
    }

    fn taking(&self) -> MutexGuard<'_, HashSet<String>> {
        self.taking.lock()
    }
}

#[cfg(test)]
mod tests;
