//! Checks of a commit: results from Actions and other services.

use toolkit_sdk::prelude::*;

use crate::api::{Counted, Page, Part, Repo, count, list};

/// One check of a commit.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct CheckRun {
    /// Id of the check, for `list_check_annotations`.
    id: u64,
    name: String,
    /// `queued`, `in_progress`, `completed`, `waiting`, `requested` or `pending`.
    status: String,
    /// Result of a completed check: `success`, `failure`, `neutral`, `cancelled`, `skipped`,
    /// `timed_out`, `action_required`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    conclusion: Option<String>,
    output: Output,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    started_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    completed_at: Option<String>,
    /// URL of the web page.
    #[serde(
        rename(deserialize = "html_url"),
        default,
        skip_serializing_if = "Option::is_none"
    )]
    url: Option<String>,
}

/// Output of a check.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Output {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    annotations_count: u64,
}

/// An annotation on lines of a file.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Annotation {
    path: String,
    start_line: u64,
    end_line: u64,
    /// `notice`, `warning` or `failure`.
    #[serde(
        rename(deserialize = "annotation_level"),
        default,
        skip_serializing_if = "Option::is_none"
    )]
    level: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListChecks {
    #[serde(flatten)]
    repo: Repo,
    /// Commit, branch or tag; for a pull request its `head.sha`.
    #[serde(rename = "ref")]
    #[schemars(length(min = 1))]
    reference: String,
    #[serde(flatten)]
    part: Part,
}

/// Lists the checks of a commit with their results, to see if a pull request or a branch is green.
#[tool(
    read_only,
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "ref": "main"}"#
)]
pub(crate) fn list_check_runs(input: ListChecks) -> Result<Counted<CheckRun>> {
    count(
        input
            .repo
            .get("/commits/{ref}/check-runs")
            .path_segments("ref", &input.reference),
        &input.part,
    )
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListAnnotations {
    #[serde(flatten)]
    repo: Repo,
    /// Id of a check, or of a job of Actions.
    #[schemars(range(min = 1))]
    check_run_id: u64,
    #[serde(flatten)]
    part: Part,
}

/// Lists the errors and warnings that a check reported, with file and line. For a job of Actions
/// these show why it failed.
#[tool(
    read_only,
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "check_run_id": 399444496}"#
)]
pub(crate) fn list_check_annotations(input: ListAnnotations) -> Result<Page<Annotation>> {
    let request = input
        .repo
        .get("/check-runs/{check_run_id}/annotations")
        .path("check_run_id", input.check_run_id);
    list(request, &input.part)
}
