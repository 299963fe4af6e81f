//! Schemas of arguments for client libraries that refuse some keywords.
//!
//! A client library converts the arguments of a tool to the declaration of a function that its framework
//! sends to a model. One framework parses them as the Protocol Buffers message `Schema`, and refuses a tool
//! with any other keyword, such as the mark of a file.

use std::sync::Arc;

use axum::{extract::FromRequestParts, http::request::Parts};
use http::{ApiError, ApiResult, Server, signature::Input};
use serde_json::{Map, Value};

use super::client_schema::{NAMED_SCHEMAS, SCHEMA_KEYWORDS};

/// Headers in which a client states its library and its framework, with the values of the one that parses
/// schemas as messages.
const PROTOBUF_CLIENT_HEADERS: [(&str, &str); 2] =
    [("x-source", "PYTHON_SDK"), ("x-framework", "google")];
/// Fields of the message `Schema`.
const PROTOBUF_FIELDS: [&str; 24] = [
    "$defs",
    "$ref",
    "additionalProperties",
    "anyOf",
    "default",
    "description",
    "enum",
    "example",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "nullable",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
];

/// The converter of a client, by the keywords that it accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Converter {
    /// It accepts all keywords of JSON Schema.
    JsonSchema,
    /// It accepts the fields of the message.
    Protobuf,
}

impl Converter {
    /// Returns a schema of arguments without what the converter refuses.
    pub(super) fn fit(self, mut schema: Value) -> Value {
        if self == Self::Protobuf {
            restrict_inside(&mut schema);
        }
        schema
    }
}

impl Input for Converter {}

impl FromRequestParts<Arc<Server>> for Converter {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Server>) -> ApiResult<Self> {
        let is_protobuf = PROTOBUF_CLIENT_HEADERS
            .iter()
            .all(|(name, value)| parts.headers.get(*name).is_some_and(|given| given == value));
        Ok(if is_protobuf {
            Self::Protobuf
        } else {
            Self::JsonSchema
        })
    }
}

/// Removes what the message cannot hold from all schemas inside a schema. Of the schema itself, the
/// converter reads only the properties.
fn restrict_inside(schema: &mut Value) {
    let Value::Object(members) = schema else {
        return;
    };
    for (keyword, inside) in members {
        let keyword = keyword.as_str();
        match inside {
            Value::Object(named) if NAMED_SCHEMAS.contains(&keyword) => {
                named.values_mut().for_each(restrict);
            }
            Value::Array(all) if SCHEMA_KEYWORDS.contains(&keyword) => {
                all.iter_mut().for_each(restrict);
            }
            Value::Object(_) if SCHEMA_KEYWORDS.contains(&keyword) => restrict(inside),
            _ => {}
        }
    }
}

/// Removes what the message cannot hold from a schema and from all schemas inside it.
fn restrict(schema: &mut Value) {
    if let Value::Object(members) = schema {
        members.retain(|keyword, value| has_field(keyword, value));
    } else {
        // A boolean schema is not a message.
        *schema = Map::new().into();
    }
    restrict_inside(schema);
}

/// Returns true if the message has a field for a keyword with this value.
fn has_field(keyword: &str, value: &Value) -> bool {
    match keyword {
        "enum" => value
            .as_array()
            .is_some_and(|all| all.iter().all(Value::is_string)),
        "items" => value.is_object(),
        _ => PROTOBUF_FIELDS.contains(&keyword),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn protobuf_schemas_have_known_fields_only() {
        let file = json!({ "type": "object", "file_uploadable": true, "properties": { "s3key": { "type": "string" } } });
        let held = json!({ "type": "object", "properties": { "s3key": { "type": "string" } } });
        for (given, expected) in [
            (file.clone(), held.clone()),
            (
                json!({ "type": "array", "items": file, "uniqueItems": true }),
                json!({ "type": "array", "items": held }),
            ),
            (
                json!({ "anyOf": [file, { "type": "string", "examples": ["a"] }] }),
                json!({ "anyOf": [held, { "type": "string" }] }),
            ),
            (
                json!({ "type": "integer", "enum": [1, 2], "minimum": 1 }),
                json!({ "type": "integer", "minimum": 1 }),
            ),
            (
                json!({ "type": "string", "enum": ["a"], "default": { "x-b": 1 } }),
                json!({ "type": "string", "enum": ["a"], "default": { "x-b": 1 } }),
            ),
            (
                json!({ "type": "object", "properties": { "file_uploadable": true } }),
                json!({ "type": "object", "properties": { "file_uploadable": {} } }),
            ),
        ] {
            let arguments = json!({ "properties": { "p": given } });
            let fitted = Converter::Protobuf.fit(arguments.clone());
            assert_eq!(fitted["properties"]["p"], expected);
            assert_eq!(Converter::JsonSchema.fit(arguments.clone()), arguments);
        }
    }
}
