//! MCP endpoints, over streamable HTTP: of MCP servers and of tool router sessions.
//!
//! Every request is complete in itself, so that any server of an installation answers it. The
//! protocol is that of the crate `rmcp`, which only this module uses; plain lists and calls of tools are
//! answered without its service ([`direct`]). A request is admitted ([`access`]) before its body is read.

mod accepted;
mod access;
mod address;
mod approving;
mod batches;
mod calls;
mod changes;
mod connecting;
mod cursor;
mod descriptions;
mod direct;
mod endpoint;
mod handler;
mod headers;
mod listing;
mod messages;
pub mod oauth;
mod progress;
mod prompts;
mod resources;
mod results;
mod state;
mod tools;

use std::sync::Arc;

use app::{
    agents::{CallerRights, SessionCaller, mcp_oauth::Resource, mcp_servers::McpCaller},
    core::ids::SessionId,
    projects::permissions::{Access, Area},
};
use axum::{
    Extension,
    extract::{self, Request},
    http::{HeaderName, HeaderValue, Method, StatusCode, request::Parts},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::FutureExt;

use self::{
    accepted::Accepted,
    address::Address,
    calls::{Connection, ConnectionMessage},
    direct::DirectRequest,
    endpoint::{Caller, Endpoint, OPENS_URLS_SUFFIX},
    messages::Body,
};
pub use self::{
    address::target,
    descriptions::MAX_DESCRIPTION_BYTES,
    listing::MAX_PAGE_BYTES,
    messages::MAX_BATCH_MESSAGES,
    resources::{MAX_RESOURCE_BYTES, RESOURCES_PER_PAGE},
    results::MAX_RESULT_BYTES,
    state::State,
};
use http::{
    ApiResult, Path, ProjectKey, Server, body, context::operation, operation::Permission,
    request_id,
};
use net::text::media_type;

/// Header with the id of a client's connection, for protocol versions before 2026-07-28.
static CONNECTION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// Header with the version of the protocol.
static PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const JSON_MEDIA_TYPE: &str = "application/json";
const EVENT_STREAM_MEDIA_TYPE: &str = "text/event-stream";
/// First version of the protocol with schemas of results.
const FIRST_VERSION_WITH_OUTPUT_SCHEMAS: &str = "2025-06-18";
/// First version of the protocol without connections and streams of `GET`.
const FIRST_VERSION_WITHOUT_CONNECTIONS: &str = "2026-07-28";
/// Permission that a key needs at MCP servers.
pub const SERVER_PERMISSION: Permission =
    Permission::OneOf(&[Area::ToolExecution, Area::McpServers], Access::Write);
/// Permission that a key needs at sessions.
pub const SESSION_PERMISSION: Permission = Permission::OneOf(
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
pub async fn server(
    extract::State(server): extract::State<Arc<Server>>,
    Extension(state): Extension<Arc<State>>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let endpoint = request.uri().clone();
    let answered = async {
        let address = Address::parse(request.uri().query(), &server.branding)?;
        access::check_host(&server, request.headers())?;
        let selection = address.selection()?;
        let caller = McpCaller::open(&server.app, &id, selection, request_id()).await?;
        if let Some(refused) = refuse_other_program(&request) {
            return Ok(refused);
        }
        let (request, key) = access::admit(&server, &caller, request).await?;
        let connection = Connection::of(&request, key.as_ref());
        let credential = key.as_ref().map(ProjectKey::credential);
        let caller = Caller::Server(Arc::new(caller.with_credential(credential)));
        let endpoint = Endpoint::new(server.clone(), state, caller, connection);
        answer(endpoint, request).await
    }
    .await;
    answered.unwrap_or_else(|cause| access::refuse(&server, &endpoint, cause))
}

/// Answers a request to a tool router session, which needs the key of its project, or a token for the
/// session.
pub async fn session(
    extract::State(server): extract::State<Arc<Server>>,
    Extension(state): Extension<Arc<State>>,
    Path(id): Path<SessionId>,
    request: Request,
) -> Response {
    let endpoint = request.uri().clone();
    let answered = async {
        access::check_host(&server, request.headers())?;
        address::check_session(request.uri().query())?;
        if let Some(refused) = refuse_other_program(&request) {
            return Ok(refused);
        }
        let (mut parts, body) = request.into_parts();
        let resource = Resource::Session(id.clone());
        let key = access::project_key(&server, &mut parts, &resource).await?;
        let rights = CallerRights::of_key(&key.holder, key.consent.clone());
        let caller = SessionCaller::open(key.app(), &key.project, &id, request_id(), rights);
        let request = Request::from_parts(parts, body);
        let connection = Connection::of(&request, Some(&key));
        let caller = Caller::Session(caller.await?);
        let endpoint = Endpoint::new(server.clone(), state, caller, connection);
        answer(endpoint, request).await
    }
    .await;
    answered.unwrap_or_else(|cause| access::refuse(&server, &endpoint, cause))
}

/// Answers a request with a method that endpoints do not take.
pub async fn wrong_method() -> Response {
    headers::refuse_method(headers::ENDPOINT_METHODS)
}

/// Returns true if a request opens a stream, in a version of the protocol that has streams of `GET`.
fn opens_stream(request: &Request) -> bool {
    let version = request.headers().get(&PROTOCOL_VERSION);
    request.method() == Method::GET
        && version.is_none_or(|version| *version < *FIRST_VERSION_WITHOUT_CONNECTIONS)
}

/// Refuses a request for a stream that no MCP client sends. Its program has no key, and a refusal of the key
/// would explain nothing.
fn refuse_other_program(request: &Request) -> Option<Response> {
    if opens_stream(request) {
        headers::refuse_stream(request.headers())
    } else {
        None
    }
}

async fn answer(endpoint: Endpoint, request: Request) -> ApiResult<Response> {
    if request.method() == Method::DELETE {
        // A connection holds no state that could be deleted.
        return Ok(StatusCode::OK.into_response());
    }
    if opens_stream(&request) {
        return Ok(changes::stream(endpoint));
    }
    let (head, body) = request.into_parts();
    let server = &endpoint.server;
    let limit = operation().max_body.bytes();
    let bytes = body::read_after(server, &head.headers, body, limit).await?;
    let bytes = body::decoded(server, media_type(&head.headers), bytes).await?;
    if let Some(refused) = headers::refuse(&head, &bytes) {
        return Ok(refused);
    }
    let endpoint = endpoint.of_version(&head.headers);
    if let Some(request) = DirectRequest::read(&head.headers, &bytes) {
        return endpoint.answer_directly(request).await;
    }
    match Body::read(&bytes) {
        Err(refusal) => Ok(refusal.into_response()),
        Ok(Body::One(message)) => {
            let accepted = Accepted::of(&head.headers);
            let bytes = bytes.slice_ref(message.get().as_bytes());
            answer_message(endpoint, head, accepted, bytes).await
        }
        Ok(Body::Batch(messages)) => {
            let answered = batches::answer(endpoint, head, &bytes, messages);
            answered.boxed().await
        }
    }
}

/// Answers a message that is not answered directly.
async fn answer_message(
    mut endpoint: Endpoint,
    mut head: Parts,
    accepted: Accepted,
    bytes: Bytes,
) -> ApiResult<Response> {
    let readable = endpoint.keep_arguments(bytes.clone());
    let has_connections = direct::has_connections(&head.headers);
    let checked = messages::check(&String::from_utf8_lossy(&readable), has_connections);
    if let Err(refusal) = checked {
        return Ok(refusal.into_response());
    }
    let message = ConnectionMessage::read(&bytes);
    if let Some(ConnectionMessage::Cancel(call)) = &message {
        endpoint.cancel(call).await;
    }
    endpoint.may_stream = accepted.streams;
    if message == Some(ConnectionMessage::Listen)
        && accepted.streams
        && let Err(refused) = endpoint.open_stream()
    {
        return Ok(messages::refuse_stream(refused, messages::id_of(&bytes)));
    }
    accepted.declare(&mut head.headers);
    let answered = endpoint.answer_by_rmcp(head, readable).await;
    let mut response = messages::in_json(answered, &bytes).await;
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
