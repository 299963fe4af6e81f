//! What the converter of a client makes of the schemas of tools.
//!
//! Client libraries turn the arguments of a tool into what a framework declares to its model. One of them
//! reads schemas into messages with fixed members, and refuses a tool with any other keyword, such as the
//! mark of a file.

use std::sync::Arc;

use axum::{extract::FromRequestParts, http::request::Parts};
use serde_json::{Map, Value};

use super::client_schema::{NAMED_SCHEMAS, SCHEMA_KEYWORDS};
use crate::{
    Server,
    http::{ApiError, ApiResult, signature::Input},
};

/// Headers in which a client states its library and its framework, with the values of the library that
/// reads schemas into messages.
const MESSAGE_CLIENT: [(&str, &str); 2] = [("x-source", "PYTHON_SDK"), ("x-framework", "google")];
/// Members of such messages, as keywords.
const MESSAGE_MEMBERS: [&str; 24] = [
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

/// The converter of a client, by the keywords that it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Converter {
    /// It takes all keywords.
    Open,
    /// It takes the members of messages.
    Messages,
}

impl Converter {
    /// Returns a schema of arguments without what the converter refuses.
    pub(super) fn fit(self, mut schema: Value) -> Value {
        if self == Self::Messages {
            restrict_inside(&mut schema);
        }
        schema
    }
}

impl Input for Converter {}

impl FromRequestParts<Arc<Server>> for Converter {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<Server>) -> ApiResult<Self> {
        let reads_messages = MESSAGE_CLIENT
            .iter()
            .all(|(name, value)| parts.headers.get(*name).is_some_and(|given| given == value));
        Ok(if reads_messages {
            Self::Messages
        } else {
            Self::Open
        })
    }
}

/// Takes what messages cannot hold out of all schemas inside a schema. Of the schema itself, the converter
/// reads the properties alone.
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

/// Takes what messages cannot hold out of a schema and of all schemas inside it.
fn restrict(schema: &mut Value) {
    if let Value::Object(members) = schema {
        members.retain(|keyword, value| is_held(keyword, value));
    } else {
        // Messages have no schemas that are true or false.
        *schema = Map::new().into();
    }
    restrict_inside(schema);
}

/// Says whether messages can hold a keyword with this value.
fn is_held(keyword: &str, value: &Value) -> bool {
    match keyword {
        "enum" => value
            .as_array()
            .is_some_and(|all| all.iter().all(Value::is_string)),
        "items" => value.is_object(),
        _ => MESSAGE_MEMBERS.contains(&keyword),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn message_schemas_have_known_members_only() {
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
            let fitted = Converter::Messages.fit(arguments.clone());
            assert_eq!(fitted["properties"]["p"], expected);
            assert_eq!(Converter::Open.fit(arguments.clone()), arguments);
        }
    }
}
