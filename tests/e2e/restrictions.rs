//! Members that restrict a request or choose what it uses: a misspelled one is refused, one that this
//! server does not have is refused, and every other one takes effect.

use std::collections::BTreeSet;

use futures::future::join_all;
use harness::{Guest, Host, client::Body, guest, host::Setup, unique};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    description::{CLIENT_OPERATIONS, Clients, Operation},
    given::{self, Oauth, open, status},
    mcp_endpoints::{failure, request, result},
    tool_router_sessions::{SESSION_PATH, amys_session, create, execute_meta},
};

#[tokio::test]
async fn misspelled_restrictions_are_refused() {
    let project = Host::shared().await.new_project().await;
    let config = given::auth_config(&project).await;
    let toolkit = given::keyed().await;
    let execute = format!("/tools/execute/{}", given::shared_echo().await);
    let mut account = given::account(&config, "amy", &harness::secret());
    account["connection"]["experimental"] = json!({
        "account_type": "SHARED",
        "acl_config_for_shared": { "allow_all_users": true, "not_allowed_user_id": ["eve"] },
    });
    let auth_config = |settings: Value| {
        let body = json!({ "type": "use_custom_auth", "authScheme": "API_KEY", "credentials": {} });
        json!({ "toolkit": { "slug": toolkit }, "auth_config": given::merged(body, &settings) })
    };
    let server = "/mcp/00000000-0000-4000-8000-000000000000";
    let trigger = "/trigger_instances/NO_SUCH_TRIGGER/upsert";
    let cases = json!([
        ["POST", "/mcp/servers", { "name": "Some tools", "auth_config_ids": [], "allowed_tool": [] }, "allowed_tool", "allowed_tools"],
        ["POST", "/mcp/servers/custom", { "name": "Some tools", "auth_configs_ids": [] }, "auth_configs_ids", "auth_config_ids"],
        ["PATCH", server, { "alowedTools": [] }, "alowedTools", "allowed_tools"],
        ["POST", "/auth_configs", auth_config(json!({ "restrict_to_following_tool": ["A"] })), "auth_config.restrict_to_following_tool", "restrict_to_following_tools"],
        ["POST", "/auth_configs", auth_config(json!({ "tool_access_config": { "tools_available_for_executions": ["A"] } })), "auth_config.tool_access_config.tools_available_for_executions", "tools_available_for_execution"],
        ["PATCH", "/auth_configs/ac_AAAAAAAAAAAA", { "type": "custom", "tool_acces_config": {} }, "tool_acces_config", "tool_access_config"],
        ["POST", "/connected_accounts", account, "connection.experimental.acl_config_for_shared.not_allowed_user_id", "not_allowed_user_ids"],
        ["POST", "/labs/tool_router/session", { "user_id": "amy", "config": { "toolkit": [] } }, "config.toolkit", "toolkits"],
        ["POST", trigger, { "conected_account_id": "ca_AAAAAAAAAAAA" }, "conected_account_id", "connected_account_id"],
        ["POST", trigger, { "action": { "tool_slug": "A", "connected_account": "ca_AAAAAAAAAAAA" } }, "action.connected_account", "connected_account_id"],
        ["POST", trigger, { "action": { "tool_slug": "A", "instead_of_webhooks": true } }, "action.instead_of_webhooks", "instead_of_webhook"],
        ["POST", trigger, { "trigger_confg": {} }, "trigger_confg", "trigger_config"],
        ["POST", trigger, { "triggerConfigs": {} }, "triggerConfigs", "trigger_config"],
        ["POST", trigger, { "poll_intervall_seconds": 60 }, "poll_intervall_seconds", "poll_interval_seconds"],
        ["POST", "/connected_accounts/link", { "auth_config_id": config, "user_id": "amy", "connectionData": {} }, "connectionData", "connection_data"],
        ["POST", execute, { "connected_account": "ca_AAAAAAAAAAAA" }, "connected_account", "connected_account_id"],
        ["POST", execute, { "argumnets": { "any": 1 } }, "argumnets", "arguments"],
        ["POST", execute, { "userId": "amy" }, "userId", "user_id"],
        ["POST", "/tools/execute/proxy", { "endpoint": "/x", "method": "GET", "conected_account_id": "ca_AAAAAAAAAAAA" }, "conected_account_id", "connected_account_id"],
        ["POST", "/connected_accounts/link", { "auth_config_id": config, "user_id": "amy", "calback_url": "https://a.example" }, "calback_url", "callback_url"],
        ["PATCH", "/org/project/config", { "require_mcp_api_kye": true }, "require_mcp_api_kye", "require_mcp_api_key"],
        ["PATCH", "/webhook_subscriptions/ws_AAAAAAAAAAAA", { "enabled_event": [] }, "enabled_event", "enabled_events"],
    ]);
    for case in cases.as_array().unwrap() {
        let text = |index: usize| case[index].as_str().unwrap();
        let method = Method::from_bytes(text(0).as_bytes()).unwrap();
        let body = Body::Json(case[2].clone());
        let problems = project.send(method, text(1), body, &[]).await;
        let problems = problems.expect(400).problems();
        let (wrong, right) = (text(3), text(4));
        let expected = format!("{wrong}: is unknown; the nearest known name is `{right}`, ");
        assert!(
            problems.iter().any(|line| line.starts_with(&expected)),
            "{case}: {problems:?}"
        );
    }
    let account = json!({ "account": "ca_AAAAAAAAAAAA" });
    let misplaced = [
        (&*execute, account, "account"),
        (
            "/mcp/servers",
            json!({ "name": "Some tools", "auth_config_ids": [], "custom_tools": ["A"] }),
            "custom_tools",
        ),
        (
            "/auth_configs",
            json!({ "toolkit": { "slug": toolkit }, "restrict_to_following_tools": ["A"] }),
            "restrict_to_following_tools",
        ),
        (trigger, json!({ "config": {} }), "config"),
        (
            trigger,
            json!({ "action": { "tool_slug": "A", "account": "ca_AAAAAAAAAAAA" } }),
            "action.account",
        ),
    ];
    for (path, body, wrong) in misplaced {
        let problems = project.post(path, &body).await.expect(400).problems();
        let expected = format!("{wrong}: has no meaning here");
        let is_named = problems.iter().any(|line| line.contains(&expected));
        assert!(is_named, "{path}: {problems:?}");
    }
    for name in ["experimental", "account_type"] {
        let mut body = json!({ "auth_config": { "id": "ac_AAAAAAAAAAAA" }, "connection": {} });
        body[name] = json!({});
        let problems = project
            .post("/connected_accounts", &body)
            .await
            .expect(400)
            .problems();
        assert_eq!(
            problems,
            [format!("{name}: belongs in `connection.experimental`")]
        );
    }
    for (restriction, remedy) in [
        ("toolkits", "POST /mcp/servers/custom"),
        ("tools", "`allowed_tools`"),
    ] {
        let mut server = json!({ "name": "Some tools", "auth_config_ids": [] });
        server[restriction] = json!(["a"]);
        let refused = project.post("/mcp/servers", &server).await;
        let problems = refused.expect(400).problems();
        let start = format!("{restriction}: does not belong here");
        assert!(problems[0].starts_with(&start), "{problems:?}");
        assert!(problems[0].contains(remedy), "{problems:?}");
    }
    let newer = json!({ "theme": {}, "enable_instant": true });
    given::configure(&project, newer).await;
    let older = json!({ "allow_tracing": true, "version": "latest" });
    project.post(&execute, &older).await.expect(200);
}

#[tokio::test]
async fn misspelled_arguments_of_meta_tools_are_refused() {
    let (project, session) = amys_session().await;
    let echo = given::shared_echo().await;
    let call = json!({ "tool_slug": echo, "arguments": {}, "acount": "ca_AAAAAAAAAAAA" });
    let calls = json!({ "tools": [call], "sync_response_to_workbench": false });
    let steps = json!([{ "name": "a", "tool_slug": echo }]);
    let recipe = json!({ "name": "A", "steps": steps, "input_shema": { "required": ["a"] } });
    let call =
        json!({ "tool_slug": echo, "arguments": {}, "connected_account_id": "ca_AAAAAAAAAAAA" });
    let misplaced = json!({ "tools": [call], "sync_response_to_workbench": false });
    for (slug, arguments, expected) in [
        (
            "SERVICE_MULTI_EXECUTE_TOOL",
            calls,
            "nearest known name is `account`",
        ),
        (
            "SERVICE_MULTI_EXECUTE_TOOL",
            misplaced,
            "connected_account_id",
        ),
        (
            "SERVICE_UPSERT_RECIPE",
            recipe,
            "did you mean `input_schema`?",
        ),
    ] {
        let refused = execute_meta(&project, &session, slug, arguments).await;
        let text = refused.expect(400).text;
        assert!(text.contains(expected), "{text}");
    }
    let body = json!({ "tool_slug": "SERVICE_GET_TOOL_SCHEMAS", "arguments": { "tool_slugs": [echo] }, "account": "a" });
    let path = format!("{SESSION_PATH}/{session}/execute");
    project.post(&path, &body).await.expect(400);
}

#[tokio::test]
async fn calls_of_a_batch_use_named_accounts() {
    let project = Host::shared().await.new_project().await;
    let toolkit = given::keyed().await;
    let older = project.connect_with_key(toolkit, "amy").await;
    let newer = project.connect_with_key(toolkit, "amy").await;
    let others = project.connect_with_key(toolkit, "bob").await;
    let session = create(&project, json!({ "user_id": "amy" })).await;
    let url = format!("https://api.example.com/echo/{}", unique(8));
    let call = |account: Value| json!({ "tool_slug": guest::tool(toolkit), "arguments": { "url": url }, "account": account });
    let calls = [json!(older), json!(newer), Value::Null, json!(others)].map(call);
    let mut tools = calls.to_vec();
    tools.push(json!({ "tool_slug": "RECIPE_A", "arguments": {}, "account": older }));
    let arguments = json!({ "tools": tools, "sync_response_to_workbench": false });
    let done = execute_meta(&project, &session, "SERVICE_MULTI_EXECUTE_TOOL", arguments).await;
    let results = done.expect(200)["data"]["results"].clone();
    for (place, account) in [(0, &older), (1, &newer), (2, &newer)] {
        let log = project
            .log(&results[place]["response"]["log_id"])
            .await
            .text;
        assert!(log.contains(&**account), "{place}: {log}");
    }
    for place in [3, 4] {
        assert_eq!(results[place]["response"], Value::Null, "{results:#}");
    }
    given::assert_contains(&results[4]["error"], "steps of a recipe name");
}

#[tokio::test]
async fn empty_account_or_user_is_refused() {
    let project = Host::shared().await.new_project().await;
    let echo = given::shared_echo().await;
    let session = create(&project, json!({ "user_id": "amy" })).await;
    let direct = format!("/tools/execute/{echo}");
    let in_session = format!("{SESSION_PATH}/{session}/execute");
    let call = json!({ "tool_slug": echo, "arguments": {}, "account": "" });
    let calls = json!({ "tools": [call], "sync_response_to_workbench": false });
    let batch = json!({ "tool_slug": "SERVICE_MULTI_EXECUTE_TOOL", "arguments": calls });
    for (path, body, named) in [
        (&direct, json!({ "user_id": "" }), "user_id: "),
        (
            &direct,
            json!({ "connected_account_id": "" }),
            "connected_account_id: ",
        ),
        (&in_session, call, "account: is empty"),
        (&in_session, batch, "account: is empty"),
    ] {
        let refused = project.post(path, &body).await.expect(400);
        assert!(refused.text.contains(named), "{body}: {}", refused.text);
    }
}

#[tokio::test]
async fn unknown_parameter_of_an_mcp_address_is_refused() {
    let project = Host::shared().await.new_project().await;
    let config = given::auth_config(&project).await;
    let body = json!({ "name": "All tools", "auth_config_ids": [config] });
    let url = given::mcp_server(&project, &body).await;
    let list = async |query: &str| {
        let url = format!("{url}?{query}");
        request(&project, &url, "tools/list", json!({}), &[]).await
    };
    for (query, reason) in [
        (
            "user_id=amy&conected_account_id=ca_AAAAAAAAAAAA",
            "`connected_account_id`",
        ),
        ("toolkits=gmail", "takes user_id, connected_account_id, "),
        ("agnt=editor", "agent, session_id; did you mean `agent`?"),
        ("include_tools[]=A", "include_tools: is unknown"),
        ("user_id=amy&user_id=bob", "user_id: is sent with several"),
        ("user_id=%FF", "user_id: contains"),
        (
            "session_id=1&session_id=2",
            "session_id: is sent with several",
        ),
        ("user_id=", "user_id: must not be empty"),
        (
            "connected_account_ids=",
            "connected_account_ids: must not be empty",
        ),
    ] {
        let refused = list(query).await;
        let text = refused.text();
        assert_eq!(refused.status, 400, "{text}");
        assert!(text.contains(reason), "{text}");
    }
    result(&list("user_id=amy&agent=editor&session_id=1&user_id=amy").await);
    let session = json!({ "user_id": "amy" });
    let session = project.post(SESSION_PATH, &session).await;
    let session = given::text(&session.expect(201)["mcp"]["url"]).to_owned();
    let key = [("x-api-key", project.key())];
    for (query, status) in [
        ("user_id=eve", 400),
        ("connected_account_ids[]=a", 400),
        ("actions=A", 400),
        ("agent=%FF", 400),
        ("session_id=1&sessionId=2", 400),
        ("agent=editor", 200),
    ] {
        let url = format!("{session}?{query}");
        let listed = request(&project, &url, "tools/list", json!({}), &key).await;
        assert_eq!(listed.status, status, "{query}");
    }
}

#[tokio::test]
async fn change_without_effect_is_refused() {
    let project = Host::shared().await.new_project().await;
    let toolkit = given::keyed().await;
    let account = project.connect_with_key(toolkit, "amy").await;
    let path = format!("/connected_accounts/{account}");
    let read = project.get(&path).await.expect(200);
    let config = format!("/auth_configs/{}", given::text(&read["auth_config"]["id"]));
    for (path, change, reason) in [
        (&*path, json!({ "enabled": false }), "/status`"),
        (&*path, json!({ "alias": "a", "status": "x" }), "/status`"),
        (
            &*path,
            json!({ "zzzzzzzz": 1 }),
            "`zzzzzzzz` is not allowed",
        ),
        (
            &*config,
            json!({ "type": "custom", "enabled": false }),
            "/DISABLED`",
        ),
        (
            &*config,
            json!({ "type": "custom", "zzzzzzzz": 1 }),
            "`zzzzzzzz` is not allowed",
        ),
        (
            "/org/project/config",
            json!({ "zzzzzzzz": 1 }),
            "`zzzzzzzz` is not allowed",
        ),
    ] {
        let refused = project.patch(path, &change).await.expect(400);
        let problems = refused.problems();
        assert!(problems[0].contains(reason), "{change}: {problems:?}");
    }
    let unchanged = project.get(&path).await.expect(200);
    assert_eq!(unchanged["alias"], Value::Null);
}

#[tokio::test]
async fn first_form_of_sessions_drops_no_restriction() {
    let project = Host::shared().await.new_project().await;
    let echo = given::shared_echo().await;
    let toolkit = echo.split('_').next().unwrap().to_lowercase();
    let create = async |body: Value| project.post("/labs/tool_router/session", &body).await;
    for restriction in [
        json!({ "tags": ["readOnlyHint"] }),
        json!({ "config": { "permissions": {} } }),
        json!({ "config": { "toolkits": [{ "toolkit": toolkit, "allowed_tools": [] }] } }),
    ] {
        let mut body = restriction;
        body["user_id"] = json!("amy");
        create(body).await.expect(400);
    }
    let none = create(json!({ "user_id": "amy", "config": { "toolkits": [] } })).await;
    let none = none.expect(201)["session_id"].as_str().unwrap().to_owned();
    let body = json!({ "tool_slug": echo, "arguments": {} });
    let path = format!("{SESSION_PATH}/{none}/execute");
    project.post(&path, &body).await.expect(403);
}

/// Adds the paths of the members of a schema that are marked as refused.
fn collect_refused(schema: &Value, path: &[String], found: &mut Vec<Vec<String>>) {
    for variant in ["oneOf", "anyOf"] {
        for schema in schema[variant].as_array().into_iter().flatten() {
            collect_refused(schema, path, found);
        }
    }
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        let path = [path, std::slice::from_ref(name)].concat();
        if schema["x-unimplemented"] == "refuse" {
            found.push(path);
        } else {
            collect_refused(schema, &path, found);
        }
    }
}

/// Returns the paths of the members of a body that are marked as refused.
fn refused_members(operation: &Operation) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    collect_refused(&operation.request_schema(), &[], &mut found);
    found
}

/// Returns the least body of an operation with another member.
fn body_with(operation: &Operation, path: &[String], value: Value) -> Value {
    let mut whole = match operation.body(false) {
        Body::Json(body) => body,
        _ => json!({}),
    };
    let mut inside = &mut whole;
    for name in path {
        if inside.is_null() {
            *inside = json!({});
        }
        inside = &mut inside[name];
    }
    *inside = value;
    whole
}

#[tokio::test]
async fn members_marked_as_refused_are_refused() {
    let warning = Setup::new().with("sessions.unknown_members", "warn");
    let warning = warning.start().await;
    let mut seen = BTreeSet::new();
    for host in [Host::shared().await, &warning] {
        let clients = Clients::of(host, host.new_project().await).await;
        for operation in CLIENT_OPERATIONS.iter() {
            for path in refused_members(operation) {
                let named = format!("{} {}", operation.method, path.join("."));
                let mut values = vec![json!("any value")];
                if operation.path.starts_with(SESSION_PATH) {
                    values.extend([json!([]), Value::Null]);
                }
                for value in values {
                    let body = body_with(operation, &path, value);
                    let answer = operation.send(clients.right(operation), Body::Json(body));
                    let text = answer.await.expect(400).text;
                    for part in ["this server does not have", &path.join(".")] {
                        assert!(text.contains(part), "{named}: {text}");
                    }
                }
                seen.insert(named);
            }
        }
    }
    for name in [
        "POST auth_config.sealed_credentials",
        "PATCH experimental.no_elicitation_support_fallback",
        "PATCH experimental.restrict_egress_to_service",
        "PATCH experimental.session_config_id",
        "PATCH hooks",
        "POST experimental.no_elicitation_support_fallback",
        "POST experimental.session_config_id",
        "POST hooks",
    ] {
        assert!(seen.contains(name), "{name}: {seen:?}");
    }
    for name in [" sealed_credentials", " egress_url"] {
        let is_seen = seen.iter().any(|seen| seen.ends_with(name));
        assert!(is_seen, "{name}: {seen:?}");
    }
}

#[tokio::test]
async fn instant_account_is_no_other_account() {
    let project = Host::shared().await.new_project().await;
    let toolkit = given::keyed().await;
    project.connect_with_key(toolkit, "amy").await;
    let execute = format!("/tools/execute/{}", guest::tool(toolkit));
    let named = json!({ "user_id": "amy", "connected_account_id": "instant_account" });
    let mut proxied = named.clone();
    (proxied["endpoint"], proxied["method"]) = (json!("/echo/x"), json!("GET"));
    for (path, body) in [(&*execute, named), ("/tools/execute/proxy", proxied)] {
        let problems = project.post(path, &body).await.expect(400).problems();
        let expected = "connected_account_id: instant_account: this server does not have it";
        assert!(problems[0].starts_with(expected), "{problems:?}");
    }
}

#[tokio::test]
async fn shared_connection_fields_precede_the_older_name() {
    let project = Host::shared().await.new_project().await;
    let both = json!({
        "shared_connection_fields": { "region": "northern-1" }, "shared_credentials": { "region": "southern-1" },
    });
    let config = given::key_config(&project, given::keyed().await, &both).await;
    let path = format!("/auth_configs/{config}");
    let region = async || {
        let read = project.get(&path).await.expect(200);
        assert_eq!(read["shared_connection_fields"], read["shared_credentials"]);
        read["shared_connection_fields"]["region"].clone()
    };
    assert_eq!(region().await, "nort...");
    let patch = json!({
        "type": "custom", "shared_connection_fields": { "region": "west" }, "shared_credentials": {},
    });
    project.patch(&path, &patch).await.expect(200);
    assert_eq!(region().await, "REDACTED");
    let removed = json!({ "type": "custom", "shared_connection_fields": { "region": null } });
    project.patch(&path, &removed).await.expect(200);
    assert_eq!(region().await, Value::Null);
}

#[tokio::test]
async fn zdr_is_the_setting_to_store_no_data() {
    let host = Host::shared().await;
    let path = "/org/project/config";
    let (_, project) = given::project(host, json!({ "zdr_enabled": true })).await;
    let setting = async || project.get(path).await.expect(200)["log_visibility_setting"].clone();
    assert_eq!(setting().await, "dont_store_data");
    let both = json!({ "zdr_enabled": true, "log_visibility_setting": "show_all" });
    let refused = project.patch(path, &both).await.expect(400).problems();
    assert!(
        refused[0].starts_with("zdr_enabled: contradicts"),
        "{refused:?}"
    );
    let other = json!({ "display_name": "Acme" });
    project.patch(path, &other).await.expect(200);
    assert_eq!(setting().await, "dont_store_data");
    let off = json!({ "zdr_enabled": false });
    project.patch(path, &off).await.expect(200);
    assert_eq!(setting().await, "show_all");
    let new = json!({ "name": unique(8), "config": both });
    let new = host.as_org().post("/org/owner/project/new", &new).await;
    new.expect(400);
}

#[tokio::test]
async fn no_account_is_connected_without_an_auth_config() {
    let project = Host::shared().await.new_project().await;
    for _ in 0..20 {
        let config = given::auth_config(&project).await;
        let body = given::account(&config, "amy", &harness::secret());
        let path = format!("/auth_configs/{config}");
        let (made, removed) = tokio::join!(
            project.post("/connected_accounts", &body),
            project.delete(&path)
        );
        removed.expect(200);
        match made.status {
            201 => assert!(
                made["deprecated"]["authConfigUuid"].is_string(),
                "{made:#?}"
            ),
            _ => drop(made.expect(404)),
        }
    }
}

#[tokio::test]
async fn deleted_auth_config_ends_attempt_at_the_provider() {
    let (project, oauth) = Oauth::in_new_project().await;
    let made = oauth.begin(&project, "https://app.example/done").await;
    let url = made["redirect_url"].as_str().unwrap();
    let back = oauth.issuer.visit(url).await;
    oauth.issuer.hold(true);
    let (landed, ()) = tokio::join!(open(&project, &back), async {
        oauth.issuer.wait_for("authorization_code", 1).await;
        let path = format!("/auth_configs/{}", oauth.config);
        project.delete(&path).await.expect(200);
        oauth.issuer.hold(false);
    });
    let location = landed.header("location");
    assert!(location.contains("error=auth_config_gone"), "{location}");
    let id = made["id"].as_str().unwrap();
    assert_eq!(status(&project, id).await, "FAILED");
}

#[tokio::test]
async fn accounts_are_listed_by_the_time_they_show() {
    let project = Host::shared().await.new_project().await;
    let config = given::auth_config(&project).await;
    let made = (0..40).map(|number| {
        let body = given::account(&config, &format!("user{number}"), &harness::secret());
        let project = project.clone();
        async move { drop(project.post("/connected_accounts", &body).await.expect(201)) }
    });
    join_all(made).await;
    let path = "/connected_accounts?order_by=updated_at&order_direction=asc&limit=40";
    let listed = project.get(path).await.expect(200);
    let items = listed["items"].as_array().unwrap().iter();
    let times: Vec<_> = items
        .map(|account| account["updated_at"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(times.len(), 40);
    assert!(times.is_sorted(), "{times:#?}");
}

#[tokio::test]
async fn refusal_of_provider_names_missing_scopes() {
    let (host, project) = Host::shared_with_project().await;
    let mut credentials = harness::Issuer::credentials();
    credentials["scopes"] = json!("read,other");
    let guest = Guest::strict_fetch();
    let oauth = Oauth::of_guest(host, &project, credentials, &guest, |slug, issuer| {
        let mut manifest = guest::manifest_with_scheme(slug, issuer.scheme());
        manifest["tools"][0]["scopes"] = json!(["read", "write", "admin"]);
        manifest
    })
    .await;
    oauth.connect(&project).await;
    let tool = guest::tool(&oauth.slug);
    oauth.execute(&project).await.data();
    let explained = "the account was connected without `write`, `admin`, which this tool needs: connect it again";
    let at = |status: u16| json!({ "url": format!("https://api.example.com/status/{}/{status}", unique(8)) });
    for status in [401, 403] {
        let failed = project.execute(&tool, at(status)).await.expect(200);
        let error = failed["error"].as_str().unwrap();
        assert!(error.ends_with(explained), "{error}");
        let log = project.log(&failed["log_id"]).await.text;
        assert!(log.contains(explained), "{log}");
    }
    let other = project.execute(&tool, at(404)).await.expect(200).text;
    assert!(!other.contains("connected without"), "{other}");
    let body = json!({ "name": "All tools", "auth_config_ids": [oauth.config] });
    let url = format!(
        "{}?user_id=default",
        given::mcp_server(&project, &body).await
    );
    let params = json!({ "name": tool, "arguments": at(403) });
    let called = result(&request(&project, &url, "tools/call", params, &[]).await);
    assert!(failure(&called).contains(explained), "{called:#}");
}
