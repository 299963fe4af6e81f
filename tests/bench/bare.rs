//! The baseline of the benchmark: an axum handler that parses JSON and returns it, in a process of
//! its own.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result};
use axum::{Json, Router, extract::Path, routing::any};
use serde_json::Value;

/// Hidden argument that makes this program the bare server.
pub(crate) const BARE_SERVER_ARGUMENT: &str = "bare-server";

/// A running bare server. Dropping it ends the process.
pub(crate) struct Bare {
    child: Child,
    pub(crate) url: String,
}

impl Bare {
    /// Starts this program a second time as the bare server.
    pub(crate) fn start() -> Result<Self> {
        let program = std::env::current_exe().context("find this program")?;
        Self::run(Command::new(program))
    }

    /// Starts it with the lowest priority of the system, as a provider on another machine.
    pub(crate) fn start_with_low_priority() -> Result<Self> {
        let program = std::env::current_exe().context("find this program")?;
        let mut command = Command::new("nice");
        command.args(["-n", "19"]).arg(program);
        Self::run(command)
    }

    fn run(mut command: Command) -> Result<Self> {
        let mut child = command
            .arg(BARE_SERVER_ARGUMENT)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("read its output")?).read_line(&mut line)?;
        Ok(Self {
            child,
            url: line.trim().to_owned(),
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Serves until standard input is closed, which happens when the benchmark ends.
pub(crate) fn serve() -> Result<()> {
    std::thread::spawn(|| {
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).ok();
        std::process::exit(0);
    });
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
            println!("http://{}", listener.local_addr()?);
            let router = Router::new()
                .route("/echo", any(async |Json(value): Json<Value>| Json(value)))
                .route("/slow/20", any(async || slow(20).await))
                .route("/slow/1000", any(async || slow(1000).await))
                .route("/large/{mb}", any(large));
            Ok(axum::serve(listener, router).await?)
        })
}

/// Responds with text of a number of megabytes.
async fn large(Path(mb): Path<usize>) -> String {
    "x".repeat(mb * 1_000_000)
}

/// Responds after a delay, as a slow provider does.
async fn slow(milliseconds: u64) -> Json<Value> {
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    Json(serde_json::json!({ "waited": milliseconds }))
}
