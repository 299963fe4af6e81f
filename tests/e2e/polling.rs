//! Polling of trigger instances.

use std::collections::{BTreeMap, BTreeSet};

use harness::{
    Answer, Client, Guest, Host, Inbox, guest, host::size, inbox::INBOX_ORIGIN, unique, wait_until,
};
use serde_json::{Value, json};

use crate::given;

/// Name of the trigger of [`toolkit`].
const TRIGGER_NAME: &str = "POSTED";

/// A polling trigger, and an account in a project.
pub(crate) struct Given {
    pub project: Client,
    /// Slug of the trigger.
    pub trigger: String,
    pub account: String,
}

/// Publishes a toolkit with a polling trigger, and returns its slug.
pub(crate) async fn toolkit(host: &Host, guest: Guest<'_>) -> String {
    let toolkit = given::slug();
    publish(host, guest, &toolkit).await;
    toolkit
}

/// Publishes a guest as a toolkit with a polling trigger.
pub(crate) async fn publish(host: &Host, guest: Guest<'_>, toolkit: &str) {
    let mut manifest = guest::manifest_with_key(toolkit, given::bearer());
    manifest["triggers"] = json!([given::trigger(toolkit, TRIGGER_NAME)]);
    host.publish(guest.component(), &manifest).await;
}

impl Given {
    async fn new(host: &Host, guest: Guest<'_>) -> Self {
        Self::of(host.new_project().await, &toolkit(host, guest).await).await
    }

    /// Connects an account of a [`toolkit`] in a project.
    pub(crate) async fn of(project: Client, toolkit: &str) -> Self {
        let trigger = given::trigger(toolkit, TRIGGER_NAME);
        let account = project.connect_with_key(toolkit, "amy").await;
        Self {
            project,
            trigger: trigger["slug"].as_str().unwrap().to_owned(),
            account,
        }
    }

    /// Creates an instance that polls an address of the fake provider, and returns its id.
    pub(crate) async fn instance(&self, path: &str) -> String {
        let made = self.upsert(path, json!({})).await.expect(201);
        made["trigger_id"].as_str().unwrap().to_owned()
    }

    /// Creates an instance with a schedule.
    pub(crate) async fn upsert(&self, path: &str, mut body: Value) -> Answer {
        body["connected_account_id"] = json!(self.account);
        body["trigger_config"] = json!({ "url": format!("https://api.example.com{path}") });
        let upsert = format!("/trigger_instances/{}/upsert", self.trigger);
        self.project.post(&upsert, &body).await
    }

    pub(crate) async fn read(&self, id: &str) -> Value {
        let path = format!("/trigger_instances/active?show_disabled=true&trigger_ids={id}");
        self.project.get(&path).await.expect(200)["items"][0].clone()
    }

    async fn wait_until(&self, id: &str, what: &str, condition: impl Fn(&Value) -> bool) {
        wait_until(what, async || condition(&self.read(id).await)).await;
    }

    /// Waits for the first poll, which the server makes by itself.
    pub(crate) async fn wait_for_first_poll(&self, id: &str) {
        let polled = |read: &Value| read["last_poll_at"].is_string();
        self.wait_until(id, "the instance was polled", polled).await;
    }

    pub(crate) async fn poll(&self, id: &str) -> Answer {
        let path = format!("/trigger_instances/manage/{id}/poll");
        self.project.post(&path, &json!({})).await
    }

    /// Lets an instance of [`Guest::poll`] report its event: it does so in its second poll.
    pub(crate) async fn report(&self, id: &str) {
        let polled = given::poll(&self.project, id).await;
        assert_eq!(polled["events"], 1, "{polled:#?}");
    }

    async fn set(&self, id: &str, status: &str) -> Answer {
        let path = format!("/trigger_instances/manage/{id}");
        let body = json!({ "status": status });
        self.project.patch(&path, &body).await
    }

    async fn set_account(&self, enabled: bool) {
        let path = format!("/connected_accounts/{}/status", self.account);
        let body = json!({ "enabled": enabled });
        self.project.patch(&path, &body).await.expect(200);
    }
}

fn millis(time: &Value) -> i64 {
    let time = time.as_str().unwrap();
    chrono::DateTime::parse_from_rfc3339(time)
        .unwrap()
        .timestamp_millis()
}

#[tokio::test]
async fn repeated_event_is_reported_once() {
    let given = Given::new(Host::shared().await, Guest::poll()).await;
    let id = given.instance(&format!("/echo/{}", unique(8))).await;
    given.wait_for_first_poll(&id).await;
    let second = given.poll(&id).await.expect(200);
    assert_eq!(
        second.json,
        json!({ "events": 1, "more": false, "error": null })
    );
    let third = given.poll(&id).await.expect(200);
    assert_eq!(third["events"], 0);
    let read = given.read(&id).await;
    assert_eq!(read["last_error"], Value::Null);
    assert!(millis(&read["next_poll_at"]) >= millis(&read["last_poll_at"]) + 60_000);
}

#[tokio::test]
async fn cron_expression_sets_the_next_poll() {
    let given = Given::new(Host::shared().await, Guest::poll()).await;
    let path = format!("/echo/{}", unique(8));
    for (schedule, problem) in [
        (json!({ "poll_cron": "0 9 * *" }), "poll_cron"),
        (
            json!({ "poll_cron": "0 0 32 13 *" }),
            "MON-FRI`; day of the month: must be 1 to 31; month: must be 1 to 12 or JAN to DEC",
        ),
        (json!({ "poll_cron": "0 9 31 2 *" }), "has no time"),
        (json!({ "poll_cron": "9".repeat(300) }), "256 characters"),
        (
            json!({ "poll_cron": "0 9 * * *", "poll_time_zone": "Nowhere" }),
            "poll_time_zone",
        ),
        (
            json!({ "poll_cron": "0 9 * * *", "poll_interval_seconds": 60 }),
            "poll_interval_seconds",
        ),
    ] {
        let refused = given.upsert(&path, schedule).await.expect(400);
        given::assert_contains(&refused["error"]["message"], problem);
    }
    let yearly = json!({ "poll_cron": "0 0 1 1 *" });
    let made = given.upsert(&path, yearly).await.expect(201);
    let id = made["trigger_id"].as_str().unwrap();
    let is_next = |read: &Value, time: &str| read["next_poll_at"].as_str().unwrap().contains(time);
    given
        .wait_until(id, "the next poll is in January", |read| {
            is_next(read, "-01-01T00:00:")
        })
        .await;
    let other = json!({ "poll_cron": "0 0 1 7 *", "poll_time_zone": "Asia/Tokyo" });
    given.upsert(&path, other).await.expect(200);
    given
        .wait_until(id, "the next poll is in June", |read| {
            is_next(read, "-06-30T15:00:")
        })
        .await;
    given.upsert(&path, json!({})).await.expect(200);
    let read = given.read(id).await;
    assert_eq!(read["poll_cron"], "0 0 1 7 *");
    assert_eq!(read["poll_time_zone"], "Asia/Tokyo");
    assert_eq!(read["poll_interval_seconds"], Value::Null);
}

#[tokio::test]
async fn first_poll_reports_nothing() {
    let given = Given::new(Host::shared().await, Guest::eager_poll()).await;
    let tag = unique(8);
    let id = given.instance(&format!("/echo/{tag}")).await;
    given.wait_for_first_poll(&id).await;
    let seen = Host::application().seen(&tag);
    assert_eq!(seen.len(), 1);
    // The request has the credential of the account.
    assert!(seen[0].header("authorization").starts_with("Bearer "));
    let again = given.poll(&id).await.expect(200);
    assert_eq!(again["events"], 0, "the first poll has seen it");
    assert_eq!(given::seen(&tag), 2);
}

#[tokio::test]
async fn rate_limited_poll_waits_as_asked() {
    let host = given::with_application().with("triggers.poll_interval_s", "1");
    let host = host.start().await;
    let given = Given::new(&host, Guest::poll()).await;
    let id = given.instance(&format!("/limited/{}", unique(8))).await;
    given.wait_for_first_poll(&id).await;
    let read = given.read(&id).await;
    given::assert_contains(&read["last_error"], "rate_limited");
    assert!(
        millis(&read["next_poll_at"]) >= millis(&read["last_poll_at"]) + 7_000,
        "{read:#}"
    );
}

#[tokio::test]
async fn trapping_guest_is_an_error_of_the_poll() {
    let given = Given::new(Host::shared().await, Guest::echo()).await;
    let id = given.instance("/echo/x").await;
    given.wait_for_first_poll(&id).await;
    let polled = given.poll(&id).await.expect(200);
    assert!(
        polled["error"].as_str().unwrap().contains("tool_trap"),
        "{polled:#?}"
    );
    let read = given.read(&id).await;
    assert_eq!(read["last_error"], polled["error"]);
    assert_eq!(read["disabled_at"], Value::Null);
}

#[tokio::test]
async fn instance_that_only_fails_is_disabled() {
    let host = given::with_application()
        .with("triggers.poll_interval_s", "1")
        .with("events.disable_after_s", "1")
        .start()
        .await;
    let given = Given::new(&host, Guest::poll()).await;
    let tag = unique(8);
    let id = given.instance(&format!("/status/{tag}/500")).await;
    let disabled = |read: &Value| read["disabled_reason"] == "polling_failure_in_service_infra";
    given
        .wait_until(&id, "the instance is disabled", disabled)
        .await;
    let read = given.read(&id).await;
    assert!(read["disabled_at"].is_string(), "{read:#}");
    assert_eq!(read["next_poll_at"], Value::Null);
    given::assert_contains(&read["last_error"], "upstream_error");
    assert!(given::seen(&tag) >= 3);
    given.set(&id, "enable").await.expect(200);
}

#[tokio::test]
async fn instance_follows_the_status_of_its_account() {
    let host = given::with_application().with("triggers.poll_interval_s", "1");
    let host = host.start().await;
    let given = Given::new(&host, Guest::poll()).await;
    let id = given.instance(&format!("/echo/{}", unique(8))).await;
    let paused = given.instance(&format!("/echo/{}", unique(8))).await;
    given.wait_for_first_poll(&id).await;
    given.set(&paused, "disable").await.expect(200);
    given.set_account(false).await;
    given
        .wait_until(&id, "the instance is disabled", |read| {
            read["disabled_reason"] == "connection_expired"
        })
        .await;
    given.set(&id, "enable").await.expect(422);
    given.set_account(true).await;
    let enabled = |read: &Value| read["disabled_at"].is_null();
    given
        .wait_until(&id, "the instance is enabled", enabled)
        .await;
    let paused = given.read(&paused).await;
    assert!(
        paused["disabled_at"].is_string(),
        "the project has disabled it"
    );
}

#[tokio::test]
async fn poll_of_paused_account_disables_at_once() {
    let given = Given::new(Host::shared().await, Guest::poll()).await;
    let id = given.instance(&format!("/echo/{}", unique(8))).await;
    given.wait_for_first_poll(&id).await;
    given.set_account(false).await;
    let polled = given.poll(&id).await;
    assert!([200, 409].contains(&polled.status), "{polled:#?}");
    assert_eq!(
        given.read(&id).await["disabled_reason"],
        "connection_expired"
    );
}

#[tokio::test]
async fn only_enabled_polling_instances_are_polled() {
    let given = Given::new(Host::shared().await, Guest::poll()).await;
    let id = given.instance(&format!("/echo/{}", unique(8))).await;
    given.wait_for_first_poll(&id).await;
    given.set(&id, "disable").await.expect(200);
    given.poll(&id).await.expect(409);
    let read = given.read(&id).await;
    assert_eq!(read["next_poll_at"], Value::Null);
    let path = format!("/trigger_instances/manage/{id}");
    given.project.delete(&path).await.expect(200);
    given.poll(&id).await.expect(410);
    given.poll("ti_AAAAAAAAAAAA").await.expect(404);
    given.poll("no id").await.expect(400);
}

#[tokio::test]
async fn resumed_instance_continues_from_its_cursor() {
    let given = Given::new(Host::shared().await, Guest::poll()).await;
    let id = given.instance(&format!("/echo/{}", unique(8))).await;
    given.wait_for_first_poll(&id).await;
    given.set(&id, "disable").await.expect(200);
    let before = given.read(&id).await["last_poll_at"].clone();
    given.set(&id, "enable").await.expect(200);
    // The server polls it immediately. The guest reports an event only after its first poll.
    let polled = |read: &Value| read["last_poll_at"] != before;
    given
        .wait_until(&id, "the instance was polled", polled)
        .await;
    let polled = given.poll(&id).await.expect(200);
    assert_eq!(polled["events"], 0, "it was reported by then");
}

#[tokio::test]
async fn poll_past_a_limit_stores_nothing() {
    for (guest, error) in [
        (Guest::crowded_poll(), "1001 events"),
        (Guest::hoarding_poll(), "262144 bytes"),
    ] {
        let given = Given::new(Host::shared().await, guest).await;
        let id = given.instance("/echo/x").await;
        given.wait_for_first_poll(&id).await;
        let read = given.read(&id).await;
        assert!(
            read["last_error"].as_str().unwrap().contains(error),
            "{read:#}"
        );
    }
}

#[tokio::test]
async fn poll_past_the_quota_is_repeated() {
    // The payload and 1 KiB for the event are the whole quota.
    const FILLER_BYTES: usize = (1 << 20) - (1 << 10) - r#"{"filler":""}"#.len();
    let setup = given::with_application().with("limits.records_mib", "2");
    let host = setup.start().await;
    let mut given = Given::new(&host, Guest::poll()).await;
    let id = given.instance(&format!("/echo/{}", unique(8))).await;
    given.wait_for_first_poll(&id).await;
    let test = format!("{}/test", given::subscribe(&given.project).await);
    let filler = json!({ "data": { "filler": "x".repeat(FILLER_BYTES) } });
    given.project.post(&test, &filler).await.expect(201);
    for _ in 0..2 {
        let polled = given.poll(&id).await.expect(200);
        assert_eq!(polled["events"], 0);
        let error = polled["error"].as_str().unwrap();
        assert!(error.contains("quota"), "{error}");
        assert_eq!(given.read(&id).await["last_error"], error);
    }
    let key = given.project.key().to_owned();
    let (setup, _) = host.terminate().await;
    let host = setup.with("limits.records_mib", "4").start().await;
    given.project = host.with_key(&key);
    let polled = given.poll(&id).await.expect(200);
    assert_eq!(
        polled.json,
        json!({ "events": 1, "more": false, "error": null })
    );
}

/// An instance that reports the numbers from 1 up to a number, one with each poll after the first,
/// and a subscription at a path of its own.
struct Numbers {
    project: Client,
    instance: String,
    path: String,
}

impl Numbers {
    async fn new(host: &Host, up_to: u64) -> Self {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/components/abi-v1.wasm");
        let component = std::fs::read(file).unwrap();
        let version = "/toolkits/abi/versions/20261121_00";
        host.as_org().put(version, component).await.expect(201);
        let project = host.as_project();
        let path = format!("/{}", unique(6));
        let subscription = json!({
            "webhook_url": format!("{INBOX_ORIGIN}{path}"), "enabled_events": ["service.trigger.message"], "version": "V3",
        });
        let subscribed = project.post("/webhook_subscriptions", &subscription).await;
        subscribed.expect(201);
        let account = project.connect_with_key("abi", "amy").await;
        let body = json!({ "connected_account_id": account, "trigger_config": { "up_to": up_to } });
        let upsert = "/trigger_instances/ABI_NEW_NUMBER/upsert";
        let made = project.post(upsert, &body).await.expect(201);
        Self {
            instance: made["trigger_id"].as_str().unwrap().to_owned(),
            project,
            path,
        }
    }

    async fn read(&self) -> Value {
        let path = format!("/trigger_instances/active?trigger_ids={}", self.instance);
        self.project.get(&path).await.expect(200)["items"][0].clone()
    }

    async fn poll(&self) -> Answer {
        given::poll(&self.project, &self.instance).await
    }

    /// Returns the ids of the received messages, by number.
    fn received(&self, inbox: &Inbox) -> BTreeMap<u64, BTreeSet<String>> {
        let mut received = BTreeMap::<_, BTreeSet<_>>::new();
        for message in inbox.received_at(&self.path) {
            let number = message.json()["data"]["number"].as_u64().unwrap();
            let ids = received.entry(number).or_default();
            ids.insert(message.id().to_owned());
        }
        received
    }
}

#[tokio::test]
async fn newest_events_are_shown_with_their_deliveries() {
    let inbox = Inbox::start();
    let host = inbox.setup().start().await;
    let numbers = Numbers::new(&host, 12).await;
    assert_eq!(numbers.read().await["recent_events"], json!([]));
    numbers.poll().await;
    wait_until("every number is acknowledged", async || {
        let read = numbers.read().await;
        let shown = read["recent_events"].as_array().unwrap();
        let mut delivered = shown.iter().map(|event| &event["delivery_status"]);
        shown.len() == 10
            && delivered.all(|status| status == "delivered")
            && numbers.received(&inbox).len() == 12
    })
    .await;
    let read = numbers.read().await;
    let shown = read["recent_events"].as_array().unwrap().iter();
    let shown: Vec<_> = shown.map(|event| event["id"].as_str().unwrap()).collect();
    let received = numbers.received(&inbox);
    let newest = received.values().rev().take(10);
    let newest: Vec<_> = newest.map(|ids| ids.first().unwrap().as_str()).collect();
    assert_eq!(shown, newest);
}

#[tokio::test]
async fn polls_without_interval_are_limited() {
    let inbox = Inbox::start();
    let host = inbox.setup().start().await;
    let numbers = Numbers::new(&host, 100).await;
    let polled = numbers.poll().await;
    assert_eq!(
        polled.json,
        json!({ "events": 1, "more": true, "error": null })
    );
    wait_until("21 numbers arrived", async || {
        numbers.received(&inbox).len() == 21
    })
    .await;
    let read = numbers.read().await;
    assert!(
        millis(&read["next_poll_at"]) >= millis(&read["last_poll_at"]) + 60_000,
        "{read:#}"
    );
}

#[tokio::test]
async fn kills_lose_and_double_no_event() {
    const EVENT_COUNT: u64 = 60;
    let inbox = Inbox::start();
    let setup = inbox.setup().with("triggers.poll_interval_s", "1");
    let mut host = setup.start().await;
    let mut numbers = Numbers::new(&host, EVENT_COUNT).await;
    // The instance of a killed server waits for the end of a lease.
    for part in 1..=size(2, 3) {
        wait_until("some numbers arrived", async || {
            numbers.received(&inbox).len() as u64 >= part * 15
        })
        .await;
        host = host.kill().start().await;
        numbers.project = host.as_project();
    }
    wait_until("every number arrived", async || {
        numbers.received(&inbox).len() as u64 == EVENT_COUNT
    })
    .await;
    for (number, ids) in numbers.received(&inbox) {
        assert_eq!(ids.len(), 1, "number {number} is several events");
    }
}
