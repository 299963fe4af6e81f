//! Code shared by all requests: base URL, pages, and Slack's errors, which come with status 200.

use std::time::Duration;

use serde::de::DeserializeOwned;
use toolkit_sdk::mismatch;
use toolkit_sdk::prelude::*;

pub(crate) const API: Client = Client::new("https://slack.com/api").errors(refusal);

/// Page of a list to return.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct Part {
    /// Max number of items to return; Slack may return fewer although more exist.
    #[serde(default = "hundred")]
    #[schemars(range(min = 1, max = 200))]
    limit: u32,
    /// Cursor of the next page: `next_cursor` of the previous response.
    cursor: Option<String>,
}

fn hundred() -> u32 {
    100
}

/// One page of a list.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    /// `cursor` of the next request; missing on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// Fetches one page of a list. The list has a different name in each response.
pub(crate) fn list<T: DeserializeOwned>(
    request: Request,
    part: &Part,
    name: &str,
) -> Result<Page<T>> {
    let request = request
        .query("limit", part.limit.clamp(1, 200))
        .query_opt("cursor", part.cursor.as_ref());
    let mut body: Value = request.send()?.json()?;
    let cursor = body
        .pointer("/response_metadata/next_cursor")
        .and_then(Value::as_str);
    let next_cursor = cursor
        .filter(|cursor| !cursor.is_empty())
        .map(str::to_owned);
    let items = Vec::deserialize(body[name].take()).map_err(|error| {
        let reason = mismatch::reason(&error);
        ToolError::upstream(format!(
            "Slack's response has an unexpected `{name}`: {reason}"
        ))
    })?;
    Ok(Page { items, next_cursor })
}

/// Body of Slack's error responses.
#[derive(Deserialize)]
struct Refusal {
    ok: bool,
    #[serde(default)]
    error: String,
    /// Required scopes, separated by commas.
    needed: Option<String>,
    provided: Option<String>,
    #[serde(default)]
    response_metadata: Metadata,
}

#[derive(Default, Deserialize)]
struct Metadata {
    /// Error details in words.
    #[serde(default)]
    messages: Vec<String>,
}

/// Maps Slack's errors. A response with `ok: false` is an error, regardless of its status. Other
/// responses, such as those of the file servers, are left to the default rules.
fn refusal(response: &Response) -> Option<ToolError> {
    let said: Refusal = response.json().ok().filter(|said: &Refusal| !said.ok)?;
    let mut message = format!("Slack refused it: {}", said.error);
    if let Some(needed) = said.needed {
        let provided = said
            .provided
            .as_deref()
            .filter(|scopes| !scopes.is_empty())
            .unwrap_or("none");
        message.push_str(&format!(
            "; this needs the scope {needed}, the token has {provided}"
        ));
    } else if let Some(hint) = hint(&said.error) {
        message.push_str(&format!("; {hint}"));
    }
    for detail in said.response_metadata.messages {
        message.push_str(&format!("; {detail}"));
    }
    let kind = if response.status() == 429 {
        "rate_limited"
    } else {
        kind(&said.error)
    };
    let error = ToolError::new(kind, message).upstream_status(response.status());
    let wait = response
        .header("retry-after")
        .and_then(|seconds| seconds.trim().parse().ok());
    Some(match wait {
        Some(seconds) => error.retry_after(Duration::from_secs(seconds)),
        None => error,
    })
}

fn kind(code: &str) -> &'static str {
    match code {
        "not_authed" | "invalid_auth" | "account_inactive" | "token_revoked" | "token_expired" => {
            "unauthorized"
        }
        "ratelimited" | "rate_limited" | "message_limit_exceeded" => "rate_limited",
        "internal_error" | "fatal_error" | "service_unavailable" | "request_timeout" => {
            "upstream_unavailable"
        }
        "missing_scope"
        | "not_allowed_token_type"
        | "no_permission"
        | "not_in_channel"
        | "accesslimited" => "forbidden",
        "org_login_required"
        | "restricted_action"
        | "team_access_not_granted"
        | "paid_teams_only" => "forbidden",
        "is_archived" | "not_archived" | "no_pin" | "no_reaction" | "user_not_in_channel" => {
            "conflict"
        }
        "no_text" | "time_in_past" | "time_too_far" => "invalid_input",
        _ if code.ends_with("_not_found") || code.starts_with("no_such_") => "not_found",
        _ if code.starts_with("already_") || code.ends_with("_taken") => "conflict",
        _ if code.ends_with("_denied") || code.starts_with("restricted_action") => "forbidden",
        _ if ["cant_", "cannot_", "user_is_"]
            .iter()
            .any(|begin| code.starts_with(begin)) =>
        {
            "forbidden"
        }
        _ if ["invalid_", "missing_", "bad_", "too_many_"]
            .iter()
            .any(|begin| code.starts_with(begin)) =>
        {
            "invalid_input"
        }
        _ if code.ends_with("too_long") || code.ends_with("too_short") => "invalid_input",
        _ => "upstream_error",
    }
}

/// Returns a suggestion for an error code.
fn hint(code: &str) -> Option<&'static str> {
    Some(match code {
        "channel_not_found" => {
            "name the channel by its id, from SLACK_LIST_CHANNELS; private ones are seen by their members only"
        }
        "not_in_channel" => {
            "join it with SLACK_JOIN_CHANNEL, or have a member of a private channel invite the app"
        }
        "user_not_found" | "users_not_found" => {
            "name people by their id, from SLACK_LIST_USERS or SLACK_FIND_USER_BY_EMAIL"
        }
        "message_not_found" | "thread_not_found" => {
            "name a message by its `ts` from SLACK_READ_CHANNEL"
        }
        "not_allowed_token_type" => "connect an account with a user token, which begins with xoxp-",
        "invalid_auth" | "not_authed" | "token_revoked" | "token_expired" | "account_inactive" => {
            "connect the account again"
        }
        "cant_update_message" | "cant_delete_message" => "only one's own messages can be changed",
        "is_archived" => "the channel is archived",
        "msg_too_long" => "send it in several messages",
        _ => return None,
    })
}
