//! Schemas of tools. Each has its own shared parts, so the names of these parts are prefixed with
//! the tool's name.

use serde_json::{Map, Value};

use crate::Api;

/// Imports a schema. Its shared parts are added to the API's shared schemas.
pub(super) fn import(schema: &Value, prefix: &str, api: &mut Api) -> Value {
    for keyword in ["$defs", "definitions"] {
        for (name, part) in schema
            .get(keyword)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            api.schemas.insert(
                format!("{prefix}.{name}"),
                with_moved_references(part, prefix),
            );
        }
    }
    // A part refers to the whole schema.
    if refers_to_whole(schema) {
        api.schemas
            .insert(prefix.to_owned(), with_moved_references(schema, prefix));
    }
    match with_moved_references(schema, prefix) {
        Value::Object(members) => Value::Object(members),
        _ => Value::Object(Map::new()),
    }
}

fn refers_to_whole(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            members.get("$ref").and_then(Value::as_str) == Some("#")
                || members.values().any(refers_to_whole)
        }
        Value::Array(items) => items.iter().any(refers_to_whole),
        _ => false,
    }
}

/// Returns the schema with its references changed to the new places of the shared parts. Its depth
/// is limited by that of a JSON document.
fn with_moved_references(schema: &Value, prefix: &str) -> Value {
    match schema {
        Value::Object(members) => {
            let kept = members
                .iter()
                .filter(|(name, _)| !matches!(name.as_str(), "$defs" | "definitions" | "$schema"));
            kept.map(|(name, value)| (name.clone(), member(name, value, prefix)))
                .collect::<Map<_, _>>()
                .into()
        }
        Value::Array(items) => items
            .iter()
            .map(|item| with_moved_references(item, prefix))
            .collect(),
        other => other.clone(),
    }
}

fn member(name: &str, value: &Value, prefix: &str) -> Value {
    let Some(reference) = value.as_str().filter(|_| name == "$ref") else {
        return with_moved_references(value, prefix);
    };
    let part = ["#/$defs/", "#/definitions/"]
        .iter()
        .find_map(|begin| reference.strip_prefix(begin));
    match part {
        Some(part) => format!("#/$defs/{prefix}.{part}").into(),
        None if reference == "#" => format!("#/$defs/{prefix}").into(),
        // References into properties are not followed; such a part is unconstrained.
        None => reference.into(),
    }
}
