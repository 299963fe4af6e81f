//! Runs of recipes, and the calls of tools in them, in the store.
//!
//! The record of a run is the job of a queue. It has the recipe as it was when the run began, so that a
//! change of the recipe does not affect the run. Each call of a tool has a record of its own, which is
//! written before the tool begins and completed with its result.

use std::time::Duration;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use store::{Batch, Collection, Document, Field, Kind, Query, Record};

use super::{MAX_PENDING_RUNS, definition::Definition};
use crate::{
    App, Error, Result,
    agents::errors,
    core::{
        clock::time_before,
        ids::{AccountId, LogId, RecipeRunId, SessionId},
        vault::{DataKey, SealContext, Sealed},
    },
    projects::Project,
    work::{Claimable, JobClaim, WorkState, erase_all},
};

/// Collection of runs.
pub(crate) static RUNS_COLLECTION: Collection = Collection {
    name: "recipe_runs",
    fields: &[
        Field::new("recipe_id", Kind::Text),
        Field::new("status", Kind::Text),
        Field::due("due"),
    ],
};

/// Collection of calls of tools.
pub(crate) static CALLS_COLLECTION: Collection = Collection {
    name: "recipe_calls",
    fields: &[Field::new("run", Kind::Text)],
};

/// Time for which a run can be read.
pub const RUN_TTL: Duration = Duration::from_secs(24 * 3_600);
/// Maximum number of runs that are listed with a recipe.
pub const MAX_LISTED_RUNS: u64 = 10;
/// Interval at which old runs are erased.
pub(crate) const RETENTION_INTERVAL: Duration = Duration::from_secs(3_600);
/// Number of records that are erased in one batch.
const RECORDS_PER_BATCH: u64 = 64;

/// A run of a recipe, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RecipeRun {
    /// User for whom the recipe runs.
    pub user_id: String,
    /// Id of the recipe.
    recipe_id: String,
    /// Slug of the recipe.
    pub recipe: String,
    /// Version of the recipe.
    pub version: u32,
    /// Status.
    pub status: RunStatus,
    pub(super) origin: Origin,
    /// Times that the run could not begin or go on, or that its server was lost.
    #[serde(default)]
    pub(super) interruptions: u32,
    #[serde(flatten)]
    work: WorkState,
    plan: Sealed<Plan>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<Sealed<RunResult>>,
}

/// The caller that began a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Origin {
    /// A session, whose scope and accounts apply.
    Session(SessionId),
    /// A trigger instance. Its account is used for tools of the same toolkit.
    Trigger {
        /// Toolkit of the account.
        toolkit: String,
        /// Account of the instance.
        account: AccountId,
    },
}

/// Status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Steps are running or waiting.
    Running,
    /// Every step succeeded, or was permitted to fail.
    Succeeded,
    /// No step follows.
    Failed,
}

/// The recipe of a run, and its arguments.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    pub definition: Definition,
    pub input: Map<String, Value>,
}

/// The result of a run that has ended.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct RunResult {
    /// Output of the recipe; null after a failure.
    pub output: Value,
    /// The failure.
    pub error: Option<String>,
}

impl Document for RecipeRun {
    const COLLECTION: &'static Collection = &RUNS_COLLECTION;
}

impl Claimable for RecipeRun {
    fn work(&mut self) -> &mut WorkState {
        &mut self.work
    }

    fn on_claim(&mut self, lapsed: bool) {
        self.interruptions += u32::from(lapsed);
    }
}

impl RecipeRun {
    /// Ends the run.
    pub(super) fn end(&mut self, status: RunStatus, result: Sealed<RunResult>) {
        self.status = status;
        self.result = Some(result);
        self.work.due = None;
    }
}

/// A call of a tool in a run, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StoredCall {
    /// Id of the run.
    run: String,
    /// Slug of the tool.
    pub tool: String,
    /// Place of the call in the run, such as `send[2]`.
    pub place: String,
    /// Log record of the execution; absent until the tool has ended, or if it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_id: Option<LogId>,
    /// Result; absent until the tool has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<Sealed<CallResult>>,
}

/// The result of a call.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct CallResult {
    /// Data of the tool.
    pub data: Value,
    /// The failure.
    pub error: Option<String>,
}

impl Document for StoredCall {
    const COLLECTION: &'static Collection = &CALLS_COLLECTION;
}

/// A call of a tool as responses show it.
#[derive(Debug, Serialize)]
pub struct CallView {
    /// Place in the run: names of steps, and the positions of items in brackets.
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

/// The key and the project of the sealed parts of a run.
pub(super) struct RunSeal<'a> {
    key: std::sync::Arc<DataKey>,
    project: &'a str,
}

impl<'a> RunSeal<'a> {
    pub(super) async fn new(app: &App, project: &'a str) -> Result<Self> {
        let key = app.vault.key(project, app.clock.now()).await?;
        Ok(Self { key, project })
    }

    fn seal<D: Document, T: Serialize>(
        &self,
        id: &str,
        field: &'static str,
        value: &T,
    ) -> Result<Sealed<T>> {
        let context = SealContext::new::<D>(self.project, id, field);
        self.key.seal(context, value)
    }

    fn open<D: Document, T: DeserializeOwned>(
        &self,
        id: &str,
        field: &'static str,
        sealed: &Sealed<T>,
    ) -> Result<T> {
        let context = SealContext::new::<D>(self.project, id, field);
        self.key.open(context, sealed)
    }

    pub(super) fn plan(&self, id: &str, run: &RecipeRun) -> Result<Plan> {
        self.open::<RecipeRun, _>(id, "plan", &run.plan)
    }

    pub(super) fn seal_result(&self, id: &str, result: &RunResult) -> Result<Sealed<RunResult>> {
        self.seal::<RecipeRun, _>(id, "result", result)
    }

    /// Returns the result of a call, if its tool has ended.
    pub(super) fn call_result(&self, call: &Record<StoredCall>) -> Result<Option<CallResult>> {
        let result = call.body.result.as_ref();
        let opened = result.map(|result| self.open::<StoredCall, _>(&call.id, "result", result));
        opened.transpose()
    }

    /// Completes the record of a call with the result of its tool.
    pub(super) fn complete(
        &self,
        call: &mut Record<StoredCall>,
        log_id: Option<LogId>,
        result: &CallResult,
    ) -> Result<()> {
        let sealed = self.seal::<StoredCall, _>(&call.id, "result", result)?;
        call.body.log_id = log_id;
        call.body.result = Some(sealed);
        Ok(())
    }
}

impl StoredCall {
    pub(super) fn new(run: &str, tool: &str, place: &str) -> Self {
        Self {
            run: run.to_owned(),
            tool: tool.to_owned(),
            place: place.to_owned(),
            log_id: None,
            result: None,
        }
    }
}

/// Returns the id of a call. The ids of a run sort by number.
pub(super) fn call_id(run: &str, number: usize) -> String {
    format!("{run}_{number:05}")
}

/// Returns the calls of a run, in their order.
pub(super) async fn calls_of(
    app: &App,
    project: &str,
    run: &str,
) -> Result<Vec<Record<StoredCall>>> {
    let query = Query::for_project(project).is("run", run);
    let mut calls = app.store.find::<StoredCall>(&query).await?.records;
    calls.sort_by(|one, other| one.id.cmp(&other.id));
    Ok(calls)
}

/// Returns the place of the newest call of a run.
pub(super) async fn newest_place(
    app: &App,
    project: &Project,
    run: &RecipeRunId,
) -> Result<Option<String>> {
    let calls = Query::for_project(project.id.as_str()).is("run", run.as_str());
    let newest = app.store.first::<StoredCall>(calls.descending()).await?;
    Ok(newest.map(|call| call.body.place))
}

/// A run that is to be stored.
pub(super) struct NewRun {
    pub id: RecipeRunId,
    pub user_id: String,
    pub recipe_id: String,
    pub recipe: String,
    pub version: u32,
    pub origin: Origin,
    pub plan: Plan,
}

/// Stores a run, which its queue then takes up. Does nothing if a run with this id exists.
pub(super) async fn begin(app: &App, project: &Project, new: NewRun) -> Result<()> {
    let (owner, id) = (project.id.as_str(), new.id.as_str());
    let running = Query::for_project(owner).is("status", "running").page(0, 0);
    let running = app.store.rows(&RUNS_COLLECTION, &running).await?.total;
    let seal = RunSeal::new(app, owner).await?;
    let plan = seal.seal::<RecipeRun, _>(id, "plan", &new.plan)?;
    let begun = app.store.change(&RUNS_COLLECTION, id, || async {
        let now = app.clock.now();
        if app.store.get::<RecipeRun>(owner, id).await?.is_some() {
            return Ok::<_, Error>((Batch::at(now), ()));
        }
        if running >= MAX_PENDING_RUNS {
            return Err(errors::too_many_recipe_runs(MAX_PENDING_RUNS));
        }
        let run = RecipeRun {
            user_id: new.user_id.clone(),
            recipe_id: new.recipe_id.clone(),
            recipe: new.recipe.clone(),
            version: new.version,
            status: RunStatus::Running,
            origin: new.origin.clone(),
            interruptions: 0,
            work: WorkState::due_at(now),
            plan: plan.clone(),
            result: None,
        };
        Ok((Batch::at(now).insert(owner, id, &run), ()))
    });
    Ok(begun.await?)
}

/// Returns the newest runs of a recipe, the newest first.
///
/// # Errors
/// Fails if the store cannot be read.
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

/// Returns a run of a user, as far as it has come.
///
/// # Errors
/// Fails if the user has no such run.
pub async fn read(app: &App, project: &Project, user: &str, id: &RecipeRunId) -> Result<RunView> {
    let owner = project.id.as_str();
    let found = app.store.get::<RecipeRun>(owner, id.as_str()).await?;
    let found = found.filter(|run| run.body.user_id == user);
    let run = found.ok_or_else(|| errors::recipe_run_not_found(id))?;
    let seal = RunSeal::new(app, owner).await?;
    let result = run.body.result.as_ref();
    let result = result.map(|result| seal.open::<RecipeRun, _>(&run.id, "result", result));
    let RunResult { output, error } = result.transpose()?.unwrap_or_default();
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

/// Returns true if a run has begun.
pub(super) async fn exists(app: &App, project: &Project, id: &RecipeRunId) -> Result<bool> {
    let found = app.store.get::<RecipeRun>(project.id.as_str(), id.as_str());
    Ok(found.await?.is_some())
}

/// Returns true if a run has ended or does not exist.
pub(super) async fn has_ended(app: &App, project: &Project, id: &RecipeRunId) -> Result<bool> {
    let found = app.store.get::<RecipeRun>(project.id.as_str(), id.as_str());
    let found = found.await?;
    Ok(found.is_none_or(|run| run.body.status != RunStatus::Running))
}

/// Erases the runs that are older than [`RUN_TTL`], also those that have not ended, and their calls.
/// This is a job that one server at a time runs.
pub(crate) async fn erase_old(claim: &JobClaim) -> Result<()> {
    let oldest = time_before(claim.batch().await?.now, RUN_TTL);
    let old = || Query::all_projects().below("created_at", oldest.0);
    for collection in [&RUNS_COLLECTION, &CALLS_COLLECTION] {
        erase_all(claim, collection, old(), RECORDS_PER_BATCH, |_| true).await?;
    }
    Ok(())
}
