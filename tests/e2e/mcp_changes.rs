//! Announcements of MCP endpoints that the list of tools has changed.

use harness::{
    Client, Guest, Host, client::RawResponse, event_reader::EventReader, guest, host::Setup,
    wait_until,
};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::given;

const JSON_HEADERS: [(&str, &str); 2] = [
    ("content-type", "application/json"),
    ("accept", "application/json, text/event-stream"),
];

/// Returns the headers of a request for the stream of an older client.
fn older_headers(project: &Client) -> [(&str, &str); 3] {
    [
        ("accept", "text/event-stream"),
        ("mcp-protocol-version", "2025-11-25"),
        ("x-api-key", project.key()),
    ]
}

/// Opens the stream of an older client.
async fn older_stream(project: &Client, url: &str) -> EventReader {
    let headers = older_headers(project);
    project
        .exchange_stream(Method::GET, url, &headers, Vec::new())
        .await
}

/// Returns the headers and the body of a request for a subscription.
fn subscription_request(project: &Client, notifications: Value) -> (Vec<(&str, &str)>, Vec<u8>) {
    let method = "subscriptions/listen";
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "_meta": meta, "notifications": notifications });
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
    let own = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", method),
        ("x-api-key", project.key()),
    ];
    let headers = [&JSON_HEADERS[..], &own].concat();
    (headers, body.to_string().into_bytes())
}

/// Opens a subscription, and returns it after the acknowledgement.
async fn subscription(project: &Client, url: &str, notifications: Value) -> EventReader {
    let (headers, body) = subscription_request(project, notifications);
    let mut stream = project
        .exchange_stream(Method::POST, url, &headers, body)
        .await;
    let first = stream.next().await.unwrap().data;
    assert_eq!(
        first["method"], "notifications/subscriptions/acknowledged",
        "{first:#}"
    );
    stream
}

async fn publish(host: &Host, slug: &str, version: &str) {
    let mut manifest = guest::manifest(slug);
    manifest["version"] = json!(version);
    host.publish(Guest::echo().component(), &manifest).await;
}

#[tokio::test]
async fn publication_is_announced_to_clients_of_its_tools() {
    let (host, project) = Host::shared_with_project().await;
    let [slug, other] = [given::slug(), given::slug()];
    publish(host, &slug, "20260101_00").await;
    let server = given::mcp_server_of(&project, &slug).await;
    let config = json!({ "user_id": "amy", "preload": { "tools": [guest::tool(&slug)] } });
    let session = given::mcp_session(&project, &config).await;
    let tools = json!({ "toolsListChanged": true });
    let mut streams = Vec::new();
    for url in [&server, &session] {
        streams.push(older_stream(&project, url).await);
        streams.push(subscription(&project, url, tools.clone()).await);
    }
    publish(host, &other, "20260101_00").await;
    publish(host, &slug, "20260102_00").await;
    for stream in &mut streams {
        let announced = stream.next().await.unwrap().data;
        assert_eq!(
            announced["method"], "notifications/tools/list_changed",
            "{announced:#}"
        );
    }
}

#[tokio::test]
async fn streams_end_when_the_server_stops() {
    let host = given::with_application().start().await;
    let tool = given::echo(&host).await;
    let project = host.as_project();
    let url = given::mcp_server_of(&project, &given::toolkit_of(&tool)).await;
    let mut older = older_stream(&project, &url).await;
    let mut newer = subscription(&project, &url, json!({ "toolsListChanged": true })).await;
    let (_, status) = host.terminate().await;
    assert!(status.success());
    assert_eq!(older.next().await, None);
    let last = newer.next().await.unwrap().data;
    assert_eq!(last["id"], 7, "{last:#}");
    assert_eq!(newer.next().await, None);
}

/// Returns true if the server opens a further stream for an older client.
async fn can_open_stream(project: &Client, url: &str) -> bool {
    let (address, path) = url
        .strip_prefix("http://")
        .and_then(|rest| rest.split_once('/'))
        .unwrap();
    let key = project.key();
    let request = format!(
        "GET /{path} HTTP/1.1\r\nhost: {address}\r\nx-api-key: {key}\r\naccept: text/event-stream\r\n\r\n"
    );
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut status = [0; "HTTP/1.1 200".len()];
    socket.read_exact(&mut status).await.unwrap();
    status == *b"HTTP/1.1 200"
}

/// Asserts that a stream is refused because its project or its address has too many.
fn assert_too_many_streams(refused: &RawResponse, owner: &str, id: &Value) {
    assert_eq!(refused.status, 429, "{refused:?}");
    assert_eq!(refused.header("retry-after"), "1");
    let message: Value = serde_json::from_slice(&refused.bytes).unwrap();
    let reason = format!("the {owner} has reached its limit of open streams");
    assert_eq!(message["error"]["message"], reason, "{message:#}");
    assert_eq!(message["id"], *id, "{message:#}");
}

#[tokio::test]
async fn streams_without_key_leave_those_of_keys() {
    let host = Setup::new().with("limits.in_flight", "8").start().await;
    let tool = given::echo(&host).await;
    let project = host.new_project().await;
    let url = given::mcp_server_of(&project, &given::toolkit_of(&tool)).await;
    let headers = older_headers(&project);
    let without_key = &headers[..2];
    let open = project.exchange_stream(Method::GET, &url, without_key, Vec::new());
    let _open = open.await;
    let refused = project.exchange(Method::GET, &url, without_key, Vec::new());
    assert_too_many_streams(&refused.await, "address", &Value::Null);
    let mut streams = Vec::new();
    for _ in 0..4 {
        streams.push(older_stream(&project, &url).await);
    }
}

#[tokio::test]
async fn idle_streams_leave_calls_working() {
    let host = Setup::new().with("limits.in_flight", "8").start().await;
    let tool = given::echo(&host).await;
    let project = host.new_project().await;
    let url = given::mcp_server_of(&project, &given::toolkit_of(&tool)).await;
    let tools = json!({ "toolsListChanged": true });
    let mut streams = Vec::new();
    for _ in 0..2 {
        streams.push(older_stream(&project, &url).await);
        streams.push(subscription(&project, &url, tools.clone()).await);
    }
    project.execute(&tool, json!({ "said": 1 })).await.data();

    // The project has as many streams as it may have.
    let headers = older_headers(&project);
    let refused = project
        .exchange(Method::GET, &url, &headers, Vec::new())
        .await;
    assert_too_many_streams(&refused, "project", &Value::Null);
    let (headers, body) = subscription_request(&project, tools);
    let refused = project.exchange(Method::POST, &url, &headers, body).await;
    assert_too_many_streams(&refused, "project", &json!(7));
    project.execute(&tool, json!({ "said": 2 })).await.data();
    drop(streams);
    wait_until("a closed stream makes room for another", async || {
        can_open_stream(&project, &url).await
    })
    .await;
}
