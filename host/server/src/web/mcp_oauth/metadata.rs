//! Metadata of MCP endpoints and of the authorization server. It says nothing about the objects of
//! projects, so that it needs no key and does not reveal which endpoints exist.

use std::sync::Arc;

use axum::{
    extract::State,
    http::{HeaderValue, Uri},
};
use serde::Serialize;

use super::{
    AUTHORIZE_PATH, ENDPOINT_SCOPE, REGISTER_PATH, RESOURCE_METADATA_PATH, REVOKE_PATH, TOKEN_PATH,
};
use crate::{
    Server,
    http::{ApiResult, Json},
    mcp,
};

/// Metadata of an MCP endpoint (RFC 9728, section 2).
#[derive(Serialize)]
pub(crate) struct ResourceMetadata {
    resource: String,
    authorization_servers: [String; 1],
    scopes_supported: [&'static str; 1],
    bearer_methods_supported: [&'static str; 1],
}

/// Metadata of the authorization server (RFC 8414, section 2).
#[derive(Serialize)]
pub(crate) struct ServerMetadata {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    registration_endpoint: String,
    revocation_endpoint: String,
    scopes_supported: [&'static str; 1],
    response_types_supported: [&'static str; 1],
    response_modes_supported: [&'static str; 1],
    grant_types_supported: [&'static str; 2],
    token_endpoint_auth_methods_supported: [&'static str; 1],
    revocation_endpoint_auth_methods_supported: [&'static str; 1],
    code_challenge_methods_supported: [&'static str; 1],
    authorization_response_iss_parameter_supported: bool,
}

/// Answers with the metadata of the MCP endpoint whose path and query follow in the address.
pub(crate) async fn resource(
    State(server): State<Arc<Server>>,
    uri: Uri,
) -> ApiResult<Json<ResourceMetadata>> {
    let own = uri.path_and_query().map_or("", |own| own.as_str());
    let endpoint = own.strip_prefix(RESOURCE_METADATA_PATH).unwrap_or_default();
    let base = server.app.base_url();
    let resource = format!("{base}{endpoint}");
    mcp::resource(&server, &resource)?;
    Ok(Json(ResourceMetadata {
        resource,
        authorization_servers: [base.to_owned()],
        scopes_supported: [ENDPOINT_SCOPE],
        bearer_methods_supported: ["header"],
    }))
}

/// Answers with the metadata of the authorization server.
pub(crate) async fn server(State(server): State<Arc<Server>>) -> Json<ServerMetadata> {
    let base = server.app.base_url();
    Json(ServerMetadata {
        issuer: base.to_owned(),
        authorization_endpoint: format!("{base}{AUTHORIZE_PATH}"),
        token_endpoint: format!("{base}{TOKEN_PATH}"),
        registration_endpoint: format!("{base}{REGISTER_PATH}"),
        revocation_endpoint: format!("{base}{REVOKE_PATH}"),
        scopes_supported: [ENDPOINT_SCOPE],
        response_types_supported: ["code"],
        response_modes_supported: ["query"],
        grant_types_supported: ["authorization_code", "refresh_token"],
        token_endpoint_auth_methods_supported: ["none"],
        revocation_endpoint_auth_methods_supported: ["none"],
        code_challenge_methods_supported: ["S256"],
        authorization_response_iss_parameter_supported: true,
    })
}

/// Returns the challenge to a request to an MCP endpoint without valid credentials (RFC 9728, section
/// 5.1). `has_token` is true if it had an access token, which is not valid then.
pub(crate) fn challenge(server: &Server, endpoint: &Uri, has_token: bool) -> Option<HeaderValue> {
    let base = server.app.base_url();
    let endpoint = endpoint.path_and_query().map_or("", |own| own.as_str());
    let endpoint = endpoint.replace('"', "%22");
    let error = if has_token {
        "error=\"invalid_token\", "
    } else {
        ""
    };
    let metadata = format!("{base}{RESOURCE_METADATA_PATH}{endpoint}");
    let challenge =
        format!("Bearer {error}resource_metadata=\"{metadata}\", scope=\"{ENDPOINT_SCOPE}\"");
    HeaderValue::try_from(challenge).ok()
}
