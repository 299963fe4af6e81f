//! Tool list of a running MCP server, over streamable HTTP.

use std::{collections::HashSet, time::Duration};

use anyhow::{Context, Result, bail};
use manifest::rpc;
use reqwest::{Client, Method, Response, header};
use serde_json::{Value, json};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
const PROTOCOL_VERSION: &str = "2025-06-18";
/// Id of every request. At most one at a time waits for its response.
const REQUEST_ID: u64 = 1;
const SESSION_HEADER: &str = "mcp-session-id";
/// Maximum size of a response in bytes.
const MAX_RESPONSE_BYTES: usize = 32 << 20;
/// Maximum number of pages of a list.
const MAX_PAGES: usize = 100;

/// Requests the tools of a server. Returns the input of [`import::mcp`].
pub(crate) async fn listing(url: &str, token: Option<&str>) -> Result<Vec<u8>> {
    let mut session = Session {
        client: client()?,
        url,
        token,
        version: None,
        id: None,
    };
    let listing = session.listing().await;
    session.close().await;
    Ok(serde_json::to_vec(&listing?)?)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the author names the server, which may be on loopback"
)]
fn client() -> Result<Client> {
    Client::builder()
        .timeout(REQUEST_TIMEOUT)
        .build()
        .context("cannot set up TLS")
}

struct Session<'a> {
    client: Client,
    url: &'a str,
    token: Option<&'a str>,
    version: Option<String>,
    id: Option<String>,
}

impl Session<'_> {
    async fn listing(&mut self) -> Result<Value> {
        let client = json!({ "name": "toolkit", "version": env!("CARGO_PKG_VERSION") });
        let params = json!({ "protocolVersion": PROTOCOL_VERSION, "capabilities": {}, "clientInfo": client });
        let greeting = self.ask("initialize", params).await?;
        self.version = greeting["protocolVersion"].as_str().map(str::to_owned);
        self.send(
            Method::POST,
            Some(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })),
        )
        .await?;
        let tools = self.tools().await?;
        let instructions = greeting["instructions"].as_str().unwrap_or_default();
        Ok(json!({
            "server": self.url, "serverInfo": greeting["serverInfo"], "instructions": instructions, "tools": tools,
        }))
    }

    /// Returns the tools of all pages. A server that repeats a cursor, or ignores the one that it gets,
    /// has listed all of them.
    async fn tools(&mut self) -> Result<Vec<Value>> {
        let mut tools: Vec<Value> = Vec::new();
        let mut cursors = HashSet::new();
        let mut params = json!({});
        for _ in 0..MAX_PAGES {
            let mut page = self.ask("tools/list", params).await?;
            let listed = page["tools"].take();
            for tool in listed.as_array().into_iter().flatten() {
                if !tools.contains(tool) {
                    tools.push(tool.clone());
                }
            }
            let cursor = page["nextCursor"].as_str().unwrap_or_default();
            if cursor.is_empty() || !cursors.insert(cursor.to_owned()) {
                return Ok(tools);
            }
            params = json!({ "cursor": cursor });
        }
        bail!(
            "{} lists its tools on more than {MAX_PAGES} pages",
            self.url
        )
    }

    /// Sends one request and returns its result.
    async fn ask(&mut self, method: &str, params: Value) -> Result<Value> {
        let message =
            json!({ "jsonrpc": "2.0", "id": REQUEST_ID, "method": method, "params": params });
        let mut response = self.send(Method::POST, Some(message)).await?;
        let id = response.headers().get(SESSION_HEADER);
        if let Some(id) = id.and_then(|id| id.to_str().ok()) {
            self.id = Some(id.to_owned());
        }
        let mut body = Vec::new();
        let mut events = rpc::EventReader::default();
        while let Some(chunk) = response
            .chunk()
            .await
            .with_context(|| format!("the response of {} is incomplete", self.url))?
        {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_RESPONSE_BYTES {
                bail!(
                    "the response of {} is larger than {} MiB",
                    self.url,
                    MAX_RESPONSE_BYTES >> 20
                );
            }
            let messages = events.read(&body);
            for reply in messages.iter().filter_map(rpc::reply) {
                self.send(Method::POST, Some(reply)).await?;
            }
            // A server may keep its stream open after the response.
            if let Some(result) = answer(messages) {
                return result;
            }
        }
        answer(rpc::messages(&body))
            .unwrap_or_else(|| bail!("{} did not respond to `{method}` with JSON-RPC", self.url))
    }

    async fn send(&self, method: Method, message: Option<Value>) -> Result<Response> {
        let mut request = self
            .client
            .request(method, self.url)
            .header(header::ACCEPT, "application/json, text/event-stream");
        if let Some(token) = self.token {
            request = request.bearer_auth(token);
        }
        if let Some(version) = &self.version {
            request = request.header("mcp-protocol-version", version);
        }
        if let Some(id) = &self.id {
            request = request.header(SESSION_HEADER, id);
        }
        if let Some(message) = message {
            request = request.json(&message);
        }
        let response = request
            .send()
            .await
            .with_context(|| format!("cannot reach {}", self.url))?;
        let status = response.status();
        match status.as_u16() {
            401 | 403 => bail!(
                "{} responded {status}; give a token with --token or TOOLKIT_MCP_TOKEN",
                self.url
            ),
            _ if !status.is_success() => bail!(
                "{} responded {status}; is it the address of an MCP server?",
                self.url
            ),
            _ => Ok(response),
        }
    }

    /// Ends the session. Servers may refuse this request, and they also end sessions by themselves.
    async fn close(&self) {
        if self.id.is_some() {
            let _ = self.send(Method::DELETE, None).await;
        }
    }
}

/// Returns the result of the request, if its response is among the messages.
fn answer(messages: Vec<Value>) -> Option<Result<Value>> {
    let mut response = rpc::response_to(&REQUEST_ID.into(), messages)?;
    match response.get("error").filter(|error| !error.is_null()) {
        Some(error) => Some(Err(anyhow::anyhow!(
            "the server responded with an error: {}",
            error["message"].as_str().unwrap_or("no reason")
        ))),
        None => Some(Ok(response["result"].take())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_request_is_an_error() {
        let accepted = json!({ "id": 1, "result": { "a": 1 }, "error": null });
        assert_eq!(answer(vec![accepted]).unwrap().unwrap(), json!({ "a": 1 }));
        let refused = json!({ "id": 1, "error": { "message": "no" } });
        let error = answer(vec![refused]).unwrap().unwrap_err();
        assert!(error.to_string().contains("no"), "{error}");
        assert!(answer(vec![json!({ "id": 2, "result": {} })]).is_none());
    }
}
