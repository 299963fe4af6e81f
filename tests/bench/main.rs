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
mod events;
mod load;
mod many;
mod report;

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use bare::Bare;
use clap::Parser;
use harness::{Guest, Host, guest, host::Setup, postgres::Postgres};
use load::{Round, Target};
use report::{Line, Verdict};
use serde_json::{Value, json};

const ROUND_DURATION: Duration = Duration::from_millis(1_200);
const CONNECTION_COUNTS: [usize; 3] = [1, 8, 64];

/// Measures the server beside a bare handler.
#[derive(Debug, Parser)]
struct Options {
    /// Parts to run: b (with a, the bare handler), c, d, e, f, g, h, i, j, l [default: all]
    parts: Vec<String>,
    /// Rounds of which the best counts
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Toolkits published for c, d and l
    #[arg(long, default_value_t = 1_000)]
    toolkits: usize,
    /// Log records written for c
    #[arg(long, default_value_t = 100_000)]
    logs: usize,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

fn main() -> Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(bare::BARE_SERVER_ARGUMENT) => return bare::serve(),
        Some(bounds::SENDER_ARGUMENT) => return bounds::send(&arguments[1..]),
        _ => {}
    }
    let options = Options::parse();
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(run(options))
}

struct Bench {
    options: Options,
    bare: Bare,
    lines: Vec<Line>,
}

async fn run(options: Options) -> Result<()> {
    let mut bench = Bench {
        bare: Bare::start()?,
        lines: Vec::new(),
        options,
    };
    let begun = Instant::now();
    if !bench.options.json {
        println!("{}", report::heading());
    }
    if bench.wants("a") || bench.wants("b") {
        bench.small_calls().await?;
    }
    if bench.wants("c") || bench.wants("d") {
        bench.full_house().await?;
    }
    if bench.wants("e") {
        bench.large_calls().await?;
    }
    if bench.wants("f") {
        bench.waiting_calls().await?;
    }
    if bench.wants("g") {
        bench.both_stores().await?;
    }
    if bench.wants("h") {
        bench.events().await?;
    }
    if bench.wants("i") {
        bench.agents().await?;
    }
    if bench.wants("j") {
        bench.bounds().await?;
    }
    if bench.wants("l") {
        bench.many_toolkits().await?;
    }
    if bench.options.json {
        println!("{}", serde_json::to_string_pretty(&bench.lines)?);
    } else {
        println!("took {:.0} s", begun.elapsed().as_secs_f64());
    }
    Ok(())
}

/// Returns settings that let one project use the whole server, because the benchmark has only one
/// project.
fn setup() -> Setup {
    Setup::new()
        .with("logs.wait", "false")
        .with("sandbox.live", "512")
        .with("sandbox.live_per_project", "512")
        .with("sandbox.queue_per_project", "128")
        .with("limits.in_flight", "2048")
        .with("limits.in_flight_per_project", "2048")
        .with("limits.connections_per_address", "2048")
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
    let component = echo_component()?;
    host.as_org()
        .put("/toolkits/echo/versions/20261121_00", component)
        .await
        .expect(201);
    Ok(host)
}

fn call(arguments: &Value) -> String {
    json!({ "arguments": arguments, "user_id": "default", "version": "latest" }).to_string()
}

fn small() -> Value {
    json!({ "text": "the quick brown fox jumps" })
}

/// Returns about 64 KiB of JSON in the shape of a list of records.
fn large() -> Value {
    let record = |number: usize| json!({ "id": number, "name": format!("record {number}"), "done": number.is_multiple_of(2), "tags": ["one", "two"] });
    json!({ "text": "large", "records": (0..1_040).map(record).collect::<Vec<_>>() })
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

    /// Measures both sides alternately and returns the best round of each.
    async fn beside(
        &self,
        bare: &Target,
        ours: &Target,
        connections: usize,
    ) -> Result<(Round, Round)> {
        let mut best_bare = None;
        let mut best_ours = None;
        for _ in 0..self.options.rounds {
            best_bare = better(best_bare, bare.round(connections, ROUND_DURATION).await?);
            best_ours = better(best_ours, ours.round(connections, ROUND_DURATION).await?);
        }
        Ok((
            best_bare.context("no round")?,
            best_ours.context("no round")?,
        ))
    }

    async fn small_calls(&mut self) -> Result<()> {
        let host = serving_echo(setup()).await?;
        let bare = self.bare(&call(&small()))?;
        let ours = echo(&host, &small())?;
        ours.times(8, 5_000).await?;
        for connections in CONNECTION_COUNTS {
            let (a, b) = self.beside(&bare, &ours, connections).await?;
            self.tell(Line::new("a", "bare axum, parse and echo", connections, &a));
            // With one connection the network wait dominates, so the goal applies to the added time
            // instead.
            let goal = if connections == 1 { 0.0 } else { 0.45 };
            let ratio = Verdict::at_least("b/a", b.per_second / a.per_second, goal);
            self.tell(
                Line::new("b", "execute: key, schema, sandbox, log", connections, &b).with(ratio),
            );
            let cpu = b.cpu.as_nanos() as f64 / 1000.0;
            self.tell(Line::verdict(
                "b",
                format!("processor time, {connections} connections"),
                Verdict::at_most("µs", cpu, 60.0),
            ));
            if connections == 1 {
                let added = b.p50.saturating_sub(a.p50).as_nanos() as f64 / 1000.0;
                self.tell(Line::verdict(
                    "b",
                    "added to the median",
                    Verdict::at_most("µs", added, 80.0),
                ));
            }
        }
        Ok(())
    }

    /// Measures the cost of many toolkits, then of many log records, for a call, a start and
    /// memory.
    async fn full_house(&mut self) -> Result<()> {
        let mut host = serving_echo(setup()).await?;
        let mut published = 1;
        let alone = self
            .beside(&self.bare(&call(&small()))?, &echo(&host, &small())?, 8)
            .await?;
        let most = self.options.toolkits;
        let logs = self.options.logs;
        let mut steps = vec![1, 100, most];
        steps.dedup();
        for count in steps {
            let begun = Instant::now();
            publish(&host, published..count).await?;
            if count > published {
                let each = begun.elapsed() / u32::try_from(count - published)?;
                let what = format!("publishing, each of {}", count - published);
                self.tell(Line::verdict(
                    "d",
                    what,
                    Verdict::at_most("ms", each.as_secs_f64() * 1e3, 120.0),
                ));
            }
            published = published.max(count);
            host = self.start_again(host, count).await?;
        }
        if self.wants("c") {
            self.crowded(&host, &alone, &format!("{most} toolkits"))
                .await?;
            echo(&host, &small())?.times(32, logs).await?;
            self.crowded(
                &host,
                &alone,
                &format!("{most} toolkits, {logs} log records"),
            )
            .await?;
        }
        Ok(())
    }

    /// Measures the same calls with the records in the data directory and in PostgreSQL.
    async fn both_stores(&mut self) -> Result<()> {
        let embedded = serving_echo(setup()).await?;
        let scaled = serving_echo(setup().on(Postgres::shared().database(None))).await?;
        let sled = echo(&embedded, &small())?;
        let postgres = echo(&scaled, &small())?;
        sled.times(8, 5_000).await?;
        postgres.times(8, 5_000).await?;
        for connections in CONNECTION_COUNTS {
            let (a, g) = self.beside(&sled, &postgres, connections).await?;
            self.tell(Line::new("g", "execute, embedded store", connections, &a));
            let ratio = Verdict::at_least("of it", g.per_second / a.per_second, 0.8);
            self.tell(Line::new("g", "execute, PostgreSQL", connections, &g).with(ratio));
        }
        Ok(())
    }

    async fn start_again(&mut self, host: Host, count: usize) -> Result<Host> {
        let (setup, _) = host.terminate().await;
        let begun = Instant::now();
        let host = setup.start().await;
        host.as_project().execute("ECHO_SAY", small()).await.data();
        let took = begun.elapsed().as_secs_f64();
        let resident = host.footprint().resident_kib as f64 / 1024.0;
        let what = |text: &str| format!("{text}, {count} toolkits");
        self.tell(Line::verdict(
            "d",
            what("start to first answer"),
            Verdict::at_most("s", took, 1.0),
        ));
        self.tell(Line::verdict(
            "d",
            what("resident memory"),
            Verdict::at_most("MB", resident, 150.0),
        ));
        Ok(host)
    }

    async fn crowded(&mut self, host: &Host, alone: &(Round, Round), what: &str) -> Result<()> {
        let (bare, ours) = self
            .beside(&self.bare(&call(&small()))?, &echo(host, &small())?, 8)
            .await?;
        // The comparison uses the bare handler at the same time, because the speed of the machine
        // varies.
        let now = ours.per_second / bare.per_second;
        let before = alone.1.per_second / alone.0.per_second;
        self.tell(Line::new("c", what, 8, &ours).with(Verdict::at_least(
            "of b",
            now / before,
            0.95,
        )));
        Ok(())
    }

    async fn large_calls(&mut self) -> Result<()> {
        let host = serving_echo(setup()).await?;
        let bare = self.bare(&call(&large()))?;
        let ours = echo(&host, &large())?;
        ours.times(8, 200).await?;
        let (a, e) = self.beside(&bare, &ours, 8).await?;
        let size = call(&large()).len() >> 10;
        self.tell(Line::new("e", format!("bare axum, {size} KiB"), 8, &a));
        let ratio = Verdict::at_least("e/bare", e.per_second / a.per_second, 0.5);
        self.tell(Line::new("e", format!("execute, {size} KiB"), 8, &e).with(ratio));
        Ok(())
    }

    async fn waiting_calls(&mut self) -> Result<()> {
        let host = setup()
            .with(
                "net.rewrite",
                format!("https://api.example.com={}", self.bare.url),
            )
            .start()
            .await;
        let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/components/abi-v1.wasm");
        let component = std::fs::read(kept).with_context(|| format!("read {kept}"))?;
        host.as_org()
            .put("/toolkits/abi/versions/20261121_00", component)
            .await
            .expect(201);
        host.as_project()
            .connect(
                "abi",
                "API_KEY",
                "default",
                json!({ "api_key": "k-0123456789" }),
            )
            .await;
        for (milliseconds, goal) in [(20, 300.0), (1_000, 300.0)] {
            let arguments =
                json!({ "url": format!("https://api.example.com/slow/{milliseconds}") });
            let headers = [("x-api-key", host.project_key.as_str())];
            let path = "/api/v3/tools/execute/ABI_FETCH";
            let target = Target::post(&host.url, path, &headers, &call(&arguments), host.pid())?;
            target.times(1, 20.min(2_000 / milliseconds)).await?;
            let before = host.footprint().resident_kib;
            let time = Duration::from_millis(3_000);
            let (round, peak) = futures::join!(target.round(500, time), peak(&host, time));
            let each = peak.saturating_sub(before) as f64 / 500.0;
            let what = format!("500 in flight over {milliseconds} ms");
            self.tell(Line::new("f", what, 500, &round?).with(Verdict::at_most(
                "KiB a call",
                each,
                goal,
            )));
        }
        Ok(())
    }
}

fn better(best: Option<Round>, round: Round) -> Option<Round> {
    let cpu = best
        .as_ref()
        .map_or(round.cpu, |best| best.cpu.min(round.cpu));
    let best = best
        .filter(|best| best.per_second > round.per_second)
        .unwrap_or(round);
    Some(Round { cpu, ..best })
}

fn echo(host: &Host, arguments: &Value) -> Result<Target> {
    let headers = [("x-api-key", host.project_key.as_str())];
    Target::post(
        &host.url,
        "/api/v3/tools/execute/ECHO_SAY",
        &headers,
        &call(arguments),
        host.pid(),
    )
}

/// Publishes toolkits that differ only in their manifest, two at a time. They are small, so that
/// compiling a thousand does not take minutes. A larger toolkit costs more disk space, and more
/// memory only once it is called.
async fn publish(host: &Host, numbers: std::ops::Range<usize>) -> Result<()> {
    use futures::{StreamExt, TryStreamExt, stream};
    let component = Guest::echo().component();
    let org = host.as_org();
    let publishing = numbers.map(|number| {
        let manifest = guest::manifest(&format!("filler_{number}"));
        let bytes = guest::with_manifest(component.clone(), &manifest);
        let org = org.clone();
        let address = guest::address(&manifest);
        async move {
            let answer = org.put(&address, bytes).await;
            anyhow::ensure!(answer.status == 201, "publish {address}: {answer:#?}");
            Ok(())
        }
    });
    stream::iter(publishing)
        .buffer_unordered(2)
        .try_collect()
        .await
}

/// Returns the largest resident memory observed during this time, in KiB.
async fn peak(host: &Host, time: Duration) -> u64 {
    let end = Instant::now() + time;
    let mut most = 0;
    while Instant::now() < end {
        most = most.max(host.footprint().resident_kib);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    most
}
