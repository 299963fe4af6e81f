//! Recurring jobs, each run by one server at a time.
//!
//! A job is a record in a [`Queue`], due again an interval after each run. A server that starts
//! makes every job due. A run may be interrupted at any point and started again on another server.
//! A job must therefore continue from the stored state and do nothing twice: it commits through its
//! claim ([`JobClaim::commit`](Claim::commit)), so that a server that was suspended for longer than
//! its lease cannot write, and it keeps no state in memory.

use std::{pin::Pin, sync::Arc, time::Duration};

use gate::Shares;
use serde::{Deserialize, Serialize};
use store::{Batch, Collection, Document, Erasure, Field, Time};

use super::{
    backoff::{jittered, retry_delay},
    claim::{Claim, Claimable, Claims, LEASE_TTL, WorkState},
    queue::{Admission, Next, Queue},
};
use crate::{
    App, Error, Result,
    core::{INSTALLATION_PROJECT, clock::time_after},
};

/// Delay before a job is looked at again that this server could not schedule or does not know.
const RECHECK_DELAY: Duration = Duration::from_secs(5);

/// The collection of jobs, by name.
pub(crate) static JOBS_COLLECTION: Collection = Collection {
    name: "leases",
    erasure: Erasure::Other("jobs belong to the installation"),
    fields: &[Field::due("due")],
};
/// A collection of earlier versions, whose records archives contain. Nothing reads or writes it.
pub(crate) static FENCES_COLLECTION: Collection = Collection {
    name: "fences",
    erasure: Erasure::Other("an earlier version wrote them for the installation"),
    fields: &[],
};

/// A recurring job. `C` is the context of its runs.
pub(crate) struct Job<C = App> {
    /// Name of its record. A name is never given to another job.
    pub(crate) name: &'static str,
    /// Time from the end of a run to the next run. A server that starts does not wait for it.
    pub(crate) interval: Duration,
    /// The function that does one run.
    pub(crate) run: for<'a> fn(&'a C, &'a JobClaim) -> RunFuture<'a>,
}

pub(crate) type RunFuture<'a> = Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

/// The right to run a job now.
pub(crate) type JobClaim = Claim<JobState>;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct JobState {
    #[serde(flatten)]
    work: WorkState,
    /// End of the last successful run.
    #[serde(rename = "ran")]
    last_run_at: Time,
    /// Time from which the setting of a job that erases holds. `None` while it erases nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) erases_since: Option<Time>,
}

impl Document for JobState {
    const COLLECTION: &'static Collection = &JOBS_COLLECTION;
}

impl Claimable for JobState {
    fn work(&mut self) -> &mut WorkState {
        &mut self.work
    }
}

struct Jobs<'a, C> {
    context: &'a C,
    list: &'a [Job<C>],
}

/// Runs due jobs for as long as the future is polled.
pub(crate) async fn run_jobs<C: Sync>(claims: &Claims, context: &C, list: &[Job<C>]) {
    for job in list {
        while let Err(cause) = make_due(claims, job.name).await {
            tracing::warn!(%cause, job = job.name, "a job could not be scheduled; it is retried");
            tokio::time::sleep(jittered(RECHECK_DELAY)).await;
        }
    }
    let queue = Queue {
        name: "jobs",
        // A job that waits for a provider does not delay the others.
        shares: Shares::whole(list.len() as u64),
        lease_ttl: LEASE_TTL,
        retry_delay,
        admission: Admission::by_project(),
        work: |jobs: &Jobs<C>, claim, ()| Box::pin(run(jobs, claim)),
    };
    queue.run(claims, &Jobs { context, list }).await;
}

/// Makes a job due, unless a server runs it.
async fn make_due(claims: &Claims, name: &str) -> Result<()> {
    let store = &claims.store;
    let scheduled = store.change(&JOBS_COLLECTION, name, || async {
        let now = claims.now().await?;
        let batch = Batch::at(now);
        let batch = match store.get::<JobState>(INSTALLATION_PROJECT, name).await? {
            Some(job) if job.body.work.is_claimed(now) => batch,
            Some(mut job) => {
                job.body.work.due = Some(now);
                batch.update(&job)
            }
            None => {
                let body = JobState {
                    work: WorkState::due_at(now),
                    last_run_at: Time(0),
                    erases_since: None,
                };
                batch.insert(INSTALLATION_PROJECT, name, &body)
            }
        };
        Ok::<_, Error>((batch, ()))
    });
    Ok(scheduled.await?)
}

/// Runs a claimed job once.
async fn run<C: Sync>(jobs: &Jobs<'_, C>, claim: Arc<JobClaim>) -> Result<Next> {
    let Some(job) = jobs.list.iter().find(|job| job.name == claim.id()) else {
        // A server of a newer version runs the job.
        let now = claim.batch().await?.now;
        return Ok(Next::At(time_after(now, RECHECK_DELAY)));
    };
    (job.run)(jobs.context, &claim).await?;
    let batch = claim.batch().await?;
    let now = batch.now;
    let done = claim.end(batch, |state| {
        state.last_run_at = now;
        state.work.reschedule(time_after(now, job.interval));
    });
    done.await?;
    Ok(Next::Ended)
}

/// Claims a due job, for a test of its run.
#[cfg(test)]
pub(crate) async fn claim_job(store: &store::Store) -> JobClaim {
    let claims = Claims::new(store.clone(), crate::Clock::system());
    make_due(&claims, "job").await.unwrap();
    let job = store
        .get(INSTALLATION_PROJECT, "job")
        .await
        .unwrap()
        .unwrap();
    claims.take(job, LEASE_TTL).await.unwrap().unwrap()
}

#[cfg(test)]
mod tests;
