//! Clients that the server creates itself: registered at the provider (RFC 7591), or described at
//! the address used as the client's id (OAuth Client ID Metadata Document).

use manifest::{ClientAuth, OAuth2};
use net::Url;
use serde_json::{Map, Value, json};

use super::{
    Flow, Refusal, Result, Values, answer, join_scopes,
    request::{self, REGISTERED_AUTH},
    text,
    variables::Variables,
};

/// Members of a registration with the address and the token to read it (RFC 7592).
const CLIENT_URI_MEMBER: &str = "registration_client_uri";
const ACCESS_TOKEN_MEMBER: &str = "registration_access_token";

/// Members of a registration that are stored.
const STORED_MEMBERS: [&str; 6] = [
    "client_id",
    "client_secret",
    "client_secret_expires_at",
    REGISTERED_AUTH,
    CLIENT_URI_MEMBER,
    ACCESS_TOKEN_MEMBER,
];

/// Returns the metadata of a client (RFC 7591, section 2). A client that would send its secret in
/// the body is registered without authentication: it proves itself by the code challenge, and uses
/// a secret if it receives one.
#[must_use]
pub fn metadata(oauth2: &OAuth2, name: &str, redirect_uri: &str) -> Map<String, Value> {
    let how = match oauth2.client_auth {
        ClientAuth::Basic | ClientAuth::SecretAsUser => "client_secret_basic",
        ClientAuth::PrivateKeyJwt => "private_key_jwt",
        ClientAuth::Body | ClientAuth::None => "none",
    };
    let mut metadata = Map::new();
    metadata.insert("client_name".to_owned(), name.into());
    metadata.insert("redirect_uris".to_owned(), json!([redirect_uri]));
    metadata.insert(
        "grant_types".to_owned(),
        json!(["authorization_code", "refresh_token"]),
    );
    metadata.insert("response_types".to_owned(), json!(["code"]));
    metadata.insert(REGISTERED_AUTH.to_owned(), how.into());
    let scope = join_scopes(oauth2, &oauth2.scopes, &[]);
    if !scope.is_empty() {
        metadata.insert("scope".to_owned(), scope.into());
    }
    metadata
}

/// Returns true if the provider no longer knows a client (RFC 7592, section 2.1). Not all providers
/// support this request.
pub(super) async fn is_deleted(flow: &Flow<'_>, client: &Values) -> bool {
    let (Some(url), Some(token)) = (
        client
            .get(CLIENT_URI_MEMBER)
            .and_then(text)
            .and_then(|url| Url::parse(&url).ok()),
        client.get(ACCESS_TOKEN_MEMBER).and_then(text),
    ) else {
        return false;
    };
    let endpoint = flow
        .scheme
        .oauth2
        .as_ref()
        .and_then(|oauth2| oauth2.register.as_ref()?.url.as_ref());
    // The token is sent only to the origin of the registration endpoint.
    let is_same_origin = endpoint.is_some_and(|endpoint| {
        request::fill_url(flow, endpoint).is_ok_and(|endpoint| endpoint.origin() == url.origin())
    });
    if !is_same_origin {
        return false;
    }
    let response = request::get(flow.net, url, Some(&token)).await;
    response.is_ok_and(|response| matches!(response.status.as_u16(), 401 | 403 | 404))
}

/// Registers a client and returns its credentials.
pub(super) async fn register(flow: &Flow<'_>, name: &str, redirect_uri: &str) -> Result<Values> {
    let oauth2 = flow.oauth2()?;
    let call = oauth2
        .register
        .as_ref()
        .filter(|call| call.url.is_some())
        .ok_or_else(|| {
            Refusal::unsent("neither the toolkit nor the provider names a registration endpoint")
        })?;
    let variables = Variables::new(flow, Vec::new(), &[])?;
    let response =
        request::send_json(&variables, call, metadata(oauth2, name, redirect_uri)).await?;
    let answer = answer::accept(flow.now_ms, None, &response)?;
    let kept = STORED_MEMBERS
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), answer.get(*name)?.clone())));
    let client: Values = kept.collect();
    let id = client
        .get("client_id")
        .and_then(text)
        .filter(|id| !id.is_empty());
    id.map(|_| client)
        .ok_or_else(|| Refusal::malformed("it contains no `client_id`"))
}
