//! Files in a repository.

use data_encoding::BASE64;
use toolkit_sdk::prelude::*;

use crate::api::{Repo, cut, is_false};

/// GitHub answers larger files only as they are.
const RAW: &str = "application/vnd.github.raw+json";
/// A longer text is read in parts.
const LARGEST_TEXT: usize = 100_000;
/// A request from memory has at most 4 MiB, and base64 adds a third.
const LARGEST_UPLOAD: u64 = 2_500_000;

/// A file.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Content {
    path: String,
    /// Identifies this state of the file; `put_file` and `delete_file` take it.
    sha: String,
    /// Bytes.
    size: u64,
    /// The text, when it is one of at most 1 MB, or the lines that were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// How many lines the whole text has.
    #[serde(skip_serializing_if = "Option::is_none")]
    line_count: Option<usize>,
    /// `text` ends before the last line that was asked for; read on with `start_line`.
    #[serde(skip_serializing_if = "is_false")]
    truncated: bool,
    /// Anything else.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<File>,
    /// The page for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

/// What lies at a path.
#[derive(Deserialize)]
#[serde(untagged)]
enum Found {
    /// A file, a link or a submodule.
    One(Blob),
    Directory(Vec<Entry>),
}

#[derive(Deserialize)]
struct Blob {
    #[serde(rename = "type")]
    kind: String,
    name: String,
    path: String,
    sha: String,
    size: u64,
    /// `base64`, or `none` when the file is larger than 1 MB.
    #[serde(default)]
    encoding: String,
    #[serde(default)]
    content: String,
    html_url: Option<String>,
}

/// An entry of a directory.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Entry {
    name: String,
    path: String,
    /// `file`, `dir`, `symlink` or `submodule`.
    #[serde(rename = "type")]
    kind: String,
    /// Bytes.
    size: u64,
    sha: String,
}

/// A file by its path.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Place {
    #[serde(flatten)]
    repo: Repo,
    /// From the root of the repository: `src/main.rs`.
    #[schemars(length(min = 1))]
    path: String,
    /// Branch, tag or commit; left out: the default branch.
    #[serde(rename = "ref")]
    reference: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct GetFile {
    #[serde(flatten)]
    place: Place,
    #[serde(flatten)]
    lines: Lines,
}

/// Which lines of a text.
#[derive(Default, Deserialize, JsonSchema)]
struct Lines {
    /// The first line to read, from 1; left out: the first.
    #[schemars(range(min = 1))]
    start_line: Option<usize>,
    /// The last line to read; left out: the last.
    #[schemars(range(min = 1))]
    end_line: Option<usize>,
}

impl Lines {
    /// These lines, how many there are in all, and whether the text was too long.
    fn of(&self, text: String) -> (String, usize, bool) {
        let count = text.lines().count();
        let skipped = self.start_line.unwrap_or(1).saturating_sub(1);
        let wanted = self.end_line.unwrap_or(usize::MAX).saturating_sub(skipped);
        let whole = skipped == 0 && wanted >= count;
        let part = if whole { text } else { text.split_inclusive('\n').skip(skipped).take(wanted).collect() };
        let (text, truncated) = cut(part, LARGEST_TEXT);
        (text, count, truncated)
    }
}

/// Reads a file of a repository, or some lines of it. Text comes as `text`, at most 100,000 bytes at a time; other and large
/// files, up to 100 MB, come as `file`.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "path": "src/main.rs", "ref": "main"}"#
)]
pub(crate) fn get_file(input: GetFile) -> Result<Content> {
    let GetFile { place: input, lines } = input;
    let request = || input.repo.get("/contents/{path}").path_segments("path", &input.path);
    let request = || request().query_opt("ref", input.reference.as_ref());
    match request().send()?.json()? {
        Found::One(blob) if blob.kind == "file" => content(blob, &lines, request),
        Found::One(blob) => {
            let message = format!("`{}` is a {}, not a file", input.path, blob.kind);
            Err(ToolError::invalid_input(message))
        }
        Found::Directory(_) => {
            let message = format!("`{}` is a directory; read it with `list_directory`", input.path);
            Err(ToolError::invalid_input(message))
        }
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Readme {
    #[serde(flatten)]
    repo: Repo,
    /// Branch, tag or commit; left out: the default branch.
    #[serde(rename = "ref")]
    reference: Option<String>,
}

/// Reads the README of a repository, wherever it lies.
#[tool(read_only, idempotent, scopes("repo"), example = r#"{"owner": "octo-org", "repo": "octo-repo"}"#)]
pub(crate) fn get_readme(input: Readme) -> Result<Content> {
    let request = || input.repo.get("/readme").query_opt("ref", input.reference.as_ref());
    content(request().send()?.json()?, &Lines::default(), request)
}

/// A file with its bytes; `again` asks for it once more, to get one that is too large for JSON.
fn content(blob: Blob, lines: &Lines, again: impl Fn() -> Request) -> Result<Content> {
    let (text, file) = if blob.encoding == "base64" {
        let base64 = blob.content.replace(['\n', '\r'], "");
        let bytes = BASE64.decode(base64.as_bytes()).map_err(|cause| {
            ToolError::upstream(format!("GitHub answered `{}` in something other than base64: {cause}", blob.path))
        })?;
        match String::from_utf8(bytes) {
            Ok(text) => (Some(text), None),
            Err(binary) => (None, Some(File::with(&blob.name, "application/octet-stream", binary.as_bytes())?)),
        }
    } else {
        let mut file = again().header("accept", RAW).into_file().send()?.file()?;
        file.name.clone_from(&blob.name);
        (None, Some(file))
    };
    let (text, line_count, truncated) = match text.map(|text| lines.of(text)) {
        Some((text, count, truncated)) => (Some(text), Some(count), truncated),
        None => (None, None, false),
    };
    Ok(Content {
        path: blob.path,
        sha: blob.sha,
        size: blob.size,
        text,
        line_count,
        truncated,
        file,
        url: blob.html_url,
    })
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Directory {
    #[serde(flatten)]
    repo: Repo,
    /// From the root of the repository: `src`; left out: the root.
    #[serde(default)]
    path: String,
    /// Branch, tag or commit; left out: the default branch.
    #[serde(rename = "ref")]
    reference: Option<String>,
}

/// What lies in a directory.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Listing {
    /// At most 1,000.
    entries: Vec<Entry>,
}

/// Lists what lies in one directory of a repository. For everything below it use `list_tree`.
#[tool(read_only, idempotent, scopes("repo"), example = r#"{"owner": "octo-org", "repo": "octo-repo", "path": "src"}"#)]
pub(crate) fn list_directory(input: Directory) -> Result<Listing> {
    let request = match input.path.trim_matches('/') {
        "" => input.repo.get("/contents/"),
        path => input.repo.get("/contents/{path}").path_segments("path", path),
    };
    match request.query_opt("ref", input.reference).send()?.json()? {
        Found::Directory(entries) => Ok(Listing { entries }),
        Found::One(_) => {
            let message = format!("`{}` is no directory; read it with `get_file`", input.path);
            Err(ToolError::invalid_input(message))
        }
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListTree {
    #[serde(flatten)]
    repo: Repo,
    /// Branch, tag or commit; left out: the default branch.
    #[serde(rename = "ref", default = "head")]
    reference: String,
    /// Only paths below this one: `src/`.
    #[serde(default)]
    below: String,
    /// How many paths to answer.
    #[serde(default = "thousand")]
    #[schemars(range(min = 1, max = 5000))]
    limit: usize,
}

fn head() -> String {
    "HEAD".to_owned()
}

fn thousand() -> usize {
    1000
}

/// All paths of a state of a repository.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Tree {
    files: Vec<TreeFile>,
    /// There are more: say `below` what to look for.
    #[serde(skip_serializing_if = "is_false")]
    truncated: bool,
}

/// A file in a tree.
#[derive(Serialize, Deserialize, JsonSchema)]
struct TreeFile {
    path: String,
    /// Bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(rename = "type", skip_serializing)]
    kind: String,
}

/// Lists the paths of all files of a repository, or of those below a directory, in one go.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "below": "src/"}"#
)]
pub(crate) fn list_tree(input: ListTree) -> Result<Tree> {
    #[derive(Deserialize)]
    struct Answer {
        tree: Vec<TreeFile>,
        truncated: bool,
    }
    let request = input.repo.get("/git/trees/{tree_sha}").path("tree_sha", &input.reference);
    let Answer { tree, mut truncated } = request.query("recursive", 1).send()?.json()?;
    let wanted = |file: &TreeFile| file.kind == "blob" && file.path.starts_with(&input.below);
    let mut files: Vec<TreeFile> = tree.into_iter().filter(wanted).collect();
    truncated |= files.len() > input.limit;
    files.truncate(input.limit);
    Ok(Tree { files, truncated })
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct PutFile {
    #[serde(flatten)]
    repo: Repo,
    /// From the root of the repository: `src/main.rs`.
    #[schemars(length(min = 1))]
    path: String,
    /// The whole file as text. Give `text` or `file`.
    text: Option<String>,
    /// The whole file, at most 2.5 MB.
    file: Option<File>,
    /// Message of the commit.
    #[schemars(length(min = 1))]
    message: String,
    /// Left out: the default branch.
    branch: Option<String>,
    /// To replace a file: the `sha` that `get_file` answered. Left out: makes a new file.
    sha: Option<String>,
}

/// A commit that changed files.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Committed {
    /// The commit.
    pub(crate) commit_sha: String,
    /// The new state of the file, where there is one file and it was not deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file_sha: Option<String>,
    /// The page of the commit, for people.
    pub(crate) url: String,
}

#[derive(Deserialize)]
struct FileCommit {
    content: Option<Sha>,
    commit: CommitLink,
}

#[derive(Deserialize)]
struct Sha {
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
        Self { commit_sha: commit.sha, file_sha, url: commit.html_url }
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

/// Makes or replaces one file by a commit to a branch; for several at once use `commit_files`. To replace one, read it first and pass its `sha`: without it, or when the
/// file has changed since, nothing is written. Files in `.github/workflows` need the scope `workflow` too.
#[tool(
    destructive,
    important,
    scopes("repo"),
    example = r##"{"owner": "octo-org", "repo": "octo-repo", "path": "notes.md", "text": "# Notes", "message": "Begin the notes", "branch": "notes"}"##
)]
pub(crate) fn put_file(input: PutFile) -> Result<Committed> {
    let content = match (input.text, input.file) {
        (Some(text), None) => BASE64.encode(text.as_bytes()),
        (None, Some(file)) => BASE64.encode(&file.read(LARGEST_UPLOAD)?),
        _ => return Err(ToolError::invalid_input("give the file as `text` or as `file`, not both")),
    };
    let change = Change { message: input.message, content: Some(content), branch: input.branch, sha: input.sha };
    let request = input.repo.put("/contents/{path}").path_segments("path", &input.path);
    Ok(request.json(&change).send()?.json::<FileCommit>()?.into())
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct DeleteFile {
    #[serde(flatten)]
    repo: Repo,
    /// From the root of the repository: `src/main.rs`.
    #[schemars(length(min = 1))]
    path: String,
    /// What `get_file` answered.
    #[schemars(length(min = 1))]
    sha: String,
    /// Message of the commit.
    #[schemars(length(min = 1))]
    message: String,
    /// Left out: the default branch.
    branch: Option<String>,
}

/// Deletes one file by a commit to a branch. When the file has changed since its `sha` was read, nothing is deleted.
#[tool(
    destructive,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "path": "notes.md", "sha": "95b966ae1c166bd92f8ae7d1c313e738c731dfc3", "message": "Drop the notes"}"#
)]
pub(crate) fn delete_file(input: DeleteFile) -> Result<Committed> {
    let change = Change { message: input.message, content: None, branch: input.branch, sha: Some(input.sha) };
    let request = input.repo.delete("/contents/{path}").path_segments("path", &input.path);
    Ok(request.json(&change).send()?.json::<FileCommit>()?.into())
}
