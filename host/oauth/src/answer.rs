//! Parser for the token responses of providers (RFC 6749, sections 5.1 and 5.2), including common
//! deviations.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::DateTime;
use manifest::{ExpiryKind, OAuth2, TokenResponse};
use net::{Response, StatusCode, header::CONTENT_TYPE, retry_after};
use serde_json::{Map, Value};

use super::{Refusal, Result, Tokens, Values, text, truncate, variables::member};

/// Error codes of a temporary failure.
const TEMPORARY_ERRORS: [&str; 5] = [
    "temporarily_unavailable",
    "server_error",
    "slow_down",
    "rate_limited",
    "ratelimited",
];
/// Token types that need a proof with every request, which this server does not support.
const UNSUPPORTED_TOKEN_TYPES: [&str; 3] = ["mac", "pop", "dpop"];
/// Lifetime in seconds from which on a token counts as not expiring.
const MAX_LIFETIME_SECONDS: u64 = 100 * 366 * 86_400;
/// Threshold between seconds and milliseconds since the Unix epoch. Seconds stay below it for three
/// thousand years; milliseconds have exceeded it since 1973.
const MILLISECONDS_THRESHOLD: f64 = 1e11;

/// Returns the part of a response that contains the tokens.
pub(super) fn root<'a>(token_response: &TokenResponse, body: &'a Value) -> &'a Value {
    let token = access_token_path(token_response);
    let roots = [&token_response.root].into_iter();
    let mut parts = roots
        .chain(&token_response.fallback_root)
        .filter_map(|root| manifest::at(body, root));
    let first = parts.next();
    let has_token = |part: &&Value| member(part, token).is_some();
    first
        .filter(has_token)
        .or_else(|| parts.find(has_token))
        .or(first)
        .unwrap_or(&Value::Null)
}

fn access_token_path(token_response: &TokenResponse) -> &str {
    let declared = token_response.access_token.as_deref();
    declared.unwrap_or(manifest::ACCESS_TOKEN)
}

/// Reads the tokens from a response.
pub(super) fn parse_tokens(now_ms: i64, oauth2: &OAuth2, body: &Value) -> Result<Tokens> {
    let token_response = &oauth2.response;
    let root = root(token_response, body);
    let refresh_token = token_response.refresh_token.as_deref();
    let mut values = Values::new();
    for (name, path) in [
        ("access_token", access_token_path(token_response)),
        ("refresh_token", refresh_token.unwrap_or("refresh_token")),
        ("id_token", "id_token"),
    ] {
        match manifest::at(root, path) {
            None | Some(Value::Null) => {}
            Some(Value::String(token)) if token.is_empty() => {}
            Some(token @ Value::String(_)) => drop(values.insert(name.to_owned(), token.clone())),
            // A number or a list here is something else, such as a count or an index of tokens.
            Some(_) => return Err(Refusal::malformed(format!("`{name}` is not a string"))),
        }
    }
    for name in ["token_type", "scope"] {
        values.extend(text_at(root, name).map(|value| (name.to_owned(), Value::String(value))));
    }
    let Some(token) = values.get("access_token").and_then(Value::as_str) else {
        return Err(Refusal::malformed("it contains no access token"));
    };
    if token.bytes().any(|byte| !(0x21..0x7f).contains(&byte)) {
        return Err(Refusal::malformed(
            "the access token contains characters that are not allowed in a header",
        ));
    }
    let kind = values
        .get("token_type")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if UNSUPPORTED_TOKEN_TYPES.contains(&kind.to_ascii_lowercase().as_str()) {
        return Err(Refusal::malformed(format!(
            "token type `{}` is not supported",
            truncate(kind)
        )));
    }
    let lifetime = lifetime(now_ms, token_response, root, token);
    if let Some(lifetime) = lifetime {
        values.insert("expires_in".to_owned(), lifetime.as_secs().into());
    }
    Ok(Tokens {
        values,
        expires_at_ms: lifetime.map(|lifetime| super::after(now_ms, lifetime)),
        lifetime,
    })
}

/// Accepts any response except a refusal, in any format. A response with tokens is also checked
/// against the manifest.
pub(super) fn accept(
    now_ms: i64,
    token_response: Option<&TokenResponse>,
    response: &Response,
) -> Result<Value> {
    let status = response.status;
    if status.is_redirection() {
        return Err(Refusal::malformed(format!(
            "status {status}, and redirects are not followed with a secret"
        )));
    }
    if status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429) {
        // A gateway answers with these two if it lost the response of the token endpoint.
        let may_have_issued = matches!(status.as_u16(), 502 | 504);
        return Err(Refusal::Unavailable {
            reason: format!("status {status}"),
            retry_after: retry_after(&response.headers, now_ms),
            may_have_issued,
        });
    }
    let is_token =
        token_response.is_some_and(|expected| expected.access_token.as_deref() == Some(""));
    let answer = parse_body(response, is_token);
    let holds = token_response
        .and_then(|expected| expected.ok_if.as_ref())
        .zip(answer.as_ref())
        .map(|(condition, answer)| {
            member(answer, &condition.path).as_ref() == Some(&condition.equals)
        });
    let refused = match (&answer, holds) {
        (Some(answer), Some(false)) => refusal(status, answer)
            .or_else(|| Some(("refused".to_owned(), error_description(answer)))),
        (_, Some(true)) if status.is_success() => None,
        (Some(answer), _) if status.is_success() || matches!(status.as_u16(), 400 | 401 | 403) => {
            refusal(status, answer)
        }
        _ => None,
    };
    match (refused, answer) {
        (Some((error, _)), _) if TEMPORARY_ERRORS.contains(&error.as_str()) => {
            Err(Refusal::Unavailable {
                reason: format!("error `{error}`"),
                retry_after: retry_after(&response.headers, now_ms),
                may_have_issued: false,
            })
        }
        (Some((error, description)), _) => Err(Refusal::Denied { error, description }),
        (None, Some(answer)) if status.is_success() => Ok(answer),
        _ => Err(Refusal::Malformed {
            reason: format!("status {status} with {}", describe_body(response)),
            may_have_issued: status.is_success(),
        }),
    }
}

/// Parses JSON or a form. The first byte decides, because the content type is often wrong.
fn parse_body(response: &Response, is_token: bool) -> Option<Value> {
    let content = response.text();
    let body = content.trim();
    if body.starts_with(['{', '[', '"']) {
        return serde_json::from_str(body).ok();
    }
    let pairs: Map<_, _> = url::form_urlencoded::parse(body.as_bytes())
        .map(|(name, value)| (name.into_owned(), Value::String(value.into_owned())))
        .collect();
    let mut names = ["access_token", "error", "oauth_token"].into_iter();
    if !body.starts_with('<') && names.any(|name| pairs.contains_key(name)) {
        return Some(Value::Object(pairs));
    }
    (is_token && !body.is_empty() && !body.contains([' ', '<', '\n']))
        .then(|| Value::String(body.to_owned()))
}

/// Returns code and description of a refusal. Providers send `error` with any status, and also as
/// an object.
fn refusal(status: StatusCode, answer: &Value) -> Option<(String, String)> {
    let stated = match answer.get("error") {
        Some(inner @ Value::Object(_)) => {
            let code = ["type", "code", "status"]
                .iter()
                .find_map(|name| member(inner, name));
            return Some((
                truncate(&code.unwrap_or_default()),
                error_description(inner),
            ));
        }
        Some(error) => text(error).filter(|error| !["", "false", "0"].contains(&error.as_str())),
        None => None,
    };
    // Only these two statuses state that the request itself is at fault.
    let error = stated
        .or_else(|| matches!(status.as_u16(), 400 | 401).then(|| status.as_u16().to_string()))?;
    Some((truncate(&error), error_description(answer)))
}

fn error_description(answer: &Value) -> String {
    let names = ["error_description", "description", "message", "detail"];
    truncate(
        &names
            .iter()
            .find_map(|name| member(answer, name))
            .unwrap_or_default(),
    )
}

/// Returns the value at a path as text. A list of scopes becomes one text.
fn text_at(answer: &Value, path: &str) -> Option<String> {
    match manifest::at(answer, path) {
        Some(Value::Array(items)) => {
            Some(items.iter().filter_map(text).collect::<Vec<_>>().join(" "))
        }
        _ => member(answer, path),
    }
}

fn lifetime(
    now_ms: i64,
    token_response: &TokenResponse,
    root: &Value,
    token: &str,
) -> Option<Duration> {
    let (path, kind) = match &token_response.expiry {
        Some(expiry) => (expiry.path.as_str(), expiry.kind),
        None => ("expires_in", ExpiryKind::In),
    };
    let stated = member(root, path).and_then(|stated| match kind {
        ExpiryKind::In => parse_seconds(&stated),
        ExpiryKind::InMs => Some(Duration::from_millis(stated.parse::<f64>().ok()? as u64))
            .filter(|span| !span.is_zero()),
        ExpiryKind::At => time_until(now_ms, &stated),
    });
    stated
        .or_else(|| time_until(now_ms, &exp_claim(token)?))
        .or_else(|| {
            let seconds = token_response.expiry.as_ref()?.default?;
            Some(Duration::from_secs(seconds.into()))
        })
        .filter(|span| span.as_secs() < MAX_LIFETIME_SECONDS)
}

/// Parses a duration in seconds, which may be a string, have a fraction or have a unit. Zero and
/// negative values count as absent.
fn parse_seconds(stated: &str) -> Option<Duration> {
    let stated = stated.trim();
    let (number, unit) = stated.split_at(
        stated
            .find(|c: char| c.is_ascii_alphabetic())
            .unwrap_or(stated.len()),
    );
    let unit = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return None,
    };
    let whole: u64 = number.trim().split('.').next()?.parse().ok()?;
    Some(Duration::from_secs(whole.checked_mul(unit)?)).filter(|span| !span.is_zero())
}

/// Returns the time until a point in time; zero if it has passed.
fn time_until(now_ms: i64, stated: &str) -> Option<Duration> {
    let at = match stated.trim().parse::<f64>() {
        Ok(number) if number < MILLISECONDS_THRESHOLD => (number * 1000.0) as i64,
        Ok(number) => number as i64,
        Err(_) => DateTime::parse_from_rfc3339(stated.trim())
            .ok()?
            .timestamp_millis(),
    };
    Some(Duration::from_millis(
        u64::try_from(at.saturating_sub(now_ms)).unwrap_or(0),
    ))
}

/// Returns the `exp` claim of a JWT (RFC 7519, section 4.1.4). The signature is not verified: a
/// false claim affects only its issuer.
fn exp_claim(token: &str) -> Option<String> {
    let mut parts = token.split('.');
    let (_, claims, _, None) = (parts.next()?, parts.next()?, parts.next()?, parts.next()) else {
        return None;
    };
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
    member(&claims, "exp")
}

fn describe_body(response: &Response) -> String {
    let kind = response
        .headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or("unknown content type");
    format!("{} bytes of {}", response.body.len(), truncate(kind))
}
