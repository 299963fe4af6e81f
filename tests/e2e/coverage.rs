//! Every route refuses what it must. The list of routes stands here a second time; a route without an entry fails.

use std::collections::BTreeSet;

use harness::{Answer, Client, Host, client::Body};
use reqwest::Method;
use serde_json::json;

/// Who may call a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Project,
    Organisation,
}

/// What a route takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    Nothing,
    Json,
    /// JSON that may be left out.
    MaybeJson,
    Component,
}

use Key::{Organisation, Project};
use Takes::{Component, Json, MaybeJson, Nothing};

/// Every route below the prefixes.
pub(crate) const ROUTES: [(&str, &str, Key, Takes); 40] = [
    ("GET", "/auth/session/info", Project, Nothing),
    ("POST", "/org/owner/project/new", Organisation, Json),
    ("GET", "/org/owner/project/list", Organisation, Nothing),
    ("GET", "/org/owner/project/{nano_id}", Organisation, Nothing),
    ("DELETE", "/org/owner/project/{nano_id}", Organisation, Nothing),
    ("POST", "/org/owner/project/{nano_id}/regenerate_api_key", Organisation, Nothing),
    ("GET", "/org/toolkits", Organisation, Nothing),
    ("GET", "/toolkits/{slug}/versions/{version}", Organisation, Nothing),
    ("PUT", "/toolkits/{slug}/versions/{version}", Organisation, Component),
    ("DELETE", "/toolkits/{slug}/versions/{version}", Organisation, Nothing),
    ("GET", "/toolkits", Project, Nothing),
    ("GET", "/toolkits/categories", Project, Nothing),
    ("GET", "/toolkits/changelog", Project, Nothing),
    ("POST", "/toolkits/multi", Project, MaybeJson),
    ("GET", "/toolkits/{slug}", Project, Nothing),
    ("GET", "/toolkits/{slug}/scopes/grant_context", Project, Nothing),
    ("POST", "/toolkits/{slug}/scopes/recommended", Project, Json),
    ("GET", "/tools", Project, Nothing),
    ("GET", "/tools/enum", Project, Nothing),
    ("POST", "/tools/scopes/required", Project, Json),
    ("GET", "/tools/{tool_slug}", Project, Nothing),
    ("POST", "/tools/execute/{tool_slug}", Project, Json),
    ("POST", "/tools/execute/{tool_slug}/input", Project, Json),
    ("POST", "/logs/tool_execution", Project, MaybeJson),
    ("GET", "/logs/tool_execution/{id}", Project, Nothing),
    ("GET", "/logs/tool_execution/{id}/cassette", Project, Nothing),
    ("GET", "/internal/action_execution/fields", Project, Nothing),
    ("POST", "/internal/action_execution/logs", Project, MaybeJson),
    ("GET", "/internal/action_execution/log/{id}", Project, Nothing),
    ("GET", "/auth_configs", Project, Nothing),
    ("POST", "/auth_configs", Project, Json),
    ("GET", "/auth_configs/{nanoid}", Project, Nothing),
    ("DELETE", "/auth_configs/{nanoid}", Project, Nothing),
    ("PATCH", "/auth_configs/{nanoid}/{status}", Project, Nothing),
    ("GET", "/connected_accounts", Project, Nothing),
    ("POST", "/connected_accounts", Project, Json),
    ("GET", "/connected_accounts/{nanoid}", Project, Nothing),
    ("DELETE", "/connected_accounts/{nanoid}", Project, Nothing),
    ("PATCH", "/connected_accounts/{nanoid}/status", Project, Json),
    ("GET", "/migration/get-nanoid", Project, Nothing),
];

fn addressed(path: &str) -> String {
    path.replace("{nano_id}", "proj_AAAAAAAAAAAA")
        .replace("{slug}", "no_such_toolkit")
        .replace("{version}", "20260101_00")
        .replace("{tool_slug}", "NO_SUCH_TOOL")
        .replace("{id}", "log_AAAAAAAAAAAA")
        .replace("{status}", "DISABLED")
        .replace("/auth_configs/{nanoid}", "/auth_configs/ac_AAAAAAAAAAAA")
        .replace("{nanoid}", "ca_AAAAAAAAAAAA")
}

#[test]
fn every_route_of_the_server_is_listed_here() {
    let source = include_str!("../../host/server/src/routes.rs");
    let table = source.split_once("fn table()").expect("the table of routes").1;
    let table: String = table.split_once("\n}").expect("the table ends").0.split_whitespace().collect();
    let mut served = BTreeSet::new();
    for entry in table.split("(\"/").skip(1) {
        let (path, handlers) = entry.split_once('"').expect("a path ends");
        for method in ["get", "post", "put", "patch", "delete"] {
            let is_called = |text: &str| {
                handlers.match_indices(text).any(|(at, _)| {
                    !handlers[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_' || before == ':')
                })
            };
            if is_called(&format!("{method}(")) {
                served.insert((method.to_uppercase(), format!("/{path}")));
            }
        }
    }
    let listed = ROUTES.iter().map(|(method, path, ..)| ((*method).to_owned(), (*path).to_owned())).collect();
    assert!(served.len() >= 20, "the table was not understood: {served:?}");
    assert_eq!(served, listed, "the routes served, then the routes probed here");
}

async fn send(client: &Client, method: &str, path: &str, takes: Takes) -> Answer {
    let body = match takes {
        Nothing => Body::None,
        Json | MaybeJson => Body::Json(json!({})),
        Component => Body::Raw("application/wasm", vec![0; 64]),
    };
    client.send(Method::from_bytes(method.as_bytes()).unwrap(), path, body, &[]).await
}

#[tokio::test]
async fn every_route_refuses_no_key_a_wrong_key_and_another_kind_of_key() {
    let host = Host::shared().await;
    let project = host.new_project().await;
    for (method, path, key, takes) in ROUTES {
        let path = addressed(path);
        let other_kind = if key == Project { host.as_org() } else { project.clone() };
        let wrong = host.with_key("ak_0123456789abcdefghijklmnopqrstuv");
        for (who, client) in [("nobody", host.anonymous()), ("a wrong key", wrong), ("another kind", other_kind)] {
            for client in [client.clone(), client.newer()] {
                let answer = send(&client, method, &path, takes).await;
                assert_eq!(answer.status, 401, "{who}: {method} {path}: {answer:#?}");
                answer.assert_envelope();
            }
        }
    }
}

#[tokio::test]
async fn every_route_knows_both_prefixes_and_answers_a_right_key() {
    let host = Host::shared().await;
    let project = host.new_project().await;
    for (method, path, key, takes) in ROUTES {
        let path = addressed(path);
        let right = if key == Project { project.clone() } else { host.as_org() };
        let (older, newer) =
            (send(&right, method, &path, takes).await, send(&right.newer(), method, &path, takes).await);
        assert_eq!(older.status, newer.status, "{method} {path}");
        assert!(![401, 405, 500].contains(&older.status), "{method} {path}: {older:#?}");
        if older.status >= 400 {
            older.assert_envelope();
        }
    }
}

#[tokio::test]
async fn every_route_with_a_body_refuses_a_bad_one() {
    let host = Host::shared().await;
    let project = host.new_project().await;
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
    for (method, path, key, takes) in ROUTES.into_iter().filter(|route| matches!(route.3, Json | MaybeJson)) {
        let right = if key == Project { project.clone() } else { host.as_org() };
        let path = addressed(path);
        for (what, bytes) in bad {
            let body = Body::Raw("application/json", bytes.to_vec());
            let answer = right.send(Method::from_bytes(method.as_bytes()).unwrap(), &path, body, &[]).await;
            assert!([400, 404].contains(&answer.status), "{what}: {method} {path}: {answer:#?}");
            assert!(answer.status == 400 || takes == Json, "{what}: {method} {path}: {answer:#?}");
            answer.assert_envelope();
        }
        let body = Body::Raw("text/plain", b"{}".to_vec());
        let answer = right.send(Method::from_bytes(method.as_bytes()).unwrap(), &path, body, &[]).await;
        answer.expect(415).assert_envelope();
    }
}

#[tokio::test]
async fn every_route_refuses_other_methods_and_says_which_it_has() {
    let host = Host::shared().await;
    let project = host.new_project().await;
    let paths: BTreeSet<_> = ROUTES.iter().map(|route| route.1).collect();
    for path in paths {
        let has: BTreeSet<_> = ROUTES.iter().filter(|route| route.1 == path).map(|route| route.0).collect();
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"] {
            if has.contains(method) {
                continue;
            }
            let answer = send(&project, method, &addressed(path), Nothing).await;
            let allowed: BTreeSet<_> = answer.header("allow").split(',').map(str::trim).collect();
            assert_eq!(answer.status, 405, "{method} {path}: {answer:#?}");
            answer.assert_envelope();
            assert!(has.is_subset(&allowed) && !allowed.contains(method), "{method} {path}: {allowed:?}");
        }
    }
}

#[tokio::test]
async fn every_answer_has_the_headers_of_the_house() {
    let host = Host::shared().await;
    let project = host.new_project().await;
    for (method, path, key, takes) in ROUTES {
        let right = if key == Project { project.clone() } else { host.as_org() };
        for client in [right, host.anonymous()] {
            let answer = send(&client, method, &addressed(path), takes).await;
            assert_house_headers(&answer, &format!("{method} {path}"));
        }
    }
    assert_house_headers(&project.get("/no/such/path").await.expect(404), "an unknown path");
}

#[track_caller]
fn assert_house_headers(answer: &Answer, what: &str) {
    assert_eq!(answer.header("x-content-type-options"), "nosniff", "{what}");
    assert_eq!(answer.header("cache-control"), "no-store", "{what}");
    assert!(answer.header("content-type").starts_with("application/json"), "{what}: {answer:#?}");
    assert!(!answer.header("x-request-id").is_empty(), "{what}");
    assert_eq!(answer.header("x-ratelimit-window-size"), "600s", "{what}");
    for absent in ["server", "access-control-allow-origin", "x-powered-by", "set-cookie"] {
        assert_eq!(answer.header(absent), "", "{what} tells {absent}");
    }
}
