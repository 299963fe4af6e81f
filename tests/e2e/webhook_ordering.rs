//! Ordered deliveries: one message after the other for each trigger instance, whatever fails.

use std::{collections::BTreeMap, time::Duration};

use harness::{
    Client, Host, Inbox,
    inbox::{INBOX_ORIGIN, Message, Reply},
    wait_for, wait_until,
};
use serde_json::json;

use crate::given;

/// Publishes a trigger that reports the numbers from 1 up to a number, and creates an ordered
/// subscription in the first project of a server.
async fn subscribe(host: &Host) -> Client {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/components/abi-v1.wasm");
    let component = std::fs::read(file).unwrap();
    let version = "/toolkits/abi/versions/20261121_00";
    host.as_org().put(version, component).await.expect(201);
    let project = host.as_project();
    let subscription = json!({
        "webhook_url": INBOX_ORIGIN, "enabled_events": ["service.trigger.message"], "ordered": true,
    });
    let made = project.post("/webhook_subscriptions", &subscription).await;
    assert_eq!(made.expect(201)["ordered"], true);
    project
}

/// Returns the path of the subscription.
async fn subscription(project: &Client) -> String {
    let list = project.get("/webhook_subscriptions").await.expect(200);
    let id = given::text(&list["items"][0]["id"]);
    format!("/webhook_subscriptions/{id}")
}

/// Creates an instance that reports the numbers up to a number, and returns its id.
async fn instance(project: &Client, account: &str, up_to: u64) -> String {
    let body = json!({ "connected_account_id": account, "trigger_config": { "up_to": up_to } });
    let upsert = "/trigger_instances/ABI_NEW_NUMBER/upsert";
    let made = project.post(upsert, &body).await.expect(201);
    given::string(&made["trigger_id"])
}

fn number(message: &Message) -> u64 {
    message.json()["data"]["number"].as_u64().unwrap()
}

fn trigger(message: &Message) -> String {
    given::string(&message.json()["metadata"]["trigger_id"])
}

/// Returns the numbers that arrived, in the order of their arrival, by instance.
fn arrivals(inbox: &Inbox) -> BTreeMap<String, Vec<u64>> {
    let mut arrived = BTreeMap::<_, Vec<_>>::new();
    for message in inbox.received() {
        let numbers = arrived.entry(trigger(&message)).or_default();
        numbers.push(number(&message));
    }
    arrived
}

#[tokio::test]
async fn ordered_messages_keep_their_order_despite_kills() {
    const EVENTS_PER_INSTANCE: u64 = 40;
    // A third of the messages fails twice at first.
    let inbox = Inbox::with(|message| match (number(message) % 3, message.repetition) {
        (0, 0 | 1) => Reply::Status(500),
        _ => Reply::Status(200),
    });
    let setup = inbox.setup().with("triggers.poll_interval_s", "1");
    let mut host = setup.start().await;
    let mut project = subscribe(&host).await;
    let account = project.connect_with_key("abi", "amy").await;
    let mut instances = Vec::new();
    for more in 0..3 {
        instances.push(instance(&project, &account, EVENTS_PER_INSTANCE + more).await);
    }
    for part in 1..=3 {
        let some = async || inbox.accepted() >= part * 20;
        wait_until("some numbers arrived", some).await;
        host = host.kill().start().await;
        project = host.as_project();
    }
    let all = EVENTS_PER_INSTANCE * 3 + 3;
    let limit = Duration::from_secs(240);
    let arrived = async || inbox.accepted() == all;
    wait_for(limit, "every number arrived", arrived).await;
    for (instance, numbers) in arrivals(&inbox) {
        assert!(instances.contains(&instance));
        assert!(numbers.is_sorted(), "{instance}: {numbers:?}");
    }
    let pending = format!("{}/deliveries?status=pending", subscription(&project).await);
    wait_until("no delivery is left", async || {
        project.get(&pending).await["total_items"] == 0
    })
    .await;
}

#[tokio::test]
async fn stuck_message_delays_only_its_own_instance() {
    // The numbers up to 12 are those of the stuck instance.
    let inbox = Inbox::with(|message| match message.path.as_str() {
        "/" if number(message) == 3 && message.json()["metadata"]["user_id"] == "amy" => {
            Reply::With(429, "retry-after", "3600".to_owned())
        }
        _ => Reply::Status(200),
    });
    let setup = inbox.setup().with("triggers.poll_interval_s", "1");
    let host = setup.start().await;
    let project = subscribe(&host).await;
    let [amys, bobs] = ["amy", "bob"].map(|user| project.connect_with_key("abi", user));
    let stuck = instance(&project, &amys.await, 12).await;
    let other = instance(&project, &bobs.await, 12).await;
    let subscription = subscription(&project).await;
    let deliveries = format!("{subscription}/deliveries");
    let count = async |status: &str| {
        let page = format!("{deliveries}?status={status}&limit=20");
        project.get(&page).await.expect(200).json
    };
    wait_until("all but the stuck ones have arrived", async || {
        count("delivered").await["total_items"] == 14 && count("pending").await["total_items"] == 10
    })
    .await;
    let arrived = arrivals(&inbox);
    assert_eq!(arrived[&stuck], [1, 2, 3]);
    assert_eq!(arrived[&other], (1..=12).collect::<Vec<_>>());
    let pending = count("pending").await;
    let waiting = pending["items"].as_array().unwrap().iter();
    let attempted: Vec<_> = waiting.filter(|one| one["attempt_count"] != 0).collect();
    let [stuck] = &attempted[..] else {
        panic!("{pending:#}")
    };

    // The others go on once the stuck one has ended.
    let change = json!({ "webhook_url": format!("{INBOX_ORIGIN}/open") });
    project.patch(&subscription, &change).await.expect(200);
    let replay = format!("{deliveries}/{}/replay", given::text(&stuck["id"]));
    project.post(&replay, &json!({})).await.expect(200);
    wait_until("every number is acknowledged", async || {
        count("delivered").await["total_items"] == 24
    })
    .await;
    let rest = inbox.received_at("/open");
    let rest: Vec<_> = rest.iter().map(number).collect();
    assert_eq!(rest, (3..=12).collect::<Vec<_>>());
}

#[tokio::test]
async fn replay_of_ended_message_stops_no_other() {
    // The number of events after a poll by hand, and that of all events.
    const FIRST_COUNT: u64 = 21;
    const EVENT_COUNT: u64 = 30;
    let inbox = Inbox::with(|message| match message.path.as_str() {
        "/stuck" => Reply::With(429, "retry-after", "3600".to_owned()),
        _ => Reply::Status(200),
    });
    let host = inbox.setup().start().await;
    let project = subscribe(&host).await;
    let account = project.connect_with_key("abi", "amy").await;
    let id = instance(&project, &account, EVENT_COUNT).await;
    given::poll(&project, &id).await;
    let deliveries = format!("{}/deliveries", subscription(&project).await);
    let delivered = async || {
        let page = format!("{deliveries}?status=delivered&limit=1");
        project.get(&page).await.expect(200).json
    };
    wait_until("the first events have arrived", async || {
        delivered().await["total_items"] == FIRST_COUNT
    })
    .await;
    let newest = delivered().await["items"][0]["id"].clone();
    let replay = format!("{deliveries}/{}/replay", newest.as_str().unwrap());
    let stuck = json!({ "webhook_url": format!("{INBOX_ORIGIN}/stuck") });
    project.post(&replay, &stuck).await.expect(200);
    wait_until("the replay has failed once", async || {
        !inbox.received_at("/stuck").is_empty()
    })
    .await;
    given::poll(&project, &id).await;
    wait_until("the other events have arrived", async || {
        delivered().await["total_items"] == EVENT_COUNT - 1
    })
    .await;
}
