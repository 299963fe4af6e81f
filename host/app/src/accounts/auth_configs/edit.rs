//! Creation and changes of auth configs, and the checks that both share.

use std::collections::BTreeSet;

use manifest::{AuthMode, AuthScheme};
use oauth::Client;
use serde::de::{Deserialize, IntoDeserializer};
use serde_json::{Map, Value};
use store::{Batch, Record};
use uuid::Uuid;

use super::{AuthConfig, COLLECTION, Credentials, Proxy, Status, credentials, get};
use crate::{
    App, Result,
    accounts::{errors, oauth_apps, scheme},
    catalog::{LATEST, Release, Snapshot},
    core::{
        ids::{self, AuthConfigId},
        json,
        spelling::sent_instead,
        vault::{SealContext, Sealed},
    },
    projects::{
        self, Project,
        record_limits::{self, RecordKind},
    },
};

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

/// Start of the paths to the properties of a new auth config. Those of a change are at the top.
const CREATE_PATH: &str = "auth_config.";
const CHANGE_PATH: &str = "";

/// Names of the values of a client at the provider.
const CLIENT_VALUES: [&str; 6] = [
    "client_id",
    "client_secret",
    "consumer_key",
    "consumer_secret",
    "private_key",
    "key_id",
];
/// Maximum size of the credentials and lists of an auth config as JSON, in bytes.
pub const MAX_AUTH_CONFIG_BYTES: usize = 128 << 10;

/// Creates an auth config. Fails if the toolkit is unknown or does not offer the scheme, credentials are
/// missing or invalid, or a listed tool is not one of the toolkit.
pub async fn create(
    app: &App,
    project: &Project,
    request: NewAuthConfig,
) -> Result<Record<AuthConfig>> {
    let release = app.catalog.release(&request.toolkit, LATEST)?;
    let managed = request.scheme.is_none();
    let scheme = match request.scheme {
        Some(name) => offered_scheme(&release, "auth_config.authScheme", &name)?,
        None if oauth_apps::is_managed(app, &release).await? => AuthMode::Oauth2,
        None => return Err(errors::no_managed_auth(&release.slug)),
    };
    check_client(
        CREATE_PATH,
        scheme,
        release.scheme(scheme),
        managed,
        &request.credentials.own,
    )?;
    check_shared(
        CREATE_PATH,
        release.scheme(scheme),
        &request.credentials.shared,
    )?;
    if let Some(proxy) = &request.credentials.proxy {
        proxy.to_net_proxy(CREATE_PATH)?;
    }
    let id = AuthConfigId::random();
    let name = match &request.name {
        None => format!("{}-{}", release.slug, ids::random_text(6)),
        Some(name) => checked_name(CREATE_PATH, name)?,
    };
    let (own, shared, proxy) = seal(app, project, &id, &request.credentials).await?;
    let mut body = AuthConfig {
        folded: name.to_lowercase(),
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
        credentials: own,
        shared,
        proxy,
    };
    body.check_tools(&app.catalog.snapshot(), CREATE_PATH, &BTreeSet::new())?;
    record_limits::admit(app, &project.id, RecordKind::AuthConfig, &COLLECTION).await?;
    check_size(&body, &request.credentials)?;
    Ok(projects::insert(app, project, id.as_str(), body).await?)
}

/// Changes an auth config, for existing and for new connections. Fails if the auth config does not
/// exist or is of the other kind, or the resulting credentials are incomplete.
pub async fn change(
    app: &App,
    project: &Project,
    id: &AuthConfigId,
    mut changes: Changes,
) -> Result<()> {
    changes.name = changes
        .name
        .map(|name| checked_name(CHANGE_PATH, &name))
        .transpose()?;
    if let Some(Some(proxy)) = &changes.proxy {
        proxy.to_net_proxy(CHANGE_PATH)?;
    }
    let changed = app.store.change(&COLLECTION, id.as_str(), || async {
        let mut record = get(app, project, id).await?;
        if record.body.managed != changes.managed {
            let actual = match record.body.managed {
                true => "default",
                false => "custom",
            };
            let problem = format!("type: auth config {id} is of type {actual}");
            return Err(errors::invalid(problem));
        }
        let mut credentials = credentials(app, &record).await?;
        changes.apply_to_credentials(&mut credentials);
        // A toolkit that no longer exists requires nothing.
        let release = app.catalog.release(&record.body.toolkit, LATEST).ok();
        let (mode, managed) = (record.body.scheme, record.body.managed);
        let scheme = release.as_ref().and_then(|release| release.scheme(mode));
        check_client(CHANGE_PATH, mode, scheme, managed, &credentials.own)?;
        check_shared(CHANGE_PATH, scheme, &changes.shared)?;
        let body = &mut record.body;
        (body.credentials, body.shared, body.proxy) = seal(app, project, id, &credentials).await?;
        changes.apply_to(body, &app.catalog.snapshot())?;
        check_size(body, &credentials)?;
        Ok((Batch::at(app.clock.now()).update(&record), ()))
    });
    Ok(changed.await?)
}

impl Changes {
    fn apply_to_credentials(&self, credentials: &mut Credentials) {
        for (values, changed) in [
            (&mut credentials.own, &self.own),
            (&mut credentials.shared, &self.shared),
        ] {
            values.extend(changed.clone());
            values.retain(|_, value| {
                !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty())
            });
        }
        if let Some(proxy) = &self.proxy {
            credentials.proxy.clone_from(proxy);
        }
    }

    /// Changes the fields of an auth config that are not sealed. Fails if a list has a tool that is not
    /// one of the toolkit.
    fn apply_to(&self, body: &mut AuthConfig, catalog: &Snapshot) -> Result<()> {
        let listed_before = body.listed_tools();
        if let Some(name) = &self.name {
            (body.name, body.folded) = (name.clone(), name.to_lowercase());
        }
        for (own, changed) in [
            (&mut body.restrict_to, &self.restrict_to),
            (&mut body.tools_for_execution, &self.tools_for_execution),
            (&mut body.tools_for_connection, &self.tools_for_connection),
        ] {
            if let Some(changed) = changed {
                own.clone_from(changed);
            }
        }
        body.in_sessions = self.in_sessions.unwrap_or(body.in_sessions);
        body.check_tools(catalog, CHANGE_PATH, &listed_before)
    }
}

/// Fails if an auth config is larger than [`MAX_AUTH_CONFIG_BYTES`].
fn check_size(body: &AuthConfig, credentials: &Credentials) -> Result<()> {
    let parts = (&credentials.own, &credentials.shared, body.tool_lists());
    let text = serde_json::to_vec(&parts).map_err(errors::internal)?;
    if text.len() > MAX_AUTH_CONFIG_BYTES {
        return Err(errors::invalid(format!(
            "body: the credentials and the lists of tools have more than {MAX_AUTH_CONFIG_BYTES} bytes as JSON"
        )));
    }
    Ok(())
}

fn checked_name(path: &str, name: &str) -> Result<String> {
    let name = name.trim();
    if name.is_empty() || name.chars().count() > 256 {
        return Err(errors::invalid(format!(
            "{path}name: must have 1 to 256 characters"
        )));
    }
    Ok(name.to_owned())
}

type SealedValues = Sealed<Map<String, Value>>;

/// Encrypts the values of the client, the shared values and the proxy.
async fn seal(
    app: &App,
    project: &Project,
    id: &AuthConfigId,
    credentials: &Credentials,
) -> Result<(SealedValues, SealedValues, Option<Sealed<Proxy>>)> {
    let owner = project.id.as_str();
    let key = app.vault.key(owner, app.clock.now()).await?;
    let context = |field| SealContext::new::<AuthConfig>(owner, id.as_str(), field);
    let proxy = credentials.proxy.as_ref();
    Ok((
        key.seal(context("credentials"), &credentials.own)?,
        key.seal(context("shared"), &credentials.shared)?,
        proxy
            .map(|proxy| key.seal(context("proxy"), proxy))
            .transpose()?,
    ))
}

/// Checks the values that each account inherits.
fn check_shared(
    path: &str,
    scheme: Option<&AuthScheme>,
    shared: &Map<String, Value>,
) -> Result<()> {
    let Some(scheme) = scheme else {
        return Ok(());
    };
    let values = scheme::normalize_names(scheme, shared.clone());
    scheme::check_values(scheme, &values).map_err(|problems| {
        let lines = problems.iter();
        let lines = lines.map(|line| format!("{path}shared_connection_fields.{line}"));
        errors::invalid(lines.collect::<Vec<_>>())
    })
}

/// Checks that an auth config with the project's own client has the credentials that its scheme
/// requires.
fn check_client(
    path: &str,
    mode: AuthMode,
    auth_scheme: Option<&AuthScheme>,
    managed: bool,
    own: &Map<String, Value>,
) -> Result<()> {
    if let [problem, ..] = &scheme::non_strings(CLIENT_VALUES, own)[..] {
        return Err(errors::invalid(format!("{path}credentials.{problem}")));
    }
    let client = Client::from_credentials(own);
    if mode == AuthMode::Oauth2 && !managed && client.is_none() {
        let question = sent_instead("client_id", own.keys().map(String::as_str));
        return Err(errors::invalid(format!(
            "{path}credentials.client_id: is required with OAUTH2{question}"
        )));
    }
    let secret = client.as_ref().and_then(|client| client.secret.as_ref());
    if mode == AuthMode::Oauth1 && secret.is_none() {
        return Err(errors::invalid(format!(
            "{path}credentials: consumer_key and consumer_secret are required with OAUTH1"
        )));
    }
    if let (Some(client), Some(scheme)) = (&client, auth_scheme) {
        let checked = client.check_key(scheme);
        checked.map_err(|why| errors::invalid(format!("{path}credentials.private_key: {why}")))?;
    }
    for name in ["scopes", "user_scopes"] {
        if !own.get(name).is_none_or(is_scopes) {
            return Err(errors::invalid(format!(
                "{path}credentials.{name}: must be a string or a list of strings"
            )));
        }
    }
    Ok(())
}

fn is_scopes(value: &Value) -> bool {
    let strings = value.as_array();
    value.is_string() || strings.is_some_and(|list| list.iter().all(Value::is_string))
}

/// Returns the scheme that a property of a request names, if the toolkit offers it.
pub(crate) fn offered_scheme(release: &Release, property: &str, name: &str) -> Result<AuthMode> {
    let upper = name.to_ascii_uppercase();
    let mode = AuthMode::deserialize(upper.as_str().into_deserializer())
        .map_err(|problem: json::Problem| errors::invalid(problem.line(property)))?;
    if release.scheme(mode).is_some() || (mode == AuthMode::NoAuth && release.no_auth()) {
        return Ok(mode);
    }
    Err(errors::scheme_not_offered(&release.slug, upper))
}
