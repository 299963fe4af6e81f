//! The end of a connection attempt: the account becomes active or fails.

use std::time::Duration;

use store::{Batch, Record, Time};

use super::{
    Account, Event, Failure, Status, Values,
    account::{AUTH_CONFIG_GONE, COLLECTION, record},
    auth_configs,
    credential::open_credential,
    tokens::TokenOwner,
};
use crate::{App, Error, Result, accounts::errors, core::ids::AccountId, projects::Project};

/// Activates an account with its tokens. Revokes the tokens if the attempt has ended meanwhile, or if
/// the auth config was deleted, which ends the attempt.
pub(super) async fn activate(
    app: &App,
    project: &Project,
    owner: &TokenOwner,
    attempt_number: u32,
    values: &Values,
    lifetime: Option<Duration>,
) -> Result<()> {
    let id = &owner.account;
    let tokens = &app.accounts;
    let activation = app.store.change(&COLLECTION, id.as_str(), || async {
        let stored = match record(app, project, id).await {
            Err(cause) if cause.is(&errors::ACCOUNT_NOT_FOUND) => None,
            // If the account cannot be read, a revocation might end tokens that it still uses.
            account => Some(account?),
        };
        let current = stored.filter(|account| account.body.attempt_number == attempt_number);
        let status = current
            .as_ref()
            .and_then(|account| account.body.status.after(Event::Authorized));
        let (Some(mut account), Some(status)) = (current, status) else {
            tokens.revoke_best_effort(owner, values).await;
            return Err(errors::attempt_unknown());
        };
        let Some(config) = auth_configs::find(&app.store, &project.id, &owner.auth_config).await?
        else {
            tokens.revoke_best_effort(owner, values).await;
            return Err(errors::auth_config_not_found(&owner.auth_config));
        };
        let now = app.clock.now();
        account.body.set_status(status, None, now);
        account.body.attempt_number += 1;
        let (_, credential) = open_credential(app, &account).await?;
        let scheme = Some(owner.scheme()?);
        let body = tokens
            .build_credential(&project.id, id, scheme, values, lifetime, now)
            .await?;
        let batch = Batch::at(now).check(&config).update(&account);
        Ok((batch.update(&Record { body, ..credential }), ()))
    });
    let activated = activation.await.map_err(Error::from);
    if matches!(&activated, Err(cause) if cause.is(&errors::AUTH_CONFIG_NOT_FOUND)) {
        fail_attempt(app, project, id, attempt_number, &auth_config_gone(), false).await?;
    }
    activated
}

/// Returns the failure of an attempt whose auth config was deleted.
pub(super) fn auth_config_gone() -> Failure {
    Failure::new(AUTH_CONFIG_GONE, "the auth config is deleted")
}

/// Ends an attempt without tokens. With `keeps_link`, an account whose link is still open continues to
/// wait for its user, who can open the link again. A later attempt is not affected.
pub(super) async fn fail_attempt(
    app: &App,
    project: &Project,
    id: &AccountId,
    attempt_number: u32,
    failure: &Failure,
    keeps_link: bool,
) -> Result<()> {
    let now = app.clock.now();
    let (owner, id) = (project.id.as_str(), id.as_str());
    app.store
        .edit(owner, id, now, |account: &mut Account| -> Result<()> {
            if account.attempt_number != attempt_number {
                return Ok(());
            }
            let is_link_open = account.waits_until.is_some_and(|until| until > now);
            if keeps_link && account.status.is_pending() && is_link_open {
                account.status_reason = Some(failure.error.clone());
                account.failure = Some(failure.clone());
                account.changed_at = now;
            } else {
                fail(account, failure, now);
            }
            Ok(())
        })
        .await?;
    Ok(())
}

fn fail(account: &mut Account, failure: &Failure, now: Time) {
    let Some(status) = account.status.after(Event::AttemptFailed) else {
        return;
    };
    account.attempt_number += 1;
    if status == Status::Failed {
        account.set_status(status, Some(&failure.error), now);
        account.failure = Some(failure.clone());
    }
}
