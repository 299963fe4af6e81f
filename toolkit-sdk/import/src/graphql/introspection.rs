//! Reads the response to an introspection query: the whole response, its `data`, or its `__schema`
//! alone.

use serde::Deserialize;
use serde_json::Value;

use super::model::{self, Choice, Kind, Ref, Schema};
use crate::{Error, Result};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Root {
    query_type: Option<Named>,
    mutation_type: Option<Named>,
    subscription_type: Option<Named>,
    types: Vec<Type>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Type {
    kind: String,
    name: String,
    description: Option<String>,
    fields: Option<Vec<Field>>,
    input_fields: Option<Vec<Argument>>,
    enum_values: Option<Vec<EnumValue>>,
    possible_types: Option<Vec<Named>>,
    #[serde(default)]
    is_one_of: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Field {
    name: String,
    description: Option<String>,
    #[serde(default)]
    args: Vec<Argument>,
    #[serde(rename = "type")]
    ty: TypeRef,
    #[serde(default)]
    is_deprecated: bool,
    deprecation_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Argument {
    name: String,
    description: Option<String>,
    #[serde(rename = "type")]
    ty: TypeRef,
    default_value: Option<String>,
    #[serde(default)]
    is_deprecated: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EnumValue {
    name: String,
    #[serde(default)]
    is_deprecated: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TypeRef {
    kind: String,
    name: Option<String>,
    of_type: Option<Box<TypeRef>>,
}

pub(super) fn read(document: &Value) -> Result<Schema> {
    let places = ["/data/__schema", "/__schema", ""];
    let introspected = places
        .iter()
        .find_map(|place| {
            document
                .pointer(place)
                .filter(|it| it.get("types").is_some())
        })
        .ok_or_else(|| {
            Error::new("this is not the response to an introspection query: it has no `__schema`")
        })?;
    let root = Root::deserialize(introspected)
        .map_err(|cause| Error::new(format!("the introspection response is not valid: {cause}")))?;
    Ok(Schema {
        query: root.query_type.map(|ty| ty.name),
        mutation: root.mutation_type.map(|ty| ty.name),
        subscription: root.subscription_type.map(|ty| ty.name),
        types: root.types.into_iter().filter_map(kind).collect(),
    })
}

fn kind(ty: Type) -> Option<(String, model::Type)> {
    let fields = ty
        .fields
        .unwrap_or_default()
        .into_iter()
        .map(field)
        .collect::<Option<Vec<_>>>()?;
    let possible: Vec<String> = ty
        .possible_types
        .into_iter()
        .flatten()
        .map(|named| named.name)
        .collect();
    let kind = match ty.kind.as_str() {
        "SCALAR" => Kind::Scalar,
        "OBJECT" => Kind::Object(fields),
        "INTERFACE" => Kind::Interface { fields, possible },
        "UNION" => Kind::Union(possible),
        "ENUM" => Kind::Enum(
            ty.enum_values
                .unwrap_or_default()
                .into_iter()
                .map(|it| Choice {
                    name: it.name,
                    deprecated: it.is_deprecated,
                })
                .collect(),
        ),
        "INPUT_OBJECT" => Kind::Input {
            fields: ty
                .input_fields
                .unwrap_or_default()
                .into_iter()
                .map(argument)
                .collect::<Option<_>>()?,
            one_of: ty.is_one_of == Some(true),
        },
        _ => return None,
    };
    Some((
        ty.name,
        model::Type {
            description: ty.description.unwrap_or_default(),
            kind,
        },
    ))
}

fn field(field: Field) -> Option<model::Field> {
    Some(model::Field {
        name: field.name,
        description: field.description.unwrap_or_default(),
        arguments: field
            .args
            .into_iter()
            .map(argument)
            .collect::<Option<_>>()?,
        ty: reference(field.ty)?,
        deprecated: field
            .is_deprecated
            .then(|| field.deprecation_reason.unwrap_or_default()),
    })
}

fn argument(argument: Argument) -> Option<model::Argument> {
    Some(model::Argument {
        name: argument.name,
        description: argument.description.unwrap_or_default(),
        ty: reference(argument.ty)?,
        has_default: argument.default_value.is_some(),
        default: argument.default_value.and_then(|text| literal(&text)),
        deprecated: argument.is_deprecated,
    })
}

fn reference(ty: TypeRef) -> Option<Ref> {
    match ty.kind.as_str() {
        "NON_NULL" => Some(Ref::NonNull(Box::new(reference(*ty.of_type?)?))),
        "LIST" => Some(Ref::List(Box::new(reference(*ty.of_type?)?))),
        _ => ty.name.map(Ref::Named),
    }
}

/// Parses a default in the syntax of the schema language. Only values that are also JSON, and
/// values of an enumeration, are supported.
fn literal(text: &str) -> Option<Value> {
    match serde_json::from_str(text) {
        Ok(Value::Null) => None,
        Ok(value) => Some(value),
        Err(_) => {
            let is_name = !text.is_empty()
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            is_name.then(|| text.into())
        }
    }
}
