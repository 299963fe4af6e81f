//! Attachments of mails. Google returns them in base64 within JSON. They are decoded in chunks,
//! since they may be large.

use data_encoding::BASE64URL_NOPAD;
use toolkit_sdk::prelude::*;

use crate::API;
use crate::message::{Attachment, Body, bytes};
use crate::messages::whole;

/// Number of bytes read at a time.
const CHUNK_BYTES: u32 = 1 << 20;
/// Marker before the base64 text in a response without other fields.
const DATA_MEMBER: &[u8] = b"\"data\"";

#[derive(Deserialize, JsonSchema)]
pub(crate) struct GetAttachment {
    /// Id of the mail.
    #[schemars(length(min = 1))]
    message_id: String,
    /// Id of the attachment: `part_id` in `attachments` of the mail.
    part_id: String,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Got {
    file: File,
}

/// Gets a file that is attached to a mail; `get_email` lists the attachments.
#[tool(
    read_only,
    idempotent,
    important,
    scopes("https://www.googleapis.com/auth/gmail.readonly"),
    example = r#"{"message_id": "18c2f1b5a7d3e9f0", "part_id": "1"}"#
)]
pub(crate) fn get_attachment(input: GetAttachment) -> Result<Got> {
    let mail = whole(&input.message_id)?;
    let Some((attachment, body)) = mail.file(&input.part_id) else {
        let names: Vec<String> = mail
            .attachments()
            .into_iter()
            .map(|file| format!("{} ({})", file.part_id, file.filename))
            .collect();
        let there = if names.is_empty() {
            "it has none".to_owned()
        } else {
            format!("it has {}", names.join(", "))
        };
        return Err(ToolError::not_found(format!(
            "the mail has no attachment `{}`; {there}",
            input.part_id
        )));
    };
    Ok(Got {
        file: fetch(&input.message_id, &attachment, body)?,
    })
}

/// Fetches the content of an attachment as a file.
pub(crate) fn fetch(message: &str, attachment: &Attachment, body: &Body) -> Result<File> {
    let file = File::create(&attachment.filename, &attachment.mimetype)?;
    match (&body.attachment_id, &body.data) {
        (Some(id), _) => {
            let request = API
                .get("/messages/{message}/attachments/{id}")
                .path("message", message)
                .path("id", id);
            let answer = request.query("fields", "data").into_file().send()?.file()?;
            decode(&answer, &file)?;
        }
        (None, Some(data)) => {
            file.append(&bytes(data).ok_or_else(|| unreadable(&attachment.filename))?)?
        }
        (None, None) => {}
    }
    Ok(file)
}

/// Decodes `{"data": "…"}` from one file into another.
fn decode(answer: &File, file: &File) -> Result<()> {
    let mut offset = 0;
    let mut rest: Vec<u8> = Vec::new();
    let mut begun = false;
    loop {
        let chunk = answer.read_at(offset, CHUNK_BYTES)?;
        if chunk.is_empty() {
            return if begun {
                Err(unreadable(&file.name))
            } else {
                Ok(())
            };
        }
        offset += chunk.len() as u64;
        rest.extend(chunk);
        if !begun {
            let Some(start) = rest
                .windows(DATA_MEMBER.len())
                .position(|bytes| bytes == DATA_MEMBER)
            else {
                continue;
            };
            let Some(quote) = rest[start + DATA_MEMBER.len()..]
                .iter()
                .position(|byte| *byte == b'"')
            else {
                continue;
            };
            rest.drain(..=start + DATA_MEMBER.len() + quote);
            begun = true;
        }
        let end = rest.iter().position(|byte| !is_base64url(*byte));
        // Four base64 characters are three bytes. A remainder waits for the next chunk unless the
        // text has ended.
        let whole = end.unwrap_or(rest.len() / 4 * 4);
        let decoded = BASE64URL_NOPAD
            .decode(&rest[..whole])
            .map_err(|_| unreadable(&file.name))?;
        file.append(&decoded)?;
        if end.is_some() {
            return Ok(());
        }
        rest.drain(..whole);
    }
}

fn is_base64url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

fn unreadable(name: &str) -> ToolError {
    ToolError::upstream(format!(
        "Google answered the attachment `{name}` in an encoding other than base64"
    ))
}
