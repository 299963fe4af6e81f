//! OAuth 1.0 with redirection (RFC 5849, section 2): temporary credentials, the user's
//! authorization, and the token credentials of the account.

use std::collections::BTreeMap;

use manifest::OAuth1;
use net::{
    Body, HeaderMap, Limits, Method, Url,
    header::{CONTENT_TYPE, HeaderValue},
};
use sandbox::{Secret, SignatureStamp};
use serde_json::Value;

use super::{
    ExchangeParams, Flow, Refusal, Result, Tokens, Values, answer, display_name, nonce,
    request::{fill_url, form_encode, percent_encode, send_request},
    scheme, text,
};

/// Members of both credential responses (sections 2.1 and 2.3).
const TOKEN_MEMBERS: [&str; 2] = ["oauth_token", "oauth_token_secret"];

/// Requests temporary credentials. The `state` is part of the callback address.
pub(super) async fn authorize(
    flow: &Flow<'_>,
    redirect_uri: &str,
    state: &str,
) -> Result<(Url, Values)> {
    let oauth1 = flow
        .scheme
        .oauth1
        .as_ref()
        .ok_or_else(|| Refusal::unsent("the toolkit declares no OAuth flow for this scheme"))?;
    // An account connected again starts without its old token.
    let without_token = flow
        .values
        .iter()
        .filter(|(name, _)| !TOKEN_MEMBERS.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let flow = &flow.with_values(&without_token);
    let separator = if redirect_uri.contains('?') { '&' } else { '?' };
    let callback = format!("{redirect_uri}{separator}state={}", percent_encode(state));
    let params = filled_parameters(flow, &oauth1.request_params);
    let answer = send_signed(
        flow,
        &oauth1.request_url,
        &params,
        &[("oauth_callback", &callback)],
    )
    .await?;
    // The confirmation guarantees that the user returns to the given callback address (section
    // 2.1).
    if answer
        .get("oauth_callback_confirmed")
        .and_then(Value::as_str)
        != Some("true")
    {
        return Err(Refusal::malformed("it does not confirm the callback URL"));
    }
    let values = token_pair(&answer);
    let token = values
        .get(TOKEN_MEMBERS[0])
        .and_then(Value::as_str)
        .unwrap_or_default();
    let mut url = fill_url(flow, &oauth1.authorize_url)?;
    url.query_pairs_mut()
        .append_pair(TOKEN_MEMBERS[0], token)
        .extend_pairs(filled_parameters(flow, &oauth1.authorize_params));
    Ok((url, values))
}

/// Exchanges the temporary credentials and the verifier of the callback for the account's token
/// credentials.
pub(super) async fn exchange(
    flow: &Flow<'_>,
    oauth1: &OAuth1,
    code: ExchangeParams<'_>,
) -> Result<Tokens> {
    let token = code
        .callback
        .iter()
        .find(|(name, _)| name == TOKEN_MEMBERS[0])
        .map(|(_, value)| value.clone());
    // A different token belongs to another attempt, possibly of another user.
    if token.is_none() || token != flow.value(TOKEN_MEMBERS[0]) {
        return Err(Refusal::unsent(
            "the callback contains another token than the authorization request",
        ));
    }
    let credentials = send_signed(
        flow,
        &oauth1.token_url,
        &[],
        &[("oauth_verifier", code.code)],
    )
    .await?;
    let mut values = token_pair(&credentials);
    let answer = Value::Object(credentials);
    let field_values = oauth1
        .keep
        .iter()
        .filter_map(|(field, pick)| Some((field.clone(), pick.of(&answer)?)));
    values.extend(flow.check_field_values(field_values.collect())?);
    values.extend(
        oauth1
            .identity
            .as_ref()
            .and_then(|path| display_name(&answer, path)),
    );
    flow.check_hidden_fields(&values)?;
    Ok(Tokens {
        values,
        expires_at_ms: None,
        lifetime: None,
    })
}

/// Sends a signed request and returns the response, which must contain a token and its secret.
async fn send_signed(
    flow: &Flow<'_>,
    template: &str,
    params: &[(String, String)],
    protocol: &[(&str, &str)],
) -> Result<Values> {
    let mut values = flow.client.merge_into(flow.values.clone());
    // The request for temporary credentials is sent without a token.
    for name in TOKEN_MEMBERS {
        values.entry(name).or_insert_with(|| "".into());
    }
    let sign = scheme::credential(flow.scheme, &values)
        .sign
        .ok_or_else(|| Refusal::unsent("the toolkit does not declare how requests are signed"))?;
    let mut headers = HeaderMap::new();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/x-www-form-urlencoded"),
    );
    let body = Body::Bytes(form_encode(params).into());
    let mut request = net::Request {
        method: Method::POST,
        url: fill_url(flow, template)?,
        headers,
        body,
        limits: Limits::default(),
    };
    let stamp = SignatureStamp {
        ms: flow.now_ms,
        nonce: nonce(),
    };
    let signatures = sign
        .sign(&mut request, protocol, &stamp)
        .map_err(|cause| Refusal::unsent(cause.to_string()))?;
    let net::Request {
        method,
        url,
        headers,
        body,
        ..
    } = request;
    let response = send_request(flow, method, url, headers, body).await?;
    let accepted = answer::accept(flow.now_ms, None, &response)
        .map_err(|refusal| refusal.redact(sent_secrets(flow, &values, &signatures, protocol)))?;
    match accepted {
        Value::Object(answer)
            if TOKEN_MEMBERS
                .iter()
                .all(|name| answer.get(*name).is_some_and(Value::is_string)) =>
        {
            Ok(answer)
        }
        _ => Err(Refusal::malformed("it contains no token with a secret")),
    }
}

/// Returns the secrets of a request, which a response may repeat.
fn sent_secrets(
    flow: &Flow<'_>,
    values: &Values,
    signatures: &[Secret],
    protocol: &[(&str, &str)],
) -> Vec<String> {
    let signatures = signatures.iter().map(Secret::expose);
    let protocol_values = protocol.iter().map(|(_, value)| *value);
    let sent = signatures.chain(protocol_values).map(str::to_owned);
    let names = flow.scheme.secrets();
    sent.chain(names.filter_map(|name| values.get(name).and_then(text)))
        .collect()
}

fn token_pair(answer: &Values) -> Values {
    TOKEN_MEMBERS
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), answer.get(*name)?.clone())))
        .collect()
}

/// Returns the manifest's parameters that have a value.
fn filled_parameters(flow: &Flow<'_>, params: &BTreeMap<String, String>) -> Vec<(String, String)> {
    params
        .iter()
        .filter_map(|(name, template)| {
            let filled = manifest::fill(template, &|field: &str| {
                flow.value(field).filter(|_| !flow.is_secret(field))
            })?;
            Some((name.clone(), filled))
        })
        .collect()
}
