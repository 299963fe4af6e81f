//! One real tool call through HTTP, so that an operator sees a result on the first start.

use std::{net::SocketAddr, path::Path, time::Duration};

use anyhow::{Context, Result};
use http_body_util::{BodyExt, Full};
use hyper::{Request, body::Bytes, client::conn::http1, header::CONTENT_TYPE};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{net::TcpStream, time::Instant};

use crate::{commands::first_run::Keys, terminal::Terminal};

/// Tool and argument by file extension. Every other file is hashed.
const TOOLS: [(&str, &str, &str); 5] = [
    ("md", "DOCUMENTS_MARKDOWN_TO_HTML", "markdown"),
    ("html", "DOCUMENTS_HTML_TO_MARKDOWN", "html"),
    ("htm", "DOCUMENTS_HTML_TO_MARKDOWN", "html"),
    ("csv", "DOCUMENTS_CSV_TO_JSON", "text"),
    ("", "DOCUMENTS_HASH", "text"),
];
/// Maximum number of lines of the result that are printed.
const MAX_LINES: usize = 6;
/// Maximum number of characters of a line that are printed.
const MAX_LINE_CHARS: usize = 100;

/// Runs the tool on a file and prints the beginning of its result. An error is printed and does not
/// stop the server.
pub(crate) async fn run(address: SocketAddr, keys: &Keys, file: &Path, terminal: Terminal) {
    let extension = file
        .extension()
        .unwrap_or_default()
        .to_string_lossy()
        .to_ascii_lowercase();
    let [.., fallback] = TOOLS;
    let (_, tool, argument) = TOOLS
        .into_iter()
        .find(|(own, ..)| *own == extension)
        .unwrap_or(fallback);
    terminal.line("");
    match call(address, keys, file, tool, argument).await {
        Ok((text, elapsed)) => {
            let about = format!(
                "{}, {:.1} ms",
                file.display(),
                elapsed.as_secs_f64() * 1000.0
            );
            terminal.line(&format!(
                "  {}  {}",
                terminal.bold(tool),
                terminal.dim(&about)
            ));
            for line in text
                .lines()
                .filter(|line| !line.trim().is_empty())
                .take(MAX_LINES)
            {
                let short: String = line.chars().take(MAX_LINE_CHARS).collect();
                terminal.line(&format!("    {short}"));
            }
            terminal.line(&format!(
                "    {}",
                terminal.dim(&format!("… {} bytes in total", text.len()))
            ));
        }
        Err(cause) => terminal.bad(&format!("{tool} on {}: {cause:#}", file.display())),
    }
}

async fn call(
    address: SocketAddr,
    keys: &Keys,
    file: &Path,
    tool: &str,
    argument: &str,
) -> Result<(String, Duration)> {
    let text = tokio::fs::read_to_string(file)
        .await
        .context("cannot read the file as text")?;
    let body = serde_json::to_vec(&json!({"arguments": {argument: text}}))?;
    let request = Request::post(format!("/api/v3.1/tools/execute/{tool}"))
        .header("host", address.to_string())
        .header("x-api-key", keys.project_key.as_str())
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body)))?;
    let started = Instant::now();
    let stream = TcpStream::connect(address)
        .await
        .context("cannot connect to the server")?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let response = async {
        let response = sender.send_request(request).await?;
        let status = response.status();
        anyhow::Ok((status, response.into_body().collect().await?.to_bytes()))
    };
    // The connection is polled until the response has arrived, and dropped with it.
    let (status, bytes) = tokio::select! {
        response = response => response?,
        ended = connection => anyhow::bail!("the connection ended before the response: {ended:?}"),
    };
    let elapsed = started.elapsed();
    let response: Value = serde_json::from_slice(&bytes).context("the response is not JSON")?;
    if response["successful"] != Value::Bool(true) {
        let reason = response["error"]["message"]
            .as_str()
            .or(response["error"].as_str())
            .unwrap_or("no reason given");
        anyhow::bail!("{status}: {reason}");
    }
    let data = response["data"].as_object();
    let first_text = data
        .and_then(|data| data.values().find_map(Value::as_str))
        .map(str::to_owned);
    Ok((
        first_text.map_or_else(|| serde_json::to_string_pretty(&response["data"]), Ok)?,
        elapsed,
    ))
}
