//! Branches and tags.

use toolkit_sdk::prelude::*;

use crate::api::{Done, Page, Part, Repo, done, list};

/// A branch or a tag.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Named {
    name: String,
    /// SHA of the newest commit.
    #[serde(rename(deserialize = "commit"), deserialize_with = "sha")]
    sha: String,
    /// For branches: true if rules forbid some changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    protected: Option<bool>,
}

fn sha<'de, D: serde::Deserializer<'de>>(json: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    struct Commit {
        sha: String,
    }
    Ok(Commit::deserialize(json)?.sha)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListNamed {
    #[serde(flatten)]
    repo: Repo,
    #[serde(flatten)]
    part: Part,
}

/// Lists the branches of a repository with their newest commits.
#[tool(
    read_only,
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo"}"#
)]
pub(crate) fn list_branches(input: ListNamed) -> Result<Page<Named>> {
    list(input.repo.get("/branches"), &input.part)
}

/// Lists the tags of a repository with their commits.
#[tool(
    read_only,
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo"}"#
)]
pub(crate) fn list_tags(input: ListNamed) -> Result<Page<Named>> {
    list(input.repo.get("/tags"), &input.part)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct CreateBranch {
    #[serde(flatten)]
    repo: Repo,
    /// Name of the new branch: `fix-crash`.
    #[schemars(length(min = 1))]
    branch: String,
    /// Branch, tag or commit to start from. Defaults to the default branch.
    #[serde(default = "head")]
    from_ref: String,
}

fn head() -> String {
    "HEAD".to_owned()
}

/// A branch that was created.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Created {
    branch: String,
    /// SHA of the commit at which the branch starts.
    sha: String,
}

/// Creates a branch, from the default branch unless `from_ref` is given.
#[tool(
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "branch": "fix-crash"}"#
)]
pub(crate) fn create_branch(input: CreateBranch) -> Result<Created> {
    let request = input
        .repo
        .get("/commits/{ref}")
        .path_segments("ref", &input.from_ref);
    let sha = request
        .header("accept", "application/vnd.github.sha")
        .send()?
        .text();
    let body = json!({ "ref": format!("refs/heads/{}", input.branch), "sha": sha });
    input.repo.post("/git/refs").json(&body).send()?;
    Ok(Created {
        branch: input.branch,
        sha,
    })
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct BranchName {
    #[serde(flatten)]
    repo: Repo,
    #[schemars(length(min = 1))]
    branch: String,
}

/// Deletes a branch. Commits that are in no other branch or tag are lost.
#[tool(
    destructive,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "branch": "fix-crash"}"#
)]
pub(crate) fn delete_branch(input: BranchName) -> Result<Done> {
    done(
        input
            .repo
            .delete("/git/refs/heads/{branch}")
            .path_segments("branch", &input.branch),
    )
}
