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
    given::{self, string},
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
    let mut seen = SeenStatuses::default();
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
struct SeenStatuses(BTreeSet<(String, u16)>);

/// Call of an operation: its id, path parameters, body and expected status.
type Call<'a> = (&'a str, &'a [(&'a str, &'a str)], Value, u16);

/// Path parameters of an operation without any.
const NO_VALUES: &[(&str, &str)] = &[];
/// Body of a call without one.
const NO_BODY: Value = Value::Null;

impl SeenStatuses {
    /// Calls operations one after another.
    async fn call_all<const N: usize>(&mut self, client: &Client, calls: [Call<'_>; N]) {
        for (id, values, body, status) in calls {
            self.call(client, id, values, body).await.expect(status);
        }
    }

    /// Sends a request to an operation by its id and checks the response against the description.
    async fn call(
        &mut self,
        client: &Client,
        id: &str,
        values: &[(&str, &str)],
        body: Value,
    ) -> Answer {
        let body = match body {
            Value::Null => Body::None,
            body => Body::Json(body),
        };
        let operation = operation(id);
        let path = operation.filled(values);
        self.send(client, operation, &path, body, &[]).await
    }

    /// Calls an operation with a query only.
    async fn query(&mut self, client: &Client, id: &str, query: &str) -> Answer {
        let operation = operation(id);
        let path = format!("{}?{query}", operation.path);
        self.send(client, operation, &path, Body::None, &[]).await
    }

    /// Publishes a version of a toolkit.
    async fn publish(
        &mut self,
        client: &Client,
        version: &[(&str, &str)],
        component: &[u8],
        headers: &[(&str, &str)],
    ) -> Answer {
        let operation = operation("toolkits_publish");
        let path = operation.filled(version);
        let body = Body::Raw("application/wasm", component.to_vec());
        self.send(client, operation, &path, body, headers).await
    }

    async fn send(
        &mut self,
        client: &Client,
        operation: &Operation,
        path: &str,
        body: Body,
        headers: &[(&str, &str)],
    ) -> Answer {
        let answer = client.send(operation.method(), path, body, headers).await;
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

/// Returns the operation with an id.
fn operation(id: &str) -> &'static Operation {
    let mut operations = CLIENT_OPERATIONS.iter();
    let found = operations.find(|operation| operation.id() == id);
    found.unwrap_or_else(|| panic!("there is no operation {id}"))
}

/// Calls each operation successfully once.
async fn successes(host: &Host, seen: &mut SeenStatuses) {
    let (org, project) = (host.as_org(), host.as_project());
    projects(host, seen).await;
    members(host, seen).await;
    let slug = given::slug();
    let version = [("slug", &*slug), ("version", "20260101_00")];
    let trigger = catalog(host, seen, &slug).await;
    let settings = json!({
        "toolkit": { "slug": slug },
        "auth_config": { "type": "use_custom_auth", "authScheme": "API_KEY", "name": "mine", "credentials": {} },
    });
    let made = seen.call(&project, "auth_configs_create", NO_VALUES, settings);
    let config = string(&made.await.expect(201)["auth_config"]["id"]);
    let account = given::account(&config, "amy", &harness::secret());
    let made = seen.call(&project, "connected_accounts_create", NO_VALUES, account);
    let account = string(&made.await.expect(201)["id"]);
    let config = [("nanoid", &*config), ("status", "DISABLED")];
    let account = [("nanoid", &*account)];
    let calls: [Call; _] = [
        ("auth_configs_list", NO_VALUES, NO_BODY, 200),
        ("auth_configs_read", &config, NO_BODY, 200),
        ("connected_accounts_list", NO_VALUES, NO_BODY, 200),
        ("connected_accounts_read", &account, NO_BODY, 200),
    ];
    seen.call_all(&project, calls).await;
    trigger_instances(&project, seen, &trigger, account[0].1).await;
    sessions(&project, seen, &slug).await;
    let log = runs(host, seen, &slug).await;
    let unknown = "last_event_id=msg_unknown";
    let id = "trigger_instances_open_stream";
    seen.query(&project, id, unknown).await.expect(404);
    webhook_subscriptions(&project, seen).await;
    webhook_endpoints(&project, seen, &slug).await;
    mcp_servers(&project, seen, config[0].1, &slug).await;

    let renamed = json!({ "type": "custom", "name": "renamed" });
    let alias = json!({ "alias": "work" });
    let link = json!({ "auth_config_id": config[0].1, "user_id": "amy" });
    let calls: [Call; _] = [
        ("internal_fields", NO_VALUES, NO_BODY, 200),
        ("internal_list", NO_VALUES, json!({}), 200),
        ("internal_read", &[("id", &log)], NO_BODY, 200),
        ("auth_configs_update", &config, renamed, 200),
        ("connected_accounts_update", &account, alias, 200),
        ("connected_accounts_refresh", &account, json!({}), 200),
        ("connected_accounts_link", NO_VALUES, link, 201),
    ];
    seen.call_all(&project, calls).await;
    let read = project.account(account[0].1).await;
    let of_type = "type=CONNECTED_ACCOUNT&uuid=";
    let older = format!("{of_type}{}", string(&read["deprecated"]["uuid"]));
    let migrate = "migration_nanoid";
    seen.query(&project, migrate, &older).await.expect(200);
    let disabled = json!({ "enabled": false });
    let calls: [Call; _] = [
        ("connected_accounts_set_status", &account, disabled, 200),
        ("connected_accounts_revoke", &account, NO_BODY, 200),
        ("connected_accounts_revoke", &account, NO_BODY, 409),
        ("connected_accounts_remove", &account, NO_BODY, 200),
    ];
    seen.call_all(&project, calls).await;
    seen.query(&project, migrate, &older).await.expect(410);
    let unknown = format!("{of_type}00000000-0000-4000-8000-000000000000");
    seen.query(&project, migrate, &unknown).await.expect(404);
    let calls: [Call; _] = [
        ("auth_configs_set_status", &config, NO_BODY, 200),
        ("auth_configs_remove", &config, NO_BODY, 200),
    ];
    seen.call_all(&project, calls).await;
    let deprecate: Call = ("toolkits_deprecate", &version, NO_BODY, 200);
    seen.call_all(&org, [deprecate]).await;
}

/// Calls each operation of projects and their keys successfully.
async fn projects(host: &Host, seen: &mut SeenStatuses) {
    let (org, project) = (host.as_org(), host.as_project());
    let body = json!({ "name": "contract", "should_create_api_key": true, "config": { "display_name": "Contract" } });
    let made = seen.call(&org, "org_create", NO_VALUES, body).await;
    let made = made.expect(200);
    let id = [("nano_id", &*string(&made["id"]))];
    let another = json!({ "name": "another" });
    let added = seen.call(&org, "org_create_key", &id, another).await;
    let key = [id[0], ("key_id", &*string(&added.expect(201)["id"]))];
    let calls: [Call; _] = [
        ("org_list", NO_VALUES, NO_BODY, 200),
        ("org_read", &id, NO_BODY, 200),
        ("org_list_keys", &id, NO_BODY, 200),
        ("org_remove_key", &key, NO_BODY, 200),
    ];
    seen.call_all(&org, calls).await;
    let found = json!({ "api_keys": [made["api_key"]] });
    let revoke: Call = ("api_key_revocation_revoke", NO_VALUES, found, 200);
    seen.call_all(&host.anonymous(), [revoke]).await;
    let calls: [Call; _] = [
        ("org_regenerate_key", &id, NO_BODY, 200),
        ("org_remove", &id, NO_BODY, 200),
    ];
    seen.call_all(&org, calls).await;
    let named = json!({ "display_name": "Contract" });
    let calls: [Call; _] = [
        ("auth_info", NO_VALUES, NO_BODY, 200),
        ("org_read_config", NO_VALUES, NO_BODY, 200),
        ("org_update_config", NO_VALUES, named, 200),
    ];
    seen.call_all(&project, calls).await;
}

/// Calls each operation of members successfully.
async fn members(host: &Host, seen: &mut SeenStatuses) {
    let org = host.as_org();
    let ada = json!({ "email": "ada@example.com", "role": "viewer" });
    let ada = seen.call(&org, "org_create_member", NO_VALUES, ada).await;
    let ada = ada.expect(201);
    let user = host.with_user_key(ada["key"].as_str().unwrap());
    let calls: [Call; _] = [
        ("auth_info", NO_VALUES, NO_BODY, 200),
        ("org_organisations", NO_VALUES, NO_BODY, 200),
        ("org_projects", NO_VALUES, NO_BODY, 200),
    ];
    seen.call_all(&user, calls).await;
    let member = [("member_id", &*string(&ada["id"]))];
    let calls: [Call; _] = [
        ("org_list_members", NO_VALUES, NO_BODY, 200),
        ("org_remove_member", &member, NO_BODY, 200),
    ];
    seen.call_all(&org, calls).await;
}

/// Publishes a toolkit and calls each operation of the catalog successfully. Returns its polling
/// trigger.
async fn catalog(host: &Host, seen: &mut SeenStatuses, slug: &str) -> String {
    let (org, project) = (host.as_org(), host.as_project());
    let mut manifest = guest::manifest_with_key(slug, given::bearer());
    let trigger = given::trigger(slug, "EVENT");
    manifest["triggers"] = json!([trigger, given::webhook_trigger(slug, "ARRIVED")]);
    let component = guest::with_manifest(Guest::echo().component(), &manifest);
    let version = [("slug", slug), ("version", "20260101_00")];
    for status in [201, 200] {
        let published = seen.publish(&org, &version, &component, &[]).await;
        published.expect(status);
    }
    let calls: [Call; _] = [
        ("toolkits_read_version", &version, NO_BODY, 200),
        ("org_published", NO_VALUES, NO_BODY, 200),
    ];
    seen.call_all(&org, calls).await;
    let (toolkit, trigger) = (&version[..1], string(&trigger["slug"]));
    let several = json!({ "toolkits": [slug] });
    let tools = json!({ "tools": [guest::tool(slug)] });
    let tool = [("tool_slug", &*guest::tool(slug))];
    let calls: [Call; _] = [
        ("toolkits_list", NO_VALUES, NO_BODY, 200),
        ("toolkits_categories", NO_VALUES, NO_BODY, 200),
        ("toolkits_changelog", NO_VALUES, NO_BODY, 200),
        ("toolkits_read", toolkit, NO_BODY, 200),
        ("toolkits_several", NO_VALUES, several, 200),
        ("toolkits_versions", toolkit, NO_BODY, 200),
        ("toolkits_grant_context", toolkit, NO_BODY, 200),
        ("toolkits_recommend", toolkit, tools.clone(), 200),
        ("tools_scopes", NO_VALUES, tools, 200),
        ("tools_list", NO_VALUES, NO_BODY, 200),
        ("tools_slugs", NO_VALUES, NO_BODY, 200),
        ("tools_read", &tool, NO_BODY, 200),
        ("triggers_types_list", NO_VALUES, NO_BODY, 200),
        ("triggers_types_slugs", NO_VALUES, NO_BODY, 200),
        ("triggers_types_read", &[("slug", &trigger)], NO_BODY, 200),
    ];
    seen.call_all(&project, calls).await;
    trigger
}

/// Calls each operation of trigger instances successfully, and again in states that refuse it.
async fn trigger_instances(
    project: &Client,
    seen: &mut SeenStatuses,
    trigger: &str,
    account: &str,
) {
    let trigger = [("slug", trigger)];
    let own = json!({ "connected_account_id": account });
    let upsert = "trigger_instances_upsert";
    let made = seen.call(project, upsert, &trigger, own.clone()).await;
    let instance = [("triggerId", &*string(&made.expect(201)["trigger_id"]))];
    let calls: [Call; _] = [
        (upsert, &trigger, own, 200),
        ("trigger_instances_list", NO_VALUES, NO_BODY, 200),
    ];
    seen.call_all(project, calls).await;
    polled(project, seen, &instance).await;
    let disable = json!({ "status": "disable" });
    let (actions, change) = ("trigger_instances_list_actions", "trigger_instances_change");
    let (poll, remove) = ("trigger_instances_poll", "trigger_instances_remove");
    let calls: [Call; _] = [
        (actions, &instance, NO_BODY, 200),
        (change, &instance, disable.clone(), 200),
        (change, &instance, disable.clone(), 409),
        (poll, &instance, NO_BODY, 409),
        (remove, &instance, NO_BODY, 200),
        (remove, &instance, NO_BODY, 410),
        (change, &instance, disable, 410),
        (poll, &instance, NO_BODY, 410),
        (actions, &instance, NO_BODY, 410),
    ];
    seen.call_all(project, calls).await;
}

/// Runs a tool and calls each operation of logs and usage successfully. Returns the id of the log
/// record.
async fn runs(host: &Host, seen: &mut SeenStatuses, toolkit: &str) -> String {
    let (org, project) = (host.as_org(), host.as_project());
    let call = json!({ "user_id": "amy", "arguments": { "said": "hello" } });
    let tool = [("tool_slug", &*guest::tool(toolkit))];
    let ran = seen.call(&project, "tools_execute", &tool, call).await;
    let id = string(&ran.expect(200)["log_id"]);
    let (log, counted) = ([("id", &*id)], [("entity_type", "tool_execution")]);
    let calls: [Call; _] = [
        ("logs_list", NO_VALUES, json!({}), 200),
        ("logs_read", &log, NO_BODY, 200),
        ("logs_cassette", &log, NO_BODY, 200),
        ("project_project_summary", NO_VALUES, json!({}), 200),
        ("project_project_groups", &counted, json!({}), 200),
    ];
    seen.call_all(&project, calls).await;
    let calls: [Call; _] = [
        ("org_organisation_summary", NO_VALUES, json!({}), 200),
        ("org_organisation_groups", &counted, json!({}), 200),
    ];
    seen.call_all(&org, calls).await;
    id
}

/// Calls each operation of webhook subscriptions and their events successfully.
async fn webhook_subscriptions(project: &Client, seen: &mut SeenStatuses) {
    let subscription = json!({
        "webhook_url": "https://hooks.example.com/", "enabled_events": ["service.trigger.message"],
    });
    let create = "webhook_subscriptions_create";
    let created = seen.call(project, create, NO_VALUES, subscription.clone());
    let id = string(&created.await.expect(201)["id"]);
    let calls: [Call; _] = [
        (create, NO_VALUES, subscription, 409),
        ("webhook_subscriptions_list", NO_VALUES, NO_BODY, 200),
        ("webhook_subscriptions_event_types", NO_VALUES, NO_BODY, 200),
    ];
    seen.call_all(project, calls).await;
    let (subscription, test) = ([("id", &*id)], "webhook_subscriptions_send_test");
    let sent = seen.call(project, test, &subscription, json!({})).await;
    let sent = string(&sent.expect(201)["id"]);
    let list = "internal_list_trigger_logs";
    let found = seen.call(project, list, NO_VALUES, json!({})).await;
    let entry = [("id", &*string(&found.expect(200)["data"][0]["id"]))];
    let delivery = [subscription[0], ("delivery_id", &*sent)];
    let replay = "webhook_subscriptions_replay_delivery";
    let elsewhere = json!({ "webhook_url": "https://hooks.example.com/copy" });
    let ranged = json!({ "include_delivered": true });
    let version = json!({ "version": "V2" });
    let calls: [Call; _] = [
        ("internal_read_trigger_log", &entry, NO_BODY, 200),
        // The endpoint cannot be reached, so that the delivery is pending.
        (replay, &delivery, elsewhere, 409),
        ("webhook_subscriptions_read", &delivery, NO_BODY, 200),
        (
            "webhook_subscriptions_list_deliveries",
            &delivery,
            NO_BODY,
            200,
        ),
        (
            "webhook_subscriptions_read_delivery",
            &delivery,
            NO_BODY,
            200,
        ),
        (replay, &delivery, NO_BODY, 200),
        (
            "webhook_subscriptions_replay_deliveries",
            &delivery,
            ranged,
            200,
        ),
        (
            "webhook_subscriptions_rotate_secret",
            &delivery,
            NO_BODY,
            200,
        ),
        ("webhook_subscriptions_update", &delivery, version, 200),
        ("webhook_subscriptions_remove", &delivery, NO_BODY, 200),
    ];
    seen.call_all(project, calls).await;
}

/// Calls each operation of sessions successfully, for a toolkit that `amy` has connected.
async fn sessions(project: &Client, seen: &mut SeenStatuses, toolkit: &str) {
    let labs: Call = ("labs_create", NO_VALUES, json!({ "user_id": "amy" }), 201);
    seen.call_all(project, [labs]).await;
    let config = json!({
        "user_id": "amy", "toolkits": { "enable": [toolkit] }, "preload": { "tools": "all" },
        "tools": { toolkit: { "disable": [] } }, "multi_account": { "enable": true },
    });
    let session = seen.call(project, "tool_router_create", NO_VALUES, config);
    let session = string(&session.await.expect(201)["session_id"]);
    let id = [("session_id", &*session)];
    let tags = json!({ "tags": [] });
    let outdated = json!({ "expected_config_version": 99 });
    let call = json!({ "tool_slug": guest::tool(toolkit), "arguments": {} });
    let several = json!({ "tools": [call], "sync_response_to_workbench": false });
    let meta = json!({ "slug": "SERVICE_MULTI_EXECUTE_TOOL", "arguments": several });
    let search = json!({ "queries": [{ "use_case": toolkit }] });
    let tool = json!({ "slug": "a", "name": "A", "description": "a", "input_schema": {} });
    let inline = json!({ "experimental": { "custom_tools": [tool] } });
    let link = json!({ "toolkit": toolkit });
    mounts(project, seen, &session).await;
    let calls: [Call; _] = [
        ("tool_router_read", &id, NO_BODY, 200),
        ("tool_router_update", &id, tags, 200),
        ("tool_router_update", &id, outdated, 409),
        ("tool_router_attach", &id, inline, 200),
        ("tool_router_config_history", &id, NO_BODY, 200),
        ("tool_router_tools", &id, NO_BODY, 200),
        ("tool_router_list_toolkits", &id, NO_BODY, 200),
        ("tool_router_link", &id, link, 201),
        ("tool_router_execute", &id, call, 200),
        ("tool_router_execute_meta", &id, meta, 200),
        ("tool_router_search", &id, search, 200),
        ("tool_router_remove", &id, NO_BODY, 200),
    ];
    seen.call_all(project, calls).await;
}

/// Calls each operation of the files of a session successfully.
async fn mounts(project: &Client, seen: &mut SeenStatuses, session: &str) {
    let id = [("session_id", session), ("mount_id", "files")];
    let upload = "tool_router_mount_upload_url";
    let file = json!({ "mount_relative_path": "a.txt" });
    let asked = seen.call(project, upload, &id, file.clone()).await;
    put(project, &asked.expect(201)["upload_url"], b"a").await;
    let calls: [Call; _] = [
        ("tool_router_mount_items", &id, NO_BODY, 200),
        ("tool_router_mount_download_url", &id, file.clone(), 201),
        ("tool_router_mount_delete", &id, file, 200),
    ];
    seen.call_all(project, calls).await;
}

/// Uploads bytes by a link.
async fn put(project: &Client, link: &Value, bytes: &[u8]) {
    let link = string(link);
    let sent = project.exchange(Method::PUT, &link, &[], bytes.to_vec());
    assert_eq!(sent.await.status, 200);
}

async fn webhook_endpoints(project: &Client, seen: &mut SeenStatuses, toolkit: &str) {
    let body = json!({ "toolkit_slug": toolkit, "client_id": "app" });
    let create = "webhook_endpoints_create";
    let made = seen.call(project, create, NO_VALUES, body.clone()).await;
    let endpoint = [("nano_id", &*string(&made.expect(201)["id"]))];
    let of_toolkit = format!("toolkit_slug={toolkit}");
    for id in ["webhook_endpoints_list", "webhook_endpoints_setup"] {
        seen.query(project, id, &of_toolkit).await.expect(200);
    }
    let values = json!({ "data": { "secret": "a secret" } });
    let calls: [Call; _] = [
        (create, NO_VALUES, body, 200),
        ("webhook_endpoints_read", &endpoint, NO_BODY, 200),
        ("webhook_endpoints_update", &endpoint, values.clone(), 200),
        ("webhook_endpoints_replace", &endpoint, values, 200),
        ("webhook_endpoints_remove", &endpoint, NO_BODY, 200),
    ];
    seen.call_all(project, calls).await;
}

/// Calls every operation of MCP servers. The accounts of one user are deleted on the way.
async fn mcp_servers(project: &Client, seen: &mut SeenStatuses, config: &str, toolkit: &str) {
    given::made_account(project, config, "ann", &harness::secret()).await;
    let body = json!({ "name": "Mail tools", "auth_config_ids": [config] });
    let made = seen.call(project, "mcp_create", NO_VALUES, body).await;
    let id = string(&made.expect(201)["id"]);
    let custom = json!({ "name": "Mail tools", "toolkits": [toolkit] });
    let (generate, create) = ("mcp_generate", "mcp_create_instance");
    let known = json!({ "mcp_server_id": id, "user_ids": ["ann"] });
    let unknown = json!({ "mcp_server_id": "unknown" });
    let [ann, zoe] = ["ann", "zoe"].map(|user| json!({ "user_id": user }));
    let server = [("serverId", &*id), ("instanceId", "ann")];
    let (server_id, app) = ([("id", &*id)], [("appKey", toolkit)]);
    let calls: [Call; _] = [
        ("mcp_create_custom", NO_VALUES, custom, 201),
        (generate, NO_VALUES, known, 200),
        (generate, NO_VALUES, unknown, 404),
        (create, &server, ann.clone(), 201),
        (create, &server, ann, 409),
        (create, &server, zoe, 403),
        ("mcp_list", NO_VALUES, NO_BODY, 200),
        ("mcp_list_of_toolkit", &app, NO_BODY, 200),
        ("mcp_list_instances", &server, NO_BODY, 200),
        ("mcp_remove_instance", &server, NO_BODY, 200),
        ("mcp_read", &server_id, NO_BODY, 200),
        ("mcp_update", &server_id, json!({ "name": "Mail" }), 200),
        ("mcp_remove", &server_id, NO_BODY, 200),
    ];
    seen.call_all(project, calls).await;
}

/// Provokes the refusals of webhook endpoints: for an unknown toolkit, and for one too many.
async fn refused_endpoints(project: &Client, seen: &mut SeenStatuses, toolkit: &str) {
    let body =
        |toolkit: &str, client: &str| json!({ "toolkit_slug": toolkit, "client_id": client });
    let (setup, unknown) = ("webhook_endpoints_setup", "toolkit_slug=no_such_toolkit");
    seen.query(project, setup, unknown).await.expect(404);
    for number in 0..100 {
        let endpoint = body(toolkit, &number.to_string());
        let made = project.post("/webhook_endpoints", &endpoint).await;
        made.expect(201);
    }
    let (unknown, more) = (body("no_such_toolkit", "app"), body(toolkit, "one more"));
    let create = "webhook_endpoints_create";
    let calls: [Call; _] = [
        (create, NO_VALUES, unknown, 404),
        (create, NO_VALUES, more, 422),
    ];
    seen.call_all(project, calls).await;
}

/// Polls an instance. The server may be polling it at the same time.
async fn polled(project: &Client, seen: &mut SeenStatuses, instance: &[(&str, &str)]) {
    let id = "trigger_instances_poll";
    let mut answer = seen.call(project, id, instance, NO_BODY).await;
    while answer.status == 409 {
        answer = seen.call(project, id, instance, NO_BODY).await;
    }
    answer.expect(200);
}

/// Provokes the refusals that only some operations have.
async fn particular_refusals(host: &Host, seen: &mut SeenStatuses) {
    let (org, project) = (host.as_org(), host.as_project());
    let slug = given::slug();
    let manifest = refused_versions(host, seen, &slug).await;
    let unknown = "auth_config_ids=ac_AAAAAAAAAAAA";
    seen.query(&project, "tools_list", unknown)
        .await
        .expect(404);
    let [restricted, open] = refused_auth_configs(&project, seen, &manifest).await;
    let connect = async |config: &str, user: &str| {
        let made = given::made_account(&project, config, user, &harness::secret()).await;
        string(&made["id"])
    };
    connect(&restricted, "bob").await;
    let paused = connect(&open, "eve").await;
    refused_accounts(&project, seen, &open, &paused).await;

    let name = guest::tool(&slug);
    let (tool, account) = ([("tool_slug", &*name)], [("nanoid", &*paused)]);
    let say = json!({ "text": "say hello" });
    let sentence = json!({ "user_id": "eve", "text": "say hello" });
    let trigger = [("slug", &*string(&manifest["triggers"][0]["slug"]))];
    let instance = json!({ "connected_account_id": paused });
    let calls: [Call; _] = [
        ("tools_execute", &tool, json!({ "user_id": "bob" }), 403),
        ("tools_execute", &tool, sentence, 501),
        ("tools_input", &tool, say.clone(), 501),
    ];
    seen.call_all(&project, calls).await;
    let upsert = "trigger_instances_upsert";
    let made = seen.call(&project, upsert, &trigger, instance.clone());
    let made = [("triggerId", &*string(&made.await.expect(201)["trigger_id"]))];
    let gone = connect(&open, "zoe").await;
    let path = format!("/connected_accounts/{gone}");
    project.delete(&path).await.expect(200);
    let gone = json!({ "connected_account_id": gone });
    let pause = json!({ "enabled": false });
    let calls: [Call; _] = [
        ("connected_accounts_set_status", &account, pause, 200),
        (upsert, &trigger, instance, 422),
    ];
    seen.call_all(&project, calls).await;
    let path = format!("/trigger_instances/manage/{}", made[0].1);
    project.patch(&path, &json!({ "status": "disable" })).await;
    let enable = json!({ "status": "enable" });
    let named = json!({ "user_id": "eve", "connected_account_id": paused });
    let calls: [Call; _] = [
        ("trigger_instances_change", &made, enable, 422),
        (upsert, &trigger, gone, 410),
        ("tools_execute", &tool, named, 422),
    ];
    seen.call_all(&project, calls).await;
    refused_endpoints(&project, seen, &slug).await;
    let version = [("slug", &*slug), ("version", "20260101_00")];
    let deprecate: Call = ("toolkits_deprecate", &version, NO_BODY, 200);
    seen.call_all(&org, [deprecate]).await;
    let session = json!({ "user_id": "amy" });
    let session = project.post("/tool_router/session", &session).await;
    let session = [("session_id", &*string(&session.expect(201)["session_id"]))];
    let executed = json!({ "tool_slug": name });
    let execute: Call = ("tool_router_execute", &session, executed, 410);
    seen.call_all(&project, [execute]).await;
    let calls: [Call; _] = [
        ("tools_execute", &tool, json!({}), 410),
        ("tools_read", &tool, NO_BODY, 410),
        ("tools_input", &tool, say, 410),
    ];
    seen.call_all(&project.with_newer_prefix(), calls).await;
}

/// Publishes a toolkit, and provokes the refusals of other bytes, a bad signature and a breaking
/// change. Returns the manifest.
async fn refused_versions(host: &Host, seen: &mut SeenStatuses, slug: &str) -> Value {
    let mut manifest = guest::manifest_with_key(slug, given::bearer());
    let webhook = given::webhook_trigger(slug, "ARRIVED");
    manifest["triggers"] = json!([given::trigger(slug, "EVENT"), webhook]);
    let mut second = manifest["tools"][0].clone();
    second["slug"] = json!(format!("{}_SECOND", slug.to_uppercase()));
    manifest["tools"].as_array_mut().unwrap().push(second);
    host.publish(Guest::echo().component(), &manifest).await;
    let mut breaking = manifest.clone();
    breaking["version"] = json!("20260101_01");
    breaking["tools"][0]["input"] =
        json!({ "type": "object", "required": ["a"], "properties": { "a": {} } });
    let [other, breaking] = [
        guest::with_manifest(Guest::constant().component(), &manifest),
        guest::with_manifest(Guest::echo().component(), &breaking),
    ];
    let (org, unsigned) = (host.as_org(), [("x-toolkit-signature", "not base64")]);
    for (version, component, headers, status) in [
        ("20260101_00", &other, &unsigned[..0], 409),
        ("20260101_00", &other, &unsigned[..], 403),
        ("20260101_01", &breaking, &unsigned[..0], 422),
    ] {
        let version = [("slug", slug), ("version", version)];
        let refused = seen.publish(&org, &version, component, headers).await;
        refused.expect(status);
    }
    manifest
}

/// Provokes the refusals of auth configs. Returns the ids of one that is restricted to the second
/// tool, and of one that is not.
async fn refused_auth_configs(
    project: &Client,
    seen: &mut SeenStatuses,
    manifest: &Value,
) -> [String; 2] {
    let config = |toolkit: &Value| {
        json!({
            "toolkit": { "slug": toolkit },
            "auth_config": { "type": "use_custom_auth", "authScheme": "API_KEY", "credentials": {} },
        })
    };
    let mut elsewhere = config(&manifest["slug"]);
    elsewhere["auth_config"]["authScheme"] = json!("DCR_OAUTH");
    let create = "auth_configs_create";
    let unknown = config(&json!("no_such_toolkit"));
    let calls: [Call; _] = [
        (create, NO_VALUES, unknown, 404),
        (create, NO_VALUES, elsewhere, 400),
    ];
    seen.call_all(project, calls).await;
    let mut restricted = config(&manifest["slug"]);
    restricted["auth_config"]["restrict_to_following_tools"] =
        json!([manifest["tools"][1]["slug"]]);
    let restricted = seen.call(project, create, NO_VALUES, restricted).await;
    let open = config(&manifest["slug"]);
    let open = seen.call(project, create, NO_VALUES, open).await;
    [restricted, open].map(|made| string(&made.expect(201)["auth_config"]["id"]))
}

/// Provokes the refusals of connected accounts, and changes the proxy of their auth config.
async fn refused_accounts(project: &Client, seen: &mut SeenStatuses, config: &str, account: &str) {
    let no_config = "ac_AAAAAAAAAAAA";
    let unknown = given::account(no_config, "amy", &harness::secret());
    let mut tested = given::account(config, "amy", &harness::secret());
    tested["validate_credentials"] = json!(true);
    let test = json!({ "validate_credentials": true });
    let link = json!({ "auth_config_id": no_config, "user_id": "amy" });
    let session = json!({ "session_uri": "session_x", "user_id": "amy" });
    let proxy = |proxy: Value| json!({ "type": "custom", "proxy_config": proxy });
    let proxied = proxy(json!({ "proxy_url": "http://proxy.example" }));
    let (create, update) = ("connected_accounts_create", "auth_configs_update");
    let (account, config) = ([("nanoid", account)], [("nanoid", config)]);
    let calls: [Call; _] = [
        (create, NO_VALUES, unknown, 404),
        (create, NO_VALUES, tested, 501),
        ("connected_accounts_refresh", &account, test, 501),
        ("connected_accounts_link", NO_VALUES, link, 404),
        ("connected_accounts_complete", NO_VALUES, session, 404),
        (update, &config, proxied.clone(), 200),
    ];
    seen.call_all(project, calls).await;
    let read = seen.call(project, "auth_configs_read", &config, NO_BODY);
    let read = read.await.expect(200);
    assert_eq!(read["proxy_config"], proxied["proxy_config"]);
    let straight: Call = (update, &config, proxy(Value::Null), 200);
    seen.call_all(project, [straight]).await;
}

/// Provokes the responses that need a language model: one that responds well and then badly, and
/// one that fails.
async fn with_a_model(seen: &mut SeenStatuses) {
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
        let project = host.as_project();
        let tool = [("tool_slug", &*given::echo(&host).await)];
        for status in statuses {
            let made = seen.call(&project, "tools_input", &tool, say.clone());
            made.await.expect(*status);
        }
        let last = statuses[statuses.len() - 1];
        let ran = seen.call(&project, "tools_execute", &tool, say.clone());
        ran.await.expect(last);
    }
}

/// Provokes the responses that need a provider: one that responds, one that does not respond in
/// time, and an unreachable one.
async fn with_an_application(host: &Host, seen: &mut SeenStatuses) {
    let project = host.as_project();
    let slug = given::slug();
    given::publish_with_key(host, &Guest::echo(), &slug).await;
    let account = project.connect_with_key(&slug, "default").await;
    let call = |account: &str, endpoint: &str| json!({ "connected_account_id": account, "endpoint": endpoint, "method": "GET" });
    let in_session =
        |endpoint: &str| json!({ "toolkit_slug": slug, "endpoint": endpoint, "method": "GET" });
    let pinned = json!({ "user_id": "default", "connected_accounts": { &slug: account } });
    let session = project.post("/tool_router/session", &pinned).await;
    let session = [("session_id", &*string(&session.expect(201)["session_id"]))];
    let (of_account, of_session) = ("tools_proxy", "tool_router_proxy_execute");
    for (endpoint, status) in [
        ("/echo/x", 200),
        ("/redirect/x?to=https://files.example.net/", 403),
        ("https://other.example.com/", 502),
    ] {
        let calls: [Call; _] = [
            (of_account, NO_VALUES, call(&account, endpoint), status),
            (of_session, &session, in_session(endpoint), status),
        ];
        seen.call_all(&project, calls).await;
    }
    // Both requests wait for the same timeout.
    let mut other = SeenStatuses::default();
    let (by_account, by_session) = (call(&account, "/hang/x"), in_session("/hang/x"));
    let both = tokio::join!(
        seen.call(&project, of_account, NO_VALUES, by_account),
        other.call(&project, of_session, &session, by_session)
    );
    for late in <[Answer; 2]>::from(both) {
        late.expect(504);
    }
    seen.0.append(&mut other.0);
    let brought = json!({ "authScheme": "DCR_OAUTH", "toolkitSlug": slug, "val": {} });
    let brought = json!({ "custom_connection_data": brought, "endpoint": "/", "method": "GET" });
    let unknown = call("ca_AAAAAAAAAAAA", "/");
    let executed = json!({ "tool_slug": guest::tool(&slug) });
    let (pause, paused) = (json!({ "enabled": false }), [("nanoid", &*account)]);
    let calls: [Call; _] = [
        (of_account, NO_VALUES, call(&account, "/bytes/x/100"), 200),
        (of_account, NO_VALUES, unknown, 404),
        (of_account, NO_VALUES, brought, 400),
        ("connected_accounts_set_status", &paused, pause, 200),
        (of_account, NO_VALUES, call(&account, "/"), 422),
        (of_session, &session, in_session("/"), 422),
        ("tool_router_execute", &session, executed, 422),
    ];
    seen.call_all(&project, calls).await;

    let upload = |toolkit: &str| {
        json!({
            "toolkit_slug": toolkit, "tool_slug": guest::tool(&slug), "filename": "a.txt", "mimetype": "text/plain",
            "md5": "900150983cd24fb0d6963f7d28e17f72",
        })
    };
    let request = "files_request";
    let asked = seen.call(&project, request, NO_VALUES, upload(&slug)).await;
    put(&project, &asked.expect(200)["new_presigned_url"], b"abc").await;
    let calls: [Call; _] = [
        (request, NO_VALUES, upload(&slug), 200),
        (request, NO_VALUES, upload("no_such_toolkit"), 404),
        ("files_list", NO_VALUES, NO_BODY, 200),
    ];
    seen.call_all(&project, calls).await;
}

/// Provokes the responses that need users to authorize at a provider.
async fn with_an_authorization_server(host: &Host, seen: &mut SeenStatuses) {
    let (org, project) = (host.as_org(), host.as_project());
    let oauth = given::Oauth::new(host, &project).await;
    let slug = [("slug", &*oauth.slug)];
    let calls: [Call; _] = [
        ("org_set_oauth_app", &slug, given::oauth_app(), 200),
        ("org_list_oauth_apps", NO_VALUES, NO_BODY, 200),
    ];
    seen.call_all(&org, calls).await;
    let read: Call = ("toolkits_read", &slug, NO_BODY, 200);
    seen.call_all(&project, [read]).await;
    let remove: Call = ("org_remove_oauth_app", &slug, NO_BODY, 200);
    seen.call_all(&org, [remove]).await;
    let verifier = json!({ "oauth_callback_verifier_url": "https://app.example/verify" });
    given::configure(&project, verifier).await;
    let body = json!({ "auth_config": { "id": oauth.config }, "connection": { "user_id": "amy" } });
    let made = seen.call(&project, "connected_accounts_create", NO_VALUES, body);
    let back = oauth.visit(&made.await.expect(201)).await;
    let (_, query) = back.split_once('?').unwrap();
    let nobody = host.anonymous();
    let landed = seen.query(&nobody, "toolkits_callback", query).await;
    let landed = landed.expect(302);
    let (_, session) = landed
        .header("location")
        .split_once("session_uri=")
        .unwrap();
    let body = json!({ "session_uri": session, "user_id": "amy" });
    let complete: Call = ("connected_accounts_complete", NO_VALUES, body, 200);
    seen.call_all(&project, [complete]).await;
}

/// Provokes the refusals that every operation of a kind has.
async fn common_refusals(host: &Host, seen: &mut SeenStatuses) {
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
        let mut refuse = async |client: &Client, path: &str, body: Body, status: u16| {
            let refused = seen.send(client, operation, path, body, &[]).await;
            refused.expect(status);
        };
        let plain = || operation.body(false);
        if has(401) {
            refuse(&host.anonymous(), &path, plain(), 401).await;
        }
        if operation.key() == Key::Project {
            refuse(&elsewhere, &path, plain(), 403).await;
        }
        if has(404) && !operation.unknown().is_empty() {
            refuse(right, &path, plain(), 404).await;
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
                _ => plain(),
            };
            refuse(right, &path, body, 400).await;
        }
        if has(413) {
            let bytes = match operation.takes() {
                Takes::Component => 25 << 20,
                _ => MAX_JSON_BYTES + 1,
            };
            let large = Body::Raw("application/json", vec![b' '; bytes]);
            refuse(right, &path, large, 413).await;
        }
        if has(415) {
            let packed = [("content-encoding", "gzip")];
            let refused = seen.send(right, operation, &path, plain(), &packed).await;
            refused.expect(415);
        }
    }
}

/// Calls every operation on a server that allows one request, one wrong key and one wrong callback.
async fn too_many(host: &Host, seen: &mut SeenStatuses) {
    let clients = Clients::of(host, host.as_project()).await;
    let guess = json!({ "api_keys": ["no key"] });
    let nobody = &clients.nobody;
    nobody.post("/api_key_revocation", &guess).await.expect(200);
    let back = nobody.get("/toolkits/auth/callback?state=none").await;
    back.expect(400);
    clients.project.get("/auth/session/info").await.expect(200);
    let projects = "/org/owner/project/list";
    while host.as_org().get(projects).await.status != 429 {}
    for operation in CLIENT_OPERATIONS.iter() {
        let right = clients.right(operation);
        let mut answer = operation.send(right, operation.body(false)).await;
        if answer.status != 429 {
            // The rate of webhooks is restored every minute: this request has used it up again.
            answer = operation.send(right, operation.body(false)).await;
        }
        seen.check(operation, &answer.expect(429));
    }
}
