//! The caller of a tool inside a session.

use std::{borrow::Cow, sync::Arc};

use store::{Record, Time};

use super::{
    Config, Credential,
    progress::Progress,
    sessions::{self, Session},
};
use crate::{
    App, Result,
    core::{ids::SessionId, request_id::RequestId},
    projects::{
        Holder, SharedProject,
        permissions::{Access, Area},
    },
};

/// Rights of the key of a request in a session, in addition to the execution of tools.
#[derive(Debug, Clone, Default)]
pub struct CallerRights {
    /// The key or access token; absent in requests of this server itself.
    pub credential: Option<Credential>,
    /// True if the key permits proxy requests.
    pub proxy: bool,
    /// True if the key permits to create links by which the user connects accounts.
    pub connect: bool,
    /// True if the key permits to store and to delete recipes.
    pub store_recipes: bool,
}

impl CallerRights {
    /// Returns the rights of the holder of a key, or of an access token with this consent.
    #[must_use]
    pub fn of_key(holder: &Holder, consent: Option<String>) -> Self {
        let scopes = holder.rights.scopes.as_ref();
        let may = |areas: &[Area]| scopes.is_none_or(|scopes| scopes.allow(areas, Access::Write));
        Self {
            credential: Some(Credential::new(holder, consent)),
            proxy: may(&[Area::ProxyExecute]),
            connect: may(&[Area::Sessions, Area::ConnectedAccounts]),
            store_recipes: may(&[Area::Sessions, Area::ToolExecution]),
        }
    }
}

/// The caller of a tool inside a session. Dropping the future of a call cancels the call.
#[derive(Debug, Clone)]
pub struct SessionCaller {
    /// The project of the session.
    pub project: SharedProject,
    /// Id of the session, unless the session is not stored.
    pub(super) id: Option<SessionId>,
    /// The session, as it was at the start of the request.
    pub session: Arc<Record<Session>>,
    /// Id of the request, for the log.
    pub request_id: RequestId,
    /// Rights of the key of the request.
    pub rights: CallerRights,
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
        rights: CallerRights,
    ) -> Result<Self> {
        let session = sessions::get(app, project, id).await?;
        sessions::note_use(app, &session).await?;
        Ok(Self {
            project: project.clone(),
            id: Some(id.clone()),
            session: Arc::new(session),
            request_id,
            rights,
            progress: Progress::default(),
        })
    }

    /// Returns the caller with the session as it is now, for a tool that starts after others or after a
    /// wait. Fails if the session was deleted, or the credential of the request revoked. An unchanged
    /// session is not decoded again.
    pub async fn current(&self, app: &App) -> Result<Cow<'_, Self>> {
        if let Some(credential) = &self.rights.credential {
            credential.check(app).await?;
        }
        let Some(id) = &self.id else {
            return Ok(Cow::Borrowed(self));
        };
        let project = self.project.id.as_str();
        let revision = app.store.revision::<Session>(project, id.as_str()).await?;
        if revision == Some(self.session.revision) {
            return Ok(Cow::Borrowed(self));
        }
        let session = Arc::new(sessions::get(app, &self.project, id).await?);
        Ok(Cow::Owned(Self {
            session,
            ..self.clone()
        }))
    }

    /// Returns the caller of a session that is not stored and lacks an id. It sends no proxy requests and
    /// stores no recipes.
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
            rights: CallerRights {
                connect: true,
                ..CallerRights::default()
            },
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
