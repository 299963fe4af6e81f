//! Proxy requests in a session.

use app::{agents, core::ids::SessionId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{execution::ResultType, open};
use crate::{
    api::tools::proxy::{ProxyRequest, ProxyView},
    http::{ApiResult, IN_TABLE, Json, Path, ProjectKey},
};

/// A proxy request in a session. The session decides about the user and the account.
#[derive(Deserialize, ToSchema)]
#[schema(as = ProxyInSession)]
pub(crate) struct ProxyBody {
    /// Toolkit to whose provider the request is sent.
    toolkit_slug: String,
    #[serde(flatten)]
    request: ProxyRequest,
}

/// A provider's response to a proxy request in a session.
#[derive(Serialize, ToSchema)]
#[schema(as = ProxiedInSession)]
pub(crate) struct ProxyResultView {
    #[serde(flatten)]
    response: ProxyView,
    result_type: ResultType,
}

/// Sends a request to a provider with an account of the session's user.
///
/// Every response of the provider counts as a success, whatever its status.
#[utoipa::path(post, path = IN_TABLE, responses(
    (status = 403, description = "The session does not permit proxy requests to the toolkit, or the target is not allowed"),
    (status = 422, description = "The account cannot be used in its current status"),
    (status = 502, description = "The provider sent no response"),
    (status = 504, description = "The provider sent no response in time"),
))]
pub(crate) async fn proxy_execute(
    key: ProjectKey,
    Path(id): Path<SessionId>,
    Json(body): Json<ProxyBody>,
) -> ApiResult<Json<ProxyResultView>> {
    let caller = open(&key, &id).await?;
    let account = body.request.account().map(str::to_owned);
    let request = body.request.without_account().try_into()?;
    let toolkit = &body.toolkit_slug;
    let response = agents::proxy(key.app(), &caller, toolkit, account.as_deref(), request).await?;
    Ok(Json(ProxyResultView {
        response: response.into(),
        result_type: ResultType::Completed,
    }))
}
