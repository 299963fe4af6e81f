//! Registration of assistants as clients (RFC 7591).

use std::sync::Arc;

use app::agents::mcp_oauth::{self, Client};
use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use http::{ApiResult, Created, Json, Server};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ENDPOINT_SCOPE, refused};

/// Metadata of a client. Other members are replaced by what the server supports.
#[derive(Deserialize, ToSchema)]
pub struct Metadata {
    client_name: Option<String>,
    #[serde(default)]
    redirect_uris: Vec<String>,
}

#[derive(Serialize)]
struct Registered {
    client_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_name: Option<String>,
    redirect_uris: Vec<String>,
    grant_types: [&'static str; 2],
    response_types: [&'static str; 1],
    token_endpoint_auth_method: &'static str,
    scope: &'static str,
}

/// Registers a client.
pub async fn client(
    State(server): State<Arc<Server>>,
    metadata: ApiResult<Json<Metadata>>,
) -> Response {
    register(&server, metadata).unwrap_or_else(refused::response)
}

fn register(server: &Server, metadata: ApiResult<Json<Metadata>>) -> ApiResult<Response> {
    let Json(metadata) = metadata?;
    let client = Client {
        name: metadata.client_name.filter(|name| !name.trim().is_empty()),
        redirect_uris: metadata.redirect_uris,
    };
    let client_id = mcp_oauth::register(&server.app, &client)?;
    let registered = Registered {
        client_id,
        client_name: client.name,
        redirect_uris: client.redirect_uris,
        grant_types: ["authorization_code", "refresh_token"],
        response_types: ["code"],
        token_endpoint_auth_method: "none",
        scope: ENDPOINT_SCOPE,
    };
    Ok(Created(registered).into_response())
}
