//! Webhooks that providers send: their signatures, limits, repetitions and handshakes.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use harness::{
    Answer, Client, Guest, Host, Inbox, Issuer,
    client::Body,
    event_reader::EventReader,
    fake_app::gzip_of_spaces,
    guest,
    host::{Setup, size},
    issuer::Fault,
    signed::hmac_sha256,
    wait_until,
};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{sync::OnceCell, task::JoinSet};

use crate::{
    documents,
    given::{self, Oauth, string},
    webhook_subscribing::path_of,
};

const STREAM_PATH: &str = "/trigger_instances/stream";
const JSON_MEDIA_TYPE: &str = "application/json";

/// A repository of the shipped GitHub toolkit that sends webhooks to an endpoint of a project.
struct GitHub {
    project: Client,
    account: String,
    /// Path of the endpoint in the API.
    endpoint: String,
    /// Path at which the endpoint receives webhooks.
    address: String,
    secret: String,
}

/// Returns the server with the toolkits of GitHub and Slack that the tests share.
async fn shared_host() -> &'static Host {
    static WEBHOOKS_HOST: OnceCell<&Host> = OnceCell::const_new();
    WEBHOOKS_HOST
        .get_or_init(|| async {
            let toolkits = documents::folder_with(&["github", "slack"]);
            let setup = Setup::new().with("toolkits", toolkits.path().to_str().unwrap());
            setup.start().await.until_exit()
        })
        .await
}

/// Returns the headers of a delivery with a signature.
fn headers<'a>(delivery: &'a str, signature: &'a str) -> [(&'a str, &'a str); 3] {
    [
        ("x-github-event", "issues"),
        ("x-github-delivery", delivery),
        ("x-hub-signature-256", signature),
    ]
}

/// Returns the headers of a delivery with any number of signatures.
fn signed<'a>(delivery: &'a str, signatures: &[&'a str]) -> Vec<(&'a str, &'a str)> {
    let mut all = headers(delivery, "")[..2].to_vec();
    all.extend(signatures.iter().map(|one| ("x-hub-signature-256", *one)));
    all
}

fn signature(secret: &str, body: &str) -> String {
    format!("sha256={}", hmac_sha256(secret, body))
}

/// Returns the body of the event that an issue was opened, as GitHub formats it.
fn opened(number: u64) -> String {
    format!(
        r#"{{"action":"opened","issue":{{"number":{number},"state":"open","title":"A bug","html_url":"https://github.com/o/r/issues/1","created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z"}},"repository":{{"full_name":"o/r"}}}}"#
    )
}

async fn send(client: &Client, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let body = Body::Raw(JSON_MEDIA_TYPE, body.as_bytes().to_vec());
    client.send(Method::POST, path, body, headers).await
}

/// Returns the path at which a created endpoint receives webhooks.
fn address_of(made: &Answer) -> String {
    path_of(given::text(&made["webhook_url"])).to_owned()
}

async fn connect(project: &Client, toolkit: &str) -> String {
    let token = json!({ "token": harness::secret() });
    project.connect(toolkit, "BEARER_TOKEN", "amy", token).await
}

impl GitHub {
    /// Creates an endpoint with a secret and an instance without one.
    async fn new(project: Client) -> Self {
        let account = connect(&project, "github").await;
        let body = json!({ "toolkit_slug": "github", "client_id": "repository" });
        let made = project.post("/webhook_endpoints", &body).await.expect(201);
        let secret = harness::secret();
        let endpoint = format!("/webhook_endpoints/{}", string(&made["id"]));
        let values = json!({ "data": { "secret": secret } });
        project.patch(&endpoint, &values).await.expect(200);
        let github = Self {
            address: address_of(&made),
            project,
            account,
            endpoint,
            secret,
        };
        github.instance(json!({})).await;
        github
    }

    async fn shared() -> Self {
        Self::new(shared_host().await.new_project().await).await
    }

    async fn instance(&self, config: Value) -> String {
        let body = json!({ "connected_account_id": self.account, "trigger_config": config });
        let path = "/trigger_instances/GITHUB_ISSUE_CHANGED/upsert";
        string(&self.project.post(path, &body).await.expect(201)["trigger_id"])
    }

    /// Returns the error of the last webhook of the only instance.
    async fn last_error(&self) -> Value {
        let listed = self.project.get("/trigger_instances/active").await;
        listed.expect(200)["items"][0]["last_error"].clone()
    }

    async fn stream(&self) -> EventReader {
        self.project.open_stream(STREAM_PATH, None).await
    }

    /// Sends a signed delivery to the endpoint.
    async fn deliver(&self, delivery: &str, number: u64) -> Answer {
        let body = opened(number);
        let signed = signature(&self.secret, &body);
        self.send(&headers(delivery, &signed), &body).await
    }

    async fn send(&self, headers: &[(&str, &str)], body: &str) -> Answer {
        send(&self.project, &self.address, headers, body).await
    }
}

/// Returns the number of the issue in the next event.
async fn next_issue(stream: &mut EventReader) -> u64 {
    let event = stream.next().await.expect("the stream is open");
    event.data["data"]["issue"]["number"].as_u64().unwrap()
}

#[tokio::test]
async fn webhook_is_received_after_an_upgrade() {
    let toolkits = documents::folder_with(&["github"]);
    let setup = Setup::new().with("toolkits", toolkits.path().to_str().unwrap());
    let host = setup.start().await;
    let mut github = GitHub::new(host.new_project().await).await;
    github.deliver("before", 1).await.expect(200);
    let (setup, _) = host.terminate().await;
    // The compiled form of an earlier version is of no use. No tool of the toolkit is called.
    fs::remove_dir_all(setup.data().join("compiled")).unwrap();
    let host = setup.start().await;
    github.project = host.with_key(github.project.key());
    wait_until("a repeated webhook is received", async || {
        github.deliver("after", 2).await.status == 200
    })
    .await;
}

#[tokio::test]
async fn signed_webhook_becomes_an_event() {
    let github = GitHub::shared().await;
    let mut stream = github.stream().await;
    let body = opened(7);
    let signed = signature(&github.secret, &body);
    let nobody = shared_host().await.anonymous();
    let mut headers = headers("d1", &signed).to_vec();
    headers.push(("idempotency-key", "of the provider"));
    let answer = send(&nobody, &github.address, &headers, &body).await;
    assert_eq!(answer.expect(200).text, "");
    let event = stream.next().await.unwrap();
    assert_eq!(event.data["type"], "service.trigger.message");
    let metadata = &event.data["metadata"];
    assert_eq!(metadata["trigger_slug"], "GITHUB_ISSUE_CHANGED");
    assert_eq!(metadata["connected_account_id"], github.account);
    assert_eq!(event.data["data"]["repository"], "o/r");
    let newer = nobody.with_newer_prefix();
    let body = opened(8);
    let signed = signature(&github.secret, &body);
    let headers = self::headers("d2", &signed);
    let answer = send(&newer, &github.address, &headers, &body).await;
    answer.expect(200);
    assert_eq!(next_issue(&mut stream).await, 8);
}

#[tokio::test]
async fn forged_webhooks_are_refused_in_same_words() {
    let github = GitHub::shared().await;
    let other = GitHub::shared().await;
    let mut stream = github.stream().await;
    let body = opened(1);
    let valid = signature(&github.secret, &body);
    let flipped = valid.replacen(['a', 'b', 'c', 'd', 'e', 'f'], "0", 1);
    let spaced = serde_json::to_string_pretty(&serde_json::from_str::<Value>(&body).unwrap());
    let spaced = spaced.unwrap();
    let of_other = signature(&other.secret, &body);
    let of_sha1 = "sha1=0123456789012345678901234567890123456789";
    let mut other_algorithm = signed("d1", &[]);
    other_algorithm.push(("x-hub-signature", of_sha1));
    let cases = [
        ("another body", signed("d1", &[&valid]), &*opened(2)),
        ("written anew", signed("d1", &[&valid]), spaced.as_str()),
        ("another digit", signed("d1", &[&flipped]), body.as_str()),
        ("another tenant's secret", signed("d1", &[&of_other]), &body),
        ("no signature", signed("d1", &[""]), &body),
        ("no header", signed("d1", &[]), &body),
        (
            "a valid and a wrong signature",
            signed("d1", &[&valid, &flipped]),
            &body,
        ),
        (
            "a wrong and a valid signature",
            signed("d1", &[&flipped, &valid]),
            &body,
        ),
        ("another algorithm", other_algorithm, &body),
    ];
    // The words are always the same.
    let mut texts = Vec::new();
    for (case, headers, body) in cases {
        let refused = github.send(&headers, body).await.expect(401);
        texts.push((case, string(&refused["error"]["message"])));
    }
    assert!(
        texts.iter().all(|(_, text)| *text == texts[0].1),
        "{texts:#?}"
    );
    let error = string(&github.last_error().await);
    assert!(error.contains("signature"), "{error}");
    github.deliver("d1", 3).await.expect(200);
    assert_eq!(next_issue(&mut stream).await, 3, "the only event");
    assert_eq!(github.last_error().await, Value::Null);
}

#[tokio::test]
async fn unknown_addresses_are_refused_in_same_words() {
    let github = GitHub::shared().await;
    let id = github.endpoint.rsplit('/').next().unwrap();
    let project = github.project.project_id().await;
    for path in [
        "/webhook_ingress/github/we_AAAAAAAAAAAAAAAAAAAAAA/trigger_event".to_owned(),
        "/webhook_ingress/github/no%20id/trigger_event".to_owned(),
        format!("/webhook_ingress/slack/{id}/trigger_event"),
        format!("/webhook_ingress/github/{project}/trigger_event"),
        "/trigger_instances/github/proj_AAAAAAAAAAAA/handle".to_owned(),
        "/trigger_instances/github/no%20id/handle".to_owned(),
        format!("/trigger_instances/no_such_toolkit/{project}/handle"),
    ] {
        for method in [Method::POST, Method::GET] {
            let answer = github.project.send(method, &path, Body::None, &[]).await;
            let refused = answer.expect(404);
            let message = &refused["error"]["message"];
            assert_eq!(message, "there is nothing at this path", "{path}");
        }
    }
}

#[tokio::test]
async fn trailers_of_a_webhook_are_ignored() {
    let github = GitHub::shared().await;
    let mut stream = github.stream().await;
    let body = opened(7);
    let signed = signature(&github.secret, &body);
    let (first, rest) = body.split_at(10);
    let wrong = signature("another secret", &body);
    for (header, trailer, status) in [
        (Some(&signed), &wrong, "200"),
        (None, &signed, "401"),
        (Some(&wrong), &signed, "401"),
    ] {
        let header = header.map(|header| format!("x-hub-signature-256: {header}\r\n"));
        let request = format!(
            "POST /api/v3.1{} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n\
             x-github-event: issues\r\nx-github-delivery: d1\r\n{}trailer: x-hub-signature-256\r\n\
             transfer-encoding: chunked\r\n\r\n{:x}\r\n{first}\r\n{:x}\r\n{rest}\r\n0\r\n\
             x-hub-signature-256: {trailer}\r\n\r\n",
            github.address,
            header.unwrap_or_default(),
            first.len(),
            rest.len(),
        );
        let answer = github.project.raw(request.as_bytes()).await;
        let start = format!("HTTP/1.1 {status}");
        assert!(answer.starts_with(&start), "{answer}");
    }
    assert_eq!(next_issue(&mut stream).await, 7);
}

#[tokio::test]
async fn unusable_requests_are_refused() {
    let github = GitHub::shared().await;
    let mut stream = github.stream().await;
    let body = opened(1);
    let signed = signature(&github.secret, &body);
    let mut packed = headers("d1", &signed).to_vec();
    packed.push(("content-encoding", "gzip"));
    let bomb = Body::Raw(JSON_MEDIA_TYPE, gzip_of_spaces(8 << 20));
    let post = async |body: Body, headers: &[(&str, &str)]| {
        let project = &github.project;
        project
            .send(Method::POST, &github.address, body, headers)
            .await
    };
    post(bomb, &packed).await.expect(415);
    for (bytes, status) in [(1 << 20, 200), ((1 << 20) + 1, 413)] {
        let body = format!("{}{}", opened(2), " ".repeat(bytes - opened(2).len()));
        let signed = signature(&github.secret, &body);
        let headers = headers("d2", &signed);
        let answer = github.send(&headers, &body).await;
        assert_eq!(answer.status, status, "{bytes} bytes: {}", answer.text);
    }
    let form = Body::Raw("application/x-www-form-urlencoded", body.clone().into());
    let headers = headers("d3", &signed);
    let answer = post(form, &headers).await.expect(400);
    assert!(answer.text.contains("content type"), "{}", answer.text);
    assert_eq!(next_issue(&mut stream).await, 2);
    github.deliver("d4", 3).await.expect(200);
    assert_eq!(next_issue(&mut stream).await, 3);
}

#[tokio::test]
async fn repeated_webhook_is_one_event() {
    let github = GitHub::shared().await;
    let mut stream = github.stream().await;
    let repeated = (0..100).map(|_| github.deliver("d1", 1));
    for answer in futures::future::join_all(repeated).await {
        // A request that the server cannot handle in time is to be repeated.
        assert!([200, 429, 503].contains(&answer.status), "{answer:#?}");
    }
    for (delivery, number) in [("d1", 1), ("d2", 2)] {
        wait_until("the server has time for the webhook", async || {
            github.deliver(delivery, number).await.status == 200
        })
        .await;
    }
    assert_eq!(next_issue(&mut stream).await, 1);
    assert_eq!(next_issue(&mut stream).await, 2);
}

#[tokio::test]
async fn values_of_endpoint_precede_the_configuration() {
    let github = GitHub::shared().await;
    let mut stream = github.stream().await;
    let own = harness::secret();
    let config = json!({ "secret": own, "repository": "o/r" });
    github.instance(config).await;
    let body = opened(1);
    let signed = signature(&own, &body);
    let headers = headers("d1", &signed);
    github.send(&headers, &body).await.expect(401);
    github.deliver("d2", 2).await.expect(200);
    let [first, second] = [stream.next().await.unwrap(), stream.next().await.unwrap()];
    for event in [&first, &second] {
        assert_eq!(event.data["data"]["issue"]["number"], 2);
    }
    let trigger = |event: &Value| event["metadata"]["trigger_id"].clone();
    assert_ne!(trigger(&first.data), trigger(&second.data));
    // The older address lacks values. The instance without a secret refuses everything.
    let project = github.project.project_id().await;
    let older = format!("/trigger_instances/github/{project}/handle");
    let answer = send(&github.project, &older, &headers, &body).await;
    answer.expect(200);
    assert_eq!(next_issue(&mut stream).await, 1);
    let signed = signature(&github.secret, &body);
    let headers = self::headers("d3", &signed);
    let refused = send(&github.project, &older, &headers, &body).await;
    assert!([400, 401].contains(&refused.status), "{refused:#?}");
}

#[tokio::test]
async fn instances_that_may_not_receive_do_not() {
    let mut github = GitHub::shared().await;
    let mut stream = github.stream().await;
    let listed = github.project.get("/trigger_instances/active").await;
    let instance = string(&listed.expect(200)["items"][0]["id"]);
    let manage = format!("/trigger_instances/manage/{instance}");
    let account = format!("/connected_accounts/{}/status", github.account);
    let change = async |path: &str, change: Value| {
        github.project.patch(path, &change).await.expect(200);
    };
    change(&manage, json!({ "status": "disable" })).await;
    github.deliver("d1", 1).await.expect(200);
    change(&manage, json!({ "status": "enable" })).await;
    change(&account, json!({ "enabled": false })).await;
    github.deliver("d2", 2).await.expect(200);
    let event = stream.next().await.unwrap();
    assert_eq!(event.data["type"], "service.trigger.disabled");
    assert_eq!(event.data["data"]["disabled_reason"], "connection_expired");
    github.deliver("d2", 2).await.expect(200);
    change(&account, json!({ "enabled": true })).await;
    github.deliver("d3", 3).await.expect(200);
    assert_eq!(next_issue(&mut stream).await, 3);
    let account = format!("/connected_accounts/{}", github.account);
    github.project.delete(&account).await.expect(200);
    github.deliver("d4", 4).await.expect(200);
    github.account = connect(&github.project, "github").await;
    github.instance(json!({})).await;
    github.deliver("d5", 5).await.expect(200);
    assert_eq!(next_issue(&mut stream).await, 5);
}

#[tokio::test]
async fn deletion_ends_the_reception() {
    let github = GitHub::shared().await;
    github.deliver("d1", 1).await.expect(200);
    github.project.delete(&github.endpoint).await.expect(200);
    github.deliver("d2", 2).await.expect(404);
    let github = GitHub::shared().await;
    github.deliver("d1", 1).await.expect(200);
    let project = github.project.project_id().await;
    shared_host().await.delete_project(&project).await;
    github.deliver("d2", 2).await.expect(404);
}

#[tokio::test]
async fn rate_of_an_address_is_limited() {
    // Two fifths of the rate are for webhooks.
    let setup = Setup::new().with("limits.rate_per_project", "20");
    let host = setup.start().await;
    let given = Receiving::new(&host, &Guest::receive(1)).await;
    for _ in 0..8 {
        given.send().await.expect(200);
    }
    let answer = given.send().await;
    let answer = answer.expect_error(429, "Webhook_TooManyRequests");
    assert!(!answer.header("retry-after").is_empty(), "{answer:#?}");
    let other = Receiving::new(&host, &Guest::receive(1)).await;
    other.send().await.expect(200);
}

/// A toolkit made of a guest, whose webhooks need no signature, and an endpoint with one instance.
struct Receiving {
    project: Client,
    trigger: String,
    account: String,
    address: String,
}

impl Receiving {
    async fn new(host: &Host, guest: &Guest<'_>) -> Self {
        let (toolkit, mut manifest) = given::manifest_with_key();
        manifest["triggers"] = json!([given::arrived(&toolkit)]);
        host.publish(guest.component(), &manifest).await;
        let project = host.new_project().await;
        let account = project.connect_with_key(&toolkit, "amy").await;
        Self::of(project, &toolkit, account).await
    }

    /// Creates an endpoint for the trigger [`given::arrived`] of a toolkit, with one instance.
    async fn of(project: Client, toolkit: &str, account: String) -> Self {
        let body = json!({ "toolkit_slug": toolkit, "client_id": "app" });
        let made = project.post("/webhook_endpoints", &body).await.expect(201);
        let given = Self {
            address: address_of(&made),
            trigger: string(&given::arrived(toolkit)["slug"]),
            project,
            account,
        };
        given.instance(0).await;
        given
    }

    async fn instance(&self, number: u64) {
        let config = json!({ "number": number });
        let body = json!({ "connected_account_id": self.account, "trigger_config": config });
        let path = format!("/trigger_instances/{}/upsert", self.trigger);
        self.project.post(&path, &body).await.expect(201);
    }

    async fn send(&self) -> Answer {
        send(&self.project, &self.address, &[], "{}").await
    }
}

#[tokio::test]
async fn token_that_cannot_be_refreshed_delays_no_webhook() {
    let (host, project) = Host::shared_with_project().await;
    let (guest, credentials) = (Guest::receive(1), Issuer::credentials());
    let oauth = Oauth::of_guest(host, &project, credentials, &guest, |slug, issuer| {
        let mut manifest = guest::manifest_with_scheme(slug, issuer.scheme());
        manifest["triggers"] = json!([given::arrived(slug)]);
        manifest
    })
    .await;
    // A token that expires within seconds counts as expired.
    oauth.issuer.set(|settings| settings.lifetime = 1);
    let account = oauth.connect(&project).await;
    oauth.issuer.fault(Fault::Status(503), 100);
    let given = Receiving::of(project, &oauth.slug, account).await;
    let mut stream = given.project.open_stream(STREAM_PATH, None).await;
    given.send().await.expect(200);
    let event = stream.next().await.expect("the stream is open");
    assert_eq!(event.data["type"], "service.trigger.message");
}

#[tokio::test]
async fn every_matching_instance_receives_a_webhook() {
    const INSTANCE_COUNT: u64 = 70;
    let given = Receiving::new(Host::shared().await, &Guest::receive(2)).await;
    for number in 1..INSTANCE_COUNT {
        given.instance(number).await;
    }
    let mut stream = given.project.open_stream(STREAM_PATH, None).await;
    // A slow machine needs several requests, as a provider repeats them.
    wait_until("every instance has its event", async || {
        given.send().await.status == 200
    })
    .await;
    let mut triggers = BTreeSet::new();
    while (triggers.len() as u64) < INSTANCE_COUNT {
        let event = stream.next().await.expect("the stream is open");
        let trigger = string(&event.data["metadata"]["trigger_id"]);
        assert!(triggers.insert(trigger), "one event of each instance");
    }
}

#[tokio::test]
async fn failed_reception_is_to_be_repeated() {
    for guest in [Guest::slow_receive(), Guest::receive(1_001), Guest::echo()] {
        let given = Receiving::new(Host::shared().await, &guest).await;
        let answer = given.send().await.expect_error(503, "Webhook_Failed");
        assert!(!answer.header("retry-after").is_empty(), "{answer:#?}");
    }
}

#[tokio::test]
async fn webhook_past_the_quota_is_to_be_repeated() {
    // The payload and 1 KiB for the event are the whole quota.
    const FILLER_BYTES: usize = (1 << 20) - (1 << 10) - r#"{"filler":""}"#.len();
    let host = Setup::new().with("limits.records_mib", "2").start().await;
    let given = Receiving::new(&host, &Guest::receive_ids()).await;
    let deliver = async |id: &str| send(&given.project, &given.address, &[], id).await;
    deliver("one").await.expect(200);
    let path = format!("{}/test", given::subscribe(&given.project).await);
    let whole = json!({ "data": { "filler": "x".repeat(FILLER_BYTES) } });
    given.project.post(&path, &whole).await.expect(507);
    let rest = json!({ "data": { "filler": "x".repeat(FILLER_BYTES - (2 << 10)) } });
    given.project.post(&path, &rest).await.expect(201);
    let refused = deliver("two").await.expect_error(503, "Webhook_Failed");
    assert!(!refused.header("retry-after").is_empty(), "{refused:#?}");
    deliver("one").await.expect(200);
}

#[tokio::test]
async fn handshakes_are_answered() {
    let given = Receiving::new(Host::shared().await, &Guest::receive(1)).await;
    for method in [Method::GET, Method::POST] {
        let path = format!("{}?token=x", given.address);
        let answer = given.project.send(method, &path, Body::None, &[]).await;
        let answer = answer.expect(200);
        assert_eq!(answer.text, "hello_1");
        assert!(answer.header("content-type").starts_with("text/plain"));
    }
}

/// Returns the headers of a request of Slack, signed at a Unix time.
fn slack_headers(secret: &str, time: i64, body: &str) -> [(&'static str, String); 2] {
    let digits = hmac_sha256(secret, &format!("v0:{time}:{body}"));
    [
        ("x-slack-request-timestamp", time.to_string()),
        ("x-slack-signature", format!("v0={digits}")),
    ]
}

#[tokio::test]
async fn challenge_is_returned_only_if_signed_and_recent() {
    let project = shared_host().await.new_project().await;
    let account = connect(&project, "slack").await;
    let body = json!({ "toolkit_slug": "slack", "client_id": "app" });
    let made = project.post("/webhook_endpoints", &body).await.expect(201);
    let secret = harness::secret();
    let values = json!({ "data": { "signing_secret": secret } });
    let endpoint = format!("/webhook_endpoints/{}", string(&made["id"]));
    project.patch(&endpoint, &values).await.expect(200);
    let body = json!({ "connected_account_id": account });
    let upsert = "/trigger_instances/SLACK_EVENT_RECEIVED/upsert";
    project.post(upsert, &body).await.expect(201);
    let address = address_of(&made);
    #[expect(clippy::disallowed_methods, reason = "the signature has the real time")]
    let now = chrono::Utc::now().timestamp();
    let challenge = |text: &str| json!({ "type": "url_verification", "challenge": text });
    let plain = challenge("3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P").to_string();
    let markup = challenge("<script>").to_string();
    for (case, secret, time, body, status, expected) in [
        ("valid", &*secret, now, &plain, 200, true),
        ("markup", &secret, now, &markup, 200, false),
        ("stale", &secret, now - 301, &plain, 401, false),
        ("of the future", &secret, now + 360, &plain, 401, false),
        ("unsigned", "another secret", now, &plain, 401, false),
    ] {
        let headers = slack_headers(secret, time, body);
        let headers = [0, 1].map(|at| (headers[at].0, &*headers[at].1));
        let answer = send(&project, &address, &headers, body).await;
        assert_eq!(answer.status, status, "{case}: {answer:#?}");
        assert_eq!(answer.text.starts_with("3eZbrw"), expected, "{answer:#?}");
        assert_eq!(answer.text.contains("3eZbrw"), expected, "{case}");
    }
}

/// Sends numbered deliveries until the server ends, and notes those that it acknowledged.
async fn send_numbers(
    client: Client,
    address: String,
    secret: String,
    next: Arc<AtomicU64>,
    end: u64,
    acknowledged: Arc<Mutex<BTreeSet<u64>>>,
) {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= end {
            return;
        }
        let body = opened(number);
        let signed = signature(&secret, &body);
        let delivery = number.to_string();
        let headers = headers(&delivery, &signed);
        let body = Body::Raw(JSON_MEDIA_TYPE, body.into_bytes());
        let sent = client.try_send(Method::POST, &address, body, &headers);
        match sent.await {
            Ok(answer) if answer.status == 200 => {
                acknowledged.lock().unwrap().insert(number);
            }
            Ok(answer) => assert!([429, 503].contains(&answer.status), "{answer:#?}"),
            Err(_) => return,
        }
    }
}

#[tokio::test]
async fn kills_lose_no_acknowledged_webhook() {
    const KILL_COUNT: u64 = 4;
    let part = size(100, 400);
    let toolkits = documents::folder_with(&["github"]);
    let inbox = Inbox::start();
    let setup = inbox.setup();
    let setup = setup.with("toolkits", toolkits.path().to_str().unwrap());
    let mut host = setup.start().await;
    let github = GitHub::new(host.as_project()).await;
    given::subscribe(&github.project).await;
    let (next, acknowledged) = (Arc::<AtomicU64>::default(), Arc::default());
    for kill in 0..=KILL_COUNT {
        let mut senders = JoinSet::new();
        let end = (kill + 1) * part;
        next.store(kill * part, Ordering::Relaxed);
        for _ in 0..8 {
            senders.spawn(send_numbers(
                host.anonymous(),
                github.address.clone(),
                github.secret.clone(),
                Arc::clone(&next),
                end,
                Arc::clone(&acknowledged),
            ));
        }
        if kill < KILL_COUNT {
            wait_until("half of a part was sent", async || {
                next.load(Ordering::Relaxed) >= end - part / 2
            })
            .await;
            host = host.kill().start().await;
        }
        senders.join_all().await;
    }
    let acknowledged = acknowledged.lock().unwrap().clone();
    assert!(acknowledged.len() as u64 > part, "{}", acknowledged.len());
    let received = || {
        let mut received = BTreeMap::<_, BTreeSet<_>>::new();
        for message in inbox.received() {
            let number = message.json()["data"]["issue"]["number"].as_u64().unwrap();
            let ids = received.entry(number).or_default();
            ids.insert(message.id().to_owned());
        }
        received
    };
    wait_until("every acknowledged webhook was delivered", async || {
        let received = received();
        let mut numbers = acknowledged.iter();
        numbers.all(|number| received.contains_key(number))
    })
    .await;
    for (number, ids) in received() {
        assert_eq!(ids.len(), 1, "number {number} is several events");
    }
}
