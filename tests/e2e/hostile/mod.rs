//! Hostile guests, and the required ending of each.

mod data;
mod parts;
mod publish;
mod space;
mod time;

use harness::{Guest, guest};
use serde_json::{Value, json};

pub(crate) use publish::{compile_bombs, features, quiet_bombs};
pub(crate) use time::spin;

/// Ending of a hostile guest.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ends {
    /// Publishing is refused.
    AtPublish,
    /// The call succeeds without harm.
    Well,
    /// The call fails with one of these kinds.
    With(&'static [&'static str]),
    /// Publishing is refused, or the call fails with one of these kinds: the allocators differ in
    /// the time of detection.
    AtPublishOr(&'static [&'static str]),
}

/// A guest with its arguments and limits.
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
        // The wall-clock limit is high, so that a spinning guest on a busy machine still reaches
        // its processor time limit.
        manifest["limits"] = json!({ "cpu_ms": 200, "wall_ms": 30_000 });
        Self {
            name,
            component,
            manifest,
            arguments: json!({}),
            ends,
        }
    }

    /// Returns a guest that only does this when it is called.
    fn executing(name: &'static str, execute: &str, ends: Ends) -> Self {
        let guest = Guest {
            execute,
            ..Guest::default()
        };
        Self::new(name, &guest, ends)
    }

    fn limited(mut self, limits: Value) -> Self {
        self.manifest["limits"] = limits;
        self
    }
}

const CPU_LIMIT: Ends = Ends::With(&["tool_cpu_limit"]);
const TIME_LIMIT: Ends = Ends::With(&["tool_timeout"]);
const GUEST_TRAP: Ends = Ends::With(&["tool_trap"]);
const MEMORY_LIMIT: Ends = Ends::With(&["tool_memory_limit"]);
const HOST_CALL_LIMIT: Ends = Ends::With(&["tool_host_call_limit"]);
const OUTPUT_TOO_LARGE: Ends = Ends::With(&["tool_output_too_large"]);
const OUTPUT_INVALID: Ends = Ends::With(&["tool_output_invalid"]);

const ENDLESS_LOOP: &str = "(loop $l (br $l))";
const ANSWER_ARGUMENTS: &str = "(call $ok (local.get $args) (local.get $args_len))";

/// Returns all hostile guests.
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
fn hostile_guests_are_valid_and_uniquely_named() {
    let guests = all();
    let names: std::collections::BTreeSet<_> = guests.iter().map(|guest| guest.name).collect();
    assert_eq!(names.len(), guests.len());
    let run = guests
        .iter()
        .filter(|guest| !matches!(guest.ends, Ends::AtPublish));
    for guest in run.chain(&quiet_bombs()) {
        wasmparser::validate(&guest.component)
            .unwrap_or_else(|cause| panic!("{}: {cause}", guest.name));
    }
}
