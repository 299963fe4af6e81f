//! Several files in one commit. GitHub takes that in steps: a tree on top of the branch's, a commit with it, and the branch moved on.

use serde::de::DeserializeOwned;
use toolkit_sdk::prelude::*;

use crate::api::Repo;
use crate::contents::Committed;

/// Modes of files in a tree (git).
const FILE: &str = "100644";
const EXECUTABLE: &str = "100755";

#[derive(Deserialize, JsonSchema)]
pub(crate) struct CommitFiles {
    #[serde(flatten)]
    repo: Repo,
    /// The branch to commit to, which exists.
    #[schemars(length(min = 1))]
    branch: String,
    /// Message of the commit.
    #[schemars(length(min = 1))]
    message: String,
    /// Files to make or replace.
    #[serde(default)]
    #[schemars(length(max = 100))]
    files: Vec<NewFile>,
    /// Paths of files to delete.
    #[serde(default)]
    #[schemars(length(max = 100))]
    delete: Vec<String>,
}

/// A file as it shall be.
#[derive(Deserialize, JsonSchema)]
struct NewFile {
    /// From the root of the repository: `src/main.rs`.
    #[schemars(length(min = 1))]
    path: String,
    /// The whole file.
    text: String,
    /// May be run as a program.
    #[serde(default)]
    executable: bool,
}

/// Anything that has a name in git.
#[derive(Deserialize)]
struct Sha {
    sha: String,
}

#[derive(Deserialize)]
struct Reference {
    object: Sha,
}

#[derive(Deserialize)]
struct Commit {
    sha: String,
    tree: Sha,
    html_url: String,
}

/// Makes, replaces and deletes several files in one commit to a branch; all of it or nothing. When somebody else commits to the
/// branch meanwhile, nothing is written and it can be tried again. Files in `.github/workflows` need the scope `workflow` too.
#[tool(
    destructive,
    important,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "branch": "notes", "message": "Move the notes", "files": [{"path": "docs/notes.md", "text": "Notes"}], "delete": ["notes.md"]}"#
)]
pub(crate) fn commit_files(input: CommitFiles) -> Result<Committed> {
    let entries = entries(&input);
    if entries.is_empty() {
        return Err(ToolError::invalid_input("nothing changes; give `files` or `delete`"));
    }
    let repo = &input.repo;
    let branch = |request: Request| request.path_segments("branch", &input.branch);
    let tip: Reference = branch(repo.get("/git/ref/heads/{branch}")).send()?.json()?;
    let old: Commit = repo.get("/git/commits/{commit_sha}").path("commit_sha", &tip.object.sha).send()?.json()?;
    let tree: Sha = post(repo, "/git/trees", &json!({ "base_tree": old.tree.sha, "tree": entries }))?;
    let new = json!({ "message": input.message, "tree": tree.sha, "parents": [old.sha] });
    let new: Commit = post(repo, "/git/commits", &new)?;
    // Without force GitHub moves the branch only forward, so nobody's commit is lost.
    branch(repo.patch("/git/refs/heads/{branch}")).json(&json!({ "sha": new.sha, "force": false })).send()?;
    Ok(Committed { commit_sha: new.sha, file_sha: None, url: new.html_url })
}

/// What differs from the tree before; a file without name in git is deleted.
fn entries(input: &CommitFiles) -> Vec<Value> {
    let file = |file: &NewFile| {
        let mode = if file.executable { EXECUTABLE } else { FILE };
        json!({ "path": file.path, "mode": mode, "type": "blob", "content": file.text })
    };
    let deleted = |path: &String| json!({ "path": path, "mode": FILE, "type": "blob", "sha": null });
    input.files.iter().map(file).chain(input.delete.iter().map(deleted)).collect()
}

fn post<T: DeserializeOwned>(repo: &Repo, path: &str, body: &Value) -> Result<T> {
    repo.post(path).json(body).send()?.json()
}
