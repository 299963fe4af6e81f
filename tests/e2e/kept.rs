//! Later builds read the data of earlier builds: every archive in `tests/kept` can be imported, and
//! all of its records are usable.
//!
//! Each archive was written by a build whose stored records differed from those before. To add one,
//! name it: `TEST_KEEP=NAME cargo test --workspace --test e2e kept`. An existing archive is never
//! overwritten.

use std::{fs, path::Path};

use harness::{Client, FakeApp, Guest, Host, client::Body, guest, host::Setup, unique, wait_until};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    given, mounts, polling,
    tool_router_execution::execute,
    tool_router_sessions::{SESSION_PATH, create},
};

const KEPT_FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/kept");
const ARCHIVE_PASSPHRASE: &str = "nothing secret is in here";
/// File of a session.
const FILE_PATH: &str = "kept/file.txt";
const FILE_CONTENT: &[u8] = b"a kept file";

fn run(setup: &Setup, what: &str, archive: &Path) -> String {
    let passphrase = setup.data().with_extension("passphrase");
    fs::write(&passphrase, ARCHIVE_PASSPHRASE).unwrap();
    let (archive, passphrase) = (archive.to_str().unwrap(), passphrase.to_str().unwrap());
    setup
        .command(&[what, archive, "--passphrase-file", passphrase])
        .succeeded()
}

fn with(application: &FakeApp) -> Setup {
    // The kept archives are older than the retention periods of the execution log and of events.
    let setup = Setup::new()
        .with("logs.cassettes", "all")
        .with("logs.keep_days", "0")
        .with("webhooks.keep_days", "3650");
    setup.with_application(&["api.example.com"], application)
}

/// Creates a record of every kind and exports them. A file next to the archive lists the requests
/// to check.
async fn keep(name: &str, application: &FakeApp) {
    let host = with(application).start().await;
    let mut manifest = guest::manifest_with_key(&given::slug(), given::bearer());
    let trigger = given::webhook_trigger(manifest["slug"].as_str().unwrap(), "ARRIVED");
    manifest["triggers"] = json!([trigger]);
    host.publish(Guest::fetch().component(), &manifest).await;
    let mut older = manifest.clone();
    older["version"] = "20200101_00".into();
    host.publish(Guest::fetch().component(), &older).await;
    let slug = manifest["slug"].as_str().unwrap();
    let older = format!("/toolkits/{slug}/versions/20200101_00");
    host.as_org().delete(&older).await.expect(200);
    let project = host.new_project().await;
    let secret = format!("sk-{}", harness::secret());
    let key = json!({ "api_key": secret });
    let account = project.connect(slug, "API_KEY", "ada", key.clone()).await;
    let gone = project.connect(slug, "API_KEY", "bob", key).await;
    let path = format!("/connected_accounts/{gone}");
    project.delete(&path).await.expect(200);
    // The record is large enough to be compressed.
    let url = format!("https://api.example.com/echo/kept?{}", "x".repeat(2 << 10));
    let asked = json!({ "user_id": "ada", "arguments": { "url": url } });
    let execute = format!("/tools/execute/{}", guest::tool(slug));
    let ran = project.post(&execute, &asked).await.expect(200);
    let subscription = json!({
        "webhook_url": "https://hooks.example.com/", "enabled_events": ["service.trigger.message"],
    });
    let subscription = project.post("/webhook_subscriptions", &subscription).await;
    let id = subscription["id"].as_str().unwrap();
    let test = format!("/webhook_subscriptions/{id}/test");
    let sent = project.post(&test, &json!({})).await.expect(201);
    let endpoint = json!({ "toolkit_slug": slug, "client_id": "kept" });
    let endpoint = project.post("/webhook_endpoints", &endpoint).await;
    let endpoint = endpoint.expect(201)["id"].clone();
    let path = format!("/webhook_endpoints/{}", endpoint.as_str().unwrap());
    let values = json!({ "data": { "secret": "kept secret" } });
    project.patch(&path, &values).await.expect(200);
    let instance = json!({ "connected_account_id": account });
    let instance = keep_instance(&project, &trigger, &instance).await;
    let polled = keep_polled_instance(&host, &project).await;
    let session = keep_session(&project, slug, &account).await;
    let server = keep_mcp_server(&project, &account).await;
    let approved = keep_approved_session(&project, slug).await;
    let recipe = keep_recipe(&project, session.as_str().unwrap(), slug).await;
    let subscribed = keep_subscribed_instance(&host, &project).await;
    let told = json!({
        "endpoint": endpoint, "instance": instance, "polled": polled,
        "subscription": subscription["id"], "delivery": sent["id"],
        "org_key": host.org_key, "project_key": project.key(), "toolkit": slug, "secret": secret,
        "account": account, "removed_account": gone, "log": ran["log_id"],
        "session": session, "mcp_server": server, "approved_session": approved,
        "recipe": recipe, "subscribed": subscribed,
    });
    let (setup, _) = host.terminate().await;
    fs::create_dir_all(KEPT_FOLDER).unwrap();
    let file = Path::new(KEPT_FOLDER).join(name);
    run(&setup, "export", &file.with_extension("age"));
    fs::write(file.with_extension("json"), format!("{told:#}\n")).unwrap();
}

/// Creates an instance of a trigger and returns its id.
async fn keep_instance(project: &Client, trigger: &Value, body: &Value) -> String {
    let slug = trigger["slug"].as_str().unwrap();
    let path = format!("/trigger_instances/{slug}/upsert");
    let made = project.post(&path, body).await.expect(201);
    made["trigger_id"].as_str().unwrap().to_owned()
}

/// Creates a session whose configuration was changed, and returns its id.
async fn keep_session(project: &Client, toolkit: &str, account: &str) -> Value {
    let config = json!({
        "user_id": "ada", "toolkits": { "enable": [toolkit] },
        "connected_accounts": { toolkit: account },
        "tools": { toolkit: { "tags": { "disable": ["destructiveHint"] } } },
        "workbench": { "auto_offload_threshold": 10_000 }, "preload": { "tools": "all" },
    });
    let made = project.post(SESSION_PATH, &config).await.expect(201);
    let path = format!("{SESSION_PATH}/{}", made["session_id"].as_str().unwrap());
    let change = json!({ "multi_account": { "enable": true } });
    project.patch(&path, &change).await.expect(200);
    made["session_id"].clone()
}

/// Creates a session with a file, in which each call of a tool needs an approval until the user has
/// given one. Returns its id.
async fn keep_approved_session(project: &Client, toolkit: &str) -> String {
    let permissions = json!({ "default": "ask_once_per_session" });
    let config = json!({ "user_id": "ada", "experimental": { "permissions": permissions } });
    let session = create(project, config).await;
    mounts::upload(project, &session, FILE_PATH, FILE_CONTENT).await;
    let mut call = kept_call(toolkit);
    let asked = execute(project, &session, call.clone()).await.expect(200);
    assert_eq!(asked["result_type"], "input_required", "{asked:#?}");
    let question = asked["input_requests"].as_object().unwrap().keys().next();
    call["request_state"] = asked["request_state"].clone();
    call["input_responses"] =
        json!({ question.unwrap(): { "action": "accept", "content": { "decision": "approve" } } });
    let ran = execute(project, &session, call).await.expect(200);
    assert_eq!(ran["result_type"], "completed", "{ran:#?}");
    session
}

fn kept_call(toolkit: &str) -> Value {
    let arguments = json!({ "url": "https://api.example.com/echo/kept" });
    json!({ "tool_slug": guest::tool(toolkit), "arguments": arguments })
}

/// Creates a recipe that has run, and returns its slug.
async fn keep_recipe(project: &Client, session: &str, toolkit: &str) -> Value {
    let mut step = kept_call(toolkit);
    step["name"] = json!("one");
    let recipe = json!({ "name": "Kept", "description": "Is kept.", "steps": [step] });
    let upsert = json!({ "tool_slug": "SERVICE_UPSERT_RECIPE", "arguments": recipe });
    let made = execute(project, session, upsert).await.expect(200);
    let recipe = made["data"]["slug"].clone();
    let run = json!({ "tool_slug": recipe, "arguments": {} });
    let ran = execute(project, session, run).await.expect(200);
    assert_eq!(ran["data"]["status"], "succeeded", "{ran:#?}");
    recipe
}

/// Creates a trigger instance subscribed at its provider, and returns its id.
async fn keep_subscribed_instance(host: &Host, project: &Client) -> String {
    let (toolkit, mut manifest) = given::manifest_with_key();
    let mut trigger = given::webhook_trigger(&toolkit, "SENT");
    trigger["subscription"] = json!({ "secret": "secret", "pointer": "/secret" });
    manifest["triggers"] = json!([trigger]);
    // Every call of the guest returns the subscription with the id 1.
    let subscribing = Guest {
        items: r#"(data (i32.const 2048) "{\"id\":\"1\"}")"#,
        execute: "(call $ok (i32.const 2048) (i32.const 10))",
        ..Guest::default()
    };
    host.publish(subscribing.component(), &manifest).await;
    let account = project.connect_with_key(&toolkit, "ada").await;
    let body = json!({ "connected_account_id": account, "trigger_config": { "word": "kept" } });
    let instance = keep_instance(project, &trigger, &body).await;
    wait_for_subscription(project, &instance, "subscribed").await;
    instance
}

async fn wait_for_subscription(project: &Client, instance: &str, status: &str) {
    let path = format!("/trigger_instances/active?show_disabled=true&trigger_ids={instance}");
    let what = format!("the subscription is {status}");
    wait_until(&what, async || {
        let read = project.get(&path).await.expect(200);
        read["items"][0]["subscription"]["status"] == status
    })
    .await;
}

/// Checks the session of an archive in which a tool was approved, and its file.
async fn assert_approved_session(project: &Client, toolkit: &str, session: &str) {
    let ran = execute(project, session, kept_call(toolkit)).await;
    assert_eq!(ran.expect(200)["result_type"], "completed");
    let file = mounts::download(project, session, FILE_PATH).await;
    assert_eq!((file.status, &*file.bytes), (200, FILE_CONTENT));
}

/// Reads a recipe of an archive, and runs it again.
async fn assert_recipe(project: &Client, session: &str, recipe: &str) {
    let read = json!({ "tool_slug": "SERVICE_GET_RECIPE", "arguments": { "slug": recipe } });
    let read = execute(project, session, read).await.expect(200);
    assert_eq!(read["data"]["recipe"]["name"], "Kept", "{read:#?}");
    let run = json!({ "tool_slug": recipe, "arguments": {} });
    let ran = execute(project, session, run).await.expect(200);
    assert_eq!(ran["data"]["status"], "succeeded", "{ran:#?}");
}

/// Ends the subscription of an instance at the provider, and makes it again.
async fn assert_subscribed(project: &Client, instance: &str) {
    let path = format!("/trigger_instances/manage/{instance}");
    for (status, expected) in [("disable", "unsubscribed"), ("enable", "subscribed")] {
        let body = json!({ "status": status });
        project.patch(&path, &body).await.expect(200);
        wait_for_subscription(project, instance, expected).await;
    }
}

/// Creates an MCP server with an instance of `ada`, and returns its id.
async fn keep_mcp_server(project: &Client, account: &str) -> Value {
    let config = project.account(account).await["auth_config"]["id"].clone();
    let server = json!({ "name": "Kept tools", "auth_config_ids": [config] });
    let made = project.post("/mcp/servers", &server).await.expect(201);
    let path = format!("/mcp/servers/{}/instances", made["id"].as_str().unwrap());
    let instance = json!({ "user_id": "ada" });
    project.post(&path, &instance).await.expect(201);
    made["id"].clone()
}

/// Checks the session and the MCP server of an archive.
async fn assert_agents(project: &Client, toolkit: &str, session: &str, server: &str) {
    let path = format!("{SESSION_PATH}/{session}");
    let read = project.get(&path).await.expect(200);
    assert_eq!(read["config_version"], 2);
    assert_eq!(read["config"]["toolkits"], json!({ "enabled": [toolkit] }));
    let history = project.get(&format!("{path}/config_history")).await;
    assert_eq!(history.expect(200)["total_items"], 2);
    let url = format!("https://api.example.com/echo/{}", unique(8));
    let call = json!({ "tool_slug": guest::tool(toolkit), "arguments": { "url": url } });
    let ran = project.post(&format!("{path}/execute"), &call).await;
    assert_eq!(ran.expect(200)["result_type"], "completed");
    let read = project.get(&format!("/mcp/{server}")).await.expect(200);
    assert_eq!(read["name"], "Kept tools");
    let instances = format!("/mcp/servers/{server}/instances");
    let listed = project.get(&instances).await.expect(200);
    assert_eq!(listed["instances"][0]["instance_id"], "ada", "{listed:#?}");
}

/// Creates a trigger instance that has reported an event, and returns its id.
async fn keep_polled_instance(host: &Host, project: &Client) -> String {
    let toolkit = polling::toolkit(host, Guest::poll()).await;
    let polled = polling::Given::of(project.clone(), &toolkit).await;
    let instance = polled.instance(&format!("/echo/{}", unique(8))).await;
    polled.report(&instance).await;
    instance
}

async fn assert_answers(archive: &Path, application: &FakeApp) {
    let told_all = fs::read(archive.with_extension("json")).unwrap();
    let told_all: Value = serde_json::from_slice(&told_all).unwrap();
    let told = |name: &str| {
        let told = told_all[name].as_str();
        told.unwrap_or_else(|| panic!("{archive:?}: {name}"))
    };
    let setup = with(application);
    run(&setup, "import", archive);
    let host = setup.start().await;
    let keyed = [("x-org-api-key", told("org_key"))];
    let nobody = host.anonymous();
    let listed = nobody.send(Method::GET, "/org/toolkits", Body::None, &keyed);
    listed.await.expect(200);
    let project = host.with_key(told("project_key"));
    let (toolkit, log) = (told("toolkit"), told("log"));
    let configs = project.get("/auth_configs").await.expect(200);
    let mut configs = configs["items"].as_array().unwrap().iter();
    assert!(configs.any(|config| config["toolkit"]["slug"] == toolkit));
    project.account(told("account")).await;
    let removed = told("removed_account");
    assert_eq!(given::status(&project, removed).await, "");
    let detail = project.log(&told_all["log"]).await.text;
    assert!(detail.contains("api.example.com/echo/kept"), "{detail}");
    for version in ["latest", "20200101_00"] {
        let tag = unique(8);
        let url = format!("https://api.example.com/echo/{tag}");
        let asked = json!({ "user_id": "ada", "version": version, "arguments": { "url": url } });
        let execute = format!("/tools/execute/{}", guest::tool(toolkit));
        project.post(&execute, &asked).await.data();
        let bearer = format!("Bearer {}", told("secret"));
        let seen = &application.seen(&tag)[0];
        assert_eq!(seen.header("authorization"), bearer);
    }
    let cassette = format!("/logs/tool_execution/{log}/cassette");
    project.get(&cassette).await.expect(200);
    // Earlier archives have no webhooks.
    if told_all["subscription"].is_string() {
        let path = format!("/webhook_subscriptions/{}", told("subscription"));
        let subscription = project.get(&path).await.expect(200);
        assert_eq!(subscription["webhook_url"], "https://hooks.example.com/");
        let delivery = format!("{path}/deliveries/{}", told("delivery"));
        project.get(&delivery).await.expect(200);
        let replay = format!("{delivery}/replay");
        project.post(&replay, &json!({})).await.expect(200);
    }
    // Earlier archives have no triggers.
    if told_all["endpoint"].is_string() {
        let path = format!("/webhook_endpoints/{}", told("endpoint"));
        let endpoint = project.get(&path).await.expect(200);
        assert_eq!(endpoint["data"], json!({ "secret": "kept..." }));
        let path = format!("/trigger_instances/active?trigger_ids={}", told("instance"));
        let listed = project.get(&path).await.expect(200);
        assert_eq!(listed["total_items"], 1);
    }
    if told_all["polled"].is_string() {
        // The instance is polled from its cursor, and recognizes the event that it has reported.
        let poll = format!("/trigger_instances/manage/{}/poll", told("polled"));
        wait_until("the instance is polled again", async || {
            let polled = project.post(&poll, &json!({})).await;
            polled.status == 200 && polled["events"] == 0 && polled["error"].is_null()
        })
        .await;
    }
    // Earlier archives have no sessions.
    if told_all["session"].is_string() {
        assert_agents(&project, toolkit, told("session"), told("mcp_server")).await;
    }
    // Earlier archives have no recipes, files of sessions and subscriptions at providers.
    if told_all["recipe"].is_string() {
        assert_approved_session(&project, toolkit, told("approved_session")).await;
        assert_recipe(&project, told("session"), told("recipe")).await;
        assert_subscribed(&project, told("subscribed")).await;
    }
    let (setup, _) = host.terminate().await;
    setup.command(&["verify"]).succeeded();
}

/// Returns the name of the archive that this run is to write, from `TEST_KEEP`.
fn name_to_keep() -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "a setting of the tests")]
    let name = std::env::var("TEST_KEEP");
    name.ok().filter(|name| !name.is_empty())
}

#[tokio::test]
async fn kept_exports_of_earlier_versions_work() {
    let application = FakeApp::start();
    if let Some(name) = name_to_keep() {
        keep(&name, &application).await;
    }
    let entries = fs::read_dir(KEPT_FOLDER)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let archives: Vec<_> = entries
        .filter(|path| path.extension().is_some_and(|end| end == "age"))
        .collect();
    assert!(!archives.is_empty());
    for archive in archives {
        assert_answers(&archive, &application).await;
    }
}
