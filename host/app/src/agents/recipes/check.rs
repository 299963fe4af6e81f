//! Checks of a recipe before it is stored.
//!
//! A problem that a run would meet in any case is reported here: a tool that does not exist, constant arguments
//! that do not match the schema of the tool, a placeholder of a step that has not run yet. So is a step that the
//! session may not run without asking ([`permitted`]).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    INPUT_SCHEMA_NAME, MAX_DEFINITION_BYTES, MAX_LOOP_ITEMS, MAX_NESTING, MAX_STEPS,
    definition::{Definition, INPUT_ROOT, ITEM_ROOT, STEPS_ROOT, Step},
    permitted,
};
use crate::{
    App, Class, Error, Result,
    agents::{SessionCaller, errors, meta::MetaTool, resolve},
    catalog::{self, ResolvedTool, Tool},
    core::{
        ids::AccountId,
        mapping, truncate,
        visible::{is_plain_line, is_visible},
    },
    files,
};

/// Maximum number of characters of the name of a step, or of a recipe.
pub(super) const MAX_NAME_CHARS: usize = 64;
/// Maximum number of problems that are reported.
const MAX_PROBLEMS: usize = 20;

/// Accounts that steps keep, by the names of the steps.
type StepAccounts = BTreeMap<String, AccountId>;

/// Returns the problems of a recipe, which can be stored if the list is empty. Adds the accounts to the
/// steps that keep theirs. Fails if a schema cannot be read.
pub(super) async fn problems(
    app: &App,
    caller: &SessionCaller,
    definition: &mut Definition,
) -> Result<Vec<String>> {
    let mut accounts = StepAccounts::new();
    let problems = problems_of(app, caller, definition, &mut accounts).await?;
    add_accounts(&mut definition.steps, &mut accounts);
    Ok(problems)
}

fn add_accounts(steps: &mut [Step], accounts: &mut StepAccounts) {
    for step in steps {
        if let Some(account) = accounts.remove(&step.name) {
            step.account = Some(account.to_string());
        }
        add_accounts(&mut step.steps, accounts);
    }
}

async fn problems_of(
    app: &App,
    caller: &SessionCaller,
    definition: &Definition,
    accounts: &mut StepAccounts,
) -> Result<Vec<String>> {
    let mut problems = Problems::default();
    check_texts(definition, &mut problems);
    if serde_json::to_vec(definition).is_ok_and(|text| text.len() > MAX_DEFINITION_BYTES) {
        problems.add(format!(
            "the recipe has more than {MAX_DEFINITION_BYTES} bytes as JSON"
        ));
        return Ok(problems.0);
    }
    let schema = Value::Object(definition.input_schema.clone());
    let project = &caller.project.tenant;
    let checked = catalog::schema_problems_of(&app.large_work, project, INPUT_SCHEMA_NAME, schema);
    for problem in checked.await? {
        problems.add(problem);
    }
    let mut walk = Walk {
        problems,
        ..Walk::default()
    };
    walk.steps(&definition.steps, "steps", 0, false);
    if let Some(output) = &definition.output {
        walk.placeholders(output, "output", false);
    }
    let Walk {
        mut problems,
        calls,
        step_count,
        ..
    } = walk;
    if !(1..=MAX_STEPS).contains(&step_count) {
        problems.add(format!("steps: must have 1 to {MAX_STEPS} steps"));
        return Ok(problems.0);
    }
    for (place, step) in calls {
        let kept = check_call(app, caller, step, &place, &mut problems).await?;
        accounts.extend(kept.map(|kept| (step.name.clone(), kept)));
    }
    Ok(problems.0)
}

fn check_texts(definition: &Definition, problems: &mut Problems) {
    let name = definition.name.trim();
    if name.is_empty() || name.chars().count() > MAX_NAME_CHARS {
        problems.add(format!("name: must have 1 to {MAX_NAME_CHARS} characters"));
    }
    // Other sessions show them to their assistants.
    if !is_plain_line(&definition.name) {
        problems.add(
            "name: must have no line breaks, no invisible characters and none that change the direction of text"
                .to_owned(),
        );
    }
    if !is_visible(&definition.description) {
        problems.add(
            "description: must have no invisible characters and none that change the direction of text"
                .to_owned(),
        );
    }
    let kind = definition.input_schema.get("type");
    if kind.is_some_and(|kind| kind != "object") {
        problems.add("input_schema.type: must be `object`".to_owned());
    }
}

/// Checks the tool of a step, its account, and those of its arguments that have no placeholder. Returns
/// the account that the step keeps.
async fn check_call(
    app: &App,
    caller: &SessionCaller,
    step: &Step,
    place: &str,
    problems: &mut Problems,
) -> Result<Option<AccountId>> {
    let Some(slug) = &step.tool_slug else {
        if !MetaTool::RemoteWorkbench.is_enabled(caller.config()) {
            problems.add(format!("{place}.script: the session has no workbench"));
        }
        return Ok(None);
    };
    let resolved = match resolve(app, caller, slug.trim()) {
        Ok(resolved) => resolved,
        Err(cause) => {
            problems.add(format!("{place}.tool_slug: {cause}"));
            return Ok(None);
        }
    };
    let kept = match kept_account(app, caller, &resolved, step).await {
        Ok(kept) => kept,
        Err(cause) => {
            let problem = problem_of(cause)?;
            problems.add(format!("{place} (`{}`): {problem}", truncate(&step.name)));
            None
        }
    };
    match argument_problems(app, caller, &resolved.tool, step).await {
        Ok(argument_problems) => {
            for problem in argument_problems {
                problems.add(format!("{place}.arguments: {problem}"));
            }
        }
        Err(cause) => problems.add(format!("{place}.arguments: {}", problem_of(cause)?)),
    }
    Ok(kept)
}

/// Returns the problems of the constant arguments of a step. Fails also if a file that they name was never
/// uploaded.
async fn argument_problems(
    app: &App,
    caller: &SessionCaller,
    tool: &Tool,
    step: &Step,
) -> Result<Vec<String>> {
    let mut arguments = Value::Object(step.arguments.clone());
    if tool.takes_files {
        let text = arguments.to_string().into();
        let (text, keys) = files::named_files(app, &caller.project, tool, text).await?;
        arguments = serde_json::from_slice(&text).map_err(errors::internal)?;
        for key in keys.iter().filter(|key| !key.contains("{{")) {
            files::uploaded(app, &caller.project, key).await?;
        }
    }
    let problems = tool.input.problems_of_known(arguments, is_filled_in);
    problems.await
}

/// Returns the account that a step keeps: the one that it names, whose alias may be given to another account
/// later, or the one to which the session is limited. Fails if the session may not run the step unasked.
async fn kept_account(
    app: &App,
    caller: &SessionCaller,
    found: &ResolvedTool,
    step: &Step,
) -> Result<Option<AccountId>> {
    let named = step.account.as_deref();
    let account = permitted::account(app, caller, found, named).await?;
    let is_kept = named.is_some() || permitted::is_limited(caller, found);
    Ok(account.filter(|_| is_kept))
}

/// Returns a refusal as a problem of a recipe. Fails with an error that says nothing about the recipe.
pub(super) fn problem_of(cause: Error) -> Result<String> {
    let class = cause.info().class;
    if class == Class::Internal || class.may_pass() {
        Err(cause)
    } else {
        Ok(cause.to_string())
    }
}

/// Returns true for a value known only when the step runs.
fn is_filled_in(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("{{"),
        Value::Array(items) => items.iter().any(is_filled_in),
        Value::Object(members) => members.values().any(is_filled_in),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[derive(Default)]
struct Problems(Vec<String>);

impl Problems {
    fn add(&mut self, problem: String) {
        if self.0.len() < MAX_PROBLEMS {
            self.0.push(problem);
        }
    }
}

/// A walk over the steps of a recipe in the order in which they run.
#[derive(Default)]
pub(super) struct Walk<'a> {
    problems: Problems,
    /// Names of all steps so far.
    names: BTreeSet<&'a str>,
    /// Names of the steps whose results the current step may use.
    visible: BTreeSet<&'a str>,
    /// Steps that call a tool, by their path.
    calls: BTreeMap<String, &'a Step>,
    step_count: usize,
}

impl<'a> Walk<'a> {
    /// Returns the steps that call a tool or run a script, by their paths.
    pub(super) fn calls_of(steps: &'a [Step]) -> BTreeMap<String, &'a Step> {
        let mut walk = Self::default();
        walk.steps(steps, "steps", 0, false);
        walk.calls
    }

    fn steps(&mut self, steps: &'a [Step], place: &str, depth: usize, in_loop: bool) {
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
            let name = truncate(&step.name);
            self.problems
                .add(format!("{place}.name: another step has the name `{name}`"));
        }
        if let Some(list) = &step.for_each {
            self.list(list, place, in_loop);
        }
        let in_loop = in_loop || step.for_each.is_some();
        for value in step.values() {
            self.placeholders(value, place, in_loop);
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
        self.placeholders(list, place, in_loop);
        let problem = match list {
            Value::Array(items) if items.len() <= MAX_LOOP_ITEMS => return,
            Value::Array(_) => format!("{place}.for_each: at most {MAX_LOOP_ITEMS} items"),
            Value::String(text) if text.starts_with("{{") => return,
            _ => format!("{place}.for_each: must be a list, or the placeholder of one"),
        };
        self.problems.add(problem);
    }

    /// Checks that each placeholder of a value names the input, an earlier step, or the current item.
    fn placeholders(&mut self, value: &Value, place: &str, in_loop: bool) {
        let placeholders = match mapping::placeholders(value) {
            Ok(placeholders) => placeholders,
            Err(problem) => return self.problems.add(format!("{place}: {problem}")),
        };
        for placeholder in placeholders {
            let (root, path) = (placeholder.root, placeholder.path);
            let problem = match root {
                INPUT_ROOT => continue,
                ITEM_ROOT if in_loop => continue,
                ITEM_ROOT => "`{{item}}` is only known in a loop".to_owned(),
                STEPS_ROOT => {
                    let name = path.split('.').next().unwrap_or_default();
                    if self.visible.contains(name) {
                        continue;
                    }
                    format!("`{}` is not the name of an earlier step", truncate(name))
                }
                _ => mapping::not_a_placeholder(placeholder, &[INPUT_ROOT, STEPS_ROOT, ITEM_ROOT]),
            };
            self.problems.add(format!("{place}: {problem}"));
        }
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
