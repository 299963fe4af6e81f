//! A walk over the steps of a recipe, which finds the problems of their names, their nesting and their
//! placeholders.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    MAX_LOOP_ITEMS, MAX_NESTING,
    definition::{Condition, INPUT_ROOT, ITEM_ROOT, STEPS_ROOT, Step},
};
use crate::core::{
    mapping::{self, MAX_PROBLEMS, Placeholder},
    shown_slug,
    spelling::shortened,
};

/// Maximum number of characters of the name of a step, or of a recipe.
pub(super) const MAX_NAME_CHARS: usize = 64;

/// Problems of a recipe, of which the first ones are collected.
#[derive(Default)]
pub(super) struct Problems(pub(super) Vec<String>);

impl Problems {
    pub(super) fn add(&mut self, problem: String) {
        if self.0.len() < MAX_PROBLEMS {
            self.0.push(problem);
        }
    }
}

/// A walk over the steps of a recipe in the order in which they run.
#[derive(Default)]
pub(super) struct Walk<'a> {
    pub(super) problems: Problems,
    /// Names of all steps so far.
    names: BTreeSet<&'a str>,
    /// Names of the steps whose results the current step may use.
    visible: BTreeSet<&'a str>,
    /// Steps that call a tool, by their path.
    pub(super) calls: BTreeMap<String, &'a Step>,
    pub(super) step_count: usize,
}

impl<'a> Walk<'a> {
    /// Creates a walk that adds to problems which are known already.
    pub(super) fn new(problems: Problems) -> Self {
        Self {
            problems,
            ..Self::default()
        }
    }

    /// Returns the steps that call a tool or run a script, by their paths.
    pub(super) fn calls_of(steps: &'a [Step]) -> BTreeMap<String, &'a Step> {
        let mut walk = Self::default();
        walk.steps(steps, "steps", 0, false);
        walk.calls
    }

    pub(super) fn steps(&mut self, steps: &'a [Step], place: &str, depth: usize, in_loop: bool) {
        if depth > MAX_NESTING {
            self.problems.add(format!(
                "{place}: groups of steps may be nested {MAX_NESTING} deep"
            ));
            return;
        }
        let before = self.visible.clone();
        for (index, step) in steps.iter().enumerate() {
            self.step(step, &format!("{place}[{index}]"), depth, in_loop);
        }
        // The steps of a group are visible inside it alone.
        if depth > 0 {
            self.visible = before;
        }
    }

    fn step(&mut self, step: &'a Step, place: &str, depth: usize, in_loop: bool) {
        self.step_count += 1;
        if !is_step_name(&step.name) {
            self.problems.add(format!(
                "{place}.name: must have 1 to {MAX_NAME_CHARS} lower-case letters, digits and `_`, and begin with a letter"
            ));
        }
        if !self.names.insert(&step.name) {
            let name = shown_slug(&step.name);
            self.problems
                .add(format!("{place}.name: another step has the name `{name}`"));
        }
        if let Some(list) = &step.for_each {
            self.list(list, place, in_loop);
        }
        let in_loop = in_loop || step.for_each.is_some();
        for (name, value) in &step.arguments {
            let path = format!("{place}.arguments.{}", shortened(name));
            self.placeholders(value, &path, in_loop);
        }
        for value in step.condition.iter().flat_map(Condition::values) {
            self.placeholders(value, &format!("{place}.if"), in_loop);
        }
        let is_called = !step.arguments.is_empty() || step.account.is_some();
        match (&step.tool_slug, &step.script, step.steps.is_empty()) {
            (Some(_), None, true) => {
                self.calls.insert(place.to_owned(), step);
            }
            (None, Some(_), true) | (None, None, false) if is_called => {
                self.problems.add(format!(
                    "{place}: only the call of a tool has arguments and an account"
                ));
            }
            (None, Some(_), true) => {
                self.calls.insert(place.to_owned(), step);
            }
            // The group would still end at the failure of one of its steps.
            (None, None, false) if step.continue_on_error => self.problems.add(format!(
                "{place}: a group has no `continue_on_error`; its steps may have one each"
            )),
            (None, None, false) => {
                self.steps(&step.steps, &format!("{place}.steps"), depth + 1, in_loop);
            }
            _ => self.problems.add(format!(
                "{place}: must have one of `tool_slug`, `script` and `steps`"
            )),
        }
        self.visible.insert(&step.name);
    }

    /// Checks the list of a loop: one placeholder, or a constant list of limited length.
    fn list(&mut self, list: &Value, place: &str, in_loop: bool) {
        self.placeholders(list, &format!("{place}.for_each"), in_loop);
        let problem = match list {
            Value::Array(items) if items.len() <= MAX_LOOP_ITEMS => return,
            Value::Array(_) => format!("{place}.for_each: at most {MAX_LOOP_ITEMS} items"),
            Value::String(text) if text.starts_with("{{") => return,
            _ => format!("{place}.for_each: must be a list, or the placeholder of one"),
        };
        self.problems.add(problem);
    }

    /// Checks that each placeholder of a value names the input, an earlier step, or the current item.
    pub(super) fn placeholders(&mut self, value: &Value, path: &str, in_loop: bool) {
        let visible = &self.visible;
        mapping::add_problems(&mut self.problems.0, value, path, &|placeholder| {
            placeholder_problem(placeholder, visible, in_loop)
        });
    }
}

/// Returns the problem of a placeholder where a step may use the results of certain others.
fn placeholder_problem(
    placeholder: Placeholder<'_>,
    visible: &BTreeSet<&str>,
    in_loop: bool,
) -> Option<String> {
    match placeholder.root {
        INPUT_ROOT => None,
        ITEM_ROOT if in_loop => None,
        ITEM_ROOT => Some("`{{item}}` is only known in a loop".to_owned()),
        STEPS_ROOT => {
            let name = placeholder.path.split('.').next().unwrap_or_default();
            (!visible.contains(name))
                .then(|| format!("`{}` is not the name of an earlier step", shown_slug(name)))
        }
        root => Some(mapping::not_a_placeholder(
            root,
            &[INPUT_ROOT, STEPS_ROOT, ITEM_ROOT],
        )),
    }
}

fn is_step_name(name: &str) -> bool {
    name.len() <= MAX_NAME_CHARS
        && name.as_bytes().first().is_some_and(u8::is_ascii_lowercase)
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

#[cfg(test)]
mod tests;
