//! The queue that refreshes the tokens of idle accounts, so that their refresh tokens do not expire
//! unused.

use std::sync::Arc;

use gate::Shares;
use store::Record;

use super::{
    Account, Status,
    credential::Credential,
    refresh::{MAX_RETRY_DELAY, MIN_RETRY_DELAY},
    tokens::TokenOwner,
};
use crate::{
    App, Result,
    accounts::errors,
    core::clock::time_after,
    projects,
    work::{Admission, Claim, Next, Queue, doubled},
};

/// Shares of projects in the refreshes that one server makes at a time. Several at a time limit the
/// delay that an unresponsive provider causes for the other accounts.
pub const IDLE_REFRESH_SHARES: Shares = Shares {
    total: 24,
    reserve: 8,
    base: 1,
    cap: 8,
};

/// Returns the queue of credentials whose token is refreshed although the account is idle.
pub(crate) fn idle_refresh(app: &App) -> Queue<Credential, App> {
    Queue {
        name: "idle_refresh",
        shares: IDLE_REFRESH_SHARES,
        lease_ttl: app.accounts.settings.lease_ttl,
        retry_delay: |attempts| doubled(MIN_RETRY_DELAY, MAX_RETRY_DELAY, attempts),
        admission: Admission::by_project(),
        work: |app: &App, claim, ()| Box::pin(refresh(app, claim)),
    }
}

async fn refresh(app: &App, claim: Arc<Claim<Credential>>) -> Result<Next> {
    let batch = claim.batch().await?;
    let account = account_of(app, &claim).await?;
    let status = account.as_ref().map(|account| account.body.status);
    if status == Some(Status::Inactive) {
        // The account may be resumed at any time.
        let due = time_after(batch.now, app.accounts.settings.idle_refresh_after);
        return Ok(Next::At(due));
    }
    let active = account.filter(|_| status == Some(Status::Active));
    let owner = active.and_then(|account| TokenOwner::for_account(app, &account).ok());
    let Some(owner) = owner else {
        let ended = claim.end(batch, |credential| credential.work.due = None);
        ended.await?;
        return Ok(Next::Ended);
    };
    if let Some(retry_at) = claim.body().await.retry_at.filter(|at| *at > batch.now) {
        return Ok(Next::At(retry_at));
    }
    let manager = app.accounts.clone();
    let refreshing = async move { manager.refresh_claimed(&owner, &claim).await };
    let done = app
        .accounts
        .tasks
        .start(refreshing)
        .await
        .map_err(|_| errors::internal("the task that refreshes a token has panicked"))?;
    if let Err(cause) = done {
        // The failure is stored with the account.
        tracing::debug!(%cause, "the token of an idle account was not refreshed");
    }
    Ok(Next::Ended)
}

/// Returns the account that uses a token, if it exists in a live project.
async fn account_of(app: &App, claim: &Claim<Credential>) -> Result<Option<Record<Account>>> {
    if !projects::is_live(&app.store, claim.project()).await? {
        return Ok(None);
    }
    Ok(app.store.get(claim.project(), claim.id()).await?)
}
