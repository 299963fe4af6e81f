//! Work of the server for one call of a tool, as the kernel counts it for `perf`. These numbers vary
//! far less than times.

use std::{
    io::{ErrorKind, Write},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use harness::Host;

use crate::{
    Bench,
    bounds::SENDER_ARGUMENT,
    echo,
    load::Target,
    report::{Line, Verdict},
    serving_echo, setup, small,
};

const COUNTED_CONNECTIONS: [usize; 2] = [8, 64];
/// Calls among which the server's background work is hardly noticed.
const COUNTED_CALLS: usize = 40_000;
/// Calls whose allocations are counted. Probes of them make a call many times slower.
const PROBED_CALLS: usize = 4_000;
/// Half of what a call took when allocations were first counted.
const MAX_ALLOCATIONS: f64 = 58.0;
/// Events of a process, and their names in the table.
const PROCESS_EVENTS: [(&str, &str); 3] = [
    ("raw_syscalls:sys_enter", "system calls"),
    ("context-switches", "context switches"),
    ("instructions:u", "instructions"),
];
/// Functions of the server's allocator that allocate. `perf` finds them by their symbols, but only in
/// a program without debug information, as `make bench` builds it.
const ALLOCATING_FUNCTIONS: [&str; 3] = [
    "mi_malloc_aligned",
    "mi_zalloc_aligned",
    "mi_realloc_aligned",
];
/// Group of the events of these functions.
const PROBE_GROUP: &str = "toolhost_bench";

impl Bench {
    /// Counts what one call of a tool takes of the kernel and of the allocator.
    pub(crate) async fn counts(&mut self) -> Result<()> {
        let host = serving_echo(setup()).await?;
        let target = echo(&host, &small())?;
        target.times(8, 5_000).await?;
        for connections in COUNTED_CONNECTIONS {
            let events = PROCESS_EVENTS.map(|(event, _)| event.to_owned());
            match count(&host, &target, connections, COUNTED_CALLS, &events) {
                Ok(counts) => {
                    for ((_, name), count) in PROCESS_EVENTS.into_iter().zip(counts) {
                        self.tell_count(connections, name, count, None);
                    }
                }
                Err(error) => {
                    self.tell_missing("system calls, context switches", &error);
                    break;
                }
            }
        }
        for connections in COUNTED_CONNECTIONS {
            match count_allocations(&host, &target, connections) {
                Ok(count) => {
                    self.tell_count(connections, "allocations", count, Some(MAX_ALLOCATIONS));
                }
                Err(error) => {
                    self.tell_missing("allocations", &error);
                    break;
                }
            }
        }
        Ok(())
    }

    fn tell_count(
        &mut self,
        connections: usize,
        name: &'static str,
        count: Option<f64>,
        goal: Option<f64>,
    ) {
        let line = Line {
            connections: Some(connections),
            ..Line::text("k", "one call")
        };
        self.tell(match count {
            Some(count) => line.with(Verdict::at_most(name, count, goal)),
            None => Line {
                what: format!("{name}: this machine does not count them"),
                ..line
            },
        });
    }

    fn tell_missing(&mut self, names: &str, error: &anyhow::Error) {
        self.tell(Line::text("k", format!("{names} not counted: {error:#}")));
    }
}

/// Probes of the allocator's functions. Dropping them removes them.
struct Probes;

impl Probes {
    fn add(pid: u32) -> Result<Self> {
        let program = std::fs::read_link(format!("/proc/{pid}/exe"))?;
        let probes = Self;
        // Those of a benchmark that was killed would be in the way.
        probes.remove().ok();
        let mut perf = Command::new("perf");
        perf.args(["probe", "--exec"]).arg(program);
        for function in ALLOCATING_FUNCTIONS {
            perf.arg("--add")
                .arg(format!("{}={function}", probe(function)));
        }
        run(perf, &[])?;
        Ok(probes)
    }

    fn remove(&self) -> Result<String> {
        let mut perf = Command::new("perf");
        perf.args(["probe", "--quiet", "--del"]);
        perf.arg(format!("{PROBE_GROUP}:*"));
        run(perf, &[])
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        self.remove().ok();
    }
}

/// Returns the name of the event of a function.
fn probe(function: &str) -> String {
    format!("{PROBE_GROUP}:{function}")
}

fn count_allocations(host: &Host, target: &Target, connections: usize) -> Result<Option<f64>> {
    let _probes = Probes::add(host.pid())?;
    let events = ALLOCATING_FUNCTIONS.map(probe);
    let counts = count(host, target, connections, PROBED_CALLS, &events)?;
    Ok(counts.into_iter().sum())
}

/// Counts events of the server while this program, started a second time, sends calls. Returns the
/// number of each event for one call. Events that this machine does not count are `None`.
fn count(
    host: &Host,
    target: &Target,
    connections: usize,
    calls: usize,
    events: &[String],
) -> Result<Vec<Option<f64>>> {
    let mut perf = Command::new("perf");
    perf.args(["stat", "--field-separator", ";", "--event"])
        .arg(events.join(","))
        .args(["--pid", &host.pid().to_string(), "--"])
        .arg(std::env::current_exe().context("find this program")?)
        .args([SENDER_ARGUMENT, &target.address()])
        .args([connections, calls].map(|number| number.to_string()));
    let table = run(perf, target.request())?;
    events
        .iter()
        .map(|event| {
            let line = table.lines().find(|line| line.contains(event.as_str()));
            let line =
                line.with_context(|| format!("no {event} in the answer of perf: {table}"))?;
            let count: Option<f64> = line.split(';').next().and_then(|count| count.parse().ok());
            Ok(count.map(|count| count / calls as f64))
        })
        .collect()
}

/// Runs a command of `perf` and returns what it printed to standard error.
fn run(mut perf: Command, input: &[u8]) -> Result<String> {
    let started = perf
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut process = started.map_err(|error| match error.kind() {
        ErrorKind::NotFound => anyhow::anyhow!("`perf` is not installed"),
        _ => anyhow::Error::new(error).context("start `perf`"),
    })?;
    let mut pipe = process.stdin.take().context("write to `perf`")?;
    // A command that fails early does not read its input.
    pipe.write_all(input).ok();
    drop(pipe);
    let output = process.wait_with_output()?;
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    let first = printed.lines().find(|line| !line.trim().is_empty());
    ensure!(
        output.status.success(),
        "perf: {}",
        first.unwrap_or("failed")
    );
    Ok(printed)
}
