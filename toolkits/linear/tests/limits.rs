//! Test that case files cannot express: the wait after a rate limit.

use std::time::Duration;

use serde_json::{Value, json};
use toolkit_sdk::testing::{self, Exchange};

/// 2026-01-01T00:00:00Z, the current time in tests, in milliseconds.
const NOW_MS: u64 = 1_767_225_600_000;

/// Returns the wait that the tool reports for this response of Linear.
fn wait(status: u16, headers: &Value) -> Option<Duration> {
    let error = json!({ "message": "Rate limit exceeded", "extensions": { "type": "ratelimited", "code": "RATELIMITED" } });
    let exchange: Exchange = serde_json::from_value(json!({
        "request": { "method": "POST", "url": "https://api.linear.app/graphql" },
        "response": { "status": status, "headers": headers, "body": { "errors": [error] } },
    }))
    .expect("it is an exchange");
    let (answer, _) = testing::host()
        .expect(exchange)
        .run(|| testing::call(&linear::TOOLKIT, "get_me", &json!({})));
    let error = answer.expect_err("Linear refused it");
    assert_eq!(
        (error.kind(), error.status()),
        ("rate_limited", Some(status)),
        "{error}"
    );
    error.wait()
}

#[test]
fn exhausted_limit_waits_until_reset_for_any_status() {
    let requests = json!({ "x-ratelimit-requests-remaining": "0", "x-ratelimit-requests-reset": (NOW_MS + 90_000).to_string() });
    let complexity = json!({
        "x-ratelimit-requests-remaining": "7", "x-ratelimit-requests-reset": (NOW_MS + 90_000).to_string(),
        "x-ratelimit-complexity-remaining": "0", "x-ratelimit-complexity-reset": (NOW_MS + 30_000).to_string(),
    });
    for status in [200, 400, 429] {
        assert_eq!(wait(status, &requests), Some(Duration::from_secs(90)));
        assert_eq!(wait(status, &complexity), Some(Duration::from_secs(30)));
        assert_eq!(wait(status, &json!({})), None);
    }
}
