//! Clients that this server makes itself: registered at an application (RFC 7591), or described at an address of this server's,
//! which is the client's id (OAuth Client ID Metadata Document).
//!
//! One registration serves all accounts of an auth config, however many begin at once on however many servers: whoever finds
//! none takes a lease in the record where it will lie, and the others wait. It is made anew when its secret ends, when the
//! application says that it does not know it any more, and when this server is reached at another address. An account keeps the
//! client it was connected with, so that its tokens live on beside a newer one.

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

/// The collection this file owns.
pub(crate) static COLLECTION: Collection =
    Collection { name: "clients", fields: &[Field::new("auth_config", Kind::Text)] };

/// What an account keeps of the client that it is connected with.
pub(super) const KEPT: [&str; 2] = ["client_id", "client_secret"];
/// A secret that ends so soon is not begun with: the person comes back later, and tokens are to be renewed.
const SOON: Duration = Duration::from_secs(24 * 3_600);
/// Begins the addresses that are clients' ids, before the id of an auth config.
const DESCRIBED: &str = "/oauth/clients/";
/// Registrations of one auth config that are forgotten at once: one for each address of the application and of this server.
const MOST: u64 = 100;

/// A registered client, as stored.
#[derive(Debug, Serialize, Deserialize)]
struct Registered {
    /// Whose.
    auth_config: AuthConfigId,
    /// Its name at the application; none before it is registered.
    #[serde(default)]
    client_id: Option<String>,
    /// What the application answered.
    #[serde(default)]
    answer: Option<Sealed<Values>>,
    /// When its secret ends.
    #[serde(default)]
    ends_at: Option<Time>,
    /// Until then another server may be at it.
    #[serde(default)]
    leased_until: Option<Time>,
}

impl Document for Registered {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// What a registration is made of.
pub(super) struct Registration {
    pub project: ProjectId,
    pub auth_config: AuthConfigId,
    /// The way out.
    pub net: net::Client,
    /// With all addresses.
    pub scheme: AuthScheme,
    /// Of the account that begins: a part of the address may be among them.
    pub values: Values,
    pub redirect_uri: String,
    /// Shown to people at the application.
    pub name: String,
}

impl Keeper {
    /// The client with which accounts of an auth config are connected: the one that there is, or else a new one.
    pub(super) async fn client(self: &Arc<Self>, wanted: Registration) -> Result<Values> {
        #[expect(
            clippy::disallowed_methods,
            reason = "a registration must not be lost with whoever asked for it; it is awaited"
        )]
        let registering = tokio::spawn(self.clone().registered(wanted));
        match tokio::time::timeout(self.settings.wait, registering).await {
            Ok(Ok(done)) => done,
            Ok(Err(_)) => Err(Error::Internal("a registration has panicked".into())),
            Err(_) => Err(Error::Unavailable("the application takes long to register a client".into())),
        }
    }

    async fn registered(self: Arc<Self>, wanted: Registration) -> Result<Values> {
        let project = wanted.project.as_str();
        let nobody = Client::default();
        let (id, mut looked) = (wanted.id(), false);
        loop {
            let now = self.now().await?;
            let (scheme, values) = (&wanted.scheme, &wanted.values);
            let flow = Flow { net: &wanted.net, now, scheme, client: &nobody, values };
            let Some(mut record) = self.store.get::<Registered>(project, &id).await? else {
                let body = Registered {
                    auth_config: wanted.auth_config.clone(),
                    client_id: None,
                    answer: None,
                    ends_at: None,
                    leased_until: None,
                };
                // None is left behind by an auth config that is deleted at the same moment.
                let config = auth_configs::find_in(&self.store, &wanted.project, &wanted.auth_config).await?;
                let config = config.ok_or_else(|| Error::AuthConfigNotFound(wanted.auth_config.to_string()))?;
                match self.store.commit(Batch::at(now).check(&config).insert(project, &id, &body)).await {
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
                let client = self.vault.key(project, now).await?.open(place(&wanted.project, &id), answer)?;
                if looked || !flow.has_forgotten(&client).await {
                    return Ok(kept(&client));
                }
                // Whoever registers next is believed.
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
                let sealed = self.vault.key(project, now).await?.seal(place(&wanted.project, &id), client)?;
                record.body.answer = Some(sealed);
            }
            match self.store.commit(Batch::at(self.now().await?).update(&record)).await {
                // A lease that was too old: whoever came next has another client, which counts.
                Err(CommitError::Stale) => continue,
                done => done?,
            }
            return registered.map(|client| kept(&client)).map_err(unbegun);
        }
    }

    /// Forgets a client that the application does not know any more, so that the next connection registers another.
    pub(super) async fn forget_client(
        &self,
        project: &ProjectId,
        config: &AuthConfigId,
        values: &Values,
    ) -> Result<()> {
        let Some(gone) = values.get("client_id").and_then(text) else { return Ok(()) };
        for record in
            self.clients(project, config).await?.into_iter().filter(|it| it.body.client_id.as_ref() == Some(&gone))
        {
            match self.store.commit(Batch::at(self.clock.now()).purge(&record)).await {
                // Somebody registers anew.
                Ok(()) | Err(CommitError::Stale) => {}
                Err(cause) => return Err(cause.into()),
            }
        }
        Ok(())
    }

    async fn clients(&self, project: &ProjectId, config: &AuthConfigId) -> Result<Vec<Record<Registered>>> {
        let query = Query::of(project.as_str()).is("auth_config", config.as_str()).page(0, MOST);
        Ok(self.store.find(&query).await?.records)
    }
}

/// Erases the registrations of an auth config together with it.
pub(crate) async fn forgotten(app: &App, project: &Project, config: &AuthConfigId, batch: Batch) -> Result<Batch> {
    let clients = app.accounts.clients(&project.id, config).await?;
    Ok(clients.iter().fold(batch, Batch::purge))
}

/// Erases the registrations of an auth config that is gone.
pub(crate) async fn forget_clients(app: &App, project: &Project, config: &AuthConfigId) -> Result<()> {
    loop {
        let clients = app.accounts.clients(&project.id, config).await?;
        if clients.is_empty() {
            return Ok(());
        }
        match app.store.commit(clients.iter().fold(Batch::at(app.clock.now()), Batch::purge)).await {
            // One was being registered: the next look shows what is left.
            Ok(()) | Err(CommitError::Stale) => tokio::task::yield_now().await,
            Err(cause) => return Err(cause.into()),
        }
    }
}

/// Where a client is described whose id is that address.
///
/// # Errors
/// When nobody else could read it there.
pub(super) fn described_at(app: &App, config: &str) -> Result<String> {
    let url = format!("{}{DESCRIBED}{config}", app.address());
    if is_read(&url) {
        return Ok(url);
    }
    Err(Error::AccountRefused(format!(
        "applications read at {url} who asks, and take https alone: set `public_url` to the address at which this server is reached"
    )))
}

/// Whether applications read at an address. Loopback is for trying it out (RFC 8252, section 7.3).
fn is_read(url: &str) -> bool {
    let own = |url: &Url| matches!(url.host_str(), Some("127.0.0.1" | "[::1]" | "localhost"));
    Url::parse(url).is_ok_and(|url| url.scheme() == "https" || own(&url))
}

/// What a client says of itself at the address that is its id. Anybody may read it.
///
/// # Errors
/// [`Error::AuthConfigNotFound`] unless there is an enabled auth config of that id whose clients are described so.
pub async fn described(app: &App, id: &AuthConfigId) -> Result<Map<String, Value>> {
    let unknown = || Error::AuthConfigNotFound(id.to_string());
    let found = app.store.lookup::<AuthConfig>(id.as_str()).await?;
    let is_open = |config: &Record<AuthConfig>| {
        config.body.scheme == AuthMode::CimdOauth && config.body.status == auth_configs::Status::Enabled
    };
    let config = found.filter(is_open).ok_or_else(unknown)?;
    let project = projects::lookup(app, &ProjectId::parse(&config.project)?).await.map_err(|_| unknown())?;
    let release = app.catalog.release(&config.body.toolkit, LATEST).map_err(|_| unknown())?;
    let about = release.scheme(AuthMode::CimdOauth).and_then(|scheme| scheme.oauth2.as_ref()).ok_or_else(unknown)?;
    let redirect_uri = app.accounts.standing(&project.id, &config).await?.redirect_uri;
    let redirect_uri = redirect_uri.unwrap_or_else(|| come_back(app));
    let mut metadata = protocol::metadata(about, project.shown_name(), &redirect_uri);
    metadata.insert("client_id".to_owned(), described_at(app, &config.id)?.into());
    Ok(metadata)
}

impl Registration {
    /// The record it lies in: one for each place to register at, and to come back to.
    fn id(&self) -> String {
        let about = self.scheme.oauth2.as_ref();
        let at = about.and_then(|about| about.register.as_ref()?.url.as_deref()).unwrap_or_default();
        let at = manifest::fill(at, &|name: &str| self.values.get(name).and_then(text)).unwrap_or_default();
        let parts = [self.auth_config.as_str(), &at, &self.redirect_uri].map(|part| hex::encode(Sha256::digest(part)));
        hex::encode(Sha256::digest(parts.concat()))
    }
}

fn kept(client: &Values) -> Values {
    KEPT.iter().filter_map(|name| Some(((*name).to_owned(), client.get(*name)?.clone()))).collect()
}

/// Seconds since 1970; zero for never (RFC 7591, section 3.2.1).
fn ends_at(client: &Values) -> Option<Time> {
    let seconds = client.get("client_secret_expires_at")?.as_i64().filter(|seconds| *seconds > 0)?;
    client.contains_key("client_secret").then(|| Time(seconds.saturating_mul(1_000)))
}

fn place<'a>(project: &'a ProjectId, id: &'a str) -> Place<'a> {
    Place { collection: COLLECTION.name, project: project.as_str(), id, field: "answer" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn applications_read_over_https_and_on_their_own_machine() {
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
    fn a_secret_ends_when_its_application_says_so_and_never_at_zero() {
        let ends = |answer: Value| ends_at(answer.as_object().unwrap());
        assert_eq!(ends(serde_json::json!({ "client_secret": "s", "client_secret_expires_at": 7 })), Some(Time(7_000)));
        assert_eq!(ends(serde_json::json!({ "client_secret": "s", "client_secret_expires_at": 0 })), None);
        assert_eq!(ends(serde_json::json!({ "client_id": "c", "client_secret_expires_at": 7 })), None);
    }
}
