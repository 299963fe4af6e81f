//! Revocation of credentials and deletion of accounts.

use store::{Batch, Query, Record};

use super::{
    Account, Event, RevokedToken, Status, Values,
    account::{COLLECTION, record, status_after},
    credential::open_credential,
    tokens::TokenOwner,
};
use crate::{
    App, Error, Result,
    accounts::errors,
    core::ids::{AccountId, AuthConfigId},
    projects::Project,
};

/// Page size when the accounts of an auth config or of a project are revoked.
const REVOCATION_PAGE_SIZE: u64 = 100;

/// Revokes an account's credential: the provider is asked to revoke its tokens, and the server
/// erases them. Returns the tokens that the provider revoked, or the credential if only this server
/// erased it. Fails if the account does not exist, its credential is absent or revoked, or the
/// provider does not answer. In these cases nothing has changed.
pub async fn revoke(app: &App, project: &Project, id: &AccountId) -> Result<Vec<RevokedToken>> {
    let account = record(app, project, id).await?;
    if account.body.status == Status::Revoked {
        return Err(errors::account_revoked(id));
    }
    status_after(id, account.body.status, Event::Revoked)?;
    let (values, _) = open_credential(app, &account).await?;
    let owner = match account.body.scheme {
        mode if mode.has_flow() => Some(TokenOwner::for_account(app, &account)?),
        _ => None,
    };
    let revoked = match &owner {
        Some(owner) => app.accounts.revoke(owner, &values).await?,
        None => vec![RevokedToken::Credential],
    };
    let erased = app.store.change(&COLLECTION, id.as_str(), || async {
        let mut account = record(app, project, id).await?;
        let now = app.clock.now();
        let revoked = status_after(id, account.body.status, Event::Revoked)?;
        account.body.set_status(revoked, None, now);
        // A user who is at the provider now cannot complete the attempt any more.
        account.body.attempt_number += 1;
        let (replaced, credential) = open_credential(app, &account).await?;
        let body = app.accounts.seal(&project.id, id, &Values::new()).await?;
        let batch = Batch::at(now).update(&account);
        Ok::<_, Error>((batch.update(&Record { body, ..credential }), replaced))
    });
    let replaced = erased.await?;
    // A refresh that ended after the provider was asked has stored tokens that are not revoked yet.
    if let Some(owner) = owner.filter(|_| replaced != values) {
        app.accounts.revoke_best_effort(&owner, &replaced).await;
    }
    Ok(revoked)
}

/// Deletes an account and erases its credential. With `revoke`, the provider is then asked to
/// revoke the tokens, if it can be reached. Fails if the account does not exist.
pub async fn remove(app: &App, project: &Project, id: &AccountId, revoke: bool) -> Result<()> {
    let removed = app.store.change(&COLLECTION, id.as_str(), || async {
        let account = record(app, project, id).await?;
        let (values, credential) = open_credential(app, &account).await?;
        let batch = Batch::at(app.clock.now()).remove(&account);
        Ok::<_, Error>((batch.purge(&credential), (account, values)))
    });
    let (account, values) = removed.await?;
    if revoke && account.body.scheme.has_flow() {
        let owner = TokenOwner::for_account(app, &account)?;
        app.accounts.revoke_best_effort(&owner, &values).await;
    }
    Ok(())
}

/// Deletes the accounts of a project and asks their providers to revoke the tokens, if they can be
/// reached. A repeated call continues an interrupted deletion. Fails if the store refuses.
pub(crate) async fn remove_all(app: &App, project: &Project) -> Result<()> {
    let query = Query::for_project(project.id.as_str());
    for_each_account(app, query, |id| async move {
        match remove(app, project, &id, true).await {
            // The account lacks a credential that could be revoked.
            Err(cause) if cause.is(&errors::ACCOUNT_NOT_FOUND) => Ok(()),
            done => done,
        }
    })
    .await
}

/// Revokes the credentials of all accounts of an auth config, if the provider can be reached. The
/// accounts stay. Fails if the store cannot be read.
pub(crate) async fn revoke_all(app: &App, project: &Project, config: &AuthConfigId) -> Result<()> {
    let revocable = [Status::Active, Status::Inactive, Status::Expired].map(<&str>::from);
    let query = Query::for_project(project.id.as_str())
        .is("auth_config", config.as_str())
        .any_of("status", revocable);
    for_each_account(app, query, |id| async move {
        if let Err(cause) = revoke(app, project, &id).await {
            tracing::warn!(account = %id, %cause, "a credential was not revoked with its auth config");
        }
        Ok(())
    })
    .await
}

/// Calls a function with each account that a query selects, sequentially.
async fn for_each_account<F: Future<Output = Result<()>>>(
    app: &App,
    query: Query,
    work: impl Fn(AccountId) -> F,
) -> Result<()> {
    let mut query = query.page(0, REVOCATION_PAGE_SIZE);
    loop {
        let page = app.store.list::<Account>(&query).await?;
        for account in page.items {
            work(AccountId::parse(&account.id)?).await?;
        }
        let Some(next) = page.next else {
            return Ok(());
        };
        query = query.after(next);
    }
}
