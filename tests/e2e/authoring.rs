//! Work of an author on a toolkit with triggers: recorded cases, their correction, publication, and
//! the output of `toolkit dev`.

use std::{fs, process::Command};

use harness::{
    Author, Client, Finished, Host, author::Dev, client::Body, signed::hmac_sha256, wait_until,
};
use reqwest::Method;
use serde_json::{Value, json};

/// Secret of the webhooks.
const WEBHOOK_SECRET: &str = harness::marked!("hook-secret-");
/// Text after which `lib.rs` of the template is replaced.
const TEMPLATE_END: &str = "tools: [greet],\n}";
/// Declaration and code of the triggers, which need an account.
const TRIGGERS_SOURCE: &str = r#"auth: [api_key(header: "authorization", value: "{api_key}")],
    tools: [greet],
    triggers: [heard, ticked],
}

use toolkit_sdk::webhook::{Secret, Signature};

const SIGNATURE_HEADER: Signature = Signature::header("x-signature").prefix("sha256=");

#[derive(Deserialize, JsonSchema)]
struct Config {
    /// Signing secret.
    #[schemars(length(min = 16))]
    secret: Secret,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Word {
    text: String,
}

/// Fires when a word is heard.
#[trigger(webhook)]
fn heard(config: Config, request: Inbound) -> Result<Received<Word>> {
    SIGNATURE_HEADER.verify(&request, &config.secret)?;
    let word: Word = request.json()?;
    log::info!("heard {}", word.text);
    Ok(Received::event(&word.text.clone(), word))
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Fires never.
#[trigger(poll)]
fn ticked(_config: Nothing, _cursor: Option<u64>) -> Result<Polled<Word, u64>> {
    log::info!("polled");
    Ok(Polled::new(1))
}"#;

/// Creates a toolkit with triggers.
fn toolkit(name: &str) -> Author {
    let author = Author::new();
    author.new_toolkit(name);
    author.edit(&format!("{name}/src/lib.rs"), TEMPLATE_END, TRIGGERS_SOURCE);
    let file = author.path(&format!("{name}/Cargo.toml"));
    let text = fs::read_to_string(&file).unwrap();
    let (before, after) = text.rsplit_once("toolkit-sdk = ").unwrap();
    let (dependency, rest) = after.split_once('\n').unwrap_or((after, ""));
    let dependency = dependency.trim();
    let with_feature = if dependency.starts_with('{') {
        dependency.replacen('{', r#"{ features = ["webhook"],"#, 1)
    } else {
        format!(r#"{{ version = {dependency}, features = ["webhook"] }}"#)
    };
    let text = format!("{before}toolkit-sdk = {with_feature}\n{rest}");
    fs::write(file, text).unwrap();
    author
}

/// Returns the request of a webhook whose body is not compact JSON.
fn request(secret: &str) -> Value {
    let body = "{ \"text\": \"hello\",\n  \"at\": 1.0e2 }";
    let signature = format!("sha256={}", hmac_sha256(secret, body));
    json!({ "headers": { "x-signature": signature, "content-type": "application/json" }, "body": body })
}

/// Records a webhook as a case, and returns the case.
fn record(author: &Author, name: &str, request: &Value, case: &str) -> Value {
    let config = json!({ "secret": WEBHOOK_SECRET }).to_string();
    let request = request.to_string();
    let call = ["record", name, "--trigger", "heard", "--config", &config];
    let ran = author.toolkit(&[&call[..], &["--request", &request, "--case", case]].concat());
    let file = author.path(&format!("{name}/cases/heard/{case}.json"));
    let text = fs::read_to_string(file).unwrap_or_else(|cause| panic!("{cause}: {ran:#?}"));
    assert!(!text.contains(WEBHOOK_SECRET), "{text}");
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn recorded_webhook_case_passes_unchanged() {
    let name = "authored-cases";
    let author = toolkit(name);
    let case = record(&author, name, &request(WEBHOOK_SECRET), "success");
    assert_eq!(case["request"]["body"], request(WEBHOOK_SECRET)["body"]);
    assert_eq!(case["data"]["events"][0]["payload"]["text"], "hello");
    let wrong = request("another secret of the provider");
    let case = record(&author, name, &wrong, "failure");
    assert_eq!(case["error"]["kind"], "unauthorized");
    for (file, case) in [
        (
            "success",
            json!({ "data": { "events": [], "cursor": 1, "more": false } }),
        ),
        (
            "failure",
            json!({ "arguments": 7, "error": { "kind": "invalid_input" } }),
        ),
    ] {
        let file = author.path(&format!("{name}/cases/ticked/{file}.json"));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, case.to_string()).unwrap();
    }
    let checked = author.json(&["check", name]);
    assert_eq!(
        checked[0]["cases"].as_array().unwrap().len(),
        6,
        "{checked}"
    );

    let broken = author.path(&format!("{name}/cases/greet/success.json"));
    let text = r#"{ "arguments": { "name": "" }, "data": { "text": "Hello, Ada!" } }"#;
    fs::write(&broken, text).unwrap();
    let refused = author.toolkit(&["check", name, "--bless"]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    let reason = "--bless does not make it a failure case";
    assert!(refused.stdout.contains(reason), "{refused:?}");
    assert_eq!(fs::read_to_string(&broken).unwrap(), text);
}

#[tokio::test]
async fn publish_takes_next_number_of_day() {
    let host = Host::shared().await;
    let name = "authored-versions";
    let author = Author::new();
    author.new_toolkit(name);
    let run = |command: Command| Finished::run(command);
    let keyless = run(author.command(&["publish", name])).failed();
    assert!(keyless.contains("TOOLHOST_ORG_API_KEY"), "{keyless}");
    assert!(
        !author.path(name).join("dist").exists(),
        "nothing was built"
    );
    let server = ["--url", &host.url, "--org-key", &host.org_key];
    let publish = || {
        let command = author.command(&[&["publish", name, "--json"], &server[..]].concat());
        let published: Value = serde_json::from_str(&run(command).succeeded()).unwrap();
        let version = published[0]["version"].as_str().unwrap().to_owned();
        (version, published[0]["status"].clone())
    };
    let (first, _) = publish();
    author.edit(&format!("{name}/src/lib.rs"), "Hello, ", "Hello  ");
    author.edit(
        &format!("{name}/cases/greet/success.json"),
        "Hello, ",
        "Hello  ",
    );
    let (second, _) = publish();
    assert_eq!((&first[9..], &second[9..]), ("00", "01"));
    assert_eq!(publish(), (second.clone(), json!(200)), "nothing changed");
    let component = author.path(name).join("dist/authored_versions.wasm");
    let inspected = author.json(&["inspect", component.to_str().unwrap()]);
    assert!(inspected.to_string().contains(&second), "{inspected}");
}

/// Returns the calls of a trigger that `toolkit dev` has shown.
fn shown(dev: &Dev, kind: &str) -> Vec<Value> {
    let mut events = dev.all("trigger");
    events.retain(|event| event["kind"] == kind);
    events
}

async fn receive(project: &Client, url: &str, request: &Value) -> u16 {
    let (_, path) = url.split_once("/api/v3.1").expect("the newer prefix");
    let signature = request["headers"]["x-signature"].as_str().unwrap();
    let body = request["body"].as_str().unwrap().as_bytes().to_vec();
    let body = Body::Raw("application/json", body);
    let headers = [("x-signature", signature)];
    let answer = project.send(Method::POST, path, body, &headers).await;
    answer.status
}

#[tokio::test]
async fn dev_shows_polls_and_webhooks() {
    let author = toolkit("authored-dev");
    let credentials = author.path("account.json");
    fs::write(
        &credentials,
        json!({ "api_key": harness::secret() }).to_string(),
    )
    .unwrap();
    let dev = author.dev(
        "authored-dev",
        &["--credentials", credentials.to_str().unwrap()],
    );
    let project = dev.project().await;
    let account = dev.event("connected", 0).await["account"].clone();
    let upsert = async |trigger: &str, config: Value| {
        let body = json!({ "connected_account_id": account, "trigger_config": config });
        let path = format!("/trigger_instances/AUTHORED_DEV_{trigger}/upsert");
        let made = project.post(&path, &body).await.expect(201);
        made["trigger_id"].as_str().unwrap().to_owned()
    };
    upsert("TICKED", json!({})).await;
    wait_until("the poll is shown", async || {
        !shown(&dev, "poll").is_empty()
    })
    .await;
    let poll = shown(&dev, "poll").swap_remove(0);
    assert_eq!(poll["trigger"], "AUTHORED_DEV_TICKED");
    assert_eq!(poll["call"]["log"][0]["message"], "polled", "{poll}");

    upsert("HEARD", json!({ "secret": WEBHOOK_SECRET })).await;
    let endpoint = json!({ "toolkit_slug": "authored_dev", "client_id": "app" });
    let endpoint = project
        .post("/webhook_endpoints", &endpoint)
        .await
        .expect(201);
    let url = endpoint["webhook_url"].as_str().unwrap();
    for (secret, status) in [
        (WEBHOOK_SECRET, 200),
        ("another secret of the provider", 401),
    ] {
        assert_eq!(receive(&project, url, &request(secret)).await, status);
    }
    wait_until("both webhooks are shown", async || {
        shown(&dev, "webhook").len() == 2
    })
    .await;
    let webhooks = shown(&dev, "webhook");
    assert_eq!(webhooks[0]["call"]["events"], 1, "{webhooks:?}");
    let error = webhooks[1]["call"]["error"].as_str().unwrap();
    assert!(error.contains("the signature is wrong"), "{error}");
    assert!(!json!(dev.events()).to_string().contains(WEBHOOK_SECRET));
}
