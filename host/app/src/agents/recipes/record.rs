//! Runs of recipes, and the calls of tools in them, in the store.
//!
//! The record of a run is the job of a queue, and is written again with every call of a tool. A copy of the
//! recipe from the start of the run, so that a change of the recipe does not affect the run, and the
//! arguments are large. They have a record of their own, which is written once and erased at the end. Each
//! call of a tool has a record of its own, too, which is written before the tool starts and completed with
//! its result.

mod calls;
mod view;

use std::time::Duration;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use store::{Batch, Collection, Document, Erasure, Field, Kind, Query, Record};

pub(crate) use self::calls::CALLS_COLLECTION;
pub(super) use self::calls::{CallResult, StoredCall, call_id, calls_of, newest_place};
pub use self::view::{CallView, MAX_LISTED_RUNS, RunView, newest_runs, read};
use super::{MAX_PENDING_RUNS, definition::Definition, stored::RecipeCopy};
use crate::{
    App, Error, Result,
    agents::{CallerRights, Credential, errors},
    core::{
        clock::time_before,
        ids::{AccountId, LogId, RecipeRunId, SessionId},
        vault::{DataKey, SealContext, Sealed},
    },
    projects::{Project, quotas::Kind as QuotaKind},
    work::{Claim, Claimable, JobClaim, WorkState, erase_all},
};

pub(crate) static RUNS_COLLECTION: Collection = Collection {
    name: "recipe_runs",
    erasure: Erasure::Project,
    fields: &[
        Field::new("recipe_id", Kind::Text),
        Field::new("status", Kind::Text),
        Field::due("due"),
    ],
};

/// Collection of the recipes and arguments of runs that have not ended.
pub(crate) static PLANS_COLLECTION: Collection = Collection {
    name: "recipe_plans",
    erasure: Erasure::Project,
    fields: &[],
};

/// Time for which a run can be read.
pub const RUN_TTL: Duration = Duration::from_secs(24 * 3_600);
/// Interval at which old runs are erased.
pub(crate) const RETENTION_INTERVAL: Duration = Duration::from_secs(3_600);
/// Bytes that the record of a run, or of a call, counts in addition to its sealed parts.
pub(super) const RUN_RECORD_BYTES: usize = 1 << 10;
/// Number of records that are erased in one batch.
const RECORDS_PER_BATCH: u64 = 64;

/// A run of a recipe, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RecipeRun {
    /// User for whom the recipe runs.
    pub user_id: String,
    recipe_id: String,
    /// Slug of the recipe.
    pub recipe: String,
    /// Version of the recipe.
    pub version: u32,
    /// Status.
    pub status: RunStatus,
    pub(super) origin: Origin,
    /// True if the key of the caller permits proxy requests, and in runs that are older than this field.
    #[serde(default = "older_run_may_proxy")]
    pub(super) may_proxy: bool,
    /// The key or access token of the caller; absent for actions, and in older runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) credential: Option<Credential>,
    /// Number of times that the run could not start or continue, or that its server was lost.
    #[serde(default)]
    pub(super) interruptions: u32,
    #[serde(flatten)]
    work: WorkState,
    /// The plan of a run that started before plans had records of their own; absent after the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plan: Option<Sealed<Plan>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<Sealed<RunResult>>,
}

fn older_run_may_proxy() -> bool {
    true
}

/// The caller that started a run.
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

/// The plan of a run, as stored under the id of the run.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct StoredPlan {
    plan: Sealed<Plan>,
}

impl Document for StoredPlan {
    const COLLECTION: &'static Collection = &PLANS_COLLECTION;
}

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
        self.key.seal_compressed(context, value)
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

    /// Reads the plan of a run that has not ended.
    pub(super) async fn plan(&self, app: &App, id: &str, run: &RecipeRun) -> Result<Plan> {
        if let Some(plan) = &run.plan {
            return self.open::<RecipeRun, _>(id, "plan", plan);
        }
        let stored = app
            .store
            .get::<StoredPlan>(self.project, id)
            .await?
            .ok_or_else(|| errors::internal("a run that has not ended has no plan"))?;
        self.open::<StoredPlan, _>(id, "plan", &stored.body.plan)
    }

    /// Returns the result of a call, if its tool has ended.
    pub(super) fn call_result(&self, call: &Record<StoredCall>) -> Result<Option<CallResult>> {
        let result = call.body.result.as_ref();
        let opened = result.map(|result| self.open::<StoredCall, _>(&call.id, "result", result));
        opened.transpose()
    }

    /// Removes the data from the result of a call. Returns false if the result lacks data.
    pub(super) fn drop_data(&self, call: &mut Record<StoredCall>) -> Result<bool> {
        let Some(mut result) = self.call_result(call)? else {
            return Ok(false);
        };
        if result.data.is_null() {
            return Ok(false);
        }
        result.data = Value::Null;
        call.body.result = Some(self.seal::<StoredCall, _>(&call.id, "result", &result)?);
        Ok(true)
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

/// Ends a run. What is kept of it counts toward the quota of its project: the output or the error, and
/// of each call its status, its failure and its log record. Fails if the claim is lost or the store
/// refuses.
pub(super) async fn end(
    app: &App,
    claim: &Claim<RecipeRun>,
    status: RunStatus,
    result: &RunResult,
) -> Result<()> {
    let owner = claim.project();
    let seal = RunSeal::new(app, owner).await?;
    let result = seal.seal::<RecipeRun, _>(claim.id(), "result", result)?;
    let mut kept_bytes = result.size();
    let mut batch = claim.batch().await?;
    if let Some(plan) = app.store.get::<StoredPlan>(owner, claim.id()).await? {
        batch = batch.purge(&plan);
    }
    for mut call in calls_of(app, owner, claim.id()).await? {
        if seal.drop_data(&mut call)? {
            batch = batch.update(&call);
        }
        kept_bytes += call.body.result_size() + RUN_RECORD_BYTES;
    }
    app.quotas
        .count(QuotaKind::Runs, owner, kept_bytes, batch.now);
    let ended = claim.end(batch, |run| {
        run.status = status;
        run.plan = None;
        run.result = Some(result);
        run.work.due = None;
    });
    Ok(ended.await?)
}

/// Stores a run of a recipe, which its queue then takes up. Does nothing if a run with this id
/// exists. Fails if too many runs of the project have not ended, or if it has kept too many bytes of
/// runs in a day.
pub(super) async fn begin(
    app: &App,
    project: &Project,
    id: &RecipeRunId,
    recipe: &RecipeCopy,
    origin: Origin,
    rights: &CallerRights,
    input: Map<String, Value>,
) -> Result<()> {
    let (owner, id) = (project.id.as_str(), id.as_str());
    let query = Query::for_project(owner).is("status", "running").page(0, 0);
    let running = app.store.rows(&RUNS_COLLECTION, &query).await?.total;
    let seal = RunSeal::new(app, owner).await?;
    let definition = recipe.definition.clone();
    let sealed = seal.seal::<StoredPlan, _>(id, "plan", &Plan { definition, input })?;
    let plan = StoredPlan { plan: sealed };
    let begun = app.store.change(&RUNS_COLLECTION, id, || async {
        let now = app.clock.now();
        if app.store.get::<RecipeRun>(owner, id).await?.is_some() {
            return Ok::<_, Error>((Batch::at(now), ()));
        }
        if running >= MAX_PENDING_RUNS {
            return Err(errors::too_many_recipe_runs(MAX_PENDING_RUNS));
        }
        let bytes = plan.plan.size() + RUN_RECORD_BYTES;
        if !app.quotas.take(QuotaKind::Runs, owner, bytes, now) {
            return Err(errors::recipe_runs_full());
        }
        let run = RecipeRun {
            user_id: recipe.user_id.clone(),
            recipe_id: recipe.id.clone(),
            recipe: recipe.slug.clone(),
            version: recipe.version,
            status: RunStatus::Running,
            origin: origin.clone(),
            may_proxy: rights.proxy,
            credential: rights.credential.clone(),
            interruptions: 0,
            work: WorkState::due_at(now),
            plan: None,
            result: None,
        };
        let batch = Batch::at(now).insert(owner, id, &run);
        Ok((batch.insert(owner, id, &plan), ()))
    });
    Ok(begun.await?)
}

/// Returns the status of a run, or `None` if the run does not exist.
pub(super) async fn status(
    app: &App,
    project: &Project,
    id: &RecipeRunId,
) -> Result<Option<RunStatus>> {
    let run = app.store.get::<RecipeRun>(project.id.as_str(), id.as_str());
    Ok(run.await?.map(|run| run.body.status))
}

/// Erases the runs that are older than [`RUN_TTL`], also those that have not ended, and their calls.
/// This is a job that one server at a time runs.
pub(crate) async fn erase_old(claim: &JobClaim) -> Result<()> {
    let oldest = time_before(claim.batch().await?.now, RUN_TTL);
    for collection in [&RUNS_COLLECTION, &PLANS_COLLECTION, &CALLS_COLLECTION] {
        let old = Query::all_projects().below("created_at", oldest.0);
        erase_all(claim, collection, old, RECORDS_PER_BATCH).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use store::{Store, Time};

    use super::*;
    use crate::{
        COLLECTIONS,
        core::vault::{KeyFile, Vault},
        work::claim_job,
    };

    #[tokio::test]
    async fn ended_calls_keep_no_data() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store"), COLLECTIONS).unwrap();
        let key = KeyFile::create(&folder.path().join("key")).unwrap();
        let vault = Vault::open(store, &key, Time(0)).await.unwrap();
        let seal = RunSeal {
            key: vault.key("p", Time(0)).await.unwrap(),
            project: "p",
        };
        let body = StoredCall::new("run", "TOOL", "step");
        let mut call = Record::inserted("p", &call_id("run", 1), Time(0), body);
        assert!(
            !seal.drop_data(&mut call).unwrap(),
            "the call has not ended"
        );
        let result = CallResult {
            data: "x".repeat(10_000).into(),
            error: Some("refused".to_owned()),
        };
        seal.complete(&mut call, None, &result).unwrap();
        assert!(call.body.result_size() > 10_000);
        assert!(seal.drop_data(&mut call).unwrap());
        assert!(call.body.result_size() < 200);
        let kept = seal.call_result(&call).unwrap().unwrap();
        assert_eq!(kept.error, result.error);
    }

    #[test]
    fn older_runs_may_send_proxy_requests() {
        let older = json!({
            "user_id": "amy", "recipe_id": "r", "recipe": "RECIPE_A", "version": 1,
            "status": "running", "origin": { "session": SessionId::random() }, "plan": "",
        });
        let run: RecipeRun = serde_json::from_value(older).unwrap();
        assert!(run.may_proxy);
    }

    #[tokio::test]
    async fn runs_are_erased_after_a_day() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), COLLECTIONS).unwrap();
        let claim = claim_job(&store).await;
        let now = claim.batch().await.unwrap().now;
        let minute = Duration::from_secs(60);
        let mut batch = Batch::at(now);
        for (id, age) in [("kept", RUN_TTL - minute), ("old", RUN_TTL + minute)] {
            let plan = Record::inserted("p", id, time_before(now, age), "{}".into());
            batch = batch.restore(&PLANS_COLLECTION, plan);
        }
        store.commit(batch).await.unwrap();
        erase_old(&claim).await.unwrap();
        let all = Query::for_project("p");
        let rows = store.rows(&PLANS_COLLECTION, &all).await.unwrap().rows;
        let ids: Vec<_> = rows.iter().map(|row| row.id.as_str()).collect();
        assert_eq!(ids, ["kept"]);
    }
}
