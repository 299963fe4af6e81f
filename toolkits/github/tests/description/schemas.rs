//! Validation of values against the schemas of the description.

use std::collections::HashMap;

use boon::{Compiler, SchemaIndex};
use serde_json::{Value, json};

use crate::document::{Document, Place};

const WHOLE_URL: &str = "https://description.example/whole.json";
/// The same schemas with no required properties, for responses that are written down in part.
const PARTIAL_URL: &str = "https://description.example/part.json";

pub(crate) struct Schemas {
    compiler: Compiler,
    schemas: boon::Schemas,
    known: HashMap<String, SchemaIndex>,
}

impl Schemas {
    pub(crate) fn new(document: &Document) -> Self {
        let mut compiler = Compiler::new();
        let whole = as_json_schema(document.json.clone());
        let part = optional(whole.clone());
        compiler
            .add_resource(WHOLE_URL, whole)
            .expect("the description is a document");
        compiler
            .add_resource(PARTIAL_URL, part)
            .expect("the description is a document");
        Self {
            compiler,
            schemas: boon::Schemas::new(),
            known: HashMap::new(),
        }
    }

    /// Validates a value.
    pub(crate) fn problems(&mut self, schema: &Place, value: &Value) -> Vec<String> {
        self.check(format!("{WHOLE_URL}#{}", schema.0), value)
    }

    /// Validates a value that may lack required properties.
    pub(crate) fn problems_of_part(&mut self, schema: &Place, value: &Value) -> Vec<String> {
        self.check(format!("{PARTIAL_URL}#{}", schema.0), value)
    }

    /// Validates the text of a parameter, which may stand for a number or a boolean.
    pub(crate) fn problems_of_text(&mut self, schema: &Place, text: &str) -> Vec<String> {
        let problems = self.problems(schema, &Value::from(text));
        match serde_json::from_str::<Value>(text) {
            Ok(value) if !problems.is_empty() && !value.is_string() => {
                self.problems(schema, &value)
            }
            _ => problems,
        }
    }

    /// Validates a value against a schema from outside the description.
    pub(crate) fn problems_of_other(
        &mut self,
        name: &str,
        schema: &Value,
        value: &Value,
    ) -> Vec<String> {
        let address = format!("https://toolkit.example/{name}");
        if !self.known.contains_key(&address) {
            self.compiler
                .add_resource(&address, schema.clone())
                .expect("a schema of the manifest is a document");
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

/// Converts OpenAPI 3.0 schemas to JSON Schema: `nullable` becomes a choice with `null`.
fn as_json_schema(value: Value) -> Value {
    each(value, &|mut members| {
        let nullable = members.get("nullable") == Some(&Value::Bool(true));
        members.remove("nullable");
        if nullable {
            json!({ "anyOf": [members, { "type": "null" }] })
        } else {
            Value::Object(members)
        }
    })
}

fn optional(value: Value) -> Value {
    each(value, &|mut members| {
        if members.get("required").is_some_and(Value::is_array) {
            members.remove("required");
        }
        // Without required properties, more than one branch may match.
        if let Some(branches) = members.remove("oneOf") {
            members.insert("anyOf".to_owned(), branches);
        }
        Value::Object(members)
    })
}

/// Changes every object, inner ones first.
fn each(value: Value, change: &dyn Fn(serde_json::Map<String, Value>) -> Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(|item| each(item, change)).collect(),
        Value::Object(members) => change(
            members
                .into_iter()
                .map(|(name, member)| (name, each(member, change)))
                .collect(),
        ),
        other => other,
    }
}
