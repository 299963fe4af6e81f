//! Recipes as callers write them: steps with arguments, conditions and loops.
//!
//! Arguments, conditions and lists may have placeholders ([`mapping`]) with these roots: `input` for the
//! arguments of the recipe, `steps` for the results of earlier steps by their names, and inside a loop
//! `item` for the current item.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::core::{
    mapping::{Filling, Root},
    visible::{visible, visible_line},
};

/// Root of placeholders for the arguments of the recipe.
pub(super) const INPUT_ROOT: &str = "input";
/// Root of placeholders for the results of earlier steps.
pub(super) const STEPS_ROOT: &str = "steps";
/// Root of placeholders for the current item of a loop.
pub(super) const ITEM_ROOT: &str = "item";

/// The content of a recipe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    /// Display name.
    pub name: String,
    /// Description by which an assistant chooses the recipe.
    #[serde(default)]
    pub description: String,
    /// JSON schema of the arguments, which are an object.
    #[serde(default)]
    pub input_schema: Map<String, Value>,
    /// Steps, in the order in which they run.
    pub steps: Vec<Step>,
    /// Result of the recipe, with placeholders; the data of the last step without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
}

/// A step: the call of a tool, a script, or a group of further steps.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Step {
    /// Name, which is unique in the recipe.
    pub name: String,
    /// Slug of the tool; absent for a script or a group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_slug: Option<String>,
    /// Arguments of the tool.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub arguments: Map<String, Value>,
    /// Id or alias of the account to use; the default account of the caller without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Python code that runs in the workbench of the session. The dictionary `recipe` has the values
    /// that placeholders stand for elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Steps of a group.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// List for whose items the step runs, sequentially.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_each: Option<Value>,
    /// Condition under which the step runs, or runs for an item of the list.
    #[serde(rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<Condition>,
    /// True if the recipe continues after the tool of the step has failed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub continue_on_error: bool,
}

/// A condition. Its values may have placeholders.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// Both values are equal JSON.
    Equals([Value; 2]),
    /// The first number is less than the second.
    Less([Value; 2]),
    /// The first value, a list, has the second as an item; or the first text contains the second.
    Contains([Value; 2]),
    /// The value is neither null nor missing.
    Exists(Value),
    /// The condition does not hold.
    Not(Box<Self>),
    /// Every condition holds.
    All(Vec<Self>),
    /// At least one condition holds.
    Any(Vec<Self>),
}

impl Definition {
    /// Escapes invisible characters of the name and the description, which earlier versions have stored.
    pub(super) fn cleaned(self) -> Self {
        Self {
            name: visible_line(&self.name).into_owned(),
            description: visible(&self.description).into_owned(),
            ..self
        }
    }
}

impl Condition {
    /// Returns every value that may have placeholders.
    pub(super) fn values(&self) -> Vec<&Value> {
        match self {
            Self::Equals(pair) | Self::Less(pair) | Self::Contains(pair) => pair.iter().collect(),
            Self::Exists(value) => vec![value],
            Self::Not(condition) => condition.values(),
            Self::All(conditions) | Self::Any(conditions) => {
                conditions.iter().flat_map(Self::values).collect()
            }
        }
    }

    /// Decides whether the condition holds. The error says which placeholder is wrong.
    pub(super) fn holds(&self, roots: &[Root<'_>]) -> Result<bool, String> {
        self.holds_with(&mut Filling::new(roots))
    }

    /// Decides with one filling for all parts of the condition, so that the values of all together are
    /// limited.
    fn holds_with(&self, filling: &mut Filling<'_>) -> Result<bool, String> {
        Ok(match self {
            Self::Equals(pair) => {
                let [one, other] = filled(pair, filling)?;
                compared(&one, &other).map_or_else(|| one == other, Ordering::is_eq)
            }
            Self::Less(pair) => {
                let [one, other] = filled(pair, filling)?;
                compared(&one, &other).is_some_and(Ordering::is_lt)
            }
            Self::Contains(pair) => match filled(pair, filling)? {
                [Value::Array(items), item] => items.contains(&item),
                [Value::String(text), Value::String(part)] => text.contains(&part),
                _ => false,
            },
            Self::Exists(value) => filling.exists(value)?,
            Self::Not(condition) => !condition.holds_with(filling)?,
            Self::All(conditions) => {
                for condition in conditions {
                    if !condition.holds_with(filling)? {
                        return Ok(false);
                    }
                }
                true
            }
            Self::Any(conditions) => {
                for condition in conditions {
                    if condition.holds_with(filling)? {
                        return Ok(true);
                    }
                }
                false
            }
        })
    }
}

fn filled([one, other]: &[Value; 2], filling: &mut Filling<'_>) -> Result<[Value; 2], String> {
    Ok([filling.value(one)?, filling.value(other)?])
}

/// Compares two numbers. Returns `None` if a value is not a number. Integers are compared exactly: ids may
/// have more digits than a floating-point number keeps.
fn compared(one: &Value, other: &Value) -> Option<Ordering> {
    match (integer(one), integer(other)) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

fn integer(value: &Value) -> Option<i128> {
    let signed = value.as_i64().map(i128::from);
    signed.or_else(|| value.as_u64().map(i128::from))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::core::mapping::MAX_FILLED_BYTES;

    #[test]
    fn conditions_compare_values() {
        let input = json!({
            "count": 3, "tags": ["a", "b"], "title": "a report", "none": null, "id": 1_234_567_890_123_456_789_u64,
        });
        for (condition, expected) in [
            (json!({ "equals": ["{{input.count}}", 3] }), true),
            (json!({ "equals": ["{{input.count}}", 3.0] }), true),
            (json!({ "equals": ["{{input.count}}", "3"] }), false),
            (
                json!({ "equals": ["{{input.id}}", 1_234_567_890_123_456_788_u64] }),
                false,
            ),
            (
                json!({ "less": [1_234_567_890_123_456_788_u64, "{{input.id}}"] }),
                true,
            ),
            (json!({ "equals": ["{{input.tags}}", ["a", "b"]] }), true),
            (json!({ "less": ["{{input.count}}", 4] }), true),
            (json!({ "less": [4, "{{input.count}}"] }), false),
            (json!({ "less": ["{{input.title}}", 4] }), false),
            (json!({ "contains": ["{{input.tags}}", "b"] }), true),
            (json!({ "contains": ["{{input.title}}", "report"] }), true),
            (json!({ "contains": ["{{input.count}}", 3] }), false),
            (json!({ "exists": "{{input.count}}" }), true),
            (json!({ "exists": "{{input.none}}" }), false),
            (json!({ "not": { "exists": "{{input.nothing}}" } }), true),
            (
                json!({ "all": [{ "exists": 1 }, { "exists": null }] }),
                false,
            ),
            (
                json!({ "any": [{ "exists": null }, { "exists": 1 }] }),
                true,
            ),
            (json!({ "all": [] }), true),
            (json!({ "any": [] }), false),
        ] {
            let parsed: Condition = serde_json::from_value(condition.clone()).unwrap();
            let roots = [(INPUT_ROOT, &input)];
            assert_eq!(parsed.holds(&roots), Ok(expected), "{condition}");
        }
    }

    #[test]
    fn values_of_a_condition_are_limited_together() {
        let input = json!({ "text": "x".repeat(MAX_FILLED_BYTES / 2) });
        let holds = |part: Value, count: usize| {
            let condition = json!({ "all": vec![part; count] });
            let parsed: Condition = serde_json::from_value(condition).unwrap();
            parsed.holds(&[(INPUT_ROOT, &input)])
        };
        let contains = json!({ "contains": ["{{input.text}}", "x"] });
        assert_eq!(holds(contains.clone(), 1), Ok(true));
        assert!(holds(contains, 3).unwrap_err().contains("1048576 bytes"));
        let exists = json!({ "exists": "{{input.text}}" });
        assert_eq!(holds(exists, 1_000), Ok(true));
    }

    #[test]
    fn misspelled_members_are_refused() {
        for step in [
            json!({ "name": "a", "tool": "X" }),
            json!({ "name": "a", "tool_slug": "X", "when": true }),
            json!({ "name": "a", "tool_slug": "X", "if": { "equal": [1, 1] } }),
            json!({ "name": "a", "tool_slug": "X", "if": { "equals": [1] } }),
        ] {
            let parsed = serde_json::from_value::<Step>(step.clone());
            assert!(parsed.is_err(), "{step}");
        }
    }
}
