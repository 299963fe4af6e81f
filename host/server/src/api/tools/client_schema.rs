//! Schemas of tools as older clients read them: a type is one word, and a choice of constants is an
//! `enum`.

use serde_json::{Map, Value};

/// Members whose value is data, not a schema.
const DATA_KEYWORDS: [&str; 4] = ["const", "default", "enum", "examples"];
/// Members whose value has schemas by name.
const NAMED_SCHEMAS: [&str; 4] = ["$defs", "definitions", "patternProperties", "properties"];

/// Rewrites a schema and all schemas inside it.
pub(super) fn rewrite(schema: &mut Value) {
    match schema {
        Value::Array(schemas) => schemas.iter_mut().for_each(rewrite),
        Value::Object(members) => {
            single_type(members);
            constants(members);
            for (name, inside) in members.iter_mut() {
                match inside {
                    Value::Object(named) if NAMED_SCHEMAS.contains(&name.as_str()) => {
                        named.values_mut().for_each(rewrite);
                    }
                    inside if !DATA_KEYWORDS.contains(&name.as_str()) => rewrite(inside),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// Turns `"type": ["string", "null"]` into `"type": "string", "nullable": true`. Several other types
/// become alternatives.
fn single_type(members: &mut Map<String, Value>) {
    let Some(Value::Array(types)) = members.get("type") else {
        return;
    };
    let (nulls, types): (Vec<_>, Vec<_>) = types.iter().cloned().partition(|one| one == "null");
    let is_nullable = !nulls.is_empty();
    match <[Value; 1]>::try_from(types) {
        Ok([only]) => {
            members.insert("type".to_owned(), only);
        }
        Err(types) => {
            if types.is_empty() || members.contains_key("anyOf") {
                return;
            }
            let alternatives = types.into_iter().map(|one| {
                let alternative = Map::from_iter([("type".to_owned(), one)]);
                Value::Object(alternative)
            });
            let alternatives = alternatives.collect();
            members.shift_remove("type");
            members.insert("anyOf".to_owned(), alternatives);
        }
    }
    if is_nullable {
        members.insert("nullable".to_owned(), true.into());
    }
}

/// Turns a `oneOf` of constants into an `enum`.
fn constants(members: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = members.get("oneOf") else {
        return;
    };
    let constant = |choice: &Value| choice.get("const").cloned();
    let constants: Option<Vec<_>> = choices.iter().map(constant).collect();
    if let Some(constants) = constants.filter(|_| !members.contains_key("enum")) {
        members.shift_remove("oneOf");
        members.insert("enum".to_owned(), constants.into());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn older_clients_get_single_types_and_enums() {
        let mut schema = json!({
            "type": "object",
            "properties": {
                "type": { "type": ["string", "null"], "default": { "type": ["a", "null"] } },
                "default": { "oneOf": [{ "const": "a", "title": "A" }, { "const": "b" }] },
                "either": { "type": ["string", "integer"] },
                "list": { "type": "array", "items": { "type": ["integer", "null"] } },
                "kept": { "oneOf": [{ "const": "a" }, { "type": "integer" }] },
            },
        });
        rewrite(&mut schema);
        let expected = json!({
            "type": "object",
            "properties": {
                "type": { "type": "string", "nullable": true, "default": { "type": ["a", "null"] } },
                "default": { "enum": ["a", "b"] },
                "either": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
                "list": { "type": "array", "items": { "type": "integer", "nullable": true } },
                "kept": { "oneOf": [{ "const": "a" }, { "type": "integer" }] },
            },
        });
        assert_eq!(schema, expected);
    }
}
