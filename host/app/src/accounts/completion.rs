//! The end of a connection attempt: the account becomes active or fails.

use std::time::Duration;

use store::{Batch, CommitError, Record};

use super::{
    Account, Event, Failure, Status, Values,
    account::{COLLECTION, record},
    attempt::{ConnectionAttempt, Step},
    credential::open_credential,
    tokens::TokenOwner,
};
use crate::{App, Error, Result, accounts::errors, core::ids::AccountId, projects::Project};

/// An account whose connection attempt is complete.
#[derive(Debug)]
pub struct Completion {
    /// Id of the account.
    pub account: AccountId,
    /// Slug of its toolkit.
    pub toolkit: String,
}

/// Completes an attempt with the project's confirmation that the user who authorized it is the user
/// it knows. The account becomes active.
///
/// # Errors
/// Fails with [`errors::SESSION_NOT_FOUND`] if the session does not exist or has ended, and with
/// [`errors::ACCOUNT_REFUSED`] if the session belongs to another user. In the latter case the
/// account fails.
pub async fn complete(
    app: &App,
    project: &Project,
    session: &str,
    user: &str,
) -> Result<Completion> {
    let name = app.attempt_record_id(Step::Verify, session);
    let found = app
        .store
        .get::<ConnectionAttempt>(project.id.as_str(), &name)
        .await?;
    let now = app.clock.now();
    let attempt =
        found.filter(|attempt| attempt.body.step == Step::Verify && attempt.body.until > now);
    let attempt = attempt.ok_or_else(errors::session_not_found)?;
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
    let owner = TokenOwner::for_account(app, &project.id, &account)?;
    if account.body.user_id != user.trim() {
        let description =
            "the user who authorized the connection is not the user of the account".to_owned();
        fail_attempt(
            app,
            project,
            &id,
            attempt_number,
            &Failure {
                error: "user_mismatch".into(),
                description,
            },
        )
        .await?;
        app.accounts
            .revoke_best_effort(&owner, &secrets.values)
            .await;
        return Err(errors::account_refused(format!(
            "account {id} belongs to another user: its connection attempt has failed"
        )));
    }
    let lifetime = secrets.lifetime.map(Duration::from_secs);
    match activate(
        app,
        project,
        &owner,
        attempt_number,
        &secrets.values,
        lifetime,
    )
    .await
    {
        Ok(()) => Ok(Completion {
            account: id,
            toolkit: account.body.toolkit,
        }),
        Err(cause) if cause.is(&errors::ATTEMPT_UNKNOWN) => Err(errors::session_not_found()),
        Err(cause) => Err(cause),
    }
}

/// Activates an account with its tokens. Revokes the tokens if the attempt has ended meanwhile.
pub(super) async fn activate(
    app: &App,
    project: &Project,
    owner: &TokenOwner,
    attempt_number: u32,
    values: &Values,
    lifetime: Option<Duration>,
) -> Result<()> {
    let activated = app
        .store
        .change(&COLLECTION, owner.account.as_str(), || async {
            let found = record(app, project, &owner.account)
                .await
                .ok()
                .filter(|account| account.body.attempt_number == attempt_number);
            let status = found
                .as_ref()
                .and_then(|account| account.body.status.after(Event::Authorized));
            let (Some(mut account), Some(status)) = (found, status) else {
                app.accounts.revoke_best_effort(owner, values).await;
                return Err(errors::attempt_unknown());
            };
            let now = app.clock.now();
            account.body.set_status(status, None, now);
            account.body.attempt_number += 1;
            let (_, credential) = open_credential(app, project, &account).await?;
            let body = app
                .accounts
                .build_credential(
                    &project.id,
                    &owner.account,
                    Some(owner.scheme()?),
                    values,
                    lifetime,
                )
                .await?;
            Ok((
                Batch::at(now)
                    .update(&account)
                    .update(&Record { body, ..credential }),
                (),
            ))
        });
    Ok(activated.await?)
}

/// Ends a failed attempt.
pub(super) async fn fail_attempt(
    app: &App,
    project: &Project,
    id: &AccountId,
    attempt_number: u32,
    failure: &Failure,
) -> Result<()> {
    let now = app.clock.now();
    let change = |account: &mut Account| -> Result<()> {
        if account.attempt_number == attempt_number
            && let Some(status) = account.status.after(Event::AttemptFailed)
        {
            account.attempt_number += 1;
            if status == Status::Failed {
                account.set_status(status, Some(&failure.error), now);
                account.failure = Some(failure.clone());
            }
        }
        Ok(())
    };
    app.store
        .edit(project.id.as_str(), id.as_str(), now, change)
        .await
        .map_err(Error::from)
        .map(|_| ())
}
