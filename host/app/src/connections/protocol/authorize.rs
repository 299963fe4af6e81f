//! Where the person is sent to agree (RFC 6749, section 4.1.1).

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use net::Url;
use sha2::{Digest, Sha256};

use super::{
    Flow, Refusal, Result,
    request::{address, percent},
};

pub(super) fn url(
    flow: &Flow<'_>,
    redirect_uri: &str,
    state: &str,
    verifier: Option<&str>,
    scopes: &[String],
) -> Result<Url> {
    let about = flow.oauth2()?;
    let mut url = address(flow, &about.authorize_url)?;
    let mut query = vec![
        ("response_type", "code".to_owned()),
        ("client_id", percent(&flow.client.id)),
        ("redirect_uri", percent(redirect_uri)),
        ("state", percent(state)),
    ];
    let scope = scope(about.scope_separator.as_deref(), about.scopes.iter().chain(scopes));
    query.extend((!scope.is_empty()).then_some(("scope", scope)));
    if let Some(verifier) = verifier.filter(|_| about.pkce) {
        query.push(("code_challenge", challenge(verifier)));
        query.push(("code_challenge_method", "S256".to_owned()));
    }
    query.extend(about.authorize_params.iter().map(|(name, value)| (name.as_str(), percent(value))));
    let own = url.query().filter(|own| !own.is_empty()).map(str::to_owned);
    let added = query.into_iter().map(|(name, value)| format!("{}={value}", percent(name)));
    url.set_query(Some(&own.into_iter().chain(added).collect::<Vec<_>>().join("&")));
    if url.as_str().len() > LONGEST {
        return Err(Refusal::unsent(format!("its address would be longer than {LONGEST} bytes; ask for fewer scopes")));
    }
    Ok(url)
}

/// Browsers and servers take this much.
const LONGEST: usize = 8_000;

/// The challenge for a verifier, method S256 (RFC 7636, section 4.2).
#[must_use]
pub fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier))
}

/// Each scope once, in the order given. A separator `+` is a space as forms write it, so it stays as it is.
fn scope<'a>(separator: Option<&str>, scopes: impl Iterator<Item = &'a String>) -> String {
    let mut once: Vec<String> = Vec::new();
    for scope in scopes.map(|scope| percent(scope)) {
        if !once.contains(&scope) {
            once.push(scope);
        }
    }
    let separator = match separator {
        Some("+") => "+".to_owned(),
        other => percent(other.unwrap_or(" ")),
    };
    once.join(&separator)
}
