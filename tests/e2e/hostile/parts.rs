//! Guests that use features of components beyond a plain module: resources with destructors, nested
//! components, and the WASI interfaces, which are linked with every access denied.

use harness::{Guest, guest};
use serde_json::json;

use super::{
    ANSWER_ARGUMENTS, CPU_LIMIT, ENDLESS_LOOP, Ends, GUEST_TRAP, HOST_CALL_LIMIT, Hostile,
    TIME_LIMIT,
};

/// Resource defined by the guest: `$new` makes a handle, and `$drop` drops it and so runs the
/// destructor.
const RESOURCE_IMPORTS: &str = r#"
    (import "[export]evil:parts/things@1.0.0" "[resource-new]thing" (func $new (param i32) (result i32)))
    (import "[export]evil:parts/things@1.0.0" "[resource-drop]thing" (func $drop (param i32)))"#;
const THINGS_INTERFACE: (&str, &str) = (
    "\npackage evil:parts@1.0.0 { interface things { resource thing; } }",
    "export evil:parts/things@1.0.0;",
);

/// Function of another component.
const RUN_IMPORT: &str = r#"(import "evil:parts/other@1.0.0" "run" (func $run))"#;
const OTHER_INTERFACE: (&str, &str) = (
    "\npackage evil:parts@1.0.0 { interface other { run: func(); } }",
    "import evil:parts/other@1.0.0;",
);

/// Returns guests that make handles and attack when these are dropped.
pub(super) fn resources() -> Vec<Hostile> {
    let with = |destructor: &str, execute| {
        let destructor = format!(
            r#"(func (export "evil:parts/things@1.0.0#[dtor]thing") (param $rep i32) {destructor})"#
        );
        Guest {
            imports: RESOURCE_IMPORTS,
            items: &destructor,
            execute,
            foreign: Some(THINGS_INTERFACE),
            ..Guest::default()
        }
        .component()
    };
    let once =
        "(call $drop (call $new (i32.const 1))) (call $ok (local.get $args) (local.get $args_len))";
    let hoard = "(loop $l (drop (call $new (i32.const 1))) (br $l)) unreachable";
    let churn = "(loop $l (call $drop (call $new (i32.const 1))) (br $l)) unreachable";
    let forged = "(call $drop (i32.const 4711)) (call $ok (local.get $args) (local.get $args_len))";
    let twice = "(local.set $i (call $new (i32.const 1))) (call $drop (local.get $i)) (call $drop (local.get $i))
        (call $ok (local.get $args) (local.get $args_len))";
    vec![
        Hostile::of("destructor_spin", with(ENDLESS_LOOP, once), CPU_LIMIT),
        Hostile::of("destructor_trap", with("unreachable", once), GUEST_TRAP),
        Hostile::of("destructor_recursion", with("(call $drop (call $new (i32.const 1)))", once), GUEST_TRAP),
        Hostile::of(
            "destructor_calls_execute",
            with(
                "(drop (call $execute (i32.const 0) (i32.const 0) (i32.const 0)
            (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
            (i64.const 0)))",
                once,
            ),
            GUEST_TRAP,
        ),
        Hostile::of("handles_hoarded", with("", hoard), GUEST_TRAP),
        Hostile::of("handles_churned", with("", churn), CPU_LIMIT),
        Hostile::of("handles_forged", with("", forged), GUEST_TRAP),
        Hostile::of("handles_dropped_twice", with("", twice), GUEST_TRAP),
    ]
}

/// Returns guests that attack from a nested component, or call back and forth between two
/// components.
pub(super) fn nested() -> Vec<Hostile> {
    let with = |other: &str| {
        let execute = "(call $run) (call $ok (local.get $args) (local.get $args_len))";
        let caller = Guest {
            imports: RUN_IMPORT,
            execute,
            foreign: Some(OTHER_INTERFACE),
            ..Guest::default()
        };
        let other = wat::parse_str(other).unwrap_or_else(|cause| panic!("{cause}"));
        guest::beside(&caller.component(), &other, "evil:parts/other@1.0.0")
    };
    let plain = |body: &str| {
        with(&format!(
            r#"(component
                (core module $m (memory 1) (func $run (export "run") {body}))
                (core instance $i (instantiate $m))
                (func (export "run") (canon lift (core func $i "run"))))"#
        ))
    };
    // The function passed to the inner component calls that component again through the table.
    let circle = r#"(component
        (core module $door
            (type $f (func)) (table (export "table") 1 funcref)
            (func (export "run") (call_indirect (type $f) (i32.const 0))))
        (core instance $door (instantiate $door))
        (func $run (canon lift (core func $door "run")))
        (component $inner
            (import "back" (func $back))
            (core func $back (canon lower (func $back)))
            (core module $m (import "" "back" (func $back)) (func (export "again") (call $back)))
            (core instance $i (instantiate $m (with "" (instance (export "back" (func $back))))))
            (func (export "again") (canon lift (core func $i "again"))))
        (instance $inner (instantiate $inner (with "back" (func $run))))
        (core func $again (canon lower (func $inner "again")))
        (core module $fill
            (import "" "table" (table 1 funcref)) (import "" "again" (func $again)) (elem (i32.const 0) func $again))
        (core instance (instantiate $fill
            (with "" (instance (export "table" (table $door "table")) (export "again" (func $again))))))
        (export "run" (func $run)))"#;
    vec![
        Hostile::of("nested_well", plain(""), Ends::Well),
        Hostile::of("nested_spin", plain(ENDLESS_LOOP), CPU_LIMIT),
        Hostile::of("nested_recursion", plain("(call $run)"), GUEST_TRAP),
        Hostile::of("nested_circle", with(circle), GUEST_TRAP),
        Hostile::of(
            "nested_memory",
            plain("(loop $l (br_if $l (i32.ne (i32.const -1) (memory.grow (i32.const 16)))))"),
            Ends::Well,
        ),
    ]
}

/// Returns guests that use WASI to access the system.
pub(super) fn wasi() -> Vec<Hostile> {
    let waiting = |imports, execute| {
        Guest {
        imports,
        execute,
        foreign: Some((
            "\npackage wasi:io@0.2.0 { interface poll { resource pollable { ready: func() -> bool; block: func(); } } }
            package wasi:clocks@0.2.0 { interface monotonic-clock {
                use wasi:io/poll@0.2.0.{pollable}; subscribe-duration: func(when: u64) -> pollable; } }",
            "import wasi:io/poll@0.2.0; import wasi:clocks/monotonic-clock@0.2.0;",
        )),
        ..Guest::default()
    }
    };
    let block = waiting(
        r#"(import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration" (func $after (param i64) (result i32)))
            (import "wasi:io/poll@0.2.0" "[method]pollable.block" (func $block (param i32)))"#,
        "(call $block (call $after (i64.const -1))) (call $ok (local.get $args) (local.get $args_len))",
    );
    let ready = waiting(
        r#"(import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration" (func $after (param i64) (result i32)))
            (import "wasi:io/poll@0.2.0" "[method]pollable.ready" (func $ready (param i32) (result i32)))"#,
        "(local.set $i (call $after (i64.const -1))) (loop $l (br_if $l (i32.eqz (call $ready (local.get $i))))) unreachable",
    );
    // Both functions return a list. A nonempty list traps.
    let nothing = format!(
        "(call $list (i32.const 1280)) (if (i32.load (i32.const 1284)) (then unreachable)) {ANSWER_ARGUMENTS}"
    );
    let environment = Guest {
        imports: r#"(import "wasi:cli/environment@0.2.0" "get-environment" (func $list (param i32)))"#,
        execute: &nothing,
        foreign: Some((
            "\npackage wasi:cli@0.2.0 {
                interface environment { get-environment: func() -> list<tuple<string, string>>; } }",
            "import wasi:cli/environment@0.2.0;",
        )),
        ..Guest::default()
    };
    let folders = Guest {
        imports: r#"(import "wasi:filesystem/preopens@0.2.0" "get-directories" (func $list (param i32)))"#,
        execute: &nothing,
        foreign: Some((
            "\npackage wasi:filesystem@0.2.0 { interface types { resource descriptor; } interface preopens {
                use types.{descriptor}; get-directories: func() -> list<tuple<descriptor, string>>; } }",
            "import wasi:filesystem/preopens@0.2.0;",
        )),
        ..Guest::default()
    };
    let short = json!({ "cpu_ms": 200, "wall_ms": 1000 });
    vec![
        Hostile::new("wasi_poll_for_ever", &block, TIME_LIMIT).limited(short),
        Hostile::new("wasi_poll_often", &ready, HOST_CALL_LIMIT),
        Hostile::new("wasi_environment", &environment, Ends::Well),
        Hostile::new("wasi_folders", &folders, Ends::Well),
    ]
}
