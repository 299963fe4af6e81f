//! The caller of a tool inside a session.

use std::sync::Arc;

use store::{Record, Time};

use super::{
    Config,
    recipes::Progress,
    sessions::{self, Session},
};
use crate::{
    App, Result,
    core::{ids::SessionId, request_id::RequestId},
    projects::SharedProject,
};

/// The caller of a tool inside a session. Dropping the future of a call cancels the call.
#[derive(Debug, Clone)]
pub struct SessionCaller {
    /// The project of the session.
    pub project: SharedProject,
    /// Id of the session, unless the session is not stored.
    pub(super) id: Option<SessionId>,
    /// The session, as it was when the request began.
    pub session: Arc<Record<Session>>,
    /// Id of the request, for the log.
    pub request_id: RequestId,
    /// True if the key of the request permits proxy requests.
    pub may_proxy: bool,
    /// Progress of the recipes that the request executes.
    pub progress: Progress,
}

impl SessionCaller {
    /// Reads the session of a request. Fails if the session does not exist in the project.
    pub async fn open(
        app: &App,
        project: &SharedProject,
        id: &SessionId,
        request_id: RequestId,
        may_proxy: bool,
    ) -> Result<Self> {
        let session = sessions::get(app, project, id).await?;
        sessions::note_use(app, &session).await?;
        Ok(Self {
            project: project.clone(),
            id: Some(id.clone()),
            session: Arc::new(session),
            request_id,
            may_proxy,
            progress: Progress::default(),
        })
    }

    /// Returns the caller of a session that is not stored and has no id. It sends no proxy requests.
    pub(super) fn unstored(project: &SharedProject, config: Config, request_id: RequestId) -> Self {
        let record = Record {
            id: String::new(),
            project: project.id.to_string(),
            revision: 0,
            created_at: Time(0),
            updated_at: Time(0),
            deleted_at: None,
            body: Session::new(config),
        };
        Self {
            project: project.clone(),
            id: None,
            session: Arc::new(record),
            request_id,
            may_proxy: false,
            progress: Progress::default(),
        }
    }

    /// Returns the id of the session; empty if the session is not stored.
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
