//! Background work. A worker claims a record in the store before it works on it, so that any number
//! of servers share the work, and any of them may die at any time.
//!
//! [`claim`] is the only lease mechanism. [`queue`] finds records that are due and claims them,
//! [`recurring`] runs jobs that have an interval, and [`erase`] removes many records in batches.
//!
//! To add a queue, implement [`Claimable`] for a document that contains a [`WorkState`], declare
//! `Field::due("due")` in its collection, insert records with [`WorkState::due_at`], and add the
//! queue to the list in `lifecycle/jobs.rs`:
//!
//! ```text
//! let deliveries = Queue {
//!     name: "deliveries",
//!     shares: Shares { total: 16, reserve: 8, base: 1, cap: 8 },
//!     lease_ttl: LEASE_TTL,
//!     retry_delay,
//!     admission: Admission::by_project(),
//!     work: |app: &App, claim, ()| Box::pin(deliver(app, claim)),
//! };
//! deliveries.run(&app.claims(), app).await;
//! ```
//!
//! `deliver` reads the record with [`Claim::body`], does the work, and commits its results with
//! [`Claim::end`] or [`Claim::erase`] before it returns [`Next::Ended`]. An error or [`Next::Retry`]
//! counts as a failed attempt, [`Next::At`] does not, and [`Next::GiveUp`] makes the record a dead
//! letter. To add a recurring job, add a [`Job`] to the same list.

mod backoff;
mod claim;
mod erase;
mod queue;
mod recurring;

pub(crate) use backoff::{doubled, jittered, retry_delay};
pub(crate) use claim::{Claim, Claimable, Claims, LEASE_TTL, WorkState};
pub(crate) use erase::{erase_all, erase_list};
pub use queue::QueueDepth;
pub(crate) use queue::{Admission, MAX_DEFERRAL, Next, Queue, depth as queue_depth};
#[cfg(test)]
pub(crate) use recurring::claim_job;
pub(crate) use recurring::{FENCES_COLLECTION, JOBS_COLLECTION, Job, JobClaim, JobState, run_jobs};
