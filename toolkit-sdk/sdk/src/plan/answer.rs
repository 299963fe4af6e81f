//! Responses of providers, returned as an object.

use manifest::plan::{Body, Call};
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use crate::http::{self, Request, Response};
use crate::{File, Result, ToolError};

/// Sends the request and returns the response body as an object.
pub(super) fn convert(request: Request, call: &Call) -> Result<Vec<u8>> {
    if call.answer.file {
        let file = request.into_file().send()?.file()?;
        return written(&json!({ "file": file }));
    }
    let response = request.send()?;
    let pick = call.answer.pick.as_str();
    if matches!(call.body, Some(Body::Graphql { .. })) {
        return object(http::graphql_part(&response, pick)?, None);
    }
    let bytes = response.bytes();
    if pick.is_empty() && bytes.trim_ascii_start().starts_with(b"{") && is_json(bytes) {
        // The body is passed on unchanged, so that a large response is not taken apart.
        return Ok(response.into_bytes());
    }
    match serde_json::from_slice::<Value>(bytes) {
        Ok(value) => {
            let picked = if pick.is_empty() {
                Some(value)
            } else {
                value.pointer(pick).cloned()
            };
            let next = call.pages.as_ref().and_then(|_| next(&response, call));
            object(picked.unwrap_or_default(), next)
        }
        Err(_) => other(response),
    }
}

/// Serializes an object as it is. A list becomes the property `items`, any other value `value`.
fn object(value: Value, next: Option<Value>) -> Result<Vec<u8>> {
    let mut told = match value {
        Value::Object(members) => return written(&Value::Object(members)),
        Value::Null => Map::new(),
        Value::Array(items) => Map::from_iter([("items".to_owned(), Value::Array(items))]),
        scalar => Map::from_iter([("value".to_owned(), scalar)]),
    };
    told.extend(next.map(|next| ("next".to_owned(), next)));
    written(&Value::Object(told))
}

/// Returns a body that is not JSON: an empty object, text, or a file.
fn other(response: Response) -> Result<Vec<u8>> {
    if response.bytes().is_empty() {
        return written(&json!({}));
    }
    let media_type = response
        .header("content-type")
        .unwrap_or("application/octet-stream")
        .to_owned();
    let name = response.file_name().unwrap_or_else(|| "answer".to_owned());
    match String::from_utf8(response.into_bytes()) {
        Ok(text) => written(&json!({ "text": text })),
        Err(bytes) => {
            let file = File::with(name, media_type, bytes.as_bytes())?;
            written(&json!({ "file": file }))
        }
    }
}

/// Returns the arguments that request the next page, for a list whose pages do not contain them:
/// the parameters of the next link.
fn next(response: &Response, call: &Call) -> Option<Value> {
    let link = response.next_link()?;
    let (_, query) = link.split_once('?')?;
    let mut arguments = Map::new();
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        let name = http::decoded(name);
        let value = http::decoded(value);
        let known = call
            .parameters
            .iter()
            .find(|parameter| parameter.name == name);
        if let Some(parameter) = known {
            let argument = parameter.argument.clone().unwrap_or(name);
            // A number stays a number, since the argument is checked against its schema.
            let value = value
                .parse::<u64>()
                .map_or(Value::String(value), Value::from);
            arguments.insert(argument, value);
        }
    }
    Some(Value::Object(arguments))
}

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}

pub(super) fn written(value: &Value) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(ToolError::from)
}
