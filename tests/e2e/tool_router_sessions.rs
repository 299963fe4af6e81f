//! Tool router sessions: creation, change, history and deletion, and the toolkits, tools and links of
//! a session.

use harness::{Answer, Client, Guest, Host, Postgres, guest, host::Setup, wait_until};
use serde_json::{Value, json};

use crate::{given, mounts::upload};

pub(crate) const SESSION_PATH: &str = "/tool_router/session";

/// Creates a session and returns its id.
pub(crate) async fn create(project: &Client, config: Value) -> String {
    let created = project.post(SESSION_PATH, &config).await.expect(201);
    created["session_id"].as_str().unwrap().to_owned()
}

/// Creates a session of `amy` in a new project of the shared server. Returns the project and the
/// session.
pub(crate) async fn amys_session() -> (Client, String) {
    let project = Host::shared().await.new_project().await;
    let session = create(&project, json!({ "user_id": "amy" })).await;
    (project, session)
}

/// Runs a meta tool in a session.
pub(crate) async fn execute_meta(
    project: &Client,
    session: &str,
    slug: &str,
    arguments: Value,
) -> Answer {
    let path = format!("{SESSION_PATH}/{session}/execute_meta");
    let body = json!({ "slug": slug, "arguments": arguments });
    project.post(&path, &body).await
}

/// Publishes a toolkit whose accounts have a key and whose tool returns its arguments.
pub(crate) async fn keyed(host: &Host) -> String {
    let (toolkit, manifest) = given::manifest_with_key();
    host.publish(Guest::echo().component(), &manifest).await;
    toolkit
}

/// Creates a project of the shared server and publishes a toolkit as [`keyed`] does.
pub(crate) async fn with_keyed() -> (Client, String) {
    let host = Host::shared().await;
    (host.new_project().await, keyed(host).await)
}

fn error(answer: &Answer) -> (u64, &str) {
    let error = &answer["error"];
    let code = error["code"].as_u64().unwrap();
    (code, given::text(&error["slug"]))
}

#[tokio::test]
async fn session_echoes_its_configuration() {
    let (project, toolkit) = with_keyed().await;
    let account = project.connect_with_key(&toolkit, "amy").await;
    let body = json!({
        "user_id": "amy",
        "toolkits": { "enable": [toolkit.to_uppercase()] },
        "tools": { &toolkit: { "tags": { "enable": ["readOnlyHint"], "disable": ["destructiveHint"] } } },
        "tags": ["readOnlyHint"],
        "connected_accounts": { &toolkit: account },
        "manage_connections": { "callback_url": "https://app.example.com/done", "enable_wait_for_connections": true },
        "workbench": { "enable": false, "enable_proxy_execution": false },
        "search": { "enable": false },
    });
    let older = project.post(SESSION_PATH, &body).await.expect(201);
    let id = older["session_id"].as_str().unwrap();
    assert!(id.starts_with("trs_"), "{id}");
    assert_eq!(older["mcp"]["type"], "http");
    let url = older["mcp"]["url"].as_str().unwrap();
    assert!(url.ends_with(&format!("/tool_router/{id}/mcp")), "{url}");
    assert_eq!(older["config_version"], 1);
    let config = &older["config"];
    assert_eq!(config["toolkits"], json!({ "enabled": [toolkit] }));
    let tags = json!({ "enabled": ["readOnlyHint"], "disabled": ["destructiveHint"] });
    assert_eq!(config["tools"][&toolkit], json!({ "tags": tags }));
    let tags = json!({ "enabled": ["readOnlyHint"], "disabled": [] });
    assert_eq!(config["tags"], tags);
    assert_eq!(config["connected_accounts"], json!({ &toolkit: account }));
    let all = json!({ &toolkit: [account] });
    assert_eq!(config["all_connected_accounts"], all);
    assert_eq!(config["manage_connections"]["enabled"], true);
    assert_eq!(config["workbench"]["proxy_execution_enabled"], false);
    let tools = json!([
        "SERVICE_GET_TOOL_SCHEMAS",
        "SERVICE_MULTI_EXECUTE_TOOL",
        "SERVICE_MANAGE_CONNECTIONS",
        "SERVICE_WAIT_FOR_CONNECTIONS",
        "SERVICE_UPSERT_RECIPE",
        "SERVICE_GET_RECIPE",
    ]);
    assert_eq!(older["tool_router_tools"], tools);
    let prompt = older["experimental"]["assistive_prompt"].as_str().unwrap();
    assert!(prompt.contains("SERVICE_MULTI_EXECUTE_TOOL"), "{prompt}");
    assert!(!prompt.contains("SERVICE_SEARCH_TOOLS"), "{prompt}");
    let newer = project.clone().with_newer_prefix();
    let newer = newer.get(&format!("{SESSION_PATH}/{id}")).await.expect(200);
    assert_eq!(newer["config"]["connected_accounts"], all);
    assert_eq!(newer["config"]["all_connected_accounts"], Value::Null);
}

#[tokio::test]
async fn all_problems_of_a_configuration_are_named() {
    let (project, kit) = with_keyed().await;
    let values = json!({
        "user_id": " ", "toolkits": { "enable": [], "disable": [] }, "auth_configs": { &kit: "x" },
        "connected_accounts": { &kit: ["ca_AAAAAAAAAAAA", "y"] },
    });
    let not_an_id = "the text is not the id of";
    let ids = [
        format!("auth_configs.{kit}: {not_an_id} an auth config: `ac_` and"),
        format!("connected_accounts.{kit}[1]: {not_an_id} a connected account: `ca_`"),
    ];
    let echo = given::shared_echo().await;
    let foreign =
        format!("tools.{kit}.enable[0]: there is no {echo} in this toolkit, but in toolkit ");
    let slugs = json!({
        "user_id": "amy", "toolkits": { "enable": ["nonesuch", "Bearer secret"] },
        "tags": { "enable": ["readOnlyHint", "pass word"] }, "tools": { &kit: { "enable": [echo] } },
        "multi_account": { "max_accounts_per_toolkit": 1 }, "experimental": { "permissions": {
            "default": "allow_all", "overrides": {
                "NONESUCH": "always_deny", "SERVICE_REMOTE_WORKBENCH": "always_deny",
            },
        } },
    });
    let unknown = json!({ "user_id": 5, "zzzzzzzz": 1 });
    for (body, expected) in [
        (
            values,
            &[
                "user_id: is required",
                "toolkits: cannot have both",
                &ids[0],
                &ids[1],
            ][..],
        ),
        (
            slugs,
            &[
                "toolkits.enable[0]: there is no nonesuch",
                "toolkits.enable[1]: there is no (not a slug of at most 80 letters",
                &foreign,
                "experimental.permissions.overrides.NONESUCH: there is no NONESUCH",
                "experimental.permissions.overrides.SERVICE_REMOTE_WORKBENCH: is a meta tool, which has no permission: `workbench.enable`",
                "tags.enable[1]: must be one of readOnlyHint",
                "multi_account.max_accounts_per_toolkit: must be 2 to 10",
            ],
        ),
        (
            unknown,
            &[
                "user_id: expected a string, got a number",
                "unknown body member `zzzzzzzz` is not allowed",
            ],
        ),
    ] {
        let refused = project.post(SESSION_PATH, &body).await.expect(400);
        let problems = refused.problems();
        assert_eq!(problems.len(), expected.len(), "{problems:#?}");
        for (problem, start) in problems.iter().zip(expected) {
            assert!(problem.starts_with(start), "{problem}");
        }
    }
}

#[tokio::test]
async fn message_lists_unknown_slugs_with_similar_ones() {
    let project = Host::shared().await.new_project().await;
    let kit = given::keyed().await;
    let misspelled = &kit[1..];
    let slugs = json!({ "enable": [misspelled, "zzzzzzzzzzzzzzzz"] });
    let body = json!({ "user_id": "amy", "toolkits": slugs });
    let refused = project.post(SESSION_PATH, &body).await.expect(400);
    let listed = format!("{misspelled} (did you mean `{kit}`?), zzzzzzzzzzzzzzzz");
    given::assert_contains(&refused["error"]["message"], &listed);
    assert_eq!(refused.problems().len(), 2);
}

#[tokio::test]
async fn unusable_configurations_are_refused() {
    let (host, project) = Host::shared_with_project().await;
    let toolkit = keyed(host).await;
    let other = keyed(host).await;
    let bobs = project.connect_with_key(&toolkit, "bob").await;
    let config = project.get("/auth_configs").await.expect(200);
    let config = config["items"][0]["id"].clone();
    let many = vec![bobs.clone(); 11];
    let large = vec![toolkit.clone(); 20_000];
    let cases = json!([
        [4305, "ToolRouterV2_InvalidToolkitSlugs", { "toolkits": { "enable": ["nonesuch"] } }],
        [4305, "ToolRouterV2_InvalidToolkitSlugs", { "tools": { "nonesuch": { "enable": [] } } }],
        [4305, "ToolRouterV2_InvalidToolkitSlugs", { "toolkits": { "require_approval": ["nonesuch"] } }],
        [4306, "ToolRouterV2_InvalidToolSlugs", { "tools": { &toolkit: { "enable": [guest::tool(&other)] } } }],
        [4306, "ToolRouterV2_InvalidToolSlugs", { "preload": { "tools": ["NONESUCH"] } }],
        [4306, "ToolRouterV2_InvalidToolSlugs", { "tools": { &toolkit: { "require_approval": ["NONESUCH"] } } }],
        [4306, "ToolRouterV2_InvalidToolSlugs", { "experimental": { "permissions": { "default": "allow_all", "overrides": { "NONESUCH": "always_deny" } } } }],
        [4307, "ToolRouterV2_InvalidAuthConfigIds", { "auth_configs": { &toolkit: "ac_AAAAAAAAAAAA" } }],
        [4307, "ToolRouterV2_InvalidAuthConfigIds", { "auth_configs": { &other: config } }],
        [4309, "ToolRouterV2_InvalidConnectedAccountIds", { "connected_accounts": { &toolkit: bobs } }],
        [4309, "ToolRouterV2_InvalidConnectedAccountIds", { "connected_accounts": { &toolkit: ["ca_AAAAAAAAAAAA"] } }],
        [4300, "ToolRouterV2_BadRequest", { "connected_accounts": { &toolkit: many } }],
        [4300, "ToolRouterV2_BadRequest", { "toolkits": { "enable": [], "disable": [] } }],
        [4300, "ToolRouterV2_BadRequest", { "toolkits": { "disable": large } }],
        [4300, "ToolRouterV2_BadRequest", { "tools": { &toolkit: { "enable": [], "tags": [] } } }],
        [4300, "ToolRouterV2_BadRequest", { "tools": { &toolkit: { "enable": [] }, toolkit.to_uppercase(): { "disable": [] } } }],
        [4300, "ToolRouterV2_BadRequest", { "tags": ["important"] }],
        [4300, "ToolRouterV2_BadRequest", { "manage_connections": { "callback_url": "ftp://x" } }],
        [4300, "ToolRouterV2_BadRequest", { "workbench": { "auto_offload_threshold": 0 } }],
        [4300, "ToolRouterV2_BadRequest", { "workbench": { "sandbox_size": "huge" } }],
        [4300, "ToolRouterV2_BadRequest", { "multi_account": { "max_accounts_per_toolkit": 1 } }],
        [4300, "ToolRouterV2_BadRequest", { "user_id": " " }],
        [4300, "ToolRouterV2_BadRequest", { "tools": { &toolkit: { "tags": { "require_approval": ["important"] } } } }],
        [4300, "ToolRouterV2_BadRequest", { "tags": { "require_approval": ["important"] } }],
    ]);
    for case in cases.as_array().unwrap() {
        let body = given::merged(json!({ "user_id": "amy" }), &case[2]);
        let refused = project.post(SESSION_PATH, &body).await.expect(400);
        let (code, slug) = error(&refused);
        assert_eq!(json!([code, slug, case[2]]), *case, "{refused:#?}");
    }
    for path in [SESSION_PATH, "/labs/tool_router/session"] {
        let refused = project.post(path, &json!({})).await.expect(400);
        assert_eq!(refused.problems(), ["user_id: is required"], "{path}");
    }
    let misspelled = json!({ "user_id": "amy", "toolkits": { "allow": [toolkit] } });
    project.post(SESSION_PATH, &misspelled).await.expect(400);
    for permissions in [
        json!({ "default": "ask_sometimes" }),
        json!({ "default": "allow_all", "overrides": { &toolkit: "never" } }),
        json!({ "default": "allow_all", "override": { &toolkit: "always_deny" } }),
        json!({ "overrides": { &toolkit: "always_deny" } }),
    ] {
        let body = json!({ "user_id": "amy", "experimental": { "permissions": permissions } });
        project.post(SESSION_PATH, &body).await.expect(400);
    }
}

#[tokio::test]
async fn patch_replaces_parts_and_raises_the_version() {
    let (project, toolkit) = with_keyed().await;
    let session = json!({ "user_id": "amy", "tags": ["readOnlyHint"] });
    let path = format!("{SESSION_PATH}/{}", create(&project, session).await);
    let change = json!({ "toolkits": { "disable": [toolkit] }, "workbench": { "enable": false } });
    let second = project.patch(&path, &change).await.expect(200);
    assert_eq!(second["config_version"], 2);
    assert_eq!(second["config"]["tags"]["enabled"], json!(["readOnlyHint"]));
    let disabled = json!({ "disabled": [toolkit] });
    assert_eq!(second["config"]["toolkits"], disabled);
    let restored =
        json!({ "toolkits": null, "tags": { "disable": ["destructiveHint"] }, "workbench": null });
    let third = project.patch(&path, &restored).await.expect(200);
    assert_eq!(third["config"]["toolkits"], Value::Null);
    assert_eq!(third["config"]["tags"]["enabled"], json!([]));
    assert_eq!(third["config"]["workbench"]["enable"], true);
    let refused = json!({ "toolkits": { "enable": ["nonesuch"] } });
    project.patch(&path, &refused).await.expect(400);

    let history = format!("{path}/config_history");
    let first_page = project.get(&format!("{history}?limit=2")).await.expect(200);
    assert_eq!(first_page["total_items"], 3);
    let versions = |page: &Answer| -> Value {
        let items = page["items"].as_array().unwrap().iter();
        let shown = items.map(|item| json!([item["version"], item["is_current"]]));
        shown.collect()
    };
    assert_eq!(versions(&first_page), json!([[3, true], [2, false]]));
    let fourth = json!({ "search": { "enable": true } });
    project.patch(&path, &fourth).await.expect(200);
    let cursor = first_page["next_cursor"].as_str().unwrap();
    let last_page = format!("{history}?cursor={cursor}");
    let last_page = project.get(&last_page).await.expect(200);
    assert_eq!(versions(&last_page), json!([[1, false]]));
    let first = &last_page["items"][0]["config"];
    assert_eq!(first["tags"]["enabled"], json!(["readOnlyHint"]));
}

#[tokio::test]
async fn paused_account_prevents_no_other_change() {
    let (project, toolkit) = with_keyed().await;
    let account = project.connect_with_key(&toolkit, "amy").await;
    let pinned = json!({ "user_id": "amy", "connected_accounts": { &toolkit: account } });
    let path = format!("{SESSION_PATH}/{}", create(&project, pinned.clone()).await);
    let status = format!("/connected_accounts/{account}/status");
    let paused = json!({ "enabled": false });
    project.patch(&status, &paused).await.expect(200);
    let change = json!({ "search": { "enable": false } });
    project.patch(&path, &change).await.expect(200);
    let call = json!({ "tool_slug": guest::tool(&toolkit) });
    let refused = project.post(&format!("{path}/execute"), &call).await;
    refused.expect(422);
    let refused = project.post(SESSION_PATH, &pinned).await.expect(400);
    assert_eq!(error(&refused).0, 4309);
}

#[tokio::test]
async fn dropped_tool_prevents_no_other_change() {
    let (host, project) = Host::shared_with_project().await;
    let toolkit = given::slug();
    let dropped = format!("{}_OLD", toolkit.to_uppercase());
    let mut manifest = guest::manifest(&toolkit);
    let mut tool = manifest["tools"][0].clone();
    tool["slug"] = json!(dropped);
    tool["name"] = json!("Old");
    manifest["tools"].as_array_mut().unwrap().push(tool);
    host.publish(Guest::echo().component(), &manifest).await;
    let config = json!({
        "user_id": "amy",
        "tools": { &toolkit: { "disable": [dropped], "require_approval": [dropped] } },
        "preload": { "tools": [dropped] },
        "experimental": { "permissions": {
            "default": "allow_all", "overrides": { &dropped: "always_deny" } } },
    });
    let path = format!("{SESSION_PATH}/{}", create(&project, config.clone()).await);
    manifest["version"] = json!("20260102_00");
    manifest["tools"].as_array_mut().unwrap().pop();
    host.publish(Guest::echo().component(), &manifest).await;

    let change = json!({ "workbench": { "enable": false } });
    let changed = project.patch(&path, &change).await.expect(200);
    let kept = json!({ "disabled": [dropped], "require_approval": [dropped] });
    assert_eq!(changed["config"]["tools"][&toolkit], kept);
    assert_eq!(changed["config"]["preload"]["tools"], json!([dropped]));
    let more = json!({ "tools": { &toolkit: { "disable": [dropped, "NONESUCH"] } } });
    let refused = project.patch(&path, &more).await.expect(400);
    assert_eq!(error(&refused).0, 4306);
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.ends_with(": NONESUCH"), "{message}");
    let refused = project.post(SESSION_PATH, &config).await.expect(400);
    assert_eq!(error(&refused).0, 4306);
}

#[tokio::test]
async fn history_keeps_a_hundred_versions() {
    let (project, id) = amys_session().await;
    let path = format!("{SESSION_PATH}/{id}");
    for number in 0..101 {
        let change = json!({ "search": { "enable": number % 2 == 1 } });
        project.patch(&path, &change).await.expect(200);
    }
    let history = format!("{path}/config_history?limit=1000");
    let history = project.get(&history).await.expect(200);
    let items = history["items"].as_array().unwrap();
    assert_eq!(items.len(), 100);
    assert_eq!(items[0]["version"], 102);
    assert_eq!(items[99]["version"], 3);
}

#[tokio::test]
async fn deleted_session_is_gone() {
    let (project, id) = amys_session().await;
    let path = format!("{SESSION_PATH}/{id}");
    let removed = project.delete(&path).await.expect(200);
    assert_eq!(removed.json, json!({ "session_id": id, "deleted": true }));
    let execute = json!({ "tool_slug": given::shared_echo().await });
    for answer in [
        project.get(&path).await,
        project.patch(&path, &json!({})).await,
        project.delete(&path).await,
        project.get(&format!("{path}/tools")).await,
        project.get(&format!("{path}/config_history")).await,
        project.post(&format!("{path}/execute"), &execute).await,
    ] {
        let answer = answer.expect(404);
        assert_eq!(error(&answer), (4301, "ToolRouterV2_SessionNotFound"));
    }
    let malformed = project.get(&format!("{SESSION_PATH}/session_1")).await;
    malformed.expect(400);
}

/// The times of the last use are changed in the database, because sessions are kept for at least a day.
#[tokio::test]
async fn unused_sessions_are_erased_with_their_records() {
    const KEEP_DAYS: i64 = 2;
    let setup = Setup::embedded().on(Postgres::database_with_tables());
    let setup = setup.with("sessions.keep_days", KEEP_DAYS.to_string());
    let host = setup.start().await;
    let project = host.as_project();
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let session = create(&project, json!({ "user_id": "amy" })).await;
        upload(&project, &session, "a.txt", b"a").await;
        sessions.push(session);
    }
    let (setup, _) = host.terminate().await;
    let count = |setup: &Setup, table: &str| {
        let count = format!("select count(*) from {table}");
        setup.database().say(&count)
    };
    // The use of a session is noted once a day.
    for (session, days) in sessions.iter().zip([KEEP_DAYS + 2, KEEP_DAYS]) {
        setup.database().say(&format!(
            "update tool_router_sessions set updated_at = updated_at - {days} * 86400000::bigint
             where id = '{session}'"
        ));
    }
    // Nothing is erased before the setting has been on for as long.
    let ran = "leases where id = 'unused_sessions' and (body->>'ran')::bigint > 0";
    let forget = "update leases set body = (body::jsonb - 'erases_since' || '{\"ran\": 0}')::json where id = 'unused_sessions'";
    setup.database().say(forget);
    let host = setup.start().await;
    let has_run = async || count(host.setup(), ran) == ["1"];
    wait_until("the job has run", has_run).await;
    assert_eq!(count(host.setup(), "tool_router_sessions"), ["2"]);
    let (setup, _) = host.terminate().await;
    setup.database().say(
        "update leases set body = jsonb_set(body::jsonb, '{erases_since}', '1')::json where id = 'unused_sessions'",
    );
    let host = setup.start().await;
    let project = host.as_project();
    let tables = [
        "tool_router_sessions",
        "tool_router_configs",
        "session_files",
    ];
    wait_until("the older one is erased", async || {
        tables.map(|table| count(host.setup(), table)) == [["1"]; 3]
    })
    .await;
    let path = |session: &str| format!("{SESSION_PATH}/{session}");
    project.get(&path(&sessions[0])).await.expect(404);
    project.get(&path(&sessions[1])).await.expect(200);
    let toolkits = format!("{}/toolkits", path(&sessions[1]));
    project.get(&toolkits).await.expect(200);
    let used = "tool_router_sessions where updated_at > extract(epoch from now()) * 1000 - 3600000";
    assert_eq!(count(host.setup(), used), ["1"], "its use is noted");
}

#[tokio::test]
async fn attach_repeats_tools_of_the_client() {
    let (project, id) = amys_session().await;
    let session = format!("{SESSION_PATH}/{id}");
    let attach = format!("{session}/attach");
    let tool = |slug: &str| json!({ "slug": slug, "name": "Grep", "description": "Searches files.", "input_schema": { "type": "object" } });
    let mut preloaded = tool("grep-files");
    preloaded["preload"] = json!(true);
    let toolkit = json!({ "slug": "local", "name": "Local", "description": "Local files.", "tools": [tool("read")] });
    let body =
        json!({ "experimental": { "custom_tools": [preloaded], "custom_toolkits": [toolkit] } });
    let attached = project.post(&attach, &body).await.expect(200);
    let custom = &attached["experimental"];
    assert_eq!(custom["custom_tools"][0]["slug"], "LOCAL_GREP-FILES");
    assert_eq!(custom["custom_tools"][0]["original_slug"], "grep-files");
    let read = &custom["custom_toolkits"][0]["tools"][0];
    assert_eq!(read["slug"], "LOCAL_LOCAL_READ");
    let tools = attached["tool_router_tools"].as_array().unwrap();
    assert!(tools.contains(&json!("LOCAL_GREP-FILES")), "{tools:?}");
    let read = project.get(&session).await.expect(200);
    assert_eq!(read["experimental"]["custom_tools"], Value::Null);
    let run = json!({ "tool_slug": "LOCAL_GREP-FILES", "arguments": {} });
    let refused = project.post(&format!("{session}/execute"), &run).await;
    assert_eq!(error(&refused.expect(400)).0, 4300);
    for tools in [
        vec![tool("a b")],
        vec![tool("a"), tool("a")],
        (0..501).map(|number| tool(&format!("t{number}"))).collect(),
    ] {
        let body = json!({ "experimental": { "custom_tools": tools } });
        let refused = project.post(&attach, &body).await.expect(400);
        assert_eq!(error(&refused).0, 4300);
    }
}

#[tokio::test]
async fn tools_list_meta_and_preloaded_tools() {
    let (project, toolkit) = with_keyed().await;
    let tool = guest::tool(&toolkit);
    let other = given::shared_echo().await;
    let config = json!({
        "user_id": "amy", "toolkits": { "enable": [toolkit] },
        "preload": { "tools": [tool, other, tool.to_lowercase()] },
    });
    let id = create(&project, config).await;
    let tools = format!("{SESSION_PATH}/{id}/tools");
    let listed = project.get(&format!("{tools}?limit=9999")).await;
    let listed = listed.expect(200);
    let items = listed["items"].as_array().unwrap();
    let slugs = items.iter().map(|item| given::text(&item["slug"]));
    let slugs: Vec<_> = slugs.collect();
    assert_eq!(slugs[0], "SERVICE_SEARCH_TOOLS");
    assert_eq!(slugs[slugs.len() - 1], tool);
    assert_eq!(slugs.iter().filter(|slug| **slug == tool).count(), 1);
    assert!(!slugs.contains(&other), "it is not permitted: {slugs:?}");
    assert_eq!(items[0]["toolkit"]["slug"], "SERVICE");
    assert_eq!(items[0]["input_parameters"]["type"], "object");
    assert_eq!(listed["total_items"], items.len());
    let page = project.get(&format!("{tools}?limit=1")).await.expect(200);
    assert_eq!(page["items"].as_array().unwrap().len(), 1);
    let cursor = page["next_cursor"].as_str().unwrap();
    let page = project.get(&format!("{tools}?cursor={cursor}")).await;
    assert_eq!(page.expect(200)["items"][0]["slug"], slugs[1]);
    let all = json!({ "user_id": "amy", "toolkits": { "enable": [toolkit] }, "preload": { "tools": "all" } });
    let created = project.post(SESSION_PATH, &all).await.expect(201);
    let tools = created["tool_router_tools"].as_array().unwrap();
    assert_eq!(tools.last(), Some(&json!(tool)));
}

#[tokio::test]
async fn toolkits_show_the_accounts_in_use() {
    let (host, project) = Host::shared_with_project().await;
    let toolkit = keyed(host).await;
    let other = keyed(host).await;
    let session = json!({ "user_id": "amy", "toolkits": { "enable": [toolkit, other] } });
    let id = create(&project, session).await;
    let path = format!("{SESSION_PATH}/{id}/toolkits");
    // By slug, whether each is enabled, and its account.
    let list = async |query: &str| -> Value {
        let listed = project.get(&format!("{path}?{query}")).await.expect(200);
        let items = listed["items"].as_array().unwrap().iter();
        let shown = items.map(|item| {
            let account = &item["connected_account"]["id"];
            let slug = given::string(&item["slug"]);
            (slug, json!([item["enabled"], account]))
        });
        shown.collect()
    };
    let connected = "is_connected=true";
    project.connect_with_key(&toolkit, "bob").await;
    assert_eq!(list(connected).await, json!({}));
    let older = project.connect_with_key(&toolkit, "amy").await;
    let newer = project.connect_with_key(&toolkit, "amy").await;
    assert_eq!(list(connected).await, json!({ &toolkit: [true, newer] }));
    let both = json!({ &toolkit: [true, newer], &other: [true, null] });
    assert_eq!(list("").await, both);
    let foreign = keyed(host).await;
    let named = list(&format!("toolkits={foreign}")).await;
    assert_eq!(named, json!({ &foreign: [false, null] }));
    let pinned = json!({ "connected_accounts": { &toolkit: [older] } });
    let session = format!("{SESSION_PATH}/{id}");
    project.patch(&session, &pinned).await.expect(200);
    assert_eq!(list(connected).await, json!({ &toolkit: [true, older] }));
}

#[tokio::test]
async fn link_connects_an_account_of_the_user() {
    let (host, project) = Host::shared_with_project().await;
    let toolkit = keyed(host).await;
    let excluded = keyed(host).await;
    let free = given::slug();
    let manifest = guest::manifest(&free);
    host.publish(Guest::echo().component(), &manifest).await;
    let session = json!({ "user_id": "amy", "toolkits": { "disable": [excluded] } });
    let id = create(&project, session).await;
    let path = format!("{SESSION_PATH}/{id}/link");
    for (toolkit, status, code) in [
        (&*toolkit, 400, 4308),
        (&*free, 400, 4326),
        (&*excluded, 403, 4310),
        ("nonesuch", 400, 4305),
    ] {
        let refused = project.post(&path, &json!({ "toolkit": toolkit })).await;
        assert_eq!(error(&refused.expect(status)).0, code, "{toolkit}");
    }
    project.connect_with_key(&toolkit, "bob").await;
    let body = json!({ "toolkit": toolkit.to_uppercase(), "callback_url": "https://app.example.com/done" });
    let linked = project.post(&path, &body).await.expect(201);
    let token = given::text(&linked["link_token"]);
    given::assert_contains(&linked["redirect_url"], token);
    let account = given::text(&linked["connected_account_id"]);
    let account = project.account(account).await;
    assert_eq!(account["user_id"], "amy");
    assert_eq!(account["toolkit"]["slug"], *toolkit);
}

#[tokio::test]
async fn older_clients_create_labs_sessions() {
    let (project, toolkit) = with_keyed().await;
    let body = json!({
        "user_id": "amy",
        "config": { "manually_manage_connections": true, "toolkits": [{ "toolkit": toolkit }] },
    });
    let created = project.post("/labs/tool_router/session", &body).await;
    let created = created.expect(201);
    let id = created["session_id"].as_str().unwrap();
    for url in ["chat_session_mcp_url", "tool_router_instance_mcp_url"] {
        let url = created[url].as_str().unwrap();
        assert!(url.ends_with(&format!("/tool_router/{id}/mcp")), "{url}");
    }
    let session = project.get(&format!("{SESSION_PATH}/{id}")).await;
    let session = session.expect(200);
    let enabled = json!({ "enabled": [toolkit] });
    assert_eq!(session["config"]["toolkits"], enabled);
    assert_eq!(session["config"]["manage_connections"]["enabled"], false);
}
