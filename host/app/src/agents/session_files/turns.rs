//! Turns of scripts and shell commands at the files of their session.
//!
//! Guarantee: of the scripts and commands of one session, one runs at a time on all servers, so that
//! each sees the files that the one before left. One that has lost its turn, because its server was
//! suspended for longer than the lease, stores nothing.
//!
//! It rests on a record that the running one holds by a claim, and at whose revision it stores what it
//! leaves. The record stays until the session is deleted, because a new one would have the revisions of
//! the one before. Scripts and commands of one server also queue in its memory, so that they run in the
//! order of their arrival.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use store::{Batch, Collection, CommitError, Document, Erasure};
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{sleep, timeout},
};

use super::{Owner, SessionCaller};
use crate::{
    App, Result,
    agents::errors,
    work::{Claim, Claimable, WorkState},
};

/// Collection of the turns, under the ids of the sessions.
pub(crate) static COLLECTION: Collection = Collection {
    name: "session_turns",
    erasure: Erasure::Project,
    fields: &[],
};

/// Maximum time for which a script or command waits for those before it.
pub const MAX_TURN_WAIT: Duration = Duration::from_secs(20);
/// Time after which another server may take the turn of one that has failed.
const LEASE_TTL: Duration = Duration::from_secs(6);
/// Interval at which the turn of another server is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The turns of a session, of which at most one is taken.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct SessionTurns {
    #[serde(flatten)]
    work: WorkState,
}

impl Document for SessionTurns {
    const COLLECTION: &'static Collection = &COLLECTION;
}

impl Claimable for SessionTurns {
    fn work(&mut self) -> &mut WorkState {
        &mut self.work
    }
}

/// The turn of a script or command.
pub(crate) struct Turn {
    claim: Claim<SessionTurns>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Turn {
    /// Waits until no other script or command of the session runs. Fails if the session is still
    /// busy after [`MAX_TURN_WAIT`], or if it was deleted.
    pub(crate) async fn take(app: &App, caller: &SessionCaller) -> Result<Self> {
        let session = caller.session_id().to_owned();
        let taking = async {
            let permit = app.session_turns.acquire(&session).await;
            Ok::<_, crate::Error>(Self {
                claim: claim(app, caller.into()).await?,
                _permit: permit,
            })
        };
        let taken = timeout(MAX_TURN_WAIT, taking).await;
        taken.map_err(|_| errors::session_busy())?
    }

    /// Runs a script or command, and ends the turn. Fails with [`errors::TURN_LOST`] if the store
    /// cannot be reached for so long that another server may take the turn, or for a reason of `work`.
    pub(crate) async fn run<R>(
        &self,
        app: &App,
        work: impl Future<Output = Result<R>>,
    ) -> Result<R> {
        let done = self.claim.keep(work).await.map_err(errors::turn_lost)?;
        // Without an explicit end, the turn is free when its lease expires.
        if let Err(cause) = self.claim.end(Batch::at(app.clock.now()), |_| {}).await {
            let session = self.claim.id();
            tracing::warn!(%cause, session, "the turn of a session was not ended");
        }
        done
    }

    /// Returns a batch that fails as *stale* once another server has taken the turn.
    pub(super) async fn guard(&self, batch: Batch) -> Result<Batch> {
        Ok(self.claim.guard(batch).await?)
    }
}

async fn claim(app: &App, owner: Owner<'_>) -> Result<Claim<SessionTurns>> {
    loop {
        let turns = app.store.get::<SessionTurns>(owner.project, owner.session);
        if let Some(record) = turns.await? {
            if let Some(claim) = app.claims().take(record, LEASE_TTL).await? {
                return Ok(claim);
            }
            sleep(POLL_INTERVAL).await;
            continue;
        }
        let batch = Batch::at(app.clock.now())
            .check(&owner.session(app).await?)
            .insert(owner.project, owner.session, &SessionTurns::default());
        match app.store.commit(batch).await {
            Ok(()) | Err(CommitError::Stale | CommitError::Taken { .. }) => {}
            Err(cause) => return Err(cause.into()),
        }
    }
}
