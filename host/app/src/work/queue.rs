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
//!
//! A queue may admit only some records at a time, for example few of each endpoint. The others wait
//! in memory, where they cost nothing. If more records are due than were read, those that wait are
//! put off together, so that those behind them are read.

use std::{
    collections::HashSet, convert::Infallible, panic::AssertUnwindSafe, pin::Pin, sync::Arc,
    time::Duration,
};

use futures::{FutureExt as _, future::join_all};
use parking_lot::{Mutex, MutexGuard};
use store::{Batch, CommitError, CommitSignal, Query, Record, Time};
use tokio::{
    sync::{Mutex as AsyncMutex, Notify},
    time::{Instant, sleep, sleep_until},
};

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
/// Interval at which due records are looked for while records that were put off come due.
const TURN_INTERVAL: Duration = Duration::from_millis(50);
/// Minimum time between two reads of due records if the first has returned all of them.
const MIN_READ_INTERVAL: Duration = Duration::from_millis(5);
/// Minimum time between two reads of due records while records wait in memory.
const MIN_WAITING_READ_INTERVAL: Duration = Duration::from_millis(50);
/// Minimum number of records that are read at a time.
const MIN_PAGE_RECORDS: usize = 16;

/// A queue with the work on its records. `C` is the context of the work, and `R` the room that the
/// work on a record takes.
pub(crate) struct Queue<T, C, R = ()> {
    /// Name for the log.
    pub(crate) name: &'static str,
    /// Maximum number of records that this server works on at a time.
    pub(crate) concurrency: usize,
    /// Time after which another worker may take the record of a lost one.
    pub(crate) lease_ttl: Duration,
    /// Returns the delay before the next attempt after a number of failed ones, without jitter.
    /// None gives the record up.
    pub(crate) retry_delay: fn(attempts: u32) -> Option<Duration>,
    /// Decides which records are worked on at a time.
    pub(crate) admission: Admission<T, C, R>,
    /// Works on a claimed record. An error counts as [`Next::Retry`].
    pub(crate) work: for<'a> fn(&'a C, Arc<Claim<T>>, R) -> WorkFuture<'a>,
}

/// The admission of due records to the work on them.
pub(crate) struct Admission<T, C, R> {
    /// Takes room for the work on a record, if there is some.
    pub(crate) enter: fn(&C, &Record<T>, Time) -> Option<R>,
    /// Returns the time until which a record is put off that found no room.
    pub(crate) turn: fn(&C, &Record<T>, Time) -> Time,
}

impl<T, C> Admission<T, C, ()> {
    /// Admits every record.
    pub(crate) fn always() -> Self {
        Self {
            enter: |_, _, _| Some(()),
            turn: |_, _, now| now,
        }
    }
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

impl<T: Claimable, C: Sync, R: Send> Queue<T, C, R> {
    /// Works on due records for as long as the future is polled.
    pub(crate) async fn run(&self, claims: &Claims, context: &C) {
        let due = Due {
            claims,
            context,
            admission: &self.admission,
            signal: claims.store.commit_signal(T::COLLECTION),
            page_records: self.concurrency.saturating_mul(2).max(MIN_PAGE_RECORDS),
            waiting: AsyncMutex::default(),
            taking: Mutex::default(),
            ended: Notify::new(),
        };
        let workers = (0..self.concurrency).map(|_| self.run_worker(&due, context));
        join_all(workers).await;
    }

    async fn run_worker(&self, due: &Due<'_, T, C, R>, context: &C) -> Infallible {
        loop {
            let worked = async {
                match due.claim_next(self.lease_ttl).await? {
                    Some((claim, room)) => self.attempt(Arc::new(claim), room, context).await,
                    None => Ok(()),
                }
            };
            let worked = worked.await;
            due.ended.notify_one();
            if let Err(cause) = worked {
                tracing::warn!(%cause, queue = self.name, "work on a record could not begin or end; it is retried later");
                sleep(jittered(POLL_INTERVAL)).await;
            }
        }
    }

    /// Works on a claimed record once.
    async fn attempt(&self, claim: Arc<Claim<T>>, room: R, context: &C) -> Result<()> {
        let id = claim.id();
        let attempts = claim.attempts().await;
        let next = if attempts > 0 && (self.retry_delay)(attempts).is_none() {
            let reason = "its workers were lost".to_owned();
            Next::GiveUp { reason }
        } else {
            let work = AssertUnwindSafe((self.work)(context, claim.clone(), room)).catch_unwind();
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
        let (reason, not_before) = match next {
            Next::Ended => return Ok(()),
            Next::At(due) => {
                let batch = claim.batch().await?;
                return claim.end(batch, |body| body.work().due = Some(due)).await;
            }
            Next::Retry { reason, not_before } => (reason, Some(not_before.unwrap_or_default())),
            Next::GiveUp { reason } => (reason, None),
        };
        let batch = claim.batch().await?;
        let now = batch.now;
        let attempts = claim.attempts().await.saturating_add(1);
        let due = not_before.and_then(|not_before| {
            let delay = jittered((self.retry_delay)(attempts)?);
            Some(time_after(now, delay).max(not_before))
        });
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
    /// Returns the depth of this queue.
    pub(crate) async fn depth(&self, claims: &Claims) -> Result<QueueDepth> {
        depth::<T>(self.name, claims).await
    }
}

/// Returns the depth of the queue of a collection.
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

/// The due records that the workers of one server take up.
struct Due<'a, T, C, R> {
    claims: &'a Claims,
    context: &'a C,
    admission: &'a Admission<T, C, R>,
    signal: CommitSignal,
    page_records: usize,
    waiting: AsyncMutex<Waiting<T>>,
    /// Ids of the records that a worker of this server is about to claim.
    taking: Mutex<HashSet<String>>,
    /// Given when a worker has ended its work, which may have made room for another record.
    ended: Notify,
}

/// Records that were read and are not taken up yet.
struct Waiting<T> {
    records: Vec<Record<T>>,
    /// Time at which they were read. None before the first read.
    read_at: Option<Instant>,
    /// True if more records may have been due.
    more: bool,
    /// Time until which records that were put off come due.
    turns_until: Time,
}

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Self {
            records: Vec::new(),
            read_at: None,
            more: true,
            turns_until: Time(0),
        }
    }
}

impl<T: Claimable, C, R> Due<'_, T, C, R> {
    /// Waits for a due record for which there is room, and claims it. Returns none if another server
    /// was faster.
    async fn claim_next(&self, ttl: Duration) -> Result<Option<(Claim<T>, R)>> {
        let (record, room) = self.next().await?;
        let id = record.id.clone();
        let taken = self.claims.take(record, ttl).await;
        self.taking().remove(&id);
        Ok(taken?.map(|claim| (claim, room)))
    }

    /// Returns a due record that no worker held when it was read, and its room. Waits for one if
    /// necessary.
    async fn next(&self) -> Result<(Record<T>, R)> {
        let mut waiting = self.waiting.lock().await;
        loop {
            let now = self.claims.now().await?;
            if let Some((record, room)) = self.admit(&mut waiting.records, now) {
                self.taking().insert(record.id.clone());
                return Ok((record, room));
            }
            if waiting.more {
                self.put_off(&mut waiting, now).await?;
            } else if !self.is_read_again(&waiting, now).await {
                continue;
            }
            self.read_page(&mut waiting).await?;
        }
    }

    /// Takes the first of the records for which there is room.
    fn admit(&self, records: &mut Vec<Record<T>>, now: Time) -> Option<(Record<T>, R)> {
        let mut admitted = records.iter().enumerate().filter_map(|(place, record)| {
            let room = (self.admission.enter)(self.context, record, now)?;
            Some((place, room))
        });
        let (place, room) = admitted.next()?;
        Some((records.swap_remove(place), room))
    }

    /// Waits until there may be more due records, or room for those that were read. Returns true if
    /// the due records are to be read.
    async fn is_read_again(&self, waiting: &Waiting<T>, now: Time) -> bool {
        let has_waiting = !waiting.records.is_empty();
        let read_interval = match has_waiting {
            true => MIN_WAITING_READ_INTERVAL,
            false => MIN_READ_INTERVAL,
        };
        let read_at = waiting.read_at.unwrap_or_else(Instant::now);
        let poll_interval = match waiting.turns_until > now {
            true => TURN_INTERVAL,
            false => jittered(POLL_INTERVAL),
        };
        let committed = async {
            sleep_until(read_at + read_interval).await;
            self.signal.committed().await;
        };
        tokio::select! {
            () = self.ended.notified(), if has_waiting => false,
            () = committed => true,
            () = sleep_until(read_at + poll_interval) => true,
        }
    }

    /// Puts the records off that wait for room, in one commit.
    async fn put_off(&self, waiting: &mut Waiting<T>, now: Time) -> Result<()> {
        let mut batch = Batch::at(now);
        for mut record in waiting.records.drain(..) {
            let turn = (self.admission.turn)(self.context, &record, now);
            record.body.work().due = Some(turn);
            waiting.turns_until = waiting.turns_until.max(turn);
            batch = batch.update(&record);
        }
        match self.claims.store.commit(batch).await {
            // Another worker has changed one of the records. All of them are read again.
            Ok(()) | Err(CommitError::Stale) => Ok(()),
            Err(cause) => Err(cause.into()),
        }
    }

    /// Reads a page of due records, in random order.
    async fn read_page(&self, waiting: &mut Waiting<T>) -> Result<()> {
        waiting.read_at = Some(Instant::now());
        let now = self.claims.now().await?;
        let query = Query::all_projects()
            .below("due", now.0.saturating_add(1))
            .order_by("due")
            .page(0, self.page_records as u64)
            .uncounted();
        let mut records = self.claims.store.find::<T>(&query).await?.records;
        waiting.more = records.len() >= self.page_records;
        let taking = self.taking();
        records.retain_mut(|record| {
            !record.body.work().is_claimed(now) && !taking.contains(&record.id)
        });
        drop(taking);
        records.sort_by_cached_key(|_| ids::random::<4>());
        waiting.records = records;
        Ok(())
    }

    fn taking(&self) -> MutexGuard<'_, HashSet<String>> {
        self.taking.lock()
    }
}

#[cfg(test)]
mod tests;
