//! The log of triggers: one entry for each event, with its deliveries.

use harness::{Answer, Client, Host, Inbox, Postgres, inbox::Reply, wait_until};
use serde_json::{Value, json};

use crate::given;

const TRIGGER_LOGS_PATH: &str = "/internal/trigger/logs";

/// A project with a subscription, through which events of a test trigger are sent.
struct Given {
    project: Client,
    /// Path of the subscription.
    subscription: String,
}

impl Given {
    async fn new(project: Client) -> Self {
        Self {
            subscription: given::subscribe(&project).await,
            project,
        }
    }

    async fn send(&self, data: Value) {
        let path = format!("{}/test", self.subscription);
        let body = json!({ "data": data });
        self.project.post(&path, &body).await.expect(201);
    }

    async fn list(&self, search: Value) -> Answer {
        self.project
            .post(TRIGGER_LOGS_PATH, &search)
            .await
            .expect(200)
    }

    /// Returns the payloads of the entries that a search finds.
    async fn payloads(&self, search: Value) -> Vec<Value> {
        payloads(&self.list(search).await)
    }
}

/// Returns the payloads of the entries on a page.
fn payloads(page: &Answer) -> Vec<Value> {
    let entries = page["data"].as_array().unwrap().iter();
    entries
        .map(|entry| {
            let text = entry["meta"]["triggerProviderPayload"].as_str().unwrap();
            serde_json::from_str(text).unwrap()
        })
        .collect()
}

#[tokio::test]
async fn entry_shows_event_with_its_deliveries() {
    let inbox = Inbox::with(|message| match message.json()["data"]["fails"] == true {
        true => Reply::Status(410),
        false => Reply::Status(200),
    });
    let host = inbox.setup().start().await;
    let given = Given::new(host.as_project()).await;
    given.send(json!({ "n": 1 })).await;
    wait_until("it is delivered", async || {
        given.list(json!({})).await["data"][0]["status"] == "success"
    })
    .await;
    given.send(json!({ "n": 2, "fails": true })).await;
    wait_until("it has failed", async || {
        given.list(json!({})).await["data"][0]["status"] == "error"
    })
    .await;
    let message = inbox.received()[0].json();
    let found = given.list(json!({ "status": "success" })).await;
    assert_eq!(found["nextCursor"], Value::Null);
    let [entry] = &found["data"].as_array().unwrap()[..] else {
        panic!("{found:#?}")
    };
    assert_eq!(entry["id"], message["metadata"]["log_id"]);
    assert_eq!(entry["meta"]["id"], message["id"]);
    assert_eq!(entry["meta"]["triggerName"], "TEST_EVENT");
    let account = &message["metadata"]["connected_account_id"];
    assert_eq!(&entry["connectionId"], account);
    assert_eq!(entry["deliveries"][0]["attempts"][0]["status"], 200);
    let path = format!("/internal/trigger/log/{}", entry["id"].as_str().unwrap());
    let read = given.project.get(&path).await.expect(200);
    assert_eq!(&read["log"], entry);
    let failed = given.payloads(json!({ "status": "error" })).await;
    assert_eq!(failed, [json!({ "n": 2, "fails": true })]);
}

#[tokio::test]
async fn filters_select_entries() {
    let given = Given::new(Host::shared().await.new_project().await).await;
    given.send(json!({ "n": 1 })).await;
    given.send(json!({ "n": 2 })).await;
    let newest = given.list(json!({ "limit": 1 })).await["data"][0].clone();
    let id = newest["id"].as_str().unwrap();
    let both = [json!({ "n": 2 }), json!({ "n": 1 })];
    let later = json!({ "from": 4_102_444_800_000_u64 });
    let condition = |field: &str, value: &str| json!({ "search_params": [{ "field": field, "operation": "contains", "value": value }] });
    for (search, expected) in [
        (json!({}), &both[..]),
        (json!({ "time": "5m", "status": "all" }), &both[..]),
        (later, &[]),
        (json!({ "to": 0 }), &[]),
        (json!({ "userId": "test" }), &both[..]),
        (json!({ "entityId": "nobody" }), &[]),
        (json!({ "search": "test_ev" }), &both[..]),
        (json!({ "search": id }), &both[..1]),
        (condition("triggerName", "EVENT"), &both[..]),
        (condition("id", id), &both[..1]),
        (condition("entityId", "x"), &[]),
        (
            json!({ "integrationId": "00000000-0000-4000-8000-000000000000" }),
            &[],
        ),
    ] {
        assert_eq!(given.payloads(search.clone()).await, expected, "{search}");
    }
    let bare = given.list(json!({ "include_payload": false })).await;
    assert!(
        !bare.text.contains("triggerProviderPayload"),
        "{}",
        bare.text
    );
    for refused in [
        json!({ "integrationId": "x" }),
        json!({ "time": "2m" }),
        json!({ "cursor": "x" }),
        json!({ "search": "x".repeat(257) }),
        condition("payload", "x"),
    ] {
        let answer = given.project.post(TRIGGER_LOGS_PATH, &refused).await;
        answer.expect(400);
    }
}

#[tokio::test]
async fn pages_have_every_entry_once() {
    let given = Given::new(Host::shared().await.new_project().await).await;
    for n in 0..5 {
        given.send(json!({ "n": n })).await;
    }
    let mut found = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let page = given.list(json!({ "limit": 2, "cursor": cursor })).await;
        let entries = page["data"].as_array().unwrap().iter();
        found.extend(entries.map(|entry| entry["meta"]["triggerProviderPayload"].clone()));
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    let expected = (0..5).rev().map(|n| json!(format!("{{\"n\":{n}}}")));
    assert_eq!(found, expected.collect::<Vec<_>>());
}

#[tokio::test]
async fn large_payloads_end_a_page_early() {
    const EVENT_COUNT: u64 = 12;
    const FILLER_BYTES: usize = 1_000_000;
    /// Number of payloads of this size that reach the limit of 4 MiB.
    const MAX_PER_PAGE: usize = 5;
    let given = Given::new(Host::shared().await.new_project().await).await;
    let filler = "x".repeat(FILLER_BYTES);
    for n in 0..EVENT_COUNT {
        given.send(json!({ "n": n, "filler": filler })).await;
    }
    let mut found = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let search = json!({ "limit": 1_000, "cursor": cursor });
        let page = given.list(search).await;
        let payloads = payloads(&page);
        assert!((1..=MAX_PER_PAGE).contains(&payloads.len()));
        found.extend(payloads.iter().map(|data| data["n"].as_u64().unwrap()));
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(found, (0..EVENT_COUNT).rev().collect::<Vec<_>>());
    let bare = json!({ "limit": 1_000, "include_payload": false });
    let bare = given.list(bare).await;
    assert_eq!(bare["data"].as_array().unwrap().len() as u64, EVENT_COUNT);
    assert_eq!(bare["nextCursor"], Value::Null);
}

#[tokio::test]
async fn entries_belong_to_their_project() {
    let host = Host::shared().await;
    let given = Given::new(host.new_project().await).await;
    let other = Given::new(host.new_project().await).await;
    given.send(json!({ "n": 1 })).await;
    let entry = given.list(json!({})).await["data"][0].clone();
    let id = entry["id"].as_str().unwrap();
    let path = format!("/internal/trigger/log/{id}");
    given.project.get(&path).await.expect(200);
    other.project.get(&path).await.expect(404);
    assert_eq!(other.list(json!({})).await["data"], json!([]));
    assert_eq!(other.list(json!({ "search": id })).await["data"], json!([]));
}

/// The age of the events is changed in the database, because they are kept for at least a week.
#[tokio::test]
async fn old_events_are_erased_with_their_deliveries() {
    const KEEP_DAYS: i64 = 7;
    let inbox = Inbox::start();
    let setup = inbox.setup().on(Postgres::shared().database(None));
    let setup = setup.with("webhooks.keep_days", KEEP_DAYS.to_string());
    let host = setup.start().await;
    let mut given = Given::new(host.as_project()).await;
    for number in 1..=2 {
        given.send(json!({ "n": number })).await;
        wait_until("it is delivered", async || {
            given.list(json!({})).await["data"][0]["status"] == "success"
        })
        .await;
    }
    let (setup, _) = host.terminate().await;
    let (too_old, young) = (KEEP_DAYS + 1, KEEP_DAYS - 1);
    for table in ["events", "webhook_deliveries"] {
        setup.database().say(&format!(
            "with aged as (select id, row_number() over (order by created_at) as place from {table})
             update {table} set created_at = created_at
                 - case aged.place when 1 then {too_old} else {young} end * 86400000::bigint
             from aged where aged.id = {table}.id"
        ));
    }
    let host = setup.start().await;
    given.project = host.as_project();
    wait_until("the first event is erased", async || {
        given.payloads(json!({})).await == [json!({ "n": 2 })]
    })
    .await;
    let path = format!("{}/deliveries", given.subscription);
    wait_until("its delivery is erased", async || {
        given.project.get(&path).await.expect(200)["total_items"] == 1
    })
    .await;
    let left = given.list(json!({})).await;
    let deliveries = &left["data"][0]["deliveries"];
    assert_eq!(deliveries[0]["attempts"][0]["status"], 200, "{left:#?}");
}
