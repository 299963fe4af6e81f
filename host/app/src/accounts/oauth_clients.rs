//! OAuth clients that this server creates itself: dynamic clients, registered at a provider (RFC
//! 7591), and clients described by a metadata document, whose id is the document's address on this
//! server (OAuth Client ID Metadata Document).
//!
//! One registration serves all accounts of an auth config, even if several servers start
//! connections at the same time: the first server claims the record of the registration, and the
//! others wait. The client is registered again when its secret expires, when the provider
//! no longer knows it, and when this server gets another address. An account keeps the client with
//! which it was connected, so that its tokens remain valid after a newer registration.

use std::{sync::Arc, time::Duration};

use manifest::{AuthMode, AuthScheme};
use oauth::{Client, Flow};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use store::{Batch, Collection, CommitError, Document, Erasure, Field, Kind, Query, Record, Time};
use url::Url;

use super::{
    TokenManager, Values, redirect::callback_url, refresh::POLL_INTERVAL, scheme::text,
    tokens::TokenOwner,
};
use crate::{
    App, Result,
    accounts::{
        auth_configs::{self, AuthConfig},
        errors,
    },
    catalog::LATEST,
    core::{
        clock::time_after,
        ids::{AuthConfigId, ProjectId},
        vault::{SealContext, Sealed},
    },
    projects::{self, Project},
    work::{Claimable, WorkState, erase_list},
};

pub(crate) static COLLECTION: Collection = Collection {
    name: "clients",
    erasure: Erasure::Project,
    fields: &[Field::new("auth_config", Kind::Text)],
};

/// Client values that are stored with an account.
pub(super) const ACCOUNT_VALUES: [&str; 3] = ["client_id", "client_secret", oauth::REGISTERED_AUTH];
/// Minimum remaining lifetime of a client secret for a new connection. The user returns later, and
/// tokens must be refreshed.
const MIN_SECRET_LIFETIME: Duration = Duration::from_secs(24 * 3_600);
/// Path prefix of metadata documents, followed by the id of the auth config.
const METADATA_PATH: &str = "/oauth/clients/";
/// Maximum number of registrations of one auth config that one batch deletes. Each combination of
/// registration endpoint and redirect URI has one.
const PURGE_BATCH_SIZE: u64 = 100;

/// A registered client, as stored. A claim is the right to register the client.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ClientRegistration {
    auth_config: AuthConfigId,
    /// Client id at the provider; absent before the registration.
    #[serde(default)]
    client_id: Option<String>,
    /// Registration response of the provider.
    #[serde(default)]
    answer: Option<Sealed<Values>>,
    /// Time at which the client secret expires.
    #[serde(default)]
    ends_at: Option<Time>,
    #[serde(flatten)]
    work: WorkState,
}

impl Document for ClientRegistration {
    const COLLECTION: &'static Collection = &COLLECTION;
}

impl Claimable for ClientRegistration {
    fn work(&mut self) -> &mut WorkState {
        &mut self.work
    }
}

pub(super) struct RegistrationRequest {
    pub project: ProjectId,
    pub auth_config: AuthConfigId,
    /// HTTP client for requests to the provider.
    pub net: net::Client,
    /// Scheme with all endpoints resolved.
    pub scheme: AuthScheme,
    /// Values of the account to be connected, which may fill in a part of the endpoint's address.
    pub values: Values,
    /// Redirect URI of the authorization requests of the client.
    pub redirect_uri: String,
    /// Name that the provider shows to users.
    pub name: String,
}

impl TokenManager {
    /// Returns the client with which accounts of an auth config are connected. Registers one if
    /// necessary.
    pub(super) async fn dynamic_client(
        self: &Arc<Self>,
        request: RegistrationRequest,
    ) -> Result<Values> {
        let registering = self.tasks.start(self.clone().register_under_lease(request));
        match tokio::time::timeout(self.settings.wait_timeout, registering).await {
            Ok(Ok(done)) => done,
            Ok(Err(_)) => Err(errors::internal(
                "the task that registers a client has panicked",
            )),
            Err(_) => Err(errors::unavailable(
                "the provider has not registered a client in time",
            )),
        }
    }

    async fn register_under_lease(self: Arc<Self>, request: RegistrationRequest) -> Result<Values> {
        let project = request.project.as_str();
        let no_client = Client::default();
        let id = request.id();
        let mut checked = false;
        loop {
            let now = self.claims.now().await?;
            let flow = Flow {
                net: &request.net,
                now_ms: now.0,
                scheme: &request.scheme,
                client: &no_client,
                values: &request.values,
            };
            let Some(mut record) = self.store.get::<ClientRegistration>(project, &id).await? else {
                self.insert_registration(&request, &id, now).await?;
                continue;
            };
            if record.body.work.is_claimed(now) {
                tokio::time::sleep(POLL_INTERVAL).await;
                continue;
            }
            let min_end = time_after(now, MIN_SECRET_LIFETIME);
            let is_valid = record.body.ends_at.is_none_or(|end| end > min_end);
            if is_valid && let Some(answer) = &record.body.answer {
                let context = SealContext::of(&record, "answer");
                let client = self.vault.unseal(context, answer, now).await?;
                if checked || !flow.has_deleted_client(&client).await {
                    return Ok(account_values(&client));
                }
                // The result of the next registration is not checked again.
                checked = true;
                record.body.answer = None;
            }
            let Some(claim) = self.claims.take(record, self.settings.lease_ttl).await? else {
                continue;
            };
            let registering = flow.register(&request.name, &request.redirect_uri);
            let registered = claim.keep_to_end(registering).await;
            let answer = match &registered {
                Ok(client) => {
                    let context = SealContext::new::<ClientRegistration>(project, &id, "answer");
                    Some(self.vault.seal(context, client, now).await?)
                }
                Err(_) => None,
            };
            let ended = claim.end(claim.batch().await?, |record| {
                if let Ok(client) = &registered {
                    record.client_id = client.get("client_id").and_then(text);
                    record.ends_at = secret_expires_at(client);
                    record.answer = answer;
                }
            });
            match ended.await {
                // The lease had expired, so the client of the next lease holder is used.
                Err(CommitError::Stale) => continue,
                done => done?,
            }
            return Ok(account_values(&registered?));
        }
    }

    /// Inserts the record of a registration, unless another server has just created it.
    async fn insert_registration(
        &self,
        request: &RegistrationRequest,
        id: &str,
        now: Time,
    ) -> Result<()> {
        let body = ClientRegistration {
            auth_config: request.auth_config.clone(),
            client_id: None,
            answer: None,
            ends_at: None,
            work: WorkState::default(),
        };
        // The check prevents a registration from outliving an auth config that is deleted concurrently.
        let auth_config = &request.auth_config;
        let config = auth_configs::find(&self.store, &request.project, auth_config)
            .await?
            .ok_or_else(|| errors::auth_config_not_found(auth_config))?;
        let batch = Batch::at(now)
            .check(&config)
            .insert(request.project.as_str(), id, &body);
        match self.store.commit(batch).await {
            // If the auth config was changed, the caller tries again.
            Ok(()) | Err(CommitError::Stale | CommitError::Taken { .. }) => Ok(()),
            Err(cause) => Err(cause.into()),
        }
    }

    /// Deletes a client that the provider no longer knows, so that the next connection registers
    /// another one.
    pub(super) async fn delete_rejected_client(
        &self,
        owner: &TokenOwner,
        values: &Values,
    ) -> Result<()> {
        let Some(gone) = values.get("client_id").and_then(text) else {
            return Ok(());
        };
        let mut clients = self.clients(&owner.project, &owner.auth_config).await?;
        clients.retain(|client| client.body.client_id.as_ref() == Some(&gone));
        for client in clients {
            let batch = Batch::at(self.clock.now()).purge(&client);
            match self.store.commit(batch).await {
                // Another server is registering the client again.
                Ok(()) | Err(CommitError::Stale) => {}
                Err(cause) => return Err(cause.into()),
            }
        }
        Ok(())
    }

    async fn clients(
        &self,
        project: &ProjectId,
        config: &AuthConfigId,
    ) -> Result<Vec<Record<ClientRegistration>>> {
        let query = Query::for_project(project.as_str())
            .is("auth_config", config.as_str())
            .page(0, PURGE_BATCH_SIZE);
        Ok(self.store.find(&query).await?.records)
    }
}

/// Adds the deletion of an auth config's registrations to the batch that deletes the config.
pub(crate) async fn purge_clients(
    app: &App,
    project: &Project,
    config: &AuthConfigId,
    batch: Batch,
) -> Result<Batch> {
    let clients = app.accounts.clients(&project.id, config).await?;
    Ok(clients.iter().fold(batch, Batch::purge))
}

/// Deletes the registrations of a deleted auth config.
pub(crate) async fn delete_clients(
    app: &App,
    project: &Project,
    config: &AuthConfigId,
) -> Result<()> {
    // A registration in progress makes a batch stale, and the registrations are read again.
    let clients = Query::for_project(project.id.as_str()).is("auth_config", config.as_str());
    erase_list(app, &COLLECTION, clients, PURGE_BATCH_SIZE).await
}

/// Returns the address of the metadata document of an auth config's client, which is also the
/// client id. Fails if providers cannot read that address.
pub(super) fn client_metadata_url(app: &App, config: &str) -> Result<String> {
    let url = format!("{}{METADATA_PATH}{config}", app.base_url());
    if is_readable_by_providers(&url) {
        return Ok(url);
    }
    Err(errors::account_refused(format!(
        "providers read the client metadata document at {url} and require https: set `public_url` to the public https address of this server"
    )))
}

/// Returns true if providers read metadata documents at an address. A loopback address is allowed
/// for local tests (RFC 8252, section 7.3).
fn is_readable_by_providers(url: &str) -> bool {
    Url::parse(url).is_ok_and(|url| {
        url.scheme() == "https"
            || matches!(url.host_str(), Some("127.0.0.1" | "[::1]" | "localhost"))
    })
}

/// Returns the metadata document of a client. The document is public. Fails with
/// [`errors::AUTH_CONFIG_NOT_FOUND`] unless an enabled auth config with that id uses a client
/// metadata document.
pub async fn client_metadata(app: &App, id: &AuthConfigId) -> Result<Map<String, Value>> {
    let unknown = || errors::auth_config_not_found(id);
    let config = app
        .store
        .lookup::<AuthConfig>(id.as_str())
        .await?
        .filter(|config| {
            config.body.scheme == AuthMode::CimdOauth
                && config.body.status == auth_configs::Status::Enabled
        })
        .ok_or_else(unknown)?;
    let project = projects::lookup(app, &ProjectId::parse(&config.project)?)
        .await
        .map_err(|_| unknown())?;
    let release = app
        .catalog
        .release(&config.body.toolkit, LATEST)
        .map_err(|_| unknown())?;
    let oauth2 = release
        .scheme(AuthMode::CimdOauth)
        .and_then(|scheme| scheme.oauth2.as_ref())
        .ok_or_else(unknown)?;
    let context = app.accounts.client_context(&config).await?;
    let redirect_uri = context.redirect_uri.unwrap_or_else(|| callback_url(app));
    let mut metadata = oauth::metadata(oauth2, project.shown_name(), &redirect_uri);
    let client_id = client_metadata_url(app, &config.id)?;
    metadata.insert("client_id".to_owned(), client_id.into());
    Ok(metadata)
}

impl RegistrationRequest {
    /// Returns the id of the registration's record. The id differs by auth config, registration
    /// endpoint and redirect URI.
    fn id(&self) -> String {
        let oauth2 = self.scheme.oauth2.as_ref();
        let template = oauth2
            .and_then(|oauth2| oauth2.register.as_ref()?.url.as_deref())
            .unwrap_or_default();
        let endpoint = manifest::fill(template, &|name: &str| self.values.get(name).and_then(text))
            .unwrap_or_default();
        let parts = [self.auth_config.as_str(), &endpoint, &self.redirect_uri]
            .map(|part| hex::encode(Sha256::digest(part)));
        hex::encode(Sha256::digest(parts.concat()))
    }
}

fn account_values(client: &Values) -> Values {
    ACCOUNT_VALUES
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), client.get(*name)?.clone())))
        .collect()
}

/// Expiry in seconds since the Unix epoch; zero means never (RFC 7591, section 3.2.1).
fn secret_expires_at(client: &Values) -> Option<Time> {
    let seconds = client
        .get("client_secret_expires_at")?
        .as_i64()
        .filter(|seconds| *seconds > 0)?;
    client
        .contains_key("client_secret")
        .then(|| Time(seconds.saturating_mul(1_000)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_metadata_needs_https_or_loopback() {
        for (url, read) in [
            ("https://tools.example.com/oauth/clients/ac_1", true),
            ("http://127.0.0.1:8080/oauth/clients/ac_1", true),
            ("http://tools.example.com/oauth/clients/ac_1", false),
            ("/oauth/clients/ac_1", false),
        ] {
            assert_eq!(is_readable_by_providers(url), read, "{url}");
        }
    }

    #[test]
    fn client_secret_expiry_of_zero_means_never() {
        let ends = |answer: Value| secret_expires_at(answer.as_object().unwrap());
        assert_eq!(
            ends(serde_json::json!({ "client_secret": "s", "client_secret_expires_at": 7 })),
            Some(Time(7_000))
        );
        assert_eq!(
            ends(serde_json::json!({ "client_secret": "s", "client_secret_expires_at": 0 })),
            None
        );
        assert_eq!(
            ends(serde_json::json!({ "client_id": "c", "client_secret_expires_at": 7 })),
            None
        );
    }
}
