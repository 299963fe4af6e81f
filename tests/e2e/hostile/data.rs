//! Guests that pass excessive or invalid data to the host.

use harness::{Guest, guest::imports};
use serde_json::json;

use super::{
    ANSWER_ARGUMENTS, Ends, GUEST_TRAP, HOST_CALL_LIMIT, Hostile, OUTPUT_INVALID, OUTPUT_TOO_LARGE,
};

/// Returns guests that pass excessive amounts of data to the host.
pub(super) fn floods() -> Vec<Hostile> {
    let plain = Guest::default();
    let logging = |execute| Guest {
        imports: imports::LOG,
        execute,
        ..Guest::default()
    };
    let endless =
        "(loop $l (call $log (i32.const 1) (i32.const 2048) (i32.const 8)) (br $l)) unreachable";
    let wide = format!(
        "(local.set $i (i32.const 2000))
        (loop $l (call $log (i32.const 1) (i32.const 65536) (i32.const 65536))
            (local.set $i (i32.sub (local.get $i) (i32.const 1))) (br_if $l (local.get $i))) {ANSWER_ARGUMENTS}"
    );
    let one = |level: i64, at: i64, length: i64| {
        format!(
            "(call $log (i32.const {level}) (i32.const {at}) (i32.const {length})) {ANSWER_ARGUMENTS}"
        )
    };
    let (gigabyte, outside, level) = (one(1, 0, 1 << 30), one(1, -16, 64), one(77, 2048, 8));
    let wider = Guest {
        memory: r#"(memory (export "memory") 600)"#,
        ..logging(
            "(call $log (i32.const 1) (i32.const 65536) (i32.const 37748736)) (call $ok (local.get $args) (local.get $args_len))",
        )
    };
    let not_text = Guest {
        items: r#"(data (i32.const 2048) "\ff\fe\00\80\c3\28")"#,
        ..logging(
            "(call $log (i32.const 1) (i32.const 2048) (i32.const 6)) (call $ok (local.get $args) (local.get $args_len))",
        )
    };
    let calls = Guest {
        imports: imports::NOW,
        execute: "(loop $l (drop (call $now)) (br $l)) unreachable",
        ..plain.clone()
    };
    let random = Guest {
        imports: imports::RANDOM,
        execute: "(loop $l (global.set $top (i32.const 65536)) (call $random (i32.const -1) (i32.const 1280)) (br $l)) unreachable",
        ..plain.clone()
    };
    vec![
        Hostile::new("flood_host_calls", &calls, HOST_CALL_LIMIT),
        Hostile::new("flood_log_lines", &logging(endless), HOST_CALL_LIMIT),
        Hostile::new("flood_log_bytes", &logging(&wide), Ends::Well)
            .limited(json!({ "cpu_ms": 20_000, "wall_ms": 30_000 })),
        Hostile::new(
            "flood_random",
            &random,
            Ends::With(&["tool_host_call_limit", "tool_cpu_limit"]),
        ),
        Hostile::new("flood_string", &logging(&gigabyte), GUEST_TRAP),
        Hostile::new("flood_fuel", &wider, HOST_CALL_LIMIT),
        Hostile::new("flood_out_of_bounds", &logging(&outside), GUEST_TRAP),
        Hostile::new("flood_not_text", &not_text, GUEST_TRAP),
        Hostile::new("flood_no_such_level", &logging(&level), GUEST_TRAP),
        Hostile::executing(
            "flood_result_out_of_bounds",
            "(i32.const -8)",
            OUTPUT_INVALID,
        ),
        Hostile::executing("flood_result_unaligned", "(i32.const 1025)", OUTPUT_INVALID),
    ]
}

/// Returns guests whose results no caller should receive.
pub(super) fn output() -> Vec<Hostile> {
    let constant = |name, text: &str, length: usize| {
        let guest = Guest {
            items: &format!(r#"(data (i32.const 2048) "{text}")"#),
            execute: &format!("(call $ok (i32.const 2048) (i32.const {length}))"),
            ..Guest::default()
        };
        Hostile::new(name, &guest, OUTPUT_INVALID)
    };
    let sized = |execute| Guest {
        memory: r#"(memory (export "memory") 400)"#,
        execute,
        ..Guest::default()
    };
    let deep = "(memory.fill (i32.const 65536) (i32.const 91) (i32.const 10000))
        (memory.fill (i32.const 75536) (i32.const 93) (i32.const 10000))
        (call $ok (i32.const 65536) (i32.const 20000))";
    let fill = "(memory.fill (i32.const 65536) (i32.const 49) (i32.const 20000000))";
    let large = format!("{fill} (call $ok (i32.const 65536) (i32.const 16777217))");
    let larger = format!("{fill} (call $ok (i32.const 65536) (i32.const 19922944))");
    let mut schema = Hostile::new("output_schema", &Guest::constant(), OUTPUT_INVALID);
    schema.manifest["tools"][0]["output"] = json!({ "type": "object", "properties": { "answer": { "type": "string" } }, "required": ["answer"] });
    vec![
        Hostile::new("output_large", &sized(&large), OUTPUT_TOO_LARGE),
        Hostile::new(
            "output_larger",
            &sized(&larger),
            Ends::With(&["tool_output_too_large", "tool_host_call_limit"]),
        ),
        Hostile::new("output_deep", &sized(deep), OUTPUT_INVALID),
        constant("output_not_text", r#"{\"a\":\"\ff\"}"#, 9),
        constant("output_nan", r#"{\"a\":NaN}"#, 9),
        constant("output_twice", r#"{\"a\":1}{}"#, 9),
        Hostile::executing(
            "output_nothing",
            "(call $ok (i32.const 0) (i32.const 0))",
            OUTPUT_INVALID,
        ),
        schema,
    ]
}
