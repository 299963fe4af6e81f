//! Tool list of a running MCP server, over streamable HTTP.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use reqwest::{Client, Method, Response, header};
use serde_json::{Value, json};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
const PROTOCOL_VERSION: &str = "2025-06-18";
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
        let mut tools = Vec::new();
        let mut params = json!({});
        for _ in 0..MAX_PAGES {
            let mut page = self.ask("tools/list", params).await?;
            if let Value::Array(found) = page["tools"].take() {
                tools.extend(found);
            }
            let Some(cursor) = page["nextCursor"]
                .as_str()
                .filter(|cursor| !cursor.is_empty())
            else {
                let instructions = greeting["instructions"].as_str().unwrap_or_default();
                return Ok(json!({
                    "server": self.url, "serverInfo": greeting["serverInfo"], "instructions": instructions, "tools": tools,
                }));
            };
            params = json!({ "cursor": cursor });
        }
        bail!(
            "{} lists its tools on more than {MAX_PAGES} pages",
            self.url
        )
    }

    /// Sends one request and returns its result.
    async fn ask(&mut self, method: &str, params: Value) -> Result<Value> {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let mut response = self.send(Method::POST, Some(message)).await?;
        let headers = response.headers();
        let text = |name: &str| {
            headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .map(str::to_owned)
        };
        let streamed =
            text("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
        if let Some(id) = text(SESSION_HEADER) {
            self.id = Some(id);
        }
        let mut body = Vec::new();
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
            // A server may keep its stream open after the response.
            if let Some(result) = streamed.then(|| answer(&body, true)).flatten() {
                return result;
            }
        }
        answer(&body, streamed)
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

/// Returns the result in a body, or in the events received so far.
fn answer(body: &[u8], streamed: bool) -> Option<Result<Value>> {
    let text = String::from_utf8_lossy(body).replace("\r\n", "\n");
    let data = |event: &str| {
        let lines = event.lines().filter_map(|line| line.strip_prefix("data:"));
        lines.map(str::trim_start).collect::<Vec<_>>().join("\n")
    };
    let messages: Vec<Value> = match streamed {
        true => text
            .split("\n\n")
            .filter_map(|event| serde_json::from_str(&data(event)).ok())
            .collect(),
        false => serde_json::from_str(&text).into_iter().collect(),
    };
    let mut found = messages
        .into_iter()
        .find(|it| it["id"] == 1 && (it.get("result").is_some() || it.get("error").is_some()))?;
    match found.get("error") {
        Some(error) => Some(Err(anyhow::anyhow!(
            "the server responded with an error: {}",
            error["message"].as_str().unwrap_or("no reason")
        ))),
        None => Some(Ok(found["result"].take())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_is_read_from_json_or_stream() {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "result": { "a": 1 } }).to_string();
        assert_eq!(
            answer(message.as_bytes(), false).unwrap().unwrap(),
            json!({ "a": 1 })
        );
        let stream =
            format!("event: message\r\ndata: {{\"method\":\"x\"}}\r\n\r\ndata: {message}\r\n\r\n");
        assert_eq!(
            answer(stream.as_bytes(), true).unwrap().unwrap(),
            json!({ "a": 1 })
        );
        assert!(
            answer(&stream.as_bytes()[..60], true).is_none(),
            "the answer has not come yet"
        );
        let refused = br#"{"id":1,"error":{"message":"no"}}"#;
        assert!(
            answer(refused, false)
                .unwrap()
                .unwrap_err()
                .to_string()
                .contains("no")
        );
    }
}
