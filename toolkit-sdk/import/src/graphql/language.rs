//! Reads the schema language.

use std::collections::BTreeMap;

use apollo_compiler::ast::{self, Definition, DirectiveList, OperationType};
use apollo_compiler::parser::Parser;
use serde_json::Value;

use super::model::{Argument, Choice, Field, Kind, Ref, Schema, Type};
use crate::{Error, Result};

/// Largest nesting depth of types in lists and values in values.
const MAX_DEPTH: usize = 100;
const MAX_TOKENS: usize = 5_000_000;

/// Parses definitions in the schema language. Extensions are merged into the types that they
/// extend.
pub(super) fn read(source: &str) -> Result<Schema> {
    let parsed = Parser::new()
        .recursion_limit(MAX_DEPTH)
        .token_limit(MAX_TOKENS)
        .parse_ast(source, "schema.graphql");
    let document = parsed.map_err(|failed| {
        let first = failed.errors.iter().next().map(|error| {
            let line = error
                .line_column_range()
                .map(|range| format!("line {}: ", range.start.line))
                .unwrap_or_default();
            format!("{line}{}", error.error)
        });
        Error::new(format!(
            "the schema cannot be read: {}",
            first.unwrap_or_else(|| "unknown error".to_owned())
        ))
    })?;
    let mut schema = Schema::default();
    let mut implementors: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut roots = false;
    for definition in &document.definitions {
        roots |= matches!(definition, Definition::SchemaDefinition(_));
        define(definition, &mut schema, &mut implementors);
    }
    if !roots {
        let known = |name: &str| schema.types.contains_key(name).then(|| name.to_owned());
        schema.query = schema.query.take().or_else(|| known("Query"));
        schema.mutation = schema.mutation.take().or_else(|| known("Mutation"));
        schema.subscription = schema.subscription.take().or_else(|| known("Subscription"));
    }
    for (interface, types) in implementors {
        if let Some(Kind::Interface { possible, .. }) =
            schema.types.get_mut(&interface).map(|it| &mut it.kind)
        {
            possible.extend(types);
        }
    }
    if schema.query.is_none() && schema.mutation.is_none() {
        return Err(Error::new(
            "the schema has neither a query nor a mutation type",
        ));
    }
    Ok(schema)
}

fn define(
    definition: &Definition,
    schema: &mut Schema,
    implementors: &mut BTreeMap<String, Vec<String>>,
) {
    match definition {
        Definition::SchemaDefinition(it) => return add_roots(schema, &it.root_operations),
        Definition::SchemaExtension(it) => return add_roots(schema, &it.root_operations),
        _ => {}
    }
    let objects = match definition {
        Definition::ObjectTypeDefinition(it) => Some((&it.name, &it.implements_interfaces)),
        Definition::ObjectTypeExtension(it) => Some((&it.name, &it.implements_interfaces)),
        _ => None,
    };
    for (name, interface) in objects
        .into_iter()
        .flat_map(|(name, all)| all.iter().map(move |it| (name, it)))
    {
        implementors
            .entry(interface.to_string())
            .or_default()
            .push(name.to_string());
    }
    let Some((name, description, kind)) = kind(definition) else {
        return;
    };
    let made = schema.types.entry(name).or_insert_with(|| Type {
        description: String::new(),
        kind: kind.empty(),
    });
    if !description.is_empty() {
        made.description = description;
    }
    made.kind.join(kind);
}

/// Sets the types of the operations that a definition or an extension of the schema names.
fn add_roots(
    schema: &mut Schema,
    operations: &[apollo_compiler::Node<(OperationType, ast::NamedType)>],
) {
    for operation in operations {
        let root = match operation.0 {
            OperationType::Query => &mut schema.query,
            OperationType::Mutation => &mut schema.mutation,
            OperationType::Subscription => &mut schema.subscription,
        };
        *root = Some(operation.1.to_string());
    }
}

fn kind(definition: &Definition) -> Option<(String, String, Kind)> {
    Some(match definition {
        Definition::ScalarTypeDefinition(it) => (
            it.name.to_string(),
            description(it.description.as_ref()),
            Kind::Scalar,
        ),
        Definition::EnumTypeDefinition(it) => (
            it.name.to_string(),
            description(it.description.as_ref()),
            Kind::Enum(choices(&it.values)),
        ),
        Definition::EnumTypeExtension(it) => (
            it.name.to_string(),
            String::new(),
            Kind::Enum(choices(&it.values)),
        ),
        Definition::InputObjectTypeDefinition(it) => {
            let one_of = it.directives.has("oneOf");
            (
                it.name.to_string(),
                description(it.description.as_ref()),
                Kind::Input {
                    fields: arguments(&it.fields),
                    one_of,
                },
            )
        }
        Definition::InputObjectTypeExtension(it) => (
            it.name.to_string(),
            String::new(),
            Kind::Input {
                fields: arguments(&it.fields),
                one_of: false,
            },
        ),
        Definition::ObjectTypeDefinition(it) => (
            it.name.to_string(),
            description(it.description.as_ref()),
            Kind::Object(fields(&it.fields)),
        ),
        Definition::ObjectTypeExtension(it) => (
            it.name.to_string(),
            String::new(),
            Kind::Object(fields(&it.fields)),
        ),
        Definition::InterfaceTypeDefinition(it) => {
            let kind = Kind::Interface {
                fields: fields(&it.fields),
                possible: Vec::new(),
            };
            (
                it.name.to_string(),
                description(it.description.as_ref()),
                kind,
            )
        }
        Definition::InterfaceTypeExtension(it) => (
            it.name.to_string(),
            String::new(),
            Kind::Interface {
                fields: fields(&it.fields),
                possible: Vec::new(),
            },
        ),
        Definition::UnionTypeDefinition(it) => (
            it.name.to_string(),
            description(it.description.as_ref()),
            Kind::Union(names(&it.members)),
        ),
        Definition::UnionTypeExtension(it) => (
            it.name.to_string(),
            String::new(),
            Kind::Union(names(&it.members)),
        ),
        _ => return None,
    })
}

fn description(text: Option<&apollo_compiler::Node<str>>) -> String {
    text.map(|it| it.to_string()).unwrap_or_default()
}

fn names(names: &[ast::NamedType]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

fn choices(values: &[apollo_compiler::Node<ast::EnumValueDefinition>]) -> Vec<Choice> {
    values
        .iter()
        .map(|it| Choice {
            name: it.value.to_string(),
            deprecated: it.directives.has("deprecated"),
        })
        .collect()
}

fn fields(fields: &[apollo_compiler::Node<ast::FieldDefinition>]) -> Vec<Field> {
    fields
        .iter()
        .map(|it| Field {
            name: it.name.to_string(),
            description: description(it.description.as_ref()),
            arguments: arguments(&it.arguments),
            ty: reference(&it.ty),
            deprecated: deprecated(&it.directives),
        })
        .collect()
}

fn arguments(arguments: &[apollo_compiler::Node<ast::InputValueDefinition>]) -> Vec<Argument> {
    arguments
        .iter()
        .map(|it| Argument {
            name: it.name.to_string(),
            description: description(it.description.as_ref()),
            ty: reference(&it.ty),
            has_default: it.default_value.is_some(),
            default: it.default_value.as_ref().and_then(|value| json(value)),
            deprecated: it.directives.has("deprecated"),
        })
        .collect()
}

fn deprecated(directives: &DirectiveList) -> Option<String> {
    let directive = directives.get("deprecated")?;
    let reason = directive
        .specified_argument_by_name("reason")
        .and_then(|reason| reason.as_str());
    Some(reason.unwrap_or_default().to_owned())
}

fn reference(ty: &ast::Type) -> Ref {
    match ty {
        ast::Type::Named(name) => Ref::Named(name.to_string()),
        ast::Type::NonNullNamed(name) => Ref::NonNull(Box::new(Ref::Named(name.to_string()))),
        ast::Type::List(inner) => Ref::List(Box::new(reference(inner))),
        ast::Type::NonNullList(inner) => {
            Ref::NonNull(Box::new(Ref::List(Box::new(reference(inner)))))
        }
    }
}

/// Converts a value to JSON. Enumeration values become texts.
fn json(value: &ast::Value) -> Option<Value> {
    Some(match value {
        ast::Value::Null | ast::Value::Variable(_) => return None,
        ast::Value::Enum(name) => name.to_string().into(),
        ast::Value::String(text) => text.clone().into(),
        ast::Value::Float(number) => number.try_to_f64().ok()?.into(),
        ast::Value::Int(number) => number.as_str().parse::<i64>().ok()?.into(),
        ast::Value::Boolean(flag) => (*flag).into(),
        ast::Value::List(items) => items
            .iter()
            .map(|item| json(item))
            .collect::<Option<Vec<_>>>()?
            .into(),
        ast::Value::Object(members) => Value::Object(
            members
                .iter()
                .map(|(name, value)| Some((name.to_string(), json(value)?)))
                .collect::<Option<_>>()?,
        ),
    })
}

impl Kind {
    /// Returns the same kind without content.
    fn empty(&self) -> Self {
        match self {
            Self::Scalar => Self::Scalar,
            Self::Enum(_) => Self::Enum(Vec::new()),
            Self::Input { .. } => Self::Input {
                fields: Vec::new(),
                one_of: false,
            },
            Self::Object(_) => Self::Object(Vec::new()),
            Self::Interface { .. } => Self::Interface {
                fields: Vec::new(),
                possible: Vec::new(),
            },
            Self::Union(_) => Self::Union(Vec::new()),
        }
    }

    /// Adds the content of another definition or extension of the same type.
    fn join(&mut self, more: Self) {
        match (self, more) {
            (Self::Enum(own), Self::Enum(more)) => own.extend(more),
            (
                Self::Input { fields, one_of },
                Self::Input {
                    fields: more,
                    one_of: also,
                },
            ) => {
                fields.extend(more);
                *one_of |= also;
            }
            (
                Self::Object(own) | Self::Interface { fields: own, .. },
                Self::Object(more) | Self::Interface { fields: more, .. },
            ) => {
                own.extend(more);
            }
            (Self::Union(own), Self::Union(more)) => own.extend(more),
            _ => {}
        }
    }
}
