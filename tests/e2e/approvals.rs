//! Approval of calls in sessions: which calls need it, and what an approval holds for.

use futures::future::join_all;
use harness::{
    Answer, Client, Guest, Host, Postgres,
    assistants::{Assistant, Library},
    client::Body,
    guest,
    host::Setup,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    given,
    tool_router_execution::{execute, mail, with_mail},
    tool_router_sessions::{SESSION_PATH, create, with_keyed},
};

/// Asserts that no tool has run in a project.
pub(crate) async fn assert_nothing_ran(project: &Client) {
    let logs = project.post("/logs/tool_execution", &json!({})).await;
    assert_eq!(logs.expect(200)["logs"], json!([]));
}

/// Asserts that a configuration as shown requires approval where the one that was sent does.
fn assert_same_places(shown: &Value, sent: &Value) {
    for part in ["toolkits", "tools", "tags"] {
        let is_set = |config: &Value| config[part].to_string().contains("require_approval");
        assert_eq!(is_set(shown), is_set(sent), "{part}: {shown}");
    }
}

/// Returns the call that answers the question of a result.
fn answered(call: &Value, asked: &Answer, action: &str) -> Value {
    let mut call = call.clone();
    let questions = asked["input_requests"].as_object().unwrap();
    let (id, question) = questions.iter().next().unwrap();
    let form = (&question["type"], &question["mode"]);
    assert_eq!(form, (&json!("elicitation"), &json!("form")));
    call["request_state"] = asked["request_state"].clone();
    let content = (action == "accept").then(|| json!({ "decision": "approve" }));
    call["input_responses"] = json!({ id: { "action": action, "content": content } });
    call
}

/// Replaces the fields of the form in an answer.
fn with_content(mut answer: Value, content: Value) -> Value {
    answer["input_responses"]["approval"]["content"] = content;
    answer
}

/// Returns the configuration of a session with permissions.
fn with_permissions(permissions: Value) -> Value {
    json!({ "user_id": "amy", "experimental": { "permissions": permissions } })
}

/// Runs a tool in a parallel execution, and returns its result.
async fn run_in_parallel(project: &Client, session: &str, call: &Value) -> Value {
    let several = json!({ "tools": [call], "sync_response_to_workbench": false });
    let several = json!({ "tool_slug": "SERVICE_MULTI_EXECUTE_TOOL", "arguments": several });
    let several = execute(project, session, several).await.expect(200);
    several["data"]["results"][0].clone()
}

async fn runs(project: &Client, session: &str, call: &Value) -> Answer {
    let ran = execute(project, session, call.clone()).await.expect(200);
    assert_eq!(ran["result_type"], "completed", "{ran:#?}");
    ran
}

async fn approve(project: &Client, session: &str, call: &Value) {
    let asked = ask(project, session, call).await;
    runs(project, session, &answered(call, &asked, "accept")).await;
}

async fn ask(project: &Client, session: &str, call: &Value) -> Answer {
    let asked = execute(project, session, call.clone()).await.expect(200);
    assert_eq!(asked["result_type"], "input_required", "{asked:#?}");
    assert_eq!(asked["data"], json!({}));
    assert_eq!(asked["error"], Value::Null);
    asked
}

#[tokio::test]
async fn approved_call_runs_and_declined_does_not() {
    let (project, toolkit) = with_mail().await;
    let slug = |name: &str| format!("{}_{name}", toolkit.to_uppercase());
    let config = json!({ "user_id": "amy", "tags": { "require_approval": ["destructiveHint"] } });
    let session = create(&project, config).await;
    let call = json!({ "tool_slug": slug("SEND"), "arguments": { "to": "bob" } });
    let asked = ask(&project, &session, &call).await;
    let declined = answered(&call, &asked, "decline");
    let declined = execute(&project, &session, declined).await.expect(200);
    assert_eq!(declined["result_type"], "failed");
    let error = declined["error"].as_str().unwrap();
    assert!(error.starts_with("declined: "), "{error}");
    assert_nothing_ran(&project).await;
    let asked = ask(&project, &session, &call).await;
    let accepted = answered(&call, &asked, "accept");
    let ran = runs(&project, &session, &accepted).await;
    assert_eq!(ran["data"], json!({ "to": "bob" }));
    let free = json!({ "tool_slug": slug("LIST"), "arguments": {} });
    runs(&project, &session, &free).await;
}

#[tokio::test]
async fn approval_is_required_in_each_place() {
    let (project, toolkit) = with_mail().await;
    let tool = format!("{}_SEND", toolkit.to_uppercase());
    let tags = json!({ "require_approval": ["destructiveHint"] });
    let of_toolkit = |selection: Value| json!({ "tools": { &toolkit: selection } });
    let without = |selection: Value| json!({ "tags": tags, "tools": { &toolkit: selection } });
    let of_all = json!({ "toolkits": { "require_approval": [toolkit] } });
    let other_tags = json!({ "tags": { "require_approval": ["readOnlyHint"] } });
    let required = "input_required";
    for (config, outcome) in [
        (of_all, required),
        (of_toolkit(json!({ "require_approval": [tool] })), required),
        (of_toolkit(json!({ "tags": tags })), required),
        (json!({ "tags": tags }), required),
        (without(json!({ "disable": [] })), required),
        (without(json!({ "require_approval": [] })), "completed"),
        (without(other_tags), "completed"),
    ] {
        let mut body = config.clone();
        body["user_id"] = json!("amy");
        let session = create(&project, body).await;
        let call = json!({ "tool_slug": tool, "arguments": {} });
        let called = execute(&project, &session, call).await.expect(200);
        assert_eq!(called["result_type"], outcome, "{config}");
        let shown = project.get(&format!("{SESSION_PATH}/{session}")).await;
        assert_same_places(&shown.expect(200)["config"], &config);
    }
}

#[tokio::test]
async fn accepted_form_runs_only_what_it_approves() {
    let (project, toolkit) = with_mail().await;
    let tool = format!("{}_SEND", toolkit.to_uppercase());
    let config = with_permissions(json!({ "default": "ask_every_call" }));
    let session = create(&project, config).await;
    let call = json!({ "tool_slug": tool, "arguments": { "to": "bob" } });
    let asked = ask(&project, &session, &call).await;
    let question = &asked["input_requests"]["approval"];
    let message = question["message"].as_str().unwrap();
    assert!(message.contains(&tool), "{message}");
    assert!(message.contains(r#""to": "bob""#), "{message}");
    assert!(message.contains("holds for this call alone"), "{message}");
    let decisions = &question["requested_schema"]["properties"]["decision"]["enum"];
    assert_eq!(decisions, &json!(["approve", "always_approve", "deny"]));
    let with = |content: Value| with_content(answered(&call, &asked, "accept"), content);
    for unknown in [
        Value::Null,
        json!({}),
        json!({ "decision": "maybe" }),
        json!({ "decision": ["approve", "deny"] }),
    ] {
        let refused = execute(&project, &session, with(unknown.clone())).await;
        assert_eq!(refused.expect(400)["error"]["code"], 4300, "{unknown}");
    }
    let denied = with(json!({ "decision": "deny" }));
    let denied = execute(&project, &session, denied).await.expect(200);
    assert_eq!(denied["result_type"], "failed");
    assert_nothing_ran(&project).await;
    let asked = ask(&project, &session, &call).await;
    let always = json!({ "decision": "always_approve" });
    let always = with_content(answered(&call, &asked, "accept"), always);
    runs(&project, &session, &always).await;
    // Its permission asks always.
    ask(&project, &session, &call).await;
}

#[tokio::test]
async fn answers_are_erased_with_their_session() {
    let setup = Setup::embedded().on(Postgres::database_with_tables());
    let host = setup.start().await;
    let project = host.as_project();
    let tool = format!("{}_SEND", mail(&host).await.to_uppercase());
    let call = json!({ "tool_slug": tool, "arguments": { "to": "bob" } });
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let config = with_permissions(json!({ "default": "ask_every_call" }));
        let session = create(&project, config).await;
        for _ in 0..2 {
            approve(&project, &session, &call).await;
        }
        sessions.push(session);
    }
    let answers = || {
        let answers = "select body->>'session' from approval_answers";
        host.setup().database().say(answers)
    };
    assert_eq!(answers().len(), 4);
    let path = format!("{SESSION_PATH}/{}", sessions[0]);
    project.delete(&path).await.expect(200);
    assert_eq!(answers(), [&*sessions[1]; 2]);
}

#[tokio::test]
async fn state_is_answered_once() {
    let (project, toolkit) = with_mail().await;
    let config = json!({ "user_id": "amy", "tags": { "require_approval": ["destructiveHint"] } });
    let session = create(&project, config).await;
    let tool = format!("{}_SEND", toolkit.to_uppercase());
    let call = json!({ "tool_slug": tool, "arguments": { "to": "bob" } });
    for first in ["accept", "decline"] {
        let asked = ask(&project, &session, &call).await;
        let answer = answered(&call, &asked, first);
        execute(&project, &session, answer.clone())
            .await
            .expect(200);
        let mut respelled = answer.clone();
        let state = answer["request_state"].as_str().unwrap();
        let (start, hash) = state.rsplit_once('.').unwrap();
        respelled["request_state"] = json!(format!("{start}.{}", hash.to_uppercase()));
        for second in [
            answered(&call, &asked, "accept"),
            answered(&call, &asked, "decline"),
            respelled,
        ] {
            let refused = execute(&project, &session, second).await.expect(400);
            assert_eq!(refused["error"]["slug"], "ToolRouterV2_ApprovalAnswered");
        }
    }
    let asked = ask(&project, &session, &call).await;
    let mut twice = answered(&call, &asked, "decline").to_string();
    let approval = r#""approval":"#;
    let place = twice.find(approval).unwrap();
    twice.insert_str(
        place,
        r#""approval":{"action":"accept","content":{"decision":"approve"}},"#,
    );
    let path = format!("{SESSION_PATH}/{session}/execute");
    let body = Body::Raw("application/json", twice.into());
    let refused = project.send(Method::POST, &path, body, &[]).await;
    refused.expect(400);
    let mut unasked = answered(&call, &asked, "accept");
    unasked.as_object_mut().unwrap().remove("request_state");
    execute(&project, &session, unasked).await.expect(400);
    let answers = (0..8).map(|number| {
        let action = if number % 2 == 0 { "accept" } else { "decline" };
        execute(&project, &session, answered(&call, &asked, action))
    });
    let answers = join_all(answers).await;
    let (first, others): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 200);
    assert_eq!((first.len(), others.len()), (1, 7), "{answers:#?}");
    assert!(others.iter().all(|answer| answer.status == 400));
    let approved = 1 + usize::from(first[0]["result_type"] == "completed");
    let logs = project.post("/logs/tool_execution", &json!({})).await;
    let logs = logs.expect(200)["logs"].as_array().unwrap().len();
    assert_eq!(logs, approved);
}

#[tokio::test]
async fn call_that_did_not_start_keeps_its_approval() {
    let (project, toolkit) = with_keyed().await;
    let account = project.connect_with_key(&toolkit, "amy").await;
    let config = with_permissions(json!({ "default": "ask_every_call" }));
    let session = create(&project, config).await;
    let call = json!({ "tool_slug": guest::tool(&toolkit), "arguments": {}, "account": account });
    let accepted = answered(&call, &ask(&project, &session, &call).await, "accept");
    let status = format!("/connected_accounts/{account}/status");
    let disabled = json!({ "enabled": false });
    project.patch(&status, &disabled).await.expect(200);
    execute(&project, &session, accepted.clone())
        .await
        .expect(422);
    let enabled = json!({ "enabled": true });
    project.patch(&status, &enabled).await.expect(200);
    runs(&project, &session, &accepted).await;
    execute(&project, &session, accepted).await.expect(400);
}

#[tokio::test]
async fn user_may_approve_all_calls_of_a_tool() {
    let (project, toolkit) = with_mail().await;
    let config = json!({ "user_id": "amy", "toolkits": { "require_approval": [toolkit] } });
    let session = create(&project, config).await;
    let slug = |name: &str| format!("{}_{name}", toolkit.to_uppercase());
    let call = |name: &str| json!({ "tool_slug": slug(name), "arguments": {} });
    let send = call("SEND");
    approve(&project, &session, &send).await;
    let asked = ask(&project, &session, &send).await;
    let always = json!({ "decision": "always_approve" });
    let always = with_content(answered(&send, &asked, "accept"), always);
    runs(&project, &session, &always).await;
    runs(&project, &session, &send).await;
    let result = run_in_parallel(&project, &session, &send).await;
    assert_eq!(result["error"], Value::Null);
    ask(&project, &session, &call("DRAFT")).await;
}

#[tokio::test]
async fn meta_tools_take_answers_and_ask_nothing() {
    let (project, toolkit) = with_mail().await;
    let config = with_permissions(json!({ "default": "ask_every_call" }));
    let session = create(&project, config).await;
    let tool = format!("{}_SEND", toolkit.to_uppercase());
    let call = json!({ "tool_slug": tool, "arguments": {} });
    let asked = ask(&project, &session, &call).await;
    let path = format!("{SESSION_PATH}/{session}/execute_meta");
    let mut meta =
        json!({ "slug": "SERVICE_GET_TOOL_SCHEMAS", "arguments": { "tool_slugs": [tool] } });
    project.post(&path, &meta).await.expect(200);
    meta["request_state"] = asked["request_state"].clone();
    for (content, code) in [(json!({}), 4300), (json!({ "decision": "approve" }), 4322)] {
        let response = json!({ "action": "accept", "content": content });
        meta["input_responses"] = json!({ "approval": response });
        let refused = project.post(&path, &meta).await.expect(400);
        assert_eq!(refused["error"]["code"], code, "{refused:#?}");
    }
    runs(&project, &session, &answered(&call, &asked, "accept")).await;
}

/// Calls a tool over the newest version of MCP, with the answer to a question before.
pub(crate) async fn call_over_mcp(
    project: &Client,
    url: &str,
    tool: &str,
    answer: &Value,
) -> Value {
    let params = json!({ "name": tool, "arguments": { "to": "bob" } });
    let mut params = given::merged(params, answer);
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {}, "url": {} } },
    });
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", tool),
        ("x-api-key", project.key()),
    ];
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let body = body.to_string().into_bytes();
    let answered = project.exchange(Method::POST, url, &headers, body).await;
    let text = String::from_utf8_lossy(&answered.bytes);
    let text = text.lines().last().unwrap_or_default();
    let whole: Value = serde_json::from_str(text.trim_start_matches("data: ")).unwrap();
    whole["result"].clone()
}

#[tokio::test]
async fn state_is_answered_once_over_mcp() {
    let project = Host::shared().await.new_project().await;
    let (url, tool) = shown_with_approval(&project, "ask_every_call").await;
    let asked = call_over_mcp(&project, &url, &tool, &json!({})).await;
    let state = &asked["requestState"];
    assert!(state.is_string(), "{asked:#}");
    let accepted = json!({ "action": "accept", "content": { "decision": "approve" } });
    let answer = json!({ "requestState": state, "inputResponses": { "approval": accepted } });
    let ran = call_over_mcp(&project, &url, &tool, &answer).await;
    assert_eq!(ran["structuredContent"], json!({ "to": "bob" }), "{ran:#}");
    let again = call_over_mcp(&project, &url, &tool, &answer).await;
    assert_eq!(again["isError"], true, "{again:#}");
    given::assert_contains(&again["content"][0]["text"], "has been answered");
}

#[tokio::test]
async fn approval_holds_for_one_call_alone() {
    let (project, toolkit) = with_mail().await;
    let slug = |name: &str| format!("{}_{name}", toolkit.to_uppercase());
    let config = json!({ "user_id": "amy", "toolkits": { "require_approval": [toolkit] } });
    let session = create(&project, config.clone()).await;
    let other = create(&project, config).await;
    let call = json!({ "tool_slug": slug("SEND"), "arguments": { "to": "bob" } });
    let asked = ask(&project, &session, &call).await;
    let accepted = answered(&call, &asked, "accept");
    for (member, value) in [
        ("arguments", json!({ "to": "eve" })),
        ("tool_slug", json!(slug("DRAFT"))),
        ("account", json!("work")),
        ("request_state", json!("1.00")),
        ("request_state", json!("")),
    ] {
        let mut changed = accepted.clone();
        changed[member] = value;
        let refused = execute(&project, &session, changed).await.expect(400);
        assert_eq!(refused["error"]["code"], 4322, "{member}");
        let problems = refused.problems();
        assert!(problems[0].starts_with("request_state: "), "{problems:?}");
    }
    let refused = execute(&project, &other, accepted.clone()).await;
    assert_eq!(refused.expect(400)["error"]["code"], 4322);
    let mut unanswered = accepted.clone();
    unanswered["input_responses"] = json!({});
    let refused = execute(&project, &session, unanswered).await;
    assert_eq!(refused.expect(400)["error"]["code"], 4300);
    execute(&project, &session, accepted).await.expect(200);
}

#[tokio::test]
async fn approval_holds_for_arguments_in_any_order() {
    let (project, toolkit) = with_mail().await;
    let config = json!({ "user_id": "amy", "toolkits": { "require_approval": [toolkit] } });
    let session = create(&project, config).await;
    let tool = format!("{}_SEND", toolkit.to_uppercase());
    let call =
        json!({ "tool_slug": tool, "arguments": { "to": "bob", "in": [{ "a": 1, "b": 2 }] } });
    let mut accepted = answered(&call, &ask(&project, &session, &call).await, "accept");
    accepted["arguments"] = json!({ "in": [{ "b": 2, "a": 1 }], "to": "bob" });
    runs(&project, &session, &accepted).await;
}

#[tokio::test]
async fn arguments_are_checked_before_the_question() {
    let (host, project) = Host::shared_with_project().await;
    let (toolkit, mut manifest) = given::manifest();
    manifest["tools"][0]["no_auth"] = json!(true);
    manifest["tools"][0]["input"] = json!({
        "type": "object", "properties": { "to": { "type": "string" } }, "required": ["to"],
    });
    host.publish(Guest::echo().component(), &manifest).await;
    let config = json!({ "user_id": "amy", "toolkits": { "require_approval": [toolkit] } });
    let session = create(&project, config).await;
    let mut call = json!({ "tool_slug": guest::tool(&toolkit), "arguments": {} });
    let refused = execute(&project, &session, call.clone()).await.expect(400);
    assert_eq!(refused.problems(), ["to: is required"]);
    call["arguments"] = json!({ "to": "bob" });
    approve(&project, &session, &call).await;
}

#[tokio::test]
async fn only_execute_asks_for_approval() {
    let (project, toolkit) = with_mail().await;
    let tool = format!("{}_SEND", toolkit.to_uppercase());
    for config in [
        json!({ "toolkits": { "disable": [], "require_approval": [toolkit] } }),
        json!({ "tools": { &toolkit: { "require_approval": [tool] } } }),
        json!({ "tags": { "require_approval": ["destructiveHint"] } }),
        json!({ "experimental": { "permissions": { "default": "ask_every_call" } } }),
    ] {
        let mut body = config.clone();
        body["user_id"] = json!("amy");
        let session = create(&project, body).await;
        let call = json!({ "tool_slug": tool, "arguments": {} });
        ask(&project, &session, &call).await;
        let result = run_in_parallel(&project, &session, &call).await;
        assert_eq!(result["response"], Value::Null, "{config}");
        let error = result["error"].as_str().unwrap();
        assert!(error.contains("operation `execute`"), "{error}");
        let proxy = json!({ "toolkit_slug": toolkit, "endpoint": "/x", "method": "GET" });
        let path = format!("{SESSION_PATH}/{session}/proxy_execute");
        let refused = project.post(&path, &proxy).await.expect(403);
        assert_eq!(refused["error"]["code"], 4311, "{config}");
        let path = format!("{SESSION_PATH}/{session}");
        let shown = project.get(&path).await.expect(200);
        assert_same_places(&shown["config"], &config);
        let null = json!({ "toolkits": null, "tools": null, "tags": null,
            "experimental": { "permissions": { "default": "allow_all" } } });
        project.patch(&path, &null).await.expect(200);
        runs(&project, &session, &call).await;
    }
}

#[tokio::test]
async fn permissions_of_accounts_are_refused_by_name() {
    let (project, toolkit) = with_mail().await;
    let tool = format!("{}_SEND", toolkit.to_uppercase());
    for key in [&format!("{tool}:ca_abcdefghijkl"), "*:__none__"] {
        let overrides = json!({ "default": "allow_all", "overrides": { key: "always_deny" } });
        let config = with_permissions(overrides);
        let made = project.post(SESSION_PATH, &config).await;
        let refused = made.expect(400).text;
        assert!(refused.contains("a permission of an account"), "{refused}");
    }
}

#[tokio::test]
async fn one_approval_holds_for_the_session() {
    let (project, toolkit) = with_mail().await;
    let slug = |name: &str| format!("{}_{name}", toolkit.to_uppercase());
    let config = with_permissions(json!({ "default": "ask_once_per_session" }));
    let session = create(&project, config.clone()).await;
    let call = |name: &str, to: &str| json!({ "tool_slug": slug(name), "arguments": { "to": to } });
    let bob = call("SEND", "bob");
    let asked = ask(&project, &session, &bob).await;
    let declined = answered(&bob, &asked, "decline");
    execute(&project, &session, declined).await.expect(200);
    approve(&project, &session, &bob).await;
    let eve = call("SEND", "eve");
    runs(&project, &session, &eve).await;
    let result = run_in_parallel(&project, &session, &eve).await;
    assert_eq!(result["error"], Value::Null);
    ask(&project, &session, &call("DRAFT", "eve")).await;
    let other = create(&project, config).await;
    ask(&project, &other, &eve).await;

    let path = format!("{SESSION_PATH}/{session}");
    let unrelated = json!({ "search": { "enable": false } });
    project.patch(&path, &unrelated).await.expect(200);
    runs(&project, &session, &eve).await;
    let draft = call("DRAFT", "eve");
    let asked = ask(&project, &session, &draft).await;
    let permissions =
        json!({ "default": "ask_once_per_session", "overrides": { &toolkit: "ask_once" } });
    let change = json!({ "experimental": { "permissions": permissions } });
    project.patch(&path, &change).await.expect(200);
    ask(&project, &session, &eve).await;
    let outdated = answered(&draft, &asked, "accept");
    let refused = execute(&project, &session, outdated).await.expect(400);
    assert_eq!(refused["error"]["code"], 4322);
}

#[tokio::test]
async fn permissions_are_shown_with_session_and_versions() {
    let (project, toolkit) = with_mail().await;
    let first =
        json!({ "default": "ask_once_per_session", "overrides": { &toolkit: "ask_always" } });
    let session = create(&project, with_permissions(first.clone())).await;
    let path = format!("{SESSION_PATH}/{session}");
    let read = project.get(&path).await.expect(200);
    assert_eq!(read["experimental"]["permissions"], first);
    let change = json!({ "experimental": { "permissions": null } });
    let changed = project.patch(&path, &change).await.expect(200);
    let removed = json!({ "default": "allow_all", "overrides": {} });
    assert_eq!(changed["experimental"]["permissions"], removed);
    let versions = project.get(&format!("{path}/config_history")).await;
    let versions = versions.expect(200);
    for (index, expected) in [removed, first].iter().enumerate() {
        let shown = &versions["items"][index]["experimental"]["permissions"];
        assert_eq!(shown, expected, "{index}");
    }
}

#[tokio::test]
async fn one_approval_holds_for_one_account() {
    let (project, toolkit) = with_keyed().await;
    let older = project.connect_with_key(&toolkit, "amy").await;
    let newer = project.connect_with_key(&toolkit, "amy").await;
    let config = json!({ "default": "allow_all", "overrides": { &toolkit: "ask_once" } });
    let session = create(&project, with_permissions(config)).await;
    let tool = guest::tool(&toolkit);
    let call =
        |account: Option<&str>| json!({ "tool_slug": tool, "arguments": {}, "account": account });
    approve(&project, &session, &call(Some(&older))).await;
    runs(&project, &session, &call(Some(&older))).await;
    ask(&project, &session, &call(Some(&newer))).await;
    // The newest account is the default one.
    approve(&project, &session, &call(None)).await;
    runs(&project, &session, &call(Some(&newer))).await;
    let added = project.connect_with_key(&toolkit, "amy").await;
    ask(&project, &session, &call(None)).await;
    ask(&project, &session, &call(Some(&added))).await;
    let asked = ask(&project, &session, &call(None)).await;
    project.connect_with_key(&toolkit, "amy").await;
    let outdated = answered(&call(None), &asked, "accept");
    ask(&project, &session, &outdated).await;
}

#[tokio::test]
async fn overrides_apply_to_tools_before_toolkits() {
    let (project, toolkit) = with_mail().await;
    let other = mail(Host::shared().await).await;
    let slug = |toolkit: &str, name: &str| format!("{}_{name}", toolkit.to_uppercase());
    let call = |slug: String| json!({ "tool_slug": slug, "arguments": {} });
    let permissions = json!({ "default": "allow_all", "overrides": {
        &toolkit: "ask_always",
        slug(&toolkit, "LIST"): "always_allow",
        slug(&toolkit, "SEND").to_lowercase(): "always_deny",
    } });
    let session = create(&project, with_permissions(permissions)).await;
    let send = call(slug(&toolkit, "SEND"));
    let denied = execute(&project, &session, send.clone()).await.expect(403);
    assert_eq!(denied["error"]["code"], 4311);
    let result = run_in_parallel(&project, &session, &send).await;
    let error = result["error"].as_str().unwrap();
    assert!(error.contains("does not permit"), "{error}");
    let draft = call(slug(&toolkit, "DRAFT"));
    approve(&project, &session, &draft).await;
    ask(&project, &session, &draft).await;
    for slug in [slug(&toolkit, "LIST"), slug(&other, "SEND")] {
        runs(&project, &session, &call(slug)).await;
    }
    let proxy = json!({ "toolkit_slug": toolkit, "endpoint": "/x", "method": "GET" });
    let path = format!("{SESSION_PATH}/{session}/proxy_execute");
    let refused = project.post(&path, &proxy).await.expect(403);
    assert_eq!(refused["error"]["code"], 4311);
}

/// Creates a session that shows a tool which needs approval. Returns its MCP address and the tool.
async fn shown_with_approval(project: &Client, default: &str) -> (String, String) {
    let toolkit = mail(Host::shared().await).await;
    let tool = format!("{}_SEND", toolkit.to_uppercase());
    let mut config = with_permissions(json!({ "default": default }));
    config["preload"] = json!({ "tools": [tool] });
    let created = project.post(SESSION_PATH, &config).await.expect(201);
    (created["mcp"]["url"].as_str().unwrap().to_owned(), tool)
}

#[tokio::test]
async fn assistants_ask_their_user_for_approval() {
    let project = Host::shared().await.new_project().await;
    for (default, answer, questions) in [
        ("ask_once_per_session", "accept", 1),
        ("ask_every_call", "decline", 2),
    ] {
        for library in Library::ALL {
            let (url, tool) = shown_with_approval(&project, default).await;
            let call = json!({ "name": tool, "arguments": { "to": "bob" } });
            let options = json!({
                "url": url, "key": project.key(), "mode": "auto", "answer": answer,
                "calls": [call, call],
            });
            let report = Assistant::start(library, &options).report().await;
            let which = format!("{library:?} {default}: {report:#}");
            let asked = report["asked"].as_array().unwrap();
            assert_eq!(asked.len(), questions, "{which}");
            let message = asked[0]["message"].as_str().unwrap();
            assert!(message.contains(&tool), "{which}");
            assert!(message.contains(r#""to": "bob""#), "{which}");
            for called in report["calls"].as_array().unwrap() {
                let is_declined = answer == "decline";
                assert_eq!(called["is_error"], is_declined, "{which}");
                if is_declined {
                    let text = called["text"].as_str().unwrap();
                    assert!(text.starts_with("declined"), "{which}");
                } else {
                    assert_eq!(called["structured"], json!({ "to": "bob" }), "{which}");
                }
            }
        }
    }
}

#[tokio::test]
async fn client_without_forms_gets_a_failure() {
    let project = Host::shared().await.new_project().await;
    let (url, tool) = shown_with_approval(&project, "ask_once_per_session").await;
    let call = json!({ "name": tool, "arguments": {} });
    for (library, mode, answer) in [
        (Library::Python, "auto", Value::Null),
        // Before 2026-07-28, a question is not a result of a call.
        (Library::JavaScript, "legacy", json!("accept")),
    ] {
        let options = json!({
            "url": url, "key": project.key(), "mode": mode, "answer": answer, "calls": [call],
        });
        let report = Assistant::start(library, &options).report().await;
        assert_eq!(report["asked"], json!([]), "{library:?}: {report:#}");
        let called = &report["calls"][0];
        assert_eq!(called["is_error"], true, "{library:?}: {report:#}");
        let text = called["text"].as_str().unwrap();
        assert!(text.contains("approved"), "{library:?}: {report:#}");
    }
}
