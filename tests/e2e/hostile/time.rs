//! Guests that consume time: they spin, wait, or call without end.

use harness::{Guest, guest::imports};
use serde_json::json;

use super::{CPU_LIMIT, ENDLESS_LOOP, Ends, GUEST_TRAP, Hostile, TIME_LIMIT};

/// Returns guests that burn processor time, at every point where guest code runs.
pub(crate) fn spin() -> Vec<Hostile> {
    let plain = Guest::default();
    let guests = [
        ("spin_export", Guest { execute: "(loop $l (br $l)) unreachable", ..plain.clone() }),
        ("spin_start", Guest { items: "(func $spin (loop $l (br $l))) (start $spin)", ..plain.clone() }),
        ("spin_realloc", Guest { realloc: ENDLESS_LOOP, ..plain.clone() }),
        ("spin_post_return", Guest { post_return: ENDLESS_LOOP, ..plain.clone() }),
        (
            "spin_fill",
            Guest {
                memory: r#"(memory (export "memory") 600)"#,
                execute: "(loop $l (memory.fill (i32.const 131072) (i32.const 7) (i32.const 36700160)) (br $l)) unreachable",
                ..plain.clone()
            },
        ),
        (
            "spin_between_host_calls",
            Guest {
                imports: imports::NOW,
                execute: "(loop $outer (drop (call $now)) (local.set $i (i32.const 1000000))
                    (loop $inner (local.set $i (i32.sub (local.get $i) (i32.const 1))) (br_if $inner (local.get $i)))
                    (br $outer)) unreachable",
                ..plain
            },
        ),
    ];
    guests
        .map(|(name, guest)| Hostile::new(name, &guest, CPU_LIMIT))
        .into()
}

/// Returns guests that use no processor time and do not return.
pub(super) fn block() -> Vec<Hostile> {
    let short = json!({ "cpu_ms": 200, "wall_ms": 1000 });
    let sleeper = |sleep| Guest {
        imports: imports::SLEEP,
        execute: sleep,
        ..Guest::default()
    };
    let once = sleeper(
        "(call $sleep (i32.const 600000)) (call $ok (local.get $args) (local.get $args_len))",
    );
    let long = sleeper("(loop $l (call $sleep (i32.const 600000)) (br $l)) unreachable");
    let often = sleeper("(loop $l (call $sleep (i32.const 1)) (br $l)) unreachable");
    // The host's timeout comes just before that of the call. A fast guest reports it, and a slow
    // one is interrupted.
    let timeout = Ends::With(&["timeout", "tool_timeout"]);
    let mut fetch = Hostile::new("block_fetch", &Guest::fetch(), timeout).limited(short.clone());
    fetch.manifest["egress"] = json!([{ "host": "api.example.com" }]);
    fetch.arguments = json!({ "url": "https://api.example.com/hang/forever" });
    vec![
        Hostile::new("block_sleep_once", &once, TIME_LIMIT).limited(short.clone()),
        Hostile::new("block_sleep", &long, TIME_LIMIT).limited(short.clone()),
        Hostile::new("block_sleep_often", &often, TIME_LIMIT).limited(short),
        fetch,
    ]
}

/// Returns guests that exhaust the stack.
pub(super) fn stack() -> Vec<Hostile> {
    let called = |items| Guest {
        items,
        execute: "(drop (call $down (i32.const 0))) (call $ok (local.get $args) (local.get $args_len))",
        ..Guest::default()
    };
    let plain = "(func $down (param i32) (result i32)
        (i32.add (call $down (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))";
    let mutual =
        "(func $down (param i32) (result i32) (i32.add (call $up (local.get 0)) (i32.const 1)))
        (func $up (param i32) (result i32) (i32.add (call $down (local.get 0)) (i32.const 1)))";
    let indirect = "(type $t (func (param i32) (result i32))) (table funcref (elem $down))
        (func $down (type $t)
            (i32.add (call_indirect (type $t) (local.get 0) (i32.const 0)) (i32.const 1)))";
    let in_realloc = Guest {
        realloc: "(drop (call $realloc (local.get $old) (local.get $old_size) (local.get $align) (local.get $size)))",
        ..Guest::default()
    };
    vec![
        Hostile::new("stack_recursion", &called(plain), GUEST_TRAP),
        Hostile::new("stack_mutual", &called(mutual), GUEST_TRAP),
        Hostile::new("stack_indirect", &called(indirect), GUEST_TRAP),
        Hostile::new("stack_realloc", &in_realloc, GUEST_TRAP),
    ]
}
