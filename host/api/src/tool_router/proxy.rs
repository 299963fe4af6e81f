//! Proxy requests in a session.

use app::{agents, core::ids::SessionId};
use http::{ApiResult, IN_TABLE, Json, JsonWithText, Path, ProjectKey};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{execution::ResultType, open};
use crate::tools::{
    custom_credential::ConnectionData,
    proxy::{BinaryBody, ProxyParameter, ProxyRequest, ProxyView},
};

/// A proxy request in a session. The session decides about the user and the account.
#[derive(Deserialize, ToSchema)]
#[schema(as = ProxyInSession)]
pub(crate) struct ProxyBody {
    /// Toolkit to whose provider the request is sent.
    toolkit_slug: String,
    /// A path below the account's base URL, or an absolute https URL of the same domain or of a host
    /// in the toolkit's `egress`.
    endpoint: String,
    /// GET, POST, PUT, DELETE, PATCH or HEAD.
    method: String,
    /// The account to use; the one that the session selects without it.
    connected_account_id: Option<String>,
    body: Option<Value>,
    binary_body: Option<BinaryBody>,
    parameters: Option<Vec<ProxyParameter>>,
    custom_connection_data: Option<ConnectionData>,
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
    JsonWithText { body, text }: JsonWithText<ProxyBody>,
) -> ApiResult<Json<ProxyResultView>> {
    let caller = open(&key, &id).await?;
    let account = body.connected_account_id.as_deref().map(str::trim);
    let request = ProxyRequest {
        endpoint: body.endpoint,
        method: body.method,
        connected_account_id: None,
        user_id: None,
        body: body.body,
        binary_body: body.binary_body,
        parameters: body.parameters,
        custom_connection_data: body.custom_connection_data,
    };
    let (toolkit, request) = (&body.toolkit_slug, request.into_proxy(&key, text).await?);
    let response = agents::proxy(key.app(), &caller, toolkit, account, request).await?;
    Ok(Json(ProxyResultView {
        response: response.into(),
        result_type: ResultType::Completed,
    }))
}
