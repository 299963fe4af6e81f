//! Guests that are refused at publishing.

use harness::{Guest, guest};
use wasm_encoder::{
    BlockType, CodeSection, Function, FunctionSection, Instruction, Module, TypeSection, ValType,
};

use super::{Ends, Hostile};

/// Returns guests that use features outside the contract.
pub(crate) fn features() -> Vec<Hostile> {
    let with =
        |text: &str| guest::with_module(Guest::echo().component(), &wat::parse_str(text).unwrap());
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
    let caller = Guest {
        imports: r#"(import "evil:parts/other@1.0.0" "name" (func $name (param i32)))"#,
        execute: "(call $name (i32.const 2048)) (call $ok (local.get $args) (local.get $args_len))",
        foreign: Some((
            "\npackage evil:parts@1.0.0 { interface other { name: func() -> string; } }",
            "import evil:parts/other@1.0.0;",
        )),
        ..Guest::default()
    };
    let other = wat::parse_str(
        r#"(component
            (core module $m (memory (export "memory") 1) (func (export "name") (result i32) (i32.const 8)))
            (core instance $i (instantiate $m))
            (func (export "name") (result string) (canon lift (core func $i "name") (memory (core memory $i "memory")))))"#,
    );
    let memories = guest::beside(
        &caller.component(),
        &other.unwrap(),
        "evil:parts/other@1.0.0",
    );
    let importing = |name| guest::with_empty_import(Guest::echo().component(), name);
    let refused = [
        ("feature_memories", memories),
        ("feature_threads", with("(module (memory 1 1 shared))")),
        ("feature_memory64", with("(module (memory i64 1))")),
        ("feature_gc", with("(module (type (struct (field i32))))")),
        ("feature_exceptions", with("(module (tag (param i32)))")),
        (
            "feature_tail_calls",
            with("(module (func $f (return_call $f)))"),
        ),
        ("feature_unknown_import", unknown.component()),
        ("feature_sockets", sockets.component()),
        ("feature_empty_sockets", importing("wasi:sockets/tcp@0.2.0")),
        (
            "feature_empty_future",
            importing("toolhost:toolkit/http@2.0.0"),
        ),
    ];
    refused
        .map(|(name, component)| Hostile::of(name, component, Ends::AtPublish))
        .into()
}

/// Returns guests with an excessive compilation cost.
pub(crate) fn compile_bombs() -> Vec<Hostile> {
    vec![
        bomb("bomb_functions", &module(50_001, 0, &[])),
        bomb(
            "bomb_function",
            &module(1, 0, &vec![Instruction::Nop; 2 << 20]),
        ),
    ]
}

/// Returns guests that stay within every counted limit and still have an excessive compilation
/// cost, of the kind in their names.
pub(crate) fn quiet_bombs() -> Vec<Hostile> {
    use Instruction::{BrIf, Drop, End, I32Const, I32Mul, I32Xor, LocalGet, LocalSet, Loop};
    // Five hundred values are live at the same time and mixed repeatedly, which is far more than
    // the number of registers.
    let begin =
        (1..500).flat_map(|local| [LocalGet(0), I32Const(local), I32Xor, LocalSet(local as u32)]);
    let mixed = (0..150).flat_map(|_| {
        (0..500).flat_map(|local| {
            [
                LocalGet(local),
                LocalGet(local * 7 % 500),
                I32Mul,
                LocalSet(local),
            ]
        })
    });
    let ask = (0..500).flat_map(|local| [LocalGet(local), BrIf(0)]);
    let values: Vec<_> = begin.chain(mixed).chain(ask).collect();
    // Ten thousand loops, each of which carries ten thousand locals.
    let begin = (1..10_000).flat_map(|local| [LocalGet(0), LocalSet(local)]);
    let loops = (0..10_000).flat_map(|_| [Loop(BlockType::Empty), LocalGet(0), BrIf(0), End]);
    let ask = (1..10_000).flat_map(|local| [LocalGet(local), Drop]);
    let handed_on: Vec<_> = begin.chain(loops).chain(ask).collect();
    vec![
        bomb("bomb_time", &module(12, 500, &values)),
        bomb("bomb_memory", &module(1, 10_000, &handed_on)),
    ]
}

fn bomb(name: &'static str, module: &[u8]) -> Hostile {
    Hostile::of(
        name,
        guest::with_module(Guest::echo().component(), module),
        Ends::AtPublish,
    )
}

/// Builds a module of `count` functions, each with this number of locals and this body.
fn module(count: u32, locals: u32, body: &[Instruction<'_>]) -> Vec<u8> {
    let mut types = TypeSection::new();
    let mut functions = FunctionSection::new();
    let mut code = CodeSection::new();
    types.ty().function([ValType::I32], []);
    let mut function = Function::new([(locals, ValType::I32)]);
    for instruction in body.iter().chain([&Instruction::End]) {
        function.instruction(instruction);
    }
    for _ in 0..count {
        functions.function(0);
        code.function(&function);
    }
    let mut module = Module::new();
    module.section(&types).section(&functions).section(&code);
    module.finish()
}
