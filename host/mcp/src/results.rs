//! Results of calls as MCP clients see them.
//!
//! The data that a tool returns was written by a provider and its users, and may have instructions to
//! the assistant. Its text is marked as untrusted, with the hosts that the tool may reach, so that a
//! client can tell it from the words of this server. Invisible characters, and those that change how
//! others are shown, are escaped in texts.
//!
//! Clients hide a long result from their model, or cut it. Of one above [`MAX_RESULT_BYTES`] they get the
//! beginning and a link to a file with the whole.

use std::{borrow::Cow, sync::Arc};

use app::{Error, catalog::ResolvedTool, core::visible::visible, files, runs::Execution};
use bytes::Bytes;
use http::{context::rename_slugs, reply::RawJson};
use rmcp::model::{
    CallToolResponse, CallToolResult, ContentBlock, InputRequiredResult, JsonObject, MetaObject,
    Resource, TextContent,
};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

/// Maximum size of the data of a result.
pub const MAX_RESULT_BYTES: usize = 100 << 10;
/// Words of this server about the beginning of a result.
const FILE_NOTE: &str = "This is the beginning of the result. The linked file has all of it.";
/// Words of this server about the beginning of a result whose rest is lost.
const LOST_NOTE: &str =
    "This is the beginning of the result. The tool ran, but the rest could not be stored";
/// Toolkit of the files with results of meta tools and recipes.
const SESSION_TOOLKIT: &str = "session";
/// Maximum number of files of a result that are shown as links.
const MAX_FILE_LINKS: usize = 20;
/// Property of an object with the address of a file.
const FILE_ADDRESS: &str = "s3url";

/// Outcome of a call.
pub(super) enum Outcome {
    /// A result or a failure that this server wrote.
    Own(Result<Bytes, String>),
    /// Data of tools, or the failure of one.
    Untrusted(Result<Bytes, String>, Source),
    /// Data too large for a result.
    Cut(CutResult),
    /// A question for the user, whose answer the repeated call brings. Nothing ran.
    Asked(InputRequiredResult),
}

/// Data too large for a result.
pub(super) struct CutResult {
    beginning: Bytes,
    source: Option<Source>,
    /// The words of this server about it.
    note: String,
    /// The result with a link to the file, unless the file could not be stored.
    file: Option<Bytes>,
}

impl Outcome {
    /// Returns true if the data is too large for a result.
    pub(super) fn is_large(&self) -> bool {
        match self {
            Self::Own(Ok(data)) | Self::Untrusted(Ok(data), _) => data.len() > MAX_RESULT_BYTES,
            _ => false,
        }
    }

    /// Cuts data, which was stored as a file, or not for a reason.
    pub(super) fn cut(data: &Bytes, source: Option<Source>, stored: Result<Bytes, Error>) -> Self {
        let (note, file) = match stored {
            Ok(file) => (FILE_NOTE.to_owned(), Some(file)),
            Err(cause) => (format!("{LOST_NOTE}: {cause}"), None),
        };
        Self::Cut(CutResult {
            beginning: files::beginning(data),
            source,
            note,
            file,
        })
    }
}

/// Origin of untrusted data, as a result states it.
#[derive(Serialize)]
pub(super) struct Source {
    /// Always true.
    untrusted: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    source_hosts: Vec<String>,
    /// Slug of the toolkit, if the data is of one tool.
    #[serde(skip)]
    toolkit: Option<Arc<str>>,
}

impl Source {
    /// Returns the origin of the data of a tool that may reach these hosts, or of several tools.
    pub(super) fn new(hosts: Vec<String>) -> Self {
        Self {
            untrusted: true,
            source_hosts: hosts,
            toolkit: None,
        }
    }

    /// Returns the origin of the data of a tool.
    pub(super) fn of(found: &ResolvedTool) -> Self {
        let rules = found.tool.policy.egress.iter();
        let mut hosts: Vec<_> = rules.map(|rule| rule.host.clone()).collect();
        hosts.dedup();
        Self {
            toolkit: Some(found.release.slug.clone()),
            ..Self::new(hosts)
        }
    }
}

/// Returns the slug of the toolkit of data with an origin.
pub(super) fn toolkit_of(source: Option<&Source>) -> &str {
    let named = source.and_then(|source| source.toolkit.as_deref());
    named.unwrap_or(SESSION_TOOLKIT)
}

impl From<Source> for MetaObject {
    fn from(source: Source) -> Self {
        let mut meta = JsonObject::new();
        meta.insert("untrusted".to_owned(), json!(source.untrusted));
        if !source.source_hosts.is_empty() {
            meta.insert("source_hosts".to_owned(), json!(source.source_hosts));
        }
        Self(meta)
    }
}

/// Returns the result of an execution, or its failure with the details.
pub(super) fn executed(execution: Execution) -> Result<Bytes, String> {
    match execution.error {
        None => Ok(execution.data),
        Some(error) => {
            let details = String::from_utf8_lossy(&execution.data);
            Err(format!("{error}\n{details}"))
        }
    }
}

/// Returns the outcome of an execution whose data is of tools.
pub(super) fn untrusted(execution: Execution, source: Source) -> Outcome {
    match (&execution.beginning, &execution.error) {
        (Some(beginning), None) => Outcome::Cut(CutResult {
            beginning: beginning.clone(),
            source: Some(source),
            note: FILE_NOTE.to_owned(),
            file: Some(execution.data),
        }),
        _ => Outcome::Untrusted(executed(execution), source),
    }
}

/// Returns a refusal as a failed call, with the suggested fix.
pub(super) fn refused(cause: &Error) -> Outcome {
    Outcome::Own(Err(rename_slugs(&cause.full_text()).into_owned()))
}

/// An outcome as MCP clients see it.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Answer {
    Result(ToolResult),
    Question(InputRequiredResult),
}

/// A result as MCP clients see it. The data of a tool is written as it came, without the types of `rmcp`,
/// which would hold further copies of it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolResult {
    content: Vec<Block>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<RawJson>,
    is_error: bool,
}

/// The text of a result, or a link to one of its files.
#[derive(Serialize)]
#[serde(untagged)]
enum Block {
    Text(ResultText),
    File(Box<ContentBlock>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "text")]
struct ResultText {
    /// The text before invisible characters are escaped.
    #[serde(serialize_with = "serialize_visible")]
    text: Bytes,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    source: Option<Source>,
}

fn serialize_visible<S: Serializer>(text: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&visible(&utf8_text(text)))
}

impl ToolResult {
    /// Returns the result of a call. The data of tools has an origin.
    fn new(executed: Result<Bytes, String>, source: Option<Source>) -> Self {
        let is_error = executed.is_err();
        let data = executed.unwrap_or_else(|text| failure_text(&text.into()));
        let mut content = vec![Block::Text(ResultText {
            text: data.clone(),
            source,
        })];
        if !is_error {
            content.extend(file_links(&data));
        }
        let has_structure = !is_error && data.trim_ascii_start().starts_with(b"{");
        Self {
            content,
            structured_content: has_structure.then_some(RawJson(data)),
            is_error,
        }
    }
}

impl From<CutResult> for ToolResult {
    fn from(cut: CutResult) -> Self {
        let mut content = vec![
            Block::Text(ResultText {
                text: cut.beginning,
                source: cut.source,
            }),
            Block::Text(ResultText {
                text: cut.note.into(),
                source: None,
            }),
        ];
        content.extend(cut.file.iter().flat_map(|file| file_links(file)));
        Self {
            content,
            is_error: cut.file.is_none(),
            structured_content: cut.file.map(RawJson),
        }
    }
}

/// Returns the text of a failure, which has details of any size.
fn failure_text(text: &Bytes) -> Bytes {
    if text.len() <= MAX_RESULT_BYTES {
        return text.clone();
    }
    let mut cut = files::beginning(text).to_vec();
    cut.extend_from_slice(b"\n(cut)");
    cut.into()
}

impl From<Block> for ContentBlock {
    fn from(block: Block) -> Self {
        let ResultText { text, source } = match block {
            Block::Text(text) => text,
            Block::File(link) => return *link,
        };
        let text = TextContent::new(visible(&utf8_text(&text)));
        Self::Text(match source {
            Some(source) => text.with_meta(source.into()),
            None => text,
        })
    }
}

impl From<ToolResult> for CallToolResult {
    fn from(result: ToolResult) -> Self {
        let content = result.content.into_iter().map(Into::into).collect();
        let mut shown = if result.is_error {
            Self::error(content)
        } else {
            Self::success(content)
        };
        // Results of tools were checked to be JSON.
        let structure = result.structured_content;
        shown.structured_content = structure.and_then(|data| serde_json::from_slice(&data.0).ok());
        shown
    }
}

impl From<Outcome> for Answer {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Own(executed) => Self::Result(ToolResult::new(executed, None)),
            Outcome::Untrusted(executed, source) => {
                Self::Result(ToolResult::new(executed, Some(source)))
            }
            Outcome::Cut(cut) => Self::Result(cut.into()),
            Outcome::Asked(question) => Self::Question(question),
        }
    }
}

impl From<Answer> for CallToolResponse {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Result(result) => CallToolResult::from(result).into(),
            Answer::Question(question) => question.into(),
        }
    }
}

/// Returns the text of bytes that were checked to be UTF-8. `from_utf8` checks them again several
/// times as fast as `from_utf8_lossy`.
fn utf8_text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

/// Returns the links to the files of a result.
fn file_links(data: &[u8]) -> Vec<Block> {
    if !utf8_text(data).contains(FILE_ADDRESS) {
        return Vec::new();
    }
    let mut files = Vec::new();
    // Results of tools were checked to be JSON.
    let _ = serde_json::from_slice(data).map(|data| collect_files(&data, &mut files));
    files
        .into_iter()
        .map(|file| Block::File(Box::new(ContentBlock::resource_link(file))))
        .collect()
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
                (text("name"), text("mimetype"), text(FILE_ADDRESS))
            {
                files.push(Resource::new(url, visible(name)).with_mime_type(media_type));
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
    use super::*;

    fn tool_result(data: &str) -> Value {
        let source = Source::new(vec!["api.example.com".to_owned()]);
        let data = Bytes::copy_from_slice(data.as_bytes());
        let result = ToolResult::new(Ok(data), Some(source));
        let as_it_came = serde_json::to_value(&result).unwrap();
        let mut parsed = serde_json::to_value(CallToolResult::from(result)).unwrap();
        let result_type = parsed.as_object_mut().unwrap().shift_remove("resultType");
        assert_eq!(result_type, Some(json!("complete")));
        assert_eq!(parsed, as_it_came);
        as_it_came
    }

    #[test]
    fn data_of_tools_is_marked_as_untrusted() {
        let marked = tool_result(r#"{"a":1}"#);
        let meta = json!({ "untrusted": true, "source_hosts": ["api.example.com"] });
        assert_eq!(marked["content"][0]["_meta"], meta);
        assert_eq!(marked["structuredContent"], json!({ "a": 1 }));
        let failed = ToolResult::new(Err("refused".to_owned()), None);
        let failed = serde_json::to_value(failed).unwrap();
        assert_eq!(failed["content"][0]["_meta"], Value::Null);
        assert_eq!(failed["isError"], true);
    }

    #[test]
    fn files_of_a_result_are_links() {
        let url = "https://x.example/a";
        let file = json!({ "name": "a.csv", "mimetype": "text/csv", "s3url": url });
        let data = json!({ "rows": 2, "files": [file, { "name": "b", "s3url": 1 }] });
        let result = tool_result(&data.to_string());
        assert_eq!(result["structuredContent"], data);
        let content = result["content"].as_array().unwrap();
        assert_eq!(content.len(), 2);
        assert_eq!(content[1]["type"], "resource_link");
        assert_eq!(content[1]["uri"], url);
        assert_eq!(content[1]["mimeType"], "text/csv");
        let many = tool_result(&json!(vec![file; MAX_FILE_LINKS + 1]).to_string());
        assert_eq!(
            many["content"].as_array().unwrap().len(),
            1 + MAX_FILE_LINKS
        );
    }

    #[test]
    fn invisible_characters_are_escaped_without_loss() {
        let data = json!({ "a": "x\u{202e}y\u{9b}31m\u{e0041}\u{7f}", "b": "é😀\n" });
        let result = tool_result(&data.to_string());
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(
            text.contains(r"x\u202ey\u009b31m\udb40\udc41\u007f"),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), data);
        assert_eq!(visible("one\ntwo\u{1b}[0m"), "one\ntwo\\u001b[0m");
    }

    #[test]
    fn large_data_is_cut_at_a_character() {
        let data = Bytes::from(format!("[\"x{}\"]", "é".repeat(MAX_RESULT_BYTES / 2)));
        let source = Source::new(Vec::new());
        let link = json!({
            "name": "result.json", "mimetype": "application/json", "s3url": "https://x.example/a",
        });
        let file = json!({ "result_file": link });
        let cut = Outcome::cut(&data, Some(source), Ok(file.to_string().into()));
        let answer = serde_json::to_value(Answer::from(cut)).unwrap();
        assert_eq!(answer["structuredContent"], file);
        assert_eq!(answer["isError"], false);
        let text = answer["content"][0]["text"].as_str().unwrap();
        assert!(data.starts_with(text.as_bytes()) && text.len() > 16_000);
        assert_eq!(answer["content"][0]["_meta"]["untrusted"], true);
        assert_eq!(answer["content"][1]["_meta"], Value::Null);
        assert_eq!(answer["content"][2]["uri"], "https://x.example/a");
    }

    #[test]
    fn data_up_to_the_limit_is_whole() {
        for (bytes, is_large) in [(MAX_RESULT_BYTES, false), (MAX_RESULT_BYTES + 1, true)] {
            let data = Bytes::from(vec![b'1'; bytes]);
            assert_eq!(Outcome::Own(Ok(data)).is_large(), is_large);
        }
    }

    #[test]
    fn long_failures_are_cut() {
        let failure = "x".repeat(MAX_RESULT_BYTES + 1);
        let result = ToolResult::new(Err(failure), None);
        let result = serde_json::to_value(result).unwrap();
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.ends_with("(cut)") && text.len() < MAX_RESULT_BYTES);
    }
}
