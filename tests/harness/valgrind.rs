//! A server whose processor instructions valgrind counts.
//!
//! Times vary severalfold on a shared machine. The number of instructions that one build of the
//! server executes for the same call varies by a few percent. Valgrind counts them, because virtual
//! machines often have no counter of the processor.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use tempfile::TempDir;

use crate::{Host, host::Setup};

/// Calls before valgrind counts, when it is several times faster: they fill the caches.
const WARM_UP_CALLS: u64 = 200;
/// Calls that valgrind follows before the first round: it translates their code.
const FOLLOWED_CALLS: u64 = 20;
/// Rounds of which the lowest counts: work in the background only adds to a round.
const ROUND_COUNT: u64 = 5;
const CALLS_PER_ROUND: u64 = 100;
const VALGRIND_SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/python/valgrind.py");

/// A server that valgrind runs.
#[derive(Debug)]
pub struct CountedHost {
    pub host: Host,
    /// Files of valgrind.
    folder: TempDir,
    /// Number of counts that valgrind has written.
    count: u64,
}

/// Returns the reason why valgrind cannot count instructions on this machine.
pub fn obstacle() -> Option<&'static str> {
    let mut valgrind = Command::new("valgrind");
    valgrind.arg("--version").stdout(Stdio::null());
    let is_installed = valgrind.status().is_ok_and(|status| status.success());
    (!is_installed).then_some("valgrind is missing: `tests/setup` installs it")
}

impl CountedHost {
    /// Starts a server under valgrind. A call writes its record before it is answered, and so in its
    /// own round.
    pub async fn start(setup: Setup) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let path = folder.path().display();
        let runner = [
            "python3",
            VALGRIND_SCRIPT,
            "--quiet",
            // Threads are scheduled fairly, so that each one completes its work in its own round.
            "--fair-sched=yes",
            "--tool=callgrind",
            "--instr-atstart=no",
            &format!("--vgdb-prefix={path}/control"),
            &format!("--callgrind-out-file={path}/count"),
        ];
        let runner = runner.map(str::to_owned).to_vec();
        let setup = setup
            .with("logs.wait", "true")
            .with("log", "warn")
            // Valgrind leaves no address space for more guests.
            .with("sandbox.live", "1");
        Self {
            host: setup.run_by(runner).start().await,
            folder,
            count: 0,
        }
    }

    /// Returns the number of instructions in user space for one call: the lowest of several rounds.
    pub async fn instructions_of(&mut self, call: impl AsyncFn()) -> u64 {
        repeat(&call, WARM_UP_CALLS).await;
        self.control(&["instrumentation", "on"]);
        repeat(&call, FOLLOWED_CALLS).await;
        self.count();
        let mut lowest = u64::MAX;
        for _ in 0..ROUND_COUNT {
            repeat(&call, CALLS_PER_ROUND).await;
            lowest = lowest.min(self.count() / CALLS_PER_ROUND);
        }
        self.control(&["instrumentation", "off"]);
        lowest
    }

    /// Sends a command to the valgrind that runs the server.
    fn control(&self, command: &[&str]) {
        let prefix = self.folder.path().join("control");
        let finished = Command::new("vgdb")
            .arg(format!("--vgdb-prefix={}", prefix.display()))
            .arg(format!("--pid={}", self.host.pid()))
            .args(command)
            .output()
            .expect("vgdb is installed with valgrind");
        assert!(finished.status.success(), "{command:?}: {finished:?}");
    }

    /// Returns the number of instructions since the last call of this function.
    fn count(&mut self) -> u64 {
        self.control(&["dump"]);
        self.count += 1;
        let path = self.folder.path().join(format!("count.{}", self.count));
        read_total(&path)
    }
}

async fn repeat(call: &impl AsyncFn(), count: u64) {
    for _ in 0..count {
        call().await;
    }
}

/// Reads the number of instructions from a file of callgrind.
fn read_total(path: &Path) -> u64 {
    let part = std::fs::read_to_string(path).expect("valgrind has written the file");
    let total = part.lines().find_map(|line| line.strip_prefix("totals: "));
    let total = total.expect("a dump has totals").trim();
    total.parse().expect("totals are a number")
}
