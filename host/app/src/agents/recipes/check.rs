//! Checks of a recipe before it is stored.
//!
//! A problem that a run would meet in any case is reported here: a tool that does not exist, constant arguments
//! that do not match the schema of the tool, a placeholder of a step that has not run yet. So is a step that the
//! session may not run without asking ([`permitted`]).

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    INPUT_SCHEMA_NAME, MAX_DEFINITION_BYTES, MAX_STEPS,
    definition::{Definition, Step},
    permitted::{self, problem_of},
    stored::is_recipe,
    walk::{MAX_NAME_CHARS, Problems, Walk},
};
use crate::{
    App, Result,
    agents::{SessionCaller, errors, meta::MetaTool, resolve},
    catalog::{self, ResolvedTool, Tool},
    core::{
        ids::AccountId,
        shown_slug,
        visible::{is_plain_line, is_visible},
    },
    files,
};

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
    let mut walk = Walk::new(problems);
    walk.steps(&definition.steps, "steps", 0, false);
    if let Some(output) = &definition.output {
        walk.placeholders(output, "output", false);
    }
    let mut problems = walk.problems;
    if !(1..=MAX_STEPS).contains(&walk.step_count) {
        problems.add(format!("steps: must have 1 to {MAX_STEPS} steps"));
        return Ok(problems.0);
    }
    for (place, step) in walk.calls {
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
    if MetaTool::from_slug(slug.trim()).is_some() || is_recipe(app, slug) {
        problems.add(format!(
            "{place}.tool_slug: a meta tool or a recipe cannot be a step: name a tool of a toolkit"
        ));
        return Ok(None);
    }
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
            problems.add(format!("{place} (`{}`): {problem}", shown_slug(&step.name)));
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

/// Returns true for a value known only when the step runs.
fn is_filled_in(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("{{"),
        Value::Array(items) => items.iter().any(is_filled_in),
        Value::Object(members) => members.values().any(is_filled_in),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
