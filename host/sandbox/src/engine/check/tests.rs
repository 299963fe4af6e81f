//! Problems of components, their limits, and damaged components.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::{
    survey::{MAX_MODULES, MAX_TYPES},
    *,
};
use crate::{
    guest,
    limits::{MAX_CORE_INSTANCES, MAX_MEMORIES},
    toolkit::abi::v1::ENTRY_INTERFACE,
};

static SHARED_ENGINE: LazyLock<wasmtime::Engine> =
    LazyLock::new(|| wasmtime::Engine::new(&crate::engine::config()).unwrap());

fn problems(component: &[u8]) -> Vec<String> {
    match check(component) {
        Err(InstallError::Refused(problems) | InstallError::PastLimit(problems)) => problems,
        other => panic!("{other:?}"),
    }
}

#[test]
fn non_components_give_one_problem() {
    for (bytes, word) in [
        (&b""[..], "empty"),
        (&b"\0asm\x01\0\0\0"[..], "core WebAssembly module"),
        (&b"(component)"[..], "not a WebAssembly component"),
        (&[0; 100_000][..], "not a WebAssembly component"),
        (&b"\0asm\x0d\0\x01\0\x01\xff"[..], "truncated"),
    ] {
        let problems = problems(bytes);
        assert!(
            problems.len() == 1 && problems[0].contains(word),
            "{problems:?}"
        );
    }
}

#[test]
fn all_problems_are_listed_at_once() {
    let component = wat::parse_str(
        r#"(component
            (import "wasi:sockets/tcp@0.2.0" (instance))
            (import "evil\u{202e}" (func))
            (core module (memory 1 1 shared))
            (core module (memory i64 1))
            (core module (memory 65536))
            (core module (table 10000000 funcref)))"#,
    );
    let problems = problems(&component.unwrap()).join("\n");
    for part in [
        "`toolhost:manifest`",
        "wasi:sockets/tcp",
        "evil\\u{202e}",
        "threads",
        "64-bit",
        "65536 pages",
        "10000000 elements",
        ENTRY_INTERFACE,
    ] {
        assert!(problems.contains(part), "{part} is not in {problems}");
    }
}

#[test]
fn counts_past_their_limit_are_refused_quickly() {
    let modules = "(core module)".repeat(MAX_MODULES as usize + 1);
    let instances = format!(
        "(core module $m) {}",
        "(core instance (instantiate $m))".repeat(MAX_CORE_INSTANCES as usize + 1)
    );
    let memories = "(core module (memory 1))".repeat(MAX_MEMORIES as usize + 1);
    let types = "(type string)".repeat(MAX_TYPES as usize + 1);
    for (body, what) in [
        (modules, "modules"),
        (instances, "module instances"),
        (memories, "memories"),
        (types, "types"),
    ] {
        let problems = problems(&wat::parse_str(format!("(component {body})")).unwrap());
        assert!(
            problems
                .iter()
                .any(|problem| problem.contains("more than") && problem.contains(what)),
            "{problems:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_component_is_judged_without_a_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = guest::plain("(data (i32.const 2048) \"x\")", guest::ECHO_CODE).to_vec();
        changes.into_iter().for_each(|(at, byte)| *at.get_mut(&mut bytes) = byte);
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        match check(&bytes) {
            // A component that passes this check can still be refused by the compiler, but must
            // not crash it.
            Ok(_) => drop(SHARED_ENGINE.precompile_component(&bytes)),
            Err(InstallError::Refused(problems) | InstallError::PastLimit(problems)) => {
                prop_assert!(!problems.is_empty() && problems.len() <= MAX_LISTED_PROBLEMS + 1);
            }
            Err(other) => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn any_component_bytes_are_checked_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(check(&[b"\0asm\x0d\0\x01\0", bytes.as_slice()].concat()).is_err());
    }
}
