//! Recipes: named sequences of tool calls that an assistant stores and executes again.
//!
//! A recipe has a slug, by which a session executes it as it executes a tool. Its steps run sequentially,
//! each as an execution of the session: scope, accounts and log are those of any other call. A run is a
//! job of a queue ([`running`]), so that another server resumes it if one is lost, and no step that had
//! an effect runs twice ([`engine`]).

mod action;
mod check;
mod definition;
mod edit;
mod engine;
mod permitted;
mod progress;
mod record;
mod running;
mod step_caller;
mod stored;
mod versions;
mod walk;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::{Map, Value};
use tokio::time::timeout;

pub(crate) use self::{
    action::RECIPE_ACTIONS,
    record::{CALLS_COLLECTION, PLANS_COLLECTION, RETENTION_INTERVAL, RUNS_COLLECTION, erase_old},
    running::queue,
    stored::COLLECTION,
    versions::VERSIONS_COLLECTION,
};
pub use self::{
    definition::{Condition, Definition, Step},
    edit::{remove, upsert},
    record::{CallView, MAX_LISTED_RUNS, RUN_TTL, RunStatus, RunView, newest_runs, read},
    running::RUN_SHARES,
    stored::{MAX_SLUG_CHARS, OpenRecipe, Recipe, get, is_recipe, list},
    versions::{MAX_VERSIONS, get_version},
};
use self::{record::Origin, stored::RecipeCopy};
pub use super::progress::{Position, Progress, ProgressReader};
use super::{SessionCaller, errors};
use crate::{
    App, Result, catalog,
    core::{
        ids::{RecipeRunId, SessionId},
        json,
        request_id::RequestId,
    },
    projects::Project,
    runs::{self, Execution, HostCall},
};

/// Prefix of the slugs of recipes.
pub const RECIPE_PREFIX: &str = "RECIPE_";
/// Name of the schema of a recipe's arguments, in problems.
const INPUT_SCHEMA_NAME: &str = "input_schema";
/// Maximum number of recipes of a user.
pub const MAX_RECIPES: u64 = 100;
/// Maximum size of a recipe as JSON, in bytes.
pub const MAX_DEFINITION_BYTES: usize = 64 << 10;
/// Maximum number of steps of a recipe, those of groups included.
pub const MAX_STEPS: usize = 50;
/// Maximum depth of groups in groups.
pub const MAX_NESTING: usize = 3;
/// Maximum number of items of a loop.
pub const MAX_LOOP_ITEMS: usize = 100;
/// Maximum number of items of all loops of a run, those of loops in loops included.
pub const MAX_RUN_ITEMS: usize = 10_000;
/// Maximum number of calls of tools in a run.
pub const MAX_CALLS: usize = 250;
/// Maximum size of the data that the steps of a run return, in bytes.
pub const MAX_RUN_DATA_BYTES: usize = 4 << 20;
/// Maximum number of runs of a project that have not ended.
pub const MAX_PENDING_RUNS: u64 = 50;
/// Time that a caller waits for the end of a run. The run continues after that.
pub const MAX_WAIT: Duration = Duration::from_secs(120);
/// Interval at which a run is looked at that another server works on.
const WAIT_INTERVAL: Duration = Duration::from_secs(1);

/// Executes a recipe of the session's user, waits for its end, and records the call. The result has
/// the state of the run. A run that takes longer than [`MAX_WAIT`], or whose caller is gone,
/// continues. Fails before the first step: if the recipe does not exist, if the arguments do not
/// match its schema, or if the project has too many runs. After that, every outcome is an
/// [`Execution`].
pub async fn execute(
    app: &App,
    caller: &SessionCaller,
    slug: &str,
    arguments: Bytes,
) -> Result<Execution> {
    let project = &caller.project;
    let user = &caller.config().user_id;
    let stored = get(app, project, user, slug).await?;
    permitted::check_script(caller, &stored)?;
    let recipe = RecipeCopy::from(stored);
    let slug = recipe.slug.clone();
    let parsed = json::parse(&arguments)
        .map_err(|problem| errors::recipe_input_invalid(&slug, problem.line("arguments")))?;
    let input = checked_input(app, project, &recipe, parsed).await?;
    let session = SessionId::parse(caller.session_id())?;
    let run = RecipeRunId::random();
    let origin = Origin::Session(session.clone());
    let call = HostCall {
        project,
        tool: Arc::from(slug),
        user,
        session: Some(session),
        request_id: RequestId::new(run.to_string(), caller.request_id.span()),
        arguments,
    };
    let work = async {
        let rights = &caller.rights;
        record::begin(app, project, &run, &recipe, origin, rights, input).await?;
        let steps = &recipe.definition.steps;
        let ended = async {
            tokio::select! {
                ended = wait(app, project, &run) => ended,
                () = caller.progress.follow(app, project, &run, steps) => Ok(()),
            }
        };
        // A run that has not ended in time is returned as it is.
        if let Ok(Ok(())) = timeout(MAX_WAIT, ended).await {
            caller.progress.end(&run, steps);
        }
        outcome(app, project, user, &run).await
    };
    runs::record_host_call(app, call, work).await
}

/// Returns the state of a run as the result of its execution, and its failure.
async fn outcome(
    app: &App,
    project: &Project,
    user: &str,
    run: &RecipeRunId,
) -> Result<(Bytes, Option<String>)> {
    let view = read(app, project, user, run).await?;
    let error = view.error.clone();
    let data = serde_json::to_vec(&view).map_err(errors::internal)?;
    Ok((data.into(), error))
}

/// Validates the arguments of a recipe.
async fn checked_input(
    app: &App,
    project: &Project,
    recipe: &RecipeCopy,
    value: Value,
) -> Result<Map<String, Value>> {
    let slug = &recipe.slug;
    let schema = Value::Object(recipe.definition.input_schema.clone());
    let (large, tenant) = (&app.large_work, &project.tenant);
    match catalog::accept_with(large, tenant, INPUT_SCHEMA_NAME, schema, value).await? {
        Ok(Value::Object(input)) => Ok(input),
        Ok(_) => {
            let problems = vec!["the arguments are not an object".to_owned()];
            Err(errors::recipe_input_invalid(slug, problems))
        }
        Err(problems) => Err(errors::recipe_input_invalid(slug, problems)),
    }
}

/// Waits until a run has ended or does not exist.
async fn wait(app: &App, project: &Project, run: &RecipeRunId) -> Result<()> {
    let signal = app.store.commit_signal(&RUNS_COLLECTION);
    loop {
        if record::status(app, project, run).await? != Some(RunStatus::Running) {
            return Ok(());
        }
        signal.committed_within(WAIT_INTERVAL).await;
    }
}
