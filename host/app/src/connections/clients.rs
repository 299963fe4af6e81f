//! OAuth clients that this server creates itself: dynamic clients, registered at a provider (RFC
//! 7591), and clients described by a metadata document, whose id is the document's address on this
//! server (OAuth Client ID Metadata Document).
//!
//! One registration serves all accounts of an auth config, even if several servers start
//! connections at the same time: the first server takes a lease in the record of the registration,
//! and the others wait. The client is registered again when its secret expires, when the provider
//! no longer knows it, and when this server gets another address. An account keeps the client with
//! which it was connected, so that its tokens remain valid after a newer registration.

use std::{sync::Arc, time::Duration};

use manifest::{AuthMode, AuthScheme};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use store::{Batch, Collection, CommitError, Document, Field, Kind, Query, Record, Time};
use url::Url;

use super::{
    Keeper, Values,
    flow::{come_back, unbegun},
    protocol::{self, Client, Flow},
    refresh::{LOOK, after},
    scheme::text,
};
use crate::{
    App, Error, Result,
    auth_configs::{self, AuthConfig},
    catalog::LATEST,
    ids::{AuthConfigId, ProjectId},
    projects::{self, Project},
    vault::{Place, Sealed},
};

/// Collection that this file owns.
pub(crate) static COLLECTION: Collection = Collection {
    name: "clients",
    fields: &[Field::new("auth_config", Kind::Text)],
};

/// Client values that are stored with an account.
pub(super) const KEPT: [&str; 2] = ["client_id", "client_secret"];
/// Minimum remaining lifetime of a client secret for a new connection. The user returns later, and
/// tokens must be refreshed.
const SOON: Duration = Duration::from_secs(24 * 3_600);
/// Path prefix of metadata documents, followed by the id of the auth config.
const DESCRIBED: &str = "/oauth/clients/";
/// Maximum number of registrations of one auth config that one batch deletes. Each combination of
/// registration endpoint and redirect URI has one.
const MOST: u64 = 100;

/// A registered client, as stored.
#[derive(Debug, Serialize, Deserialize)]
struct Registered {
    /// Auth config of the client.
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
    /// End of the lease under which a server registers the client.
    #[serde(default)]
    leased_until: Option<Time>,
}

impl Document for Registered {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// Input of a registration.
pub(super) struct Registration {
    pub project: ProjectId,
    pub auth_config: AuthConfigId,
    /// HTTP client for requests to the provider.
    pub net: net::Client,
    /// Scheme with all endpoints resolved.
    pub scheme: AuthScheme,
    /// Values of the account to be connected, which may fill in a part of the endpoint's address.
    pub values: Values,
    pub redirect_uri: String,
    /// Name that the provider shows to users.
    pub name: String,
}

impl Keeper {
    /// Returns the client with which accounts of an auth config are connected. Registers one if
    /// necessary.
    pub(super) async fn client(self: &Arc<Self>, wanted: Registration) -> Result<Values> {
        #[expect(
            clippy::disallowed_methods,
            reason = "a registration must not be lost with whoever asked for it; it is awaited"
        )]
        let registering = tokio::spawn(self.clone().registered(wanted));
        match tokio::time::timeout(self.settings.wait, registering).await {
            Ok(Ok(done)) => done,
            Ok(Err(_)) => Err(Error::Internal("a registration has panicked".into())),
            Err(_) => Err(Error::Unavailable(
                "the application takes long to register a client".into(),
            )),
        }
    }

    async fn registered(self: Arc<Self>, wanted: Registration) -> Result<Values> {
        let project = wanted.project.as_str();
        let nobody = Client::default();
        let (id, mut looked) = (wanted.id(), false);
        loop {
            let now = self.now().await?;
            let (scheme, values) = (&wanted.scheme, &wanted.values);
            let flow = Flow {
                net: &wanted.net,
                now,
                scheme,
                client: &nobody,
                values,
            };
            let Some(mut record) = self.store.get::<Registered>(project, &id).await? else {
                let body = Registered {
                    auth_config: wanted.auth_config.clone(),
                    client_id: None,
                    answer: None,
                    ends_at: None,
                    leased_until: None,
                };
                // The check prevents a registration from outliving an auth config that is deleted
                // at the same moment.
                let config =
                    auth_configs::find_in(&self.store, &wanted.project, &wanted.auth_config)
                        .await?;
                let config = config
                    .ok_or_else(|| Error::AuthConfigNotFound(wanted.auth_config.to_string()))?;
                match self
                    .store
                    .commit(Batch::at(now).check(&config).insert(project, &id, &body))
                    .await
                {
                    Ok(()) | Err(CommitError::Stale | CommitError::Taken { .. }) => continue,
                    Err(cause) => return Err(cause.into()),
                }
            };
            if record.body.leased_until.is_some_and(|until| until > now) {
                tokio::time::sleep(LOOK).await;
                continue;
            }
            if let Some(answer) = &record.body.answer
                && record.body.ends_at.is_none_or(|end| end > after(now, SOON))
            {
                let client = self
                    .vault
                    .key(project, now)
                    .await?
                    .open(place(&wanted.project, &id), answer)?;
                if looked || !flow.has_forgotten(&client).await {
                    return Ok(kept(&client));
                }
                // The result of the next registration is not checked again.
                looked = true;
                record.body.answer = None;
            }
            record.body.leased_until = Some(after(now, self.settings.lease));
            match self.store.commit(Batch::at(now).update(&record)).await {
                Ok(()) => record.revision += 1,
                Err(CommitError::Stale) => continue,
                Err(cause) => return Err(cause.into()),
            }
            let registered = flow.register(&wanted.name, &wanted.redirect_uri).await;
            record.body.leased_until = None;
            if let Ok(client) = &registered {
                record.body.client_id = client.get("client_id").and_then(text);
                record.body.ends_at = ends_at(client);
                let sealed = self
                    .vault
                    .key(project, now)
                    .await?
                    .seal(place(&wanted.project, &id), client)?;
                record.body.answer = Some(sealed);
            }
            match self
                .store
                .commit(Batch::at(self.now().await?).update(&record))
                .await
            {
                // The lease had expired, so the client of the next lease holder is used.
                Err(CommitError::Stale) => continue,
                done => done?,
            }
            return registered.map(|client| kept(&client)).map_err(unbegun);
        }
    }

    /// Deletes a client that the provider no longer knows, so that the next connection registers
    /// another one.
    pub(super) async fn forget_client(
        &self,
        project: &ProjectId,
        config: &AuthConfigId,
        values: &Values,
    ) -> Result<()> {
        let Some(gone) = values.get("client_id").and_then(text) else {
            return Ok(());
        };
        for record in self
            .clients(project, config)
            .await?
            .into_iter()
            .filter(|it| it.body.client_id.as_ref() == Some(&gone))
        {
            match self
                .store
                .commit(Batch::at(self.clock.now()).purge(&record))
                .await
            {
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
    ) -> Result<Vec<Record<Registered>>> {
        let query = Query::for_project(project.as_str())
            .is("auth_config", config.as_str())
            .page(0, MOST);
        Ok(self.store.find(&query).await?.records)
    }
}

/// Adds the deletion of an auth config's registrations to the batch that deletes the config.
pub(crate) async fn forgotten(
    app: &App,
    project: &Project,
    config: &AuthConfigId,
    batch: Batch,
) -> Result<Batch> {
    let clients = app.accounts.clients(&project.id, config).await?;
    Ok(clients.iter().fold(batch, Batch::purge))
}

/// Deletes the registrations of an auth config that is already deleted.
pub(crate) async fn forget_clients(
    app: &App,
    project: &Project,
    config: &AuthConfigId,
) -> Result<()> {
    loop {
        let clients = app.accounts.clients(&project.id, config).await?;
        if clients.is_empty() {
            return Ok(());
        }
        match app
            .store
            .commit(
                clients
                    .iter()
                    .fold(Batch::at(app.clock.now()), Batch::purge),
            )
            .await
        {
            // A registration was in progress: the next iteration reads the rest.
            Ok(()) | Err(CommitError::Stale) => tokio::task::yield_now().await,
            Err(cause) => return Err(cause.into()),
        }
    }
}

/// Returns the address of the metadata document of an auth config's client, which is also the
/// client id.
///
/// # Errors
/// Fails if providers cannot read that address.
pub(super) fn described_at(app: &App, config: &str) -> Result<String> {
    let url = format!("{}{DESCRIBED}{config}", app.address());
    if is_read(&url) {
        return Ok(url);
    }
    Err(Error::AccountRefused(format!(
        "applications read at {url} who asks, and take https alone: set `public_url` to the address at which this server is reached"
    )))
}

/// Returns true if providers read metadata documents at an address. A loopback address is allowed
/// for local tests (RFC 8252, section 7.3).
fn is_read(url: &str) -> bool {
    let own = |url: &Url| matches!(url.host_str(), Some("127.0.0.1" | "[::1]" | "localhost"));
    Url::parse(url).is_ok_and(|url| url.scheme() == "https" || own(&url))
}

/// Returns the metadata document of a client. The document is public.
///
/// # Errors
/// Fails with [`Error::AuthConfigNotFound`] unless an enabled auth config with that id uses a
/// client metadata document.
pub async fn described(app: &App, id: &AuthConfigId) -> Result<Map<String, Value>> {
    let unknown = || Error::AuthConfigNotFound(id.to_string());
    let found = app.store.lookup::<AuthConfig>(id.as_str()).await?;
    let is_open = |config: &Record<AuthConfig>| {
        config.body.scheme == AuthMode::CimdOauth
            && config.body.status == auth_configs::Status::Enabled
    };
    let config = found.filter(is_open).ok_or_else(unknown)?;
    let project = projects::lookup(app, &ProjectId::parse(&config.project)?)
        .await
        .map_err(|_| unknown())?;
    let release = app
        .catalog
        .release(&config.body.toolkit, LATEST)
        .map_err(|_| unknown())?;
    let about = release
        .scheme(AuthMode::CimdOauth)
        .and_then(|scheme| scheme.oauth2.as_ref())
        .ok_or_else(unknown)?;
    let redirect_uri = app
        .accounts
        .standing(&project.id, &config)
        .await?
        .redirect_uri;
    let redirect_uri = redirect_uri.unwrap_or_else(|| come_back(app));
    let mut metadata = protocol::metadata(about, project.shown_name(), &redirect_uri);
    metadata.insert(
        "client_id".to_owned(),
        described_at(app, &config.id)?.into(),
    );
    Ok(metadata)
}

impl Registration {
    /// Returns the id of the registration's record. The id differs by auth config, registration
    /// endpoint and redirect URI.
    fn id(&self) -> String {
        let about = self.scheme.oauth2.as_ref();
        let at = about
            .and_then(|about| about.register.as_ref()?.url.as_deref())
            .unwrap_or_default();
        let at = manifest::fill(at, &|name: &str| self.values.get(name).and_then(text))
            .unwrap_or_default();
        let parts = [self.auth_config.as_str(), &at, &self.redirect_uri]
            .map(|part| hex::encode(Sha256::digest(part)));
        hex::encode(Sha256::digest(parts.concat()))
    }
}

fn kept(client: &Values) -> Values {
    KEPT.iter()
        .filter_map(|name| Some(((*name).to_owned(), client.get(*name)?.clone())))
        .collect()
}

/// Expiry in seconds since the Unix epoch; zero means never (RFC 7591, section 3.2.1).
fn ends_at(client: &Values) -> Option<Time> {
    let seconds = client
        .get("client_secret_expires_at")?
        .as_i64()
        .filter(|seconds| *seconds > 0)?;
    client
        .contains_key("client_secret")
        .then(|| Time(seconds.saturating_mul(1_000)))
}

fn place<'a>(project: &'a ProjectId, id: &'a str) -> Place<'a> {
    Place {
        collection: COLLECTION.name,
        project: project.as_str(),
        id,
        field: "answer",
    }
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
            assert_eq!(is_read(url), read, "{url}");
        }
    }

    #[test]
    fn client_secret_expiry_of_zero_means_never() {
        let ends = |answer: Value| ends_at(answer.as_object().unwrap());
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
