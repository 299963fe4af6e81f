//! Tests that case files cannot express: the wait after a rate limit, and the number of issues that
//! one poll reports.

#![expect(
    clippy::unwrap_used,
    reason = "what goes wrong in a helper of a test fails the test"
)]

use std::time::Duration;

use serde_json::{Value, json};
use toolkit_sdk::testing::{self, Case, Exchange};

/// 2026-01-01T00:00:00Z, the current time in tests.
const NOW_SECONDS: u64 = 1_767_225_600;

/// Returns the wait that the tool reports for this response of GitHub.
fn wait(status: u16, message: &str, headers: Value) -> Option<Duration> {
    let exchange: Exchange = serde_json::from_value(json!({
        "request": { "method": "GET", "url": "https://api.github.com/user" },
        "response": { "status": status, "headers": headers, "body": { "message": message } },
    }))
    .unwrap();
    let (answer, _) = testing::host()
        .expect(exchange)
        .run(|| testing::call(&github::TOOLKIT, "get_me", &json!({})));
    let error = answer.unwrap_err();
    assert_eq!(
        (error.kind(), error.status()),
        ("rate_limited", Some(status)),
        "{error}"
    );
    error.wait()
}

#[test]
fn exhausted_limit_waits_until_its_reset() {
    let headers = json!({ "x-ratelimit-remaining": "0", "x-ratelimit-reset": (NOW_SECONDS + 90).to_string() });
    for status in [403, 429] {
        let wait = wait(
            status,
            "API rate limit exceeded for user ID 1.",
            headers.clone(),
        );
        assert_eq!(wait, Some(Duration::from_secs(90)));
    }
}

#[test]
fn secondary_limit_waits_a_minute_by_default() {
    let message =
        "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.";
    let left = json!({ "x-ratelimit-remaining": "4321", "x-ratelimit-reset": (NOW_SECONDS + 3000).to_string() });
    let said = json!({ "retry-after": "17", "x-ratelimit-remaining": "4321" });
    let used_up = json!({ "x-ratelimit-remaining": "0", "x-ratelimit-reset": (NOW_SECONDS + 200).to_string() });
    for status in [403, 429] {
        assert_eq!(
            wait(status, message, left.clone()),
            Some(Duration::from_secs(60))
        );
        assert_eq!(
            wait(status, message, said.clone()),
            Some(Duration::from_secs(17))
        );
        assert_eq!(
            wait(status, message, used_up.clone()),
            Some(Duration::from_secs(200))
        );
    }
}

fn issue(number: u64) -> Value {
    let url = format!("https://github.com/octocat/Hello-World/issues/{number}");
    let time = "2026-01-01T00:00:00Z";
    json!({ "number": number, "title": "t", "state": "open", "created_at": time, "updated_at": time, "html_url": url })
}

fn event(number: u64) -> Value {
    let mut payload = issue(number);
    let members = payload.as_object_mut().unwrap();
    let url = members.remove("html_url").unwrap();
    members.extend([
        ("url".into(), url),
        ("labels".into(), json!([])),
        ("assignees".into(), json!([])),
    ]);
    members.insert("comment_count".into(), json!(0));
    json!({ "id": number.to_string(), "payload": payload })
}

#[test]
fn new_issues_are_reported_oldest_first() {
    let answer: Vec<Value> = (1..=70).rev().map(issue).collect();
    let url = "https://api.github.com/repos/octocat/Hello-World/issues?state=all&sort=created&direction=desc&per_page=100";
    let poll = |after: u64, to: u64, more: bool| {
        let case: Case = serde_json::from_value(json!({
            "arguments": { "owner": "octocat", "repo": "Hello-World" },
            "cursor": { "highest": after },
            "exchanges": [{ "request": { "method": "GET", "url": url }, "response": { "body": answer } }],
            "data": {
                "events": (after + 1..=to).map(event).collect::<Vec<_>>(), "cursor": { "highest": to }, "more": more,
            },
        }))
        .unwrap();
        testing::run_case(&github::TOOLKIT, "new_issue", &case).unwrap();
    };
    poll(5, 55, true);
    poll(55, 70, false);
}
