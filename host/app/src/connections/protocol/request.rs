//! Asking an application for tokens.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use manifest::ClientAuth;
use net::{
    Body, ErrorKind, HeaderMap, Limits, Method, Response, Url,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue},
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use zeroize::Zeroizing;

use super::{Flow, Refusal, Result};

/// Bytes of an answer. A token is some thousand at most.
const ANSWER: u64 = 1 << 20;
/// Token endpoints of some applications take ten seconds.
const PATIENCE: Duration = Duration::from_secs(30);
/// All but what stands for itself anywhere in an address (RFC 3986, section 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

pub(super) fn percent(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// Fills an address. What a field holds cannot lead out of the place that the manifest gives it.
pub(super) fn address(flow: &Flow<'_>, template: &str) -> Result<Url> {
    let secret = |name: &str| flow.scheme.secrets().any(|secret| secret == name);
    // A segment of dots would climb.
    let value = |name: &str| {
        let value = flow.value(name).filter(|value| !secret(name) && value.trim_matches('.') != "")?;
        Some(percent(&value))
    };
    let filled = manifest::fill(template, &value).and_then(|filled| Url::parse(&filled).ok());
    let inside = filled.filter(|url| {
        let host = url.host_str().unwrap_or_default();
        url.scheme() == "https" && manifest::leads_to(template, host, url.port().unwrap_or(443))
    });
    inside.ok_or_else(|| Refusal::unsent(format!("`{template}` cannot be filled with the fields of the account")))
}

/// Sends a form with these parameters and the client's credentials (RFC 6749, section 2.3.1).
pub(super) async fn send(flow: &Flow<'_>, template: &str, parameters: &[(&str, &str)]) -> Result<Response> {
    let url = address(flow, template)?;
    let (id, secret) = (flow.client.id.as_str(), flow.client.secret.as_ref().map(|secret| secret.as_str()));
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
    let mut form = parameters.to_vec();
    match (flow.oauth2()?.client_auth, secret) {
        (ClientAuth::Basic, Some(secret)) => {
            let pair = Zeroizing::new(format!("{}:{}", percent(id), percent(secret)));
            headers.insert(AUTHORIZATION, sensitive(&Zeroizing::new(format!("Basic {}", BASE64.encode(&*pair))))?);
        }
        (_, secret) => {
            form.push(("client_id", id));
            form.extend(secret.map(|secret| ("client_secret", secret)));
        }
    }
    let body = form.iter().map(|(name, value)| format!("{}={}", percent(name), percent(value)));
    let body = Body::Bytes(body.collect::<Vec<_>>().join("&").into());
    let limits = Limits { first_byte: PATIENCE, total: PATIENCE, response_bytes: ANSWER, ..Limits::default() };
    flow.net.send(net::Request { method: Method::POST, url, headers, body, limits }).await.map_err(|failure| {
        match failure.kind {
            ErrorKind::Denied | ErrorKind::InvalidRequest => Refusal::unsent(failure.message),
            ErrorKind::TooLarge => Refusal::malformed(failure.message),
            ErrorKind::Dns | ErrorKind::Connect | ErrorKind::Tls | ErrorKind::Timeout | ErrorKind::Protocol => {
                Refusal::Unavailable { reason: failure.message, retry_after: None }
            }
        }
    })
}

fn sensitive(value: &str) -> Result<HeaderValue> {
    let mut value =
        HeaderValue::from_str(value).map_err(|_| Refusal::unsent("a value of the client cannot stand in a header"))?;
    value.set_sensitive(true);
    Ok(value)
}
