//! Replays of events to another URL than the endpoint of their subscription.

use harness::{
    Answer, Client, Host, Inbox,
    inbox::{INBOX_ORIGIN, Reply},
    wait_until,
};
use serde_json::{Value, json};

use crate::given::subscribe;

async fn send(project: &Client, subscription: &str, number: u64) -> String {
    let body = json!({ "data": { "number": number } });
    let sent = project.post(&format!("{subscription}/test"), &body).await;
    let id = sent.expect(201)["id"].as_str().unwrap().to_owned();
    format!("{subscription}/deliveries/{id}")
}

async fn wait_for(project: &Client, delivery: &str, status: &str) -> Answer {
    wait_until(&format!("the delivery is {status}"), async || {
        project.get(delivery).await.expect(200)["status"] == status
    })
    .await;
    project.get(delivery).await.expect(200)
}

#[tokio::test]
async fn replay_to_another_url_leaves_the_endpoint_alone() {
    let inbox = Inbox::with(|message| match message.path.as_str() {
        "/copy" => Reply::Status(200),
        "/gone" => Reply::Status(410),
        _ if message.json()["data"]["number"] == 2 => Reply::Status(410),
        _ => Reply::Status(200),
    });
    let host = inbox.setup().start().await;
    let project = host.as_project();
    let subscription = subscribe(&project).await;
    let first = send(&project, &subscription, 1).await;
    let plain = wait_for(&project, &first, "delivered").await;
    assert_eq!(plain["webhook_url"], Value::Null);

    // A removed URL fails, and the subscription continues.
    let gone = json!({ "webhook_url": format!("{INBOX_ORIGIN}/gone") });
    let replay = format!("{first}/replay");
    project.post(&replay, &gone).await.expect(200);
    let failed = wait_for(&project, &first, "failed").await;
    assert_eq!(failed["webhook_url"], gone["webhook_url"]);
    let read = project.get(&subscription).await.expect(200);
    assert_eq!(read["disabled_at"], Value::Null);

    // A disabled subscription can be replayed to another URL.
    let second = send(&project, &subscription, 2).await;
    wait_for(&project, &second, "failed").await;
    let read = project.get(&subscription).await.expect(200);
    assert_eq!(read["disabled_reason"], "gone");
    let copy = json!({ "webhook_url": format!("{INBOX_ORIGIN}/copy") });
    let range = format!("{subscription}/deliveries/replay");
    let replayed = project.post(&range, &copy).await.expect(200);
    assert_eq!(replayed["replayed"], 2);
    for delivery in [&first, &second] {
        let delivered = wait_for(&project, delivery, "delivered").await;
        assert_eq!(delivered["webhook_url"], copy["webhook_url"]);
    }
    let secret = read["secret"].as_str().unwrap();
    let copies = inbox.received_at("/copy");
    assert_eq!(copies.len(), 2);
    assert!(copies.iter().all(|message| message.is_signed_with(secret)));

    // A replay without a URL goes to the endpoint again.
    let new = json!({ "webhook_url": format!("{INBOX_ORIGIN}/copy") });
    project.patch(&subscription, &new).await.expect(200);
    project.post(&replay, &json!({})).await.expect(200);
    let delivered = wait_for(&project, &first, "delivered").await;
    assert_eq!(delivered["webhook_url"], Value::Null);
    assert_eq!(inbox.received_at("/copy").len(), 3);
}

#[tokio::test]
async fn event_replayed_elsewhere_still_reaches_endpoint() {
    let inbox = Inbox::with(|message| match message.path.as_str() {
        "/copy" | "/new" => Reply::Status(200),
        _ => Reply::Status(500),
    });
    let setup = inbox.setup().with("webhooks.retry_delays_s", "0.1");
    let host = setup.start().await;
    let project = host.as_project();
    let subscription = subscribe(&project).await;
    let delivery = send(&project, &subscription, 1).await;
    wait_for(&project, &delivery, "failed").await;
    let range = format!("{subscription}/deliveries/replay");
    let replayed = async |body: &Value| {
        let answer = project.post(&range, body).await.expect(200);
        answer["replayed"].as_u64().unwrap()
    };
    let copy = json!({ "webhook_url": format!("{INBOX_ORIGIN}/copy") });
    assert_eq!(replayed(&copy).await, 1);
    wait_for(&project, &delivery, "delivered").await;
    assert_eq!(replayed(&copy).await, 0, "the other URL has it");

    let new = json!({ "webhook_url": format!("{INBOX_ORIGIN}/new") });
    project.patch(&subscription, &new).await.expect(200);
    let to_endpoint = json!({});
    assert_eq!(replayed(&to_endpoint).await, 1);
    wait_for(&project, &delivery, "delivered").await;
    assert_eq!(inbox.received_at("/new").len(), 1);

    // What the endpoint has acknowledged stays so, whatever another URL gets.
    let replay = format!("{delivery}/replay");
    project.post(&replay, &copy).await.expect(200);
    wait_for(&project, &delivery, "delivered").await;
    assert_eq!(replayed(&to_endpoint).await, 0);
}

#[tokio::test]
async fn pending_delivery_is_not_replayed_elsewhere() {
    let inbox = Inbox::with(|_| Reply::With(429, "retry-after", "3600".to_owned()));
    let host = inbox.setup().start().await;
    let project = host.as_project();
    let subscription = subscribe(&project).await;
    let delivery = send(&project, &subscription, 1).await;
    wait_until("the first attempt has failed", async || {
        project.get(&delivery).await.expect(200)["attempt_count"] == 1
    })
    .await;
    let replay = format!("{delivery}/replay");
    let copy = json!({ "webhook_url": format!("{INBOX_ORIGIN}/copy") });
    let refused = project.post(&replay, &copy).await;
    refused.expect_error(409, "Webhook_DeliveryPending");
    let read = project.get(&delivery).await.expect(200);
    assert_eq!(read["webhook_url"], Value::Null);
    assert_eq!(read["attempt_count"], 1);
    project.post(&replay, &json!({})).await.expect(200);
}

#[tokio::test]
async fn replay_to_private_address_is_refused() {
    let project = Host::shared().await.new_project().await;
    let subscription = subscribe(&project).await;
    let delivery = send(&project, &subscription, 1).await;
    for url in [
        "https://10.0.0.1/",
        "https://169.254.169.254/latest/meta-data/",
        "https://[::1]/",
        "https://localhost/",
        "http://hooks.example.com/",
        "hooks.example.com",
        "",
    ] {
        let body = json!({ "webhook_url": url });
        for replay in [
            format!("{delivery}/replay"),
            format!("{subscription}/deliveries/replay"),
        ] {
            project.post(&replay, &body).await.expect(400);
        }
    }
    let read = project.get(&delivery).await.expect(200);
    assert_eq!(read["webhook_url"], Value::Null);
}
