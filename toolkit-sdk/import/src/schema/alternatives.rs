//! Merges the alternatives at the top of arguments into one object: providers of models refuse them
//! there.

use serde_json::{Map, Value, json};

use super::{MAX_MERGED_PARTS, Shared, flatten};
use crate::text;

/// Deepest nesting of alternatives in alternatives.
const MAX_DEPTH: usize = 4;

/// A schema whose members can become arguments.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    /// Schema without `anyOf` and `oneOf`.
    pub(crate) schema: Map<String, Value>,
    /// Names that each alternative requires beyond those that all of them require. Empty if they require
    /// the same.
    pub(crate) choices: Vec<Vec<String>>,
}

/// Resolves the references at the top of a schema, and merges its parts and alternatives. A
/// property that only some alternatives require is optional.
pub(crate) fn merged(schema: &Value, shared: &Shared) -> Merged {
    merged_at(schema, shared, 0, &mut MAX_MERGED_PARTS.clone())
}

fn merged_at(schema: &Value, shared: &Shared, depth: usize, parts_left: &mut usize) -> Merged {
    let Value::Object(mut whole) = flatten(schema, shared, 0, parts_left) else {
        return Merged::default();
    };
    let mut choices = Vec::new();
    for keyword in ["anyOf", "oneOf"] {
        let Some(Value::Array(all)) = whole.shift_remove(keyword) else {
            continue;
        };
        if depth == MAX_DEPTH {
            continue;
        }
        let all: Vec<_> = all
            .iter()
            .map(|one| merged_at(one, shared, depth + 1, parts_left).schema)
            .collect();
        add_members(&mut whole, &all);
        let added = add_required(&mut whole, &all);
        if choices.is_empty() {
            choices = added;
        }
    }
    Merged {
        schema: whole,
        choices,
    }
}

/// Adds the members of alternatives. One that the schema has itself stays as it is.
fn add_members(whole: &mut Map<String, Value>, all: &[Map<String, Value>]) {
    let mut found: Map<String, Value> = Map::new();
    let members = all
        .iter()
        .filter_map(|one| one.get("properties")?.as_object());
    for (name, member) in members.flatten() {
        let known = found.entry(name.clone()).or_insert_with(|| json!([]));
        if let Some(known) = known.as_array_mut().filter(|known| !known.contains(member)) {
            known.push(member.clone());
        }
    }
    if !found.is_empty() {
        let own = whole.entry("properties").or_insert_with(|| json!({}));
        if let Value::Object(own) = own {
            for (name, schemas) in found {
                own.entry(name).or_insert_with(|| one_of(schemas));
            }
        }
    }
    let is_open = all.iter().any(|one| {
        one.get("additionalProperties")
            .is_some_and(|more| more.is_object() || *more == Value::Bool(true))
    });
    if is_open && !whole.contains_key("additionalProperties") {
        whole.insert("additionalProperties".to_owned(), true.into());
    }
}

/// Returns the schema of a property that alternatives describe in these ways.
fn one_of(mut schemas: Value) -> Value {
    let mut all = schemas
        .as_array_mut()
        .map(std::mem::take)
        .unwrap_or_default();
    if all.len() == 1 {
        return all.remove(0);
    }
    // The values that distinguish the alternatives.
    let Some(lists) = all.iter().map(values).collect::<Option<Vec<_>>>() else {
        return json!({ "anyOf": all });
    };
    let mut member = json!({ "enum": lists.concat() });
    for keyword in ["type", "description"] {
        let common = all
            .first()
            .and_then(|one| one.get(keyword))
            .filter(|value| all.iter().all(|one| one.get(keyword) == Some(*value)));
        if let Some(value) = common {
            member[keyword] = value.clone();
        }
    }
    member
}

/// Returns the only values that a schema allows, if it lists them.
fn values(schema: &Value) -> Option<Vec<Value>> {
    match (schema.get("const"), schema.get("enum")) {
        (Some(value), _) => Some(vec![value.clone()]),
        (None, Some(Value::Array(values))) => Some(values.clone()),
        _ => None,
    }
}

/// Adds the names that all alternatives require. Returns what each requires beyond them.
fn add_required(whole: &mut Map<String, Value>, all: &[Map<String, Value>]) -> Vec<Vec<String>> {
    let mut required = required_names(whole);
    let lists: Vec<_> = all.iter().map(required_names).collect();
    for name in lists.first().into_iter().flatten() {
        if lists.iter().all(|list| list.contains(name)) && !required.contains(name) {
            required.push(name.clone());
        }
    }
    let choices: Vec<Vec<String>> = lists
        .iter()
        .map(|list| {
            let own = list.iter().filter(|name| !required.contains(name));
            own.cloned().collect()
        })
        .collect();
    if !required.is_empty() {
        whole.insert("required".to_owned(), json!(required));
    }
    if choices.iter().all(Vec::is_empty) {
        return Vec::new();
    }
    choices
}

fn required_names(schema: &Map<String, Value>) -> Vec<String> {
    text::listed(schema.get("required"))
        .map(str::to_owned)
        .collect()
}
