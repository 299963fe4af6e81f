//! Hand-made guests: a core module in text form becomes a component of the published contract, with
//! a manifest.
//!
//! The tests depend on no crate of the workspace, so this file encodes the custom section
//! independently, from its description. A change that breaks published components breaks these
//! guests.

use std::sync::LazyLock;

use serde_json::{Value, json};
use wasm_encoder::{Alias, ComponentExportKind, ComponentSection, Encode};
use wasmparser::{
    ComponentAlias, ComponentExternalKind, ComponentOuterAliasKind, ComponentTypeRef, FromReader,
    Parser, Payload, SectionLimited,
};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::{Resolve, WorldId};

const CONTRACT_TEXT: &str = include_str!("../../toolkit-sdk/wit/v1/toolkit.wit");
/// The contract, parsed once for all guests without additional WIT.
static PARSED_CONTRACT: LazyLock<(Resolve, WorldId)> =
    LazyLock::new(|| parse_contract(CONTRACT_TEXT));
const MANIFEST_SECTION: &str = "toolhost:manifest";
const ENTRY_INTERFACE: &str = "toolhost:toolkit/entry@1.0.0";

/// A guest in parts, each in WebAssembly text. A part that is not given takes the behavior of a
/// well-behaved guest.
///
/// The text may use `$ok` (pointer, length → a success), `$fail` (kind and message, each as pointer
/// and length → an error), `$top` (address of the first free byte), and bytes 2048 to 8191 for its
/// own data.
#[derive(Debug, Clone)]
pub struct Guest<'a> {
    /// Lines of the form `(import …)`.
    pub imports: &'a str,
    /// Memory, exported as `memory`.
    pub memory: &'a str,
    /// Tables, globals, functions and data.
    pub items: &'a str,
    /// Body of `execute`. It has `$args` and `$args_len` and leaves the address of a result.
    pub execute: &'a str,
    /// Body of `poll`. It has `$config`, `$cursor` and their lengths and leaves the address of a
    /// result.
    pub poll: &'a str,
    /// Body of `receive`. It leaves the address of a result.
    pub receive: &'a str,
    /// Start of the body of `cabi_realloc`, before it allocates.
    pub realloc: &'a str,
    /// Body of the post-return function of `execute`.
    pub post_return: &'a str,
    /// Additional WIT for imports outside the contract: interfaces in separate packages, and world
    /// items.
    pub foreign: Option<(&'a str, &'a str)>,
}

/// Function that parses the number in a string:
/// `(call $number (local.get $args) (local.get $args_len))`.
pub const PARSE_NUMBER: &str = include_str!("number.wat");

/// Number of events of one poll of [`Guest::batch_poll`].
pub const EVENTS_PER_BATCH: u64 = 500;

/// Import lines by name.
pub mod imports {
    pub const LOG: &str =
        r#"(import "toolhost:toolkit/log@1.0.0" "write" (func $log (param i32 i32 i32)))"#;
    pub const NOW: &str =
        r#"(import "toolhost:toolkit/clock@1.0.0" "now" (func $now (result i64)))"#;
    pub const SLEEP: &str =
        r#"(import "toolhost:toolkit/clock@1.0.0" "sleep" (func $sleep (param i32)))"#;
    pub const RANDOM: &str =
        r#"(import "toolhost:toolkit/random@1.0.0" "bytes" (func $random (param i32 i32)))"#;
    pub const SEND: &str = r#"(import "toolhost:toolkit/http@1.0.0" "send" (func $send
        (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))"#;
}

impl Default for Guest<'_> {
    fn default() -> Self {
        Self {
            imports: "",
            memory: r#"(memory (export "memory") 2)"#,
            items: "",
            execute: "(call $ok (local.get $args) (local.get $args_len))",
            poll: "unreachable",
            receive: "unreachable",
            realloc: "",
            post_return: "",
            foreign: None,
        }
    }
}

impl Guest<'_> {
    /// Returns a guest that returns its arguments.
    pub fn echo() -> Self {
        Self::default()
    }

    /// Returns a guest that returns a constant.
    pub fn constant() -> Self {
        Self {
            items: r#"(data (i32.const 2048) "{\"answer\":42}")"#,
            execute: "(call $ok (i32.const 2048) (i32.const 13))",
            ..Self::default()
        }
    }

    /// Returns a guest that fetches the address in its first argument and writes everything it
    /// receives to the log. It returns the body, or fails with the kind and message of the host's
    /// refusal. It acts as an attacker's toolkit, which discloses everything it holds.
    pub fn fetch() -> Self {
        Self {
            imports: concat!(
                r#"(import "toolhost:toolkit/log@1.0.0" "write" (func $log (param i32 i32 i32)))"#,
                r#"(import "toolhost:toolkit/http@1.0.0" "send" (func $send
                    (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))"#
            ),
            items: include_str!("fetch.wat"),
            execute: "(call $fetch (local.get $args) (local.get $args_len))",
            ..Self::default()
        }
    }

    /// Returns a guest whose poll fetches the address in its configuration and reports the response
    /// as one event, whose id is the address. The first poll reports nothing.
    pub fn poll() -> Self {
        Self {
            imports: imports::SEND,
            items: include_str!("poll.wat"),
            poll: "(call $poll (local.get $config) (local.get $config_len) (local.get $cursor_len))",
            ..Self::default()
        }
    }

    /// Returns a guest whose polls after the first report [`EVENTS_PER_BATCH`] events each, until there
    /// were as many polls as the number in its configuration.
    pub fn batch_poll() -> Self {
        Self {
            items: concat!(include_str!("number.wat"), include_str!("batch.wat")),
            poll: "(call $batch (local.get $config) (local.get $config_len) (local.get $cursor) (local.get $cursor_len))",
            ..Self::default()
        }
    }

    /// Returns a guest whose poll reports 1,001 events.
    pub fn crowded_poll() -> Self {
        Self {
            items: r#"(data (i32.const 2048) "x{}")"#,
            poll: "(local.set $i (call $realloc (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 16016)))
                (local.set $j (local.get $i))
                (loop $next
                    (i32.store (local.get $j) (i32.const 2048))
                    (i32.store offset=4 (local.get $j) (i32.const 1))
                    (i32.store offset=8 (local.get $j) (i32.const 2049))
                    (i32.store offset=12 (local.get $j) (i32.const 2))
                    (local.set $j (i32.add (local.get $j) (i32.const 16)))
                    (br_if $next (i32.lt_u (local.get $j) (i32.add (local.get $i) (i32.const 16016)))))
                (i32.store8 (i32.const 1024) (i32.const 0))
                (i32.store (i32.const 1032) (local.get $i))
                (i32.store (i32.const 1036) (i32.const 1001))
                (i32.store (i32.const 1040) (i32.const 2048))
                (i32.store (i32.const 1044) (i32.const 1))
                (i32.store8 (i32.const 1048) (i32.const 0))
                (i32.const 1024)",
            ..Self::default()
        }
    }

    /// Returns a guest whose poll leaves 256 KiB of state.
    pub fn hoarding_poll() -> Self {
        Self {
            imports: r#"(import "toolhost:toolkit/state@1.0.0" "set" (func $set (param i32 i32 i32 i32) (result i32)))"#,
            items: r#"(data (i32.const 2048) "abcd")"#,
            poll: "(loop $next
                    (drop (call $set (i32.add (i32.const 2048) (local.get $i)) (i32.const 1) (i32.const 0) (i32.const 65536)))
                    (local.set $i (i32.add (local.get $i) (i32.const 1)))
                    (br_if $next (i32.lt_u (local.get $i) (i32.const 4))))
                (i32.store8 (i32.const 1024) (i32.const 0))
                (i32.store (i32.const 1032) (i32.const 0))
                (i32.store (i32.const 1036) (i32.const 0))
                (i32.store (i32.const 1040) (i32.const 2048))
                (i32.store (i32.const 1044) (i32.const 1))
                (i32.store8 (i32.const 1048) (i32.const 0))
                (i32.const 1024)",
            ..Self::default()
        }
    }

    /// Returns a guest as [`Guest::poll`] that reports an event at its first poll, too.
    pub fn eager_poll() -> Self {
        Self {
            poll: "(call $poll (local.get $config) (local.get $config_len) (i32.const 1))",
            ..Self::poll()
        }
    }
}

/// Response to a webhook: status 200 and the text `hello_1`. `$events` and `$count` are its events.
const RECEIVED_RESPONSE: &str = "(i32.store8 (i32.const 1024) (i32.const 0))
    (i32.store (i32.const 1032) (local.get $events))
    (i32.store (i32.const 1036) (local.get $count))
    (i32.store16 (i32.const 1040) (i32.const 200))
    (i32.store (i32.const 1044) (i32.const 2064))
    (i32.store (i32.const 1048) (i32.const 10))
    (i32.store (i32.const 1052) (i32.const 2080))
    (i32.store (i32.const 1056) (i32.const 7))
    (i32.const 1024)";

/// Fills `$events` with `$count` equal events.
const FILL_EVENTS: &str =
    "(local.set $events (call $realloc (i32.const 0) (i32.const 0) (i32.const 1)
        (i32.mul (local.get $count) (i32.const 16))))
    (loop $next
        (local.set $at (i32.add (local.get $events) (i32.mul (local.get $i) (i32.const 16))))
        (i32.store (local.get $at) (i32.const 2048))
        (i32.store offset=4 (local.get $at) (i32.const 1))
        (i32.store offset=8 (local.get $at) (i32.const 2049))
        (i32.store offset=12 (local.get $at) (i32.const 2))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br_if $next (i32.lt_u (local.get $i) (local.get $count))))";

impl Guest<'static> {
    /// Returns a guest that reports this many equal events for each webhook, without verifying it,
    /// and answers `hello_1`.
    pub fn receive(events: u32) -> Self {
        let receive =
            format!("(local.set $count (i32.const {events})) {FILL_EVENTS} {RECEIVED_RESPONSE}");
        Self {
            items: r#"(data (i32.const 2048) "x{}") (data (i32.const 2064) "text/plain") (data (i32.const 2080) "hello_1")"#,
            receive: receive.leak(),
            ..Self::default()
        }
    }

    /// Returns a guest that reports one event for each webhook, without verifying it. The body is the
    /// id of the event.
    pub fn receive_ids() -> Self {
        const FILL_ONE_EVENT: &str = "(local.set $count (i32.const 1))
            (local.set $events (call $realloc (i32.const 0) (i32.const 0) (i32.const 4) (i32.const 16)))
            (i32.store (local.get $events) (i32.load offset=40 (local.get $request)))
            (i32.store offset=4 (local.get $events) (i32.load offset=44 (local.get $request)))
            (i32.store offset=8 (local.get $events) (i32.const 2049))
            (i32.store offset=12 (local.get $events) (i32.const 2))";
        Self {
            receive: format!("{FILL_ONE_EVENT} {RECEIVED_RESPONSE}").leak(),
            ..Self::receive(1)
        }
    }

    /// Returns a guest that receives a webhook for three seconds and reports nothing.
    pub fn slow_receive() -> Self {
        let receive = format!("(call $sleep (i32.const 3000)) {RECEIVED_RESPONSE}");
        Self {
            imports: imports::SLEEP,
            receive: receive.leak(),
            ..Self::receive(1)
        }
    }

    /// Returns a guest as [`Guest::fetch`] that fails with `rate_limited` at status 429, and with
    /// `upstream_error` at any other status than 200.
    pub fn strict_fetch() -> Self {
        Self {
            items: concat!(
                include_str!("fetch.wat"),
                r#"(data (i32.const 3072) "rate_limited") (data (i32.const 3104) "upstream_error")"#
            ),
            execute: "(local.set $i (call $fetch (local.get $args) (local.get $args_len)))
                (if (i32.load8_u (i32.const 1280)) (then (return (local.get $i))))
                (if (i32.eq (i32.load16_u (i32.const 1284)) (i32.const 429))
                  (then (return (call $fail (i32.const 3072) (i32.const 12) (i32.const 3072) (i32.const 12)))))
                (if (i32.ne (i32.load16_u (i32.const 1284)) (i32.const 200))
                  (then (return (call $fail (i32.const 3104) (i32.const 14) (i32.const 3104) (i32.const 14)))))
                (local.get $i)",
            ..Self::fetch()
        }
    }

    /// Returns a guest that copies the given file and returns the copy.
    pub fn copy() -> Self {
        Self {
            imports: concat!(
                r#"(import "toolhost:toolkit/blob@1.0.0" "read" (func $read (param i32 i32 i64 i32 i32)))"#,
                r#"(import "toolhost:toolkit/blob@1.0.0" "create" (func $create (param i32 i32 i32 i32 i32)))"#,
                r#"(import "toolhost:toolkit/blob@1.0.0" "append" (func $append (param i32 i32 i32 i32 i32)))"#
            ),
            items: include_str!("copy.wat"),
            execute: "(call $copy (local.get $args) (local.get $args_len))",
            ..Self::default()
        }
    }

    /// Returns a guest that returns `{"a":"x…"}` with the number of bytes given in its arguments.
    pub fn filler() -> Self {
        Self {
            items: concat!(include_str!("number.wat"), r#"(data (i32.const 2048) "{\22a\22:\22")"#),
            execute: "(local.set $i (call $number (local.get $args) (local.get $args_len)))
                (local.set $j (call $realloc (i32.const 0) (i32.const 0) (i32.const 1) (local.get $i)))
                (memory.copy (local.get $j) (i32.const 2048) (i32.const 6))
                (memory.fill (i32.add (local.get $j) (i32.const 6)) (i32.const 120) (i32.sub (local.get $i) (i32.const 8)))
                (i32.store16 (i32.sub (i32.add (local.get $j) (local.get $i)) (i32.const 2)) (i32.const 0x7d22))
                (call $ok (local.get $j) (local.get $i))",
            ..Self::default()
        }
    }
}

impl Guest<'_> {
    /// Compiles the core module.
    ///
    /// # Panics
    /// If the text does not parse.
    pub fn module(&self) -> Vec<u8> {
        let text = include_str!("guest.wat")
            .replace(";;IMPORTS", self.imports)
            .replace(";;MEMORY", self.memory)
            .replace(";;ITEMS", self.items)
            .replace(";;EXECUTE", self.execute)
            .replace(";;POLL", self.poll)
            .replace(";;RECEIVE", self.receive)
            .replace(";;REALLOC", self.realloc)
            .replace(";;POST_RETURN", self.post_return);
        wat::parse_str(&text).unwrap_or_else(|cause| panic!("{cause}\n{text}"))
    }

    /// Builds the component without a manifest.
    ///
    /// # Panics
    /// If the module does not match the contract.
    pub fn component(&self) -> Vec<u8> {
        let foreign = self.foreign.map(|(packages, items)| {
            let contract = CONTRACT_TEXT.replace(
                "    export entry;\n",
                &format!("    {items}\n    export entry;\n"),
            );
            parse_contract(&(contract + packages))
        });
        let (resolve, world) = foreign.as_ref().unwrap_or(&*PARSED_CONTRACT);
        let mut module = self.module();
        embed_component_metadata(&mut module, resolve, *world, StringEncoding::UTF8)
            .expect("metadata can be written");
        let encoder = ComponentEncoder::default()
            .module(&module)
            .expect("the module fits the contract");
        encoder
            .validate(false)
            .encode()
            .expect("the module becomes a component")
    }
}

/// Parses the text of a contract, and finds its world.
fn parse_contract(text: &str) -> (Resolve, WorldId) {
    let mut resolve = Resolve::default();
    let package = resolve
        .push_str("toolkit.wit", text)
        .expect("the contract is valid WIT");
    let world = resolve
        .select_world(&[package], Some("toolkit"))
        .expect("the contract has its world");
    (resolve, world)
}

/// Returns a manifest with one tool, `{SLUG}_RUN`, that accepts and returns any object.
pub fn manifest(slug: &str) -> Value {
    json!({
        "abi": "1.0.0", "sdk": "by hand", "slug": slug, "name": slug, "description": "A toolkit of the tests.",
        "categories": ["tests"], "version": "20260101_00", "auth": [], "egress": [], "triggers": [], "limits": {},
        "tools": [{
            "slug": tool(slug), "name": "Run", "description": "Does what the test needs.",
            "input": { "type": "object" }, "output": { "type": "object" }, "no_auth": false,
        }],
    })
}

/// Returns a manifest whose tool may fetch `api.example.com` and needs an account with a key.
pub fn manifest_with_key(slug: &str, placement: Value) -> Value {
    let mut manifest = manifest(slug);
    manifest["egress"] = json!([{ "host": "api.example.com" }]);
    manifest["auth"] = json!([{
        "mode": "API_KEY", "name": "API key",
        "fields": [{ "name": "api_key", "title": "API key", "secret": true }],
        "request": [placement],
    }]);
    manifest
}

/// Returns a manifest whose tool may fetch `api.example.com` and needs an account connected with
/// this auth scheme.
pub fn manifest_with_scheme(slug: &str, scheme: Value) -> Value {
    let mut manifest = manifest(slug);
    manifest["egress"] = json!([{ "host": "api.example.com" }]);
    manifest["auth"] = json!([scheme]);
    manifest
}

/// Returns the slug of the tool in [`manifest`].
pub fn tool(slug: &str) -> String {
    format!("{}_RUN", slug.to_uppercase())
}

/// Returns the path under which a manifest's toolkit is published.
pub fn address(manifest: &Value) -> String {
    let text = |field: &str| manifest[field].as_str().unwrap_or_default().to_owned();
    format!("/toolkits/{}/versions/{}", text("slug"), text("version"))
}

/// Returns the component with this manifest in place of any other.
pub fn with_manifest(component: Vec<u8>, manifest: &Value) -> Vec<u8> {
    with_section(without_manifest(component), manifest.to_string().as_bytes())
}

/// Returns the component with arbitrary bytes as its manifest.
pub fn with_section(mut component: Vec<u8>, content: &[u8]) -> Vec<u8> {
    let mut section = leb128(MANIFEST_SECTION.len());
    section.extend_from_slice(MANIFEST_SECTION.as_bytes());
    section.extend_from_slice(content);
    append(&mut component, 0, &section);
    component
}

fn without_manifest(component: Vec<u8>) -> Vec<u8> {
    for payload in outermost(&component) {
        if let Payload::CustomSection(custom) = payload
            && custom.name() == MANIFEST_SECTION
        {
            let content = custom.range();
            // An id and a length precede the content.
            let header = 1 + leb128(content.len()).len();
            return [
                &component[..content.start - header],
                &component[content.end..],
            ]
            .concat();
        }
    }
    component
}

/// Returns the sections of the outermost component, without those of nested components.
fn outermost(component: &[u8]) -> Vec<Payload<'_>> {
    let mut depth = 0;
    let mut found = Vec::new();
    for payload in Parser::new(0).parse_all(component).map_while(Result::ok) {
        let nested = matches!(
            payload,
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. }
        );
        let end = matches!(payload, Payload::End(_));
        if depth == 0 {
            found.push(payload);
        }
        depth += i32::from(nested) - i32::from(end);
    }
    found
}

/// Appends a section to a component.
pub fn append(component: &mut Vec<u8>, id: u8, content: &[u8]) {
    component.push(id);
    component.extend_from_slice(&leb128(content.len()));
    component.extend_from_slice(content);
}

/// Adds an unused core module, which is compiled nevertheless.
pub fn with_module(mut component: Vec<u8>, module: &[u8]) -> Vec<u8> {
    append(&mut component, 1, module);
    component
}

/// Adds `count` instances of another core module.
pub fn with_instances(component: Vec<u8>, module: &[u8], count: usize) -> Vec<u8> {
    let index = modules(&component);
    let mut component = with_module(component, module);
    let mut section = leb128(count);
    for _ in 0..count {
        section.push(0x00);
        section.extend_from_slice(&leb128(index));
        section.push(0x00);
    }
    append(&mut component, 2, &section);
    component
}

/// Adds an import of an empty instance.
pub fn with_empty_import(mut component: Vec<u8>, name: &str) -> Vec<u8> {
    let types = component_types(&component);
    append(&mut component, 7, &[0x01, 0x42, 0x00]);
    let mut section = vec![0x01, 0x00];
    section.extend_from_slice(&leb128(name.len()));
    section.extend_from_slice(name.as_bytes());
    section.push(0x05);
    section.extend_from_slice(&leb128(types));
    append(&mut component, 10, &section);
    component
}

/// Builds a component that contains two others: `toolkit`, whose import `name` is satisfied by the
/// exports of `other`.
pub fn beside(toolkit: &[u8], other: &[u8], name: &str) -> Vec<u8> {
    // Both start with the import of the contract's types, as every toolkit does.
    let echo = Guest::echo().component();
    let imports = outermost(&echo)
        .iter()
        .filter_map(Payload::as_section)
        .find(|(id, _)| *id == 10);
    let (_, imports) = imports.expect("a toolkit imports the types of the contract");
    let mut component = echo[..imports.end].to_vec();
    append(&mut component, 4, other);
    append(&mut component, 4, toolkit);
    let mut instances = wasm_encoder::ComponentInstanceSection::new();
    let instance = |name, index| (name, ComponentExportKind::Instance, index);
    instances.instantiate(0, [("", ComponentExportKind::Instance, 0); 0]);
    instances.instantiate(
        1,
        [
            instance("toolhost:toolkit/types@1.0.0", 0),
            instance(name, 1),
        ],
    );
    instances.append_to_component(&mut component);
    let mut aliases = wasm_encoder::ComponentAliasSection::new();
    aliases.alias(Alias::InstanceExport {
        instance: 2,
        kind: ComponentExportKind::Instance,
        name: ENTRY_INTERFACE,
    });
    aliases.append_to_component(&mut component);
    let mut exports = wasm_encoder::ComponentExportSection::new();
    exports.export(ENTRY_INTERFACE, ComponentExportKind::Instance, 3, None);
    exports.append_to_component(&mut component);
    component
}

fn modules(component: &[u8]) -> usize {
    outermost(component)
        .iter()
        .filter(|payload| matches!(payload, Payload::ModuleSection { .. }))
        .count()
}

/// Returns the number of component-level types that the outermost component has defined, imported,
/// aliased or exported.
fn component_types(component: &[u8]) -> usize {
    let count = |payload| match payload {
        Payload::ComponentTypeSection(types) => types.count() as usize,
        Payload::ComponentImportSection(imports) => count_types(imports, |import| {
            matches!(import.ty, ComponentTypeRef::Type(_))
        }),
        Payload::ComponentExportSection(exports) => {
            count_types(exports, |export| export.kind == ComponentExternalKind::Type)
        }
        Payload::ComponentAliasSection(aliases) => count_types(aliases, is_type_alias),
        _ => 0,
    };
    outermost(component).into_iter().map(count).sum()
}

/// Returns the number of items of a section that are types.
fn count_types<'a, T: FromReader<'a>>(
    section: SectionLimited<'a, T>,
    is_type: impl Fn(&T) -> bool,
) -> usize {
    let items = section.into_iter().filter_map(Result::ok);
    items.filter(is_type).count()
}

fn is_type_alias(alias: &wasmparser::ComponentAlias<'_>) -> bool {
    match alias {
        ComponentAlias::InstanceExport { kind, .. } => *kind == ComponentExternalKind::Type,
        ComponentAlias::Outer { kind, .. } => *kind == ComponentOuterAliasKind::Type,
        ComponentAlias::CoreInstanceExport { .. } => false,
    }
}

/// Encodes an unsigned number in LEB128.
fn leb128(value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_made_by_hand_are_valid_components() {
        let empty = wat::parse_str("(module)").unwrap();
        let made = [
            Guest::echo().component(),
            Guest::constant().component(),
            Guest::fetch().component(),
            Guest::copy().component(),
            with_manifest(Guest::fetch().component(), &manifest("x")),
            with_instances(Guest::fetch().component(), &empty, 3),
            with_empty_import(Guest::fetch().component(), "wasi:sockets/tcp@0.2.0"),
        ];
        for component in made {
            wasmparser::validate(&component).unwrap();
        }
    }

    #[test]
    fn new_manifest_replaces_the_previous_one() {
        let once = with_manifest(Guest::echo().component(), &manifest("x"));
        assert_eq!(
            with_manifest(with_manifest(once.clone(), &manifest("y")), &manifest("x")),
            once
        );
    }
}
