//! Messages of JSON-RPC 2.0 in bodies of requests, and the errors for bodies without one.
//!
//! `rmcp` answers a body that it cannot read with another media type or method as the cause, so that it
//! gets only what was checked here. Its errors in plain text become errors of JSON-RPC ([`in_json`]).

use std::collections::BTreeMap;

use app::{
    Error,
    core::{
        json::{self, Problem, all_problems},
        spelling::{is_meant_as, shortened},
    },
};
use axum::{
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{ApiError, members::present, reply};
use http_body_util::BodyExt;
use rmcp::model::{
    CallToolRequestParams, ErrorCode, GetPromptRequestParams, InitializeRequestParams,
    PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, RequestId,
    SubscriptionsListenRequestParams,
};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _, IgnoredAny},
};
use serde_json::{Value, json, value::RawValue};

use super::accepted::is_json;

/// Maximum messages of a batch.
pub const MAX_BATCH_MESSAGES: usize = 20;
/// Members of the parameters of methods with arguments. Those of extensions are ignored.
const CALL_MEMBERS: [&str; 6] = [
    "_meta",
    "arguments",
    "inputResponses",
    "name",
    "requestState",
    "task",
];
/// Start of the text of `rmcp` about an unknown version of the protocol, before the version.
const UNSUPPORTED_VERSION: &str = "Bad Request: Unsupported MCP-Protocol-Version";
/// Parts of a body that a header repeats, as `rmcp` names them in errors.
const DIFFERING_PARTS: [&str; 4] = [
    "body method",
    "body value",
    "initialize params.protocolVersion",
    "request _meta protocolVersion",
];
/// Path of a whole message in errors.
const MESSAGE_NAME: &str = "message";
/// Path to the parameters in errors.
const PARAMS_PATH: &str = "params";

/// Error for a request, or a part of its body, that is not executed.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    /// The id of the request, if it could be read.
    id: Option<RequestId>,
    code: ErrorCode,
    message: String,
}

impl Refusal {
    /// Refuses what is not a request.
    pub(super) fn invalid(id: Option<RequestId>, problem: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, id, problem)
    }

    /// Refuses a request with a status.
    pub(super) fn new(
        status: StatusCode,
        id: Option<RequestId>,
        problem: impl Into<String>,
    ) -> Self {
        let code = match status.is_server_error() {
            true => ErrorCode::INTERNAL_ERROR,
            false => ErrorCode::INVALID_REQUEST,
        };
        Self {
            status,
            id,
            code,
            message: problem.into(),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let Self {
            status,
            id,
            code,
            message,
        } = self;
        let error = json!({ "code": code, "message": message });
        let answer = json!({ "jsonrpc": "2.0", "id": id, "error": error });
        reply::json(status, &answer)
    }
}

/// Refuses to open a stream, with the status of the error and the time to wait.
pub(super) fn refuse_stream(cause: Error, id: Option<RequestId>) -> Response {
    let message = cause.to_string();
    let (head, _) = ApiError::App(cause).into_response().into_parts();
    let mut response = Refusal::new(head.status, id, message).into_response();
    let after = head.headers.get(header::RETRY_AFTER);
    let after = after.map(|after| (header::RETRY_AFTER, after.clone()));
    response.headers_mut().extend(after);
    response
}

/// A body of JSON.
pub(super) enum Body<'a> {
    /// A value, which may be a message.
    One(&'a RawValue),
    /// The values of a list.
    Batch(Vec<&'a RawValue>),
}

impl<'a> Body<'a> {
    /// Reads a body.
    ///
    /// # Errors
    /// If it is not JSON.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, Refusal> {
        if bytes.trim_ascii_start().starts_with(b"[") {
            let values = serde_json::from_slice(bytes).map_err(unreadable)?;
            return Ok(Self::Batch(values));
        }
        let value = serde_json::from_slice(bytes).map_err(unreadable)?;
        Ok(Self::One(value))
    }
}

fn unreadable(cause: serde_json::Error) -> Refusal {
    Refusal {
        code: ErrorCode::PARSE_ERROR,
        ..Refusal::invalid(None, format!("the body {}", Problem::of_syntax(&cause)))
    }
}

/// Deserializes the id of a request.
pub(super) fn request_id<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<RequestId, D::Error> {
    let id = <&RawValue>::deserialize(deserializer)?;
    parse_request_id(id).ok_or_else(|| D::Error::custom("not an id of a request"))
}

/// Returns the id that a value is, unless it is written otherwise in the response: `rmcp` takes `1.0`
/// and `1e0` for `1`.
fn parse_request_id(value: &RawValue) -> Option<RequestId> {
    match serde_json::from_str::<RequestId>(value.get()).ok()? {
        RequestId::Number(number) if number.to_string() != value.get() => None,
        id => Some(id),
    }
}

/// Returns the id of a message, if it can be read.
pub(super) fn id_of(message: &[u8]) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct Identified {
        #[serde(deserialize_with = "request_id")]
        id: RequestId,
    }
    // serde would read the id from a list, too.
    let is_object = message.trim_ascii_start().starts_with(b"{");
    let identified = serde_json::from_slice::<Identified>(message).ok();
    identified.filter(|_| is_object).map(|message| message.id)
}

/// Parameters of a method with arguments.
#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// Returns the arguments of a call of a tool as they are written, if they are an object.
pub(super) fn arguments_of_call(message: &Bytes) -> Option<Bytes> {
    #[derive(Deserialize)]
    struct Call<'a> {
        method: String,
        #[serde(borrow)]
        params: Arguments<'a>,
    }
    let call: Call<'_> = serde_json::from_slice(message).ok()?;
    let arguments = call.params.arguments?.get();
    let is_kept = call.method == "tools/call" && arguments.starts_with('{');
    is_kept.then(|| message.slice_ref(arguments.as_bytes()))
}

/// Returns the response of `rmcp` to a message. An error in plain text becomes one of JSON-RPC.
pub(super) async fn in_json(response: Response, message: &[u8]) -> Response {
    let status = response.status();
    if status.is_success() {
        return response;
    }
    let (head, body) = response.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes());
    let body = body.unwrap_or_default();
    if is_json(&head.headers) {
        return match without_values(&body) {
            Some(error) => reply::json(status, &error),
            None => Response::from_parts(head, body.into()),
        };
    }
    let text = String::from_utf8_lossy(&body);
    let (status, problem) = match status {
        // The value of the header is not repeated.
        StatusCode::BAD_REQUEST if text.starts_with(UNSUPPORTED_VERSION) => (
            status,
            format!("{UNSUPPORTED_VERSION}: {}", versions_note()),
        ),
        // The version of the protocol is the only header that was not checked before.
        StatusCode::BAD_REQUEST => (status, format!("{text}: {}", versions_note())),
        // The message is of no known form: its media type was checked before.
        StatusCode::UNSUPPORTED_MEDIA_TYPE => (StatusCode::BAD_REQUEST, text.into_owned()),
        _ => (status, text.into_owned()),
    };
    Refusal::new(status, id_of(message), problem).into_response()
}

/// Returns an error about a header that differs from the body, without their values, which could be secrets;
/// `None` for another one.
fn without_values(error: &[u8]) -> Option<Value> {
    let mut answer: Value = serde_json::from_slice(error).ok()?;
    let message = answer.pointer_mut("/error/message")?;
    let text = message.as_str()?;
    let (header, _) = text.split_once(" header ")?;
    let mut endings = DIFFERING_PARTS
        .iter()
        .map(|part| ["does not match ", *part].concat());
    let ending = endings.find(|ending| text.contains(&**ending))?;
    *message = format!("{header} header {ending}").into();
    Some(answer)
}

fn versions_note() -> String {
    let versions = ProtocolVersion::KNOWN_VERSIONS.iter();
    let names: Vec<_> = versions.map(ProtocolVersion::as_str).collect();
    format!("send one of {}, or no such header", names.join(", "))
}

/// Members of a message.
#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Checks that JSON is a message, and that its parameters are those of its method. `has_connections` is
/// true for versions of the protocol in which a client connects.
///
/// # Errors
/// If it is not a message.
pub(super) fn check(message: &str, has_connections: bool) -> Result<(), Refusal> {
    let invalid = |id, problem: &str| Err(Refusal::invalid(id, problem));
    if !message.starts_with('{') {
        return invalid(None, "a message must be an object");
    }
    let members = serde_json::from_str::<Members<'_>>(message);
    let members = members.map_err(|_| {
        let problem = repeated_member(message).line(MESSAGE_NAME);
        Refusal::invalid(id_of(message.as_bytes()), problem)
    })?;
    let id = members.id.and_then(parse_request_id);
    if members.id.is_some() && id.is_none() {
        return invalid(
            None,
            "id must be a string or an integer of up to 64 bits, such as 1 and not 1.0",
        );
    }
    if members.jsonrpc.map(RawValue::get) != Some(r#""2.0""#) {
        return invalid(id, r#"jsonrpc must be "2.0""#);
    }
    let Some(method) = members.method else {
        let is_response = members.result.or(members.error).is_some();
        return match is_response {
            true => invalid(
                id,
                "the server sends no requests, so that it takes no responses: send a request with a method",
            ),
            false => invalid(id, "method: is required"),
        };
    };
    if members.result.is_some() || members.error.is_some() {
        return invalid(id, "a request has neither result nor error, not even null");
    }
    let Ok(method) = serde_json::from_str::<String>(method.get()) else {
        return invalid(id, "method must be a string");
    };
    let params = members.params.map_or("{}", RawValue::get);
    if method == "initialize" && !has_connections {
        // The answer is that the method does not exist.
        return Ok(());
    }
    // A client that sent valid JSON-RPC gets status 200, so that it reads the error.
    let status = match id {
        Some(_) => StatusCode::OK,
        None => StatusCode::BAD_REQUEST,
    };
    let checked = check_params(&method, params, id.is_some());
    checked.map_err(|message| Refusal {
        code: ErrorCode::INVALID_PARAMS,
        ..Refusal::new(status, id, message)
    })
}

/// Returns the problem of an object that has a member twice.
fn repeated_member(object: &str) -> Problem {
    let parsed = json::parse(object.as_bytes());
    parsed
        .err()
        .unwrap_or_else(|| Problem::custom("has a member twice"))
}

/// Checks the parameters of a method. Those of notifications are not read.
fn check_params(method: &str, params: &str, is_request: bool) -> Result<(), String> {
    if !params.starts_with('{') {
        return Err("params must be an object".to_owned());
    }
    if !is_request {
        return Ok(());
    }
    match method {
        "initialize" => read::<InitializeRequestParams>(params),
        "tools/call" => {
            check_member_names(params)?;
            check_arguments(params)?;
            read::<CallToolRequestParams>(params)
        }
        "prompts/get" => {
            check_member_names(params)?;
            check_arguments(params)?;
            read::<GetPromptRequestParams>(params)
        }
        "resources/read" => read::<ReadResourceRequestParams>(params),
        "subscriptions/listen" => read::<SubscriptionsListenRequestParams>(params),
        "tools/list" | "prompts/list" | "resources/list" => read::<PaginatedRequestParams>(params),
        _ => Ok(()),
    }
}

/// Refuses misspelled members, because a call without them could have another effect.
fn check_member_names(params: &str) -> Result<(), String> {
    let members: BTreeMap<String, IgnoredAny> =
        serde_json::from_str(params).map_err(|cause| cause.to_string())?;
    for name in members.keys().map(String::as_str) {
        if CALL_MEMBERS.contains(&name) {
            continue;
        }
        let mut known = CALL_MEMBERS.into_iter();
        if let Some(nearest) = known.find(|known| is_meant_as(name, known)) {
            let name = shortened(name);
            return Err(format!(
                "{PARAMS_PATH}.{name}: is unknown; the nearest known name is `{nearest}`"
            ));
        }
    }
    Ok(())
}

/// Checks the parameter that models write, and often as a string.
fn check_arguments(params: &str) -> Result<(), String> {
    let read: Arguments<'_> = serde_json::from_str(params).map_err(|_| {
        repeated_member(params)
            .inside(PARAMS_PATH)
            .line(PARAMS_PATH)
    })?;
    match read.arguments.map(RawValue::get) {
        Some(arguments) if !arguments.starts_with('{') => {
            let kind = match arguments.as_bytes().first() {
                Some(b'"') => "a string",
                Some(b'[') => "a list",
                Some(b't' | b'f') => "a boolean",
                _ => "a number",
            };
            Err(format!("arguments must be an object, not {kind}"))
        }
        _ => Ok(()),
    }
}

fn read<T: DeserializeOwned>(params: &str) -> Result<(), String> {
    if serde_json::from_str::<T>(params).is_ok() {
        return Ok(());
    }
    // Read again for errors that name the paths and repeat no value.
    let value = json::parse(params.as_bytes())
        .map_err(|problem| problem.inside(PARAMS_PATH).line(PARAMS_PATH))?;
    let problems = all_problems(value, "", |reader| T::deserialize(reader).err());
    let lines = problems.iter().map(|line| match line.starts_with(':') {
        true => format!("{PARAMS_PATH}{line}"),
        false => format!("{PARAMS_PATH}.{line}"),
    });
    let lines: Vec<_> = lines.collect();
    Err(match lines.is_empty() {
        true => format!("{PARAMS_PATH}: has another form than the method expects"),
        false => lines.join("; "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(body: &str) -> Option<(Value, ErrorCode, String)> {
        let checked = match Body::read(body.as_bytes()) {
            Ok(Body::One(value)) => check(value.get(), true),
            Ok(Body::Batch(_)) => panic!("a batch: {body}"),
            Err(refused) => Err(refused),
        };
        let Refusal {
            id, code, message, ..
        } = checked.err()?;
        Some((json!(id), code, message))
    }

    #[test]
    fn faulty_members_are_refused_with_the_reason() {
        let refused = |id: &str, more: &str, reason: &str| {
            let body = format!(r#"{{"jsonrpc":"2.0","id":{id},{more}}}"#);
            let (id, code, message) = refusal(&body).unwrap();
            assert!(message.contains(reason), "{body}: {message}");
            (id, code)
        };
        for (id, reason) in [
            ("null", "id"),
            ("1e2", "id must be"),
            (r#"1,"id":2"#, "id: is given twice"),
        ] {
            let fault = refused(id, r#""method":"ping""#, reason);
            assert_eq!(fault, (Value::Null, ErrorCode::INVALID_REQUEST), "{id}");
        }
        for (members, reason) in [
            (r#""x":1"#, "method"),
            (r#""method":1"#, "method"),
            (r#""method":"ping","error":null"#, "error"),
            (r#""method":"a","method":"b""#, "method: is given twice"),
        ] {
            let fault = refused("7", members, reason);
            assert_eq!(fault, (json!(7), ErrorCode::INVALID_REQUEST), "{members}");
        }
        let members = r#""method":"initialize","params":{"protocolVersion":5,"capabilities":[],"clientInfo":"x"}"#;
        for name in ["protocolVersion", "capabilities", "clientInfo"] {
            refused("7", members, &format!("params.{name}: expected"));
        }
        for (method, params, reason) in [
            ("list", r#"{"cursor":1}"#, "string"),
            (
                "call",
                r#"{"name":"A","arguments":{},"arguments":{}}"#,
                "params.arguments: is given twice",
            ),
            (
                "call",
                r#"{"name":"A","argumnts":{}}"#,
                "params.argumnts: is unknown; the nearest known name is `arguments`",
            ),
        ] {
            let members = format!(r#""method":"tools/{method}","params":{params}"#);
            let fault = refused("7", &members, reason);
            assert_eq!(fault, (json!(7), ErrorCode::INVALID_PARAMS), "{params}");
        }
    }

    #[test]
    fn differing_headers_are_named_without_values() {
        for (text, expected) in [
            (
                "Mcp-Name header `SECRET header ` does not match body value `SECRET`",
                "Mcp-Name header does not match body value",
            ),
            (
                "MCP-Protocol-Version header (SECRET) does not match request _meta protocolVersion (1)",
                "MCP-Protocol-Version header does not match request _meta protocolVersion",
            ),
        ] {
            let error = json!({ "error": { "code": -32020, "message": text } });
            let answer = without_values(error.to_string().as_bytes()).unwrap();
            assert_eq!(answer["error"]["message"], expected);
        }
        let other = br#"{"error":{"message":"duplicate mcp-name header"}}"#;
        assert_eq!(without_values(other), None);
    }

    #[test]
    fn valid_messages_pass() {
        for body in [
            r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"other/method","params":{"a":1}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"A","_meta":{"progressToken":1}}}"#,
        ] {
            assert!(refusal(body).is_none(), "{body}");
        }
    }

    #[test]
    fn arguments_of_calls_are_kept_as_written() {
        let kept = |method: &str, arguments: &str| {
            let params = format!(r#"{{"_meta":{{}},"arguments":{arguments}}}"#);
            let message = format!(r#"{{"method":"{method}","params":{params}}}"#);
            arguments_of_call(&message.into())
        };
        let written = r#"{ "a": 1E400 }"#;
        assert_eq!(kept("tools/call", written).unwrap(), written);
        assert_eq!(kept("prompts/get", written), None);
        assert_eq!(kept("tools/call", "1"), None);
    }
}
