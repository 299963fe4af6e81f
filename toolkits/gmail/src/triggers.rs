//! Polling trigger for a mailbox.

use toolkit_sdk::prelude::*;

use crate::API;
use crate::message::{Email, RawMessage};
use crate::messages::existing;

/// Max number of mails that one poll reads. The next poll follows immediately. A poll may
/// send 50 requests.
const MAX_EVENTS_PER_POLL: usize = 40;
/// Max size of the text of each mail, in bytes.
const MAX_TEXT_BYTES: usize = 20_000;

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Config {
    /// Id of a label that the mail must have: `INBOX`, `STARRED`, `Label_7`; `list_labels` returns
    /// them.
    #[serde(default = "inbox")]
    label_id: String,
    /// Only mail whose sender has this in name or address: `ada@example.com`, `@example.com`.
    from: Option<String>,
}

fn inbox() -> String {
    "INBOX".to_owned()
}

/// Position of the last poll.
#[derive(Serialize, Deserialize)]
pub(crate) struct Cursor {
    /// Id of the last change of the mailbox that was reported.
    history_id: String,
}

/// Changes of a mailbox.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct History {
    #[serde(default)]
    history: Vec<HistoryRecord>,
    history_id: String,
    next_page_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HistoryRecord {
    id: String,
    #[serde(default)]
    messages_added: Vec<Added>,
}

#[derive(Deserialize)]
struct Added {
    message: RawMessage,
}

/// A new mail.
#[derive(Serialize, JsonSchema)]
pub(crate) struct NewEmail {
    #[serde(flatten)]
    email: Email,
    /// Id of the last change of the mail, to continue from with Gmail's history.
    #[serde(skip_serializing_if = "Option::is_none")]
    history_id: Option<String>,
}

/// Fires for each new mail, in the inbox or under another label, with its text, sender and
/// recipients; not for drafts and sent mail. Can be limited to a sender.
#[trigger(poll, scopes("https://www.googleapis.com/auth/gmail.readonly"))]
pub(crate) fn new_email(
    config: Config,
    cursor: Option<Cursor>,
) -> Result<Polled<NewEmail, Cursor>> {
    let Some(Cursor { history_id }) = cursor else {
        return begin();
    };
    let request = API
        .get("/history")
        .query("startHistoryId", &history_id)
        .query("historyTypes", "messageAdded");
    let response = request
        .query("labelId", &config.label_id)
        .query("maxResults", MAX_EVENTS_PER_POLL)
        .send_any()?;
    if response.status() == 404 {
        log::warn!(
            "Google has forgotten where the last poll stood; mail since then is not reported"
        );
        return begin();
    }
    if !response.is_success() {
        return Err(response.error());
    }
    let History {
        history,
        history_id: newest,
        next_page_token,
    } = response.json()?;
    let mut ids = Vec::new();
    let mut last = None;
    let mut more = next_page_token.is_some();
    for happened in history {
        // All mails of one history entry are reported in the same poll, because the cursor cannot
        // point into an entry.
        if !ids.is_empty() && ids.len() + happened.messages_added.len() > MAX_EVENTS_PER_POLL {
            more = true;
            break;
        }
        for added in happened
            .messages_added
            .into_iter()
            .take(MAX_EVENTS_PER_POLL)
        {
            if !ids.contains(&added.message.id) {
                ids.push(added.message.id);
            }
        }
        last = Some(happened.id);
    }
    let next = if more {
        last.unwrap_or(history_id)
    } else {
        newest
    };
    let existing_mails = existing::<RawMessage>(ids.iter().map(|id| {
        API.get("/messages/{id}")
            .path("id", id)
            .query("format", "full")
    }))?;
    let news = existing_mails
        .into_iter()
        .filter(|mail| config.wants(mail))
        .map(|mail| {
            let id = mail.id.clone();
            let history_id = mail.history_id.clone();
            let email = mail.whole(MAX_TEXT_BYTES);
            (id, NewEmail { email, history_id })
        });
    Ok(Polled::new(Cursor { history_id: next })
        .events(news)
        .more(more))
}

impl Config {
    fn wants(&self, mail: &RawMessage) -> bool {
        let own = mail
            .label_ids
            .iter()
            .any(|label| label == "DRAFT" || label == "SENT" && self.label_id != "SENT");
        let from = mail.header("From").unwrap_or_default().to_lowercase();
        // A mail to the own address has the labels of both sent and received mail.
        let received = !own || mail.label_ids.iter().any(|label| label == "INBOX");
        received
            && self
                .from
                .as_ref()
                .is_none_or(|wanted| from.contains(&wanted.to_lowercase()))
    }
}

/// Starts at the current state of the mailbox.
fn begin() -> Result<Polled<NewEmail, Cursor>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Profile {
        history_id: String,
    }
    let profile: Profile = API
        .get("/profile")
        .query("fields", "historyId")
        .send()?
        .json()?;
    Ok(Polled::new(Cursor {
        history_id: profile.history_id,
    }))
}
