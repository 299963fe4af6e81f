//! Conformance of the server to its API description: the same routes, and exactly the described
//! responses.

use std::collections::{BTreeMap, BTreeSet};

use harness::{Answer, Client, Guest, Host, client::Body, guest, host::Setup};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    description::{
        self, API_DESCRIPTION, CLIENT_OPERATIONS, Clients, DESCRIPTION_TEXT, Key, MAX_JSON_BYTES,
        Operation, Takes,
    },
    given,
};

/// Statuses described for every operation and tested elsewhere: with faults of the store, full
/// queues and incomplete bodies.
const TESTED_ELSEWHERE: [u16; 3] = [408, 500, 503];

#[tokio::test]
async fn the_committed_description_is_the_servers_own() {
    let setup = Setup::new();
    let printed = setup.command(&["openapi"]).succeeded();
    assert!(
        printed == DESCRIPTION_TEXT,
        "the description has changed: `toolhost openapi > docs/openapi.json`, and look at what changed"
    );
    let host = Host::shared().await;
    for client in [host.anonymous(), host.anonymous().with_newer_prefix()] {
        let served = client.get("/openapi.json").await.expect(200);
        assert_eq!(served.header("content-type"), "application/json");
        assert!(
            served.text == DESCRIPTION_TEXT,
            "what is served is not what is printed"
        );
    }
}

#[test]
fn routes_and_description_list_the_same_operations() {
    let tables = [
        include_str!("../../host/api/src/table.rs"),
        include_str!("../../host/web/src/lib.rs"),
    ];
    let mut served = BTreeMap::new();
    for row in tables
        .iter()
        .flat_map(|table| table.split("row!(\"").skip(1))
    {
        let (path, _) = row.split_once('"').expect("a path ends");
        *served.entry(path.to_owned()).or_insert(0) += 1;
    }
    let mut described = BTreeMap::new();
    for operation in description::described() {
        *described.entry(operation.path.clone()).or_insert(0) += 1;
    }
    assert!(
        served.len() >= 20,
        "the table was not understood: {served:?}"
    );
    assert_eq!(
        served, described,
        "the table, then docs/openapi.json: `toolhost openapi > docs/openapi.json`"
    );
}

#[test]
fn every_operation_is_described_whole() {
    let mut names = BTreeSet::new();
    for operation in CLIENT_OPERATIONS.iter() {
        let help = format!(
            "{} {}: a handler tells of itself in its doc comment and in `#[utoipa::path]`; see its neighbours",
            operation.method, operation.path
        );
        assert!(
            operation.described["summary"]
                .as_str()
                .is_some_and(|text| text.len() > 5),
            "no summary. {help}"
        );
        assert!(
            names.insert(operation.id()),
            "another operation is called {}. {help}",
            operation.id()
        );
        for status in operation
            .statuses()
            .filter(|status| *status < 300 && *status != 204 && !operation.is_stream())
        {
            let schema = operation.answer_schema(status);
            assert!(
                schema["type"].is_string(),
                "no schema of the answer with {status}. {help}"
            );
        }
        assert!(
            operation.statuses().any(|status| status < 400),
            "no answer that succeeds. {help}"
        );
        for parameter in ["query", "header"]
            .into_iter()
            .flat_map(|place| operation.parameters(place))
        {
            assert!(
                parameter["description"].is_string(),
                "{} is not described. {help}",
                parameter["name"]
            );
        }
    }
}

#[test]
fn every_reference_in_the_description_leads_somewhere() {
    fn walk(value: &Value) {
        if let Some(place) = value["$ref"].as_str() {
            assert!(
                API_DESCRIPTION
                    .pointer(place.trim_start_matches('#'))
                    .is_some(),
                "{place} leads nowhere"
            );
        }
        match value {
            Value::Object(members) => members.values().for_each(walk),
            Value::Array(items) => items.iter().for_each(walk),
            _ => {}
        }
    }
    walk(&API_DESCRIPTION);
}

#[tokio::test]
async fn every_described_response_occurs_as_described() {
    let mut seen = ReceivedRequest::default();
    let origin = &Host::application().origin;
    let pairs =
        format!("https://api.example.com={origin},https://other.example.com=http://127.0.0.1:1");
    let host = Setup::new()
        .with("logs.cassettes", "all")
        .with("net.rewrite", pairs)
        .start()
        .await;
    successes(&host, &mut seen).await;
    particular_refusals(&host, &mut seen).await;
    common_refusals(&host, &mut seen).await;
    with_an_application(&host, &mut seen).await;
    with_an_authorization_server(&host, &mut seen).await;
    with_a_model(&mut seen).await;
    let few = Setup::new()
        .with("limits.rate_per_project", "1")
        .with("limits.failed_auth", "1")
        .start()
        .await;
    too_many(&few, &mut seen).await;
    for operation in CLIENT_OPERATIONS.iter() {
        for status in operation
            .statuses()
            .filter(|status| !TESTED_ELSEWHERE.contains(status))
            // Its own tests read a stream.
            .filter(|status| *status != 200 || !operation.is_stream())
        {
            assert!(
                seen.0.contains(&(operation.id().to_owned(), status)),
                "{} is described to answer {status} and was not made to: add a call to tests/e2e/contract.rs",
                operation.id()
            );
        }
    }
}

/// Statuses seen so far, by operation.
#[derive(Default)]
struct ReceivedRequest(BTreeSet<(String, u16)>);

impl ReceivedRequest {
    /// Sends a request to an operation by its id and checks the response against the description.
    async fn call(
        &mut self,
        client: &Client,
        id: &str,
        values: &[(&str, &str)],
        body: Value,
    ) -> Answer {
        let body = if body.is_null() {
            Body::None
        } else {
            Body::Json(body)
        };
        self.call_with(client, id, values, "", body, &[]).await
    }

    async fn call_with(
        &mut self,
        client: &Client,
        id: &str,
        values: &[(&str, &str)],
        query: &str,
        body: Body,
        headers: &[(&str, &str)],
    ) -> Answer {
        let operation = CLIENT_OPERATIONS
            .iter()
            .find(|operation| operation.id() == id);
        let operation = operation.unwrap_or_else(|| panic!("there is no operation {id}"));
        let method = Method::from_bytes(operation.method.as_bytes()).unwrap();
        let answer = client
            .send(
                method,
                &format!("{}{query}", operation.filled(values)),
                body,
                headers,
            )
            .await;
        self.check(operation, &answer);
        answer
    }

    /// Asserts that the status is described and that the body matches its schema.
    fn check(&mut self, operation: &Operation, answer: &Answer) {
        let named = format!("{} {}", operation.method, operation.path);
        assert!(
            operation.statuses().any(|status| status == answer.status),
            "{named} does not tell of {answer:#?}"
        );
        // A redirect lacks a body to check.
        let schema = if answer.status == 302 {
            json!(true)
        } else {
            operation.answer_schema(answer.status)
        };
        let validator = jsonschema::validator_for(&schema).unwrap();
        let problems: Vec<_> = validator
            .iter_errors(&answer.json)
            .map(|problem| format!("{}: {problem}", problem.instance_path()))
            .collect();
        assert!(
            problems.is_empty(),
            "{named} with {}: {problems:#?}\n{}",
            answer.status,
            answer.text
        );
        self.0.insert((operation.id().to_owned(), answer.status));
    }
}

async fn send(client: &Client, operation: &Operation, path: &str, body: Body) -> Answer {
    client
        .send(
            Method::from_bytes(operation.method.as_bytes()).unwrap(),
            path,
            body,
            &[],
        )
        .await
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} is no text"))
        .to_owned()
}

/// Calls each operation successfully once.
async fn successes(host: &Host, seen: &mut ReceivedRequest) {
    let (org, project) = (host.as_org(), host.as_project());
    let (no, none) = (&[][..], Value::Null);

    let body = json!({ "name": "contract", "should_create_api_key": true, "config": { "display_name": "Contract" } });
    let made = seen.call(&org, "org_create", no, body).await.expect(200);
    let id = [("nano_id", &*text(&made["id"]))];
    seen.call(&org, "org_list", no, none.clone())
        .await
        .expect(200);
    seen.call(&org, "org_read", &id, none.clone())
        .await
        .expect(200);
    let added = seen
        .call(&org, "org_create_key", &id, json!({ "name": "another" }))
        .await
        .expect(201);
    let key = [id[0], ("key_id", &*text(&added["id"]))];
    seen.call(&org, "org_list_keys", &id, none.clone())
        .await
        .expect(200);
    seen.call(&org, "org_remove_key", &key, none.clone())
        .await
        .expect(200);
    let found = json!({ "api_keys": [made["api_key"]] });
    seen.call(&host.anonymous(), "api_key_revocation_revoke", no, found)
        .await
        .expect(200);
    seen.call(&org, "org_regenerate_key", &id, none.clone())
        .await
        .expect(200);
    seen.call(&org, "org_remove", &id, none.clone())
        .await
        .expect(200);
    seen.call(&project, "auth_info", no, none.clone())
        .await
        .expect(200);
    seen.call(&project, "org_read_config", no, none.clone())
        .await
        .expect(200);
    seen.call(
        &project,
        "org_update_config",
        no,
        json!({ "display_name": "Contract" }),
    )
    .await
    .expect(200);

    let ada = json!({ "email": "ada@example.com", "role": "viewer" });
    let ada = seen
        .call(&org, "org_create_member", no, ada)
        .await
        .expect(201);
    let user = host.with_user_key(ada["key"].as_str().unwrap());
    seen.call(&org, "org_list_members", no, none.clone())
        .await
        .expect(200);
    seen.call(&user, "auth_info", no, none.clone())
        .await
        .expect(200);
    seen.call(&user, "org_organisations", no, none.clone())
        .await
        .expect(200);
    seen.call(&user, "org_projects", no, none.clone())
        .await
        .expect(200);
    let ada = [("member_id", &*text(&ada["id"]))];
    seen.call(&org, "org_remove_member", &ada, none.clone())
        .await
        .expect(200);

    let slug = given::slug();
    let mut manifest = guest::manifest_with_key(&slug, given::bearer());
    let trigger = given::trigger(&slug, "EVENT");
    manifest["triggers"] = json!([trigger, given::webhook_trigger(&slug, "ARRIVED")]);
    let component = Body::Raw(
        "application/wasm",
        guest::with_manifest(Guest::echo().component(), &manifest),
    );
    let version = [("slug", &*slug), ("version", "20260101_00")];
    seen.call_with(
        &org,
        "toolkits_publish",
        &version,
        "",
        component.clone(),
        &[],
    )
    .await
    .expect(201);
    seen.call_with(&org, "toolkits_publish", &version, "", component, &[])
        .await
        .expect(200);
    seen.call(&org, "toolkits_read_version", &version, none.clone())
        .await
        .expect(200);
    seen.call(&org, "org_published", no, none.clone())
        .await
        .expect(200);
    seen.call(&project, "toolkits_list", no, none.clone())
        .await
        .expect(200);
    seen.call(&project, "toolkits_categories", no, none.clone())
        .await
        .expect(200);
    seen.call(&project, "toolkits_changelog", no, none.clone())
        .await
        .expect(200);
    seen.call(&project, "toolkits_read", &[("slug", &slug)], none.clone())
        .await
        .expect(200);
    seen.call(
        &project,
        "toolkits_several",
        no,
        json!({ "toolkits": [slug] }),
    )
    .await
    .expect(200);
    seen.call(
        &project,
        "toolkits_versions",
        &[("slug", &slug)],
        none.clone(),
    )
    .await
    .expect(200);
    seen.call(
        &project,
        "toolkits_grant_context",
        &[("slug", &slug)],
        none.clone(),
    )
    .await
    .expect(200);
    let tool = guest::tool(&slug);
    let body = json!({ "tools": [tool] });
    seen.call(
        &project,
        "toolkits_recommend",
        &[("slug", &slug)],
        body.clone(),
    )
    .await
    .expect(200);
    seen.call(&project, "tools_scopes", no, body)
        .await
        .expect(200);
    seen.call(&project, "tools_list", no, none.clone())
        .await
        .expect(200);
    seen.call(&project, "tools_slugs", no, none.clone())
        .await
        .expect(200);
    let tool = [("tool_slug", &*tool)];
    seen.call(&project, "tools_read", &tool, none.clone())
        .await
        .expect(200);
    let trigger = [("slug", &*text(&trigger["slug"]))];
    for (id, values) in [
        ("triggers_types_list", no),
        ("triggers_types_slugs", no),
        ("triggers_types_read", &trigger),
    ] {
        seen.call(&project, id, values, none.clone())
            .await
            .expect(200);
    }

    let config = json!({
        "toolkit": { "slug": slug },
        "auth_config": { "type": "use_custom_auth", "authScheme": "API_KEY", "name": "mine", "credentials": {} },
    });
    let config = text(
        &seen
            .call(&project, "auth_configs_create", no, config)
            .await
            .expect(201)["auth_config"]["id"],
    );
    let account = given::account(&config, "amy", &harness::secret());
    let account = text(
        &seen
            .call(&project, "connected_accounts_create", no, account)
            .await
            .expect(201)["id"],
    );
    let (config, account) = (
        [("nanoid", &*config), ("status", "DISABLED")],
        [("nanoid", &*account)],
    );
    seen.call(&project, "auth_configs_list", no, none.clone())
        .await
        .expect(200);
    seen.call(&project, "auth_configs_read", &config, none.clone())
        .await
        .expect(200);
    seen.call(&project, "connected_accounts_list", no, none.clone())
        .await
        .expect(200);
    seen.call(&project, "connected_accounts_read", &account, none.clone())
        .await
        .expect(200);

    let own = json!({ "connected_account_id": account[0].1 });
    let made = seen
        .call(&project, "trigger_instances_upsert", &trigger, own.clone())
        .await
        .expect(201);
    seen.call(&project, "trigger_instances_upsert", &trigger, own)
        .await
        .expect(200);
    seen.call(&project, "trigger_instances_list", no, none.clone())
        .await
        .expect(200);
    let instance = [("triggerId", &*text(&made["trigger_id"]))];
    polled(&project, seen, &instance).await;
    seen.call(
        &project,
        "trigger_instances_list_actions",
        &instance,
        none.clone(),
    )
    .await
    .expect(200);
    let disable = json!({ "status": "disable" });
    for status in [200, 409] {
        seen.call(
            &project,
            "trigger_instances_change",
            &instance,
            disable.clone(),
        )
        .await
        .expect(status);
    }
    seen.call(&project, "trigger_instances_poll", &instance, none.clone())
        .await
        .expect(409);
    for status in [200, 410] {
        seen.call(
            &project,
            "trigger_instances_remove",
            &instance,
            none.clone(),
        )
        .await
        .expect(status);
    }
    for (id, body) in [
        ("trigger_instances_change", disable),
        ("trigger_instances_poll", none.clone()),
        ("trigger_instances_list_actions", none.clone()),
    ] {
        seen.call(&project, id, &instance, body).await.expect(410);
    }

    sessions(&project, seen, &slug).await;
    let call = json!({ "user_id": "amy", "arguments": { "said": "hello" } });
    let ran = seen
        .call(&project, "tools_execute", &tool, call)
        .await
        .expect(200);
    let log = [("id", &*text(&ran["log_id"]))];
    seen.call(&project, "logs_list", no, json!({}))
        .await
        .expect(200);
    seen.call(&project, "logs_read", &log, none.clone())
        .await
        .expect(200);
    seen.call(&project, "logs_cassette", &log, none.clone())
        .await
        .expect(200);

    let counted = [("entity_type", "tool_execution")];
    seen.call(&project, "project_project_summary", no, json!({}))
        .await
        .expect(200);
    seen.call(&project, "project_project_groups", &counted, json!({}))
        .await
        .expect(200);
    seen.call(&org, "org_organisation_summary", no, json!({}))
        .await
        .expect(200);
    seen.call(&org, "org_organisation_groups", &counted, json!({}))
        .await
        .expect(200);

    let unknown = "?last_event_id=msg_unknown";
    seen.call_with(
        &project,
        "trigger_instances_open_stream",
        no,
        unknown,
        Body::None,
        &[],
    )
    .await
    .expect(404);
    let subscription = json!({
        "webhook_url": "https://hooks.example.com/", "enabled_events": ["service.trigger.message"],
    });
    let created = seen
        .call(
            &project,
            "webhook_subscriptions_create",
            no,
            subscription.clone(),
        )
        .await
        .expect(201);
    seen.call(&project, "webhook_subscriptions_create", no, subscription)
        .await
        .expect(409);
    for id in [
        "webhook_subscriptions_list",
        "webhook_subscriptions_event_types",
    ] {
        seen.call(&project, id, no, none.clone()).await.expect(200);
    }
    let subscription = [("id", &*text(&created["id"]))];
    let sent = seen
        .call(
            &project,
            "webhook_subscriptions_send_test",
            &subscription,
            json!({}),
        )
        .await
        .expect(201);
    let found = seen
        .call(&project, "internal_list_trigger_logs", no, json!({}))
        .await
        .expect(200);
    let entry = [("id", &*text(&found["data"][0]["id"]))];
    let read = "internal_read_trigger_log";
    seen.call(&project, read, &entry, none.clone())
        .await
        .expect(200);
    let delivery = [subscription[0], ("delivery_id", &*text(&sent["id"]))];
    let replay = "webhook_subscriptions_replay_delivery";
    let elsewhere = json!({ "webhook_url": "https://hooks.example.com/copy" });
    // The endpoint cannot be reached, so that the delivery is pending.
    seen.call(&project, replay, &delivery, elsewhere)
        .await
        .expect(409);
    let ranged = json!({ "include_delivered": true });
    for (id, body) in [
        ("webhook_subscriptions_read", none.clone()),
        ("webhook_subscriptions_list_deliveries", none.clone()),
        ("webhook_subscriptions_read_delivery", none.clone()),
        (replay, none.clone()),
        ("webhook_subscriptions_replay_deliveries", ranged),
        ("webhook_subscriptions_rotate_secret", none.clone()),
        ("webhook_subscriptions_update", json!({ "version": "V2" })),
        ("webhook_subscriptions_remove", none.clone()),
    ] {
        seen.call(&project, id, &delivery, body).await.expect(200);
    }

    webhook_endpoints(&project, seen, &slug).await;
    mcp_servers(&project, seen, config[0].1, &slug).await;

    seen.call(&project, "internal_fields", no, none.clone())
        .await
        .expect(200);
    seen.call(&project, "internal_list", no, json!({}))
        .await
        .expect(200);
    seen.call(&project, "internal_read", &log, none.clone())
        .await
        .expect(200);

    let renamed = json!({ "type": "custom", "name": "renamed" });
    seen.call(&project, "auth_configs_update", &config, renamed)
        .await
        .expect(200);
    seen.call(
        &project,
        "connected_accounts_update",
        &account,
        json!({ "alias": "work" }),
    )
    .await
    .expect(200);
    seen.call(&project, "connected_accounts_refresh", &account, json!({}))
        .await
        .expect(200);
    let link = json!({ "auth_config_id": config[0].1, "user_id": "amy" });
    seen.call(&project, "connected_accounts_link", no, link)
        .await
        .expect(201);

    let older = project
        .get(&format!("/connected_accounts/{}", account[0].1))
        .await
        .expect(200);
    let older = format!(
        "?type=CONNECTED_ACCOUNT&uuid={}",
        text(&older["deprecated"]["uuid"])
    );
    seen.call_with(&project, "migration_nanoid", no, &older, Body::None, &[])
        .await
        .expect(200);
    seen.call(
        &project,
        "connected_accounts_set_status",
        &account,
        json!({ "enabled": false }),
    )
    .await
    .expect(200);
    for status in [200, 409] {
        seen.call(
            &project,
            "connected_accounts_revoke",
            &account,
            none.clone(),
        )
        .await
        .expect(status);
    }
    seen.call(
        &project,
        "connected_accounts_remove",
        &account,
        none.clone(),
    )
    .await
    .expect(200);
    seen.call_with(&project, "migration_nanoid", no, &older, Body::None, &[])
        .await
        .expect(410);
    let unknown = "?type=CONNECTED_ACCOUNT&uuid=00000000-0000-4000-8000-000000000000";
    seen.call_with(&project, "migration_nanoid", no, unknown, Body::None, &[])
        .await
        .expect(404);
    seen.call(&project, "auth_configs_set_status", &config, none.clone())
        .await
        .expect(200);
    seen.call(&project, "auth_configs_remove", &config, none.clone())
        .await
        .expect(200);
    seen.call(&org, "toolkits_deprecate", &version, none)
        .await
        .expect(200);
}

/// Calls each operation of sessions successfully, for a toolkit that `amy` has connected.
async fn sessions(project: &Client, seen: &mut ReceivedRequest, toolkit: &str) {
    let (no, none) = (&[][..], Value::Null);
    let labs = json!({ "user_id": "amy" });
    seen.call(project, "labs_create", no, labs)
        .await
        .expect(201);
    let config = json!({
        "user_id": "amy", "toolkits": { "enable": [toolkit] }, "preload": { "tools": "all" },
        "tools": { toolkit: { "disable": [] } }, "multi_account": { "enable": true },
    });
    let session = seen.call(project, "tool_router_create", no, config).await;
    let session = text(&session.expect(201)["session_id"]);
    let id = [("session_id", &*session)];
    let call = json!({ "tool_slug": guest::tool(toolkit), "arguments": {} });
    let several = json!({ "tools": [call], "sync_response_to_workbench": false });
    let meta = json!({ "slug": "SERVICE_MULTI_EXECUTE_TOOL", "arguments": several });
    let search = json!({ "queries": [{ "use_case": toolkit }] });
    let tool = json!({ "slug": "a", "name": "A", "description": "a", "input_schema": {} });
    let inline = json!({ "experimental": { "custom_tools": [tool] } });
    mounts(project, seen, &session).await;
    for (operation, body, status) in [
        ("tool_router_read", none.clone(), 200),
        ("tool_router_update", json!({ "tags": [] }), 200),
        (
            "tool_router_update",
            json!({ "expected_config_version": 99 }),
            409,
        ),
        ("tool_router_attach", inline, 200),
        ("tool_router_config_history", none.clone(), 200),
        ("tool_router_tools", none.clone(), 200),
        ("tool_router_list_toolkits", none.clone(), 200),
        ("tool_router_link", json!({ "toolkit": toolkit }), 201),
        ("tool_router_execute", call, 200),
        ("tool_router_execute_meta", meta, 200),
        ("tool_router_search", search, 200),
        ("tool_router_remove", none, 200),
    ] {
        seen.call(project, operation, &id, body)
            .await
            .expect(status);
    }
}

/// Calls each operation of the files of a session successfully.
async fn mounts(project: &Client, seen: &mut ReceivedRequest, session: &str) {
    let id = [("session_id", session), ("mount_id", "files")];
    let file = json!({ "mount_relative_path": "a.txt" });
    let upload = seen
        .call(project, "tool_router_mount_upload_url", &id, file.clone())
        .await;
    let url = text(&upload.expect(201)["upload_url"]);
    let sent = project
        .exchange(Method::PUT, &url, &[], b"a".to_vec())
        .await;
    assert_eq!(sent.status, 200);
    for (operation, body, status) in [
        ("tool_router_mount_items", Value::Null, 200),
        ("tool_router_mount_download_url", file.clone(), 201),
        ("tool_router_mount_delete", file, 200),
    ] {
        seen.call(project, operation, &id, body)
            .await
            .expect(status);
    }
}

async fn webhook_endpoints(project: &Client, seen: &mut ReceivedRequest, toolkit: &str) {
    let (no, none) = (&[][..], Value::Null);
    let body = json!({ "toolkit_slug": toolkit, "client_id": "app" });
    let create = "webhook_endpoints_create";
    let made = seen.call(project, create, no, body.clone()).await;
    let made = made.expect(201);
    seen.call(project, create, no, body).await.expect(200);
    let of_toolkit = format!("?toolkit_slug={toolkit}");
    for id in ["webhook_endpoints_list", "webhook_endpoints_setup"] {
        seen.call_with(project, id, no, &of_toolkit, Body::None, &[])
            .await
            .expect(200);
    }
    let endpoint = [("nano_id", &*text(&made["id"]))];
    let values = json!({ "data": { "secret": "a secret" } });
    for (id, body) in [
        ("webhook_endpoints_read", none.clone()),
        ("webhook_endpoints_update", values.clone()),
        ("webhook_endpoints_replace", values),
        ("webhook_endpoints_remove", none),
    ] {
        seen.call(project, id, &endpoint, body).await.expect(200);
    }
}

/// Calls every operation of MCP servers. The accounts of one user are deleted on the way.
async fn mcp_servers(project: &Client, seen: &mut ReceivedRequest, config: &str, toolkit: &str) {
    let (no, none) = (&[][..], Value::Null);
    let account = given::account(config, "ann", &harness::secret());
    project
        .post("/connected_accounts", &account)
        .await
        .expect(201);
    let custom = json!({ "name": "Mail tools", "toolkits": [toolkit] });
    let made = seen.call(project, "mcp_create_custom", no, custom).await;
    made.expect(201);
    let body = json!({ "name": "Mail tools", "auth_config_ids": [config] });
    let made = seen.call(project, "mcp_create", no, body).await.expect(201);
    let id = text(&made["id"]);
    let generate = json!({ "mcp_server_id": id, "user_ids": ["ann"] });
    let generated = seen.call(project, "mcp_generate", no, generate).await;
    generated.expect(200);
    let unknown = json!({ "mcp_server_id": "unknown" });
    let refused = seen.call(project, "mcp_generate", no, unknown).await;
    refused.expect(404);
    let server = [("serverId", &*id), ("instanceId", "ann")];
    let create = "mcp_create_instance";
    for (user, status) in [("ann", 201), ("ann", 409), ("zoe", 403)] {
        let body = json!({ "user_id": user });
        let created = seen.call(project, create, &server, body).await;
        created.expect(status);
    }
    let (server_id, app) = ([("id", &*id)], [("appKey", toolkit)]);
    for (id, path, body) in [
        ("mcp_list", no, none.clone()),
        ("mcp_list_of_toolkit", &app[..], none.clone()),
        ("mcp_list_instances", &server[..], none.clone()),
        ("mcp_remove_instance", &server[..], none.clone()),
        ("mcp_read", &server_id[..], none.clone()),
        ("mcp_update", &server_id[..], json!({ "name": "Mail" })),
        ("mcp_remove", &server_id[..], none),
    ] {
        seen.call(project, id, path, body).await.expect(200);
    }
}

/// Provokes the refusals of webhook endpoints: for an unknown toolkit, and for one too many.
async fn refused_endpoints(project: &Client, seen: &mut ReceivedRequest, toolkit: &str) {
    let (no, create) = (&[][..], "webhook_endpoints_create");
    let body =
        |toolkit: &str, client: &str| json!({ "toolkit_slug": toolkit, "client_id": client });
    seen.call(project, create, no, body("no_such_toolkit", "app"))
        .await
        .expect(404);
    let unknown = "?toolkit_slug=no_such_toolkit";
    let setup = "webhook_endpoints_setup";
    seen.call_with(project, setup, no, unknown, Body::None, &[])
        .await
        .expect(404);
    for number in 0..100 {
        let endpoint = body(toolkit, &number.to_string());
        project
            .post("/webhook_endpoints", &endpoint)
            .await
            .expect(201);
    }
    seen.call(project, create, no, body(toolkit, "one more"))
        .await
        .expect(422);
}

/// Polls an instance. The server may be polling it at the same time.
async fn polled(project: &Client, seen: &mut ReceivedRequest, instance: &[(&str, &str)]) {
    let id = "trigger_instances_poll";
    let mut answer = seen.call(project, id, instance, Value::Null).await;
    while answer.status == 409 {
        answer = seen.call(project, id, instance, Value::Null).await;
    }
    answer.expect(200);
}

/// Provokes the refusals that only some operations have.
async fn particular_refusals(host: &Host, seen: &mut ReceivedRequest) {
    let (org, project) = (host.as_org(), host.as_project());
    let (no, none) = (&[][..], Value::Null);
    let slug = given::slug();
    let mut manifest = guest::manifest_with_key(&slug, given::bearer());
    let webhook = given::webhook_trigger(&slug, "ARRIVED");
    manifest["triggers"] = json!([given::trigger(&slug, "EVENT"), webhook]);
    let mut second = manifest["tools"][0].clone();
    second["slug"] = json!(format!("{}_SECOND", slug.to_uppercase()));
    manifest["tools"].as_array_mut().unwrap().push(second);
    host.publish(Guest::echo().component(), &manifest).await;
    let component = |guest: Guest, manifest: &Value| {
        Body::Raw(
            "application/wasm",
            guest::with_manifest(guest.component(), manifest),
        )
    };
    let version = [("slug", &*slug), ("version", "20260101_00")];
    let other = component(Guest::constant(), &manifest);
    seen.call_with(&org, "toolkits_publish", &version, "", other.clone(), &[])
        .await
        .expect(409);
    let unsigned = [("x-toolkit-signature", "not base64")];
    seen.call_with(&org, "toolkits_publish", &version, "", other, &unsigned)
        .await
        .expect(403);
    let mut breaking = manifest.clone();
    breaking["version"] = json!("20260101_01");
    breaking["tools"][0]["input"] =
        json!({ "type": "object", "required": ["a"], "properties": { "a": {} } });
    let next = [("slug", &*slug), ("version", "20260101_01")];
    let breaking = component(Guest::echo(), &breaking);
    seen.call_with(&org, "toolkits_publish", &next, "", breaking, &[])
        .await
        .expect(422);

    let unknown = "?auth_config_ids=ac_AAAAAAAAAAAA";
    seen.call_with(&project, "tools_list", no, unknown, Body::None, &[])
        .await
        .expect(404);
    let config = |toolkit: &str| {
        json!({
            "toolkit": { "slug": toolkit },
            "auth_config": { "type": "use_custom_auth", "authScheme": "API_KEY", "credentials": {} },
        })
    };
    seen.call(
        &project,
        "auth_configs_create",
        no,
        config("no_such_toolkit"),
    )
    .await
    .expect(404);
    let mut elsewhere = config(&slug);
    elsewhere["auth_config"]["authScheme"] = json!("DCR_OAUTH");
    seen.call(&project, "auth_configs_create", no, elsewhere)
        .await
        .expect(400);
    let mut restricted = config(&slug);
    restricted["auth_config"]["restrict_to_following_tools"] =
        json!([manifest["tools"][1]["slug"]]);
    let restricted = seen
        .call(&project, "auth_configs_create", no, restricted)
        .await
        .expect(201);
    let open = seen
        .call(&project, "auth_configs_create", no, config(&slug))
        .await
        .expect(201);
    let connect = async |config: &Answer, user: &str| {
        let body = given::account(
            config["auth_config"]["id"].as_str().unwrap(),
            user,
            &harness::secret(),
        );
        text(&project.post("/connected_accounts", &body).await.expect(201)["id"])
    };
    connect(&restricted, "bob").await;
    let paused = connect(&open, "eve").await;
    let unknown = given::account("ac_AAAAAAAAAAAA", "amy", &harness::secret());
    seen.call(&project, "connected_accounts_create", no, unknown)
        .await
        .expect(404);
    let mut tested = given::account(
        open["auth_config"]["id"].as_str().unwrap(),
        "amy",
        &harness::secret(),
    );
    tested["validate_credentials"] = json!(true);
    seen.call(&project, "connected_accounts_create", no, tested)
        .await
        .expect(501);
    let tested = json!({ "validate_credentials": true });
    seen.call(
        &project,
        "connected_accounts_refresh",
        &[("nanoid", &paused)],
        tested,
    )
    .await
    .expect(501);
    let unknown = json!({ "auth_config_id": "ac_AAAAAAAAAAAA", "user_id": "amy" });
    seen.call(&project, "connected_accounts_link", no, unknown)
        .await
        .expect(404);
    let unknown = json!({ "session_uri": "session_x", "user_id": "amy" });
    seen.call(&project, "connected_accounts_complete", no, unknown)
        .await
        .expect(404);
    let proxied =
        json!({ "type": "custom", "proxy_config": { "proxy_url": "http://proxy.example" } });
    let config = [("nanoid", open["auth_config"]["id"].as_str().unwrap())];
    seen.call(&project, "auth_configs_update", &config, proxied)
        .await
        .expect(200);
    let proxied = seen
        .call(&project, "auth_configs_read", &config, Value::Null)
        .await
        .expect(200);
    assert_eq!(
        proxied["proxy_config"],
        json!({ "proxy_url": "http://proxy.example" })
    );
    let straight = json!({ "type": "custom", "proxy_config": null });
    seen.call(&project, "auth_configs_update", &config, straight)
        .await
        .expect(200);

    let name = guest::tool(&slug);
    let tool = [("tool_slug", &*name)];
    seen.call(
        &project,
        "tools_execute",
        &tool,
        json!({ "user_id": "bob" }),
    )
    .await
    .expect(403);
    let sentence = json!({ "user_id": "eve", "text": "say hello" });
    seen.call(&project, "tools_execute", &tool, sentence)
        .await
        .expect(501);
    seen.call(
        &project,
        "tools_input",
        &tool,
        json!({ "text": "say hello" }),
    )
    .await
    .expect(501);
    let trigger = [("slug", &*text(&manifest["triggers"][0]["slug"]))];
    let instance = json!({ "connected_account_id": paused });
    let made = seen
        .call(
            &project,
            "trigger_instances_upsert",
            &trigger,
            instance.clone(),
        )
        .await
        .expect(201);
    let made = [("triggerId", &*text(&made["trigger_id"]))];
    let pause = json!({ "enabled": false });
    seen.call(
        &project,
        "connected_accounts_set_status",
        &[("nanoid", &paused)],
        pause,
    )
    .await
    .expect(200);
    seen.call(
        &project,
        "trigger_instances_upsert",
        &trigger,
        instance.clone(),
    )
    .await
    .expect(422);
    let enable = |status: &str| json!({ "status": status });
    project
        .patch(
            &format!("/trigger_instances/manage/{}", made[0].1),
            &enable("disable"),
        )
        .await;
    seen.call(
        &project,
        "trigger_instances_change",
        &made,
        enable("enable"),
    )
    .await
    .expect(422);
    let gone = connect(&open, "zoe").await;
    project
        .delete(&format!("/connected_accounts/{gone}"))
        .await
        .expect(200);
    let instance = json!({ "connected_account_id": gone });
    seen.call(&project, "trigger_instances_upsert", &trigger, instance)
        .await
        .expect(410);
    let named = json!({ "user_id": "eve", "connected_account_id": paused });
    seen.call(&project, "tools_execute", &tool, named)
        .await
        .expect(422);
    refused_endpoints(&project, seen, &slug).await;
    seen.call(&org, "toolkits_deprecate", &version, none.clone())
        .await
        .expect(200);
    let newest = project.clone().with_newer_prefix();
    seen.call(&newest, "tools_execute", &tool, json!({}))
        .await
        .expect(410);
    let session = json!({ "user_id": "amy" });
    let session = project.post("/tool_router/session", &session).await;
    let session = text(&session.expect(201)["session_id"]);
    let executed = json!({ "tool_slug": name });
    let session = [("session_id", &*session)];
    seen.call(&project, "tool_router_execute", &session, executed)
        .await
        .expect(410);
    seen.call(&newest, "tools_read", &tool, none)
        .await
        .expect(410);
    seen.call(
        &newest,
        "tools_input",
        &tool,
        json!({ "text": "say hello" }),
    )
    .await
    .expect(410);
}

/// Provokes the responses that need a language model: one that responds well and then badly, and
/// one that fails.
async fn with_a_model(seen: &mut ReceivedRequest) {
    let tag = harness::unique(6);
    let answers = Host::application().model(&tag, &["{}", "no JSON"]);
    let failing = format!("{}/status/{tag}/500", Host::application().origin);
    let say = json!({ "text": "say hello" });
    for (model, statuses) in [(answers, &[200, 422][..]), (failing, &[502])] {
        let host = Setup::new()
            .with("llm.base_url", model)
            .with("llm.model", "m")
            .start()
            .await;
        let tool = given::echo(&host).await;
        let tool = [("tool_slug", &*tool)];
        for status in statuses {
            seen.call(&host.as_project(), "tools_input", &tool, say.clone())
                .await
                .expect(*status);
        }
        let last = statuses[statuses.len() - 1];
        seen.call(&host.as_project(), "tools_execute", &tool, say.clone())
            .await
            .expect(last);
    }
}

/// Provokes the responses that need a provider: one that responds, one that does not respond in
/// time, and an unreachable one.
async fn with_an_application(host: &Host, seen: &mut ReceivedRequest) {
    let (project, no) = (host.as_project(), &[][..]);
    let slug = given::slug();
    given::publish_with_key(host, &Guest::echo(), &slug).await;
    let account = project.connect_with_key(&slug, "default").await;
    let call = |account: &str, endpoint: &str| json!({ "connected_account_id": account, "endpoint": endpoint, "method": "GET" });
    for (endpoint, status) in [
        ("/echo/x", 200),
        ("/bytes/x/100", 200),
        ("/redirect/x?to=https://files.example.net/", 403),
        ("https://other.example.com/", 502),
    ] {
        seen.call(&project, "tools_proxy", no, call(&account, endpoint))
            .await
            .expect(status);
    }
    seen.call(&project, "tools_proxy", no, call("ca_AAAAAAAAAAAA", "/"))
        .await
        .expect(404);
    let pinned = json!({ "user_id": "default", "connected_accounts": { &slug: account } });
    let session = project.post("/tool_router/session", &pinned).await;
    let session = text(&session.expect(201)["session_id"]);
    let session = [("session_id", &*session)];
    let in_session =
        |endpoint: &str| json!({ "toolkit_slug": slug, "endpoint": endpoint, "method": "GET" });
    for (endpoint, status) in [
        ("/echo/x", 200),
        ("/redirect/x?to=https://files.example.net/", 403),
        ("https://other.example.com/", 502),
    ] {
        let body = in_session(endpoint);
        seen.call(&project, "tool_router_proxy_execute", &session, body)
            .await
            .expect(status);
    }
    // Both requests wait for the same timeout.
    let mut other = ReceivedRequest::default();
    let (proxied, of_session) = tokio::join!(
        seen.call(&project, "tools_proxy", no, call(&account, "/hang/x")),
        other.call(
            &project,
            "tool_router_proxy_execute",
            &session,
            in_session("/hang/x")
        )
    );
    proxied.expect(504);
    of_session.expect(504);
    seen.0.append(&mut other.0);
    let brought = json!({ "authScheme": "DCR_OAUTH", "toolkitSlug": slug, "val": {} });
    let brought = json!({ "custom_connection_data": brought, "endpoint": "/", "method": "GET" });
    seen.call(&project, "tools_proxy", no, brought)
        .await
        .expect(400);
    project
        .patch(
            &format!("/connected_accounts/{account}/status"),
            &json!({ "enabled": false }),
        )
        .await
        .expect(200);
    seen.call(&project, "tools_proxy", no, call(&account, "/"))
        .await
        .expect(422);
    let body = in_session("/");
    seen.call(&project, "tool_router_proxy_execute", &session, body)
        .await
        .expect(422);
    let executed = json!({ "tool_slug": guest::tool(&slug) });
    seen.call(&project, "tool_router_execute", &session, executed)
        .await
        .expect(422);

    let upload = |toolkit: &str| {
        json!({
            "toolkit_slug": toolkit, "tool_slug": guest::tool(&slug), "filename": "a.txt", "mimetype": "text/plain",
            "md5": "900150983cd24fb0d6963f7d28e17f72",
        })
    };
    let asked = seen
        .call(&project, "files_request", no, upload(&slug))
        .await
        .expect(200);
    let put = project
        .exchange(
            Method::PUT,
            &text(&asked["new_presigned_url"]),
            &[],
            b"abc".to_vec(),
        )
        .await;
    assert_eq!(put.status, 200);
    seen.call(&project, "files_request", no, upload(&slug))
        .await
        .expect(200);
    seen.call(&project, "files_request", no, upload("no_such_toolkit"))
        .await
        .expect(404);
    seen.call(&project, "files_list", no, Value::Null)
        .await
        .expect(200);
}

/// Provokes the responses that need users to authorize at a provider.
async fn with_an_authorization_server(host: &Host, seen: &mut ReceivedRequest) {
    let (org, project, no) = (host.as_org(), host.as_project(), &[][..]);
    let oauth = given::Oauth::new(host, &project).await;
    let slug = [("slug", &*oauth.slug)];
    seen.call(&org, "org_set_oauth_app", &slug, given::oauth_app())
        .await
        .expect(200);
    seen.call(&org, "org_list_oauth_apps", no, Value::Null)
        .await
        .expect(200);
    seen.call(&project, "toolkits_read", &slug, Value::Null)
        .await
        .expect(200);
    seen.call(&org, "org_remove_oauth_app", &slug, Value::Null)
        .await
        .expect(200);
    let verifier = json!({ "oauth_callback_verifier_url": "https://app.example/verify" });
    project
        .patch("/org/project/config", &verifier)
        .await
        .expect(200);
    let body = json!({ "auth_config": { "id": oauth.config }, "connection": { "user_id": "amy" } });
    let made = seen
        .call(&project, "connected_accounts_create", no, body)
        .await
        .expect(201);
    let back = oauth.visit(&made).await;
    let (_, query) = back.split_once('?').unwrap();
    let nobody = host.anonymous();
    let landed = seen
        .call_with(
            &nobody,
            "toolkits_callback",
            no,
            &format!("?{query}"),
            Body::None,
            &[],
        )
        .await
        .expect(302);
    let session = landed
        .header("location")
        .split_once("session_uri=")
        .unwrap()
        .1;
    let body = json!({ "session_uri": session, "user_id": "amy" });
    seen.call(&project, "connected_accounts_complete", no, body)
        .await
        .expect(200);
}

/// Provokes the refusals that every operation of a kind has.
async fn common_refusals(host: &Host, seen: &mut ReceivedRequest) {
    let clients = Clients::of(host, host.as_project()).await;
    let id = host.as_project().project_id().await;
    let keys = format!("/org/owner/project/{id}/api_keys");
    let elsewhere = json!({ "name": "elsewhere", "allowed_ips": ["192.0.2.1"] });
    let elsewhere = host.as_org().post(&keys, &elsewhere).await.expect(201);
    let elsewhere = host.with_key(elsewhere["key"].as_str().unwrap());
    for operation in CLIENT_OPERATIONS.iter() {
        let right = clients.right(operation);
        let path = operation.addressed();
        let has = |status: u16| operation.statuses().any(|one| one == status);
        if has(401) {
            let anonymous = send(&host.anonymous(), operation, &path, operation.body(false))
                .await
                .expect(401);
            seen.check(operation, &anonymous);
        }
        if operation.key() == Key::Project {
            let away = send(&elsewhere, operation, &path, operation.body(false))
                .await
                .expect(403);
            seen.check(operation, &away);
        }
        if has(404) && !operation.unknown().is_empty() {
            seen.check(
                operation,
                &send(right, operation, &path, operation.body(false))
                    .await
                    .expect(404),
            );
        }
        if has(400) {
            let unreadable: Vec<_> = operation
                .unknown()
                .into_iter()
                .map(|(name, _)| (name, "%FF"))
                .collect();
            let path = format!("{}?cursor=%00", operation.filled(&unreadable));
            let body = match operation.takes() {
                Takes::Json => Body::Raw("application/json", b"{".to_vec()),
                _ => operation.body(false),
            };
            seen.check(
                operation,
                &send(right, operation, &path, body).await.expect(400),
            );
        }
        if has(413) {
            let bytes = match operation.takes() {
                Takes::Component => 25 << 20,
                _ => MAX_JSON_BYTES + 1,
            };
            let large = Body::Raw("application/json", vec![b' '; bytes]);
            seen.check(
                operation,
                &send(right, operation, &path, large).await.expect(413),
            );
        }
        if has(415) {
            let packed = [("content-encoding", "gzip")];
            let method = Method::from_bytes(operation.method.as_bytes()).unwrap();
            let answer = right
                .send(method, &path, operation.body(false), &packed)
                .await
                .expect(415);
            seen.check(operation, &answer);
        }
    }
}

/// Calls every operation on a server that allows one request, one wrong key and one wrong callback.
async fn too_many(host: &Host, seen: &mut ReceivedRequest) {
    let clients = Clients::of(host, host.as_project()).await;
    let guess = json!({ "api_keys": ["no key"] });
    clients
        .nobody
        .post("/api_key_revocation", &guess)
        .await
        .expect(200);
    clients
        .nobody
        .get("/toolkits/auth/callback?state=none")
        .await
        .expect(400);
    let one = clients.project.get("/auth/session/info").await;
    one.expect(200);
    let projects = "/org/owner/project/list";
    while host.as_org().get(projects).await.status != 429 {}
    for operation in CLIENT_OPERATIONS.iter() {
        let right = clients.right(operation);
        let path = operation.addressed();
        let mut answer = send(right, operation, &path, operation.body(false)).await;
        if answer.status != 429 {
            // The rate of webhooks is restored every minute: this request has used it up again.
            answer = send(right, operation, &path, operation.body(false)).await;
        }
        seen.check(operation, &answer.expect(429));
    }
}
