//! Tool errors from responses of a provider and from failed requests.

use serde_json::Value;

use super::{Response, retry};
use crate::host::Failure;
use crate::{ToolError, clock};

/// Longest message in characters. A longer one is cut: it is meant for people, and the details hold
/// the whole body.
const MAX_MESSAGE_CHARS: usize = 500;
/// Maximum size of a body kept as details, in bytes.
const MAX_DETAILS_BYTES: usize = 32 * 1024;
const PLAIN_TEXT: &str = "text/plain";

/// Returns the error for a request that got no response.
pub(super) fn from_transport(failure: Failure) -> ToolError {
    let Failure { kind, message } = failure;
    match kind.as_str() {
        "denied" => ToolError::denied(message),
        "credential" => ToolError::unauthorized(message),
        "dns" | "connect" | "tls" | "timeout" | "protocol" => ToolError::unavailable(message),
        "too_large" => ToolError::upstream(message),
        _ => ToolError::internal(message),
    }
}

/// Returns the error for a response that is not a success.
pub(super) fn from_response(response: &Response) -> ToolError {
    let status = response.status();
    let body: Option<Value> = serde_json::from_slice(response.bytes()).ok();
    let said = body
        .as_ref()
        .and_then(message)
        .or_else(|| plain_text(response));
    let message = match said {
        Some(said) => format!("the provider responded {status}: {}", cut(said)),
        None => format!("the provider responded {status}"),
    };
    let wait = retry::after(response, clock::now());
    let exhausted = response
        .header("x-ratelimit-remaining")
        .is_some_and(|left| left.trim() == "0")
        || body.as_ref().is_some_and(names_a_limit);
    let kind = match status {
        403 if exhausted || response.header("retry-after").is_some() => "rate_limited",
        _ => kind(status),
    };
    let mut error = ToolError::new(kind, message).upstream_status(status);
    if matches!(kind, "rate_limited" | "upstream_unavailable")
        && let Some(wait) = wait
    {
        error = error.retry_after(wait);
    }
    match body {
        Some(body) if response.bytes().len() <= MAX_DETAILS_BYTES => error.details(body),
        _ => error,
    }
}

/// Returns true if the body names a rate limit. Google's APIs refuse requests over the rate limit
/// with 403 and say so only in the body.
fn names_a_limit(body: &Value) -> bool {
    const RATE_LIMIT_WORDS: [&str; 4] = [
        "rateLimitExceeded",
        "userRateLimitExceeded",
        "quotaExceeded",
        "dailyLimitExceeded",
    ];
    body.pointer("/error/errors/0/reason")
        .and_then(Value::as_str)
        .is_some_and(|reason| RATE_LIMIT_WORDS.contains(&reason))
}

fn kind(status: u16) -> &'static str {
    match status {
        400 | 413 | 414 | 422 => "invalid_input",
        401 => "unauthorized",
        402 | 403 => "forbidden",
        404 | 410 => "not_found",
        409 | 412 | 423 => "conflict",
        429 => "rate_limited",
        408 | 425 | 502 | 503 | 504 | 529 => "upstream_unavailable",
        _ => "upstream_error",
    }
}

/// Returns the readable message from the places where providers commonly put it.
pub(crate) fn message(body: &Value) -> Option<&str> {
    const MESSAGE_POINTERS: [&str; 16] = [
        "/error/message",
        "/message",
        "/error_description",
        "/errors/0/message",
        "/errors/0/detail",
        "/errors/0/title",
        "/detail",
        "/error/detail",
        "/errorMessages/0",
        "/error_message",
        "/errors/0",
        "/error",
        "/reason",
        "/title",
        "/msg",
        "/description",
    ];
    if let Value::String(text) = body {
        return Some(text);
    }
    MESSAGE_POINTERS.iter().find_map(|place| {
        body.pointer(place)
            .and_then(Value::as_str)
            .filter(|text| !text.trim().is_empty())
    })
}

fn plain_text(response: &Response) -> Option<&str> {
    let plain = response
        .header("content-type")
        .and_then(|media_type| media_type.get(..PLAIN_TEXT.len()))
        .is_some_and(|media_type| media_type.eq_ignore_ascii_case(PLAIN_TEXT));
    let text = std::str::from_utf8(response.bytes()).ok()?.trim();
    (plain && !text.is_empty()).then_some(text)
}

fn cut(text: &str) -> &str {
    match text.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}
