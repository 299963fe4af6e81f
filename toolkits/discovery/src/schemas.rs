//! Validation of values against the schemas of a document.

use std::collections::HashMap;

use boon::{Compiler, SchemaIndex};
use serde_json::{Map, Value, json};

use crate::document::Document;

const WHOLE_URL: &str = "https://description.example/whole.json";

pub(crate) struct Schemas {
    compiler: Compiler,
    schemas: boon::Schemas,
    known: HashMap<String, SchemaIndex>,
}

impl Schemas {
    pub(crate) fn new(document: &Document) -> Self {
        let mut compiler = Compiler::new();
        let all: Map<String, Value> = document.json["schemas"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, schema)| (name.clone(), closed(schema)))
            .collect();
        compiler
            .add_resource(WHOLE_URL, json!({ "$defs": all }))
            .expect("the schemas are a document");
        Self {
            compiler,
            schemas: boon::Schemas::new(),
            known: HashMap::new(),
        }
    }

    /// Validates a value against a schema of the document.
    pub(crate) fn problems(&mut self, name: &str, value: &Value) -> Vec<String> {
        self.check(format!("{WHOLE_URL}#/$defs/{name}"), value)
    }

    /// Validates the text of a parameter, which may stand for a number or a boolean.
    pub(crate) fn problems_of_text(&mut self, schema: &Value, text: &str) -> Vec<String> {
        let kind = schema["type"].as_str().unwrap_or("string");
        let value = if kind == "string" {
            text.into()
        } else {
            serde_json::from_str(text).unwrap_or(Value::from(text))
        };
        let mut schema = closed(schema);
        for limit in ["minimum", "maximum"] {
            if let Some(number) = schema[limit]
                .as_str()
                .and_then(|text| text.parse::<i64>().ok())
            {
                schema[limit] = number.into();
            }
        }
        self.problems_of_other(&schema.to_string(), &schema, &value)
    }

    /// Validates a value against a schema from outside the document.
    pub(crate) fn problems_of_other(
        &mut self,
        name: &str,
        schema: &Value,
        value: &Value,
    ) -> Vec<String> {
        let address = format!(
            "https://other.example/{}",
            percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC)
        );
        if !self.known.contains_key(&address) {
            self.compiler
                .add_resource(&address, schema.clone())
                .expect("a schema is a document");
        }
        self.check(address, value)
    }

    fn check(&mut self, address: String, value: &Value) -> Vec<String> {
        let index = match self.known.get(&address) {
            Some(index) => *index,
            None => {
                let compiled = self.compiler.compile(&address, &mut self.schemas);
                let index = compiled.unwrap_or_else(|error| panic!("{address}: {error:#}"));
                self.known.insert(address, index);
                index
            }
        };
        self.schemas
            .validate(value, index)
            .err()
            .map(|error| format!("{error:#}"))
            .into_iter()
            .collect()
    }
}

/// Converts a schema to JSON Schema that forbids unknown properties.
fn closed(schema: &Value) -> Value {
    if let Some(name) = schema["$ref"].as_str() {
        return json!({ "$ref": format!("#/$defs/{name}") });
    }
    let mut out = Map::new();
    for word in ["enum", "minimum", "maximum", "pattern"] {
        out.extend(
            schema
                .get(word)
                .map(|value| (word.to_owned(), value.clone())),
        );
    }
    let kind = schema["type"].as_str().filter(|kind| *kind != "any");
    out.extend(kind.map(|kind| ("type".to_owned(), kind.into())));
    if let Some(items) = schema.get("items") {
        out.insert("items".to_owned(), closed(items));
    }
    if kind == Some("object") {
        let members: Map<String, Value> = schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, member)| (name.clone(), closed(member)))
            .collect();
        out.insert("properties".to_owned(), members.into());
        let more = schema
            .get("additionalProperties")
            .map_or(Value::Bool(false), closed);
        out.insert("additionalProperties".to_owned(), more);
    }
    out.into()
}
