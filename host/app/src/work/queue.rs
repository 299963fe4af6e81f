//! Queues: records that workers take up when they are due.
//!
//! A queue is a collection with the declared field `due`. A record inserted with a due time is in
//! the queue without a further step. Each server has a number of workers. A worker claims a due
//! record and works on it under the [`Claim`], so that one worker at a time does the work, and its
//! result is stored only if the claim still holds. A record whose worker is lost is due again when
//! the lease ends. Work may therefore happen twice; its result is stored once.
//!
//! Workers look for due records when this server commits a record of the collection, and every
//! [`POLL_INTERVAL`], which covers other servers' commits and the passing of time. One worker looks
//! on behalf of all. It takes the earliest due records in random order, so that servers rarely
//! claim the same ones.
//!
//! Projects share the workers of a queue, so that some workers stay free for a project without any
//! ([`Shares`]). A queue may also limit the records in progress by key, for example for each
//! endpoint. No number of records that wait for a permit delays those of a project with free
//! capacity.

mod scheduler;

use std::{convert::Infallible, panic::AssertUnwindSafe, pin::Pin, sync::Arc, time::Duration};

use futures::{FutureExt as _, StreamExt as _, stream::FuturesUnordered};
use gate::Shares;
use scheduler::Scheduler;
use store::{CommitError, Query, Record, Time};
use tokio::time::sleep;

use super::{
    backoff::jittered,
    claim::{Claim, Claimable, Claims, Committed},
};
use crate::{
    Error, Result,
    core::{clock::time_after, errors},
};

/// Maximum time for which a record is deferred. The longer it is, the less often the records of an endpoint
/// that does not answer are written.
pub(crate) const MAX_DEFERRAL: Duration = Duration::from_secs(300);
/// Interval at which due records are looked for without a commit.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A queue with the work on its records. `C` is the context of the work, and `R` the permit of the
/// work on a record.
pub(crate) struct Queue<T, C, R = ()> {
    /// Name for the log.
    pub(crate) name: &'static str,
    /// Shares of projects in the workers of this server. Each worker works on one record at a time.
    pub(crate) shares: Shares,
    /// Time after which another worker may take the record of a lost one.
    pub(crate) lease_ttl: Duration,
    /// Returns the delay before the next attempt after a number of failed ones, without jitter.
    pub(crate) retry_delay: fn(attempts: u32) -> Duration,
    /// Decides which records are worked on at a time.
    pub(crate) admission: Admission<T, C, R>,
    /// Works on a claimed record. An error counts as [`Next::Retry`].
    pub(crate) work: for<'a> fn(&'a C, Arc<Claim<T>>, R) -> WorkFuture<'a>,
}

/// The admission of due records to the work on them.
pub(crate) struct Admission<T, C, R> {
    /// Returns the key of the permit for the work on a record, for example the id of an endpoint.
    pub(crate) key: fn(&Record<T>) -> String,
    /// Acquires the permit of a key, if it is free.
    pub(crate) acquire: fn(&C, &str, Time) -> Option<R>,
    /// Returns the due time to which a record is deferred whose key has no free permit. It is
    /// claimed earlier if a permit frees up. `None` if all records of a project have the same key:
    /// no other record could get a permit instead, so they need not be deferred.
    pub(crate) retry_at: Option<RetryAt<C>>,
}

/// Returns the due time to which a record with a key is deferred.
pub(crate) type RetryAt<C> = fn(&C, &str, Time) -> Time;

impl<T, C> Admission<T, C, ()> {
    /// Admits every record that the share of its project allows.
    pub(crate) fn by_project() -> Self {
        Self {
            key: |record| record.project.clone(),
            acquire: |_, _, _| Some(()),
            retry_at: None,
        }
    }
}

pub(crate) type WorkFuture<'a> = Pin<Box<dyn Future<Output = Result<Next>> + Send + 'a>>;

/// The continuation after an attempt.
#[derive(Debug)]
pub(crate) enum Next {
    /// The work has ended the claim itself, in one batch with its results.
    Ended,
    /// The record is due at a time. The attempt counts neither as a success nor as a failure.
    At(Time),
    /// The attempt failed.
    Retry { reason: String },
    /// No attempt can succeed.
    GiveUp { reason: String },
}

impl<T: Claimable, C: Sync, R: Send> Queue<T, C, R> {
    /// Works on due records for as long as the future is polled.
    pub(crate) async fn run(&self, claims: &Claims, context: &C) {
        let scheduler = Scheduler::new(claims, context, &self.admission, self.shares);
        let workers = (0..self.shares.total).map(|_| self.run_worker(&scheduler, context));
        // Polls only the workers that were woken.
        let mut workers: FuturesUnordered<_> = workers.collect();
        while workers.next().await.is_some() {}
    }

    async fn run_worker(&self, scheduler: &Scheduler<'_, T, C, R>, context: &C) -> Infallible {
        loop {
            let worked = async {
                match scheduler.claim_next(self.lease_ttl).await? {
                    Some((claim, (_worker, permit))) => {
                        self.attempt(Arc::new(claim), permit, context).await
                    }
                    None => Ok(()),
                }
            };
            let worked = worked.await;
            scheduler.ended.notify_one();
            if let Err(cause) = worked {
                tracing::warn!(%cause, queue = self.name, "work on a record could not begin or end; it is retried later");
                sleep(jittered(POLL_INTERVAL)).await;
            }
        }
    }

    /// Works on a claimed record once.
    async fn attempt(&self, claim: Arc<Claim<T>>, permit: R, context: &C) -> Result<()> {
        let work = AssertUnwindSafe((self.work)(context, claim.clone(), permit)).catch_unwind();
        let next = match claim.keep(work).await {
            Ok(Ok(Ok(next))) => next,
            Ok(Ok(Err(cause))) => Next::retry(&cause),
            Ok(Err(_)) => Next::retry(&errors::internal("the work has panicked")),
            Err(lost) => {
                let (id, queue) = (claim.id(), self.name);
                tracing::warn!(id, queue, "{lost}; this server stops working on it");
                return Ok(());
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
        let (reason, is_retried) = match next {
            Next::Ended => return Ok(()),
            Next::At(due) => {
                let batch = claim.batch().await?;
                return claim.end(batch, |body| body.work().due = Some(due)).await;
            }
            Next::Retry { reason } => (reason, true),
            Next::GiveUp { reason } => (reason, false),
        };
        let batch = claim.batch().await?;
        let attempts = claim.attempts().await.saturating_add(1);
        let delay = jittered((self.retry_delay)(attempts));
        let due = is_retried.then(|| time_after(batch.now, delay));
        match due {
            Some(_) => tracing::warn!(
                id,
                reason,
                queue = self.name,
                "an attempt failed; it is retried"
            ),
            None => tracing::error!(id, reason, queue = self.name, "a record was given up"),
        }
        let ended = claim.end(batch, |body: &mut T| {
            body.work().due = due;
            body.work().attempts = attempts;
        });
        ended.await
    }
}

impl Next {
    fn retry(cause: &Error) -> Self {
        Self::Retry {
            reason: cause.to_string(),
        }
    }
}

/// The records of a queue that are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueDepth {
    /// Name of the queue.
    pub queue: &'static str,
    /// Number of records that are due and that no worker holds.
    pub due: u64,
    /// Time for which the earliest of them has been due.
    pub age: Duration,
}

impl<T: Claimable, C, R> Queue<T, C, R> {
    pub(crate) async fn depth(&self, claims: &Claims) -> Result<QueueDepth> {
        depth::<T>(self.name, claims).await
    }
}

pub(crate) async fn depth<T: Claimable>(
    queue: &'static str,
    claims: &Claims,
) -> Result<QueueDepth> {
    let now = claims.now().await?;
    let query = Query::all_projects()
        .below("due", now.0.saturating_add(1))
        .order_by("due")
        .page(0, 1);
    let found = claims.store.find::<T>(&query).await?;
    let earliest = found.records.into_iter().next();
    let due = earliest.and_then(|mut record| record.body.work().due);
    let age_ms = due.map_or(0, |due| now.0.saturating_sub(due.0));
    Ok(QueueDepth {
        queue,
        due: found.total,
        age: Duration::from_millis(age_ms.unsigned_abs()),
    })
}

#[cfg(test)]
mod tests;
