//! Auth configs: settings with which a project connects accounts of one toolkit.
//!
//! A disabled auth config starts no new connections and appears in lists only on request. A deleted
//! auth config no longer exists. Accounts that were connected with it stay visible but can no
//! longer be used.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use manifest::{AuthMode, AuthScheme, Sign};
use oauth::Client;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::{Batch, Collection, Document, Field, Kind, Listed, Query, Record, Store, Time, Window};
use uuid::Uuid;

use crate::{
    App, Error, Result,
    accounts::{self, Account, oauth_apps},
    catalog::{LATEST, Release},
    core::{
        ids::{self, AuthConfigId, ProjectId},
        vault::{SealContext, Sealed, Vault},
    },
    projects::{self, Project},
};

/// Collection that this module owns.
pub(crate) static COLLECTION: Collection = Collection {
    name: "auth_configs",
    fields: &[
        Field::new("toolkit", Kind::Text),
        Field::new("status", Kind::Text),
        Field::new("managed", Kind::Text),
        Field::new("folded", Kind::Text),
        Field::unique("uuid", Kind::Text),
    ],
};

/// An auth config, as stored.
#[derive(Debug, Serialize, Deserialize)]
pub struct AuthConfig {
    /// Display name.
    pub name: String,
    /// Name and id in lower case, for search.
    folded: String,
    /// Slug of the toolkit.
    pub toolkit: String,
    /// Auth scheme with which accounts are connected.
    pub scheme: AuthMode,
    /// True if the operator's OAuth app is used.
    pub managed: bool,
    /// Status; it decides whether new connections may start.
    pub status: Status,
    /// Legacy id, for older clients.
    pub uuid: Uuid,
    /// Tools to which the accounts are restricted; empty for no restriction.
    #[serde(default)]
    pub restrict_to: Vec<String>,
    /// Tools that may run with the accounts; empty for all.
    #[serde(default)]
    pub tools_for_execution: Vec<String>,
    /// Tools whose scopes are requested in new connections.
    #[serde(default)]
    pub tools_for_connection: Vec<String>,
    /// True if sessions may use the auth config.
    #[serde(default)]
    pub in_sessions: bool,
    credentials: Sealed<Map<String, Value>>,
    shared: Sealed<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proxy: Option<Sealed<Proxy>>,
}

impl Document for AuthConfig {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// Status of an auth config.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    /// New connections may start.
    Enabled,
    /// New connections may not start.
    Disabled,
}

impl Status {
    /// Returns the name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enabled => "ENABLED",
            Self::Disabled => "DISABLED",
        }
    }
}

/// Proxy for requests to the provider: tool requests, proxy requests of callers, and token
/// requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proxy {
    /// Address of the proxy: `http://host:port` or `https://host:port`.
    pub url: String,
    /// Credential of the proxy: `user:password`, a bearer token, or a complete value of
    /// `proxy-authorization` with its scheme.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl Proxy {
    /// Builds the proxy with its `proxy-authorization` value (RFC 9110, section 11.7.2; RFC 7617;
    /// RFC 6750).
    fn to_net_proxy(&self) -> Result<net::Proxy> {
        let authorization = self.key.as_deref().map(|key| match key {
            whole if whole.contains(' ') => whole.to_owned(),
            pair if pair.contains(':') => format!("Basic {}", BASE64.encode(pair)),
            token => format!("Bearer {token}"),
        });
        net::Proxy::new(&self.url, authorization.as_deref())
            .map_err(|cause| Error::invalid(format!("proxy_config: {cause}")))
    }
}

/// Secret parts of an auth config, decrypted.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Credentials {
    /// Client credentials under scheme-specific names, `scopes`, and `user_scopes`.
    pub own: Map<String, Value>,
    /// Values that each account inherits unless it sets its own.
    pub shared: Map<String, Value>,
    /// Proxy for requests to the provider; none for direct connections.
    pub proxy: Option<Proxy>,
}

/// Request to create an auth config.
#[derive(Debug, Default)]
pub struct NewAuthConfig {
    /// Slug of the toolkit.
    pub toolkit: String,
    /// Name of the scheme; absent for a service-managed auth config.
    pub scheme: Option<String>,
    /// Name; absent for a name generated from the toolkit's slug.
    pub name: Option<String>,
    /// Secret parts.
    pub credentials: Credentials,
    /// See [`AuthConfig::restrict_to`].
    pub restrict_to: Vec<String>,
    /// See [`AuthConfig::tools_for_execution`].
    pub tools_for_execution: Vec<String>,
    /// See [`AuthConfig::tools_for_connection`].
    pub tools_for_connection: Vec<String>,
    /// See [`AuthConfig::in_sessions`].
    pub in_sessions: bool,
}

/// Filter for lists of auth configs. Empty fields do not filter.
#[derive(Debug, Default)]
pub struct Filter {
    /// Slugs of toolkits.
    pub toolkits: Vec<String>,
    /// Service-managed or custom auth configs only.
    pub managed: Option<bool>,
    /// True to include disabled auth configs.
    pub disabled: bool,
    /// Auth configs in this status only.
    pub status: Option<Status>,
    /// Part of the name or id.
    pub search: String,
    /// Latest time of creation.
    pub until: Option<Time>,
}

/// Creates an auth config.
///
/// # Errors
/// Fails if the toolkit is unknown or does not offer the scheme, credentials are missing or
/// invalid, or the store refuses.
pub async fn create(
    app: &App,
    project: &Project,
    request: NewAuthConfig,
) -> Result<Record<AuthConfig>> {
    let release = app.catalog.release(&request.toolkit, LATEST)?;
    let managed = request.scheme.is_none();
    let scheme = match request.scheme {
        Some(name) => offered_scheme(&release, &name)?,
        None if oauth_apps::is_managed(app, &release).await? => AuthMode::Oauth2,
        None => return Err(Error::NoManagedAuth(release.slug.to_string())),
    };
    check_client(
        scheme,
        release.scheme(scheme),
        managed,
        &request.credentials.own,
    )?;
    request
        .credentials
        .proxy
        .as_ref()
        .map(Proxy::to_net_proxy)
        .transpose()?;
    let id = AuthConfigId::random();
    let now = app.clock.now();
    let name = match request
        .name
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
    {
        Some(name) => checked_name(name)?,
        None => format!("{}-{}", release.slug, ids::random_text(6)),
    };
    let key = app.vault.key(project.id.as_str(), now).await?;
    let body = AuthConfig {
        folded: search_text(&name, id.as_str()),
        name,
        toolkit: release.slug.to_string(),
        scheme,
        managed,
        status: Status::Enabled,
        uuid: Uuid::new_v4(),
        restrict_to: request.restrict_to,
        tools_for_execution: request.tools_for_execution,
        tools_for_connection: request.tools_for_connection,
        in_sessions: request.in_sessions,
        credentials: key.seal(
            seal_context(&project.id, id.as_str(), "credentials"),
            &request.credentials.own,
        )?,
        shared: key.seal(
            seal_context(&project.id, id.as_str(), "shared"),
            &request.credentials.shared,
        )?,
        proxy: match &request.credentials.proxy {
            Some(proxy) => Some(key.seal(seal_context(&project.id, id.as_str(), "proxy"), proxy)?),
            None => None,
        },
    };
    projects::insert(app, project, id.as_str(), &body).await?;
    get(app, project, &id).await
}

/// Returns an auth config of the project.
///
/// # Errors
/// Fails if the auth config does not exist.
pub async fn get(app: &App, project: &Project, id: &AuthConfigId) -> Result<Record<AuthConfig>> {
    find(app, project, id)
        .await?
        .ok_or_else(|| Error::AuthConfigNotFound(id.to_string()))
}

/// Returns an auth config of the project, if it exists.
pub(crate) async fn find(
    app: &App,
    project: &Project,
    id: &AuthConfigId,
) -> Result<Option<Record<AuthConfig>>> {
    find_in(&app.store, &project.id, id).await
}

/// Variant of [`find`] for callers that have only the store.
pub(crate) async fn find_in(
    store: &Store,
    project: &ProjectId,
    id: &AuthConfigId,
) -> Result<Option<Record<AuthConfig>>> {
    Ok(store.get(project.as_str(), id.as_str()).await?)
}

/// Changes of an auth config. Absent fields stay as they are.
#[derive(Debug, Default)]
pub struct Changes {
    /// Kind that the caller expects: true for service-managed.
    pub managed: bool,
    /// See [`AuthConfig::name`].
    pub name: Option<String>,
    /// Merged over the client credentials by name; null or an empty list removes a value.
    pub own: Map<String, Value>,
    /// Merged over the shared values in the same way.
    pub shared: Map<String, Value>,
    /// See [`Credentials::proxy`]; an inner `None` removes the proxy.
    pub proxy: Option<Option<Proxy>>,
    /// See [`AuthConfig::restrict_to`].
    pub restrict_to: Option<Vec<String>>,
    /// See [`AuthConfig::tools_for_execution`].
    pub tools_for_execution: Option<Vec<String>>,
    /// See [`AuthConfig::tools_for_connection`].
    pub tools_for_connection: Option<Vec<String>>,
    /// See [`AuthConfig::in_sessions`].
    pub in_sessions: Option<bool>,
}

/// Changes an auth config, for existing and for new connections.
///
/// # Errors
/// Fails if the auth config does not exist or is of the other kind, the resulting credentials are
/// incomplete, or the store refuses.
pub async fn change(
    app: &App,
    project: &Project,
    id: &AuthConfigId,
    changes: Changes,
) -> Result<()> {
    let name = changes
        .name
        .map(|name| checked_name(name.trim().to_owned()))
        .transpose()?;
    changes
        .proxy
        .iter()
        .flatten()
        .try_for_each(|proxy| proxy.to_net_proxy().map(drop))?;
    let changed = app.store.change(&COLLECTION, id.as_str(), || async {
        let mut record = get(app, project, id).await?;
        if record.body.managed != changes.managed {
            let own = if record.body.managed {
                "default"
            } else {
                "custom"
            };
            return Err(Error::invalid(format!(
                "type: auth config {id} is of type {own}"
            )));
        }
        let mut credentials = credentials(app, project, &record).await?;
        for (values, changed) in [
            (&mut credentials.own, &changes.own),
            (&mut credentials.shared, &changes.shared),
        ] {
            values.extend(changed.clone());
            values.retain(|_, value| {
                !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty())
            });
        }
        // A toolkit that no longer exists requires nothing.
        let release = app.catalog.release(&record.body.toolkit, LATEST).ok();
        let auth_scheme = release
            .as_ref()
            .and_then(|release| release.scheme(record.body.scheme));
        check_client(
            record.body.scheme,
            auth_scheme,
            record.body.managed,
            &credentials.own,
        )?;
        let now = app.clock.now();
        let key = app.vault.key(project.id.as_str(), now).await?;
        let body = &mut record.body;
        body.credentials = key.seal(
            seal_context(&project.id, id.as_str(), "credentials"),
            &credentials.own,
        )?;
        body.shared = key.seal(
            seal_context(&project.id, id.as_str(), "shared"),
            &credentials.shared,
        )?;
        if let Some(proxy) = &changes.proxy {
            let context = seal_context(&project.id, id.as_str(), "proxy");
            body.proxy = proxy
                .as_ref()
                .map(|proxy| key.seal(context, proxy))
                .transpose()?;
        }
        if let Some(name) = &name {
            (body.name, body.folded) = (name.clone(), search_text(name, id.as_str()));
        }
        for (own, changed) in [
            (&mut body.restrict_to, &changes.restrict_to),
            (&mut body.tools_for_execution, &changes.tools_for_execution),
            (
                &mut body.tools_for_connection,
                &changes.tools_for_connection,
            ),
        ] {
            if let Some(changed) = changed {
                own.clone_from(changed);
            }
        }
        body.in_sessions = changes.in_sessions.unwrap_or(body.in_sessions);
        Ok((Batch::at(now).update(&record), ()))
    });
    Ok(changed.await?)
}

fn checked_name(name: String) -> Result<String> {
    if name.is_empty() || name.chars().count() > 256 {
        return Err(Error::invalid(
            "auth_config.name: must have 1 to 256 characters",
        ));
    }
    Ok(name)
}

fn search_text(name: &str, id: &str) -> String {
    format!("{} {}", name.to_lowercase(), id.to_lowercase())
}

/// Checks that an auth config with the project's own client has the credentials that its scheme
/// requires.
fn check_client(
    mode: AuthMode,
    auth_scheme: Option<&AuthScheme>,
    managed: bool,
    own: &Map<String, Value>,
) -> Result<()> {
    let client = Client::from_credentials(own);
    if mode == AuthMode::Oauth2 && !managed && client.is_none() {
        return Err(Error::invalid(
            "auth_config.credentials.client_id: is required with OAUTH2",
        ));
    }
    if mode == AuthMode::Oauth1 {
        let signs = auth_scheme
            .and_then(|scheme| scheme.sign.as_ref())
            .is_some_and(Sign::has_private_key);
        let proof = client.as_ref().and_then(|client| {
            if signs {
                client.private_key.as_ref()
            } else {
                client.secret.as_ref()
            }
        });
        if proof.is_none() {
            let proof = if signs {
                "private_key"
            } else {
                "consumer_secret"
            };
            let text = format!(
                "auth_config.credentials: consumer_key and {proof} are required with OAUTH1"
            );
            return Err(Error::invalid(text));
        }
    }
    if let (Some(client), Some(scheme)) = (&client, auth_scheme) {
        let checked = client.check_key(scheme);
        checked
            .map_err(|why| Error::invalid(format!("auth_config.credentials.private_key: {why}")))?;
    }
    for name in ["scopes", "user_scopes"] {
        let text = |value: &Value| value.is_string();
        let good = own.get(name).is_none_or(|value| {
            text(value) || value.as_array().is_some_and(|list| list.iter().all(text))
        });
        if !good {
            return Err(Error::invalid(format!(
                "auth_config.credentials.{name}: must be a string or a list of strings"
            )));
        }
    }
    Ok(())
}

/// Returns the scopes stored under a name: a list, or a text separated by commas or spaces.
pub(crate) fn scopes(own: &Map<String, Value>, name: &str) -> Vec<String> {
    let parts = |text: &str| {
        let parts = text
            .split([',', ' '])
            .map(str::trim)
            .filter(|scope| !scope.is_empty());
        parts.map(str::to_owned).collect::<Vec<_>>()
    };
    match own.get(name) {
        Some(Value::String(text)) => parts(text),
        // A scope in a list may contain any character.
        Some(Value::Array(list)) => list
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        _ => Vec::new(),
    }
}

/// Returns a page of auth configs, newest first, and their total number.
///
/// # Errors
/// Fails if the store cannot be read.
pub async fn list(
    app: &App,
    project: &Project,
    filter: &Filter,
    window: Window,
) -> Result<Listed<Record<AuthConfig>>> {
    let mut query = Query::for_project(project.id.as_str())
        .descending()
        .window(window);
    if !filter.toolkits.is_empty() {
        query = query.any_of(
            "toolkit",
            filter.toolkits.iter().map(|slug| slug.to_lowercase()),
        );
    }
    if let Some(managed) = filter.managed {
        query = query.is("managed", if managed { "true" } else { "false" });
    }
    match (filter.status, filter.disabled) {
        (Some(status), _) => query = query.is("status", status.as_str()),
        (None, false) => query = query.is("status", Status::Enabled.as_str()),
        (None, true) => {}
    }
    if !filter.search.is_empty() {
        query = query.contains("folded", &filter.search.to_lowercase());
    }
    if let Some(until) = filter.until {
        query = query.below("created_at", until.0.saturating_add(1));
    }
    Ok(app.store.list(&query).await?)
}

/// Enables or disables an auth config.
///
/// # Errors
/// Fails if the auth config does not exist, or the store refuses.
pub async fn set_status(
    app: &App,
    project: &Project,
    id: &AuthConfigId,
    status: Status,
) -> Result<()> {
    let change = |config: &mut AuthConfig| -> std::result::Result<(), Error> {
        config.status = status;
        Ok(())
    };
    let done = app
        .store
        .edit(project.id.as_str(), id.as_str(), app.clock.now(), change)
        .await
        .map_err(Error::from)?;
    done.ok_or_else(|| Error::AuthConfigNotFound(id.to_string()))
}

/// Deletes an auth config and the dynamic clients that were registered for it. Its accounts stay
/// but can no longer be used. With `revoke`, their credentials are revoked first. A repeated call
/// continues an interrupted revocation.
///
/// # Errors
/// Fails if the auth config does not exist, or the store refuses.
pub async fn remove(app: &App, project: &Project, id: &AuthConfigId, revoke: bool) -> Result<()> {
    if revoke {
        // A disabled auth config prevents new connections during the revocation.
        set_status(app, project, id, Status::Disabled).await?;
        accounts::revoke_all(app, project, id).await?;
    }
    let removed = app.store.change(&COLLECTION, id.as_str(), || async {
        let batch = Batch::at(app.clock.now()).remove(&get(app, project, id).await?);
        Ok::<_, Error>((accounts::purge_clients(app, project, id, batch).await?, ()))
    });
    removed.await?;
    // Registrations that were in progress during the deletion are deleted here. No new ones can
    // start now.
    accounts::delete_clients(app, project, id).await
}

/// Decrypts the secret parts.
///
/// # Errors
/// Fails if they cannot be decrypted.
pub async fn credentials(
    app: &App,
    project: &Project,
    record: &Record<AuthConfig>,
) -> Result<Credentials> {
    open_credentials(&app.vault, &project.id, record, app.clock.now()).await
}

/// Variant of [`credentials`] for callers that have only the vault.
pub(crate) async fn open_credentials(
    vault: &Vault,
    project: &ProjectId,
    record: &Record<AuthConfig>,
    now: Time,
) -> Result<Credentials> {
    let key = vault.key(project.as_str(), now).await?;
    Ok(Credentials {
        own: key.open(
            seal_context(project, &record.id, "credentials"),
            &record.body.credentials,
        )?,
        shared: key.open(
            seal_context(project, &record.id, "shared"),
            &record.body.shared,
        )?,
        proxy: match &record.body.proxy {
            Some(proxy) => Some(key.open(seal_context(project, &record.id, "proxy"), proxy)?),
            None => None,
        },
    })
}

/// Returns the proxy for requests to the provider of an auth config, if one is set.
pub(crate) async fn net_proxy(
    app: &App,
    project: &Project,
    record: &Record<AuthConfig>,
) -> Result<Option<Arc<net::Proxy>>> {
    if record.body.proxy.is_none() {
        return Ok(None);
    }
    credentials(app, project, record).await?.net_proxy()
}

impl Credentials {
    /// Returns the proxy for requests to the provider, if one is set.
    pub(crate) fn net_proxy(&self) -> Result<Option<Arc<net::Proxy>>> {
        Ok(self
            .proxy
            .as_ref()
            .map(Proxy::to_net_proxy)
            .transpose()?
            .map(Arc::new))
    }
}

/// Returns the number of active accounts that were connected with an auth config.
///
/// # Errors
/// Fails if the store cannot be read.
pub async fn active_accounts(app: &App, project: &Project, id: &str) -> Result<u64> {
    let query = Query::for_project(project.id.as_str())
        .is("auth_config", id)
        .is("status", "ACTIVE")
        .page(0, 0);
    Ok(app.store.find::<Account>(&query).await?.total)
}

impl AuthConfig {
    /// Returns true if a tool may run with the accounts of this auth config.
    #[must_use]
    pub fn allows(&self, tool: &str) -> bool {
        let lets = |list: &[String]| {
            list.is_empty() || list.iter().any(|own| own.eq_ignore_ascii_case(tool))
        };
        lets(&self.tools_for_execution) && lets(&self.restrict_to)
    }
}

/// Returns the scheme with that name, if the toolkit offers it.
pub(crate) fn offered_scheme(release: &Release, name: &str) -> Result<AuthMode> {
    let modes = [
        AuthMode::Oauth2,
        AuthMode::S2sOauth2,
        AuthMode::DcrOauth,
        AuthMode::CimdOauth,
        AuthMode::ApiKey,
        AuthMode::BearerToken,
        AuthMode::Basic,
        AuthMode::BasicWithJwt,
        AuthMode::GoogleServiceAccount,
        AuthMode::ServiceAccount,
        AuthMode::BillcomAuth,
        AuthMode::CalcomAuth,
        AuthMode::Oauth1,
        AuthMode::Saml,
        AuthMode::NoAuth,
    ];
    let upper = name.to_ascii_uppercase();
    let Some(mode) = modes.into_iter().find(|mode| mode.as_str() == upper) else {
        let given = crate::core::truncate(name);
        return Err(Error::invalid(format!(
            "auth_config.authScheme: `{given}` is not an auth scheme"
        )));
    };
    if release.scheme(mode).is_some() || (mode == AuthMode::NoAuth && release.no_auth()) {
        return Ok(mode);
    }
    Err(Error::SchemeNotOffered {
        toolkit: release.slug.to_string(),
        scheme: upper,
    })
}

fn seal_context<'a>(project: &'a ProjectId, id: &'a str, field: &'static str) -> SealContext<'a> {
    SealContext {
        collection: COLLECTION.name,
        project: project.as_str(),
        id,
        field,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(restrict_to: &[&str], for_execution: &[&str]) -> AuthConfig {
        let sealed = || serde_json::from_str("\"v1.a.b\"").unwrap();
        let owned = |list: &[&str]| list.iter().map(|&s| s.to_owned()).collect();
        AuthConfig {
            name: "n".into(),
            folded: "n".into(),
            toolkit: "mail".into(),
            scheme: AuthMode::ApiKey,
            managed: false,
            status: Status::Enabled,
            uuid: Uuid::nil(),
            restrict_to: owned(restrict_to),
            tools_for_execution: owned(for_execution),
            tools_for_connection: vec![],
            in_sessions: false,
            credentials: sealed(),
            shared: sealed(),
            proxy: None,
        }
    }

    #[test]
    fn proxy_key_becomes_an_authorization_value() {
        let way = |key: &str| {
            Proxy {
                url: "http://proxy.example:3128".into(),
                key: Some(key.into()),
            }
            .to_net_proxy()
            .unwrap()
        };
        let with = |value: &str| net::Proxy::new("http://proxy.example:3128", Some(value)).unwrap();
        assert_eq!(way("user:pass"), with("Basic dXNlcjpwYXNz"));
        assert_eq!(way("abc"), with("Bearer abc"));
        assert_eq!(way("Custom a:b"), with("Custom a:b"));
        assert!(
            Proxy {
                url: "proxy.example".into(),
                key: None
            }
            .to_net_proxy()
            .is_err()
        );
    }

    #[test]
    fn scopes_are_a_text_or_a_list() {
        let of = |json: Value| scopes(json.as_object().unwrap(), "scopes");
        assert_eq!(
            of(serde_json::json!({"scopes": "a, b c,,d"})),
            ["a", "b", "c", "d"]
        );
        assert_eq!(
            of(serde_json::json!({"scopes": ["a", "https://x.example/b c"]})),
            ["a", "https://x.example/b c"]
        );
        assert!(of(serde_json::json!({"user_scopes": "a"})).is_empty());
    }

    #[test]
    fn both_lists_must_let_a_tool_through() {
        assert!(config(&[], &[]).allows("MAIL_SEND"));
        assert!(config(&["mail_send"], &[]).allows("MAIL_SEND"));
        assert!(!config(&["MAIL_SEND"], &["MAIL_LIST"]).allows("MAIL_SEND"));
        assert!(!config(&[], &["MAIL_LIST"]).allows("MAIL_SEND"));
    }
}
