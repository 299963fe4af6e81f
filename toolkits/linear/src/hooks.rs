//! Webhooks at Linear, which the triggers create and delete (<https://linear.app/developers/webhooks>).

use toolkit_sdk::prelude::*;
use toolkit_sdk::subscription::{Endpoint, Subscribe, Subscription};

use crate::api::{ask, done};
use crate::events::{Config, Issues};

const LIST_WEBHOOKS: &str = "query { webhooks(first: 250) { nodes { id url } } }";
const CREATE_WEBHOOK: &str =
    "mutation($input: WebhookCreateInput!) { webhookCreate(input: $input) { webhook { id url } } }";
const DELETE_WEBHOOK: &str = "mutation($id: String!) { webhookDelete(id: $id) { success } }";

/// A webhook.
#[derive(Deserialize)]
struct Hook {
    id: String,
    url: Option<String>,
}

/// Webhooks that send events of all public teams.
pub(crate) struct EventHooks;

impl Subscribe for EventHooks {
    type Config = Config;
    const SECRET: &'static str = "signing_secret";
    const SECRET_POINTER: &'static str = "/variables/input/secret";
    const REQUIRES: &'static [&'static str] = &["types"];

    fn subscribe(
        config: Config,
        endpoint: &Endpoint,
        _: Option<&Subscription>,
    ) -> Result<Subscription> {
        subscribe(endpoint, &config.types, None)
    }

    fn unsubscribe(_: Config, endpoint: &Endpoint, _: Option<&Subscription>) -> Result<()> {
        unsubscribe(endpoint)
    }
}

/// Webhooks that send issues.
pub(crate) struct IssueHooks;

impl Subscribe for IssueHooks {
    type Config = Issues;
    const SECRET: &'static str = "signing_secret";
    const SECRET_POINTER: &'static str = "/variables/input/secret";

    fn subscribe(
        config: Issues,
        endpoint: &Endpoint,
        _: Option<&Subscription>,
    ) -> Result<Subscription> {
        subscribe(endpoint, &["Issue".to_owned()], config.team.as_deref())
    }

    fn unsubscribe(_: Issues, endpoint: &Endpoint, _: Option<&Subscription>) -> Result<()> {
        unsubscribe(endpoint)
    }
}

/// Finds the webhook of an address.
fn find(endpoint: &Endpoint) -> Result<Option<Hook>> {
    let hooks: Vec<Hook> = ask(LIST_WEBHOOKS, &json!({}), "/webhooks/nodes")?;
    Ok(hooks
        .into_iter()
        .find(|hook| hook.url.as_ref() == Some(&endpoint.url)))
}

/// Creates a webhook for a team, or for all public teams, unless the address has one.
fn subscribe(endpoint: &Endpoint, types: &[String], team: Option<&str>) -> Result<Subscription> {
    if let Some(hook) = find(endpoint)? {
        return Ok(Subscription::new(hook.id));
    }
    let mut input = json!({
        "url": endpoint.url, "secret": endpoint.secret, "resourceTypes": types, "enabled": true,
    });
    match team {
        Some(key) => input["teamId"] = key.into(),
        None => input["allPublicTeams"] = true.into(),
    }
    let hook: Hook = ask(
        CREATE_WEBHOOK,
        &json!({ "input": input }),
        "/webhookCreate/webhook",
    )?;
    Ok(Subscription::new(hook.id))
}

fn unsubscribe(endpoint: &Endpoint) -> Result<()> {
    if let Some(hook) = find(endpoint)? {
        done(DELETE_WEBHOOK, &json!({ "id": hook.id }), "/webhookDelete")?;
    }
    Ok(())
}
