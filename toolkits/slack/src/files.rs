//! Files.

use toolkit_sdk::prelude::*;

use crate::api::API;
use crate::time;

/// A file in Slack's format.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Listed {
    /// Id of the file, for `SLACK_DOWNLOAD_FILE`.
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mimetype: Option<String>,
    /// Size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    /// Id of the user who uploaded it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    /// Time of the upload, RFC 3339.
    #[serde(default, skip_deserializing, skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    /// Time of the upload, in seconds since 1970.
    #[serde(default, skip_serializing)]
    created: Option<i64>,
    /// URL of the file's web page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    permalink: Option<String>,
    /// URL of the content, accessible only with the account's token.
    #[serde(default, skip_serializing)]
    url_private_download: Option<String>,
}

impl Listed {
    fn to_output(mut self) -> Self {
        self.time = self
            .created
            .map(|seconds| time::iso_from_ts(&seconds.to_string()));
        self
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListFiles {
    /// Only files in this channel.
    channel: Option<String>,
    /// Only files uploaded by this user.
    user: Option<String>,
    /// Max number of files to return.
    #[serde(default = "thirty")]
    #[schemars(range(min = 1, max = 200))]
    limit: u32,
    /// Page to return, starting at 1.
    #[serde(default = "first")]
    #[schemars(range(min = 1))]
    page: u32,
}

fn thirty() -> u32 {
    30
}

fn first() -> u32 {
    1
}

#[derive(Deserialize)]
struct ResponseBody {
    files: Vec<Listed>,
    #[serde(default)]
    paging: Paging,
}

#[derive(Default, Deserialize)]
struct Paging {
    #[serde(default)]
    pages: u32,
}

/// One page of files.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Files {
    items: Vec<Listed>,
    /// `page` of the next request; missing on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page: Option<u32>,
}

/// Lists files that the connected account can see, newest first.
#[tool(
    read_only,
    idempotent,
    scopes("files:read"),
    example = r#"{"channel": "C012AB3CD"}"#
)]
pub(crate) fn list_files(input: ListFiles) -> Result<Files> {
    let request = API
        .get("/files.list")
        .query_opt("channel", input.channel)
        .query_opt("user", input.user);
    let ResponseBody { files, paging } = request
        .query("count", input.limit.clamp(1, 200))
        .query("page", input.page)
        .send()?
        .json()?;
    let next_page = (input.page < paging.pages).then(|| input.page.saturating_add(1));
    Ok(Files {
        items: files.into_iter().map(Listed::to_output).collect(),
        next_page,
    })
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Upload {
    /// Id of the channel or conversation in which to share it.
    #[schemars(length(min = 1))]
    channel: String,
    /// File to upload; or give `content`.
    file: Option<File>,
    /// Text to upload as a file, with `filename`.
    content: Option<String>,
    /// Name of the file, with its extension. Defaults to the name of `file`.
    filename: Option<String>,
    /// Title shown instead of the name.
    title: Option<String>,
    /// Message to send with the file, in Slack's markup: `*bold*`, `<https://…|link>`.
    comment: Option<String>,
    /// Shares it in the thread of the message with this `ts`.
    thread_ts: Option<String>,
}

/// Destination of an upload.
#[derive(Deserialize)]
struct Place {
    upload_url: String,
    file_id: String,
}

/// Shares a file in a channel, a conversation or a thread: an uploaded file, or a text such as a
/// log, a CSV or code.
#[tool(
    scopes("files:write"),
    example = r#"{"channel": "C012AB3CD", "filename": "report.csv", "content": "day,orders\n2026-01-31,12\n"}"#
)]
pub(crate) fn upload_file(input: Upload) -> Result<Listed> {
    let (name, file) = match (input.file, input.content, input.filename) {
        (Some(file), None, name) => (name.unwrap_or_else(|| file.name.clone()), file),
        (None, Some(content), Some(name)) => (
            name.clone(),
            File::with(name, "text/plain", content.as_bytes())?,
        ),
        _ => {
            return Err(ToolError::invalid_input(
                "give either `file`, or `content` and its `filename`",
            ));
        }
    };
    let request = API
        .get("/files.getUploadURLExternal")
        .query("filename", &name)
        .query("length", file.size()?);
    let Place {
        upload_url,
        file_id,
    } = request.send()?.json()?;
    // The URL itself grants the upload, so the token is not sent to it.
    http::post(&upload_url)
        .anonymous()
        .body_file(&file)
        .send()?;
    let mut described = json!({ "id": file_id });
    if let Some(title) = input.title {
        described["title"] = title.into();
    }
    let mut body = json!({ "files": [described], "channel_id": input.channel });
    let more = [
        ("initial_comment", input.comment),
        ("thread_ts", input.thread_ts),
    ];
    for (member, value) in more
        .into_iter()
        .filter_map(|(member, value)| Some((member, value?)))
    {
        body[member] = value.into();
    }
    let ResponseBody { files, .. } = API
        .post("/files.completeUploadExternal")
        .json(&body)
        .send()?
        .json()?;
    let shared = files.into_iter().next().ok_or_else(|| {
        ToolError::upstream("Slack accepted the file, but its response does not describe it")
    })?;
    Ok(shared.to_output())
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct FileId {
    /// Id of the file: `F012AB3CD`.
    #[schemars(length(min = 1))]
    file: String,
}

#[derive(Deserialize)]
struct Info {
    file: Listed,
}

/// A file with its content.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Downloaded {
    file: File,
}

/// Downloads a file that was shared in Slack.
#[tool(
    read_only,
    idempotent,
    scopes("files:read"),
    example = r#"{"file": "F012AB3CD"}"#
)]
pub(crate) fn download_file(input: FileId) -> Result<Downloaded> {
    let Info { file } = API
        .get("/files.info")
        .query("file", &input.file)
        .send()?
        .json()?;
    let Some(url) = file.url_private_download else {
        return Err(ToolError::invalid_input(
            "this file is a link to another application; Slack has no bytes of it",
        ));
    };
    let response = http::get(&url).into_file().send()?;
    // Without permission, Slack redirects to its sign-in page.
    if response.header("content-type").is_some_and(is_page)
        && !file.mimetype.as_deref().is_some_and(is_page)
    {
        return Err(ToolError::forbidden(
            "Slack gave a page to sign in instead of the file; this needs the scope files:read",
        ));
    }
    let mut downloaded = response.file()?;
    if let Some(name) = file.name {
        downloaded.name = name;
    }
    if let Some(mimetype) = file.mimetype {
        downloaded.media_type = mimetype;
    }
    Ok(Downloaded { file: downloaded })
}

fn is_page(media_type: &str) -> bool {
    media_type.starts_with("text/html")
}
