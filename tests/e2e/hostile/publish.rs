//! Guests that never get in.

use harness::{
    Guest,
    guest::{self, leb128},
};

use super::{Ends, Hostile};

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
