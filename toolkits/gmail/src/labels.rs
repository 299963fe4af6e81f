//! Labels of mail. The inbox, read and unread, stars, spam and trash are labels, too.

use toolkit_sdk::prelude::*;

use crate::API;

/// Labels that every mailbox has. Their ids are their names.
const SYSTEM_LABELS: [&str; 12] = [
    "CATEGORY_FORUMS",
    "CATEGORY_PERSONAL",
    "CATEGORY_PROMOTIONS",
    "CATEGORY_SOCIAL",
    "CATEGORY_UPDATES",
    "IMPORTANT",
    "INBOX",
    "SENT",
    "SPAM",
    "STARRED",
    "TRASH",
    "UNREAD",
];
/// Max number of label names in the error for an unknown label.
const MAX_NAMES_IN_ERROR: usize = 50;

/// Labels to add and remove, by id, or by name in any case.
#[derive(Deserialize, JsonSchema)]
struct Changes {
    /// Labels to add: names such as `Clients/Acme`, ids, or `INBOX`, `STARRED`, `IMPORTANT`,
    /// `UNREAD`, `SPAM`.
    #[serde(default)]
    #[schemars(length(max = 100))]
    add: Vec<String>,
    /// Labels to remove. Removing `UNREAD` marks as read, removing `INBOX` archives.
    #[serde(default)]
    #[schemars(length(max = 100))]
    remove: Vec<String>,
}

#[derive(Deserialize)]
struct Label {
    id: String,
    name: String,
}

#[derive(Deserialize)]
struct Labels {
    #[serde(default)]
    labels: Vec<Label>,
}

/// Ids of the labels that were added and removed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Changed {
    added: Vec<String>,
    removed: Vec<String>,
}

impl Changes {
    /// Returns the ids of all labels. Requests the names from Google only if a label is not an id.
    fn ids(&self) -> Result<Changed> {
        if self.add.is_empty() && self.remove.is_empty() {
            return Err(ToolError::invalid_input(
                "nothing is to be changed; give `add` or `remove`",
            ));
        }
        let known = match self
            .add
            .iter()
            .chain(&self.remove)
            .all(|label| is_id(label))
        {
            true => Vec::new(),
            false => {
                API.get("/labels")
                    .query("fields", "labels(id,name)")
                    .send()?
                    .json::<Labels>()?
                    .labels
            }
        };
        let id = |label: &String| {
            if is_id(label) {
                return Ok(label.clone());
            }
            let found = known
                .iter()
                .find(|known| known.id == *label || known.name.eq_ignore_ascii_case(label));
            found.map(|known| known.id.clone()).ok_or_else(|| {
                let names: Vec<&str> = known.iter().take(MAX_NAMES_IN_ERROR).map(|known| known.name.as_str()).collect();
                ToolError::not_found(format!(
                    "the label `{label}` does not exist; create it with `create_label`, or use one of {}",
                    names.join(", ")
                ))
            })
        };
        Ok(Changed {
            added: self.add.iter().map(id).collect::<Result<Vec<_>>>()?,
            removed: self.remove.iter().map(id).collect::<Result<Vec<_>>>()?,
        })
    }
}

fn is_id(label: &str) -> bool {
    SYSTEM_LABELS.contains(&label) || label.starts_with("Label_")
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Emails {
    /// Ids of mails.
    #[schemars(length(min = 1, max = 1000))]
    message_ids: Vec<String>,
    #[serde(flatten)]
    changes: Changes,
}

/// Adds labels to mails and removes labels from them. Marks as read (remove `UNREAD`) or unread,
/// archives (remove `INBOX`), stars, moves to spam, files under custom labels.
#[tool(
    destructive,
    idempotent,
    important,
    scopes("https://www.googleapis.com/auth/gmail.modify"),
    example = r#"{"message_ids": ["18c2f1b5a7d3e9f0"], "add": ["Clients/Acme"], "remove": ["UNREAD", "INBOX"]}"#
)]
pub(crate) fn change_labels(input: Emails) -> Result<Changed> {
    let changed = input.changes.ids()?;
    let body = json!({ "ids": input.message_ids, "addLabelIds": changed.added, "removeLabelIds": changed.removed });
    API.post("/messages/batchModify").json(&body).send()?;
    Ok(changed)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Thread {
    /// Id of the conversation.
    #[schemars(length(min = 1))]
    thread_id: String,
    #[serde(flatten)]
    changes: Changes,
}

/// Adds labels to all mails of a conversation, or removes labels from them.
#[tool(
    destructive,
    idempotent,
    scopes("https://www.googleapis.com/auth/gmail.modify"),
    example = r#"{"thread_id": "18c2f1b5a7d3e9f0", "remove": ["INBOX"]}"#
)]
pub(crate) fn change_thread_labels(input: Thread) -> Result<Changed> {
    let changed = input.changes.ids()?;
    let body = json!({ "addLabelIds": changed.added, "removeLabelIds": changed.removed });
    API.post("/threads/{id}/modify")
        .path("id", &input.thread_id)
        .query("fields", "id")
        .json(&body)
        .send()?;
    Ok(changed)
}

/// A label after a change.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Renamed {
    #[serde(rename(serialize = "label_id"))]
    id: String,
    name: String,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Rename {
    /// Id of the label, from `list_labels`, for example `Label_7`.
    #[schemars(length(min = 1))]
    label_id: String,
    /// New name, for example `Clients/Acme`.
    #[schemars(length(min = 1))]
    name: String,
}

/// Renames a custom label; `/` in the name nests it.
#[tool(
    idempotent,
    scopes("https://www.googleapis.com/auth/gmail.labels"),
    example = r#"{"label_id": "Label_7", "name": "Clients/Acme"}"#
)]
pub(crate) fn rename_label(input: Rename) -> Result<Renamed> {
    let request = API
        .patch("/labels/{id}")
        .path("id", &input.label_id)
        .query("fields", "id,name");
    request.json(&json!({ "name": input.name })).send()?.json()
}
