//! Tools of Model Context Protocol servers, called over streamable HTTP.
//!
//! Every call is a conversation of its own: the handshake, the call and, if the server keeps a
//! session, the end of the session. Nothing is kept between calls, so a server that loses its
//! sessions does no harm. Servers respond with JSON or with an event stream; both end with the
//! response: the host leaves a stream that stays open, and answers the server's requests in it.
//! Protocol versions 2024-11-05 to 2025-11-25 start with the handshake, and servers of all of them
//! know the requested version.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use manifest::rpc;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Arguments;
use super::answer::written;
use crate::http::{self, Request, Response};
use crate::{File, Result, ToolError, mismatch};

const PROTOCOL_VERSION: &str = "2025-06-18";
const SESSION_HEADER: &str = "mcp-session-id";
const ACCEPTED_MEDIA_TYPES: &str = "application/json, text/event-stream";

/// Calls a tool and returns its result.
pub(super) fn call(request: &Request, tool: &str, arguments: Arguments) -> Result<Vec<u8>> {
    let session = Session::open(request)?;
    let params = json!({ "name": tool, "arguments": arguments });
    let answer = session.ask(2, "tools/call", params);
    session.close();
    let result = ToolCallResult::deserialize(answer?);
    to_output(result.map_err(|cause| unreadable(&mismatch::reason(&cause)))?)
}

struct Session {
    request: Request,
    kept: bool,
}

impl Session {
    fn open(request: &Request) -> Result<Self> {
        let fresh = Self {
            request: request.clone().header("accept", ACCEPTED_MEDIA_TYPES),
            kept: false,
        };
        let client = json!({ "name": "toolkit-sdk", "version": env!("CARGO_PKG_VERSION") });
        let params = json!({ "protocolVersion": PROTOCOL_VERSION, "capabilities": {}, "clientInfo": client });
        let response = fresh
            .send(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }))?;
        let greeting = result(&response, 1)?;
        let mut request = fresh.request;
        if let Some(version) = greeting["protocolVersion"].as_str() {
            request = request.header("mcp-protocol-version", version);
        }
        let session = response.header(SESSION_HEADER).map(str::to_owned);
        let kept = session.is_some();
        let opened = Self {
            request: request.header_opt(SESSION_HEADER, session),
            kept,
        };
        // A server without sessions would not remember the notification.
        if kept {
            opened.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        }
        Ok(opened)
    }

    fn ask(&self, id: u64, method: &str, params: Value) -> Result<Value> {
        let response =
            self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        result(&response, id)
    }

    fn send(&self, message: Value) -> Result<Response> {
        self.request.clone().json(&message).send()
    }

    /// Ends the session. Servers may refuse this request, and they expire sessions by themselves.
    fn close(self) {
        if self.kept {
            let _ = self.request.with_method("DELETE").send_any();
        }
    }
}

/// Returns the result of the request with this id.
fn result(response: &Response, id: u64) -> Result<Value> {
    let mut answer = rpc::response_to(&id.into(), rpc::messages(response.bytes()))
        .ok_or_else(|| unreadable("it has no result for the request"))?;
    match answer.get("error").filter(|error| !error.is_null()) {
        Some(error) => Err(refusal(error)),
        None => Ok(answer["result"].take()),
    }
}

fn refusal(error: &Value) -> ToolError {
    let message = error["message"]
        .as_str()
        .unwrap_or("the server refused the call")
        .to_owned();
    // JSON-RPC 2.0, 5.1: invalid parameters.
    let kind = if error["code"] == -32602 {
        "invalid_input"
    } else {
        "upstream_error"
    };
    ToolError::new(kind, message).details(error.clone())
}

fn unreadable(cause: &str) -> ToolError {
    ToolError::upstream(format!("the server's response cannot be read: {cause}"))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolCallResult {
    content: Option<Vec<Value>>,
    structured_content: Option<Value>,
    is_error: Option<bool>,
}

/// Returns all parts of a result: the structured content, the texts that say more, files, and links to
/// resources. Those of a failure become its message and details.
fn to_output(answer: ToolCallResult) -> Result<Vec<u8>> {
    let is_error = answer.is_error.unwrap_or(false);
    let content = answer.content.unwrap_or_default();
    let parts = Parts::read(&content)?;
    let structured = answer.structured_content;
    if is_error {
        return Err(failure(parts, structured));
    }
    let output = match structured {
        Some(structured) => parts.beside(structured),
        None => parts.alone(),
    };
    written(&Value::Object(output))
}

/// Parts of the content of a result.
#[derive(Default)]
struct Parts<'a> {
    texts: Vec<&'a str>,
    files: Vec<Value>,
    resources: Vec<Value>,
    /// Parts of kinds that no known version of the protocol has.
    others: Vec<Value>,
}

impl<'a> Parts<'a> {
    fn read(content: &'a [Value]) -> Result<Self> {
        let mut parts = Self::default();
        for part in content {
            match part["type"].as_str() {
                Some("text") => parts.texts.extend(part["text"].as_str()),
                Some("image" | "audio") => parts.files.push(json!(file(part, "data", "content")?)),
                Some("resource") if part["resource"]["blob"].is_string() => {
                    let resource = &part["resource"];
                    let name = resource["uri"]
                        .as_str()
                        .and_then(|uri| uri.rsplit('/').next())
                        .unwrap_or("resource");
                    parts.files.push(json!(file(resource, "blob", name)?));
                }
                Some("resource") => parts.resources.push(part["resource"].clone()),
                Some("resource_link") => parts.resources.push(part.clone()),
                _ => parts.others.push(part.clone()),
            }
        }
        parts.texts.retain(|text| !text.is_empty());
        Ok(parts)
    }

    /// Returns the parts of a result without structured content. A single text part that contains a
    /// JSON object is the structured content of servers that do not support it.
    fn alone(self) -> Map<String, Value> {
        let has_one_text = self.texts.len() == 1 && self.lists().all(|(_, list)| list.is_empty());
        let object = self.texts.first().filter(|_| has_one_text);
        if let Some(members) = object.and_then(|text| serde_json::from_str(text).ok()) {
            return members;
        }
        self.added_to(Map::new())
    }

    /// Returns the parts together with the structured content. A list becomes the property `items`,
    /// and a single value `value`.
    fn beside(mut self, structured: Value) -> Map<String, Value> {
        self.texts.retain(|text| !is_told(&structured, text));
        self.added_to(match structured {
            Value::Object(members) => members,
            Value::Null => Map::new(),
            Value::Array(items) => Map::from_iter([("items".to_owned(), Value::Array(items))]),
            scalar => Map::from_iter([("value".to_owned(), scalar)]),
        })
    }

    fn added_to(self, mut output: Map<String, Value>) -> Map<String, Value> {
        let text = self.texts.join("\n\n");
        if !text.is_empty() {
            add(&mut output, "text", text.into());
        }
        for (name, list) in self.lists().filter(|(_, list)| !list.is_empty()) {
            add(&mut output, name, list.clone().into());
        }
        output
    }

    fn lists(&self) -> impl Iterator<Item = (&'static str, &Vec<Value>)> {
        [
            ("files", &self.files),
            ("resources", &self.resources),
            ("content", &self.others),
        ]
        .into_iter()
    }
}

/// Adds a part. A property of the structured content keeps its name.
fn add(output: &mut Map<String, Value>, name: &str, value: Value) {
    let mut name = name.to_owned();
    while output.contains_key(&name) {
        name = format!("content_{name}");
    }
    output.insert(name, value);
}

/// Returns true if the text repeats the structured content, one of its values, or an item of one.
fn is_told(structured: &Value, text: &str) -> bool {
    let parsed = serde_json::from_str::<Value>(text).ok();
    let is_same = |value: &Value| Some(value) == parsed.as_ref() || value.as_str() == Some(text);
    let is_in = |value: &Value| {
        is_same(value)
            || value
                .as_array()
                .is_some_and(|items| items.iter().any(is_same))
    };
    let members = structured.as_object();
    is_in(structured) || members.is_some_and(|members| members.values().any(is_in))
}

/// Returns the error of a tool that failed. Its reason is the texts, or else the structured content.
fn failure(parts: Parts<'_>, structured: Option<Value>) -> ToolError {
    let text = parts.texts.join("\n\n");
    let structured = structured.filter(|structured| !structured.is_null());
    let message = match &structured {
        _ if !text.is_empty() => text,
        Some(structured) => {
            let message = http::message(structured).map(str::to_owned);
            message.unwrap_or_else(|| structured.to_string())
        }
        None => "the tool failed without a message".to_owned(),
    };
    let without_texts = Parts {
        texts: Vec::new(),
        ..parts
    };
    let details = without_texts.beside(structured.unwrap_or_default());
    let error = ToolError::upstream(message);
    if details.is_empty() {
        error
    } else {
        error.details(Value::Object(details))
    }
}

fn file(part: &Value, member: &str, name: &str) -> Result<File> {
    let bytes = STANDARD
        .decode(part[member].as_str().unwrap_or_default())
        .map_err(|cause| unreadable(&cause.to_string()))?;
    let kind = part["mimeType"]
        .as_str()
        .unwrap_or("application/octet-stream");
    File::with(name, kind, &bytes)
}
