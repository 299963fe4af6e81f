//! Tests of `mapping`.

use serde_json::json;

use super::*;

fn filled(arguments: &Value, event: &Value) -> Result<Value, String> {
    Filling::new(&[("event", event)]).value(arguments)
}

#[test]
fn values_keep_their_type_or_become_text() {
    let event = json!({
        "type": "service.trigger.message",
        "data": { "count": 7, "tags": ["a", "b"], "from": { "name": "Amy" }, "none": null, "open": true },
    });
    for (argument, expected) in [
        (json!("{{event.data.count}}"), json!(7)),
        (json!("{{ event.data.tags }}"), json!(["a", "b"])),
        (json!("{{event.data.tags.1}}"), json!("b")),
        (json!("{{event}}"), event.clone()),
        (json!("{{event.data.nothing}}"), json!(null)),
        (json!("{{event.data.none}}"), json!(null)),
        (
            json!("{{event.data.from.name}} wrote {{event.data.count}} of {{event.data.tags}}"),
            json!("Amy wrote 7 of [\"a\",\"b\"]"),
        ),
        (json!("[{{event.data.nothing}}]"), json!("[]")),
        (
            json!([{ "open": "{{event.data.open}}" }]),
            json!([{ "open": true }]),
        ),
        (json!({ "{{event}}": 1 }), json!({ "{{event}}": 1 })),
        (
            json!("{single} {\"a\": 1} }}"),
            json!("{single} {\"a\": 1} }}"),
        ),
        (json!(""), json!("")),
    ] {
        let arguments = json!({ "a": argument });
        assert_eq!(
            filled(&arguments, &event),
            Ok(json!({ "a": expected })),
            "{argument}"
        );
    }
}

#[test]
fn filled_values_are_not_filled_again() {
    let event = json!({ "data": { "text": "{{event.data.secret}}", "secret": "s" } });
    let arguments = json!({ "a": "{{event.data.text}}", "b": "x{{event.data.text}}" });
    assert_eq!(
        filled(&arguments, &event),
        Ok(json!({ "a": "{{event.data.secret}}", "b": "x{{event.data.secret}}" }))
    );
}

#[test]
fn malformed_placeholder_is_refused_with_its_root() {
    for text in [
        "{{",
        "a {{event.data",
        "{{}}",
        "{{data.id}}",
        "{{events.id}}",
        "{{event.}}",
        "{{event..id}}",
        "{{event.data id}} {{",
    ] {
        let refused = filled(&json!({ "a": [text] }), &Value::Null);
        assert!(refused.is_err(), "{text}: {refused:?}");
    }
    let refused = filled(&json!({ "a": "{{evnt.id}}" }), &Value::Null).unwrap_err();
    assert!(refused.contains("{{evnt}}"), "{refused}");
    let refused = filled(&json!({ "a": "{{my pass!}}" }), &Value::Null).unwrap_err();
    assert!(!refused.contains("pass!"), "{refused}");
}

#[test]
fn every_wrong_placeholder_is_named_with_its_path() {
    let value = json!({ "a": ["{{event.id}}", "{{x}} {{y.z}}"], "b": { "c": "{{" }, "d": 1 });
    let mut problems = Vec::new();
    add_problems(&mut problems, &value, "arguments", &|placeholder| {
        (placeholder.root != "event").then(|| placeholder.root.to_owned())
    });
    assert_eq!(
        problems,
        [
            "arguments.a[1]: x",
            "arguments.a[1]: y",
            "arguments.b.c: `{{` without `}}`"
        ]
    );
}

#[test]
fn filled_values_are_limited() {
    let event = json!({ "data": "x".repeat(MAX_FILLED_BYTES / 2) });
    filled(&json!({ "a": "{{event.data}}" }), &event).unwrap();
    let refused = filled(
        &json!({ "a": ["{{event.data}}", "b {{event.data}}"] }),
        &event,
    );
    assert!(refused.unwrap_err().contains("1048576 bytes"));
}

#[test]
fn values_of_several_roots_are_filled() {
    let steps = json!({ "found": { "data": { "id": 7 } } });
    let roots = [("item", &json!("a")), ("steps", &steps)];
    let value = json!([
        "{{item}}",
        "{{steps.found.data.id}}",
        "{{item}}{{steps.found.data.id}}"
    ]);
    let filled = |value: &Value| Filling::new(&roots).value(value);
    assert_eq!(filled(&value), Ok(json!(["a", 7, "a7"])));
    let problem = filled(&json!("{{input.a}}")).unwrap_err();
    assert!(problem.contains("`item`, `steps`"));
}
