//! Approval of calls in sessions: which calls need it, and what an approval holds for.

use harness::{Answer, Client, Host};
use serde_json::{Value, json};

use crate::{
    tool_router_execution::{execute, mail},
    tool_router_sessions::{SESSION, create},
};

/// Returns the call that answers the question of a result.
fn answered(call: &Value, asked: &Answer, action: &str) -> Value {
    let mut call = call.clone();
    let questions = asked["input_requests"].as_object().unwrap();
    let (id, question) = questions.iter().next().unwrap();
    assert_eq!(question["method"], "elicitation/create");
    call["request_state"] = asked["request_state"].clone();
    call["input_responses"] = json!({ id: { "action": action } });
    call
}

async fn ask(project: &Client, session: &str, call: &Value) -> Answer {
    let asked = execute(project, session, call.clone()).await.expect(200);
    assert_eq!(asked["result_type"], "input_required", "{asked:#?}");
    assert_eq!(
        (&asked["data"], &asked["error"]),
        (&json!({}), &Value::Null)
    );
    asked
}

#[tokio::test]
async fn approved_call_runs_and_declined_does_not() {
    let host = Host::shared().await;
    let project = host.new_project().await;
    let toolkit = mail(host).await;
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
    let logs = project.post("/logs/tool_execution", &json!({})).await;
    assert_eq!(logs.expect(200)["logs"], json!([]), "nothing ran");
    let accepted = answered(&call, &asked, "accept");
    let ran = execute(&project, &session, accepted).await.expect(200);
    assert_eq!(ran["result_type"], "completed");
    assert_eq!(ran["data"], json!({ "to": "bob" }));
    let free = json!({ "tool_slug": slug("LIST"), "arguments": {} });
    let ran = execute(&project, &session, free).await.expect(200);
    assert_eq!(ran["result_type"], "completed");
}

#[tokio::test]
async fn approval_holds_for_one_call_alone() {
    let host = Host::shared().await;
    let project = host.new_project().await;
    let toolkit = mail(host).await;
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
async fn only_execute_asks_for_approval() {
    let host = Host::shared().await;
    let project = host.new_project().await;
    let toolkit = mail(host).await;
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
        let several = json!({ "tools": [call], "sync_response_to_workbench": false });
        let several = json!({ "tool_slug": "SERVICE_MULTI_EXECUTE_TOOL", "arguments": several });
        let several = execute(&project, &session, several).await.expect(200);
        let result = &several["data"]["results"][0];
        assert_eq!(result["response"], Value::Null, "{config}");
        let error = result["error"].as_str().unwrap();
        assert!(error.contains("approved"), "{error}");
        let proxy = json!({ "toolkit_slug": toolkit, "endpoint": "/x", "method": "GET" });
        let path = format!("{SESSION}/{session}/proxy_execute");
        let refused = project.post(&path, &proxy).await.expect(403);
        assert_eq!(refused["error"]["code"], 4311, "{config}");
        let read = project
            .get(&format!("{SESSION}/{session}"))
            .await
            .expect(200);
        for part in ["toolkits", "tools", "tags"] {
            let is_asked = config[part].to_string().contains("require_approval");
            let shown = read["config"][part].to_string();
            assert_eq!(shown.contains("require_approval"), is_asked, "{shown}");
        }
        let null = json!({ "toolkits": null, "tools": null, "tags": null,
            "experimental": { "permissions": { "default": "allow_all" } } });
        let path = format!("{SESSION}/{session}");
        project.patch(&path, &null).await.expect(200);
        let ran = execute(&project, &session, call).await.expect(200);
        assert_eq!(ran["result_type"], "completed", "{config}");
    }
}
