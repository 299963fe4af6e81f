//! GitHub Actions: workflows, their runs and jobs.

use std::collections::BTreeMap;

use toolkit_sdk::prelude::*;

use crate::api::{Counted, Done, Part, Repo, count, done, login, word};

/// A workflow.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Workflow {
    id: u64,
    name: String,
    /// Its file: `.github/workflows/ci.yml`.
    path: String,
    /// `active`, or why it does not run: `disabled_manually`, `disabled_inactivity`, `disabled_fork`, `deleted`.
    state: String,
}

/// One run of a workflow.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Run {
    id: u64,
    #[serde(rename(deserialize = "name"), default, skip_serializing_if = "Option::is_none")]
    workflow: Option<String>,
    /// What it is about: the message of the commit, or the title of the pull request.
    #[serde(rename(deserialize = "display_title"))]
    title: String,
    /// How often the workflow has run.
    run_number: u64,
    #[serde(rename(deserialize = "run_attempt"), default, skip_serializing_if = "Option::is_none")]
    attempt: Option<u64>,
    /// What set it off: `push`, `pull_request`, `workflow_dispatch`, `schedule` and so on.
    event: String,
    /// `queued`, `in_progress`, `completed`, `waiting`, `requested` or `pending`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<String>,
    /// How it ended, once completed: `success`, `failure`, `cancelled`, `skipped`, `timed_out`, `action_required`, `neutral`, `stale`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    conclusion: Option<String>,
    #[serde(rename(deserialize = "head_branch"), default, skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    #[serde(rename(deserialize = "head_sha"))]
    sha: String,
    /// Login of who or what set it off.
    #[serde(default, deserialize_with = "login", skip_serializing_if = "Option::is_none")]
    actor: Option<String>,
    created_at: String,
    updated_at: String,
    /// The page for people.
    #[serde(rename(deserialize = "html_url"))]
    url: String,
}

/// A job of a run.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Job {
    /// Also the `check_run_id` that `list_check_annotations` takes.
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
    /// The page with its log, for people.
    #[serde(rename(deserialize = "html_url"), default, skip_serializing_if = "Option::is_none")]
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
#[tool(read_only, idempotent, scopes("repo"), example = r#"{"owner": "octo-org", "repo": "octo-repo"}"#)]
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
    /// Only of this workflow: the name of its file, `ci.yml`, or its id.
    workflow: Option<String>,
    branch: Option<String>,
    /// Only for this commit, in full.
    sha: Option<String>,
    /// Only those that were set off so: `push`, `pull_request`, `schedule`.
    event: Option<String>,
    /// State or end.
    status: Option<RunState>,
    /// Login of who set them off.
    actor: Option<String>,
    #[serde(flatten)]
    part: Part,
}

/// Lists runs of Actions workflows, newest first, by workflow, branch, commit, event, state and person.
#[tool(
    read_only,
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "branch": "main", "status": "failure", "limit": 5}"#
)]
pub(crate) fn list_workflow_runs(input: ListRuns) -> Result<Counted<Run>> {
    let request = match &input.workflow {
        Some(workflow) => input.repo.get("/actions/workflows/{workflow_id}/runs").path("workflow_id", workflow),
        None => input.repo.get("/actions/runs"),
    };
    let request = request.query_opt("branch", input.branch).query_opt("head_sha", input.sha);
    let request = request.query_opt("event", input.event).query_opt("status", input.status.map(word));
    count(request.query_opt("actor", input.actor), &input.part)
}

/// A run, by its id.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct RunId {
    #[serde(flatten)]
    repo: Repo,
    /// What `list_workflow_runs` or `dispatch_workflow` answered.
    #[schemars(range(min = 1))]
    run_id: u64,
}

impl RunId {
    fn fill(&self, request: Request) -> Request {
        request.path("run_id", self.run_id)
    }
}

/// Gets one run of a workflow: whether it is done and how it ended.
#[tool(
    read_only,
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "run_id": 30433642}"#
)]
pub(crate) fn get_workflow_run(input: RunId) -> Result<Run> {
    input.fill(input.repo.get("/actions/runs/{run_id}")).send()?.json()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListJobs {
    #[serde(flatten)]
    run: RunId,
    #[serde(flatten)]
    part: Part,
}

/// Lists the jobs of the latest attempt of a run with their steps: which one failed. Errors that a job reported are read by
/// `list_check_annotations`.
#[tool(
    read_only,
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "run_id": 30433642}"#
)]
pub(crate) fn list_workflow_jobs(input: ListJobs) -> Result<Counted<Job>> {
    count(input.run.fill(input.run.repo.get("/actions/runs/{run_id}/jobs")), &input.part)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Dispatch {
    #[serde(flatten)]
    repo: Repo,
    /// Name of the workflow's file, `deploy.yml`, or its id.
    #[schemars(length(min = 1))]
    workflow: String,
    /// Branch or tag to run it on.
    #[serde(rename = "ref")]
    #[schemars(length(min = 1))]
    reference: String,
    /// What the workflow asks for under `workflow_dispatch`, at most 25.
    #[serde(default)]
    inputs: BTreeMap<String, Value>,
}

/// A run that was set off.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Dispatched {
    #[serde(rename(deserialize = "workflow_run_id"))]
    run_id: u64,
    /// The page for people.
    #[serde(rename(deserialize = "html_url"))]
    url: String,
}

/// Runs a workflow that has the event `workflow_dispatch`. Follow it with `get_workflow_run`.
#[tool(
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "workflow": "deploy.yml", "ref": "main", "inputs": {"environment": "staging"}}"#
)]
pub(crate) fn dispatch_workflow(input: Dispatch) -> Result<Dispatched> {
    let request = input.repo.post("/actions/workflows/{workflow_id}/dispatches").path("workflow_id", &input.workflow);
    let body = json!({ "ref": input.reference, "inputs": input.inputs, "return_run_details": true });
    request.json(&body).send()?.json()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Rerun {
    #[serde(flatten)]
    run: RunId,
    /// Only the jobs that failed, and those that depend on them.
    #[serde(default)]
    failed_only: bool,
    /// With detailed logs.
    #[serde(default)]
    enable_debug_logging: bool,
}

/// Runs a completed run once more, all of it or its failed jobs alone, on the same commit.
#[tool(
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "run_id": 30433642, "failed_only": true}"#
)]
pub(crate) fn rerun_workflow(input: Rerun) -> Result<Done> {
    let path =
        if input.failed_only { "/actions/runs/{run_id}/rerun-failed-jobs" } else { "/actions/runs/{run_id}/rerun" };
    let request = input.run.fill(input.run.repo.post(path));
    done(request.json(&json!({ "enable_debug_logging": input.enable_debug_logging })))
}

/// Cancels a run that is queued or in progress. It ends a little later: see `get_workflow_run`.
#[tool(destructive, scopes("repo"), example = r#"{"owner": "octo-org", "repo": "octo-repo", "run_id": 30433642}"#)]
pub(crate) fn cancel_workflow_run(input: RunId) -> Result<Done> {
    done(input.fill(input.repo.post("/actions/runs/{run_id}/cancel")))
}
