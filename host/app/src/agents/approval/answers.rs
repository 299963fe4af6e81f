//! The states of approvals that have been answered.
//!
//! Guarantee: a state is answered once. The first answer decides, and of several concurrent ones exactly
//! one is the first. A call that an answer approves and that does not start gives the state back.
//!
//! This rests on a record whose id is the hash in the state. It is durable before the tool starts. Records
//! are erased once their states have expired.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use store::{Batch, Collection, CommitError, Document, Erasure, Field, Kind, Query, Record};

use super::APPROVAL_TTL;
use crate::{
    App, Result,
    agents::{SessionCaller, errors},
    core::{clock::time_before, ids::SessionId},
    projects::record_limits,
    work::{JobClaim, erase_all, erase_list},
};

/// Collection of the states that have been answered.
pub(crate) static COLLECTION: Collection = Collection {
    name: "approval_answers",
    erasure: Erasure::Project,
    fields: &[Field::new("session", Kind::Text)],
};

/// Interval at which the records of expired states are erased.
pub(crate) const SWEEP_INTERVAL: Duration = Duration::from_secs(600);
/// Number of records that are erased in one batch.
const RECORDS_PER_BATCH: u64 = 64;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct AnsweredState {
    session: String,
}

impl Document for AnsweredState {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// The only answer to a state.
pub(super) struct Answer(Record<AnsweredState>);

impl Answer {
    /// Records that a state is answered. Fails if it has been answered before, or the project has added
    /// too many records in a day.
    pub(super) async fn record(
        app: &App,
        caller: &SessionCaller,
        tool: &str,
        state_hash: &str,
    ) -> Result<Self> {
        let (now, project) = (app.clock.now(), caller.project.id.as_str());
        let body = AnsweredState {
            session: caller.session_id().to_owned(),
        };
        record_limits::count_bytes(app, project, 0)?;
        let batch = Batch::at(now).insert(project, state_hash, &body);
        match app.store.commit(batch).await {
            Ok(()) => Ok(Self(Record::inserted(project, state_hash, now, body))),
            Err(CommitError::Taken { .. }) => Err(errors::approval_answered(tool)),
            Err(cause) => Err(cause.into()),
        }
    }

    /// Makes it possible to answer the state again.
    pub(super) async fn give_back(self, app: &App) {
        let batch = Batch::at(app.clock.now()).purge(&self.0);
        if let Err(cause) = app.store.commit(batch).await {
            let session = &self.0.body.session;
            tracing::warn!(%cause, session, "the state of an approval was not given back");
        }
    }
}

pub(in crate::agents) async fn erase_session(
    app: &App,
    project: &str,
    session: &SessionId,
) -> Result<()> {
    let query = Query::for_project(project).is("session", session.as_str());
    erase_list(app, &COLLECTION, query, RECORDS_PER_BATCH).await
}

/// Erases the records of states that have expired. This is a job that one server at a time runs.
pub(crate) async fn erase_expired(app: &App, claim: &JobClaim) -> Result<()> {
    let oldest = time_before(app.clock.now(), APPROVAL_TTL);
    let expired = Query::all_projects().below("created_at", oldest.0);
    erase_all(claim, &COLLECTION, expired, RECORDS_PER_BATCH).await
}
