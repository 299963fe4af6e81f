//! Claims: the right of one worker to a record, for a limited time.
//!
//! A claim is a lease in the record itself. The worker that commits the lease at the revision it has
//! read holds the claim, and every later commit under the claim is made at the revision that the
//! claim knows. A worker that was suspended for longer than its lease therefore changes nothing once
//! another worker has claimed the record. All times are those of the database where servers share
//! one, so the clocks of the servers do not matter.

use std::{pin::pin, time::Duration};

use futures::future::{Either, select};
use serde::{Deserialize, Serialize};
use store::{Batch, CommitError, Document, Record, Store, Time};
use tokio::{
    sync::{Mutex, MutexGuard, Notify},
    time::{Instant, sleep, timeout},
};

use crate::{
    App, Clock, Result,
    core::{clock::time_after, ids},
};

/// Time after which another worker may claim the record of a lost one. A worker that lives extends
/// its claim.
pub(crate) const LEASE_TTL: Duration = Duration::from_secs(10);

/// The result of a commit.
pub(super) type Committed<R = ()> = std::result::Result<R, CommitError>;

/// The state of a record with regard to background work. It is a part of the record's body.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct WorkState {
    /// Time from which a queue gives the record to a worker. `None` if the record waits for
    /// nothing.
    #[serde(default)]
    pub(crate) due: Option<Time>,
    /// True if the record was deferred because its key was at capacity; it may be claimed before its due
    /// time.
    #[serde(
        default,
        rename = "put_off",
        skip_serializing_if = "std::ops::Not::not"
    )]
    is_deferred: bool,
    #[serde(default)]
    lease: Option<Lease>,
    /// Number of failed and interrupted attempts since the last success.
    #[serde(default)]
    pub(super) attempts: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Lease {
    /// Id of the claim.
    by: String,
    /// Time until which no other worker may claim the record.
    until: Time,
}

impl WorkState {
    /// Returns the state of a record that a queue gives to a worker from `due` on.
    pub(crate) fn due_at(due: Time) -> Self {
        Self {
            due: Some(due),
            ..Self::default()
        }
    }

    /// Sets the time of the next work after a success.
    pub(crate) fn reschedule(&mut self, due: Time) {
        self.due = Some(due);
        self.is_deferred = false;
        self.attempts = 0;
    }

    /// Defers a due record to a later due time.
    pub(super) fn defer(&mut self, due: Time) {
        self.due = Some(due);
        self.is_deferred = true;
    }

    /// Returns true if the record may be claimed before it is due.
    pub(super) fn is_deferred(&self) -> bool {
        self.is_deferred
    }

    /// Returns true while a worker holds the record.
    pub(crate) fn is_claimed(&self, now: Time) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.until > now)
    }

    /// Returns true if the last worker has not ended its claim in time, so that it is unknown how
    /// far it came.
    pub(crate) fn is_lapsed(&self, now: Time) -> bool {
        self.lease.as_ref().is_some_and(|lease| lease.until <= now)
    }

    /// Sets the lease. Queues do not find the record before the lease expires.
    fn hold(&mut self, lease: Lease) {
        let deferred = self.is_deferred.then_some(lease.until);
        self.due = deferred.or(self.due.map(|due| due.max(lease.until)));
        self.is_deferred = false;
        self.lease = Some(lease);
    }
}

/// A document that can be claimed.
pub(crate) trait Claimable: Document + Clone {
    /// Returns the document's work state.
    fn work(&mut self) -> &mut WorkState;
    /// Changes the document when it is claimed. `lapsed` is true if the last claim has ended without
    /// an outcome.
    fn on_claim(&mut self, _lapsed: bool) {}
}

/// The store in which records are claimed, and its clock.
#[derive(Clone)]
pub(crate) struct Claims {
    pub(super) store: Store,
    clock: Clock,
}

impl App {
    /// Returns the claims on the records of this app.
    pub(crate) fn claims(&self) -> Claims {
        Claims::new(self.store.clone(), self.clock.clone())
    }
}

impl Claims {
    pub(crate) fn new(store: Store, clock: Clock) -> Self {
        Self { store, clock }
    }

    /// Returns the current time. All servers that share the store agree on it. Fails if the
    /// database, whose clock counts, does not answer.
    pub(crate) async fn now(&self) -> Result<Time> {
        Ok(self.store.now().await?.unwrap_or_else(|| self.clock.now()))
    }

    /// Claims a record as it was read, for `ttl`. Returns `None` if another worker holds a claim,
    /// or if the record was changed after it was read.
    pub(crate) async fn take<T: Claimable>(
        &self,
        mut record: Record<T>,
        ttl: Duration,
    ) -> Result<Option<Claim<T>>> {
        let begun = Instant::now();
        let now = self.now().await?;
        let work = record.body.work();
        if work.is_claimed(now) {
            return Ok(None);
        }
        let lapsed = work.is_lapsed(now);
        work.attempts = work.attempts.saturating_add(u32::from(lapsed));
        work.hold(Lease {
            by: ids::random_text(12),
            until: time_after(now, ttl),
        });
        record.body.on_claim(lapsed);
        match self.store.commit(Batch::at(now).update(&record)).await {
            Ok(()) => record.revision += 1,
            Err(CommitError::Stale) => return Ok(None),
            Err(cause) => return Err(cause.into()),
        }
        Ok(Some(Claim {
            claims: self.clone(),
            ttl,
            id: record.id.clone(),
            project: record.project.clone(),
            held: Mutex::new(HeldLease {
                record,
                extended: begun,
            }),
        }))
    }
}

pub(crate) struct Claim<T> {
    claims: Claims,
    ttl: Duration,
    id: String,
    project: String,
    held: Mutex<HeldLease<T>>,
}

struct HeldLease<T> {
    /// The record at the revision of the last commit under the claim.
    record: Record<T>,
    /// Start of the last commit that extended the claim.
    extended: Instant,
}

impl<T: Claimable> HeldLease<T> {
    /// Returns true until the claim ends. A lost claim is found out by its next commit.
    fn is_held(&mut self) -> bool {
        self.record.body.work().lease.is_some()
    }
}

/// The reason why a claim was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Lost {
    #[error("another worker has claimed the record")]
    Taken,
    #[error("the lease could not be extended")]
    Expired,
}

impl<T: Claimable> Claim<T> {
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Returns the id of the record's project.
    pub(crate) fn project(&self) -> &str {
        &self.project
    }

    /// Returns the record's body as of the last commit under the claim.
    pub(crate) async fn body(&self) -> T {
        self.held.lock().await.record.body.clone()
    }

    /// Returns the number of failed and interrupted attempts since the last success.
    pub(super) async fn attempts(&self) -> u32 {
        self.held.lock().await.record.body.work().attempts
    }

    /// Creates an empty batch at the current time.
    pub(crate) async fn batch(&self) -> Committed<Batch> {
        self.claims.now().await.map(Batch::at).map_err(unavailable)
    }

    /// Commits a batch under the claim and extends the claim with it. Fails as *stale* if the claim
    /// is lost or has ended, or if another record of the batch was changed.
    pub(crate) async fn commit(&self, batch: Batch) -> Committed {
        let mut held = self.lock_held().await?;
        self.extend(&mut held, batch).await
    }

    /// Commits a change of the record under the claim and extends the claim with it. Fails as
    /// [`Claim::commit`] does.
    pub(crate) async fn edit(&self, change: impl FnOnce(&mut T)) -> Committed {
        self.edit_with(self.batch().await?, change).await
    }

    /// Commits a change of the record in one batch with others, as [`Claim::edit`] does.
    pub(crate) async fn edit_with(&self, batch: Batch, change: impl FnOnce(&mut T)) -> Committed {
        let mut held = self.lock_held().await?;
        let before = held.record.clone();
        change(&mut held.record.body);
        let extended = self.extend(&mut held, batch).await;
        if extended.is_err() {
            held.record = before;
        }
        extended
    }

    /// Ends the claim: commits the record with a change, in one batch with others. Fails as *stale*
    /// if the claim is lost or has ended, or if another record of the batch was changed. After any
    /// other failure, the claim may be ended again.
    pub(crate) async fn end(&self, batch: Batch, change: impl FnOnce(&mut T)) -> Committed {
        let mut held = self.held.lock().await;
        let mut ended = held.record.clone();
        if ended.body.work().lease.take().is_none() {
            return Err(CommitError::Stale);
        }
        change(&mut ended.body);
        self.claims.store.commit(batch.update(&ended)).await?;
        ended.revision += 1;
        held.record = ended;
        Ok(())
    }

    /// Ends the claim by erasing the record, in one batch with others. Fails as [`Claim::end`] does.
    pub(crate) async fn erase(&self, batch: Batch) -> Committed {
        let mut held = self.lock_held().await?;
        self.claims.store.commit(batch.purge(&held.record)).await?;
        held.record.body.work().lease = None;
        Ok(())
    }

    /// Returns true if a commit under the claim succeeded, and false if another record of its batch
    /// was changed or exists already, so that it can be tried again. Fails as *stale* if the claim is
    /// lost or has ended.
    pub(crate) async fn succeeded(&self, committed: Committed) -> Committed<bool> {
        match committed {
            Ok(()) => Ok(true),
            Err(CommitError::Stale | CommitError::Taken { .. }) => {
                self.check().await.map(|()| false)
            }
            Err(cause) => Err(cause),
        }
    }

    /// Fails as *stale* if the claim is lost or has ended.
    pub(super) async fn check(&self) -> Committed {
        let batch = self.batch().await?;
        self.commit(batch).await
    }

    /// Adds to a batch, which its owner commits, the demand that the claim is still held and the
    /// record unchanged. Fails as *stale* if the claim is known to be lost or has ended.
    pub(crate) async fn guard(&self, batch: Batch) -> Committed<Batch> {
        Ok(batch.check(&self.lock_held().await?.record))
    }

    /// Locks the record. Fails as *stale* if the claim is known to be lost or has ended.
    async fn lock_held(&self) -> Committed<MutexGuard<'_, HeldLease<T>>> {
        let mut held = self.held.lock().await;
        match held.is_held() {
            true => Ok(held),
            false => Err(CommitError::Stale),
        }
    }

    pub(crate) fn store(&self) -> &Store {
        &self.claims.store
    }

    /// Runs `work` and extends the claim meanwhile. Drops the work when the claim is lost.
    pub(crate) async fn keep<R>(
        &self,
        work: impl Future<Output = R>,
    ) -> std::result::Result<R, Lost> {
        let finished = Notify::new();
        match select(pin!(work), pin!(self.keep_until(&finished))).await {
            Either::Left((done, keeping)) => {
                finished.notify_one();
                // An extension that has started is completed, because the claim would not know its
                // revision otherwise.
                keeping.await;
                Ok(done)
            }
            Either::Right((Some(lost), _)) => Err(lost),
            Either::Right((None, work)) => Ok(work.await),
        }
    }

    /// Runs `work` to its end and extends the claim meanwhile. If the claim is lost, the work continues,
    /// and its commits under the claim fail.
    pub(crate) async fn keep_to_end<R>(&self, work: impl Future<Output = R>) -> R {
        let mut work = pin!(work);
        let kept = self.keep(work.as_mut()).await;
        match kept {
            Ok(done) => done,
            Err(_) => work.await,
        }
    }

    /// Extends the claim until the work is finished or the claim has ended. Returns the reason if
    /// the claim is lost before.
    async fn keep_until(&self, finished: &Notify) -> Option<Lost> {
        loop {
            tokio::select! {
                () = sleep(self.ttl / 3) => {}
                () = finished.notified() => return None,
            }
            let mut held = self.held.lock().await;
            if !held.is_held() {
                return None;
            }
            let left = self.ttl.saturating_sub(held.extended.elapsed());
            let extending = async {
                let batch = self.batch().await?;
                self.extend(&mut held, batch).await
            };
            match timeout(left, extending).await {
                Ok(Ok(())) => {}
                Ok(Err(CommitError::Stale)) => return Some(Lost::Taken),
                // The lease may still be valid, so this is retried until it has certainly expired.
                Ok(Err(_)) if held.extended.elapsed() < self.ttl => {}
                Ok(Err(_)) | Err(_) => return Some(Lost::Expired),
            }
        }
    }

    async fn extend(&self, held: &mut HeldLease<T>, batch: Batch) -> Committed {
        let begun = Instant::now();
        let now = self.claims.now().await.map_err(unavailable)?;
        let mut record = held.record.clone();
        let work = record.body.work();
        if let Some(lease) = work.lease.take() {
            work.hold(Lease {
                until: time_after(now, self.ttl),
                ..lease
            });
        }
        self.claims.store.commit(batch.update(&record)).await?;
        record.revision += 1;
        *held = HeldLease {
            record,
            extended: begun,
        };
        Ok(())
    }
}

fn unavailable(cause: crate::Error) -> CommitError {
    CommitError::Unavailable(cause.to_string())
}

#[cfg(test)]
mod tests;
