//! Guests that mean harm, and how each must end.

use harness::{
    Guest,
    guest::{self, imports, leb128},
};
use serde_json::{Value, json};

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
    [spin(), block(), memory(), stack(), explosion(), floods(), output(), features(), compile_bombs()]
        .into_iter()
        .flatten()
        .collect()
}

/// Burn processor time, at every place where guest code runs.
pub(crate) fn spin() -> Vec<Hostile> {
    let plain = Guest::default();
    let guests = [
        ("spin_export", Guest { execute: "(loop $l (br $l)) unreachable", ..plain.clone() }),
        ("spin_start", Guest { items: "(func $spin (loop $l (br $l))) (start $spin)", ..plain.clone() }),
        ("spin_realloc", Guest { realloc: FOREVER, ..plain.clone() }),
        ("spin_post_return", Guest { post_return: FOREVER, ..plain.clone() }),
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
    guests.map(|(name, guest)| Hostile::new(name, &guest, CPU)).into()
}

/// Use no processor time and never come back.
fn block() -> Vec<Hostile> {
    let short = json!({ "cpu_ms": 200, "wall_ms": 1000 });
    let sleeper = |sleep| Guest { imports: imports::SLEEP, execute: sleep, ..Guest::default() };
    let long = sleeper("(loop $l (call $sleep (i32.const 600000)) (br $l)) unreachable");
    let often = sleeper("(loop $l (call $sleep (i32.const 1)) (br $l)) unreachable");
    // The host gives up just before the call does; a quick guest tells, a slow one is cut.
    let timeout = Ends::With(&["timeout", "tool_timeout"]);
    let mut fetch = Hostile::new("block_fetch", &Guest::fetch(), timeout).limited(short.clone());
    fetch.manifest["egress"] = json!([{ "host": "api.example.com" }]);
    fetch.arguments = json!({ "url": "https://api.example.com/hang/forever" });
    vec![
        Hostile::new("block_sleep", &long, TIME).limited(short.clone()),
        Hostile::new("block_sleep_often", &often, TIME).limited(short),
        fetch,
    ]
}

/// Take memory.
fn memory() -> Vec<Hostile> {
    let plain = Guest::default();
    let grow =
        "(block $full (loop $more (br_if $full (i32.eq (i32.const -1) (memory.grow (i32.const 16)))) (br $more)))";
    let grow_only = format!("{grow} {ANSWER}");
    let touch = format!(
        "(block $full (loop $more
            (local.set $i (memory.grow (i32.const 1)))
            (br_if $full (i32.eq (local.get $i) (i32.const -1)))
            (i32.store (i32.shl (local.get $i) (i32.const 16)) (i32.const 1))
            (br $more))) {ANSWER}"
    );
    let fill = format!(
        "{grow} (memory.fill (i32.const 131072) (i32.const 255)
            (i32.sub (i32.shl (memory.size) (i32.const 16)) (i32.const 131072))) {ANSWER}"
    );
    let with = |memory| Guest { memory, ..Guest::default() };
    vec![
        Hostile::new("memory_grow", &Guest { execute: &grow_only, ..plain.clone() }, Ends::Well),
        Hostile::new("memory_grow_touch", &Guest { execute: &touch, ..plain.clone() }, Ends::Well),
        Hostile::new("memory_fill", &Guest { execute: &fill, ..plain.clone() }, Ends::Well),
        Hostile::new(
            "memory_four_gib",
            &with(r#"(memory (export "memory") 65536)"#),
            Ends::AtPublishOr(&["tool_memory_limit"]),
        ),
        Hostile::new("memory_over_limit", &with(r#"(memory (export "memory") 1100)"#), MEMORY),
        Hostile::new(
            "memory_grow_for_ever",
            &Guest { execute: "(loop $l (drop (memory.grow (i32.const 1))) (br $l)) unreachable", ..plain.clone() },
            Ends::With(&["tool_memory_limit", "tool_cpu_limit"]),
        ),
        Hostile::new(
            "memory_far_data",
            &Guest {
                memory: r#"(memory (export "memory") 1000)"#,
                items: r#"(data (i32.const 65535000) "far away")"#,
                ..plain
            },
            Ends::Well,
        ),
        Hostile::of(
            "memory_eight",
            guest::with_module(
                Guest::echo().component(),
                &wat::parse_str(format!("(module {})", "(memory 1)".repeat(8))).unwrap(),
            ),
            Ends::AtPublish,
        ),
    ]
}

/// Use up the stack.
fn stack() -> Vec<Hostile> {
    let called = |items| Guest {
        items,
        execute: "(drop (call $down (i32.const 0))) (call $ok (local.get $args) (local.get $args_len))",
        ..Guest::default()
    };
    let plain = "(func $down (param i32) (result i32)
        (i32.add (call $down (i32.add (local.get 0) (i32.const 1))) (i32.const 1)))";
    let mutual = "(func $down (param i32) (result i32) (i32.add (call $up (local.get 0)) (i32.const 1)))
        (func $up (param i32) (result i32) (i32.add (call $down (local.get 0)) (i32.const 1)))";
    let indirect = "(type $t (func (param i32) (result i32))) (table funcref (elem $down))
        (func $down (type $t)
            (i32.add (call_indirect (type $t) (local.get 0) (i32.const 0)) (i32.const 1)))";
    let in_realloc = Guest {
        realloc: "(drop (call $realloc (local.get $old) (local.get $old_size) (local.get $align) (local.get $size)))",
        ..Guest::default()
    };
    vec![
        Hostile::new("stack_recursion", &called(plain), TRAP),
        Hostile::new("stack_mutual", &called(mutual), TRAP),
        Hostile::new("stack_indirect", &called(indirect), TRAP),
        Hostile::new("stack_realloc", &in_realloc, TRAP),
    ]
}

/// Many of something.
fn explosion() -> Vec<Hostile> {
    let good = || Guest::echo().component();
    let small = wat::parse_str("(module (memory 1))").unwrap();
    let types = format!("(module {})", "(type (func))".repeat(100_000));
    let table_grow = "(table $t 1 funcref)
        (func $more (block $full (loop $l
            (br_if $full (i32.eq (i32.const -1) (table.grow $t (ref.null func) (i32.const 1000)))) (br $l))))";
    let mut nested = good();
    for _ in 0..2_000 {
        guest::append(&mut nested, 4, &[0x00, 0x61, 0x73, 0x6d, 0x0d, 0x00, 0x01, 0x00]);
    }
    vec![
        Hostile::new(
            "explosion_table",
            &Guest { items: "(table 10000000 funcref)", ..Guest::default() },
            Ends::AtPublishOr(&["tool_trap", "tool_memory_limit"]),
        ),
        Hostile::new(
            "explosion_table_grow",
            &Guest {
                items: table_grow,
                execute: "(call $more) (call $ok (local.get $args) (local.get $args_len))",
                ..Guest::default()
            },
            Ends::Well,
        ),
        Hostile::of("explosion_instances", guest::with_instances(good(), &small, 100), Ends::AtPublish),
        Hostile::of("explosion_more_instances", guest::with_instances(good(), &small, 2_000), Ends::AtPublish),
        Hostile::of("explosion_types", guest::with_module(good(), &wat::parse_str(types).unwrap()), Ends::AtPublish),
        Hostile::of("explosion_components", nested, Ends::AtPublish),
    ]
}

/// Much of something, handed to the host.
fn floods() -> Vec<Hostile> {
    let plain = Guest::default();
    let logging = |execute| Guest { imports: imports::LOG, execute, ..Guest::default() };
    let endless = "(loop $l (call $log (i32.const 1) (i32.const 2048) (i32.const 8)) (br $l)) unreachable";
    let wide = format!(
        "(local.set $i (i32.const 2000))
        (loop $l (call $log (i32.const 1) (i32.const 65536) (i32.const 65536))
            (local.set $i (i32.sub (local.get $i) (i32.const 1))) (br_if $l (local.get $i))) {ANSWER}"
    );
    let one = |level: i64, at: i64, length: i64| {
        format!("(call $log (i32.const {level}) (i32.const {at}) (i32.const {length})) {ANSWER}")
    };
    let (gigabyte, outside, level) = (one(1, 0, 1 << 30), one(1, -16, 64), one(77, 2048, 8));
    let sixteen = Guest {
        memory: r#"(memory (export "memory") 400)"#,
        ..logging(
            "(call $log (i32.const 1) (i32.const 65536) (i32.const 16777216)) (call $ok (local.get $args) (local.get $args_len))",
        )
    };
    let not_text = Guest {
        items: r#"(data (i32.const 2048) "\ff\fe\00\80\c3\28")"#,
        ..logging(
            "(call $log (i32.const 1) (i32.const 2048) (i32.const 6)) (call $ok (local.get $args) (local.get $args_len))",
        )
    };
    let calls =
        Guest { imports: imports::NOW, execute: "(loop $l (drop (call $now)) (br $l)) unreachable", ..plain.clone() };
    let random = Guest {
        imports: imports::RANDOM,
        execute: "(loop $l (global.set $top (i32.const 65536)) (call $random (i32.const -1) (i32.const 1280)) (br $l)) unreachable",
        ..plain.clone()
    };
    vec![
        Hostile::new("flood_host_calls", &calls, HOST_CALLS),
        Hostile::new("flood_log_lines", &logging(endless), HOST_CALLS),
        Hostile::new("flood_log_bytes", &logging(&wide), Ends::Well)
            .limited(json!({ "cpu_ms": 20_000, "wall_ms": 30_000 })),
        Hostile::new("flood_random", &random, Ends::With(&["tool_host_call_limit", "tool_cpu_limit"])),
        Hostile::new("flood_string", &logging(&gigabyte), TRAP),
        Hostile::new("flood_fuel", &sixteen, HOST_CALLS),
        Hostile::new("flood_out_of_bounds", &logging(&outside), TRAP),
        Hostile::new("flood_not_text", &not_text, TRAP),
        Hostile::new("flood_no_such_level", &logging(&level), TRAP),
        Hostile::new("flood_result_out_of_bounds", &Guest { execute: "(i32.const -8)", ..plain.clone() }, INVALID),
        Hostile::new("flood_result_unaligned", &Guest { execute: "(i32.const 1025)", ..plain }, INVALID),
    ]
}

/// Answer what no caller should get.
fn output() -> Vec<Hostile> {
    let constant = |items, execute| Guest { items, execute, ..Guest::default() };
    let sized = |execute| Guest { memory: r#"(memory (export "memory") 400)"#, execute, ..Guest::default() };
    let deep = "(memory.fill (i32.const 65536) (i32.const 91) (i32.const 10000))
        (memory.fill (i32.const 75536) (i32.const 93) (i32.const 10000))
        (call $ok (i32.const 65536) (i32.const 20000))";
    let fill = "(memory.fill (i32.const 65536) (i32.const 49) (i32.const 20000000))";
    let five = format!("{fill} (call $ok (i32.const 65536) (i32.const 5242880))");
    let sixteen = format!("{fill} (call $ok (i32.const 65536) (i32.const 16777216))");
    let mut schema = Hostile::new("output_schema", &Guest::constant(), INVALID);
    schema.manifest["tools"][0]["output"] =
        json!({ "type": "object", "properties": { "answer": { "type": "string" } }, "required": ["answer"] });
    vec![
        Hostile::new("output_large", &sized(&five), TOO_LARGE),
        Hostile::new("output_larger", &sized(&sixteen), Ends::With(&["tool_output_too_large", "tool_host_call_limit"])),
        Hostile::new("output_deep", &sized(deep), INVALID),
        Hostile::new(
            "output_not_text",
            &constant(r#"(data (i32.const 2048) "{\"a\":\"\ff\"}")"#, "(call $ok (i32.const 2048) (i32.const 9))"),
            INVALID,
        ),
        Hostile::new(
            "output_nan",
            &constant(r#"(data (i32.const 2048) "{\"a\":NaN}")"#, "(call $ok (i32.const 2048) (i32.const 9))"),
            INVALID,
        ),
        Hostile::new(
            "output_twice",
            &constant(r#"(data (i32.const 2048) "{\"a\":1}{}")"#, "(call $ok (i32.const 2048) (i32.const 9))"),
            INVALID,
        ),
        Hostile::new("output_nothing", &constant("", "(call $ok (i32.const 0) (i32.const 0))"), INVALID),
        schema,
    ]
}

/// Ask for what the contract does not offer.
pub(crate) fn features() -> Vec<Hostile> {
    let with = |text: &str| guest::with_module(Guest::echo().component(), &wat::parse_str(text).unwrap());
    let unknown = Guest {
        imports: r#"(import "evil:api/thing@1.0.0" "run" (func $run))"#,
        execute: "(call $run) (call $ok (local.get $args) (local.get $args_len))",
        foreign: Some((
            "\npackage evil:api@1.0.0 { interface thing { run: func(); } }",
            "import evil:api/thing@1.0.0;",
        )),
        ..Guest::default()
    };
    let sockets = Guest {
        imports: r#"(import "wasi:sockets/network@0.2.0" "reach" (func $run))"#,
        execute: "(call $run) (call $ok (local.get $args) (local.get $args_len))",
        foreign: Some((
            "\npackage wasi:sockets@0.2.0 { interface network { reach: func(); } }",
            "import wasi:sockets/network@0.2.0;",
        )),
        ..Guest::default()
    };
    vec![
        Hostile::of("feature_threads", with("(module (memory 1 1 shared))"), Ends::AtPublish),
        Hostile::of("feature_memory64", with("(module (memory i64 1))"), Ends::AtPublish),
        Hostile::of("feature_gc", with("(module (type (struct (field i32))))"), Ends::AtPublish),
        Hostile::of("feature_exceptions", with("(module (tag (param i32)))"), Ends::AtPublish),
        Hostile::of("feature_tail_calls", with("(module (func $f (return_call $f)))"), Ends::AtPublish),
        Hostile::new("feature_unknown_import", &unknown, Ends::AtPublish),
        Hostile::new("feature_sockets", &sockets, Ends::AtPublish),
        Hostile::of(
            "feature_empty_sockets",
            guest::with_empty_import(Guest::echo().component(), "wasi:sockets/tcp@0.2.0"),
            Ends::AtPublish,
        ),
        Hostile::of(
            "feature_empty_future",
            guest::with_empty_import(Guest::echo().component(), "toolhost:toolkit/http@2.0.0"),
            Ends::AtPublish,
        ),
    ]
}

/// Cost the compiler more than they are worth.
pub(crate) fn compile_bombs() -> Vec<Hostile> {
    let with = |functions, body| guest::with_module(Guest::echo().component(), &functions_of(functions, body));
    vec![
        Hostile::of("bomb_functions", with(50_001, 0), Ends::AtPublish),
        Hostile::of("bomb_function", with(1, 2 << 20), Ends::AtPublish),
    ]
}

/// A module of so many functions, each of so many instructions that do nothing.
fn functions_of(count: usize, body: usize) -> Vec<u8> {
    let mut code = leb128(body + 2);
    code.push(0x00);
    code.extend(std::iter::repeat_n(0x01, body));
    code.push(0x0b);
    let mut module = b"\0asm\x01\0\0\0".to_vec();
    guest::append(&mut module, 1, &[0x01, 0x60, 0x00, 0x00]);
    guest::append(&mut module, 3, &[leb128(count), vec![0x00; count]].concat());
    guest::append(&mut module, 10, &[leb128(count), code.repeat(count)].concat());
    module
}

#[test]
fn guests_that_run_are_valid_components_and_names_are_their_own() {
    let guests = all();
    let names: std::collections::BTreeSet<_> = guests.iter().map(|guest| guest.name).collect();
    assert_eq!(names.len(), guests.len());
    for guest in guests.iter().filter(|guest| !matches!(guest.ends, Ends::AtPublish)) {
        wasmparser::validate(&guest.component).unwrap_or_else(|cause| panic!("{}: {cause}", guest.name));
    }
}
