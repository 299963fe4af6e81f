//! Requests that are answered without the service of `rmcp`.
//!
//! That service runs each request in several tasks that are connected by channels. A list of tools and a
//! call without reports of its progress have one message as their response, and are answered here
//! without tasks, which saves about a third of the processor time of a short call. Every other request
//! goes to `rmcp`, and so does one that is not plainly valid: it is checked first
//! ([`messages`](super::messages)), and `rmcp` negotiates the version of one that has metadata.

use std::{fmt, marker::PhantomData};

use axum::{
    http::{HeaderMap, StatusCode},
    response::Response,
};
use bytes::Bytes;
use http::{ApiResult, errors, reply::json_bytes};
use rmcp::{
    ErrorData,
    model::{JsonRpcError, JsonRpcResponse, JsonRpcVersion2_0, ProtocolVersion, RequestId},
};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::value::RawValue;

use super::{
    FIRST_VERSION_WITHOUT_CONNECTIONS, PROTOCOL_VERSION,
    approving::CallApproval,
    connecting::{Consent, UrlRequest},
    endpoint::{Endpoint, cancelled},
    messages::request_id,
    results::Answer,
};

/// Initial size of the buffer into which a response is written, in bytes.
const MESSAGE_CAPACITY: usize = 1 << 10;

/// A request answered here.
pub(super) struct DirectRequest {
    id: RequestId,
    method: Method,
}

enum Method {
    ListTools { cursor: Option<String> },
    CallTool { name: String, arguments: Bytes },
}

// Members that are not known here have a meaning for `rmcp`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Message<'a> {
    jsonrpc: &'a str,
    #[serde(deserialize_with = "request_id")]
    id: RequestId,
    method: &'a str,
    #[serde(borrow)]
    params: Option<Object<Params<'a>>>,
}

/// Parameters of both methods.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Params<'a> {
    cursor: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// A struct read from an object in JSON. serde would deserialize it from an array of its fields,
/// too.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfMembers<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for OfMembers<T> {
            type Value = T;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(members))
            }
        }

        deserializer
            .deserialize_map(OfMembers(PhantomData))
            .map(Self)
    }
}

impl DirectRequest {
    /// Reads a request with a body of JSON, of a client that accepts JSON. Returns `None` if `rmcp`
    /// has to answer it.
    pub(super) fn read(headers: &HeaderMap, body: &Bytes) -> Option<Self> {
        if !has_connections(headers) {
            return None;
        }
        let Object(message) = serde_json::from_slice::<Object<Message<'_>>>(body).ok()?;
        let params = message.params.map(|Object(params)| params);
        let method = match (message.jsonrpc, message.method, params.unwrap_or_default()) {
            (
                "2.0",
                "tools/list",
                Params {
                    cursor,
                    name: None,
                    arguments: None,
                },
            ) => Method::ListTools { cursor },
            (
                "2.0",
                "tools/call",
                Params {
                    cursor: None,
                    name: Some(name),
                    arguments,
                },
            ) => {
                let arguments = match arguments.map(RawValue::get) {
                    None => Bytes::from_static(b"{}"),
                    Some(arguments) if arguments.starts_with('{') => {
                        body.slice_ref(arguments.as_bytes())
                    }
                    Some(_) => return None,
                };
                Method::CallTool { name, arguments }
            }
            _ => return None,
        };
        let id = message.id;
        Some(Self { id, method })
    }
}

/// Returns true if a request names no version of the protocol, or one that has connections.
pub(super) fn has_connections(headers: &HeaderMap) -> bool {
    let mut versions = ProtocolVersion::KNOWN_VERSIONS
        .iter()
        .map(ProtocolVersion::as_str)
        .filter(|version| *version < FIRST_VERSION_WITHOUT_CONNECTIONS);
    let version = headers.get(&PROTOCOL_VERSION);
    version.is_none_or(|given| versions.any(|version| *given == *version))
}

impl Endpoint {
    /// Answers a request whose host and key are checked. Dropping the future cancels a call.
    pub(super) async fn answer_directly(&self, request: DirectRequest) -> ApiResult<Response> {
        let DirectRequest { id, method } = request;
        let message = match method {
            Method::ListTools { cursor } => message(id, self.page(cursor.as_deref())),
            Method::CallTool { name, arguments } => {
                let called = self.call_directly(&id, &name, arguments).await;
                message(id, called)
            }
        };
        let message = message.map_err(errors::internal)?;
        Ok(json_bytes(StatusCode::OK, message))
    }

    async fn call_directly(
        &self,
        id: &RequestId,
        name: &str,
        arguments: Bytes,
    ) -> Result<Answer, ErrorData> {
        let running = self.begin(id);
        let (consent, approval) = (Consent::NotAsked, CallApproval::default());
        let call = self.call_until_cancelled(running, name, arguments, consent, approval);
        let called = call.await.ok_or_else(cancelled)?;
        let way = UrlRequest::before_results(self.opens_urls());
        let outcome = self.respond(name, called, consent, way).await?;
        Ok(outcome.into())
    }
}

/// Serializes the response to a request.
fn message(
    id: RequestId,
    result: Result<impl Serialize, ErrorData>,
) -> serde_json::Result<Vec<u8>> {
    let mut text = Vec::with_capacity(MESSAGE_CAPACITY);
    match result {
        Ok(result) => {
            let response = JsonRpcResponse {
                jsonrpc: JsonRpcVersion2_0,
                id,
                result,
            };
            serde_json::to_writer(&mut text, &response)?;
        }
        Err(error) => {
            serde_json::to_writer(&mut text, &JsonRpcError::new(Some(id), error))?;
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn read(headers: &[(&'static str, &'static str)], body: &str) -> Option<DirectRequest> {
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            all.insert(*name, HeaderValue::from_static(value));
        }
        DirectRequest::read(&all, &Bytes::copy_from_slice(body.as_bytes()))
    }

    #[test]
    fn arguments_of_calls_pass_as_they_came() {
        let arguments = r#"{ "a": 1.00, "a": 2 }"#;
        let params = format!(r#"{{"name":"ECHO","arguments":{arguments}}}"#);
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        let version = [("mcp-protocol-version", "2025-11-25")];
        let request = read(&version, &body).unwrap();
        assert_eq!(request.id, RequestId::Number(1));
        match request.method {
            Method::CallTool {
                name,
                arguments: read,
            } => {
                assert_eq!((&*name, &*read), ("ECHO", arguments.as_bytes()));
            }
            Method::ListTools { .. } => panic!("it is a call"),
        }
    }

    #[test]
    fn other_requests_are_left_to_rmcp() {
        let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        assert!(read(&[], list).is_some());
        for (name, value) in [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-protocol-version", "2020-01-01"),
        ] {
            assert!(read(&[(name, value)], list).is_none(), "{name}: {value}");
        }
        for body in [
            r#"{"jsonrpc":"1.0","id":1,"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","id":1.0,"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            r#"["2.0",1,"tools/list",null]"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"A","arguments":1}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"A","_meta":{"progressToken":1}}}"#,
        ] {
            assert!(read(&[], body).is_none(), "{body}");
        }
    }
}
