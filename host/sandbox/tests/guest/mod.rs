//! Hand-written guests: a few lines of WebAssembly text become a component of the contract, with a
//! manifest.

use bytes::Bytes;
use manifest::Manifest;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

const CONTRACT_TEXT: &str = include_str!("../../../../toolkit-sdk/wit/v1/toolkit.wit");

/// Body of `execute` that returns its arguments.
pub(crate) const ECHO_CODE: &str = "(call $ok (local.get $args) (local.get $args_len))";

/// Builds a component with these imports and items, whose `execute` has this body.
pub(crate) fn component(imports: &str, items: &str, execute: &str) -> Bytes {
    foreign(["", ""], imports, items, [execute, "unreachable"])
}

/// Builds a component with imports that the contract does not have: WIT packages, and `import …;`
/// lines for the world. `execute` and `receive` have these bodies.
pub(crate) fn foreign(
    [packages, world]: [&str; 2],
    imports: &str,
    items: &str,
    [execute, receive]: [&str; 2],
) -> Bytes {
    let text = include_str!("guest.wat")
        .replace(";;IMPORTS", imports)
        .replace(";;ITEMS", items)
        .replace(";;EXECUTE", execute)
        .replace(";;RECEIVE", receive);
    let mut module = wat::parse_str(&text).unwrap_or_else(|cause| panic!("{cause}\n{text}"));
    let contract = CONTRACT_TEXT.replace(
        "    export entry;\n",
        &format!("    {world}\n    export entry;\n"),
    ) + packages;
    let mut resolve = Resolve::default();
    let package = resolve.push_str("toolkit.wit", &contract).unwrap();
    let world = resolve.select_world(&[package], Some("toolkit")).unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    let component = ComponentEncoder::default()
        .validate(false)
        .module(&module)
        .unwrap()
        .encode()
        .unwrap();
    manifest::embed(component, &manifest()).into()
}

/// Builds a component without imports.
pub(crate) fn plain(items: &str, execute: &str) -> Bytes {
    component("", items, execute)
}

fn manifest() -> Manifest {
    let manifest = serde_json::json!({
        "abi": "1.0.0", "sdk": "by hand", "slug": "hand", "name": "Hand", "description": "Made by hand for a test.",
        "version": "20260101_00", "auth": [], "egress": [{ "host": "api.example.com" }],
        "tools": [{
            "slug": "HAND_RUN", "name": "Run", "description": "Does what the test needs.",
            "input": { "type": "object" }, "output": { "type": "object" }, "no_auth": true,
        }],
    });
    serde_json::from_value(manifest).unwrap()
}
