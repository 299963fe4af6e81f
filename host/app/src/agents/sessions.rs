//! Tool router sessions: creation, change and deletion, and the versions of their configuration.
//!
//! The record of a session holds its current configuration. Each version is also a record of its own,
//! written in the same batch, so that the history can be read in pages. Only the newest versions are
//! kept. A session lives until it is deleted; its versions are erased with it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use store::{Batch, Collection, Document, Field, Kind, Listed, Query, Record, Time, Window};

use super::{Config, check, errors, session_files};
use crate::{
    App, Error, Result,
    core::ids::SessionId,
    projects::{self, Project, SharedProject},
};

/// Collection of sessions.
pub(crate) static COLLECTION: Collection = Collection {
    name: "tool_router_sessions",
    fields: &[Field::new("folded_user", Kind::Text)],
};

/// Collection of the versions of configurations.
pub(crate) static CONFIG_VERSIONS_COLLECTION: Collection = Collection {
    name: "tool_router_configs",
    fields: &[Field::new("session", Kind::Text)],
};

/// Number of versions of a configuration that are kept.
pub const MAX_VERSIONS: u32 = 100;

/// A session, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Session {
    /// User id in lower case, for search.
    folded_user: String,
    /// Current configuration.
    pub config: Config,
    /// Number of the current version, from 1.
    pub version: u32,
}

impl Document for Session {
    const COLLECTION: &'static Collection = &COLLECTION;
}

/// One version of the configuration of a session, as stored. Its time of creation is the time of the
/// change.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ConfigVersion {
    /// Id of the session.
    session: String,
    /// Number of the version, from 1.
    pub version: u32,
    /// The configuration.
    pub config: Config,
}

impl Document for ConfigVersion {
    const COLLECTION: &'static Collection = &CONFIG_VERSIONS_COLLECTION;
}

/// The caller of a tool inside a session. Dropping the future of a call cancels the call.
#[derive(Debug, Clone)]
pub struct SessionCaller {
    /// The project of the session.
    pub project: SharedProject,
    /// The session, as it was when the request began.
    pub session: Arc<Record<Session>>,
    /// Id of the request, for the log.
    pub request_id: String,
}

impl SessionCaller {
    /// Reads the session of a request.
    ///
    /// # Errors
    /// Fails if the session does not exist in the project.
    pub async fn open(
        app: &App,
        project: &SharedProject,
        id: &SessionId,
        request_id: String,
    ) -> Result<Self> {
        Ok(Self {
            project: project.clone(),
            session: Arc::new(get(app, project, id).await?),
            request_id,
        })
    }

    /// Returns the id of the session.
    #[must_use]
    pub fn session_id(&self) -> &str {
        &self.session.id
    }

    /// Returns the configuration of the session.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.session.body.config
    }
}

/// Creates a session.
///
/// # Errors
/// Fails if the configuration is invalid, or the store refuses.
pub async fn create(app: &App, project: &Project, config: Config) -> Result<Record<Session>> {
    let config = check::checked(app, project, config, &Config::default()).await?;
    let id = SessionId::random();
    let owner = project.id.as_str();
    let session = Session {
        folded_user: config.user_id.to_lowercase(),
        config,
        version: 1,
    };
    let created = app.store.change(&COLLECTION, id.as_str(), || async {
        // A deleted project gets no sessions any more.
        let exists = projects::record(app, &project.organization, &project.id).await?;
        let batch = Batch::at(app.clock.now())
            .check(&exists)
            .insert(owner, id.as_str(), &session);
        Ok::<_, Error>((with_version(batch, owner, id.as_str(), &session), ()))
    });
    created.await?;
    get(app, project, &id).await
}

/// Returns a session of the project.
///
/// # Errors
/// Fails if the session does not exist.
pub async fn get(app: &App, project: &Project, id: &SessionId) -> Result<Record<Session>> {
    let found = app.store.get(project.id.as_str(), id.as_str()).await?;
    found.ok_or_else(|| errors::tool_router_session_not_found(id))
}

/// Returns the address of a session's MCP endpoint.
#[must_use]
pub fn mcp_url(app: &App, id: &str) -> String {
    format!("{}/tool_router/{id}/mcp", app.base_url())
}

/// Returns a page of sessions, newest first, whose user ids contain a text.
///
/// # Errors
/// Fails if the store cannot be read.
pub async fn list(
    app: &App,
    project: &Project,
    search: &str,
    window: Window,
) -> Result<Listed<Record<Session>>> {
    let mut query = Query::for_project(project.id.as_str())
        .descending()
        .window(window);
    if !search.is_empty() {
        query = query.contains("folded_user", &search.to_lowercase());
    }
    Ok(app.store.list(&query).await?)
}

/// Changes the configuration of a session, which raises its version. The user stays the same.
///
/// # Errors
/// Fails if the session does not exist, the configuration is invalid, or the store refuses.
pub async fn change(
    app: &App,
    project: &Project,
    id: &SessionId,
    apply: impl Fn(&mut Config),
) -> Result<Record<Session>> {
    let owner = project.id.as_str();
    let changed = app.store.change(&COLLECTION, id.as_str(), || async {
        let mut session = get(app, project, id).await?;
        let before = session.body.config.clone();
        apply(&mut session.body.config);
        let config = session.body.config;
        session.body.config = check::checked(app, project, config, &before).await?;
        session.body.version += 1;
        let batch = Batch::at(app.clock.now()).update(&session);
        let batch = with_version(batch, owner, id.as_str(), &session.body);
        let oldest = session.body.version.checked_sub(MAX_VERSIONS);
        let oldest = version_id(id.as_str(), oldest.unwrap_or_default());
        let oldest = app.store.get::<ConfigVersion>(owner, &oldest).await?;
        let batch = oldest.iter().fold(batch, Batch::purge);
        Ok::<_, Error>((batch, ()))
    });
    changed.await?;
    get(app, project, id).await
}

/// Adds the current version of a configuration to a batch.
fn with_version(batch: Batch, owner: &str, id: &str, session: &Session) -> Batch {
    let version = ConfigVersion {
        session: id.to_owned(),
        version: session.version,
        config: session.config.clone(),
    };
    batch.insert(owner, &version_id(id, session.version), &version)
}

/// Returns the id of a version. The ids of a session sort by number.
fn version_id(session: &str, version: u32) -> String {
    format!("{session}_{version:010}")
}

/// Returns a page of the versions of a session's configuration, newest first.
///
/// # Errors
/// Fails if the session does not exist, or the store cannot be read.
pub async fn history(
    app: &App,
    project: &Project,
    id: &SessionId,
    until: Option<Time>,
    window: Window,
) -> Result<Listed<Record<ConfigVersion>>> {
    get(app, project, id).await?;
    let mut query = Query::for_project(project.id.as_str())
        .is("session", id.as_str())
        .descending()
        .window(window);
    if let Some(until) = until {
        query = query.below("created_at", until.0.saturating_add(1));
    }
    Ok(app.store.list(&query).await?)
}

/// Deletes a session, and erases its files and the versions of its configuration.
///
/// # Errors
/// Fails if the session does not exist, or the store refuses.
pub async fn remove(app: &App, project: &Project, id: &SessionId) -> Result<()> {
    get(app, project, id).await?;
    // Files before the session: an interrupted removal can be repeated.
    session_files::erase_session(app, project.id.as_str(), id).await?;
    let versions = Query::for_project(project.id.as_str()).is("session", id.as_str());
    let removed = app.store.change(&COLLECTION, id.as_str(), || async {
        let session = get(app, project, id).await?;
        let versions = app.store.find::<ConfigVersion>(&versions).await?.records;
        let batch = Batch::at(app.clock.now()).purge(&session);
        Ok::<_, Error>((versions.iter().fold(batch, Batch::purge), ()))
    });
    removed.await?;
    // Files that were written before the session was gone.
    session_files::erase_session(app, project.id.as_str(), id).await
}
