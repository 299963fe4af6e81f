//! Tests that case files cannot express: the wait after a rate limit, and the number of messages
//! that one poll reports.

use std::time::Duration;

use serde_json::{Value, json};
use toolkit_sdk::testing::{self, Case, Exchange};

const HISTORY_URL: &str = "https://slack.com/api/conversations.history?channel=C012AB3CD";

#[test]
fn rate_limit_gives_its_wait_for_any_status() {
    for (status, wait) in [(429, Some("30")), (200, Some("1")), (429, None)] {
        let mut headers = json!({});
        if let Some(wait) = wait {
            headers["retry-after"] = wait.into();
        }
        let exchange: Exchange = serde_json::from_value(json!({
            "request": { "method": "GET", "url": "https://slack.com/api/auth.test" },
            "response": { "status": status, "headers": headers, "body": { "ok": false, "error": "ratelimited" } },
        }))
        .unwrap();
        let (answer, _) = testing::host()
            .expect(exchange)
            .run(|| testing::call(&slack::TOOLKIT, "get_me", &json!({})));
        let error = answer.unwrap_err();
        assert_eq!(
            (error.kind(), error.status()),
            ("rate_limited", Some(status)),
            "{error}"
        );
        assert_eq!(
            error.wait(),
            wait.map(|seconds| Duration::from_secs(seconds.parse().unwrap()))
        );
    }
}

fn message(number: u64) -> Value {
    json!({ "type": "message", "user": "U012AB3CD", "text": "t", "ts": format!("{number}.000000") })
}

fn event(number: u64) -> Value {
    let ts = format!("{number}.000000");
    let time = format!("1970-01-01T00:{:02}:{:02}Z", number / 60, number % 60);
    json!({ "id": ts, "payload": { "ts": ts, "time": time, "user": "U012AB3CD", "text": "t" } })
}

#[test]
fn new_messages_are_reported_oldest_first() {
    let poll = |after: u64, to: u64, more: bool| {
        let answer: Vec<Value> = (after + 1..=70).rev().map(message).collect();
        let case: Case = serde_json::from_value(json!({
            "arguments": { "channel": "C012AB3CD" },
            "cursor": { "ts": format!("{after}.000000") },
            "exchanges": [{
                "request": { "method": "GET", "url": format!("{HISTORY_URL}&oldest={after}.000000&limit=100") },
                "response": { "body": { "ok": true, "messages": answer } },
            }],
            "data": {
                "events": (after + 1..=to).map(event).collect::<Vec<_>>(),
                "cursor": { "ts": format!("{to}.000000") },
                "more": more,
            },
        }))
        .unwrap();
        testing::run_case(&slack::TOOLKIT, "message_posted", &case).unwrap();
    };
    poll(0, 50, true);
    poll(50, 70, false);
}
