//! A guest compiled for version 1 of the contract, kept permanently: every import still works as it
//! did.

use harness::{Answer, Client, Host, unique};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

const ACCOUNT_KEY: &str = harness::marked!("k-");

/// Publishes the kept component once on the shared server.
async fn published() -> &'static Host {
    static PUBLISHED_ONCE: OnceCell<()> = OnceCell::const_new();
    let host = Host::shared().await;
    PUBLISHED_ONCE
        .get_or_init(|| async {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/components/abi-v1.wasm");
            let bytes = std::fs::read(path).unwrap_or_else(|cause| panic!("{path}: {cause}"));
            assert!(
                bytes.len() <= 300 << 10,
                "the kept component has {} bytes",
                bytes.len()
            );
            host.as_org()
                .put("/toolkits/abi/versions/20261121_00", bytes)
                .await
                .expect(201);
        })
        .await;
    host
}

/// Creates a project with an account that has a key.
async fn connected() -> Client {
    let project = published().await.new_project().await;
    let key = json!({ "api_key": ACCOUNT_KEY });
    project.connect("abi", "API_KEY", "default", key).await;
    project
}

/// Returns the log that the guest wrote.
async fn log(project: &Client, answer: &Answer) -> String {
    project.log(&answer["log_id"]).await["data"]["log"].to_string()
}

#[tokio::test]
async fn http_sends_methods_headers_and_bodies() {
    let project = connected().await;
    for (method, body) in [
        ("POST", json!({ "a": 1 })),
        ("PUT", json!([1])),
        ("PATCH", json!("x")),
        ("DELETE", Value::Null),
    ] {
        let tag = unique(8);
        let url = format!("https://api.example.com/echo/{tag}?q=1");
        let mut call = json!({ "url": url, "method": method, "headers": { "x-own": "yes" } });
        if !body.is_null() {
            call["body"] = body.clone();
        }
        let data = project.execute("ABI_FETCH", call).await.data();
        assert_eq!(data["status"], 200);
        let seen = &Host::application().seen(&tag)[0];
        assert_eq!(
            (
                seen.method.as_str(),
                seen.query.as_str(),
                seen.header("x-own")
            ),
            (method, "q=1", "yes")
        );
        assert_eq!(
            seen.header("authorization"),
            format!("Bearer {ACCOUNT_KEY}")
        );
        if !body.is_null() {
            assert_eq!(serde_json::from_slice::<Value>(&seen.body).unwrap(), body);
        }
    }
}

#[tokio::test]
async fn http_refuses_headers_that_are_not_the_guests() {
    let project = connected().await;
    for name in [
        "authorization",
        "Authorization",
        "cookie",
        "host",
        "transfer-encoding",
        "content-length",
        "connection",
        "upgrade",
        "expect",
        "te",
        "proxy-authorization",
        "x-api-key",
    ] {
        let tag = unique(8);
        let call = json!({ "url": format!("https://api.example.com/echo/{tag}"), "headers": { name: "mine" } });
        let answer = project.execute("ABI_FETCH", call).await.expect(200);
        assert!(
            !answer.failure().is_empty() && answer["error"].to_string().contains("header"),
            "{name}: {}",
            answer.text
        );
        assert_eq!(Host::application().seen(&tag).len(), 0, "{name}");
    }
    for value in ["a\r\nx-smuggled: 1", "a\nb", "a\0b"] {
        let call =
            json!({ "url": "https://api.example.com/echo/smuggle", "headers": { "x-own": value } });
        // NUL is refused before the call, the other characters within it.
        let answer = project.execute("ABI_FETCH", call).await;
        assert!(
            answer.status == 400 || !answer.failure().is_empty(),
            "{value:?}: {answer:#?}"
        );
    }
}

#[tokio::test]
async fn a_read_only_tool_may_only_read() {
    let project = connected().await;
    let tag = unique(8);
    let call = |method: &str| json!({ "url": format!("https://api.example.com/echo/{tag}"), "method": method });
    project
        .execute("ABI_FETCH_READ_ONLY", call("GET"))
        .await
        .data();
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let answer = project
            .execute("ABI_FETCH_READ_ONLY", call(method))
            .await
            .expect(200);
        assert_eq!(answer.failure(), "denied", "{method}: {}", answer.text);
    }
    assert_eq!(Host::application().seen(&tag).len(), 1);
}

#[tokio::test]
async fn http_sends_anonymously_and_saves_response_to_file() {
    let project = connected().await;
    let tag = unique(8);
    let url = format!("https://api.example.com/echo/{tag}");
    let arguments = json!({ "url": url, "anonymous": true, "into_file": true });
    let data = project.execute("ABI_FETCH", arguments).await.data();
    assert!(data["body"].as_str().unwrap().contains(&tag), "{data}");
    assert_eq!(
        Host::application().seen(&tag)[0].header("authorization"),
        ""
    );
}

#[tokio::test]
async fn guest_request_timeout_is_a_typed_error() {
    let project = connected().await;
    let call = json!({ "url": "https://api.example.com/hang/short", "timeout_ms": 200 });
    let answer = project.execute("ABI_FETCH", call).await.expect(200);
    assert!(
        ["timeout", "upstream_unavailable"].contains(&answer.failure()),
        "{}",
        answer.text
    );
}

#[tokio::test]
async fn several_requests_are_answered_in_the_order_given() {
    let project = connected().await;
    let url = |path: &str| format!("https://api.example.com/{path}");
    let urls = [
        url("slow/all/200"),
        url("status/all/404"),
        url("echo/all"),
        "https://elsewhere.example.org/".into(),
    ];
    let arguments = json!({ "urls": urls });
    let answers = project.execute("ABI_FETCH_ALL", arguments).await.data();
    assert_eq!(
        answers["answers"],
        json!(["200", "not_found", "200", "denied"])
    );
    let many: Vec<_> = (0..60).map(|_| url("echo/many")).collect();
    let arguments = json!({ "urls": many });
    let answers = project.execute("ABI_FETCH_ALL", arguments).await.data();
    let counted = |kind: &str| {
        answers["answers"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|answer| **answer == *kind)
            .count()
    };
    assert_eq!(
        (counted("200"), counted("internal")),
        (50, 10),
        "fifty requests a call: {answers}"
    );
}

#[tokio::test]
async fn files_go_out_as_parts_and_as_bodies() {
    let project = connected().await;
    let tag = unique(8);
    let call =
        json!({ "url": format!("https://api.example.com/echo/{tag}"), "text": "from a file" });
    project.execute("ABI_UPLOAD", call).await.data();
    let seen = Host::application().seen(&tag);
    let parts = String::from_utf8_lossy(&seen[0].body);
    assert!(
        seen[0]
            .header("content-type")
            .starts_with("multipart/form-data; boundary=")
    );
    for expected in [
        "a note",
        "filename=\"note.txt\"",
        "text/plain",
        "from a file",
        "raw.bin",
    ] {
        assert!(parts.contains(expected), "{expected}: {parts}");
    }
    assert_eq!(seen[1].method.as_str(), "PUT");
    assert_eq!(&seen[1].body[..], &b"from a file"[..]);
}

#[tokio::test]
async fn each_log_entry_is_kept_on_one_line() {
    let project = published().await.new_project().await;
    let arguments = json!({ "message": "first\nsecond \u{1b}[31mred \u{202e}back" });
    let answer = project.execute("ABI_WRITE_LOG", arguments).await;
    let log = log(&project, &answer).await;
    for level in ["debug", "info", "warn", "error"] {
        assert!(log.contains(level), "{level}: {log}");
    }
    answer.data();
    assert!(
        !log.contains('\u{202e}') && !log.contains("\\u001b"),
        "control characters are escaped: {log}"
    );
}

#[tokio::test]
async fn the_clock_moves_and_sleeping_takes_its_time() {
    let project = published().await.new_project().await;
    let arguments = json!({ "milliseconds": 50 });
    let times = project.execute("ABI_WAIT", arguments).await.data();
    let number = |name: &str| times[name].as_u64().unwrap();
    assert!(
        number("elapsed_after") >= number("elapsed_before") + 50,
        "{times}"
    );
    assert!(number("now") > 1_600_000_000_000, "{times}");
}

#[tokio::test]
async fn random_bytes_differ_and_are_bounded() {
    let project = published().await.new_project().await;
    let arguments = json!({ "length": 4096 });
    let bytes = project.execute("ABI_TAKE_RANDOM", arguments).await.data();
    assert_eq!(bytes["length"], 4096);
    assert!(bytes["distinct"].as_u64().unwrap() > 200, "{bytes}");
    let arguments = json!({ "length": 100_000_000 });
    let again = project.execute("ABI_TAKE_RANDOM", arguments).await.data();
    assert_eq!(again["length"], 65_536);
    assert_ne!(again["uuid"], bytes["uuid"]);
}

#[tokio::test]
async fn state_of_a_tool_ends_with_the_call() {
    let project = published().await.new_project().await;
    for _ in 0..3 {
        let arguments = json!({ "message": "hold this" });
        let data = project.execute("ABI_REMEMBER", arguments).await.data();
        assert_eq!(
            data,
            json!({ "before": null, "after": "hold this", "removed": null })
        );
    }
}

#[tokio::test]
async fn files_are_written_and_read() {
    let project = published().await.new_project().await;
    let arguments = json!({ "message": "kept" });
    let data = project.execute("ABI_KEEP", arguments).await.data();
    assert_eq!(
        data,
        json!({ "size": 11, "text": "kept, twice", "middle": "ept" })
    );
}

#[tokio::test]
async fn the_context_names_run_user_and_time() {
    let project = published().await.new_project().await;
    let body = json!({ "arguments": {}, "user_id": "amy", "version": "latest" });
    let answer = project.post("/tools/execute/ABI_TELL_CONTEXT", &body).await;
    let log_id = answer["log_id"].clone();
    let data = answer.data();
    assert_eq!(data["run_id"], log_id);
    assert_eq!(data["user_id"], "amy");
    assert!(
        (1..=30_000).contains(&data["remaining_ms"].as_u64().unwrap()),
        "{data}"
    );
}

#[tokio::test]
async fn an_error_arrives_with_all_it_carries() {
    let project = published().await.new_project().await;
    let arguments = json!({ "kind": "too_weak", "message": "the tea is" });
    let answer = project.execute("ABI_FAIL", arguments).await.expect(200);
    assert_eq!(answer.failure(), "too_weak");
    assert_eq!(answer["error"], "too_weak: the tea is");
    let data = &answer["data"];
    assert_eq!(data["upstream_status"], 418);
    assert_eq!(data["retry_after_ms"], 1500);
    assert_eq!(data["details"], json!({ "teapot": true }));
}

#[tokio::test]
async fn panic_is_a_trap_with_logged_message() {
    let project = published().await.new_project().await;
    let arguments = json!({ "message": "out of order" });
    let answer = project.execute("ABI_BREAK_DOWN", arguments).await;
    assert_eq!(answer.failure(), "tool_trap");
    assert!(log(&project, &answer).await.contains("out of order"));
    assert!(
        !answer.text.contains("backtrace") && !answer.text.contains("wasm!"),
        "{}",
        answer.text
    );
}
