//! Guests that mean harm, and how each must end.

mod data;
mod parts;
mod publish;
mod space;
mod time;

use harness::{Guest, guest};
use serde_json::{Value, json};

pub(crate) use publish::{compile_bombs, features, quiet_bombs};
pub(crate) use time::spin;

/// How a hostile guest ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ends {
    /// It never gets in: publishing is refused.
    AtPublish,
    /// It harms nobody: the call succeeds.
    Well,
    /// The call fails with one of these kinds.
    With(&'static [&'static str]),
    /// It never gets in, or the call fails with one of these kinds: the allocators differ in when they find out.
    AtPublishOr(&'static [&'static str]),
}

/// A guest, what it is called with, and what it may use.
pub(crate) struct Hostile {
    pub(crate) name: &'static str,
    pub(crate) component: Vec<u8>,
    pub(crate) manifest: Value,
    pub(crate) arguments: Value,
    pub(crate) ends: Ends,
}

impl Hostile {
    fn new(name: &'static str, guest: &Guest<'_>, ends: Ends) -> Self {
        Self::of(name, guest.component(), ends)
    }

    fn of(name: &'static str, component: Vec<u8>, ends: Ends) -> Self {
        let mut manifest = guest::manifest(&format!("hostile_{name}"));
        // Much wall-clock time, so that a spinner on a busy machine still meets the limit it is here for.
        manifest["limits"] = json!({ "cpu_ms": 200, "wall_ms": 30_000 });
        Self { name, component, manifest, arguments: json!({}), ends }
    }

    fn limited(mut self, limits: Value) -> Self {
        self.manifest["limits"] = limits;
        self
    }
}

const CPU: Ends = Ends::With(&["tool_cpu_limit"]);
const TIME: Ends = Ends::With(&["tool_timeout"]);
const TRAP: Ends = Ends::With(&["tool_trap"]);
const MEMORY: Ends = Ends::With(&["tool_memory_limit"]);
const HOST_CALLS: Ends = Ends::With(&["tool_host_call_limit"]);
const TOO_LARGE: Ends = Ends::With(&["tool_output_too_large"]);
const INVALID: Ends = Ends::With(&["tool_output_invalid"]);

const FOREVER: &str = "(loop $l (br $l))";
const ANSWER: &str = "(call $ok (local.get $args) (local.get $args_len))";

/// All of them.
pub(crate) fn all() -> Vec<Hostile> {
    let classes = [
        spin(),
        time::block(),
        time::stack(),
        parts::resources(),
        parts::nested(),
        parts::wasi(),
        space::memory(),
        space::explosion(),
        data::floods(),
        data::output(),
        features(),
        compile_bombs(),
    ];
    classes.into_iter().flatten().collect()
}

#[test]
fn guests_that_run_are_valid_components_and_names_are_their_own() {
    let guests = all();
    let names: std::collections::BTreeSet<_> = guests.iter().map(|guest| guest.name).collect();
    assert_eq!(names.len(), guests.len());
    let run = guests.iter().filter(|guest| !matches!(guest.ends, Ends::AtPublish));
    for guest in run.chain(&quiet_bombs()) {
        wasmparser::validate(&guest.component).unwrap_or_else(|cause| panic!("{}: {cause}", guest.name));
    }
}
