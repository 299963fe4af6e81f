//! Handlers of the page on which a project member gives an assistant access to an MCP endpoint.
//!
//! An invalid request is answered on the page, even if its redirect URI is valid: registration of
//! clients is public, so that a redirect without the consent of a member could lead to any address
//! (RFC 9700, section 4.11.2).

mod page;
mod request;

use std::sync::Arc;

use http::{ApiError, ApiResult, Server, auth, body, errors};
use mcp::oauth::Parameters;

use self::{page::FORM_TOKEN_FIELD, request::AuthorizationRequest};
use crate::link::{browser_cookie, redirect};
use app::agents::mcp_oauth::{self, Resource};
use axum::{
    extract::{Request, State},
    http::{HeaderMap, StatusCode, Uri, header},
    response::Response,
};

/// Maximum size of a submitted form.
pub const MAX_CONSENT_FORM_BYTES: usize = 4 << 10;

/// Shows the page.
pub async fn show(State(server): State<Arc<Server>>, uri: Uri, headers: HeaderMap) -> Response {
    let request = match AuthorizationRequest::read(&server, &uri) {
        Ok(request) => request,
        Err(cause) => return page::refusal(cause),
    };
    let browser = browser_cookie::read(&server, &headers).unwrap_or_else(browser_cookie::random_id);
    let form_token = server.app.form_token(&own(&uri), &browser);
    let names = match mcp_oauth::endpoint_names(&server.app, &request.consent.resource).await {
        Ok(names) => names,
        Err(cause) => return page::refusal(cause.into()),
    };
    let form = page::Form {
        token: &form_token,
        refused: None,
    };
    let mut page = page::show(&request, names.as_ref(), form, StatusCode::OK);
    if let Some(cookie) = browser_cookie::set(&server, &browser) {
        page.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    page
}

/// Accepts the decision of a member.
pub async fn decide(State(server): State<Arc<Server>>, request: Request) -> Response {
    let decided = accept_form(&server, request).await;
    decided.unwrap_or_else(page::refusal)
}

async fn accept_form(server: &Arc<Server>, request: Request) -> ApiResult<Response> {
    let uri = request.uri().clone();
    let authorization = AuthorizationRequest::read(server, &uri)?;
    let browser = browser_cookie::read(server, request.headers());
    let body = body::read(server, request, MAX_CONSENT_FORM_BYTES).await?;
    let form = Parameters::parse(&String::from_utf8_lossy(&body))?;
    let form_token = form.get(FORM_TOKEN_FIELD).unwrap_or_default();
    // The expected value is a keyed hash over the secret id of the browser.
    let is_own =
        browser.is_some_and(|browser| server.app.form_token(&own(&uri), &browser) == form_token);
    if !is_own {
        let problem = "the form was opened in another browser";
        return Err(errors::mcp_authorization_invalid(problem).into());
    }
    if form.get("decision") != Some("allow") {
        let url = authorization.answer(&[("error", "access_denied")]);
        return Ok(redirect(StatusCode::SEE_OTHER, &url));
    }
    let key = form.get("key").unwrap_or_default().trim();
    match allow(server, &authorization, key).await {
        Ok(code) => {
            let url = authorization.answer(&[("code", &code)]);
            Ok(redirect(StatusCode::SEE_OTHER, &url))
        }
        Err(ApiError::App(cause)) if page::problem_of_key(&cause).is_some() => {
            let resource = &authorization.consent.resource;
            let names = mcp_oauth::endpoint_names(&server.app, resource).await?;
            let form = page::Form {
                token: form_token,
                refused: Some(&cause),
            };
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            Ok(page::show(&authorization, names.as_ref(), form, status))
        }
        Err(cause) => Err(cause),
    }
}

/// Signs a member in, and returns an authorization code.
async fn allow(
    server: &Server,
    authorization: &AuthorizationRequest,
    key: &str,
) -> ApiResult<String> {
    let holder = auth::holder(server, key).await?;
    let resource = &authorization.consent.resource;
    let project = mcp_oauth::member_project(&server.app, &holder, resource).await?;
    auth::may(
        &holder,
        match resource {
            Resource::Server { .. } => mcp::SERVER_PERMISSION,
            Resource::Session(_) => mcp::SESSION_PERMISSION,
        },
    )?;
    auth::admit(server, &holder, Some(&project.tenant))?;
    let consent = authorization.consent.clone();
    Ok(mcp_oauth::record_consent(&server.app, &project, &holder, consent).await?)
}

/// Returns the part of an address to which a form belongs.
fn own(uri: &Uri) -> String {
    uri.path_and_query()
        .map(ToString::to_string)
        .unwrap_or_default()
}
