//! Output of `toolkit dev`: lines for people, or one JSON object per line for scripts.

use std::{path::PathBuf, time::Duration};

use console::{StyledObject, style};
use serde_json::{Value, json};

use super::{Api, release::Served};
use crate::progress;

/// Maximum number of changed files named in a line.
const MAX_NAMED_FILES: usize = 3;

/// Writer for standard output.
#[derive(Clone, Copy)]
pub(crate) struct Console {
    json: bool,
}

/// Event to show.
pub(crate) enum Event<'e> {
    /// The server is ready.
    Serving(&'e Api),
    /// A build has started.
    Building { changed: &'e [PathBuf] },
    /// A build is served.
    Built {
        served: &'e Served,
        api: &'e Api,
        took: Duration,
    },
    /// A build has failed; the previous one is still served.
    Failed(&'e str),
    /// An account was connected with the author's credential.
    Connected { toolkit: &'e str, account: &'e str },
    /// A call has ended; the value is its record.
    Call(&'e Value),
    /// A poll or a webhook has ended.
    Trigger {
        /// Slug of the trigger type.
        trigger: &'e str,
        /// `poll`, `webhook` or `subscription`.
        kind: &'e str,
        /// Time in UTC.
        timestamp: &'e str,
        /// Entry of the server's log.
        call: &'e Value,
    },
}

impl Console {
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    /// Prints an event.
    pub(crate) fn print(&self, event: &Event<'_>) {
        if self.json {
            println!("{}", event.record());
        } else {
            event.lines().iter().for_each(|line| println!("{line}"));
        }
    }
}

impl Event<'_> {
    fn record(&self) -> Value {
        match self {
            Self::Serving(api) => json!({
                "event": "serving", "url": api.base(), "api_key": api.key, "org_api_key": api.org_key,
            }),
            Self::Building { changed } => json!({ "event": "building", "changed": changed }),
            Self::Built { served, api, took } => json!({
                "event": "built",
                "slug": served.manifest.slug,
                "version": served.manifest.version,
                "new": served.new,
                "size": served.size,
                "tools": served.manifest.tools.iter().map(|tool| &tool.slug).collect::<Vec<_>>(),
                "elapsed_ms": took.as_millis() as u64,
                "try": example_command(served, api),
            }),
            Self::Failed(message) => json!({ "event": "failed", "message": message }),
            Self::Connected { toolkit, account } => {
                json!({ "event": "connected", "toolkit": toolkit, "account": account })
            }
            Self::Call(call) => json!({ "event": "call", "call": call }),
            Self::Trigger {
                trigger,
                kind,
                timestamp,
                call,
            } => json!({
                "event": "trigger", "trigger": trigger, "kind": kind, "timestamp": timestamp, "call": call,
            }),
        }
    }

    fn lines(&self) -> Vec<String> {
        match self {
            Self::Serving(api) => vec![
                format!("{}  {}", style("serving").bold(), api.base()),
                format!("  {}  {}", style("project key").dim(), api.key),
            ],
            Self::Building { changed } => {
                vec![format!("{} {}", style("building").cyan(), files(changed))]
            }
            Self::Built { served, api, took } => built(served, api, *took),
            Self::Failed(message) => vec![format!("{} {message}", style("failed").red().bold())],
            Self::Connected { toolkit, account } => {
                vec![format!(
                    "{} {account} of {toolkit} for the user `default`",
                    style("connected").green()
                )]
            }
            Self::Call(record) => call(record),
            Self::Trigger {
                trigger,
                kind,
                timestamp,
                call,
            } => trigger_call(trigger, kind, timestamp, call),
        }
    }
}

fn files(changed: &[PathBuf]) -> String {
    let names: Vec<_> = changed
        .iter()
        .take(MAX_NAMED_FILES)
        .map(|path| path.display().to_string())
        .collect();
    match changed.len() {
        0..=MAX_NAMED_FILES => names.join(", "),
        more => format!("{} and {} more", names.join(", "), more - MAX_NAMED_FILES),
    }
}

fn built(served: &Served, api: &Api, took: Duration) -> Vec<String> {
    let slug = &served.manifest.slug;
    let version = &served.manifest.version;
    let size = progress::size(served.size);
    if !served.new {
        return vec![format!(
            "{} {slug} {version}, nothing has changed in it",
            style("built").green()
        )];
    }
    let mut lines = vec![format!(
        "{} {slug} {version}  {}  {size}  {}",
        style("built").green(),
        progress::counted(served.manifest.tools.len(), "tool"),
        progress::time(took)
    )];
    lines.extend(example_command(served, api).map(|line| format!("  {}", style(line).dim())));
    lines
}

/// Returns a shell command that calls the first tool.
fn example_command(served: &Served, api: &Api) -> Option<String> {
    let tools = &served.manifest.tools;
    let tool = tools
        .iter()
        .find(|tool| !tool.examples.is_empty())
        .or_else(|| tools.first())?;
    let arguments = tool.examples.first().cloned().unwrap_or_else(|| json!({}));
    let body = json!({ "arguments": arguments })
        .to_string()
        .replace('\'', r"'\''");
    let base = api.base();
    let slug = &tool.slug;
    let key = &api.key;
    Some(format!(
        "curl -s {base}/api/v3.1/tools/execute/{slug} -H 'x-api-key: {key}' -H 'content-type: application/json' -d '{body}'"
    ))
}

/// Formats a call: one line for the call, and one line each for its requests, log lines and error.
fn call(record: &Value) -> Vec<String> {
    let about = &record["metadata"];
    let metrics = &record["metrics"];
    let data = &record["data"];
    let mark = mark(record["status"] == "success");
    let at = time_of_day(record["timestamp"].as_str().unwrap_or_default());
    let account = match &about["connected_account_id"] {
        Value::String(account) => account.as_str(),
        _ => "no account",
    };
    let memory = progress::size(metrics["peak_memory_bytes"].as_u64().unwrap_or(0));
    let tool = about["tool_slug"].as_str().unwrap_or_default();
    let wall = micros(&metrics["wall_us"]);
    let cpu = micros(&metrics["cpu_us"]);
    let mut lines = vec![format!(
        "{mark} {} {}  {wall}, cpu {cpu}, {memory}  {account}",
        style(at).dim(),
        style(tool).bold()
    )];
    lines.extend(details(data));
    if let Value::String(error) = &data["response"]["error"] {
        lines.push(format!("    {}", style(error).red()));
    }
    lines
}

/// Formats a call of a trigger in the same way.
fn trigger_call(trigger: &str, kind: &str, timestamp: &str, call: &Value) -> Vec<String> {
    let mut lines = vec![format!(
        "{} {} {}  {kind}, {}  {}, cpu {}, {}",
        mark(call["error"].is_null()),
        style(time_of_day(timestamp)).dim(),
        style(trigger).bold(),
        progress::counted(call["events"].as_u64().unwrap_or(0) as usize, "event"),
        micros(&call["wall_us"]),
        micros(&call["cpu_us"]),
        progress::size(call["peak_memory_bytes"].as_u64().unwrap_or(0)),
    )];
    lines.extend(details(call));
    if let Value::String(error) = &call["error"] {
        lines.push(format!("    {}", style(error).red()));
    }
    lines
}

/// Formats a number of microseconds.
fn micros(value: &Value) -> String {
    progress::time(Duration::from_micros(value.as_u64().unwrap_or(0)))
}

fn mark(worked: bool) -> StyledObject<&'static str> {
    if worked {
        style("✓").green()
    } else {
        style("✗").red()
    }
}

/// Returns hours, minutes and seconds of a time.
fn time_of_day(timestamp: &str) -> &str {
    timestamp.split(['T', '.']).nth(1).unwrap_or_default()
}

/// Formats the requests and log lines of a call.
fn details(data: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for request in data["requests"].as_array().into_iter().flatten() {
        let ended = match &request["status"] {
            Value::Number(status) => status.to_string(),
            _ => request["error"].as_str().unwrap_or_default().to_owned(),
        };
        let method = request["method"].as_str().unwrap_or_default();
        let url = request["url"].as_str().unwrap_or_default();
        lines.push(format!(
            "    {method} {url}  {ended}  {} ms",
            request["elapsed_ms"]
        ));
    }
    for line in data["log"].as_array().into_iter().flatten() {
        lines.push(format!(
            "    {}",
            style(format!(
                "{:<5} {}",
                line["level"].as_str().unwrap_or_default(),
                line["message"].as_str().unwrap_or_default()
            ))
            .dim()
        ));
    }
    lines
}
