//! Recurring jobs, each run by one server at a time.
//!
//! Any number of servers share a store. Each job has a lease. The server that holds the lease runs
//! the job, renews the lease every [`RENEW_INTERVAL`], and releases it with the time of the run. If
//! a server dies, another one takes over after at most [`LEASE_TTL`]. All times are those of the
//! database, so the clocks of the servers do not matter. A server that was suspended and wakes up
//! after its lease has expired cannot write: every change of a job goes through [`Lease::fence`],
//! which makes the batch depend on a record that the next holder has changed. A run may be
//! interrupted at any point and started again on another server. A job must therefore continue from
//! the stored state and do nothing twice.
//!
//! To add a job, add a line to the list in `lifecycle/jobs.rs`: its name, its interval, and a
//! function that does one run. The function commits `lease.fence(batch)` instead of `batch`, and keeps no state in memory.

use std::{convert::Infallible, pin::Pin, sync::OnceLock, time::Duration};

use futures::future::join_all;
use serde::{Deserialize, Serialize};
use store::{Batch, Collection, CommitError, Document, Record, Store, Time};
use tokio::time::Instant;

use crate::{
    App, Clock, Result,
    core::{INSTALLATION, clock::time_after, ids},
};

/// Time for which a lease is valid if it is not renewed.
const LEASE_TTL: Duration = Duration::from_secs(6);
/// Interval at which a lease is renewed.
const RENEW_INTERVAL: Duration = Duration::from_secs(2);
/// Interval at which a server checks whether a job is due.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The collection of leases, by the name of the job.
pub(crate) static LEASES: Collection = Collection {
    name: "leases",
    fields: &[],
};
/// The collection of fences, by the name of the job. Batches of a job depend on its fence, which
/// changes whenever the lease changes hands.
pub(crate) static FENCES: Collection = Collection {
    name: "fences",
    fields: &[],
};

/// A recurring job.
pub(crate) struct Job {
    /// The name of its lease. A name is never given to another job.
    pub(crate) name: &'static str,
    /// Time from the end of a run to the next run. A server that starts does not wait for it.
    pub(crate) interval: Duration,
    /// The function that does one run.
    pub(crate) run: for<'a> fn(&'a App, &'a Lease) -> RunFuture<'a>,
}

/// A run in progress.
pub(crate) type RunFuture<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct JobLease {
    /// The server that holds the lease.
    #[serde(rename = "by")]
    holder: String,
    /// The time until which no other server may take the lease.
    until: Time,
    /// The end of the last run.
    #[serde(rename = "ran")]
    last_run_at: Time,
}

impl Document for JobLease {
    const COLLECTION: &'static Collection = &LEASES;
}

#[derive(Debug, Serialize, Deserialize)]
struct Fence {
    /// The server that changed the fence last.
    by: String,
}

impl Document for Fence {
    const COLLECTION: &'static Collection = &FENCES;
}

/// The right to run a job now.
pub(crate) struct Lease {
    fence: Record<Fence>,
}

impl Lease {
    /// Makes a batch fail as stale once another server has taken the lease.
    pub(crate) fn fence(&self, batch: Batch) -> Batch {
        batch.check(&self.fence)
    }
}

/// A server as a candidate for leases.
struct Node<'a> {
    store: &'a Store,
    clock: &'a Clock,
    name: String,
    /// The start of the server in database time, set when the clock is first read.
    started: OnceLock<Time>,
}

/// Runs due jobs for as long as the future is polled. Each job has its own loop, so that a job that
/// waits for a provider does not delay the others.
pub(crate) async fn run_jobs(app: &App, jobs: &[Job]) {
    let node = Node {
        store: &app.store,
        clock: &app.clock,
        name: ids::random_text(12),
        started: OnceLock::new(),
    };
    join_all(jobs.iter().map(|job| node.run_loop(app, job))).await;
}

impl Node<'_> {
    /// Runs a job whenever it is due.
    async fn run_loop(&self, app: &App, job: &Job) -> Infallible {
        loop {
            if let Err(cause) = self.tick(app, job).await {
                tracing::warn!(%cause, job = job.name, "a job failed; it is retried");
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Runs a job if it is due and no other server runs it.
    async fn tick(&self, app: &App, job: &Job) -> Result<()> {
        let Some(lease) = self.claim(job).await? else {
            return Ok(());
        };
        let done = tokio::select! {
            done = (job.run)(app, &lease) => done,
            lost = self.renew_until_lost(job.name) => {
                tracing::warn!(job = job.name, "{lost}; another server may continue the job");
                return Ok(());
            }
        };
        // The lease of a failed run is not released. The job is tried again when the lease expires.
        done?;
        self.release(job, &lease).await
    }

    async fn now(&self) -> Result<Time> {
        Ok(self.store.now().await?.unwrap_or_else(|| self.clock.now()))
    }

    /// Takes the lease of a due job, unless another server holds it.
    async fn claim(&self, job: &Job) -> Result<Option<Lease>> {
        let (name, now) = (job.name, self.now().await?);
        let started = *self.started.get_or_init(|| now);
        let is_due = |ran: Time| ran < started || time_after(ran, job.interval) <= now;
        let new = JobLease {
            holder: self.name.clone(),
            until: time_after(now, LEASE_TTL),
            last_run_at: Time(0),
        };
        let fence = Fence {
            by: self.name.clone(),
        };
        let batch = match self.lease(name).await? {
            Some(lease) if lease.body.until > now || !is_due(lease.body.last_run_at) => {
                return Ok(None);
            }
            Some(lease) => {
                let body = JobLease {
                    last_run_at: lease.body.last_run_at,
                    ..new
                };
                let Some(old) = self.store.get::<Fence>(INSTALLATION, name).await? else {
                    return Ok(None);
                };
                Batch::at(now)
                    .update(&Record { body, ..lease })
                    .update(&Record { body: fence, ..old })
            }
            None => {
                Batch::at(now)
                    .insert(INSTALLATION, name, &new)
                    .insert(INSTALLATION, name, &fence)
            }
        };
        match self.store.commit(batch).await {
            Ok(()) => {}
            // Another server took the lease first.
            Err(CommitError::Stale | CommitError::Taken { .. }) => return Ok(None),
            Err(cause) => return Err(cause.into()),
        }
        let fence = self.store.get::<Fence>(INSTALLATION, name).await?;
        Ok(fence
            .filter(|fence| fence.body.by == self.name)
            .map(|fence| Lease { fence }))
    }

    /// Renews the lease until it is lost, and returns the reason.
    async fn renew_until_lost(&self, name: &str) -> &'static str {
        let mut renewed = Instant::now();
        loop {
            tokio::time::sleep(RENEW_INTERVAL).await;
            let begun = Instant::now();
            match tokio::time::timeout(
                LEASE_TTL.saturating_sub(renewed.elapsed()),
                self.renew(name),
            )
            .await
            {
                Ok(Ok(true)) => renewed = begun,
                Ok(Ok(false)) => return "another server took the lease of the job",
                // The lease may still be valid, so the renewal is retried until it has certainly
                // expired.
                Ok(Err(_)) if renewed.elapsed() < LEASE_TTL => {}
                Ok(Err(_)) | Err(_) => return "the lease of the job could not be renewed",
            }
        }
    }

    async fn renew(&self, name: &str) -> Result<bool> {
        let now = self.now().await?;
        let Some(mut lease) = self
            .lease(name)
            .await?
            .filter(|lease| lease.body.holder == self.name)
        else {
            return Ok(false);
        };
        lease.body.until = time_after(now, LEASE_TTL);
        match self.store.commit(Batch::at(now).update(&lease)).await {
            Ok(()) => Ok(true),
            Err(CommitError::Stale) => Ok(false),
            Err(cause) => Err(cause.into()),
        }
    }

    /// Records the end of the run and releases the lease.
    async fn release(&self, job: &Job, lease: &Lease) -> Result<()> {
        let now = self.now().await?;
        let Some(mut record) = self
            .lease(job.name)
            .await?
            .filter(|lease| lease.body.holder == self.name)
        else {
            return Ok(());
        };
        record.body.until = now;
        record.body.last_run_at = now;
        match self
            .store
            .commit(lease.fence(Batch::at(now).update(&record)))
            .await
        {
            Ok(()) | Err(CommitError::Stale) => Ok(()),
            Err(cause) => Err(cause.into()),
        }
    }

    async fn lease(&self, name: &str) -> Result<Option<Record<JobLease>>> {
        Ok(self.store.get::<JobLease>(INSTALLATION, name).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: Job = Job {
        name: "sweep",
        interval: Duration::from_secs(60),
        run: |_, _| Box::pin(async { Ok(()) }),
    };

    fn batch_with(text: &str) -> Batch {
        Batch::at(Time(1)).insert(
            INSTALLATION,
            text,
            &Fence {
                by: text.to_owned(),
            },
        )
    }

    /// Runs a check with two servers on one store, with a clock that stands still.
    async fn with_two(check: impl AsyncFn(Node<'_>, Node<'_>, &Clock)) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), &[&LEASES, &FENCES]).unwrap();
        let clock = Clock::standing_at(Time(1_000));
        let node = |name: &str| Node {
            store: &store,
            clock: &clock,
            name: name.to_owned(),
            started: OnceLock::new(),
        };
        check(node("one"), node("two"), &clock).await;
    }

    #[tokio::test]
    async fn due_job_is_claimed_once_per_interval() {
        with_two(async |one, two, clock| {
            let lease = one.claim(&JOB).await.unwrap().unwrap();
            assert!(two.claim(&JOB).await.unwrap().is_none());
            one.release(&JOB, &lease).await.unwrap();
            assert!(two.claim(&JOB).await.unwrap().is_none(), "it is not due");
            clock.advance(JOB.interval);
            assert!(two.claim(&JOB).await.unwrap().is_some());
            assert!(one.claim(&JOB).await.unwrap().is_none());
        })
        .await;
    }

    #[tokio::test]
    async fn only_unrenewed_lease_is_taken_over() {
        with_two(async |one, two, clock| {
            one.claim(&JOB).await.unwrap().unwrap();
            for _ in 0..5 {
                clock.advance(RENEW_INTERVAL);
                assert!(one.renew(JOB.name).await.unwrap());
                assert!(two.claim(&JOB).await.unwrap().is_none());
            }
            clock.advance(LEASE_TTL);
            assert!(two.claim(&JOB).await.unwrap().is_some());
            assert!(!one.renew(JOB.name).await.unwrap());
        })
        .await;
    }

    #[tokio::test]
    async fn whoever_wakes_up_past_its_lease_cannot_write() {
        with_two(async |one, two, clock| {
            let old = one.claim(&JOB).await.unwrap().unwrap();
            one.store
                .commit(old.fence(batch_with("in time")))
                .await
                .unwrap();
            clock.advance(LEASE_TTL);
            let new = two.claim(&JOB).await.unwrap().unwrap();
            assert_eq!(
                one.store.commit(old.fence(batch_with("too late"))).await,
                Err(CommitError::Stale)
            );
            one.release(&JOB, &old).await.unwrap();
            assert!(
                two.renew(JOB.name).await.unwrap(),
                "the old holder cannot give back what it does not have"
            );
            two.store
                .commit(new.fence(batch_with("mine")))
                .await
                .unwrap();
        })
        .await;
    }
}
