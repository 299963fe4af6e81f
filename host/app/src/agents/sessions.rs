//! Tool router sessions: creation, change and deletion, and the versions of their configuration.
//!
//! The record of a session holds its current configuration. Each version is also a record of its own,
//! written in the same batch, so that the history can be read in pages. Only the newest versions are
//! kept. A session lives until it is deleted; its versions are erased with it. The record also holds the
//! approvals of tools that hold for the rest of the session, until a change of what needs approval.

mod removal;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use store::{
    Batch, Collection, Document, Erasure, Field, Kind, Listed, Query, Record, Time, Window,
};

pub use self::removal::remove;
pub(crate) use self::removal::{SWEEP_INTERVAL, erase_unused};
use super::{Config, check, errors};
use crate::{
    App, Error, Result,
    core::{
        clock::time_before,
        ids::{AccountId, SessionId},
    },
    projects::{
        self, Project,
        record_limits::{self, RecordKind},
    },
};

pub(crate) static COLLECTION: Collection = Collection {
    name: "tool_router_sessions",
    erasure: Erasure::Project,
    fields: &[],
};

pub(crate) static CONFIG_VERSIONS_COLLECTION: Collection = Collection {
    name: "tool_router_configs",
    erasure: Erasure::Project,
    fields: &[Field::new("session", Kind::Text)],
};

/// Number of versions of a configuration that are kept.
pub const MAX_VERSIONS: u32 = 100;
/// Interval at which the use of a session is noted.
const USE_INTERVAL: Duration = Duration::from_secs(86_400);
/// Number of approvals that a session remembers. The oldest is forgotten for a further one.
pub const MAX_APPROVALS: usize = 100;

/// A session, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Session {
    /// User id in lower case. Servers of an earlier version, which may run next to this one, need it.
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

    /// Checks that the configuration has the version that a change was made for, if it names one.
    /// Fails with [`errors::SESSION_VERSION_CHANGED`] if it has another version.
    pub fn check_version(&self, expected: Option<u32>) -> Result<()> {
        match expected {
            Some(expected) if expected != self.version => {
                Err(errors::session_version_changed(self.version, expected))
            }
            _ => Ok(()),
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
    record_limits::admit(app, &project.id, RecordKind::Session, &COLLECTION).await?;
    // The session and its first version.
    projects::count_record(app, project, &session)?;
    projects::count_record(app, project, &session)?;
    let created = app.store.change(&COLLECTION, id.as_str(), || async {
        // A deleted project gets no sessions any more.
        let exists = projects::record(app, &project.organization, &project.id).await?;
        let now = app.clock.now();
        let inserted = Batch::at(now)
            .check(&exists)
            .insert(owner, id.as_str(), &session);
        let batch = with_version(inserted, owner, id.as_str(), &session);
        let stored = Record::inserted(owner, id.as_str(), now, session.clone());
        Ok::<_, Error>((batch, stored))
    });
    Ok(created.await?)
}

/// Returns a session of the project. Fails if the session does not exist.
pub async fn get(app: &App, project: &Project, id: &SessionId) -> Result<Record<Session>> {
    let session = app.store.get(project.id.as_str(), id.as_str()).await?;
    session.ok_or_else(|| errors::tool_router_session_not_found(id))
}

/// Notes the use of a session, at most once in [`USE_INTERVAL`], if unused sessions are erased.
pub(super) async fn note_use(app: &App, session: &Record<Session>) -> Result<()> {
    let now = app.clock.now();
    if app.sessions.retention.is_none() || session.updated_at > time_before(now, USE_INTERVAL) {
        return Ok(());
    }
    // The time of the last change is that of the commit.
    let noted = app
        .store
        .edit(&session.project, &session.id, now, |_: &mut Session| {
            Ok::<_, Error>(())
        });
    noted.await?;
    Ok(())
}

/// Returns the address of a session's MCP endpoint.
#[must_use]
pub fn mcp_url(app: &App, id: &str) -> String {
    format!("{}/tool_router/{id}/mcp", app.base_url())
}

/// Changes the configuration of a session, which raises its version. The user stays the same. Returns
/// the session as this change stored it. Fails if the session does not exist or has another version
/// than the expected one, or the configuration is invalid.
pub async fn change(
    app: &App,
    project: &Project,
    id: &SessionId,
    expected_version: Option<u32>,
    apply: impl Fn(&mut Config) -> Result<()>,
) -> Result<Record<Session>> {
    let owner = project.id.as_str();
    let changed = app.store.change(&COLLECTION, id.as_str(), || async {
        let mut session = get(app, project, id).await?;
        session.body.check_version(expected_version)?;
        let before = session.body.config.clone().normalized();
        let mut requested = before.clone();
        apply(&mut requested)?;
        let config = check::checked(app, project, requested, &before).await?;
        let now = app.clock.now();
        if config == before {
            return Ok((Batch::at(now), session));
        }
        session.body.config = config;
        if !session.body.config.asks_as(&before) {
            session.body.approved.clear();
        }
        session.body.version += 1;
        projects::count_record(app, project, &session.body)?;
        let updated = Batch::at(now).update(&session);
        let versioned = with_version(updated, owner, id.as_str(), &session.body);
        let obsolete = session.body.version.checked_sub(MAX_VERSIONS);
        let obsolete_id = version_id(id.as_str(), obsolete.unwrap_or_default());
        let oldest = app.store.get::<ConfigVersion>(owner, &obsolete_id).await?;
        let batch = oldest.iter().fold(versioned, Batch::purge);
        Ok::<_, Error>((batch, session.updated(now)))
    });
    Ok(changed.await?)
}

/// Remembers that the user of a session has approved a tool with an account for the rest of it. `session` is
/// the one for which the user was asked. Fails if it was deleted.
pub(super) async fn approve(
    app: &App,
    session: &Record<Session>,
    tool: &str,
    account: Option<&AccountId>,
) -> Result<()> {
    let (project, id) = (&*session.project, &*session.id);
    let asked = session.body.version;
    app.store
        .edit(project, id, app.clock.now(), |stored: &mut Session| {
            // The approval is that of the configuration by which the user was asked.
            if stored.version == asked {
                stored.approve(tool, account);
            }
            Ok::<_, Error>(())
        })
        .await?
        .ok_or_else(|| errors::tool_router_session_not_found(id))
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
