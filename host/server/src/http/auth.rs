//! Authentication as handler arguments: a handler acts for a project, an organization or a user
//! only if it takes the matching argument.
use std::sync::Arc;

use app::{
    App, Error,
    core::ids::{OrganizationId, ProjectId},
    projects::{
        self, Holder, KeyKind, Owner, SharedProject,
        members::Member,
        permissions::{Access, Area},
    },
};
use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, HeaderName, request::Parts},
};

use crate::{
    Server,
    http::{
        ApiError, ApiResult,
        context::{CURRENT_REQUEST, operation},
        errors,
        limiter::SecretKind,
        operation::Permission,
        permits,
    },
};

/// Header of a project's key.
pub(crate) const PROJECT_KEY_HEADER: &str = "x-api-key";
/// Header of an organization's key.
pub(crate) const ORGANIZATION_KEY_HEADER: &str = "x-org-api-key";
/// Header of a user's key.
pub(crate) const USER_KEY_HEADER: &str = "x-user-api-key";
/// Headers that select the project of a user's request. A request has both or neither.
pub(crate) const SELECTION_HEADERS: [&str; 2] = ["x-org-id", "x-project-id"];

/// Request of a project: sent with its own key, or with the key of a user who selects the project.
pub(crate) struct ProjectKey {
    /// The server that answers the request.
    pub server: Arc<Server>,
    /// The project.
    pub project: SharedProject,
    /// The key itself.
    pub holder: Arc<Holder>,
}

/// Request of the organization.
pub(crate) struct OrganizationKey {
    /// The server that answers the request.
    pub server: Arc<Server>,
    /// The organization.
    pub organization: OrganizationId,
}

/// Request of a user that selects no project.
pub(crate) struct UserKey {
    /// The server that answers the request.
    pub server: Arc<Server>,
    /// The organization of the user.
    pub organization: OrganizationId,
}

impl ProjectKey {
    /// Returns the app that performs the request.
    pub(crate) fn app(&self) -> &App {
        &self.server.app
    }

    /// Checks a permission that the request needs besides the one of its operation.
    pub(crate) fn may(&self, access: Access, areas: &'static [Area]) -> Result<(), Error> {
        may(&self.holder, Permission::OneOf(areas, access))
    }
}

impl OrganizationKey {
    /// Returns the app that performs the request.
    pub(crate) fn app(&self) -> &App {
        &self.server.app
    }
}

impl UserKey {
    /// Returns the app that performs the request.
    pub(crate) fn app(&self) -> &App {
        &self.server.app
    }
}

/// Request of an operation that needs no key.
pub(crate) struct NoKey;

impl FromRequestParts<Arc<Server>> for NoKey {
    type Rejection = ApiError;

    async fn from_request_parts(_: &mut Parts, _: &Arc<Server>) -> ApiResult<Self> {
        Ok(Self)
    }
}

impl FromRequestParts<Arc<Server>> for ProjectKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> ApiResult<Self> {
        let secret = given(
            &parts.headers,
            &[PROJECT_KEY_HEADER, USER_KEY_HEADER],
            "a project",
        )?;
        let holder = holder(server, secret).await?;
        let project = project(server, &holder, &parts.headers).await?;
        let project = project.ok_or_else(|| other_kind("a project", &holder))?;
        admit_to_project(server, &holder, &project).await?;
        let server = server.clone();
        Ok(Self {
            server,
            project,
            holder,
        })
    }
}

impl FromRequestParts<Arc<Server>> for OrganizationKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> ApiResult<Self> {
        let secret = given(
            &parts.headers,
            &[ORGANIZATION_KEY_HEADER],
            "an organization",
        )?;
        let holder = holder(server, secret).await?;
        let Owner::Organization(organization) = &holder.owner else {
            return Err(other_kind("an organization", &holder).into());
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
        let secret = given(&parts.headers, &[USER_KEY_HEADER], "a user")?;
        let holder = holder(server, secret).await?;
        if holder.kind() != KeyKind::User {
            return Err(other_kind("a user", &holder).into());
        }
        admit(server, &holder, None)?;
        Ok(Self {
            server: server.clone(),
            organization: holder.organization().clone(),
        })
    }
}

/// Refuses a key of another kind than the header that has it.
fn other_kind(wanted: &'static str, holder: &Holder) -> Error {
    errors::key_of_other_kind(wanted, holder.kind().name())
}

/// Returns the project that a request is about; none for a key of the organization.
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
            if OrganizationId::parse(organization)? != member.organization {
                return Err(
                    errors::project_not_found(ProjectId::parse(project)?.to_string()).into(),
                );
            }
            Some(ProjectId::parse(project)?)
        }
        _ => return Err(errors::invalid("x-org-id, x-project-id: send both or neither").into()),
    };
    Ok(projects::members::project(&server.app, member, named.as_ref()).await?)
}

/// Checks that the permissions of a key cover those of an operation.
pub(crate) fn may(holder: &Holder, permission: Permission) -> Result<(), Error> {
    let Some(scopes) = &holder.rights.scopes else {
        return Ok(());
    };
    match permission {
        Permission::AnyKey => Ok(()),
        Permission::OneOf(areas, access) if scopes.allow(areas, access) => Ok(()),
        Permission::OneOf(areas, access) => Err(errors::key_permission(
            if access == Access::Read {
                "read"
            } else {
                "write"
            },
            areas.first().map_or("", |area| area.into_str()),
        )),
        Permission::Unrestricted => Err(errors::key_permission(
            "change",
            "what only an unrestricted key may",
        )),
    }
}

/// Admits a request with a valid key once: checks the address that it comes from and counts it
/// against the rate limits.
pub(crate) fn admit(server: &Server, holder: &Holder, project: Option<&Arc<str>>) -> ApiResult<()> {
    CURRENT_REQUEST.with(|context| {
        if context.owner.get().is_some() {
            return Ok(());
        }
        if !holder.rights.admit(context.peer) {
            return Err(errors::key_address().into());
        }
        holder.record_use(server.app.clock.now());
        let counted = server.limiter.rates.count(holder, project);
        context.allowance.set(Some(counted.allowance));
        if let Some(refused) = counted.refused {
            return Err(refused.into());
        }
        let shares = &server.app.shares;
        match project {
            Some(project) => context.set_owner(shares, project),
            None => context.set_owner(shares, &holder.organization().as_str().into()),
        }
        Ok(())
    })
}

/// Admits a request of the holder of a key to a project: checks the permission of its operation, and
/// counts it against the limits.
pub(crate) async fn admit_to_project(
    server: &Server,
    holder: &Holder,
    project: &SharedProject,
) -> ApiResult<()> {
    may(holder, operation().permission)?;
    admit(server, holder, Some(&project.tenant))?;
    enter(server, project).await
}

/// Returns true if a request has a key of any kind.
pub(crate) fn has_key(headers: &HeaderMap) -> bool {
    let kinds = [PROJECT_KEY_HEADER, ORGANIZATION_KEY_HEADER, USER_KEY_HEADER];
    kinds.iter().any(|name| headers.contains_key(*name))
}

/// Admits a request to a public address of a project, and counts it against the rate limits.
pub(crate) async fn admit_without_key(server: &Server, project: &SharedProject) -> ApiResult<()> {
    let counted = server.limiter.rates.count_without_key(project);
    CURRENT_REQUEST.with(|context| {
        context.allowance.set(Some(counted.allowance));
        context.set_owner(&server.app.shares, &project.tenant);
    });
    if let Some(refused) = counted.refused {
        return Err(refused.into());
    }
    enter(server, project).await
}

/// Acquires a concurrency permit of the project, and goes on at the threads for the project.
async fn enter(server: &Server, project: &SharedProject) -> ApiResult<()> {
    permits::enter_project(&server.limiter, &project.tenant).await?;
    if let Some(task) = CURRENT_REQUEST.with(|context| context.task.clone()) {
        server.app.shares.settle(&task).await;
    }
    Ok(())
}

/// Returns the single key of a request, if it is of a kind that the operation accepts.
fn given<'a>(headers: &'a HeaderMap, wanted: &[&str], name: &'static str) -> ApiResult<&'a str> {
    // Names that are not parsed again for each request.
    static KEY_HEADERS: [(HeaderName, &str); 3] = [
        (HeaderName::from_static(PROJECT_KEY_HEADER), "a project"),
        (
            HeaderName::from_static(ORGANIZATION_KEY_HEADER),
            "an organization",
        ),
        (HeaderName::from_static(USER_KEY_HEADER), "a user"),
    ];
    let mut found = None;
    for (header, kind) in &KEY_HEADERS {
        for value in headers.get_all(header) {
            if found.replace((header.as_str(), *kind, value)).is_some() {
                return Err(errors::key_ambiguous().into());
            }
        }
    }
    match found {
        None => Err(errors::key_missing(&wanted.join(" or ")).into()),
        Some((header, kind, _)) if !wanted.contains(&header) => {
            Err(errors::key_of_other_kind(name, kind).into())
        }
        Some((_, _, value)) => Ok(value.to_str().unwrap_or_default()),
    }
}

/// Authenticates the sender of a request with any kind of key.
pub(crate) async fn anyone(server: &Server, headers: &HeaderMap) -> ApiResult<Arc<Holder>> {
    holder(
        server,
        given(
            headers,
            &[PROJECT_KEY_HEADER, ORGANIZATION_KEY_HEADER, USER_KEY_HEADER],
            "a",
        )?,
    )
    .await
}

/// Revokes a leaked key. Wrong keys count as failed authentications of the address; past their
/// limit, it gets an error.
pub(crate) async fn revoke(server: &Server, secret: &str) -> ApiResult<()> {
    match holder(server, secret).await {
        Ok(_) => Ok(projects::revoke(&server.app, secret).await?),
        Err(ApiError::App(error)) if error.is(&errors::KEY_INVALID) => Ok(()),
        Err(other) => Err(other),
    }
}

/// Returns the holder of a key, from the cache if possible.
pub(crate) async fn holder(server: &Server, secret: &str) -> ApiResult<Arc<Holder>> {
    match server.app.keys.cached(secret) {
        Some(holder) => Ok(holder),
        None => {
            let authenticated = projects::authenticate(&server.app, secret);
            Box::pin(judged(server, SecretKind::Key, authenticated)).await
        }
    }
}

/// Checks a secret that strangers may guess. An address with too many wrong secrets has to wait for
/// a turn, so that its guesses cost little and a valid secret still works.
pub(crate) async fn judged<T>(
    server: &Server,
    kind: SecretKind,
    judging: impl Future<Output = app::Result<T>>,
) -> ApiResult<T> {
    let peer = CURRENT_REQUEST.with(|context| context.peer);
    let now = server.app.clock.now();
    let suspects = server.limiter.suspects(kind);
    let suspected = suspects.suspected(peer, now);
    let outcome = match suspected {
        None => judging.await,
        Some(_) => {
            permits::leave();
            let _turn = suspects.turn().await?;
            permits::enter(&server.limiter).await?;
            judging.await
        }
    };
    let is_wrong = outcome
        .as_ref()
        .is_err_and(|error| error.is(&errors::KEY_INVALID) || error.is(&errors::ATTEMPT_UNKNOWN));
    if !is_wrong {
        return Ok(outcome?);
    }
    suspects.has_failed(peer, now);
    match suspected {
        Some(retry_after) => Err(errors::too_many_failures(retry_after).into()),
        None => Ok(outcome?),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn ask(pairs: &[(&'static str, &'static str)]) -> Result<String, Error> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        given(&headers, &[PROJECT_KEY_HEADER], "a project")
            .map(str::to_owned)
            .map_err(|failure| match failure {
                ApiError::App(error) => error,
                ApiError::Http(other) => panic!("{other:?}"),
            })
    }

    #[test]
    fn exactly_one_matching_key_is_accepted() {
        assert_eq!(ask(&[(PROJECT_KEY_HEADER, "ak_x")]).unwrap(), "ak_x");
        for (pairs, expected) in [
            (&[][..], &errors::KEY_MISSING),
            (
                &[(PROJECT_KEY_HEADER, "a"), (ORGANIZATION_KEY_HEADER, "b")],
                &errors::KEY_AMBIGUOUS,
            ),
            (
                &[(PROJECT_KEY_HEADER, "a"), (PROJECT_KEY_HEADER, "a")],
                &errors::KEY_AMBIGUOUS,
            ),
            (
                &[(ORGANIZATION_KEY_HEADER, "b")],
                &errors::KEY_OF_OTHER_KIND,
            ),
            (&[(USER_KEY_HEADER, "u")], &errors::KEY_OF_OTHER_KIND),
        ] {
            let error = ask(pairs).unwrap_err();
            assert!(error.is(expected), "{error}");
        }
    }
}
