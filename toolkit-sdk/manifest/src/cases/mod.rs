//! Case files, `cases/<tool>/<case>.json`: the requests, responses and data that follow from given
//! arguments.
//!
//! The SDK runs cases natively against a scripted host. `toolkit check` runs them through the
//! component in the production sandbox. Both read and judge them with this module, so a case means
//! the same in both. Guests contain none of this code.
//!
//! The folder is named after the tool's slug in lower case without the toolkit's name. For a
//! trigger, `arguments` is its configuration, and `cursor`, `request` or `subscription` is its further
//! input.

mod difference;
mod matching;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use difference::{difference, lines};
pub use matching::merged;

use crate::{
    AuthScheme, CASE_URL, SECRET_PLACEHOLDER, Subscription, SubscriptionAction, SubscriptionCall,
};

/// Default time of a case: 2026-01-01T00:00:00Z, in milliseconds since 1970.
pub const DEFAULT_TIME_MS: u64 = 1_767_225_600_000;

/// One case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Arguments of the tool, or configuration of the trigger.
    #[serde(default = "empty")]
    pub arguments: Value,
    /// Cursor of a poll. Missing for the first poll.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Value>,
    /// Request of a webhook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<GivenInbound>,
    /// Part of a subscription's life, instead of a webhook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscription: Option<GivenSubscription>,
    /// Time of the call, in milliseconds since 1970. [`DEFAULT_TIME_MS`] when missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<u64>,
    /// Non-secret fields of the account.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, String>,
    /// Available files. An argument names one by its id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<GivenFile>,
    /// Requests and their responses, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exchanges: Vec<Exchange>,
    /// Exact data of a success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// Expected failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ExpectedError>,
}

/// An expected request and its response.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// Expected request.
    pub request: ExpectedRequest,
    /// Response that the toolkit receives.
    pub response: GivenResponse,
}

/// An expected request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedRequest {
    /// Method in upper case.
    pub method: String,
    /// Complete URL with its query, without the parts that the platform adds.
    pub url: String,
    /// Headers that must be among the sent ones.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Body: JSON, a string, or an object with the parts of a multipart form. When missing, any
    /// body matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
}

/// A response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenResponse {
    /// Status. 200 when missing.
    #[serde(default = "ok", skip_serializing_if = "is_ok")]
    pub status: u16,
    /// Headers. `content-type` is added when missing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Body: JSON, or a string, which is sent unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// Kind of the platform's failure instead of a response, for example `timeout`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// An expected failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedError {
    /// Exact kind of the error.
    pub kind: String,
    /// Part of the error's message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenFile {
    /// Id, as in `s3key`.
    pub id: String,
    /// File name.
    pub name: String,
    /// Media type.
    pub mimetype: String,
    /// Content of the file.
    pub text: String,
}

/// The request of a webhook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenInbound {
    /// Method. POST when missing.
    #[serde(default = "post")]
    pub method: String,
    /// Path and query.
    #[serde(default)]
    pub path: String,
    /// Headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Body: JSON, or a string, which is used unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
}

/// The part of a subscription's life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenSubscription {
    /// Action.
    pub action: SubscriptionAction,
    /// Subscription that an earlier call made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Subscription>,
}

impl GivenSubscription {
    /// Returns the arguments of the call with this configuration.
    #[must_use]
    pub fn call(&self, config: &Value) -> SubscriptionCall {
        SubscriptionCall {
            action: self.action,
            config: config.clone(),
            url: CASE_URL.to_owned(),
            secret: SECRET_PLACEHOLDER.to_owned(),
            previous: self.previous.clone(),
        }
    }
}

/// The outcome of a call, as far as a case can describe it.
#[derive(Debug, Clone, Copy)]
pub enum CaseResult<'a> {
    /// Success with data.
    Data(&'a Value),
    /// Failure.
    Error {
        /// Kind of the error, for example `not_found`.
        kind: &'a str,
        /// Message for the agent.
        message: &'a str,
    },
}

fn empty() -> Value {
    json!({})
}

fn ok() -> u16 {
    200
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference"
)]
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
    /// An error if the text is not JSON of this shape, or does not give exactly one expected outcome.
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
        Self::from_json(
            &std::fs::read_to_string(file).map_err(|cause| format!("cannot be read: {cause}"))?,
        )
    }

    /// Returns the difference between the expected and the actual outcome, or `None` if the case
    /// passes.
    #[must_use]
    pub fn judge(&self, result: CaseResult<'_>) -> Option<String> {
        match (result, &self.data, &self.error) {
            (CaseResult::Data(data), Some(expected), _) => difference(expected, data)
                .map(|lines| format!("the data differs (- expected, + actual):\n{lines}")),
            (CaseResult::Data(data), None, Some(error)) => Some(format!(
                "expected the error `{}`, but the call succeeded (+ actual):\n{}",
                error.kind,
                lines("", &pretty(data))
            )),
            (CaseResult::Error { kind, message }, None, Some(error)) => {
                // The scripted host and the sandbox have different messages about a failed
                // exchange.
                let is_said = self.is_broken() || message.contains(&error.message);
                let fits = kind == error.kind && is_said;
                let expected = format!("{}: {}\n", error.kind, error.message);
                (!fits).then(|| {
                    let lines = lines(&expected, &format!("{kind}: {message}\n"));
                    format!("the error differs (- expected, with a part of the message; + actual):\n{lines}")
                })
            }
            (CaseResult::Error { kind, message }, _, _) => Some(format!(
                "expected data, but the call failed with `{kind}: {message}`"
            )),
            (CaseResult::Data(_), None, None) => {
                Some("write what is expected: `data` or `error`".to_owned())
            }
        }
    }
}

impl Case {
    /// Returns true if a request of the case gets no response.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.exchanges
            .iter()
            .any(|exchange| exchange.response.error.is_some())
    }

    /// Returns the values of a scheme's fields: those of the case, defaults, and generated values
    /// for all others that an account has.
    #[must_use]
    pub fn account_values(&self, scheme: &AuthScheme) -> BTreeMap<String, String> {
        let fields = scheme.fields.iter().filter_map(|field| {
            let is_needed = field.secret || !field.optional;
            let value = self
                .fields
                .get(&field.name)
                .cloned()
                .or_else(|| field.default.clone())
                .or_else(|| is_needed.then(|| generated(&field.name)))?;
            Some((field.name.clone(), value))
        });
        let granted = scheme
            .flow_values()
            .map(|name| (name.to_owned(), generated(name)));
        fields.chain(granted).collect()
    }
}

fn generated(name: &str) -> String {
    format!("case-{name}")
}

impl Default for GivenResponse {
    fn default() -> Self {
        Self {
            status: ok(),
            headers: BTreeMap::new(),
            body: None,
            error: None,
        }
    }
}

impl GivenResponse {
    /// Returns the headers with lower-case names, and the body. If `content-type` is missing, it is
    /// derived from the body.
    #[must_use]
    pub fn parts(&self) -> (Vec<(String, String)>, Vec<u8>) {
        let mut headers: Vec<_> = self
            .headers
            .iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()))
            .collect();
        let media_type = self.body.as_ref().map(|body| {
            if body.is_string() {
                "text/plain"
            } else {
                "application/json"
            }
        });
        if let Some(media_type) = media_type
            && !headers.iter().any(|(name, _)| name == "content-type")
        {
            headers.push(("content-type".to_owned(), media_type.to_owned()));
        }
        (headers, bytes(self.body.as_ref()))
    }
}

impl GivenInbound {
    /// Returns the headers with lower-case names, and the body.
    #[must_use]
    pub fn parts(&self) -> (Vec<(String, String)>, Vec<u8>) {
        let headers = self
            .headers
            .iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()));
        (headers.collect(), bytes(self.body.as_ref()))
    }
}

/// Serializes a body: JSON, or a string unchanged.
fn bytes(body: Option<&Value>) -> Vec<u8> {
    match body {
        None => Vec::new(),
        Some(Value::String(text)) => text.clone().into_bytes(),
        Some(json) => json.to_string().into_bytes(),
    }
}

/// Converts a body to its form in case files: JSON objects and lists as they are, anything else as
/// a string.
#[must_use]
pub fn body_value(bytes: &[u8]) -> Value {
    let parsed = serde_json::from_slice(bytes)
        .ok()
        .filter(|value: &Value| value.is_object() || value.is_array());
    parsed.unwrap_or_else(|| Value::String(String::from_utf8_lossy(bytes).into_owned()))
}

/// Returns the case files in the folder of one tool, in order of their names; none if the folder
/// does not exist.
#[must_use]
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = folder
        .read_dir()
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let mut files: Vec<_> = entries
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
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
            (
                r#"{ "data": 1, "exchange": [] }"#,
                "unknown field `exchange`",
            ),
            ("", "EOF"),
        ] {
            let refused = Case::from_json(text).unwrap_err();
            assert!(refused.contains(problem), "{refused}");
        }
    }

    #[test]
    fn case_round_trips_without_defaults() {
        let text = json!({
            "arguments": { "id": 7 },
            "exchanges": [{ "request": { "method": "GET", "url": "https://a.example/" }, "response": {} }],
            "error": { "kind": "not_found" },
        });
        assert_eq!(serde_json::to_value(case(text.clone())).unwrap(), text);
    }

    #[test]
    fn data_must_match_except_key_order() {
        let case = case(json!({ "data": { "a": [1], "b": 2 } }));
        assert_eq!(
            case.judge(CaseResult::Data(&json!({ "b": 2, "a": [1] }))),
            None
        );
        let differs = case
            .judge(CaseResult::Data(&json!({ "a": [1], "b": 3 })))
            .unwrap();
        assert!(
            differs.contains("-   \"b\": 2") && differs.contains("+   \"b\": 3"),
            "{differs}"
        );
        let failed = case.judge(CaseResult::Error {
            kind: "internal",
            message: "broken",
        });
        assert!(failed.unwrap().contains("internal: broken"));
    }

    #[test]
    fn error_matches_by_kind_and_message_part() {
        let case = case(json!({ "error": { "kind": "not_found", "message": "item 7" } }));
        for (kind, message, fits) in [
            ("not_found", "there is no item 7", true),
            ("not_found", "no such item", false),
            ("forbidden", "item 7", false),
        ] {
            let problem = case.judge(CaseResult::Error { kind, message });
            assert_eq!(problem.is_none(), fits, "{kind}: {message}");
        }
        assert!(case.judge(CaseResult::Data(&json!({}))).is_some());
    }

    #[test]
    fn body_sets_default_media_type() {
        let parts = |json: Value| {
            serde_json::from_value::<GivenResponse>(json)
                .unwrap()
                .parts()
        };
        let media_type = |name: &str| vec![("content-type".to_owned(), name.to_owned())];
        let own = json!({ "body": "a,b", "headers": { "Content-Type": "text/csv" } });
        for (response, headers, body) in [
            (
                json!({ "body": [1] }),
                media_type("application/json"),
                "[1]",
            ),
            (json!({ "body": "a" }), media_type("text/plain"), "a"),
            (own, media_type("text/csv"), "a,b"),
            (json!({}), Vec::new(), ""),
        ] {
            assert_eq!(parts(response), (headers, body.as_bytes().to_vec()));
        }
    }
}
