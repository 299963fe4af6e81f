//! Results of tools as callers receive them: checked, with links to files, and small enough for a
//! response.
use bytes::Bytes;
use sandbox::{Failure, Outcome, Output, kind};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    App, Error,
    catalog::ResolvedTool,
    files,
    projects::{Project, SharedProject},
};

/// Maximum size of a result in a response, in bytes. A larger result becomes a file, and the
/// response contains a link to it.
pub const MAX_INLINE_RESULT_BYTES: usize = 4 << 20;

/// A result as the caller receives it, and the data that its record keeps.
pub(super) struct Presented {
    pub data: Bytes,
    /// The failure, as `kind: message`.
    pub error: Option<String>,
    /// The data for the record. It keeps the names of files, because links in it would open the
    /// files for every reader of the log.
    pub kept: Bytes,
    /// The beginning of a result that became a file.
    pub beginning: Option<Bytes>,
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

/// Presents the outcome of a tool that was given these files.
pub(super) async fn present(
    app: &App,
    project: &SharedProject,
    resolved: &ResolvedTool,
    outcome: Outcome,
    given: &[String],
) -> Presented {
    let Outcome {
        output,
        files: made,
        memory,
        ..
    } = outcome;
    let returned = match returned_data(output) {
        Ok(data) => data,
        Err(failed) => return failed,
    };
    // The permit is held until a large result is checked and stored, to limit the number of results
    // that are in memory twice.
    let _permit = if returned.len() > MAX_INLINE_RESULT_BYTES {
        match app.files.acquire_large_result(&project.tenant).await {
            Ok(permit) => Some(permit),
            Err(cause) => return not_kept("its large result", &cause),
        }
    } else {
        None
    };
    let kept = match checked_data(app, project, resolved, returned).await {
        Ok(data) => data,
        Err(failed) => return failed,
    };
    let mut data = kept.clone();
    if !(made.is_empty() && given.is_empty()) {
        let linked = files::link_files(app, project, resolved, &kept, made, given);
        data = match Box::pin(linked).await {
            Ok(data) => data,
            Err(cause) => return not_kept("a file of its result", &cause),
        };
    }
    drop(memory);
    if data.len() > MAX_INLINE_RESULT_BYTES {
        return Box::pin(result_as_file(app, project, resolved, data)).await;
    }
    Presented {
        data,
        error: None,
        kept,
        beginning: None,
    }
}

async fn result_as_file(
    app: &App,
    project: &SharedProject,
    resolved: &ResolvedTool,
    data: Bytes,
) -> Presented {
    let (size, max_bytes) = (data.len(), app.files.settings.size);
    if size as u64 > max_bytes {
        let message = format!(
            "the result of the tool has {size} bytes; a result above {MAX_INLINE_RESULT_BYTES} bytes becomes a file, which may have at most {max_bytes} bytes"
        );
        return Presented::failure(kind::OUTPUT_TOO_LARGE, &message, None);
    }
    let beginning = files::beginning(&data);
    let names = (&*resolved.release.slug, &*resolved.tool.slug);
    match files::result_as_file(app, project, names, data).await {
        Ok([data, kept]) => Presented {
            data,
            error: None,
            kept,
            beginning: Some(beginning),
        },
        Err(cause) => not_kept("its result", &cause),
    }
}

fn not_kept(part: &str, cause: &Error) -> Presented {
    let message = format!("the tool ran, but {part} could not be stored: {cause}");
    Presented::failure(kind::FILE_NOT_KEPT, &message, None)
}

fn invalid_output(message: &str) -> Presented {
    Presented::failure(kind::OUTPUT_INVALID, message, None)
}

/// Returns the data that a tool returned, or the failure.
fn returned_data(output: Result<Output, Failure>) -> Result<Bytes, Presented> {
    match output {
        Ok(Output::Data(data)) => Ok(data),
        Ok(_) => Err(invalid_output("the tool returned the result of a trigger")),
        Err(failure) => {
            let Failure { kind, message, .. } = &failure;
            Err(Presented::failure(kind, message, Some(&failure)))
        }
    }
}

/// Returns data of a tool as an object if it matches the schema, or the failure.
async fn checked_data(
    app: &App,
    project: &Project,
    resolved: &ResolvedTool,
    data: Bytes,
) -> Result<Bytes, Presented> {
    let (large, schema) = (&app.large_work, &resolved.tool.output);
    let problems = schema.problems(large, &project.tenant, &data);
    match problems.await {
        Ok(problems) if problems.is_empty() => Ok(as_object(data)),
        Ok(problems) => Err(invalid_output(&format!(
            "the result of the tool does not match its schema: {}",
            problems.join("; ")
        ))),
        Err(cause) => {
            let message = format!("the tool ran, but its result cannot be validated: {cause}");
            Err(Presented::failure(kind::HOST, &message, None))
        }
    }
}

impl Presented {
    /// Presents a failure. Its details are the data.
    pub(super) fn failure(kind: &str, message: &str, failure: Option<&Failure>) -> Self {
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
        let data =
            serde_json::to_vec(&data).map_or_else(|_| Bytes::from_static(b"{}"), Bytes::from);
        Self {
            kept: data.clone(),
            data,
            error: Some(format!("{kind}: {message}")),
            beginning: None,
        }
    }
}

/// Returns the data as an object, because clients expect one in `data`. Any other value becomes its
/// field `result`.
fn as_object(data: Bytes) -> Bytes {
    let start = data
        .iter()
        .position(|byte| !byte.is_ascii_whitespace())
        .unwrap_or(0);
    if data.get(start) == Some(&b'{') {
        return data;
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
            assert_eq!(as_object(Bytes::from(given)), Bytes::from(expected));
        }
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
            Presented::failure("internal", "m", Some(&failure)).data,
            r#"{"kind":"internal","message":"m"}"#
        );
    }
}
