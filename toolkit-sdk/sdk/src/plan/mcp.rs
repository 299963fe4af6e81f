//! Tools of Model Context Protocol servers, called over streamable HTTP.
//!
//! Every call is a conversation of its own: the handshake, the call and, if the server keeps a
//! session, the end of the session. Nothing is kept between calls, so a server that loses its
//! sessions does no harm. Servers respond with JSON or with an event stream; both end with the
//! response. Protocol versions 2024-11-05 to 2025-11-25 begin with the handshake, and servers of
//! all of them know the requested version.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Arguments;
use super::answer::written;
use crate::http::{Request, Response};
use crate::{File, Result, ToolError};

const PROTOCOL_VERSION: &str = "2025-06-18";
const SESSION_HEADER: &str = "mcp-session-id";
const ACCEPTED_MEDIA_TYPES: &str = "application/json, text/event-stream";

/// Calls a tool and returns its result.
pub(super) fn call(request: &Request, tool: &str, arguments: Arguments) -> Result<Vec<u8>> {
    let session = Session::open(request)?;
    let params = json!({ "name": tool, "arguments": arguments });
    let answer = session.ask(2, "tools/call", params);
    session.close();
    to_output(ToolCallResult::deserialize(answer?).map_err(|cause| unreadable(&cause.to_string()))?)
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
    let streamed = response
        .header("content-type")
        .is_some_and(|kind| kind.starts_with("text/event-stream"));
    let messages: Vec<Value> = if streamed {
        events(&String::from_utf8_lossy(response.bytes()))
    } else {
        vec![response.json()?]
    };
    // An earlier protocol version allowed batches.
    let mut messages = messages.into_iter().flat_map(|message| match message {
        Value::Array(batch) => batch,
        one => vec![one],
    });
    let answer = messages
        .find(|it| it["id"] == id && (it.get("result").is_some() || it.get("error").is_some()));
    let mut answer = answer.ok_or_else(|| unreadable("it has no result for the request"))?;
    match answer.get("error") {
        Some(error) => Err(refusal(error)),
        None => Ok(answer["result"].take()),
    }
}

/// Parses the data of each event that is JSON (HTML, server-sent events).
fn events(stream: &str) -> Vec<Value> {
    let stream = stream.replace("\r\n", "\n").replace('\r', "\n");
    let data = |event: &str| {
        let lines = event.lines().filter_map(|line| line.strip_prefix("data:"));
        lines
            .map(|line| line.strip_prefix(' ').unwrap_or(line))
            .collect::<Vec<_>>()
            .join("\n")
    };
    stream
        .split("\n\n")
        .filter_map(|event| serde_json::from_str(&data(event)).ok())
        .collect()
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
    #[serde(default)]
    content: Vec<Value>,
    structured_content: Option<Map<String, Value>>,
    #[serde(default)]
    is_error: bool,
}

/// Returns the structured content if there is any, otherwise the parts: texts, files, and links to
/// resources.
fn to_output(answer: ToolCallResult) -> Result<Vec<u8>> {
    let is = |kind: &'static str| {
        answer
            .content
            .iter()
            .filter(move |part| part["type"] == kind)
    };
    let texts: Vec<&str> = is("text")
        .filter_map(|part| part["text"].as_str())
        .collect();
    let text = texts.join("\n\n");
    if answer.is_error {
        let message = if text.is_empty() {
            "the tool failed without a message"
        } else {
            text.as_str()
        };
        return Err(ToolError::upstream(message));
    }
    if let Some(structured) = answer.structured_content {
        return written(&Value::Object(structured));
    }
    let mut told = Map::new();
    if let (1, Ok(members)) = (
        answer.content.len(),
        serde_json::from_str::<Map<String, Value>>(&text),
    ) {
        told = members;
    } else if !text.is_empty() {
        told.insert("text".to_owned(), text.into());
    }
    let mut files = Vec::new();
    let mut resources = Vec::new();
    for part in &answer.content {
        match part["type"].as_str() {
            Some("image" | "audio") => files.push(json!(file(part, "data", "content")?)),
            Some("resource") if part["resource"]["blob"].is_string() => {
                let resource = &part["resource"];
                let name = resource["uri"]
                    .as_str()
                    .and_then(|uri| uri.rsplit('/').next())
                    .unwrap_or("resource");
                files.push(json!(file(resource, "blob", name)?));
            }
            Some("resource") => resources.push(part["resource"].clone()),
            Some("resource_link") => resources.push(part.clone()),
            _ => {}
        }
    }
    for (name, list) in [("files", files), ("resources", resources)] {
        if !list.is_empty() {
            told.insert(name.to_owned(), list.into());
        }
    }
    written(&Value::Object(told))
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
