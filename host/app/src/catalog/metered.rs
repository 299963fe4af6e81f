//! JSON values that count the accesses of a validator.
//!
//! A validator follows its schema, which is not trusted, and has no limit of its own. It is
//! therefore given values that charge each access to a budget. When the budget is spent, objects
//! and arrays appear empty, so that the validation ends. Its result is then meaningless.

use std::{
    borrow::Cow,
    cell::Cell,
    collections::HashMap,
    hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState},
    mem,
};

use jsonschema::{
    JsonType,
    json::{Array, Json, Node, NodeIdentity, Object},
};
use serde_json::{Map, Value};

/// Number of bytes of a text that are read for one step.
const TEXT_BYTES_PER_STEP: usize = 64;

/// The number of steps that one validation may take.
#[derive(Debug)]
pub(super) struct Budget {
    /// The remaining steps, or zero when the budget is spent.
    left: Cell<u64>,
    /// The number of steps for each value that is entered. It accounts for schemas that only
    /// combine others and access no value.
    price: u64,
}

/// The representation of values for [`jsonschema`].
#[derive(Debug)]
pub(super) struct Metered;

/// A value or a part of one, and the budget that pays for accesses to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paid<'a, T> {
    inner: T,
    /// The budget, or `None` for property names, which are paid for with their members.
    budget: Option<&'a Budget>,
}

pub(super) type MeteredValue<'a> = Paid<'a, &'a Value>;
type MeteredObject<'a> = Paid<'a, &'a Map<String, Value>>;
type MeteredArray<'a> = Paid<'a, &'a [Value]>;
type Members<'a> = Paid<'a, serde_json::map::Iter<'a>>;
type Elements<'a> = Paid<'a, std::slice::Iter<'a, Value>>;

impl Budget {
    pub(super) fn new(steps: u64, price: u64) -> Self {
        Self {
            left: Cell::new(steps),
            price,
        }
    }

    /// Returns true if the validation ran out of steps, so that its result is meaningless.
    pub(super) fn is_spent(&self) -> bool {
        self.left.get() == 0
    }

    fn pay(&self, steps: u64) -> bool {
        let left = self.left.get().saturating_sub(steps);
        self.left.set(left);
        left > 0
    }
}

impl<'a, T> Paid<'a, T> {
    pub(super) fn new(inner: T, budget: &'a Budget) -> Self {
        let budget = Some(budget);
        Self { inner, budget }
    }

    /// Charges accesses. Returns false if the budget is spent.
    fn pay(&self, steps: usize) -> bool {
        self.budget.is_none_or(|budget| budget.pay(steps as u64))
    }

    /// Charges the entry into a value. Returns false if the budget is spent.
    fn enter(&self) -> bool {
        self.budget.is_none_or(|budget| budget.pay(budget.price))
    }

    /// Returns a part, whose accesses the same budget pays for.
    fn part<P>(&self, inner: P) -> Paid<'a, P> {
        let budget = self.budget;
        Paid { inner, budget }
    }
}

impl MeteredValue<'_> {
    /// Hashes a value, so that equal values have the same hash, and others with the same one cannot be
    /// found without the keys.
    fn hash(self, keys: &RandomState, hasher: &mut DefaultHasher) {
        if !self.pay(1) {
            return;
        }
        mem::discriminant(self.inner).hash(hasher);
        match self.inner {
            Value::Null => {}
            Value::Bool(value) => value.hash(hasher),
            Value::Number(number) => hash_number(number, hasher),
            Value::String(text) => {
                self.pay(text.len() / TEXT_BYTES_PER_STEP);
                text.hash(hasher);
            }
            Value::Array(elements) => {
                elements.len().hash(hasher);
                for element in elements {
                    self.part(element).hash(keys, hasher);
                }
            }
            // The order of members has no meaning, so their hashes are added.
            Value::Object(members) => {
                let hash_of = |(name, value): (&String, &Value)| {
                    let mut hasher = keys.build_hasher();
                    name.hash(&mut hasher);
                    self.part(value).hash(keys, &mut hasher);
                    hasher.finish()
                };
                let sum = members.iter().map(hash_of).fold(0, u64::wrapping_add);
                (members.len(), sum).hash(hasher);
            }
        }
    }
}

/// Hashes a number. A whole one has one hash, however it is written.
fn hash_number(number: &serde_json::Number, hasher: &mut DefaultHasher) {
    let fraction = number.as_f64().unwrap_or_default();
    let is_whole = fraction.fract() == 0.0 && fraction.abs() < u64::MAX as f64;
    match (number.as_i128(), is_whole) {
        (Some(whole), _) => whole.hash(hasher),
        (None, true) => (fraction as i128).hash(hasher),
        (None, false) => fraction.to_bits().hash(hasher),
    }
}

impl Json for Metered {
    type Node<'a> = MeteredValue<'a>;
    type PreparedKey = String;
    type StringBuffer = Value;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>(
        buffer: &mut Value,
        string: &str,
        f: impl FnOnce(MeteredValue<'_>) -> T,
    ) -> T {
        *buffer = Value::String(string.to_owned());
        let (inner, budget) = (&*buffer, None);
        f(Paid { inner, budget })
    }
}

impl<'a> Node<'a, Metered> for MeteredValue<'a> {
    type Object = MeteredObject<'a>;
    type Array = MeteredArray<'a>;
    type Number = &'a serde_json::Number;

    fn as_object(&self) -> Option<MeteredObject<'a>> {
        let members = self.inner.as_object().filter(|_| self.pay(1))?;
        Some(self.part(members))
    }

    fn as_array(&self) -> Option<MeteredArray<'a>> {
        let items = self.inner.as_array().filter(|_| self.pay(1))?;
        Some(self.part(items.as_slice()))
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let text = self.inner.as_str()?;
        self.pay(1 + text.len() / TEXT_BYTES_PER_STEP);
        Some(Cow::Borrowed(text))
    }

    fn as_number(&self) -> Option<&'a serde_json::Number> {
        self.pay(1);
        self.inner.as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        self.pay(1);
        self.inner.as_bool()
    }

    fn is_null(&self) -> bool {
        self.pay(1);
        self.inner.is_null()
    }

    fn json_type(&self) -> JsonType {
        self.pay(1);
        self.inner.json_type()
    }

    fn string_length(&self) -> Option<u64> {
        let text = self.inner.as_str()?;
        self.pay(1 + text.len() / TEXT_BYTES_PER_STEP);
        self.inner.string_length()
    }

    fn equals_value(&self, expected: &Value) -> bool {
        self.pay(1);
        self.inner.equals_value(expected)
    }

    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Borrowed(self.inner)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        self.pay(1);
        self.inner.identity()
    }
}

impl<'a> Object<'a, Metered> for MeteredObject<'a> {
    type Node = MeteredValue<'a>;
    type MemberName = &'a str;
    type MembersIter = Members<'a>;

    fn len(&self) -> usize {
        self.inner.len()
    }

    fn get(&self, key: &String) -> Option<MeteredValue<'a>> {
        if !self.pay(1) {
            return None;
        }
        let value = self.inner.get(key.as_str()).filter(|_| self.enter())?;
        Some(self.part(value))
    }

    fn members(&self) -> Members<'a> {
        self.part(self.inner.iter())
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, MeteredValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.inner.next().filter(|_| self.enter())?;
        Some((name.as_str(), self.part(value)))
    }
}

impl<'a> Array<'a, Metered> for MeteredArray<'a> {
    type Node = MeteredValue<'a>;
    type ElementsIter = Elements<'a>;

    fn len(&self) -> usize {
        self.inner.len()
    }

    fn elements(&self) -> Elements<'a> {
        self.part(self.inner.iter())
    }

    /// Hashes each part of each element once. The hash that [`jsonschema`] uses is the same for all
    /// nested arrays without values, so that comparing many of them would be quadratic.
    fn is_unique(&self) -> bool {
        let keys = RandomState::new();
        let mut seen = HashMap::new();
        let is_new = |element: &'a Value| {
            let mut hasher = keys.build_hasher();
            self.part(element).hash(&keys, &mut hasher);
            let before = seen.insert(hasher.finish(), element);
            !before.is_some_and(|before| before.equals_value(element))
        };
        self.inner.iter().all(is_new)
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = MeteredValue<'a>;

    fn next(&mut self) -> Option<MeteredValue<'a>> {
        let value = self.inner.next().filter(|_| self.enter())?;
        Some(self.part(value))
    }
}
