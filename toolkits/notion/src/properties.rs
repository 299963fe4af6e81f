//! Properties of pages as plain values: `"Done"` for an agent is `{"status": {"name": "Done"}}` for
//! Notion.

use serde_json::{Map, Value};
use toolkit_sdk::prelude::*;

use crate::text::{plain, rich};

/// Converts all properties of a page to plain values, by name.
pub(crate) fn to_output(properties: &Value) -> Map<String, Value> {
    let properties = properties.as_object().into_iter().flatten();
    properties
        .map(|(name, property)| (name.clone(), value(property)))
        .collect()
}

/// Returns the title of a page, which is the property of type `title`.
pub(crate) fn title(properties: &Value) -> String {
    let mut properties = properties.as_object().into_iter().flatten();
    properties
        .find(|(_, property)| property["type"] == "title")
        .map(|(_, property)| plain(&property["title"]))
        .unwrap_or_default()
}

/// Converts a typed value to a plain value.
fn value(property: &Value) -> Value {
    let kind = property["type"].as_str().unwrap_or_default();
    let own = &property[kind];
    match kind {
        "title" | "rich_text" => plain(own).into(),
        "select" | "status" => own["name"].clone(),
        "multi_select" => pluck(own, "name"),
        "relation" => pluck(own, "id"),
        "people" => own.as_array().into_iter().flatten().map(person).collect(),
        "created_by" | "last_edited_by" => person(own),
        "files" => own.as_array().into_iter().flatten().map(file).collect(),
        "date" if own["end"].is_null() => own["start"].clone(),
        "date" => json!({ "start": own["start"], "end": own["end"] }),
        "formula" | "rollup" => value(own),
        "array" => own.as_array().into_iter().flatten().map(value).collect(),
        "unique_id" => match own["prefix"].as_str() {
            Some(prefix) => format!("{prefix}-{}", own["number"]).into(),
            None => own["number"].clone(),
        },
        _ => own.clone(),
    }
}

/// Returns a field of each item of a list.
fn pluck(list: &Value, key: &str) -> Value {
    list.as_array()
        .into_iter()
        .flatten()
        .map(|item| item[key].clone())
        .collect()
}

fn person(person: &Value) -> Value {
    match person["name"].as_str() {
        Some(name) => json!({ "id": person["id"], "name": name }),
        None => json!({ "id": person["id"] }),
    }
}

fn file(file: &Value) -> Value {
    let url = file
        .pointer("/file/url")
        .or_else(|| file.pointer("/external/url"));
    json!({ "name": file["name"], "url": url })
}

/// Converts plain values to Notion's format. `known` are the typed properties of a page or a data
/// source.
///
/// # Errors
/// `invalid_input` for a property that does not exist, that Notion computes, or whose value has the
/// wrong type.
pub(crate) fn written(values: &Map<String, Value>, known: &Value) -> Result<Map<String, Value>> {
    let written = values.iter().map(|(name, value)| {
        let Some(kind) = known[name]["type"].as_str() else {
            let names: Vec<&String> = known
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, _)| name)
                .collect();
            return Err(ToolError::invalid_input(format!(
                "the property `{name}` does not exist; the properties are {names:?}"
            )));
        };
        Ok((name.clone(), property(name, kind, value)?))
    });
    written.collect()
}

fn property(name: &str, kind: &str, value: &Value) -> Result<Value> {
    let expected = match (kind, value) {
        ("title" | "rich_text", Value::String(text)) => return Ok(json!({ kind: rich(text) })),
        ("title" | "rich_text", Value::Null) => return Ok(json!({ kind: [] })),
        ("title" | "rich_text", _) => "a text",
        ("number", Value::Number(_) | Value::Null) => return Ok(json!({ kind: value })),
        ("number", _) => "a number",
        ("checkbox", Value::Bool(_)) => return Ok(json!({ kind: value })),
        ("checkbox", _) => "true or false",
        ("url" | "email" | "phone_number", Value::String(_) | Value::Null) => {
            return Ok(json!({ kind: value }));
        }
        ("url" | "email" | "phone_number", _) => "a text",
        ("select" | "status", Value::String(option)) => {
            return Ok(json!({ kind: { "name": option } }));
        }
        ("select" | "status" | "date", Value::Null) => return Ok(json!({ kind: null })),
        ("select" | "status", _) => "the name of an option",
        ("date", Value::String(start)) => return Ok(json!({ kind: { "start": start } })),
        ("date", Value::Object(date)) => return Ok(json!({ kind: date })),
        ("date", _) => r#"a day `2026-01-31`, a time, or {"start": …, "end": …}"#,
        ("multi_select", _) => {
            return Ok(json!({ kind: each(name, value, |option| json!({ "name": option }))? }));
        }
        ("relation", _) => {
            return Ok(
                json!({ kind: each(name, value, |id| json!({ "id": crate::api::id(id) }))? }),
            );
        }
        ("people", _) => {
            return Ok(
                json!({ kind: each(name, value, |id| json!({ "object": "user", "id": id }))? }),
            );
        }
        ("files", _) => {
            let files = each(
                name,
                value,
                |url| json!({ "name": url.rsplit('/').next(), "external": { "url": url } }),
            )?;
            return Ok(json!({ kind: files }));
        }
        _ => {
            return Err(ToolError::invalid_input(format!(
                "Notion itself fills `{name}`, of type {kind}; leave it out"
            )));
        }
    };
    Err(ToolError::invalid_input(format!(
        "`{name}` is of type {kind}: write {expected}, not {value}"
    )))
}

/// Converts a list of texts, or a single text.
fn each(name: &str, value: &Value, write: impl Fn(&str) -> Value) -> Result<Vec<Value>> {
    let wrong = || ToolError::invalid_input(format!("`{name}` takes a list of texts, not {value}"));
    match value {
        Value::Null => Ok(Vec::new()),
        Value::String(one) => Ok(vec![write(one)]),
        Value::Array(items) => items
            .iter()
            .map(|item| item.as_str().map(&write).ok_or_else(wrong))
            .collect(),
        _ => Err(wrong()),
    }
}
