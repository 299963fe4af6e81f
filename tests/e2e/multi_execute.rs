//! Parallel execution in sessions: its deadline, and results that become files.

use futures::{StreamExt, stream::FuturesUnordered};
use harness::{Client, Guest, Host, guest, host::Setup, wait_until};
use serde_json::{Value, json};

use crate::{
    given,
    mcp_endpoints::{request, result},
    mounts::download,
    tool_router_sessions::{SESSION_PATH, create, execute_meta},
};

const MULTI_EXECUTE: &str = "SERVICE_MULTI_EXECUTE_TOOL";

/// Executes calls in a session, and returns the results.
async fn execute(project: &Client, session: &str, calls: &[(&str, Value)]) -> Value {
    let calls = calls
        .iter()
        .map(|(tool, arguments)| json!({ "tool_slug": tool, "arguments": arguments }));
    let calls: Vec<_> = calls.collect();
    let arguments = json!({ "tools": calls, "sync_response_to_workbench": false });
    let done = execute_meta(project, session, MULTI_EXECUTE, arguments).await;
    done.expect(200)["data"]["results"].clone()
}

/// Publishes a tool that fetches an address with an account of `amy` and may take minutes.
async fn publish_fetch(host: &Host, project: &Client) -> String {
    let (slug, mut manifest) = given::manifest_with_key();
    manifest["limits"] = json!({ "wall_ms": 300_000 });
    host.publish(Guest::fetch().component(), &manifest).await;
    project.connect_with_key(&slug, "amy").await;
    guest::tool(&slug)
}

#[tokio::test]
async fn hanging_call_withholds_no_other_result() {
    let setup = given::with_application();
    let host = setup.with("workbench.time_s", "3").start().await;
    let project = host.new_project().await;
    let echo = given::echo(&host).await;
    let fetch = publish_fetch(&host, &project).await;
    let session = create(&project, json!({ "user_id": "amy" })).await;
    let url = format!("https://api.example.com/hang/{}", harness::unique(8));
    let calls = [
        (&*echo, json!({ "number": 0 })),
        (&*fetch, json!({ "url": url })),
        (&*echo, json!({ "number": 2 })),
    ];
    let results = execute(&project, &session, &calls).await;
    for number in [0, 2] {
        let response = &results[number]["response"];
        assert_eq!(response["data"], json!({ "number": number }));
    }
    assert_eq!(results[1]["response"], Value::Null);
    given::assert_contains(&results[1]["error"], "cancelled");
}

#[tokio::test]
async fn disconnecting_cancels_all_parallel_calls() {
    let (host, project) = Host::shared_with_project().await;
    let fetch = publish_fetch(host, &project).await;
    let session = create(&project, json!({ "user_id": "amy" })).await;
    let tag = harness::unique(8);
    let url = format!("https://api.example.com/hang/{tag}");
    let calls = vec![(&*fetch, json!({ "url": url })); 20];
    let hanging = || given::seen(&tag);
    tokio::select! {
        results = execute(&project, &session, &calls) => panic!("the calls hang: {results:#}"),
        () = wait_until("as many calls as may run do", async || hanging() == 16) => {}
    }
    Host::application().wait_for_abandoned(&tag, 16).await;
    let echo = given::shared_echo().await;
    let results = execute(&project, &session, &[(echo, json!({ "after": 1 }))]).await;
    assert_eq!(results[0]["response"]["data"], json!({ "after": 1 }));
    assert_eq!(hanging(), 16, "no further call was started");
    let logs = async || {
        let listed = project.post("/logs/tool_execution", &json!({})).await;
        listed.expect(200)["logs"].clone()
    };
    let failed = |logs: &Value| {
        let logs = logs.as_array().unwrap().iter();
        logs.filter(|log| log["status"] == "failed").count()
    };
    wait_until("every cancelled run has its record", async || {
        failed(&logs().await) == 16
    })
    .await;
}

#[tokio::test]
async fn results_without_memory_begin_no_call() {
    const MOST_CALLS: usize = 50;
    let host = Setup::new().with("sandbox.memory_mib", "6").start().await;
    let echo = given::echo(&host).await;
    let project = host.new_project().await;
    let session = create(&project, json!({ "user_id": "amy" })).await;
    let batch = async |count: usize| {
        let call = json!({ "tool_slug": echo, "arguments": {} });
        let arguments = json!({ "tools": vec![call; count] });
        execute_meta(&project, &session, MULTI_EXECUTE, arguments).await
    };
    let refused = batch(MOST_CALLS).await.expect(429);
    assert_eq!(refused["error"]["slug"], "Server_ProjectBusy");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.ends_with("limit of memory"), "{message}");
    batch(1).await.expect(200);
}

/// Event that ends the calls of a batch that have not started.
#[derive(Clone, Copy, PartialEq)]
enum End {
    SessionDeleted,
    SessionLimited,
    KeyRevoked,
}

/// The first calls of a batch run when the session is closed, or limited over MCP, or the key revoked.
#[tokio::test]
async fn closed_session_begins_no_further_call() {
    let (host, project) = Host::shared_with_project().await;
    let fetch = publish_fetch(host, &project).await;
    let url = |path: String| json!({ "url": format!("https://api.example.com{path}") });
    for end in [End::SessionDeleted, End::SessionLimited, End::KeyRevoked] {
        let config = json!({ "user_id": "amy" });
        let created = project.post(SESSION_PATH, &config).await.expect(201);
        let session = created["session_id"].as_str().unwrap();
        let [running, waiting] = [harness::unique(8), harness::unique(8)];
        let mut calls = vec![(&*fetch, url(format!("/slow/{running}/5000"))); 16];
        calls.extend((0..4).map(|_| (&*fetch, url(format!("/echo/{waiting}")))));
        let called = async {
            if end != End::SessionLimited {
                return execute(&project, session, &calls).await;
            }
            let tools = calls
                .iter()
                .map(|(tool, arguments)| json!({ "tool_slug": tool, "arguments": arguments }));
            let arguments = json!({ "tools": tools.collect::<Vec<_>>() });
            let params = json!({ "name": "SERVICE_MULTI_EXECUTE_TOOL", "arguments": arguments });
            let mcp = created["mcp"]["url"].as_str().unwrap();
            let key = [("x-api-key", project.key())];
            let called = request(&project, mcp, "tools/call", params, &key).await;
            result(&called)["structuredContent"]["results"].clone()
        };
        let closed = async {
            let asked = || given::seen(&running);
            wait_until("the first calls run", async || asked() == 16).await;
            let path = format!("{SESSION_PATH}/{session}");
            match end {
                End::SessionDeleted => project.delete(&path).await.expect(200),
                End::SessionLimited => {
                    let none = json!({ "toolkits": { "enable": [] } });
                    project.patch(&path, &none).await.expect(200)
                }
                End::KeyRevoked => {
                    let keys = json!({ "api_keys": [project.key()] });
                    let nobody = host.anonymous();
                    nobody.post("/api_key_revocation", &keys).await.expect(200)
                }
            };
        };
        let (results, ()) = tokio::join!(called, closed);
        let results = results.as_array().unwrap();
        let failed = results.iter().filter(|result| result["error"].is_string());
        assert_eq!(failed.count(), 4, "{results:#?}");
        assert!(Host::application().seen(&waiting).is_empty());
    }
}

#[tokio::test]
async fn threshold_of_a_session_counts_characters() {
    let (host, project) = Host::shared_with_project().await;
    let echo = given::echo(host).await;
    // As JSON it has 111 characters and 211 bytes.
    let calls = [(&*echo, json!({ "word": "é".repeat(100) }))];
    for (threshold, is_file) in [(150, false), (100, true)] {
        let workbench = json!({ "auto_offload_threshold": threshold });
        let config = json!({ "user_id": "amy", "workbench": workbench });
        let session = create(&project, config).await;
        let results = execute(&project, &session, &calls).await;
        let data = &results[0]["response"]["data"];
        assert_eq!(data["result_file"].is_object(), is_file, "{threshold}");
    }
}

#[tokio::test]
async fn result_without_room_keeps_its_log_id() {
    let setup = given::with_application();
    let host = setup.with("files.quota_mib", "1").start().await;
    let project = host.new_project().await;
    let slug = given::slug();
    host.publish(Guest::filler().component(), &guest::manifest(&slug))
        .await;
    let session = create(&project, json!({ "user_id": "amy" })).await;
    let tool = guest::tool(&slug);
    let calls = [
        (&*tool, json!({ "n": 2 << 20 })),
        (&*tool, json!({ "n": 100 })),
    ];
    let results = execute(&project, &session, &calls).await;
    let response = &results[0]["response"];
    assert_eq!(response["successful"], false);
    let error = response["error"].as_str().unwrap();
    assert!(error.starts_with("file_not_kept: "), "{error}");
    assert_eq!(results[0]["error"], error);
    let log = project.log(&response["log_id"]).await;
    assert_eq!(log["status"], "success");
    assert_eq!(results[1]["response"]["successful"], true);
}

#[tokio::test]
async fn many_meta_calls_leave_room_for_neighbors() {
    // One project runs three calls, three quarters of these.
    let setup = given::with_application().with("sandbox.live", "5");
    let host = setup.start().await;
    let echo = given::echo(&host).await;
    let busy = host.new_project().await;
    let fetch = publish_fetch(&host, &busy).await;
    let session = create(&busy, json!({ "user_id": "amy" })).await;
    let tag = harness::unique(8);
    let url = format!("https://api.example.com/hang/{tag}");
    let call = json!({ "tool_slug": fetch, "arguments": { "url": url } });
    let arguments = json!({ "tools": vec![call; 16], "sync_response_to_workbench": false });
    let body = json!({ "slug": MULTI_EXECUTE, "arguments": arguments });
    let path = format!("{SESSION_PATH}/{session}/execute_meta");
    let mut calls: FuturesUnordered<_> = (0..200).map(|_| busy.post(&path, &body)).collect();

    let hanging = || given::seen(&tag);
    let neighbor = async {
        wait_until("the project runs what it may", async || hanging() == 3).await;
        let neighbor = host.new_project().await;
        let session = create(&neighbor, json!({ "user_id": "bob" })).await;
        let search = json!({ "queries": [{ "use_case": "return arguments" }] });
        for number in 0..20 {
            let calls = [(&*echo, json!({ "number": number }))];
            let results = execute(&neighbor, &session, &calls).await;
            assert_eq!(results[0]["response"]["successful"], true, "{results:#}");
            let path = format!("{SESSION_PATH}/{session}/search");
            neighbor.post(&path, &search).await.expect(200);
        }
    };
    let mut neighbor = std::pin::pin!(neighbor);
    loop {
        tokio::select! {
            () = &mut neighbor => break,
            Some(answer) = calls.next() => match answer.status {
                200 => {}
                _ => assert_eq!(answer.expect(429)["error"]["slug"], "Server_ProjectBusy"),
            },
        }
    }
    assert_eq!(hanging(), 3, "no further call of the project has run");
}

#[tokio::test]
async fn results_become_a_file_of_the_workbench() {
    let (host, project) = Host::shared_with_project().await;
    let echo = given::echo(host).await;
    let session = create(&project, json!({ "user_id": "amy" })).await;
    let call = json!({ "tool_slug": echo, "arguments": { "number": 7 } });
    let arguments = json!({ "tools": [call], "sync_response_to_workbench": true });
    let done = execute_meta(&project, &session, MULTI_EXECUTE, arguments).await;
    let file = &done["data"]["remote_file_info"];
    let name = file["file_path"].as_str().unwrap();
    let name = name.strip_prefix("/mnt/files/").unwrap();
    let content = download(&project, &session, name).await.bytes;
    assert_eq!(file["size"], content.len());
    let results: Value = serde_json::from_slice(&content).unwrap();
    assert_eq!(results, done["data"]["results"]);
}
