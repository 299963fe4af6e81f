//! Descriptions come from outside. Whatever they contain, reading ends with an error message or a
//! valid toolkit.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on ends where it stands"
)]

use proptest::prelude::*;
use serde_json::{Value, json};
use toolkit_sdk_import::Overlay;

/// A description that uses every feature.
fn seed() -> Value {
    json!({
        "openapi": "3.0.3", "info": { "title": "Acme", "description": "Items." },
        "servers": [{ "url": "https://{site}.example.com/{base}", "variables": { "site": { "default": "a", "enum": ["a", "b"] }, "base": { "default": "v1" } } }],
        "security": [{ "key": [] }, { "flow": ["read"] }],
        "components": {
            "securitySchemes": {
                "key": { "type": "apiKey", "in": "header", "name": "X-Key" },
                "flow": { "type": "oauth2", "flows": { "authorizationCode": { "authorizationUrl": "https://a.example.com/a", "tokenUrl": "https://a.example.com/t" } } },
            },
            "parameters": { "Limit": { "name": "limit", "in": "query", "schema": { "type": "integer", "maximum": 9, "exclusiveMaximum": true } } },
            "schemas": {
                "Item": { "type": "object", "required": ["name"], "properties": { "name": { "type": "string", "pattern": "^a" }, "next": { "$ref": "#/components/schemas/Item" } } },
                "Both": { "allOf": [{ "$ref": "#/components/schemas/Item" }, { "oneOf": [{ "type": "string" }, { "$ref": "#/components/schemas/Both" }] }] },
            },
        },
        "paths": { "/items/{id}": {
            "parameters": [{ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } }],
            "get": {
                "operationId": "getItem", "tags": ["items"], "parameters": [{ "$ref": "#/components/parameters/Limit" }, { "name": "cursor", "in": "query" }],
                "responses": { "200": { "content": { "application/json": { "schema": { "type": "object", "properties": { "data": { "type": "array", "items": { "$ref": "#/components/schemas/Both" } }, "next_cursor": { "type": "string" } } } } } } },
            },
            "post": {
                "requestBody": { "required": true, "content": {
                    "multipart/form-data": { "schema": { "type": "object", "properties": { "file": { "type": "string", "format": "binary" } } }, "encoding": { "file": { "contentType": "image/png" } } },
                    "application/json": { "schema": { "$ref": "#/components/schemas/Both" } },
                } },
            },
        } },
    })
}

/// A document of version 2 with the same features.
fn older() -> Value {
    json!({
        "swagger": "2.0", "host": "api.example.com", "basePath": "/v1", "schemes": ["https"],
        "securityDefinitions": { "basic": { "type": "basic" } }, "definitions": seed()["components"]["schemas"],
        "paths": { "/items": {
            "get": { "parameters": [{ "name": "ids", "in": "query", "type": "array", "items": { "type": "string" }, "collectionFormat": "pipes" }] },
            "post": { "parameters": [{ "name": "body", "in": "body", "schema": { "type": "object" } }, { "name": "f", "in": "formData", "type": "file" }] },
        } },
    })
}

/// Values that a mistake or an attack may put anywhere.
fn odd() -> impl Strategy<Value = Value> {
    let references = [
        "#/components/schemas/Item",
        "#/components/schemas/Both",
        "#",
        "#/paths",
        "#/components/schemas/Gone",
        "http://a/b",
        "#/a/%zz",
    ];
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        prop::sample::select(references.to_vec())
            .prop_map(|reference| json!({ "$ref": reference })),
        Just(json!([])),
        Just(json!({})),
        Just(json!([[[{}]]])),
        Just(json!("{a}{b}{{}/../?x#y")),
        Just(
            json!({ "allOf": [{ "$ref": "#/components/schemas/Both" }, { "$ref": "#/components/schemas/Both" }] })
        ),
        Just(json!("x".repeat(70_000))),
    ]
}

/// Replaces the value reached after this many steps.
fn change(value: &mut Value, steps: &mut usize, odd: &Value) {
    if *steps == 0 {
        *value = odd.clone();
    }
    *steps = steps.wrapping_sub(1);
    match value {
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| change(value, steps, odd)),
        Value::Object(members) => members
            .values_mut()
            .for_each(|value| change(value, steps, odd)),
        _ => {}
    }
}

fn is_answered(bytes: &[u8]) {
    let Ok(api) = toolkit_sdk_import::openapi(bytes) else {
        return;
    };
    // The stored form can be read again.
    let kept = serde_json::to_vec(&api).unwrap();
    assert_eq!(
        serde_json::from_slice::<toolkit_sdk_import::Api>(&kept).unwrap(),
        api
    );
    if let Ok(made) = toolkit_sdk_import::toolkit(api, "acme", &Overlay::default()) {
        assert_eq!(made.manifest.problems(), Vec::<String>::new());
        assert_eq!(made.manifest.tools.len(), made.calls.len());
        assert!(
            made.manifest
                .tools
                .iter()
                .all(|tool| tool.slug.len() <= 64 && tool.input.to_string().len() <= 64 << 10)
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_description_with_anything_anywhere_is_answered(
        version in any::<bool>(), changes in prop::collection::vec((1usize..150, odd()), 1..4),
    ) {
        let mut document = if version { seed() } else { older() };
        for (mut steps, odd) in changes {
            change(&mut document, &mut steps, &odd);
        }
        is_answered(document.to_string().as_bytes());
    }

    #[test]
    fn damaged_bytes_are_answered(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let mut bytes = seed().to_string().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if cut {
            bytes.truncate(at);
        }
        is_answered(&bytes);
    }

    #[test]
    fn any_text_is_answered(text in "[\\[\\]{}:,&*!|>%@`'\"a-c0-2 \n-]{0,80}") {
        is_answered(text.as_bytes());
    }
}

#[test]
fn the_seeds_themselves_become_toolkits() {
    for (document, tools) in [(seed(), 2), (older(), 2)] {
        let api = toolkit_sdk_import::openapi(document.to_string().as_bytes()).unwrap();
        let made = toolkit_sdk_import::toolkit(api, "acme", &Overlay::default()).unwrap();
        assert_eq!(made.manifest.tools.len(), tools, "{:?}", made.report);
    }
}
