//! Pull requests.

use toolkit_sdk::prelude::*;

use crate::api::{Direction, Page, Part, Repo, cut, is_false, list, login, logins, shorten, word};
use crate::issues::{Listed, Milestone, State};
use crate::labels::label_names;

/// A larger diff says more than an agent can read.
const LARGEST_DIFF: usize = 200_000;

/// A pull request.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct PullRequest {
    pub(crate) number: u64,
    title: String,
    /// `open` or `closed`.
    state: String,
    #[serde(default, skip_serializing_if = "is_false")]
    draft: bool,
    /// Whether it was merged; only with a single pull request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    merged: Option<bool>,
    /// When it was merged; missing when it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    merged_at: Option<String>,
    /// Whether it merges without conflict; only with a single pull request, and missing while GitHub finds out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mergeable: Option<bool>,
    /// Why it cannot be merged, if so: `clean`, `dirty` (conflicts), `blocked`, `behind`, `unstable` (checks fail), `draft`, `unknown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mergeable_state: Option<String>,
    /// Login of who opened it.
    #[serde(
        rename(deserialize = "user"),
        default,
        deserialize_with = "login",
        skip_serializing_if = "Option::is_none"
    )]
    author: Option<String>,
    /// Text, in Markdown; in lists only the beginning of a long one, which then ends in `…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// What is to be merged.
    pub(crate) head: End,
    /// What it is merged into.
    base: End,
    #[serde(default, deserialize_with = "label_names")]
    labels: Vec<String>,
    /// Logins.
    #[serde(default, deserialize_with = "logins")]
    assignees: Vec<String>,
    /// Logins of those whose review is asked for.
    #[serde(default, deserialize_with = "logins")]
    requested_reviewers: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    milestone: Option<Milestone>,
    /// Commits in it; like the numbers below only with a single pull request.
    #[serde(rename(deserialize = "commits"), default, skip_serializing_if = "Option::is_none")]
    commit_count: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changed_files: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    additions: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deletions: Option<u64>,
    created_at: String,
    updated_at: String,
    /// The page for people.
    #[serde(rename(deserialize = "html_url"))]
    url: String,
}

/// One end of a pull request.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct End {
    /// Branch.
    #[serde(rename(deserialize = "ref"))]
    branch: String,
    /// Its newest commit.
    pub(crate) sha: String,
    /// `OWNER/NAME`; missing when the repository was deleted.
    #[serde(
        rename(deserialize = "repo"),
        default,
        deserialize_with = "full_name",
        skip_serializing_if = "Option::is_none"
    )]
    repository: Option<String>,
}

/// A repository, of which only the full name is kept.
pub(crate) fn full_name<'de, D: serde::Deserializer<'de>>(json: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    struct Repository {
        full_name: String,
    }
    Ok(Option::<Repository>::deserialize(json)?.map(|repository| repository.full_name))
}

#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Order {
    /// When they were opened.
    #[default]
    Created,
    /// When something last happened.
    Updated,
    /// How many comments they have.
    Popularity,
    /// Open for more than a month and active within the last.
    LongRunning,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListPulls {
    #[serde(flatten)]
    repo: Repo,
    #[serde(default)]
    state: Listed,
    /// Only from this branch, with its owner: `octo-org:fix-crash`.
    head: Option<String>,
    /// Only into this branch: `main`.
    base: Option<String>,
    #[serde(default)]
    sort: Order,
    #[serde(default)]
    direction: Direction,
    #[serde(flatten)]
    part: Part,
}

/// Lists the pull requests of a repository. To find them by author, label, reviewer or words use `search_issues` with `is:pr`.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "base": "main"}"#
)]
pub(crate) fn list_pull_requests(input: ListPulls) -> Result<Page<PullRequest>> {
    let request = input.repo.get("/pulls").query("state", word(input.state)).query_opt("head", input.head);
    let request = request.query_opt("base", input.base).query("sort", word(input.sort));
    let request = request.query("direction", word(input.direction));
    Ok(list(request, &input.part)?.each(|pull: &mut PullRequest| shorten(&mut pull.body)))
}

/// A pull request, by its number.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct PullNumber {
    #[serde(flatten)]
    pub(crate) repo: Repo,
    /// Number of the pull request: 7 in `#7`.
    #[schemars(range(min = 1))]
    pub(crate) pull_number: u64,
}

impl PullNumber {
    /// Fills the number of a path that has one.
    pub(crate) fn fill(&self, request: Request) -> Request {
        request.path("pull_number", self.pull_number)
    }
}

/// Gets one pull request: text, branches, state, size, and whether it can be merged. What it changes is read by
/// `list_pull_request_files` or `get_pull_request_diff`, how its checks went by `list_check_runs` with `head.sha`.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "pull_number": 7}"#
)]
pub(crate) fn get_pull_request(input: PullNumber) -> Result<PullRequest> {
    input.fill(input.repo.get("/pulls/{pull_number}")).send()?.json()
}

/// What a pull request changes.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Diff {
    /// In the form of `git diff`.
    diff: String,
    /// Only the beginning is here; `list_pull_request_files` has the rest.
    #[serde(skip_serializing_if = "is_false")]
    truncated: bool,
}

/// Gets what a pull request changes as one diff, cut after 200,000 bytes. For a large one use `list_pull_request_files`.
#[tool(
    read_only,
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "pull_number": 7}"#
)]
pub(crate) fn get_pull_request_diff(input: PullNumber) -> Result<Diff> {
    let request = input.fill(input.repo.get("/pulls/{pull_number}"));
    let diff = request.header("accept", "application/vnd.github.diff").send()?.text();
    let (diff, truncated) = cut(diff, LARGEST_DIFF);
    Ok(Diff { diff, truncated })
}

/// A file that a pull request, a commit or a comparison changes.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct ChangedFile {
    filename: String,
    /// `added`, `removed`, `modified`, `renamed`, `copied`, `changed` or `unchanged`.
    status: String,
    additions: u64,
    deletions: u64,
    /// What it was called before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous_filename: Option<String>,
    /// The diff of this file; missing for binary and very large files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListFiles {
    #[serde(flatten)]
    pull: PullNumber,
    #[serde(flatten)]
    part: Part,
}

/// Lists the files that a pull request changes, each with its diff; at most 3,000 files in all.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "pull_number": 7}"#
)]
pub(crate) fn list_pull_request_files(input: ListFiles) -> Result<Page<ChangedFile>> {
    list(input.pull.fill(input.pull.repo.get("/pulls/{pull_number}/files")), &input.part)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct CreatePull {
    #[serde(flatten)]
    repo: Repo,
    #[serde(flatten)]
    pull: NewPull,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct NewPull {
    #[schemars(length(min = 1))]
    title: String,
    /// The branch with the changes, already pushed: `fix-crash`, or `octocat:fix-crash` in a fork.
    #[schemars(length(min = 1))]
    head: String,
    /// The branch to merge into: `main`.
    #[schemars(length(min = 1))]
    base: String,
    /// Text, in Markdown; `Closes #7` closes that issue at the merge.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// Not ready for review yet.
    #[serde(default, skip_serializing_if = "is_false")]
    draft: bool,
    /// Whether maintainers may push to a branch in a fork.
    #[serde(skip_serializing_if = "Option::is_none")]
    maintainer_can_modify: Option<bool>,
}

/// Opens a pull request from a branch that has been pushed. Branches come from `create_branch`, commits in them
/// from `commit_files` or `put_file`.
#[tool(
    important,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "title": "Fix the crash", "head": "fix-crash", "base": "main", "body": "Closes #7"}"#
)]
pub(crate) fn create_pull_request(input: CreatePull) -> Result<PullRequest> {
    input.repo.post("/pulls").json(&input.pull).send()?.json()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct UpdatePull {
    #[serde(flatten)]
    pull: PullNumber,
    #[serde(flatten)]
    changes: PullChanges,
}

/// What is missing stays as it is.
#[derive(Deserialize, Serialize, JsonSchema)]
struct PullChanges {
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// The whole new text, in Markdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// Closes the pull request without merging it, or opens it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<State>,
    /// Another branch to merge into.
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<String>,
}

/// Changes the title, text or target of a pull request, or closes it. Labels, assignees and milestone are changed by
/// `update_issue` with the same number.
#[tool(
    destructive,
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "pull_number": 7, "title": "Fix the crash on start"}"#
)]
pub(crate) fn update_pull_request(input: UpdatePull) -> Result<PullRequest> {
    input.pull.fill(input.pull.repo.patch("/pulls/{pull_number}")).json(&input.changes).send()?.json()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct MergePull {
    #[serde(flatten)]
    pull: PullNumber,
    #[serde(flatten)]
    merge: Merge,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Merge {
    #[serde(default)]
    merge_method: Method,
    /// First line of the commit's message; left out: chosen by GitHub.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit_title: Option<String>,
    /// The rest of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit_message: Option<String>,
    /// The commit that was looked at, `head.sha`: when the branch has moved on since, nothing is merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    sha: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Method {
    /// A merge commit.
    #[default]
    Merge,
    /// All commits as one.
    Squash,
    /// Each commit on top of the target.
    Rebase,
}

/// What became of a merge.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Merged {
    merged: bool,
    /// The commit in the target branch.
    sha: String,
    message: String,
}

/// Merges a pull request into its target branch. This cannot be undone. Look at `mergeable_state` of `get_pull_request` first, and
/// pass its `head.sha` as `sha`.
#[tool(
    destructive,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "pull_number": 7, "merge_method": "squash"}"#
)]
pub(crate) fn merge_pull_request(input: MergePull) -> Result<Merged> {
    input.pull.fill(input.pull.repo.put("/pulls/{pull_number}/merge")).json(&input.merge).send()?.json()
}
