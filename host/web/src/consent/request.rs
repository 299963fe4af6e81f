//! Authorization request of an assistant (RFC 6749, section 4.1.1, with PKCE).

use app::agents::mcp_oauth::{self, Client, NewConsent};
use axum::http::Uri;
use http::{ApiResult, Server, errors};
use mcp::{
    oauth::{Issuer, Parameters},
    target,
};
use url::Url;

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

impl AuthorizationRequest {
    /// Reads the request of a page.
    ///
    /// # Errors
    /// If a parameter is missing or wrong, or the client is unknown.
    pub(super) fn read(server: &Server, uri: &Uri) -> ApiResult<Self> {
        let issuer = Issuer::of_page(server, uri.path())?;
        let parameters = Parameters::parse(uri.query().unwrap_or_default())?;
        let [client_id, given, response_type, challenge] = parameters.required([
            "client_id",
            "redirect_uri",
            "response_type",
            "code_challenge",
        ])?;
        let client = mcp_oauth::registered(&server.app, client_id)?;
        let invalid = errors::mcp_authorization_invalid;
        let redirect_uri = Url::parse(given)
            .ok()
            .filter(|_| client.has_redirect_uri(given))
            .ok_or_else(|| invalid("redirect_uri is not one that the client registered"))?;
        if response_type != "code" {
            return Err(invalid("response_type must be `code`").into());
        }
        let is_hash = challenge.len() == CHALLENGE_CHARS
            && challenge
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        if !is_hash || parameters.get("code_challenge_method") != Some("S256") {
            return Err(invalid("code_challenge must be made by the method `S256`").into());
        }
        parameters.check_scope()?;
        let named = parameters.get("resource");
        let named = named.map(|url| target(server, url)).transpose()?;
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
    pub(super) fn answer(&self, answer: &[(&str, &str)]) -> String {
        let mut url = self.redirect_uri.clone();
        let state = self.state.as_deref().map(|state| ("state", state));
        url.query_pairs_mut()
            .extend_pairs(answer)
            .extend_pairs(state)
            .append_pair("iss", &self.issuer);
        url.into()
    }
}
