//! Clients that the server creates itself: registered at the provider (RFC 7591), or described at
//! an address that is the client's id (OAuth Client ID Metadata Document).

use manifest::{ClientAuth, OAuth2};
use net::Url;
use serde_json::{Map, Value, json};

use super::{Flow, Refusal, Result, Values, answer, joined, request, text, variables::Variables};

/// Members of a registration with the address and the token to read it (RFC 7592).
const ADDRESS: &str = "registration_client_uri";
const TOKEN: &str = "registration_access_token";

/// Members of a registration that are stored.
const KEPT: [&str; 5] = [
    "client_id",
    "client_secret",
    "client_secret_expires_at",
    ADDRESS,
    TOKEN,
];

/// Returns the metadata of a client (RFC 7591, section 2). A client that would send its secret in
/// the body is registered without authentication: it proves itself by the code challenge, and uses
/// a secret if it receives one.
#[must_use]
pub fn metadata(about: &OAuth2, name: &str, redirect_uri: &str) -> Map<String, Value> {
    let how = match about.client_auth {
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
    metadata.insert("token_endpoint_auth_method".to_owned(), how.into());
    let scope = joined(about, &about.scopes, &[]);
    if !scope.is_empty() {
        metadata.insert("scope".to_owned(), scope.into());
    }
    metadata
}

/// Returns true if the provider no longer knows a client (RFC 7592, section 2.1). Not all providers
/// support this request.
pub(super) async fn is_gone(flow: &Flow<'_>, client: &Values) -> bool {
    let value = |name: &str| client.get(name).and_then(text);
    let (Some(url), Some(token)) = (
        value(ADDRESS).and_then(|url| Url::parse(&url).ok()),
        value(TOKEN),
    ) else {
        return false;
    };
    let own = flow
        .scheme
        .oauth2
        .as_ref()
        .and_then(|about| about.register.as_ref()?.url.as_ref());
    // The token is sent only to the origin of the registration endpoint.
    if !own.is_some_and(|own| {
        request::address(flow, own).is_ok_and(|own| own.origin() == url.origin())
    }) {
        return false;
    }
    let answered = request::get(flow.net, url, Some(&token)).await;
    answered.is_ok_and(|response| matches!(response.status.as_u16(), 401 | 403 | 404))
}

/// Registers a client and returns its credentials.
pub(super) async fn register(flow: &Flow<'_>, name: &str, redirect_uri: &str) -> Result<Values> {
    let about = flow.oauth2()?;
    let call = about
        .register
        .as_ref()
        .filter(|call| call.url.is_some())
        .ok_or_else(|| {
            Refusal::unsent("neither toolkit nor application say where clients are registered")
        })?;
    let variables = Variables::of(flow, Vec::new(), &[])?;
    let response =
        request::send_json(&variables, call, metadata(about, name, redirect_uri)).await?;
    let answer = answer::accepted(None, &response)?;
    let kept = KEPT
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), answer.get(*name)?.clone())));
    let client: Values = kept.collect();
    let id = client
        .get("client_id")
        .and_then(text)
        .filter(|id| !id.is_empty());
    id.map(|_| client)
        .ok_or_else(|| Refusal::malformed("it holds no `client_id`"))
}
