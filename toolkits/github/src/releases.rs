//! Releases.

use toolkit_sdk::prelude::*;

use crate::api::{Page, Part, Repo, is_false, list, login, shorten};

/// A release.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Release {
    id: u64,
    #[serde(rename(deserialize = "tag_name"))]
    tag: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Release notes, in Markdown; in lists long notes are cut and end in `…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// True if only users with write access see the release.
    #[serde(default, skip_serializing_if = "is_false")]
    draft: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    prerelease: bool,
    /// Login of the author.
    #[serde(
        default,
        deserialize_with = "login",
        skip_serializing_if = "Option::is_none"
    )]
    author: Option<String>,
    /// Files to download.
    #[serde(default)]
    assets: Vec<Asset>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    published_at: Option<String>,
    /// URL of the web page.
    #[serde(rename(deserialize = "html_url"))]
    url: String,
}

/// A file of a release.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Asset {
    name: String,
    /// Size in bytes.
    size: u64,
    #[serde(rename(deserialize = "download_count"))]
    downloads: u64,
    /// URL for the download.
    #[serde(rename(deserialize = "browser_download_url"))]
    url: String,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListReleases {
    #[serde(flatten)]
    repo: Repo,
    #[serde(flatten)]
    part: Part,
}

/// Lists the releases of a repository, newest first.
#[tool(
    read_only,
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "limit": 5}"#
)]
pub(crate) fn list_releases(input: ListReleases) -> Result<Page<Release>> {
    Ok(list(input.repo.get("/releases"), &input.part)?
        .each(|release: &mut Release| shorten(&mut release.body)))
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ReleaseOf {
    #[serde(flatten)]
    repo: Repo,
    /// Tag of the release. Defaults to the latest release that is neither a draft nor a prerelease.
    tag: Option<String>,
}

/// Gets the latest release of a repository, or the release of a tag, with its notes and files.
#[tool(
    read_only,
    idempotent,
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo"}"#,
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "tag": "v1.0.0"}"#
)]
pub(crate) fn get_release(input: ReleaseOf) -> Result<Release> {
    let request = match &input.tag {
        Some(tag) => input.repo.get("/releases/tags/{tag}").path("tag", tag),
        None => input.repo.get("/releases/latest"),
    };
    request.send()?.json()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct CreateRelease {
    #[serde(flatten)]
    repo: Repo,
    #[serde(flatten)]
    release: NewRelease,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct NewRelease {
    /// Tag of the release; created if it does not exist.
    #[serde(rename(serialize = "tag_name"))]
    #[schemars(length(min = 1))]
    tag: String,
    /// Branch or commit for a new tag. Defaults to the default branch.
    #[serde(
        rename(serialize = "target_commitish"),
        skip_serializing_if = "Option::is_none"
    )]
    target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Release notes, in Markdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// Adds notes after `body` that GitHub generates from the merged pull requests.
    #[serde(default)]
    generate_release_notes: bool,
    /// Creates a draft, which is not public.
    #[serde(default)]
    draft: bool,
    #[serde(default)]
    prerelease: bool,
}

/// Creates a release, and its tag if it does not exist. It is published at once unless `draft`.
#[tool(
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "tag": "v1.0.0", "generate_release_notes": true, "draft": true}"#
)]
pub(crate) fn create_release(input: CreateRelease) -> Result<Release> {
    input
        .repo
        .post("/releases")
        .json(&input.release)
        .send()?
        .json()
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct UploadAsset {
    #[serde(flatten)]
    repo: Repo,
    /// Id of the release, from `get_release` or `create_release`.
    release_id: u64,
    /// File to upload. Names of files are unique in a release.
    file: File,
    /// Name for the download. Defaults to the name of the file.
    name: Option<String>,
    /// Label shown instead of the name.
    label: Option<String>,
}

/// Adds a file to a release for download. A name that the release already has is refused.
#[tool(
    scopes("repo"),
    example = r#"{"owner": "octo-org", "repo": "octo-repo", "release_id": 1, "file": {"name": "app.zip", "mimetype": "application/zip", "s3key": "file_a1b2c3d4e5f6"}}"#
)]
pub(crate) fn upload_release_asset(input: UploadAsset) -> Result<Asset> {
    let UploadAsset {
        repo,
        release_id,
        file,
        name,
        label,
    } = input;
    let name = name.unwrap_or_else(|| file.name.clone());
    let request = repo
        .upload("/releases/{release}/assets")
        .path("release", release_id)
        .query("name", &name);
    request
        .query_opt("label", label)
        .body_file(&file)
        .send()?
        .json()
}
