//! A server asked to stop accepts no more requests, finishes started work, writes pending records,
//! and ends in time.

use std::{
    process::ExitStatus,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

use futures::future::join_all;
use harness::{Client, FakeApp, Guest, Host, client::Body, guest, host::Setup, unique, wait_until};
use reqwest::Method;
use serde_json::json;

use crate::given::{self, Oauth, string};

/// Executes a tool and creates auth configs until the server accepts no more requests. Returns the
/// ids of the logs and of the configs.
async fn work(
    client: Client,
    slug: &str,
    stopping: &AtomicBool,
    done: &AtomicUsize,
) -> [Vec<String>; 2] {
    let (mut logs, mut configs) = (Vec::new(), Vec::new());
    let execute = format!("/tools/execute/{}", guest::tool(slug));
    let call = json!({ "arguments": {}, "version": "latest" });
    loop {
        let config = json!({ "type": "use_custom_auth", "authScheme": "API_KEY", "name": unique(8), "credentials": {} });
        let config = json!({ "toolkit": { "slug": slug }, "auth_config": config });
        let (path, body) = match done.load(Ordering::Relaxed) % 2 {
            0 => (execute.as_str(), call.clone()),
            _ => ("/auth_configs", config),
        };
        let sent = client.try_send(Method::POST, path, Body::Json(body), &[]);
        match sent.await {
            Ok(answer) if path == execute => {
                logs.push(string(&answer.expect(200)["log_id"]));
            }
            Ok(answer) => {
                let made = answer.expect(201);
                configs.push(string(&made["auth_config"]["id"]));
            }
            Err(cause) => {
                let is_asked = stopping.load(Ordering::Relaxed);
                assert!(is_asked, "it stopped unasked: {cause}");
                return [logs, configs];
            }
        }
        done.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn graceful_stop_answers_all_accepted_requests() {
    // The log is written after the responses here, so records are pending when the server stops.
    let host = Setup::new().with("logs.wait", "false").start().await;
    let mut manifest = guest::manifest_with_key(&given::slug(), given::bearer());
    manifest["tools"][0]["no_auth"] = json!(true);
    host.publish(Guest::echo().component(), &manifest).await;
    let slug = manifest["slug"].as_str().unwrap();
    let (stopping, done) = (AtomicBool::new(false), AtomicUsize::new(0));
    let loads = join_all((0..8).map(|_| work(host.as_project(), slug, &stopping, &done)));
    let key = host.project_key.clone();
    let stopped = async {
        wait_until("all work", || async { done.load(Ordering::Relaxed) > 200 }).await;
        stopping.store(true, Ordering::Relaxed);
        host.terminate().await
    };
    let (answered, (setup, status)) = tokio::join!(loads, stopped);
    assert!(status.success(), "{status}");
    let host = setup.start().await;
    let client = host.with_key(&key);
    for [logs, configs] in answered {
        for log in logs {
            client.log(&json!(log)).await;
        }
        for config in configs {
            let path = format!("/auth_configs/{config}");
            client.get(&path).await.expect(200);
        }
    }
}

/// Starts a server with a tool that sends a request to a provider with this behavior, and returns
/// the call of that tool.
async fn asking(
    application: &FakeApp,
    drain: u64,
    behaviour: &str,
) -> (Host, impl Future<Output = Answered> + use<>) {
    let setup = Setup::new().with_application(&["api.example.com"], application);
    let setup = setup.with("limits.drain_s", drain.to_string());
    let host = setup.start().await;
    let (slug, mut manifest) = given::manifest();
    manifest["egress"] = json!([{ "host": "api.example.com" }]);
    host.publish(Guest::fetch().component(), &manifest).await;
    let client = host.as_project();
    let path = format!("/tools/execute/{}", guest::tool(&slug));
    let arguments = json!({ "url": format!("https://api.example.com/{behaviour}") });
    let body = Body::Json(json!({ "arguments": arguments, "version": "latest" }));
    (host, async move {
        client.try_send(Method::POST, &path, body, &[]).await
    })
}

type Answered = Result<harness::Answer, reqwest::Error>;

#[tokio::test(flavor = "multi_thread")]
async fn stopping_server_answers_a_slow_call() {
    let application = FakeApp::start();
    let tag = unique(8);
    let (host, call) = asking(&application, 30, &format!("slow/{tag}/1500")).await;
    let key = host.project_key.clone();
    let (answer, (setup, status)) = tokio::join!(call, terminated_amid(host, &application, &tag));
    assert!(status.success(), "{status}");
    let answer = answer.expect("what was begun is answered").expect(200);
    assert_eq!(answer["successful"], true, "{answer:#?}");
    let host = setup.start().await;
    host.with_key(&key).log(&answer["log_id"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_call_does_not_prevent_stopping() {
    let application = FakeApp::start();
    let tag = unique(8);
    let (host, call) = asking(&application, 1, &format!("hang/{tag}")).await;
    // The time is shorter than a guest's request timeout.
    let stopped = terminated_amid(host, &application, &tag);
    let stopped = tokio::time::timeout(Duration::from_secs(20), stopped);
    let (answer, stopped) = tokio::join!(call, stopped);
    let (setup, status) = stopped.expect("it stops when the time for what still runs is over");
    assert!(status.success(), "{status}");
    assert!(answer.is_err(), "the call is cut");
    setup.command(&["verify"]).succeeded();
}

/// Starts a server whose calls wait for two seconds for a token or a client.
async fn with_short_wait() -> Host {
    given::with_application()
        .with("limits.deadline_s", "3")
        .with("log", "info")
        .start()
        .await
}

/// Asks the server to stop, and releases the response of the provider when the server waits for
/// nothing else.
async fn stop_during_request(host: Host, oauth: &Oauth) -> Setup {
    host.signal("TERM");
    let said = "waiting until the tasks of accounts have ended";
    let is_waiting = async || host.output().contains(said);
    wait_until("only the request to the provider is left", is_waiting).await;
    oauth.issuer.hold(false);
    let (setup, status) = host.end().await;
    assert!(status.success(), "{status}");
    setup
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_server_stores_a_registered_client() {
    let host = with_short_wait().await;
    let project = host.as_project();
    // The next server has another address. A client is registered for one redirect URI.
    let credentials = json!({ "oauth_redirect_uri": "https://tools.example.com/back" });
    let oauth = Oauth::registered(&host, &project, credentials).await;
    oauth.issuer.hold(true);
    let body = json!({ "auth_config": { "id": oauth.config }, "connection": {} });
    project.post("/connected_accounts", &body).await.expect(503);
    oauth.issuer.wait_for("registration", 1).await;
    let host = stop_during_request(host, &oauth).await.start().await;
    let project = host.as_project();
    oauth.begin(&project, "https://app.example/done").await;
    assert_eq!(oauth.issuer.granted("registration"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_server_stores_a_refreshed_token() {
    let host = with_short_wait().await;
    let project = host.as_project();
    let oauth = Oauth::new(&host, &project).await;
    // Every token has expired when it is issued, so that the next call refreshes it.
    oauth.issuer.set(|settings| settings.lifetime = 1);
    let id = oauth.connect(&project).await;
    oauth.issuer.hold(true);
    oauth.execute(&project).await.expect(503);
    oauth.issuer.wait_for("refresh_token", 1).await;
    let setup = stop_during_request(host, &oauth).await;
    oauth.issuer.set(|settings| settings.lifetime = 3_600);
    let host = setup.start().await;
    let project = host.as_project();
    oauth.execute(&project).await.data();
    // The provider accepts each refresh token once.
    assert_eq!(given::status(&project, &id).await, "ACTIVE");
    assert_eq!(oauth.issuer.granted("refresh_token"), 2);
}

/// Asks the server to stop once its tool has sent its request.
async fn terminated_amid(host: Host, application: &FakeApp, tag: &str) -> (Setup, ExitStatus) {
    application.wait_for_requests(tag, 1).await;
    host.terminate().await
}
