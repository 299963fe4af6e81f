//! Exchange of codes and refresh tokens for tokens, and revocation of tokens.

use std::sync::Arc;

use app::agents::mcp_oauth::{self, CodeExchange, Refresh, Resource, Tokens};
use axum::{
    extract::{Request, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use http::{ApiResult, Json, Server, body, errors};
use serde::Serialize;

use super::{ENDPOINT_SCOPE, parameters::Parameters, refused};
use crate::{accepted::content_type, address};

/// Maximum size of a token request.
pub const MAX_TOKEN_REQUEST_BYTES: usize = 16 << 10;
/// Media type of token requests (RFC 6749, section 3.2).
const FORM_MEDIA_TYPE: &str = "application/x-www-form-urlencoded";

/// Tokens of a client (RFC 6749, section 5.1).
#[derive(Serialize)]
struct TokenResponse {
    access_token: String,
    token_type: &'static str,
    /// Validity of the access token in seconds.
    expires_in: u64,
    refresh_token: String,
    scope: &'static str,
}

/// Issues tokens.
pub async fn issue(State(server): State<Arc<Server>>, request: Request) -> Response {
    match exchange(&server, request).await {
        Ok(Tokens { access, refresh }) => Json(TokenResponse {
            access_token: access,
            token_type: "Bearer",
            expires_in: mcp_oauth::ACCESS_TOKEN_TTL.as_secs(),
            refresh_token: refresh,
            scope: ENDPOINT_SCOPE,
        })
        .into_response(),
        Err(cause) => refused::response(cause),
    }
}

/// Revokes a token, and all others of the same consent (RFC 7009).
pub async fn revoke(State(server): State<Arc<Server>>, request: Request) -> Response {
    match end(&server, request).await {
        Ok(()) => StatusCode::OK.into_response(),
        Err(cause) => refused::response(cause),
    }
}

async fn end(server: &Server, request: Request) -> ApiResult<()> {
    let parameters = read(server, request).await?;
    let [token, client_id] = parameters.required(["token", "client_id"])?;
    Ok(mcp_oauth::revoke(&server.app, token, client_id).await?)
}

/// Reads the form of a request. A client that declares no media type sends one, too.
async fn read(server: &Server, request: Request) -> ApiResult<Parameters> {
    let declared = content_type(request.headers());
    if declared.is_some_and(|declared| !declared.eq_ignore_ascii_case(FORM_MEDIA_TYPE)) {
        let problem = format!(
            "the body is not a form by its content type: send `content-type: {FORM_MEDIA_TYPE}`"
        );
        return Err(errors::mcp_authorization_invalid(problem).into());
    }
    let body = body::read(server, request, MAX_TOKEN_REQUEST_BYTES).await?;
    Parameters::parse(&String::from_utf8_lossy(&body))
}

async fn exchange(server: &Server, request: Request) -> ApiResult<Tokens> {
    let parameters = read(server, request).await?;
    let [client_id, grant_type] = parameters.required(["client_id", "grant_type"])?;
    mcp_oauth::registered(&server.app, client_id)?;
    let resource = target(server, &parameters)?;
    Ok(match grant_type {
        "authorization_code" => {
            let [code, redirect_uri, verifier] =
                parameters.required(["code", "redirect_uri", "code_verifier"])?;
            let request = CodeExchange {
                code: code.to_owned(),
                client_id: client_id.to_owned(),
                redirect_uri: redirect_uri.to_owned(),
                verifier: verifier.to_owned(),
                resource,
            };
            mcp_oauth::exchange(&server.app, request).await?
        }
        "refresh_token" => {
            parameters.check_scope()?;
            let [token] = parameters.required(["refresh_token"])?;
            let request = Refresh {
                token: token.to_owned(),
                client_id: client_id.to_owned(),
                resource,
            };
            mcp_oauth::refresh(&server.app, request).await?
        }
        _ => return Err(errors::mcp_grant_type_unknown().into()),
    })
}

/// Returns the endpoint that a request names, if it names one.
fn target(server: &Server, parameters: &Parameters) -> ApiResult<Option<Resource>> {
    let url = parameters.get("resource");
    let named = url.map(|url| address::target(server, url)).transpose()?;
    Ok(named.flatten())
}
