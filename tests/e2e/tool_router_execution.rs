//! Executions in tool router sessions: the scope of a session, the choice of the account, meta tools
//! and proxy requests.

use harness::{Answer, Client, FakeApp, Guest, Host, client::Body, guest, unique};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    given,
    tool_router_sessions::{SESSION_PATH, amys_session, create, with_keyed},
};

/// Publishes a toolkit with a read-only tool `LIST`, a destructive tool `SEND` and a tool `DRAFT`,
/// which return their arguments without an account.
pub(crate) async fn mail(host: &Host) -> String {
    let (toolkit, mut manifest) = given::manifest();
    let tool = |name: &str, hints: Value| {
        json!({
            "slug": format!("{}_{name}", toolkit.to_uppercase()), "name": name, "description": "Returns its arguments.",
            "input": { "type": "object" }, "output": { "type": "object" }, "hints": hints, "no_auth": true,
        })
    };
    manifest["tools"] = json!([
        tool("LIST", json!({ "read_only": true, "idempotent": true })),
        tool("SEND", json!({ "destructive": true })),
        tool("DRAFT", json!({})),
    ]);
    host.publish(Guest::echo().component(), &manifest).await;
    toolkit
}

/// Creates a project of the shared server and publishes a toolkit as [`mail`] does.
pub(crate) async fn with_mail() -> (Client, String) {
    let host = Host::shared().await;
    (host.new_project().await, mail(host).await)
}

pub(crate) async fn execute(project: &Client, session: &str, body: Value) -> Answer {
    let path = format!("{SESSION_PATH}/{session}/execute");
    project.post(&path, &body).await
}

/// Returns the id of the account that an execution used.
async fn account_of(project: &Client, executed: &Answer) -> Value {
    let log = project.log(&executed["log_id"]).await;
    log["metadata"]["connected_account_id"].clone()
}

#[tokio::test]
async fn session_uses_accounts_of_its_user() {
    let (project, toolkit) = with_keyed().await;
    let tool = guest::tool(&toolkit);
    let call =
        |account: Option<&str>| json!({ "tool_slug": tool, "arguments": {}, "account": account });
    project.connect_with_key(&toolkit, "bob").await;
    let session = create(&project, json!({ "user_id": "amy" })).await;
    let missing = execute(&project, &session, call(None)).await.expect(400);
    assert_eq!(missing["error"]["code"], 4302);
    assert_eq!(missing["error"]["slug"], "ToolRouterV2_NoActiveConnection");
    let older = project.connect_with_key(&toolkit, "amy").await;
    let newer = project.connect_with_key(&toolkit, "amy").await;
    let alias = json!({ "alias": "work" });
    let path = format!("/connected_accounts/{older}");
    project.patch(&path, &alias).await.expect(200);
    for (named, used) in [
        (None, &newer),
        (Some(&*older), &older),
        (Some("work"), &older),
    ] {
        let ran = execute(&project, &session, call(named)).await.expect(200);
        assert_eq!(account_of(&project, &ran).await, *used, "{named:?}");
    }
    let unknown = execute(&project, &session, call(Some("home"))).await;
    assert_eq!(unknown.expect(400)["error"]["code"], 4300);

    let config = project.get(&path).await.expect(200)["auth_config"]["id"].clone();
    for part in [
        json!({ "connected_accounts": { &toolkit: [older] } }),
        json!({ "auth_configs": { &toolkit: config } }),
    ] {
        let mut body = part;
        body["user_id"] = json!("amy");
        let session = create(&project, body).await;
        let ran = execute(&project, &session, call(None)).await.expect(200);
        assert_eq!(account_of(&project, &ran).await, json!(older));
        let refused = execute(&project, &session, call(Some(&newer))).await;
        assert_eq!(refused.expect(400)["error"]["code"], 4300);
    }
    for several in [
        json!({ "enable": true, "require_explicit_selection": true }),
        json!({ "require_explicit_selection": true }),
    ] {
        let several = json!({ "user_id": "amy", "multi_account": several });
        let session = create(&project, several).await;
        execute(&project, &session, call(None)).await.expect(400);
        let ran = execute(&project, &session, call(Some(&newer))).await;
        ran.expect(200);
    }
}

#[tokio::test]
async fn auth_configs_kept_from_sessions_are_not_used() {
    let (project, toolkit) = with_keyed().await;
    let account = project.connect_with_key(&toolkit, "amy").await;
    let account = project.account(&account).await;
    let config = given::text(&account["auth_config"]["id"]);
    let change = json!({ "type": "custom", "is_enabled_for_tool_router": false });
    let path = format!("/auth_configs/{config}");
    project.patch(&path, &change).await.expect(200);
    let session = create(&project, json!({ "user_id": "amy" })).await;
    let call = json!({ "tool_slug": guest::tool(&toolkit), "arguments": {} });
    let missing = execute(&project, &session, call).await.expect(400);
    assert_eq!(missing["error"]["code"], 4302);
    let link = format!("{SESSION_PATH}/{session}/link");
    let refused = project.post(&link, &json!({ "toolkit": toolkit })).await;
    assert_eq!(refused.expect(400)["error"]["code"], 4308);
    let named = json!({ "user_id": "amy", "auth_configs": { &toolkit: config } });
    let refused = project.post(SESSION_PATH, &named).await.expect(400);
    assert_eq!(refused["error"]["code"], 4307);
}

#[tokio::test]
async fn naming_an_account_respects_its_auth_config() {
    let (project, toolkit) = with_keyed().await;
    let account = project.connect_with_key(&toolkit, "amy").await;
    let path = format!("/connected_accounts/{account}");
    let alias = json!({ "alias": "work" });
    project.patch(&path, &alias).await.expect(200);
    let read = project.account(&account).await;
    let config = format!("/auth_configs/{}", given::text(&read["auth_config"]["id"]));
    let free = create(&project, json!({ "user_id": "amy" })).await;
    let pinned = json!({ "user_id": "amy", "connected_accounts": { &toolkit: account } });
    let pinned = create(&project, pinned).await;
    for in_sessions in [true, false] {
        let change = json!({ "type": "custom", "is_enabled_for_tool_router": in_sessions });
        project.patch(&config, &change).await.expect(200);
        for named in [&*account, "work"] {
            let tool = guest::tool(&toolkit);
            let call = json!({ "tool_slug": tool, "arguments": {}, "account": named });
            let ran = execute(&project, &free, call.clone()).await;
            if in_sessions {
                ran.expect(200);
            } else {
                assert_eq!(ran.expect(400)["error"]["code"], 4300, "{named}");
            }
            execute(&project, &pinned, call).await.expect(200);
        }
    }
}

#[tokio::test]
async fn logs_are_found_by_session() {
    let (project, toolkit) = with_mail().await;
    let tool = format!("{}_LIST", toolkit.to_uppercase());
    let session = create(&project, json!({ "user_id": "amy" })).await;
    let other = create(&project, json!({ "user_id": "amy" })).await;
    let call = json!({ "tool_slug": tool, "arguments": { "word": "hi" } });
    execute(&project, &other, call.clone()).await.expect(200);
    let blank = json!({ "tool_slug": format!(" {tool} "), "arguments": { "word": "hi" } });
    let ran = execute(&project, &session, blank).await.expect(200);
    let several = json!({ "tools": [call], "sync_response_to_workbench": false });
    let several = json!({ "tool_slug": "SERVICE_MULTI_EXECUTE_TOOL", "arguments": several });
    let several = execute(&project, &session, several).await.expect(200);
    let filter = json!({ "field": "session_id", "operator": "==", "value": session });
    let filters = json!({ "filters": [filter] });
    let found = project.post("/logs/tool_execution", &filters).await;
    let found = found.expect(200);
    let logs = found["logs"].as_array().unwrap().iter();
    let slugs = logs.map(|log| given::text(&log["metadata"]["tool_slug"]));
    let mut slugs: Vec<_> = slugs.collect();
    slugs.sort_unstable();
    let mut expected = ["SERVICE_MULTI_EXECUTE_TOOL", &tool, &tool];
    expected.sort_unstable();
    assert_eq!(slugs, expected);
    for executed in [&ran, &several] {
        let log = project.log(&executed["log_id"]).await;
        assert_eq!(log["context"]["session_id"], *session);
        assert_eq!(log["metadata"]["user_id"], "amy");
    }
}

#[tokio::test]
async fn switched_off_meta_tools_are_refused() {
    let project = Host::shared().await.new_project().await;
    let session = json!({
        "user_id": "amy", "search": { "enable": false }, "execute": { "enable_multi_execute": false },
        "manage_connections": { "enable": false }, "workbench": { "enable": false },
    });
    let session = create(&project, session).await;
    let meta = format!("{SESSION_PATH}/{session}/execute_meta");
    for slug in [
        "SERVICE_SEARCH_TOOLS",
        "SERVICE_MULTI_EXECUTE_TOOL",
        "SERVICE_MANAGE_CONNECTIONS",
        "SERVICE_WAIT_FOR_CONNECTIONS",
        "SERVICE_REMOTE_WORKBENCH",
        "service_remote_bash_tool",
    ] {
        let off = json!({ "slug": slug, "arguments": {} });
        let off = project.post(&meta, &off).await;
        off.expect_error(403, "ToolRouterV2_MetaToolDisabled");
        let off = execute(&project, &session, json!({ "tool_slug": slug })).await;
        assert_eq!(off.expect(403)["error"]["code"], 4312, "{slug}");
    }
    let unknown = json!({ "slug": "SERVICE_NONESUCH" });
    let unknown = project.post(&meta, &unknown).await;
    unknown.expect_error(404, "Tool_ToolNotFound");
    let wrong = json!({ "tool_slug": 5, "arguments": 5 });
    let wrong = execute(&project, &session, wrong).await.expect(400);
    let expected = [
        "tool_slug: expected a string, got a number",
        "arguments: must be an object",
    ];
    assert_eq!(wrong.problems(), expected);
    let similar = json!({ "tool_slug": "SERVICE_SERCH_TOOLS" });
    let similar = execute(&project, &session, similar).await.expect(404);
    let question = "did you mean the meta tool `SERVICE_SEARCH_TOOLS`?";
    assert!(similar.text.contains(question), "{}", similar.text);
    for slug in [given::shared_echo().await, "RECIPE_A"] {
        let other = project.post(&meta, &json!({ "slug": slug })).await;
        let problems = other.expect(400).problems();
        assert!(problems[0].contains("operation `execute`"), "{problems:?}");
    }
}

#[tokio::test]
async fn multi_execute_keeps_order_and_partial_failures() {
    let (project, toolkit) = with_mail().await;
    let session = create(&project, json!({ "user_id": "amy" })).await;
    let meta = format!("{SESSION_PATH}/{session}/execute_meta");
    let tool = format!("{}_LIST", toolkit.to_uppercase());
    let call = |number: usize| json!({ "tool_slug": tool, "arguments": { "number": number } });
    let several = |calls: Vec<Value>| {
        let arguments =
            json!({ "tools": calls, "sync_response_to_workbench": false, "session_id": "plan" });
        json!({ "slug": "SERVICE_MULTI_EXECUTE_TOOL", "arguments": arguments })
    };
    let mut calls: Vec<_> = (0..48).map(call).collect();
    calls.insert(1, json!({ "tool_slug": "NONESUCH_RUN", "arguments": {} }));
    let nested = json!({ "tool_slug": "SERVICE_SEARCH_TOOLS", "arguments": {} });
    calls.insert(2, nested);
    let done = project.post(&meta, &several(calls)).await.expect(200);
    let data = &done["data"];
    assert_eq!(data["total_count"], 50);
    assert_eq!(data["success_count"], 48);
    assert_eq!(data["session"]["id"], "plan");
    assert_eq!(done["error"], Value::Null);
    for (position, result) in data["results"].as_array().unwrap().iter().enumerate() {
        assert_eq!(result["index"], position);
        match position {
            1 | 2 => {
                assert_eq!(result["response"], Value::Null);
                assert!(result["error"].is_string(), "{result}");
            }
            0 => assert_eq!(result["response"]["data"], json!({ "number": 0 })),
            later => assert_eq!(result["response"]["data"], json!({ "number": later - 2 })),
        }
    }
    let large = json!({ "tool_slug": tool, "arguments": { "word": "x".repeat(100 << 10) } });
    let done = project.post(&meta, &several(vec![large])).await.expect(200);
    let data = &done["data"]["results"][0]["response"]["data"];
    assert!(data["result_file"]["s3url"].is_string(), "{data}");
    for number in [0, 51] {
        let calls = several((0..number).map(call).collect());
        let refused = project.post(&meta, &calls).await;
        assert_eq!(refused.expect(400)["error"]["code"], 1820);
    }
}

#[tokio::test]
async fn proxy_requests_stay_in_the_scope() {
    let project = Host::shared().await.new_project().await;
    let toolkit = given::keyed().await;
    project.connect_with_key(toolkit, "amy").await;
    let request = json!({ "toolkit_slug": toolkit, "endpoint": "/echo/x", "method": "GET" });
    let cases = json!([
        [200, {}],
        [200, { "toolkits": { "enable": [toolkit] } }],
        [200, { "workbench": { "enable_proxy_execution": false } }],
        [400, { "user_id": "bob" }],
        [403, { "toolkits": { "disable": [toolkit] } }],
        [403, { "tools": { toolkit: { "disable": [] } } }],
        [403, { "tags": ["readOnlyHint"] }],
        [403, { "proxy_execute": { "enable": false } }],
    ]);
    for case in cases.as_array().unwrap() {
        let (status, config) = (&case[0], &case[1]);
        let session = given::merged(json!({ "user_id": "amy" }), config);
        let session = create(&project, session).await;
        let path = format!("{SESSION_PATH}/{session}/proxy_execute");
        let answer = project.post(&path, &request).await;
        assert_eq!(*status, answer.status, "{config}: {answer:#?}");
        if answer.status == 200 {
            assert_eq!(answer["status"], 200);
            assert_eq!(answer["result_type"], "completed");
        }
    }
}

#[tokio::test]
async fn session_with_proxy_offers_it_as_tool() {
    let project = Host::shared().await.new_project().await;
    let toolkit = given::keyed().await;
    project.connect_with_key(toolkit, "amy").await;
    let arguments = json!({
        "toolkit_slug": toolkit, "endpoint": "/echo/x", "method": "POST", "body": { "a": 1 },
        "query": { "page": 2 },
    });
    let call = json!({ "tool_slug": "SERVICE_PROXY_EXECUTE", "arguments": arguments });
    let tools = async |session: &str| {
        let path = format!("{SESSION_PATH}/{session}/tools");
        project.get(&path).await.expect(200).text
    };
    let without = create(&project, json!({ "user_id": "amy" })).await;
    assert!(!tools(&without).await.contains("SERVICE_PROXY_EXECUTE"));
    execute(&project, &without, call.clone()).await.expect(403);

    let config = json!({ "user_id": "amy", "proxy_execute": { "enable": true } });
    let session = create(&project, config).await;
    assert!(tools(&session).await.contains("SERVICE_PROXY_EXECUTE"));
    let ran = execute(&project, &session, call.clone()).await.expect(200);
    assert_eq!(ran["result_type"], "completed", "{ran:#?}");
    assert_eq!(ran["data"]["status"], 200, "{ran:#?}");
    let tag = unique(8);
    let endpoint = FakeApp::said(&tag, &json!({}), b"{}");
    let text = format!(
        r#"{{"tool_slug":"SERVICE_PROXY_EXECUTE","arguments":{{"toolkit_slug":"{toolkit}","endpoint":"{endpoint}","method":"POST","body":{{"n":1E400}}}}}}"#
    );
    let path = format!("{SESSION_PATH}/{session}/execute");
    let request = Body::Raw("application/json", text.into());
    let ran = project.send(Method::POST, &path, request, &[]).await;
    ran.expect(200);
    assert_eq!(Host::application().seen(&tag)[0].body, br#"{"n":1E400}"#);
    let mut wrong = call;
    wrong["arguments"] = json!({ "toolkit_slug": 1, "method": "POST" });
    let refused = execute(&project, &session, wrong).await.expect(400);
    let problems = json!([
        "toolkit_slug: expected a string, got a number",
        "endpoint: is required",
    ]);
    assert_eq!(refused["error"]["errors"], problems);
}

#[tokio::test]
async fn feedback_is_answered_and_not_listed() {
    let (project, session) = amys_session().await;
    let call = json!({ "tool_slug": "SERVICE_SUBMIT_FEEDBACK", "arguments": { "text": "good" } });
    let answered = execute(&project, &session, call).await.expect(200);
    assert_eq!(answered["result_type"], "completed", "{answered:?}");
    let path = format!("{SESSION_PATH}/{session}/tools");
    let listed = project.get(&path).await.expect(200).text;
    assert!(!listed.contains("SUBMIT_FEEDBACK"), "{listed}");
    let nameless = json!({ "tool_slug": " ", "arguments": {} });
    execute(&project, &session, nameless).await.expect(400);
}

#[tokio::test]
async fn keys_without_permission_use_no_session() {
    let (host, project) = Host::shared_with_project().await;
    let keys = project.project_id().await;
    let keys = format!("/org/owner/project/{keys}/api_keys");
    let tool = format!("{}_LIST", mail(host).await.to_uppercase());
    let session = create(&project, json!({ "user_id": "amy" })).await;
    for ((area, access), reads, executes) in [
        (("sessions", "read"), 200, 403),
        (("sessions", "write"), 403, 200),
        (("session_tool_execution", "write"), 403, 200),
        (("tool_execution", "write"), 403, 200),
        (("tools", "read_write"), 403, 403),
    ] {
        let permissions = json!([{ "preset": area, "access": access }]);
        let key = json!({ "name": "scoped", "permissions": permissions });
        let key = host.as_org().post(&keys, &key).await.expect(201);
        let client = host.with_key(key["key"].as_str().unwrap());
        let read = client.get(&format!("{SESSION_PATH}/{session}")).await;
        assert_eq!(read.status, reads, "{permissions}");
        let call = json!({ "tool_slug": tool, "arguments": {} });
        let executed = execute(&client, &session, call).await;
        assert_eq!(executed.status, executes, "{permissions}: {executed:#?}");
    }
}
