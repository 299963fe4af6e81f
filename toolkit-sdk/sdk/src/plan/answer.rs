//! Responses of providers, returned as an object.

use manifest::plan::{Body, Call};
use serde::{Serialize, de::IgnoredAny};
use serde_json::{Map, Value, json, value::RawValue};

use crate::http::{self, Request, Response};
use crate::{File, Result, ToolError};

/// A list as an object.
#[derive(Serialize)]
struct List<'a> {
    items: &'a RawValue,
    /// Arguments that request the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Value>,
}

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
    if pick.is_empty() {
        return whole(response, call);
    }
    match serde_json::from_slice::<Value>(response.bytes()) {
        Ok(mut value) => {
            let picked = value.pointer_mut(pick).map(Value::take);
            object(picked.unwrap_or_default(), next(&response, call))
        }
        Err(_) => other(response),
    }
}

/// Returns the whole body as an object. An object or a list is passed on unchanged, so that a large
/// response is not taken apart.
fn whole(response: Response, call: &Call) -> Result<Vec<u8>> {
    let bytes = response.bytes();
    match bytes.trim_ascii_start().first() {
        Some(b'{') if is_json(bytes) => return Ok(response.into_bytes()),
        Some(b'[') => {
            if let Ok(items) = serde_json::from_slice(bytes) {
                let next = next(&response, call);
                return written(&List { items, next });
            }
        }
        _ => {}
    }
    match serde_json::from_slice(bytes) {
        Ok(value) => object(value, next(&response, call)),
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
    call.pages.as_ref()?;
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

pub(super) fn written(value: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(ToolError::from)
}
