//! Adds the texts and examples in files next to this one: descriptions of properties, most of which
//! mean the same in many schemas, path parameters, and an example body for every operation.
//!
//! A property's own doc comment takes precedence.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Descriptions of properties, by `Schema.property` or by `property` alone.
const MEMBER_TEXTS: &str = include_str!("members.json");
/// Path parameters by the path up to them, and required query parameters by `path?name`.
const PARAMETER_TEXTS: &str = include_str!("parameters.json");
/// Bodies by operation id.
const BODY_EXAMPLES: &str = include_str!("examples.json");

/// Keywords whose value is one schema.
const NESTED_SCHEMA_KEYWORDS: [&str; 2] = ["items", "additionalProperties"];
/// Keywords whose value is a list of schemas.
const COMBINING_KEYWORDS: [&str; 3] = ["allOf", "oneOf", "anyOf"];

type Object = Map<String, Value>;

/// Completes a description.
pub(super) fn complete(described: &mut Value) {
    if let Some(schemas) = object(described, "/components/schemas") {
        complete_schemas(schemas);
    }
    let (parameters, examples) = (entries(PARAMETER_TEXTS), entries(BODY_EXAMPLES));
    for (path, operations) in object(described, "/paths").into_iter().flatten() {
        let operations = operations.as_object_mut().into_iter().flatten();
        for (_, operation) in operations {
            let listed = operation.get_mut("parameters");
            for parameter in listed.and_then(Value::as_array_mut).into_iter().flatten() {
                complete_parameter(parameter, path, &parameters);
            }
            let id = operation["operationId"].as_str().unwrap_or_default();
            let example = examples.get(id).cloned();
            let body = object(operation, "/requestBody/content/application~1json");
            if let (Some(body), Some(example)) = (body, example) {
                body.insert("example".to_owned(), example);
            }
        }
    }
}

fn entries(text: &str) -> Object {
    serde_json::from_str(text).unwrap_or_default()
}

fn object<'a>(value: &'a mut Value, pointer: &str) -> Option<&'a mut Object> {
    value.pointer_mut(pointer)?.as_object_mut()
}

/// Adds what an entry says and `described` does not.
fn add(described: &mut Value, entry: &Value) {
    let Some(described) = described.as_object_mut() else {
        return;
    };
    match entry {
        Value::Object(entry) => {
            for (name, value) in entry {
                described.entry(name).or_insert_with(|| value.clone());
            }
        }
        text => {
            described
                .entry("description")
                .or_insert_with(|| text.clone());
        }
    }
}

fn complete_parameter(parameter: &mut Value, path: &str, parameters: &Object) {
    let name = parameter["name"].as_str().unwrap_or_default();
    let key = if parameter["in"] == "path" {
        let (before, _) = path.split_once(&format!("{{{name}}}")).unwrap_or_default();
        format!("{before}{{{name}}}")
    } else {
        format!("{path}?{name}")
    };
    let Some(mut entry) = parameters.get(&key).cloned() else {
        return;
    };
    let values = entry.as_object_mut().and_then(|entry| entry.remove("enum"));
    if let (Some(values), Some(schema)) = (values, object(parameter, "/schema")) {
        schema.insert("enum".to_owned(), values);
    }
    add(parameter, &entry);
}

fn complete_schemas(schemas: &mut Object) {
    let described = schemas.iter().filter_map(|(name, schema)| {
        let text = schema["description"].as_str()?.to_owned();
        Some((format!("#/components/schemas/{name}"), text))
    });
    let texts = Texts {
        members: entries(MEMBER_TEXTS),
        schemas: described.collect(),
    };
    for (name, schema) in schemas {
        texts.complete(name, schema);
    }
}

/// Texts for the members of schemas.
struct Texts {
    members: Object,
    /// Descriptions of schemas, by the reference to them.
    schemas: BTreeMap<String, String>,
}

impl Texts {
    /// Completes the members of a schema, and of those inside of it.
    fn complete(&self, schema: &str, described: &mut Value) {
        if let Some(members) = object(described, "/properties") {
            for (name, member) in members {
                self.complete_member(schema, name, member);
                self.complete(schema, member);
            }
        }
        for keyword in NESTED_SCHEMA_KEYWORDS {
            if let Some(nested) = described.get_mut(keyword) {
                self.complete(schema, nested);
            }
        }
        for keyword in COMBINING_KEYWORDS {
            let parts = described.get_mut(keyword).and_then(Value::as_array_mut);
            for part in parts.into_iter().flatten() {
                self.complete(schema, part);
            }
        }
    }

    fn complete_member(&self, schema: &str, name: &str, member: &mut Value) {
        if let Some(own) = self.members.get(&format!("{schema}.{name}")) {
            add(member, own);
        }
        if !member["description"].is_string() {
            let text = self.of_target(member).map(Value::from);
            if let Some(text) = text.as_ref().or_else(|| self.members.get(name)) {
                add(member, text);
            }
        }
    }

    /// Returns the description of the schema that a property refers to.
    fn of_target(&self, member: &Value) -> Option<String> {
        if let Some(text) = member["description"].as_str() {
            return Some(text.to_owned());
        }
        if let Some(reference) = member["$ref"].as_str() {
            return self.schemas.get(reference).cloned();
        }
        let parts = COMBINING_KEYWORDS
            .iter()
            .filter_map(|keyword| member[*keyword].as_array());
        let mut nested = parts.flatten().chain(member.get("items"));
        nested.find_map(|nested| self.of_target(nested))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::rows;

    #[test]
    fn every_entry_is_used() {
        let mut described = serde_json::to_value(super::super::describe(&rows(), "")).unwrap();
        complete(&mut described);
        let schemas = described["components"]["schemas"].as_object().unwrap();
        for (name, entry) in entries(MEMBER_TEXTS) {
            let (schema, member) = name.split_once('.').unwrap_or(("", &*name));
            let text = entry.get("description").unwrap_or(&entry);
            let mut known = schemas
                .iter()
                .filter(|(name, _)| schema.is_empty() || *name == schema);
            assert!(
                known.any(|(_, schema)| has_text(schema, member, text)),
                "no member {name} of a schema has this text: delete it"
            );
        }
        let text = described.to_string();
        for id in entries(BODY_EXAMPLES).keys() {
            assert!(text.contains(&format!("\"operationId\":\"{id}\"")), "{id}");
        }
        for parameter in entries(PARAMETER_TEXTS).keys() {
            let paths = described["paths"].as_object().unwrap();
            let path = parameter.split('?').next().unwrap();
            assert!(
                paths.keys().any(|known| known.starts_with(path)),
                "{parameter}"
            );
        }
    }

    /// Returns true if a member of a schema has a description, or exists if the entry only adds keywords.
    fn has_text(schema: &Value, member: &str, text: &Value) -> bool {
        let parts = schema["allOf"].as_array().into_iter().flatten();
        let described = schema["properties"].get(member);
        described.is_some_and(|member| !text.is_string() || member["description"] == *text)
            || parts.into_iter().any(|part| has_text(part, member, text))
    }
}
