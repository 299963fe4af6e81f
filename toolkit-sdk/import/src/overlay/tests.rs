//! Effects of an overlay.

use serde_json::json;

use super::*;

fn api() -> Api {
    serde_json::from_value(json!({
        "name": "Acme", "servers": [{ "url": "https://{site}.example.com" }],
        "operations": [
            { "id": "items/list", "method": "GET", "path": "/items", "tags": ["items"], "hints": { "read_only": true },
              "parameters": [{ "name": "limit", "place": "query", "style": "form", "schema": { "type": "integer" } }] },
            { "id": "items/add", "method": "POST", "path": "/items", "tags": ["items"],
              "body": { "media": { "kind": "json" }, "required": true, "schema": { "$ref": "#/$defs/Item" } } },
            { "id": "old", "method": "GET", "path": "/old/{id}", "deprecated": true },
        ],
        "schemas": { "Item": {
            "type": "object", "properties": { "name": { "type": "string" }, "kind": { "type": "string" } }, "required": ["name", "kind"],
        } },
    }))
    .unwrap()
}

fn applied(overlay: &str) -> Api {
    let mut api = api();
    let overlay = Overlay::from_toml(overlay).unwrap();
    overlay.apply(&mut api).unwrap();
    api
}

fn ids(overlay: &str) -> Vec<String> {
    applied(overlay)
        .operations
        .into_iter()
        .map(|operation| operation.id)
        .collect()
}

#[test]
fn operations_are_chosen_by_pattern() {
    for (choice, chosen) in [
        ("", &["items/list", "items/add"][..]),
        ("deprecated = true", &["items/list", "items/add", "old"]),
        ("operations = ['old']", &["old"]),
        (
            "tags = ['it*']\nexcept.operations = ['*/add']",
            &["items/list"],
        ),
        ("paths = ['/it*']\nmethods = ['post']", &["items/add"]),
    ] {
        assert_eq!(ids(&format!("[choose]\n{choice}")), chosen, "{choice}");
    }
}

#[test]
fn what_an_overlay_names_must_be_there() {
    let overlay = r#"
        choose.operations = ["items/*", "gone"]
        operations.nothing.title = "x"
        operations."items/list".hide = ["page"]
        arguments.none.hide = true
    "#;
    let problems = Overlay::from_toml(overlay)
        .unwrap()
        .apply(&mut api())
        .unwrap_err();
    for part in [
        "`gone`",
        "`nothing`",
        "has no argument `page`",
        "an argument `none`",
    ] {
        assert!(
            problems.iter().any(|problem| problem.contains(part)),
            "{part}: {problems:?}"
        );
    }
    let overlay = "choose.operations = [\"items/lsit\"]\noperations.\"item/list\".title = \"x\"";
    let overlay = Overlay::from_toml(overlay).unwrap();
    let problems = overlay.apply(&mut api()).unwrap_err();
    assert!(
        problems[0].ends_with("did you mean `items/list`?"),
        "{problems:?}"
    );
    let refused = Overlay::from_toml("nmae = \"x\"").unwrap_err();
    assert!(refused.to_string().contains("nmae"));
    assert!(Overlay::from_json("{\"choose\": 1}").is_err());
}

#[test]
fn argument_changes_apply_to_parameters_and_members() {
    let overlay = r#"
        variables.site = "north"
        [arguments.limit]
        default = 50
        description = "How many."
        [operations."items/add"]
        title = "Add"
        hints.idempotent = true
        arguments.kind.fixed = "plain"
        arguments.name.schema = { maxLength = 10 }
    "#;
    let api = applied(overlay);
    assert_eq!(api.servers[0].url, "https://north.example.com");
    let limit = &api.operations[0].parameters[0];
    assert_eq!(
        (limit.default.clone(), limit.schema["description"].as_str()),
        (Some(json!(50)), Some("How many."))
    );
    let add = &api.operations[1];
    assert!(add.title == "Add" && add.hints.idempotent);
    let body = add.body.as_ref().unwrap();
    assert_eq!(
        body.schema["properties"],
        json!({ "name": { "type": "string", "maxLength": 10 } })
    );
    assert_eq!(body.schema["required"], json!(["name"]));
    assert_eq!(body.defaults["kind"], "plain");
}

#[test]
fn renamed_argument_keeps_its_name_on_wire() {
    let overlay = r#"
        choose.operations = ["items/*"]
        arguments.limit.name = "most"
        [operations."items/add"]
        arguments.kind.name = "sort"
    "#;
    let made = crate::toolkit(api(), "acme", &Overlay::from_toml(overlay).unwrap()).unwrap();
    let arguments = |slug: &str| {
        made.manifest.tool(slug).unwrap().input["properties"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(arguments("ACME_ITEMS_LIST"), ["most"]);
    let limit = &made.calls["ACME_ITEMS_LIST"].parameters[0];
    assert_eq!(
        (limit.name.as_str(), limit.argument.as_deref()),
        ("limit", Some("most"))
    );
    assert_eq!(arguments("ACME_ITEMS_ADD"), ["name", "sort"]);
    let Some(manifest::plan::Body::Json { renamed, .. }) = &made.calls["ACME_ITEMS_ADD"].body
    else {
        panic!()
    };
    assert_eq!(renamed["sort"], "kind");
}

#[test]
fn a_server_stands_for_all_others() {
    let api = applied("server = \"https://api.example.org/\"");
    assert_eq!(api.servers[0].url, "https://api.example.org");
}

#[test]
fn required_member_makes_optional_body_required() {
    let mut api = api();
    api.operations[1].body.as_mut().unwrap().required = false;
    Overlay::from_toml("arguments.name.required = true")
        .unwrap()
        .apply(&mut api)
        .unwrap();
    assert!(api.operations[1].body.as_ref().unwrap().required);
}
