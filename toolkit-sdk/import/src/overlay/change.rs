//! Changes to operations and their arguments.

use serde_json::{Map, Value};

use super::{Argument, Change};
use crate::{
    Operation, names,
    schema::{self, Shared},
};

impl Change {
    pub(super) fn apply(
        &self,
        operation: &mut Operation,
        shared: &Shared,
        problems: &mut Vec<String>,
    ) {
        if let Some(title) = &self.title {
            operation.title.clone_from(title);
        }
        if let Some(description) = &self.description {
            operation.description.clone_from(description);
        }
        if let Some(tags) = &self.tags {
            operation.tags.clone_from(tags);
        }
        operation.synonyms.extend(self.synonyms.iter().cloned());
        if let Some(scopes) = &self.scopes {
            operation.scopes.clone_from(scopes);
        }
        operation.no_auth = self.no_auth.unwrap_or(operation.no_auth);
        let hints = &mut operation.hints;
        hints.read_only = self.hints.read_only.unwrap_or(hints.read_only);
        hints.destructive = self
            .hints
            .destructive
            .unwrap_or(hints.destructive && !hints.read_only);
        hints.idempotent = self.hints.idempotent.unwrap_or(hints.idempotent);
        hints.open_world = self.hints.open_world.unwrap_or(hints.open_world);
        operation.examples.extend(self.examples.iter().cloned());
        let hiding = Argument {
            hide: true,
            ..Argument::default()
        };
        let hidden = self.hide.iter().map(|name| (name, &hiding));
        for (name, change) in hidden.chain(&self.arguments) {
            if !argument(operation, name, change, shared) {
                problems.push(format!("`{}` has no argument `{name}`", operation.id));
            }
        }
    }
}

/// Changes an argument, which is a parameter or a property of the body. Returns false if the
/// operation does not have an argument with this name.
pub(super) fn argument(
    operation: &mut Operation,
    name: &str,
    change: &Argument,
    shared: &Shared,
) -> bool {
    let Some(parameter) = operation
        .parameters
        .iter_mut()
        .find(|parameter| parameter.name == name || names::argument(&parameter.name) == name)
    else {
        return member(operation, name, change, shared);
    };
    operation.names.extend(
        change
            .name
            .clone()
            .map(|given| (parameter.name.clone(), given)),
    );
    parameter.schema = changed(&parameter.schema, change, shared);
    parameter.required = change.required.unwrap_or(parameter.required);
    parameter.segments = change.segments.unwrap_or(parameter.segments);
    parameter.hidden |= change.hide || change.fixed.is_some();
    if let Some(value) = change.fixed.as_ref().or(change.default.as_ref()) {
        parameter.default = Some(value.clone());
    }
    true
}

fn member(operation: &mut Operation, name: &str, change: &Argument, shared: &Shared) -> bool {
    let Some(body) = &mut operation.body else {
        return false;
    };
    let mut whole = schema::flat(&body.schema, shared);
    let Some(members) = whole.get_mut("properties").and_then(Value::as_object_mut) else {
        return false;
    };
    let Some(key) = members
        .keys()
        .find(|own| *own == name || names::argument(own) == name)
        .cloned()
    else {
        return false;
    };
    operation
        .names
        .extend(change.name.clone().map(|given| (key.clone(), given)));
    if change.hide || change.fixed.is_some() {
        members.shift_remove(&key);
    } else if let Some(member) = members.get_mut(&key) {
        *member = changed(member, change, shared);
    }
    if let Some(value) = change.fixed.as_ref().or(change.default.as_ref()) {
        body.defaults.insert(key.clone(), value.clone());
    }
    let required = change
        .required
        .or((change.hide || change.fixed.is_some()).then_some(false));
    if let (Some(required), Some(whole)) = (required, whole.as_object_mut()) {
        require(whole, &key, required);
    }
    // An optional body cannot have a required property.
    body.required |= change.required == Some(true);
    body.schema = whole;
    true
}

fn require(whole: &mut Map<String, Value>, key: &str, required: bool) {
    let mut names = whole
        .get("required")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    names.retain(|name| name != key);
    if required {
        names.push(key.into());
    }
    whole.insert("required".to_owned(), Value::Array(names));
}

fn changed(schema: &Value, change: &Argument, shared: &Shared) -> Value {
    if change.description.is_none() && change.schema.is_none() {
        return schema.clone();
    }
    let mut schema = schema::flat(schema, shared);
    if let Some(patch) = &change.schema {
        merge(&mut schema, patch);
    }
    if let (Some(description), Some(schema)) = (&change.description, schema.as_object_mut()) {
        schema.insert("description".to_owned(), description.clone().into());
    }
    schema
}

/// Applies a JSON Merge Patch (RFC 7396).
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(members) = target.as_object_mut() else {
        return;
    };
    for (name, value) in patch {
        match value {
            Value::Null => {
                members.shift_remove(name);
            }
            value => merge(members.entry(name).or_insert(Value::Null), value),
        }
    }
}
