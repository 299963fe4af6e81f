//! The common model of both forms of a schema.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

/// A schema, reduced to the parts that tools use.
#[derive(Debug, Default)]
pub(super) struct Schema {
    pub(super) query: Option<String>,
    pub(super) mutation: Option<String>,
    pub(super) subscription: Option<String>,
    pub(super) types: BTreeMap<String, Type>,
}

#[derive(Debug)]
pub(super) struct Type {
    pub(super) description: String,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Scalar,
    Enum(Vec<Choice>),
    Input {
        fields: Vec<Argument>,
        /// True if the input takes exactly one of its fields.
        one_of: bool,
    },
    Object(Vec<Field>),
    Interface {
        fields: Vec<Field>,
        possible: Vec<String>,
    },
    Union(Vec<String>),
}

#[derive(Debug)]
pub(super) struct Choice {
    pub(super) name: String,
    pub(super) deprecated: bool,
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) arguments: Vec<Argument>,
    pub(super) ty: Ref,
    /// Reason of the deprecation.
    pub(super) deprecated: Option<String>,
}

/// An argument of a field, or a field of an input object.
#[derive(Debug)]
pub(super) struct Argument {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) ty: Ref,
    /// True if the provider has a default value for it.
    pub(super) has_default: bool,
    pub(super) default: Option<Value>,
    pub(super) deprecated: bool,
}

/// A use of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ref {
    Named(String),
    List(Box<Ref>),
    NonNull(Box<Ref>),
}

impl Schema {
    /// Returns the fields of an object or an interface.
    pub(super) fn fields(&self, name: &str) -> Option<&[Field]> {
        match &self.types.get(name)?.kind {
            Kind::Object(fields) | Kind::Interface { fields, .. } => Some(fields),
            _ => None,
        }
    }

    pub(super) fn field(&self, name: &str, field: &str) -> Option<&Field> {
        self.fields(name)?.iter().find(|it| it.name == field)
    }
}

impl Argument {
    pub(super) fn is_required(&self) -> bool {
        matches!(self.ty, Ref::NonNull(_)) && !self.has_default
    }
}

impl Ref {
    /// Returns the name of the type inside lists.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Named(name) => name,
            Self::List(inner) | Self::NonNull(inner) => inner.name(),
        }
    }

    pub(super) fn is_list(&self) -> bool {
        match self {
            Self::Named(_) => false,
            Self::List(_) => true,
            Self::NonNull(inner) => inner.is_list(),
        }
    }

    pub(super) fn nullable(&self) -> &Self {
        match self {
            Self::NonNull(inner) => inner,
            other => other,
        }
    }
}

impl fmt::Display for Ref {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => f.write_str(name),
            Self::List(inner) => write!(f, "[{inner}]"),
            Self::NonNull(inner) => write!(f, "{inner}!"),
        }
    }
}
