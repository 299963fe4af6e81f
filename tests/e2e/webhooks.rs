//! Webhooks: subscriptions, and the delivery of events to endpoints that fail, hang, vanish or attack.
//!
//! Events are test events of the API, so that no provider is needed.

use std::{
    collections::BTreeMap,
    sync::{Mutex, mpsc},
    time::Duration,
};

use chrono::DateTime;
use harness::{
    Answer, Client, Host, Inbox,
    host::{Setup, size},
    inbox::{INBOX_ORIGIN, Message, Reply},
    unique, wait_for, wait_until,
};
use serde_json::{Value, json};
use tokio::sync::mpsc::unbounded_channel;

const SUBSCRIPTIONS_PATH: &str = "/webhook_subscriptions";
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
        let mut body = json!({ "webhook_url": format!("{INBOX_ORIGIN}{path}"), "enabled_events": [TRIGGER_MESSAGE] });
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        let made = client.post(SUBSCRIPTIONS_PATH, &body).await.expect(201);
        Self {
            id: made["id"].as_str().unwrap().to_owned(),
            secret: made["secret"].as_str().unwrap().to_owned(),
            client,
            path,
        }
    }

    fn at(&self, tail: &str) -> String {
        format!("{SUBSCRIPTIONS_PATH}/{}{tail}", self.id)
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
        let id = sent["id"].as_str().unwrap();
        let path = self.at(&format!("/deliveries/{id}"));
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

#[tokio::test]
async fn subscription_is_created_read_changed_deleted() {
    let project = Host::shared().await.new_project().await;
    let created = project
        .post(SUBSCRIPTIONS_PATH, &body(INBOX_ORIGIN))
        .await
        .expect(201);
    assert_eq!(created["version"], "V3");
    assert_eq!(created["webhook_url"], INBOX_ORIGIN);
    let path = format!("{SUBSCRIPTIONS_PATH}/{}", created["id"].as_str().unwrap());
    assert_eq!(project.get(&path).await.expect(200).json, created.json);
    let list = project
        .get(&format!("{SUBSCRIPTIONS_PATH}?limit=1"))
        .await
        .expect(200);
    assert_eq!(list["items"], json!([created.json]));
    assert_eq!(list["total_items"], 1);
    project
        .patch(&path, &json!({}))
        .await
        .expect(400)
        .assert_envelope();
    let change = json!({ "version": "V1", "webhook_url": format!("{INBOX_ORIGIN}/new") });
    let changed = project.patch(&path, &change).await.expect(200);
    assert_eq!(changed["version"], "V1");
    assert_eq!(changed["secret"], created["secret"]);
    assert_eq!(changed["webhook_url"], change["webhook_url"]);
    assert_eq!(
        project.delete(&path).await.expect(200).json,
        json!({ "success": true })
    );
    project.get(&path).await.expect(404).assert_envelope();
    project
        .post(SUBSCRIPTIONS_PATH, &body(INBOX_ORIGIN))
        .await
        .expect(201);
}

#[tokio::test]
async fn second_subscription_is_refused() {
    let project = Host::shared().await.new_project().await;
    let body = body(INBOX_ORIGIN);
    let attempts = (0..8).map(|_| project.post(SUBSCRIPTIONS_PATH, &body));
    let mut statuses: Vec<_> = futures::future::join_all(attempts)
        .await
        .iter()
        .map(|answer| answer.status)
        .collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409, 409, 409, 409, 409, 409, 409]);
}

#[tokio::test]
async fn events_must_fit_the_version() {
    let project = Host::shared().await.new_project().await;
    let types = project
        .get(&format!("{SUBSCRIPTIONS_PATH}/event_types"))
        .await
        .expect(200);
    for kind in types["items"].as_array().unwrap() {
        for version in ["V1", "V2", "V3"] {
            let mut body = body(INBOX_ORIGIN);
            body["enabled_events"] = json!([kind["event_type"]]);
            body["version"] = json!(version);
            let fits = kind["supported_versions"]
                .as_array()
                .unwrap()
                .contains(&json!(version));
            let answer = project.post(SUBSCRIPTIONS_PATH, &body).await;
            assert_eq!(
                answer.status,
                if fits { 201 } else { 400 },
                "{body}: {answer:#?}"
            );
            if fits {
                let path = format!("{SUBSCRIPTIONS_PATH}/{}", answer["id"].as_str().unwrap());
                project.delete(&path).await.expect(200);
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
        project
            .post(SUBSCRIPTIONS_PATH, &body)
            .await
            .expect(400)
            .assert_envelope();
    }
    let created = project
        .post(SUBSCRIPTIONS_PATH, &body(INBOX_ORIGIN))
        .await
        .expect(201);
    let path = format!("{SUBSCRIPTIONS_PATH}/{}", created["id"].as_str().unwrap());
    let expired = json!({ "enabled_events": ["service.connected_account.expired"] });
    project.patch(&path, &expired).await.expect(200);
    project
        .patch(&path, &json!({ "version": "V2" }))
        .await
        .expect(400);
}

#[tokio::test]
async fn urls_that_must_not_be_reached_are_refused() {
    let project = Host::shared().await.new_project().await;
    let created = project
        .post(SUBSCRIPTIONS_PATH, &body(INBOX_ORIGIN))
        .await
        .expect(201);
    let path = format!("{SUBSCRIPTIONS_PATH}/{}", created["id"].as_str().unwrap());
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
        other
            .post(SUBSCRIPTIONS_PATH, &body(url))
            .await
            .expect(400)
            .assert_envelope();
        let change = json!({ "webhook_url": url });
        project
            .patch(&path, &change)
            .await
            .expect(400)
            .assert_envelope();
    }
    let url = |characters: usize| {
        format!(
            "{INBOX_ORIGIN}/{}",
            "x".repeat(characters - INBOX_ORIGIN.len() - 1)
        )
    };
    other
        .post(SUBSCRIPTIONS_PATH, &body(&url(2_049)))
        .await
        .expect(400);
    other
        .post(SUBSCRIPTIONS_PATH, &body(&url(2_048)))
        .await
        .expect(201);
}

#[tokio::test]
async fn loopback_url_needs_allowed_address() {
    let inbox = Inbox::start();
    let setup = Setup::new().with("net.allow", "127.0.0.0/8");
    let allowed = setup.start().await;
    let project = allowed.as_project();
    let created = project
        .post(SUBSCRIPTIONS_PATH, &body(&inbox.origin))
        .await
        .expect(201);
    let test = format!(
        "{SUBSCRIPTIONS_PATH}/{}/test",
        created["id"].as_str().unwrap()
    );
    project.post(&test, &json!({})).await.expect(201);
    wait_until("it arrives", || async { !inbox.received().is_empty() }).await;
    let unsure = Host::shared().await.new_project().await;
    let refused = unsure.post(SUBSCRIPTIONS_PATH, &body(&inbox.origin)).await;
    let refused = refused.expect(400);
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("`net.allow`"), "{message}");
    let plain = body("http://hooks.example.com/");
    project
        .delete(&format!(
            "{SUBSCRIPTIONS_PATH}/{}",
            created["id"].as_str().unwrap()
        ))
        .await
        .expect(200);
    project.post(SUBSCRIPTIONS_PATH, &plain).await.expect(400);
}

#[tokio::test]
async fn refused_loopback_url_names_its_setting() {
    let project = Host::shared().await.new_project().await;
    let refusal = async |url: &str| {
        let refused = project.post(SUBSCRIPTIONS_PATH, &body(url)).await;
        refused.expect(400)["error"]["message"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    for url in [
        "http://localhost:3000/hook",
        "http://127.0.0.1/",
        "http://[::1]/",
    ] {
        let message = refusal(url).await;
        assert!(
            message.contains("`net.allow`, for example `127.0.0.0/8`"),
            "{url}: {message}"
        );
    }
    let message = refusal("http://hooks.example.com/").await;
    assert!(!message.contains("loopback"), "{message}");
}

#[tokio::test]
async fn views_of_project_mirror_its_subscription() {
    let host = Setup::new().start().await;
    let project = host.as_project();
    let info = || async {
        let info = project.get("/auth/session/info").await.expect(200);
        info["project"].clone()
    };
    let id = info().await["nano_id"].as_str().unwrap().to_owned();
    let detail = || async {
        let path = format!("/org/owner/project/{id}");
        host.as_org().get(&path).await.expect(200)
    };
    assert_eq!(detail().await["webhook_url"], Value::Null);
    let mut wanted = body(INBOX_ORIGIN);
    wanted["version"] = json!("V2");
    let created = project.post(SUBSCRIPTIONS_PATH, &wanted).await.expect(201);
    let list = host
        .as_org()
        .get("/org/owner/project/list")
        .await
        .expect(200);
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
async fn secret_is_shown_on_reads_unless_unset() {
    let host = Setup::new().with("keys.reveal", "false").start().await;
    let project = host.as_project();
    let created = project
        .post(SUBSCRIPTIONS_PATH, &body(INBOX_ORIGIN))
        .await
        .expect(201);
    let secret = created["secret"].as_str().unwrap();
    assert!(
        secret.len() >= 32 && !secret.starts_with("whsec_"),
        "{secret}"
    );
    let path = format!("{SUBSCRIPTIONS_PATH}/{}", created["id"].as_str().unwrap());
    let list = host
        .as_org()
        .get("/org/owner/project/list")
        .await
        .expect(200);
    for read in [project.get(&path).await.expect(200), list] {
        assert!(!read.text.contains(secret), "{}", read.text);
    }
}

#[tokio::test]
async fn messages_have_the_documented_form() {
    let inbox = Inbox::start();
    let host = inbox.setup().with("operator_word", "acme").start().await;
    for version in ["V1", "V2", "V3"] {
        let events = json!({ "version": version, "enabled_events": ["acme.trigger.message"] });
        let subscription = Subscription::with(host.new_project().await, events).await;
        let sent = subscription
            .send(json!({ "service": "mail", "n": 1.0 }))
            .await;
        subscription.wait_for(&sent, "delivered").await;
        let message = subscription.received(&inbox).remove(0);
        assert_eq!(message.header("content-type"), "application/json");
        assert_eq!(message.header("x-acme-webhook-version"), version);
        assert_eq!(message.id(), sent["message_id"].as_str().unwrap());
        assert!(message.is_signed_with(&subscription.secret));
        let json = message.json();
        let names: Vec<_> = json
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
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
            "V1" => assert_eq!(json["payload"], json!({ "service": "mail", "n": 1.0 })),
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
                assert_eq!(json["data"], json!({ "service": "mail", "n": 1.0 }));
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
        let host = inbox
            .setup()
            .with("webhooks.secret_overlap_s", overlap)
            .start()
            .await;
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
    assert!(
        attempts[2]["error"].as_str().unwrap().contains("timeout"),
        "{attempts:?}"
    );
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
    let host = inbox
        .setup()
        .with("webhooks.retry_delays_s", "0.1,0.1")
        .start()
        .await;
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
    let inbox = Inbox::with(|message| {
        Reply::Status(if message.path.ends_with("/new") {
            200
        } else {
            410
        })
    });
    let host = inbox.setup().start().await;
    let subscription = Subscription::new(host.as_project()).await;
    let sent = subscription.send(json!({})).await;
    let failed = subscription.wait_for(&sent, "failed").await;
    assert_eq!(failed["attempt_count"], 1);
    let disabled = host
        .as_project()
        .get(&subscription.at(""))
        .await
        .expect(200);
    assert_eq!(disabled["disabled_reason"], "gone");
    let second = subscription.send(json!({})).await;
    let unsent = subscription.wait_for(&second, "failed").await;
    assert_eq!(unsent["attempt_count"], 0);
    let change = json!({ "webhook_url": format!("{INBOX_ORIGIN}{}/new", subscription.path) });
    let enabled = host
        .as_project()
        .patch(&subscription.at(""), &change)
        .await
        .expect(200);
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
    host.as_project()
        .patch(&subscription.at(""), &new)
        .await
        .expect(200);
    change.send(()).unwrap();
    let delivered = subscription.wait_for(&sent, "delivered").await;
    assert_eq!(delivered["attempt_count"], 2);
    let read = host.as_project().get(&subscription.at("")).await;
    assert_eq!(read.expect(200)["disabled_at"], Value::Null);
}

#[tokio::test]
async fn endpoint_that_keeps_failing_is_disabled() {
    let inbox = Inbox::with(|_| Reply::Status(503));
    let host = inbox
        .setup()
        .with("events.disable_after_s", "1")
        .start()
        .await;
    let subscription = Subscription::new(host.as_project()).await;
    for _ in 0..3 {
        subscription.send(json!({})).await;
    }
    let disabled = || async {
        let read = host
            .as_project()
            .get(&subscription.at(""))
            .await
            .expect(200);
        read["disabled_reason"] == "failing"
    };
    wait_until("the subscription is disabled", disabled).await;
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
    let host = inbox
        .setup()
        .with("webhooks.retry_delays_s", "0.1")
        .start()
        .await;
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
    let settings = inbox.setup().with("webhooks.timeout_s", "2");
    let host = settings
        .with("webhooks.retry_delays_s", "0.1")
        .start()
        .await;
    let subscription = Subscription::new(host.as_project()).await;
    let large = subscription.send(json!({ "case": "large" })).await;
    let delivered = subscription.wait_for(&large, "delivered").await;
    assert_eq!(
        delivered["attempts"][0]["response"].as_str().unwrap().len(),
        4 << 10
    );
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
    let host = inbox
        .setup()
        .with("webhooks.timeout_s", "300")
        .start()
        .await;
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
    wait_for(
        Duration::from_secs(120),
        "the healthy endpoint has all",
        || async { healthy.count("delivered").await == 50 },
    )
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
    let host = inbox
        .setup()
        .with("limits.accounts_per_project", "40")
        .start()
        .await;
    let subscription = Subscription::new(host.as_project()).await;
    let path = subscription.at("/deliveries/replay");
    for number in 0..3 {
        let sent = subscription.send(json!({ "number": number })).await;
        subscription.wait_for(&sent, "delivered").await;
        let replayed = host.as_project().post(&path, &json!({})).await;
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
    host.as_project()
        .delete(&subscription.at(""))
        .await
        .expect(200);
    let other = Subscription::new(host.as_project()).await;
    let before = subscription.received(&inbox).len();
    // A whole schedule of the other subscription passes meanwhile.
    let sent = other.send(json!({})).await;
    other.wait_for(&sent, "failed").await;
    // An attempt that was under way when the deletion was acknowledged may have arrived.
    assert!(subscription.received(&inbox).len() <= before + 1);
    host.as_project()
        .get(&subscription.at("/deliveries"))
        .await
        .expect(404);
}

#[tokio::test]
async fn deleted_project_sends_nothing_more() {
    let inbox = Inbox::with(|_| Reply::Status(500));
    let host = inbox.setup().start().await;
    let project = host.new_project().await;
    let path = format!("/org/owner/project/{}", project.project_id().await);
    let subscription = Subscription::new(project).await;
    subscription.send(json!({})).await;
    host.as_org().delete(&path).await.expect(200);
    let before = subscription.received(&inbox).len();
    let other = Subscription::new(host.as_project()).await;
    let sent = other.send(json!({})).await;
    other.wait_for(&sent, "failed").await;
    assert!(subscription.received(&inbox).len() <= before + 1);
}

#[tokio::test]
async fn change_applies_to_unfinished_deliveries() {
    let inbox = Inbox::with(|message| {
        Reply::Status(if message.path.ends_with("/new") {
            200
        } else {
            500
        })
    });
    let host = inbox.setup().start().await;
    let subscription = Subscription::new(host.as_project()).await;
    let sent = subscription.send(json!({ "n": 1 })).await;
    wait_until("an attempt failed", async || !inbox.received().is_empty()).await;
    let new = format!("{}/new", subscription.path);
    let change = json!({ "webhook_url": format!("{INBOX_ORIGIN}{new}"), "version": "V1" });
    host.as_project()
        .patch(&subscription.at(""), &change)
        .await
        .expect(200);
    subscription.wait_for(&sent, "delivered").await;
    assert_eq!(
        inbox.received_at(&new)[0].json()["payload"],
        json!({ "n": 1 })
    );
}

#[tokio::test]
async fn finished_delivery_is_replayed() {
    let inbox = Inbox::start();
    let host = inbox.setup().start().await;
    let subscription = Subscription::new(host.as_project()).await;
    let sent = subscription.send(json!({})).await;
    let delivered = subscription.wait_for(&sent, "delivered").await;
    let id = sent["id"].as_str().unwrap();
    let path = subscription.at(&format!("/deliveries/{id}/replay"));
    let replayed = host.as_project().post(&path, &json!({})).await.expect(200);
    assert_eq!(replayed["message_id"], delivered["message_id"]);
    wait_until("it arrives again", || async {
        subscription.received(&inbox).len() == 2
    })
    .await;
    let all = json!({ "include_delivered": true });
    subscription.wait_for(&sent, "delivered").await;
    let path = subscription.at("/deliveries/replay");
    assert_eq!(
        host.as_project().post(&path, &json!({})).await.expect(200)["replayed"],
        0
    );
    assert_eq!(
        host.as_project().post(&path, &all).await.expect(200)["replayed"],
        1
    );
    let none = json!({ "since": "2100-01-01T00:00:00Z", "include_delivered": true });
    assert_eq!(
        host.as_project().post(&path, &none).await.expect(200)["replayed"],
        0
    );
    let bad = json!({ "since": "yesterday" });
    host.as_project()
        .post(&path, &bad)
        .await
        .expect(400)
        .assert_envelope();
}

/// Sends numbered events from several tasks, and returns the ids of their messages.
async fn send_numbered(subscription: &Subscription, numbers: std::ops::Range<u64>) -> Vec<String> {
    use futures::{StreamExt as _, stream};
    let sent = stream::iter(numbers).map(|number| subscription.send(json!({ "number": number })));
    let ids = sent.buffer_unordered(16).map(|sent| {
        let id = sent["message_id"].as_str().unwrap();
        id.to_owned()
    });
    ids.collect().await
}

#[tokio::test]
async fn no_event_is_lost_when_servers_are_killed() {
    const KILL_COUNT: u64 = 3;
    let event_count = size(500, 2_000);
    // A third of the messages fails at first.
    let inbox = Inbox::with(|message| {
        let number = message.json()["data"]["number"].as_u64().unwrap_or(0);
        match (number % 9, message.repetition) {
            (0, 0) => Reply::Status(500),
            (3, 0 | 1) => Reply::With(429, "retry-after", "1".to_owned()),
            (6, 0) => Reply::With(302, "location", "https://elsewhere.example.com".to_owned()),
            _ => Reply::Status(200),
        }
    });
    let mut host = inbox.setup().start().await;
    let mut subscription = Subscription::new(host.as_project()).await;
    let mut ids = Vec::new();
    for part in 0..KILL_COUNT {
        let numbers = event_count * part / KILL_COUNT..event_count * (part + 1) / KILL_COUNT;
        ids.extend(send_numbered(&subscription, numbers).await);
        host = host.kill().start().await;
        subscription.client = host.as_project();
    }
    wait_for(
        Duration::from_secs(480),
        "every delivery has ended",
        || async { subscription.count("pending").await == 0 },
    )
    .await;
    assert_eq!(subscription.count("delivered").await, event_count);
    let mut accepted = BTreeMap::<String, usize>::new();
    for message in subscription.received(&inbox) {
        assert!(message.is_signed_with(&subscription.secret));
        if message.is_accepted() {
            *accepted.entry(message.id().to_owned()).or_default() += 1;
        }
    }
    let lost: Vec<_> = ids
        .iter()
        .filter(|id| !accepted.contains_key(*id))
        .collect();
    assert!(lost.is_empty(), "{lost:?}");
    assert_eq!(accepted.len() as u64, event_count);
    let repeated: usize = accepted.values().map(|count| count - 1).sum();
    // Only a message under way at a kill may arrive twice.
    assert!(
        repeated as u64 <= KILL_COUNT * 16,
        "{repeated} messages arrived twice"
    );
}
