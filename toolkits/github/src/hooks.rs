//! Webhooks of repositories, which the webhook triggers create and delete
//! ("REST API endpoints for repository webhooks" on docs.github.com).

use toolkit_sdk::prelude::*;
use toolkit_sdk::subscription::{Endpoint, Subscribe, Subscription};

use crate::api::Repo;
use crate::webhooks::Config;

/// Number of webhooks that are read. GitHub allows 20 for each event.
const MAX_HOOKS: u32 = 100;

/// Webhooks of repositories.
pub(crate) struct Hooks;

/// A webhook.
#[derive(Deserialize)]
struct Hook {
    id: u64,
    config: HookConfig,
}

#[derive(Deserialize)]
struct HookConfig {
    url: Option<String>,
}

impl Subscribe for Hooks {
    type Config = Config;
    const SECRET: &'static str = "secret";
    const SECRET_POINTER: &'static str = "/config/secret";
    const REQUIRES: &'static [&'static str] = &["repository"];

    fn subscribe(
        config: Config,
        endpoint: &Endpoint,
        _: Option<&Subscription>,
    ) -> Result<Subscription> {
        let repo = repo(&config)?;
        if let Some(hook) = find(&repo, endpoint)? {
            return Ok(Subscription::new(hook.id));
        }
        let wanted = json!({
            "name": "web",
            "active": true,
            "events": [event(endpoint.trigger)?],
            "config": {
                "url": endpoint.url, "content_type": "json", "insecure_ssl": "0", "secret": endpoint.secret,
            },
        });
        let hook: Hook = repo.post("/hooks").json(&wanted).send()?.json()?;
        Ok(Subscription::new(hook.id))
    }

    fn unsubscribe(config: Config, endpoint: &Endpoint, _: Option<&Subscription>) -> Result<()> {
        let repo = repo(&config)?;
        if let Some(hook) = find(&repo, endpoint)? {
            repo.delete("/hooks/{hook}").path("hook", hook.id).send()?;
        }
        Ok(())
    }
}

fn repo(config: &Config) -> Result<Repo> {
    let repository = config.repository.as_deref().unwrap_or_default();
    Repo::named(repository).ok_or_else(|| {
        ToolError::invalid_input("`repository` must have the form OWNER/NAME to create a webhook")
    })
}

/// Finds the webhook of an address.
fn find(repo: &Repo, endpoint: &Endpoint) -> Result<Option<Hook>> {
    let hooks: Vec<Hook> = repo
        .get("/hooks")
        .query("per_page", MAX_HOOKS)
        .send()?
        .json()?;
    Ok(hooks
        .into_iter()
        .find(|hook| hook.config.url.as_ref() == Some(&endpoint.url)))
}

/// Returns GitHub's name of the event of a trigger.
fn event(trigger: &str) -> Result<&'static str> {
    Ok(match trigger {
        "ISSUE_CHANGED" => "issues",
        "PULL_REQUEST_CHANGED" => "pull_request",
        "COMMITS_PUSHED" => "push",
        "STAR_CHANGED" => "star",
        "RELEASE_CHANGED" => "release",
        _ => return Err(ToolError::internal("the trigger has no event at GitHub")),
    })
}
