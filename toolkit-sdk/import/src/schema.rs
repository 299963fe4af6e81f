//! Converts schemas to the form that a manifest accepts: self-contained, bounded, and readable for
//! an agent.
//!
//! A reference is replaced by its target. If that would create a cycle, exceed the depth that a
//! manifest allows, or exceed the bytes of one schema, the reference becomes a schema of the same
//! type without its members. The schema that an agent reads is then shorter, and no value that the
//! provider accepts is refused.

mod alternatives;
mod keywords;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::text;

/// Schemas that others refer to.
pub(crate) type Shared = BTreeMap<String, Value>;

/// Direction of a value. A property that the provider only returns is not an argument, and the
/// reverse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    In,
    Out,
}

/// A schema without references.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct InlinedSchema {
    pub(crate) schema: Value,
    /// True if a part was left out for its size, its depth, or a cycle.
    pub(crate) cut: bool,
}

/// Limits to try, in order: nesting, bytes of one description, values of one list. The first that
/// fits is used.
const SIZE_LIMITS: [SizeLimits; 8] = [
    SizeLimits::new(12, 1000, 200),
    SizeLimits::new(8, 500, 100),
    SizeLimits::new(6, 300, 60),
    SizeLimits::new(5, 200, 40),
    SizeLimits::new(4, 160, 30),
    SizeLimits::new(3, 120, 20),
    SizeLimits::new(2, 80, 10),
    SizeLimits::new(1, 40, 5),
];

#[derive(Debug, Clone, Copy)]
struct SizeLimits {
    depth: usize,
    description: usize,
    values: usize,
}

impl SizeLimits {
    const fn new(depth: usize, description: usize, values: usize) -> Self {
        Self {
            depth,
            description,
            values,
        }
    }
}

/// Inlines a schema so that its text has at most `bytes` bytes. The time is bounded by `bytes`,
/// whatever the schema contains.
pub(crate) fn inline(
    schema: &Value,
    shared: &Shared,
    direction: Direction,
    bytes: usize,
) -> InlinedSchema {
    for limits in SIZE_LIMITS {
        let mut closing = Inliner {
            shared,
            direction,
            limits,
            left: bytes as isize,
            path: Vec::new(),
            cut: false,
        };
        let closed = closing.schema(schema, 0);
        if closing.left >= 0 && closed.to_string().len() <= bytes {
            return InlinedSchema {
                schema: closed,
                cut: closing.cut,
            };
        }
    }
    InlinedSchema {
        schema: kind_only(schema),
        cut: true,
    }
}

/// Resolves the references at the top of a schema and merges the parts of `allOf`, but leaves the
/// members as they are. Parts that cannot be merged are returned as they are.
pub(crate) fn flat(schema: &Value, shared: &Shared) -> Value {
    flatten(schema, shared, 0, &mut MAX_MERGED_PARTS.clone())
}

pub(crate) use alternatives::{Merged, merged};

/// Returns true if a property is read-only and therefore not an argument.
pub(crate) fn is_read_only(member: &Value, shared: &Shared) -> bool {
    has_flag(member, "readOnly", shared)
}

fn has_flag(member: &Value, word: &str, shared: &Shared) -> bool {
    is_true(member, word)
        || member
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|it| target_of(it, shared))
            .is_some_and(|target| is_true(target, word))
}

fn is_true(schema: &Value, word: &str) -> bool {
    schema.get(word).and_then(Value::as_bool) == Some(true)
}

/// Longest chain of references to references.
const MAX_REFERENCE_CHAIN: usize = 16;
/// Largest number of parts that are merged into one schema, including parts of parts.
const MAX_MERGED_PARTS: usize = 200;

fn flatten(schema: &Value, shared: &Shared, depth: usize, parts_left: &mut usize) -> Value {
    let Value::Object(own) = schema else {
        return schema.clone();
    };
    if depth > MAX_REFERENCE_CHAIN || *parts_left == 0 {
        return json!({});
    }
    *parts_left -= 1;
    if let Some(target) = own.get("$ref").and_then(Value::as_str) {
        let mut resolved = target_of(target, shared)
            .map(|target| flatten(target, shared, depth + 1, parts_left))
            .unwrap_or_else(|| json!({}));
        // Keywords next to a reference say more about this use of it.
        if let Some(resolved) = resolved.as_object_mut() {
            let siblings = own.iter().filter(|(keyword, _)| *keyword != "$ref");
            resolved.extend(siblings.map(|(keyword, value)| (keyword.clone(), value.clone())));
        }
        return resolved;
    }
    let Some(Value::Array(parts)) = own.get("allOf") else {
        return schema.clone();
    };
    let mut whole: Map<String, Value> = own
        .iter()
        .filter(|(keyword, _)| *keyword != "allOf")
        .map(owned)
        .collect();
    for part in parts {
        merge(&mut whole, flatten(part, shared, depth + 1, parts_left));
    }
    Value::Object(whole)
}

fn owned((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

/// Merges a part. Existing keywords stay; members and required names are joined.
fn merge(whole: &mut Map<String, Value>, part: Value) {
    let Value::Object(part) = part else { return };
    for (keyword, value) in part {
        match (whole.get_mut(&keyword), keyword.as_str()) {
            (None, _) => {
                whole.insert(keyword, value);
            }
            (Some(Value::Object(members)), "properties") => {
                for (name, member) in value.as_object().cloned().unwrap_or_default() {
                    match members.get_mut(&name) {
                        Some(Value::Object(known)) => merge(known, member),
                        Some(_) => {}
                        None => {
                            members.insert(name, member);
                        }
                    }
                }
            }
            (Some(Value::Array(names)), "required") => {
                for name in value.as_array().cloned().unwrap_or_default() {
                    if !names.contains(&name) {
                        names.push(name);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Returns the schema that `#/$defs/NAME` names.
fn target_of<'a>(reference: &str, shared: &'a Shared) -> Option<&'a Value> {
    shared.get(reference.strip_prefix("#/$defs/")?)
}

/// Keeps only the type of a schema.
fn kind_only(schema: &Value) -> Value {
    match schema.get("type").filter(|kind| keywords::is_type(kind)) {
        Some(kind) => json!({ "type": kind }),
        None if schema.get("properties").is_some_and(Value::is_object) => {
            json!({ "type": "object" })
        }
        None => json!({}),
    }
}

/// Adds the members that an object requires and does not describe. Model providers refuse their names.
fn describe_required(object: &mut Map<String, Value>) {
    let required = object.get("required").and_then(Value::as_array).cloned();
    let Some(Value::Object(properties)) = object.get_mut("properties") else {
        return;
    };
    for name in required.iter().flatten().filter_map(Value::as_str) {
        properties.entry(name).or_insert_with(|| json!({}));
    }
}

struct Inliner<'a> {
    shared: &'a Shared,
    direction: Direction,
    limits: SizeLimits,
    /// Bytes that may still be written. At zero, no further schema is inlined.
    left: isize,
    /// References that enclose the current schema.
    path: Vec<String>,
    cut: bool,
}

impl Inliner<'_> {
    fn schema(&mut self, schema: &Value, depth: usize) -> Value {
        let Value::Object(own) = schema else {
            return if schema.is_boolean() {
                schema.clone()
            } else {
                json!({})
            };
        };
        self.left -= 2;
        if self.left < 0 {
            self.cut = true;
            return json!({});
        }
        let Some(reference) = own.get("$ref").and_then(Value::as_str) else {
            return self.open(schema, depth);
        };
        if self.path.iter().any(|above| above == reference)
            || self.path.len() > MAX_REFERENCE_CHAIN * 4
        {
            self.cut = true;
            let kind = target_of(reference, self.shared).map_or_else(|| json!({}), kind_only);
            return self.described(kind, own);
        }
        let Some(target) = target_of(reference, self.shared) else {
            return self.described(json!({}), own);
        };
        self.path.push(reference.to_owned());
        let mut closed = self.schema(target, depth);
        self.path.pop();
        // Keywords next to a reference say more about this use of it.
        if let Some(closed) = closed.as_object_mut().filter(|_| own.len() > 1) {
            closed.extend(keywords::values(
                own,
                self.direction,
                self.limits.values,
                self.limits.description,
            ));
        }
        closed
    }

    /// Inlines a schema other than a reference.
    fn open(&mut self, schema: &Value, depth: usize) -> Value {
        let joined = schema
            .get("allOf")
            .is_some_and(Value::is_array)
            .then(|| flat(schema, self.shared));
        let schema = joined.as_ref().unwrap_or(schema);
        let Value::Object(own) = schema else {
            return json!({});
        };
        if depth >= self.limits.depth
            && ["properties", "items", "anyOf", "oneOf", "prefixItems"]
                .iter()
                .filter_map(|keyword| own.get(*keyword))
                .any(|value| value.is_object() || value.is_array())
        {
            self.cut = true;
            return self.described(kind_only(schema), own);
        }
        let mut out = keywords::values(
            own,
            self.direction,
            self.limits.values,
            self.limits.description,
        );
        self.left -= Value::Object(out.clone()).to_string().len() as isize;
        self.alternatives(own, &mut out, depth);
        self.members(own, &mut out, depth);
        if let Some(items) = own.get("items") {
            // A list of schemas, one for each position, is an older form that agents do not know.
            let items = if items.is_array() {
                json!({})
            } else {
                self.schema(items, depth + 1)
            };
            out.insert("items".to_owned(), items);
        } else if out.get("type").is_some_and(|kind| kind == "array") {
            // Model providers refuse lists without items.
            out.insert("items".to_owned(), json!({}));
        }
        Value::Object(out)
    }

    fn members(&mut self, own: &Map<String, Value>, out: &mut Map<String, Value>, depth: usize) {
        let mut gone = Vec::new();
        if let Some(Value::Object(members)) = own.get("properties") {
            let mut kept = Map::new();
            for (name, member) in members {
                if self.is_other_direction(member) {
                    gone.push(name.as_str());
                    continue;
                }
                self.left -= name.len() as isize + 4;
                kept.insert(manifest::cleaned(name), self.schema(member, depth + 1));
            }
            out.insert("properties".to_owned(), Value::Object(kept));
        }
        if let Some(Value::Array(required)) = out.get_mut("required") {
            required.retain(|name| name.as_str().is_some_and(|name| !gone.contains(&name)));
            if required.is_empty() {
                out.shift_remove("required");
            }
        }
        if self.direction == Direction::In {
            describe_required(out);
        }
        match own.get("additionalProperties") {
            Some(Value::Bool(false)) if self.direction == Direction::In => {
                out.insert("additionalProperties".to_owned(), false.into());
            }
            Some(more @ Value::Object(_)) => {
                let more = self.schema(more, depth + 1);
                out.insert("additionalProperties".to_owned(), more);
            }
            _ => {}
        }
    }

    /// Returns true if a property of an input is read-only, or a property of an output is
    /// write-only.
    fn is_other_direction(&self, member: &Value) -> bool {
        has_flag(
            member,
            if self.direction == Direction::In {
                "readOnly"
            } else {
                "writeOnly"
            },
            self.shared,
        )
    }

    /// Converts `oneOf` to `anyOf`, since a value may match several alternatives that were
    /// shortened.
    fn alternatives(
        &mut self,
        own: &Map<String, Value>,
        out: &mut Map<String, Value>,
        depth: usize,
    ) {
        let all = ["anyOf", "oneOf"]
            .iter()
            .filter_map(|keyword| own.get(*keyword)?.as_array())
            .find(|all| !all.is_empty());
        let Some(all) = all else { return };
        if all.len() > self.limits.values {
            self.cut = true;
            return;
        }
        let mut kept: Vec<Value> = Vec::new();
        for one in all {
            let closed = self.schema(one, depth + 1);
            if !kept.contains(&closed) {
                kept.push(closed);
            }
        }
        match kept.len() {
            1 if out.keys().all(|keyword| keyword == "description") => {
                if let Some(Value::Object(one)) = kept.pop() {
                    one.into_iter().for_each(|(keyword, value)| {
                        out.entry(keyword).or_insert(value);
                    });
                }
            }
            _ => {
                out.insert("anyOf".to_owned(), Value::Array(kept));
            }
        }
    }

    fn described(&mut self, mut schema: Value, own: &Map<String, Value>) -> Value {
        if let Some(description) = own.get("description").and_then(Value::as_str) {
            schema["description"] = text::block(description, self.limits.description).into();
        }
        self.left -= schema.to_string().len() as isize;
        schema
    }
}

#[cfg(test)]
mod tests;
