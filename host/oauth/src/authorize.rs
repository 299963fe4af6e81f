//! Address of an authorization request (RFC 6749, section 4.1.1).

use std::collections::BTreeSet;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use manifest::OAuth2;
use net::Url;
use sha2::{Digest, Sha256};

use super::{
    AuthorizeParams, Flow, Refusal, Result, join_scopes,
    request::{fill_url, percent_encode},
};

/// Parameter for the scopes with which a provider acts for the user, where the other scopes are its
/// own.
const USER_SCOPE_PARAMETER: &str = "user_scope";
/// Maximum length in bytes of an address that browsers and servers accept.
const MAX_URL_BYTES: usize = 8_000;

pub(super) fn authorization_url(flow: &Flow<'_>, params: AuthorizeParams<'_>) -> Result<Url> {
    let oauth2 = flow.oauth2()?;
    let mut url = fill_url(flow, &oauth2.authorize_url)?;
    let client = flow
        .client_id()
        .ok_or_else(|| Refusal::unsent("the client has no `client_id`"))?;
    let mut query = vec![
        ("response_type", "code".to_owned()),
        ("client_id", percent_encode(&client)),
        ("redirect_uri", percent_encode(params.redirect_uri)),
        ("state", percent_encode(params.state)),
    ];
    let scope = join_scopes(oauth2, &oauth2.scopes, params.scopes);
    let user_scope = join_scopes(oauth2, &[], params.user_scopes);
    for (name, scope) in [("scope", scope), (USER_SCOPE_PARAMETER, user_scope)] {
        query.extend((!scope.is_empty()).then(|| (name, encode_scope(oauth2, &scope))));
    }
    if let Some(verifier) = params.verifier.filter(|_| oauth2.pkce) {
        query.push(("code_challenge", challenge(verifier)));
        query.push(("code_challenge_method", "S256".to_owned()));
    }
    for (name, _) in &mut query {
        *name = oauth2
            .authorize_rename
            .get(*name)
            .map_or(*name, String::as_str);
    }
    let value = |name: &str| match name {
        "client_id" => Some(client.clone()),
        "redirect_uri" => Some(params.redirect_uri.to_owned()),
        name => flow.value(name).filter(|_| !flow.is_secret(name)),
    };
    let more = oauth2
        .authorize_params
        .iter()
        .filter(|(name, _)| is_sent(name, params.user_scopes));
    query.extend(more.filter_map(|(name, template)| {
        Some((
            name.as_str(),
            percent_encode(&manifest::fill(template, &value)?),
        ))
    }));
    add_parameters(&mut url, &query);
    if url.as_str().len() > MAX_URL_BYTES {
        return Err(Refusal::unsent(format!(
            "the authorization URL would have more than {MAX_URL_BYTES} bytes: request fewer scopes"
        )));
    }
    Ok(url)
}

/// Adds parameters, whose values are encoded, to those of an address.
fn add_parameters(url: &mut Url, parameters: &[(&str, String)]) {
    let existing = url
        .query()
        .filter(|existing| !existing.is_empty())
        .map(str::to_owned);
    let added = parameters
        .iter()
        .map(|(name, value)| format!("{}={value}", percent_encode(name)));
    let query: Vec<_> = existing.into_iter().chain(added).collect();
    url.set_query(Some(&query.join("&")));
}

/// Returns the scopes that an authorization request asks for, sorted: those of the scheme, those in
/// its parameters, and these.
#[must_use]
pub fn requested_scopes(oauth2: &OAuth2, scopes: &[String], user_scopes: &[String]) -> Vec<String> {
    let parameters = oauth2.authorize_params.iter();
    let in_parameters = parameters
        .filter(|(name, _)| is_scope_parameter(name) && is_sent(name, user_scopes))
        .flat_map(|(_, value)| value.split([' ', ',']));
    let named = oauth2.scopes.iter().chain(scopes).chain(user_scopes);
    let all: BTreeSet<_> = named
        .map(String::as_str)
        .chain(in_parameters)
        .filter(|scope| !scope.is_empty())
        .collect();
    all.into_iter().map(str::to_owned).collect()
}

/// Returns true if a parameter of an authorization request contains scopes.
#[must_use]
pub fn is_scope_parameter(name: &str) -> bool {
    name.ends_with("scope")
}

/// Encodes scopes for the query of a URL.
fn encode_scope(oauth2: &OAuth2, scope: &str) -> String {
    match oauth2.scope_separator.as_deref() {
        // As a separator, `+` is the form encoding of a space and therefore stays unescaped.
        Some("+") => scope
            .split('+')
            .map(percent_encode)
            .collect::<Vec<_>>()
            .join("+"),
        _ => percent_encode(scope),
    }
}

/// Returns false for the scheme's own scopes of the user if others are requested instead.
fn is_sent(parameter: &str, user_scopes: &[String]) -> bool {
    user_scopes.is_empty() || parameter != USER_SCOPE_PARAMETER
}

/// Computes the challenge of a code verifier, method S256 (RFC 7636, section 4.2).
#[must_use]
pub fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier))
}
