//! Conversion of schemas.

use serde_json::json;

use super::*;

fn shared(schemas: Value) -> Shared {
    serde_json::from_value(schemas).unwrap()
}

fn closed(schema: Value, schemas: Value) -> Value {
    inline(&schema, &shared(schemas), Direction::In, 24_000).schema
}

#[test]
fn a_reference_becomes_what_it_leads_to() {
    let schemas = json!({ "Name": { "type": "string", "description": "A name." }, "Alias": { "$ref": "#/$defs/Name" } });
    let schema = json!({ "properties": { "a": { "$ref": "#/$defs/Alias" }, "b": { "$ref": "#/$defs/None" } } });
    let expected = json!({ "type": "object", "properties": { "a": { "type": "string", "description": "A name." }, "b": {} } });
    assert_eq!(closed(schema, schemas.clone()), expected);
    let beside = json!({ "$ref": "#/$defs/Name", "description": "Of the owner." });
    assert_eq!(
        closed(beside, schemas),
        json!({ "type": "string", "description": "Of the owner." })
    );
}

#[test]
fn a_circle_is_cut_where_it_closes() {
    let schemas = json!({
        "Node": { "type": "object", "properties": { "next": { "$ref": "#/$defs/Node" }, "n": { "type": "integer" } } },
        "Self": { "$ref": "#/$defs/Self" },
    });
    let node = inline(
        &json!({ "$ref": "#/$defs/Node" }),
        &shared(schemas.clone()),
        Direction::In,
        24_000,
    );
    let expected = json!({ "type": "object", "properties": { "next": { "type": "object" }, "n": { "type": "integer" } } });
    assert_eq!((node.schema, node.cut), (expected, true));
    assert_eq!(
        closed(json!({ "$ref": "#/$defs/Self" }), schemas),
        json!({})
    );
}

#[test]
fn exponential_schema_stays_within_limit() {
    // Each schema refers twice to the next: inlining all of them would give 2^40 members.
    let schemas: Shared = (0..40)
        .map(|n| {
            let next = json!({ "$ref": format!("#/$defs/S{}", n + 1) });
            (
                format!("S{n}"),
                json!({ "type": "object", "properties": { "a": next, "b": next } }),
            )
        })
        .collect();
    let closed = inline(
        &json!({ "$ref": "#/$defs/S0" }),
        &schemas,
        Direction::In,
        2_000,
    );
    assert!(closed.cut && closed.schema.to_string().len() <= 2_000);
    assert_eq!(
        closed.schema["properties"]["a"]["properties"]["b"]["type"],
        "object"
    );
}

#[test]
fn parts_are_joined_and_alternatives_loosened() {
    let schemas = json!({ "Base": { "type": "object", "properties": { "id": { "type": "integer" } }, "required": ["id"] } });
    let whole = json!({
        "description": "All.",
        "allOf": [{ "$ref": "#/$defs/Base" }, { "properties": { "x": { "oneOf": [{ "type": "string" }, { "type": "null" }] } }, "required": ["x", "id"] }],
    });
    let expected = json!({
        "type": "object", "description": "All.", "required": ["id", "x"],
        "properties": { "id": { "type": "integer" }, "x": { "anyOf": [{ "type": "string" }, { "type": "null" }] } },
    });
    assert_eq!(closed(whole, schemas), expected);
    assert_eq!(
        closed(
            json!({ "oneOf": [{ "type": "string" }, { "type": "string" }] }),
            json!({})
        ),
        json!({ "type": "string" })
    );
}

#[test]
fn what_a_manifest_refuses_does_not_stay() {
    let schema = json!({
        "type": "object", "x-vendor": 1, "$schema": "x", "$id": "y", "discriminator": {}, "example": 1,
        "properties": {
            "pattern": { "type": "string", "pattern": "(?=a)b" },
            "plain": { "type": "string", "pattern": "^a+$", "minLength": 1, "maxLength": -1 },
            "kind": { "type": "strange", "description": "a\u{200b}b" },
            "choice": { "type": "string", "enum": [true, "x", "x"] },
            "number": { "type": "integer", "enum": ["1", 2], "multipleOf": 0 },
            "tuple": { "type": "array", "items": [{ "type": "string" }] },
        },
        "required": ["plain", "plain", 7],
    });
    let expected = json!({
        "type": "object", "required": ["plain"],
        "properties": {
            "pattern": { "type": "string" },
            "plain": { "type": "string", "pattern": "^a+$", "minLength": 1 },
            "kind": { "description": "ab" },
            "choice": { "type": "string", "enum": ["true", "x"] },
            "number": { "type": "integer", "enum": [1, 2] },
            "tuple": { "type": "array", "items": {} },
        },
    });
    assert_eq!(closed(schema, json!({})), expected);
}

#[test]
fn members_of_the_other_direction_are_left_out() {
    let schema = json!({
        "type": "object", "required": ["id", "secret"],
        "properties": { "id": { "type": "integer", "readOnly": true }, "secret": { "$ref": "#/$defs/Secret" } },
    });
    let shared = shared(json!({ "Secret": { "type": "string", "writeOnly": true } }));
    let names = |direction: Direction| {
        let closed = inline(&schema, &shared, direction, 24_000).schema;
        closed["properties"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(names(Direction::In), ["secret"]);
    assert_eq!(names(Direction::Out), ["id"]);
    assert_eq!(
        inline(&schema, &shared, Direction::In, 24_000).schema["required"],
        json!(["secret"])
    );
}

#[test]
fn oversized_schema_keeps_only_its_type() {
    let long = "word ".repeat(400);
    let members: Map<String, Value> = (0..500)
        .map(|n| {
            (
                format!("member_{n}"),
                json!({ "type": "string", "description": long }),
            )
        })
        .collect();
    let closed = inline(
        &json!({ "properties": members }),
        &Shared::new(),
        Direction::In,
        1_000,
    );
    assert_eq!(
        (closed.schema, closed.cut),
        (json!({ "type": "object" }), true)
    );
}

#[test]
fn lists_have_items_and_required_members_exist() {
    let schema = json!({
        "type": "object", "required": ["a", "b"],
        "properties": { "a": { "type": "array" } },
    });
    let expected = json!({
        "type": "object", "required": ["a", "b"],
        "properties": { "a": { "type": "array", "items": {} }, "b": {} },
    });
    assert_eq!(closed(schema, json!({})), expected);
}
