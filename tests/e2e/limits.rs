//! Requests that are too large, too deeply nested, too frequent or malformed.

use harness::{Answer, Client, Host, client::Body, host::Setup};
use reqwest::Method;
use serde_json::json;

use crate::{
    budget::{sent_from, to_the_end},
    given,
};

const SESSION_INFO_PATH: &str = "/auth/session/info";

/// Asserts the status of a response read from a socket.
#[track_caller]
fn assert_status(answer: &str, status: u16) {
    let head = &answer[..answer.len().min(300)];
    assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{head}");
}

fn head(method: &str, path: &str, more: &str) -> Vec<u8> {
    format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{more}\r\n")
        .into_bytes()
}

#[tokio::test]
async fn oversized_chunked_bodies_are_refused() {
    let project = Host::shared().await.new_project().await;
    let tool = given::shared_echo().await;
    for (path, limit) in [
        ("/auth_configs".to_owned(), 1 << 20),
        (format!("/tools/execute/{tool}"), 4 << 20),
    ] {
        // The length of a chunked body is known only at its end.
        let chunk = format!("{:x}\r\n{}\r\n", limit / 2, "x".repeat(limit / 2)).repeat(3);
        let more = format!(
            "x-api-key: {}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n",
            project.key()
        );
        let head = head("POST", &format!("/api/v3{path}"), &more);
        let request = [head, chunk.into_bytes()].concat();
        assert_status(&project.raw(&request).await, 413);
    }
}

#[tokio::test]
async fn far_too_many_headers_are_refused() {
    let project = Host::shared().await.new_project().await;
    let wide = format!("x-filler: {}\r\n", "x".repeat(60 << 10));
    let many = "x: x\r\n".repeat(600);
    for more in [wide, many] {
        let request = head("GET", "/api/v3/toolkits", &more);
        assert_status(&project.raw(&request).await, 431);
    }
}

#[tokio::test]
async fn non_http_request_gets_an_error_response() {
    let host = Host::shared().await;
    let client = host.anonymous();
    let garbage: [&[u8]; 6] = [
        b"hello\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET /api/v3/toolkits HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ncontent-length: 6\r\nconnection: close\r\n\r\nhello",
        b"POST /api/v3/auth_configs HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\nzz\r\n",
        b"GET /api/v3/toolkits HTTP/1.1\r\nhost: a\r\nbad header\r\nconnection: close\r\n\r\n",
    ];
    for request in garbage {
        let answer = client.raw(request).await;
        assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    assert_eq!(client.try_get_root("/health/live").await, Some(200));
}

#[tokio::test]
async fn deep_or_duplicate_json_is_refused() {
    let project = Host::shared().await.new_project().await;
    let path = format!("/tools/execute/{}", given::shared_echo().await);
    let send = async |arguments: &str| {
        let body = format!(r#"{{"version":"latest","arguments":{arguments}}}"#);
        let body = Body::Raw("application/json", body.into_bytes());
        project.send(Method::POST, &path, body, &[]).await
    };
    let nested = |depth: usize| format!(r#"{{"a":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
    send(&nested(40)).await.data();
    for refused in [
        &*nested(70),
        &nested(100_000),
        r#"{"a":1,"a":2}"#,
        r#"{"a":{"b":1,"b":1}}"#,
        r#"{"a":NaN}"#,
    ] {
        send(refused).await.expect(400);
    }
    let half = send(r#"{"a":"\ud800"}"#).await.data();
    assert_eq!(half["a"], "\u{fffd}");
}

#[tokio::test]
async fn lists_refuse_or_clamp_invalid_parameters() {
    let project = Host::shared().await.new_project().await;
    for path in [
        "/toolkits",
        "/tools",
        "/auth_configs",
        "/connected_accounts",
    ] {
        for bad in [
            "cursor=x",
            "cursor=MC0yMA==",
            "cursor=OTk5OTk5OTk5OTk5OTk5OTk5OTk5LTIw",
            "limit=many",
            "search=%00",
        ] {
            let answer = project.get(&format!("{path}?{bad}")).await;
            let ignored = bad.starts_with("search") && path == "/connected_accounts";
            assert!(answer.status == 400 || ignored, "{path}?{bad}: {answer:#?}");
        }
        for good in [
            "limit=9999",
            "limit=0",
            "limit=-3",
            "unknown=1",
            "cursor=",
            "cursor=OTk5OTk5LTIw",
        ] {
            project.get(&format!("{path}?{good}")).await.expect(200);
        }
    }
}

#[tokio::test]
async fn valid_client_request_id_is_used() {
    let project = Host::shared().await.new_project().await;
    for (id, is_valid) in [("req-42", true), (&*"x".repeat(5000), false)] {
        let headers = [
            ("x-request-id", id),
            ("x-source", "test"),
            ("x-client-version", "1"),
            ("x-stainless-os", "Linux"),
        ];
        let answer = project.send(Method::GET, "/tools/NO_SUCH_TOOL", Body::None, &headers);
        let answer = answer.await.expect(404);
        let used = answer.header("x-request-id");
        assert_eq!(used == id, is_valid);
        assert_eq!(answer["error"]["request_id"], used);
    }
}

#[tokio::test]
async fn an_unknown_path_is_an_envelope_too() {
    let host = Host::shared().await;
    for path in [
        "/nothing",
        "/tools/execute",
        "/auth_configs/",
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
    ] {
        let answer = host.anonymous().get(path).await;
        answer.assert_envelope();
        assert!([401, 404, 405].contains(&answer.status), "{path}");
    }
}

#[tokio::test]
async fn organization_rate_limit_gives_retry_after() {
    let host = limited("20").await;
    let organization = host.as_org();
    let path = "/org/owner/project/list";
    let first = organization.get(path).await.expect(200);
    assert_eq!(first.header("x-ratelimit"), "40");
    assert_eq!(first.header("x-ratelimit-window-size"), "600s");
    let (_, refused) = until_refused(&organization, path, 60).await;
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    assert!(wait >= 1, "{refused:#?}");
    assert_rate(&refused, "40", "0");
    let answer = host.as_project().get(SESSION_INFO_PATH).await.expect(200);
    assert_eq!(answer.header("x-ratelimit"), "20");
}

/// Starts a server with a limit on the rate of a project.
async fn limited(rate: &str) -> Host {
    let setup = Setup::new().with("limits.rate_per_project", rate);
    setup.start().await
}

/// Sends requests until one is refused for its rate. Returns the number of accepted ones, and the
/// refusal.
async fn until_refused(client: &Client, path: &str, most: usize) -> (usize, Answer) {
    for sent in 0..most {
        let answer = client.get(path).await;
        if answer.status == 429 {
            return (sent, answer.expect(429));
        }
        answer.expect(200);
    }
    panic!("{most} requests were not too many");
}

/// Asserts the rate that a response names, and what is left of it.
#[track_caller]
fn assert_rate(answer: &Answer, rate: &str, remaining: &str) {
    assert_eq!(answer.header("x-ratelimit"), rate);
    assert_eq!(answer.header("x-ratelimit-remaining"), remaining);
}

#[tokio::test]
async fn project_rate_limit_protects_other_projects() {
    let host = limited("20").await;
    let (greedy, modest) = (host.new_project().await, host.new_project().await);
    let (sent, refused) = until_refused(&greedy, SESSION_INFO_PATH, 40).await;
    assert_eq!(sent, 20);
    assert_rate(&refused, "20", "0");
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    assert!((1..=600 / 20).contains(&wait), "{refused:#?}");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("the project "), "{message}");
    let answer = modest.get(SESSION_INFO_PATH).await.expect(200);
    assert_rate(&answer, "20", "19");
    let listed = host.as_org().get("/org/owner/project/list").await;
    assert_eq!(listed.expect(200).header("x-ratelimit"), "40");
}

#[tokio::test]
async fn address_without_key_has_part_of_rate() {
    // Without a key a project has half of this, and an address a quarter of that.
    let host = limited("16").await;
    let project = host.new_project().await;
    let tool = given::echo(&host).await;
    let url = given::mcp_server_of(&project, &given::toolkit_of(&tool)).await;
    let authority = host.url.trim_start_matches("http://");
    let path = url.split_once(authority).unwrap().1;
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    let request = format!(
        "POST {path}?user_id=amy HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\n\
         accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let ask = async |last: u8| to_the_end(sent_from(&host, last, &request).await).await;
    for _ in 0..2 {
        assert_status(&ask(2).await, 200);
    }
    let refused = ask(2).await;
    assert_status(&refused, 429);
    assert!(refused.contains("the address without a key"), "{refused}");
    assert_status(&ask(3).await, 200);
    project.get(SESSION_INFO_PATH).await.expect(200);
}

#[tokio::test]
async fn each_key_has_its_own_rate_limit() {
    let host = Setup::new().with("limits.rate_per_key", "10").start().await;
    let project = host.as_project();
    let id = project.project_id().await;
    let path = format!("/org/owner/project/{id}/api_keys");
    let body = json!({ "name": "another" });
    let made = host.as_org().post(&path, &body).await;
    let another = host.with_key(made["key"].as_str().unwrap());
    for (client, rate) in [(project, 9), (another, 10)] {
        let (sent, _) = until_refused(&client, SESSION_INFO_PATH, 20).await;
        assert_eq!(sent, rate);
    }
}
