//! Assistants: calls and lists of tools over MCP, sessions, parallel execution, scripts, and search.

use std::time::Duration;

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use harness::{Client, Guest, Host, guest, host::Setup};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Bench, ROUND_DURATION,
    bounds::start_senders,
    compare::better,
    echo,
    load::Target,
    report::{Line, Verdict},
    round::Round,
    serving_echo, setup, setup_without_key, small, tool_call,
};

/// Figures that the benchmark of tool search writes.
const SEARCH_FIGURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/search-figures.json");
const CONCURRENT_CALLERS: usize = 64;
const LISTED_TOOLS: usize = 1_000;
const PARALLEL_CALLS: usize = 50;
/// Meta calls of a session that run concurrently with another project's calls.
const CONCURRENT_META_CALLS: usize = 200;
/// Toolkits and tools of each, of which one is searched for.
const SEARCHED_TOOLKITS: usize = 10;
const TOOLS_PER_TOOLKIT: usize = 2_000;
const SESSIONS_PATH: &str = "/api/v3/tool_router/session";
/// Headers of a request to an MCP endpoint.
const MCP_HEADERS: [(&str, &str); 2] = [
    ("accept", "application/json, text/event-stream"),
    ("mcp-protocol-version", "2025-11-25"),
];

/// Figures of tool search with real toolkits, and with copies of their tools.
#[derive(Deserialize)]
struct SearchFigures {
    recall_at_1: f64,
    recall_at_5: f64,
    p50_ms: f64,
    p99_ms: f64,
    mib: f64,
}

impl Bench {
    pub(crate) async fn agents(&mut self) -> Result<()> {
        self.search_figures()?;
        let host = serving_echo(setup_without_key()).await?;
        self.mcp_calls(&host).await?;
        self.session_calls(&host).await?;
        self.neighbors().await?;
        self.tool_lists().await?;
        self.searches().await
    }

    /// Reports the figures of the benchmark of tool search, if it ran before.
    fn search_figures(&mut self) -> Result<()> {
        let Ok(text) = std::fs::read(SEARCH_FIGURES) else {
            return Ok(());
        };
        let figures: SearchFigures = serde_json::from_slice(&text)?;
        let quality = "search, labelled queries held out";
        let speed = "search, 20000 tools, without HTTP";
        for (what, verdict) in [
            (
                quality,
                Verdict::at_least("recall@1", figures.recall_at_1, 0.75),
            ),
            (
                quality,
                Verdict::at_least("recall@5", figures.recall_at_5, 0.92),
            ),
            (speed, Verdict::at_most("ms p50", figures.p50_ms, 3.0)),
            (speed, Verdict::at_most("ms p99", figures.p99_ms, 15.0)),
            (speed, Verdict::at_most("MiB", figures.mib, 60.0)),
        ] {
            self.tell(Line::verdict("i", what, verdict));
        }
        Ok(())
    }

    /// Measures the same call as an operation of the API and as a call of an MCP server's tool.
    async fn mcp_calls(&mut self, host: &Host) -> Result<()> {
        let rest = echo(host, &small())?;
        let path = mcp_server(&host.as_project(), "echo").await?;
        let params = json!({ "name": "ECHO_SAY", "arguments": small() });
        let result = mcp(&host.as_project(), host, &path, "tools/call", &params).await?;
        anyhow::ensure!(result["isError"] != true, "the tool failed: {result}");
        let assistant = mcp_target(host, &path, "tools/call", &params)?;
        rest.times(8, 2_000).await?;
        assistant.times(8, 2_000).await?;
        let (a, i) = self.beside(&rest, &assistant, CONCURRENT_CALLERS).await?;
        self.tell(Line::new(
            "i",
            "execute, as an operation",
            CONCURRENT_CALLERS,
            &a,
        ));
        let ratio = Verdict::at_least("of it", i.per_second / a.per_second, 0.9);
        self.tell(
            Line::new("i", "execute, as tools/call of MCP", CONCURRENT_CALLERS, &i).with(ratio),
        );
        Ok(())
    }

    /// Measures the creation of sessions, and calls in a session one by one and together.
    async fn session_calls(&mut self, host: &Host) -> Result<()> {
        let project = host.as_project();
        let config = json!({ "user_id": "amy", "toolkits": { "enable": ["echo"] } });
        let create = post(host, SESSIONS_PATH, &config)?;
        let created = self.best_alone(&create).await?;
        let limit = Verdict::at_most("ms p50", millis(created.p50), 5.0);
        self.tell(Line::new("i", "session create", 1, &created).with(limit));

        let session = session(&project, &config).await?;
        let call = json!({ "tool_slug": "ECHO_SAY", "arguments": small() });
        let one = post(host, &format!("{SESSIONS_PATH}/{session}/execute"), &call)?;
        let calls = json!({
            "slug": "SERVICE_MULTI_EXECUTE_TOOL",
            "arguments": { "tools": vec![call; PARALLEL_CALLS] },
        });
        let path = format!("/tool_router/session/{session}/execute_meta");
        let called = project.post(&path, &calls).await.expect(200);
        let succeeded = &called["data"]["success_count"];
        anyhow::ensure!(*succeeded == PARALLEL_CALLS, "{succeeded} calls succeeded");
        let many = post(host, &format!("/api/v3{path}"), &calls)?;
        let one = self.best_alone(&one).await?;
        let many = self.best_alone(&many).await?;
        self.tell(Line::new("i", "one call in a session", 1, &one));
        let ratio = Verdict::at_most("of it", many.p50.div_duration_f64(one.p50), 3.0);
        let what = format!("{PARALLEL_CALLS} calls, MULTI_EXECUTE_TOOL");
        self.tell(Line::new("i", what, 1, &many).with(ratio));

        let script = json!({
            "slug": "SERVICE_REMOTE_WORKBENCH",
            "arguments": { "code_to_execute": "1 + 1" },
        });
        // The first script of a server compiles Python.
        let ran = project.post(&path, &script).await.expect(200);
        anyhow::ensure!(ran["error"].is_null(), "the script failed: {ran:?}");
        let script = post(host, &format!("/api/v3{path}"), &script)?;
        let ran = self.best_alone(&script).await?;
        let limit = Verdict::at_most("ms p50", millis(ran.p50), 30.0);
        self.tell(Line::new("i", "Python script, warm", 1, &ran).with(limit));
        Ok(())
    }

    /// Measures calls of a project alone, and concurrently with meta calls of another project's
    /// session. The limits of a project are the default ones, because they protect its neighbors.
    async fn neighbors(&mut self) -> Result<()> {
        let host = serving_echo(Setup::new().with("logs.wait", "false")).await?;
        let busy = host.as_project();
        let config = json!({ "user_id": "amy", "toolkits": { "enable": ["echo"] } });
        let session = session(&busy, &config).await?;
        let path = format!("/tool_router/session/{session}/execute_meta");
        let neighbor = host.new_project().await;
        let execute = tool_call(&host, neighbor.key(), "ECHO_SAY", &small())?;
        let alone = self.best_alone(&execute).await?;
        self.tell(Line::new("i", "a neighbor's call, alone", 1, &alone));

        let queries = json!({ "queries": [{ "use_case": "say a text" }] });
        let slugs = json!({ "tool_slugs": ["ECHO_SAY"] });
        let one = json!({ "tool_slug": "ECHO_SAY", "arguments": small() });
        let many = json!({ "tools": vec![one; PARALLEL_CALLS] });
        for (tool, arguments) in [
            ("SEARCH_TOOLS", queries),
            ("GET_TOOL_SCHEMAS", slugs),
            ("MULTI_EXECUTE_TOOL", many),
        ] {
            let body = json!({ "slug": format!("SERVICE_{tool}"), "arguments": arguments });
            busy.post(&path, &body).await.expect(200);
            let path = format!("/api/v3{path}");
            let senders = start_senders(&host, &busy, CONCURRENT_META_CALLS, &path, &body)?;
            let beside = self.best_alone(&execute).await?;
            drop(senders);
            let ratio = Verdict::at_most("p99", beside.p99.div_duration_f64(alone.p99), 2.0);
            let what = format!("beside {CONCURRENT_META_CALLS} {tool}");
            self.tell(Line::new("i", what, 1, &beside).with(ratio));
        }
        Ok(())
    }

    /// Measures the list of an MCP server's tools: all pages, one after another.
    async fn tool_lists(&mut self) -> Result<()> {
        let host = setup_without_key().start().await;
        let project = host.as_project();
        publish_tools(&host, "listed", LISTED_TOOLS).await?;
        let path = mcp_server(&project, "listed").await?;
        let mut params = json!({});
        let mut time = Duration::ZERO;
        let mut tools = 0;
        let mut pages = 0;
        loop {
            let page = mcp(&project, &host, &path, "tools/list", &params).await?;
            tools += page["tools"].as_array().map_or(0, Vec::len);
            pages += 1;
            let target = mcp_target(&host, &path, "tools/list", &params)?;
            time += self.best_alone(&target).await?.p50;
            match &page["nextCursor"] {
                Value::Null => break,
                cursor => params = json!({ "cursor": cursor }),
            }
        }
        anyhow::ensure!(tools == LISTED_TOOLS, "{tools} tools were listed");
        let what = format!("tools/list of {tools} tools, {pages} pages");
        let limit = Verdict::at_most("ms p50", millis(time), 5.0);
        self.tell(Line::verdict("i", what, limit));
        Ok(())
    }

    /// Measures searches of a session that permits every tool.
    async fn searches(&mut self) -> Result<()> {
        let host = setup().start().await;
        let names = (0..SEARCHED_TOOLKITS).map(|number| format!("searched_{}", letter(number)));
        let publishing = names.map(|name| {
            let host = &host;
            async move { publish_tools(host, &name, TOOLS_PER_TOOLKIT).await }
        });
        let publishing = stream::iter(publishing).buffer_unordered(2);
        publishing.try_collect::<()>().await?;
        let project = host.as_project();
        let session = session(&project, &json!({ "user_id": "amy" })).await?;
        let search = json!({
            "slug": "SERVICE_SEARCH_TOOLS",
            "arguments": { "queries": [{ "use_case": "delete an old invoice of a customer" }] },
        });
        let path = format!("/tool_router/session/{session}/execute_meta");
        // The first search builds the index.
        let found = project.post(&path, &search).await.expect(200);
        let best = &found["data"]["results"][0]["primary_tool_slugs"];
        anyhow::ensure!(best[0].is_string(), "nothing was found: {best}");
        let target = post(&host, &format!("/api/v3{path}"), &search)?;
        let round = self.best_alone(&target).await?;
        let tools = SEARCHED_TOOLKITS * TOOLS_PER_TOOLKIT;
        let limit = Verdict::at_most("ms p50", millis(round.p50), 3.0);
        let what = format!("SEARCH_TOOLS, {tools} tools");
        self.tell(Line::new("i", what, 1, &round).with(limit));
        Ok(())
    }

    /// Returns the best round of one connection.
    async fn best_alone(&self, target: &Target) -> Result<Round> {
        target.times(1, 20).await?;
        let mut best = None;
        for _ in 0..self.options.rounds {
            best = better(best, target.round(1, ROUND_DURATION).await?);
        }
        best.context("no round")
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn letter(number: usize) -> char {
    char::from(b'a' + (number % 26) as u8)
}

/// Builds a POST of JSON with the project's key.
fn post(host: &Host, path: &str, body: &Value) -> Result<Target> {
    let headers = [("x-api-key", host.project_key.as_str())];
    Target::post(&host.url, path, &headers, &body.to_string(), host.pid())
}

async fn session(project: &Client, config: &Value) -> Result<String> {
    let created = project
        .post("/tool_router/session", config)
        .await
        .expect(201);
    let id = created["session_id"].as_str();
    Ok(id.context("the id of a session")?.to_owned())
}

/// Creates an MCP server of a toolkit and returns the path of its address.
pub(crate) async fn mcp_server(project: &Client, toolkit: &str) -> Result<String> {
    let body = json!({ "name": "Bench", "no_auth_apps": [toolkit] });
    let made = project.post("/mcp/servers", &body).await.expect(201);
    let url = made["mcp_url"].as_str().context("the URL of a server")?;
    let path = url.find("/v3/mcp/").context("a path in the URL")?;
    Ok(url[path..].to_owned())
}

fn mcp_body(method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
}

/// Builds a request to an MCP endpoint.
fn mcp_target(host: &Host, path: &str, method: &str, params: &Value) -> Result<Target> {
    let body = mcp_body(method, params);
    Target::post(&host.url, path, &MCP_HEADERS, &body, host.pid())
}

/// Sends one request to an MCP endpoint and returns its result.
async fn mcp(
    client: &Client,
    host: &Host,
    path: &str,
    method: &str,
    params: &Value,
) -> Result<Value> {
    let url = format!("{}{path}", host.url);
    let headers = [&MCP_HEADERS[..], &[("content-type", "application/json")]].concat();
    let body = mcp_body(method, params).into_bytes();
    let response = client.exchange(Method::POST, &url, &headers, body).await;
    let mut response: Value = serde_json::from_slice(&response.bytes)?;
    anyhow::ensure!(response["error"].is_null(), "{method}: {response}");
    Ok(response["result"].take())
}

/// Publishes a toolkit of many tools that need no account, each with a few arguments.
async fn publish_tools(host: &Host, toolkit: &str, count: usize) -> Result<()> {
    const TOOL_VERBS: [&str; 8] = [
        "create", "list", "delete", "update", "send", "archive", "find", "export",
    ];
    const TOOL_THINGS: [&str; 12] = [
        "invoice",
        "customer",
        "message",
        "channel",
        "repository",
        "event",
        "page",
        "database",
        "label",
        "refund",
        "report",
        "webhook",
    ];
    let tool = |number: usize| {
        let verb = TOOL_VERBS[number % TOOL_VERBS.len()];
        let thing = TOOL_THINGS[number / TOOL_VERBS.len() % TOOL_THINGS.len()];
        let part = format!("part{}{}", letter(number), letter(number / 26));
        let slug = format!("{toolkit}_{verb}_{thing}_{number}").to_uppercase();
        json!({
            "slug": slug, "name": format!("{verb} {thing} {number}"),
            "description": format!("Asks the provider to {verb} one {thing} of the {part} by its id."),
            "input": {
                "type": "object",
                "properties": {
                    "id": { "type": "string", "description": format!("Id of the {thing}.") },
                    "limit": { "type": "integer", "minimum": 1, "maximum": 100, "default": 20 },
                    "fields": { "type": "array", "items": { "type": "string" } },
                },
                "required": ["id"],
            },
            "output": { "type": "object" },
            "no_auth": true,
        })
    };
    let mut manifest = guest::manifest(toolkit);
    manifest["tools"] = (0..count).map(tool).collect();
    host.publish(Guest::echo().component(), &manifest).await;
    Ok(())
}
