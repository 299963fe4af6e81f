//! Selects the fields of an object that agents are likely to want, as a selection set.
//!
//! The first level has all plain values and objects with fewer fields; the third level has only
//! plain values. Left out are fields with required arguments, deprecated fields, and objects inside
//! an object of their own type, so that no cycle occurs. A list of the Relay convention has its
//! items and its end. Inside other objects it has only its length, since providers count the cost
//! of such lists. A union or an interface has the name of its type and the values of each possible
//! type.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::input;
use super::model::{Field, Kind, Ref, Schema};

/// Largest number of fields of one document.
const MAX_FIELDS: usize = 200;
/// Largest number of plain values of one object, by level.
const MAX_VALUES_BY_LEVEL: [usize; 3] = [60, 12, 5];
/// Largest number of objects inside one object, by level.
const MAX_OBJECTS_BY_LEVEL: [usize; 3] = [15, 3, 0];
/// Largest number of possible types of one union or interface.
const MAX_POSSIBLE_TYPES: usize = 12;
/// Largest number of values of each possible type.
const MAX_FIELDS_PER_POSSIBLE_TYPE: usize = 10;
/// Largest number of fields of one type that are examined.
const MAX_EXAMINED_FIELDS: usize = 2_000;
/// Names of values that identify an object. They take precedence if not all values fit.
const IDENTIFYING_NAMES: [&str; 18] = [
    "id",
    "name",
    "title",
    "identifier",
    "key",
    "slug",
    "handle",
    "login",
    "number",
    "email",
    "url",
    "state",
    "status",
    "type",
    "amount",
    "description",
    "createdAt",
    "updatedAt",
];

/// A selection set, and the schema of its result.
#[derive(Debug)]
pub(super) struct Selected {
    /// ` { id name }`, or empty for a plain value.
    pub(super) text: String,
    pub(super) schema: Value,
}

/// Returns the selection for a field of this type.
pub(super) fn select(schema: &Schema, ty: &Ref) -> Selected {
    let mut selector = Selector {
        schema,
        left: MAX_FIELDS,
        path: Vec::new(),
    };
    let name = ty.name();
    if schema.is_leaf(name) {
        return Selected {
            text: String::new(),
            schema: wrapped(ty, leaf(schema, name)),
        };
    }
    let (text, inner) = match schema.connection(name) {
        Some(list) => selector.connection(name, list),
        None => selector.object(name, 0),
    };
    Selected {
        text: format!(" {{ {text} }}"),
        schema: wrapped(ty, inner),
    }
}

struct Selector<'a> {
    schema: &'a Schema,
    left: usize,
    /// Types that enclose the current one.
    path: Vec<&'a str>,
}

/// Parts of a selection set, and the members that they return.
#[derive(Default)]
struct SelectionSet {
    parts: Vec<String>,
    members: Map<String, Value>,
}

impl SelectionSet {
    fn add(&mut self, name: &str, text: &str, schema: Value) {
        self.parts.push(format!("{name}{text}"));
        self.members.insert(name.to_owned(), schema);
    }

    fn finish(mut self) -> (String, Value) {
        if self.parts.is_empty() {
            self.add("__typename", "", json!({ "type": "string" }));
        }
        (
            self.parts.join(" "),
            json!({ "type": "object", "properties": self.members }),
        )
    }
}

impl<'a> Selector<'a> {
    /// Selects the items, the length and the end of a list.
    fn connection(&mut self, name: &'a str, list: &str) -> (String, Value) {
        let schema = self.schema;
        let mut set = SelectionSet::default();
        self.path.push(name);
        if let Some(items) = schema.field(name, list) {
            let (text, inner) = self.items(items.ty.name(), list);
            set.add(list, &text, wrapped(&items.ty, inner));
        }
        self.path.pop();
        let info = schema
            .field(name, "pageInfo")
            .map(|info| info.ty.name())
            .unwrap_or_default();
        let told: Vec<&str> = ["hasNextPage", "endCursor"]
            .into_iter()
            .filter(|it| schema.field(info, it).is_some())
            .collect();
        let members: Map<String, Value> = told
            .iter()
            .map(|it| ((*it).to_owned(), json!({})))
            .collect();
        set.add(
            "pageInfo",
            &format!(" {{ {} }}", told.join(" ")),
            json!({ "type": "object", "properties": members }),
        );
        if let Some(count) = schema
            .field(name, "totalCount")
            .filter(|it| is_plain(it, schema))
        {
            set.add(
                "totalCount",
                "",
                wrapped(&count.ty, leaf(schema, count.ty.name())),
            );
        }
        set.finish()
    }

    /// Selects the items of a connection. They are on the first level even if an edge encloses
    /// them.
    fn items(&mut self, name: &'a str, list: &str) -> (String, Value) {
        let node = self.schema.field(name, "node").filter(|_| list == "edges");
        let Some(node) = node else {
            if self.schema.is_leaf(name) {
                return (String::new(), leaf(self.schema, name));
            }
            let (text, schema) = self.object(name, 0);
            return (format!(" {{ {text} }}"), schema);
        };
        let (text, inner) = self.items(node.ty.name(), "");
        let schema =
            json!({ "type": "object", "properties": { "node": wrapped(&node.ty, inner) } });
        (format!(" {{ node{text} }}"), schema)
    }

    /// Selects the parts of an object, an interface or a union.
    fn object(&mut self, name: &'a str, level: usize) -> (String, Value) {
        let schema = self.schema;
        self.path.push(name);
        let mut set = SelectionSet::default();
        match schema.types.get(name).map(|it| &it.kind) {
            Some(Kind::Object(fields)) => self.fields(fields, level, &mut set),
            Some(Kind::Interface { fields, possible }) => {
                set.add("__typename", "", json!({ "type": "string" }));
                self.fields(fields, level, &mut set);
                self.kinds(fields, possible, level, &mut set);
            }
            Some(Kind::Union(possible)) => {
                set.add("__typename", "", json!({ "type": "string" }));
                self.kinds(&[], possible, level, &mut set);
            }
            _ => {}
        }
        self.path.pop();
        set.finish()
    }

    fn fields(&mut self, fields: &'a [Field], level: usize, set: &mut SelectionSet) {
        let schema = self.schema;
        let fields = &fields[..fields.len().min(MAX_EXAMINED_FIELDS)];
        let plain: Vec<&Field> = fields
            .iter()
            .filter(|field| is_plain(field, schema))
            .collect();
        for field in first(plain, MAX_VALUES_BY_LEVEL[level].min(self.left)) {
            set.add(
                &field.name,
                "",
                wrapped(&field.ty, leaf(schema, field.ty.name())),
            );
            self.left -= 1;
        }
        let objects = fields
            .iter()
            .filter(|field| is_free(field) && !schema.is_leaf(field.ty.name()));
        let mut remaining = MAX_OBJECTS_BY_LEVEL[level];
        for field in objects {
            let name = field.ty.name();
            if schema.connection(name).is_some() {
                self.count(field, set);
                continue;
            }
            if remaining == 0 || self.left == 0 || self.path.contains(&name) {
                continue;
            }
            remaining -= 1;
            self.left -= 1;
            let (text, inner) = self.object(name, level + 1);
            set.add(
                &field.name,
                &format!(" {{ {text} }}"),
                wrapped(&field.ty, inner),
            );
        }
    }

    /// Selects the length of a list whose items are not selected.
    fn count(&mut self, field: &'a Field, set: &mut SelectionSet) {
        let count = self
            .schema
            .field(field.ty.name(), "totalCount")
            .filter(|it| is_plain(it, self.schema));
        if count.is_some() && self.left > 0 {
            self.left -= 1;
            let schema =
                json!({ "type": "object", "properties": { "totalCount": { "type": "integer" } } });
            set.add(&field.name, " { totalCount }", schema);
        }
    }

    /// Selects the values of each possible type in addition to the common fields. Values with the
    /// same name but different types cannot be part of one response.
    fn kinds(
        &mut self,
        common: &[Field],
        possible: &'a [String],
        level: usize,
        set: &mut SelectionSet,
    ) {
        let schema = self.schema;
        let mut told: BTreeMap<&str, &Ref> = BTreeMap::new();
        for name in possible.iter().take(MAX_POSSIBLE_TYPES) {
            let Some(Kind::Object(fields)) = schema.types.get(name).map(|it| &it.kind) else {
                continue;
            };
            let plain: Vec<&Field> = fields
                .iter()
                .take(MAX_EXAMINED_FIELDS)
                .filter(|field| {
                    is_plain(field, schema)
                        && common.iter().all(|it| it.name != field.name)
                        && told
                            .get(field.name.as_str())
                            .is_none_or(|ty| **ty == field.ty)
                })
                .collect();
            let chosen = first(
                plain,
                MAX_FIELDS_PER_POSSIBLE_TYPE
                    .min(MAX_VALUES_BY_LEVEL[level])
                    .min(self.left),
            );
            self.left -= chosen.len();
            let names: Vec<&str> = chosen.iter().map(|field| field.name.as_str()).collect();
            if !names.is_empty() {
                set.parts
                    .push(format!("... on {name} {{ {} }}", names.join(" ")));
            }
            for field in chosen {
                told.insert(&field.name, &field.ty);
                set.members.insert(
                    field.name.clone(),
                    wrapped(&field.ty, leaf(schema, field.ty.name())),
                );
            }
        }
    }
}

/// Returns true if a field is not deprecated and does not require arguments.
fn is_free(field: &Field) -> bool {
    field.deprecated.is_none()
        && !field
            .arguments
            .iter()
            .any(super::model::Argument::is_required)
}

fn is_plain(field: &Field, schema: &Schema) -> bool {
    is_free(field) && schema.is_leaf(field.ty.name())
}

/// Keeps at most this many fields in the order of the schema. Identifying fields take precedence.
fn first(mut fields: Vec<&Field>, most: usize) -> Vec<&Field> {
    if fields.len() > most {
        let mut ranked: Vec<(usize, usize)> = fields
            .iter()
            .map(|field| {
                IDENTIFYING_NAMES
                    .iter()
                    .position(|name| *name == field.name)
                    .unwrap_or(IDENTIFYING_NAMES.len())
            })
            .enumerate()
            .map(|(at, rank)| (rank, at))
            .collect();
        ranked.sort_unstable();
        let mut kept: Vec<usize> = ranked.into_iter().take(most).map(|(_, at)| at).collect();
        kept.sort_unstable();
        fields = kept.into_iter().map(|at| fields[at]).collect();
    }
    fields
}

fn leaf(schema: &Schema, name: &str) -> Value {
    match schema.types.get(name).map(|it| &it.kind) {
        Some(Kind::Enum(_)) => json!({ "type": "string" }),
        _ => input::scalar(name, ""),
    }
}

fn wrapped(ty: &Ref, inner: Value) -> Value {
    match ty {
        Ref::Named(_) => inner,
        Ref::NonNull(ty) => wrapped(ty, inner),
        Ref::List(ty) => json!({ "type": "array", "items": wrapped(ty, inner) }),
    }
}
