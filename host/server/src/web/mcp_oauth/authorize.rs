//! Handlers of the page on which a project member gives an assistant access to an MCP endpoint.
//!
//! An invalid request is answered on the page, even if its redirect URI is valid: registration of
//! clients is public, so that a redirect without the consent of a member could lead to any address
//! (RFC 9700, section 4.11.2).

use std::sync::Arc;

use app::agents::mcp_oauth::{self, Client, NewConsent, Resource};
use axum::{
    extract::{Request, State},
    http::{HeaderMap, StatusCode, Uri, header},
    response::Response,
};
use url::Url;

use super::{consent, issuer::Issuer, parameters::Parameters};
use crate::{
    Server,
    http::{ApiError, ApiResult, auth, body, errors},
    mcp,
    web::link::{browser_cookie, redirect},
};

/// Maximum size of a submitted form.
pub(crate) const MAX_CONSENT_FORM_BYTES: usize = 4 << 10;
/// Name of the hidden form field with the form token.
pub(super) const FORM_TOKEN_FIELD: &str = "form-token";
/// Characters of a code challenge made by `S256` (RFC 7636, section 4.2).
const CHALLENGE_CHARS: usize = 43;

/// A valid authorization request (RFC 6749, section 4.1.1).
pub(super) struct AuthorizationRequest {
    pub(super) client: Client,
    pub(super) redirect_uri: Url,
    pub(super) consent: NewConsent,
    state: Option<String>,
    issuer: String,
}

/// Shows the page.
pub(crate) async fn show(
    State(server): State<Arc<Server>>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let request = match AuthorizationRequest::read(&server, &uri) {
        Ok(request) => request,
        Err(cause) => return consent::refusal(cause),
    };
    let browser = browser_cookie::read(&server, &headers).unwrap_or_else(browser_cookie::random_id);
    let form_token = server.app.form_token(&own(&uri), &browser);
    let names = match mcp_oauth::endpoint_names(&server.app, &request.consent.resource).await {
        Ok(names) => names,
        Err(cause) => return consent::refusal(cause.into()),
    };
    let form = consent::Form {
        token: &form_token,
        refused: None,
    };
    let mut page = consent::page(&request, names.as_ref(), form, StatusCode::OK);
    if let Some(cookie) = browser_cookie::set(&server, &browser) {
        page.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    page
}

/// Accepts the decision of a member.
pub(crate) async fn decide(State(server): State<Arc<Server>>, request: Request) -> Response {
    let decided = accept_form(&server, request).await;
    decided.unwrap_or_else(consent::refusal)
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
        Err(ApiError::App(cause)) if consent::is_about_key(&cause) => {
            let resource = &authorization.consent.resource;
            let names = mcp_oauth::endpoint_names(&server.app, resource).await?;
            let form = consent::Form {
                token: form_token,
                refused: Some(&cause),
            };
            let status = StatusCode::UNPROCESSABLE_ENTITY;
            Ok(consent::page(&authorization, names.as_ref(), form, status))
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

impl AuthorizationRequest {
    fn read(server: &Server, uri: &Uri) -> ApiResult<Self> {
        let issuer = Issuer::of_page(server, uri.path())?;
        let parameters = Parameters::parse(uri.query().unwrap_or_default())?;
        let client_id = parameters.required("client_id")?;
        let client = mcp_oauth::registered(&server.app, client_id)?;
        let given = parameters.required("redirect_uri")?;
        let invalid = errors::mcp_authorization_invalid;
        let redirect_uri = Url::parse(given)
            .ok()
            .filter(|_| client.has_redirect_uri(given))
            .ok_or_else(|| invalid("redirect_uri is not one that the client registered"))?;
        if parameters.required("response_type")? != "code" {
            return Err(invalid("response_type must be `code`").into());
        }
        let challenge = parameters.required("code_challenge")?;
        let is_hash = challenge.len() == CHALLENGE_CHARS
            && challenge
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        if !is_hash || parameters.get("code_challenge_method") != Some("S256") {
            return Err(invalid("code_challenge must be made by the method `S256`").into());
        }
        let named = parameters.get("resource");
        let named = named.map(|url| mcp::target(server, url)).transpose()?;
        let resource = issuer.target(named.flatten())?;
        Ok(Self {
            client,
            redirect_uri,
            consent: NewConsent {
                client_id: client_id.to_owned(),
                redirect_uri: given.to_owned(),
                challenge: challenge.to_owned(),
                resource,
            },
            state: parameters.get("state").map(str::to_owned),
            issuer: issuer.url(),
        })
    }

    /// Returns the redirect URI with the answer to the client, and with the issuer (RFC 9207).
    fn answer(&self, answer: &[(&str, &str)]) -> String {
        let mut url = self.redirect_uri.clone();
        let state = self.state.as_deref().map(|state| ("state", state));
        url.query_pairs_mut()
            .extend_pairs(answer)
            .extend_pairs(state)
            .append_pair("iss", &self.issuer);
        url.into()
    }
}
