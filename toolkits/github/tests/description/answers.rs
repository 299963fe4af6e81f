//! Answers made from the description: its own examples, and values of its schemas, with all properties and with as few as may be.

use serde_json::{Map, Value};

use crate::document::{Answer, Document};
use crate::schemas::Schemas;

/// Schemas nested deeper than this are left out where they may be.
const DEEPEST: usize = 12;
/// Branches of a choice that are tried.
const BRANCHES: usize = 4;
/// Values that mean something to GitHub although their schemas take any text.
const WORDS: [(&str, &str); 2] = [("encoding", "base64"), ("content", ENCODED)];
/// Examples have dots in its place.
const ENCODED: &str = "SGVsbG8=";

/// How much of a schema is made.
#[derive(Clone, Copy)]
struct Plan {
    /// Properties that may be left out too.
    all: bool,
    /// Null where that is allowed.
    nulls: bool,
    /// Which branch of each choice, counted around.
    branch: usize,
}

/// The answers to try; none when GitHub answers nothing.
pub(crate) fn possible(document: &Document, schemas: &mut Schemas, answer: &Answer<'_>) -> Vec<Value> {
    let (Some(content), Some(place)) = (answer.content, answer.schema()) else { return Vec::new() };
    let mut found = examples(document, content);
    // Some examples contradict the description's own schemas.
    found.retain(|example| schemas.problems_of_part(&place, example).is_empty());
    let schema = &content["schema"];
    for branch in 0..BRANCHES {
        for (all, nulls) in [(true, false), (true, true), (false, false), (false, true)] {
            let value = make(document, schema, "", Plan { all, nulls, branch }, 0);
            // Where nothing is required, the least answer says nothing.
            if value != Value::Object(Map::new()) && !found.contains(&value) {
                found.push(value);
            }
        }
    }
    found
}

fn examples(document: &Document, content: &Value) -> Vec<Value> {
    let several = content["examples"].as_object().into_iter().flat_map(Map::values);
    let given =
        several.map(|example| &document.follow(String::new(), example).1["value"]).chain(content.get("example"));
    let mut found: Vec<Value> = Vec::new();
    for example in given {
        let example = document.follow(String::new(), example).1;
        // Some examples hold another example as a whole.
        let inner = example.get("x-github-breaking-changes").and_then(|_| example.get("value"));
        let mut example = inner.unwrap_or(example).clone();
        if example["encoding"] == "base64" {
            example["content"] = Value::from(ENCODED);
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
        let parts = parts.iter().map(|part| make(document, part, name, plan, depth));
        return parts.fold(Value::Null, together);
    }
    for choice in ["oneOf", "anyOf"] {
        if let Some(branches) = schema[choice].as_array().filter(|_| schema.get("properties").is_none()) {
            return make(document, &branches[plan.branch % branches.len()], name, plan, depth);
        }
    }
    if let Some(values) = schema["enum"].as_array() {
        return values[plan.branch % values.len()].clone();
    }
    match schema["type"].as_str() {
        Some("integer" | "number") => Value::from(7),
        Some("boolean") => Value::from(plan.all),
        Some("array") if depth < DEEPEST => {
            let items = &schema["items"];
            Value::Array(vec![make(document, items, name, plan, depth + 1)])
        }
        Some("array") => Value::Array(Vec::new()),
        Some("string") => Value::from(word(schema, name)),
        _ => object(document, schema, plan, depth),
    }
}

fn word<'a>(schema: &'a Value, name: &str) -> &'a str {
    let meant = WORDS.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    meant.or_else(|| schema["example"].as_str()).unwrap_or("text")
}

fn object(document: &Document, schema: &Value, plan: Plan, depth: usize) -> Value {
    let needed = |name: &str| schema["required"].as_array().is_some_and(|list| list.iter().any(|known| known == name));
    let mut made = Map::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if needed(name) || (plan.all && depth < DEEPEST) {
            made.insert(name.clone(), make(document, property, name, plan, depth + 1));
        }
    }
    if schema["additionalProperties"].is_object() && plan.all && depth < DEEPEST {
        let inner = make(document, &schema["additionalProperties"], "", plan, depth + 1);
        made.insert("name.txt".to_owned(), inner);
    }
    Value::Object(made)
}

/// One value that has what both have.
fn together(first: Value, second: Value) -> Value {
    match (first, second) {
        (Value::Object(mut first), Value::Object(second)) => {
            first.extend(second);
            Value::Object(first)
        }
        (Value::Null, other) | (other, _) => other,
    }
}
