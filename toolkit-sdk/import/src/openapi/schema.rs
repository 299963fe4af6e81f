//! Converts schemas of `OpenAPI` to JSON Schema.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::document::Document;
use crate::{
    Api, Unsupported,
    schema::{self, Shared},
};

/// Largest number of named schemas. No hand-written document has more.
const MAX_SCHEMAS: usize = 50_000;
/// Keywords that are the same in both.
const KEPT_KEYWORDS: [&str; 24] = [
    "type",
    "description",
    "title",
    "format",
    "enum",
    "const",
    "default",
    "pattern",
    "required",
    "readOnly",
    "writeOnly",
    "uniqueItems",
    "maximum",
    "minimum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "multipleOf",
    "maxItems",
    "maxLength",
    "maxProperties",
    "minItems",
    "minLength",
    "minProperties",
    "contentMediaType",
];

/// Converts schemas and tracks those that are referred to.
#[derive(Debug)]
pub(super) struct Schemas<'a> {
    document: &'a Document<'a>,
    /// Names of references.
    names: BTreeMap<String, String>,
    /// References that have a name and are not yet converted.
    waiting: Vec<String>,
    done: Shared,
    missing: BTreeSet<String>,
}

impl<'a> Schemas<'a> {
    pub(super) fn new(document: &'a Document<'a>) -> Self {
        Self {
            document,
            names: BTreeMap::new(),
            waiting: Vec::new(),
            done: Shared::new(),
            missing: BTreeSet::new(),
        }
    }

    /// Converts a schema.
    pub(super) fn read(&mut self, schema: &Value) -> Value {
        let Value::Object(own) = schema else {
            return if schema.is_boolean() {
                schema.clone()
            } else {
                json!({})
            };
        };
        let mut out = Map::new();
        if let Some(reference) = own.get("$ref").and_then(Value::as_str) {
            match self.name(reference) {
                Some(name) => out.insert("$ref".to_owned(), format!("#/$defs/{name}").into()),
                None => out.insert("description".to_owned(), "Anything.".into()),
            };
        }
        for keyword in KEPT_KEYWORDS {
            if let Some(value) = own.get(keyword).filter(|value| !value.is_null()) {
                out.insert(keyword.to_owned(), value.clone());
            }
        }
        self.nested(own, &mut out);
        bounds(own, &mut out);
        if ["nullable", "x-nullable"]
            .iter()
            .any(|word| own.get(*word).and_then(Value::as_bool) == Some(true))
        {
            return nullable(out);
        }
        Value::Object(out)
    }

    fn nested(&mut self, own: &Map<String, Value>, out: &mut Map<String, Value>) {
        for keyword in ["items", "additionalProperties"] {
            match own.get(keyword) {
                Some(schema @ Value::Object(_)) => {
                    let schema = self.read(schema);
                    out.insert(keyword.to_owned(), schema);
                }
                Some(flag @ Value::Bool(_)) => {
                    out.insert(keyword.to_owned(), flag.clone());
                }
                _ => {}
            }
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            if let Some(Value::Array(schemas)) = own.get(keyword) {
                let schemas = schemas.iter().map(|schema| self.read(schema)).collect();
                out.insert(keyword.to_owned(), schemas);
            }
        }
        if let Some(Value::Object(members)) = own.get("properties") {
            let members: Map<String, Value> = members
                .iter()
                .map(|(name, schema)| (name.clone(), self.read(schema)))
                .collect();
            out.insert("properties".to_owned(), members.into());
        }
    }

    /// Returns the name under which a reference's schema is shared. `None` if the target does not
    /// exist.
    fn name(&mut self, reference: &str) -> Option<String> {
        if let Some(name) = self.names.get(reference) {
            return Some(name.clone());
        }
        if self.names.len() >= MAX_SCHEMAS || self.document.target(reference).is_none() {
            self.missing.insert(reference.to_owned());
            return None;
        }
        let own = reference
            .strip_prefix("#/components/schemas/")
            .filter(|name| !name.contains(['/', '~', '%']));
        let name = own.map_or_else(
            || {
                reference
                    .trim_start_matches("#/")
                    .replace(['/', '~', '%'], ".")
            },
            str::to_owned,
        );
        self.names.insert(reference.to_owned(), name.clone());
        self.waiting.push(reference.to_owned());
        Some(name)
    }

    /// Converts all schemas that are referred to.
    fn settle(&mut self) {
        while let Some(reference) = self.waiting.pop() {
            let Some(name) = self.names.get(&reference).cloned() else {
                continue;
            };
            if let Some(target) = self.document.target(&reference) {
                let schema = self.read(target);
                self.done.insert(name, schema);
            }
        }
    }

    /// Returns a converted schema with the references and parts at its top merged.
    pub(super) fn flat(&mut self, schema: &Value) -> Value {
        self.settle();
        schema::flat(schema, &self.done)
    }

    /// Adds all referenced schemas to the API, and reports the missing ones.
    pub(super) fn finish(mut self, api: &mut Api) {
        self.settle();
        api.schemas = self.done;
        for reference in self.missing {
            let what = format!(
                "the reference `{}` is not in this document",
                crate::text::line(&reference, 200)
            );
            api.unsupported.push(Unsupported::whole(what));
        }
    }
}

/// Converts exclusive bounds. Until 3.0, a flag next to a bound made it exclusive.
fn bounds(own: &Map<String, Value>, out: &mut Map<String, Value>) {
    for (flag, bound) in [
        ("exclusiveMaximum", "maximum"),
        ("exclusiveMinimum", "minimum"),
    ] {
        if let Some(exclusive) = own.get(flag).and_then(Value::as_bool) {
            out.shift_remove(flag);
            if let Some(value) = exclusive.then(|| out.shift_remove(bound)).flatten() {
                out.insert(flag.to_owned(), value);
            }
        }
    }
}

/// Allows null as well.
fn nullable(mut out: Map<String, Value>) -> Value {
    let says_more = out.keys().any(|keyword| keyword != "description");
    match out.get_mut("type") {
        Some(Value::String(kind)) => {
            let kinds = json!([kind.clone(), "null"]);
            out.insert("type".to_owned(), kinds);
        }
        Some(Value::Array(kinds)) if !kinds.contains(&"null".into()) => kinds.push("null".into()),
        Some(_) => {}
        None if !says_more => {}
        None => {
            let description = out.shift_remove("description");
            let mut either = json!({ "anyOf": [Value::Object(out), { "type": "null" }] });
            if let Some(description) = description {
                either["description"] = description;
            }
            return either;
        }
    }
    if let Some(Value::Array(choices)) = out.get_mut("enum")
        && !choices.contains(&Value::Null)
    {
        choices.push(Value::Null);
    }
    Value::Object(out)
}

/// Returns true if a value is the bytes of a file.
pub(super) fn is_binary(schema: &Value) -> bool {
    let text = schema
        .get("type")
        .is_none_or(|kind| kind == "string" || *kind == json!(["string", "null"]));
    let format = matches!(schema["format"].as_str(), Some("binary"));
    let media = schema["contentMediaType"]
        .as_str()
        .is_some_and(|media| media != "application/json");
    schema["type"] == "file" || (text && (format || media))
}
