//! Actions of trigger instances: tools that run for events.

use harness::{Answer, Client, Guest, Host, guest, unique, wait_until};
use serde_json::{Value, json};

use crate::{
    given::{self, seen},
    polling,
};

/// A polling trigger whose second poll reports one event, and two tools: `echo` of the same toolkit,
/// which returns its arguments, and `fetch` of another one, which requests its argument `url`.
struct Given {
    polled: polling::Given,
    echo: String,
    fetch: String,
}

impl Given {
    async fn new(host: &Host) -> Self {
        Self::with(host, host.new_project().await, json!({})).await
    }

    /// Publishes the toolkits; `hints` are those of `fetch`.
    async fn with(host: &Host, project: Client, hints: Value) -> Self {
        let toolkit = polling::toolkit(host, Guest::poll()).await;
        let (other, mut fetching) = given::manifest_with_key();
        fetching["tools"][0]["hints"] = hints;
        host.publish(Guest::strict_fetch().component(), &fetching)
            .await;
        project.connect_with_key(&other, "amy").await;
        Self {
            polled: polling::Given::of(project, &toolkit).await,
            echo: guest::tool(&toolkit),
            fetch: guest::tool(&other),
        }
    }

    fn project(&self) -> &Client {
        &self.polled.project
    }

    async fn upsert(&self, client: &Client, action: Value) -> Answer {
        let url = format!("https://api.example.com/echo/{}", unique(8));
        self.upsert_at(client, &url, action).await
    }

    async fn upsert_at(&self, client: &Client, url: &str, action: Value) -> Answer {
        let body = json!({
            "connected_account_id": self.polled.account, "trigger_config": { "url": url }, "action": action,
        });
        let path = format!("/trigger_instances/{}/upsert", self.polled.trigger);
        client.post(&path, &body).await
    }

    /// Creates an instance with an action and lets it report an event.
    async fn fire(&self, action: Value) -> String {
        let made = self.upsert(self.project(), action).await.expect(201);
        let id = made["trigger_id"].as_str().unwrap().to_owned();
        self.polled.report(&id).await;
        id
    }

    /// Lets an instance run `fetch` with an address of the fake provider.
    async fn fire_fetch(&self, path: &str) -> String {
        let url = format!("https://api.example.com{path}");
        let arguments = json!({ "url": url });
        self.fire(json!({ "tool_slug": self.fetch, "arguments": arguments }))
            .await
    }

    /// Returns the run of the action for the only event of an instance.
    async fn run(&self, id: &str) -> Value {
        let path = format!("/trigger_instances/manage/{id}/actions");
        let listed = self.project().get(&path).await.expect(200);
        assert_eq!(listed["total_items"], 1, "{listed:#?}");
        listed["items"][0].clone()
    }

    /// Waits until the run for the only event of an instance has a status, and returns it.
    async fn wait_for(&self, id: &str, status: &str) -> Value {
        let reached = async || self.run(id).await["status"] == status;
        wait_until(&format!("the action is {status}"), reached).await;
        self.run(id).await
    }

    async fn wait_for_attempts(&self, id: &str, attempts: u64) {
        let made = async || self.run(id).await["attempt_count"].as_u64().unwrap() >= attempts;
        wait_until(&format!("{attempts} attempts were made"), made).await;
    }
}

fn error(run: &Value) -> &str {
    run["error"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn event_runs_tool_with_mapped_arguments() {
    let given = Given::new(Host::shared().await).await;
    let arguments = json!({
        "whole": "{{event.data.headers.host}}",
        "text": "{{event.data.method}} of {{event.metadata.user_id}}",
        "kind": "{{event.type}}",
        "count": 7,
        "nothing": "{{event.data.nothing}}",
        "nested": [{ "method": "{{ event.data.method }}" }],
    });
    let action = json!({ "tool_slug": given.echo, "arguments": arguments });
    let id = given.fire(action).await;
    let run = given.wait_for(&id, "succeeded").await;
    assert_eq!(run["attempt_count"], 1);
    assert_eq!(run["error"], Value::Null);
    let log = given.project().log(&run["log_id"]).await;
    let mut filled = log["data"]["response"]["data"].clone();
    assert!(filled["whole"].is_string(), "{filled:#}");
    filled["whole"] = json!("");
    assert_eq!(
        filled,
        json!({
            "whole": "", "text": "GET of amy", "kind": "service.trigger.message", "count": 7,
            "nothing": null, "nested": [{ "method": "GET" }],
        })
    );
    assert!(log.text.contains(&id), "the log names the instance");
    let read = given.polled.read(&id).await;
    assert_eq!(read["action"]["tool_slug"], json!(given.echo));
    assert_eq!(read["action"]["arguments"], arguments);
}

#[tokio::test]
async fn rate_limited_tool_runs_again() {
    let given = Given::new(Host::shared().await).await;
    let tag = unique(8);
    let id = given.fire_fetch(&format!("/once429/{tag}")).await;
    let run = given.wait_for(&id, "succeeded").await;
    assert_eq!(run["attempt_count"], 2);
    assert_eq!(seen(&tag), 2);
}

#[tokio::test]
async fn failed_tool_is_listed_and_not_repeated() {
    let given = Given::new(Host::shared().await).await;
    let tag = unique(8);
    let id = given.fire_fetch(&format!("/status/{tag}/500")).await;
    let run = given.wait_for(&id, "failed").await;
    assert!(error(&run).contains("upstream_error"), "{run:#}");
    assert_eq!(run["next_attempt_at"], Value::Null);
    assert!(run["log_id"].is_string());
    assert_eq!(seen(&tag), 1);
    let failed = format!("/trigger_instances/manage/{id}/actions?status=failed");
    let failed = given.project().get(&failed).await.expect(200);
    assert_eq!(failed["total_items"], 1);
    let without_url = json!({ "text": "{{event.data.nothing}}" });
    let action = json!({ "tool_slug": given.fetch, "arguments": without_url });
    let id = given.fire(action).await;
    given.wait_for(&id, "failed").await;
}

#[tokio::test]
async fn kill_repeats_only_read_only_tools() {
    let host = given::with_application().start().await;
    let mut changing = Given::with(&host, host.as_project(), json!({})).await;
    let read_only = json!({ "read_only": true });
    let mut reading = Given::with(&host, host.as_project(), read_only).await;
    let tags = [unique(8), unique(8)];
    let changed = changing.fire_fetch(&format!("/hangonce/{}", tags[0])).await;
    let read = reading.fire_fetch(&format!("/hangonce/{}", tags[1])).await;
    wait_until("both tools run", async || {
        tags.iter().all(|tag| seen(tag) == 1)
    })
    .await;
    let host = host.kill().start().await;
    changing.polled.project = host.as_project();
    reading.polled.project = host.as_project();
    let run = reading.wait_for(&read, "succeeded").await;
    assert_eq!(run["attempt_count"], 2);
    let run = changing.wait_for(&changed, "failed").await;
    assert!(error(&run).contains("outcome_unknown"), "{run:#}");
    assert_eq!(tags.map(|tag| seen(&tag)), [1, 2]);
}

#[tokio::test]
async fn deleted_or_disabled_instance_ends_its_actions() {
    let given = Given::new(Host::shared().await).await;
    let limited = |tag: &str| format!("/limited/{tag}");
    let tags = [unique(8), unique(8), unique(8)];
    let deleted = given.fire_fetch(&limited(&tags[0])).await;
    let disabled = given.fire_fetch(&limited(&tags[1])).await;
    given.wait_for_attempts(&deleted, 1).await;
    given.wait_for_attempts(&disabled, 1).await;
    let path = |id: &str| format!("/trigger_instances/manage/{id}");
    given.project().delete(&path(&deleted)).await.expect(200);
    let disable = json!({ "status": "disable" });
    let changed = given.project().patch(&path(&disabled), &disable).await;
    changed.expect(200);
    let run = given.wait_for(&disabled, "failed").await;
    assert!(error(&run).contains("is disabled"), "{run:#}");
    let list = format!("{}/actions", path(&deleted));
    given.project().get(&list).await.expect(410);
    // The deleted instance would make two further attempts while another one does.
    let other = given.fire_fetch(&limited(&tags[2])).await;
    given.wait_for_attempts(&other, 2).await;
    let before = seen(&tags[0]);
    given.wait_for_attempts(&other, 4).await;
    assert_eq!(seen(&tags[0]), before);
    given.project().delete(&path(&other)).await.expect(200);
}

#[tokio::test]
async fn action_that_may_not_run_is_refused() {
    let host = Host::shared().await;
    let given = Given::new(host).await;
    let stranger = Given::new(host).await;
    let with = |changes: Value| {
        let action =
            json!({ "tool_slug": given.fetch, "arguments": { "url": "{{event.data.url}}" } });
        given::merged(action, &changes)
    };
    for (changes, status) in [
        (json!({ "tool_slug": "NO_SUCH_TOOL" }), 404),
        (json!({ "version": "20200101_00" }), 404),
        (json!({ "tool_slug": stranger.fetch }), 404),
        (json!({ "user_id": "bob" }), 404),
        (json!({ "connected_account_id": "no id" }), 400),
        (json!({ "connected_account_id": "ca_AAAAAAAAAAAA" }), 404),
        (
            json!({ "connected_account_id": stranger.polled.account }),
            404,
        ),
        (json!({ "connected_account_id": given.polled.account }), 400),
        (json!({ "arguments": { "url": "{{data.url}}" } }), 400),
        (json!({ "arguments": { "url": "{{event.data.url" } }), 400),
        (json!({ "arguments": { "url": "x".repeat(64 << 10) } }), 400),
        (json!({ "arguments": ["x"] }), 400),
        (json!({ "if": { "equals": [1, 2] } }), 400),
    ] {
        let refused = given.upsert(given.project(), with(changes.clone())).await;
        assert_eq!(refused.status, status, "{changes}: {refused:#?}");
    }
    let wrong = json!({ "arguments": { "url": "{{data.url}}", "x": ["{{event.id}} {{y}}"] } });
    let refused = given.upsert(given.project(), with(wrong)).await.expect(400);
    let problems = refused["error"]["errors"].to_string();
    for path in ["action.arguments.url: ", "action.arguments.x[0]: "] {
        assert!(problems.contains(path), "{problems}");
    }
    let id = given.project().project_id().await;
    let keys = format!("/org/owner/project/{id}/api_keys");
    let triggers = json!({ "preset": "triggers", "access": "write" });
    let restricted = json!({ "name": "triggers", "permissions": [triggers] });
    let restricted = host.as_org().post(&keys, &restricted).await.expect(201);
    let restricted = host.with_key(restricted["key"].as_str().unwrap());
    given.upsert(&restricted, with(json!({}))).await.expect(403);
    given.upsert(&restricted, Value::Null).await.expect(201);
}

#[tokio::test]
async fn upsert_replaces_and_removes_the_action() {
    let given = Given::new(Host::shared().await).await;
    let url = format!("https://api.example.com/echo/{}", unique(8));
    let upsert = async |action: Value| given.upsert_at(given.project(), &url, action).await;
    let action = |text: &str| json!({ "tool_slug": given.echo, "arguments": { "a": text } });
    let made = upsert(action("first")).await.expect(201);
    let id = made["trigger_id"].as_str().unwrap();
    upsert(action("second")).await.expect(200);
    let body =
        json!({ "connected_account_id": given.polled.account, "trigger_config": { "url": url } });
    let path = format!("/trigger_instances/{}/upsert", given.polled.trigger);
    given.project().post(&path, &body).await.expect(200);
    assert_eq!(
        given.polled.read(id).await["action"]["arguments"]["a"],
        "second",
        "an upsert without an action keeps it"
    );
    upsert(Value::Null).await.expect(200);
    assert_eq!(given.polled.read(id).await["action"], Value::Null);
}

#[tokio::test]
async fn changed_action_keeps_its_account_and_user() {
    let given = Given::new(Host::shared().await).await;
    let toolkit = given.fetch.trim_end_matches("_RUN").to_lowercase();
    let older = given.project().connect_with_key(&toolkit, "bob").await;
    let newer = given.project().connect_with_key(&toolkit, "bob").await;
    let url = format!("https://api.example.com/echo/{}", unique(8));
    let upsert = async |action: Value| given.upsert_at(given.project(), &url, action).await;
    let action =
        json!({ "tool_slug": given.fetch, "user_id": "bob", "connected_account_id": older });
    let made = upsert(action).await.expect(201);
    let id = made["trigger_id"].as_str().unwrap();
    let chosen = async || {
        let action = given.polled.read(id).await["action"].clone();
        [
            action["user_id"].clone(),
            action["connected_account_id"].clone(),
        ]
    };
    let changed = json!({ "tool_slug": given.fetch, "arguments": { "url": url } });
    upsert(changed.clone()).await.expect(200);
    assert_eq!(chosen().await, [json!("bob"), json!(older)]);
    let mut named = changed.clone();
    named["connected_account_id"] = json!(newer);
    upsert(named).await.expect(200);
    assert_eq!(chosen().await, [json!("bob"), json!(newer)]);
    let other_toolkit = json!({ "tool_slug": given.echo, "user_id": null });
    upsert(other_toolkit).await.expect(200);
    assert_eq!(chosen().await, [Value::Null, Value::Null]);
    let mut cleared = changed;
    (cleared["user_id"], cleared["connected_account_id"]) = (json!("bob"), json!(newer));
    upsert(cleared.clone()).await.expect(200);
    cleared["connected_account_id"] = Value::Null;
    upsert(cleared).await.expect(200);
    assert_eq!(chosen().await, [json!("bob"), Value::Null]);
}

#[tokio::test]
async fn action_may_replace_webhooks() {
    let given = Given::new(Host::shared().await).await;
    let subscription = json!({
        "webhook_url": "https://hooks.example.com/", "enabled_events": ["service.trigger.message"],
    });
    let made = given
        .project()
        .post("/webhook_subscriptions", &subscription);
    let made = made.await.expect(201);
    let path = format!(
        "/webhook_subscriptions/{}/deliveries",
        given::text(&made["id"])
    );
    let mut action = json!({ "tool_slug": given.echo });
    let beside = given.fire(action.clone()).await;
    action["instead_of_webhook"] = json!(true);
    let instead = given.fire(action).await;
    let beside = given.wait_for(&beside, "succeeded").await;
    given.wait_for(&instead, "succeeded").await;
    let deliveries = given.project().get(&path).await.expect(200);
    assert_eq!(deliveries["total_items"], 1, "{deliveries:#?}");
    assert_eq!(deliveries["items"][0]["message_id"], beside["message_id"]);

    // A replay of everything does not send them either.
    let replay = format!("{path}/replay");
    let all = json!({ "include_delivered": true });
    given.project().post(&replay, &all).await.expect(200);
    let deliveries = given.project().get(&path).await.expect(200);
    assert_eq!(deliveries["total_items"], 1, "{deliveries:#?}");
}

#[tokio::test]
async fn actions_past_the_limit_fail() {
    let host = given::with_application().with("limits.accounts_per_project", "20");
    let host = host.start().await;
    let given = Given::with(&host, host.as_project(), json!({})).await;
    let tag = unique(8);
    let waiting = given.fire_fetch(&format!("/limited/{tag}")).await;
    given.wait_for_attempts(&waiting, 1).await;
    let refused = given.fire(json!({ "tool_slug": given.echo })).await;
    let run = given.wait_for(&refused, "failed").await;
    assert!(error(&run).contains("1 pending actions"), "{run:#}");
    assert_eq!(run["attempt_count"], 0);
}

#[tokio::test]
async fn deletion_frees_pending_actions_at_once() {
    let host = given::with_application().with("limits.accounts_per_project", "20");
    let host = host.start().await;
    let given = Given::with(&host, host.as_project(), json!({})).await;
    let tag = unique(8);
    let running = given.fire_fetch(&format!("/hang/{tag}")).await;
    wait_until("the tool runs", async || seen(&tag) > 0).await;
    let path = format!("/trigger_instances/manage/{running}");
    given.project().delete(&path).await.expect(200);
    let next = given.fire(json!({ "tool_slug": given.echo })).await;
    given.wait_for(&next, "succeeded").await;
}
