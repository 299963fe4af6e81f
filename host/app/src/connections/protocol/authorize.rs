//! Address of an authorization request (RFC 6749, section 4.1.1).

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use net::Url;
use sha2::{Digest, Sha256};

use super::{
    Away, Flow, Refusal, Result, joined,
    request::{address, percent},
};

/// Parameter for the scopes with which a provider acts for the user, where the other scopes are its
/// own.
const USER_SCOPE: &str = "user_scope";
/// Maximum length in bytes of an address that browsers and servers accept.
const LONGEST: usize = 8_000;

pub(super) fn url(flow: &Flow<'_>, away: Away<'_>) -> Result<Url> {
    let Away {
        redirect_uri,
        state,
        verifier,
        scopes,
        user_scopes,
    } = away;
    let about = flow.oauth2()?;
    let mut url = address(flow, &about.authorize_url)?;
    let client = flow
        .client_id()
        .ok_or_else(|| Refusal::unsent("nobody has said the `client_id`"))?;
    let mut query = vec![
        ("response_type", "code".to_owned()),
        ("client_id", percent(&client)),
        ("redirect_uri", percent(redirect_uri)),
        ("state", percent(state)),
    ];
    // As a separator, `+` is the form encoding of a space and therefore stays unescaped.
    let written = |scope: String| match about.scope_separator.as_deref() {
        Some("+") => scope.split('+').map(percent).collect::<Vec<_>>().join("+"),
        _ => percent(&scope),
    };
    let (scope, user_scope) = (
        joined(about, &about.scopes, scopes),
        joined(about, &[], user_scopes),
    );
    for (name, scope) in [("scope", scope), (USER_SCOPE, user_scope)] {
        query.extend((!scope.is_empty()).then(|| (name, written(scope))));
    }
    if let Some(verifier) = verifier.filter(|_| about.pkce) {
        query.push(("code_challenge", challenge(verifier)));
        query.push(("code_challenge_method", "S256".to_owned()));
    }
    for (name, _) in &mut query {
        *name = about
            .authorize_rename
            .get(*name)
            .map_or(*name, String::as_str);
    }
    let secret = |name: &str| flow.scheme.secrets().any(|secret| secret == name);
    let value = |name: &str| match name {
        "client_id" => Some(client.clone()),
        "redirect_uri" => Some(redirect_uri.to_owned()),
        name => flow.value(name).filter(|_| !secret(name)),
    };
    let more = about
        .authorize_params
        .iter()
        .filter(|(name, _)| user_scopes.is_empty() || *name != USER_SCOPE);
    query.extend(more.filter_map(|(name, template)| {
        Some((name.as_str(), percent(&manifest::fill(template, &value)?)))
    }));
    let own = url.query().filter(|own| !own.is_empty()).map(str::to_owned);
    let added = query
        .into_iter()
        .map(|(name, value)| format!("{}={value}", percent(name)));
    url.set_query(Some(
        &own.into_iter().chain(added).collect::<Vec<_>>().join("&"),
    ));
    if url.as_str().len() > LONGEST {
        return Err(Refusal::unsent(format!(
            "its address would be longer than {LONGEST} bytes; ask for fewer scopes"
        )));
    }
    Ok(url)
}

/// Computes the challenge of a code verifier, method S256 (RFC 7636, section 4.2).
#[must_use]
pub fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier))
}
