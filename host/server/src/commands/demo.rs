//! One real tool call through HTTP, so that an operator sees a result on the first start.

use std::{net::SocketAddr, path::Path, time::Duration};

use anyhow::{Context, anyhow};
use net::Method;
use serde_json::{Value, json};
use settings::Config;
use tokio::time::Instant;

use super::{
    first_run::Keys,
    running::{ProjectArgs, Running},
};
use crate::{open::Stop, terminal::Terminal};

/// Tool and argument by file extension. Every other file is hashed.
const TOOLS_BY_EXTENSION: [(&str, &str, &str); 5] = [
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
pub(super) async fn run(
    config: &Config,
    address: SocketAddr,
    keys: &Keys,
    file: &Path,
    terminal: Terminal,
) {
    let extension = file
        .extension()
        .unwrap_or_default()
        .to_string_lossy()
        .to_ascii_lowercase();
    let [.., fallback] = TOOLS_BY_EXTENSION;
    let (_, tool, argument) = TOOLS_BY_EXTENSION
        .into_iter()
        .find(|(own, ..)| *own == extension)
        .unwrap_or(fallback);
    terminal.line("");
    let file_name = file.display();
    let project = ProjectArgs {
        url: format!("http://{address}").parse().ok(),
        api_key: Some(keys.project_key.clone()),
    };
    let called = async { call(&project.reach(config)?, file, tool, argument).await };
    match called.await {
        Ok((text, elapsed)) => {
            let about = format!("{file_name}, {:.1} ms", elapsed.as_secs_f64() * 1000.0);
            terminal.entry(&format!("  {}", terminal.bold(tool)), &about);
            let lines = text.lines().filter(|line| !line.trim().is_empty());
            for line in lines.take(MAX_LINES) {
                let short: String = line.chars().take(MAX_LINE_CHARS).collect();
                terminal.line(&format!("    {short}"));
            }
            let total = format!("… {} bytes in total", text.len());
            terminal.line(&format!("    {}", terminal.dim(&total)));
        }
        Err(stop) => terminal.bad(&format!("{tool} on {file_name}: {}", stop.line)),
    }
}

/// Runs the tool, and returns its first text with the time that it took.
async fn call(
    server: &Running,
    file: &Path,
    tool: &str,
    argument: &str,
) -> Result<(String, Duration), Stop> {
    let text = tokio::fs::read_to_string(file)
        .await
        .context("cannot read the file as text")?;
    let path = format!("tools/execute/{tool}");
    let body = json!({"arguments": {argument: text}});
    let started = Instant::now();
    let response = server.send_json(Method::POST, &path, &body).await?;
    let elapsed = started.elapsed();
    if response["successful"] != Value::Bool(true) {
        let reason = response["error"].as_str().unwrap_or("no reason given");
        return Err(anyhow!("{reason}").into());
    }
    let data = &response["data"];
    let values = data.as_object().into_iter().flat_map(|data| data.values());
    let first_text = values.filter_map(Value::as_str).next().map(str::to_owned);
    Ok((first_text.unwrap_or_else(|| format!("{data:#}")), elapsed))
}
