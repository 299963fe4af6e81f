//! Tests of `walk`.

use serde_json::json;

use super::*;

fn problems_of(steps: Value) -> Vec<String> {
    let steps: Vec<Step> = serde_json::from_value(steps).unwrap();
    let mut walk = Walk::default();
    walk.steps(&steps, "steps", 0, false);
    walk.problems.0
}

#[test]
fn steps_may_use_results_of_earlier_steps() {
    let uses = |path: &str| json!({ "a": format!("{{{{{path}}}}}") });
    let steps = json!([
        { "name": "one", "tool_slug": "X", "arguments": uses("input.a") },
        { "name": "all", "for_each": "{{steps.one.data.items}}", "steps": [
            { "name": "inner", "tool_slug": "X", "arguments": uses("item.id") },
            { "name": "next", "tool_slug": "X", "arguments": uses("steps.inner.data") },
        ] },
        { "name": "last", "tool_slug": "X", "arguments": uses("steps.all.data") },
    ]);
    assert_eq!(problems_of(steps), Vec::<String>::new());
}

#[test]
fn wrong_steps_are_reported_with_their_place() {
    let call = |name: &str| json!({ "name": name, "tool_slug": "X" });
    let with = |member: &str, value: Value| {
        let mut step = call("a");
        step[member] = value;
        json!([step])
    };
    for (steps, expected) in [
        (json!([call("a"), call("a")]), "steps[1].name: another step"),
        (json!([call("A b")]), "steps[0].name: must have"),
        (json!([{ "name": "a" }]), "must have one of"),
        (with("steps", json!([call("b")])), "must have one of"),
        (
            json!([{ "name": "a", "steps": [call("b")], "continue_on_error": true }]),
            "steps[0]: a group has no `continue_on_error`",
        ),
        (
            with("for_each", json!(7)),
            "steps[0].for_each: must be a list",
        ),
        (
            with("for_each", json!(vec![0; MAX_LOOP_ITEMS + 1])),
            "at most",
        ),
        (with("for_each", json!("{{item}}")), "only known in a loop"),
        (
            with("arguments", json!({ "a": "{{item}}" })),
            "only known in a loop",
        ),
        (
            with("arguments", json!({ "a": "{{steps.a.data}}" })),
            "`a` is not the name of an earlier step",
        ),
        (
            with("arguments", json!({ "a": "{{event.data}}" })),
            "is no placeholder",
        ),
        (with("arguments", json!({ "a": ["{{input"] })), "without"),
        (
            with("if", json!({ "exists": "{{steps.b}}" })),
            "`b` is not the name",
        ),
        (
            json!([
                { "name": "group", "steps": [call("inner")] },
                { "name": "a", "tool_slug": "X", "arguments": { "a": "{{steps.inner.data}}" } },
            ]),
            "`inner` is not the name of an earlier step",
        ),
    ] {
        let found = problems_of(steps.clone());
        let is_found = found.iter().any(|problem| problem.contains(expected));
        assert!(is_found, "{steps}: {found:?}");
    }
}
