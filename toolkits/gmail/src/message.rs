//! Mails in the form returned to agents, converted from Google's format.

use data_encoding::BASE64URL_NOPAD;
use jiff::Timestamp;
use toolkit_sdk::prelude::*;

use crate::text::{cut, to_markdown};

/// Headers that are returned. In lists, only these are requested from Google.
pub(crate) const RETURNED_HEADERS: [&str; 6] = ["From", "To", "Cc", "Reply-To", "Subject", "Date"];
/// Max depth of nested parts.
const MAX_PART_DEPTH: usize = 20;

/// A mail.
#[derive(Serialize, JsonSchema, Clone)]
pub(crate) struct Email {
    pub(crate) id: String,
    /// Id of the conversation.
    thread_id: String,
    /// Sender: `Ada Lovelace <ada@example.com>`.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cc: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    /// Time at which Gmail received or sent it, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) date: Option<String>,
    /// Ids of labels: `INBOX`, `UNREAD`, `STARRED`, `SENT`, `Label_7` and so on.
    labels: Vec<String>,
    /// Beginning of the text; only if `text` is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    snippet: Option<String>,
    /// Text of the mail; converted to Markdown if the mail has only HTML.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
    /// True if the text was cut.
    #[serde(skip_serializing_if = "is_false")]
    truncated: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<Attachment>,
}

/// An attachment of a mail.
#[derive(Serialize, JsonSchema, Clone)]
pub(crate) struct Attachment {
    /// Id of the attachment, for `get_attachment`.
    pub(crate) part_id: String,
    pub(crate) filename: String,
    pub(crate) mimetype: String,
    /// Size in bytes.
    size: u64,
}

pub(crate) fn is_false(value: &bool) -> bool {
    !value
}

/// A mail in Google's format.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct RawMessage {
    pub(crate) id: String,
    pub(crate) thread_id: String,
    pub(crate) label_ids: Vec<String>,
    pub(crate) history_id: Option<String>,
    snippet: String,
    internal_date: Option<String>,
    payload: Part,
}

/// A part of a mail, or the whole mail.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Part {
    part_id: String,
    mime_type: String,
    filename: String,
    headers: Vec<Header>,
    body: Body,
    parts: Vec<Part>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Header {
    name: String,
    value: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Body {
    pub(crate) attachment_id: Option<String>,
    pub(crate) data: Option<String>,
    size: u64,
}

impl RawMessage {
    /// Returns the value of a header, or `None` if it is empty.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.payload.headers.iter();
        let found = headers.find(|header| header.name.eq_ignore_ascii_case(name))?;
        Some(found.value.trim()).filter(|value| !value.is_empty())
    }

    /// Converts to a mail without its text, for lists.
    pub(crate) fn summary(self) -> Email {
        let snippet = Some(unescaped(&self.snippet)).filter(|snippet| !snippet.is_empty());
        Email {
            snippet,
            ..self.bare()
        }
    }

    /// Converts to a mail with at most `most` bytes of its text.
    pub(crate) fn whole(self, most: usize) -> Email {
        let (text, truncated) = cut(self.text(), most);
        let attachments = self.attachments();
        Email {
            text: Some(text),
            truncated,
            attachments,
            ..self.bare()
        }
    }

    fn bare(self) -> Email {
        let header = |name: &str| self.header(name).map(str::to_owned);
        let date = self
            .internal_date
            .as_ref()
            .and_then(|ms| ms.parse().ok())
            .and_then(|ms| Timestamp::from_millisecond(ms).ok())
            .map(|moment| moment.to_string());
        Email {
            from: header("From"),
            to: header("To"),
            cc: header("Cc"),
            reply_to: header("Reply-To"),
            subject: header("Subject"),
            date,
            snippet: None,
            text: None,
            truncated: false,
            attachments: Vec::new(),
            id: self.id,
            thread_id: self.thread_id,
            labels: self.label_ids,
        }
    }

    /// Returns the plain text, or the HTML as Markdown if the mail has no plain text.
    pub(crate) fn text(&self) -> String {
        match self.body("text/plain") {
            Some(plain) if !plain.trim().is_empty() => {
                plain.replace("\r\n", "\n").trim_end().to_owned()
            }
            _ => self
                .html()
                .map(|html| to_markdown(&html))
                .unwrap_or_default(),
        }
    }

    pub(crate) fn html(&self) -> Option<String> {
        self.body("text/html")
    }

    /// Returns all texts of this media type that are not attachments, joined by line breaks.
    fn body(&self, kind: &str) -> Option<String> {
        let texts: Vec<String> = self
            .parts()
            .into_iter()
            .filter(|part| part.mime_type == kind && part.filename.is_empty())
            .filter_map(|part| decoded(part.body.data.as_deref()?))
            .collect();
        (!texts.is_empty()).then(|| texts.join("\n"))
    }

    pub(crate) fn attachments(&self) -> Vec<Attachment> {
        let files = self.parts().into_iter().filter(|part| part.is_file());
        files.map(Part::attachment).collect()
    }

    /// Finds an attachment by its part id.
    pub(crate) fn file(&self, part_id: &str) -> Option<(Attachment, &Body)> {
        let part = self
            .parts()
            .into_iter()
            .find(|part| part.part_id == part_id && part.is_file())?;
        Some((part.attachment(), &part.body))
    }

    /// Returns all parts in their order.
    fn parts(&self) -> Vec<&Part> {
        let mut open = vec![(&self.payload, 0)];
        let mut all = Vec::new();
        while let Some((part, depth)) = open.pop() {
            all.push(part);
            if depth < MAX_PART_DEPTH {
                open.extend(part.parts.iter().rev().map(|inner| (inner, depth + 1)));
            }
        }
        all
    }
}

impl Part {
    fn is_file(&self) -> bool {
        !self.filename.is_empty() || self.body.attachment_id.is_some()
    }

    fn attachment(&self) -> Attachment {
        let filename = if self.filename.is_empty() {
            "attachment".to_owned()
        } else {
            self.filename.clone()
        };
        Attachment {
            part_id: self.part_id.clone(),
            filename,
            mimetype: self.mime_type.clone(),
            size: self.body.size,
        }
    }
}

/// Decodes Google's base64, with or without `=` at its end. Google returns all texts in UTF-8.
pub(crate) fn bytes(data: &str) -> Option<Vec<u8>> {
    BASE64URL_NOPAD
        .decode(data.trim_end_matches('=').as_bytes())
        .ok()
}

fn decoded(data: &str) -> Option<String> {
    bytes(data).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Decodes the HTML entities of a snippet.
fn unescaped(text: &str) -> String {
    let text = text
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'");
    text.replace("&amp;", "&")
}
