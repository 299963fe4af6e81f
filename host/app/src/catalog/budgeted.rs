//! JSON values that count the accesses of a validator.
//!
//! A validator follows its schema, which is not trusted, and lacks a limit of its own. It therefore
//! gets values that charge each access to a budget. When the budget is spent, objects and arrays
//! appear empty, so that the validation ends. Its result is then meaningless.

use std::{
    borrow::Cow,
    cell::Cell,
    collections::HashMap,
    hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState},
    mem, ptr,
};

use jsonschema::{
    JsonType,
    json::{Array, Json, Node, NodeIdentity, Object},
};
use serde_json::Value;

use crate::core::json::{Members, Tree};

/// Maximum length of a message about a value, in characters.
pub(super) const MAX_LINE_CHARS: usize = 300;
/// Number of bytes of a string that are read for one step.
const TEXT_BYTES_PER_STEP: usize = 64;

/// The number of steps that one validation may take.
#[derive(Debug)]
pub(super) struct Budget {
    /// The remaining steps, or zero when the budget is spent.
    left: Cell<u64>,
    /// The number of steps for each value that the validator enters. It accounts for schemas that
    /// only combine others and access no value.
    price: u64,
}

/// The representation of values for [`jsonschema`].
#[derive(Debug)]
pub(super) struct BudgetedJson;

/// A value or a part of one, and the budget that pays for accesses to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budgeted<'a, T> {
    inner: T,
    /// The budget, or `None` for property names, which are paid for with their properties.
    budget: Option<&'a Budget>,
}

pub(super) type BudgetedValue<'a> = Budgeted<'a, &'a Tree<'a>>;
type BudgetedObject<'a> = Budgeted<'a, Members<'a>>;
type BudgetedArray<'a> = Budgeted<'a, &'a [Tree<'a>]>;
type BudgetedMembers<'a> = Budgeted<'a, std::slice::Iter<'a, (&'a str, Tree<'a>)>>;
type BudgetedElements<'a> = Budgeted<'a, std::slice::Iter<'a, Tree<'a>>>;

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

impl<'a, T> Budgeted<'a, T> {
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
    fn part<P>(&self, inner: P) -> Budgeted<'a, P> {
        let budget = self.budget;
        Budgeted { inner, budget }
    }
}

impl BudgetedValue<'_> {
    /// Hashes a value, so that equal values have the same hash, and others with the same one cannot be
    /// found without the keys.
    fn hash(self, keys: &RandomState, hasher: &mut DefaultHasher) {
        if !self.pay(1) {
            return;
        }
        mem::discriminant(self.inner).hash(hasher);
        match self.inner {
            Tree::Null => {}
            Tree::Bool(value) => value.hash(hasher),
            Tree::Number(number) => hash_number(number, hasher),
            Tree::Text(text) => {
                self.pay(text.len() / TEXT_BYTES_PER_STEP);
                text.hash(hasher);
            }
            Tree::Array(elements) => {
                elements.len().hash(hasher);
                for element in *elements {
                    self.part(element).hash(keys, hasher);
                }
            }
            // The order of properties is irrelevant, so their hashes are added.
            Tree::Object(members) => {
                let hashes = members.iter().map(|(name, value)| {
                    let mut hasher = keys.build_hasher();
                    name.hash(&mut hasher);
                    self.part(value).hash(keys, &mut hasher);
                    hasher.finish()
                });
                let sum = hashes.fold(0, u64::wrapping_add);
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

impl Json for BudgetedJson {
    type Node<'a> = BudgetedValue<'a>;
    type PreparedKey = String;
    type StringBuffer = ();

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>((): &mut (), string: &str, f: impl FnOnce(BudgetedValue<'_>) -> T) -> T {
        let (inner, budget) = (&Tree::Text(string), None);
        f(Budgeted { inner, budget })
    }
}

impl<'a> Node<'a, BudgetedJson> for BudgetedValue<'a> {
    type Object = BudgetedObject<'a>;
    type Array = BudgetedArray<'a>;
    type Number = &'a serde_json::Number;

    fn as_object(&self) -> Option<BudgetedObject<'a>> {
        match self.inner {
            Tree::Object(members) if self.pay(1) => Some(self.part(*members)),
            _ => None,
        }
    }

    fn as_array(&self) -> Option<BudgetedArray<'a>> {
        match self.inner {
            Tree::Array(elements) if self.pay(1) => Some(self.part(*elements)),
            _ => None,
        }
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let Tree::Text(text) = self.inner else {
            return None;
        };
        self.pay(1 + text.len() / TEXT_BYTES_PER_STEP);
        Some(Cow::Borrowed(text))
    }

    fn as_number(&self) -> Option<&'a serde_json::Number> {
        self.pay(1);
        match self.inner {
            Tree::Number(number) => Some(number),
            _ => None,
        }
    }

    fn as_boolean(&self) -> Option<bool> {
        self.pay(1);
        match self.inner {
            Tree::Bool(value) => Some(*value),
            _ => None,
        }
    }

    fn is_null(&self) -> bool {
        self.pay(1);
        matches!(self.inner, Tree::Null)
    }

    fn json_type(&self) -> JsonType {
        self.pay(1);
        match self.inner {
            Tree::Null => JsonType::Null,
            Tree::Bool(_) => JsonType::Boolean,
            Tree::Number(_) => JsonType::Number,
            Tree::Text(_) => JsonType::String,
            Tree::Array(_) => JsonType::Array,
            Tree::Object(_) => JsonType::Object,
        }
    }

    fn equals_value(&self, expected: &Value) -> bool {
        self.pay(1);
        self.inner.equals(expected)
    }

    /// Returns the start of the value. It becomes a part of messages alone, which are as long.
    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Owned(self.inner.excerpt(MAX_LINE_CHARS))
    }

    fn identity(&self) -> Option<NodeIdentity> {
        self.pay(1);
        Some(NodeIdentity::new(ptr::from_ref(self.inner).addr()))
    }
}

impl<'a> Object<'a, BudgetedJson> for BudgetedObject<'a> {
    type Node = BudgetedValue<'a>;
    type MemberName = &'a str;
    type MembersIter = BudgetedMembers<'a>;

    fn len(&self) -> usize {
        self.inner.len()
    }

    fn get(&self, key: &String) -> Option<BudgetedValue<'a>> {
        if !self.pay(1) {
            return None;
        }
        let value = self.inner.get(key.as_str()).filter(|_| self.enter())?;
        Some(self.part(value))
    }

    fn members(&self) -> BudgetedMembers<'a> {
        self.part(self.inner.iter())
    }
}

impl<'a> Iterator for BudgetedMembers<'a> {
    type Item = (&'a str, BudgetedValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.inner.next().filter(|_| self.enter())?;
        Some((*name, self.part(value)))
    }
}

impl<'a> Array<'a, BudgetedJson> for BudgetedArray<'a> {
    type Node = BudgetedValue<'a>;
    type ElementsIter = BudgetedElements<'a>;

    fn len(&self) -> usize {
        self.inner.len()
    }

    fn elements(&self) -> BudgetedElements<'a> {
        self.part(self.inner.iter())
    }

    /// Hashes each part of each element once. The hash that [`jsonschema`] uses is the same for all
    /// nested arrays without values, so that comparing many of them would be quadratic.
    fn is_unique(&self) -> bool {
        let keys = RandomState::new();
        let mut seen = HashMap::new();
        self.inner.iter().all(|element| {
            let mut hasher = keys.build_hasher();
            self.part(element).hash(&keys, &mut hasher);
            let before = seen.insert(hasher.finish(), element);
            !before.is_some_and(|before| before.equals(&element.to_value()))
        })
    }
}

impl<'a> Iterator for BudgetedElements<'a> {
    type Item = BudgetedValue<'a>;

    fn next(&mut self) -> Option<BudgetedValue<'a>> {
        let value = self.inner.next().filter(|_| self.enter())?;
        Some(self.part(value))
    }
}
