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
const LINES: usize = 6;
const WIDTH: usize = 100;

/// Runs the tool on a file and prints the beginning of its result. An error is printed and does not
/// stop the server.
pub(crate) async fn run(address: SocketAddr, keys: &Keys, file: &Path, terminal: Terminal) {
    let ending = file
        .extension()
        .unwrap_or_default()
        .to_string_lossy()
        .to_ascii_lowercase();
    let [.., any] = TOOLS;
    let (_, tool, argument) = TOOLS
        .into_iter()
        .find(|(own, ..)| *own == ending)
        .unwrap_or(any);
    terminal.line("");
    match call(address, keys, file, tool, argument).await {
        Ok((text, took)) => {
            let about = format!("{}, {:.1} ms", file.display(), took.as_secs_f64() * 1000.0);
            terminal.line(&format!(
                "  {}  {}",
                terminal.bold(tool),
                terminal.dim(&about)
            ));
            for line in text
                .lines()
                .filter(|line| !line.trim().is_empty())
                .take(LINES)
            {
                let short: String = line.chars().take(WIDTH).collect();
                terminal.line(&format!("    {short}"));
            }
            terminal.line(&format!(
                "    {}",
                terminal.dim(&format!("… {} bytes in all", text.len()))
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
        .context("the file cannot be read as text")?;
    let body = serde_json::to_vec(&json!({"arguments": {argument: text}}))?;
    let request = Request::post(format!("/api/v3.1/tools/execute/{tool}"))
        .header("host", address.to_string())
        .header("x-api-key", keys.project_key.as_str())
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body)))?;
    let begun = Instant::now();
    let stream = TcpStream::connect(address)
        .await
        .context("connect to the server")?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let answer = async {
        let answer = sender.send_request(request).await?;
        let status = answer.status();
        anyhow::Ok((status, answer.into_body().collect().await?.to_bytes()))
    };
    // The connection is polled until the response has arrived, and dropped with it.
    let (status, bytes) = tokio::select! {
        answer = answer => answer?,
        ended = connection => anyhow::bail!("the connection ended before the answer: {ended:?}"),
    };
    let took = begun.elapsed();
    let answer: Value = serde_json::from_slice(&bytes).context("the answer is not JSON")?;
    if answer["successful"] != Value::Bool(true) {
        let said = answer["error"]["message"]
            .as_str()
            .or(answer["error"].as_str())
            .unwrap_or("no reason given");
        anyhow::bail!("{status}: {said}");
    }
    let data = answer["data"].as_object();
    let first_text = data
        .and_then(|data| data.values().find_map(Value::as_str))
        .map(str::to_owned);
    Ok((
        first_text.map_or_else(|| serde_json::to_string_pretty(&answer["data"]), Ok)?,
        took,
    ))
}
