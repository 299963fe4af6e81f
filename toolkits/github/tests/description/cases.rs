//! The case files: the requests and responses they describe.

use std::fs;
use std::path::Path;

use percent_encoding::percent_decode_str;
use serde_json::Value;

pub(crate) struct Given {
    /// Name of the case, for example `get_issue/open`.
    pub(crate) name: String,
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    pub(crate) exchanges: Vec<Exchange>,
    pub(crate) files: Vec<Value>,
    pub(crate) succeeds: bool,
}

pub(crate) struct Exchange {
    pub(crate) method: String,
    pub(crate) url: String,
    /// Query parameters, percent-decoded.
    pub(crate) query: Vec<(String, String)>,
    pub(crate) body: Option<Value>,
    pub(crate) status: u16,
    pub(crate) answer: Option<Value>,
}

impl Given {
    pub(crate) fn slug(&self) -> String {
        format!("GITHUB_{}", self.tool.to_uppercase())
    }
}

/// Reads all cases, of tools and of triggers.
pub(crate) fn all() -> Vec<Given> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let entries = |folder: &Path| {
        let entries = fs::read_dir(folder).expect("cases can be read");
        entries
            .map(|entry| entry.expect("cases can be read").path())
            .collect::<Vec<_>>()
    };
    entries(&root)
        .iter()
        .flat_map(|folder| entries(folder))
        .map(|file| read(&root, &file))
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
    let list = |key: &str| case[key].as_array().cloned().unwrap_or_default();
    Given {
        tool: tool.to_owned(),
        arguments: case["arguments"].clone(),
        exchanges: list("exchanges")
            .iter()
            .map(|given| exchange(given, &list("files")))
            .collect(),
        files: list("files"),
        succeeds: case.get("data").is_some(),
        name,
    }
}

fn exchange(given: &Value, files: &[Value]) -> Exchange {
    let request = &given["request"];
    let response = &given["response"];
    // `{"blob": id}` is replaced by the content of a file.
    let in_file = |body: &Value| {
        files
            .iter()
            .find(|file| file["id"] == body["blob"])
            .map(|file| file["text"].clone())
    };
    let text = |key: &str| {
        request[key]
            .as_str()
            .expect("a request has method and address")
            .to_owned()
    };
    let url = text("url");
    let query = url
        .split_once('?')
        .map(|(_, query)| query.split('&').map(pair).collect())
        .unwrap_or_default();
    Exchange {
        method: text("method"),
        query,
        url,
        body: request
            .get("body")
            .map(|body| in_file(body).unwrap_or_else(|| body.clone())),
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
