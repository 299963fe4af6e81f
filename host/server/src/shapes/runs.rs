//! Shapes of executions, their records, and files.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use utoipa::ToSchema;

/// The result of an execution.
#[derive(ToSchema)]
pub(crate) struct Execution {
    /// The response of the tool. Beyond 4 MiB it is `result_file` alone, with a link to it in
    /// `s3url`, `name`, `mimetype`, `size` and `expires_at`. If the execution failed, details of
    /// the failure.
    data: Map<String, Value>,
    /// Null if the execution succeeded.
    #[schema(required)]
    error: Option<String>,
    successful: bool,
    #[schema(required)]
    session_info: Option<Map<String, Value>>,
    log_id: String,
}

/// Arguments for a tool.
#[derive(ToSchema)]
pub(crate) struct Arguments {
    arguments: Map<String, Value>,
}

/// A provider's response to a proxy request.
#[derive(ToSchema)]
pub(crate) struct Proxied {
    /// HTTP status of the provider's response.
    status: u16,
    /// Headers with names in lower case, without cookies.
    headers: BTreeMap<String, String>,
    /// Parsed JSON, else text; null if there was no body, and empty if the body is a file.
    data: Value,
    #[schema(nullable = false)]
    binary_data: Option<ProxiedFile>,
    log_id: String,
}

/// A body that is not text, stored as a file.
#[derive(ToSchema)]
struct ProxiedFile {
    /// Link to download the file.
    url: String,
    content_type: String,
    size: u64,
    /// Time when the link expires.
    expires_at: String,
}
