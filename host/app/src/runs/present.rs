//! Results of tools as callers receive them, and results that are too large for a response.
use bytes::Bytes;
use sandbox::{Failure, Outcome, Output, kind};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    App,
    catalog::ResolvedTool,
    files,
    projects::{Project, SharedProject},
};

/// Maximum size of a result in a response, in bytes. A larger result becomes a file, and the
/// response contains a link to it.
pub const MAX_INLINE_RESULT_BYTES: usize = 4 << 20;

/// The data and the error as callers receive them.
pub(super) struct ToolResult {
    pub data: Bytes,
    pub error: Option<String>,
}

/// The details of a failure that callers receive.
#[derive(Serialize)]
struct FailureData<'a> {
    kind: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream_status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a RawValue>,
}

/// Returns true if a tool returned a result that is too large for a response.
pub(super) fn is_large(outcome: &Outcome) -> bool {
    matches!(&outcome.output, Ok(Output::Data(data)) if data.len() > MAX_INLINE_RESULT_BYTES)
}

/// Stores a result as a file. Returns the result for the caller, and the data for the log record,
/// which contains no link.
pub(super) async fn result_as_file(
    app: &App,
    project: &SharedProject,
    resolved: &ResolvedTool,
    data: Bytes,
) -> (ToolResult, Bytes) {
    let (size, max_bytes) = (data.len(), app.files.settings.size);
    if size as u64 > max_bytes {
        let message = format!(
            "the result of the tool has {size} bytes; a result above {MAX_INLINE_RESULT_BYTES} bytes becomes a file, which may have at most {max_bytes} bytes"
        );
        let result = failure_result(kind::OUTPUT_TOO_LARGE, &message, None);
        let data = result.data.clone();
        return (result, data);
    }
    match files::result_as_file(app, project, resolved, data).await {
        Ok([data, record]) => (ToolResult { data, error: None }, record),
        Err(cause) => {
            let result = failure_result(
                kind::FILE_NOT_KEPT,
                &format!("the tool ran, but its result could not be stored: {cause}"),
                None,
            );
            let data = result.data.clone();
            (result, data)
        }
    }
}

pub(super) async fn to_result(
    app: &App,
    project: &Project,
    resolved: &ResolvedTool,
    outcome: &Outcome,
) -> ToolResult {
    let (large, tenant) = (&app.large_work, &project.tenant);
    let invalid = |message: String| failure_result(kind::OUTPUT_INVALID, &message, None);
    match &outcome.output {
        Ok(Output::Data(data)) => match resolved.tool.output.problems(large, tenant, data).await {
            Ok(problems) if problems.is_empty() => ToolResult {
                data: as_object(data),
                error: None,
            },
            Ok(problems) => invalid(format!(
                "the result of the tool does not match its schema: {}",
                problems.join("; ")
            )),
            Err(cause) => failure_result(
                kind::HOST,
                &format!("the tool ran, but its result cannot be validated: {cause}"),
                None,
            ),
        },
        Ok(_) => invalid("the tool returned the result of a trigger".into()),
        Err(failure) => failure_result(&failure.kind, &failure.message, Some(failure)),
    }
}

pub(super) fn failure_result(kind: &str, message: &str, failure: Option<&Failure>) -> ToolResult {
    let details = failure.and_then(|failure| failure.details.as_ref());
    let data = FailureData {
        kind,
        message,
        upstream_status: failure.and_then(|failure| failure.upstream_status),
        retry_after_ms: failure
            .and_then(|failure| failure.retry_after)
            .map(|after| after.as_millis() as u64),
        details: details.and_then(|details| serde_json::from_slice(details).ok()),
    };
    let data = serde_json::to_vec(&data).map_or_else(|_| Bytes::from_static(b"{}"), Bytes::from);
    ToolResult {
        data,
        error: Some(format!("{kind}: {message}")),
    }
}

/// Returns the data as an object, because clients expect one in `data`. Any other value becomes its
/// member `result`.
fn as_object(data: &Bytes) -> Bytes {
    let start = data
        .iter()
        .position(|byte| !byte.is_ascii_whitespace())
        .unwrap_or(0);
    if data.get(start) == Some(&b'{') {
        return data.clone();
    }
    [b"{\"result\":", &data[..], b"}"].concat().into()
}

#[cfg(test)]
mod tests {
    use sandbox::Cause;

    use super::*;

    #[test]
    fn data_is_always_an_object() {
        for (given, expected) in [
            ("{\"a\":1}", "{\"a\":1}"),
            (" {}", " {}"),
            ("[1]", "{\"result\":[1]}"),
            ("null", "{\"result\":null}"),
        ] {
            assert_eq!(as_object(&Bytes::from(given)), Bytes::from(expected));
        }
    }

    #[test]
    fn failure_has_kind_message_and_provider_details() {
        let failure = Failure {
            cause: Cause::Tool,
            kind: "rate_limited".into(),
            message: "slow down".into(),
            retry_after: Some(std::time::Duration::from_secs(2)),
            upstream_status: Some(429),
            details: Some(Bytes::from_static(b"{\"x\":1}")),
        };
        let result = failure_result(&failure.kind, &failure.message, Some(&failure));
        assert_eq!(result.error.as_deref(), Some("rate_limited: slow down"));
        assert_eq!(
            result.data,
            r#"{"kind":"rate_limited","message":"slow down","upstream_status":429,"retry_after_ms":2000,"details":{"x":1}}"#
        );
    }

    #[test]
    fn details_that_are_not_json_are_left_out() {
        let failure = Failure {
            cause: Cause::Tool,
            kind: "internal".into(),
            message: "m".into(),
            retry_after: None,
            upstream_status: None,
            details: Some(Bytes::from_static(b"<html>")),
        };
        assert_eq!(
            failure_result("internal", "m", Some(&failure)).data,
            r#"{"kind":"internal","message":"m"}"#
        );
    }
}
