//! Speed and memory of the server, compared with a bare HTTP handler.
//!
//! Wall-clock times on a shared machine vary severalfold. Both sides therefore alternate, the best
//! round of each counts, and the decisive numbers are ratios and processor time. The bare handler
//! is a plain axum handler with the default allocator. The load generator shares the cores with the
//! server, so absolute numbers are lower than those of a server alone.
//!
//! The measures with the largest effect, in this order: a pool of instances whose memory stays
//! resident, together with a guest that never grows its first memory; running the call on the task
//! that requested it; JSON that passes through the host unparsed.

#![expect(clippy::print_stdout, reason = "the table is this program's answer")]

mod agents;
mod bare;
mod bounds;
mod calls;
mod chart;
mod compare;
mod connection;
mod counts;
mod events;
mod floor;
mod growth;
mod load;
mod many;
mod peers;
mod perf;
mod report;
mod requests;
mod round;
mod schedule;
mod waiting;

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use bare::Bare;
use clap::Parser;
use harness::{Host, host::Setup};
use load::Target;
use report::Line;
use serde_json::{Value, json};

const ROUND_DURATION: Duration = Duration::from_millis(1_200);
/// Calls that may run at the same time, most of them waiting for a provider.
const LIVE_CALLS: u32 = 1_024;
/// Names of the parts.
const PART_NAMES: [&str; 16] = [
    "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "l", "m", "n", "floor", "request", "counts",
];

/// Measures the server in comparison with a bare handler.
#[derive(Debug, Parser)]
struct Options {
    /// Parts to run: b (with a, the bare handler), c to j, l to n, floor, request, counts [default: all,
    /// and of request its smaller half]
    #[arg(value_parser = PART_NAMES, hide_possible_values = true)]
    parts: Vec<String>,
    /// Rounds of which the best counts
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Toolkits published for c, d and l
    #[arg(long, default_value_t = 1_000)]
    toolkits: usize,
    /// Records that the log of m holds
    #[arg(long, default_value_t = 1_000_000)]
    logs: usize,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    /// SVG file into which the ratios of b and the times of l are drawn
    #[arg(long)]
    chart: Option<PathBuf>,
    /// JSON of an earlier run to draw, instead of measuring
    #[arg(long, requires = "chart")]
    from: Option<PathBuf>,
    /// Folder in which `make bench-peers` installed the servers of n
    #[arg(long, default_value = peers::PEERS_FOLDER)]
    peers: PathBuf,
}

fn main() -> Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(bare::BARE_SERVER_ARGUMENT) => {
            return bare::serve(bare::pages(), arguments.get(1).map(Path::new));
        }
        Some(floor::PAGE_ARGUMENT) => return bare::serve(floor::page()?, None),
        Some(requests::PAGE_ARGUMENT) => {
            return bare::serve(requests::page(&arguments[1..])?, None);
        }
        Some(bounds::SENDER_ARGUMENT) => return bounds::send(&arguments[1..]),
        _ => {}
    }
    let options = Options::parse();
    let chart = options.chart.clone();
    let lines = match &options.from {
        Some(path) => {
            let text = std::fs::read(path).with_context(|| format!("read {}", path.display()))?;
            serde_json::from_slice(&text)?
        }
        None => {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            serde_json::to_value(runtime.block_on(run(options))?)?
        }
    };
    chart.map_or(Ok(()), |path| draw(&path, &lines))
}

fn draw(path: &Path, lines: &Value) -> Result<()> {
    std::fs::write(path, chart::svg(lines)?).with_context(|| format!("write {}", path.display()))
}

struct Bench {
    options: Options,
    bare: Bare,
    lines: Vec<Line>,
}

/// Runs the wanted parts, and returns their lines.
async fn run(options: Options) -> Result<Vec<Line>> {
    connection::raise_file_limit()?;
    let mut bench = Bench {
        bare: Bare::start()?,
        lines: Vec::new(),
        options,
    };
    let begun = Instant::now();
    if !bench.options.json {
        println!("{}", report::heading());
    }
    for part in PART_NAMES {
        match part {
            _ if !bench.wants(part) => {}
            // These are measured with the part that they are compared with.
            "a" if bench.wants("b") => {}
            "c" if bench.wants("d") => {}
            "a" | "b" => bench.small_calls().await?,
            "c" | "d" => bench.full_house().await?,
            "e" => bench.large_calls().await?,
            "f" => bench.waiting_calls().await?,
            "g" => bench.both_stores().await?,
            "h" => bench.events().await?,
            "i" => bench.agents().await?,
            "j" => bench.bounds().await?,
            "l" => bench.many_toolkits().await?,
            "m" => bench.large_log().await?,
            "n" => bench.peers().await?,
            "floor" => bench.floor().await?,
            "request" => bench.requests().await?,
            _ => bench.counts().await?,
        }
    }
    if bench.options.json {
        println!("{}", serde_json::to_string_pretty(&bench.lines)?);
    } else {
        println!("took {:.0} s", begun.elapsed().as_secs_f64());
    }
    Ok(bench.lines)
}

/// Returns settings that let one project use the whole server, because the benchmark has only one
/// project.
fn setup() -> Setup {
    Setup::new()
        .with("logs.wait", "false")
        .with("sandbox.live", LIVE_CALLS.to_string())
        .with("limits.in_flight", "4096")
        .with("limits.connections", "32768")
}

/// Returns the same for requests without a key, whose rates are parts of this one.
fn setup_without_key() -> Setup {
    setup().with("limits.rate_per_project", "1000000000")
}

/// Reads the component, built with the SDK, that returns its arguments.
fn echo_component() -> Result<Vec<u8>> {
    let root = PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/components/echo/dist/echo.wasm"
    ));
    std::fs::read(&root).with_context(|| {
        format!(
            "read {}: `toolkit build tests/components/echo` first",
            root.display()
        )
    })
}

async fn serving_echo(setup: Setup) -> Result<Host> {
    let host = setup.start().await;
    publish_echo(&host).await?;
    Ok(host)
}

async fn publish_echo(host: &Host) -> Result<()> {
    let org = host.as_org();
    let published = org.put("/toolkits/echo/versions/20261121_00", echo_component()?);
    published.await.expect(201);
    Ok(())
}

fn call(arguments: &Value) -> String {
    json!({ "arguments": arguments, "user_id": "default", "version": "latest" }).to_string()
}

fn small() -> Value {
    json!({ "text": "the quick brown fox jumps" })
}

impl Bench {
    fn wants(&self, part: &str) -> bool {
        self.options.parts.is_empty() || self.options.parts.iter().any(|wanted| wanted == part)
    }

    fn tell(&mut self, line: Line) {
        if !self.options.json {
            println!("{}", report::row(&line));
        }
        self.lines.push(line);
    }

    fn bare(&self, body: &str) -> Result<Target> {
        Target::post(&self.bare.url, "/echo", &[], body, self.bare.pid())
    }
}

fn echo(host: &Host, arguments: &Value) -> Result<Target> {
    tool_call(host, &host.project_key, "ECHO_SAY", arguments)
}

/// Returns a call of a tool with the key of a project.
fn tool_call(host: &Host, key: &str, tool: &str, arguments: &Value) -> Result<Target> {
    let path = format!("/api/v3/tools/execute/{tool}");
    let headers = [("x-api-key", key)];
    Target::post(&host.url, &path, &headers, &call(arguments), host.pid())
}
