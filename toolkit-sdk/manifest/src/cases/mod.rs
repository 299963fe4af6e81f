//! Case files, `cases/<tool>/<case>.json`: which arguments lead to which requests, answers and data.
//!
//! The SDK runs them natively against a scripted host, `toolkit check` through the component in the production sandbox. Both
//! read them here and judge the outcome here, so that a case means the same in both. Guests carry none of it.
//!
//! The folder is the tool's slug in lower case without the toolkit's name. For a trigger `arguments` is its configuration, and
//! `cursor` or `request` what else it takes.

mod difference;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use difference::{difference, lines};

/// When a case happens that does not say when: 2026-01-01T00:00:00Z, in milliseconds since 1970.
pub const NOW: u64 = 1_767_225_600_000;

/// One case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Arguments of the tool, or configuration of the trigger.
    #[serde(default = "empty")]
    pub arguments: Value,
    /// The cursor of a poll; missing at the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Value>,
    /// The request that a webhook brings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<GivenInbound>,
    /// When it happens, in milliseconds since 1970; otherwise [`NOW`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<u64>,
    /// Non-secret fields of the account.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, String>,
    /// Files there are; an argument names one by its id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<GivenFile>,
    /// What is sent and answered, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exchanges: Vec<Exchange>,
    /// What a success answers, exactly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// How a failure ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ExpectedError>,
}

/// A request that is expected, and its answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// What must be sent.
    pub request: ExpectedRequest,
    /// What is answered.
    pub response: GivenResponse,
}

/// A request that is expected.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedRequest {
    /// In upper case.
    pub method: String,
    /// The whole address, with its query, without what the platform adds.
    pub url: String,
    /// Headers that must be among those sent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The body: JSON, a text, or for a form with parts an object of them. Missing: any body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenResponse {
    /// The status; 200 when missing.
    #[serde(default = "ok", skip_serializing_if = "is_ok")]
    pub status: u16,
    /// Its headers; `content-type` is added when missing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// JSON, or a text that is sent as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// Instead of an answer: the platform's kind of failure, for example `timeout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How a failure ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedError {
    /// The exact kind.
    pub kind: String,
    /// A part of the message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenFile {
    /// What `s3key` names.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its media type.
    pub mimetype: String,
    /// What is in it.
    pub text: String,
}

/// The request that a webhook brings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenInbound {
    /// POST when missing.
    #[serde(default = "post")]
    pub method: String,
    /// Path and query.
    #[serde(default)]
    pub path: String,
    /// Its headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// JSON, or a text that is taken as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
}

/// How a call ended, as far as a case can say.
#[derive(Debug, Clone, Copy)]
pub enum Ended<'a> {
    /// With data.
    Data(&'a Value),
    /// With a failure.
    Error {
        /// For example `not_found`.
        kind: &'a str,
        /// For an agent.
        message: &'a str,
    },
}

fn empty() -> Value {
    json!({})
}

fn ok() -> u16 {
    200
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_ok(status: &u16) -> bool {
    *status == ok()
}

fn post() -> String {
    "POST".to_owned()
}

impl Case {
    /// Reads a case.
    ///
    /// # Errors
    /// When the text is no JSON of this shape, or does not say how the call ends.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let case: Self = serde_json::from_str(text).map_err(|cause| cause.to_string())?;
        match (&case.data, &case.error) {
            (Some(_), None) | (None, Some(_)) => Ok(case),
            (None, None) => Err("write what is expected: `data` or `error`".to_owned()),
            (Some(_), Some(_)) => Err("a case expects `data` or `error`, not both".to_owned()),
        }
    }

    /// Reads a case file.
    ///
    /// # Errors
    /// As [`Case::from_json`], and when the file cannot be read.
    pub fn read(file: &Path) -> Result<Self, String> {
        Self::from_json(&std::fs::read_to_string(file).map_err(|cause| format!("cannot be read: {cause}"))?)
    }

    /// What is wrong with how the call ended, if anything.
    #[must_use]
    pub fn judge(&self, ended: Ended<'_>) -> Option<String> {
        match (ended, &self.data, &self.error) {
            (Ended::Data(data), Some(expected), _) => {
                difference(expected, data).map(|lines| format!("the data differs (- expected, + answered):\n{lines}"))
            }
            (Ended::Data(data), None, Some(error)) => Some(format!(
                "expected the error `{}`, but it answers data (+ answered):\n{}",
                error.kind,
                lines("", &pretty(data))
            )),
            (Ended::Error { kind, message }, None, Some(error)) => {
                let fits = kind == error.kind && message.contains(&error.message);
                let expected = format!("{}: {}\n", error.kind, error.message);
                (!fits).then(|| {
                    let lines = lines(&expected, &format!("{kind}: {message}\n"));
                    format!("the error differs (- expected, with a part of the message; + answered):\n{lines}")
                })
            }
            (Ended::Error { kind, message }, _, _) => {
                Some(format!("expected data, but it fails with `{kind}: {message}`"))
            }
            (Ended::Data(_), None, None) => Some("write what is expected: `data` or `error`".to_owned()),
        }
    }
}

impl Default for GivenResponse {
    fn default() -> Self {
        Self { status: ok(), headers: BTreeMap::new(), body: None, error: None }
    }
}

impl GivenResponse {
    /// The headers with names in lower case, and the body; `content-type` by the body where none is given.
    #[must_use]
    pub fn parts(&self) -> (Vec<(String, String)>, Vec<u8>) {
        let name = |(name, value): (&String, &String)| (name.to_ascii_lowercase(), value.clone());
        let mut headers: Vec<_> = self.headers.iter().map(name).collect();
        let media_type =
            self.body.as_ref().map(|body| if body.is_string() { "text/plain" } else { "application/json" });
        if let Some(media_type) = media_type
            && !headers.iter().any(|(name, _)| name == "content-type")
        {
            headers.push(("content-type".to_owned(), media_type.to_owned()));
        }
        (headers, bytes(self.body.as_ref()))
    }
}

impl GivenInbound {
    /// The headers with names in lower case, and the body.
    #[must_use]
    pub fn parts(&self) -> (Vec<(String, String)>, Vec<u8>) {
        let headers = self.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone()));
        (headers.collect(), bytes(self.body.as_ref()))
    }
}

/// JSON, or a text as it is.
fn bytes(body: Option<&Value>) -> Vec<u8> {
    match body {
        None => Vec::new(),
        Some(Value::String(text)) => text.clone().into_bytes(),
        Some(json) => json.to_string().into_bytes(),
    }
}

/// A body as case files write it: JSON objects and lists as they are, anything else as a text.
#[must_use]
pub fn body_value(bytes: &[u8]) -> Value {
    let parsed = serde_json::from_slice(bytes).ok().filter(|value: &Value| value.is_object() || value.is_array());
    parsed.unwrap_or_else(|| Value::String(String::from_utf8_lossy(bytes).into_owned()))
}

/// The case files in the folder of one tool, in order of their names; none when there is no such folder.
#[must_use]
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    files.sort();
    files
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(json: Value) -> Case {
        Case::from_json(&json.to_string()).unwrap()
    }

    #[test]
    fn a_case_says_how_it_ends_exactly_once() {
        for (text, problem) in [
            ("{}", "write what is expected"),
            (r#"{ "data": 1, "error": { "kind": "x" } }"#, "not both"),
            (r#"{ "data": 1, "exchange": [] }"#, "unknown field `exchange`"),
            ("", "EOF"),
        ] {
            let refused = Case::from_json(text).unwrap_err();
            assert!(refused.contains(problem), "{refused}");
        }
    }

    #[test]
    fn what_is_read_is_written_again_without_what_goes_without_saying() {
        let text = json!({
            "arguments": { "id": 7 },
            "exchanges": [{ "request": { "method": "GET", "url": "https://a.example/" }, "response": {} }],
            "error": { "kind": "not_found" },
        });
        assert_eq!(serde_json::to_value(case(text.clone())).unwrap(), text);
    }

    #[test]
    fn data_is_judged_exactly_but_for_the_order_of_its_keys() {
        let case = case(json!({ "data": { "a": [1], "b": 2 } }));
        assert_eq!(case.judge(Ended::Data(&json!({ "b": 2, "a": [1] }))), None);
        let differs = case.judge(Ended::Data(&json!({ "a": [1], "b": 3 }))).unwrap();
        assert!(differs.contains("-   \"b\": 2") && differs.contains("+   \"b\": 3"), "{differs}");
        assert!(case.judge(Ended::Error { kind: "internal", message: "broken" }).unwrap().contains("internal: broken"));
    }

    #[test]
    fn an_error_is_judged_by_its_kind_and_a_part_of_its_message() {
        let case = case(json!({ "error": { "kind": "not_found", "message": "item 7" } }));
        assert_eq!(case.judge(Ended::Error { kind: "not_found", message: "there is no item 7" }), None);
        assert!(case.judge(Ended::Error { kind: "not_found", message: "no such item" }).is_some());
        assert!(case.judge(Ended::Error { kind: "forbidden", message: "item 7" }).is_some());
        assert!(case.judge(Ended::Data(&json!({}))).is_some());
    }

    #[test]
    fn a_body_brings_its_media_type_unless_one_is_given() {
        let parts = |json: Value| serde_json::from_value::<GivenResponse>(json).unwrap().parts();
        let media_type = |name: &str| vec![("content-type".to_owned(), name.to_owned())];
        assert_eq!(parts(json!({ "body": [1] })), (media_type("application/json"), b"[1]".to_vec()));
        assert_eq!(parts(json!({ "body": "a" })), (media_type("text/plain"), b"a".to_vec()));
        let own = json!({ "body": "a,b", "headers": { "Content-Type": "text/csv" } });
        assert_eq!(parts(own), (media_type("text/csv"), b"a,b".to_vec()));
        assert_eq!(parts(json!({})), (Vec::new(), Vec::new()));
    }
}
