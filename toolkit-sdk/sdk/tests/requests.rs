//! Requests that the builder sends, and the handling of their responses.

#![expect(
    clippy::unwrap_used,
    reason = "what goes wrong in a helper of a test fails the test"
)]

use std::time::Duration;

use toolkit_sdk::http::Items;
use toolkit_sdk::prelude::*;
use toolkit_sdk::testing::{self, Exchange, Host};

const API: Client = Client::new("https://api.example.com").headers(&[("x-version", "2")]);

fn exchange(request: Value, response: Value) -> Exchange {
    serde_json::from_value(json!({ "request": request, "response": response })).unwrap()
}

/// Scripts `(url, response)` as GET requests.
fn gets(exchanges: &[(&str, Value)]) -> Host {
    exchanges
        .iter()
        .fold(testing::host(), |host, (url, response)| {
            host.expect(exchange(
                json!({ "method": "GET", "url": url }),
                response.clone(),
            ))
        })
}

fn run<T>(host: Host, code: impl FnOnce() -> T) -> T {
    host.run(code).0
}

/// Returns the error of one GET request with this response.
fn error_of(response: Value) -> ToolError {
    run(gets(&[("https://api.example.com/x", response)]), || {
        API.get("/x").send()
    })
    .unwrap_err()
}

#[test]
fn queries_and_paths_are_encoded() {
    let url = "https://api.example.com/a/x%2Fy%3F/docs/read%20me.md?q=a%26b%3D%C3%BC&tag=1&tag=2&ids=3%2C4";
    let sent = run(gets(&[(url, json!({}))]), || {
        API.get("/a/{id}/{file}")
            .path("id", "x/y?")
            .path_segments("file", "docs/read me.md")
            .query("q", "a&b=ü")
            .query_each("tag", [1, 2])
            .query_list("ids", [3, 4], ",")
            .query_list("none", Vec::<String>::new(), ",")
            .query_opt("absent", None::<u8>)
            .send()
    });
    assert_eq!(sent.unwrap().status(), 200);
}

#[test]
fn an_address_with_a_hole_is_not_sent() {
    let error = run(testing::host(), || API.get("/items/{id}").send()).unwrap_err();
    assert!(
        error.kind() == "internal" && error.text().contains("needs `id`"),
        "{error}"
    );
    let error = run(testing::host(), || API.get("/items").path("id", 1).send()).unwrap_err();
    assert!(error.text().contains("has no `{id}`"), "{error}");
    for path in ["../secret", "a/../b", "a//b", ""] {
        let error = run(testing::host(), || {
            API.get("/f/{path}").path_segments("path", path).send()
        })
        .unwrap_err();
        assert_eq!(error.kind(), "invalid_input", "{path}");
    }
}

#[test]
fn a_base_takes_fields_of_the_account() {
    const SITE_CLIENT: Client = Client::new("https://{site}.example.org/api");
    let host = gets(&[("https://acme.example.org/api/me", json!({}))]).field("site", "acme");
    run(host, || SITE_CLIENT.get("/me").send()).unwrap();
}

#[test]
fn json_form_and_multipart_bodies_are_sent() {
    let url = "https://api.example.com/x";
    let post = |body: Value, content_type: &str| {
        exchange(
            json!({ "method": "POST", "url": url, "headers": { "content-type": content_type, "X-Version": "2" }, "body": body }),
            json!({ "status": 201 }),
        )
    };
    run(
        testing::host().expect(post(json!({ "a": [1] }), "application/json")),
        || API.post("/x").json(&json!({ "a": [1] })).send(),
    )
    .unwrap();
    let form = testing::host().expect(post(
        json!("a=1&b=x%20y"),
        "application/x-www-form-urlencoded",
    ));
    run(form, || {
        API.post("/x").form([("a", "1"), ("b", "x y")]).send()
    })
    .unwrap();
    let parts =
        json!({ "title": "T", "file": { "filename": "a.txt", "content": { "blob": "f1" } } });
    let host = testing::host()
        .file("f1", "a.txt", "text/plain", b"hello")
        .expect(exchange(
            json!({ "method": "POST", "url": url, "body": parts }),
            json!({}),
        ));
    run(host, || {
        let file: File = serde_json::from_value(
            json!({ "name": "a.txt", "mimetype": "text/plain", "s3key": "f1" }),
        )
        .unwrap();
        API.post("/x")
            .multipart(
                Multipart::new()
                    .text("title", "T")
                    .text_opt("none", None::<u8>)
                    .file("file", &file),
            )
            .send()
    })
    .unwrap();
}

#[test]
fn every_status_has_its_kind() {
    for (status, kind) in [
        (400, "invalid_input"),
        (401, "unauthorized"),
        (403, "forbidden"),
        (404, "not_found"),
        (409, "conflict"),
        (418, "upstream_error"),
        (422, "invalid_input"),
        (429, "rate_limited"),
        (500, "upstream_error"),
        (503, "upstream_unavailable"),
    ] {
        let error = error_of(json!({ "status": status }));
        assert_eq!((error.kind(), error.status()), (kind, Some(status)));
    }
}

#[test]
fn error_message_is_found_in_common_places() {
    for body in [
        json!({ "message": "no such item" }),
        json!({ "error": { "message": "no such item", "code": 7 } }),
        json!({ "error": "not_found", "error_description": "no such item" }),
        json!({ "errors": [{ "message": "no such item" }] }),
        json!({ "errors": ["no such item"] }),
        json!({ "error": "no such item" }),
        json!({ "type": "about:blank", "title": "Missing", "detail": "no such item" }),
        json!("no such item"),
    ] {
        let error = error_of(json!({ "status": 404, "body": body }));
        assert_eq!(
            error.text(),
            "the provider responded 404: no such item",
            "{body}"
        );
    }
    let html = json!({ "status": 502, "headers": { "content-type": "text/html" }, "body": "<html>Bad gateway</html>" });
    assert_eq!(error_of(html).text(), "the provider responded 502");
    let body = json!({ "message": "no", "code": 12 });
    assert_eq!(
        error_of(json!({ "status": 400, "body": body })).detail(),
        Some(&body)
    );
}

#[test]
fn hints_to_wait_are_kept_where_waiting_helps() {
    let wait = |response: Value| error_of(response).wait();
    let seconds = |number| Some(Duration::from_secs(number));
    assert_eq!(
        wait(json!({ "status": 429, "headers": { "retry-after": "7" } })),
        seconds(7)
    );
    // The scripted clock is fixed at 1767225600.
    assert_eq!(
        wait(json!({ "status": 429, "headers": { "x-ratelimit-reset": "1767225630" } })),
        seconds(30)
    );
    assert_eq!(
        wait(
            json!({ "status": 503, "headers": { "retry-after": "Thu, 01 Jan 2026 00:01:00 GMT" } })
        ),
        seconds(60)
    );
    assert_eq!(
        wait(json!({ "status": 429, "headers": { "retry-after-ms": "250" } })),
        Some(Duration::from_millis(250))
    );
    assert_eq!(
        wait(json!({ "status": 404, "headers": { "retry-after": "7" } })),
        None
    );
    let exhausted = json!({ "status": 403, "headers": { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "60" } });
    let error = error_of(exhausted);
    assert_eq!((error.kind(), error.wait()), ("rate_limited", seconds(60)));
    for (reason, kind) in [
        ("userRateLimitExceeded", "rate_limited"),
        ("insufficientPermissions", "forbidden"),
    ] {
        let body = json!({ "error": { "code": 403, "errors": [{ "reason": reason }] } });
        assert_eq!(
            error_of(json!({ "status": 403, "body": body })).kind(),
            kind,
            "{reason}"
        );
    }
}

#[test]
fn failed_request_keeps_its_error_kind() {
    for (failure, kind) in [
        ("denied", "denied"),
        ("timeout", "upstream_unavailable"),
        ("dns", "upstream_unavailable"),
        ("credential", "unauthorized"),
        ("too_large", "upstream_error"),
        ("limit", "internal"),
    ] {
        assert_eq!(
            error_of(json!({ "error": failure })).kind(),
            kind,
            "{failure}"
        );
    }
}

#[test]
fn error_rule_applies_to_status_200() {
    const CHAT_CLIENT: Client = Client::new("https://chat.example.com").errors(|response| {
        let body: Value = response.json().ok()?;
        let code = body.get("error")?.as_str()?;
        (body["ok"] == false)
            .then(|| ToolError::new(code.to_owned(), format!("the application says {code}")))
    });
    let no = json!({ "body": { "ok": false, "error": "channel_not_found" } });
    let error = run(gets(&[("https://chat.example.com/post", no)]), || {
        CHAT_CLIENT.get("/post").send()
    })
    .unwrap_err();
    assert_eq!(error.kind(), "channel_not_found");
    let yes = json!({ "body": { "ok": true } });
    run(gets(&[("https://chat.example.com/post", yes)]), || {
        CHAT_CLIENT.get("/post").send()
    })
    .unwrap();
}

#[test]
fn several_requests_answer_in_their_order() {
    let host = gets(&[
        ("https://api.example.com/1", json!({ "body": { "n": 1 } })),
        ("https://api.example.com/3", json!({ "status": 404 })),
    ]);
    let answers = run(host, || {
        http::send_all([
            API.get("/1"),
            API.get("/{id}").path("id", ".."),
            API.get("/3"),
        ])
    });
    assert_eq!(
        answers[0].as_ref().unwrap().json::<Value>().unwrap(),
        json!({ "n": 1 })
    );
    assert_eq!(answers[1].as_ref().unwrap_err().kind(), "invalid_input");
    assert_eq!(answers[2].as_ref().unwrap_err().kind(), "not_found");
}

fn numbers(items: Items<u64>) -> Result<Vec<u64>> {
    items.collect()
}

#[test]
fn pages_follow_the_link_header() {
    let next = "<https://api.example.com/i?page=2>; rel=\"next\"";
    let host = gets(&[
        (
            "https://api.example.com/i?sort=up",
            json!({ "headers": { "Link": next }, "body": [1, 2] }),
        ),
        ("https://api.example.com/i?page=2", json!({ "body": [3] })),
    ]);
    let read = run(host, || {
        numbers(API.get("/i").query("sort", "up").items(Paging::link(), 10))
    });
    assert_eq!(read.unwrap(), [1, 2, 3]);
}

#[test]
fn paging_ends_when_cursor_ends_or_repeats() {
    let page =
        |items: Value, next: Value| json!({ "body": { "data": items, "meta": { "next": next } } });
    let paging = Paging::cursor("after", "/meta/next")
        .items("/data")
        .size("limit", 2);
    let host = gets(&[
        (
            "https://api.example.com/i?limit=2",
            page(json!([1, 2]), json!("a")),
        ),
        (
            "https://api.example.com/i?limit=2&after=a",
            page(json!([]), json!("b")),
        ),
        (
            "https://api.example.com/i?limit=2&after=b",
            page(json!([3]), json!(null)),
        ),
    ]);
    assert_eq!(
        run(host, || numbers(API.get("/i").items(paging, 10))).unwrap(),
        [1, 2, 3]
    );
    let host = gets(&[
        (
            "https://api.example.com/i?limit=2",
            page(json!([1]), json!("a")),
        ),
        (
            "https://api.example.com/i?limit=2&after=a",
            page(json!([2]), json!("a")),
        ),
    ]);
    assert_eq!(
        run(host, || numbers(API.get("/i").items(paging, 10))).unwrap(),
        [1, 2]
    );
}

#[test]
fn pages_are_counted_by_offset_or_number() {
    let host = gets(&[
        (
            "https://api.example.com/i?limit=2&offset=0",
            json!({ "body": [1, 2] }),
        ),
        (
            "https://api.example.com/i?limit=2&offset=2",
            json!({ "body": [3] }),
        ),
    ]);
    let paging = Paging::offset("offset").size("limit", 2);
    assert_eq!(
        run(host, || numbers(API.get("/i").items(paging, 10))).unwrap(),
        [1, 2, 3]
    );
    let host = gets(&[
        (
            "https://api.example.com/i?page=1",
            json!({ "body": { "items": [1, 2] } }),
        ),
        (
            "https://api.example.com/i?page=2",
            json!({ "body": { "items": [3] } }),
        ),
        (
            "https://api.example.com/i?page=3",
            json!({ "body": { "items": [] } }),
        ),
    ]);
    let paging = Paging::page("page", 1).items("/items");
    assert_eq!(
        run(host, || numbers(API.get("/i").items(paging, 10))).unwrap(),
        [1, 2, 3]
    );
}

#[test]
fn stops_paging_early() {
    let host = gets(&[(
        "https://api.example.com/i?limit=2&offset=0",
        json!({ "body": [1, 2] }),
    )]);
    let paging = Paging::offset("offset").size("limit", 100);
    assert_eq!(
        run(host, || numbers(API.get("/i").items(paging, 2))).unwrap(),
        [1, 2]
    );
    assert!(
        run(testing::host(), || numbers(API.get("/i").items(paging, 0)))
            .unwrap()
            .is_empty()
    );
}

#[test]
fn an_error_ends_the_pages() {
    let host = gets(&[
        ("https://api.example.com/i?page=1", json!({ "body": [1] })),
        ("https://api.example.com/i?page=2", json!({ "status": 500 })),
    ]);
    let mut items = Vec::new();
    run(host, || {
        items.extend(API.get("/i").items::<u64>(Paging::page("page", 1), 10))
    });
    assert_eq!(items.len(), 2);
    assert_eq!(items[1].as_ref().unwrap_err().kind(), "upstream_error");
    let host = gets(&[(
        "https://api.example.com/i",
        json!({ "body": { "data": 5 } }),
    )]);
    let error = run(host, || {
        numbers(API.get("/i").items(Paging::link().items("/data"), 5))
    })
    .unwrap_err();
    assert!(error.text().contains("has no list at `/data`"), "{error}");
}

#[test]
fn graphql_answers_its_data_or_its_first_error() {
    let ask = |response: Value| {
        let body = json!({ "query": "{ me }", "variables": { "id": 7 } });
        let request =
            json!({ "method": "POST", "url": "https://api.example.com/graphql", "body": body });
        let host = testing::host().expect(exchange(request, json!({ "body": response })));
        run(host, || {
            API.graphql::<Value>("/graphql", "{ me }", &json!({ "id": 7 }))
        })
    };
    for response in [
        json!({ "data": { "me": 1 } }),
        json!({ "data": { "me": 1 }, "errors": null }),
    ] {
        assert_eq!(ask(response).unwrap(), json!({ "me": 1 }));
    }
    let errors = json!([{ "message": "not yours", "extensions": { "code": "FORBIDDEN" } }]);
    let error = ask(json!({ "data": null, "errors": errors })).unwrap_err();
    assert_eq!(
        (error.kind(), error.text(), error.detail()),
        ("forbidden", "not yours", Some(&errors))
    );
}

#[test]
fn files_are_read_and_written_by_handle() {
    let host = testing::host().file("f1", "a.txt", "text/plain", &vec![b'x'; 3 * 1024 * 1024]);
    let (file, host) = host.run(|| {
        let file: File = serde_json::from_value(
            json!({ "name": "a.txt", "mimetype": "text/plain", "s3key": "f1" }),
        )
        .unwrap();
        assert_eq!(file.read(1024).unwrap_err().kind(), "invalid_input");
        assert_eq!(file.read(4 * 1024 * 1024).unwrap().len(), 3 * 1024 * 1024);
        assert_eq!(file.append(b"y").unwrap_err().kind(), "internal");
        File::with("b.csv", "text/csv", b"1,2").unwrap()
    });
    assert_eq!(host.bytes_of(file.id()), Some(&b"1,2"[..]));
    let written = serde_json::to_value(&file).unwrap();
    assert_eq!(
        written,
        json!({ "name": "b.csv", "mimetype": "text/csv", "s3url": file.id() })
    );
}

#[test]
fn an_answer_can_go_into_a_file() {
    let host = gets(&[(
        "https://api.example.com/pdf",
        json!({ "headers": { "content-type": "application/pdf" }, "body": "%PDF" }),
    )]);
    let (file, host) = host.run(|| API.get("/pdf").into_file().send().unwrap().file().unwrap());
    assert_eq!(
        (file.media_type.as_str(), host.bytes_of(file.id())),
        ("application/pdf", Some(&b"%PDF"[..]))
    );
}

#[test]
fn state_keeps_values_within_limits() {
    run(testing::host(), || {
        assert_eq!(state::get::<u8>("a").unwrap(), None);
        state::set("a", &7).unwrap();
        assert_eq!(state::get::<u8>("a").unwrap(), Some(7));
        assert!(state::set("b", &"x".repeat(70_000)).is_err());
        state::remove("a");
        assert_eq!(state::get::<u8>("a").unwrap(), None);
    });
}

#[test]
fn time_and_randomness_are_scripted() {
    run(testing::host().now(5_000), || {
        clock::sleep(Duration::from_millis(250));
        assert_eq!(
            (clock::now(), clock::elapsed(), clock::now_seconds()),
            (5_250, Duration::from_millis(250), 5)
        );
        assert_eq!(context::remaining(), Duration::from_millis(29_750));
        assert_eq!(random::uuid(), "01020304-0506-4708-890a-0b0c0d0e0f10");
    });
}

#[test]
#[should_panic(expected = "+ GET https://api.example.com/other")]
fn unexpected_request_shows_its_difference() {
    let host = gets(&[("https://api.example.com/x", json!({}))]);
    let _ = run(host, || API.get("/other").send());
}

#[test]
#[should_panic(expected = "+   \"a\": 2")]
fn unexpected_body_shows_its_difference() {
    let request =
        json!({ "method": "POST", "url": "https://api.example.com/x", "body": { "a": 1 } });
    let _ = run(testing::host().expect(exchange(request, json!({}))), || {
        API.post("/x").json(&json!({ "a": 2 })).send()
    });
}

#[test]
#[should_panic(expected = "did not send the expected request GET https://api.example.com/x")]
fn a_request_that_was_not_sent_is_missed() {
    run(gets(&[("https://api.example.com/x", json!({}))]), || ());
}
