//! Import of the tools of an MCP server.

use serde_json::{Value, json};

use super::*;
use crate::{Overlay, toolkit};

pub(crate) fn listing() -> Value {
    json!({
        "server": "https://shelf.example.com/mcp",
        "serverInfo": { "name": "shelf", "title": "The Shelf", "version": "1" },
        "instructions": "Keeps books.",
        "tools": [
            {
                "name": "find-books", "title": "Find books", "description": "Finds books.",
                "inputSchema": {
                    "$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "required": ["words"],
                    "properties": { "words": { "type": "string" }, "where": { "$ref": "#/$defs/Place" } },
                    "$defs": { "Place": { "type": "object", "properties": { "inside": { "$ref": "#/$defs/Place" } } } },
                },
                "outputSchema": { "type": "object", "properties": { "count": { "type": "integer" } } },
                "annotations": { "readOnlyHint": true, "openWorldHint": false },
            },
            { "name": "burn", "inputSchema": { "type": "object" } },
            { "name": "add", "inputSchema": { "type": "object", "properties": {} }, "annotations": { "destructiveHint": false, "title": "Add one" } },
            { "name": "burn" },
        ],
    })
}

#[test]
fn a_tool_keeps_its_schemas_and_hints() {
    let api = mcp(listing().to_string().as_bytes()).unwrap();
    assert_eq!(
        (api.name.as_str(), api.description.as_str()),
        ("The Shelf", "Keeps books.")
    );
    assert_eq!(api.unsupported.len(), 1, "the second tool of one name");
    let made = toolkit(api, "shelf", &Overlay::default()).unwrap();
    let tool = |slug: &str| made.manifest.tool(slug).unwrap();
    let find = tool("SHELF_FIND_BOOKS");
    assert_eq!(find.name, "Find books");
    assert_eq!(find.input["required"], json!(["words"]));
    assert_eq!(
        find.input["properties"]["where"]["properties"]["inside"],
        json!({ "type": "object" })
    );
    assert_eq!(
        find.output,
        json!({ "type": "object", "properties": { "count": { "type": "integer" } } })
    );
    assert!(find.hints.read_only && !find.hints.destructive && !find.hints.open_world);
    assert_eq!(find.egress.as_ref().unwrap()[0].methods, ["POST", "DELETE"]);
    let burn = tool("SHELF_BURN");
    assert!(
        burn.hints.destructive,
        "a tool that says nothing may destroy"
    );
    assert_ne!(burn.input.get("additionalProperties"), Some(&json!(false)));
    assert_eq!(tool("SHELF_ADD").input["additionalProperties"], false);
    assert_eq!(tool("SHELF_ADD").name, "Add one");
    let call = serde_json::to_value(&made.calls["SHELF_FIND_BOOKS"]).unwrap();
    let expected = json!({ "method": "POST", "url": "https://shelf.example.com/mcp", "body": { "media": "mcp", "tool": "find-books" } });
    assert_eq!(call, expected);
}

#[test]
fn tools_are_read_from_json_rpc_response() {
    let whole = json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": listing()["tools"], "nextCursor": "x" } });
    let api = mcp(whole.to_string().as_bytes()).unwrap();
    assert_eq!(api.operations.len(), 3);
    assert!(
        api.unsupported
            .iter()
            .any(|it| it.what.contains("further pages"))
    );
    for (given, part) in [
        ("[]", "no `tools`"),
        (r#"{"tools":[1]}"#, "is not valid"),
        ("{", "not JSON"),
    ] {
        let refused = mcp(given.as_bytes()).unwrap_err().to_string();
        assert!(refused.contains(part), "{refused}");
    }
}

#[test]
fn alternatives_at_the_top_become_arguments() {
    let text = |names: &[&str]| {
        let members = names
            .iter()
            .map(|name| (name.to_string(), json!({ "type": "string" })));
        json!({ "type": "object", "properties": members.collect::<serde_json::Map<_, _>>(), "required": names })
    };
    let kind = |kind: &str, name: &str| {
        let mut schema = text(&["title", name]);
        schema["properties"]["kind"] = json!({ "type": "string", "const": kind });
        schema
    };
    let listing = json!({
        "server": "https://shelf.example.com/mcp", "instructions": null,
        "tools": [
            { "name": "any", "description": "d".repeat(2000), "inputSchema": { "anyOf": [text(&["content"]), text(&["url"])] } },
            { "name": "one", "inputSchema": { "type": "object", "oneOf": [kind("a", "x"), kind("b", "y")] } },
            { "name": "all", "inputSchema": { "allOf": [text(&["c"]), { "$ref": "#/$defs/D" }], "$defs": { "D": text(&["d"]) } } },
            { "name": "given", "inputSchema": { "properties": { "p": {}, "q": {} }, "anyOf": [{ "required": ["p"] }, { "required": ["q"] }] } },
        ],
    });
    let api = mcp(listing.to_string().as_bytes()).unwrap();
    let made = toolkit(api, "shelf", &Overlay::default()).unwrap();
    let tool = |index: usize| &made.manifest.tools[index];
    let names = |index: usize| -> Vec<&String> {
        tool(index).input["properties"]
            .as_object()
            .unwrap()
            .keys()
            .collect()
    };
    assert_eq!(names(0), ["content", "url"]);
    assert_eq!(tool(0).input.get("required"), None);
    assert!(tool(0).description.len() <= 1024);
    assert!(
        tool(0)
            .description
            .ends_with("\n\nGive either `content`, or `url`.")
    );
    assert_eq!(names(1), ["title", "x", "kind", "y"]);
    assert_eq!(tool(1).input["required"], json!(["title"]));
    assert_eq!(
        tool(1).input["properties"]["kind"],
        json!({ "type": "string", "enum": ["a", "b"] })
    );
    assert_eq!(tool(2).input["required"], json!(["c", "d"]));
    assert_eq!(names(3), ["p", "q"]);
    assert_eq!(tool(3).description, "Given.\n\nGive either `p`, or `q`.");
    for index in 0..4 {
        let input = tool(index).input.as_object().unwrap();
        assert!(
            ["anyOf", "oneOf", "allOf"]
                .iter()
                .all(|word| !input.contains_key(*word))
        );
    }
}
