//! Files in a repository.

use data_encoding::BASE64;
use toolkit_sdk::prelude::*;

use crate::api::{Repo, cut, is_false};

/// Media type for raw content, the only form in which GitHub returns larger files.
const RAW_MEDIA_TYPE: &str = "application/vnd.github.raw+json";
/// Max size of text returned in one response, in bytes. Longer text is read in parts.
const MAX_TEXT_BYTES: usize = 100_000;

/// A file.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Content {
    path: String,
    /// SHA of this version of the file, for `put_file` and `delete_file`.
    sha: String,
    /// Size in bytes.
    size: u64,
    /// The text, or the requested lines of it, if the file is text of at most 1 MB.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Number of lines of the whole text.
    #[serde(skip_serializing_if = "Option::is_none")]
    line_count: Option<usize>,
    /// True if `text` ends before the last requested line; continue with `start_line`.
    #[serde(skip_serializing_if = "is_false")]
    truncated: bool,
    /// The content of any other file.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<File>,
    /// URL of the web page.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

/// GitHub's response for a path.
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
    /// Size in bytes.
    size: u64,
    sha: String,
}

/// A file, by its path.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Place {
    #[serde(flatten)]
    repo: Repo,
    /// Path from the root of the repository: `src/main.rs`.
    #[schemars(length(min = 1))]
    path: String,
    /// Branch, tag or commit. Defaults to the default branch.
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

/// Range of lines of text.
#[derive(Default, Deserialize, JsonSchema)]
struct Lines {
    /// First line to read, starting at 1. Defaults to the first line.
    #[schemars(range(min = 1))]
    start_line: Option<usize>,
    /// Last line to read. Defaults to the last line.
    #[schemars(range(min = 1))]
    end_line: Option<usize>,
}

impl Lines {
    /// Returns these lines, the total number of lines, and true if the text was too long and was
    /// cut.
    fn select(&self, text: String) -> (String, usize, bool) {
        let count = text.lines().count();
        let skipped = self.start_line.unwrap_or(1).saturating_sub(1);
        let wanted = self.end_line.unwrap_or(usize::MAX).saturating_sub(skipped);
        let whole = skipped == 0 && wanted >= count;
        let part = if whole {
            text
        } else {
            text.split_inclusive('\n')
                .skip(skipped)
                .take(wanted)
                .collect()
        };
        let (text, truncated) = cut(part, MAX_TEXT_BYTES);
        (text, count, truncated)
    }
}

/// Reads a file of a repository, or some lines of it. Text is returned as `text`, at most 100,000
/// bytes at a time; other and large files, up to 100 MB, are returned as `file`.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "path": "src/main.rs", "ref": "main"}"#
)]
pub(crate) fn get_file(input: GetFile) -> Result<Content> {
    let GetFile {
        place: input,
        lines,
    } = input;
    let request = || {
        input
            .repo
            .get("/contents/{path}")
            .path_segments("path", &input.path)
            .query_opt("ref", input.reference.as_ref())
    };
    match request().send()?.json()? {
        Found::One(blob) if blob.kind == "file" => content(blob, &lines, request),
        Found::One(blob) => {
            let message = format!("`{}` is a {}, not a file", input.path, blob.kind);
            Err(ToolError::invalid_input(message))
        }
        Found::Directory(_) => {
            let message = format!(
                "`{}` is a directory; read it with `list_directory`",
                input.path
            );
            Err(ToolError::invalid_input(message))
        }
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Readme {
    #[serde(flatten)]
    repo: Repo,
    /// Branch, tag or commit. Defaults to the default branch.
    #[serde(rename = "ref")]
    reference: Option<String>,
}

/// Reads the README of a repository, in any of the places that GitHub supports.
#[tool(
    read_only,
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo"}"#
)]
pub(crate) fn get_readme(input: Readme) -> Result<Content> {
    let request = || {
        input
            .repo
            .get("/readme")
            .query_opt("ref", input.reference.as_ref())
    };
    content(request().send()?.json()?, &Lines::default(), request)
}

/// Converts a blob to a file with its content. `again` builds the request for the raw content of a
/// file too large for JSON.
fn content(blob: Blob, lines: &Lines, again: impl Fn() -> Request) -> Result<Content> {
    let (text, file) = if blob.encoding == "base64" {
        let base64 = blob.content.replace(['\n', '\r'], "");
        let bytes = BASE64.decode(base64.as_bytes()).map_err(|cause| {
            ToolError::upstream(format!(
                "GitHub answered `{}` in an encoding other than base64: {cause}",
                blob.path
            ))
        })?;
        match String::from_utf8(bytes) {
            Ok(text) => (Some(text), None),
            Err(binary) => (
                None,
                Some(File::with(
                    &blob.name,
                    "application/octet-stream",
                    binary.as_bytes(),
                )?),
            ),
        }
    } else {
        let mut file = again()
            .header("accept", RAW_MEDIA_TYPE)
            .into_file()
            .send()?
            .file()?;
        file.name.clone_from(&blob.name);
        (None, Some(file))
    };
    let (text, line_count, truncated) = match text.map(|text| lines.select(text)) {
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
    /// Path from the root of the repository: `src`. Defaults to the root.
    #[serde(default)]
    path: String,
    /// Branch, tag or commit. Defaults to the default branch.
    #[serde(rename = "ref")]
    reference: Option<String>,
}

/// Content of a directory.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Listing {
    /// Entries, at most 1,000.
    entries: Vec<Entry>,
}

/// Lists the entries of one directory of a repository. For everything below it use `list_tree`.
#[tool(
    read_only,
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "path": "src"}"#
)]
pub(crate) fn list_directory(input: Directory) -> Result<Listing> {
    let request = match input.path.trim_matches('/') {
        "" => input.repo.get("/contents/"),
        path => input
            .repo
            .get("/contents/{path}")
            .path_segments("path", path),
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
    /// Branch, tag or commit. Defaults to the default branch.
    #[serde(rename = "ref", default = "head")]
    reference: String,
    /// Only paths below this one: `src/`.
    #[serde(default)]
    below: String,
    /// Max number of paths to return.
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

/// Paths of all files at one commit of a repository.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Tree {
    files: Vec<TreeFile>,
    /// True if files are missing from the list: narrow the search with `below`.
    #[serde(skip_serializing_if = "is_false")]
    truncated: bool,
}

/// A file in a tree.
#[derive(Serialize, Deserialize, JsonSchema)]
struct TreeFile {
    path: String,
    /// Size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(rename = "type", skip_serializing)]
    kind: String,
}

/// Lists the paths of all files of a repository, or of those below a directory, in one call.
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
    let request = input
        .repo
        .get("/git/trees/{tree_sha}")
        .path("tree_sha", &input.reference);
    let Answer {
        tree: mut files,
        mut truncated,
    } = request.query("recursive", 1).send()?.json()?;
    files.retain(|file| file.kind == "blob" && file.path.starts_with(&input.below));
    truncated |= files.len() > input.limit;
    files.truncate(input.limit);
    Ok(Tree { files, truncated })
}

#[cfg(test)]
mod tests {
    use super::{Lines, MAX_TEXT_BYTES};

    #[test]
    fn line_numbers_start_at_one() {
        let of = |start_line, end_line, text: &str| {
            Lines {
                start_line,
                end_line,
            }
            .select(text.to_owned())
        };
        let text = "one\ntwo\r\nthree";
        assert_eq!(of(None, None, text), (text.to_owned(), 3, false));
        assert_eq!(of(Some(2), Some(2), text), ("two\r\n".to_owned(), 3, false));
        assert_eq!(of(Some(3), None, text), ("three".to_owned(), 3, false));
        assert_eq!(of(Some(9), Some(8), text), (String::new(), 3, false));
        let (part, count, truncated) = of(None, None, &"seven b\n".repeat(20_000));
        assert_eq!((part.len() % 8, count, truncated), (0, 20_000, true));
        assert!(part.len() <= MAX_TEXT_BYTES);
    }
}
