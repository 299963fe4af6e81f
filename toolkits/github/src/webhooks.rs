//! Webhook triggers. A webhook of the repository or organization sends the events with content type
//! `application/json`. GitHub signs each delivery with the secret of the webhook. With a `repository` and
//! without a `secret`, the platform has the webhook created.

use serde::de::DeserializeOwned;
use toolkit_sdk::prelude::*;
use toolkit_sdk::webhook::{Secret, Signature};

use crate::api::{is_false, login};
use crate::hooks::Hooks;
use crate::issues::Issue;
use crate::pulls::{PullRequest, full_name};
use crate::releases::Release;

/// Signature of a delivery: HMAC-SHA256 over the body ("Validating webhook deliveries"
/// on docs.github.com).
const WEBHOOK_SIGNATURE: Signature = Signature::header("x-hub-signature-256")
    .prefix("sha256=")
    .hint("enter the same secret at GitHub and here");

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Config {
    /// Secret of the webhook, as entered at GitHub: Settings, Webhooks. Choose a long random text.
    /// Leave it out to have the webhook of `repository` created.
    #[schemars(length(min = 16))]
    secret: Secret,
    /// Only events of this repository, `OWNER/NAME`. Defaults to all repositories that send to this
    /// trigger.
    pub(crate) repository: Option<String>,
}

/// Repository in which an event happened.
#[derive(Deserialize)]
struct Place {
    #[serde(default, deserialize_with = "full_name")]
    repository: Option<String>,
}

/// An event of an issue.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct IssueEvent {
    /// `opened`, `edited`, `closed`, `reopened`, `labeled`, `assigned`, `deleted` and so on.
    action: String,
    /// Repository of the issue: `OWNER/NAME`.
    #[serde(default, deserialize_with = "full_name")]
    repository: Option<String>,
    /// Login of the user who caused the event.
    #[serde(
        default,
        deserialize_with = "login",
        skip_serializing_if = "Option::is_none"
    )]
    sender: Option<String>,
    issue: Issue,
}

/// Fires when an issue is opened, edited, closed, labeled, assigned and so on. Creates a webhook
/// for `repository`; with a `secret`, enter one at GitHub: event Issues, the URL of this trigger,
/// content type `application/json` and the secret.
#[trigger(webhook, subscription = "Hooks")]
pub(crate) fn issue_changed(config: Config, request: Inbound) -> Result<Received<IssueEvent>> {
    receive(&config, &request, "issues")
}

/// An event of a pull request.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct PullRequestEvent {
    /// `opened`, `edited`, `closed` (see `merged`), `reopened`, `synchronize` (new commits),
    /// `review_requested`, `labeled` and so on.
    action: String,
    /// Repository of the pull request: `OWNER/NAME`.
    #[serde(default, deserialize_with = "full_name")]
    repository: Option<String>,
    /// Login of the user who caused the event.
    #[serde(
        default,
        deserialize_with = "login",
        skip_serializing_if = "Option::is_none"
    )]
    sender: Option<String>,
    pull_request: PullRequest,
}

/// Fires when a pull request is opened, edited, merged, closed, gets new commits and so on. Creates
/// a webhook for `repository`; with a `secret`, enter one at GitHub: event Pull requests, the URL
/// of this trigger, content type `application/json` and the secret.
#[trigger(webhook, subscription = "Hooks")]
pub(crate) fn pull_request_changed(
    config: Config,
    request: Inbound,
) -> Result<Received<PullRequestEvent>> {
    receive(&config, &request, "pull_request")
}

/// A push of commits, or the creation, move or deletion of a branch or tag.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct PushEvent {
    /// `refs/heads/BRANCH` or `refs/tags/TAG`.
    #[serde(rename = "ref")]
    reference: String,
    /// SHA of the newest commit before the push; all zeros if the branch is new.
    before: String,
    /// SHA of the newest commit after the push; all zeros if the branch was deleted.
    after: String,
    #[serde(default, skip_serializing_if = "is_false")]
    created: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    deleted: bool,
    /// True if commits of the branch were dropped or replaced.
    #[serde(default, skip_serializing_if = "is_false")]
    forced: bool,
    /// Repository of the push: `OWNER/NAME`.
    #[serde(default, deserialize_with = "full_name")]
    repository: Option<String>,
    /// Login of the user who pushed.
    #[serde(
        default,
        deserialize_with = "login",
        skip_serializing_if = "Option::is_none"
    )]
    sender: Option<String>,
    /// Pushed commits, oldest first, at most 2,048.
    commits: Vec<PushedCommit>,
    /// URL of the web page that compares before and after.
    #[serde(rename(deserialize = "compare"))]
    url: String,
}

/// A pushed commit.
#[derive(Serialize, Deserialize, JsonSchema)]
struct PushedCommit {
    #[serde(rename(deserialize = "id"))]
    sha: String,
    message: String,
    /// Paths of added files.
    #[serde(default)]
    added: Vec<String>,
    #[serde(default)]
    removed: Vec<String>,
    #[serde(default)]
    modified: Vec<String>,
    url: String,
}

/// Fires when commits are pushed, or a branch or tag is created or deleted. Creates a webhook for
/// `repository`; with a `secret`, enter one at GitHub: event Pushes, the URL of this trigger,
/// content type `application/json` and the secret.
#[trigger(webhook, subscription = "Hooks")]
pub(crate) fn commits_pushed(config: Config, request: Inbound) -> Result<Received<PushEvent>> {
    receive(&config, &request, "push")
}

/// A star that was added to a repository or removed from it.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct StarEvent {
    /// `created` or `deleted`.
    action: String,
    /// Time of the star; missing if it was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    starred_at: Option<String>,
    /// Repository: `OWNER/NAME`.
    #[serde(default, deserialize_with = "full_name")]
    repository: Option<String>,
    /// Login of the user who added or removed the star.
    #[serde(
        default,
        deserialize_with = "login",
        skip_serializing_if = "Option::is_none"
    )]
    sender: Option<String>,
}

/// Fires when a user adds a star to a repository or removes it. Creates a webhook for `repository`;
/// with a `secret`, enter one at GitHub: event Stars, the URL of this trigger, content type
/// `application/json` and the secret.
#[trigger(webhook, subscription = "Hooks")]
pub(crate) fn star_changed(config: Config, request: Inbound) -> Result<Received<StarEvent>> {
    receive(&config, &request, "star")
}

/// An event of a release.
#[derive(Serialize, Deserialize, JsonSchema)]
pub(crate) struct ReleaseEvent {
    /// `published`, `released` (not as a prerelease), `prereleased`, `created` (also as a draft),
    /// `edited`, `unpublished` or `deleted`. One publication causes several of them.
    action: String,
    /// Repository of the release: `OWNER/NAME`.
    #[serde(default, deserialize_with = "full_name")]
    repository: Option<String>,
    /// Login of the user who caused the event.
    #[serde(
        default,
        deserialize_with = "login",
        skip_serializing_if = "Option::is_none"
    )]
    sender: Option<String>,
    release: Release,
}

/// Fires when a release is published, edited, deleted and so on. Creates a webhook for
/// `repository`; with a `secret`, enter one at GitHub: event Releases, the URL of this trigger,
/// content type `application/json` and the secret.
#[trigger(webhook, subscription = "Hooks")]
pub(crate) fn release_changed(config: Config, request: Inbound) -> Result<Received<ReleaseEvent>> {
    receive(&config, &request, "release")
}

/// Reports a delivery of the given event. Pings, other events and other repositories are
/// acknowledged and dropped.
fn receive<T: DeserializeOwned>(
    config: &Config,
    request: &Inbound,
    event: &str,
) -> Result<Received<T>> {
    WEBHOOK_SIGNATURE.verify(request, &config.secret)?;
    match request.header("x-github-event") {
        Some("ping") => return Ok(Received::nothing().answer("pong")),
        Some(sent) if sent == event => {}
        _ => return Ok(Received::nothing()),
    }
    if !request
        .header("content-type")
        .is_some_and(|kind| kind.starts_with("application/json"))
    {
        return Err(ToolError::invalid_input(
            "set the content type of the webhook at GitHub to application/json",
        ));
    }
    if let Some(wanted) = &config.repository
        && !request
            .json::<Place>()?
            .repository
            .is_some_and(|sent| sent.eq_ignore_ascii_case(wanted))
    {
        return Ok(Received::nothing());
    }
    let Some(delivery) = request.header("x-github-delivery") else {
        return Err(ToolError::invalid_input(
            "the delivery has no `x-github-delivery`; GitHub sends one with each",
        ));
    };
    Ok(Received::event(delivery, request.json()?))
}
