//! Selects the keywords with plain values that are kept, and their form.

use regex::RegexBuilder;
use serde_json::{Map, Value};

use super::Direction;
use crate::text;

const JSON_TYPES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];
/// Bounds of values. They are checked for arguments but are of no use in outputs.
const NUMBER_KEYWORDS: [&str; 5] = [
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maximum",
    "minimum",
    "multipleOf",
];
const COUNT_KEYWORDS: [&str; 6] = [
    "maxItems",
    "maxLength",
    "maxProperties",
    "minItems",
    "minLength",
    "minProperties",
];
/// Limits of a manifest for a pattern.
const MAX_PATTERN_BYTES: usize = 1024;
const MAX_COMPILED_PATTERN_BYTES: usize = 1 << 20;
/// Largest size in bytes of one default or one value of a list.
const MAX_VALUE_BYTES: usize = 500;

pub(super) fn is_type(kind: &Value) -> bool {
    match kind {
        Value::Array(kinds) => !kinds.is_empty() && kinds.iter().all(is_type_name),
        kind => is_type_name(kind),
    }
}

fn is_type_name(name: &Value) -> bool {
    name.as_str().is_some_and(|name| JSON_TYPES.contains(&name))
}

/// Returns the keywords that are kept, with cleaned values. The caller handles nested schemas.
pub(super) fn values(
    own: &Map<String, Value>,
    direction: Direction,
    max_values: usize,
    max_description: usize,
) -> Map<String, Value> {
    let mut out = Map::new();
    let mut keep = |keyword: &str, value: Option<Value>| {
        if let Some(value) = value {
            out.insert(keyword.to_owned(), value);
        }
    };
    let kind = own.get("type").filter(|kind| is_type(kind));
    keep("type", kind.cloned().or_else(|| implied(own)));
    keep("description", description(own, max_description));
    keep("enum", choices(own, kind, max_values));
    keep(
        "format",
        own.get("format")
            .and_then(Value::as_str)
            .filter(|it| it.len() <= 64)
            .map(|it| text::line(it, 64).into()),
    );
    if direction == Direction::Out {
        return out;
    }
    keep(
        "file_uploadable",
        own.get("file_uploadable")
            .filter(|flag| flag.is_boolean())
            .cloned(),
    );
    keep("const", own.get("const").map(cleaned));
    keep(
        "default",
        own.get("default")
            .filter(|value| value.to_string().len() <= MAX_VALUE_BYTES)
            .map(cleaned),
    );
    keep("required", required(own));
    keep(
        "pattern",
        own.get("pattern")
            .and_then(Value::as_str)
            .filter(|it| usable(it))
            .map(Value::from),
    );
    keep(
        "uniqueItems",
        own.get("uniqueItems").filter(|it| it.is_boolean()).cloned(),
    );
    for keyword in NUMBER_KEYWORDS {
        let number = own.get(keyword).filter(|value| value.is_number());
        keep(
            keyword,
            number
                .filter(|it| keyword != "multipleOf" || it.as_f64().is_some_and(|it| it > 0.0))
                .cloned(),
        );
    }
    for keyword in COUNT_KEYWORDS {
        keep(
            keyword,
            own.get(keyword).filter(|value| value.is_u64()).cloned(),
        );
    }
    out
}

/// Infers the type from the members or items if it is not stated.
fn implied(own: &Map<String, Value>) -> Option<Value> {
    if own.contains_key("type") || own.contains_key("anyOf") || own.contains_key("oneOf") {
        return None;
    }
    let object = own.get("properties").is_some_and(Value::is_object);
    let array = own.get("items").is_some_and(Value::is_object);
    object
        .then(|| "object".into())
        .or_else(|| array.then(|| "array".into()))
}

fn description(own: &Map<String, Value>, max_description: usize) -> Option<Value> {
    let said = ["description", "title"].iter().find_map(|keyword| {
        own.get(*keyword)
            .and_then(Value::as_str)
            .filter(|text| !text.trim().is_empty())
    });
    said.map(|said| text::block(said, max_description))
        .filter(|said| !said.is_empty())
        .map(Value::from)
}

/// Returns the possible values. An overlong list is left out: it would be the longest part of the
/// schema.
fn choices(own: &Map<String, Value>, kind: Option<&Value>, max_values: usize) -> Option<Value> {
    let given = own.get("enum")?.as_array()?;
    if given.is_empty()
        || given.len() > max_values
        || given
            .iter()
            .any(|value| value.to_string().len() > MAX_VALUE_BYTES)
    {
        return None;
    }
    let kind = kind.and_then(Value::as_str);
    let mut kept = Vec::new();
    for value in given {
        // YAML and hand-written JSON contain `no` and `1` for texts, and the reverse.
        let value = match (kind, value) {
            (Some("string"), Value::Bool(_) | Value::Number(_)) => Value::String(value.to_string()),
            (Some("integer" | "number"), Value::String(text)) => {
                serde_json::from_str(text).unwrap_or_else(|_| value.clone())
            }
            _ => cleaned(value),
        };
        if !kept.contains(&value) {
            kept.push(value);
        }
    }
    Some(Value::Array(kept))
}

fn required(own: &Map<String, Value>) -> Option<Value> {
    let mut names: Vec<String> = Vec::new();
    for name in own
        .get("required")?
        .as_array()?
        .iter()
        .filter_map(Value::as_str)
        .map(manifest::cleaned)
    {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    (!names.is_empty()).then(|| names.into())
}

/// Returns true if the pattern can be used. Patterns run on an engine without lookaround, so an
/// unsupported pattern is left out.
fn usable(pattern: &str) -> bool {
    let clean = manifest::cleaned(pattern) == pattern;
    clean
        && pattern.len() <= MAX_PATTERN_BYTES
        && RegexBuilder::new(pattern)
            .size_limit(MAX_COMPILED_PATTERN_BYTES)
            .build()
            .is_ok()
}

fn cleaned(value: &Value) -> Value {
    match value {
        Value::String(text) => manifest::cleaned(text).into(),
        Value::Array(values) => values.iter().map(cleaned).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (manifest::cleaned(name), cleaned(value)))
            .collect::<Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}
