//! Execution of calls.

use serde_json::{Value, json};

use super::*;
use crate::testing::{self, Exchange, Host};

fn exchange(request: Value, response: Value) -> Exchange {
    serde_json::from_value(json!({ "request": request, "response": response })).unwrap()
}

fn call(value: Value) -> Call {
    serde_json::from_value(value).unwrap()
}

/// Scripts a request of a path and its response.
fn get(path: &str, response: Value) -> Exchange {
    let url = format!("https://api.example.com{path}");
    exchange(json!({ "method": "GET", "url": url }), response)
}

/// Returns the rows of a table.
fn rows<Row: serde::de::DeserializeOwned>(table: Value) -> Vec<Row> {
    serde_json::from_value(table).unwrap()
}

/// Runs a call that must send these requests.
fn ran(call: &Value, arguments: &Value, exchanges: Vec<Exchange>) -> Result<Value> {
    let call = self::call(call.clone());
    let host = exchanges.into_iter().fold(testing::host(), Host::expect);
    let (answer, _) = host.run(|| run(&call, None, arguments.to_string().as_bytes()));
    Ok(serde_json::from_slice(&answer?).unwrap())
}

/// Checks the URL that one parameter produces.
fn expect_url(parameter: &Value, value: &Value, path: &str, expected: &str) {
    let call = json!({ "method": "GET", "url": format!("https://api.example.com{path}"), "parameters": [parameter] });
    let answer = ran(
        &call,
        &json!({ "p": value }),
        vec![get(expected, json!({ "body": {} }))],
    );
    assert_eq!(answer.unwrap(), json!({}), "{parameter} {value}");
}

#[test]
fn query_parameters_are_written_in_every_style() {
    let list = json!(["a", "b c"]);
    let object = json!({ "x": 1, "y": "&" });
    let check = |style: &str, explode: bool, value: &Value, expected: &str| {
        let parameter =
            json!({ "name": "p", "place": "query", "style": style, "explode": explode });
        expect_url(&parameter, value, "/i", &format!("/i?{expected}"));
    };
    check("form", true, &list, "p=a&p=b%20c");
    check("form", false, &list, "p=a%2Cb%20c");
    check("form", true, &object, "x=1&y=%26");
    check("form", false, &object, "p=x%2C1%2Cy%2C%26");
    check("space_delimited", false, &list, "p=a%20b%20c");
    check("pipe_delimited", false, &list, "p=a%7Cb%20c");
    check("deep_object", true, &object, "p%5Bx%5D=1&p%5By%5D=%26");
    check(
        "deep_object",
        true,
        &json!({ "r": [{ "k": 1 }, 2], "s": ["t"] }),
        "p%5Br%5D%5B0%5D%5Bk%5D=1&p%5Br%5D%5B%5D=2&p%5Bs%5D%5B%5D=t",
    );
    check(
        "json",
        false,
        &object,
        "p=%7B%22x%22%3A1%2C%22y%22%3A%22%26%22%7D",
    );
    check("form", true, &json!(true), "p=true");
}

#[test]
fn path_parameters_are_written_in_every_style() {
    let list = json!(["a", "b/c"]);
    let object = json!({ "x": 1, "y": 2 });
    let check = |style: &str, explode: bool, value: &Value, expected: &str| {
        let parameter = json!({ "name": "p", "place": "path", "style": style, "explode": explode });
        expect_url(
            &parameter,
            value,
            "/i/{p}/end",
            &format!("/i/{expected}/end"),
        );
    };
    check("simple", false, &json!("a/b"), "a%2Fb");
    check("simple", false, &list, "a,b%2Fc");
    check("simple", false, &object, "x,1,y,2");
    check("simple", true, &object, "x=1,y=2");
    check("label", false, &list, ".a,b%2Fc");
    check("label", true, &list, ".a.b%2Fc");
    check("label", true, &object, ".x=1.y=2");
    check("matrix", false, &list, ";p=a,b%2Fc");
    check("matrix", true, &list, ";p=a;p=b%2Fc");
    check("matrix", true, &object, ";x=1;y=2");
}

#[test]
fn path_segments_keep_slashes_and_refuse_traversal() {
    let parameter = |segments: bool| json!({ "name": "p", "place": "path", "style": "simple", "segments": segments });
    let written = "/docs/read%20me.md";
    expect_url(&parameter(true), &json!("docs/read me.md"), "/{p}", written);
    for (segments, value) in [
        (true, "a/../b"),
        (true, ""),
        (false, ".."),
        (false, ""),
        (false, "."),
    ] {
        let call = json!({ "method": "GET", "url": "https://api.example.com/{p}", "parameters": [parameter(segments)] });
        let error = ran(&call, &json!({ "p": value }), Vec::new()).unwrap_err();
        assert_eq!(error.kind(), "invalid_input", "{value}");
    }
}

#[test]
fn headers_defaults_and_fixed_values_go_along() {
    let call = json!({
        "method": "GET", "url": "https://{region}.example.com/i", "fields": { "region": "eu" },
        "headers": [["accept", "application/json"]],
        "parameters": [
            { "name": "X-Ids", "argument": "ids", "place": "header", "style": "simple" },
            { "name": "v", "place": "query", "style": "form", "default": 2 },
            { "name": "n", "place": "query", "style": "form" },
        ],
    });
    let headers = json!({ "accept": "application/json", "x-ids": "1,2" });
    let sent = |host: &str| {
        let request = json!({ "method": "GET", "url": format!("https://{host}.example.com/i?v=2"), "headers": headers });
        exchange(request, json!({ "body": { "ok": true } }))
    };
    let arguments = json!({ "ids": [1, 2], "n": null });
    assert_eq!(
        ran(&call, &arguments, vec![sent("eu")]).unwrap(),
        json!({ "ok": true })
    );
    let host = testing::host().field("region", "us").expect(sent("us"));
    let (answer, _) = host.run(|| run(&self::call(call), None, arguments.to_string().as_bytes()));
    assert_eq!(answer.unwrap(), br#"{"ok":true}"#);
}

fn post(body: &Value, arguments: &Value, expected: &Value) {
    let call = json!({ "method": "POST", "url": "https://api.example.com/i", "body": body });
    let request = json!({ "method": "POST", "url": "https://api.example.com/i", "body": expected });
    let sent = vec![exchange(request, json!({ "status": 201, "body": {} }))];
    assert_eq!(ran(&call, arguments, sent).unwrap(), json!({}), "{body}");
}

#[test]
fn bodies_are_made_of_what_no_parameter_took() {
    let fields = json!([
        { "name": "plain", "carries": "plain" },
        { "name": "joined", "carries": "joined" },
        { "name": "deep", "carries": "brackets" },
        { "name": "json", "carries": "json" },
        { "name": "default", "carries": "plain", "default": "d" },
    ]);
    for (body, arguments, expected) in rows::<(Value, Value, Value)>(json!([
        [
            { "media": "json", "defaults": { "c": 3 }, "renamed": { "a_b": "a.b" } },
            { "a_b": 1, "x": null },
            { "a.b": 1, "c": 3, "x": null },
        ],
        [{ "media": "json", "argument": "body" }, { "body": [1, 2] }, [1, 2]],
        [{ "media": "json", "required": true }, {}, {}],
        [
            { "media": "text", "argument": "body", "media_type": "text/plain" },
            { "body": "hi" },
            "hi",
        ],
        [
            { "media": "form", "fields": fields },
            { "plain": [1, 2], "joined": [1, 2], "deep": { "k": ["v"] }, "json": { "k": 1 } },
            "plain=1&plain=2&joined=1%2C2&deep%5Bk%5D%5B%5D=v&json=%7B%22k%22%3A1%7D&default=d",
        ],
    ])) {
        post(&body, &arguments, &expected);
    }
}

#[test]
fn files_go_by_handle() {
    let file = json!({ "name": "a.txt", "mimetype": "text/plain", "s3key": "f1" });
    let fields =
        json!([{ "name": "note", "carries": "plain" }, { "name": "file", "carries": "file" }]);
    let call = |body: &Value| json!({ "method": "POST", "url": "https://api.example.com/i", "body": body });
    let whole = json!({ "media": "file", "argument": "body" });
    for (body, arguments) in rows::<(Value, Value)>(json!([
        [{ "media": "multipart", "fields": fields }, { "note": "n", "file": [file] }],
        [whole, { "body": file }],
    ])) {
        let sent = exchange(
            json!({ "method": "POST", "url": "https://api.example.com/i" }),
            json!({ "body": {} }),
        );
        let host = testing::host()
            .file("f1", "a.txt", "text/plain", b"text")
            .expect(sent);
        let call = self::call(call(&body));
        let (answer, _) = host.run(|| run(&call, None, arguments.to_string().as_bytes()));
        assert_eq!(answer.unwrap(), b"{}");
    }
    let refused = ran(&call(&whole), &json!({ "body": "no" }), Vec::new());
    assert_eq!(refused.unwrap_err().kind(), "invalid_input");
}

#[test]
fn every_answer_is_told_as_an_object() {
    let told = |answer: &Value, response: Value| {
        let call = json!({ "method": "GET", "url": "https://api.example.com/i", "answer": answer });
        ran(&call, &json!({}), vec![get("/i", response)])
    };
    for (answer, response, expected) in rows::<(Value, Value, Value)>(json!([
        [{}, { "body": { "a": 1 } }, { "a": 1 }],
        [{}, { "body": [1] }, { "items": [1] }],
        [{}, { "body": " [1, 2] " }, { "items": [1, 2] }],
        [{}, { "body": "[1" }, { "text": "[1" }],
        [{}, { "body": "7" }, { "value": 7 }],
        [{}, { "body": "hello" }, { "text": "hello" }],
        [{}, { "status": 204 }, {}],
        [{ "pick": "/data/0" }, { "body": { "data": [{ "b": 2 }] } }, { "b": 2 }],
    ])) {
        assert_eq!(told(&answer, response).unwrap(), expected);
    }
    let png = json!({ "headers": { "content-type": "image/png" }, "body": "png" });
    let answer = told(&json!({ "file": true }), png).unwrap();
    assert_eq!(answer["file"]["mimetype"], "image/png", "{answer}");
    let missing = json!({ "status": 404, "body": { "message": "no such item" } });
    let refused = told(&json!({}), missing).unwrap_err();
    assert_eq!((refused.kind(), refused.status()), ("not_found", Some(404)));
    assert!(refused.text().contains("no such item"), "{refused}");
}

fn paged(next: &Value, items: &str) -> Value {
    json!({
        "method": "GET", "url": "https://api.example.com/i",
        "parameters": [{ "name": "page", "place": "query", "style": "form" }],
        "pages": { "next": next, "items": items, "argument": "max_items" },
    })
}

#[test]
fn pages_are_read_until_there_is_enough() {
    let page = |link: &str, items: Value| json!({ "headers": { "link": format!("<https://api.example.com/{link}>; rel=\"next\"") }, "body": items });
    let link = paged(&json!({ "by": "link" }), "");
    let sent = vec![
        get("/i", page("i?page=2", json!([1, 2]))),
        get("/i?page=2", page("i?page=3", json!([3, 4]))),
    ];
    assert_eq!(
        ran(&link, &json!({ "max_items": 3 }), sent).unwrap(),
        json!({ "items": [1, 2, 3] })
    );
    let sent = vec![get("/i", page("i?page=2&other=x", json!([1])))];
    let one = ran(&link, &json!({}), sent).unwrap();
    assert_eq!(
        one,
        json!({ "items": [1], "next": { "page": 2 } }),
        "without the argument one page, and how to go on"
    );

    let cursor = json!({ "by": "cursor", "place": "/next", "parameter": "page" });
    let offset = json!({ "by": "offset", "parameter": "page" });
    let number = json!({ "by": "page", "parameter": "page", "first": 1 });
    let goes_on = json!([{ "data": [1, 2], "next": "b" }, { "data": [3, 4], "next": "c" }]);
    let ends = json!([
        { "data": [1], "next": "b", "total": 2 },
        { "data": [2], "next": null, "total": 2 },
    ]);
    let all = json!({ "data": [1, 2], "next": null, "total": 2 });
    for (next, max_items, second, pages, told) in
        rows::<(Value, u64, String, [Value; 2], Value)>(json!([
            [cursor, 10, "b", ends, all],
            [cursor, 4, "b", goes_on, { "data": [1, 2, 3, 4], "next": "c" }],
            // A cursor after items that were left out would skip them.
            [cursor, 3, "b", goes_on, { "data": [1, 2, 3] }],
            [offset, 10, "2", [{ "data": [1, 2] }, { "data": [] }], { "data": [1, 2] }],
            [number, 2, "2", [{ "data": [1] }, { "data": [2] }], { "data": [1, 2] }],
        ]))
    {
        let [first_page, second_page] = pages;
        let sent = vec![
            get("/i", json!({ "body": first_page })),
            get(&format!("/i?page={second}"), json!({ "body": second_page })),
        ];
        let arguments = json!({ "max_items": max_items });
        let read = ran(&paged(&next, "/data"), &arguments, sent).unwrap();
        assert_eq!(read, told, "{next}");
    }
}

#[test]
fn an_application_that_repeats_its_page_ends() {
    let url = paged(&json!({ "by": "url", "place": "/next" }), "/data");
    let page = json!({ "body": { "data": [1], "next": "https://api.example.com/i" } });
    let sent = vec![get("/i", page.clone()), get("/i", page)];
    let all = ran(&url, &json!({ "max_items": 10 }), sent).unwrap();
    assert_eq!(all["data"], json!([1, 1]));
}

#[test]
fn graphql_variables_and_errors_are_passed_on() {
    let call = json!({
        "method": "POST", "url": "https://api.example.com/graphql", "answer": { "pick": "/issue" },
        "body": { "media": "graphql", "document": "query($id: ID!) { issue(id: $id) { title } }" },
    });
    let request = json!({
        "method": "POST", "url": "https://api.example.com/graphql",
        "body": { "query": "query($id: ID!) { issue(id: $id) { title } }", "variables": { "id": 7 } },
    });
    let sent = |body: Value| vec![exchange(request.clone(), json!({ "body": body }))];
    for body in [
        json!({ "data": { "issue": { "title": "t" } } }),
        json!({ "data": { "issue": { "title": "t" } }, "errors": null }),
    ] {
        let good = ran(&call, &json!({ "id": 7 }), sent(body));
        assert_eq!(good.unwrap(), json!({ "title": "t" }));
    }
    let errors = json!({ "data": null, "errors": [{ "message": "no", "extensions": { "code": "FORBIDDEN" } }] });
    assert_eq!(
        ran(&call, &json!({ "id": 7 }), sent(errors))
            .unwrap_err()
            .kind(),
        "forbidden"
    );
}

#[test]
fn partial_graphql_response_carries_its_errors() {
    let call = json!({
        "method": "POST", "url": "https://api.example.com/graphql", "answer": { "pick": "/issue" },
        "body": { "media": "graphql", "document": "query { issue { title author { name } } }" },
    });
    let sent = |body: Value| {
        let request = json!({ "method": "POST", "url": "https://api.example.com/graphql" });
        vec![exchange(request, json!({ "body": body }))]
    };
    let errors = json!([{ "message": "not yours", "path": ["issue", "author"] }]);
    let partial =
        json!({ "data": { "issue": { "title": "t", "author": null } }, "errors": errors });
    let told = ran(&call, &json!({}), sent(partial)).unwrap();
    assert_eq!(
        told,
        json!({ "title": "t", "author": null, "errors": errors })
    );
    let nothing = json!({ "data": { "issue": null }, "errors": errors });
    assert!(
        ran(&call, &json!({}), sent(nothing))
            .unwrap_err()
            .text()
            .contains("not yours")
    );
}

#[test]
fn graphql_pages_follow_the_cursor() {
    let call = json!({
        "method": "POST", "url": "https://api.example.com/graphql", "answer": { "pick": "/items" },
        "body": { "media": "graphql", "document": "query", "renamed": { "in_": "in" } },
        "pages": { "next": { "by": "cursor", "place": "/pageInfo/endCursor", "parameter": "after" }, "items": "/nodes", "argument": "max_items" },
    });
    let page = |variables: Value, nodes: Value, more: bool| {
        let body = json!({ "query": "query", "variables": variables });
        let request =
            json!({ "method": "POST", "url": "https://api.example.com/graphql", "body": body });
        let info = json!({ "hasNextPage": more, "endCursor": "c" });
        exchange(
            request,
            json!({ "body": { "data": { "items": { "nodes": nodes, "pageInfo": info } } } }),
        )
    };
    let sent = vec![
        page(json!({ "in": "x" }), json!([1, 2]), true),
        page(json!({ "in": "x", "after": "c" }), json!([3]), false),
    ];
    let told = ran(&call, &json!({ "in_": "x", "max_items": 10 }), sent).unwrap();
    assert_eq!(told["nodes"], json!([1, 2, 3]));
}

#[test]
fn a_file_goes_together_with_its_description() {
    let file = json!({ "name": "a.txt", "mimetype": "text/plain", "s3key": "f1" });
    let call = json!({
        "method": "POST", "url": "https://api.example.com/up",
        "body": { "media": "related", "file": "file", "renamed": { "n": "name" } },
    });
    let request = json!({
        "method": "POST", "url": "https://api.example.com/up", "body": { "blob": "file_1" },
        "headers": { "content-type": "multipart/related; boundary=part-0102030405060708090a0b0c0d0e0f10" },
    });
    let host = testing::host().file("f1", "a.txt", "text/plain", b"hello");
    let host = host.expect(exchange(request, json!({ "body": {} })));
    let arguments = json!({ "n": "A", "file": file }).to_string();
    let (answer, host) = host.run(|| run(&self::call(call), None, arguments.as_bytes()));
    assert_eq!(answer.unwrap(), b"{}");
    let boundary = "--part-0102030405060708090a0b0c0d0e0f10";
    let expected = format!(
        "{boundary}\r\ncontent-type: application/json; charset=utf-8\r\n\r\n{{\"name\":\"A\"}}\r\n\
         {boundary}\r\ncontent-type: text/plain\r\n\r\nhello\r\n{boundary}--\r\n"
    );
    assert_eq!(host.bytes_of("file_1").unwrap(), expected.as_bytes());
}

const MCP_URL: &str = "https://mcp.example.com/mcp";

/// Scripts one message to the server with the expected headers, and its response.
fn message(method: &str, headers: Value, response: Value) -> Exchange {
    let body = (method != "DELETE").then(|| match method {
        "initialize" => json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "toolkit-sdk", "version": env!("CARGO_PKG_VERSION") } } }),
        "tools/call" => {
            json!({ "jsonrpc": "2.0", "id": 2, "method": method, "params": { "name": "add", "arguments": { "a": 1 } } })
        }
        notification => json!({ "jsonrpc": "2.0", "method": notification }),
    });
    let http = if method == "DELETE" { "DELETE" } else { "POST" };
    let mut request = json!({ "method": http, "url": MCP_URL, "headers": headers });
    if let Some(body) = body {
        request["body"] = body;
    }
    exchange(request, response)
}

/// Returns the result of the tool `add` of a server without sessions that responds like this.
fn converted(answer: Value) -> Result<Value> {
    let call =
        json!({ "method": "POST", "url": MCP_URL, "body": { "media": "mcp", "tool": "add" } });
    let hello = json!({ "body": { "jsonrpc": "2.0", "id": 1, "result": { "protocolVersion": "2025-03-26" } } });
    let both = json!({ "accept": "application/json, text/event-stream" });
    let version = json!({ "mcp-protocol-version": "2025-03-26" });
    let sent = vec![
        message("initialize", both, hello),
        message("tools/call", version, answer),
    ];
    ran(&call, &json!({ "a": 1 }), sent)
}

fn result_of(result: Value) -> Result<Value> {
    converted(json!({ "body": { "jsonrpc": "2.0", "id": 2, "result": result } }))
}

#[test]
fn mcp_tool_is_called_in_own_session() {
    let body = json!({ "media": "mcp", "tool": "add", "renamed": { "a_": "a" } });
    let call = json!({ "method": "POST", "url": MCP_URL, "body": body });
    let event = |value: Value| format!("event: message\r\ndata: {value}\r\n\r\n");
    let stream = |events: String, session: bool| {
        let mut headers = json!({ "content-type": "text/event-stream; charset=utf-8" });
        if session {
            headers["mcp-session-id"] = "s1".into();
        }
        json!({ "headers": headers, "body": events })
    };
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "result": { "protocolVersion": "2025-06-18" } });
    let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": {} });
    let sum = json!({ "jsonrpc": "2.0", "id": 2, "result": { "content": [{ "type": "text", "text": "1" }], "structuredContent": { "sum": 1 } } });
    let session = json!({ "mcp-session-id": "s1", "mcp-protocol-version": "2025-06-18" });
    let sent = vec![
        message("initialize", json!({}), stream(event(hello), true)),
        message(
            "notifications/initialized",
            session.clone(),
            json!({ "status": 202 }),
        ),
        message(
            "tools/call",
            session.clone(),
            stream(event(progress) + ": ping\r\n\r\n" + &event(sum), false),
        ),
        message("DELETE", session, json!({ "status": 405 })),
    ];
    assert_eq!(
        ran(&call, &json!({ "a_": 1 }), sent).unwrap(),
        json!({ "sum": 1 })
    );
}

#[test]
fn mcp_tool_content_becomes_output() {
    let text = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
    assert_eq!(
        result_of(text("hello")).unwrap(),
        json!({ "text": "hello" })
    );
    assert_eq!(result_of(text(r#"{"a":1}"#)).unwrap(), json!({ "a": 1 }));
    assert_eq!(result_of(json!({ "content": [] })).unwrap(), json!({}));
    let parts = json!({ "content": [
        { "type": "text", "text": "a" }, { "type": "text", "text": "b" },
        { "type": "image", "data": "cG5n", "mimeType": "image/png" },
        { "type": "resource_link", "uri": "file:///x", "name": "x" },
    ] });
    let told = result_of(parts).unwrap();
    assert_eq!(
        (&told["text"], &told["files"][0]["mimetype"]),
        (&json!("a\n\nb"), &json!("image/png"))
    );
    assert_eq!(told["resources"][0]["name"], "x");
}

#[test]
fn mcp_parts_stay_beside_structured_content() {
    let result = |structured: Value, content: Value| {
        result_of(json!({ "content": content, "structuredContent": structured })).unwrap()
    };
    let text = |text: &str| json!([{ "type": "text", "text": text }]);
    let image = json!([{ "type": "image", "data": "cG5n", "mimeType": "image/png" }]);
    let told = result(json!({ "width": 3 }), image.clone());
    assert_eq!(
        (&told["width"], &told["files"][0]["mimetype"]),
        (&json!(3), &json!("image/png"))
    );
    let told = result(json!({ "files": 3 }), image);
    assert_eq!(
        (&told["files"], told["content_files"].is_array()),
        (&json!(3), true)
    );
    let items = json!([{ "type": "text", "text": "1" }, { "type": "text", "text": "2" }]);
    let unknown = json!([{ "type": "new", "x": 1 }]);
    for (structured, content, expected) in rows::<(Value, Value, Value)>(json!([
        [[{ "id": 1 }], text("one order"), { "items": [{ "id": 1 }], "text": "one order" }],
        [{ "result": null }, text("2 orders"), { "result": null, "text": "2 orders" }],
        [{ "result": "hi" }, text("hi"), { "result": "hi" }],
        [{ "result": [1, 2] }, items, { "result": [1, 2] }],
        [{ "a": 1, "b": 2 }, text("{\"b\": 2, \"a\": 1}"), { "a": 1, "b": 2 }],
        [7, null, { "value": 7 }],
        [null, text("hello"), { "text": "hello" }],
        [{ "a": 1 }, unknown, { "a": 1, "content": unknown }],
    ])) {
        assert_eq!(result(structured, content), expected);
    }
}

#[test]
fn mcp_failure_keeps_its_structured_reason() {
    let reason = json!({ "reason": "quota exceeded", "limit": 5 });
    let items = json!({ "items": [1] });
    for (structured, content, text, detail) in [
        (reason.clone(), json!([]), "quota exceeded", Some(&reason)),
        (json!([1]), Value::Null, "[1]", Some(&items)),
        (
            Value::Null,
            Value::Null,
            "the tool failed without a message",
            None,
        ),
    ] {
        let result =
            json!({ "content": content, "structuredContent": structured, "isError": true });
        let error = result_of(result).unwrap_err();
        assert_eq!((error.text(), error.detail()), (text, detail));
    }
}

#[test]
fn mcp_response_is_read_whatever_its_type() {
    let message = json!({ "jsonrpc": "2.0", "id": 2, "result": { "content": null } });
    for (media_type, body) in [
        ("Text/Event-Stream", format!("data: {message}\n\n")),
        ("application/json", format!("data: {message}\n\n")),
        ("text/event-stream", message.to_string()),
        ("application/json", format!("\u{feff}{message}")),
    ] {
        let headers = json!({ "content-type": media_type });
        let found = converted(json!({ "headers": headers, "body": body }));
        assert_eq!(found.unwrap(), json!({}), "{media_type}: {body}");
    }
}

#[test]
fn mcp_tool_errors_keep_their_message() {
    let failed = result_of(
        json!({ "isError": true, "content": [{ "type": "text", "text": "no such book" }] }),
    );
    assert_eq!(failed.as_ref().unwrap_err().text(), "no such book");
    let error = json!({ "jsonrpc": "2.0", "id": 2, "error": { "code": -32602, "message": "`a` is no number" } });
    let refused = converted(json!({ "body": error })).unwrap_err();
    assert_eq!(
        (refused.kind(), refused.text()),
        ("invalid_input", "`a` is no number")
    );
    let unauthorized =
        converted(json!({ "status": 401, "body": { "message": "who?" } })).unwrap_err();
    assert_eq!(unauthorized.kind(), "unauthorized");
    for body in [
        json!("nothing"),
        json!({ "jsonrpc": "2.0", "id": 7, "result": {} }),
    ] {
        assert_eq!(
            converted(json!({ "body": body })).unwrap_err().kind(),
            "upstream_error"
        );
    }
}

#[test]
fn imported_calls_use_client_headers_and_errors() {
    const OTHER_CLIENT: crate::http::Client = crate::http::Client::new("https://other.example")
        .headers(&[("x-version", "2")])
        .errors(|response| {
            response
                .bytes()
                .starts_with(b"no")
                .then(|| ToolError::not_found("it said no"))
        });
    let call = call(json!({ "method": "GET", "url": "https://api.example.com/i" }));
    let sent = exchange(
        json!({ "method": "GET", "url": "https://api.example.com/i", "headers": { "x-version": "2" } }),
        json!({ "body": "no" }),
    );
    let (answer, _) = testing::host()
        .expect(sent)
        .run(|| run(&call, Some(OTHER_CLIENT), b"{}"));
    assert_eq!(answer.unwrap_err().kind(), "not_found");
}
