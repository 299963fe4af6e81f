//! Tests of trees and of their rules.

use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;

fn parse(text: &str, rules: Rules) -> Result<Value, Problem> {
    Tree::parse(text.as_bytes(), &Bump::new(), rules).map(|tree| tree.to_value())
}

/// Generates values whose objects are small or have sorted names.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z\"\\\\\u{1}\u{e9}\u{1f980}]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 24, |inner| {
        let members = prop::collection::btree_map("[a-z\n]{0,3}", inner.clone(), 0..24);
        prop_oneof![
            prop::collection::vec(inner, 0..24).prop_map(Value::from),
            members.prop_map(|members| members.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
}

proptest! {
    #[test]
    fn trees_have_the_values_of_their_text(value in values()) {
        let text = value.to_string();
        let expected: Value = serde_json::from_str(&text).unwrap();
        for rules in [Rules::Strict, Rules::Lenient] {
            let arena = Bump::new();
            let tree = Tree::parse(text.as_bytes(), &arena, rules).unwrap();
            prop_assert_eq!(tree.to_value(), expected.clone());
            prop_assert!(tree.equals(&expected));
            if let (Tree::Object(members), Value::Object(others)) = (&tree, &expected) {
                for (name, other) in others {
                    prop_assert!(members.get(name).unwrap().equals(other));
                }
                prop_assert!(members.get("absent").is_none());
            }
        }
    }
}

#[test]
fn depth_is_bounded() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    parse(&nested(MAX_DEPTH), Rules::Strict).unwrap();
    let error = parse(&nested(MAX_DEPTH + 1), Rules::Strict).unwrap_err();
    assert!(error.to_string().contains("deeper than 64"));
    parse(&nested(MAX_DEPTH + 1), Rules::Lenient).unwrap();
    for rules in [Rules::Strict, Rules::Lenient] {
        assert!(parse(&"[".repeat(100_000), rules).is_err());
    }
}

#[test]
fn strict_rules_refuse_what_stores_cannot_keep() {
    for (text, word) in [
        (r#"{"a":1,"a":2}"#, "a: is given twice"),
        (r#"{"a":[{"b":1},{"b":1,"b":1}]}"#, "a[1].b: is given twice"),
        (r#"{"a":["\u0000"]}"#, "a[0]: contains a NUL"),
        (r#"{"\u0000":1}"#, "body: contains a NUL"),
        (
            r#"{"a":[0,{"b":1E400}]}"#,
            "a[1].b: the number is too large",
        ),
        ("1E400", "body: the number is too large"),
    ] {
        let line = parse(text, Rules::Strict).unwrap_err().line("body");
        assert!(line.starts_with(word), "{text}: {line}");
    }
}

#[test]
fn last_of_equal_names_counts_in_results() {
    for others in [1, 100] {
        let others: String = (0..others)
            .map(|number| format!(r#""{number}":0,"#))
            .collect();
        let text = format!(r#"{{"a":1,{others}"a":2}}"#);
        let error = parse(&text, Rules::Strict).unwrap_err();
        assert_eq!(error.line("body"), "a: is given twice");
        let expected: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(parse(&text, Rules::Lenient).unwrap(), expected);
    }
}

#[test]
fn numbers_are_equal_however_written() {
    let text = r#"{"a":[1.0,{"b":2}]}"#;
    let arena = Bump::new();
    let tree = Tree::parse(text.as_bytes(), &arena, Rules::Strict).unwrap();
    assert!(tree.equals(&json!({"a": [1, {"b": 2.0}]})));
    for other in [
        json!({"a": [1, {"b": 3}]}),
        json!({"a": [1]}),
        json!({"a": [true, {"b": 2}]}),
        json!({"a": [1, {"b": 2}], "c": 0}),
    ] {
        assert!(!tree.equals(&other), "{other}");
    }
}

#[test]
fn excerpt_ends_after_its_characters() {
    let arena = Bump::new();
    let long = format!("\"{}\"", "\u{e9}".repeat(1_000));
    let many = format!("[{}0]", "0,".repeat(1_000));
    let text = Tree::parse(long.as_bytes(), &arena, Rules::Strict).unwrap();
    assert_eq!(text.excerpt(11), json!("\u{e9}".repeat(10)));
    let array = Tree::parse(many.as_bytes(), &arena, Rules::Strict).unwrap();
    assert_eq!(array.excerpt(4), json!([0, 0, 0]));
}
