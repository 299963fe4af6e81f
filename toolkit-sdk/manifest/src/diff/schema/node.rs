//! A schema at one path: all demands there, gathered through references and `allOf`.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

pub(super) const NULL_KIND: u8 = 1;
pub(super) const BOOLEAN_KIND: u8 = 2;
pub(super) const INTEGER_KIND: u8 = 4;
/// A number with a fraction.
pub(super) const FRACTION_KIND: u8 = 8;
pub(super) const NUMBER_KIND: u8 = INTEGER_KIND | FRACTION_KIND;
pub(super) const STRING_KIND: u8 = 16;
pub(super) const ARRAY_KIND: u8 = 32;
pub(super) const OBJECT_KIND: u8 = 64;
const ALL_KINDS: u8 = 127;
const EVERY_KIND: [u8; 7] = [
    NULL_KIND,
    BOOLEAN_KIND,
    INTEGER_KIND,
    FRACTION_KIND,
    STRING_KIND,
    ARRAY_KIND,
    OBJECT_KIND,
];
/// Maximum number of references in a row. More are treated as a cycle.
const MAX_REFERENCE_CHAIN: usize = 64;
/// Maximum number of listed values that are split into separate nodes.
const MAX_SPLIT_VALUES: usize = 64;
/// Maximum depth of the search for a property that tells two objects apart.
const MAX_TAG_DEPTH: usize = 3;

/// All demands on one value. Each must hold.
#[derive(Debug, Clone)]
pub(super) struct Node<'a> {
    root: &'a Value,
    pub(super) maps: Vec<&'a Map<String, Value>>,
    choices: Vec<Choice<'a>>,
    /// Choices of which one form is already among the demands.
    decided: Vec<Choice<'a>>,
    /// True if no value is accepted.
    pub(super) never: bool,
    /// Accepted kinds of values.
    kinds: u8,
    /// The only accepted value, if the node accepts exactly one.
    value: Option<&'a Value>,
}

/// An `anyOf` or a `oneOf`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choice<'a> {
    pub(super) forms: &'a [Value],
    pub(super) exactly_one: bool,
}

impl<'a> Node<'a> {
    pub(super) fn new(schema: &'a Value, root: &'a Value) -> Self {
        let mut node = Self::anything(root);
        node.take(schema, 0);
        node
    }

    fn anything(root: &'a Value) -> Self {
        Self {
            root,
            maps: Vec::new(),
            choices: Vec::new(),
            decided: Vec::new(),
            never: false,
            kinds: ALL_KINDS,
            value: None,
        }
    }

    /// Returns the node of a schema inside this one.
    pub(super) fn child(&self, schema: &'a Value) -> Self {
        Self::new(schema, self.root)
    }

    fn take(&mut self, schema: &'a Value, depth: usize) {
        let Value::Object(map) = schema else {
            self.never |= *schema == Value::Bool(false);
            return;
        };
        // A schema with only a reference demands nothing by itself. Leaving it out lets a recursive
        // schema be recognized by its demands.
        if !(map.len() == 1 && map.contains_key("$ref")) {
            self.maps.push(map);
        }
        if let Some(Value::Array(all)) = map.get("allOf") {
            all.iter().for_each(|schema| self.take(schema, depth + 1));
        }
        for (keyword, exactly_one) in [("anyOf", false), ("oneOf", true)] {
            if let Some(Value::Array(forms)) = map.get(keyword) {
                self.choices.push(Choice { forms, exactly_one });
            }
        }
        if let Some(reference) = map.get("$ref") {
            let target = reference
                .as_str()
                .and_then(|text| self.root.pointer(text.strip_prefix('#')?));
            match target.filter(|_| depth < MAX_REFERENCE_CHAIN) {
                Some(target) => self.take(target, depth + 1),
                // A schema that cannot be read accepts no value.
                None => self.never = true,
            }
        }
    }

    /// Returns an open choice.
    pub(super) fn choice(&self) -> Option<Choice<'a>> {
        self.choices.last().copied()
    }

    /// Returns the node with one form of its last choice added to its demands.
    pub(super) fn with_form(&self, choice: Choice<'a>, form: &'a Value) -> Self {
        let mut node = self.clone();
        node.choices.pop();
        node.decided.push(choice);
        node.take(form, 0);
        node
    }

    /// Returns true if the node's values have already passed the same choice.
    pub(super) fn was_in(&self, choice: Choice<'_>) -> bool {
        self.decided.iter().any(|decided| {
            decided.exactly_one
                && decided.forms == choice.forms
                && choice.forms.iter().all(super::has_no_references)
        })
    }

    /// Returns a key that identifies the node.
    pub(super) fn key(&self) -> Vec<usize> {
        let maps = self.maps.iter().map(|map| std::ptr::from_ref(*map).addr());
        let value = self
            .value
            .map_or(0, |value| std::ptr::from_ref(value).addr());
        maps.chain([usize::from(self.kinds), value]).collect()
    }

    /// Returns the kinds of values that may be accepted.
    pub(super) fn mask(&self) -> u8 {
        let kinds = self
            .maps
            .iter()
            .fold(self.kinds, |kinds, map| kinds & mask_of(map));
        match self.finite() {
            Some(values) => kinds & values.iter().fold(0, |mask, value| mask | kind_of(value)),
            None => kinds,
        }
    }

    pub(super) fn accepts_nothing(&self) -> bool {
        self.never || self.mask() == 0
    }

    /// Returns the accepted values if they are listed.
    pub(super) fn finite(&self) -> Option<Vec<&'a Value>> {
        if let Some(value) = self.value {
            return Some(vec![value]);
        }
        let mut lists =
            self.maps
                .iter()
                .filter_map(|map| match (map.get("const"), map.get("enum")) {
                    (Some(value), _) => Some(std::slice::from_ref(value)),
                    (None, Some(Value::Array(values))) => Some(values.as_slice()),
                    _ => None,
                });
        let mut values: Vec<_> = lists.next()?.iter().collect();
        lists.for_each(|list| values.retain(|value| list.contains(value)));
        Some(values)
    }

    /// Returns nodes that together accept the same values: one per value, or one per kind.
    pub(super) fn parts(&self) -> Vec<Self> {
        if self.value.is_some() {
            return Vec::new();
        }
        if let Some(values) = self
            .finite()
            .filter(|values| values.len() <= MAX_SPLIT_VALUES)
        {
            return values
                .into_iter()
                .map(|value| Self {
                    value: Some(value),
                    ..self.clone()
                })
                .collect();
        }
        let mask = self.mask();
        EVERY_KIND
            .into_iter()
            .filter(|kind| mask & kind != 0)
            .map(|kind| Self {
                kinds: kind,
                ..self.clone()
            })
            .collect()
    }

    pub(super) fn values(&self, keyword: &str) -> impl Iterator<Item = &'a Value> {
        self.maps.iter().filter_map(move |map| map.get(keyword))
    }

    pub(super) fn keyword(&self, keyword: &str) -> Option<&'a Value> {
        self.values(keyword).next()
    }

    pub(super) fn requires(&self, name: &str) -> bool {
        self.values("required")
            .filter_map(Value::as_array)
            .flatten()
            .any(|required| required == name)
    }

    /// Returns the names of the declared properties.
    pub(super) fn declared(&self) -> BTreeSet<&'a str> {
        self.values("properties")
            .filter_map(Value::as_object)
            .flat_map(|map| map.keys().map(String::as_str))
            .collect()
    }

    /// Returns the demands on a declared property.
    pub(super) fn property(&self, name: &str) -> Self {
        let mut node = Self::anything(self.root);
        for map in &self.maps {
            match (property_of(map, name), map.get("additionalProperties")) {
                (Some(schema), _) => node.take(schema, 0),
                (None, Some(rest)) => node.take(rest, 0),
                (None, None) => {}
            }
        }
        node
    }

    /// Returns true if no value may have this property.
    pub(super) fn forbids(&self, name: &str) -> bool {
        self.property(name).accepts_nothing()
    }

    /// Returns the demands on undeclared properties, or `None` if undeclared properties cannot
    /// occur. A schema with properties is read as if it declared all of them.
    pub(super) fn more(&self) -> Option<Self> {
        let rest: Vec<_> = self
            .values("additionalProperties")
            .filter(|rest| **rest != Value::Bool(true))
            .collect();
        if self.keyword("patternProperties").is_some() {
            return Some(Self::anything(self.root));
        }
        if rest.contains(&&Value::Bool(false))
            || (rest.is_empty() && self.keyword("properties").is_some())
        {
            return None;
        }
        let mut node = Self::anything(self.root);
        rest.into_iter().for_each(|schema| node.take(schema, 0));
        Some(node)
    }

    /// Returns the demands on every item of a list, or `None` if positions have schemas of their
    /// own.
    pub(super) fn items(&self) -> Option<Self> {
        if self.keyword("prefixItems").is_some() || self.values("items").any(Value::is_array) {
            return None;
        }
        let mut node = Self::anything(self.root);
        self.values("items").for_each(|schema| node.take(schema, 0));
        Some(node)
    }

    /// Returns true if no value can be accepted by both nodes: they differ in kind, in listed
    /// values, or in a property that both require.
    pub(super) fn excludes(&self, other: &Self) -> bool {
        self.is_apart(other, MAX_TAG_DEPTH)
    }

    /// Returns true if this node may be a later version of the other: they share a kind, and no
    /// listed value of a required property tells them apart.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let needed = self
            .values("required")
            .filter_map(Value::as_array)
            .flatten()
            .filter_map(Value::as_str);
        self.mask() & other.mask() != 0
            && !needed.filter(|name| other.requires(name)).any(|name| {
                match (self.property(name).finite(), other.property(name).finite()) {
                    (Some(own), Some(others)) => !own.iter().any(|value| others.contains(value)),
                    _ => false,
                }
            })
    }

    fn is_apart(&self, other: &Self, depth: usize) -> bool {
        if self.never || other.never || self.mask() & other.mask() == 0 {
            return true;
        }
        if let (Some(own), Some(others)) = (self.finite(), other.finite())
            && !own.iter().any(|value| others.contains(value))
        {
            return true;
        }
        if depth == 0 || self.mask() != OBJECT_KIND || other.mask() != OBJECT_KIND {
            return false;
        }
        let needed = self
            .values("required")
            .chain(other.values("required"))
            .filter_map(Value::as_array)
            .flatten();
        needed.filter_map(Value::as_str).any(|name| {
            self.property(name)
                .is_apart(&other.property(name), depth - 1)
        })
    }
}

fn property_of<'a>(map: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    map.get("properties")?.as_object()?.get(name)
}

/// Returns the kinds of values that the `type` of a schema allows.
pub(super) fn mask_of(map: &Map<String, Value>) -> u8 {
    match map.get("type") {
        None => ALL_KINDS,
        Some(Value::Array(names)) => names.iter().fold(0, |all, name| all | mask_of_type(name)),
        Some(name) => mask_of_type(name),
    }
}

fn mask_of_type(name: &Value) -> u8 {
    match name.as_str() {
        Some("null") => NULL_KIND,
        Some("boolean") => BOOLEAN_KIND,
        Some("integer") => INTEGER_KIND,
        Some("number") => NUMBER_KIND,
        Some("string") => STRING_KIND,
        Some("array") => ARRAY_KIND,
        Some("object") => OBJECT_KIND,
        _ => 0,
    }
}

fn kind_of(value: &Value) -> u8 {
    match value {
        Value::Null => NULL_KIND,
        Value::Bool(_) => BOOLEAN_KIND,
        Value::Number(number) if number.as_f64().is_some_and(|number| number.fract() == 0.0) => {
            INTEGER_KIND
        }
        Value::Number(_) => FRACTION_KIND,
        Value::String(_) => STRING_KIND,
        Value::Array(_) => ARRAY_KIND,
        Value::Object(_) => OBJECT_KIND,
    }
}
