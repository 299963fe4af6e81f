//! Errors in the form of OAuth (RFC 6749, section 5.2; RFC 7591, section 3.2.2; RFC 8707, section 2).

use app::{Error, ErrorInfo};
use axum::{
    http::StatusCode,
    response::{IntoResponse, Response},
};
use http::{ApiError, errors, reply};
use serde::Serialize;

/// Error codes of OAuth by kind of error.
static OAUTH_ERROR_CODES: [(&ErrorInfo, &str); 9] = [
    (&errors::INVALID, "invalid_request"),
    (&errors::MCP_AUTHORIZATION_INVALID, "invalid_request"),
    (&errors::MCP_GRANT_TYPE_UNKNOWN, "unsupported_grant_type"),
    (&errors::MCP_SCOPE_INVALID, "invalid_scope"),
    (&errors::MCP_CLIENT_INVALID, "invalid_client_metadata"),
    (&errors::MCP_REDIRECT_URI_INVALID, "invalid_redirect_uri"),
    (&errors::MCP_CLIENT_UNKNOWN, "invalid_client"),
    (&errors::MCP_GRANT_INVALID, "invalid_grant"),
    (&errors::MCP_TARGET_INVALID, "invalid_target"),
];

#[derive(Serialize)]
struct Body {
    error: &'static str,
    error_description: String,
}

/// Returns the response to a request that was refused. An error that OAuth does not know has the
/// envelope of the API.
pub(super) fn response(refused: ApiError) -> Response {
    let mut codes = OAUTH_ERROR_CODES.iter();
    if let ApiError::App(error) = &refused
        && let Some((_, code)) = codes.find(|(kind, _)| error.is(kind))
    {
        let body = Body {
            error: code,
            error_description: description(error),
        };
        return reply::json(StatusCode::BAD_REQUEST, &body);
    }
    refused.into_response()
}

/// Returns message and suggested fix, in the characters that OAuth permits.
fn description(error: &Error) -> String {
    let text = format!("{error}; {}", error.info().hint);
    text.chars()
        .map(|c| match c {
            '"' | '\\' | '`' => '\'',
            c if c.is_ascii_graphic() || c == ' ' => c,
            _ => '?',
        })
        .collect()
}
