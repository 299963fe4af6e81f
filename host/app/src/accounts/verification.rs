//! Verification of a credential with the request that its toolkit declares for this purpose.

use std::sync::Arc;

use futures::future::BoxFuture;
use manifest::AuthMode;
use sandbox::Grant;
use store::Record;

use super::{
    Account, Event, Status, Values,
    account::record,
    auth_configs::{self, AuthConfig},
    grant::{base_url, usable_values, with_client},
    granted::static_grant,
    scheme,
};
use crate::{
    App, Error, Result,
    accounts::errors,
    catalog::{LATEST, Release},
    core::ids::AccountId,
    projects::Project,
};

/// A credential to verify with the request that its toolkit declares for this purpose.
pub(crate) struct CredentialCheck<'a> {
    pub project: &'a Project,
    /// Version of the toolkit, which declares the request.
    pub release: &'a Release,
    /// Scheme of the values.
    pub mode: AuthMode,
    /// Values of the account to connect.
    pub values: &'a Values,
    /// The proxy of the auth config, if it has one.
    pub proxy: Option<Arc<net::Proxy>>,
}

/// The function that sends the request of a [`CredentialCheck`]. It belongs to the module that runs
/// requests, which is above this one, and is set where the [`App`] is put together.
///
/// It fails with [`errors::CREDENTIAL_REJECTED`] if the provider rejects the credential, and also
/// if the toolkit declares no such request or the provider does not respond.
pub(crate) type VerifyCredential =
    for<'a> fn(&'a App, CredentialCheck<'a>) -> BoxFuture<'a, Result<()>>;

impl CredentialCheck<'_> {
    /// Returns the base URL of the provider's API, if it is known.
    pub(crate) fn base_url(&self) -> Option<String> {
        base_url(self.release, self.mode, self.values)
    }

    /// Returns the credential for the request, routed through the proxy.
    pub(crate) fn grant(&self) -> Result<Option<Arc<dyn Grant>>> {
        let granted = static_grant(self.release, self.mode, self.values)?;
        Ok(granted.via_proxy(self.proxy.clone()).grant)
    }

    /// Returns the text of a field.
    pub(crate) fn value(&self, name: &str) -> Option<String> {
        self.values.get(name).and_then(scheme::text)
    }
}

/// Asks the provider to verify the credential of an account. A token that expires soon is refreshed
/// first. The account fails if the provider rejects the credential. Returns the status. Fails if the
/// account does not exist, the toolkit lacks a request to verify a credential, or the provider does
/// not answer.
pub async fn verify_credential(app: &App, project: &Project, id: &AccountId) -> Result<Status> {
    let account = record(app, project, id).await?;
    let release = app.catalog.release(&account.body.toolkit, LATEST)?;
    let values = match usable_values(app, &account).await {
        // The provider has refused to refresh the token, which has ended the account.
        Err(cause) if cause.is(&errors::ACCOUNT_NOT_ACTIVE) => {
            return Ok(record(app, project, id).await?.body.status);
        }
        values => values?,
    };
    let mode = account.body.scheme;
    let config = auth_configs::find(&app.store, &project.id, &account.body.auth_config).await?;
    let verified = verify_values(app, project, config.as_ref(), &release, mode, values);
    let rejected = match verified.await {
        Ok(()) => return Ok(account.body.status),
        Err(cause) if cause.is(&errors::CREDENTIAL_REJECTED) => cause,
        Err(cause) => return Err(cause),
    };
    fail(app, project, id, rejected.reason()).await
}

/// Fails an account whose credential was rejected. Returns its status.
async fn fail(app: &App, project: &Project, id: &AccountId, reason: &str) -> Result<Status> {
    let now = app.clock.now();
    let (owner, name) = (project.id.as_str(), id.as_str());
    let edited = app.store.edit(owner, name, now, |account: &mut Account| {
        if let Some(status) = account.status.after(Event::CredentialRejected) {
            account.set_status(status, Some(reason), now);
        }
        Ok::<_, Error>(account.status)
    });
    edited.await?.ok_or_else(|| errors::account_not_found(id))
}

/// Verifies values under an auth config, with its client and through its proxy, or without one.
pub(super) async fn verify_values(
    app: &App,
    project: &Project,
    config: Option<&Record<AuthConfig>>,
    release: &Release,
    mode: AuthMode,
    values: Values,
) -> Result<()> {
    let (values, proxy) = match config {
        Some(config) => (
            with_client(app, config, values).await?,
            auth_configs::net_proxy(app, config).await?,
        ),
        None => (values, None),
    };
    let check = CredentialCheck {
        project,
        release,
        mode,
        values: &values,
        proxy,
    };
    (app.verify_credential)(app, check).await
}
