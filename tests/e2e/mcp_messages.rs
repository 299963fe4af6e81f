//! Answers of MCP endpoints to headers and bodies that differ from those of the official libraries.

use harness::{Client, Guest, Host, client::RawResponse, guest};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    event_stream::STREAM_PATH,
    given,
    mcp_endpoints::{request, result},
};

const BOTH_MEDIA_TYPES: &str = "application/json, text/event-stream";

async fn send(project: &Client, url: &str, headers: &[(&str, &str)], body: &str) -> RawResponse {
    let headers = [&[("content-type", "application/json")][..], headers].concat();
    let body = body.as_bytes().to_vec();
    project.exchange(Method::POST, url, &headers, body).await
}

fn message(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

#[track_caller]
fn parsed(response: &RawResponse) -> Value {
    let text = response.text();
    let media_type = response.header("content-type");
    assert_eq!(media_type, "application/json", "{text}");
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"))
}

/// Returns the address of a server with a tool that echoes, and the name of the tool.
async fn echo(project: &Client) -> (String, &'static str) {
    let tool = given::shared_echo().await;
    let url = given::mcp_server_of(project, &given::toolkit_of(tool)).await;
    (url, tool)
}

#[tokio::test]
async fn number_out_of_range_is_named_by_path() {
    let project = Host::shared().await.new_project().await;
    let (url, tool) = echo(&project).await;
    for metadata in ["", r#""_meta":{},"#] {
        let params = format!(r#"{{{metadata}"name":"{tool}","arguments":{{"a":[1E400]}}}}"#);
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        let headers = [("accept", BOTH_MEDIA_TYPES)];
        let response = send(&project, &url, &headers, &body).await;
        let text = response.text();
        assert!(text.contains("a[0]: the number is too large"), "{text}");
    }
}

#[tokio::test]
async fn clients_that_accept_json_get_json() {
    let project = Host::shared().await.new_project().await;
    let (url, tool) = echo(&project).await;
    let client = json!({
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "t", "version": "1" },
    });
    let reported = json!({ "name": tool, "arguments": {}, "_meta": { "progressToken": 1 } });
    let messages = [
        message(1, "initialize", client),
        message(2, "tools/list", json!({})),
        message(
            3,
            "tools/call",
            json!({ "name": tool, "arguments": { "a": 1 } }),
        ),
        message(4, "tools/call", reported),
        message(5, "ping", json!({})),
    ];
    for accept in [
        None,
        Some("application/json"),
        Some("*/*"),
        Some("application/*"),
        Some("application/json, text/plain, */*"),
        Some("application/json;q=0.9"),
    ] {
        let header = accept.map(|accept| ("accept", accept));
        for message in &messages {
            let headers = header.as_slice();
            let answer = send(&project, &url, headers, &message.to_string()).await;
            assert_eq!(answer.status, 200, "{accept:?}: {message}");
            let answer = parsed(&answer);
            assert_eq!(answer["id"], message["id"], "{accept:?}: {answer}");
            assert!(answer["error"].is_null(), "{accept:?}: {answer}");
        }
    }
    let list = message(1, "tools/list", json!({})).to_string();
    for accept in ["text/html", "text/event-stream", "application/json;q=0"] {
        let refused = send(&project, &url, &[("accept", accept)], &list).await;
        assert_eq!(refused.status, 406, "{accept}");
    }
}

#[tokio::test]
async fn unfit_headers_get_the_errors_of_json_rpc() {
    let project = Host::shared().await.new_project().await;
    let (url, _) = echo(&project).await;
    let list = message(7, "tools/list", json!({})).to_string();
    let json = ("content-type", "application/json");
    let accept = ("accept", BOTH_MEDIA_TYPES);
    let charset = "application/json; charset=koi8-r";
    for (headers, status, advice) in [
        ([json, ("accept", "text/html")], 406, "send `accept:"),
        (
            [("content-type", "text/plain"), accept],
            415,
            "send `content-type:",
        ),
        ([("content-type", charset), accept], 415, "send UTF-8"),
        (
            [json, ("mcp-protocol-version", "2020-01-01")],
            400,
            "2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28",
        ),
    ] {
        let body = list.clone().into_bytes();
        let answer = project.exchange(Method::POST, &url, &headers, body).await;
        let error = parsed(&answer);
        assert_eq!(
            (answer.status, &error["id"], &error["error"]["code"]),
            (status, &json!(7), &json!(-32600)),
            "{headers:?}: {error}"
        );
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains(advice), "{headers:?}: {message}");
        assert!(!message.contains("2020-01-01"), "{message}");
    }
}

#[tokio::test]
async fn other_http_methods_get_errors_of_json_rpc() {
    let project = Host::shared().await.new_project().await;
    let (url, _) = echo(&project).await;
    for method in [Method::PUT, Method::PATCH] {
        let answer = project.exchange(method, &url, &[], Vec::new()).await;
        let error = parsed(&answer);
        assert_eq!(
            (answer.status, &error["error"]["code"]),
            (405, &json!(-32600)),
            "{error}"
        );
        assert_eq!(answer.header("allow"), "GET, POST, DELETE");
    }
    let head = project.exchange(Method::HEAD, &url, &[], Vec::new()).await;
    assert_eq!(head.status, 405);
    assert_eq!(head.header("allow"), "GET, POST, DELETE");
}

#[tokio::test]
async fn unknown_method_is_answered_with_known_ones() {
    let project = Host::shared().await.new_project().await;
    let (url, _) = echo(&project).await;
    // An MCP server has no resources.
    for method in ["tools/unknown", "resources/read"] {
        let body = message(7, method, json!({ "uri": "file:///a" })).to_string();
        let answer = send(&project, &url, &[("accept", BOTH_MEDIA_TYPES)], &body).await;
        let error = &parsed(&answer)["error"];
        let message = error["message"].as_str().unwrap();
        assert_eq!(error["code"], -32601, "{message}");
        assert!(message.contains("tools/call"), "{message}");
        assert!(!message.contains(method), "{message}");
    }
}

#[tokio::test]
async fn browsers_get_an_explanation_instead_of_a_stream() {
    let project = Host::shared().await.new_project().await;
    let (server, _) = echo(&project).await;
    let session = given::mcp_session(&project, &json!({ "user_id": "amy" })).await;
    for (url, accept, content_type) in [
        (&server, "*/*", "application/json"),
        (&server, "text/html,*/*;q=0.8", "text/plain; charset=utf-8"),
        (&session, "text/html,*/*;q=0.8", "text/plain; charset=utf-8"),
    ] {
        let headers = [("accept", accept)];
        let answer = project
            .exchange(Method::GET, url, &headers, Vec::new())
            .await;
        assert_eq!(answer.status, 406, "{accept}");
        assert_eq!(answer.header("content-type"), content_type, "{accept}");
        let text = answer.text();
        assert!(text.contains("add it to an MCP client"), "{text}");
    }
}

#[tokio::test]
async fn faulty_messages_get_the_errors_of_json_rpc() {
    let project = Host::shared().await.new_project().await;
    let (url, tool) = echo(&project).await;
    let call = |arguments: Value| {
        let params = json!({ "name": tool, "arguments": arguments });
        message(7, "tools/call", params).to_string()
    };
    let listed = message(7, "tools/call", json!([])).to_string();
    let nameless = message(7, "tools/call", json!({})).to_string();
    let batch = json!([message(7, "ping", json!({}))]).to_string();
    let answered = json!({ "jsonrpc": "2.0", "id": 7, "error": 5 }).to_string();
    let fraction = r#"{"jsonrpc":"2.0","id":7.0,"method":"tools/list"}"#;
    for (body, id, code, status, reason) in [
        ("{\"jsonrpc\":", Value::Null, -32700, 400, "ends too early"),
        ("", Value::Null, -32700, 400, "ends too early"),
        ("5", Value::Null, -32600, 400, "object"),
        ("{}", Value::Null, -32600, 400, "jsonrpc"),
        (&*batch, Value::Null, -32600, 400, "batches"),
        (fraction, Value::Null, -32600, 400, "id must be"),
        (r#"{"id":7,"error":5}"#, json!(7), -32600, 400, "jsonrpc"),
        (&*answered, json!(7), -32600, 400, "responses"),
        (&*call(json!("{}")), json!(7), -32602, 200, "not a string"),
        (&*call(json!([])), json!(7), -32602, 200, "not a list"),
        (&*listed, json!(7), -32602, 200, "params"),
        (&*nameless, json!(7), -32602, 200, "name"),
    ] {
        let headers = [
            ("accept", BOTH_MEDIA_TYPES),
            ("mcp-protocol-version", "2025-11-25"),
        ];
        let answer = send(&project, &url, &headers, body).await;
        let error = parsed(&answer);
        assert_eq!(answer.status, status, "{body}: {error}");
        assert_eq!(
            (&error["id"], &error["error"]["code"]),
            (&id, &json!(code)),
            "{body}: {error}"
        );
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.contains(reason), "{body}: {message}");
    }
}

#[tokio::test]
async fn unknown_tool_suggests_a_similar_one() {
    let project = Host::shared().await.new_project().await;
    let (url, tool) = echo(&project).await;
    let params = json!({ "name": format!("{tool}S"), "arguments": {} });
    let refused = request(&project, &url, "tools/call", params, &[]).await;
    let refused = parsed(&refused).to_string();
    let question = format!("did you mean `{tool}`?");
    assert!(refused.contains(&question), "{refused}");
}

#[tokio::test]
async fn batches_of_their_version_are_answered() {
    let project = Host::shared().await.new_project().await;
    let (url, tool) = echo(&project).await;
    let notification = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let params = json!({ "name": tool, "arguments": { "a": 1 } });
    let batch = json!([
        message(1, "ping", json!({})),
        notification,
        message(2, "tools/call", params),
        5,
        message(3, "initialize", json!({})),
    ]);
    for version in [None, Some("2025-03-26")] {
        let version = version.map(|version| ("mcp-protocol-version", version));
        let headers = [&[("accept", BOTH_MEDIA_TYPES)][..], version.as_slice()].concat();
        let answer = send(&project, &url, &headers, &batch.to_string()).await;
        assert_eq!(answer.status, 200);
        let answers = parsed(&answer);
        let [pinged, called, number, opened] = &answers.as_array().unwrap()[..] else {
            panic!("{answers:#}")
        };
        assert_eq!(pinged["id"], 1);
        assert_eq!(called["result"]["structuredContent"], json!({ "a": 1 }));
        assert_eq!(number["error"]["code"], -32600);
        assert_eq!(opened["id"], 3);
        assert_eq!(opened["error"]["code"], -32600);
        let alone = json!([notification]).to_string();
        let accepted = send(&project, &url, &headers, &alone).await;
        assert_eq!((accepted.status, accepted.bytes.len()), (202, 0));
        for count in [0, 21] {
            let many = json!(vec![message(1, "ping", json!({})); count]).to_string();
            let refused = send(&project, &url, &headers, &many).await;
            assert_eq!(parsed(&refused)["error"]["code"], -32600, "{count}");
        }
    }
}

#[tokio::test]
async fn no_proxy_holds_event_streams_back() {
    let project = Host::shared().await.new_project().await;
    let (url, tool) = echo(&project).await;
    let meta = json!({ "progressToken": 1 });
    let params = json!({ "name": tool, "arguments": {}, "_meta": meta });
    let call = message(1, "tools/call", params).to_string().into_bytes();
    let headers = [
        ("content-type", "application/json"),
        ("accept", BOTH_MEDIA_TYPES),
    ];
    let called = project.exchange_stream(Method::POST, &url, &headers, call);
    let headers = [("accept", "text/event-stream")];
    let opened = project.exchange_stream(Method::GET, &url, &headers, Vec::new());
    let events = project.open_stream(STREAM_PATH, None);
    for stream in [called.await, opened.await, events.await] {
        assert_eq!(stream.header("x-accel-buffering"), "no", "{stream:?}");
    }
}

#[tokio::test]
async fn versions_without_output_schemas_get_none() {
    let (host, project) = Host::shared_with_project().await;
    let (slug, mut manifest) = given::manifest();
    manifest["tools"][0]["output"] = json!({
        "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"],
    });
    host.publish(Guest::echo().component(), &manifest).await;
    let url = given::mcp_server_of(&project, &slug).await;
    let list = message(1, "tools/list", json!({})).to_string();
    for (version, has_schema) in [
        (None, false),
        (Some("2025-03-26"), false),
        (Some("2025-06-18"), true),
        (Some("2025-11-25"), true),
    ] {
        let version = version.map(|version| ("mcp-protocol-version", version));
        let headers = [&[("accept", BOTH_MEDIA_TYPES)][..], version.as_slice()].concat();
        let listed = result(&send(&project, &url, &headers, &list).await);
        let tool = &listed["tools"][0];
        assert_eq!(tool["outputSchema"].is_object(), has_schema, "{version:?}");
        assert_eq!(tool["_meta"]["anthropic/maxResultSizeChars"], 100 << 10);
    }
}

#[tokio::test]
async fn large_results_are_a_beginning_and_a_file() {
    let (host, project) = Host::shared_with_project().await;
    let slug = given::slug();
    host.publish(Guest::filler().component(), &guest::manifest(&slug))
        .await;
    let url = given::mcp_server_of(&project, &slug).await;
    let call = async |bytes: usize, mut params: Value| {
        params["name"] = guest::tool(&slug).into();
        params["arguments"] = json!({ "n": bytes });
        result(&request(&project, &url, "tools/call", params, &[]).await)
    };
    let limit = 100 << 10;
    let whole = call(limit, json!({})).await;
    assert_eq!(
        whole["structuredContent"]["a"].as_str().unwrap().len(),
        limit - 8
    );
    // A request with metadata takes another way through the server, and the last result is a file for all
    // clients.
    let small = [json!({}), json!({ "_meta": {} })].map(|more| (limit + 1, more));
    for (size, more) in small.into_iter().chain([((4 << 20) + 1, json!({}))]) {
        let cut = call(size, more).await;
        assert_eq!(cut["isError"], false, "{cut:#}");
        let [beginning, note, link] = &cut["content"].as_array().unwrap()[..] else {
            panic!("{cut:#}")
        };
        let text = beginning["text"].as_str().unwrap();
        assert!(text.starts_with("{\"a\":\"xxx") && text.len() < 50_000);
        assert_eq!(beginning["_meta"]["untrusted"], true);
        assert!(note["text"].as_str().unwrap().contains("linked file"));
        assert_eq!(cut["structuredContent"]["result_file"]["size"], size);
        let address = link["uri"].as_str().unwrap();
        let file = given::open(&project, address).await;
        assert_eq!((file.status, file.bytes.len()), (200, size));
    }
    let path = format!("/files/list?toolkit_slug={slug}");
    let files = project.get(&path).await.expect(200);
    assert_eq!(files["total_items"], 3, "{files:#?}");
}
