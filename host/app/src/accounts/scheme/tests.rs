//! Tests of `scheme`.

use manifest::{Field, Placement};
use serde_json::json;

use super::*;

fn field(name: &str, secret: bool, optional: bool) -> Field {
    Field {
        name: name.into(),
        title: name.to_uppercase(),
        secret,
        optional,
        ..Field::default()
    }
}

fn scheme() -> AuthScheme {
    AuthScheme {
        mode: AuthMode::ApiKey,
        name: "API key".into(),
        fields: vec![
            field("key", true, false),
            field("region", false, false),
            field("team", true, true),
        ],
        request: vec![Placement::Header {
            name: "authorization".into(),
            value: "Bearer {key}{count}".into(),
        }],
        ..AuthScheme::default()
    }
}

fn values(json: Value) -> Values {
    json.as_object().unwrap().clone()
}

#[test]
fn masking_shows_four_characters_of_secrets() {
    let given = json!({"key": "sk_live_123", "region": "eu", "team": "abc", "extra": {"deep": "secretvalue"},
        "subdomain": "acme", "count": 5});
    assert_eq!(
        Value::Object(mask_values(Some(&scheme()), &values(given))),
        json!({"key": "sk_l...", "region": "eu", "team": "REDACTED", "extra": {"deep": "secr..."},
            "subdomain": "acme", "count": "REDACTED"})
    );
}

#[test]
fn masking_counts_characters_not_bytes() {
    assert_eq!(mask(&json!("éééééééé")), json!("éééé..."));
    assert_eq!(mask(&json!("ééééééé")), json!("REDACTED"));
    assert_eq!(mask(&json!("")), json!("REDACTED"));
}

#[test]
fn values_that_are_wrong_or_unsendable_are_refused() {
    let line_break = "key: contains a line break";
    for (given, problem) in [
        (json!({"key": 5}), "key: must be a string, not a number"),
        (json!({"token": 5.0}), "key: must be a string, not a number"),
        (
            json!({"key": "k", "team": true}),
            "team: must be a string, not a boolean",
        ),
        (
            json!({"key": "k", "refresh_token": 1}),
            "refresh_token: must be a string",
        ),
        (json!({"key": ""}), "key: must not be empty"),
        (json!({"key": null}), "key: must not be empty"),
        (json!({"token": "  "}), "key: must not be empty"),
        (json!({"key": "k\n", "count": "1"}), line_break),
        (json!({"key": "k\u{7f}", "count": "1"}), line_break),
    ] {
        let mut scheme = scheme();
        scheme.fields.truncate(1);
        scheme.fields.push(field("team", false, true));
        let problems = complete(&scheme, values(given)).unwrap_err();
        assert!(problems[0].starts_with(problem), "{problems:?}");
    }
    let spread = json!({"key": "k", "count": "1", "region": "e\nu"});
    assert!(
        complete(&scheme(), values(spread)).is_ok(),
        "no request has it"
    );
}

#[test]
fn a_number_fills_a_template_as_its_text() {
    let credential = credential(&scheme(), &values(json!({"key": "k1", "count": 2})));
    assert_eq!(
        credential.placements,
        [Placement::Header {
            name: "authorization".into(),
            value: "Bearer k12".into()
        }]
    );
    let secrets: Vec<_> = credential.secrets.iter().map(Secret::expose).collect();
    assert_eq!(secrets, ["k1"]);
}
