//! Mails as written by agents, and their delivery to Google.

use std::time::Duration;

use data_encoding::BASE64URL;
use toolkit_sdk::prelude::*;

use crate::API;
use crate::mime::{Message, addresses, text};
use crate::text::to_html;

const UPLOAD_API: Client = Client::new("https://gmail.googleapis.com/upload/gmail/v1/users/me");
/// Max size of a message sent in memory, in bytes. A larger message is sent as a file: a request
/// from memory has at most 4 MiB, and base64 adds a third.
const MAX_IN_MEMORY_BYTES: u64 = 2_900_000;
/// Max size of a message that Gmail accepts, in bytes.
const MAX_MESSAGE_BYTES: u64 = 35_000_000;
/// Timeout of a request that sends a message as a file.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(100);
/// Boundary between the parts of such a request. No line of a message starts with it, see
/// [`crate::mime`].
const PART_BOUNDARY: &str = "=_upload";

/// Text and attachments of a mail.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Content {
    /// Text of the mail, in the given `format`, Markdown by default.
    pub(crate) body: String,
    #[serde(default)]
    pub(crate) format: Format,
    /// Attachments, together at most 25 MB.
    #[serde(default)]
    #[schemars(length(max = 20))]
    pub(crate) attachments: Vec<File>,
}

/// Format of the text.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// Sent as HTML, and unchanged as plain text for mail programs without HTML.
    #[default]
    Markdown,
    /// Sent unchanged.
    Text,
    Html,
}

/// Text of a mail as plain text, as HTML, or as both.
pub(crate) struct Texts {
    pub(crate) plain: Option<String>,
    pub(crate) html: Option<String>,
}

impl Content {
    pub(crate) fn texts(&self) -> Texts {
        let body = Some(self.body.clone());
        match self.format {
            Format::Markdown => Texts {
                plain: body,
                html: Some(to_html(&self.body)),
            },
            Format::Text => Texts {
                plain: body,
                html: None,
            },
            Format::Html => Texts {
                plain: None,
                html: body,
            },
        }
    }
}

/// A mail with its recipients.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Mail {
    /// Recipients: `ada@example.com` or `Ada Lovelace <ada@example.com>`.
    #[serde(default)]
    #[schemars(length(max = 500))]
    pub(crate) to: Vec<String>,
    #[serde(default)]
    #[schemars(length(max = 500))]
    pub(crate) cc: Vec<String>,
    /// Recipients that the other recipients do not see.
    #[serde(default)]
    #[schemars(length(max = 500))]
    pub(crate) bcc: Vec<String>,
    #[serde(default)]
    pub(crate) subject: String,
    #[serde(flatten)]
    pub(crate) content: Content,
    /// Sender, if not the mailbox itself: an address from `list_send_as`, with or without a name.
    pub(crate) from_email: Option<String>,
    /// Addresses for replies, if not the sender.
    #[serde(default)]
    pub(crate) reply_to: Vec<String>,
}

impl Mail {
    /// Returns the headers for sender, recipients and subject.
    pub(crate) fn headers(&self) -> Result<Vec<(&'static str, String)>> {
        let mut headers = Vec::new();
        let from: Vec<String> = self.from_email.iter().cloned().collect();
        let lists = [
            ("From", "from_email", &from),
            ("To", "to", &self.to),
            ("Cc", "cc", &self.cc),
            ("Bcc", "bcc", &self.bcc),
        ];
        for (name, argument, all) in
            lists
                .into_iter()
                .chain([("Reply-To", "reply_to", &self.reply_to)])
        {
            if !all.is_empty() {
                headers.push((name, addresses(argument, all)?));
            }
        }
        headers.push(("Subject", text(&self.subject)));
        Ok(headers)
    }

    /// Refuses a mail without recipients.
    pub(crate) fn check_receivers(&self) -> Result<()> {
        if self.to.is_empty() && self.cc.is_empty() && self.bcc.is_empty() {
            return Err(ToolError::invalid_input(
                "the mail has no recipient; give `to`, `cc` or `bcc`",
            ));
        }
        Ok(())
    }
}

/// Position of a mail in a conversation.
#[derive(Default)]
pub(crate) struct Place {
    pub(crate) thread_id: Option<String>,
    /// `In-Reply-To` and `References`, by which other mail programs find the conversation.
    pub(crate) headers: Vec<(&'static str, String)>,
}

/// Destination of a message.
#[derive(Clone, Copy)]
pub(crate) enum Target<'a> {
    Send,
    NewDraft,
    Draft(&'a str),
}

impl Target<'_> {
    fn request(self, client: &Client) -> Request {
        match self {
            Self::Send => client.post("/messages/send"),
            Self::NewDraft => client.post("/drafts"),
            Self::Draft(id) => client.put("/drafts/{id}").path("id", id),
        }
    }

    /// Wraps a message in the body that Google expects for this destination.
    fn body(self, message: Value) -> Value {
        match self {
            Self::Send => message,
            Self::NewDraft | Self::Draft(_) => json!({ "message": message }),
        }
    }
}

/// Sends a message or saves it as a draft.
pub(crate) fn deliver<T: serde::de::DeserializeOwned>(
    target: Target<'_>,
    thread_id: Option<&String>,
    message: &Message<'_>,
) -> Result<T> {
    let size = message.size()?;
    if size > MAX_MESSAGE_BYTES {
        return Err(ToolError::invalid_input(format!(
            "the mail would have {} MB and Gmail takes at most 25 MB of files; send fewer, or a link",
            size / 1_000_000
        )));
    }
    let mut about = json!({});
    if let Some(thread) = thread_id {
        about["threadId"] = thread.as_str().into();
    }
    if size <= MAX_IN_MEMORY_BYTES {
        let mut bytes = Vec::new();
        message.write(&mut |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })?;
        about["raw"] = BASE64URL.encode(&bytes).into();
        return target
            .request(&API)
            .json(&target.body(about))
            .send()?
            .json();
    }
    let file = File::create(
        "message",
        format!("multipart/related; boundary=\"{PART_BOUNDARY}\""),
    )?;
    let body = target.body(about);
    let head = format!(
        "--{PART_BOUNDARY}\r\nContent-Type: application/json\r\n\r\n{body}\r\n--{PART_BOUNDARY}\r\nContent-Type: message/rfc822\r\n\r\n"
    );
    file.append(head.as_bytes())?;
    message.write(&mut |piece| file.append(piece))?;
    file.append(format!("\r\n--{PART_BOUNDARY}--\r\n").as_bytes())?;
    let request = target
        .request(&UPLOAD_API)
        .query("uploadType", "multipart")
        .timeout(UPLOAD_TIMEOUT);
    request.body_file(&file).send()?.json()
}
