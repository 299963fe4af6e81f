//! Work of the server for one call of a tool: one that returns its arguments, and one that sends a
//! request to a provider. These numbers vary far less than times.

use anyhow::{Context, Result};
use harness::{Client, CountedHost, Host, host::Setup, valgrind};
use serde_json::{Value, json};

use crate::{
    Bench,
    bare::{Bare, item_number},
    echo,
    load::Target,
    perf, publish_echo,
    report::{Line, Verdict},
    requests::{get_item, publish_tool, settings},
    serving_echo, setup, small,
};

const COUNTED_CONNECTIONS: [usize; 2] = [8, 64];
/// Calls whose allocations are counted. Probes of them make a call many times slower.
const PROBED_CALLS: usize = 4_000;
/// Connections for counts that do not depend on their number.
const FEW_CONNECTIONS: usize = 8;
/// Half of the allocations of a call when they were first counted.
const MAX_ALLOCATIONS: f64 = 58.0;
/// Events of a process, and their names in the table.
const PROCESS_EVENTS: [(&str, &str); 4] = [
    ("raw_syscalls:sys_enter", "system calls"),
    ("context-switches", "context switches"),
    ("page-faults", "page faults"),
    ("instructions:u", "instructions"),
];

/// A kind of call.
struct CountedCall {
    what: String,
    target: Target,
    /// Calls among which the server's background work is hardly noticed.
    count: usize,
    /// Size of the result, in bytes.
    result_bytes: usize,
    max_allocations: Option<f64>,
}

impl CountedCall {
    fn echo(host: &Host) -> Result<Self> {
        Ok(Self {
            what: "one call".to_owned(),
            target: echo(host, &small())?,
            count: 40_000,
            result_bytes: small().to_string().len(),
            max_allocations: Some(MAX_ALLOCATIONS),
        })
    }

    fn request(host: &Host, kib: usize) -> Result<Self> {
        Ok(Self {
            what: format!("one call with a request, {kib} KiB"),
            target: get_item(host, kib, 0)?,
            count: 4_000,
            result_bytes: kib << 10,
            max_allocations: None,
        })
    }

    /// Returns a line with a count, or with the reason why it is missing.
    fn line(&self, connections: usize, name: &'static str, count: Result<Verdict>) -> Line {
        let line = Line {
            connections: Some(connections),
            ..Line::text("counts", self.what.clone())
        };
        match count {
            Ok(count) => line.with(count),
            Err(error) => Line {
                what: format!("{}: {name} not counted: {error:#}", self.what),
                ..line
            },
        }
    }
}

impl Bench {
    /// Counts the work of one call in the kernel, the processor, the allocator and the store.
    pub(crate) async fn counts(&mut self) -> Result<()> {
        let provider = Bare::start()?;
        let host = serving_echo(settings(setup(), &provider)).await?;
        publish_tool(&host).await?;
        for call in [
            CountedCall::echo(&host)?,
            CountedCall::request(&host, 1)?,
            CountedCall::request(&host, 20)?,
        ] {
            call.target.times(FEW_CONNECTIONS, call.count / 8).await?;
            for connections in COUNTED_CONNECTIONS {
                self.count_events(&host, &call, connections);
            }
            self.count_allocations(&host, &call);
            self.count_written_bytes(&host, &call).await?;
        }
        drop(host);
        self.count_instructions(&provider).await
    }

    fn count_events(&mut self, host: &Host, call: &CountedCall, connections: usize) {
        let events = PROCESS_EVENTS.map(|(event, _)| event.to_owned());
        match perf::count(host.pid(), &call.target, connections, call.count, &events) {
            Ok(counts) => {
                for ((_, name), count) in PROCESS_EVENTS.into_iter().zip(counts) {
                    let count = count.context("this machine does not count them");
                    let count = count.map(|count| Verdict::at_most(name, count, None::<f64>));
                    self.tell(call.line(connections, name, count));
                }
            }
            Err(error) => self.tell(call.line(connections, "events", Err(error))),
        }
    }

    fn count_allocations(&mut self, host: &Host, call: &CountedCall) {
        let name = "allocations";
        let counted =
            perf::count_allocations(host.pid(), &call.target, FEW_CONNECTIONS, PROBED_CALLS);
        let count = counted.and_then(|count| count.context("this machine does not count them"));
        let count = count.map(|count| Verdict::at_most(name, count, call.max_allocations));
        self.tell(call.line(FEW_CONNECTIONS, name, count));
    }

    async fn count_written_bytes(&mut self, host: &Host, call: &CountedCall) -> Result<()> {
        let name = "bytes written for each of the result";
        let before = written_bytes(host.pid());
        call.target.times(FEW_CONNECTIONS, call.count).await?;
        let written = before.and_then(|before| Ok(written_bytes(host.pid())? - before));
        let each = written.and_then(|written| {
            let written = Some(written).filter(|written| *written > 0);
            let written = written.context("the data directory is in memory")?;
            let result_bytes = call.count * call.result_bytes;
            let each = written as f64 / result_bytes as f64;
            Ok(Verdict::at_most(name, each, None::<f64>))
        });
        self.tell(call.line(FEW_CONNECTIONS, name, each));
        Ok(())
    }

    /// Counts instructions with valgrind, which needs no counter of the processor. Each call commits
    /// its own record.
    async fn count_instructions(&mut self, provider: &Bare) -> Result<()> {
        if let Some(obstacle) = valgrind::obstacle() {
            let what = format!("instructions not counted by valgrind: {obstacle}");
            self.tell(Line::text("counts", what));
            return Ok(());
        }
        let mut counted = CountedHost::start(settings(Setup::embedded(), provider)).await;
        publish_echo(&counted.host).await?;
        publish_tool(&counted.host).await?;
        for (what, tool, arguments) in [
            ("one call, valgrind", "ECHO_SAY", small()),
            ("a request, 1 KiB, valgrind", "HACKERNEWS_GET_ITEM", item(1)),
            (
                "a request, 20 KiB, valgrind",
                "HACKERNEWS_GET_ITEM",
                item(20),
            ),
        ] {
            let project = counted.host.as_project();
            let count = counted
                .instructions_of(async || execute(&project, tool, &arguments).await)
                .await;
            let count = Verdict::at_most("instructions", count as f64, None::<f64>);
            self.tell(Line::verdict("counts", what, count));
        }
        Ok(())
    }
}

fn item(kib: usize) -> Value {
    json!({ "id": item_number(kib, 0) })
}

/// Executes a tool, which has to succeed.
async fn execute(project: &Client, tool: &str, arguments: &Value) {
    project.execute(tool, arguments.clone()).await.data();
}

/// Returns the bytes that a process has written to files on a disk.
fn written_bytes(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/io");
    let counters = std::fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    let written = counters
        .lines()
        .find_map(|line| line.strip_prefix("write_bytes: "));
    Ok(written.context("no number of written bytes")?.parse()?)
}
