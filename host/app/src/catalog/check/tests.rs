//! Tests of checks.

use super::*;

fn problems(schema: &Value, value: &str) -> Vec<String> {
    compile(schema).unwrap().problems(value.as_bytes())
}

fn fits(schema: &Value, value: &str) -> bool {
    problems(schema, value).is_empty()
}

/// Returns a schema whose nodes contain two further nodes for the same value.
fn doubling() -> Value {
    let twice = json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]});
    json!({"type": "object", "properties": {"in": twice}})
}

fn nested(levels: usize, core: &str) -> String {
    format!("{}{core}{}", "{\"in\":".repeat(levels), "}".repeat(levels))
}

#[test]
fn patterns_and_references_stay_bounded() {
    let hard = json!({"type": "string", "pattern": "^(a+)+$"});
    assert!(!fits(&hard, &format!("\"{}b\"", "a".repeat(50_000))));
    for unusable in [
        json!({"pattern": "(?=a)b"}),
        json!({"$ref": "http://127.0.0.1:9/x.json"}),
    ] {
        assert!(schema_problem(&unusable).is_some(), "{unusable}");
    }
}

#[test]
fn a_schema_that_allows_everything_needs_no_validator() {
    for schema in [json!(true), json!({}), json!({"title": "x"})] {
        assert!(fits(&schema, "[1]"));
    }
    let object = json!({"type": "object", "additionalProperties": true});
    assert!(fits(&object, r#"{"a":1}"#));
    assert!(!fits(&object, "[1]"));
    assert!(!fits(&object, "{"));
    let check = compile(&object).unwrap();
    assert!(check.accept(&Bytes::from_static(b"[]")).is_err());
}

#[test]
fn doubling_schema_ends_with_one_line() {
    assert!(fits(&doubling(), &nested(50, "{}")));
    let lines = problems(&doubling(), &nested(50, "1"));
    assert_eq!(lines.len(), 1, "{lines:?}");
    let location = format!("{}: expected an object", ["in"; 50].join("."));
    assert!(lines[0].starts_with(&location), "{lines:?}");
}

#[test]
fn shared_references_compile_once() {
    let mut definitions = serde_json::Map::new();
    for level in 0..60 {
        let next = json!({"$ref": format!("#/$defs/{}", level + 1)});
        definitions.insert(
            level.to_string(),
            json!({"properties": {"a": next, "b": next}, "unevaluatedProperties": false}),
        );
    }
    definitions.insert("60".into(), json!({"type": "string"}));
    let schema = json!({"$ref": "#/$defs/0", "$defs": definitions});
    assert_eq!(schema_problem(&schema), None);
    assert!(fits(&schema, r#"{"a":{"b":{}}}"#));
}

#[test]
fn deepest_schema_and_value_fit_the_stack() {
    let mut definitions = serde_json::Map::new();
    for level in 0..14 {
        definitions.insert(
            level.to_string(),
            json!({"anyOf": [{"$ref": format!("#/$defs/{}", level + 1)}]}),
        );
    }
    definitions.insert("14".into(), json!({"properties": {"in": {"$ref": "#"}}}));
    let schema = json!({"type": "object", "$ref": "#/$defs/0", "$defs": definitions});
    let value = nested(60, "{}");
    let checked = std::thread::Builder::new()
        .stack_size(2 << 20)
        .spawn(move || problems(&schema, &value));
    assert_eq!(checked.unwrap().join().unwrap(), Vec::<String>::new());
}

#[test]
fn schema_with_id_is_refused() {
    let problems = compile_checked("input_schema", &json!({"$id": "x"})).unwrap_err();
    assert!(problems[0].starts_with("input_schema"), "{problems:?}");
    assert!(problems[0].contains("remove `$id`"), "{problems:?}");
    assert!(compile_checked("input_schema", &json!({"type": "object"})).is_ok());
}

/// Returns the value that a schema accepts, or the first problem.
fn accepted(schema: &Value, value: &Value) -> std::result::Result<Value, String> {
    let check = compile(schema).unwrap();
    let accepted = check.accept(&value.to_string().into());
    let accepted = accepted.map_err(|problems| problems[0].clone())?;
    Ok(serde_json::from_slice(&accepted.value).unwrap())
}

#[test]
fn null_that_no_schema_allows_is_absent() {
    let place = json!({
        "type": "object", "required": ["name"],
        "properties": {"name": {"type": "string"}, "floor": {"type": "integer"}},
    });
    let schema = json!({
        "type": "object", "required": ["q"],
        "properties": {
            "q": {"type": "string"}, "limit": {"type": "integer"}, "kept": {"type": ["string", "null"]},
            "any": {}, "order": {"enum": ["up", "down"]}, "a/b~c": {"$ref": "#/$defs/text"},
            "either": {"anyOf": [{"type": "string"}, place]}, "one": {"oneOf": [place, {"type": "null"}]},
            "places": {"type": "array", "items": place}, "texts": {"items": {"type": "string"}},
        },
        "additionalProperties": false, "$defs": {"text": {"type": "string"}},
    });
    let given = json!({
        "q": "x", "limit": null, "kept": null, "any": null, "order": null, "a/b~c": null,
        "either": {"name": "n", "floor": null}, "one": null, "places": [{"name": "n", "floor": null}],
    });
    let expected = json!({
        "q": "x", "kept": null, "any": null, "either": {"name": "n"}, "one": null,
        "places": [{"name": "n"}],
    });
    assert_eq!(accepted(&schema, &given), Ok(expected));
    for (refused, problem) in [
        (json!({"q": null, "limit": null}), "q: is required"),
        (json!({"q": "x", "other": null}), "other: is unknown"),
        (
            json!({"q": "x", "texts": [null]}),
            "texts[0]: expected a string, got null",
        ),
        (json!({"q": "x", "one": {"name": null}}), "oneOf"),
        (json!(null), "expected an object, got null"),
    ] {
        let found = accepted(&schema, &refused).unwrap_err();
        assert!(found.contains(problem), "{refused}: {found}");
    }
}

#[test]
fn alternative_that_fits_decides_about_nulls() {
    let alternatives = [
        json!({"properties": {"x": {"type": ["string", "null"]}, "n": {"type": "integer"}}, "required": ["x"]}),
        json!({"properties": {"x": {"type": "string"}, "n": {"type": "string"}}, "required": ["n"]}),
    ];
    let schema = json!({"type": "object", "anyOf": alternatives});
    assert_eq!(
        accepted(&schema, &json!({"x": null, "n": null})),
        Ok(json!({"x": null}))
    );
}

#[test]
fn nulls_of_known_parts_are_no_problem() {
    let schema = json!({"properties": {"a": {"type": "string"}, "b": {"type": "integer"}}});
    let Check::Full(full) = compile(&schema).unwrap() else {
        panic!("the schema needs a validator");
    };
    let lines = |value| full.problems_of_known(value, |_| false);
    assert_eq!(lines(json!({"a": null})), Vec::<String>::new());
    assert_eq!(lines(json!({"a": null, "b": "x"})).len(), 1);
}

#[test]
fn misspelled_name_is_refused_and_others_are_reported() {
    let schema =
        json!({"properties": {"algorithm": {"type": "string"}, "limit": {"type": "integer"}}});
    let check = compile(&schema).unwrap();
    let accept = |text: &'static str| {
        let accepted = check.accept(&Bytes::from_static(text.as_bytes()));
        accepted.and_then(Accepted::without_misspellings)
    };
    let problem = "unknown argument `algoritm`: did you mean `algorithm`?";
    for misspelled in [
        r#"{"algoritm": "md5"}"#,
        r#"{"algoritm": "md5", "limit": null}"#,
    ] {
        assert_eq!(accept(misspelled).unwrap_err(), [problem]);
    }
    let accepted = accept(r#"{"algorithm": "md5", "session_id": 1}"#).unwrap();
    assert_eq!(accepted.unknown[0].name, "session_id");
    let Check::Full(full) = &check else {
        panic!("the schema needs a validator");
    };
    let lines = full.problems_of_known(json!({"algoritm": "{{input.a}}"}), |_| false);
    assert_eq!(lines, [problem]);
}

#[test]
fn misspelled_name_is_one_problem_before_others() {
    let schema = json!({"properties": {"html": {}, "title": {}}, "required": ["title", "html"]});
    let refused = compile(&schema)
        .unwrap()
        .accept(&Bytes::from_static(br#"{"htlm": 1}"#));
    let expected = [
        "unknown argument `htlm`: did you mean `html`?",
        "title: is required",
    ];
    assert_eq!(refused.unwrap_err(), expected);
}

#[test]
fn allowed_values_are_listed() {
    let algorithms = json!({"enum": ["md5", "sha1", "sha256", "sha512"]});
    let line = r#"at the top: expected one of "md5", "sha1", "sha256", "sha512""#;
    assert_eq!(problems(&algorithms, r#""sha3""#), [line]);
    let alternatives = json!({"oneOf": [
        {"type": "string", "const": "md5"}, {"const": "sha1"}, {"enum": ["sha256", "sha512"]},
    ]});
    assert_eq!(problems(&alternatives, r#""sha3""#), [line]);
    assert_eq!(problems(&alternatives, "3"), [line]);
    let numbers: Vec<_> = (0..23).collect();
    let lines = problems(&json!({"enum": numbers}), "99");
    assert!(lines[0].ends_with("18, 19 and 3 more"), "{lines:?}");
}

#[test]
fn message_is_cut_where_it_is_written() {
    let lines = problems(&json!({"const": "x".repeat(1_000)}), "1");
    assert_eq!(lines[0].chars().count(), MAX_LINE_CHARS);
}

#[test]
fn messages_repeat_no_value() {
    let text = json!({"type": "string", "maxLength": 3, "pattern": "^a", "enum": ["a"]});
    let schema = json!({
        "properties": {"text": text, "other": {"type": "string"}, "any": {"anyOf": [{"type": "null"}]}},
        "propertyNames": {"maxLength": 8},
    });
    let secret = json!("s3cr3t-value");
    let value = json!({
        "text": secret, "other": {"x": secret}, "any": secret, "s3cr3t-value": 1,
    });
    let lines = problems(&schema, &value.to_string());
    assert!(lines.len() > 5, "{lines:?}");
    assert!(!lines.concat().contains("s3cr3t"), "{lines:?}");
    assert!(lines.contains(&"other: expected a string, got an object".to_owned()));
}

#[test]
fn equal_elements_are_found_however_written() {
    let schema = json!({"type": "array", "uniqueItems": true});
    for (elements, expected) in [
        (r#"1, 2, -1, "1", true, null, [], {}"#, true),
        ("1, 2, 1.0", false),
        ("0, 1, -0.0", false),
        ("9223372036854775808, 9223372036854775807", true),
        (r#"{"a": 1, "b": [2]}, {"b": [2], "a": 1}"#, false),
        (r#"{"a": 1, "b": 2}, {"a": 2, "b": 1}"#, true),
        ("[[], []], [[]], [[[]]], [[[]], []]", true),
        ("[[], [[]]], [1], [[], [[]]]", false),
    ] {
        assert_eq!(
            fits(&schema, &format!("[{elements}]")),
            expected,
            "{elements}"
        );
    }
}

#[test]
fn each_part_of_unique_elements_costs_a_step() {
    // Each element has the bits of its number: a bit of 1 is one more level.
    let element = |number: u32| {
        let bits = (0..15).map(|bit| if number >> bit & 1 == 1 { "[[]]" } else { "[]" });
        format!("[{}]", bits.collect::<Vec<_>>().join(","))
    };
    let elements: Vec<_> = (0..20_000).map(element).collect();
    let text = format!("[{}]", elements.join(","));
    let schema = json!({"type": "array", "uniqueItems": true});
    assert!(fits(&schema, &text));
    let Check::Full(full) = compile(&schema).unwrap() else {
        panic!("the schema needs a validator");
    };
    let arena = Bump::new();
    let value = Tree::parse(text.as_bytes(), &arena, Rules::Lenient).unwrap();
    let budget = full.budget(2 * elements.len() as u64);
    let _ = full.validator.is_valid(BudgetedValue::new(&value, &budget));
    assert!(budget.is_spent());
}
