//! Metadata of MCP endpoints and of the authorization server. It says nothing about the objects of
//! projects, so that it needs no key and does not reveal which endpoints exist.

use std::sync::Arc;

use app::Error;
use axum::{
    extract::State,
    http::{HeaderValue, Uri},
};
use http::{ApiResult, Json, Server};
use serde::Serialize;

use super::{
    ENDPOINT_SCOPE, REGISTER_PATH, RESOURCE_METADATA_PATH, REVOKE_PATH, SERVER_METADATA_PATH,
    TOKEN_PATH, issuer::Issuer,
};

/// Metadata of an MCP endpoint (RFC 9728, section 2).
#[derive(Serialize)]
pub struct ResourceMetadata {
    resource: String,
    authorization_servers: [String; 1],
    scopes_supported: [&'static str; 1],
    bearer_methods_supported: [&'static str; 1],
}

/// Metadata of the authorization server (RFC 8414, section 2).
#[derive(Serialize)]
pub struct ServerMetadata {
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
pub async fn resource(
    State(server): State<Arc<Server>>,
    uri: Uri,
) -> ApiResult<Json<ResourceMetadata>> {
    let own = uri.path_and_query().map_or("", |own| own.as_str());
    let endpoint = own.strip_prefix(RESOURCE_METADATA_PATH).unwrap_or_default();
    let (endpoint, issuer) = named(&server, endpoint, Issuer::of_endpoint)?;
    Ok(Json(ResourceMetadata {
        resource: format!("{}{endpoint}", server.app.base_url()),
        authorization_servers: [issuer.url()],
        scopes_supported: [ENDPOINT_SCOPE],
        bearer_methods_supported: ["header"],
    }))
}

/// Answers with the metadata of the authorization server for the issuer whose path follows in the
/// address.
pub async fn server(
    State(server): State<Arc<Server>>,
    uri: Uri,
) -> ApiResult<Json<ServerMetadata>> {
    let issuer = uri.path().strip_prefix(SERVER_METADATA_PATH);
    let (_, issuer) = named(&server, issuer.unwrap_or_default(), Issuer::at)?;
    Ok(Json(server_metadata(&server, &issuer)))
}

/// Answers with the metadata of the authorization server for the issuer whose path precedes in the
/// address. Clients look there that do not know RFC 8414.
pub async fn issuer(
    State(server): State<Arc<Server>>,
    uri: Uri,
) -> ApiResult<Json<ServerMetadata>> {
    let issuer = uri.path().strip_suffix(SERVER_METADATA_PATH);
    let issuer = Issuer::at(&server, issuer.unwrap_or_default())?;
    Ok(Json(server_metadata(&server, &issuer)))
}

/// Finds what a path names that a client or a proxy has put together: with the path of `public_url`, as
/// the RFCs demand, or without it.
fn named<'a, 'p, T>(
    server: &'a Server,
    path: &'p str,
    find: impl Fn(&'a Server, &str) -> Result<T, Error>,
) -> Result<(&'p str, T), Error> {
    let found = find(server, path);
    let own = path.strip_prefix(server.config.public_path());
    match (found, own) {
        (Err(_), Some(own)) => Ok((own, find(server, own)?)),
        (found, _) => Ok((path, found?)),
    }
}

fn server_metadata(server: &Server, issuer: &Issuer<'_>) -> ServerMetadata {
    let base = server.app.base_url();
    ServerMetadata {
        issuer: issuer.url(),
        authorization_endpoint: issuer.page(),
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
    }
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
