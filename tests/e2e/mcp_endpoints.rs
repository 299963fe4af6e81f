//! MCP endpoints, used by assistants with the official libraries and by requests made by hand.

use axum::{Router, http::StatusCode, response::Html};
use harness::{
    Client, Guest, Host,
    assistants::{Assistant, Library},
    client::RawResponse,
    guest, loopback, unique,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::given;

/// Ways in which assistants agree on a version, with the version.
pub(crate) const VERSION_MODES: [(&str, &str); 2] =
    [("legacy", "2025-11-25"), ("auto", "2026-07-28")];

/// A project with an MCP server of a tool that echoes and a tool that fetches with an account.
pub(crate) struct Given {
    pub project: Client,
    config: String,
    /// Address of the MCP server, without a user.
    pub url: String,
    echo: &'static str,
    pub fetch: String,
}

impl Given {
    pub(crate) async fn new() -> Self {
        let project = Host::shared().await.new_project().await;
        let config = given::auth_config(&project).await;
        let echo = given::shared_echo().await;
        let body = json!({
            "name": "All tools", "auth_config_ids": [config], "no_auth_apps": [given::toolkit_of(echo)],
        });
        let url = given::mcp_server(&project, &body).await;
        let fetch = guest::tool(given::keyed().await);
        Self {
            project,
            config,
            url,
            echo,
            fetch,
        }
    }

    pub(crate) async fn connect(&self, user: &str, key: &str) -> String {
        connect(&self.project, &self.config, user, key).await
    }

    /// Calls a tool for the user or the account of an address.
    async fn call(&self, query: &str, tool: &str, arguments: Value) -> Value {
        let url = format!("{}?{query}", self.url);
        let params = json!({ "name": tool, "arguments": arguments });
        result(&request(&self.project, &url, "tools/call", params, &[]).await)
    }

    /// Fetches an address with a tool, and returns the credential that the provider received.
    async fn credential_used(&self, query: &str, tool: &str) -> String {
        let tag = unique(8);
        let url = format!("https://api.example.com/echo/{tag}");
        let called = self.call(query, tool, json!({ "url": url })).await;
        assert_eq!(called["isError"], false, "{query}: {called:#}");
        let seen = Host::application().seen(&tag);
        seen[0].header("authorization").to_owned()
    }
}

async fn connect(project: &Client, config: &str, user: &str, key: &str) -> String {
    let made = given::made_account(project, config, user, key).await;
    made["id"].as_str().unwrap().to_owned()
}

/// Publishes a toolkit whose tool fetches an address with a key. Returns its slug, and the id of an
/// auth config of it.
pub(crate) async fn other_toolkit(project: &Client) -> (String, String) {
    let slug = given::slug();
    given::publish_with_key(Host::shared().await, &Guest::fetch(), &slug).await;
    let config = project.auth_config(&slug, "API_KEY", json!({})).await;
    (slug, config)
}

/// Sends a request as a client of the version 2025-11-25 does, with further headers.
pub(crate) async fn request(
    client: &Client,
    url: &str,
    method: &str,
    params: Value,
    headers: &[(&str, &str)],
) -> RawResponse {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let own = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    let headers = [&own, headers].concat();
    let body = body.to_string().into_bytes();
    client.exchange(Method::POST, url, &headers, body).await
}

/// Returns the first message of a client with these capabilities.
fn initialize(version: &str, capabilities: Value) -> Value {
    let client = json!({ "name": "t", "version": "1" });
    let params =
        json!({ "protocolVersion": version, "capabilities": capabilities, "clientInfo": client });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })
}

/// Returns the names of the tools that an assistant lists, sorted.
fn listed_names(report: &Value) -> Vec<Value> {
    let tools = report["tools"].as_array().unwrap().iter();
    let mut names: Vec<_> = tools.map(|tool| tool["name"].clone()).collect();
    names.sort_by_key(ToString::to_string);
    names
}

/// Returns the result of a response.
#[track_caller]
pub(crate) fn result(response: &RawResponse) -> Value {
    let text = response.text();
    assert_eq!(response.status, 200, "{text}");
    let whole: Value = serde_json::from_str(&text).unwrap();
    assert!(whole["error"].is_null(), "{text}");
    whole["result"].clone()
}

/// Returns the text of a call that failed.
#[track_caller]
pub(crate) fn failure(result: &Value) -> &str {
    assert_eq!(result["isError"], true, "{result:#}");
    result["content"][0]["text"].as_str().unwrap()
}

#[tokio::test]
async fn data_of_tools_is_marked_untrusted() {
    let given = Given::new().await;
    let hidden = json!({ "said": "\u{1b}[2Jx\u{202e}y\u{9b}31m" });
    let called = given.call("user_id=amy", given.echo, hidden.clone()).await;
    let [block] = &called["content"].as_array().unwrap()[..] else {
        panic!("{called:#}")
    };
    assert_eq!(block["_meta"]["untrusted"], true);
    let text = block["text"].as_str().unwrap();
    assert!(text.is_ascii() && !text.contains('\u{1b}'), "{text:?}");
    let data: Value = serde_json::from_str(text).unwrap();
    assert_eq!(data, called["structuredContent"]);
    assert!(data.to_string().contains("said"), "{data}");
    let refused = given.call("user_id=amy", "NO_SUCH_TOOL", json!({})).await;
    failure(&refused);
    assert_eq!(refused["content"][0]["_meta"], Value::Null);
}

#[tokio::test]
async fn official_libraries_list_and_call_tools() {
    let given = Given::new().await;
    for library in Library::ALL {
        for (mode, version) in VERSION_MODES {
            let said = json!({ "said": unique(6) });
            let options = json!({
                "url": format!("{}?user_id=amy", given.url), "mode": mode,
                "calls": [
                    { "name": given.echo, "arguments": said, "progress": true },
                    { "name": "NO_SUCH_TOOL", "arguments": {} },
                ],
            });
            let report = Assistant::start(library, &options).report().await;
            let which = format!("{library:?} {mode}: {report:#}");
            assert_eq!(report["version"], version, "{which}");
            let mut expected = vec![json!(given.echo), json!(given.fetch)];
            expected.sort_by_key(ToString::to_string);
            assert_eq!(listed_names(&report), expected, "{which}");
            let [called, failed] = &report["calls"].as_array().unwrap()[..] else {
                panic!("{which}")
            };
            assert_eq!(called["structured"], said);
            assert_eq!(called["is_error"], false);
            let text: Value = serde_json::from_str(called["text"].as_str().unwrap()).unwrap();
            assert_eq!(text, said);
            assert!(
                !called["progress"].as_array().unwrap().is_empty(),
                "{which}"
            );
            assert_eq!(failed["is_error"], true, "{which}");
            assert!(
                failed["text"].as_str().unwrap().contains("NO_SUCH_TOOL"),
                "{which}"
            );
        }
    }
}

#[tokio::test]
async fn cancelled_call_aborts_its_outgoing_request() {
    let given = Given::new().await;
    given.connect("amy", &harness::secret()).await;
    for library in Library::ALL {
        for (mode, _) in VERSION_MODES {
            let tag = unique(8);
            let url = format!("https://api.example.com/hang/{tag}");
            let options = json!({
                "url": format!("{}/mcp?user_id=amy", given.url), "mode": mode, "calls": [],
                "cancel": { "name": given.fetch, "arguments": { "url": url } },
            });
            let mut assistant = Assistant::start(library, &options);
            Host::application().wait_for_requests(&tag, 1).await;
            assistant.cancel().await;
            Host::application().wait_for_abandoned(&tag, 1).await;
            let report = assistant.report().await;
            assert_eq!(report["cancelled"], "cancelled", "{library:?} {mode}");
        }
    }
}

#[tokio::test]
async fn disconnecting_aborts_the_outgoing_request() {
    let given = Given::new().await;
    given.connect("amy", &harness::secret()).await;
    let tag = unique(8);
    let url = format!("https://api.example.com/hang/{tag}");
    tokio::select! {
        called = given.call("user_id=amy", &given.fetch, json!({ "url": url })) => panic!("it hangs: {called:#}"),
        () = Host::application().wait_for_requests(&tag, 1) => {}
    }
    Host::application().wait_for_abandoned(&tag, 1).await;
}

#[tokio::test]
async fn requests_with_metadata_get_the_same_responses() {
    let given = Given::new().await;
    for (method, params) in [
        ("tools/list", json!({})),
        ("tools/list", json!({ "cursor": "x" })),
        (
            "tools/call",
            json!({ "name": given.echo, "arguments": { "a": [1.5, "\u{202e}"] } }),
        ),
        ("tools/call", json!({ "name": given.echo })),
        (
            "tools/call",
            json!({ "name": "NO_SUCH_TOOL", "arguments": {} }),
        ),
    ] {
        let mut with_metadata = params.clone();
        with_metadata["_meta"] = json!({});
        let mut responses = Vec::new();
        for params in [params, with_metadata] {
            let response = request(&given.project, &given.url, method, params, &[]).await;
            let message: Value = serde_json::from_slice(&response.bytes).unwrap();
            let media_type = response.header("content-type").to_owned();
            responses.push((response.status, media_type, message));
        }
        assert_eq!(responses[0], responses[1], "{method}");
    }
}

#[tokio::test]
async fn address_selects_the_user_or_the_account() {
    let given = Given::new().await;
    let [amy, bob] = [harness::secret(), harness::secret()];
    given.connect("amy", &amy).await;
    let account = given.connect("bob", &bob).await;
    for (query, key) in [
        ("user_id=amy".to_owned(), &amy),
        (format!("connected_account_id={account}"), &bob),
        (format!("connected_account_ids={account}"), &bob),
    ] {
        let used = given.credential_used(&query, &given.fetch).await;
        assert_eq!(used, format!("Bearer {key}"), "{query}");
    }
    let foreign = format!("user_id=amy&connected_account_id={account}");
    let arguments = json!({ "url": "https://api.example.com/" });
    let called = given.call(&foreign, &given.fetch, arguments).await;
    assert!(failure(&called).contains("amy"), "{called:#}");
}

#[tokio::test]
async fn account_of_an_address_names_its_user() {
    let given = Given::new().await;
    let (toolkit, config) = other_toolkit(&given.project).await;
    let body = json!({ "name": "Both", "auth_config_ids": [given.config, config] });
    let url = given::mcp_server(&given.project, &body).await;
    let given = Given { url, ..given };
    let account = given.connect("amy", &harness::secret()).await;
    connect(&given.project, &config, "default", &harness::secret()).await;
    let query = format!("connected_account_id={account}&include_service_helper_actions=true");
    let tool = guest::tool(&toolkit);
    let arguments = json!({ "url": "https://api.example.com/" });
    let called = given.call(&query, &tool, arguments).await;
    let text = failure(&called);
    assert!(
        text.contains("`amy`") && text.contains("/link/lt_"),
        "{text}"
    );
    let key = harness::secret();
    let own = connect(&given.project, &config, "amy", &key).await;
    let used = given.credential_used(&query, &tool).await;
    assert_eq!(used, format!("Bearer {key}"));
    let arguments = json!({ "toolkits": [toolkit] });
    let helper = "SERVICE_MANAGE_CONNECTIONS";
    let called = given.call(&query, helper, arguments).await;
    let connection = &called["structuredContent"]["results"][&toolkit];
    assert_eq!(connection["connected_account_id"], json!(own), "{called:#}");
}

#[tokio::test]
async fn account_of_another_auth_config_is_refused() {
    let given = Given::new().await;
    let other = given::auth_config(&given.project).await;
    let account = connect(&given.project, &other, "amy", &harness::secret()).await;
    let query = format!("connected_account_id={account}");
    let arguments = json!({ "url": "https://api.example.com/" });
    let called = given.call(&query, &given.fetch, arguments).await;
    let text = failure(&called);
    assert!(
        text.contains(&account) && !text.contains("/link/"),
        "{text}"
    );
}

#[tokio::test]
async fn address_of_a_deleted_account_runs_nothing() {
    let given = Given::new().await;
    let account = given.connect("amy", &harness::secret()).await;
    for user in ["default", "amy"] {
        given.connect(user, &harness::secret()).await;
    }
    let path = format!("/connected_accounts/{account}");
    given.project.delete(&path).await.expect(200);
    let query = format!("connected_account_id={account}&include_service_helper_actions=true");
    let toolkit = given::keyed().await;
    let arguments = json!({ "url": "https://api.example.com/", "toolkits": [toolkit] });
    for query in [&query, &format!("user_id=amy&{query}")] {
        for tool in [&*given.fetch, given.echo, "SERVICE_MANAGE_CONNECTIONS"] {
            let called = given.call(query, tool, arguments.clone()).await;
            let text = failure(&called);
            assert!(
                text.contains(&account) && !text.contains("/link/"),
                "{query}, {tool}: {text}"
            );
        }
    }
}

#[tokio::test]
async fn deleted_auth_config_leaves_its_toolkit_without_accounts() {
    let given = Given::new().await;
    let project = &given.project;
    let values = json!({ "api_key": harness::secret() });
    let toolkit = given::keyed().await;
    project.connect(toolkit, "API_KEY", "amy", values).await;
    let server = format!("/mcp/{}", given.url.rsplit('/').next().unwrap());
    let before = project.get(&server).await.expect(200);
    let config = format!("/auth_configs/{}", given.config);
    project.delete(&config).await.expect(200);
    let rename = json!({ "name": "Renamed" });
    let renamed = project.patch(&server, &rename).await.expect(200);
    assert_eq!(renamed["toolkits"], before["toolkits"]);
    let arguments = json!({ "url": "https://api.example.com/" });
    let called = given.call("user_id=amy", &given.fetch, arguments).await;
    let text = failure(&called);
    assert!(text.contains("`amy`") && !text.contains("/link/"), "{text}");
}

#[tokio::test]
async fn missing_account_is_answered_with_a_link() {
    let given = Given::new().await;
    let called = given
        .call("user_id=amy", &given.fetch, json!({ "url": "x" }))
        .await;
    let text = failure(&called);
    let link = text
        .split_whitespace()
        .find(|word| word.contains("/link/lt_"));
    let opened = given::open(&given.project, link.unwrap()).await;
    assert_eq!(opened.status, 200, "{text}");
}

#[tokio::test]
async fn invalid_arguments_are_a_failure_of_the_tool() {
    let host = Host::shared().await;
    let mut manifest = guest::manifest(&given::slug());
    manifest["tools"][0]["input"] = json!({
        "type": "object", "properties": { "word": { "type": "string" } }, "required": ["word"],
    });
    manifest["tools"][0]["hints"] = json!({ "read_only": true, "idempotent": true });
    host.publish(Guest::echo().component(), &manifest).await;
    let slug = manifest["slug"].as_str().unwrap();
    let project = host.new_project().await;
    let url = given::mcp_server_of(&project, slug).await;
    let listed = result(&request(&project, &url, "tools/list", json!({}), &[]).await);
    let tool = &listed["tools"][0];
    assert_eq!(
        tool["inputSchema"]["required"],
        json!(["word"]),
        "{listed:#}"
    );
    assert_eq!(tool["outputSchema"]["type"], "object", "{listed:#}");
    let annotations = &tool["annotations"];
    assert_eq!(annotations["readOnlyHint"], true, "{listed:#}");
    assert_eq!(annotations["destructiveHint"], false, "{listed:#}");
    let params = json!({ "name": guest::tool(slug), "arguments": { "word": 1 } });
    let called = result(&request(&project, &url, "tools/call", params, &[]).await);
    assert!(failure(&called).contains("word"), "{called:#}");
}

/// Publishes a toolkit with many tools, whose argument schemas have a description of this size.
/// Returns the address of an MCP server of it.
async fn server_of_many(project: &Client, tools: usize, size: usize) -> String {
    let host = Host::shared().await;
    let (slug, mut manifest) = given::manifest();
    let tool = manifest["tools"][0].clone();
    manifest["tools"] = (0..tools)
        .map(|number| {
            let mut tool = tool.clone();
            tool["slug"] = json!(format!("{}_RUN_{number:03}", slug.to_uppercase()));
            let described = json!({ "type": "string", "description": "x".repeat(500) });
            let members = (0..size / 500).map(|number| (format!("b{number}"), described.clone()));
            let members: serde_json::Map<_, _> = members.collect();
            tool["input"] = json!({ "type": "object", "properties": members });
            tool
        })
        .collect();
    host.publish(Guest::echo().component(), &manifest).await;
    given::mcp_server_of(project, &slug).await
}

#[tokio::test]
async fn many_tools_are_on_one_page() {
    let project = Host::shared().await.new_project().await;
    let url = server_of_many(&project, 400, 500).await;
    let listed = result(&request(&project, &url, "tools/list", json!({}), &[]).await);
    assert_eq!(listed["tools"].as_array().unwrap().len(), 400);
    assert!(listed["nextCursor"].is_null());
}

#[tokio::test]
async fn lists_over_two_mebibytes_have_pages() {
    let project = Host::shared().await.new_project().await;
    let url = server_of_many(&project, 300, 8 << 10).await;
    let first = request(&project, &url, "tools/list", json!({}), &[]).await;
    assert!(first.bytes.len() < 21 << 17, "{}", first.bytes.len());
    let first = result(&first);
    let on_first = first["tools"].as_array().unwrap().len();
    assert!((200..256).contains(&on_first), "{on_first}");
    let next = json!({ "cursor": first["nextCursor"] });
    let last = result(&request(&project, &url, "tools/list", next, &[]).await);
    assert_eq!(last["tools"].as_array().unwrap().len(), 300 - on_first);
    assert!(last["nextCursor"].is_null());
    let name = last["tools"][9]["name"].as_str().unwrap();
    let params = json!({ "name": name, "arguments": { "a": 1 } });
    let called = result(&request(&project, &url, "tools/call", params, &[]).await);
    assert_eq!(called["structuredContent"], json!({ "a": 1 }));
    let refused = request(&project, &url, "tools/list", json!({ "cursor": "x" }), &[]).await;
    assert!(refused.text().contains("-32602"));
}

#[tokio::test]
async fn foreign_hosts_and_web_pages_are_refused() {
    let given = Given::new().await;
    let port = given.url.split([':', '/']).nth(4).unwrap();
    let [own, local] = ["127.0.0.1", "localhost"].map(|host| format!("{host}:{port}"));
    let (page, foreign) = (format!("http://{local}"), "http://evil.example.com");
    for (headers, status) in [
        ([("host", &*own), ("origin", &*page)], 200),
        ([("host", &*local), ("origin", &*page)], 200),
        ([("host", &*own), ("origin", foreign)], 403),
        ([("host", "evil.example.com"), ("origin", foreign)], 403),
        ([("host", "evil.example.com"), ("origin", &*page)], 403),
    ] {
        let response = request(&given.project, &given.url, "ping", json!({}), &headers).await;
        assert_eq!(response.status, status, "{headers:?}");
    }
    // A page with a key is not a stranger.
    let key = ("x-api-key", given.project.key());
    for (host, status) in [(&*own, 200), ("evil.example.com", 403)] {
        let headers = [("host", host), ("origin", foreign), key];
        let response = request(&given.project, &given.url, "ping", json!({}), &headers).await;
        assert_eq!(response.status, status, "{headers:?}");
    }
}

#[tokio::test]
async fn key_is_needed_if_the_project_requires_it() {
    let given = Given::new().await;
    let other = Host::shared().await.new_project().await;
    let ping = async |url: &str, key: &str| {
        let header = [("x-api-key", key)];
        let headers = if key.is_empty() { &[][..] } else { &header };
        request(&given.project, url, "ping", json!({}), headers)
            .await
            .status
    };
    let both = [given.url.clone(), format!("{}/mcp", given.url)];
    for url in &both {
        assert_eq!(ping(url, "").await, 200);
        assert_eq!(ping(url, given.project.key()).await, 200);
        assert_eq!(ping(url, other.key()).await, 404);
        assert_eq!(ping(url, "ak_wrong").await, 401);
    }
    given::configure(&given.project, json!({ "require_mcp_api_key": true })).await;
    for url in &both {
        assert_eq!(ping(url, "").await, 401);
        assert_eq!(ping(url, other.key()).await, 401);
        assert_eq!(ping(url, given.project.key()).await, 200);
    }
    let unknown = given.url.replace("/v3/mcp/", "/v3/mcp/0");
    assert_eq!(ping(&unknown, "").await, 404);
}

#[tokio::test]
async fn every_version_with_connections_is_negotiated() {
    let given = Given::new().await;
    for asked in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let headers = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", asked),
        ];
        let body = initialize(asked, json!({})).to_string().into_bytes();
        let answer = given
            .project
            .exchange(Method::POST, &given.url, &headers, body)
            .await;
        let initialized = result(&answer);
        assert_eq!(initialized["protocolVersion"], asked);
        assert!(initialized["capabilities"]["tools"].is_object());
        assert!(answer.header("mcp-session-id").len() >= 22);
    }
    let ended = given
        .project
        .exchange(Method::DELETE, &given.url, &[], Vec::new())
        .await;
    assert_eq!(ended.status, 200);
    let newest = [("mcp-protocol-version", "2026-07-28")];
    let read = given
        .project
        .exchange(Method::GET, &given.url, &newest, Vec::new())
        .await;
    assert_eq!(read.status, 405);
}

/// Creates a session of `amy` that lists an echo tool, and returns its MCP address.
async fn session(project: &Client, tool: &str) -> String {
    let config = json!({ "user_id": "amy", "preload": { "tools": [tool] } });
    given::mcp_session(project, &config).await
}

#[tokio::test]
async fn session_exposes_exactly_its_tools() {
    let project = Host::shared().await.new_project().await;
    let tool = given::shared_echo().await;
    let config = json!({ "user_id": "amy", "preload": { "tools": [tool] } });
    let made = project.post("/tool_router/session", &config).await;
    let made = made.expect(201);
    let url = made["mcp"]["url"].as_str().unwrap();
    let mut expected = made["tool_router_tools"].as_array().unwrap().clone();
    expected.sort_by_key(ToString::to_string);
    let hidden = guest::tool(given::keyed().await);
    for library in Library::ALL {
        for (mode, version) in VERSION_MODES {
            let options = json!({
                "url": url, "key": project.key(), "mode": mode,
                "calls": [
                    { "name": tool, "arguments": { "said": "hello" } },
                    { "name": hidden, "arguments": {} },
                ],
            });
            let report = Assistant::start(library, &options).report().await;
            let which = format!("{library:?} {mode}: {report:#}");
            assert_eq!(report["version"], version, "{which}");
            assert_eq!(listed_names(&report), expected, "{which}");
            assert_eq!(
                report["calls"][0]["structured"],
                json!({ "said": "hello" }),
                "{which}"
            );
            assert_eq!(report["calls"][1]["is_error"], true, "{which}");
        }
    }
}

#[tokio::test]
async fn unlisted_tool_is_not_called_missing() {
    let project = Host::shared().await.new_project().await;
    let url = session(&project, given::shared_echo().await).await;
    let unlisted = guest::tool(given::keyed().await);
    let params = json!({ "name": unlisted, "arguments": {} });
    let headers = [("x-api-key", project.key())];
    let called = request(&project, &url, "tools/call", params, &headers).await;
    let called = result(&called).to_string();
    for part in ["but does not list it", "SERVICE_MULTI_EXECUTE_TOOL"] {
        assert!(called.contains(part), "{called}");
    }
}

#[tokio::test]
async fn session_tells_how_to_find_missing_tool() {
    let project = Host::shared().await.new_project().await;
    let whole = json!({ "user_id": "amy" });
    let without_search = json!({ "user_id": "amy", "search": { "enable": false } });
    for (config, is_told) in [(whole, true), (without_search, false)] {
        let url = given::mcp_session(&project, &config).await;
        let headers = [("x-api-key", project.key())];
        let params = json!({ "name": "NO_SUCH_TOOL", "arguments": {} });
        let called = request(&project, &url, "tools/call", params, &headers).await;
        let called = result(&called).to_string();
        assert!(called.contains("has no tool NO_SUCH_TOOL"), "{called}");
        assert_eq!(called.contains("SERVICE_SEARCH_TOOLS"), is_told, "{called}");
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "t", "version": "1" },
        });
        let opened = request(&project, &url, "initialize", params, &headers).await;
        let instructions = result(&opened)["instructions"].to_string();
        assert!(
            instructions.contains("SERVICE_MULTI_EXECUTE_TOOL"),
            "{instructions}"
        );
        assert_eq!(
            instructions.contains("SERVICE_SEARCH_TOOLS"),
            is_told,
            "{instructions}"
        );
    }
}

#[tokio::test]
async fn session_needs_the_key_of_its_project() {
    let (host, project) = Host::shared_with_project().await;
    let url = session(&project, given::shared_echo().await).await;
    let other = host.new_project().await;
    for (key, status) in [("", 401), (other.key(), 404), (project.key(), 200)] {
        let header = [("x-api-key", key)];
        let headers = if key.is_empty() { &[][..] } else { &header };
        let response = request(&project, &url, "ping", json!({}), headers).await;
        assert_eq!(response.status, status);
    }
}

/// Returns the last part of an address.
fn id_of(url: &str) -> &str {
    url.rsplit('/').next().unwrap()
}

/// Passes lines to the command that bridges standard input to a server, and returns what it prints.
async fn bridged(server: &str, options: &[&str], lines: &[Value]) -> Vec<Value> {
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    bridged_bytes(server, options, input.as_bytes()).await
}

async fn bridged_bytes(server: &str, options: &[&str], input: &[u8]) -> Vec<Value> {
    let arguments = [&["mcp", "--stdio", "--server", server], options].concat();
    let output = Host::shared().await.setup().converse(&arguments, input);
    let lines = output.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test]
async fn command_bridges_standard_input_to_a_server() {
    let project = Host::shared().await.as_project();
    let tool = given::shared_echo().await;
    let url = given::mcp_server_of(&project, &given::toolkit_of(tool)).await;
    let lines = [
        initialize("2025-11-25", json!({})),
        json!({
            "jsonrpc": "2.0", "id": "call", "method": "tools/call",
            "params": {
                "name": tool, "arguments": { "said": 1 }, "_meta": { "progressToken": "p" },
            },
        }),
        json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/list" }),
    ];
    let answers = bridged(id_of(&url), &[], &lines).await;
    let answer = |id: Value| answers.iter().find(|answer| answer["id"] == id).unwrap();
    assert_eq!(answer(json!(1))["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(
        answer(json!("call"))["result"]["structuredContent"],
        json!({ "said": 1 })
    );
    assert_eq!(answer(json!(3))["result"]["tools"][0]["name"], tool);
    let mut progress = answers.iter().map(|line| &line["params"]["progressToken"]);
    assert!(progress.any(|token| token == "p"), "{answers:#?}");
}

#[tokio::test]
async fn bridge_answers_every_faulty_line() {
    let project = Host::shared().await.as_project();
    let tool = given::shared_echo().await;
    let url = given::mcp_server_of(&project, &given::toolkit_of(tool)).await;
    let message = |id: u64, method: &str, params: Value| {
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
    };
    for (version, batch_code) in [("2025-11-25", Some(-32600)), ("2025-03-26", None)] {
        let ping = message(2, "ping", json!({}));
        let lines = [
            initialize(version, json!({})).to_string().into_bytes(),
            b"not json".to_vec(),
            b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"\xff\"}".to_vec(),
            format!("\u{feff}{ping}").into_bytes(),
            format!("[{ping}]").into_bytes(),
            b"7".to_vec(),
            b"{}".to_vec(),
            message(3, "tools/list", json!({})).into_bytes(),
        ];
        let answers = bridged_bytes(id_of(&url), &[], &lines.join(&b'\n')).await;
        assert_eq!(answers.len(), lines.len(), "{answers:#?}");
        let count = |code: i32| {
            answers
                .iter()
                .filter(|answer| answer["id"].is_null() && answer["error"]["code"] == code)
                .count()
        };
        assert_eq!(count(-32700), 3, "{answers:#?}");
        assert_eq!(count(-32600), 2 + batch_code.iter().count(), "{answers:#?}");
        let batch = answers.iter().find(|answer| answer.is_array());
        assert_eq!(batch.is_none(), batch_code.is_some(), "{answers:#?}");
        assert!(
            batch.is_none_or(|batch| batch[0]["id"] == 2),
            "{answers:#?}"
        );
        let listed = answers.iter().find(|answer| answer["id"] == 3).unwrap();
        assert!(listed["result"]["tools"].is_array(), "{answers:#?}");
    }
}

#[tokio::test]
async fn bridged_client_gets_the_link_in_an_error() {
    let given = Given::new().await;
    let lines = [
        initialize("2025-11-25", json!({ "elicitation": { "url": {} } })),
        json!({
            "jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": { "name": given.fetch, "arguments": { "url": "https://api.example.com/" } },
        }),
    ];
    let key = ["--api-key", given.project.key()];
    let answers = bridged(id_of(&given.url), &key, &lines).await;
    let answer = answers.last().unwrap();
    assert_eq!(answer["id"], 2);
    assert_eq!(answer["error"]["code"], -32042);
}

#[tokio::test]
async fn bridge_ends_at_wrong_id_or_key() {
    let given = Given::new().await;
    let setup = Host::shared().await.setup();
    for (server, key, parts) in [
        (
            "123",
            given.project.key(),
            ["123 not found", "list the MCP"],
        ),
        (
            id_of(&given.url),
            "ak_unknown",
            ["Invalid API key", "check the key"],
        ),
    ] {
        let arguments = ["mcp", "--stdio", "--server", server, "--api-key", key];
        let reason = setup.command(&arguments).failed();
        for part in parts {
            assert!(reason.contains(part), "{reason}");
        }
    }
}

#[tokio::test]
async fn bridge_answers_what_a_proxy_refuses() {
    let refusing = Router::new().fallback(async || (StatusCode::BAD_GATEWAY, Html("<p/>")));
    let url = loopback::serve(refusing);
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let id = "00000000-0000-4000-8000-000000000000";
    let answers = bridged(id, &["--url", &url], &[list]).await;
    assert_eq!(answers[0]["id"], 1);
    given::assert_contains(&answers[0]["error"]["message"], "502");
}
