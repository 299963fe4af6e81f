//! Reading what a token endpoint answers (RFC 6749, sections 5.1 and 5.2), as applications really write it.

use std::time::Duration;

use net::{
    Response, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER},
};
use serde_json::{Map, Value};
use store::Time;

use super::{Refusal, Result, Tokens, Values, member, said, text};

/// Codes by which an application says that it cannot answer now.
const PASSING: [&str; 5] = ["temporarily_unavailable", "server_error", "slow_down", "rate_limited", "ratelimited"];
/// Kinds of token that need a proof with every request, which nobody here can give.
const UNUSABLE: [&str; 3] = ["mac", "pop", "dpop"];
/// A longer lifetime is taken for no lifetime at all.
const LONGEST: u64 = 100 * 366 * 86_400;
/// Asked to wait longer than this, a caller decides for itself.
const LONGEST_WAIT: Duration = Duration::from_secs(86_400);

/// The tokens in an answer.
pub(super) fn tokens(now: Time, response: &Response) -> Result<Tokens> {
    let answer = accepted(response)?;
    let mut values = Values::new();
    for name in ["access_token", "refresh_token", "token_type", "scope", "id_token"] {
        values.extend(read(&answer, name).map(|value| (name.to_owned(), Value::String(value))));
    }
    let Some(token) = values.get("access_token").and_then(Value::as_str) else {
        return Err(Refusal::malformed("it holds no access token"));
    };
    if token.bytes().any(|byte| !(0x21..0x7f).contains(&byte)) {
        return Err(Refusal::malformed("its access token holds characters that no header can carry"));
    }
    let kind = values.get("token_type").and_then(Value::as_str).unwrap_or_default();
    if UNUSABLE.contains(&kind.to_ascii_lowercase().as_str()) {
        return Err(Refusal::malformed(format!("tokens of type `{}` cannot be used here", said(kind))));
    }
    let lifetime = member(&answer, "expires_in").and_then(|seconds| lifetime(&seconds));
    if let Some(lifetime) = lifetime {
        values.insert("expires_in".to_owned(), lifetime.as_secs().into());
    }
    let until =
        |lifetime: Duration| Time(now.0.saturating_add(i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX)));
    Ok(Tokens { values, expires_at: lifetime.map(until), lifetime })
}

/// An answer that is no refusal, whatever its form.
pub(super) fn accepted(response: &Response) -> Result<Value> {
    let status = response.status;
    if status.is_redirection() {
        return Err(Refusal::malformed(format!("it answered {status}, and nobody is sent on with a secret")));
    }
    if status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429) {
        return Err(Refusal::Unavailable {
            reason: format!("it answered {status}"),
            retry_after: retry_after(response),
        });
    }
    let answer = parsed(response);
    let may_refuse = status.is_success() || matches!(status.as_u16(), 400 | 401 | 403);
    if let Some((error, description)) =
        answer.as_ref().filter(|_| may_refuse).and_then(|answer| refusal(status, answer))
    {
        return Err(if PASSING.contains(&error.as_str()) {
            Refusal::Unavailable { reason: format!("it answered `{error}`"), retry_after: retry_after(response) }
        } else {
            Refusal::Denied { error, description }
        });
    }
    match answer {
        Some(answer) if status.is_success() => Ok(answer),
        _ => Err(Refusal::malformed(format!("it answered {status} with {}", form(response)))),
    }
}

/// An object of JSON or a form. What an application says of its type is often wrong, so the first byte decides.
fn parsed(response: &Response) -> Option<Value> {
    let body = std::str::from_utf8(&response.body).ok()?.trim();
    if body.starts_with('{') {
        return serde_json::from_str(body).ok();
    }
    let pairs: Map<_, _> = url::form_urlencoded::parse(body.as_bytes())
        .map(|(name, value)| (name.into_owned(), Value::String(value.into_owned())))
        .collect();
    let known = |name: &str| pairs.contains_key(name);
    (!body.starts_with('<') && (known("access_token") || known("error"))).then_some(Value::Object(pairs))
}

/// Code and words of a refusal. Applications say `error` with any status, and as an object too.
fn refusal(status: StatusCode, answer: &Value) -> Option<(String, String)> {
    let words =
        |of: &Value| ["error_description", "description", "message", "detail"].iter().find_map(|name| member(of, name));
    let error = match answer.get("error") {
        Some(Value::Object(inner)) => {
            let inner = Value::Object(inner.clone());
            let code = ["type", "code", "status"].iter().find_map(|name| member(&inner, name));
            return Some((said(&code.unwrap_or_default()), said(&words(&inner).unwrap_or_default())));
        }
        Some(error) => text(error).filter(|error| !error.is_empty() && error != "false" && error != "0"),
        None => None,
    };
    // Only these two say of themselves that what was sent is not good.
    let error = error.or_else(|| matches!(status.as_u16(), 400 | 401).then(|| status.as_u16().to_string()))?;
    Some((said(&error), said(&words(answer).unwrap_or_default())))
}

/// A member as text; a list of scopes as one text.
fn read(answer: &Value, name: &str) -> Option<String> {
    match answer.get(name) {
        Some(Value::Array(items)) => Some(items.iter().filter_map(text).collect::<Vec<_>>().join(" ")),
        _ => member(answer, name),
    }
}

/// Seconds, which some write as text or with a fraction. Zero and less say nothing.
fn lifetime(seconds: &str) -> Option<Duration> {
    let whole = seconds.trim().split('.').next()?.parse().ok()?;
    (1..LONGEST).contains(&whole).then(|| Duration::from_secs(whole))
}

/// Seconds until the next attempt (RFC 9110, section 10.2.3); dates are not read.
fn retry_after(response: &Response) -> Option<Duration> {
    let seconds = response.headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds)).filter(|wait| *wait <= LONGEST_WAIT)
}

fn form(response: &Response) -> String {
    let kind = response.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("no type");
    format!("{} bytes of {}", response.body.len(), said(kind))
}
