//! Runs of actions: one record for each event of an instance that has an action.
//!
//! The record is stored under the id of the event, in its batch. It ends as succeeded or as failed,
//! and is erased with the event.

use serde::{Deserialize, Serialize};
use store::{
    Batch, Collection, Document, Erasure, Field, Kind, Listed, Query, Record, Time, Window,
};
use strum::IntoStaticStr;
use uuid::Uuid;

use crate::{
    App, Result,
    core::{
        ids::{LogId, ProjectId, TriggerInstanceId},
        vault::{SealContext, Sealed},
    },
    events::{event::TriggerSource, triggers},
    projects::Project,
    work::{Claimable, WorkState, erase_list},
};

pub(crate) static COLLECTION: Collection = Collection {
    name: "trigger_actions",
    erasure: Erasure::Project,
    fields: &[
        Field::new("instance", Kind::Text),
        Field::new("status", Kind::Text),
        Field::due("due"),
    ],
};

/// Number of runs of a deleted instance that are erased in one commit.
const RUNS_PER_BATCH: u64 = 100;

/// A run of an action, as stored under the id of its event.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ActionRun {
    /// Trigger instance of the action.
    pub instance: TriggerInstanceId,
    /// Status.
    pub status: RunStatus,
    /// Attempts to run the tool that have ended or were lost.
    pub attempt_count: u32,
    #[serde(flatten)]
    work: WorkState,
    /// True from the start of an attempt that must not be repeated until its end.
    #[serde(default)]
    pub(super) started: bool,
    /// Log record of the last attempt that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_id: Option<LogId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<Sealed<String>>,
}

/// Status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum RunStatus {
    /// An attempt is due or running.
    Pending,
    /// The tool succeeded.
    Succeeded,
    /// No attempt follows.
    Failed,
}

impl Document for ActionRun {
    const COLLECTION: &'static Collection = &COLLECTION;
}

impl Claimable for ActionRun {
    fn work(&mut self) -> &mut WorkState {
        &mut self.work
    }

    fn on_claim(&mut self, lapsed: bool) {
        self.attempt_count += u32::from(lapsed);
    }
}

impl ActionRun {
    /// Creates a run that is due.
    fn new(instance: TriggerInstanceId, now: Time) -> Self {
        Self {
            instance,
            status: RunStatus::Pending,
            attempt_count: 0,
            work: WorkState::due_at(now),
            started: false,
            log_id: None,
            error: None,
        }
    }

    /// Returns the time of the next attempt.
    #[must_use]
    pub fn next_attempt_at(&self) -> Option<Time> {
        self.work.due
    }

    /// Notes an attempt that ended with a record in the log.
    pub(super) fn attempted(&mut self, log_id: LogId) {
        self.attempt_count += 1;
        self.log_id = Some(log_id);
        self.started = false;
    }

    /// Ends the run as succeeded.
    pub(super) fn succeed(&mut self) {
        self.status = RunStatus::Succeeded;
        self.error = None;
        self.work.due = None;
    }

    /// Ends the run as failed.
    pub(super) fn fail(&mut self, error: Sealed<String>) {
        self.status = RunStatus::Failed;
        self.error = Some(error);
        self.work.due = None;
    }

    /// Sets the time of the next attempt after one that failed.
    pub(super) fn retry_at(&mut self, error: Sealed<String>, due: Time) {
        self.error = Some(error);
        self.work.reschedule(due);
    }
}

/// Adds runs of actions, each with its source and the id of its event, to a batch. A run is failed
/// from the start if the project has too many that are pending.
pub(crate) async fn add(
    app: &App,
    project: &ProjectId,
    mut batch: Batch,
    runs: &[(&TriggerSource, Uuid)],
) -> Result<Batch> {
    if runs.is_empty() {
        return Ok(batch);
    }
    let pending = Query::for_project(project.as_str()).is("status", RunStatus::Pending.into_str());
    let count = app.store.rows(&COLLECTION, &pending.page(0, 0)).await?;
    let most = app.triggers.max_pending_actions;
    for (before, (source, event)) in (count.total..).zip(runs) {
        let id = event.to_string();
        let mut run = ActionRun::new(source.trigger_id.clone(), batch.now);
        if before >= most {
            let error = format!("the project has {most} pending actions, which is the most");
            run.fail(seal(app, project, &id, &error).await?);
        }
        batch = batch.insert(project.as_str(), &id, &run);
    }
    Ok(batch)
}

/// Erases the pending runs of a deleted instance, so that they do not count as pending actions of
/// the project. A run whose tool is running stops there: its end finds no record.
pub(crate) async fn erase_pending(
    app: &App,
    project: &ProjectId,
    instance: &TriggerInstanceId,
) -> Result<()> {
    let pending = Query::for_project(project.as_str())
        .is("instance", instance.as_str())
        .is("status", RunStatus::Pending.into_str());
    erase_list(app, &COLLECTION, pending, RUNS_PER_BATCH).await
}

/// Seals an error for the run with this id.
pub(super) async fn seal(
    app: &App,
    project: &ProjectId,
    id: &str,
    error: &str,
) -> Result<Sealed<String>> {
    triggers::seal_error(app, seal_context(project, id), error).await
}

fn seal_context<'a>(project: &'a ProjectId, id: &'a str) -> SealContext<'a> {
    SealContext::new::<ActionRun>(project.as_str(), id, "error")
}

/// A run as responses show it.
#[derive(Debug)]
pub struct ActionRunView {
    /// The run.
    pub record: Record<ActionRun>,
    /// Error of the last attempt, or the reason why nothing was attempted.
    pub error: Option<String>,
}

/// Returns a page of the runs of an instance's actions, newest first, and their total number. Fails
/// if the instance does not exist or is deleted.
pub async fn list(
    app: &App,
    project: &Project,
    instance: &TriggerInstanceId,
    status: Option<RunStatus>,
    window: Window,
) -> Result<Listed<ActionRunView>> {
    triggers::record(app, project, instance).await?;
    let query = Query::for_project(project.id.as_str())
        .is("instance", instance.as_str())
        .filter("status", status.map(|status| status.into_str()))
        .descending()
        .window(window);
    let found = app.store.list::<ActionRun>(&query).await?;
    let key = app.vault.key(project.id.as_str(), app.clock.now()).await?;
    found.try_map(|record| {
        let context = seal_context(&project.id, &record.id);
        let error = record.body.error.as_ref();
        let error = error.map(|error| key.open(context, error)).transpose()?;
        Ok(ActionRunView { record, error })
    })
}
