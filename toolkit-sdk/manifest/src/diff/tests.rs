//! Tests of the differences and of the parties they break.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::AuthScheme;

fn manifest() -> Manifest {
    let input = json!({
        "type": "object",
        "properties": {
            "id": { "type": "integer", "minimum": 1 },
            "kind": { "enum": ["a", "b"] },
            "note": { "type": ["string", "null"] },
        },
        "required": ["id"],
    });
    let output = json!({
        "type": "object", "properties": { "name": { "type": "string" }, "size": { "type": "integer" } }, "required": ["name"],
    });
    serde_json::from_value(json!({
        "abi": "1.0.0", "sdk": "test", "slug": "demo", "name": "Demo", "description": "Shows.", "version": "20261121_00",
        "auth": [{
            "mode": "API_KEY", "name": "Key",
            "fields": [{ "name": "api_key", "title": "Key", "secret": true }, { "name": "site", "title": "Site" }],
            "request": [{ "in": "header", "name": "x-key", "value": "{api_key}" }],
        }],
        "egress": [{ "host": "*.example.com" }],
        "tools": [{
            "slug": "DEMO_GET", "name": "Get", "description": "Gets.", "input": input, "output": output,
            "hints": { "read_only": true }, "scopes": ["read"],
        }],
        "triggers": [{
            "slug": "DEMO_NEW", "name": "New", "description": "Fires.", "kind": "poll",
            "config": { "type": "object" }, "payload": { "type": "object" },
        }],
    }))
    .unwrap()
}

/// Returns the differences that a change of the manifest makes, as text.
fn lines(change: impl FnOnce(&mut Manifest)) -> Vec<String> {
    let old = manifest();
    let mut new = old.clone();
    change(&mut new);
    diff(&old, &new).iter().map(Change::to_string).collect()
}

fn input(change: Value) -> Vec<String> {
    lines(|new| {
        new.tools[0].input["properties"]
            .as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone())
    })
}

#[test]
fn removals_break_callers() {
    assert_eq!(
        lines(|new| new.tools.clear()),
        ["tools.DEMO_GET: is gone (breaks callers)"]
    );
    assert_eq!(
        lines(|new| new.triggers.clear()),
        ["triggers.DEMO_NEW: is gone (breaks callers)"]
    );
    assert_eq!(
        lines(|new| new.tools[0].hints = Hints {
            destructive: true,
            ..Hints::default()
        }),
        [
            "tools.DEMO_GET.hints.read_only: no longer holds (breaks callers)",
            "tools.DEMO_GET.hints.destructive: holds now (breaks callers)"
        ]
    );
    assert_eq!(
        lines(|new| drop(
            new.tools[0].output["properties"]
                .as_object_mut()
                .unwrap()
                .shift_remove("size")
        )),
        ["tools.DEMO_GET.output.size: is gone (breaks callers)"]
    );
    assert_eq!(
        lines(|new| new.tools[0].output["required"] = json!([])),
        ["tools.DEMO_GET.output.name: is no longer required (breaks callers)"]
    );
}

#[test]
fn arguments_may_be_added_but_not_asked_for() {
    assert_eq!(
        input(json!({ "more": { "type": "string" } })),
        ["tools.DEMO_GET.input.more: is new"]
    );
    let required = lines(|new| {
        new.tools[0].input["properties"]["more"] = json!({ "type": "string" });
        new.tools[0].input["required"] = json!(["id", "more"]);
    });
    assert!(
        required
            .contains(&"tools.DEMO_GET.input.more: is newly required (breaks callers)".to_owned()),
        "{required:?}"
    );
    assert_eq!(
        lines(|new| new.tools[0].input["required"] = json!([])),
        ["tools.DEMO_GET.input.id: is no longer required"]
    );
}

#[test]
fn an_argument_may_take_more_but_not_less() {
    for (change, line) in serde_json::from_value::<Vec<(Value, String)>>(json!([
        [
            { "id": { "type": "number", "minimum": 1 } },
            r#".id: `type` is "number" instead of "integer""#,
        ],
        [
            { "id": { "type": "string" } },
            r#".id: `type` is "string" instead of "integer" (breaks callers)"#,
        ],
        [{ "id": { "type": "integer", "minimum": 0 } }, ".id: `minimum` is 0 instead of 1"],
        [
            { "id": { "type": "integer", "minimum": 2 } },
            ".id: `minimum` is 2 instead of 1 (breaks callers)",
        ],
        [
            { "kind": { "enum": ["a", "b", "c"] } },
            r#".kind: `enum` is ["a","b","c"] instead of ["a","b"]"#,
        ],
        [
            { "kind": { "enum": ["a"] } },
            r#".kind: `enum` is ["a"] instead of ["a","b"] (breaks callers)"#,
        ],
        [
            { "note": { "type": "string" } },
            r#".note: `type` is "string" instead of ["string","null"] (breaks callers)"#,
        ],
        [
            { "note": { "anyOf": [{ "type": "string" }, { "type": "null" }] } },
            ": is described differently",
        ],
    ]))
    .unwrap()
    {
        let found = input(change);
        let expected = format!("tools.DEMO_GET.input{line}");
        assert!(found.contains(&expected), "{expected}\nis not in {found:?}");
    }
}

#[test]
fn reconnection_or_wider_reach_breaks_accounts() {
    let field = |json: Value| serde_json::from_value::<crate::Field>(json).unwrap();
    let accounts = "(breaks connected accounts)";
    let both = "(breaks callers and connected accounts)";
    let found = lines(|new| {
        new.auth[0]
            .fields
            .push(field(json!({ "name": "team", "title": "Team" })))
    });
    assert_eq!(
        found,
        [format!(
            "auth.API_KEY.fields.team: is newly required {both}"
        )]
    );
    let found = lines(|new| {
        new.auth[0].fields.push(field(
            json!({ "name": "team", "title": "T", "optional": true }),
        ))
    });
    assert_eq!(
        found,
        ["auth.API_KEY.fields.team: is new and may be left empty"]
    );
    assert_eq!(
        lines(|new| new.tools[0].scopes.push("write".into())),
        [format!("tools.DEMO_GET.scopes: is new: write {accounts}")]
    );
    let reach = |host: &str| serde_json::from_value::<EgressRule>(json!({ "host": host })).unwrap();
    assert_eq!(
        lines(|new| new.egress.push(reach("other.com"))),
        [format!("egress: may reach other.com {accounts}")]
    );
    assert_eq!(
        lines(|new| new.egress.push(reach("a.example.com"))),
        ["egress: may reach a.example.com"]
    );
    assert_eq!(
        lines(|new| new.auth.clear())[0],
        format!("auth.API_KEY: is gone {both}")
    );
    let found = lines(|new| new.auth[0].fields[0].secret = false);
    assert_eq!(
        found,
        [format!(
            "auth.API_KEY.fields.api_key.secret: is given to the toolkit, and no longer secret {accounts}"
        )]
    );
}

#[test]
fn newly_required_account_breaks_callers() {
    let mut old = manifest();
    let scheme: Vec<AuthScheme> = std::mem::take(&mut old.auth);
    let new = Manifest {
        auth: scheme,
        ..old.clone()
    };
    let found: Vec<_> = diff(&old, &new).iter().map(Change::to_string).collect();
    assert_eq!(
        found,
        [
            "auth.API_KEY: is new",
            "tools.DEMO_GET.no_auth: now needs a connected account (breaks callers)"
        ]
    );
}

#[test]
fn schema_forms_are_compared_with_similar_ones() {
    let form = |tag: &str, more: Value| {
        json!({
            "type": "object", "properties": { "tag": { "const": tag }, "n": more }, "required": ["tag", "n"],
        })
    };
    let one =
        |forms: Vec<Value>| json!({ "type": "object", "properties": { "x": { "oneOf": forms } } });
    let integer = || json!({ "type": "integer" });
    let found = |old: &Value, new: &Value| {
        let mut report = Report::default();
        schema::compare(old, new, schema::Direction::In, &mut report);
        report
            .changes
            .iter()
            .map(Change::to_string)
            .collect::<Vec<_>>()
    };
    let two = one(vec![form("a", integer()), form("b", integer())]);
    assert_eq!(
        found(
            &two,
            &one(vec![
                form("a", integer()),
                form("b", json!({ "type": "string" }))
            ])
        ),
        [r#"x.n: `type` is "string" instead of "integer" (breaks callers)"#]
    );
    let three = one(vec![
        form("a", integer()),
        form("b", integer()),
        form("c", integer()),
    ]);
    assert_eq!(found(&two, &three), ["x: has more forms"]);
    assert_eq!(found(&three, &two), ["x: has fewer forms (breaks callers)"]);
}

#[test]
fn schema_comparison_time_is_bounded() {
    let tree = |kind: &str| {
        json!({
            "type": "object",
            "properties": { "value": { "type": kind }, "children": { "type": "array", "items": { "$ref": "#" } } },
        })
    };
    let mut report = Report::default();
    schema::compare(
        &tree("integer"),
        &tree("string"),
        schema::Direction::In,
        &mut report,
    );
    assert_eq!(report.changes.len(), 1, "{:?}", report.changes);
    let bomb = |kind: &str| {
        let both = |next: usize| json!({ "anyOf": [{ "$ref": format!("#/$defs/d{next}") }, { "$ref": format!("#/$defs/d{next}") }] });
        let mut defs: serde_json::Map<_, _> = (0..40)
            .map(|next| (format!("d{next}"), both(next + 1)))
            .collect();
        defs.insert("d40".to_owned(), json!({ "type": kind }));
        json!({ "type": "object", "properties": { "x": { "$ref": "#/$defs/d0" } }, "$defs": defs })
    };
    let mut report = Report {
        steps: 20_000,
        ..Report::default()
    };
    schema::compare(
        &bomb("integer"),
        &bomb("string"),
        schema::Direction::In,
        &mut report,
    );
    assert!(
        report.changes.iter().any(Change::is_breaking),
        "{:?}",
        report.changes
    );
}

/// Generates schemas of the kinds that toolkits have.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        (0i64..4, 4i64..8)
            .prop_map(|(low, high)| json!({ "type": "integer", "minimum": low, "maximum": high })),
        Just(json!({ "type": "integer" })),
        Just(json!({ "type": "number" })),
        Just(json!({ "type": ["string", "null"] })),
        (0u64..3).prop_map(|length| json!({ "type": "string", "maxLength": length })),
        proptest::sample::subsequence(vec!["", "a", "bb", "ccc"], 1..4)
            .prop_map(|values| json!({ "enum": values })),
        Just(json!({ "const": "a" })),
        Just(json!(true)),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let properties = proptest::collection::btree_map("[pqr]", inner.clone(), 0..3);
        let object = (properties, any::<[bool; 3]>(), 0..3u8).prop_map(|(properties, required, rest)| {
            let required: Vec<_> =
                properties.keys().zip(required).filter(|(_, needed)| *needed).map(|(name, _)| name).collect();
            let mut schema = json!({ "type": "object", "required": required, "properties": properties });
            match rest {
                0 => schema["additionalProperties"] = json!(false),
                1 => schema["additionalProperties"] = json!({ "type": "integer" }),
                _ => {}
            }
            schema
        });
        prop_oneof![
            3 => object,
            1 => inner.clone().prop_map(|items| json!({ "type": "array", "items": items })),
            1 => proptest::collection::vec(inner.clone(), 1..3).prop_map(|forms| json!({ "anyOf": forms })),
            1 => proptest::collection::vec(inner.clone(), 1..3).prop_map(|forms| json!({ "oneOf": forms })),
            1 => (inner.clone(), inner).prop_map(|(one, other)| json!({ "allOf": [one, other] })),
        ]
    })
}

/// Generates values of the kinds that these schemas describe.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        (-1i64..9).prop_map(Value::from),
        Just(json!(1.5)),
        Just(json!(null)),
        proptest::sample::select(vec!["", "a", "bb", "ccc", "dddd"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            2 => proptest::collection::btree_map("[pqr]", inner.clone(), 0..3).prop_map(|map| json!(map)),
            1 => proptest::collection::vec(inner, 0..3).prop_map(Value::from),
        ]
    })
}

/// Returns true if a value holds only what the schema declares, as a conforming caller sends it.
fn is_declared(schema: &Value, value: &Value) -> bool {
    let forms = ["anyOf", "oneOf", "allOf"]
        .iter()
        .filter_map(|keyword| schema[*keyword].as_array())
        .flatten();
    let mut forms = forms.peekable();
    if forms.peek().is_some() {
        // A form with properties is read as if it declared all of them, so every form must declare
        // the value.
        return forms.all(|form| is_declared(form, value));
    }
    match value {
        Value::Object(members) => members.iter().all(|(name, value)| {
            match (&schema["properties"][name], &schema["additionalProperties"]) {
                (Value::Null, Value::Null) => schema.get("properties").is_none(),
                (Value::Null, _) => true,
                (declared, _) => is_declared(declared, value),
            }
        }),
        Value::Array(items) => items.iter().all(|item| is_declared(&schema["items"], item)),
        _ => true,
    }
}

fn breaks(old: &Value, new: &Value, flow: schema::Direction) -> bool {
    let mut report = Report::default();
    schema::compare(old, new, flow, &mut report);
    report.changes.iter().any(Change::is_breaking)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn what_was_taken_and_is_refused_breaks_callers(old in schema(), new in schema(), values in proptest::collection::vec(value(), 12)) {
        let before = jsonschema::validator_for(&old).unwrap();
        let after = jsonschema::validator_for(&new).unwrap();
        for value in values.iter().filter(|value| is_declared(&old, value) && before.is_valid(value)) {
            prop_assert!(after.is_valid(value) || breaks(&old, &new, schema::Direction::In), "{} was taken by {} and is not by {}", value, old, new);
        }
        for value in values.iter().filter(|value| is_declared(&new, value) && after.is_valid(value)) {
            prop_assert!(before.is_valid(value) || breaks(&old, &new, schema::Direction::Out), "{} is answered by {} and was not by {}", value, new, old);
        }
    }

    #[test]
    fn unchanged_schema_has_no_difference(schema in schema(), other in schema()) {
        let around = |other: Value| json!({ "type": "object", "properties": { "same": schema, "other": other } });
        let mut report = Report::default();
        schema::compare(&around(json!({ "type": "null" })), &around(other), schema::Direction::In, &mut report);
        let same: Vec<_> = report.changes.iter().filter(|change| change.place.starts_with("same")).collect();
        // Forms of a `oneOf` that nothing tells apart cannot be compared.
        prop_assert!(same.is_empty() || schema.to_string().contains("oneOf"), "{same:?}");
        let mut manifest = manifest();
        manifest.tools[0].input = schema;
        prop_assert_eq!(diff(&manifest, &manifest), []);
    }

    #[test]
    fn whatever_differs_has_a_line(old in schema(), new in schema()) {
        let mut report = Report::default();
        schema::compare(&old, &new, schema::Direction::In, &mut report);
        prop_assert_eq!(report.changes.is_empty(), old == new);
    }
}
