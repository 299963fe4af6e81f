//! The records of the files of sessions.

use serde::{Deserialize, Serialize};
use store::{Collection, Document, Erasure, Field, Kind, Query, Record, Row, Time};

use crate::{
    App, Result,
    agents::{Session, SessionCaller, errors},
};

pub(crate) static COLLECTION: Collection = Collection {
    name: "session_files",
    erasure: Erasure::ProjectWithBlobs,
    fields: &[
        Field::new("session", Kind::Text),
        Field::unique("place", Kind::Text),
    ],
};

/// A file of a session, or a temporary record, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Stored {
    pub(super) session: String,
    /// Session and path; absent in a temporary record.
    pub(super) place: Option<String>,
    /// Path, relative to the folder of the session's files.
    pub(super) path: String,
    /// Key of the blob; absent until the file is uploaded.
    pub(super) blob: Option<String>,
    pub(super) media_type: String,
    /// Size, in bytes.
    pub(super) size: u64,
    /// Time of the last change of the content.
    pub(super) modified_at: Time,
    /// Time after which the record is erased; absent in a file with content.
    pub(super) expires_at: Option<Time>,
}

impl Document for Stored {
    const COLLECTION: &'static Collection = &COLLECTION;
}

impl Stored {
    pub(super) fn is_expired(&self, now: Time) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at < now)
    }
}

/// Returns the key of the blob of a stored file. A temporary record names no blob that lasts.
pub(crate) fn blob_key(row: &Row) -> Option<String> {
    let stored: Stored = serde_json::from_slice(&row.body).ok()?;
    stored.blob.filter(|_| stored.place.is_some())
}

/// The session that owns files.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owner<'a> {
    pub(super) project: &'a str,
    pub(super) session: &'a str,
}

impl<'a> From<&'a SessionCaller> for Owner<'a> {
    fn from(caller: &'a SessionCaller) -> Self {
        Self {
            project: caller.project.id.as_str(),
            session: caller.session_id(),
        }
    }
}

impl Owner<'_> {
    pub(super) fn place(self, path: &str) -> String {
        format!("{}/{path}", self.session)
    }

    pub(super) async fn session(self, app: &App) -> Result<Record<Session>> {
        let session = app.store.get(self.project, self.session).await?;
        session.ok_or_else(|| errors::tool_router_session_not_found(self.session))
    }

    pub(super) async fn records(self, app: &App) -> Result<Vec<Record<Stored>>> {
        let query = Query::for_project(self.project).is("session", self.session);
        Ok(app.store.find(&query).await?.records)
    }

    pub(super) async fn at(self, app: &App, path: &str) -> Result<Option<Record<Stored>>> {
        let query = Query::for_project(self.project).is("place", self.place(path));
        Ok(app.store.first(query).await?)
    }
}
