//! Generated responses with every property of their schemas.

use serde_json::{Map, Value};

use crate::document::Document;

/// Max depth of nested schemas. Deeper ones are left out.
const MAX_DEPTH: usize = 8;

/// Generates a value of a schema.
pub(crate) fn whole(document: &Document, name: &str) -> Value {
    make(document, &document.json["schemas"][name], 0)
}

fn make(document: &Document, schema: &Value, depth: usize) -> Value {
    if let Some(other) = schema["$ref"].as_str() {
        return make(document, &document.json["schemas"][other], depth);
    }
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    match (schema["type"].as_str(), schema["format"].as_str()) {
        (Some("integer" | "number"), _) => Value::from(7),
        (Some("boolean"), _) => Value::from(true),
        (Some("array"), _) if depth >= MAX_DEPTH => Value::Array(Vec::new()),
        (Some("array"), _) => Value::Array(vec![make(document, &schema["items"], depth + 1)]),
        (Some("string"), Some("date-time")) => Value::from("2026-03-02T09:00:00+01:00"),
        (Some("string"), Some("date")) => Value::from("2026-03-02"),
        (Some("string"), Some("int64" | "uint64")) => Value::from("1772438400000"),
        (Some("string"), Some("byte")) => Value::from("SGVsbG8="),
        (Some("string"), _) => Value::from("text"),
        _ => schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .filter(|_| depth < MAX_DEPTH)
            .map(|(name, member)| (name.clone(), make(document, member, depth + 1)))
            .collect::<Map<_, _>>()
            .into(),
    }
}
