//! Responses generated from the API description: its own examples, and values of its schemas with
//! all properties and with as few as possible.

use serde_json::{Map, Value};

use crate::document::{Answer, Document};
use crate::schemas::Schemas;

/// Max depth of nested schemas. Deeper optional properties are left out.
const MAX_DEPTH: usize = 12;
/// Number of branches of a choice that are tried.
const MAX_BRANCHES: usize = 4;
/// Values with a meaning for GitHub although their schemas accept any text.
const MEANINGFUL_VALUES: [(&str, &str); 2] = [("encoding", "base64"), ("content", BASE64_TEXT)];
/// Base64 text that replaces the dots in the examples.
const BASE64_TEXT: &str = "SGVsbG8=";

/// Parts of a schema to generate.
#[derive(Clone, Copy)]
struct Plan {
    /// Generates optional properties too.
    all: bool,
    /// Generates null where it is allowed.
    nulls: bool,
    /// Index of the branch of each choice, modulo the number of branches.
    branch: usize,
}

/// Returns the responses to try; an empty list if GitHub returns no body.
pub(crate) fn possible(
    document: &Document,
    schemas: &mut Schemas,
    answer: &Answer<'_>,
) -> Vec<Value> {
    let (Some(content), Some(place)) = (answer.content, answer.schema()) else {
        return Vec::new();
    };
    let mut found = examples(document, content);
    // Some examples contradict the description's own schemas.
    found.retain(|example| schemas.problems_of_part(&place, example).is_empty());
    let schema = &content["schema"];
    for branch in 0..MAX_BRANCHES {
        for (all, nulls) in [(true, false), (true, true), (false, false), (false, true)] {
            let value = make(document, schema, "", Plan { all, nulls, branch }, 0);
            // If no property is required, the smallest response is empty and tests nothing.
            if value != Value::Object(Map::new()) && !found.contains(&value) {
                found.push(value);
            }
        }
    }
    found
}

fn examples(document: &Document, content: &Value) -> Vec<Value> {
    let several = content["examples"]
        .as_object()
        .into_iter()
        .flat_map(Map::values);
    let given = several
        .map(|example| &document.follow(String::new(), example).1["value"])
        .chain(content.get("example"));
    let mut found: Vec<Value> = Vec::new();
    for example in given {
        let example = document.follow(String::new(), example).1;
        // Some examples contain another example as a whole.
        let inner = example
            .get("x-github-breaking-changes")
            .and_then(|_| example.get("value"));
        let mut example = inner.unwrap_or(example).clone();
        if example["encoding"] == "base64" {
            example["content"] = Value::from(BASE64_TEXT);
        }
        found.push(example);
    }
    found
}

fn make(document: &Document, schema: &Value, name: &str, plan: Plan, depth: usize) -> Value {
    let (_, schema) = document.follow(String::new(), schema);
    if plan.nulls && depth > 0 && schema["nullable"] == true {
        return Value::Null;
    }
    if let Some(parts) = schema["allOf"].as_array() {
        let parts = parts
            .iter()
            .map(|part| make(document, part, name, plan, depth));
        return parts.fold(Value::Null, together);
    }
    for choice in ["oneOf", "anyOf"] {
        if let Some(branches) = schema[choice]
            .as_array()
            .filter(|_| schema.get("properties").is_none())
        {
            return make(
                document,
                &branches[plan.branch % branches.len()],
                name,
                plan,
                depth,
            );
        }
    }
    if let Some(values) = schema["enum"].as_array() {
        return values[plan.branch % values.len()].clone();
    }
    match schema["type"].as_str() {
        Some("integer" | "number") => Value::from(7),
        Some("boolean") => Value::from(plan.all),
        Some("array") if depth < MAX_DEPTH => {
            let items = &schema["items"];
            Value::Array(vec![make(document, items, name, plan, depth + 1)])
        }
        Some("array") => Value::Array(Vec::new()),
        Some("string") => Value::from(word(schema, name)),
        _ => object(document, schema, plan, depth),
    }
}

fn word<'a>(schema: &'a Value, name: &str) -> &'a str {
    let meant = MEANINGFUL_VALUES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, value)| *value);
    meant
        .or_else(|| schema["example"].as_str())
        .unwrap_or("text")
}

fn object(document: &Document, schema: &Value, plan: Plan, depth: usize) -> Value {
    let needed = |name: &str| {
        schema["required"]
            .as_array()
            .is_some_and(|list| list.iter().any(|known| known == name))
    };
    let mut made = Map::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if needed(name) || (plan.all && depth < MAX_DEPTH) {
            made.insert(
                name.clone(),
                make(document, property, name, plan, depth + 1),
            );
        }
    }
    if schema["additionalProperties"].is_object() && plan.all && depth < MAX_DEPTH {
        let inner = make(
            document,
            &schema["additionalProperties"],
            "",
            plan,
            depth + 1,
        );
        made.insert("name.txt".to_owned(), inner);
    }
    Value::Object(made)
}

/// Merges two values into one with the properties of both.
fn together(first: Value, second: Value) -> Value {
    match (first, second) {
        (Value::Object(mut first), Value::Object(second)) => {
            first.extend(second);
            Value::Object(first)
        }
        (Value::Null, other) | (other, _) => other,
    }
}
