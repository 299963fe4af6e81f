//! Descriptions come from outside. Every input is read or refused in bounded time and without a
//! panic, and the result is a toolkit that a server accepts.

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use crate::{Api, Overlay, Result, discovery, graphql, mcp, toolkit};

type Reader = fn(&[u8]) -> Result<Api>;

fn samples() -> Vec<(Reader, String)> {
    let documents = [
        (
            discovery as Reader,
            discovery::tests::document().to_string(),
        ),
        (mcp as Reader, mcp::tests::listing().to_string()),
        (graphql as Reader, graphql::tests::SCHEMA_TEXT.to_owned()),
        (graphql as Reader, introspection().to_string()),
    ];
    documents.into()
}

fn introspection() -> Value {
    let list = json!({ "kind": "LIST", "name": null, "ofType": named("OBJECT", "Book") });
    json!({ "__schema": { "queryType": { "name": "Query" }, "mutationType": { "name": "Query" }, "types": [
        { "kind": "OBJECT", "name": "Query", "fields": [field("books", list), field("found", named("UNION", "Found"))] },
        { "kind": "OBJECT", "name": "Book", "fields": [field("id", named("SCALAR", "ID")), field("next", named("INTERFACE", "Node"))] },
        { "kind": "INTERFACE", "name": "Node", "fields": [field("id", named("SCALAR", "ID"))], "possibleTypes": [{ "name": "Book" }] },
        { "kind": "UNION", "name": "Found", "possibleTypes": [{ "name": "Book" }, { "name": "Found" }] },
        { "kind": "INPUT_OBJECT", "name": "In", "inputFields": [{ "name": "in", "type": named("INPUT_OBJECT", "In") }] },
    ] } })
}

fn named(kind: &str, name: &str) -> Value {
    json!({ "kind": kind, "name": name, "ofType": null })
}

fn field(name: &str, ty: Value) -> Value {
    json!({ "name": name, "args": [{ "name": "a", "type": ty, "defaultValue": "1" }], "type": ty })
}

/// Reads arbitrary bytes. A readable input must become a toolkit without problems, or must be
/// refused.
fn survive(reader: Reader, bytes: &[u8]) {
    let Ok(api) = reader(bytes) else { return };
    let overlay = Overlay {
        server: Some("https://api.example.com/x".to_owned()),
        ..Overlay::default()
    };
    if let Ok(made) = toolkit(api, "acme", &overlay) {
        assert_eq!(made.manifest.problems(), Vec::<String>::new());
        assert_eq!(made.manifest.tools.len(), made.calls.len());
    }
}

/// Collects the JSON pointers of all values in a document.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| {
                let name = name.replace('~', "~0").replace('/', "~1");
                places(value, &format!("{at}/{name}"), found);
            });
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(n, item)| places(item, &format!("{at}/{n}"), found)),
        _ => {}
    }
}

fn odd() -> impl Strategy<Value = Value> {
    let values = [
        json!(null),
        json!(-1),
        json!(1e300),
        json!([]),
        json!({}),
        json!(""),
        json!("\u{0}\u{202e}{}/../~$#\n"),
        json!("x".repeat(100_000)),
        json!({ "$ref": "#" }),
        json!({ "$ref": "Book" }),
        json!([[[[]]]]),
        json!(true),
    ];
    proptest::sample::select(values.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_bytes_never_panic(
        edits in prop::collection::vec((any::<Index>(), any::<Index>(), any::<Index>(), any::<Option<u8>>()), 1..6)
    ) {
        for (reader, text) in samples() {
            let mut bytes = text.into_bytes();
            for (from, length, to, byte) in &edits {
                let from = from.index(bytes.len());
                let end = (from + length.index(40)).min(bytes.len());
                let part = bytes[from..end].to_vec();
                let to = to.index(bytes.len());
                match byte {
                    Some(byte) => bytes[to] = *byte,
                    None if to % 2 == 0 => drop(bytes.splice(to..to, part)),
                    None => drop(bytes.drain(from..end)),
                }
                if bytes.is_empty() {
                    bytes.push(b'{');
                }
            }
            survive(reader, &bytes);
        }
    }

    #[test]
    fn values_in_places_of_others_do_no_harm(
        edits in prop::collection::vec((any::<Index>(), any::<Index>(), prop::option::of(odd())), 1..5)
    ) {
        for (reader, text) in samples() {
            let Ok(mut document) = serde_json::from_str::<Value>(&text) else { continue };
            for (from, to, odd) in &edits {
                let mut all = Vec::new();
                places(&document, "", &mut all);
                let value = document.pointer(&all[from.index(all.len())]).cloned().unwrap_or_default();
                let value = odd.clone().unwrap_or(value);
                // Nested insertions would double the document each time.
                if value.to_string().len() > 200_000 {
                    continue;
                }
                if let Some(place) = document.pointer_mut(&all[to.index(all.len())]) {
                    *place = value;
                }
            }
            survive(reader, document.to_string().as_bytes());
        }
    }
}

#[test]
fn nesting_without_end_is_refused() {
    let deep = |open: &str, inner: &str, close: &str| {
        open.repeat(200_000) + inner + &close.repeat(200_000)
    };
    for text in [
        deep("[", "", "]"),
        deep("{\"a\":", "1", "}"),
        "[".repeat(1_000_000),
    ] {
        for reader in [discovery as Reader, graphql, mcp] {
            assert!(reader(text.as_bytes()).is_err());
        }
    }
    for text in [
        format!("type Query {{ a: {} }}", deep("[", "Int", "]")),
        format!("type Query {{ a(b: In = {}): Int }}", deep("{a:", "1", "}")),
        format!("type Query {}", "{ a: Int @a(b: ".repeat(100_000)),
    ] {
        assert!(graphql(text.as_bytes()).is_err());
    }
}

#[test]
fn recursive_types_stay_bounded() {
    let fields: String = (0..300).map(|n| format!("f{n}: T{n} v{n}: Int ")).collect();
    let types: String = (0..300)
        .map(|n| format!("type T{n} {{ {fields} }} "))
        .collect();
    let api = graphql(format!("type Query {{ {fields} }} {types}").as_bytes()).unwrap();
    assert_eq!(api.operations.len(), 600);
    let longest = api
        .operations
        .iter()
        .filter_map(|operation| serde_json::to_string(&operation.body).ok())
        .map(|it| it.len())
        .max();
    assert!(longest < Some(5_000), "{longest:?}");
}
