//! Tests of the other kinds of descriptions, from the command to the requests of the real component
//! in the production sandbox.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on ends where it stands"
)]

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};

/// Cache with compiled components, shared by all tests.
const CACHE_FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tmp/cache");

fn toolkit(folder: &Path, arguments: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolkit"));
    command
        .args(arguments)
        .current_dir(folder)
        .env("XDG_CACHE_HOME", CACHE_FOLDER);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{arguments:?}\n{}{said}",
        String::from_utf8_lossy(&output.stdout)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Imports a description and runs cases of its tools.
fn imported(kind: &str, description: &str, more: &[&str], cases: &[(&str, Value)]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("description"), description).unwrap();
    let arguments = ["import", kind, "description", "--slug", "shelf", "--json"];
    let made = toolkit(folder.path(), &[&arguments[..], more].concat());
    for (number, (tool, case)) in cases.iter().enumerate() {
        let cases = folder.path().join("shelf/cases").join(tool);
        fs::create_dir_all(&cases).unwrap();
        fs::write(cases.join(format!("case_{number}.json")), case.to_string()).unwrap();
    }
    let checked = toolkit(folder.path(), &["check", "shelf", "--json"]);
    let passed = checked[0]["cases"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|case| case["passed"] == true)
        .count();
    assert_eq!(passed, cases.len(), "{checked:#}");
    made
}

fn exchange(method: &str, url: &str, body: Value, response: Value) -> Value {
    let mut request = json!({ "method": method, "url": url });
    if !body.is_null() {
        request["body"] = body;
    }
    json!({ "request": request, "response": response })
}

#[test]
fn discovery_document_tools_call_its_methods() {
    let document = json!({
        "kind": "discovery#restDescription", "name": "shelf", "title": "Shelf", "description": "Keeps books.",
        "rootUrl": "https://shelf.example.com/", "servicePath": "",
        "parameters": { "fields": { "type": "string", "location": "query" } },
        "auth": { "oauth2": { "scopes": { "https://example.com/auth/shelf": {} } } },
        "schemas": {
            "Book": { "type": "object", "properties": { "title": { "type": "string" }, "id": { "type": "string", "readOnly": true } } },
            "Books": { "type": "object", "properties": {
                "books": { "type": "array", "items": { "$ref": "Book" } }, "nextPageToken": { "type": "string" } } },
        },
        "resources": { "books": { "methods": {
            "list": { "id": "shelf.books.list", "path": "v1/{+parent}/books", "httpMethod": "GET", "response": { "$ref": "Books" },
                "parameters": { "parent": { "type": "string", "location": "path", "required": true }, "pageToken": { "type": "string", "location": "query" } } },
            "create": { "id": "shelf.books.create", "path": "v1/books", "httpMethod": "POST", "request": { "$ref": "Book" }, "response": { "$ref": "Book" },
                "mediaUpload": { "accept": ["*/*"], "protocols": { "simple": { "multipart": true, "path": "/upload/v1/books" } } } },
        } } },
    });
    let page = |url: &str, body: Value| exchange("GET", url, Value::Null, json!({ "body": body }));
    let books = "https://shelf.example.com/v1/rooms/7/books";
    let file = json!({ "name": "a.txt", "mimetype": "text/plain", "s3key": "f" });
    let cases = [
        (
            "books_list",
            json!({
                "arguments": { "parent": "rooms/7", "fields": "books(title)", "max_items": 3 },
                "exchanges": [
                    page(&format!("{books}?fields=books%28title%29"), json!({ "books": [{ "title": "a" }], "nextPageToken": "p" })),
                    page(&format!("{books}?fields=books%28title%29&pageToken=p"), json!({ "books": [{ "title": "b" }] })),
                ],
                "data": { "books": [{ "title": "a" }, { "title": "b" }] },
            }),
        ),
        (
            "books_list",
            json!({
                "arguments": { "parent": "rooms/../7" }, "exchanges": [], "error": { "kind": "invalid_input" },
            }),
        ),
        (
            "books_create",
            json!({
                "arguments": { "title": "c" },
                "exchanges": [exchange("POST", "https://shelf.example.com/v1/books", json!({ "title": "c" }), json!({ "body": { "id": "1" } }))],
                "data": { "id": "1" },
            }),
        ),
        (
            "books_create_media",
            json!({
                "arguments": { "title": "d", "file": file }, "files": [{ "id": "f", "name": "a.txt", "mimetype": "text/plain", "text": "hello" }],
                "exchanges": [exchange("POST", "https://shelf.example.com/upload/v1/books?uploadType=multipart", Value::Null, json!({ "body": { "id": "2" } }))],
                "data": { "id": "2" },
            }),
        ),
    ];
    let made = imported("discovery", &document.to_string(), &[], &cases);
    assert_eq!(made["operations"]["books.list"], "SHELF_BOOKS_LIST");
}

#[test]
fn graphql_tools_select_relevant_fields() {
    let schema = "type Query { books(first: Int, after: String): Books } type Book { id: ID! title: String next: Book } \
                  type Books { nodes: [Book] pageInfo: Info } type Info { hasNextPage: Boolean endCursor: String } \
                  type Mutation { add(book: New!): Book } input New { title: String! }";
    let url = "https://api.example.com/graphql";
    let books = "query books($first: Int, $after: String) { books(first: $first, after: $after) \
                 { nodes { id title } pageInfo { hasNextPage endCursor } } }";
    let page = |variables: Value, nodes: Value, info: Value| {
        let answer =
            json!({ "body": { "data": { "books": { "nodes": nodes, "pageInfo": info } } } });
        exchange(
            "POST",
            url,
            json!({ "query": books, "variables": variables }),
            answer,
        )
    };
    let add = "mutation add($book: New!) { add(book: $book) { id title } }";
    let adds = |answer: Value| {
        let body = json!({ "query": add, "variables": { "book": { "title": "c" } } });
        vec![exchange("POST", url, body, json!({ "body": answer }))]
    };
    let arguments = json!({ "book": { "title": "c" } });
    let more = json!({ "hasNextPage": true, "endCursor": "x" });
    let last = json!({ "hasNextPage": false, "endCursor": "y" });
    let cases = [
        (
            "books",
            json!({
                "arguments": { "first": 1, "max_items": 9 },
                "exchanges": [
                    page(json!({ "first": 1 }), json!([{ "id": "1" }]), more),
                    page(json!({ "first": 1, "after": "x" }), json!([{ "id": "2" }]), last.clone()),
                ],
                "data": { "nodes": [{ "id": "1" }, { "id": "2" }], "pageInfo": last },
            }),
        ),
        (
            "add",
            json!({
                "arguments": arguments, "exchanges": adds(json!({ "data": { "add": { "id": "3" } } })), "data": { "id": "3" },
            }),
        ),
        (
            "add",
            json!({
                "arguments": arguments, "error": { "kind": "forbidden", "message": "not yours" },
                "exchanges": adds(json!({ "data": null, "errors": [{ "message": "not yours", "extensions": { "code": "FORBIDDEN" } }] })),
            }),
        ),
    ];
    imported("graphql", schema, &["--server", url], &cases);
}

#[test]
fn mcp_tools_are_called_on_their_server() {
    let url = "https://mcp.example.com/mcp";
    let tools = json!({ "server": url, "tools": [{
        "name": "find", "inputSchema": { "type": "object", "properties": { "q": { "type": "string" } } },
        "annotations": { "readOnlyHint": true },
    }] });
    let talk = |result: Value| {
        let mut greeting = json!({ "body": { "jsonrpc": "2.0", "id": 1, "result": { "protocolVersion": "2025-06-18" } } });
        greeting["headers"] = json!({ "mcp-session-id": "s" });
        let message = json!({ "jsonrpc": "2.0", "id": 2, "result": result });
        let stream = json!({ "headers": { "content-type": "text/event-stream" }, "body": format!("event: message\ndata: {message}\n\n") });
        let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "find", "arguments": { "q": "x" } } });
        let mut called = exchange("POST", url, call, stream);
        called["request"]["headers"] = json!({ "mcp-session-id": "s" });
        json!([
            exchange("POST", url, Value::Null, greeting),
            exchange("POST", url, Value::Null, json!({ "status": 202 })),
            called,
            exchange("DELETE", url, Value::Null, json!({ "status": 204 })),
        ])
    };
    let text = |text: &str| json!([{ "type": "text", "text": text }]);
    let cases = [
        (
            "find",
            json!({
                "arguments": { "q": "x" }, "exchanges": talk(json!({ "content": text("found") })), "data": { "text": "found" },
            }),
        ),
        (
            "find",
            json!({
                "arguments": { "q": "x" }, "exchanges": talk(json!({ "isError": true, "content": text("no such thing") })),
                "error": { "kind": "upstream_error", "message": "no such thing" },
            }),
        ),
    ];
    imported("mcp", &tools.to_string(), &["--auth", "bearer"], &cases);
}
