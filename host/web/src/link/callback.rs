//! The callback to which providers redirect users.

use std::sync::Arc;

use app::accounts;
use axum::{
    extract::State,
    http::{HeaderMap, Method, StatusCode},
    response::{IntoResponse, Response},
};
use http::{IN_TABLE, NoKey, Server, auth, limiter::SecretKind, query::Pairs, run_to_completion};

use super::{browser_cookie, messages, redirect, render::accepts_html};

/// Headers with which browsers mark a request for a page that they may show later: that of the Fetch
/// Standard, and its older names.
const PURPOSE_HEADERS: [&str; 3] = ["sec-purpose", "purpose", "x-moz"];

/// Handles the redirect of a user's browser back from a provider.
#[utoipa::path(
    get, path = IN_TABLE, operation_id = "callback",
    params(
        ("state" = Option<String>, Query, description = "Value of `state` in the authorization request; identifies the connection attempt"),
        ("code" = Option<String>, Query, description = "Authorization code, which is exchanged for tokens"),
        ("iss" = Option<String>, Query, description = "Issuer identifier of the provider (RFC 9207)"),
        ("error" = Option<String>, Query, description = "Error code, if the authorization failed"),
        ("error_description" = Option<String>, Query, description = "Description of the error for people"),
        ("oauth_token" = Option<String>, Query, description = "Request token of OAuth 1.0"),
        ("oauth_verifier" = Option<String>, Query, description = "Verification code of OAuth 1.0"),
    ),
    responses((status = 302, description = "Redirects the browser to the callback URL of the project, or to a result page")),
)]
pub(crate) async fn handle(
    _: NoKey,
    State(server): State<Arc<Server>>,
    method: Method,
    headers: HeaderMap,
    Pairs(parameters): Pairs,
) -> Response {
    // The code is valid once. Browsers send the request again when the user opens the page, and programs
    // that look at links ask for the head alone.
    if method == Method::HEAD || is_prefetch(&headers) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let browser = browser_cookie::read(&server, &headers);
    let own = Arc::clone(&server);
    let exchange =
        async move { accounts::callback(&own.app, &parameters, browser.as_deref()).await };
    let exchanged = run_to_completion(&server.app, exchange);
    let outcome = auth::verify_secret(&server, SecretKind::Callback, exchanged).await;
    match outcome {
        Ok(landed) => redirect(StatusCode::FOUND, &landed),
        Err(failure) if accepts_html(&headers) => messages::callback_error(failure),
        Err(failure) => failure.into_response(),
    }
}

fn is_prefetch(headers: &HeaderMap) -> bool {
    PURPOSE_HEADERS.iter().any(|name| {
        let purpose = headers.get(*name).and_then(|purpose| purpose.to_str().ok());
        purpose.is_some_and(|purpose| purpose.contains("prefetch"))
    })
}
