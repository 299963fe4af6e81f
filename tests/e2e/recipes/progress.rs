//! Progress of recipes, as clients of MCP endpoints see it.

use reqwest::Method;
use serde_json::json;

use super::Given;
use crate::{given, tool_router_sessions::SESSION_PATH};

#[tokio::test]
async fn assistants_see_steps_as_progress() {
    let host = given::with_application().start().await;
    let given = Given::with(&host, host.as_project()).await;
    let path = format!("{SESSION_PATH}/{}", given.session);
    let session = given.project.get(&path).await.expect(200);
    let url = session["mcp"]["url"].as_str().unwrap();
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2025-11-25"),
        ("x-api-key", given.project.key()),
    ];
    let mut looped = given.step("looped", &given.read, "/{{item}}/a");
    looped["for_each"] = json!(["echo", "hang"]);
    let slug = given
        .store(json!([
            given.step("first", &given.read, "/echo/a"),
            looped,
            given.step("last", &given.read, "/echo/a"),
        ]))
        .await;
    let several = json!({
        "tools": [{ "tool_slug": slug, "arguments": {} }], "sync_response_to_workbench": false,
    });
    for (name, arguments) in [
        (slug.as_str(), json!({})),
        ("SERVICE_MULTI_EXECUTE_TOOL", several),
    ] {
        let call =
            json!({ "name": name, "arguments": arguments, "_meta": { "progressToken": "p" } });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call });
        let body = body.to_string().into_bytes();
        let sent = given
            .project
            .exchange_stream(Method::POST, url, &headers, body);
        let mut stream = sent.await;
        let mut last = -1.0;
        loop {
            let event = stream.next().await.expect("the call goes on").data;
            let params = &event["params"];
            let progress = params["progress"].as_f64().unwrap();
            assert!(progress > last, "{progress} after {last}");
            last = progress;
            let message = params["message"].as_str().unwrap();
            if message == "1 of 3 steps done, running `looped[1]`" {
                assert_eq!(params["total"].as_f64(), Some(3.0), "{event:#}");
                assert!((1.0..2.0).contains(&progress), "{event:#}");
                break;
            }
        }
        let run = given.newest_run(&slug).await;
        let run = given.run(run["run_id"].as_str().unwrap()).await;
        let current = run["steps"].as_array().unwrap().last().unwrap();
        assert_eq!(current["step"], "looped[1]", "{run:#}");
        assert_eq!(current["status"], "running", "{run:#}");
    }
}
