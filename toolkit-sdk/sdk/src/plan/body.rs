//! Bodies of requests.

use std::collections::BTreeMap;

use manifest::plan::{Body, FieldEncoding, FormField};
use serde_json::{Value, json};

use super::{Arguments, style};
use crate::http::{Multipart, Request};
use crate::{File, Result, ToolError, mismatch};

/// Largest number of bytes copied in one step.
const CHUNK_BYTES: u32 = 1 << 20;

/// Adds the body built from the arguments.
pub(super) fn write(request: Request, body: &Body, arguments: &mut Arguments) -> Result<Request> {
    match body {
        Body::Json {
            argument: Some(argument),
            media_type,
            ..
        } => Ok(match arguments.remove(argument) {
            Some(value) => json_body(request, &value, media_type.as_deref()),
            None => request,
        }),
        Body::Json {
            argument: None,
            media_type,
            required,
            defaults,
            renamed,
        } => {
            let members = members(arguments, defaults, renamed);
            Ok(match *required || !members.is_empty() {
                true => json_body(request, &Value::Object(members), media_type.as_deref()),
                false => request,
            })
        }
        Body::Form { fields } => {
            let mut pairs = Vec::new();
            for (field, value) in given_fields(fields, arguments) {
                push(&mut pairs, field, &value);
            }
            Ok(if pairs.is_empty() {
                request
            } else {
                request.form(pairs)
            })
        }
        Body::Multipart { fields } => multipart(request, fields, arguments),
        Body::File {
            argument,
            media_type,
        } => match arguments.remove(argument) {
            Some(value) => {
                let mut file = file(argument, value)?;
                if let Some(media_type) = media_type {
                    file.media_type.clone_from(media_type);
                }
                Ok(request.body_file(&file))
            }
            None => Ok(request),
        },
        Body::Related {
            file: argument,
            defaults,
            renamed,
        } => {
            let content = arguments.remove(argument).unwrap_or_default();
            let members = members(arguments, defaults, renamed);
            related(request, &members, &file(argument, content)?)
        }
        Body::Text {
            argument,
            media_type,
        } => Ok(match arguments.remove(argument) {
            Some(text) => request.body(style::plain(&text).into_bytes(), media_type),
            None => request,
        }),
        Body::Graphql { document, renamed } => {
            let variables = members(arguments, &BTreeMap::new(), renamed);
            Ok(request.json(&json!({ "query": document, "variables": variables })))
        }
        // Sent as one of several messages.
        Body::Mcp { .. } => Ok(request),
    }
}

fn json_body(request: Request, value: &Value, media_type: Option<&str>) -> Request {
    match media_type {
        Some(media_type) => request.body(value.to_string().into_bytes(), media_type),
        None => request.json(value),
    }
}

/// Takes the remaining arguments under the names that the provider uses.
pub(super) fn members(
    arguments: &mut Arguments,
    defaults: &BTreeMap<String, Value>,
    renamed: &BTreeMap<String, String>,
) -> Arguments {
    let mut members = Arguments::new();
    for (argument, value) in std::mem::take(arguments) {
        let name = renamed.get(&argument).cloned().unwrap_or(argument);
        members.insert(name, value);
    }
    for (name, value) in defaults {
        members.entry(name).or_insert_with(|| value.clone());
    }
    members
}

/// Takes the fields of a form that have a value.
fn given_fields<'a>(
    fields: &'a [FormField],
    arguments: &mut Arguments,
) -> Vec<(&'a FormField, Value)> {
    fields
        .iter()
        .filter_map(|field| {
            let given = arguments
                .remove(field.argument.as_ref().unwrap_or(&field.name))
                .filter(|value| !value.is_null());
            Some((field, given.or_else(|| field.default.clone())?))
        })
        .collect()
}

fn push(pairs: &mut Vec<(String, String)>, field: &FormField, value: &Value) {
    let name = &field.name;
    match (field.carries, value) {
        (FieldEncoding::Json, value) => pairs.push((name.clone(), value.to_string())),
        (FieldEncoding::Brackets, value) => style::brackets(pairs, name, value),
        (FieldEncoding::Joined, value) => {
            pairs.push((name.clone(), style::joined(value, ",", false)))
        }
        (_, Value::Array(items)) => {
            pairs.extend(items.iter().map(|item| (name.clone(), style::plain(item))))
        }
        (_, value) => pairs.push((name.clone(), style::plain(value))),
    }
}

fn multipart(request: Request, fields: &[FormField], arguments: &mut Arguments) -> Result<Request> {
    let mut form = Multipart::new();
    for (field, value) in given_fields(fields, arguments) {
        if field.carries == FieldEncoding::File {
            let files = match value {
                Value::Array(files) => files,
                one => vec![one],
            };
            for value in files {
                form = form.file(&field.name, &file(&field.name, value)?);
            }
            continue;
        }
        let mut pairs = Vec::new();
        push(&mut pairs, field, &value);
        for (name, text) in pairs {
            form = form.text(&name, text);
        }
    }
    Ok(request.multipart(form))
}

/// Sends a file together with its description as Google's APIs expect it (RFC 2387). The platform
/// stores the assembled body, so that a large file never enters the guest as a whole.
fn related(request: Request, members: &Arguments, content: &File) -> Result<Request> {
    let mut boundary = String::from("part-");
    crate::random::bytes(16)
        .iter()
        .for_each(|byte| boundary.push_str(&format!("{byte:02x}")));
    let body = File::create(
        &content.name,
        format!("multipart/related; boundary={boundary}"),
    )?;
    let json = serde_json::to_string(members)?;
    let kind: String = content
        .media_type
        .chars()
        .filter(|letter| !letter.is_control())
        .collect();
    let head =
        format!("--{boundary}\r\ncontent-type: application/json; charset=utf-8\r\n\r\n{json}\r\n");
    body.append(format!("{head}--{boundary}\r\ncontent-type: {kind}\r\n\r\n").as_bytes())?;
    let mut offset = 0;
    loop {
        let chunk = content.read_at(offset, CHUNK_BYTES)?;
        if chunk.is_empty() {
            break;
        }
        body.append(&chunk)?;
        offset += chunk.len() as u64;
    }
    body.append(format!("\r\n--{boundary}--\r\n").as_bytes())?;
    Ok(request.body_file(&body))
}

fn file(name: &str, value: Value) -> Result<File> {
    serde_json::from_value(value).map_err(|cause| {
        let reason = mismatch::reason(&cause);
        ToolError::invalid_input(format!("`{name}` is not a file: {reason}"))
    })
}
