//! Commits.

use toolkit_sdk::prelude::*;

use crate::api::{Page, Part, Repo, list};
use crate::pulls::ChangedFile;

/// A commit.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Commit {
    sha: String,
    message: String,
    /// Login of the author; missing if GitHub knows no account for the email address.
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<String>,
    /// Name of the author as recorded in the commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    author_name: Option<String>,
    /// Time at which the commit was authored.
    #[serde(skip_serializing_if = "Option::is_none")]
    authored_at: Option<String>,
    /// SHAs of the parent commits; two or more for a merge.
    parents: Vec<String>,
    /// URL of the web page.
    url: String,
}

/// A commit in GitHub's format.
#[derive(Deserialize)]
struct RawCommit {
    sha: String,
    commit: Inner,
    #[serde(default)]
    author: Option<Author>,
    #[serde(default)]
    parents: Vec<Parent>,
    html_url: String,
}

/// Author of a commit. GitHub returns `{}` for some authors that it does not know.
#[derive(Deserialize)]
struct Author {
    login: Option<String>,
}

#[derive(Deserialize)]
struct Inner {
    message: String,
    author: Option<Signature>,
}

#[derive(Deserialize)]
struct Signature {
    name: Option<String>,
    date: Option<String>,
}

#[derive(Deserialize)]
struct Parent {
    sha: String,
}

impl From<RawCommit> for Commit {
    fn from(
        RawCommit {
            sha,
            commit,
            author,
            parents,
            html_url: url,
        }: RawCommit,
    ) -> Self {
        let (author_name, authored_at) = commit
            .author
            .map_or((None, None), |author| (author.name, author.date));
        let parents = parents.into_iter().map(|parent| parent.sha).collect();
        let author = author.and_then(|author| author.login);
        Self {
            sha,
            message: commit.message,
            author,
            author_name,
            authored_at,
            parents,
            url,
        }
    }
}

impl<'de> Deserialize<'de> for Commit {
    fn deserialize<D: serde::Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        RawCommit::deserialize(json).map(Self::from)
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListCommits {
    #[serde(flatten)]
    repo: Repo,
    /// Branch, tag or commit to start from. Defaults to the default branch.
    #[serde(rename = "ref")]
    reference: Option<String>,
    /// Only commits that changed this file or directory.
    path: Option<String>,
    /// Login or email address of the author.
    author: Option<String>,
    /// Start of the time range, RFC 3339: `2026-01-31T00:00:00Z`.
    since: Option<String>,
    /// End of the time range, RFC 3339.
    until: Option<String>,
    #[serde(flatten)]
    part: Part,
}

/// Lists commits, newest first, by branch, path, author and time.
#[tool(
    read_only,
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "path": "src/main.rs", "limit": 5}"#
)]
pub(crate) fn list_commits(input: ListCommits) -> Result<Page<Commit>> {
    let request = input
        .repo
        .get("/commits")
        .query_opt("sha", input.reference)
        .query_opt("path", input.path)
        .query_opt("author", input.author)
        .query_opt("since", input.since)
        .query_opt("until", input.until);
    list(request, &input.part)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct CommitName {
    #[serde(flatten)]
    repo: Repo,
    /// Commit, branch or tag.
    #[serde(rename = "ref")]
    #[schemars(length(min = 1))]
    reference: String,
}

/// A commit with the files that it changes.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Detail {
    #[serde(flatten)]
    commit: Commit,
    /// Changed files, at most 300.
    #[serde(default)]
    files: Vec<ChangedFile>,
}

/// Gets one commit with the files it changes and their diffs.
#[tool(
    read_only,
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "ref": "7638417db6d59f3c431d3e1f261cc637155684cd"}"#
)]
pub(crate) fn get_commit(input: CommitName) -> Result<Detail> {
    input
        .repo
        .get("/commits/{ref}")
        .path_segments("ref", &input.reference)
        .send()?
        .json()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Compare {
    #[serde(flatten)]
    repo: Repo,
    /// The older branch, tag or commit: `v1.0`.
    #[schemars(length(min = 1))]
    base: String,
    /// The newer branch, tag or commit; in a fork: `octocat:fix-crash`.
    #[schemars(length(min = 1))]
    head: String,
}

/// Differences between two commits.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Comparison {
    /// Relation of `head` to `base`: `ahead`, `behind`, `identical` or `diverged`.
    status: String,
    /// Number of commits that only `head` has.
    ahead_by: u64,
    /// Number of commits that only `base` has.
    behind_by: u64,
    /// Commits that only `head` has, oldest first, at most 250.
    commits: Vec<Commit>,
    /// Files changed between the common ancestor and `head`, at most 300.
    #[serde(default)]
    files: Vec<ChangedFile>,
}

/// Compares two branches, tags or commits: lists the commits between them and the files they
/// change. Use it for release notes, or before opening a pull request.
#[tool(
    read_only,
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "base": "v1.0", "head": "main"}"#
)]
pub(crate) fn compare_commits(input: Compare) -> Result<Comparison> {
    let request = input.repo.get("/compare/{basehead}");
    request
        .path("basehead", format_args!("{}...{}", input.base, input.head))
        .send()?
        .json()
}
