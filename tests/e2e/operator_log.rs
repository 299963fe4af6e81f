//! The log for operators: one line for each request and each execution, and one for each change of
//! keys, settings and toolkits.

use harness::{Host, host::Setup, unique, wait_until};
use serde_json::{Value, json};

use crate::given;

async fn logging() -> Host {
    Setup::new()
        .with("log", "info")
        .with("log_format", "json")
        .start()
        .await
}

/// Returns the lines of the log with this message.
fn lines(host: &Host, message: &str) -> Vec<Value> {
    let output = host.output();
    let lines = output
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    lines
        .filter(|line: &Value| line["message"] == message)
        .collect()
}

/// Returns the only line with this message and this request id.
#[track_caller]
fn line_of(host: &Host, message: &str, request_id: &str) -> Value {
    let mut lines = lines(host, message);
    lines.retain(|line| line["request_id"] == request_id);
    assert_eq!(lines.len(), 1, "{message} {request_id}: {lines:?}");
    lines.remove(0)
}

#[tokio::test]
async fn oauth_app_without_toolkit_is_reported_at_start() {
    let host = Setup::new()
        .with("oauth_apps.nonesuch.client_id", "public")
        .start()
        .await;
    wait_until("the OAuth app is reported", || async {
        let warning = "`oauth_apps.nonesuch` has no effect";
        host.output().contains(warning)
    })
    .await;
}

#[tokio::test]
async fn each_request_and_execution_has_a_line() {
    let host = logging().await;
    let tool = given::echo(&host).await;
    let project = host.as_project();
    let own = project.project_id().await;
    let ran = project.execute(&tool, json!({ "word": "unlogged" })).await;
    let id = ran.header("x-request-id");
    wait_until("the request is logged", || async {
        lines(&host, "request")
            .iter()
            .any(|line| line["request_id"] == id)
    })
    .await;
    let request = line_of(&host, "request", id);
    assert_eq!(request["level"], "INFO");
    assert_eq!(request["target"], "toolhost::request");
    assert_eq!(request["method"], "POST");
    assert_eq!(request["route"], "/api/v3/tools/execute/{tool_slug}");
    assert_eq!(request["status"], 200);
    assert_eq!(request["project"], own);
    assert!(request["duration_ms"].as_f64().is_some_and(|ms| ms > 0.0));
    let execution = line_of(&host, "execution", id);
    assert_eq!(execution["target"], "toolhost::execution");
    assert_eq!(execution["tool"], tool);
    assert_eq!(execution["version"], "20260101_00");
    assert_eq!(execution["outcome"], "success");
    assert_eq!(execution["project"], own);
    assert_eq!(execution["log_id"], ran["log_id"]);
    assert!(execution["duration_ms"].is_f64());
    assert!(!host.output().contains("unlogged"));
}

#[tokio::test]
async fn paths_and_queries_are_not_logged() {
    let host = logging().await;
    let word = unique(12);
    let project = host.as_project();
    for path in [
        format!("/link/{word}"),
        format!("/{word}"),
        format!("/docs?{word}"),
    ] {
        project.try_get_root(&path).await.unwrap();
    }
    wait_until("three requests are logged", || async {
        let requests = lines(&host, "request");
        let paths = ["/link/{token}", "/docs"].map(Value::from);
        paths
            .iter()
            .all(|path| requests.iter().any(|line| line["route"] == *path))
            && requests
                .iter()
                .any(|line| line["route"].is_null() && line["status"] == 404)
    })
    .await;
    assert!(!host.output().contains(&word));
}

#[tokio::test]
async fn start_stop_and_changes_have_lines() {
    let host = logging().await;
    let started = lines(&host, "the server has started");
    assert_eq!(started.len(), 1);
    assert!(host.url.ends_with(started[0]["address"].as_str().unwrap()));
    let tool = given::echo(&host).await;
    let slug = given::toolkit_of(&tool);
    let project = host.new_project().await;
    let own = project.project_id().await;
    let own = own.as_str();
    let keys = format!("/org/owner/project/{own}/api_keys");
    let body = json!({ "name": "second" });
    let key = host.as_org().post(&keys, &body).await.expect(201);
    let key = key["id"].as_str().unwrap();
    let revoked = host.as_org().delete(&format!("{keys}/{key}")).await;
    revoked.expect(200);
    given::configure(&project, json!({ "display_name": "Acme" })).await;
    host.new_member("viewer").await;
    for (message, member, value) in [
        (
            "a version of a toolkit was published",
            "toolkit",
            slug.as_str(),
        ),
        ("a project was created", "project", own),
        ("a key was added", "key", key),
        ("a key was revoked", "key", key),
        ("the settings of a project were changed", "project", own),
        ("a member was added", "target", "toolhost::audit"),
    ] {
        let lines = lines(&host, message);
        let found = lines.iter().find(|line| line[member] == value);
        assert!(found.is_some(), "{message}: {lines:?}");
    }
    host.signal("TERM");
    wait_until("the server has stopped", || async {
        !lines(&host, "the server has stopped").is_empty()
    })
    .await;
}

#[tokio::test]
async fn requests_are_not_logged_at_warn() {
    let setup = Setup::new().with("log", "warn").with("log_format", "json");
    let host = setup.start().await;
    let tool = given::echo(&host).await;
    host.as_project().execute(&tool, json!({})).await.data();
    for message in ["request", "execution", "the server has started"] {
        assert!(lines(&host, message).is_empty(), "{message}");
    }
}
