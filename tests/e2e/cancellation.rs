//! Calls and proxy requests whose client disconnects: they end and their record says so.

use harness::{
    Answer, Client, Guest, Host, client::Body, event_reader::EventReader, guest, host::Setup,
    unique, wait_until,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::given;

const LOGS_PATH: &str = "/logs/tool_execution";
/// Headers of a message of an MCP client whose protocol version has connections.
const MCP_HEADERS: [(&str, &str); 4] = [
    ("content-type", "application/json"),
    ("accept", "application/json, text/event-stream"),
    ("mcp-protocol-version", "2025-11-25"),
    ("mcp-session-id", "connection"),
];

/// Server on which one call runs at a time, and a project with an account.
struct Scene {
    host: Host,
    project: Client,
    /// Tool that fetches the given address.
    fetch: String,
    account: String,
}

/// Returns the address of an MCP server of a project with the tools of its auth config.
async fn mcp_server(project: &Client) -> String {
    let configs = project.get("/auth_configs").await.expect(200);
    let config = &configs["items"][0]["id"];
    let body = json!({ "name": "Fetch", "auth_config_ids": [config] });
    let url = given::mcp_server(project, &body).await;
    format!("{url}?user_id=default")
}

impl Scene {
    async fn new(setup: Setup) -> Self {
        let host = setup.with("sandbox.live", "1").start().await;
        let slug = given::slug();
        given::publish_with_key(&host, &Guest::fetch(), &slug).await;
        let project = host.new_project().await;
        let account = project.connect_with_key(&slug, "default").await;
        Self {
            host,
            project,
            fetch: guest::tool(&slug),
            account,
        }
    }

    /// Publishes a guest with long time limits and returns its tool.
    async fn publish(&self, execute: &str, imports: &str) -> String {
        let guest = Guest {
            imports,
            execute,
            ..Guest::default()
        };
        let mut manifest = guest::manifest(&given::slug());
        manifest["limits"] = json!({ "cpu_ms": 60_000, "wall_ms": 300_000 });
        manifest["tools"][0]["no_auth"] = json!(true);
        self.host.publish(guest.component(), &manifest).await;
        guest::tool(manifest["slug"].as_str().unwrap())
    }

    /// Sends a request with the fetching tool, or as a proxy request.
    async fn send(&self, by: By, path: &str) -> Answer {
        match by {
            By::Tool => {
                let url = json!({ "url": format!("https://api.example.com{path}") });
                self.project.execute(&self.fetch, url).await
            }
            By::Proxy => {
                let body = json!({ "connected_account_id": self.account, "endpoint": path, "method": "GET" });
                self.project.post("/tools/execute/proxy", &body).await
            }
        }
    }

    /// Sends a request and disconnects once the provider has received it.
    async fn abandon(&self, by: By, path: &str, tag: &str) {
        tokio::select! {
            ended = self.send(by, path) => panic!("{by:?} was too quick: {ended:#?}"),
            () = Host::application().wait_for_requests(tag, 1) => {}
        }
    }

    /// Returns the address of an MCP server with the fetching tool.
    async fn mcp_server(&self) -> String {
        mcp_server(&self.project).await
    }

    /// Calls the fetching tool as an MCP client that wants to know the progress. Returns the stream of
    /// the response once the provider has received its request.
    async fn call_over_mcp(&self, url: &str, path: &str, tag: &str) -> EventReader {
        let arguments = json!({ "url": format!("https://api.example.com{path}") });
        let meta = json!({ "progressToken": "p" });
        let params = json!({ "name": self.fetch, "arguments": arguments, "_meta": meta });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let body = body.to_string().into_bytes();
        let stream = self
            .project
            .exchange_stream(Method::POST, url, &MCP_HEADERS, body)
            .await;
        Host::application().wait_for_requests(tag, 1).await;
        stream
    }

    /// Returns the only record of the project in the log.
    async fn record(&self) -> Value {
        let list = async || self.project.post(LOGS_PATH, &json!({})).await.expect(200);
        wait_until("the record is there", async || {
            list().await["logs"].as_array().unwrap().len() == 1
        })
        .await;
        let id = &list().await["logs"][0]["id"];
        self.project.log(id).await.json
    }

    /// Asserts that the only record is one of a cancelled run, and that the slot is free.
    async fn assert_cancelled(&self) -> Value {
        let record = self.record().await;
        assert_eq!(record["status"], "failed", "{record:#}");
        let error = record["data"]["response"]["error"].as_str().unwrap();
        assert!(error.starts_with("cancelled: "), "{record:#}");
        let neighbor = self.host.new_project().await;
        let echo = given::echo(&self.host).await;
        neighbor.execute(&echo, json!({ "after": 1 })).await.data();
        record
    }
}

#[derive(Debug, Clone, Copy)]
enum By {
    Tool,
    Proxy,
}

#[tokio::test]
async fn disconnecting_ends_a_computing_guest() {
    let scene = Scene::new(given::with_application()).await;
    let imports =
        r#"(import "toolhost:toolkit/log@1.0.0" "write" (func $log (param i32 i32 i32)))"#;
    // The line is the guest's arguments.
    let spin = "(call $log (i32.const 1) (local.get $args) (local.get $args_len))
        (loop $l (br $l)) unreachable";
    let tool = scene.publish(spin, imports).await;
    let begun = scene.host.ticks();
    let burns = wait_until("the guest computes", async || {
        scene.host.ticks() > begun + 30
    });
    tokio::select! {
        ended = scene.project.execute(&tool, json!({ "word": "spun" })) => panic!("it goes on for a minute: {ended:#?}"),
        () = burns => {}
    }
    let record = scene.assert_cancelled().await;
    assert!(
        record["data"]["log"].to_string().contains("spun"),
        "the guest's lines are kept: {record:#}"
    );
}

#[tokio::test]
async fn disconnecting_aborts_the_outgoing_request() {
    for (by, wait) in [(By::Tool, "true"), (By::Proxy, "false")] {
        let scene = Scene::new(given::with_application().with("logs.wait", wait)).await;
        let tag = unique(8);
        scene.abandon(by, &format!("/hang/{tag}"), &tag).await;
        Host::application().wait_for_abandoned(&tag, 1).await;
        let record = scene.assert_cancelled().await;
        let sent = &record["data"]["requests"][0];
        assert!(sent["url"].to_string().contains(&tag), "{record:#}");
        assert_eq!(sent["status"], Value::Null, "{record:#}");
    }
}

/// Since protocol version 2026-07-28, this is the only way for a client to cancel a call.
#[tokio::test]
async fn newer_client_cancels_by_disconnecting() {
    let scene = Scene::new(given::with_application()).await;
    let url = scene.mcp_server().await;
    let tag = unique(8);
    let version = "2026-07-28";
    let params = json!({
        "name": scene.fetch,
        "arguments": { "url": format!("https://api.example.com/hang/{tag}") },
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", version),
        ("mcp-method", "tools/call"),
        ("mcp-name", scene.fetch.as_str()),
    ];
    let body = body.to_string().into_bytes();
    let sent = scene.project.exchange(Method::POST, &url, &headers, body);
    tokio::select! {
        ended = sent => panic!("it hangs: {ended:?}"),
        () = Host::application().wait_for_requests(&tag, 1) => {}
    }
    scene.assert_cancelled().await;
}

/// Sends the notification that cancels the first request of a connection, with a key if there is one.
async fn cancel(client: &Client, url: &str, key: Option<&str>) {
    let params = json!({ "requestId": 1 });
    let body = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
    let mut headers = MCP_HEADERS.to_vec();
    headers.extend(key.map(|key| ("x-api-key", key)));
    let body = body.to_string().into_bytes();
    let sent = client.exchange(Method::POST, url, &headers, body).await;
    assert_eq!(sent.status, 202, "{sent:?}");
}

#[tokio::test]
async fn only_caller_of_an_address_cancels_its_calls() {
    let scene = Scene::new(given::with_application()).await;
    let url = scene.mcp_server().await;
    let stranger = scene.host.new_project().await;
    let toolkit = scene.fetch.split('_').next().unwrap().to_lowercase();
    stranger.connect_with_key(&toolkit, "default").await;
    let tag = unique(8);
    let path = format!("/hang/{tag}");
    let mut stream = scene.call_over_mcp(&url, &path, &tag).await;
    cancel(&stranger, &mcp_server(&stranger).await, None).await;
    let other_user = url.replace("user_id=default", "user_id=amy");
    cancel(&scene.project, &other_user, None).await;
    // The call started without a key.
    cancel(&scene.project, &url, Some(scene.project.key())).await;
    for _ in 0..3 {
        let event = stream.next().await.unwrap().data;
        assert_eq!(event["method"], "notifications/progress", "{event:#}");
    }
    cancel(&scene.project, &url, None).await;
    scene.assert_cancelled().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_server_records_what_it_cuts() {
    let setup = given::with_application().with("limits.drain_s", "1");
    let Scene {
        host,
        project,
        fetch,
        account,
    } = Scene::new(setup).await;
    let tag = unique(8);
    let path = format!("/tools/execute/{fetch}");
    let arguments = json!({ "url": format!("https://api.example.com/hang/{tag}") });
    let body = Body::Json(json!({ "arguments": arguments, "version": "latest" }));
    let cut = project.try_send(Method::POST, &path, body, &[]);
    let stopped = async {
        Host::application().wait_for_requests(&tag, 1).await;
        host.terminate().await
    };
    let (cut, (setup, status)) = tokio::join!(cut, stopped);
    assert!(cut.is_err(), "{cut:?}");
    assert!(status.success(), "{status}");
    let host = setup.start().await;
    let scene = Scene {
        project: host.with_key(project.key()),
        host,
        fetch,
        account,
    };
    scene.assert_cancelled().await;
}
