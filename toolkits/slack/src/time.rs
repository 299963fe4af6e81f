//! Conversion of times: Slack uses seconds since 1970, agents use RFC 3339.

use jiff::Timestamp;
use toolkit_sdk::prelude::*;

/// Returns the time of a message from its `ts`, whose part before the dot is in seconds.
pub(crate) fn iso_from_ts(ts: &str) -> String {
    let seconds = ts
        .split('.')
        .next()
        .and_then(|seconds| seconds.parse().ok());
    seconds
        .and_then(|seconds| Timestamp::from_second(seconds).ok())
        .map(|time| time.to_string())
        .unwrap_or_default()
}

/// Converts a time from RFC 3339 to seconds since 1970.
pub(crate) fn seconds(text: &str) -> Result<i64> {
    let time: Timestamp = text.parse().map_err(|_| {
        ToolError::invalid_input(format!(
            "`{text}` is no time; write it as 2026-01-31T09:00:00Z"
        ))
    })?;
    Ok(time.as_second())
}

/// Converts a position in a channel, the `ts` of a message or RFC 3339, to Slack's format.
pub(crate) fn moment(text: &str) -> Result<String> {
    let is_timestamp = text
        .split('.')
        .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    if is_timestamp {
        Ok(text.to_owned())
    } else {
        Ok(seconds(text)?.to_string())
    }
}
