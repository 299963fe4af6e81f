//! Pages that this program serves in processes of their own: the baseline of the benchmark, which
//! parses JSON and returns it, and a provider.

use std::{
    io::{self, BufRead, BufReader},
    path::Path as FilePath,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result};
use axum::{Json, Router, extract::Path, http::StatusCode, routing::any, serve::ListenerExt};
use harness::{
    Process,
    tls::{self, TlsListener},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Hidden argument that makes this program the bare server. A folder may follow, whose certificate
/// `server` the server then uses.
pub(crate) const BARE_SERVER_ARGUMENT: &str = "bare-server";
/// Text of which the items of the provider consist: 64 bytes that start with the text of a small call.
const ITEM_TEXT: &str = "the quick brown fox jumps over the lazy dog and reads the news. ";

/// A running page of this program. Dropping it ends the process.
pub(crate) struct Bare {
    process: Process,
    pub(crate) url: String,
}

impl Bare {
    /// Starts the bare server.
    pub(crate) fn start() -> Result<Self> {
        Self::run(this_program(BARE_SERVER_ARGUMENT)?)
    }

    /// Starts it with the lowest priority of the system, as a provider on another machine.
    pub(crate) fn start_with_low_priority() -> Result<Self> {
        let program = this_program(BARE_SERVER_ARGUMENT)?;
        let mut command = Command::new("nice");
        command.args(["-n", "19"]).arg(program.get_program());
        command.args(program.get_args());
        Self::run(command)
    }

    /// Starts a page and reads its address from the first line that it prints.
    pub(crate) fn run(mut command: Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("read its output")?).read_line(&mut line)?;
        Ok(Self {
            process: Process(child),
            url: line.trim().to_owned(),
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.0.id()
    }
}

/// Returns the command that starts this program a second time with a hidden argument.
pub(crate) fn this_program(argument: &str) -> Result<Command> {
    let program = std::env::current_exe().context("find this program")?;
    let mut command = Command::new(program);
    command.arg(argument);
    Ok(command)
}

/// Returns the pages of the bare server.
pub(crate) fn pages() -> Router {
    Router::new()
        .route("/echo", any(async |Json(value): Json<Value>| Json(value)))
        .route("/slow/20", any(async || slow(20).await))
        .route("/slow/1000", any(async || slow(1000).await))
        .route("/large/{mb}", any(large))
        .route("/v0/item/{file}", any(item))
}

/// Serves pages until standard input is closed, which happens when the benchmark ends: over TLS with
/// the certificate `server` of a folder, if one is given.
pub(crate) fn serve(router: Router, certificate: Option<&FilePath>) -> Result<()> {
    std::thread::spawn(|| {
        io::copy(&mut io::stdin(), &mut io::sink()).ok();
        std::process::exit(0);
    });
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let address = listener.local_addr()?;
            match certificate {
                None => {
                    println!("http://{address}");
                    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
                    axum::serve(listener, router).await?;
                }
                Some(folder) => {
                    println!("https://{address}");
                    let acceptor = tls::acceptor(folder, None);
                    axum::serve(TlsListener { listener, acceptor }, router).await?;
                }
            }
            Ok(())
        })
}

/// Responds with text of a number of megabytes.
async fn large(Path(mb): Path<usize>) -> String {
    "x".repeat(mb * 1_000_000)
}

/// Responds after a delay, as a slow provider does.
async fn slow(milliseconds: u64) -> Json<Value> {
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    Json(json!({ "waited": milliseconds }))
}

/// Returns the number of the item of a size for which the provider takes a time, below a second.
pub(crate) fn item_number(kib: usize, milliseconds: usize) -> usize {
    kib * 1_000 + milliseconds
}

/// Responds with an item as the API of Hacker News has it, after a delay. Its number states both.
async fn item(Path(file): Path<String>) -> Result<Json<Value>, StatusCode> {
    let number = file
        .strip_suffix(".json")
        .and_then(|name| name.parse().ok());
    let number: usize = number.ok_or(StatusCode::NOT_FOUND)?;
    let delay = Duration::from_millis((number % 1_000) as u64);
    // A timer takes a millisecond at least.
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    let text = ITEM_TEXT.repeat(number / 1_000 * 1_024 / ITEM_TEXT.len());
    Ok(Json(
        json!({ "id": number, "type": "story", "by": "bench", "time": 1, "text": text }),
    ))
}
