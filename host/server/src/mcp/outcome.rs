//! Outcomes of calls, as clients show them.

use app::{Class, Error, runs::Execution};
use rmcp::model::{CallToolResult, ContentBlock, Resource};
use serde_json::Value;

/// Maximum number of files of a result that are shown as links.
const MAX_FILE_LINKS: usize = 20;

/// Outcome of a call.
pub(super) enum Outcome {
    /// Result of the tool.
    Success(Value),
    /// Failure of the tool, or a refusal, as text for the assistant.
    Failure(String),
    /// Refusal because the user has no account for the tool.
    NotConnected(Error),
}

impl From<app::Result<Execution>> for Outcome {
    fn from(executed: app::Result<Execution>) -> Self {
        match executed {
            Ok(execution) => match execution.error {
                None => match serde_json::from_slice(&execution.data) {
                    Ok(data) => Self::Success(data),
                    Err(cause) => Self::Failure(format!("the result is not JSON: {cause}")),
                },
                Some(error) => {
                    let details = String::from_utf8_lossy(&execution.data);
                    Self::Failure(format!("{error}\n{details}"))
                }
            },
            Err(cause) if is_connection_missing(&cause) => Self::NotConnected(cause),
            Err(cause) => Self::Failure(refusal(&cause)),
        }
    }
}

fn is_connection_missing(cause: &Error) -> bool {
    use app::agents::errors::{NO_ACCOUNT, NO_ACTIVE_CONNECTION};
    cause.is(&NO_ACCOUNT) || cause.is(&NO_ACTIVE_CONNECTION)
}

/// Returns a refusal as the text of a failed call, with the suggested fix.
pub(super) fn refusal(cause: &Error) -> String {
    if cause.info().class == Class::Internal {
        tracing::error!(%cause, "a call of a tool failed");
        return "internal error".to_owned();
    }
    let problems = cause.problems().iter().skip(1);
    let problems: String = problems.map(|line| format!("\n{line}")).collect();
    format!("{cause}{problems}\n{}", cause.info().hint)
}

/// Returns the result of a successful call, with links to the files in it.
pub(super) fn success(data: Value) -> CallToolResult {
    let mut files = Vec::new();
    collect_files(&data, &mut files);
    let mut result = match data {
        Value::Object(_) => CallToolResult::structured(data),
        other => CallToolResult::success(vec![ContentBlock::text(other.to_string())]),
    };
    let links = files.into_iter().map(ContentBlock::resource_link);
    result.content.extend(links);
    result
}

/// Returns the result of a failed call.
pub(super) fn failure(message: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(message)])
}

/// Collects the files of a result: objects with the name, the media type and the address of a file.
fn collect_files(data: &Value, files: &mut Vec<Resource>) {
    if files.len() == MAX_FILE_LINKS {
        return;
    }
    match data {
        Value::Array(items) => items.iter().for_each(|item| collect_files(item, files)),
        Value::Object(members) => {
            let text = |name: &str| members.get(name).and_then(Value::as_str);
            if let (Some(name), Some(media_type), Some(url)) =
                (text("name"), text("mimetype"), text("s3url"))
            {
                files.push(Resource::new(url, name).with_mime_type(media_type));
            } else {
                members
                    .values()
                    .for_each(|value| collect_files(value, files));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_of_a_result_are_links() {
        let file =
            json!({ "name": "a.csv", "mimetype": "text/csv", "s3url": "https://x.example/a" });
        let data = json!({ "rows": 2, "files": [file, { "name": "b", "s3url": 1 }] });
        let result = serde_json::to_value(success(data.clone())).unwrap();
        assert_eq!(result["structuredContent"], data);
        let content = result["content"].as_array().unwrap();
        assert_eq!(content.len(), 2);
        assert_eq!(content[1]["type"], "resource_link");
        assert_eq!(content[1]["uri"], "https://x.example/a");
        assert_eq!(content[1]["mimeType"], "text/csv");
        let many = json!(vec![file; MAX_FILE_LINKS + 1]);
        assert_eq!(success(many).content.len(), 1 + MAX_FILE_LINKS);
    }
}
