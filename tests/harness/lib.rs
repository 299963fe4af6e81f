//! Foundation of the tests: the real binary, a client, a fake provider, and hand-made guests.
//!
//! The harness depends on no crate of the host, so tests assert only externally visible behavior.
//! Tests run in parallel in one process. Each uses a project of its own on the shared server, or
//! starts a server of its own if it must stop it. Functions panic if a part does not work, which
//! fails the test.

pub mod assistants;
pub mod author;
pub mod browser;
pub mod bucket;
pub mod client;
pub mod collector;
pub mod disk;
pub mod event_reader;
pub mod fake_app;
pub mod guarded;
#[path = "../components/guest.rs"]
pub mod guest;
pub mod hook_provider;
pub mod host;
pub mod hunt;
pub mod inbox;
pub mod issuer;
pub mod loopback;
pub mod machine;
pub mod manual;
pub mod mcp_programs;
pub mod metrics;
pub mod names;
pub mod nats;
pub mod pgbouncer;
pub mod postgres;
mod process;
pub mod provider;
pub mod registry;
mod room;
pub mod signed;
pub mod tls;
pub mod tunnel;
pub mod valgrind;
pub mod verifiers;

use std::{path::Path, process::Command, time::Duration};

pub use author::Author;
pub use browser::Browser;
pub use bucket::BucketService;
pub use client::{Answer, Client};
pub use disk::LimitedDisk;
pub use fake_app::FakeApp;
pub use guarded::MutualTlsProvider;
pub use guest::Guest;
pub use hook_provider::HookProvider;
pub use host::Host;
pub use hunt::{Hunt, SECRET_MARK, secret};
pub use inbox::Inbox;
pub use issuer::Issuer;
pub use loopback::free_port;
pub use machine::MachineSettings;
pub use metrics::Metrics;
pub use names::{Names, Sentinel};
pub use nats::Nats;
pub use pgbouncer::PgBouncer;
pub use postgres::{Authorities, Database, Postgres};
pub use process::{Finished, Process, beside, fetched};
pub use provider::IdentityProvider;
pub use registry::Registry;
pub use signed::Provider;
pub use tunnel::Tunnel;
pub use valgrind::CountedHost;

/// Time limit for a condition to become true. It is generous because the machine may be busy; a
/// test whose condition becomes true does not wait for it.
pub const CONDITION_TIMEOUT: Duration = Duration::from_secs(180);

/// Time between two looks at a condition. It grows with each look, because a look often is a request,
/// which takes processor time from what the test waits for.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const MAX_PAUSE: Duration = Duration::from_millis(50);

/// Time limit for a condition that includes a build.
pub const BUILD_TIMEOUT: Duration = Duration::from_secs(600);

/// Polls a condition until it is true.
pub async fn wait_until<F: Future<Output = bool>>(what: &str, condition: impl FnMut() -> F) {
    wait_for(CONDITION_TIMEOUT, what, condition).await;
}

/// Polls a condition until it is true, up to a time limit, which also ends a condition that hangs.
pub async fn wait_for<F: Future<Output = bool>>(
    limit: Duration,
    what: &str,
    mut condition: impl FnMut() -> F,
) {
    let becomes_true = async {
        let mut pause = FIRST_PAUSE;
        while !condition().await {
            tokio::time::sleep(pause).await;
            pause = (pause * 5 / 4).min(MAX_PAUSE);
        }
    };
    let waited = tokio::time::timeout(limit, becomes_true).await;
    assert!(waited.is_ok(), "waited {limit:?} in vain until {what}");
}

/// Runs the author's command until it ends, in a folder and with only these environment variables.
pub fn toolkit(folder: &Path, variables: &[(&str, &str)], arguments: &[&str]) -> Finished {
    let mut command = Command::new(beside("toolkit"));
    command
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .envs(variables.iter().copied());
    Finished::run(command)
}

/// Returns the commands that the help of a program lists under headings.
pub fn listed_commands(help: &str) -> Vec<&str> {
    let lists = help.split("\nOptions:\n").next().unwrap_or_default();
    let entries = lists.lines().filter_map(|line| line.strip_prefix("  "));
    let names = entries.filter_map(|entry| entry.split(' ').next());
    names.filter(|name| !matches!(*name, "" | "help")).collect()
}

/// Returns text that no other test uses: `bytes` random bytes in hex.
pub fn unique(bytes: usize) -> String {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random).expect("the operating system gives random bytes");
    hex::encode(random)
}

/// A small generator for tests that can be repeated from a seed (splitmix64).
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// Creates a generator. The same seed yields the same numbers.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a random seed, which the test prints.
    pub fn seed() -> u64 {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
        u64::from_le_bytes(bytes)
    }

    /// Returns a number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (value ^ (value >> 31)) % bound.max(1)
    }
}
