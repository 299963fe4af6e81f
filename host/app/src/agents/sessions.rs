//! Tool router sessions: creation, change and deletion, and the versions of their configuration.
//!
//! The record of a session holds its current configuration. Each version is also a record of its own,
//! written in the same batch, so that the history can be read in pages. Only the newest versions are
//! kept. A session lives until it is deleted; its versions are erased with it. The record also holds the
//! approvals of tools that hold for the rest of the session, until a change of what needs approval.

use serde::{Deserialize, Serialize};
use store::{Batch, Collection, Document, Field, Kind, Listed, Query, Record, Time, Window};

use super::{Config, SessionCaller, check, errors, session_files};
use crate::{
    App, Error, Result,
    core::ids::{AccountId, SessionId},
    projects::{self, Project},
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
/// Number of approvals that a session remembers. The oldest is forgotten for a further one.
pub const MAX_APPROVALS: usize = 100;

/// A session, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Session {
    /// User id in lower case, for search.
    folded_user: String,
    /// Current configuration.
    pub config: Config,
    /// Number of the current version, from 1.
    pub version: u32,
    /// Tools that the user has approved for the rest of the session, each with the account.
    #[serde(default)]
    approved: Vec<(String, Option<AccountId>)>,
}

impl Document for Session {
    const COLLECTION: &'static Collection = &COLLECTION;
}

impl Session {
    pub(super) fn new(config: Config) -> Self {
        Self {
            folded_user: config.user_id.to_lowercase(),
            config,
            version: 1,
            approved: Vec::new(),
        }
    }

    /// Returns true if the user has approved a tool with an account for the rest of the session.
    pub(super) fn has_approved(&self, tool: &str, account: Option<&AccountId>) -> bool {
        let mut approved = self.approved.iter();
        approved.any(|(own, with)| own == tool && with.as_ref() == account)
    }

    fn approve(&mut self, tool: &str, account: Option<&AccountId>) {
        if self.has_approved(tool, account) {
            return;
        }
        if self.approved.len() == MAX_APPROVALS {
            self.approved.remove(0);
        }
        self.approved.push((tool.to_owned(), account.cloned()));
    }
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

/// Creates a session. Fails if the configuration is invalid.
pub async fn create(app: &App, project: &Project, config: Config) -> Result<Record<Session>> {
    let config = check::checked(app, project, config, &Config::default()).await?;
    let id = SessionId::random();
    let owner = project.id.as_str();
    let session = Session::new(config);
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

/// Returns a session of the project. Fails if the session does not exist.
pub async fn get(app: &App, project: &Project, id: &SessionId) -> Result<Record<Session>> {
    let found = app.store.get(project.id.as_str(), id.as_str()).await?;
    found.ok_or_else(|| errors::tool_router_session_not_found(id))
}

/// Returns the address of a session's MCP endpoint.
#[must_use]
pub fn mcp_url(app: &App, id: &str) -> String {
    format!("{}/tool_router/{id}/mcp", app.base_url())
}

/// Changes the configuration of a session, which raises its version. The user stays the same. Fails
/// if the session does not exist, or the configuration is invalid.
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
        if !session.body.config.asks_as(&before) {
            session.body.approved.clear();
        }
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

/// Remembers that the user of a session has approved a tool with an account for the rest of it.
/// Fails if the session was deleted.
pub(super) async fn approve(
    app: &App,
    caller: &SessionCaller,
    tool: &str,
    account: Option<&AccountId>,
) -> Result<()> {
    let project = caller.project.id.as_str();
    let id = caller.session_id();
    let asked = caller.session.body.version;
    let change = |session: &mut Session| {
        // The approval is that of the configuration by which the user was asked.
        if session.version == asked {
            session.approve(tool, account);
        }
        Ok::<_, Error>(())
    };
    let approved = app.store.edit(project, id, app.clock.now(), change).await?;
    approved.ok_or_else(|| errors::tool_router_session_not_found(id))
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

/// Returns a page of the versions of a session's configuration, newest first. Fails if the session
/// does not exist.
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

/// Deletes a session, and erases its files and the versions of its configuration. Fails if the
/// session does not exist.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_approval_is_forgotten() {
        let mut session = Session::new(Config::default());
        let account = AccountId::random();
        session.approve("FIRST", Some(&account));
        assert!(session.has_approved("FIRST", Some(&account)));
        assert!(!session.has_approved("FIRST", None));
        for number in 1..MAX_APPROVALS {
            session.approve(&format!("TOOL_{number}"), None);
            session.approve("TOOL_1", None);
        }
        assert!(session.has_approved("FIRST", Some(&account)));
        session.approve("LAST", None);
        assert!(!session.has_approved("FIRST", Some(&account)));
        assert!(session.has_approved("TOOL_1", None) && session.has_approved("LAST", None));
        assert_eq!(session.approved.len(), MAX_APPROVALS);
    }
}
