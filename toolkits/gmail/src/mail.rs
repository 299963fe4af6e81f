//! A mail as agents write it, and the way it goes to Google.

use std::time::Duration;

use data_encoding::BASE64URL;
use toolkit_sdk::prelude::*;

use crate::API;
use crate::mime::{Message, addresses, text};
use crate::text::to_html;

const UPLOAD: Client = Client::new("https://gmail.googleapis.com/upload/gmail/v1/users/me");
/// Larger messages go as a file: a request from memory has at most 4 MiB, and base64 adds a third.
const LARGEST_IN_MEMORY: u64 = 2_900_000;
/// Gmail takes no larger ones.
const LARGEST: u64 = 35_000_000;
/// How long a message that goes as a file may take.
const UPLOAD_TIME: Duration = Duration::from_secs(100);
/// Stands between the parts of such a request; no line of a message begins so, see [`crate::mime`].
const BOUNDARY: &str = "=_upload";

/// What is said, and what goes along.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Content {
    /// The text, in Markdown unless `format` says otherwise.
    pub(crate) body: String,
    #[serde(default)]
    pub(crate) format: Format,
    /// Files, together at most 25 MB.
    #[serde(default)]
    #[schemars(length(max = 20))]
    pub(crate) attachments: Vec<File>,
}

/// How the text is written.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// Sent as HTML, and as it is for readers without HTML.
    #[default]
    Markdown,
    /// Sent as it is.
    Text,
    Html,
}

/// What a mail says, as text, as HTML, or as both.
pub(crate) struct Texts {
    pub(crate) plain: Option<String>,
    pub(crate) html: Option<String>,
}

impl Content {
    pub(crate) fn texts(&self) -> Texts {
        let body = || Some(self.body.clone());
        match self.format {
            Format::Markdown => Texts { plain: body(), html: Some(to_html(&self.body)) },
            Format::Text => Texts { plain: body(), html: None },
            Format::Html => Texts { plain: None, html: body() },
        }
    }
}

/// A mail to people.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Mail {
    /// Who gets it: `ada@example.com` or `Ada Lovelace <ada@example.com>`.
    #[serde(default)]
    #[schemars(length(max = 500))]
    pub(crate) to: Vec<String>,
    #[serde(default)]
    #[schemars(length(max = 500))]
    pub(crate) cc: Vec<String>,
    /// Who gets it without the others seeing it.
    #[serde(default)]
    #[schemars(length(max = 500))]
    pub(crate) bcc: Vec<String>,
    #[serde(default)]
    pub(crate) subject: String,
    #[serde(flatten)]
    pub(crate) content: Content,
    /// The sender, when not the mailbox itself: an address that `list_send_as` tells, with or without a name.
    pub(crate) from: Option<String>,
    /// Where answers go, when not to the sender.
    #[serde(default)]
    pub(crate) reply_to: Vec<String>,
}

impl Mail {
    /// The headers, as far as people write them.
    pub(crate) fn headers(&self) -> Result<Vec<(&'static str, String)>> {
        let mut headers = Vec::new();
        let from: Vec<String> = self.from.iter().cloned().collect();
        let lists =
            [("From", "from", &from), ("To", "to", &self.to), ("Cc", "cc", &self.cc), ("Bcc", "bcc", &self.bcc)];
        for (name, argument, all) in lists.into_iter().chain([("Reply-To", "reply_to", &self.reply_to)]) {
            if !all.is_empty() {
                headers.push((name, addresses(argument, all)?));
            }
        }
        headers.push(("Subject", text(&self.subject)));
        Ok(headers)
    }

    /// Refuses a mail that nobody would get.
    pub(crate) fn check_receivers(&self) -> Result<()> {
        if self.to.is_empty() && self.cc.is_empty() && self.bcc.is_empty() {
            return Err(ToolError::invalid_input("nobody would get this mail; give `to`, `cc` or `bcc`"));
        }
        Ok(())
    }
}

/// The conversation that a mail belongs to.
#[derive(Default)]
pub(crate) struct Place {
    pub(crate) thread_id: Option<String>,
    /// `In-Reply-To` and `References`, by which other mail programs find it.
    pub(crate) headers: Vec<(&'static str, String)>,
}

/// Where a message goes.
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

    /// What Google calls a message there.
    fn body(self, message: Value) -> Value {
        match self {
            Self::Send => message,
            Self::NewDraft | Self::Draft(_) => json!({ "message": message }),
        }
    }
}

/// Sends a message or keeps it as a draft.
pub(crate) fn deliver<T: serde::de::DeserializeOwned>(
    target: Target<'_>,
    thread_id: Option<&String>,
    message: &Message<'_>,
) -> Result<T> {
    let size = message.size()?;
    if size > LARGEST {
        return Err(ToolError::invalid_input(format!(
            "the mail would have {} MB and Gmail takes at most 25 MB of files; send fewer, or a link",
            size / 1_000_000
        )));
    }
    let mut about = json!({});
    if let Some(thread) = thread_id {
        about["threadId"] = thread.as_str().into();
    }
    if size <= LARGEST_IN_MEMORY {
        let mut bytes = Vec::new();
        message.write(&mut |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })?;
        about["raw"] = BASE64URL.encode(&bytes).into();
        return target.request(&API).json(&target.body(about)).send()?.json();
    }
    let file = File::create("message", format!("multipart/related; boundary=\"{BOUNDARY}\""))?;
    let about = target.body(about);
    let head = format!(
        "--{BOUNDARY}\r\nContent-Type: application/json\r\n\r\n{about}\r\n--{BOUNDARY}\r\nContent-Type: message/rfc822\r\n\r\n"
    );
    file.append(head.as_bytes())?;
    message.write(&mut |piece| file.append(piece))?;
    file.append(format!("\r\n--{BOUNDARY}--\r\n").as_bytes())?;
    let request = target.request(&UPLOAD).query("uploadType", "multipart").timeout(UPLOAD_TIME);
    request.body_file(&file).send()?.json()
}
