//! `toolhost mcp`: an MCP server for assistants that start a program instead of opening an address.
//!
//! Each line of standard input is a message, and is sent to the server over streamable HTTP. The
//! messages of each response become lines of standard output. Nothing else is printed there. A line
//! without a message is answered with an error, and the next one is read. A message that cancels a
//! request closes its stream, which ends the call, and is passed on to servers whose calls outlive
//! it. The start fails if the server refuses the id or the key.

use std::{
    collections::HashMap,
    slice,
    sync::{Arc, OnceLock},
    time::Duration,
};

use anyhow::anyhow;
use app::core::json::Problem;
use net::StreamedResponse;
use rmcp::model::{ErrorCode, ProtocolVersion};
use serde_json::{Value, json};
use settings::Config;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    task::{AbortHandle, JoinSet},
};
use url::form_urlencoded::Serializer;

use crate::{
    commands::{
        events::server_sent::Parser,
        running::{ProjectArgs, Running, check_id, specific_fix, text},
    },
    open::Stop,
    terminal::Terminal,
};

/// Time without a byte after which a response counts as broken.
const IDLE_TIMEOUT: Duration = Duration::from_secs(310);
/// Timeout of the request by which the start checks the id and the key.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);
/// Code of the JSON-RPC error for a message that the server did not answer.
const NOT_ANSWERED: ErrorCode = ErrorCode(-32_000);
/// JSON pointer to the version of the protocol in a message, since 2026-07-28.
const VERSION_MEMBER: &str = "/params/_meta/io.modelcontextprotocol~1protocolVersion";
/// Header with the id of the connection, before 2026-07-28.
const CONNECTION_HEADER: &str = "mcp-session-id";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Speak over standard input and output
    #[arg(long, required = true)]
    stdio: bool,
    /// Id of the MCP server
    #[arg(long, value_name = "ID")]
    server: String,
    /// User for whom tools run [default: the default user]
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    #[command(flatten)]
    project: ProjectArgs,
}

/// Forwards messages until standard input ends, and then until all are answered.
pub(crate) async fn run(config: &Config, args: &Args, terminal: Terminal) -> Result<(), Stop> {
    check_id(&args.server, "an MCP server")?;
    let mut query = Serializer::new(String::new());
    query.extend_pairs(args.user.iter().map(|user| ("user_id", user)));
    let bridge = Arc::new(Bridge {
        running: args.project.reach(config)?,
        path: format!("v3/mcp/{}?{}", args.server, query.finish()),
        version: OnceLock::new(),
        connection: OnceLock::new(),
        terminal,
    });
    bridge.check().await?;
    let mut tasks = JoinSet::new();
    let mut requests: HashMap<String, AbortHandle> = HashMap::new();
    let mut lines = BufReader::new(tokio::io::stdin()).split(b'\n');
    while let Some(line) = lines.next_segment().await.map_err(anyhow::Error::from)? {
        while tasks.try_join_next().is_some() {}
        requests.retain(|_, task| !task.is_finished());
        if line.trim_ascii().is_empty() {
            continue;
        }
        let (line, message) = match parse(line) {
            Ok(read) => read,
            Err(problem) => {
                bridge.refuse(ErrorCode::PARSE_ERROR, &problem);
                continue;
            }
        };
        if let Some(problem) = bridge.problem(&message) {
            bridge.refuse(ErrorCode::INVALID_REQUEST, problem);
            continue;
        }
        if text(&message, "method") == "notifications/cancelled" {
            let id = message["params"]["requestId"].to_string();
            if let Some(task) = requests.remove(&id) {
                task.abort();
            }
            if bridge.connection.get().is_none() {
                continue;
            }
        }
        if text(&message, "method") == "initialize" {
            // What follows is sent with the version and the connection of its response.
            bridge.forward(line, &message).await;
            continue;
        }
        let id = message["id"].clone();
        let bridge = bridge.clone();
        let task = tasks.spawn(async move { bridge.forward(line, &message).await });
        if !id.is_null() {
            requests.insert(id.to_string(), task);
        }
    }
    while tasks.join_next().await.is_some() {}
    Ok(())
}

/// Parses a line as JSON. Fails with the reason why it is invalid.
fn parse(line: Vec<u8>) -> Result<(String, Value), String> {
    let line = String::from_utf8(line).map_err(|cause| {
        let position = cause.utf8_error().valid_up_to();
        format!("the line is not UTF-8: the byte at position {position} is invalid")
    })?;
    if line.starts_with('\u{feff}') {
        return Err("the line begins with a byte order mark, which JSON does not have".to_owned());
    }
    match serde_json::from_str(&line) {
        Ok(message) => Ok((line, message)),
        Err(cause) => Err(format!("the line {}", Problem::of_syntax(&cause))),
    }
}

struct Bridge {
    running: Running,
    /// Path and query of the MCP server.
    path: String,
    /// Version that `initialize` agreed on.
    version: OnceLock<String>,
    /// Id of the connection that `initialize` opened.
    connection: OnceLock<String>,
    terminal: Terminal,
}

impl Bridge {
    /// Fails if the server refuses messages, for example because the id or the key is wrong. A server that does
    /// not answer may do so later.
    async fn check(&self) -> Result<(), Stop> {
        let ping = json!({ "jsonrpc": "2.0", "id": 0, "method": "ping" });
        let headers = self.headers(&ping);
        let sent = self
            .running
            .post(&self.path, headers, ping.to_string(), CHECK_TIMEOUT);
        let Ok(response) = sent.await else {
            return Ok(());
        };
        match self.running.accepted(response).await {
            Err(refused) if !refused.transient => Err(refused.stop),
            _ => Ok(()),
        }
    }

    /// Sends a message and prints the messages of its response.
    async fn forward(&self, line: String, message: &Value) {
        let is_initialize = text(message, "method") == "initialize";
        let answered = async {
            let headers = self.headers(message);
            let sent = self.running.post(&self.path, headers, line, IDLE_TIMEOUT);
            self.print(sent.await?, is_initialize).await
        };
        if let Err(cause) = answered.await {
            let messages = message
                .as_array()
                .map_or(slice::from_ref(message), Vec::as_slice);
            for message in messages {
                self.fail(&message["id"], &format!("{cause:#}"));
            }
        }
    }

    fn headers(&self, message: &Value) -> Vec<(&'static str, String)> {
        let mut headers = vec![
            ("content-type", "application/json".to_owned()),
            ("accept", "application/json, text/event-stream".to_owned()),
        ];
        let own = message.pointer(VERSION_MEMBER).and_then(Value::as_str);
        if own.is_some() {
            headers.push(("mcp-method", text(message, "method").to_owned()));
            let name = message["params"]["name"].as_str();
            headers.extend(name.map(|name| ("mcp-name", name.to_owned())));
        }
        let agreed = self.version.get().map(String::as_str);
        let connection = self.connection.get().filter(|_| own.is_none());
        headers.extend(connection.map(|id| (CONNECTION_HEADER, id.clone())));
        let version = own.or(agreed);
        headers.extend(version.map(|version| ("mcp-protocol-version", version.to_owned())));
        headers
    }

    /// Prints the messages of a response as they arrive: one message as JSON, or a stream of them.
    async fn print(
        &self,
        mut response: StreamedResponse,
        is_initialize: bool,
    ) -> anyhow::Result<()> {
        let mut whole = Vec::new();
        let mut parser = Parser::default();
        let mut is_stream = false;
        let status = response.status();
        let connection = response.header(CONNECTION_HEADER).map(str::to_owned);
        while let Some(piece) = response
            .next_piece()
            .await
            .map_err(|cause| anyhow!(cause.message))?
        {
            let is_json = piece.starts_with(b"{") || piece.starts_with(b"[");
            let is_message = is_json || !status.is_success();
            is_stream = is_stream || (whole.is_empty() && !is_message);
            if !is_stream {
                whole.extend_from_slice(&piece);
                continue;
            }
            for event in parser.push(&piece)? {
                let data = event.data.filter(|data| !data.is_empty());
                data.iter().for_each(|data| self.terminal.line(data));
            }
        }
        if whole.is_empty() && status.is_success() {
            // The server accepted a notification.
            return Ok(());
        }
        let answer = match serde_json::from_slice(&whole) {
            Ok(answer) => answer,
            // A proxy may refuse a message with a page, or with nothing.
            Err(_) if !status.is_success() => Value::Null,
            Err(cause) => return Err(cause.into()),
        };
        if answer["jsonrpc"].is_null() && !answer.is_array() {
            let error = &answer["error"];
            let mut problem = format!("the server refused the message ({status})");
            let fix = specific_fix(text(error, "suggested_fix"));
            let details = [Some(text(error, "message")), fix];
            for detail in details.into_iter().flatten().filter(|one| !one.is_empty()) {
                problem.push_str(&format!(": {detail}"));
            }
            return Err(anyhow!(problem));
        }
        if is_initialize && let Some(version) = answer["result"]["protocolVersion"].as_str() {
            // A client initializes once.
            let _ = self.version.set(version.to_owned());
            if let Some(connection) = connection {
                let _ = self.connection.set(connection);
            }
        }
        self.terminal.line(&answer.to_string());
        Ok(())
    }

    /// Answers a message with an error. A notification gets no answer.
    fn fail(&self, id: &Value, message: &str) {
        tracing::warn!("{message}");
        if !id.is_null() {
            self.print_error(id, NOT_ANSWERED, message);
        }
    }

    /// Answers a line without a message, and therefore without an id.
    fn refuse(&self, code: ErrorCode, problem: &str) {
        tracing::warn!("{problem}");
        self.print_error(&Value::Null, code, problem);
    }

    fn print_error(&self, id: &Value, code: ErrorCode, message: &str) {
        let error = json!({ "code": code, "message": message });
        let answer = json!({ "jsonrpc": "2.0", "id": id, "error": error });
        self.terminal.line(&answer.to_string());
    }

    /// Returns the reason why JSON is not a message.
    fn problem(&self, message: &Value) -> Option<&'static str> {
        let agreed = self.version.get();
        let has_batches =
            agreed.is_some_and(|agreed| agreed == ProtocolVersion::V_2025_03_26.as_str());
        match message {
            Value::Object(_) => None,
            Value::Array(_) if has_batches => None,
            Value::Array(_) => {
                Some("this version of the protocol has no batches: send a message on each line")
            }
            _ => Some("a message must be an object"),
        }
    }
}
