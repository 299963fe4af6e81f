//! Guests that consume space: memory, tables, instances and types.

use harness::{Guest, guest};

use super::{ANSWER_ARGUMENTS, Ends, Hostile, MEMORY_LIMIT};

/// Returns guests that consume memory.
pub(super) fn memory() -> Vec<Hostile> {
    let grow = "(block $full (loop $more (br_if $full (i32.eq (i32.const -1) (memory.grow (i32.const 16)))) (br $more)))";
    let grow_only = format!("{grow} {ANSWER_ARGUMENTS}");
    let touch = format!(
        "(block $full (loop $more
            (local.set $i (memory.grow (i32.const 1)))
            (br_if $full (i32.eq (local.get $i) (i32.const -1)))
            (i32.store (i32.shl (local.get $i) (i32.const 16)) (i32.const 1))
            (br $more))) {ANSWER_ARGUMENTS}"
    );
    let fill = format!(
        "{grow} (memory.fill (i32.const 131072) (i32.const 255)
            (i32.sub (i32.shl (memory.size) (i32.const 16)) (i32.const 131072))) {ANSWER_ARGUMENTS}"
    );
    let with = |memory| Guest {
        memory,
        ..Guest::default()
    };
    let for_ever = "(loop $l (drop (memory.grow (i32.const 1))) (br $l)) unreachable";
    vec![
        Hostile::executing("memory_grow", &grow_only, Ends::Well),
        Hostile::executing("memory_grow_touch", &touch, Ends::Well),
        Hostile::executing("memory_fill", &fill, Ends::Well),
        Hostile::new(
            "memory_four_gib",
            &with(r#"(memory (export "memory") 65536)"#),
            Ends::AtPublishOr(&["tool_memory_limit"]),
        ),
        Hostile::new(
            "memory_over_limit",
            &with(r#"(memory (export "memory") 1100)"#),
            MEMORY_LIMIT,
        ),
        Hostile::executing(
            "memory_grow_for_ever",
            for_ever,
            Ends::With(&["tool_memory_limit", "tool_cpu_limit"]),
        ),
        Hostile::new(
            "memory_far_data",
            &Guest {
                memory: r#"(memory (export "memory") 1000)"#,
                items: r#"(data (i32.const 65535000) "far away")"#,
                ..Guest::default()
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

/// Returns guests with excessive numbers of items.
pub(super) fn explosion() -> Vec<Hostile> {
    let good = || Guest::echo().component();
    let small = wat::parse_str("(module (memory 1))").unwrap();
    let types = format!("(module {})", "(type (func))".repeat(100_000));
    let table_grow = "(table $t 1 funcref)
        (func $more (block $full (loop $l
            (br_if $full (i32.eq (i32.const -1) (table.grow $t (ref.null func) (i32.const 1000)))) (br $l))))";
    let mut nested = good();
    for _ in 0..2_000 {
        guest::append(
            &mut nested,
            4,
            &[0x00, 0x61, 0x73, 0x6d, 0x0d, 0x00, 0x01, 0x00],
        );
    }
    vec![
        Hostile::new(
            "explosion_table",
            &Guest {
                items: "(table 10000000 funcref)",
                ..Guest::default()
            },
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
        Hostile::of(
            "explosion_instances",
            guest::with_instances(good(), &small, 100),
            Ends::AtPublish,
        ),
        Hostile::of(
            "explosion_more_instances",
            guest::with_instances(good(), &small, 2_000),
            Ends::AtPublish,
        ),
        Hostile::of(
            "explosion_types",
            guest::with_module(good(), &wat::parse_str(types).unwrap()),
            Ends::AtPublish,
        ),
        Hostile::of("explosion_components", nested, Ends::AtPublish),
    ]
}
