//! JSON values that count the accesses of a validator.
//!
//! A validator follows its schema, which is not trusted, and has no limit of its own. It is
//! therefore given values that charge each access to a budget. When the budget is spent, objects
//! and arrays appear empty, so that the validation ends. Its result is then meaningless.

use std::{borrow::Cow, cell::Cell};

use jsonschema::{
    JsonType,
    json::{Array, Json, Node, NodeIdentity, Object, unique},
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

/// A value, and the budget that pays for accesses to it.
#[derive(Debug, Clone, Copy)]
pub(super) struct MeteredValue<'a> {
    value: &'a Value,
    /// The budget, or `None` for property names, which are paid for with their members.
    budget: Option<&'a Budget>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct MeteredObject<'a> {
    members: &'a Map<String, Value>,
    budget: Option<&'a Budget>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct MeteredArray<'a> {
    items: &'a [Value],
    budget: Option<&'a Budget>,
}

pub(super) struct Members<'a> {
    members: serde_json::map::Iter<'a>,
    budget: Option<&'a Budget>,
}

pub(super) struct Elements<'a> {
    items: std::slice::Iter<'a, Value>,
    budget: Option<&'a Budget>,
}

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

/// Charges accesses to a value. Returns false if the budget is spent.
fn pay(budget: Option<&Budget>, steps: usize) -> bool {
    budget.is_none_or(|budget| budget.pay(steps as u64))
}

/// Charges the entry into a value. Returns false if the budget is spent.
fn enter(budget: Option<&Budget>) -> bool {
    budget.is_none_or(|budget| budget.pay(budget.price))
}

impl<'a> MeteredValue<'a> {
    pub(super) fn new(value: &'a Value, budget: &'a Budget) -> Self {
        Self {
            value,
            budget: Some(budget),
        }
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
        f(MeteredValue {
            value: buffer,
            budget: None,
        })
    }
}

impl<'a> Node<'a, Metered> for MeteredValue<'a> {
    type Object = MeteredObject<'a>;
    type Array = MeteredArray<'a>;
    type Number = &'a serde_json::Number;

    fn as_object(&self) -> Option<MeteredObject<'a>> {
        let members = self.value.as_object().filter(|_| pay(self.budget, 1))?;
        Some(MeteredObject {
            members,
            budget: self.budget,
        })
    }

    fn as_array(&self) -> Option<MeteredArray<'a>> {
        let items = self.value.as_array().filter(|_| pay(self.budget, 1))?;
        Some(MeteredArray {
            items,
            budget: self.budget,
        })
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let text = self.value.as_str()?;
        pay(self.budget, 1 + text.len() / TEXT_BYTES_PER_STEP);
        Some(Cow::Borrowed(text))
    }

    fn as_number(&self) -> Option<&'a serde_json::Number> {
        pay(self.budget, 1);
        self.value.as_number()
    }

    fn as_boolean(&self) -> Option<bool> {
        pay(self.budget, 1);
        self.value.as_bool()
    }

    fn is_null(&self) -> bool {
        pay(self.budget, 1);
        self.value.is_null()
    }

    fn json_type(&self) -> JsonType {
        pay(self.budget, 1);
        self.value.json_type()
    }

    fn string_length(&self) -> Option<u64> {
        let text = self.value.as_str()?;
        pay(self.budget, 1 + text.len() / TEXT_BYTES_PER_STEP);
        self.value.string_length()
    }

    fn equals_value(&self, expected: &Value) -> bool {
        pay(self.budget, 1);
        self.value.equals_value(expected)
    }

    fn to_value(&self) -> Cow<'a, Value> {
        Cow::Borrowed(self.value)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        pay(self.budget, 1);
        self.value.identity()
    }
}

impl<'a> Object<'a, Metered> for MeteredObject<'a> {
    type Node = MeteredValue<'a>;
    type MemberName = &'a str;
    type MembersIter = Members<'a>;

    fn len(&self) -> usize {
        self.members.len()
    }

    fn get(&self, key: &String) -> Option<MeteredValue<'a>> {
        if !pay(self.budget, 1) {
            return None;
        }
        let value = self
            .members
            .get(key.as_str())
            .filter(|_| enter(self.budget))?;
        Some(MeteredValue {
            value,
            budget: self.budget,
        })
    }

    fn members(&self) -> Members<'a> {
        Members {
            members: self.members.iter(),
            budget: self.budget,
        }
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, MeteredValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = self.members.next().filter(|_| enter(self.budget))?;
        Some((
            name.as_str(),
            MeteredValue {
                value,
                budget: self.budget,
            },
        ))
    }
}

impl<'a> Array<'a, Metered> for MeteredArray<'a> {
    type Node = MeteredValue<'a>;
    type ElementsIter = Elements<'a>;

    fn len(&self) -> usize {
        self.items.len()
    }

    fn elements(&self) -> Elements<'a> {
        Elements {
            items: self.items.iter(),
            budget: self.budget,
        }
    }

    fn is_unique(&self) -> bool {
        pay(self.budget, self.items.len()) && unique::is_unique(self.items)
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = MeteredValue<'a>;

    fn next(&mut self) -> Option<MeteredValue<'a>> {
        let value = self.items.next().filter(|_| enter(self.budget))?;
        Some(MeteredValue {
            value,
            budget: self.budget,
        })
    }
}
