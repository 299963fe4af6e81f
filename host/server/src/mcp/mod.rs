//! MCP endpoints, over streamable HTTP: of MCP servers and of tool router sessions.
//!
//! Every request is complete in itself, so that any server of an installation answers it. The
//! protocol is that of the crate `rmcp`, which only this module uses. A request is admitted
//! ([`access`]) before its body is read.

mod access;
mod calls;
mod endpoint;
mod prompts;
mod tools;

use std::sync::Arc;

use app::{
    agents::{
        SessionCaller,
        mcp_servers::{McpCaller, Selection},
    },
    core::ids::{AccountId, SessionId},
};
use axum::{
    extract::{FromRequestParts, Request, State},
    http::{HeaderValue, Method, StatusCode},
    response::{IntoResponse, Response},
};
use serde::Deserialize;

use self::endpoint::{Caller, Endpoint};
pub(crate) use self::{calls::Calls, endpoint::TOOLS_PER_PAGE};
use crate::{
    Server,
    http::{
        ApiResult, Path, ProjectKey, Query, body,
        context::{operation, request_id},
    },
};

/// Header with the id of a client's connection, for protocol versions before 2026-07-28.
const CONNECTION_ID: &str = "mcp-session-id";
/// Characters of a new id of a connection, enough for 128 random bits.
const CONNECTION_ID_CHARS: usize = 22;

/// User and accounts of an address.
#[derive(Deserialize)]
pub(crate) struct Address {
    user_id: Option<String>,
    connected_account_id: Option<String>,
    #[serde(default)]
    connected_account_ids: Vec<String>,
}

impl Address {
    fn selection(self) -> ApiResult<Selection> {
        let accounts = self.connected_account_id.into_iter();
        let accounts = accounts.chain(self.connected_account_ids);
        let accounts = accounts.map(|id| AccountId::parse(id.trim()));
        Ok(Selection {
            user_id: self.user_id,
            accounts: accounts.collect::<Result<_, _>>()?,
        })
    }
}

/// Answers a request to an MCP server.
pub(crate) async fn server(
    State(server): State<Arc<Server>>,
    Path(id): Path<String>,
    Query(address): Query<Address>,
    request: Request,
) -> ApiResult<Response> {
    access::check_host(&server, request.headers())?;
    let selection = address.selection()?;
    let caller = McpCaller::open(&server.app, &id, selection, request_id()).await?;
    let request = access::admit(&server, &caller, request).await?;
    answer(server, Caller::Server(Arc::new(caller)), request).await
}

/// Answers a request to a tool router session, which needs the key of its project.
pub(crate) async fn session(
    State(server): State<Arc<Server>>,
    Path(id): Path<SessionId>,
    request: Request,
) -> ApiResult<Response> {
    access::check_host(&server, request.headers())?;
    let (mut parts, body) = request.into_parts();
    let key = ProjectKey::from_request_parts(&mut parts, &server).await?;
    let caller = SessionCaller::open(&server.app, &key.project, &id, request_id()).await?;
    let request = Request::from_parts(parts, body);
    answer(server, Caller::Session(caller), request).await
}

async fn answer(server: Arc<Server>, caller: Caller, request: Request) -> ApiResult<Response> {
    if request.method() == Method::DELETE {
        // A connection has no state that could be deleted.
        return Ok(StatusCode::OK.into_response());
    }
    let connection = request.headers().get(CONNECTION_ID);
    let connection = connection
        .and_then(|id| id.to_str().ok())
        .map(str::to_owned);
    let mut parts = request.headers().clone();
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let limit = operation().max_body.bytes(&server.config.limits);
    let bytes = body::read(&server, request, limit).await?;
    if let (Some(connection), Some(call)) = (&connection, calls::cancelled(&bytes)) {
        server.mcp_calls.cancel(connection, &call);
    }
    let is_initialize = calls::is_initialize(&bytes);
    let mut whole = axum::http::Request::new(http_body_util::Full::new(bytes));
    *whole.method_mut() = method;
    *whole.uri_mut() = uri;
    std::mem::swap(whole.headers_mut(), &mut parts);
    let endpoint = Endpoint::new(server, caller, connection);
    let mut response = endpoint.answer(whole).await;
    if is_initialize && response.status().is_success() {
        let id = app::core::ids::random_text(CONNECTION_ID_CHARS);
        let id = HeaderValue::try_from(id).ok();
        response.headers_mut().extend(id.map(|id| {
            let name = axum::http::HeaderName::from_static(CONNECTION_ID);
            (name, id)
        }));
    }
    Ok(response)
}
