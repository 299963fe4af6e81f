//! Converts the schemas of a document to JSON Schema. They follow the third draft of JSON Schema,
//! with numbers and defaults as texts.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::document::{Document, Parameter};

/// Largest number of bytes that the meanings of an enumeration's values may add to a description.
const MAX_MEANING_BYTES: usize = 600;

/// Returns the shared schemas.
pub(super) fn shared(document: &Document) -> BTreeMap<String, Value> {
    document
        .schemas
        .iter()
        .map(|(name, schema)| (name.clone(), convert(schema)))
        .collect()
}

/// Returns a reference to a shared schema.
pub(super) fn reference(name: &str) -> Value {
    serde_json::json!({ "$ref": format!("#/$defs/{name}") })
}

/// Returns the schema of a parameter.
pub(super) fn parameter(parameter: &Parameter) -> Value {
    let one = convert(&Value::Object(parameter.schema.clone()));
    if !parameter.repeated {
        return one;
    }
    let mut items = one;
    let description = items
        .as_object_mut()
        .and_then(|items| items.shift_remove("description"));
    let mut list = serde_json::json!({ "type": "array" });
    if let Some(description) = description {
        list["description"] = description;
    }
    list["items"] = items;
    list
}

/// Converts one schema and those inside it.
pub(super) fn convert(schema: &Value) -> Value {
    let Some(own) = schema.as_object() else {
        return Value::Object(Map::new());
    };
    let mut out = Map::new();
    let kind = own.get("type").and_then(Value::as_str).unwrap_or_default();
    let mut description = own
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    for (keyword, value) in own {
        let kept = match keyword.as_str() {
            "$ref" => value.as_str().map(|name| format!("#/$defs/{name}").into()),
            "type" => Some(value.clone()).filter(|_| kind != "any"),
            // Formats that other consumers do not know have no effect there.
            "format" => value.as_str().map(format).map(Value::from),
            "items" | "additionalProperties" if value.is_object() => Some(convert(value)),
            "properties" => value
                .as_object()
                .map(|all| all.iter().map(member).collect::<Map<_, _>>().into()),
            "minimum" | "maximum" => number(value),
            "default" => typed(value, kind),
            "pattern" | "readOnly" => Some(value.clone()),
            "enum" => {
                let (values, meanings) = choices(own);
                description.push_str(&meanings);
                Some(values)
            }
            _ => None,
        };
        out.extend(kept.map(|kept| (keyword.clone(), kept)));
    }
    if !description.is_empty() {
        if is_output(&description) {
            out.insert("readOnly".to_owned(), true.into());
        }
        out.insert("description".to_owned(), description.into());
    }
    Value::Object(out)
}

fn member((name, schema): (&String, &Value)) -> (String, Value) {
    let mut made = convert(schema);
    // This property names the kind of the resource and has a fixed value.
    let fixed = schema
        .get("default")
        .and_then(Value::as_str)
        .is_some_and(|default| default.contains('#'));
    if name == "kind" && fixed {
        made["readOnly"] = true.into();
    }
    (name.clone(), made)
}

/// Returns true if the description marks a property as output only. Documents state this in words.
fn is_output(description: &str) -> bool {
    let start: String = description
        .chars()
        .take(16)
        .filter(char::is_ascii_alphanumeric)
        .collect();
    start.to_ascii_lowercase().starts_with("outputonly")
}

fn format(format: &str) -> &str {
    match format {
        "google-datetime" => "date-time",
        other => other,
    }
}

fn number(value: &Value) -> Option<Value> {
    let text = value.as_str()?;
    let whole = text.parse::<i64>().map(Value::from).ok();
    whole.or_else(|| {
        text.parse::<f64>()
            .ok()
            .filter(|it| it.is_finite())
            .map(Value::from)
    })
}

/// Parses a default. Defaults are texts regardless of the type.
fn typed(value: &Value, kind: &str) -> Option<Value> {
    let Some(text) = value.as_str() else {
        return Some(value.clone());
    };
    match kind {
        "string" | "" | "any" => Some(text.into()),
        "boolean" => text.parse::<bool>().ok().map(Value::from),
        "integer" | "number" => number(value),
        _ => None,
    }
}

/// Returns the values that are not deprecated, and their meanings if these fit.
fn choices(own: &Map<String, Value>) -> (Value, String) {
    let all = list(own, "enum");
    let meanings = list(own, "enumDescriptions");
    let deprecated = list(own, "enumDeprecated");
    let kept = |index: usize| deprecated.get(index).and_then(Value::as_bool) != Some(true);
    let values: Vec<Value> = all
        .iter()
        .enumerate()
        .filter(|(index, _)| kept(*index))
        .map(|it| it.1.clone())
        .collect();
    let mut words = String::new();
    for (index, value) in all.iter().enumerate().filter(|(index, _)| kept(*index)) {
        let meaning = meanings
            .get(index)
            .and_then(Value::as_str)
            .map(str::trim)
            .unwrap_or_default();
        if let (Some(value), false) = (value.as_str(), meaning.is_empty()) {
            words.push_str(&format!("\n{value}: {meaning}"));
        }
    }
    (
        Value::Array(values),
        if words.len() <= MAX_MEANING_BYTES {
            words
        } else {
            String::new()
        },
    )
}

fn list<'a>(schema: &'a Map<String, Value>, name: &str) -> &'a [Value] {
    schema
        .get(name)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}
