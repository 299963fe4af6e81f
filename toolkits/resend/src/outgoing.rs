//! Outgoing emails, in the form of the tool's arguments and in Resend's format.

use std::collections::BTreeMap;

use data_encoding::BASE64;
use toolkit_sdk::prelude::*;

/// Max size of a file in bytes. A request from memory has at most 4 MiB, and base64 adds a third.
const MAX_FILE_BYTES: u64 = 2_500_000;

/// An email.
#[derive(Deserialize, Serialize, JsonSchema)]
pub(crate) struct Mail {
    /// Sender, at a verified domain: `Acme <hello@acme.com>`. `onboarding@resend.dev` works for
    /// tests to yourself.
    #[serde(rename(serialize = "from"))]
    from_email: String,
    /// Recipients, at most 50.
    #[schemars(length(min = 1, max = 50))]
    to: Vec<String>,
    subject: String,
    /// Content as HTML. Give `html`, `text` or both.
    #[serde(skip_serializing_if = "Option::is_none")]
    html: Option<String>,
    /// Content as plain text.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    cc: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    bcc: Vec<String>,
    /// Addresses for replies, if not `from_email`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    reply_to: Vec<String>,
    /// Further headers, for example `X-Entity-Ref-ID`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<String, String>,
    /// Tags to find the email by in statistics.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tags: Vec<Tag>,
}

/// A tag.
#[derive(Deserialize, Serialize, JsonSchema)]
struct Tag {
    /// Name: ASCII letters, digits, `_` and `-`.
    name: String,
    /// Value: ASCII letters, digits, `_` and `-`.
    value: String,
}

impl Mail {
    pub(crate) fn check(&self) -> Result<()> {
        if self.html.is_none() && self.text.is_none() {
            return Err(ToolError::invalid_input(format!(
                "the mail `{}` is empty; give `html` or `text`",
                self.subject
            )));
        }
        Ok(())
    }
}

/// A file to attach: give one of `file`, `content` and `url`.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Attachment {
    /// File of the platform, at most 2.5 MB.
    file: Option<File>,
    /// Content of the file, in base64.
    content: Option<String>,
    /// URL from which Resend fetches the file, at most 40 MB.
    url: Option<String>,
    /// Name of the file in the email; required with `content` and `url`.
    filename: Option<String>,
    /// Content id, with which `html` can show an image: `<img src="cid:…">`.
    content_id: Option<String>,
}

/// An attachment in Resend's format.
#[derive(Serialize)]
pub(crate) struct Attached {
    filename: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_id: Option<String>,
}

impl TryFrom<Attachment> for Attached {
    type Error = ToolError;

    fn try_from(attachment: Attachment) -> Result<Self> {
        let Attachment {
            file,
            content,
            url,
            filename,
            content_id,
        } = attachment;
        match (file, content, url) {
            (Some(file), None, None) => {
                let content = Some(BASE64.encode(&file.read(MAX_FILE_BYTES)?));
                let filename = filename.unwrap_or(file.name);
                Ok(Self {
                    filename,
                    content,
                    path: None,
                    content_type: Some(file.media_type),
                    content_id,
                })
            }
            (None, content @ Some(_), None) => Ok(Self {
                filename: named(filename)?,
                content,
                path: None,
                content_type: None,
                content_id,
            }),
            (None, None, path @ Some(_)) => Ok(Self {
                filename: named(filename)?,
                content: None,
                path,
                content_type: None,
                content_id,
            }),
            _ => Err(ToolError::invalid_input(
                "give exactly one of `file`, `content` and `url` for an attachment",
            )),
        }
    }
}

fn named(filename: Option<String>) -> Result<String> {
    filename.ok_or_else(|| {
        ToolError::invalid_input("an attachment by `content` or `url` needs a `filename`")
    })
}
