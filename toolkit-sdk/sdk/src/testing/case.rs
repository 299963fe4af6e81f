//! Case files: `cases/<tool>/<case>.json` says which arguments lead to which requests, answers and data.
//!
//! The folder is the tool's function, or its slug in lower case without the toolkit's name. For a trigger `arguments` is its
//! configuration, and `cursor` or `request` what else it takes.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Host, diff, host};
use crate::rt::{self, Toolkit};
use crate::{Inbound, Result, ToolError};

/// One case.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Arguments of the tool, or configuration of the trigger.
    #[serde(default = "empty")]
    pub arguments: Value,
    /// What is sent and answered, in order.
    #[serde(default)]
    pub exchanges: Vec<Exchange>,
    /// What a success answers, exactly.
    #[serde(default)]
    pub data: Option<Value>,
    /// How a failure ends.
    #[serde(default)]
    pub error: Option<GivenError>,
    /// The time, in milliseconds since 1970; otherwise 2026-01-01T00:00:00Z.
    #[serde(default)]
    pub now: Option<u64>,
    /// Non-secret fields of the account.
    #[serde(default)]
    pub fields: BTreeMap<String, String>,
    /// Files there are; an argument names one by its id.
    #[serde(default)]
    pub files: Vec<GivenFile>,
    /// The cursor of a poll; missing at the first.
    #[serde(default)]
    pub cursor: Option<Value>,
    /// The request that a webhook brings.
    #[serde(default)]
    pub request: Option<GivenInbound>,
}

/// A request that is expected, and its answer.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// What must be sent.
    pub request: GivenRequest,
    /// What is answered.
    pub response: GivenResponse,
}

/// A request that is expected.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenRequest {
    /// In upper case.
    pub method: String,
    /// The whole address, with its query, without what the platform adds.
    pub url: String,
    /// Headers that must be among those sent.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body: JSON, a text, or for a form with parts an object of them. Missing: any body.
    #[serde(default)]
    pub body: Option<Value>,
}

/// An answer.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenResponse {
    /// The status; 200 when missing.
    #[serde(default = "ok")]
    pub status: u16,
    /// Its headers; `content-type` is added when missing.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// JSON, or a text that is sent as it is.
    #[serde(default)]
    pub body: Option<Value>,
    /// Instead of an answer: the platform's kind of failure, for example `timeout`.
    #[serde(default)]
    pub error: Option<String>,
}

/// How a failure ends.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenError {
    /// The exact kind.
    pub kind: String,
    /// A part of the message.
    #[serde(default)]
    pub message: Option<String>,
}

/// A file.
#[derive(Debug, Clone, Deserialize)]
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
#[derive(Debug, Clone, Deserialize)]
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
    #[serde(default)]
    pub body: Option<Value>,
}

fn empty() -> Value {
    json!({})
}

fn ok() -> u16 {
    200
}

fn post() -> String {
    "POST".to_owned()
}

/// Runs all cases and lists what went wrong; a tool without cases is wrong too.
pub(super) fn run_all(toolkit: &Toolkit, folder: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    let mut files = Vec::new();
    for tool in toolkit.tools {
        let cases = files_of(folder, tool.function, tool.suffix);
        if cases.is_empty() {
            problems.push(format!(
                "the tool `{0}` has no case: write {1}/{0}/success.json",
                tool.function,
                folder.display()
            ));
        }
        files.extend(cases);
    }
    for trigger in toolkit.triggers {
        files.extend(files_of(folder, trigger.function, trigger.suffix));
    }
    problems.extend(files.iter().filter_map(|file| run_file(toolkit, file).err()));
    problems
}

fn files_of(folder: &Path, function: &str, suffix: &str) -> Vec<PathBuf> {
    let by_slug = suffix.to_ascii_lowercase();
    let mut names = vec![function];
    if by_slug != function {
        names.push(&by_slug);
    }
    let mut files = Vec::new();
    for name in names {
        let Ok(entries) = folder.join(name).read_dir() else { continue };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        files.extend(paths.filter(|path| path.extension().is_some_and(|extension| extension == "json")));
    }
    files.sort();
    files
}

/// Runs one case file.
pub(super) fn run_file(toolkit: &Toolkit, file: &Path) -> Result<(), String> {
    let name = || file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: cannot be read: {error}", name()))?;
    let case: Case = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", name()))?;
    let folder = file.parent().and_then(Path::file_name).and_then(|folder| folder.to_str()).unwrap_or_default();
    run_case(toolkit, folder, &case).map_err(|problem| format!("{}:\n{problem}", name()))
}

/// Runs one case of the tool or trigger that `name` names.
///
/// # Errors
/// What went wrong.
pub fn run_case(toolkit: &Toolkit, name: &str, case: &Case) -> Result<(), String> {
    let outcome = catch_unwind(AssertUnwindSafe(|| scripted(case).run(|| run(toolkit, name, case)).0));
    let outcome = outcome.map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        text.unwrap_or("the toolkit panicked").to_owned()
    })?;
    match (outcome, &case.data, &case.error) {
        (Ok(data), Some(expected), None) => match diff::json(expected, &data) {
            Some(difference) => Err(format!("the data differs (- expected, + answered):\n{difference}")),
            None => Ok(()),
        },
        (Err(error), None, Some(expected)) => {
            let message = expected.message.as_deref().unwrap_or_default();
            if error.kind() == expected.kind && error.text().contains(message) {
                return Ok(());
            }
            Err(format!("expected the error `{}: {message}`, but it is `{error}`", expected.kind))
        }
        (Ok(data), None, Some(expected)) => {
            Err(format!("expected the error `{}`, but it answers {data}", expected.kind))
        }
        (Err(error), Some(_), None) => Err(format!("expected data, but it fails with `{error}`")),
        (_, None, None) => Err("write what is expected: `data` or `error`".to_owned()),
        (_, Some(_), Some(_)) => Err("a case expects `data` or `error`, not both".to_owned()),
    }
}

fn scripted(case: &Case) -> Host {
    let mut scripted = case.exchanges.iter().cloned().fold(host(), Host::expect);
    if let Some(now) = case.now {
        scripted = scripted.now(now);
    }
    for (name, value) in &case.fields {
        scripted = scripted.field(name, value);
    }
    for GivenFile { id, name, mimetype, text } in &case.files {
        scripted = scripted.file(id, name, mimetype, text.as_bytes());
    }
    scripted
}

fn run(toolkit: &Toolkit, name: &str, case: &Case) -> Result<Value> {
    let named = |function: &str, suffix: &str| function == name || suffix.eq_ignore_ascii_case(name);
    let slug = |suffix: &str| format!("{}_{suffix}", toolkit.slug.to_ascii_uppercase());
    let arguments = case.arguments.to_string().into_bytes();
    if let Some(tool) = toolkit.tools.iter().find(|tool| named(tool.function, tool.suffix)) {
        let data = rt::execute(toolkit, &slug(tool.suffix), arguments)?;
        return Ok(serde_json::from_slice(&data)?);
    }
    let Some(trigger) = toolkit.triggers.iter().find(|trigger| named(trigger.function, trigger.suffix)) else {
        return Err(ToolError::internal(format!("no tool or trigger is called `{name}`")));
    };
    match &trigger.source {
        rt::Source::Poll(_) => {
            let cursor = case.cursor.as_ref().map(Value::to_string).unwrap_or_default();
            let polled = rt::poll_trigger(toolkit, &slug(trigger.suffix), &arguments, cursor.as_bytes())?;
            let cursor: Value = serde_json::from_slice(&polled.cursor)?;
            Ok(json!({ "events": events(polled.events)?, "cursor": cursor, "more": polled.more }))
        }
        rt::Source::Webhook(_) => {
            let received = rt::receive_trigger(toolkit, &slug(trigger.suffix), &arguments, inbound(case))?;
            let body = String::from_utf8_lossy(&received.body).into_owned();
            Ok(json!({ "events": events(received.events)?, "status": received.status, "body": body }))
        }
    }
}

fn events(events: Vec<(String, Vec<u8>)>) -> Result<Vec<Value>> {
    let event = |(id, payload): (String, Vec<u8>)| {
        let payload: Value = serde_json::from_slice(&payload)?;
        Ok(json!({ "id": id, "payload": payload }))
    };
    events.into_iter().map(event).collect()
}

fn inbound(case: &Case) -> Inbound {
    let Some(given) = &case.request else { return Inbound::default() };
    let body = match &given.body {
        None => Vec::new(),
        Some(Value::String(text)) => text.clone().into_bytes(),
        Some(json) => json.to_string().into_bytes(),
    };
    let headers = given.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect();
    Inbound { method: given.method.clone(), path: given.path.clone(), headers, body }
}
