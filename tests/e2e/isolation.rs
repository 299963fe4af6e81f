//! Records of another project are reported as not found.

use std::collections::{BTreeMap, BTreeSet};

use harness::{Answer, Client, Host, client::Body, guest};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    description::{CLIENT_OPERATIONS, Key, Operation},
    given,
};

const PROBE_REQUEST_ID: &str = "isolation-probe";

/// Records of a project, by the kind of id.
struct Possessions {
    client: Client,
    ids: BTreeMap<&'static str, String>,
}

impl Possessions {
    async fn of_a_new_project(host: &Host) -> Self {
        let client = host.new_project().await;
        let config = given::auth_config(&client).await;
        let made = given::made_account(&client, &config, "amy", &harness::secret()).await;
        let echo = given::shared_echo().await;
        let ran = client.execute(echo, json!({ "word": "private" })).await;
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let subscription = json!({
            "webhook_url": "https://hooks.example.com/", "enabled_events": ["service.trigger.message"],
        });
        let made_subscription = client.post("/webhook_subscriptions", &subscription).await;
        let subscription = text(&made_subscription["id"]);
        let path = format!("/webhook_subscriptions/{subscription}/test");
        let sent = client.post(&path, &json!({})).await.expect(201);
        let upsert = format!("/trigger_instances/{}/upsert", given::keyed_trigger().await);
        let body = json!({ "connected_account_id": made["id"] });
        let instance = client.post(&upsert, &body).await.expect(201);
        let endpoint = json!({ "toolkit_slug": given::keyed().await, "client_id": "private" });
        let endpoint = client.post("/webhook_endpoints", &endpoint).await;
        let session = json!({ "user_id": "amy" });
        let session = client.post("/tool_router/session", &session).await;
        let ids = [
            ("ac", config),
            ("ca", text(&made["id"])),
            ("log", text(&ran["log_id"])),
            ("wd", text(&sent["id"])),
            ("we", text(&endpoint.expect(201)["id"])),
            ("ws", subscription),
            ("ti", text(&instance["trigger_id"])),
            ("trs", text(&session.expect(201)["session_id"])),
        ]
        .into();
        Self { client, ids }
    }

    /// Returns everything readable of the project.
    async fn state(&self) -> Vec<String> {
        let mut state = Vec::new();
        for path in ["/auth_configs?show_disabled=true", "/connected_accounts"] {
            state.push(self.client.get(path).await.expect(200).text);
        }
        let logs = self.client.post("/logs/tool_execution", &json!({})).await;
        state.push(logs.expect(200).text);
        for (kind, id) in &self.ids {
            // The state of a delivery changes with its attempts.
            if *kind == "wd" {
                continue;
            }
            let path = place(kind).replace("{}", id);
            state.push(self.client.get(&path).await.expect(200).text);
        }
        state
    }
}

fn place(kind: &str) -> &'static str {
    match kind {
        "ac" => "/auth_configs/{}",
        "ca" => "/connected_accounts/{}",
        "we" => "/webhook_endpoints/{}",
        "ws" => "/webhook_subscriptions/{}",
        "ti" => "/trigger_instances/active?trigger_ids={}",
        "trs" => "/tool_router/session/{}",
        _ => "/logs/tool_execution/{}",
    }
}

fn operations_of_projects() -> impl Iterator<Item = &'static Operation> {
    CLIENT_OPERATIONS
        .iter()
        .filter(|operation| operation.key() == Key::Project)
}

/// Returns the kinds of id that operations of a project take in their paths.
fn kinds() -> BTreeSet<&'static str> {
    operations_of_projects()
        .flat_map(|operation| operation.unknown())
        .filter_map(|(_, unknown)| kind(unknown))
        .collect()
}

/// Returns the kind of an id, or `None` for another parameter.
fn kind(unknown: &'static str) -> Option<&'static str> {
    unknown.strip_suffix("_AAAAAAAAAAAA")
}

/// Sends a request such that two responses can be compared byte by byte.
async fn probe(client: &Client, method: &str, path: &str, body: &Value) -> Answer {
    let body = match body {
        Value::Null => Body::None,
        body => Body::Json(body.clone()),
    };
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let headers = [("x-request-id", PROBE_REQUEST_ID)];
    client.send(method, path, body, &headers).await
}

/// Returns every position at which an id of a project can occur: method, path, body.
fn places(wanted: &str) -> Vec<(&'static str, String, Value)> {
    let mut places = Vec::new();
    for operation in operations_of_projects() {
        let mut values = operation.unknown();
        let is_wanted = |id: &&'static str| kind(id) == Some(wanted);
        if !values.iter().any(|(_, id)| is_wanted(id)) {
            continue;
        }
        for (_, id) in values.iter_mut().filter(|(_, id)| is_wanted(id)) {
            *id = "ID";
        }
        let body = match operation.body(false) {
            Body::Json(body) => body,
            _ => Value::Null,
        };
        places.push((operation.method.as_str(), operation.filled(&values), body));
    }
    match wanted {
        "ac" => {
            let account = given::account("ID", "eve", &harness::secret());
            places.push(("POST", "/connected_accounts".into(), account));
            let link = json!({ "auth_config_id": "ID", "user_id": "eve" });
            places.push(("POST", "/connected_accounts/link".into(), link));
        }
        "ca" => {
            let call = json!({ "arguments": {}, "version": "latest", "connected_account_id": "ID", "user_id": "amy" });
            places.push(("POST", "/tools/execute/TOOL".into(), call));
            let proxied =
                json!({ "endpoint": "/x", "method": "GET", "connected_account_id": "ID" });
            places.push(("POST", "/tools/execute/proxy".into(), proxied));
            let upsert = json!({ "connected_account_id": "ID" });
            places.push(("POST", "/trigger_instances/TRIGGER/upsert".into(), upsert));
        }
        _ => {}
    }
    places
}

#[tokio::test]
async fn foreign_id_looks_like_an_unknown_id() {
    let host = Host::shared().await;
    let victim = Possessions::of_a_new_project(host).await;
    let before = victim.state().await;
    let attacker = host.new_project().await;
    let tool = guest::tool(given::keyed().await);
    let trigger = given::keyed_trigger().await;
    let mut probes = 0;
    let known = victim.ids.keys().copied().collect::<BTreeSet<_>>();
    assert!(
        kinds().is_subset(&known),
        "give the victim one of each of {:?}",
        kinds().difference(&known)
    );
    for (kind, foreign) in &victim.ids {
        let unknown = format!("{kind}_{}", "A".repeat(12));
        for (method, path, body) in places(kind) {
            let answer = async |id: &str| {
                let path = path
                    .replace("ID", id)
                    .replace("TOOL", &tool)
                    .replace("TRIGGER", &trigger);
                let body = body.to_string().replace("\"ID\"", &format!("\"{id}\""));
                let body = serde_json::from_str(&body).unwrap();
                probe(&attacker, method, &path, &body).await
            };
            let (of_foreign, of_unknown) = (answer(foreign).await, answer(&unknown).await);
            assert_eq!(of_unknown.status, 404, "{method} {path}: {of_unknown:#?}");
            assert_eq!(of_foreign.status, 404, "{method} {path}: {of_foreign:#?}");
            assert_eq!(
                of_foreign.text.replace(foreign.as_str(), &unknown),
                of_unknown.text,
                "{method} {path}"
            );
            let same = of_foreign.headers.keys().eq(of_unknown.headers.keys());
            assert!(same, "{method} {path}: {of_foreign:#?} {of_unknown:#?}");
            probes += 2;
            for spoilt in spoilt(foreign) {
                let answer = answer(&spoilt).await;
                assert!(
                    [400, 404].contains(&answer.status),
                    "{method} {path} {spoilt}: {answer:#?}"
                );
                assert!(
                    !answer.text.contains("private") && !answer.text.contains("k-01"),
                    "{answer:#?}"
                );
                probes += 1;
            }
        }
    }
    assert_eq!(
        victim.state().await,
        before,
        "the victim's things have changed"
    );
    assert!(probes >= 60, "only {probes} probes");
}

/// Returns altered spellings of the id that a careless comparison would accept.
fn spoilt(id: &str) -> Vec<String> {
    let (prefix, rest) = id.split_once('_').unwrap();
    vec![
        format!("xx_{rest}"),
        rest.to_owned(),
        format!("{}_{rest}", prefix.to_uppercase()),
        format!("{id}%20"),
        format!("{id}%00"),
        format!("{id}*"),
        format!("%25{rest}"),
    ]
}

#[tokio::test]
async fn project_is_found_by_exact_id_only() {
    let host = Host::shared().await;
    for spelling in [
        "proj_AAAAAAAAAAAA",
        "pr_AAAAAAAAAAAA",
        "AAAAAAAAAAAA",
        "%2e%2e",
    ] {
        for (method, tail) in [("GET", ""), ("DELETE", ""), ("POST", "/regenerate_api_key")] {
            let path = format!("/org/owner/project/{spelling}{tail}");
            let answer = probe(&host.as_org(), method, &path, &Value::Null).await;
            assert!(
                [400, 404].contains(&answer.status),
                "{method} {spelling}: {answer:#?}"
            );
        }
    }
}

#[tokio::test]
async fn foreign_ids_in_filters_find_nothing() {
    let host = Host::shared().await;
    let victim = Possessions::of_a_new_project(host).await;
    let attacker = host.new_project().await;
    let (config, account, log) = (&victim.ids["ac"], &victim.ids["ca"], &victim.ids["log"]);
    for path in [
        format!("/connected_accounts?connected_account_ids={account}"),
        format!("/connected_accounts?auth_config_ids={config}"),
        "/connected_accounts?user_ids=amy".to_owned(),
        "/connected_accounts?cursor=MS0xMDAw".to_owned(),
        "/auth_configs?show_disabled=true".to_owned(),
        "/auth_configs?search=mine".to_owned(),
        format!("/trigger_instances/active?trigger_ids={}", victim.ids["ti"]),
        format!("/trigger_instances/active?connected_account_ids={account}"),
    ] {
        let page = attacker.get(&path).await.expect(200);
        assert_eq!(
            (&page["items"], &page["total_items"]),
            (&json!([]), &0.into()),
            "{path}"
        );
    }
    for (field, value) in [
        ("log_id", log),
        ("connected_account_id", account),
        ("auth_config_id", config),
        ("session_id", &victim.ids["trs"]),
    ] {
        let filters = json!({ "filters": [{ "field": field, "operator": "==", "value": value }] });
        let listed = attacker.post("/logs/tool_execution", &filters).await;
        assert_eq!(listed.expect(200)["logs"], json!([]));
    }
}
