//! The cost of a call in processor instructions, compared with a committed number.
//!
//! Times vary severalfold on a shared machine. The number of instructions that one build of the
//! server executes for the same call varies by a few percent. Valgrind counts them, because virtual
//! machines often have no counter of the processor.

use std::{
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use harness::{Host, host::Setup};
use serde_json::json;

use crate::given;

/// Instructions in user space for one call of a tool that returns its arguments: the server as
/// `cargo build` makes it, on x86-64. After a change intended to cost or save instructions, this
/// prints the new number: `cargo test --workspace --test e2e instructions:: -- --nocapture`
const INSTRUCTIONS_PER_CALL: u64 = 1_030_000;
/// Deviation from it, in percent, that calls for a new number, upwards and downwards.
const TOLERANCE_PERCENT: u64 = 10;
/// Calls before valgrind counts, when it is several times faster: they fill the caches.
const WARM_UP_CALLS: u64 = 200;
/// Calls that valgrind follows before the first round: it translates their code.
const FOLLOWED_CALLS: u64 = 20;
/// Rounds of which the lowest counts: work in the background only adds to a round.
const ROUND_COUNT: u64 = 5;
const CALLS_PER_ROUND: u64 = 100;
const VALGRIND_SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/python/valgrind.py");

/// Returns the reason why this machine or build cannot be compared.
fn obstacle() -> Option<&'static str> {
    let mut valgrind = Command::new("valgrind");
    valgrind.arg("--version").stdout(Stdio::null());
    if !cfg!(all(debug_assertions, target_arch = "x86_64")) {
        Some("the committed number is of another profile or processor")
    } else if !valgrind.status().is_ok_and(|status| status.success()) {
        Some("valgrind is missing: `tests/setup` installs it")
    } else if has_hidden_instructions() {
        Some("valgrind hides instructions of this processor, with which toolkits are compiled")
    } else {
        None
    }
}

/// Returns true if toolkits are compiled with instructions that valgrind does not know. A server
/// under valgrind does not load what its compiler, which runs outside of valgrind, has made.
fn has_hidden_instructions() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx512f") || is_x86_feature_detected!("avxvnni");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Starts a server under valgrind, whose files are in this folder.
async fn counted(folder: &Path) -> Host {
    let folder = folder.display();
    let runner = [
        "python3",
        VALGRIND_SCRIPT,
        "--quiet",
        // Threads are scheduled fairly, so that each one completes its work in its own round.
        "--fair-sched=yes",
        "--tool=callgrind",
        "--instr-atstart=no",
        &format!("--vgdb-prefix={folder}/control"),
        &format!("--callgrind-out-file={folder}/count"),
    ];
    // The store and the log level are those that the number was measured with. A call writes its
    // record before it is answered, and so in its own round.
    Setup::embedded()
        .with("logs.wait", "true")
        .with("log", "warn")
        // Valgrind leaves no address space for more guests.
        .with("sandbox.live", "1")
        .run_by(runner.map(str::to_owned).to_vec())
        .start()
        .await
}

/// Sends a command to the valgrind that runs the server.
fn control(host: &Host, folder: &Path, command: &[&str]) {
    let finished = Command::new("vgdb")
        .arg(format!("--vgdb-prefix={}/control", folder.display()))
        .arg(format!("--pid={}", host.pid()))
        .args(command)
        .output()
        .expect("vgdb is installed with valgrind");
    assert!(finished.status.success(), "{command:?}: {finished:?}");
}

/// Returns the number of instructions since the last call of this function, which is the
/// `number`th.
fn count(host: &Host, folder: &Path, number: u64) -> u64 {
    control(host, folder, &["dump"]);
    let part = std::fs::read_to_string(folder.join(format!("count.{number}"))).unwrap();
    let total = part.lines().find_map(|line| line.strip_prefix("totals: "));
    total.expect("a dump has totals").trim().parse().unwrap()
}

#[tokio::test]
async fn a_call_costs_the_committed_instructions() {
    if let Some(obstacle) = obstacle() {
        // Past the capture of the output, which hides what a passing test prints.
        writeln!(
            std::io::stderr(),
            "instructions of a call: not compared, {obstacle}"
        )
        .unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let host = counted(folder).await;
    let tool = given::echo(&host).await;
    let project = host.as_project();
    let arguments = json!({ "text": "the quick brown fox jumps" });
    let call = async |count: u64| {
        for _ in 0..count {
            let data = project.execute(&tool, arguments.clone()).await.data();
            assert_eq!(data, arguments);
        }
    };
    call(WARM_UP_CALLS).await;
    control(&host, folder, &["instrumentation", "on"]);
    call(FOLLOWED_CALLS).await;
    count(&host, folder, 1);
    let mut lowest = u64::MAX;
    for round in 0..ROUND_COUNT {
        call(CALLS_PER_ROUND).await;
        lowest = lowest.min(count(&host, folder, 2 + round) / CALLS_PER_ROUND);
    }
    eprintln!("instructions of a call: {lowest}");
    assert!(
        lowest.abs_diff(INSTRUCTIONS_PER_CALL) * 100 <= INSTRUCTIONS_PER_CALL * TOLERANCE_PERCENT,
        "a call takes {lowest} instructions, {INSTRUCTIONS_PER_CALL} are committed: find the cause, \
         or commit the new number"
    );
}
