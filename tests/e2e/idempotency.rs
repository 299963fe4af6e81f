//! Requests with an `Idempotency-Key` take effect at most once.

use futures::future::join_all;
use harness::{
    Answer, Client, FakeApp, Guest, Host, client::Body, guest, host::Setup, unique, wait_until,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{budget::assert_refused, given};

const NEW_PROJECT_PATH: &str = "/org/owner/project/new";

async fn send(client: &Client, path: &str, body: &Value, key: &str) -> Answer {
    let (body, headers) = (Body::Json(body.clone()), [("idempotency-key", key)]);
    client.send(Method::POST, path, body, &headers).await
}

/// Sends a call, and drops it when the provider has received its request.
async fn send_until_asked(application: &FakeApp, host: &Host, call: &(String, Value), tag: &str) {
    let (project, (path, body)) = (host.as_project(), call);
    tokio::select! {
        answer = send(&project, path, body, tag) => panic!("it was too quick: {answer:#?}"),
        () = application.wait_for_requests(tag, 1) => {}
    }
}

/// Starts a server with a tool that fetches an address, and returns a function that builds its
/// call.
async fn fetching(application: &FakeApp) -> (Host, impl Fn(&str) -> (String, Value)) {
    let host = Setup::new()
        .with_application(&["api.example.com"], application)
        .start()
        .await;
    let slug = given::slug();
    given::publish_with_key(&host, &Guest::fetch(), &slug).await;
    host.as_project().connect_with_key(&slug, "default").await;
    let path = format!("/tools/execute/{}", guest::tool(&slug));
    let call = move |url: &str| {
        let body = json!({ "arguments": { "url": url }, "version": "latest" });
        (path.clone(), body)
    };
    (host, call)
}

#[tokio::test]
async fn repeated_creation_replays_the_response() {
    let project = Host::shared().await.new_project().await;
    let config = given::auth_config(&project).await;
    let body = given::account(&config, "ada", &harness::secret());
    let path = "/connected_accounts";
    let first = send(&project, path, &body, "one").await.expect(201);
    let again = send(&project, path, &body, "one").await.expect(201);
    assert_eq!(again.text, first.text);
    for (answer, is_replayed) in [(first, ""), (again, "true")] {
        assert_eq!(answer.header("idempotency-replayed"), is_replayed);
    }
    send(&project, path, &body, "two").await.expect(201);
    let listed = project.get(path).await.expect(200);
    assert_eq!(listed["total_items"], 2);
}

#[tokio::test]
async fn idempotency_key_is_bound_to_one_request() {
    let host = Host::shared().await;
    let (one, other) = (host.new_project().await, host.new_project().await);
    let tool = format!("/tools/execute/{}", given::shared_echo().await);
    let call = |word: &str| json!({ "arguments": { "word": word }, "version": "latest" });
    let said = send(&one, &tool, &call("a"), "k").await.expect(200);
    let refused = send(&one, &tool, &call("b"), "k").await.expect(422);
    assert_eq!(refused["error"]["slug"], "Idempotency_KeyReused");
    let other_path = send(&one, "/auth_configs", &call("a"), "k").await;
    other_path.expect(422);
    let elsewhere = send(&other, &tool, &call("a"), "k").await.expect(200);
    assert_ne!(elsewhere["log_id"], said["log_id"]);
    for bad in ["", "two words", &"x".repeat(256)] {
        send(&one, &tool, &call("a"), bad).await.expect(400);
    }
    let nobody = host.anonymous();
    nobody.post(&tool, &call("a")).await.expect(401);
    send(&nobody, &tool, &call("a"), "k").await.expect(401);
}

#[tokio::test]
async fn a_refused_request_leaves_its_key_free() {
    let org = Host::shared().await.as_org();
    let key = unique(8);
    let create = async |name: &str| {
        let body = json!({ "name": name });
        send(&org, NEW_PROJECT_PATH, &body, &key).await
    };
    create("no").await.expect(400);
    let made = create(&key).await.expect(200);
    assert_eq!(create(&key).await.expect(200)["id"], made["id"]);
}

#[tokio::test]
async fn duplicates_that_come_at_once_run_once() {
    let application = FakeApp::start();
    let (host, call) = fetching(&application).await;
    let tag = unique(8);
    let (path, body) = call(&format!("https://api.example.com/slow/{tag}/200"));
    let project = host.as_project();
    let answers = join_all((0..8).map(|_| send(&project, &path, &body, &tag))).await;
    assert_eq!(application.seen(&tag).len(), 1);
    assert!(answers.iter().any(|answer| answer.status == 200));
    let replayed = send(&project, &path, &body, &tag).await.expect(200);
    for answer in answers {
        if answer.status == 200 {
            assert_eq!(answer["log_id"], replayed["log_id"]);
            continue;
        }
        let refused = answer.expect_error(409, "Idempotency_Unanswered");
        assert!(!refused.header("retry-after").is_empty());
    }
}

#[tokio::test]
async fn response_is_replayed_after_a_kill() {
    let application = FakeApp::start();
    let (host, call) = fetching(&application).await;
    let tag = unique(8);
    let (path, body) = call(&format!("https://api.example.com/echo/{tag}"));
    let first = send(&host.as_project(), &path, &body, &tag).await;
    let again = host.kill().start().await;
    let replayed = send(&again.as_project(), &path, &body, &tag).await;
    assert_eq!(replayed.expect(200).text, first.expect(200).text);
    assert_eq!(application.seen(&tag).len(), 1);
}

#[tokio::test]
async fn killed_request_is_never_executed_again() {
    let application = FakeApp::start();
    let (host, call) = fetching(&application).await;
    let tag = unique(8);
    let call = call(&format!("https://api.example.com/hang/{tag}"));
    send_until_asked(&application, &host, &call, &tag).await;
    let again = host.kill().start().await;
    let (project, (path, body)) = (again.as_project(), call);
    for _ in 0..3 {
        send(&project, &path, &body, &tag).await.expect(409);
    }
    assert_eq!(application.seen(&tag).len(), 1);
}

#[tokio::test]
async fn disconnected_client_can_fetch_the_response_later() {
    let application = FakeApp::start();
    let (host, call) = fetching(&application).await;
    let tag = unique(8);
    let call = call(&format!("https://api.example.com/slow/{tag}/300"));
    send_until_asked(&application, &host, &call, &tag).await;
    let (project, (path, body)) = (host.as_project(), call);
    wait_until("the answer is there", || async {
        send(&project, &path, &body, &tag).await.status == 200
    })
    .await;
    assert_eq!(application.seen(&tag).len(), 1);
}

#[tokio::test]
async fn answered_proxy_request_is_never_sent_again() {
    let setup = given::with_application().with("files.quota_mib", "1");
    let host = setup.start().await;
    let (_, account) = given::fetcher(&host).await;
    let tag = unique(8);
    let away = format!("/redirect/{tag}?to=https://files.example.net/");
    for (endpoint, status) in [(format!("/bytes/{tag}/2000000"), 507), (away, 403)] {
        let body =
            json!({ "connected_account_id": account, "endpoint": endpoint, "method": "POST" });
        let key = format!("{tag}{status}");
        let sent_before = given::seen(&tag);
        for expected in [status, 409] {
            let answer = send(&host.as_project(), "/tools/execute/proxy", &body, &key).await;
            answer.expect(expected);
        }
        assert_eq!(given::seen(&tag), sent_before + 1);
    }
}

#[tokio::test]
async fn tool_results_follow_the_log_setting() {
    let settings = json!({ "log_visibility_setting": "dont_store_data" });
    let (_, project) = given::project(Host::shared().await, settings).await;
    let tool = format!("/tools/execute/{}", given::shared_echo().await);
    let call = json!({ "arguments": { "word": "quiet" }, "version": "latest" });
    send(&project, &tool, &call, "k").await.expect(200);
    let again = send(&project, &tool, &call, "k").await.expect(409);
    assert_eq!(again["error"]["slug"], "Idempotency_AnswerGone");
}

#[tokio::test]
async fn stored_response_is_encrypted() {
    let host = Setup::embedded().start().await;
    let body = json!({ "name": unique(8), "should_create_api_key": true });
    let made = send(&host.as_org(), NEW_PROJECT_PATH, &body, "k").await;
    let key = made["api_key"].as_str().unwrap();
    let (setup, _) = host.terminate().await;
    let found = std::process::Command::new("grep")
        .args(["-r", "-a", "-l", key])
        .arg(setup.data())
        .output()
        .unwrap();
    assert!(
        found.stdout.is_empty(),
        "{}",
        String::from_utf8_lossy(&found.stdout)
    );
}

#[tokio::test]
async fn deadline_ends_work_with_idempotency_key() {
    let host = given::with_application()
        .with("limits.deadline_s", "2")
        .with("limits.in_flight", "2")
        .start()
        .await;
    let (project, slug, tag) = (host.new_project().await, given::slug(), unique(8));
    let request =
        json!([{ "in": "header", "name": "authorization", "value": "Bearer {access_token}" }]);
    let flow = json!({ "token_url": format!("https://api.example.com/hang/{tag}") });
    let scheme = json!({ "mode": "S2S_OAUTH2", "name": "S2S", "request": request, "oauth2": flow });
    given::publish_with_scheme(&host, &slug, scheme).await;
    let credentials = json!({ "client_id": "c", "client_secret": harness::secret() });
    let config = project.auth_config(&slug, "S2S_OAUTH2", credentials).await;
    let connection =
        json!({ "user_id": "default", "state": { "authScheme": "S2S_OAUTH2", "val": {} } });
    let body = json!({ "auth_config": { "id": config }, "connection": connection });
    let late = send(&project, "/connected_accounts", &body, "k").await;
    let (row, slug) = ("Deadline of an operation", "Server_DeadlineExceeded");
    assert_refused(row, &late, 503, slug);
    assert_eq!(given::seen(&tag), 1);
    // The concurrency slot is free, because no work continues in the background.
    project.get("/auth/session/info").await.expect(200);
    let again = send(&project, "/connected_accounts", &body, "k").await;
    again.expect_error(409, "Idempotency_Unanswered");
}
