//! The cost of a call in processor instructions, compared with a committed number.

use std::io::Write;

use harness::{CountedHost, host::Setup, valgrind};
use serde_json::json;

use crate::given;

/// Instructions in user space for one call of a tool that returns its arguments: the server as
/// `cargo build` makes it, on x86-64. After a change intended to cost or save instructions, this
/// prints the new number: `cargo test --workspace --test e2e instructions:: -- --nocapture`
const INSTRUCTIONS_PER_CALL: u64 = 1_000_000;
/// Deviation from it, in percent, that calls for a new number, upwards and downwards.
const TOLERANCE_PERCENT: u64 = 10;

/// Returns the reason why this machine or build cannot be compared.
fn obstacle() -> Option<&'static str> {
    if !cfg!(all(debug_assertions, target_arch = "x86_64")) {
        return Some("the committed number is of another profile or processor");
    }
    valgrind::obstacle()
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
    // The store is the one that the number was measured with.
    let mut counted = CountedHost::start(Setup::embedded()).await;
    let tool = given::echo(&counted.host).await;
    let project = counted.host.as_project();
    let arguments = json!({ "text": "the quick brown fox jumps" });
    let count = counted.instructions_of(async || {
        let data = project.execute(&tool, arguments.clone()).await.data();
        assert_eq!(data, arguments);
    });
    let lowest = count.await;
    eprintln!("instructions of a call: {lowest}");
    assert!(
        lowest.abs_diff(INSTRUCTIONS_PER_CALL) * 100 <= INSTRUCTIONS_PER_CALL * TOLERANCE_PERCENT,
        "a call takes {lowest} instructions, {INSTRUCTIONS_PER_CALL} are committed: find the cause, \
         or commit the new number"
    );
}
