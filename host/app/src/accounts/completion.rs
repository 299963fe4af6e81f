//! Completion of a connection attempt by the project, which has verified its user.

use std::time::Duration;

use store::{Batch, CommitError};

use super::{
    Failure,
    account::record,
    attempt::{ConnectionAttempt, Step},
    attempt_end::{activate, fail_attempt},
    tokens::TokenOwner,
};
use crate::{App, Result, accounts::errors, core::ids::AccountId, projects::Project};

/// An account whose connection attempt is complete.
#[derive(Debug)]
pub struct Completion {
    /// Id of the account.
    pub account: AccountId,
    /// Slug of its toolkit.
    pub toolkit: String,
}

/// Completes an attempt with the project's confirmation that the user who authorized it is the user
/// it knows. The account becomes active. Fails with [`errors::SESSION_NOT_FOUND`] if the session
/// does not exist or has ended, and with [`errors::ACCOUNT_REFUSED`] if the session belongs to
/// another user. In the latter case the account fails.
pub async fn complete(
    app: &App,
    project: &Project,
    session: &str,
    user: &str,
) -> Result<Completion> {
    let name = app.attempt_record_id(Step::Verify, session);
    let stored = app
        .store
        .get::<ConnectionAttempt>(project.id.as_str(), &name)
        .await?;
    let now = app.clock.now();
    let attempt = stored
        .filter(|attempt| attempt.body.step == Step::Verify && attempt.body.until > now)
        .ok_or_else(errors::session_not_found)?;
    match app.store.commit(Batch::at(now).purge(&attempt)).await {
        Ok(()) => {}
        Err(CommitError::Stale) => return Err(errors::session_not_found()),
        Err(cause) => return Err(cause.into()),
    }
    let secrets = app.open_secrets(&attempt).await?;
    let id = attempt.body.account;
    let attempt_number = attempt.body.attempt_number;
    let account = record(app, project, &id)
        .await
        .map_err(|_| errors::session_not_found())?;
    let owner = TokenOwner::for_account(app, &account)?;
    if account.body.user_id != user.trim() {
        let problem = "the user who authorized the connection is not the user of the account";
        let failure = Failure::new("user_mismatch", problem);
        fail_attempt(app, project, &id, attempt_number, &failure, false).await?;
        let tokens = &app.accounts;
        tokens.revoke_best_effort(&owner, &secrets.values).await;
        return Err(errors::account_refused(format!(
            "account {id} belongs to another user: its connection attempt has failed"
        )));
    }
    let lifetime = secrets.lifetime.map(Duration::from_secs);
    let values = &secrets.values;
    match activate(app, project, &owner, attempt_number, values, lifetime).await {
        Ok(()) => Ok(Completion {
            account: id,
            toolkit: account.body.toolkit,
        }),
        Err(cause) if cause.is(&errors::ATTEMPT_UNKNOWN) => Err(errors::session_not_found()),
        Err(cause) => Err(cause),
    }
}
