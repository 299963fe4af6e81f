//! Sending, replying and forwarding.

use toolkit_sdk::prelude::*;

use crate::API;
use crate::attachments::fetch;
use crate::mail::{Content, Mail, Place, Target, Texts, deliver};
use crate::message::RawMessage;
use crate::messages::whole;
use crate::mime::{Message, addresses, is_address, listed, split, text};
use crate::text::escaped;

/// Max number of attachments of a forwarded mail. A call makes at most 32 requests: two for each
/// attachment and one for the message.
const MAX_FILES: usize = 15;
/// Max number of mails in `References` of a reply. The newest are kept.
const MAX_REFERENCES: usize = 30;

/// A mail that was sent.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all(deserialize = "camelCase"))]
pub(crate) struct Sent {
    id: String,
    /// Id of the conversation.
    #[serde(default)]
    thread_id: String,
}

/// Sends a mail immediately. The text is Markdown and arrives as HTML. To reply to a mail use
/// `reply_to_email`, so that it stays in the conversation; to let the user review it first use
/// `create_draft`.
#[tool(
    open_world,
    important,
    scopes("https://www.googleapis.com/auth/gmail.send"),
    example = r#"{"to": ["ada@example.com"], "subject": "Offer", "body": "Dear Ada,\n\nhere is the **offer**."}"#
)]
pub(crate) fn send_email(input: Mail) -> Result<Sent> {
    input.check_receivers()?;
    let Texts { plain, html } = input.content.texts();
    let message = Message {
        headers: input.headers()?,
        plain,
        html,
        attachments: &input.content.attachments,
    };
    deliver(Target::Send, None, &message)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Reply {
    /// Id of the mail to reply to.
    #[schemars(length(min = 1))]
    message_id: String,
    #[serde(flatten)]
    content: Content,
    /// Also sends the reply to all other recipients.
    #[serde(default)]
    reply_all: bool,
    /// Additional recipients.
    #[serde(default)]
    cc: Vec<String>,
    /// Sender, if not the mailbox itself: an address from `list_send_as`.
    from_email: Option<String>,
}

/// Replies to a mail in its conversation: to the sender, and with `reply_all` to all other
/// recipients. Give only the new text.
#[tool(
    open_world,
    important,
    scopes(
        "https://www.googleapis.com/auth/gmail.send",
        "https://www.googleapis.com/auth/gmail.readonly"
    ),
    example = r#"{"message_id": "18c2f1b5a7d3e9f0", "body": "Thank you, Tuesday suits me."}"#
)]
pub(crate) fn reply_to_email(input: Reply) -> Result<Sent> {
    let original = headers_of(&input.message_id)?;
    let receivers = receivers(&original, input.reply_all, input.from_email.as_deref())?;
    let place = place_after(&original);
    let mut headers = Vec::new();
    if let Some(from) = &input.from_email {
        headers.push(("From", addresses("from_email", std::slice::from_ref(from))?));
    }
    headers.push(("To", addresses("to", &receivers.to)?));
    let cc: Vec<String> = receivers.cc.into_iter().chain(input.cc).collect();
    if !cc.is_empty() {
        headers.push(("Cc", addresses("cc", &cc)?));
    }
    headers.push((
        "Subject",
        text(&prefixed("Re:", original.header("Subject"))),
    ));
    headers.extend(place.headers);
    let Texts { plain, html } = input.content.texts();
    let message = Message {
        headers,
        plain,
        html,
        attachments: &input.content.attachments,
    };
    deliver(Target::Send, place.thread_id.as_ref(), &message)
}

/// Fetches the headers of a mail that a reply needs.
pub(crate) fn headers_of(id: &str) -> Result<RawMessage> {
    let request = API
        .get("/messages/{id}")
        .path("id", id)
        .query("format", "metadata");
    let wanted = [
        "From",
        "Reply-To",
        "To",
        "Cc",
        "Subject",
        "Message-ID",
        "References",
    ];
    request
        .query_each("metadataHeaders", wanted)
        .query("fields", "id,threadId,labelIds,payload/headers")
        .send()?
        .json()
}

/// Returns the position of a reply to a mail in its conversation.
pub(crate) fn place_after(original: &RawMessage) -> Place {
    let mut headers = Vec::new();
    if let Some(id) = original.header("Message-ID") {
        let mut references: Vec<&str> = original
            .header("References")
            .unwrap_or_default()
            .split_whitespace()
            .filter(|id| id.starts_with('<'))
            .collect();
        references.push(id);
        let newest = references.split_off(references.len().saturating_sub(MAX_REFERENCES));
        headers.push(("In-Reply-To", text(id)));
        headers.push((
            "References",
            newest
                .into_iter()
                .map(text)
                .collect::<Vec<_>>()
                .join("\r\n "),
        ));
    }
    Place {
        thread_id: Some(original.thread_id.clone()),
        headers,
    }
}

/// Recipients of a reply.
pub(crate) struct Receivers {
    pub(crate) to: Vec<String>,
    pub(crate) cc: Vec<String>,
}

/// Returns the recipients of a reply: the sender, or the original recipients of a mail that the
/// mailbox sent. With `all`, adds the other recipients without the mailbox itself.
pub(crate) fn receivers(original: &RawMessage, all: bool, from: Option<&str>) -> Result<Receivers> {
    let own_mail = original.label_ids.iter().any(|label| label == "SENT");
    let mut to = match own_mail {
        true => addresses_in(original, "To"),
        false => Some(addresses_in(original, "Reply-To"))
            .filter(|list| !list.is_empty())
            .unwrap_or_else(|| addresses_in(original, "From")),
    };
    let mut cc = Vec::new();
    if all {
        let own = own_address()?;
        let mut known: Vec<String> = [own.as_str(), from.map_or("", |from| split(from).1)]
            .map(str::to_lowercase)
            .into();
        let mut is_new = |one: &String| {
            let address = split(one).1.to_lowercase();
            let new = !known.contains(&address);
            known.push(address);
            new
        };
        to.retain(&mut is_new);
        let others = if own_mail {
            addresses_in(original, "Cc")
        } else {
            [addresses_in(original, "To"), addresses_in(original, "Cc")].concat()
        };
        cc = others.into_iter().filter(is_new).collect();
    }
    if to.is_empty() {
        to = std::mem::take(&mut cc);
    }
    if to.is_empty() {
        return Err(ToolError::conflict(
            "the mail has no sender to reply to; use `send_email`",
        ));
    }
    Ok(Receivers { to, cc })
}

/// Returns the addresses in a header of a mail that mails can be sent to.
fn addresses_in(original: &RawMessage, header: &str) -> Vec<String> {
    let mut addresses = original.header(header).map(listed).unwrap_or_default();
    addresses.retain(|address| is_address(address));
    addresses
}

fn own_address() -> Result<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Profile {
        email_address: String,
    }
    let profile: Profile = API
        .get("/profile")
        .query("fields", "emailAddress")
        .send()?
        .json()?;
    Ok(profile.email_address)
}

/// Prefixes a subject, unless it has the prefix: `Offer` and `Re: Offer` both give `Re: Offer`.
pub(crate) fn prefixed(prefix: &str, subject: Option<&str>) -> String {
    let subject = subject.unwrap_or_default();
    let has = subject
        .get(..prefix.len())
        .is_some_and(|begin| begin.eq_ignore_ascii_case(prefix));
    if has {
        subject.to_owned()
    } else {
        format!("{prefix} {subject}").trim().to_owned()
    }
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Forward {
    /// Id of the mail to forward.
    #[schemars(length(min = 1))]
    message_id: String,
    /// Recipients: `ada@example.com` or `Ada Lovelace <ada@example.com>`.
    #[schemars(length(min = 1, max = 500))]
    to: Vec<String>,
    #[serde(default)]
    cc: Vec<String>,
    /// Text above the forwarded mail, in Markdown.
    #[serde(default)]
    note: String,
    /// Forwards the attachments too.
    #[serde(default = "yes")]
    with_attachments: bool,
}

fn yes() -> bool {
    true
}

/// Forwards a mail with its text and attachments to other recipients, with a note above it.
#[tool(
    open_world,
    scopes(
        "https://www.googleapis.com/auth/gmail.send",
        "https://www.googleapis.com/auth/gmail.readonly"
    ),
    example = r#"{"message_id": "18c2f1b5a7d3e9f0", "to": ["grace@example.com"], "note": "Can you answer this?"}"#
)]
pub(crate) fn forward_email(input: Forward) -> Result<Sent> {
    let to = addresses("to", &input.to)?;
    let cc = addresses("cc", &input.cc)?;
    let original = whole(&input.message_id)?;
    let mut files = Vec::new();
    let attached = if input.with_attachments {
        original.attachments()
    } else {
        Vec::new()
    };
    if attached.len() > MAX_FILES {
        let message = format!(
            "the mail has {} files and at most {MAX_FILES} are forwarded; say `with_attachments: false`",
            attached.len()
        );
        return Err(ToolError::invalid_input(message));
    }
    for attachment in &attached {
        if let Some((_, body)) = original.file(&attachment.part_id) {
            files.push(fetch(&input.message_id, attachment, body)?);
        }
    }
    let fields: Vec<String> = ["From", "Date", "Subject", "To", "Cc"]
        .into_iter()
        .filter_map(|name| Some(format!("{name}: {}", original.header(name)?)))
        .collect();
    let about = format!(
        "---------- Forwarded message ---------\n{}\n",
        fields.join("\n")
    );
    let quoted = original.html().unwrap_or_else(|| escaped(&original.text()));
    let html = format!(
        "{}<div>{}<br>\n{quoted}</div>",
        crate::text::to_html(&input.note),
        escaped(&about)
    );
    let plain = format!("{}\n\n{about}\n{}", input.note, original.text());
    let mut headers = vec![("To", to)];
    headers.extend((!cc.is_empty()).then_some(("Cc", cc)));
    headers.push((
        "Subject",
        text(&prefixed("Fwd:", original.header("Subject"))),
    ));
    let message = Message {
        headers,
        plain: Some(plain.trim_start().to_owned()),
        html: Some(html),
        attachments: &files,
    };
    deliver(Target::Send, None, &message)
}
