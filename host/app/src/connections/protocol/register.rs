//! Clients that the platform makes itself: registered at the application (RFC 7591), or described at an address that is the
//! client's id (OAuth Client ID Metadata Document).

use manifest::{ClientAuth, OAuth2};
use serde_json::{Map, Value, json};

use super::{Flow, Refusal, Result, Values, answer, joined, request, text, variables::Variables};

/// What of a registration is kept.
const KEPT: [&str; 5] =
    ["client_id", "client_secret", "client_secret_expires_at", "registration_access_token", "registration_client_uri"];

/// What a client says of itself (RFC 7591, section 2). Where it shows its secret among the parameters it needs none: it proves
/// itself by the code challenge, and takes a secret if it is given one.
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
    metadata.insert("grant_types".to_owned(), json!(["authorization_code", "refresh_token"]));
    metadata.insert("response_types".to_owned(), json!(["code"]));
    metadata.insert("token_endpoint_auth_method".to_owned(), how.into());
    let scope = joined(about, &[]);
    if !scope.is_empty() {
        metadata.insert("scope".to_owned(), scope.into());
    }
    metadata
}

/// Registers a client; answers its credentials.
pub(super) async fn register(flow: &Flow<'_>, name: &str, redirect_uri: &str) -> Result<Values> {
    let about = flow.oauth2()?;
    let call = about
        .register
        .as_ref()
        .ok_or_else(|| Refusal::unsent("the toolkit does not say where clients are registered"))?;
    let variables = Variables::of(flow, Vec::new(), &[])?;
    let response = request::send_json(&variables, call, metadata(about, name, redirect_uri)).await?;
    let answer = answer::accepted(None, &response)?;
    let kept = KEPT.iter().filter_map(|name| Some(((*name).to_owned(), answer.get(*name)?.clone())));
    let client: Values = kept.collect();
    let id = client.get("client_id").and_then(text).filter(|id| !id.is_empty());
    id.map(|_| client).ok_or_else(|| Refusal::malformed("it holds no `client_id`"))
}
