//! Authentication as handler arguments: a handler acts for a project, an organization or a user
//! only if it takes the matching argument.

mod admission;
mod secrets;

use std::sync::Arc;

use app::{
    App, Error,
    agents::Credential,
    core::ids::{OrganizationId, ProjectId},
    projects::{
        self, Holder, KeyKind, Owner, SharedProject,
        members::Member,
        permissions::{Access, Area},
    },
};
use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, request::Parts},
};

use self::secrets::{AcceptedKeys, ORGANIZATION_KEYS, PROJECT_KEYS, USER_KEYS, given};
use crate::{ApiError, ApiResult, Server, errors, operation::Permission};

pub use self::{
    admission::{admit, admit_to_project, admit_without_key, may},
    secrets::{anyone, has_key, holder, revoke, verify_secret},
};

/// Header of a project's key.
pub const PROJECT_KEY_HEADER: &str = "x-api-key";
/// Header of an organization's key.
pub const ORGANIZATION_KEY_HEADER: &str = "x-org-api-key";
/// Header of a user's key.
pub const USER_KEY_HEADER: &str = "x-user-api-key";
/// Headers that select the project of a user's request. A request has both or neither.
pub(crate) const SELECTION_HEADERS: [&str; 2] = ["x-org-id", "x-project-id"];

/// Request of a project: sent with its own key, or with the key of a user who selects the project.
pub struct ProjectKey {
    /// The server that answers the request.
    pub server: Arc<Server>,
    /// The project.
    pub project: SharedProject,
    /// The key itself.
    pub holder: Arc<Holder>,
    /// Id of the consent, if the request has an access token instead of the key.
    pub consent: Option<String>,
}

/// Request of the organization.
pub struct OrganizationKey {
    /// The server that answers the request.
    pub server: Arc<Server>,
    /// The organization.
    pub organization: OrganizationId,
}

/// Request of a user that selects no project.
pub struct UserKey {
    /// The server that answers the request.
    pub server: Arc<Server>,
    /// The organization of the user.
    pub organization: OrganizationId,
}

impl ProjectKey {
    /// Returns the credential that work of the request checks before it continues.
    pub fn credential(&self) -> Credential {
        Credential::new(&self.holder, self.consent.clone())
    }

    /// Checks a permission that the request needs in addition to the one of its operation.
    pub fn may(&self, access: Access, areas: &'static [Area]) -> Result<(), Error> {
        may(&self.holder, Permission::OneOf(areas, access))
    }
}

macro_rules! keys {
    ($($key:ident)+) => {$(
        impl $key {
            /// Returns the app that performs the request.
            pub fn app(&self) -> &App {
                &self.server.app
            }
        }
    )+};
}

keys! { ProjectKey OrganizationKey UserKey }

/// Request of an operation that needs no key.
pub struct NoKey;

impl FromRequestParts<Arc<Server>> for NoKey {
    type Rejection = ApiError;

    async fn from_request_parts(_: &mut Parts, _: &Arc<Server>) -> ApiResult<Self> {
        Ok(Self)
    }
}

impl FromRequestParts<Arc<Server>> for ProjectKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> ApiResult<Self> {
        let secret = given(&parts.headers, &PROJECT_KEYS)?;
        let holder = holder(server, secret).await?;
        let project = project(server, &holder, &parts.headers).await?;
        let project = project.ok_or_else(|| other_kind(&PROJECT_KEYS, &holder))?;
        admit_to_project(server, &holder, &project).await?;
        let server = server.clone();
        Ok(Self {
            server,
            project,
            holder,
            consent: None,
        })
    }
}

impl FromRequestParts<Arc<Server>> for OrganizationKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> ApiResult<Self> {
        let secret = given(&parts.headers, &ORGANIZATION_KEYS)?;
        let holder = holder(server, secret).await?;
        let Owner::Organization(organization) = &holder.owner else {
            return Err(other_kind(&ORGANIZATION_KEYS, &holder).into());
        };
        admit(server, &holder, None)?;
        Ok(Self {
            server: server.clone(),
            organization: organization.clone(),
        })
    }
}

impl FromRequestParts<Arc<Server>> for UserKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> ApiResult<Self> {
        let secret = given(&parts.headers, &USER_KEYS)?;
        let holder = holder(server, secret).await?;
        if holder.kind() != KeyKind::User {
            return Err(other_kind(&USER_KEYS, &holder).into());
        }
        admit(server, &holder, None)?;
        Ok(Self {
            server: server.clone(),
            organization: holder.organization().clone(),
        })
    }
}

/// Refuses a key of another kind than the header that has it.
fn other_kind(wanted: &AcceptedKeys, holder: &Holder) -> Error {
    let given = format!("{} key", holder.kind().name());
    errors::key_of_other_kind(wanted.text, &given)
}

/// Returns the project that a request is about; `None` for a key of the organization.
pub(crate) async fn project(
    server: &Server,
    holder: &Holder,
    headers: &HeaderMap,
) -> ApiResult<Option<SharedProject>> {
    Ok(match &holder.owner {
        Owner::Project(project) => Some(project.clone()),
        Owner::Member(member) => {
            let project = Box::pin(chosen(server, member, headers)).await?;
            Some(Arc::new(project))
        }
        Owner::Organization(_) => None,
    })
}

/// Returns the project that a user's request is about.
async fn chosen(
    server: &Server,
    member: &Member,
    headers: &HeaderMap,
) -> ApiResult<projects::Project> {
    let [organization, project] =
        SELECTION_HEADERS.map(|name| headers.get(name).and_then(|value| value.to_str().ok()));
    let named = match (organization, project) {
        (None, None) => None,
        (Some(organization), Some(project)) => {
            let [of_organization, of_project] = SELECTION_HEADERS;
            let (organization, project) = errors::both(
                OrganizationId::parse(organization).map_err(|error| error.at(of_organization)),
                ProjectId::parse(project).map_err(|error| error.at(of_project)),
            )?;
            if organization != member.organization {
                return Err(errors::project_not_found(project).into());
            }
            Some(project)
        }
        _ => return Err(errors::invalid("x-org-id, x-project-id: send both or neither").into()),
    };
    Ok(projects::members::project(&server.app, member, named.as_ref()).await?)
}
