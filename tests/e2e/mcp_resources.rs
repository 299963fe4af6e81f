//! Files of a session as resources of its MCP endpoint.

use harness::{Client, Host, mcp_programs::inspector};
use serde_json::{Value, json};

use crate::{mcp_endpoints::request, mounts::upload, tool_router_sessions::create};

/// A session with its MCP address.
struct Given {
    project: Client,
    session: String,
    url: String,
}

impl Given {
    async fn new() -> Self {
        let (host, project) = Host::shared_with_project().await;
        let session = create(&project, json!({ "user_id": "amy" })).await;
        let url = format!("{}/tool_router/{session}/mcp", host.url);
        Self {
            project,
            session,
            url,
        }
    }

    async fn upload(&self, path: &str, bytes: &[u8]) {
        upload(&self.project, &self.session, path, bytes).await;
    }

    /// Returns the response to a request, with `result` or `error`.
    async fn send(&self, method: &str, params: Value) -> Value {
        let key = [("x-api-key", self.project.key())];
        let response = request(&self.project, &self.url, method, params, &key).await;
        serde_json::from_slice(&response.bytes).unwrap()
    }

    async fn read(&self, uri: &str) -> Value {
        self.send("resources/read", json!({ "uri": uri })).await
    }
}

#[tokio::test]
async fn files_of_a_session_are_resources() {
    let given = Given::new().await;
    given.upload("in/a é.txt", "hello".as_bytes()).await;
    given.upload("b.bin", &[0, 255]).await;
    let list = ["--method", "resources/list"];
    let listed = inspector(&given.url, Some(given.project.key()), &list)
        .await
        .succeeded();
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let resources = listed["resources"].as_array().unwrap();
    let of = |name: &str| resources.iter().find(|one| one["name"] == name).unwrap();
    assert_eq!(resources.len(), 2, "{listed:#}");
    assert_eq!(of("b.bin")["size"], 2, "{listed:#}");
    let text = of("in/a é.txt")["uri"].as_str().unwrap();
    let read = given.read(text).await;
    assert_eq!(read["result"]["contents"][0]["text"], "hello", "{read:#}");
    assert_eq!(read["result"]["contents"][0]["uri"], text, "{read:#}");
    let read = given.read("file:///mnt/files/b.bin").await;
    assert_eq!(read["result"]["contents"][0]["blob"], "AP8=", "{read:#}");
}

#[tokio::test]
async fn other_and_large_files_are_refused() {
    let [given, other] = [Given::new().await, Given::new().await];
    other.upload("a.txt", b"secret").await;
    for uri in [
        "file:///mnt/files/a.txt",
        "file:///etc/passwd",
        "file:///mnt/files/../x",
        "a.txt",
    ] {
        let read = given.read(uri).await;
        assert_eq!(read["error"]["data"]["uri"], uri, "{read:#}");
    }
    given.upload("big.txt", &vec![b'x'; (4 << 20) + 1]).await;
    let read = given.read("file:///mnt/files/big.txt").await;
    let message = read["error"]["message"].as_str().unwrap();
    assert!(message.contains("download_url"), "{read:#}");
}

#[tokio::test]
async fn long_lists_of_files_have_pages() {
    let given = Given::new().await;
    for number in 0..255 {
        given.upload(&format!("{number:03}.txt"), b"x").await;
    }
    let first = given.send("resources/list", json!({})).await;
    assert_eq!(first["result"]["resources"].as_array().unwrap().len(), 250);
    let next = json!({ "cursor": first["result"]["nextCursor"] });
    let last = given.send("resources/list", next).await;
    assert_eq!(last["result"]["resources"][4]["name"], "254.txt");
    assert!(last["result"]["nextCursor"].is_null());
    let invalid = given.send("resources/list", json!({ "cursor": "!" })).await;
    assert_eq!(invalid["error"]["code"], -32602);
}
