//! Notifications of the connected account.

use toolkit_sdk::prelude::*;

use crate::api::{API, Done, Page, Part, done, list};
use crate::pulls::full_name;

/// A notification about a thread.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct Notification {
    /// Id of the thread, for `mark_notification_read`.
    id: String,
    unread: bool,
    /// Reason for the notification: `assign`, `author`, `comment`, `mention`, `review_requested`,
    /// `subscribed`, `team_mention`, `ci_activity` and so on.
    reason: String,
    subject: Subject,
    /// Repository of the thread: `OWNER/NAME`.
    #[serde(deserialize_with = "full_name")]
    repository: Option<String>,
    updated_at: String,
}

/// Subject of a notification.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Subject {
    title: String,
    /// `Issue`, `PullRequest`, `Release`, `Commit`, `Discussion`, `CheckSuite` and so on.
    #[serde(rename = "type")]
    kind: String,
    /// URL of the subject in the API; the last part is the number or id.
    #[serde(
        rename(deserialize = "url"),
        default,
        skip_serializing_if = "Option::is_none"
    )]
    api_url: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ListNotifications {
    /// Includes notifications that are read.
    #[serde(default)]
    all: bool,
    /// Only threads in which the account takes part or is mentioned.
    #[serde(default)]
    participating: bool,
    /// Only notifications changed since this time, RFC 3339: `2026-01-31T00:00:00Z`.
    since: Option<String>,
    #[serde(flatten)]
    part: Part,
}

/// Lists the notifications of the connected account, newest first; only unread ones unless `all`.
/// Needs a classic token or an OAuth connection: GitHub refuses fine-grained tokens here.
#[tool(
    read_only,
    idempotent,
    scopes("notifications"),
    example = r#"{"participating": true}"#
)]
pub(crate) fn list_notifications(input: ListNotifications) -> Result<Page<Notification>> {
    let request = API
        .get("/notifications")
        .query("all", input.all)
        .query("participating", input.participating);
    list(request.query_opt("since", input.since), &input.part)
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ThreadId {
    /// Id of the thread: `id` from `list_notifications`.
    #[schemars(length(min = 1))]
    thread_id: String,
}

/// Marks one notification as read.
#[tool(idempotent, scopes("notifications"), example = r#"{"thread_id": "1"}"#)]
pub(crate) fn mark_notification_read(input: ThreadId) -> Result<Done> {
    done(
        API.patch("/notifications/threads/{thread_id}")
            .path("thread_id", &input.thread_id),
    )
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct ReadUntil {
    /// Time up to which notifications are marked as read, RFC 3339; newer ones stay unread.
    /// Defaults to now.
    last_read_at: Option<String>,
}

/// Marks all notifications of the account as read, up to a given time.
#[tool(
    destructive,
    idempotent,
    scopes("notifications"),
    example = r#"{"last_read_at": "2026-01-31T00:00:00Z"}"#
)]
pub(crate) fn mark_all_notifications_read(input: ReadUntil) -> Result<Done> {
    let body = input
        .last_read_at
        .map_or_else(|| json!({}), |time| json!({ "last_read_at": time }));
    done(API.put("/notifications").json(&body))
}
