//! Tests of `arguments`.

use serde_json::json;

use super::*;

fn search(schema: &Value, mut value: Value) -> (Vec<String>, Value) {
    let mut search = Search::new(schema);
    search.visit(&[schema], &mut value, 0).unwrap();
    (search.keys, value)
}

#[test]
fn files_are_found_only_where_schema_allows() {
    let file = json!({"type": "object", "file_uploadable": true});
    let schema = json!({
        "properties": {
            "plain": file,
            "listed": {"type": "array", "items": {"$ref": "#/$defs/File"}},
            "maybe": {"anyOf": [{"$ref": "#/$defs/File"}, {"type": "null"}]},
            "deep": {"properties": {"x": {"allOf": [file]}}},
            "free": {"type": "object"},
        },
        "additionalProperties": {"oneOf": [file, {"type": "string"}]},
        "$defs": {"File": file},
    });
    let key = |key: &str| json!({"name": "n", "mimetype": "m/m", "s3key": key});
    let value = json!({
        "plain": key("a"), "listed": [key("b"), key("a")], "maybe": key("c"), "deep": {"x": key("d")},
        "free": key("not a file"), "other": key("e"),
    });
    let (mut keys, _) = search(&schema, value);
    keys.sort();
    assert_eq!(keys, ["a", "b", "c", "d", "e"]);
    let (keys, rest) = search(
        &schema,
        json!({"plain": "", "maybe": "", "free": "", "text": "t"}),
    );
    assert_eq!((keys, rest), (vec![], json!({"free": "", "text": "t"})));
}

#[test]
fn alternatives_that_meet_are_visited_once() {
    let twice = json!({"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/A"}]});
    let file = json!({"type": "object", "file_uploadable": true});
    let schema = json!({
        "$ref": "#/$defs/A",
        "$defs": {"A": {"properties": {"file": file}, "additionalProperties": twice, "anyOf": [{"$ref": "#/$defs/A"}]}},
    });
    let mut value = json!({"file": {"s3key": "a"}});
    for _ in 0..MAX_SEARCH_DEPTH - 2 {
        value = json!({"in": value});
    }
    let mut search = Search::new(&schema);
    search.visit(&[&schema], &mut value, 0).unwrap();
    assert_eq!(search.keys, ["a"]);
    assert!(
        MAX_SEARCH_STEPS - search.steps < 10 * MAX_SEARCH_DEPTH,
        "{} steps are left",
        search.steps
    );
}
