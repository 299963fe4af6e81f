//! Auth configs: how a project connects accounts of one toolkit.
//!
//! A disabled config starts no new connection and is hidden from lists unless asked for; a deleted one is gone, and what was
//! connected with it stays visible but does not run any more.

use manifest::AuthMode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::{Batch, Collection, Document, Field, Found, Kind, Query, Record, Time};
use uuid::Uuid;

use crate::{
    App, Error, Result,
    catalog::{LATEST, Release},
    connections::Account,
    ids::{self, AuthConfigId},
    projects::Project,
    vault::{Place, Sealed},
};

/// The collection this room owns.
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

/// Names of auth schemes that the contract knows and this server does not run.
const UNSUPPORTED: [&str; 11] = [
    "OAUTH2",
    "OAUTH1",
    "BILLCOM_AUTH",
    "GOOGLE_SERVICE_ACCOUNT",
    "BASIC_WITH_JWT",
    "CALCOM_AUTH",
    "SERVICE_ACCOUNT",
    "SAML",
    "DCR_OAUTH",
    "S2S_OAUTH2",
    "CIMD_OAUTH",
];

/// An auth config, as stored.
#[derive(Debug, Serialize, Deserialize)]
pub struct AuthConfig {
    /// For people.
    pub name: String,
    /// Name and id in lower case, for search.
    folded: String,
    /// Slug.
    pub toolkit: String,
    /// How accounts are connected.
    pub scheme: AuthMode,
    /// Whether the server's own credentials are used.
    pub managed: bool,
    /// Whether new connections may start.
    pub status: Status,
    /// The id of older clients.
    pub uuid: Uuid,
    /// Tools to which accounts of it are restricted; empty for none.
    #[serde(default)]
    pub restrict_to: Vec<String>,
    /// Tools that may run with its accounts; empty for all.
    #[serde(default)]
    pub tools_for_execution: Vec<String>,
    /// Tools whose needs decide what a connection asks for.
    #[serde(default)]
    pub tools_for_connection: Vec<String>,
    /// Whether sessions may use it.
    #[serde(default)]
    pub in_sessions: bool,
    credentials: Sealed<Map<String, Value>>,
    shared: Sealed<Map<String, Value>>,
}

impl Document for AuthConfig {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// Whether new connections may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
    /// They may.
    Enabled,
    /// They may not.
    Disabled,
}

impl Status {
    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Enabled => "ENABLED",
            Self::Disabled => "DISABLED",
        }
    }
}

/// Secret parts, opened.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Credentials {
    /// Scheme-specific names, `scopes`, `user_scopes`.
    pub own: Map<String, Value>,
    /// Merged under the values of every account.
    pub shared: Map<String, Value>,
}

/// An auth config to be made.
#[derive(Debug, Default)]
pub struct NewAuthConfig {
    /// Slug.
    pub toolkit: String,
    /// Absent for the managed kind.
    pub scheme: Option<String>,
    /// Absent for a name made from the toolkit.
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

/// Which auth configs. Empty parts ask for nothing.
#[derive(Debug, Default)]
pub struct Filter {
    /// Of these toolkits.
    pub toolkits: Vec<String>,
    /// Of one kind.
    pub managed: Option<bool>,
    /// Disabled ones too.
    pub disabled: bool,
    /// In this state only.
    pub status: Option<Status>,
    /// A part of the name or id.
    pub search: String,
    /// Made at this moment or before.
    pub until: Option<Time>,
}

/// Makes an auth config.
///
/// # Errors
/// When the toolkit is unknown or does not offer the scheme, or the store refuses.
pub async fn create(app: &App, project: &Project, request: NewAuthConfig) -> Result<Record<AuthConfig>> {
    let release = app.catalog.release(&request.toolkit, LATEST)?;
    let name = request.scheme.ok_or_else(|| Error::NoManagedAuth(release.slug.to_string()))?;
    let scheme = offered(&release, &name)?;
    let (id, now) = (AuthConfigId::random(), app.clock.now());
    let name = match request.name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()) {
        Some(name) if name.chars().count() > 256 => {
            return Err(Error::invalid("auth_config.name: at most 256 characters"));
        }
        Some(name) => name,
        None => format!("{}-{}", release.slug, ids::random_text(6)),
    };
    let key = app.vault.key(project.id.as_str(), now).await?;
    let body = AuthConfig {
        folded: format!("{} {}", name.to_lowercase(), id.as_str().to_lowercase()),
        name,
        toolkit: release.slug.to_string(),
        scheme,
        managed: false,
        status: Status::Enabled,
        uuid: Uuid::new_v4(),
        restrict_to: request.restrict_to,
        tools_for_execution: request.tools_for_execution,
        tools_for_connection: request.tools_for_connection,
        in_sessions: request.in_sessions,
        credentials: key.seal(place(project, id.as_str(), "credentials"), &request.credentials.own)?,
        shared: key.seal(place(project, id.as_str(), "shared"), &request.credentials.shared)?,
    };
    app.store.commit(Batch::at(now).insert(project.id.as_str(), id.as_str(), &body)).await?;
    get(app, project, &id).await
}

/// An auth config of the project.
///
/// # Errors
/// When there is none.
pub async fn get(app: &App, project: &Project, id: &AuthConfigId) -> Result<Record<AuthConfig>> {
    find(app, project, id).await?.ok_or_else(|| Error::AuthConfigNotFound(id.to_string()))
}

/// An auth config of the project, if there is one.
pub(crate) async fn find(app: &App, project: &Project, id: &AuthConfigId) -> Result<Option<Record<AuthConfig>>> {
    Ok(app.store.get(project.id.as_str(), id.as_str()).await?)
}

/// A page of auth configs, newest first, with their total.
///
/// # Errors
/// When the store cannot be read.
pub async fn list(
    app: &App,
    project: &Project,
    filter: &Filter,
    offset: u64,
    limit: u64,
) -> Result<(Vec<Record<AuthConfig>>, u64)> {
    let mut query = Query::of(project.id.as_str()).newest().page(offset, limit);
    if !filter.toolkits.is_empty() {
        query = query.any_of("toolkit", filter.toolkits.iter().map(|slug| slug.to_lowercase()));
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
    let Found { records, total } = app.store.find(&query).await?;
    Ok((records, total))
}

/// Lets new connections start, or not.
///
/// # Errors
/// When there is no such config, or the store refuses.
pub async fn set_status(app: &App, project: &Project, id: &AuthConfigId, status: Status) -> Result<()> {
    let change = |config: &mut AuthConfig| -> std::result::Result<(), Error> {
        config.status = status;
        Ok(())
    };
    let done = app.store.edit(project.id.as_str(), id.as_str(), app.clock.now(), change).await.map_err(Error::from)?;
    done.ok_or_else(|| Error::AuthConfigNotFound(id.to_string()))
}

/// Deletes an auth config. Its accounts stay, and do not run any more.
///
/// # Errors
/// When there is none, or the store refuses.
pub async fn remove(app: &App, project: &Project, id: &AuthConfigId) -> Result<()> {
    let record = get(app, project, id).await?;
    app.store.commit(Batch::at(app.clock.now()).remove(&record)).await.map_err(Into::into)
}

/// Opens the secret parts.
///
/// # Errors
/// When they do not open.
pub async fn credentials(app: &App, project: &Project, record: &Record<AuthConfig>) -> Result<Credentials> {
    let key = app.vault.key(project.id.as_str(), app.clock.now()).await?;
    Ok(Credentials {
        own: key.open(place(project, &record.id, "credentials"), &record.body.credentials)?,
        shared: key.open(place(project, &record.id, "shared"), &record.body.shared)?,
    })
}

/// How many active accounts were connected with it.
///
/// # Errors
/// When the store cannot be read.
pub async fn active_accounts(app: &App, project: &Project, id: &str) -> Result<u64> {
    let query = Query::of(project.id.as_str()).is("auth_config", id).is("status", "ACTIVE").page(0, 0);
    Ok(app.store.find::<Account>(&query).await?.total)
}

impl AuthConfig {
    /// Whether a tool may run with its accounts.
    #[must_use]
    pub fn allows(&self, tool: &str) -> bool {
        let lets = |list: &[String]| list.is_empty() || list.iter().any(|own| own.eq_ignore_ascii_case(tool));
        lets(&self.tools_for_execution) && lets(&self.restrict_to)
    }
}

/// The scheme of that name, when the toolkit offers it.
pub(crate) fn offered(release: &Release, name: &str) -> Result<AuthMode> {
    let known = [AuthMode::ApiKey, AuthMode::BearerToken, AuthMode::Basic, AuthMode::NoAuth];
    let upper = name.to_ascii_uppercase();
    let Some(mode) = known.into_iter().find(|mode| mode.as_str() == upper) else {
        return Err(if UNSUPPORTED.contains(&upper.as_str()) {
            Error::SchemeUnsupported(upper)
        } else {
            Error::invalid(format!("auth_config.authScheme: `{}` is not an auth scheme", crate::cut(name)))
        });
    };
    if release.scheme(mode).is_some() || (mode == AuthMode::NoAuth && release.no_auth()) {
        return Ok(mode);
    }
    Err(Error::SchemeNotOffered { toolkit: release.slug.to_string(), scheme: upper })
}

fn place<'a>(project: &'a Project, id: &'a str, field: &'static str) -> Place<'a> {
    Place { collection: COLLECTION.name, project: project.id.as_str(), id, field }
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
        }
    }

    #[test]
    fn both_lists_must_let_a_tool_through() {
        assert!(config(&[], &[]).allows("MAIL_SEND"));
        assert!(config(&["mail_send"], &[]).allows("MAIL_SEND"));
        assert!(!config(&["MAIL_SEND"], &["MAIL_LIST"]).allows("MAIL_SEND"));
        assert!(!config(&[], &["MAIL_LIST"]).allows("MAIL_SEND"));
    }
}
