//! The queue that refreshes the tokens of idle accounts, so that their refresh tokens do not expire
//! unused.

use std::sync::Arc;

use super::{
    Account, Status,
    credential::Credential,
    refresh::{MAX_RETRY_DELAY, MIN_RETRY_DELAY},
    tokens::TokenOwner,
};
use crate::{
    App, Result,
    accounts::errors,
    core::ids::ProjectId,
    projects,
    work::{Admission, Claim, Next, Queue, doubled},
};

/// Number of concurrent refreshes. Several at a time limit the delay that an unresponsive provider
/// causes for the other accounts.
const MAX_CONCURRENT_REFRESHES: usize = 8;

/// Returns the queue of credentials whose token is refreshed although the account is idle.
pub(crate) fn idle_refresh(app: &App) -> Queue<Credential, App> {
    Queue {
        name: "idle_refresh",
        concurrency: MAX_CONCURRENT_REFRESHES,
        lease_ttl: app.accounts.settings.lease_ttl,
        retry_delay: |attempts| Some(doubled(MIN_RETRY_DELAY, MAX_RETRY_DELAY, attempts)),
        admission: Admission::always(),
        work: |app: &App, claim, ()| Box::pin(refresh(app, claim)),
    }
}

async fn refresh(app: &App, claim: Arc<Claim<Credential>>) -> Result<Next> {
    let batch = claim.batch().await?;
    let Some(owner) = owner(app, &claim).await? else {
        claim
            .end(batch, |credential| credential.work.due = None)
            .await?;
        return Ok(Next::Ended);
    };
    if let Some(retry_at) = claim.body().await.retry_at.filter(|at| *at > batch.now) {
        return Ok(Next::At(retry_at));
    }
    let manager = app.accounts.clone();
    let refreshing = async move { manager.refresh_claimed(&owner, &claim).await };
    let done = app.accounts.spawn_to_completion(refreshing).await;
    let done =
        done.map_err(|_| errors::internal("the task that refreshes a token has panicked"))?;
    if let Err(cause) = done {
        // The failure is stored with the account.
        tracing::debug!(%cause, "the token of an idle account was not refreshed");
    }
    Ok(Next::Ended)
}

/// Returns the owner of a token. None if nothing can use it.
async fn owner(app: &App, claim: &Claim<Credential>) -> Result<Option<TokenOwner>> {
    let (project, id) = (claim.project(), claim.id());
    if !projects::is_live(&app.store, project).await? {
        return Ok(None);
    }
    let account = app.store.get::<Account>(project, id).await?;
    let Some(account) = account.filter(|account| account.body.status == Status::Active) else {
        return Ok(None);
    };
    Ok(TokenOwner::for_account(app, &ProjectId::parse(project)?, &account).ok())
}
