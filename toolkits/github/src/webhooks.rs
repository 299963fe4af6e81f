//! News that GitHub sends. A webhook of the repository or organization sends it, with content type `application/json` and a secret,
//! by which GitHub signs each delivery.

use data_encoding::HEXLOWER_PERMISSIVE;
use hmac::{Hmac, KeyInit, Mac};
use serde::de::DeserializeOwned;
use sha2::Sha256;
use toolkit_sdk::prelude::*;

use crate::api::{is_false, login};
use crate::issues::Issue;
use crate::pulls::{PullRequest, full_name};

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Config {
    /// The secret of the webhook, as entered at GitHub: Settings, Webhooks. Choose a long random text.
    #[schemars(length(min = 16), extend("writeOnly" = true))]
    secret: String,
    /// Only events of this repository, `OWNER/NAME`; left out: of all that send here.
    repository: Option<String>,
}

/// Where an event happened and who did it.
#[derive(Deserialize)]
struct Place {
    #[serde(default, deserialize_with = "full_name")]
    repository: Option<String>,
}

/// Something that happened to an issue.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct IssueEvent {
    /// `opened`, `edited`, `closed`, `reopened`, `labeled`, `assigned`, `deleted` and so on.
    action: String,
    /// `OWNER/NAME`.
    #[serde(default, deserialize_with = "full_name")]
    repository: Option<String>,
    /// Login of who did it.
    #[serde(default, deserialize_with = "login", skip_serializing_if = "Option::is_none")]
    sender: Option<String>,
    issue: Issue,
}

/// Fires when an issue is opened, edited, closed, labelled, assigned and so on. Needs a webhook at GitHub with the event Issues,
/// this trigger's address, the content type `application/json` and the same secret.
#[trigger(webhook)]
pub(crate) fn issue_changed(config: Config, request: Inbound) -> Result<Received<IssueEvent>> {
    receive(&config, &request, "issues")
}

/// Something that happened to a pull request.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct PullRequestEvent {
    /// `opened`, `edited`, `closed` (see `merged`), `reopened`, `synchronize` (new commits), `review_requested`, `labeled` and so on.
    action: String,
    /// `OWNER/NAME`.
    #[serde(default, deserialize_with = "full_name")]
    repository: Option<String>,
    /// Login of who did it.
    #[serde(default, deserialize_with = "login", skip_serializing_if = "Option::is_none")]
    sender: Option<String>,
    pull_request: PullRequest,
}

/// Fires when a pull request is opened, edited, merged, closed, gets new commits and so on. Needs a webhook at GitHub with the event
/// Pull requests, this trigger's address, the content type `application/json` and the same secret.
#[trigger(webhook)]
pub(crate) fn pull_request_changed(config: Config, request: Inbound) -> Result<Received<PullRequestEvent>> {
    receive(&config, &request, "pull_request")
}

/// Commits that arrived, or a branch or tag that was made, moved or deleted.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct PushEvent {
    /// `refs/heads/BRANCH` or `refs/tags/TAG`.
    #[serde(rename = "ref")]
    reference: String,
    /// The newest commit before; all zeros when the branch is new.
    before: String,
    /// The newest commit now; all zeros when the branch was deleted.
    after: String,
    #[serde(default, skip_serializing_if = "is_false")]
    created: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    deleted: bool,
    /// Commits of the branch were dropped or replaced.
    #[serde(default, skip_serializing_if = "is_false")]
    forced: bool,
    /// `OWNER/NAME`.
    #[serde(default, deserialize_with = "full_name")]
    repository: Option<String>,
    /// Login of who pushed.
    #[serde(default, deserialize_with = "login", skip_serializing_if = "Option::is_none")]
    sender: Option<String>,
    /// The commits that arrived, oldest first, at most 2,048.
    commits: Vec<PushedCommit>,
    /// The page that compares before and after, for people.
    #[serde(rename(deserialize = "compare"))]
    url: String,
}

/// A commit that arrived.
#[derive(Serialize, Deserialize, JsonSchema)]
struct PushedCommit {
    #[serde(rename(deserialize = "id"))]
    sha: String,
    message: String,
    /// Paths.
    #[serde(default)]
    added: Vec<String>,
    #[serde(default)]
    removed: Vec<String>,
    #[serde(default)]
    modified: Vec<String>,
    url: String,
}

/// Fires when commits are pushed, or a branch or tag is made or deleted. Needs a webhook at GitHub with the event Pushes, this
/// trigger's address, the content type `application/json` and the same secret.
#[trigger(webhook)]
pub(crate) fn commits_pushed(config: Config, request: Inbound) -> Result<Received<PushEvent>> {
    receive(&config, &request, "push")
}

/// Reports a delivery of the wanted event; a ping, other events and other repositories are heard and dropped.
fn receive<T: DeserializeOwned>(config: &Config, request: &Inbound, event: &str) -> Result<Received<T>> {
    verify(config, request)?;
    match request.header("x-github-event") {
        Some("ping") => return Ok(Received::nothing().answer("pong")),
        Some(sent) if sent == event => {}
        _ => return Ok(Received::nothing()),
    }
    if !request.header("content-type").is_some_and(|kind| kind.starts_with("application/json")) {
        return Err(ToolError::invalid_input("set the content type of the webhook at GitHub to application/json"));
    }
    if let Some(wanted) = &config.repository
        && !request.json::<Place>()?.repository.is_some_and(|sent| sent.eq_ignore_ascii_case(wanted))
    {
        return Ok(Received::nothing());
    }
    let Some(delivery) = request.header("x-github-delivery") else {
        return Err(ToolError::invalid_input("the delivery has no `x-github-delivery`; GitHub sends one with each"));
    };
    Ok(Received::event(delivery, request.json()?))
}

/// Checks that who sent this knows the secret: HMAC-SHA256 over the bytes as they came, compared in constant time.
fn verify(config: &Config, request: &Inbound) -> Result<()> {
    let hint = "enter the same secret at GitHub and here";
    let Some(signature) = request.header("x-hub-signature-256").and_then(|text| text.strip_prefix("sha256=")) else {
        return Err(ToolError::unauthorized(format!("the delivery is not signed; {hint}")));
    };
    let signature = HEXLOWER_PERMISSIVE.decode(signature.as_bytes()).unwrap_or_default();
    let mut mac = Hmac::<Sha256>::new_from_slice(config.secret.as_bytes())
        .map_err(|cause| ToolError::internal(format!("the secret cannot be used: {cause}")))?;
    mac.update(&request.body);
    mac.verify_slice(&signature).map_err(|_| ToolError::unauthorized(format!("the signature is wrong; {hint}")))
}
