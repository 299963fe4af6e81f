//! The case files: the requests and responses they describe.

use std::fs;
use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;
use serde_json::Value;

/// One case.
pub struct Given {
    /// Name of the case, for example `get_event/with_people`.
    pub name: String,
    /// Name of the tool's function, or the tool's part of the slug.
    pub tool: String,
    /// Arguments of the call.
    pub arguments: Value,
    /// Requests and responses, in order.
    pub exchanges: Vec<Exchange>,
    /// Files of the caller.
    pub files: Vec<Value>,
    /// Current time in the case, in milliseconds since 1970.
    pub now: Option<u64>,
    /// True if the case ends with data.
    pub succeeds: bool,
}

/// A request and its response.
pub struct Exchange {
    /// Method in upper case.
    pub method: String,
    /// URL with its query.
    pub url: String,
    /// Query parameters, percent-decoded.
    pub query: Vec<(String, String)>,
    /// Request body, JSON.
    pub body: Option<Value>,
    /// Status of the response.
    pub status: u16,
    /// Response body, JSON.
    pub answer: Option<Value>,
}

impl Exchange {
    pub(crate) fn succeeds(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// Reads all cases in a folder, of tools and of triggers.
///
/// # Panics
/// If they cannot be read.
#[must_use]
pub fn all(root: &Path) -> Vec<Given> {
    entries(root)
        .iter()
        .flat_map(|folder| entries(folder))
        .map(|file| read(root, &file))
        .collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .expect("cases can be read")
        .map(|entry| entry.expect("cases can be read").path())
        .collect()
}

fn read(root: &Path, file: &Path) -> Given {
    let text = fs::read_to_string(file).expect("a case can be read");
    let case: Value = serde_json::from_str(&text).expect("a case is JSON");
    let name = file
        .strip_prefix(root)
        .expect("it lies there")
        .with_extension("")
        .display()
        .to_string();
    let (tool, _) = name.split_once('/').expect("a case lies in a folder");
    Given {
        tool: tool.to_owned(),
        arguments: case["arguments"].clone(),
        exchanges: list(&case["exchanges"]).iter().map(exchange).collect(),
        files: list(&case["files"]),
        now: case["now"].as_u64(),
        succeeds: case.get("data").is_some(),
        name,
    }
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .expect("a request has method and address")
        .to_owned()
}

fn exchange(given: &Value) -> Exchange {
    let request = &given["request"];
    let response = &given["response"];
    let url = text(&request["url"]);
    let query = url
        .split_once('?')
        .map(|(_, query)| query.split('&').map(pair).collect())
        .unwrap_or_default();
    Exchange {
        method: text(&request["method"]),
        query,
        url,
        body: request.get("body").cloned(),
        status: response["status"]
            .as_u64()
            .and_then(|status| status.try_into().ok())
            .unwrap_or(200),
        answer: response.get("body").cloned(),
    }
}

fn pair(text: &str) -> (String, String) {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    (decoded(name), decoded(value))
}

pub(crate) fn decoded(text: &str) -> String {
    percent_decode_str(text)
        .decode_utf8()
        .expect("an address is UTF-8")
        .into_owned()
}
