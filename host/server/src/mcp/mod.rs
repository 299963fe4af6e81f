//! MCP endpoints, over streamable HTTP: of MCP servers and of tool router sessions.
//!
//! Every request is complete in itself, so that any server of an installation answers it. The
//! protocol is that of the crate `rmcp`, which only this module uses; plain lists and calls of tools are
//! answered without its service ([`direct`]). A request is admitted ([`access`]) before its body is read.

mod access;
mod address;
mod approving;
mod calls;
mod changes;
mod connecting;
mod cursor;
mod descriptions;
mod direct;
mod endpoint;
mod handler;
mod listing;
mod progress;
mod prompts;
mod resources;
mod results;
mod tools;

use std::sync::Arc;

use app::{
    agents::{mcp_oauth::Resource, mcp_servers::McpCaller},
    core::ids::SessionId,
    projects::permissions::{Access, Area},
};
use axum::{
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode},
    response::{IntoResponse, Response},
};

use self::{
    address::Address,
    calls::{Connection, ConnectionMessage},
    direct::DirectRequest,
    endpoint::{Caller, Endpoint, OPENS_URLS_SUFFIX},
};
pub(crate) use self::{
    address::resource,
    calls::{Calls, watch_cancellations},
    descriptions::{Descriptions, MAX_DESCRIPTION_BYTES},
    listing::TOOLS_PER_PAGE,
    resources::{MAX_RESOURCE_BYTES, RESOURCES_PER_PAGE},
};
use crate::{
    Server,
    api::tool_router,
    http::{
        ApiResult, Path, ProjectKey, body, context::operation, operation::Permission, request_id,
    },
};

/// Header with the id of a client's connection, for protocol versions before 2026-07-28.
static CONNECTION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// Header with the version of the protocol.
static PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// First version of the protocol without connections and streams of `GET`.
const FIRST_VERSION_WITHOUT_CONNECTIONS: &str = "2026-07-28";
/// Permission that a key needs at MCP servers.
pub(crate) const SERVER_PERMISSION: Permission =
    Permission::OneOf(&[Area::ToolExecution, Area::McpServers], Access::Write);
/// Permission that a key needs at sessions.
pub(crate) const SESSION_PERMISSION: Permission = Permission::OneOf(
    &[
        Area::SessionToolExecution,
        Area::Sessions,
        Area::ToolExecution,
    ],
    Access::Write,
);
/// Characters of a new id of a connection, enough for 128 random bits.
const CONNECTION_ID_CHARS: usize = 22;

/// Answers a request to an MCP server.
pub(crate) async fn server(
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let endpoint = request.uri().clone();
    let answered = async {
        let address = Address::parse(request.uri().query(), &server.branding)?;
        access::check_host(&server, request.headers())?;
        let selection = address.selection()?;
        let caller = McpCaller::open(&server.app, &id, selection, request_id()).await?;
        let (request, key) = access::admit(&server, &caller, request).await?;
        let connection = Connection::of(&request, key.as_ref());
        let caller = caller.with_credential(key.as_ref().map(ProjectKey::credential));
        let caller = Caller::Server(Arc::new(caller));
        answer(server.clone(), caller, connection, request).await
    }
    .await;
    answered.unwrap_or_else(|cause| access::refuse(&server, &endpoint, cause))
}

/// Answers a request to a tool router session, which needs the key of its project, or a token for the
/// session.
pub(crate) async fn session(
    State(server): State<Arc<Server>>,
    Path(id): Path<SessionId>,
    request: Request,
) -> Response {
    let endpoint = request.uri().clone();
    let answered = async {
        access::check_host(&server, request.headers())?;
        address::check_session(request.uri().query())?;
        let (mut parts, body) = request.into_parts();
        let resource = Resource::Session(id.clone());
        let key = access::project_key(&server, &mut parts, &resource).await?;
        let caller = tool_router::open(&key, &id).await?;
        let request = Request::from_parts(parts, body);
        let connection = Connection::of(&request, Some(&key));
        answer(server.clone(), Caller::Session(caller), connection, request).await
    }
    .await;
    answered.unwrap_or_else(|cause| access::refuse(&server, &endpoint, cause))
}

/// Returns true if a client cancels its call by a disconnection, whatever the settings are. A request
/// without a version of the protocol does not.
pub(crate) fn cancels_by_disconnecting(headers: &HeaderMap) -> bool {
    !has_streams(headers)
}

/// Returns true if the version of the protocol has streams of `GET`.
fn has_streams(headers: &HeaderMap) -> bool {
    let version = headers.get(&PROTOCOL_VERSION);
    version.is_none_or(|version| *version < *FIRST_VERSION_WITHOUT_CONNECTIONS)
}

async fn answer(
    server: Arc<Server>,
    caller: Caller,
    connection: Option<Connection>,
    request: Request,
) -> ApiResult<Response> {
    if request.method() == Method::DELETE {
        // A connection has no state that could be deleted.
        return Ok(StatusCode::OK.into_response());
    }
    if request.method() == Method::GET && has_streams(request.headers()) {
        return Ok(changes::stream(Endpoint::new(server, caller, connection)));
    }
    let (head, body) = request.into_parts();
    let limit = operation().max_body.bytes(&server.config.limits);
    let bytes = body::read_after(&server, &head.headers, body, limit).await?;
    let bytes = body::decoded(&server, &head.headers, bytes).await?;
    if head.method == Method::POST
        && let Some(request) = DirectRequest::read(&head.headers, &bytes)
    {
        let endpoint = Endpoint::new(server, caller, connection);
        return endpoint.answer_directly(request).await;
    }
    let message = ConnectionMessage::read(&bytes);
    if let (Some(connection), Some(ConnectionMessage::Cancel(call))) = (&connection, &message) {
        calls::cancel(&server, connection, call.clone()).await;
    }
    let whole = axum::http::Request::from_parts(head, http_body_util::Full::new(bytes));
    let mut endpoint = Endpoint::new(server, caller, connection);
    if message == Some(ConnectionMessage::Listen) {
        endpoint.open_stream();
    }
    let mut response = endpoint.answer(whole).await;
    if let Some(ConnectionMessage::Open { opens_urls }) = message
        && response.status().is_success()
    {
        let mut id = app::core::ids::random_text(CONNECTION_ID_CHARS);
        if opens_urls {
            id.push_str(OPENS_URLS_SUFFIX);
        }
        let id = HeaderValue::try_from(id).ok();
        let header = id.map(|id| (CONNECTION_ID.clone(), id));
        response.headers_mut().extend(header);
    }
    Ok(response)
}
