//! The right to act, as an argument: a handler without one of these does not compile into acting for anybody.

use std::sync::Arc;

use app::{
    Error,
    ids::OrganisationId,
    projects::{self, Holder, Owner, SharedProject},
};
use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, request::Parts},
};
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    Server,
    respond::{EXCHANGE, Failure, Reply},
};

/// The header of a project's key.
pub(crate) const PROJECT: &str = "x-api-key";
/// The header of an organisation's key.
pub(crate) const ORGANISATION: &str = "x-org-api-key";
const USER: &str = "x-user-api-key";

/// A request of a project.
pub(crate) struct ProjectKey {
    /// The project.
    pub project: SharedProject,
    /// The key itself.
    pub holder: Arc<Holder>,
    /// Given back when the request is answered.
    _place: OwnedSemaphorePermit,
}

/// A request of the organisation.
pub(crate) struct OrgKey {
    /// The organisation.
    pub organisation: OrganisationId,
}

impl FromRequestParts<Arc<Server>> for ProjectKey {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Reply<Self> {
        let secret = given(&parts.headers, PROJECT, "a project")?;
        let holder = holder(server, secret).await?;
        let Owner::Project(project) = &holder.owner else {
            return Err(Error::KeyOfOtherKind { wanted: "a project", given: "an organization" }.into());
        };
        count(server, &holder)?;
        let place = server.admission.enter_project(&project.tenant).await?;
        Ok(Self { project: project.clone(), holder, _place: place })
    }
}

impl FromRequestParts<Arc<Server>> for OrgKey {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Reply<Self> {
        let secret = given(&parts.headers, ORGANISATION, "an organization")?;
        let holder = holder(server, secret).await?;
        let Owner::Organisation(organisation) = &holder.owner else {
            return Err(Error::KeyOfOtherKind { wanted: "an organization", given: "a project" }.into());
        };
        count(server, &holder)?;
        Ok(Self { organisation: organisation.clone() })
    }
}

/// The one key of a request, when it came in the header that the operation wants.
fn given<'a>(headers: &'a HeaderMap, wanted: &str, name: &'static str) -> Reply<&'a str> {
    let kinds = [(PROJECT, "a project"), (ORGANISATION, "an organization"), (USER, "a user")];
    let mut found = None;
    for (header, kind) in kinds {
        for value in headers.get_all(header) {
            if found.replace((header, kind, value)).is_some() {
                return Err(Error::KeyAmbiguous.into());
            }
        }
    }
    match found {
        None => Err(Error::KeyMissing.into()),
        Some((header, kind, _)) if header != wanted => Err(Error::KeyOfOtherKind { wanted: name, given: kind }.into()),
        Some((_, _, value)) => Ok(value.to_str().unwrap_or_default()),
    }
}

/// Whose key it is. An address that has guessed too often gets no further answer, unless it has a key that worked before.
async fn holder(server: &Server, secret: &str) -> Reply<Arc<Holder>> {
    if let Some(holder) = server.app.keys.remembered(secret) {
        return Ok(holder);
    }
    let now = server.app.clock.now();
    let peer = EXCHANGE.try_with(|exchange| exchange.peer).ok();
    if let Some(peer) = peer {
        server.admission.may_try(peer, now)?;
    }
    let found = projects::authenticate(&server.app, secret).await;
    if let (Err(Error::KeyInvalid { .. }), Some(peer)) = (&found, peer) {
        server.admission.has_failed(peer, now);
    }
    Ok(found?)
}

fn count(server: &Server, holder: &Holder) -> Reply<()> {
    let counted = server.admission.count(holder.organisation(), server.app.clock.now());
    let remaining = match &counted {
        Ok(left) => *left,
        Err(_) => Some(0),
    };
    // Outside a request there is nobody to tell.
    let _ = EXCHANGE.try_with(|exchange| exchange.remaining.set(remaining));
    counted.map(|_| ()).map_err(Into::into)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn ask(pairs: &[(&'static str, &'static str)]) -> Result<String, u32> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        given(&headers, PROJECT, "a project").map(str::to_owned).map_err(|failure| match failure {
            Failure::App(Error::KeyMissing) => 0,
            Failure::App(Error::KeyAmbiguous) => 2,
            Failure::App(Error::KeyOfOtherKind { .. }) => 3,
            _ => 9,
        })
    }

    #[test]
    fn exactly_one_key_of_the_right_kind_is_taken() {
        assert_eq!(ask(&[(PROJECT, "ak_x")]).unwrap(), "ak_x");
        assert_eq!(ask(&[]), Err(0));
        assert_eq!(ask(&[(PROJECT, "a"), (ORGANISATION, "b")]), Err(2));
        assert_eq!(ask(&[(PROJECT, "a"), (PROJECT, "a")]), Err(2));
        assert_eq!(ask(&[(ORGANISATION, "b")]), Err(3));
        assert_eq!(ask(&[(USER, "u")]), Err(3));
    }
}
