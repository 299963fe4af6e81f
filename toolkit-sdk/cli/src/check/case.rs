//! Case files, `cases/<tool>/<case>.json`: the same files that the SDK runs natively against a scripted host.
//!
//! The folder is the slug of the tool or trigger in lower case, without the toolkit's name.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use manifest::{Manifest, Tool, Trigger};
use serde::Deserialize;
use serde_json::{Value, json};

/// One case.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    /// Arguments of the tool, or configuration of the trigger.
    #[serde(default = "empty")]
    pub(super) arguments: Value,
    /// What is sent and answered.
    #[serde(default)]
    pub(super) exchanges: Vec<Exchange>,
    /// What a success answers, exactly.
    pub(super) data: Option<Value>,
    /// How a failure ends.
    pub(super) error: Option<ExpectedError>,
    /// When it happens, in milliseconds since 1970.
    pub(super) now: Option<u64>,
    /// Non-secret fields of the account.
    #[serde(default)]
    pub(super) fields: BTreeMap<String, String>,
    /// Files there are; an argument names one by its id.
    #[serde(default)]
    pub(super) files: Vec<GivenFile>,
    /// The cursor of a poll; missing at the first.
    pub(super) cursor: Option<Value>,
    /// The request that a webhook brings.
    pub(super) request: Option<GivenInbound>,
}

/// A request that is expected, and its answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Exchange {
    pub(super) request: ExpectedRequest,
    pub(super) response: Response,
}

/// A request that is expected.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectedRequest {
    pub(super) method: String,
    /// The whole address with its query, without what the sandbox adds.
    pub(super) url: String,
    /// Headers that must be among those sent.
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    /// JSON, a text, or an object of the parts of a form. Missing: any body.
    pub(super) body: Option<Value>,
}

/// An answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Response {
    #[serde(default = "ok")]
    pub(super) status: u16,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    /// JSON, or a text that is sent as it is.
    pub(super) body: Option<Value>,
    /// Instead of an answer: how the exchange fails.
    pub(super) error: Option<String>,
}

/// How a failure ends.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectedError {
    /// The exact kind.
    pub(super) kind: String,
    /// A part of the message.
    #[serde(default)]
    pub(super) message: String,
}

/// A file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GivenFile {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) mimetype: String,
    pub(super) text: String,
}

/// The request that a webhook brings.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GivenInbound {
    #[serde(default = "post")]
    pub(super) method: String,
    #[serde(default)]
    pub(super) path: String,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Option<Value>,
}

/// What a case is about.
#[derive(Debug, Clone, Copy)]
pub(super) enum Subject<'a> {
    Tool(&'a Tool),
    Trigger(&'a Trigger),
}

/// A case file that could be read.
#[derive(Debug)]
pub(super) struct CaseFile<'a> {
    pub(super) subject: Subject<'a>,
    /// For example `list_stories/success`.
    pub(super) name: String,
    pub(super) case: Case,
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

impl GivenInbound {
    /// The body as bytes: JSON, or a text as it is.
    pub(super) fn bytes(&self) -> Vec<u8> {
        match &self.body {
            None => Vec::new(),
            Some(Value::String(text)) => text.clone().into_bytes(),
            Some(json) => json.to_string().into_bytes(),
        }
    }
}

/// Reads every case below `folder`, and says what is wrong with the files and what is missing.
pub(super) fn load<'a>(manifest: &'a Manifest, folder: &Path, problems: &mut Vec<String>) -> Vec<CaseFile<'a>> {
    let mut files = Vec::new();
    for directory in entries(folder).filter(|path| path.is_dir()) {
        let name = file_name(&directory);
        let Some(subject) = subject(manifest, &name) else {
            problems.push(format!("cases/{name}: no tool or trigger has the slug {}", slug(manifest, &name)));
            continue;
        };
        for file in entries(&directory).filter(|path| path.extension().is_some_and(|end| end == "json")) {
            let name = format!("{name}/{}", file_name(&file.with_extension("")));
            match read(&file) {
                Ok(case) => files.push(CaseFile { subject, name, case }),
                Err(problem) => problems.push(format!("cases/{name}.json: {problem}")),
            }
        }
    }
    problems.extend(manifest.tools.iter().flat_map(|tool| missing(manifest, tool, &files)));
    files
}

fn read(file: &Path) -> Result<Case, String> {
    let text = fs::read_to_string(file).map_err(|cause| cause.to_string())?;
    let case: Case = serde_json::from_str(&text).map_err(|cause| cause.to_string())?;
    match (&case.data, &case.error) {
        (Some(_), None) | (None, Some(_)) => Ok(case),
        (None, None) => Err("write what is expected: `data` or `error`".to_owned()),
        (Some(_), Some(_)) => Err("a case expects `data` or `error`, not both".to_owned()),
    }
}

/// A tool needs a case that succeeds and one that fails.
fn missing(manifest: &Manifest, tool: &Tool, files: &[CaseFile<'_>]) -> Vec<String> {
    let of = |file: &&CaseFile<'_>| matches!(file.subject, Subject::Tool(other) if other.slug == tool.slug);
    let folder = folder_name(manifest, tool);
    let mut problems = Vec::new();
    if !files.iter().filter(of).any(|file| file.case.data.is_some()) {
        problems.push(format!("{}: no case succeeds; write cases/{folder}/success.json with `data`", tool.slug));
    }
    if !files.iter().filter(of).any(|file| file.case.error.is_some()) {
        problems.push(format!("{}: no case fails; write cases/{folder}/failure.json with `error`", tool.slug));
    }
    problems
}

fn folder_name(manifest: &Manifest, tool: &Tool) -> String {
    let slug = tool.slug.to_ascii_lowercase();
    slug.strip_prefix(&format!("{}_", manifest.slug)).unwrap_or(&slug).to_owned()
}

fn subject<'a>(manifest: &'a Manifest, folder: &str) -> Option<Subject<'a>> {
    let slug = slug(manifest, folder);
    let tool = manifest.tool(&slug).map(Subject::Tool);
    tool.or_else(|| manifest.trigger(&slug).map(Subject::Trigger))
}

fn slug(manifest: &Manifest, folder: &str) -> String {
    format!("{}_{folder}", manifest.slug).to_ascii_uppercase()
}

/// In order of their names, so that reports are the same every time.
fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let mut paths: Vec<_> = folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.into_iter()
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let tool = |slug: &str| json!({ "slug": slug, "name": "n", "description": "d", "input": { "type": "object" }, "output": {} });
        serde_json::from_value(json!({
            "abi": "1.0.0", "sdk": "toolkit-sdk 0.1.0", "slug": "hello", "name": "Hello", "description": "Greets.",
            "version": "20261121_00", "tools": [tool("HELLO_GREET"), tool("HELLO_SHOUT")],
        }))
        .unwrap()
    }

    #[test]
    fn everything_wrong_with_the_files_is_said_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("greet/success.json", r#"{ "data": 1 }"#);
        write("greet/failure.json", r#"{ "error": { "kind": "not_found" } }"#);
        write("shout/both.json", r#"{ "data": 1, "error": { "kind": "x" } }"#);
        write("shout/neither.json", "{}");
        write("shout/typo.json", r#"{ "data": 1, "exchange": [] }"#);
        write("whisper/success.json", r#"{ "data": 1 }"#);
        let manifest = manifest();
        let mut problems = Vec::new();
        let files = load(&manifest, folder.path(), &mut problems);
        let names: Vec<_> = files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["greet/failure", "greet/success"]);
        let all = problems.join("\n");
        for expected in [
            "both.json",
            "neither.json",
            "unknown field `exchange`",
            "HELLO_WHISPER",
            "cases/shout/success.json",
            "cases/shout/failure.json",
        ] {
            assert!(all.contains(expected), "{expected} is not in\n{all}");
        }
        assert!(!all.contains("cases/greet/"), "{all}");
    }
}
