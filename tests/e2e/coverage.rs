//! Refusals that every route must have. The routes are those of the committed description.

use std::collections::BTreeSet;

use harness::{Answer, Host, client::Body};
use reqwest::Method;

use crate::description::{CLIENT_OPERATIONS, Clients, Key, MAX_JSON_BYTES, Takes};

#[tokio::test]
async fn every_route_refuses_missing_or_wrong_keys() {
    let host = Host::shared().await;
    let clients = Clients::of(host, host.new_project().await).await;
    for operation in CLIENT_OPERATIONS
        .iter()
        .filter(|operation| operation.key() != Key::Nobody)
    {
        let other_kind = if operation.key() == Key::Project {
            &clients.organization
        } else {
            &clients.project
        };
        let wrong = host.with_key("ak_0123456789abcdefghijklmnopqrstuv");
        for (who, client) in [
            ("nobody", &host.anonymous()),
            ("a wrong key", &wrong),
            ("another kind", other_kind),
        ] {
            for client in [client.clone(), client.clone().with_newer_prefix()] {
                let answer = operation.send(&client, operation.body(false)).await;
                assert_eq!(
                    answer.status, 401,
                    "{who}: {} {}: {answer:#?}",
                    operation.method, operation.path
                );
                answer.assert_envelope();
            }
        }
    }
}

#[tokio::test]
async fn every_route_accepts_both_prefixes() {
    let host = Host::shared().await;
    let clients = Clients::of(host, host.new_project().await).await;
    for operation in CLIENT_OPERATIONS
        .iter()
        .filter(|operation| operation.id() != "org_create" && !operation.is_stream())
    {
        let right = clients.right(operation);
        let newest = right.clone().with_newer_prefix();
        let older = operation.send(right, operation.body(false)).await;
        let newer = operation.send(&newest, operation.body(false)).await;
        let named = format!("{} {}", operation.method, operation.path);
        assert_eq!(older.status, newer.status, "{named}");
        assert!(
            ![401, 405, 500].contains(&older.status),
            "{named}: {older:#?}"
        );
        if older.status >= 400 {
            older.assert_envelope();
        }
    }
}

#[tokio::test]
async fn every_route_refuses_a_malformed_body() {
    let host = Host::shared().await;
    let clients = Clients::of(host, host.new_project().await).await;
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(100), "]".repeat(100));
    let bad: [(&str, &[u8]); 8] = [
        ("cut short", b"{\"name\":"),
        ("no JSON", b"hello"),
        ("an array", b"[]"),
        ("a number", b"7"),
        ("not UTF-8", b"{\"name\":\"\xff\"}"),
        ("a name twice", b"{\"name\":\"a\",\"name\":\"b\"}"),
        ("too deep", deep.as_bytes()),
        ("NUL", b"{\"name\":\"a\\u0000b\",\"toolkit\":{\"slug\":\"\\u0000\"},\"arguments\":{\"a\":\"\\u0000\"}}"),
    ];
    for operation in CLIENT_OPERATIONS
        .iter()
        .filter(|operation| operation.takes() == Takes::Json)
    {
        let right = clients.right(operation);
        let named = format!("{} {}", operation.method, operation.path);
        for (what, bytes) in bad {
            let body = Body::Raw("application/json", bytes.to_vec());
            let answer = operation.send(right, body).await;
            assert!(
                [400, 404].contains(&answer.status),
                "{what}: {named}: {answer:#?}"
            );
            answer.assert_envelope();
        }
        let plain = Body::Raw("text/plain", b"{}".to_vec());
        let large = format!("{{\"a\":\"{}\"}}", "a".repeat(MAX_JSON_BYTES));
        let large = Body::Raw("application/json", large.into_bytes());
        for (body, status) in [(plain, 415), (large, 413)] {
            let refused = operation.send(right, body).await;
            refused.expect(status);
        }
    }
}

#[tokio::test]
async fn every_body_field_refuses_a_wrong_type() {
    let host = Host::shared().await;
    let clients = Clients::of(host, host.new_project().await).await;
    for operation in CLIENT_OPERATIONS
        .iter()
        .filter(|operation| operation.takes() == Takes::Json)
    {
        let right = clients.right(operation);
        let Body::Json(whole) = operation.body(true) else {
            continue;
        };
        let schema = operation.request_schema();
        for (name, given) in whole.as_object().unwrap() {
            if schema["properties"][name]["type"].is_null()
                && schema["properties"][name]["oneOf"].is_null()
            {
                continue; // Any value is valid.
            }
            let mut spoilt = whole.clone();
            spoilt[name] = if given.is_string() {
                7.into()
            } else {
                "of another type".into()
            };
            let answer = operation.send(right, Body::Json(spoilt)).await;
            assert!(
                [400, 404].contains(&answer.status),
                "{name} of {}: {answer:#?}",
                operation.path
            );
            answer.assert_envelope();
        }
    }
}

#[tokio::test]
async fn every_route_refuses_other_methods() {
    let project = Host::shared().await.new_project().await;
    let paths: BTreeSet<_> = CLIENT_OPERATIONS
        .iter()
        .map(|operation| (&operation.path, operation.addressed()))
        .collect();
    for (path, addressed) in paths {
        let here = CLIENT_OPERATIONS
            .iter()
            .filter(|operation| operation.path == *path);
        let has: BTreeSet<_> = here.map(|operation| operation.method.as_str()).collect();
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"] {
            if has.contains(method) {
                continue;
            }
            let other = Method::from_bytes(method.as_bytes()).unwrap();
            let answer = project.send(other, &addressed, Body::None, &[]).await;
            let allowed: BTreeSet<_> = answer.header("allow").split(',').map(str::trim).collect();
            assert_eq!(answer.status, 405, "{method} {path}: {answer:#?}");
            answer.assert_envelope();
            let message = answer["error"]["message"].as_str().unwrap();
            let is_named = has.iter().all(|method| message.contains(method));
            assert!(is_named, "{method} {path}: {message}");
            assert!(
                has.is_subset(&allowed) && !allowed.contains(method),
                "{method} {path}: {allowed:?}"
            );
        }
    }
}

#[tokio::test]
async fn every_response_has_the_standard_headers() {
    let host = Host::shared().await;
    let clients = Clients::of(host, host.new_project().await).await;
    for operation in CLIENT_OPERATIONS
        .iter()
        .filter(|operation| operation.id() != "org_create" && !operation.is_stream())
    {
        for client in [clients.right(operation), &host.anonymous()] {
            let answer = operation.send(client, operation.body(false)).await;
            assert_house_headers(&answer, &format!("{} {}", operation.method, operation.path));
        }
    }
    assert_house_headers(
        &clients.project.get("/no/such/path").await.expect(404),
        "an unknown path",
    );
}

#[track_caller]
fn assert_house_headers(answer: &Answer, what: &str) {
    assert_eq!(answer.header("x-content-type-options"), "nosniff", "{what}");
    assert_eq!(answer.header("cache-control"), "no-store", "{what}");
    assert!(
        answer
            .header("content-type")
            .starts_with("application/json"),
        "{what}: {answer:#?}"
    );
    assert!(!answer.header("x-request-id").is_empty(), "{what}");
    for absent in [
        // The servers of tests have no rate limits.
        "x-ratelimit",
        "x-ratelimit-remaining",
        "x-ratelimit-window-size",
        "server",
        "access-control-allow-origin",
        "x-powered-by",
        "set-cookie",
    ] {
        assert_eq!(answer.header(absent), "", "{what} tells {absent}");
    }
}
