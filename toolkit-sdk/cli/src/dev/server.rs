//! Server behind `toolkit dev`: a private one on a temporary folder, or a running one.

use std::{env, fmt, fs, path::PathBuf, process::Stdio, time::Duration};

use anyhow::{Context, Error, Result, anyhow, bail};
use serde::Deserialize;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, ChildStderr, ChildStdin, Command},
    task::JoinSet,
    time::timeout,
};
use url::Url;

use super::{
    Api, Dev,
    console::{Console, Event},
};
use crate::toolchain;

const HOST_PROGRAM: &str = "toolhost";
/// Empty folder of toolkits in the folder of a server.
const NO_TOOLKITS_FOLDER: &str = "no-toolkits";
/// Target of the server's log that has the calls of triggers.
const TRIGGER_LOG_TARGET: &str = "toolhost::trigger_call";
/// Timeout of the start.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Time that the server may take to finish running work.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// A ready server.
pub(crate) struct Server {
    pub(crate) api: Api,
    owned: Option<OwnedProcess>,
}

/// A server that belongs to this command.
struct OwnedProcess {
    process: Child,
    /// Standard input, whose end stops the server. It is stored separately because waiting for the
    /// process would close it.
    input: Option<ChildStdin>,
    /// The task that prints the log of the process, and ends with it.
    log: JoinSet<()>,
    /// Temporary folder, removed when dropped.
    _folder: tempfile::TempDir,
}

/// Output of the server when it is ready.
#[derive(Deserialize)]
struct ReadyOutput {
    url: Url,
    api_key: String,
    org_api_key: String,
}

impl Server {
    /// Starts a server, or uses the one that the options name.
    pub(crate) async fn open(options: &Dev, console: Console) -> Result<Self> {
        let Some(url) = &options.server else {
            return start(options, console).await;
        };
        let org_key = required_key(options.org_key.as_ref(), "TOOLHOST_ORG_API_KEY")?;
        let api = Api::new(
            url.clone(),
            org_key,
            required_key(options.key.as_ref(), "TOOLHOST_API_KEY")?,
        )?;
        Ok(Self { api, owned: None })
    }

    /// Waits until the server has ended by itself, and returns the reason.
    pub(crate) async fn exit_error(&mut self) -> Error {
        match &mut self.owned {
            Some(owned) => match owned.process.wait().await {
                Ok(status) => {
                    owned.log.join_next().await;
                    anyhow!("the server ended by itself ({status}); its output is above")
                }
                Err(cause) => anyhow!("cannot wait for the server: {cause}"),
            },
            None => std::future::pending().await,
        }
    }

    /// Stops the server if it belongs to this command, and removes its folder.
    pub(crate) async fn stop(self) {
        let Some(mut owned) = self.owned else { return };
        drop(owned.input.take());
        if timeout(STOP_TIMEOUT, owned.process.wait()).await.is_err() {
            // The folder is removed in any case.
            let _ = owned.process.kill().await;
        }
        owned.log.join_next().await;
    }
}

/// Creates the folder that a server runs in. It has a settings file, so that the one of the machine
/// does not count, and an empty folder of toolkits, so that those of the release are not published.
fn private_folder() -> std::io::Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("toolhost.toml"), "")?;
    fs::create_dir(folder.path().join(NO_TOOLKITS_FOLDER))?;
    Ok(folder)
}

/// Shows the calls of triggers in the log of the server, and prints everything else in it.
async fn read_log(log: ChildStderr, console: Console) {
    let mut lines = BufReader::new(log).lines();
    // Ends with the server.
    while let Ok(Some(line)) = lines.next_line().await {
        let entry = serde_json::from_str(&line).unwrap_or(Value::Null);
        if entry["target"] == TRIGGER_LOG_TARGET {
            let call = entry["call"].as_str().unwrap_or_default();
            console.print(&Event::Trigger {
                trigger: entry["trigger"].as_str().unwrap_or_default(),
                kind: entry["kind"].as_str().unwrap_or_default(),
                timestamp: entry["timestamp"].as_str().unwrap_or_default(),
                call: &serde_json::from_str(call).unwrap_or_default(),
            });
        } else {
            eprintln!("{}", log_line(&entry).unwrap_or(line));
        }
    }
}

/// Returns a key of the server that the options name.
fn required_key(key: Option<&String>, name: &str) -> Result<String> {
    key.filter(|key| !key.is_empty())
        .cloned()
        .with_context(|| format!("--server needs the keys of that server; set {name}"))
}

/// Formats a log entry for people. Returns `None` if the value is not an entry.
fn log_line(entry: &Value) -> Option<String> {
    let mut fields = entry.as_object()?.clone();
    let mut take = |name: &str| Some(fields.shift_remove(name)?.as_str()?.to_owned());
    let timestamp = take("timestamp")?;
    let level = take("level")?;
    let target = take("target")?;
    let message = take("message")?;
    let rest: String = fields
        .iter()
        .map(|(name, value)| format!(" {name}={value}"))
        .collect();
    Some(format!("{timestamp} {level} {target}: {message}{rest}"))
}

async fn start(options: &Dev, console: Console) -> Result<Server> {
    let program = program()?;
    let folder = private_folder().context("cannot make a temporary folder")?;
    let mut command = Command::new(&program);
    command
        .args(["serve", "--json-ready", "--until-stdin-ends"])
        .current_dir(folder.path());
    for (name, _) in
        env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TOOLHOST_"))
    {
        command.env_remove(name);
    }
    command.env("TOOLHOST_DATA", folder.path().join("data"));
    command.env("TOOLHOST_TOOLKITS", folder.path().join(NO_TOOLKITS_FOLDER));
    command.env("TOOLHOST_LISTEN", format!("127.0.0.1:{}", options.port));
    command.env(
        "TOOLHOST_NET__REWRITE",
        list(&options.rewrite, |pair| {
            format!("{}={}", pair.from, pair.to)
        }),
    );
    command.env(
        "TOOLHOST_NET__ALLOW",
        list(&options.allow, ToString::to_string),
    );
    command.env("TOOLHOST_LIMITS__RATE", "0");
    command.env("TOOLHOST_LIMITS__RATE_PER_PROJECT", "0");
    command
        .env("TOOLHOST_LOGS__CASSETTES", "all")
        .env("TOOLHOST_LOGS__CASSETTE_KIB", "8192");
    command
        .env("TOOLHOST_LOG", format!("warn,{TRIGGER_LOG_TARGET}=trace"))
        .env("TOOLHOST_LOG_FORMAT", "json");
    // In its own process group the server does not receive ctrl-c from the terminal. This command
    // stops it.
    command
        .process_group(0)
        .kill_on_drop(true)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut process = command
        .spawn()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let log = process.stderr.take().context("the server has no log")?;
    let mut log_task = JoinSet::new();
    log_task.spawn(read_log(log, console));
    let stdout = process
        .stdout
        .take()
        .context("the server has no standard output")?;
    let mut first = String::new();
    let mut output = BufReader::new(stdout);
    let read = timeout(START_TIMEOUT, output.read_line(&mut first)).await;
    read.map_err(|_| {
        anyhow!(
            "the server did not start within {} s",
            START_TIMEOUT.as_secs()
        )
    })?
    .context("cannot read the server's output")?;
    if first.is_empty() {
        let status = process.wait().await?;
        log_task.join_next().await;
        bail!(
            "the server did not start ({status}); its output is above; if another program uses the port, choose one with --port"
        );
    }
    let ready: ReadyOutput = serde_json::from_str(&first).with_context(|| {
        format!(
            "{} is not the server of this release: its output is {first:?}",
            program.display()
        )
    })?;
    let api = Api::new(ready.url, ready.org_api_key, ready.api_key)?;
    let input = process.stdin.take();
    Ok(Server {
        api,
        owned: Some(OwnedProcess {
            process,
            input,
            log: log_task,
            _folder: folder,
        }),
    })
}

/// Finds the server's binary, next to this one or on the search path.
fn program() -> Result<PathBuf> {
    let beside = env::current_exe()
        .ok()
        .map(|executable| executable.with_file_name(HOST_PROGRAM))
        .filter(|file| file.is_file());
    beside.or_else(|| toolchain::on_path(HOST_PROGRAM)).context(
        "`toolhost` was not found next to this command or in PATH; install it, or name a running server with --server",
    )
}

fn list<T>(all: &[T], text: impl Fn(&T) -> String) -> String {
    all.iter().map(text).collect::<Vec<_>>().join(",")
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("url", &self.api.url.as_str())
            .finish_non_exhaustive()
    }
}
