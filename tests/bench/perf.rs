//! Counts of `perf`: events of a process in the kernel and in its allocator. They vary far less than
//! times.

use std::{
    io::{ErrorKind, Write},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};

use crate::{bare::this_program, bounds::SENDER_ARGUMENT, load::Target};

/// Functions of the server's allocator that allocate. `perf` finds them by their symbols, but only in
/// a program without debug information, as `make bench` builds it.
const ALLOCATING_FUNCTIONS: [&str; 3] = [
    "mi_malloc_aligned",
    "mi_zalloc_aligned",
    "mi_realloc_aligned",
];
/// Group of the events of these functions.
const PROBE_GROUP: &str = "toolhost_bench";

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

/// Counts the allocations of a server for one call. Returns `None` if this machine does not count
/// them.
pub(crate) fn count_allocations(
    pid: u32,
    target: &Target,
    connections: usize,
    calls: usize,
) -> Result<Option<f64>> {
    let _probes = Probes::add(pid)?;
    let events = ALLOCATING_FUNCTIONS.map(probe);
    let counts = count(pid, target, connections, calls, &events)?;
    Ok(counts.into_iter().sum())
}

/// Counts events of the server while this program, started a second time, sends calls. Returns the
/// number of each event for one call. Events that this machine does not count are `None`.
pub(crate) fn count(
    pid: u32,
    target: &Target,
    connections: usize,
    calls: usize,
    events: &[String],
) -> Result<Vec<Option<f64>>> {
    let mut perf = Command::new("perf");
    perf.args(["stat", "--field-separator", ";", "--event"])
        .arg(events.join(","))
        .args(["--pid", &pid.to_string(), "--"])
        .arg(this_program(SENDER_ARGUMENT)?.get_program())
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
