//! Runs as responses show them.

use serde::Serialize;
use serde_json::Value;
use store::{Query, Record};

use super::{RecipeRun, RunResult, RunSeal, RunStatus, calls_of};
use crate::{
    App, Result,
    agents::errors,
    core::ids::{LogId, RecipeRunId},
    projects::Project,
};

/// Maximum number of runs that are listed with a recipe.
pub const MAX_LISTED_RUNS: u64 = 10;

/// A call of a tool as responses show it.
#[derive(Debug, Serialize)]
pub struct CallView {
    /// Path in the run: names of steps, and the positions of items in brackets.
    pub step: String,
    /// Slug of the tool.
    pub tool_slug: String,
    /// Status.
    pub status: RunStatus,
    /// Log record of the execution.
    pub log_id: Option<LogId>,
    /// The failure.
    pub error: Option<String>,
}

/// A run as responses show it.
#[derive(Debug, Serialize)]
pub struct RunView {
    /// Id of the run.
    pub run_id: String,
    /// Slug of the recipe.
    pub recipe: String,
    /// Version of the recipe.
    pub version: u32,
    /// Status.
    pub status: RunStatus,
    /// Output of the recipe; null unless it has succeeded.
    pub output: Value,
    /// The failure.
    pub error: Option<String>,
    /// Calls of tools so far, in their order.
    pub steps: Vec<CallView>,
}

/// Returns the newest runs of a recipe, the newest first.
pub async fn newest_runs(
    app: &App,
    project: &Project,
    recipe_id: &str,
) -> Result<Vec<Record<RecipeRun>>> {
    let query = Query::for_project(project.id.as_str())
        .is("recipe_id", recipe_id)
        .descending()
        .page(0, MAX_LISTED_RUNS);
    Ok(app.store.find(&query).await?.records)
}

/// Returns a run of a user, as far as it has come. Fails if the run does not exist or is of another user.
pub async fn read(app: &App, project: &Project, user: &str, id: &RecipeRunId) -> Result<RunView> {
    let owner = project.id.as_str();
    let run = app
        .store
        .get::<RecipeRun>(owner, id.as_str())
        .await?
        .filter(|run| run.body.user_id == user)
        .ok_or_else(|| errors::recipe_run_not_found(id))?;
    let seal = RunSeal::new(app, owner).await?;
    let sealed = run.body.result.as_ref();
    let RunResult { output, error } = sealed
        .map(|result| seal.open::<RecipeRun, _>(&run.id, "result", result))
        .transpose()?
        .unwrap_or_default();
    let mut steps = Vec::new();
    for call in calls_of(app, owner, &run.id).await? {
        let result = seal.call_result(&call)?;
        let status = match &result {
            None if run.body.status == RunStatus::Running => RunStatus::Running,
            Some(result) if result.error.is_none() => RunStatus::Succeeded,
            _ => RunStatus::Failed,
        };
        steps.push(CallView {
            step: call.body.place,
            tool_slug: call.body.tool,
            status,
            log_id: call.body.log_id,
            error: result.and_then(|result| result.error),
        });
    }
    Ok(RunView {
        run_id: run.id,
        recipe: run.body.recipe,
        version: run.body.version,
        status: run.body.status,
        output,
        error,
        steps,
    })
}
