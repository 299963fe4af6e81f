//! Checks of JSON Schemas: they must be self-contained, bounded, and safe to evaluate.

use std::collections::BTreeSet;

use regex::RegexBuilder;
use serde_json::{Map, Value};

use super::{
    Report,
    cost::{MAX_PATTERNS_PER_SCHEMA, MAX_SCHEMAS_PER_VALUE, schema_cost},
    text,
};

/// Maximum size of a schema as JSON, in bytes.
pub const MAX_SCHEMA_BYTES: usize = 64 * 1024;
/// Maximum depth of nested schemas.
pub const MAX_SCHEMA_DEPTH: usize = 16;
const MAX_PATTERN_BYTES: usize = 1024;
const MAX_COMPILED_PATTERN_BYTES: usize = 1024 * 1024;

/// Values of `type`.
const JSON_TYPES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];
/// Keywords with one schema.
const SCHEMA_KEYWORDS: [&str; 12] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
];
/// Keywords with a list of schemas.
const SCHEMA_LIST_KEYWORDS: [&str; 5] = ["allOf", "anyOf", "items", "oneOf", "prefixItems"];
/// Keywords with named schemas.
pub(super) const SCHEMA_MAP_KEYWORDS: [&str; 6] = [
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
];
/// Keywords that make a schema depend on its location or on other documents.
pub(super) const IDENTITY_KEYWORDS: [&str; 7] = [
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveAnchor",
    "$recursiveRef",
    "$vocabulary",
];
/// Keywords with a whole number of at least 0.
const COUNT_KEYWORDS: [&str; 8] = [
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
];
/// Keywords with a number.
const NUMBER_KEYWORDS: [&str; 5] = [
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maximum",
    "minimum",
    "multipleOf",
];

/// Checks a schema that must describe an object with `"type": "object"`.
pub(super) fn check_object(schema: &Value, report: &mut Report) {
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        report.add("must have \"type\": \"object\"");
    }
    check(schema, report);
}

/// Checks a schema that describes an object or lacks a type.
pub(super) fn check_answer(schema: &Value, report: &mut Report) {
    if schema.get("type").is_some_and(|kind| kind != "object") {
        report.add("an output must be an object, so that fields can be added later; put the value into a field");
    }
    check(schema, report);
}

/// Checks a schema without regard to what it describes.
pub(super) fn check(schema: &Value, report: &mut Report) {
    let size = schema.to_string().len();
    if size > MAX_SCHEMA_BYTES {
        return report.add(format_args!(
            "{size} bytes are too many; at most {MAX_SCHEMA_BYTES}"
        ));
    }
    check_texts(schema, report);
    let before = report.count();
    walk(schema, schema, 1, report);
    // For a schema with broken references, the cost tells nothing more.
    if report.count() == before {
        check_cost(schema, report);
    }
}

fn check_cost(schema: &Value, report: &mut Report) {
    let cost = match schema_cost(schema) {
        Ok(cost) => cost,
        Err(problem) => return report.add(problem),
    };
    if cost.schemas_per_value > MAX_SCHEMAS_PER_VALUE {
        report.add(format_args!(
            "{} schemas apply to one value when references are followed; at most {MAX_SCHEMAS_PER_VALUE}",
            cost.schemas_per_value
        ));
    }
    if cost.patterns.len() > MAX_PATTERNS_PER_SCHEMA {
        report.add(format_args!(
            "{} patterns are too many; at most {MAX_PATTERNS_PER_SCHEMA}",
            cost.patterns.len()
        ));
    }
}

fn walk(schema: &Value, root: &Value, depth: usize, report: &mut Report) {
    let keywords = match schema {
        Value::Bool(_) => return,
        Value::Object(keywords) => keywords,
        _ => return report.add("a schema is an object, true or false"),
    };
    if depth > MAX_SCHEMA_DEPTH {
        return report.add(format_args!(
            "is nested deeper than {MAX_SCHEMA_DEPTH} schemas"
        ));
    }
    check_keywords(keywords, root, report);
    for (keyword, value) in keywords {
        let mut report = report.at(keyword);
        match value {
            Value::Array(schemas) if SCHEMA_LIST_KEYWORDS.contains(&keyword.as_str()) => {
                for (index, schema) in schemas.iter().enumerate() {
                    walk(schema, root, depth + 1, &mut report.at(index));
                }
            }
            Value::Object(schemas) if SCHEMA_MAP_KEYWORDS.contains(&keyword.as_str()) => {
                for (name, schema) in schemas {
                    // A dependency may also be a list of names.
                    if !(keyword == "dependencies" && schema.is_array()) {
                        walk(schema, root, depth + 1, &mut report.at(name));
                    }
                }
            }
            _ if SCHEMA_LIST_KEYWORDS.contains(&keyword.as_str()) && keyword != "items" => {
                report.add("must be a list of schemas")
            }
            _ if SCHEMA_MAP_KEYWORDS.contains(&keyword.as_str()) => {
                report.add("must be an object of schemas")
            }
            _ if SCHEMA_KEYWORDS.contains(&keyword.as_str()) => {
                walk(value, root, depth + 1, &mut report)
            }
            _ => {}
        }
    }
}

fn check_keywords(keywords: &Map<String, Value>, root: &Value, report: &mut Report) {
    for keyword in IDENTITY_KEYWORDS
        .iter()
        .filter(|keyword| keywords.contains_key(**keyword))
    {
        report.add(format_args!(
            "remove `{keyword}`; a schema must be self-contained"
        ));
    }
    if let Some(reference) = keywords.get("$ref") {
        check_reference(reference, root, report);
    }
    if let Some(dialect) = keywords.get("$schema") {
        let is_known = dialect.as_str().is_some_and(|dialect| {
            dialect.starts_with("http://json-schema.org/")
                || dialect.starts_with("https://json-schema.org/")
        });
        if !is_known {
            report.add(format_args!(
                "`$schema` {dialect} is not a dialect of JSON Schema; remove it"
            ));
        }
    }
    if let Some(pattern) = keywords.get("pattern") {
        match pattern.as_str() {
            Some(pattern) => check_pattern(pattern, &mut report.at("pattern")),
            None => report.at("pattern").add("must be a string"),
        }
    }
    if let Some(Value::Object(patterns)) = keywords.get("patternProperties") {
        for pattern in patterns.keys() {
            check_pattern(pattern, &mut report.at("patternProperties"));
        }
    }
    check_values(keywords, report);
}

/// Checks the keywords that hold values and not schemas.
fn check_values(keywords: &Map<String, Value>, report: &mut Report) {
    if let Some(kind) = keywords.get("type").filter(|kind| !names_types(kind)) {
        report.at("type").add(format_args!(
            "{kind} is not one of {}, or a list of them",
            JSON_TYPES.join(", ")
        ));
    }
    if keywords
        .get("required")
        .is_some_and(|required| !is_list_of_names(required))
    {
        report
            .at("required")
            .add("must be a list of different names");
    }
    if keywords
        .get("enum")
        .is_some_and(|values| values.as_array().is_none_or(Vec::is_empty))
    {
        report
            .at("enum")
            .add("must be a list with at least one value");
    }
    for keyword in COUNT_KEYWORDS
        .iter()
        .filter(|keyword| keywords.get(**keyword).is_some_and(|value| !value.is_u64()))
    {
        report.at(keyword).add("must be a whole number, at least 0");
    }
    for keyword in NUMBER_KEYWORDS.iter().filter(|keyword| {
        keywords
            .get(**keyword)
            .is_some_and(|value| !value.is_number())
    }) {
        report.at(keyword).add("must be a number");
    }
    if keywords
        .get("multipleOf")
        .and_then(Value::as_f64)
        .is_some_and(|step| step <= 0.0)
    {
        report.at("multipleOf").add("must be more than 0");
    }
    for keyword in ["description", "title", "format"] {
        if keywords
            .get(keyword)
            .is_some_and(|value| !value.is_string())
        {
            report.at(keyword).add("must be a string");
        }
    }
}

/// Returns true if a value is the name of a type, or a list of such names.
fn names_types(value: &Value) -> bool {
    match value {
        Value::String(name) => JSON_TYPES.contains(&name.as_str()),
        Value::Array(names) => {
            !names.is_empty()
                && names
                    .iter()
                    .all(|name| name.as_str().is_some_and(|name| JSON_TYPES.contains(&name)))
        }
        _ => false,
    }
}

fn is_list_of_names(value: &Value) -> bool {
    let Some(list) = value.as_array() else {
        return false;
    };
    let names: BTreeSet<&str> = list.iter().filter_map(Value::as_str).collect();
    names.len() == list.len()
}

/// Checks that a reference leads into the same schema, and not into a cycle of references only.
fn check_reference(reference: &Value, root: &Value, report: &mut Report) {
    let mut report = report.at("$ref");
    let mut seen = BTreeSet::new();
    let mut current = reference;
    loop {
        let Some(target) = current.as_str().and_then(|text| text.strip_prefix('#')) else {
            return report.add(format_args!(
                "{current} is not local; write it as \"#/$defs/name\""
            ));
        };
        if !seen.insert(target) {
            return report.add(format_args!("{current} refers to itself"));
        }
        let Some(found) = (if target.is_empty() {
            Some(root)
        } else {
            root.pointer(target)
        }) else {
            return report.add(format_args!("{current} does not exist"));
        };
        if !found.is_object() && !found.is_boolean() {
            return report.add(format_args!("{current} is not a schema"));
        }
        match found.get("$ref") {
            Some(next) => current = next,
            None => return,
        }
    }
}

/// Checks a pattern. Patterns run on any text that agents send, so only those that match in linear
/// time are supported.
fn check_pattern(pattern: &str, report: &mut Report) {
    if pattern.len() > MAX_PATTERN_BYTES {
        return report.add(format_args!(
            "{} bytes are too long; at most {MAX_PATTERN_BYTES}",
            pattern.len()
        ));
    }
    if let Err(cause) = RegexBuilder::new(pattern)
        .size_limit(MAX_COMPILED_PATTERN_BYTES)
        .build()
    {
        let cause = cause.to_string();
        let last = cause
            .lines()
            .last()
            .unwrap_or_default()
            .trim_start_matches("error: ")
            .to_owned();
        report.add(format_args!("`{pattern}` cannot be used: {last}"));
    }
}

/// Checks all texts of a schema. Agents read names, descriptions, choices and defaults alike.
fn check_texts(value: &Value, report: &mut Report) {
    match value {
        Value::String(string) => text::visible(string, report),
        Value::Array(values) => values
            .iter()
            .enumerate()
            .for_each(|(index, value)| check_texts(value, &mut report.at(index))),
        Value::Object(entries) => {
            for (name, value) in entries {
                text::visible(name, report);
                check_texts(value, &mut report.at(name));
            }
        }
        _ => {}
    }
}
