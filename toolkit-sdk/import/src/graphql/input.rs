//! Arguments: their description for an agent, and their position in a document.
//!
//! | Type | JSON Schema |
//! |---|---|
//! | `Int`, `Float`, `Boolean`, `String`, `ID` | integer, number, boolean, string, string |
//! | an enumeration | its values |
//! | an input object | an object; with `@oneOf` an object of exactly one property |
//! | `Date`, `DateTime`, `Time`, `URI`, `UUID`, `Email` and similar | string with that `format` |
//! | `BigInt`, `Long`, `Decimal` and similar | a number, or a string of digits |
//! | `JSON`, `Any` and similar | any value |
//! | `Upload` | not supported |
//! | any other scalar | any value, with its name and description |

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::model::{Argument, Kind, Ref, Schema};
use crate::text;

/// The arguments of a field.
pub(super) struct Arguments {
    pub(super) schema: Value,
    /// `($id: ID!)`, or empty.
    pub(super) variables: String,
    /// `(id: $id)`, or empty.
    pub(super) passed: String,
    /// Names of arguments that cannot be sent.
    pub(super) unsupported: Vec<String>,
}

pub(super) fn arguments(schema: &Schema, arguments: &[Argument]) -> Arguments {
    let (files, sent): (Vec<_>, Vec<_>) = arguments
        .iter()
        .filter(|it| !it.deprecated || it.is_required())
        .partition(|it| it.ty.name() == "Upload");
    let declared: Vec<String> = sent
        .iter()
        .map(|it| format!("${}: {}", it.name, declared(it)))
        .collect();
    let passed: Vec<String> = sent
        .iter()
        .map(|it| format!("{0}: ${0}", it.name))
        .collect();
    Arguments {
        schema: object(&sent, |argument| member(schema, argument, false)),
        variables: brackets(&declared),
        passed: brackets(&passed),
        unsupported: files.iter().map(|it| it.name.clone()).collect(),
    }
}

/// Returns the parts in brackets, or an empty string if there are no parts.
fn brackets(parts: &[String]) -> String {
    if parts.is_empty() {
        String::new()
    } else {
        format!("({})", parts.join(", "))
    }
}

/// Returns the type of a variable. A variable with a default of the provider may be omitted
/// (GraphQL, 5.8.5).
fn declared(argument: &Argument) -> String {
    if argument.has_default {
        argument.ty.nullable().to_string()
    } else {
        argument.ty.to_string()
    }
}

/// Returns the schemas of the types that arguments refer to.
pub(super) fn shared(schema: &Schema) -> BTreeMap<String, Value> {
    schema
        .types
        .iter()
        .filter_map(|(name, ty)| {
            let mut made = match &ty.kind {
                Kind::Enum(choices) => {
                    let values: Vec<&str> = choices
                        .iter()
                        .filter(|it| !it.deprecated)
                        .map(|it| it.name.as_str())
                        .collect();
                    json!({ "type": "string", "enum": values })
                }
                Kind::Input { fields, one_of } => {
                    let fields: Vec<&Argument> = fields
                        .iter()
                        .filter(|it| !it.deprecated || it.is_required())
                        .collect();
                    let mut made = object(&fields, |field| member(schema, field, !one_of));
                    made["additionalProperties"] = false.into();
                    if *one_of {
                        made["minProperties"] = 1.into();
                        made["maxProperties"] = 1.into();
                    }
                    made
                }
                _ => return None,
            };
            describe(&mut made, &ty.description);
            Some((name.clone(), made))
        })
        .collect()
}

fn object(members: &[&Argument], of: impl Fn(&Argument) -> Value) -> Value {
    let properties: Map<String, Value> =
        members.iter().map(|it| (it.name.clone(), of(it))).collect();
    let required: Vec<&str> = members
        .iter()
        .filter(|it| it.is_required())
        .map(|it| it.name.as_str())
        .collect();
    let mut made = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        made["required"] = json!(required);
    }
    made
}

/// Returns the schema of one argument or input field. In input objects null removes a value, so
/// null stays allowed there.
fn member(schema: &Schema, argument: &Argument, nullable: bool) -> Value {
    let mut made = type_schema(schema, &argument.ty);
    let open = nullable && !matches!(argument.ty, Ref::NonNull(_));
    if let (true, Some(kind)) = (
        open,
        made.get("type").filter(|kind| kind.is_string()).cloned(),
    ) {
        made["type"] = json!([kind, "null"]);
    }
    describe(&mut made, &argument.description);
    if let Some(default) = &argument.default {
        made["default"] = default.clone();
    }
    made
}

fn describe(schema: &mut Value, words: &str) {
    let words = text::block(words, 1000);
    if !words.is_empty() {
        schema["description"] = words.into();
    }
}

fn type_schema(schema: &Schema, ty: &Ref) -> Value {
    match ty {
        Ref::NonNull(inner) => type_schema(schema, inner),
        Ref::List(inner) => json!({ "type": "array", "items": type_schema(schema, inner) }),
        Ref::Named(name) => match schema.types.get(name).map(|it| &it.kind) {
            Some(Kind::Enum(_) | Kind::Input { .. }) => {
                json!({ "$ref": format!("#/$defs/{name}") })
            }
            _ => scalar(
                name,
                schema.types.get(name).map_or("", |it| &it.description),
            ),
        },
    }
}

/// Returns the schema of a scalar by its name, since a GraphQL schema says nothing else about its
/// values.
pub(super) fn scalar(name: &str, description: &str) -> Value {
    match name.to_ascii_lowercase().as_str() {
        "int" => json!({ "type": "integer" }),
        "float" => json!({ "type": "number" }),
        "boolean" => json!({ "type": "boolean" }),
        "string" | "id" => json!({ "type": "string" }),
        "datetime" | "datetimeiso" | "timestamptz" | "isodatetime" | "iso8601datetime"
        | "precisedatetime" => formatted("date-time"),
        "date" | "iso8601date" | "localdate" => formatted("date"),
        "time" | "localtime" => formatted("time"),
        "uri" | "url" => formatted("uri"),
        "uuid" => formatted("uuid"),
        "email" | "emailaddress" => formatted("email"),
        "bigint" | "long" | "int64" | "unsignedint64" | "decimal" | "bigdecimal" => {
            json!({ "type": ["number", "string"], "description": name })
        }
        "json" | "any" => json!({ "description": name }),
        "jsonobject" => json!({ "type": "object" }),
        _ => json!({ "description": text::block(&format!("{name}. {description}"), 300) }),
    }
}

fn formatted(format: &str) -> Value {
    json!({ "type": "string", "format": format })
}
