//! The operator's OAuth apps: the clients with which service-managed auth configs connect accounts.
//!
//! A provider identifies the operator by a client id and a secret. Both belong to the installation,
//! not to a project: projects use them but can neither read nor change them. They are set through
//! the API, or from the settings at every start.

use manifest::AuthMode;
use serde::{Deserialize, Serialize};
use store::{Batch, Collection, Document, Erasure, Query, Record, Store};

use crate::{
    App, Error, Result,
    accounts::errors,
    catalog::{LATEST, Release},
    core::{
        AUDIT_LOG_TARGET, INSTALLATION_PROJECT,
        vault::{SealContext, Sealed, Vault},
    },
};

/// Collection that this file owns. The id of a record is the slug of its toolkit.
pub(crate) static COLLECTION: Collection = Collection {
    name: "oauth_apps",
    erasure: Erasure::Other("the operator removes them"),
    fields: &[],
};

/// Maximum length in bytes of a client id, a client secret, or a scope.
pub const MAX_TEXT_BYTES: usize = 2_048;
/// Maximum number of scopes of a client.
pub const MAX_SCOPES: usize = 200;

/// The operator's OAuth app at one provider, as stored.
#[derive(Debug, Serialize, Deserialize)]
pub struct OauthApp {
    /// Client id that the provider has issued.
    pub client_id: String,
    /// Scopes requested in every connection, in addition to the toolkit's own.
    #[serde(default)]
    pub scopes: Vec<String>,
    secret: Sealed<String>,
}

impl Document for OauthApp {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// OAuth app to be stored.
#[derive(Debug, Clone)]
pub struct NewOauthApp {
    /// Slug of the toolkit.
    pub toolkit: String,
    /// Client id that the provider has issued.
    pub client_id: String,
    /// Client secret that the provider has issued; empty for a client without a secret.
    pub client_secret: String,
    /// See [`OauthApp::scopes`].
    pub scopes: Vec<String>,
}

/// Stores the OAuth app of a toolkit and replaces the previous one. Fails if the toolkit is unknown
/// or does not offer OAuth 2.0, or a value is too long.
pub async fn set(app: &App, new: NewOauthApp) -> Result<Record<OauthApp>> {
    let release = app.catalog.release(&new.toolkit, LATEST)?;
    if release.scheme(AuthMode::Oauth2).is_none() {
        let toolkit = release.slug.to_string();
        let scheme = AuthMode::Oauth2.as_str().to_owned();
        return Err(errors::scheme_not_offered(toolkit, scheme));
    }
    store_app(
        app,
        NewOauthApp {
            toolkit: release.slug.to_string(),
            ..new
        },
    )
    .await
}

/// Stores an OAuth app from the settings, unless the same one is stored already. Its toolkit may be
/// published later. Fails if a value is too long.
pub async fn set_from_settings(app: &App, new: NewOauthApp) -> Result<()> {
    if let Some(old) = find(&app.store, &new.toolkit).await? {
        let same = old.body.client_id == new.client_id && old.body.scopes == new.scopes;
        if same && secret(&app.vault, &old, app.clock.now()).await? == new.client_secret {
            return Ok(());
        }
    }
    store_app(app, new).await.map(|_| ())
}

fn fits(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_TEXT_BYTES
}

fn check(new: &NewOauthApp) -> Result<()> {
    let secret_fits = new.client_secret.len() <= MAX_TEXT_BYTES;
    if !fits(&new.client_id)
        || !secret_fits
        || new.scopes.len() > MAX_SCOPES
        || !new.scopes.iter().all(|scope| fits(scope))
    {
        return Err(errors::invalid(format!(
            "client_id is required; client_id, client_secret and each scope have at most {MAX_TEXT_BYTES} bytes; at most {MAX_SCOPES} scopes"
        )));
    }
    Ok(())
}

async fn store_app(app: &App, new: NewOauthApp) -> Result<Record<OauthApp>> {
    check(&new)?;
    let slug = new.toolkit;
    let now = app.clock.now();
    let key = app.vault.key(COLLECTION.name, now).await?;
    let stored = app.store.change(&COLLECTION, &slug, || async {
        let secret = key.seal(
            SealContext::new::<OauthApp>(INSTALLATION_PROJECT, &slug, "secret"),
            &new.client_secret,
        )?;
        let body = OauthApp {
            client_id: new.client_id.clone(),
            scopes: new.scopes.clone(),
            secret,
        };
        let batch = match find(&app.store, &slug).await? {
            Some(old) => Batch::at(now).update(&Record { body, ..old }),
            None => Batch::at(now).insert(INSTALLATION_PROJECT, &slug, &body),
        };
        Ok::<_, Error>((batch, ()))
    });
    stored.await?;
    tracing::info!(target: AUDIT_LOG_TARGET, toolkit = slug, "an OAuth app was stored");
    find(&app.store, &slug)
        .await?
        .ok_or_else(|| errors::oauth_app_not_found(slug))
}

/// Lists all OAuth apps, sorted by slug.
pub async fn list(app: &App) -> Result<Vec<Record<OauthApp>>> {
    let query = Query::for_project(INSTALLATION_PROJECT);
    let mut all = app.store.find::<OauthApp>(&query).await?.records;
    all.sort_by(|one, other| one.id.cmp(&other.id));
    Ok(all)
}

/// Deletes an OAuth app. Accounts that were connected with it work until their tokens expire. Fails
/// if the OAuth app does not exist.
pub async fn remove(app: &App, toolkit: &str) -> Result<()> {
    let slug = toolkit.to_ascii_lowercase();
    let removed = app.store.change(&COLLECTION, &slug, || async {
        let record = find(&app.store, &slug)
            .await?
            .ok_or_else(|| errors::oauth_app_not_found(crate::core::shown_slug(toolkit)))?;
        Ok((Batch::at(app.clock.now()).purge(&record), ()))
    });
    removed.await?;
    tracing::info!(target: AUDIT_LOG_TARGET, toolkit = slug, "an OAuth app was removed");
    Ok(())
}

pub(super) async fn find(store: &Store, toolkit: &str) -> Result<Option<Record<OauthApp>>> {
    Ok(store.get(INSTALLATION_PROJECT, toolkit).await?)
}

/// Returns true if the operator has an OAuth app for the toolkit's OAuth 2.0 scheme. Fails if the
/// store cannot be read.
pub(crate) async fn is_managed(app: &App, release: &Release) -> Result<bool> {
    Ok(release.scheme(AuthMode::Oauth2).is_some()
        && find(&app.store, &release.slug).await?.is_some())
}

/// Decrypts the secret of an OAuth app.
pub(super) async fn secret(
    vault: &Vault,
    record: &Record<OauthApp>,
    now: store::Time,
) -> Result<String> {
    vault
        .key(COLLECTION.name, now)
        .await?
        .open(SealContext::of(record, "secret"), &record.body.secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_an_app_are_limited() {
        for (bytes, scopes, is_accepted) in [
            (MAX_TEXT_BYTES, MAX_SCOPES, true),
            (MAX_TEXT_BYTES + 1, MAX_SCOPES, false),
            (MAX_TEXT_BYTES, MAX_SCOPES + 1, false),
        ] {
            let new = NewOauthApp {
                toolkit: "kit".to_owned(),
                client_id: "i".repeat(bytes),
                client_secret: String::new(),
                scopes: vec!["read".to_owned(); scopes],
            };
            assert_eq!(check(&new).is_ok(), is_accepted, "{bytes}, {scopes}");
        }
    }
}
