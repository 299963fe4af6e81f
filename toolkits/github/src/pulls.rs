//! Pull requests.

use toolkit_sdk::prelude::*;

use crate::api::{Direction, Page, Part, Repo, cut, is_false, list, login, logins, shorten, word};
use crate::issues::{Listed, Milestone, State};
use crate::labels::label_names;

/// Max size of a diff in bytes. A larger diff is more than an agent can read.
const MAX_DIFF_BYTES: usize = 200_000;

/// A pull request.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct PullRequest {
    pub(crate) number: u64,
    title: String,
    /// `open` or `closed`.
    state: String,
    #[serde(default, skip_serializing_if = "is_false")]
    draft: bool,
    /// True if the pull request was merged; only in responses with a single pull request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    merged: Option<bool>,
    /// Time of the merge; missing if it was not merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    merged_at: Option<String>,
    /// True if it merges without conflict; only in responses with a single pull request, and
    /// missing while GitHub computes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mergeable: Option<bool>,
    /// State of mergeability: `clean`, `dirty` (conflicts), `blocked`, `behind`, `unstable` (checks
    /// fail), `draft`, `unknown`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mergeable_state: Option<String>,
    /// Login of the author.
    #[serde(
        rename(deserialize = "user"),
        default,
        deserialize_with = "login",
        skip_serializing_if = "Option::is_none"
    )]
    author: Option<String>,
    /// Text, in Markdown; in lists a long text is cut and ends in `…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// Branch to be merged.
    pub(crate) head: End,
    /// Branch to merge into.
    base: End,
    #[serde(default, deserialize_with = "label_names")]
    labels: Vec<String>,
    /// Logins of the assignees.
    #[serde(default, deserialize_with = "logins")]
    assignees: Vec<String>,
    /// Logins of the users whose review is requested.
    #[serde(default, deserialize_with = "logins")]
    requested_reviewers: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    milestone: Option<Milestone>,
    /// Number of commits; like the counts below only in responses with a single pull request.
    #[serde(
        rename(deserialize = "commits"),
        default,
        skip_serializing_if = "Option::is_none"
    )]
    commit_count: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changed_files: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    additions: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deletions: Option<u64>,
    created_at: String,
    updated_at: String,
    /// URL of the web page.
    #[serde(rename(deserialize = "html_url"))]
    url: String,
}

/// A branch that takes part in a pull request.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct End {
    /// Name of the branch.
    #[serde(rename(deserialize = "ref"))]
    branch: String,
    /// SHA of its newest commit.
    pub(crate) sha: String,
    /// Repository of the branch: `OWNER/NAME`; missing if the repository was deleted.
    #[serde(
        rename(deserialize = "repo"),
        default,
        deserialize_with = "full_name",
        skip_serializing_if = "Option::is_none"
    )]
    repository: Option<String>,
}

/// Deserializes a repository to its full name.
pub(crate) fn full_name<'de, D: serde::Deserializer<'de>>(
    json: D,
) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    struct Repository {
        full_name: String,
    }
    Ok(Option::<Repository>::deserialize(json)?.map(|repository| repository.full_name))
}

#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Order {
    /// Time of creation.
    #[default]
    Created,
    /// Time of the last change.
    Updated,
    /// Number of comments.
    Popularity,
    /// Pull requests open for more than a month and active within the last month.
    LongRunning,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListPulls {
    #[serde(flatten)]
    repo: Repo,
    #[serde(default)]
    state: Listed,
    /// Only pull requests from this branch, with its owner: `octo-org:fix-crash`.
    head: Option<String>,
    /// Only pull requests into this branch: `main`.
    base: Option<String>,
    #[serde(default)]
    sort: Order,
    #[serde(default)]
    direction: Direction,
    #[serde(flatten)]
    part: Part,
}

/// Lists the pull requests of a repository. To find them by author, label, reviewer or words use
/// `search_issues` with `is:pr`.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "base": "main"}"#
)]
pub(crate) fn list_pull_requests(input: ListPulls) -> Result<Page<PullRequest>> {
    let request = input
        .repo
        .get("/pulls")
        .query("state", word(input.state))
        .query_opt("head", input.head)
        .query_opt("base", input.base)
        .query("sort", word(input.sort))
        .query("direction", word(input.direction));
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
    /// Fills in the pull request number of a path.
    pub(crate) fn fill(&self, request: Request) -> Request {
        request.path("pull_number", self.pull_number)
    }
}

/// Gets one pull request: text, branches, state, size and mergeability. Its changes are read by
/// `list_pull_request_files` or `get_pull_request_diff`, the results of its checks by
/// `list_check_runs` with `head.sha`.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "pull_number": 7}"#
)]
pub(crate) fn get_pull_request(input: PullNumber) -> Result<PullRequest> {
    input
        .fill(input.repo.get("/pulls/{pull_number}"))
        .send()?
        .json()
}

/// Diff of a pull request.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Diff {
    /// Diff in the format of `git diff`.
    diff: String,
    /// True if `diff` is only the beginning; `list_pull_request_files` has the rest.
    #[serde(skip_serializing_if = "is_false")]
    truncated: bool,
}

/// Gets the changes of a pull request as one diff, cut after 200,000 bytes. For a large one use
/// `list_pull_request_files`.
#[tool(
    read_only,
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "pull_number": 7}"#
)]
pub(crate) fn get_pull_request_diff(input: PullNumber) -> Result<Diff> {
    let request = input.fill(input.repo.get("/pulls/{pull_number}"));
    let diff = request
        .header("accept", "application/vnd.github.diff")
        .send()?
        .text();
    let (diff, truncated) = cut(diff, MAX_DIFF_BYTES);
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
    /// Name of the file before the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous_filename: Option<String>,
    /// Diff of this file; missing for binary and very large files.
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
    list(
        input
            .pull
            .fill(input.pull.repo.get("/pulls/{pull_number}/files")),
        &input.part,
    )
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
    /// Branch with the changes, already pushed: `fix-crash`, or `octocat:fix-crash` in a fork.
    #[schemars(length(min = 1))]
    head: String,
    /// Branch to merge into: `main`.
    #[schemars(length(min = 1))]
    base: String,
    /// Text, in Markdown; `Closes #7` closes that issue on merge.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// Opens it as a draft, not ready for review yet.
    #[serde(default, skip_serializing_if = "is_false")]
    draft: bool,
    /// Lets maintainers push to a branch in a fork.
    #[serde(skip_serializing_if = "Option::is_none")]
    maintainer_can_modify: Option<bool>,
}

/// Opens a pull request from a branch that has been pushed. Branches come from `create_branch`,
/// commits in them from `commit_files` or `put_file`.
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

/// Changes of a pull request. Fields that are left out stay unchanged.
#[derive(Deserialize, Serialize, JsonSchema)]
struct PullChanges {
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// The whole new text, in Markdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// New state: closes the pull request without merging it, or reopens it.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<State>,
    /// New branch to merge into.
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<String>,
}

/// Changes the title, text or target of a pull request, or closes or reopens it. Labels, assignees
/// and milestone are changed by `update_issue` with the same number.
#[tool(
    destructive,
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "pull_number": 7, "title": "Fix the crash on start"}"#
)]
pub(crate) fn update_pull_request(input: UpdatePull) -> Result<PullRequest> {
    input
        .pull
        .fill(input.pull.repo.patch("/pulls/{pull_number}"))
        .json(&input.changes)
        .send()?
        .json()
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
    /// First line of the commit message. Omit it to let GitHub choose.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit_title: Option<String>,
    /// Rest of the commit message.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit_message: Option<String>,
    /// Commit that was reviewed, `head.sha`: if the branch has changed since, nothing is merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    sha: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Method {
    /// A merge commit.
    #[default]
    Merge,
    /// All commits squashed into one.
    Squash,
    /// Each commit rebased onto the target.
    Rebase,
}

/// Result of a merge.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Merged {
    merged: bool,
    /// SHA of the commit in the target branch.
    sha: String,
    message: String,
}

/// Merges a pull request into its target branch. This cannot be undone. Check `mergeable_state` of
/// `get_pull_request` first, and pass its `head.sha` as `sha`.
#[tool(
    destructive,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "pull_number": 7, "merge_method": "squash"}"#
)]
pub(crate) fn merge_pull_request(input: MergePull) -> Result<Merged> {
    input
        .pull
        .fill(input.pull.repo.put("/pulls/{pull_number}/merge"))
        .json(&input.merge)
        .send()?
        .json()
}
