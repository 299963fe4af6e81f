//! GitHub Actions: workflows, their runs and jobs.

use std::collections::BTreeMap;

use toolkit_sdk::prelude::*;

use crate::api::{Counted, Done, Part, Repo, count, done, login, word};

/// A workflow.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Workflow {
    id: u64,
    name: String,
    /// Path of the workflow file: `.github/workflows/ci.yml`.
    path: String,
    /// `active`, or the reason why it does not run: `disabled_manually`, `disabled_inactivity`,
    /// `disabled_fork`, `deleted`.
    state: String,
}

/// One run of a workflow.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Run {
    id: u64,
    #[serde(
        rename(deserialize = "name"),
        default,
        skip_serializing_if = "Option::is_none"
    )]
    workflow: Option<String>,
    /// Message of the commit, or title of the pull request.
    #[serde(rename(deserialize = "display_title"))]
    title: String,
    /// Number of this run among the runs of the workflow.
    run_number: u64,
    #[serde(
        rename(deserialize = "run_attempt"),
        default,
        skip_serializing_if = "Option::is_none"
    )]
    attempt: Option<u64>,
    /// Event that started the run: `push`, `pull_request`, `workflow_dispatch`, `schedule` and so
    /// on.
    event: String,
    /// `queued`, `in_progress`, `completed`, `waiting`, `requested` or `pending`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<String>,
    /// Result of a completed run: `success`, `failure`, `cancelled`, `skipped`, `timed_out`,
    /// `action_required`, `neutral`, `stale`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    conclusion: Option<String>,
    #[serde(
        rename(deserialize = "head_branch"),
        default,
        skip_serializing_if = "Option::is_none"
    )]
    branch: Option<String>,
    #[serde(rename(deserialize = "head_sha"))]
    sha: String,
    /// Login of the user or app that started the run.
    #[serde(
        default,
        deserialize_with = "login",
        skip_serializing_if = "Option::is_none"
    )]
    actor: Option<String>,
    created_at: String,
    updated_at: String,
    /// URL of the web page.
    #[serde(rename(deserialize = "html_url"))]
    url: String,
}

/// A job of a run.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Job {
    /// Id of the job, also valid as `check_run_id` of `list_check_annotations`.
    id: u64,
    name: String,
    /// `queued`, `in_progress`, `completed`, `waiting`, `requested` or `pending`.
    status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    conclusion: Option<String>,
    #[serde(default)]
    steps: Vec<Step>,
    started_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    completed_at: Option<String>,
    /// URL of the web page with the log.
    #[serde(
        rename(deserialize = "html_url"),
        default,
        skip_serializing_if = "Option::is_none"
    )]
    url: Option<String>,
}

/// A step of a job.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Step {
    number: u64,
    name: String,
    status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    conclusion: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListWorkflows {
    #[serde(flatten)]
    repo: Repo,
    #[serde(flatten)]
    part: Part,
}

/// Lists the workflows of a repository.
#[tool(
    read_only,
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo"}"#
)]
pub(crate) fn list_workflows(input: ListWorkflows) -> Result<Counted<Workflow>> {
    count(input.repo.get("/actions/workflows"), &input.part)
}

#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum RunState {
    Queued,
    InProgress,
    Completed,
    Success,
    Failure,
    Cancelled,
    Skipped,
    TimedOut,
    ActionRequired,
    Waiting,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListRuns {
    #[serde(flatten)]
    repo: Repo,
    /// Only runs of this workflow: the name of its file, `ci.yml`, or its id.
    workflow: Option<String>,
    branch: Option<String>,
    /// Only runs for this commit, given by its full SHA.
    sha: Option<String>,
    /// Only runs started by this event: `push`, `pull_request`, `schedule`.
    event: Option<String>,
    /// Only runs with this status or conclusion.
    status: Option<RunState>,
    /// Only runs started by the user with this login.
    actor: Option<String>,
    #[serde(flatten)]
    part: Part,
}

/// Lists runs of Actions workflows, newest first, by workflow, branch, commit, event, status and
/// actor.
#[tool(
    read_only,
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "branch": "main", "status": "failure", "limit": 5}"#
)]
pub(crate) fn list_workflow_runs(input: ListRuns) -> Result<Counted<Run>> {
    let runs = match &input.workflow {
        Some(workflow) => input
            .repo
            .get("/actions/workflows/{workflow_id}/runs")
            .path("workflow_id", workflow),
        None => input.repo.get("/actions/runs"),
    };
    let request = runs
        .query_opt("branch", input.branch)
        .query_opt("head_sha", input.sha)
        .query_opt("event", input.event)
        .query_opt("status", input.status.map(word))
        .query_opt("actor", input.actor);
    count(request, &input.part)
}

/// A run, by its id.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct RunId {
    #[serde(flatten)]
    repo: Repo,
    /// Id of the run, from `list_workflow_runs` or `dispatch_workflow`.
    #[schemars(range(min = 1))]
    run_id: u64,
}

impl RunId {
    fn fill(&self, request: Request) -> Request {
        request.path("run_id", self.run_id)
    }
}

/// Gets one run of a workflow with its status and conclusion.
#[tool(
    read_only,
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "run_id": 30433642}"#
)]
pub(crate) fn get_workflow_run(input: RunId) -> Result<Run> {
    input
        .fill(input.repo.get("/actions/runs/{run_id}"))
        .send()?
        .json()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListJobs {
    #[serde(flatten)]
    run: RunId,
    #[serde(flatten)]
    part: Part,
}

/// Lists the jobs of the latest attempt of a run with their steps, to find the one that failed.
/// Errors that a job reported are read by `list_check_annotations`.
#[tool(
    read_only,
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "run_id": 30433642}"#
)]
pub(crate) fn list_workflow_jobs(input: ListJobs) -> Result<Counted<Job>> {
    count(
        input
            .run
            .fill(input.run.repo.get("/actions/runs/{run_id}/jobs")),
        &input.part,
    )
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Dispatch {
    #[serde(flatten)]
    repo: Repo,
    /// Name of the workflow's file, `deploy.yml`, or its id.
    #[schemars(length(min = 1))]
    workflow: String,
    /// Branch or tag to run the workflow on.
    #[serde(rename = "ref")]
    #[schemars(length(min = 1))]
    reference: String,
    /// Inputs that the workflow declares under `workflow_dispatch`, at most 25.
    #[serde(default)]
    inputs: BTreeMap<String, Value>,
}

/// A run that was started.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Dispatched {
    #[serde(rename(deserialize = "workflow_run_id"))]
    run_id: u64,
    /// URL of the web page.
    #[serde(rename(deserialize = "html_url"))]
    url: String,
}

/// Starts a workflow that has the event `workflow_dispatch`. Follow the run with
/// `get_workflow_run`.
#[tool(
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "workflow": "deploy.yml", "ref": "main", "inputs": {"environment": "staging"}}"#
)]
pub(crate) fn dispatch_workflow(input: Dispatch) -> Result<Dispatched> {
    let request = input
        .repo
        .post("/actions/workflows/{workflow_id}/dispatches")
        .path("workflow_id", &input.workflow);
    let body =
        json!({ "ref": input.reference, "inputs": input.inputs, "return_run_details": true });
    request.json(&body).send()?.json()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Rerun {
    #[serde(flatten)]
    run: RunId,
    /// Reruns only the failed jobs and the jobs that depend on them.
    #[serde(default)]
    failed_only: bool,
    /// Enables detailed logs.
    #[serde(default)]
    enable_debug_logging: bool,
}

/// Reruns a completed run on the same commit, either all of it or only its failed jobs.
#[tool(
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "run_id": 30433642, "failed_only": true}"#
)]
pub(crate) fn rerun_workflow(input: Rerun) -> Result<Done> {
    let path = if input.failed_only {
        "/actions/runs/{run_id}/rerun-failed-jobs"
    } else {
        "/actions/runs/{run_id}/rerun"
    };
    let request = input.run.fill(input.run.repo.post(path));
    done(request.json(&json!({ "enable_debug_logging": input.enable_debug_logging })))
}

/// Cancels a run that is queued or in progress. It ends a little later: see `get_workflow_run`.
#[tool(
    destructive,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "run_id": 30433642}"#
)]
pub(crate) fn cancel_workflow_run(input: RunId) -> Result<Done> {
    done(input.fill(input.repo.post("/actions/runs/{run_id}/cancel")))
}
