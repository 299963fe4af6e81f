//! Changes of files by commits. GitHub changes one file in one request. Several files take three
//! steps: create a tree on top of the branch's tree, create a commit with it, and move the branch
//! to the commit.

use data_encoding::BASE64;
use serde::de::DeserializeOwned;
use toolkit_sdk::prelude::*;

use crate::api::Repo;

/// Max size of an uploaded file in bytes. A request from memory has at most 4 MiB, and base64 adds
/// a third.
const MAX_UPLOAD_BYTES: u64 = 2_500_000;

/// Git's modes of files in a tree.
const FILE_MODE: &str = "100644";
const EXECUTABLE_MODE: &str = "100755";

#[derive(Deserialize, JsonSchema)]
pub(crate) struct PutFile {
    #[serde(flatten)]
    repo: Repo,
    /// Path from the root of the repository: `src/main.rs`.
    #[schemars(length(min = 1))]
    path: String,
    /// The whole file as text. Give `text` or `file`.
    text: Option<String>,
    /// The whole file, at most 2.5 MB.
    file: Option<File>,
    /// Message of the commit.
    #[schemars(length(min = 1))]
    message: String,
    /// Branch to commit to. Defaults to the default branch.
    branch: Option<String>,
    /// To replace a file: the `sha` from `get_file`. Omit it to create a new file.
    sha: Option<String>,
}

/// A commit that changed files.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Committed {
    /// SHA of the commit.
    commit_sha: String,
    /// New SHA of the file; missing after a deletion or a commit of several files.
    #[serde(skip_serializing_if = "Option::is_none")]
    file_sha: Option<String>,
    /// URL of the commit's web page.
    url: String,
}

#[derive(Deserialize)]
struct FileCommit {
    content: Option<Blob>,
    commit: CommitLink,
}

#[derive(Deserialize)]
struct Blob {
    sha: Option<String>,
}

#[derive(Deserialize)]
struct CommitLink {
    #[serde(default)]
    sha: String,
    #[serde(default)]
    html_url: String,
}

impl From<FileCommit> for Committed {
    fn from(FileCommit { content, commit }: FileCommit) -> Self {
        let file_sha = content.and_then(|content| content.sha);
        Self {
            commit_sha: commit.sha,
            file_sha,
            url: commit.html_url,
        }
    }
}

#[derive(Serialize)]
struct Change {
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha: Option<String>,
}

/// Creates or replaces one file by a commit to a branch; for several at once use `commit_files`. To
/// replace one, read it first and pass its `sha`: without it, or when the file has changed since,
/// nothing is written. Files in `.github/workflows` need the scope `workflow` too.
#[tool(
    destructive,
    important,
    scopes("repo"),
    example = r##"{"owner": "octo-org", "repo": "octo-repo", "path": "notes.md", "text": "# Notes", "message": "Begin the notes", "branch": "notes"}"##
)]
pub(crate) fn put_file(input: PutFile) -> Result<Committed> {
    let content = match (input.text, input.file) {
        (Some(text), None) => BASE64.encode(text.as_bytes()),
        (None, Some(file)) => BASE64.encode(&file.read(MAX_UPLOAD_BYTES)?),
        _ => {
            return Err(ToolError::invalid_input(
                "give the file as `text` or as `file`, not both",
            ));
        }
    };
    let change = Change {
        message: input.message,
        content: Some(content),
        branch: input.branch,
        sha: input.sha,
    };
    let request = input
        .repo
        .put("/contents/{path}")
        .path_segments("path", &input.path);
    Ok(request.json(&change).send()?.json::<FileCommit>()?.into())
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct DeleteFile {
    #[serde(flatten)]
    repo: Repo,
    /// Path from the root of the repository: `src/main.rs`.
    #[schemars(length(min = 1))]
    path: String,
    /// SHA of the file, from `get_file`.
    #[schemars(length(min = 1))]
    sha: String,
    /// Message of the commit.
    #[schemars(length(min = 1))]
    message: String,
    /// Branch to commit to. Defaults to the default branch.
    branch: Option<String>,
}

/// Deletes one file by a commit to a branch. When the file has changed since its `sha` was read,
/// nothing is deleted.
#[tool(
    destructive,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "path": "notes.md", "sha": "95b966ae1c166bd92f8ae7d1c313e738c731dfc3", "message": "Drop the notes"}"#
)]
pub(crate) fn delete_file(input: DeleteFile) -> Result<Committed> {
    let change = Change {
        message: input.message,
        content: None,
        branch: input.branch,
        sha: Some(input.sha),
    };
    let request = input
        .repo
        .delete("/contents/{path}")
        .path_segments("path", &input.path);
    Ok(request.json(&change).send()?.json::<FileCommit>()?.into())
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct CommitFiles {
    #[serde(flatten)]
    repo: Repo,
    /// Existing branch to commit to.
    #[schemars(length(min = 1))]
    branch: String,
    /// Message of the commit.
    #[schemars(length(min = 1))]
    message: String,
    /// Files to create or replace.
    #[serde(default)]
    #[schemars(length(max = 100))]
    files: Vec<NewFile>,
    /// Paths of files to delete.
    #[serde(default)]
    #[schemars(length(max = 100))]
    delete: Vec<String>,
}

/// A file with its new content.
#[derive(Deserialize, JsonSchema)]
struct NewFile {
    /// Path from the root of the repository: `src/main.rs`.
    #[schemars(length(min = 1))]
    path: String,
    /// The whole content of the file.
    text: String,
    /// Marks the file as executable.
    #[serde(default)]
    executable: bool,
}

/// A git object or reference with its SHA.
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

/// Creates, replaces and deletes several files in one commit to a branch, all or nothing. If the
/// branch changes meanwhile, nothing is written and the call can be retried. Files in
/// `.github/workflows` need the scope `workflow` too.
#[tool(
    destructive,
    important,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "branch": "notes", "message": "Move the notes", "files": [{"path": "docs/notes.md", "text": "Notes"}], "delete": ["notes.md"]}"#
)]
pub(crate) fn commit_files(input: CommitFiles) -> Result<Committed> {
    let entries = entries(&input);
    if entries.is_empty() {
        return Err(ToolError::invalid_input(
            "nothing changes; give `files` or `delete`",
        ));
    }
    let repo = &input.repo;
    let branch = |request: Request| request.path_segments("branch", &input.branch);
    let tip: Reference = branch(repo.get("/git/ref/heads/{branch}")).send()?.json()?;
    let old: Commit = repo
        .get("/git/commits/{commit_sha}")
        .path("commit_sha", &tip.object.sha)
        .send()?
        .json()?;
    let tree: Sha = post(
        repo,
        "/git/trees",
        &json!({ "base_tree": old.tree.sha, "tree": entries }),
    )?;
    let new: Commit = post(
        repo,
        "/git/commits",
        &json!({ "message": input.message, "tree": tree.sha, "parents": [old.sha] }),
    )?;
    // Without force, GitHub only fast-forwards the branch, so no other commit is lost.
    branch(repo.patch("/git/refs/heads/{branch}"))
        .json(&json!({ "sha": new.sha, "force": false }))
        .send()?;
    Ok(Committed {
        commit_sha: new.sha,
        file_sha: None,
        url: new.html_url,
    })
}

/// Builds the tree entries for the changes. An entry whose `sha` is null deletes the file.
fn entries(input: &CommitFiles) -> Vec<Value> {
    let written = input.files.iter().map(|file| {
        let mode = if file.executable {
            EXECUTABLE_MODE
        } else {
            FILE_MODE
        };
        json!({ "path": file.path, "mode": mode, "type": "blob", "content": file.text })
    });
    let deleted = input
        .delete
        .iter()
        .map(|path| json!({ "path": path, "mode": FILE_MODE, "type": "blob", "sha": null }));
    written.chain(deleted).collect()
}

fn post<T: DeserializeOwned>(repo: &Repo, path: &str, body: &Value) -> Result<T> {
    repo.post(path).json(body).send()?.json()
}
