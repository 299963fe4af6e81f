//! Schemas of tools in the form that clients of the API convert for models.
//!
//! Clients and frameworks turn the schema of a tool into types of their language or into the schema of a
//! provider, and refuse tools with keywords that they do not know. The form has what all of them read: a
//! type is one word with `nullable`, constants are an `enum` with a type, alternatives are `anyOf`, and an
//! object has a title, from which its type is named.

use serde_json::{Map, Value};

/// Keywords whose value has schemas by name.
pub(super) const NAMED_SCHEMAS: [&str; 4] =
    ["$defs", "definitions", "patternProperties", "properties"];
/// Keywords whose value is a schema or a list of schemas. `oneOf` becomes `anyOf`.
pub(super) const SCHEMA_KEYWORDS: [&str; 7] = [
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "items",
    "not",
    "oneOf",
];
/// Keywords whose value lists alternatives.
const ALTERNATIVE_KEYWORDS: [&str; 2] = ["anyOf", "oneOf"];
/// Keywords that hold for values of a type alone.
const KEYWORDS_OF_TYPES: [(&str, &[&str]); 3] = [
    ("array", &["items", "maxItems", "minItems"]),
    (
        "object",
        &["additionalProperties", "properties", "required"],
    ),
    ("string", &["format", "maxLength", "minLength", "pattern"]),
];

/// Simplifies a schema and all schemas inside it. `name` becomes the title of an object, and of a
/// schema without a type, unless it has a title.
pub(super) fn simplify(schema: &mut Value, name: &str) {
    let Value::Object(members) = schema else {
        return;
    };
    for (keyword, inside) in members.iter_mut() {
        match inside {
            Value::Object(named) if NAMED_SCHEMAS.contains(&keyword.as_str()) => {
                for (name, schema) in named {
                    simplify(schema, name);
                }
            }
            Value::Array(all) if SCHEMA_KEYWORDS.contains(&keyword.as_str()) => {
                for (index, schema) in all.iter_mut().enumerate() {
                    simplify(schema, &format!("{name} {}", index + 1));
                }
            }
            Value::Object(_) if SCHEMA_KEYWORDS.contains(&keyword.as_str()) => {
                simplify(inside, &format!("{name} item"));
            }
            _ => {}
        }
    }
    for keyword in ALTERNATIVE_KEYWORDS {
        take_null(members, keyword);
        join_constants(members, keyword);
    }
    if !members.contains_key("anyOf")
        && let Some(all) = members.shift_remove("oneOf")
    {
        members.insert("anyOf".to_owned(), all);
    }
    use_enum(members);
    use_single_type(members);
    let is_untyped = !["type", "anyOf"].iter().any(|it| members.contains_key(*it));
    if is_untyped || members.contains_key("properties") {
        members.entry("title").or_insert_with(|| name.into());
    }
}

/// Replaces a null alternative by `nullable`. A single other alternative becomes part of the schema
/// itself.
fn take_null(members: &mut Map<String, Value>, keyword: &str) {
    let Some(Value::Array(all)) = members.get_mut(keyword) else {
        return;
    };
    let before = all.len();
    all.retain(|one| one["type"] != "null");
    let has_null = all.len() < before;
    let only = if all.len() == 1 { all.pop() } else { None };
    if all.is_empty() {
        members.shift_remove(keyword);
    }
    for (keyword, value) in only
        .as_ref()
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        members.entry(keyword).or_insert_with(|| value.clone());
    }
    match (has_null, before) {
        (true, 1) => drop(members.insert("type".to_owned(), "null".into())),
        (true, _) => drop(members.insert("nullable".to_owned(), true.into())),
        (false, _) => {}
    }
}

/// Turns alternatives that are constants into an `enum`. What is said about each is added to the
/// description.
fn join_constants(members: &mut Map<String, Value>, keyword: &str) {
    let Some(Value::Array(all)) = members.get(keyword) else {
        return;
    };
    let lists: Option<Vec<_>> = all
        .iter()
        .map(|one| one["enum"].as_array().cloned())
        .collect();
    let Some(lists) = lists.filter(|_| !members.contains_key("enum")) else {
        return;
    };
    let described = all.iter().zip(&lists).filter_map(|(one, list)| {
        let values: Vec<_> = list.iter().map(Value::to_string).collect();
        Some(format!(
            "{}: {}",
            values.join(", "),
            one["description"].as_str()?
        ))
    });
    let own = members.get("description").and_then(Value::as_str);
    let lines: Vec<_> = own
        .map(str::to_owned)
        .into_iter()
        .chain(described)
        .collect();
    let is_nullable = all.iter().any(|one| one["nullable"] == true);
    members.shift_remove(keyword);
    members.insert("enum".to_owned(), lists.concat().into());
    if is_nullable {
        members.insert("nullable".to_owned(), true.into());
    }
    if !lines.is_empty() {
        members.insert("description".to_owned(), lines.join("\n").into());
    }
}

/// Turns a constant into an `enum`, takes null out of it, and adds the type that all values have.
fn use_enum(members: &mut Map<String, Value>) {
    if let Some(constant) = members.shift_remove("const") {
        members.insert("enum".to_owned(), vec![constant].into());
    }
    let Some(Value::Array(values)) = members.get_mut("enum") else {
        return;
    };
    let before = values.len();
    values.retain(|value| !value.is_null());
    let has_null = values.len() < before;
    let first = values.first().map(type_of);
    let first = first.filter(|first| values.iter().all(|value| type_of(value) == *first));
    let is_empty = values.is_empty();
    if is_empty {
        members.shift_remove("enum");
    }
    if let Some(common) = first {
        members.entry("type").or_insert_with(|| common.into());
    } else if is_empty {
        members.entry("type").or_insert_with(|| "null".into());
    }
    if has_null && !is_empty {
        members.insert("nullable".to_owned(), true.into());
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Adds the type that follows from the keywords.
fn add_implied_type(members: &mut Map<String, Value>) {
    let implied = [("properties", "object"), ("items", "array")]
        .into_iter()
        .find(|(keyword, _)| members.contains_key(*keyword));
    if let Some((_, implied)) = implied {
        members.insert("type".to_owned(), implied.into());
    }
}

/// Turns `"type": ["string", "null"]` into `"type": "string", "nullable": true`. Several other
/// types become alternatives, which take the keywords of their types. A missing type follows from
/// the keywords.
fn use_single_type(members: &mut Map<String, Value>) {
    let types = match members.get("type") {
        Some(Value::Array(types)) => types.clone(),
        Some(_) => return,
        None => return add_implied_type(members),
    };
    let (nulls, mut types): (Vec<_>, Vec<_>) = types.into_iter().partition(|one| one == "null");
    if types.iter().any(|one| one == "number") {
        types.retain(|one| one != "integer");
    }
    members.shift_remove("type");
    if types.len() == 1 {
        members.extend(types.pop().map(|only| ("type".to_owned(), only)));
    } else if types.is_empty() {
        members.insert("type".to_owned(), "null".into());
        return;
    } else if !members.contains_key("anyOf") && !members.contains_key("enum") {
        let all = types.into_iter().map(|one| alternative(members, one));
        let all = all.collect::<Vec<_>>();
        members.insert("anyOf".to_owned(), all.into());
    }
    if !nulls.is_empty() {
        members.insert("nullable".to_owned(), true.into());
    }
}

/// Returns the alternative of a type. Takes the keywords of the type out of the schema.
fn alternative(members: &mut Map<String, Value>, kind: Value) -> Value {
    let of_type = KEYWORDS_OF_TYPES.iter().find(|(name, _)| kind == *name);
    let keywords = of_type.map_or(&[][..], |(_, keywords)| keywords);
    let mut alternative = Map::from_iter([("type".to_owned(), kind)]);
    for keyword in keywords {
        let value = members.shift_remove(*keyword);
        alternative.extend(value.map(|value| ((*keyword).to_owned(), value)));
    }
    Value::Object(alternative)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the simplified schema of a property called `p`.
    fn simple(property: Value) -> Value {
        let mut schema = json!({ "type": "object", "properties": { "p": property } });
        simplify(&mut schema, "Top");
        assert_eq!(schema["title"], "Top");
        schema["properties"]["p"].take()
    }

    #[test]
    fn types_are_single_words() {
        for (given, expected) in [
            (
                json!({ "type": ["string", "null"], "default": { "type": ["a", "null"] } }),
                json!({ "type": "string", "nullable": true, "default": { "type": ["a", "null"] } }),
            ),
            (
                json!({ "type": ["string", "integer", "null"], "minLength": 1 }),
                json!({ "anyOf": [{ "type": "string", "minLength": 1 }, { "type": "integer" }], "nullable": true }),
            ),
            (
                json!({ "type": ["integer", "number"] }),
                json!({ "type": "number" }),
            ),
            (json!({ "type": ["null"] }), json!({ "type": "null" })),
            (
                json!({ "type": "array", "items": { "type": ["integer", "null"] } }),
                json!({ "type": "array", "items": { "type": "integer", "nullable": true } }),
            ),
            (
                json!({ "items": { "type": "string" } }),
                json!({ "type": "array", "items": { "type": "string" } }),
            ),
            (
                json!({ "anyOf": [{ "type": "string" }, { "type": "null" }], "description": "d" }),
                json!({ "type": "string", "nullable": true, "description": "d" }),
            ),
        ] {
            assert_eq!(simple(given.clone()), expected, "{given}");
        }
    }

    #[test]
    fn constants_are_enums_with_a_type() {
        for (given, expected) in [
            (
                json!({ "oneOf": [{ "const": "a", "title": "A" }, { "const": "b" }] }),
                json!({ "type": "string", "enum": ["a", "b"] }),
            ),
            (
                json!({ "oneOf": [{ "type": "string", "enum": ["a", "b"] }, { "const": "c", "description": "C." }], "description": "Which." }),
                json!({ "type": "string", "enum": ["a", "b", "c"], "description": "Which.\n\"c\": C." }),
            ),
            (
                json!({ "anyOf": [{ "oneOf": [{ "const": 1 }, { "const": 2 }] }, { "type": "null" }] }),
                json!({ "type": "integer", "enum": [1, 2], "nullable": true }),
            ),
            (
                json!({ "type": ["string", "null"], "enum": ["a", null] }),
                json!({ "type": "string", "enum": ["a"], "nullable": true }),
            ),
            (
                json!({ "const": true }),
                json!({ "type": "boolean", "enum": [true] }),
            ),
            (
                json!({ "enum": ["a", 1] }),
                json!({ "enum": ["a", 1], "title": "p" }),
            ),
            (
                json!({ "oneOf": [{ "const": "a" }, { "type": "integer" }] }),
                json!({ "anyOf": [{ "type": "string", "enum": ["a"] }, { "type": "integer" }] }),
            ),
        ] {
            assert_eq!(simple(given.clone()), expected, "{given}");
        }
    }

    #[test]
    fn objects_and_untyped_schemas_have_titles() {
        let object = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
        let titled = |title: &str| {
            let mut object = object.clone();
            object["title"] = title.into();
            object
        };
        for (given, expected) in [
            (json!({}), json!({ "title": "p" })),
            (object.clone(), titled("p")),
            (titled("Mine"), titled("Mine")),
            (
                json!({ "type": "array", "items": object }),
                json!({ "type": "array", "items": titled("p item") }),
            ),
            (
                json!({ "anyOf": [{ "type": "string" }, object] }),
                json!({ "anyOf": [{ "type": "string" }, titled("p 2")] }),
            ),
        ] {
            assert_eq!(simple(given.clone()), expected, "{given}");
        }
        let mut schema = json!({ "$ref": "#/$defs/Node", "$defs": { "Node": object } });
        simplify(&mut schema, "Top");
        assert_eq!(schema["$defs"]["Node"], titled("Node"));
    }
}
