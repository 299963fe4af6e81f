//! Turns of scripts and shell commands at the files of their session.
//!
//! Guarantee: of the scripts and commands of one session, one runs at a time on all servers, so that
//! each sees the files that the one before left.
//!
//! It rests on a record that the running one holds by a claim. Those of one server also queue in its
//! memory, so that they run in the order of their arrival.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use store::{Batch, Collection, CommitError, Document, Record};
use tokio::time::{sleep, timeout};

use super::{Owner, SessionCaller};
use crate::{
    App, Result,
    agents::errors,
    work::{Claim, Claimable, WorkState},
};

/// Collection of the turns that are taken, under the ids of the sessions.
pub(crate) static COLLECTION: Collection = Collection {
    name: "session_turns",
    fields: &[],
};

/// Maximum time for which a script or command waits for those before it.
pub const MAX_TURN_WAIT: Duration = Duration::from_secs(20);
/// Time after which another server may take the turn of one that has failed.
const LEASE_TTL: Duration = Duration::from_secs(6);
/// Interval at which the turn of another server is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The queues of the sessions that have a script or command on this server.
#[derive(Default)]
pub(crate) struct Turns(Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>);

/// A turn that is taken.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Taken {
    #[serde(flatten)]
    work: WorkState,
}

impl Document for Taken {
    const COLLECTION: &'static Collection = &COLLECTION;
}

impl Claimable for Taken {
    fn work(&mut self) -> &mut WorkState {
        &mut self.work
    }
}

/// Runs a script or command when no other one of the session runs.
///
/// # Errors
/// Fails if the session is still busy after [`MAX_TURN_WAIT`], if it was deleted, if the store
/// cannot be reached for so long that another server may take the turn, or for a reason of `work`.
pub async fn in_turn<R>(
    app: &App,
    caller: &SessionCaller,
    work: impl Future<Output = Result<R>>,
) -> Result<R> {
    let queue = {
        let mut queues = app.session_turns.0.lock();
        queues.retain(|_, queue| Arc::strong_count(queue) > 1);
        let id = caller.session_id().to_owned();
        queues.entry(id).or_default().clone()
    };
    let taken = async {
        let place = queue.lock().await;
        Ok::<_, crate::Error>((place, claim(app, caller.into()).await?))
    };
    let taken = timeout(MAX_TURN_WAIT, taken).await;
    let (_place, claim) = taken.map_err(|_| errors::session_busy())??;
    let done = claim.keep(work).await.map_err(errors::unavailable)?;
    // A turn that is not ended is free when its lease expires.
    if let Err(cause) = claim.erase(Batch::at(app.clock.now())).await {
        tracing::warn!(%cause, session = caller.session_id(), "the turn of a session was not ended");
    }
    done
}

async fn claim(app: &App, owner: Owner<'_>) -> Result<Claim<Taken>> {
    loop {
        if let Some(record) = record(app, owner).await? {
            if let Some(claim) = app.claims().take(record, LEASE_TTL).await? {
                return Ok(claim);
            }
            sleep(POLL_INTERVAL).await;
            continue;
        }
        let batch = Batch::at(app.clock.now())
            .check(&owner.session(app).await?)
            .insert(owner.project, owner.session, &Taken::default());
        match app.store.commit(batch).await {
            Ok(()) | Err(CommitError::Stale | CommitError::Taken { .. }) => {}
            Err(cause) => return Err(cause.into()),
        }
    }
}

/// Returns the turn of a session, if it is taken.
pub(super) async fn record(app: &App, owner: Owner<'_>) -> Result<Option<Record<Taken>>> {
    Ok(app.store.get(owner.project, owner.session).await?)
}
