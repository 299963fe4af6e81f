//! Webhooks: subscriptions, and the delivery of events to endpoints that fail, hang, vanish or attack.
//!
//! Events are test events of the API, so that no provider is needed.

use std::{
    sync::{Mutex, mpsc},
    time::Duration,
};

use chrono::DateTime;
use harness::{
    Answer, Client, Host, Inbox,
    host::Setup,
    inbox::{INBOX_ORIGIN, Message, Reply},
    unique, wait_for, wait_until,
};
use serde_json::{Value, json};
use tokio::sync::mpsc::unbounded_channel;

use crate::given::{self, text};

pub(crate) const SUBSCRIPTIONS_PATH: &str = "/webhook_subscriptions";
const TRIGGER_MESSAGE: &str = "service.trigger.message";

/// A subscription of a project.
struct Subscription {
    client: Client,
    id: String,
    secret: String,
    /// Path of the endpoint.
    path: String,
}

impl Subscription {
    async fn new(client: Client) -> Self {
        Self::with(client, json!({ "version": "V3" })).await
    }

    async fn with(client: Client, more: Value) -> Self {
        let path = format!("/{}", unique(6));
        let body = given::merged(body(&format!("{INBOX_ORIGIN}{path}")), &more);
        let made = client.post(SUBSCRIPTIONS_PATH, &body).await.expect(201);
        Self {
            id: given::string(&made["id"]),
            secret: given::string(&made["secret"]),
            client,
            path,
        }
    }

    fn at(&self, tail: &str) -> String {
        format!("{SUBSCRIPTIONS_PATH}/{}{tail}", self.id)
    }

    async fn read(&self) -> Answer {
        self.client.get(&self.at("")).await.expect(200)
    }

    async fn change(&self, changes: Value) -> Answer {
        self.client.patch(&self.at(""), &changes).await.expect(200)
    }

    /// Sends a test event and returns its delivery.
    async fn send(&self, data: Value) -> Answer {
        let body = json!({ "data": data });
        self.client.post(&self.at("/test"), &body).await.expect(201)
    }

    /// Sends a request below the subscription.
    async fn post(&self, tail: &str, body: Value) -> Answer {
        self.client.post(&self.at(tail), &body).await
    }

    async fn delivery(&self, sent: &Answer) -> Answer {
        let path = self.at(&format!("/deliveries/{}", text(&sent["id"])));
        self.client.get(&path).await.expect(200)
    }

    /// Waits until a delivery has a status, and returns it.
    async fn wait_for(&self, sent: &Answer, status: &str) -> Answer {
        wait_until(&format!("the delivery is {status}"), || async {
            self.delivery(sent).await["status"] == status
        })
        .await;
        self.delivery(sent).await
    }

    /// Returns the number of deliveries of a status.
    async fn count(&self, status: &str) -> u64 {
        let path = self.at(&format!("/deliveries?status={status}&limit=1"));
        let page = self.client.get(&path).await.expect(200);
        page["total_items"].as_u64().unwrap()
    }

    fn received(&self, inbox: &Inbox) -> Vec<Message> {
        inbox.received_at(&self.path)
    }
}

fn body(url: &str) -> Value {
    json!({ "webhook_url": url, "enabled_events": [TRIGGER_MESSAGE] })
}

/// Creates a subscription at the root of an inbox.
async fn create(project: &Client) -> Answer {
    let body = body(INBOX_ORIGIN);
    project.post(SUBSCRIPTIONS_PATH, &body).await.expect(201)
}

/// Returns the path of a created subscription.
pub(crate) fn path_of(created: &Answer) -> String {
    format!("{SUBSCRIPTIONS_PATH}/{}", text(&created["id"]))
}

#[tokio::test]
async fn subscription_is_created_read_changed_deleted() {
    let project = Host::shared().await.new_project().await;
    let created = create(&project).await;
    assert_eq!(created["version"], "V3");
    assert_eq!(created["webhook_url"], INBOX_ORIGIN);
    let path = path_of(&created);
    assert_eq!(project.get(&path).await.expect(200).json, created.json);
    let list = format!("{SUBSCRIPTIONS_PATH}?limit=1");
    let list = project.get(&list).await.expect(200);
    assert_eq!(list["items"], json!([created.json]));
    assert_eq!(list["total_items"], 1);
    project.patch(&path, &json!({})).await.expect(400);
    let change = json!({ "version": "V1", "webhook_url": format!("{INBOX_ORIGIN}/new") });
    let changed = project.patch(&path, &change).await.expect(200);
    assert_eq!(changed["version"], "V1");
    assert_eq!(changed["secret"], created["secret"]);
    assert_eq!(changed["webhook_url"], change["webhook_url"]);
    let deleted = project.delete(&path).await.expect(200);
    assert_eq!(deleted.json, json!({ "success": true }));
    project.get(&path).await.expect(404);
    create(&project).await;
}

#[tokio::test]
async fn second_subscription_is_refused() {
    let project = Host::shared().await.new_project().await;
    let body = body(INBOX_ORIGIN);
    let attempts = (0..8).map(|_| project.post(SUBSCRIPTIONS_PATH, &body));
    let answers = futures::future::join_all(attempts).await;
    let mut statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409, 409, 409, 409, 409, 409]);
}

#[tokio::test]
async fn events_must_fit_the_version() {
    let project = Host::shared().await.new_project().await;
    let types = format!("{SUBSCRIPTIONS_PATH}/event_types");
    let types = project.get(&types).await.expect(200);
    for kind in types["items"].as_array().unwrap() {
        for version in ["V1", "V2", "V3"] {
            let mut body = body(INBOX_ORIGIN);
            body["enabled_events"] = json!([kind["event_type"]]);
            body["version"] = json!(version);
            let supported = kind["supported_versions"].as_array().unwrap();
            let fits = supported.contains(&json!(version));
            let status = if fits { 201 } else { 400 };
            let answer = project.post(SUBSCRIPTIONS_PATH, &body).await;
            assert_eq!(answer.status, status, "{body}: {answer:#?}");
            if fits {
                project.delete(&path_of(&answer)).await.expect(200);
            }
        }
    }
    for events in [
        json!([]),
        json!(["service.nothing"]),
        json!(["trigger.message"]),
    ] {
        let mut body = body(INBOX_ORIGIN);
        body["enabled_events"] = events;
        project.post(SUBSCRIPTIONS_PATH, &body).await.expect(400);
    }
    let path = path_of(&create(&project).await);
    let expired = json!({ "enabled_events": ["service.connected_account.expired"] });
    project.patch(&path, &expired).await.expect(200);
    let older = json!({ "version": "V2" });
    project.patch(&path, &older).await.expect(400);
}

#[tokio::test]
async fn urls_that_must_not_be_reached_are_refused() {
    let project = Host::shared().await.new_project().await;
    let path = path_of(&create(&project).await);
    let other = Host::shared().await.new_project().await;
    for url in [
        "http://hooks.example.com/",
        "ftp://hooks.example.com/",
        "https://127.0.0.1/",
        "https://127.1/",
        "https://0x7f000001/",
        "https://169.254.169.254/latest/meta-data/",
        "https://10.0.0.1/",
        "https://[::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://localhost/",
        "https://user:password@hooks.example.com/",
        "https://hooks.example.com./",
        "hooks.example.com",
        "",
    ] {
        let change = json!({ "webhook_url": url });
        for refused in [
            other.post(SUBSCRIPTIONS_PATH, &body(url)).await,
            project.patch(&path, &change).await,
        ] {
            refused.expect(400);
        }
    }
    for (characters, status) in [(2_049, 400), (2_048, 201)] {
        let rest = "x".repeat(characters - INBOX_ORIGIN.len() - 1);
        let body = body(&format!("{INBOX_ORIGIN}/{rest}"));
        let answer = other.post(SUBSCRIPTIONS_PATH, &body).await;
        answer.expect(status);
    }
}

#[tokio::test]
async fn loopback_url_needs_allowed_address() {
    let inbox = Inbox::start();
    let setup = Setup::new().with("net.allow", "127.0.0.0/8");
    let allowed = setup.start().await;
    let project = allowed.as_project();
    let own = body(&inbox.origin);
    let created = project.post(SUBSCRIPTIONS_PATH, &own).await.expect(201);
    let path = path_of(&created);
    let test = format!("{path}/test");
    project.post(&test, &json!({})).await.expect(201);
    wait_until("it arrives", || async { !inbox.received().is_empty() }).await;
    let plain = body("http://hooks.example.com/");
    project.delete(&path).await.expect(200);
    project.post(SUBSCRIPTIONS_PATH, &plain).await.expect(400);
}

#[tokio::test]
async fn refused_loopback_url_names_its_setting() {
    let project = Host::shared().await.new_project().await;
    let refusal = async |url: &str| {
        let refused = project.post(SUBSCRIPTIONS_PATH, &body(url)).await;
        refused.expect(400)["error"]["message"].clone()
    };
    for url in [
        "http://localhost:3000/hook",
        "http://127.0.0.1/",
        "http://[::1]/",
    ] {
        let message = refusal(url).await;
        given::assert_contains(&message, "`net.allow`, for example `127.0.0.0/8`");
    }
    let message = refusal("http://hooks.example.com/").await;
    assert!(!text(&message).contains("loopback"), "{message}");
}

#[tokio::test]
async fn views_of_project_mirror_its_subscription() {
    let host = Setup::new().start().await;
    let project = host.as_project();
    let info = || async {
        let info = project.get("/auth/session/info").await.expect(200);
        info["project"].clone()
    };
    let path = format!("/org/owner/project/{}", project.project_id().await);
    let detail = || async { host.as_org().get(&path).await.expect(200) };
    assert_eq!(detail().await["webhook_url"], Value::Null);
    let mut wanted = body(INBOX_ORIGIN);
    wanted["version"] = json!("V2");
    let created = project.post(SUBSCRIPTIONS_PATH, &wanted).await.expect(201);
    let list = host.as_org().get("/org/owner/project/list").await;
    let list = list.expect(200);
    for (view, secret) in [
        (detail().await.json, &created["secret"]),
        (list["data"][0].clone(), &created["secret"]),
        (info().await, &Value::Null),
    ] {
        assert_eq!(view["webhook_url"], INBOX_ORIGIN, "{view}");
        assert_eq!(view["webhook_version"], "V2");
        assert_eq!(view["is_new_webhook"], true);
        assert_eq!(view["event_webhook_url"], Value::Null);
        assert_eq!(&view["webhook_secret"], secret, "{view}");
    }
}

#[tokio::test]
async fn setting_hides_keys_and_webhook_secrets() {
    let host = Setup::new().with("keys.reveal", "false").start().await;
    let project = host.as_project();
    let created = create(&project).await;
    let secret = text(&created["secret"]);
    assert!(secret.len() >= 32, "{secret}");
    assert!(!secret.starts_with("whsec_"), "{secret}");
    let detail = format!("/org/owner/project/{}", project.project_id().await);
    for read in [
        project.get(&path_of(&created)).await,
        host.as_org().get("/org/owner/project/list").await,
        host.as_org().get(&detail).await,
    ] {
        let read = read.expect(200);
        for hidden in [secret, project.key()] {
            assert!(!read.text.contains(hidden), "{}", read.text);
        }
    }
}

#[tokio::test]
async fn messages_have_the_documented_form() {
    let inbox = Inbox::start();
    let host = inbox.setup().with("operator_word", "acme").start().await;
    for version in ["V1", "V2", "V3"] {
        let events = json!({ "version": version, "enabled_events": ["acme.trigger.message"] });
        let subscription = Subscription::with(host.new_project().await, events).await;
        let data = json!({ "service": "mail", "n": 1.0 });
        let sent = subscription.send(data.clone()).await;
        subscription.wait_for(&sent, "delivered").await;
        let message = subscription.received(&inbox).remove(0);
        assert_eq!(message.header("content-type"), "application/json");
        assert_eq!(message.header("x-acme-webhook-version"), version);
        assert_eq!(message.id(), sent["message_id"].as_str().unwrap());
        assert!(message.is_signed_with(&subscription.secret));
        let json = message.json();
        let members = json.as_object().unwrap();
        let names: Vec<_> = members.keys().map(String::as_str).collect();
        let expected: &[_] = match version {
            "V1" => &[
                "trigger_name",
                "trigger_id",
                "connection_id",
                "payload",
                "log_id",
            ],
            "V2" => &["type", "timestamp", "log_id", "data"],
            _ => &["id", "timestamp", "type", "metadata", "data"],
        };
        assert_eq!(names, expected, "{json}");
        match version {
            "V1" => assert_eq!(json["payload"], data),
            "V2" => {
                assert_eq!(json["type"], "test_event");
                assert_eq!(json["data"]["service"], "mail");
                for name in [
                    "connection_id",
                    "connection_nano_id",
                    "trigger_id",
                    "trigger_nano_id",
                    "user_id",
                ] {
                    assert!(json["data"][name].is_string(), "{name}: {json}");
                }
            }
            _ => {
                assert_eq!(json["type"], "acme.trigger.message");
                assert_eq!(json["id"], message.id());
                assert_eq!(json["data"], data);
                for name in [
                    "log_id",
                    "trigger_slug",
                    "trigger_id",
                    "connected_account_id",
                    "auth_config_id",
                    "user_id",
                ] {
                    assert!(json["metadata"][name].is_string(), "{name}: {json}");
                }
            }
        }
    }
}

#[tokio::test]
async fn rotated_secret_signs_alone_or_beside_old() {
    for overlap in ["0", "3600"] {
        let inbox = Inbox::start();
        let setup = inbox.setup().with("webhooks.secret_overlap_s", overlap);
        let host = setup.start().await;
        let subscription = Subscription::new(host.as_project()).await;
        let rotated = subscription.post("/rotate_secret", json!({})).await;
        let rotated = rotated.expect(200);
        assert_eq!(rotated["id"], subscription.id.as_str());
        let sent = subscription.send(json!({})).await;
        subscription.wait_for(&sent, "delivered").await;
        let message = subscription.received(&inbox).remove(0);
        assert!(message.is_signed_with(rotated["secret"].as_str().unwrap()));
        assert_eq!(message.is_signed_with(&subscription.secret), overlap != "0");
    }
}

#[tokio::test]
async fn failed_message_is_retried_until_accepted() {
    let inbox = Inbox::with(|message| match message.repetition {
        0 => Reply::Status(500),
        1 => Reply::Status(404),
        2 => Reply::Hanging,
        _ => Reply::Status(204),
    });
    let host = inbox.setup().with("webhooks.timeout_s", "2").start().await;
    let subscription = Subscription::new(host.as_project()).await;
    let sent = subscription.send(json!({ "n": 7 })).await;
    let delivered = subscription.wait_for(&sent, "delivered").await;
    let attempts = delivered["attempts"].as_array().unwrap();
    let statuses: Vec<_> = attempts.iter().map(|attempt| &attempt["status"]).collect();
    assert_eq!(
        statuses,
        [&json!(500), &json!(404), &Value::Null, &json!(204)]
    );
    assert_eq!(attempts[0]["response"], "noted");
    given::assert_contains(&attempts[2]["error"], "timeout");
    assert_eq!(delivered["attempt_count"], 4);
    let received = subscription.received(&inbox);
    assert_eq!(received.len(), 4);
    for message in &received {
        assert_eq!(message.id(), received[0].id());
        assert_eq!(message.body, received[0].body);
        assert!(message.is_signed_with(&subscription.secret));
    }
}

#[tokio::test]
async fn last_failure_ends_a_delivery() {
    let inbox = Inbox::with(|_| Reply::Status(500));
    let setup = inbox.setup().with("webhooks.retry_delays_s", "0.1,0.1");
    let host = setup.start().await;
    let subscription = Subscription::new(host.as_project()).await;
    let sent = subscription.send(json!({})).await;
    let failed = subscription.wait_for(&sent, "failed").await;
    assert_eq!(failed["attempt_count"], 3);
    assert_eq!(failed["next_attempt_at"], Value::Null);
    assert_eq!(failed["failure"], "the last attempt failed");
    assert_eq!(subscription.received(&inbox).len(), 3);
}

#[tokio::test]
async fn endpoint_may_ask_to_wait() {
    let inbox = Inbox::with(|message| {
        let wait = message.json()["data"]["wait"].as_str().unwrap().to_owned();
        Reply::With(429, "retry-after", wait)
    });
    let host = inbox.setup().start().await;
    for (wait, least) in [("3600", 3_600), ("9999999", 86_400)] {
        let subscription = Subscription::new(host.new_project().await).await;
        let sent = subscription.send(json!({ "wait": wait })).await;
        wait_until("the endpoint has answered", || async {
            subscription.delivery(&sent).await["attempt_count"] == 1
        })
        .await;
        let delivery = subscription.delivery(&sent).await;
        let seconds = |value: &Value| {
            let time = DateTime::parse_from_rfc3339(value.as_str().unwrap());
            time.unwrap().timestamp()
        };
        let waits = seconds(&delivery["next_attempt_at"]) - seconds(&delivery["attempts"][0]["at"]);
        assert!(
            (least..least + 60).contains(&waits),
            "{waits}: {delivery:#?}"
        );
    }
}

#[tokio::test]
async fn gone_endpoint_is_disabled_until_changed() {
    let inbox = Inbox::with(|message| match message.path.ends_with("/new") {
        true => Reply::Status(200),
        false => Reply::Status(410),
    });
    let host = inbox.setup().start().await;
    let subscription = Subscription::new(host.as_project()).await;
    let sent = subscription.send(json!({})).await;
    let failed = subscription.wait_for(&sent, "failed").await;
    assert_eq!(failed["attempt_count"], 1);
    assert_eq!(subscription.read().await["disabled_reason"], "gone");
    let second = subscription.send(json!({})).await;
    let unsent = subscription.wait_for(&second, "failed").await;
    assert_eq!(unsent["attempt_count"], 0);
    let change = json!({ "webhook_url": format!("{INBOX_ORIGIN}{}/new", subscription.path) });
    let enabled = subscription.change(change).await;
    assert_eq!(enabled["disabled_at"], Value::Null);
    let replay = subscription.post("/deliveries/replay", json!({})).await;
    assert_eq!(replay.expect(200)["replayed"], 2);
    subscription.wait_for(&sent, "delivered").await;
    subscription.wait_for(&second, "delivered").await;
    assert_eq!(subscription.received(&inbox).len(), 1);
}

#[tokio::test]
async fn late_refusal_spares_changed_subscription() {
    let (arrival, mut arrived) = unbounded_channel();
    let (change, changed) = mpsc::channel();
    let changed = Mutex::new(changed);
    let inbox = Inbox::with(move |message| {
        if message.path.ends_with("/new") {
            return Reply::Status(200);
        }
        arrival.send(()).unwrap();
        // The response is held back until the subscription was changed.
        changed.lock().unwrap().recv().unwrap();
        Reply::Status(410)
    });
    let host = inbox.setup().start().await;
    let subscription = Subscription::new(host.as_project()).await;
    let sent = subscription.send(json!({})).await;
    arrived.recv().await.unwrap();
    let new = json!({ "webhook_url": format!("{INBOX_ORIGIN}{}/new", subscription.path) });
    subscription.change(new).await;
    change.send(()).unwrap();
    let delivered = subscription.wait_for(&sent, "delivered").await;
    assert_eq!(delivered["attempt_count"], 2);
    assert_eq!(subscription.read().await["disabled_at"], Value::Null);
}

#[tokio::test]
async fn endpoint_that_keeps_failing_is_disabled() {
    let inbox = Inbox::with(|_| Reply::Status(503));
    let setup = inbox.setup().with("events.disable_after_s", "1");
    let host = setup.start().await;
    let subscription = Subscription::new(host.as_project()).await;
    for _ in 0..3 {
        subscription.send(json!({})).await;
    }
    wait_until("the subscription is disabled", async || {
        subscription.read().await["disabled_reason"] == "failing"
    })
    .await;
    wait_until("no delivery is left", || async {
        subscription.count("pending").await == 0
    })
    .await;
}

#[tokio::test]
async fn redirect_is_a_failure_and_not_followed() {
    let inbox = Inbox::with(|message| match message.path.as_str() {
        "/elsewhere" => Reply::Status(200),
        _ => Reply::With(307, "location", format!("{INBOX_ORIGIN}/elsewhere")),
    });
    let setup = inbox.setup().with("webhooks.retry_delays_s", "0.1");
    let host = setup.start().await;
    let subscription = Subscription::new(host.as_project()).await;
    let sent = subscription.send(json!({})).await;
    let failed = subscription.wait_for(&sent, "failed").await;
    assert_eq!(failed["attempts"][1]["status"], 307);
    assert!(inbox.received_at("/elsewhere").is_empty());
}

#[tokio::test]
async fn large_response_is_cut_and_dripping_one_ends() {
    let inbox = Inbox::with(|message| match message.json()["data"]["case"].as_str() {
        Some("large") => Reply::Large(200, 10 << 20),
        _ => Reply::Dripping,
    });
    let setup = inbox.setup().with("webhooks.timeout_s", "2");
    let setup = setup.with("webhooks.retry_delays_s", "0.1");
    let host = setup.start().await;
    let subscription = Subscription::new(host.as_project()).await;
    let large = subscription.send(json!({ "case": "large" })).await;
    let delivered = subscription.wait_for(&large, "delivered").await;
    let kept = text(&delivered["attempts"][0]["response"]);
    assert_eq!(kept.len(), 4 << 10);
    let dripping = subscription.send(json!({ "case": "dripping" })).await;
    let failed = subscription.wait_for(&dripping, "failed").await;
    assert_eq!(failed["attempt_count"], 2);
    assert!(host.footprint().peak_kib < 1 << 20);
}

#[tokio::test]
async fn hanging_endpoints_delay_no_other() {
    let inbox = Inbox::with(|message| match message.json()["data"]["hangs"] == true {
        true => Reply::Hanging,
        false => Reply::Status(200),
    });
    let setup = inbox.setup().with("webhooks.timeout_s", "300");
    let host = setup.start().await;
    let mut hanging = Vec::new();
    for _ in 0..10 {
        let subscription = Subscription::new(host.new_project().await).await;
        for _ in 0..20 {
            subscription.send(json!({ "hangs": true })).await;
        }
        hanging.push(subscription);
    }
    let healthy = Subscription::new(host.new_project().await).await;
    for number in 0..50 {
        healthy.send(json!({ "number": number })).await;
    }
    // The hanging endpoints answer nothing before their timeout of five minutes.
    let limit = Duration::from_secs(120);
    wait_for(limit, "the healthy endpoint has all", async || {
        healthy.count("delivered").await == 50
    })
    .await;
    for subscription in hanging {
        let open = subscription.received(&inbox).len();
        assert!((1..=2).contains(&open), "{open} messages at a time");
        assert_eq!(subscription.count("pending").await, 20);
    }
}

#[tokio::test]
async fn concurrency_limits_of_deliveries_hold() {
    let inbox = Inbox::with(|_| Reply::Slow(100));
    let host = inbox.setup().with("sandbox.live", "64").start().await;
    let mut subscriptions = Vec::new();
    for _ in 0..3 {
        subscriptions.push(Subscription::new(host.new_project().await).await);
    }
    for number in 0..40 {
        for subscription in &subscriptions {
            subscription.send(json!({ "number": number })).await;
        }
    }
    for subscription in &subscriptions {
        let arrived = || async { subscription.count("delivered").await == 40 };
        wait_until("every event has arrived", arrived).await;
    }
    let (most, most_of_path) = inbox.most_at_a_time();
    // The number of all is half of `sandbox.live`.
    assert!(most <= 32 && most_of_path <= 16, "{most}, {most_of_path}");
}

#[tokio::test]
async fn replay_of_too_many_events_is_refused() {
    let inbox = Inbox::start();
    let setup = inbox.setup().with("limits.accounts_per_project", "40");
    let host = setup.start().await;
    let subscription = Subscription::new(host.as_project()).await;
    for number in 0..3 {
        let sent = subscription.send(json!({ "number": number })).await;
        subscription.wait_for(&sent, "delivered").await;
        let replayed = subscription.post("/deliveries/replay", json!({})).await;
        let status = if number < 2 { 200 } else { 400 };
        replayed.expect(status);
    }
}

#[tokio::test]
async fn deleted_subscription_gets_no_more_messages() {
    let inbox = Inbox::with(|_| Reply::Status(500));
    let host = inbox.setup().start().await;
    let subscription = Subscription::new(host.as_project()).await;
    subscription.send(json!({})).await;
    wait_until("an attempt failed", async || !inbox.received().is_empty()).await;
    let project = host.as_project();
    project.delete(&subscription.at("")).await.expect(200);
    let other = Subscription::new(host.as_project()).await;
    let before = subscription.received(&inbox).len();
    // A whole schedule of the other subscription passes meanwhile.
    let sent = other.send(json!({})).await;
    other.wait_for(&sent, "failed").await;
    // An attempt that was under way when the deletion was acknowledged may have arrived.
    assert!(subscription.received(&inbox).len() <= before + 1);
    let deliveries = subscription.at("/deliveries");
    project.get(&deliveries).await.expect(404);
}

#[tokio::test]
async fn deleted_project_sends_nothing_more() {
    let inbox = Inbox::with(|_| Reply::Status(500));
    let host = inbox.setup().start().await;
    let project = host.new_project().await;
    let id = project.project_id().await;
    let subscription = Subscription::new(project).await;
    subscription.send(json!({})).await;
    host.delete_project(&id).await;
    let before = subscription.received(&inbox).len();
    let other = Subscription::new(host.as_project()).await;
    let sent = other.send(json!({})).await;
    other.wait_for(&sent, "failed").await;
    assert!(subscription.received(&inbox).len() <= before + 1);
}

#[tokio::test]
async fn change_applies_to_unfinished_deliveries() {
    let inbox = Inbox::with(|message| match message.path.ends_with("/new") {
        true => Reply::Status(200),
        false => Reply::Status(500),
    });
    let host = inbox.setup().start().await;
    let subscription = Subscription::new(host.as_project()).await;
    let sent = subscription.send(json!({ "n": 1 })).await;
    wait_until("an attempt failed", async || !inbox.received().is_empty()).await;
    let new = format!("{}/new", subscription.path);
    let change = json!({ "webhook_url": format!("{INBOX_ORIGIN}{new}"), "version": "V1" });
    subscription.change(change).await;
    subscription.wait_for(&sent, "delivered").await;
    let message = inbox.received_at(&new).remove(0).json();
    assert_eq!(message["payload"], json!({ "n": 1 }));
}

#[tokio::test]
async fn finished_delivery_is_replayed() {
    let inbox = Inbox::start();
    let host = inbox.setup().start().await;
    let subscription = Subscription::new(host.as_project()).await;
    let sent = subscription.send(json!({})).await;
    let delivered = subscription.wait_for(&sent, "delivered").await;
    let tail = format!("/deliveries/{}/replay", text(&sent["id"]));
    let replayed = subscription.post(&tail, json!({})).await.expect(200);
    assert_eq!(replayed["message_id"], delivered["message_id"]);
    wait_until("it arrives again", || async {
        subscription.received(&inbox).len() == 2
    })
    .await;
    subscription.wait_for(&sent, "delivered").await;
    let later = json!({ "since": "2100-01-01T00:00:00Z", "include_delivered": true });
    for (range, count) in [
        (json!({}), 0),
        (json!({ "include_delivered": true }), 1),
        (later, 0),
    ] {
        let replayed = subscription.post("/deliveries/replay", range).await;
        assert_eq!(replayed.expect(200)["replayed"], count);
    }
    let bad = json!({ "since": "yesterday", "untl": "today" });
    let refused = subscription.post("/deliveries/replay", bad).await;
    let problems = refused.expect(400).problems();
    for start in ["since: not a time in ISO 8601", "untl: is unknown"] {
        let is_named = problems.iter().any(|line| line.starts_with(start));
        assert!(is_named, "{problems:?}");
    }
}
