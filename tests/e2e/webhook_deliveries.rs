//! Proof that no webhook is lost: thousands of events of a trigger, an endpoint that fails in every
//! way, and servers that are killed.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use harness::{
    BucketService, Client, Dice, Guest, Host, Inbox,
    guest::EVENTS_PER_BATCH,
    host::{on_postgres, size},
    inbox::{INBOX_ORIGIN, Message, Reply},
    verifiers, wait_for,
};
use serde_json::json;

use crate::polling;

/// Origin that redirects lead to.
const REDIRECT_ORIGIN: &str = "https://elsewhere.example.com";
/// Failures of a message after which it is accepted, fewer than a delivery may have.
const MAX_FAILURES: usize = 5;
/// Messages that one server sends to one endpoint at a time, so that a kill cuts no more off.
const MAX_OPEN_MESSAGES: u64 = 16;
/// Maximum growth of a server's memory while it delivers, in KiB.
const MAX_GROWTH_KIB: u64 = 64 << 10;
/// Deliveries without a repetition whose attempts are read one by one.
const SAMPLED_DELIVERIES: usize = 50;
/// Time limit for a part of the proof.
const PART_TIMEOUT: Duration = Duration::from_secs(600);

/// Fails 30 of 100 messages; 5 of them reach the timeout.
fn reply(message: &Message) -> Reply {
    if message.repetition >= MAX_FAILURES {
        return Reply::Status(200);
    }
    let text = format!("{}{}", message.id(), message.repetition);
    let seed = text.bytes().fold(0, |seed: u64, byte| {
        seed.wrapping_mul(31).wrapping_add(byte.into())
    });
    match Dice::new(seed).below(100) {
        0..8 => Reply::Status(500),
        8..13 => Reply::With(429, "retry-after", "1".to_owned()),
        13..18 => Reply::Broken,
        18..21 => Reply::Hanging,
        21..23 => Reply::Dripping,
        23..27 => Reply::With(302, "location", format!("{REDIRECT_ORIGIN}/")),
        27..30 => Reply::Large(500, 10 << 20),
        _ => Reply::Status(200),
    }
}

/// Starts a server, or two on one database.
async fn start(inbox: &Inbox, elsewhere: &Inbox, bucket: &BucketService) -> Vec<Host> {
    let rewrite = format!(
        "{INBOX_ORIGIN}={},{REDIRECT_ORIGIN}={}",
        inbox.origin, elsewhere.origin
    );
    let setup = inbox
        .setup()
        .with("net.rewrite", rewrite)
        .with("webhooks.timeout_s", "1")
        .with("triggers.poll_interval_s", "1");
    if !on_postgres() {
        return vec![setup.start().await];
    }
    let first = setup.in_bucket(bucket).start().await;
    let second = first.setup().another().start().await;
    vec![first, second]
}

/// Creates an instance of a trigger that reports a batch of events at each of some polls.
async fn create_instance(host: &Host, polls: u64) {
    let toolkit = polling::toolkit(host, Guest::batch_poll()).await;
    let polled = polling::Given::of(host.as_project(), &toolkit).await;
    let config = json!({ "polls": polls });
    let body = json!({ "connected_account_id": polled.account, "trigger_config": config });
    let path = format!("/trigger_instances/{}/upsert", polled.trigger);
    polled.project.post(&path, &body).await.expect(201);
}

async fn count(project: &Client, deliveries: &str, status: &str) -> u64 {
    let path = format!("{deliveries}?status={status}&limit=1");
    let page = project.get(&path).await.expect(200);
    page["total_items"].as_u64().unwrap()
}

/// Returns the number of recorded attempts of each delivery, by its message.
async fn attempt_counts(project: &Client, deliveries: &str) -> BTreeMap<String, (String, u64)> {
    let mut counts = BTreeMap::new();
    let mut cursor = String::new();
    loop {
        let path = format!("{deliveries}?limit=1000{cursor}");
        let page = project.get(&path).await.expect(200);
        for item in page["items"].as_array().unwrap() {
            let text = |name: &str| item[name].as_str().unwrap().to_owned();
            let count = item["attempt_count"].as_u64().unwrap();
            counts.insert(text("message_id"), (text("id"), count));
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return counts,
        }
    }
}

/// Checks the record of the attempts against the messages that arrived: it is complete, except for
/// attempts that a kill cut off, and only the last one was acknowledged.
async fn check_attempts(
    project: &Client,
    deliveries: &str,
    by_id: &BTreeMap<&str, Vec<&Message>>,
    kills: u64,
) {
    let counts = attempt_counts(project, deliveries).await;
    let unrecorded = by_id.iter().map(|(id, messages)| {
        let (_, recorded) = counts[*id];
        (messages.len() as u64).saturating_sub(recorded)
    });
    let unrecorded: u64 = unrecorded.sum();
    assert!(
        unrecorded <= kills * MAX_OPEN_MESSAGES,
        "{unrecorded} attempts are not recorded"
    );
    let is_repeated = |messages: &Vec<&Message>| {
        let accepted = messages.iter().filter(|message| message.is_accepted());
        accepted.count() > 1
    };
    let (repeated, others): (Vec<_>, Vec<_>) = by_id
        .iter()
        .partition(|(_, messages)| is_repeated(messages));
    let mut unanswered = 0;
    for (id, messages) in repeated
        .iter()
        .chain(others.iter().take(SAMPLED_DELIVERIES))
    {
        let path = format!("{deliveries}/{}", counts[**id].0);
        let delivery = project.get(&path).await.expect(200);
        let attempts = delivery["attempts"].as_array().unwrap().iter();
        let statuses: Vec<_> = attempts.map(|attempt| attempt["status"].as_u64()).collect();
        let accepted = statuses.iter().position(|status| *status == Some(200));
        assert_eq!(accepted, Some(statuses.len() - 1), "{delivery:#?}");
        let mut answers = messages
            .iter()
            .map(|message| message.answered.map(u64::from));
        let statuses = statuses.into_iter().filter(|status| {
            unanswered += u64::from(status.is_none());
            status.is_some()
        });
        for status in statuses {
            let arrived = answers.any(|answer| answer == status);
            assert!(
                arrived,
                "{status:?} is not from the endpoint: {delivery:#?}"
            );
        }
    }
    // A response that did not arrive in time counts as missing.
    assert!(
        repeated.len() as u64 <= kills * MAX_OPEN_MESSAGES + unanswered,
        "{} messages were accepted twice",
        repeated.len()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_event_of_a_failing_endpoint_is_lost() {
    let polls = size(4, 60);
    let kills = size(3, 15);
    let events = polls * EVENTS_PER_BATCH;
    let inbox = Inbox::with(reply);
    let elsewhere = Inbox::start();
    let bucket = BucketService::start();
    let mut hosts = start(&inbox, &elsewhere, &bucket).await;
    let body =
        json!({ "webhook_url": INBOX_ORIGIN, "enabled_events": ["service.trigger.message"] });
    let path = "/webhook_subscriptions";
    let made = hosts[0].as_project().post(path, &body).await.expect(201);
    let deliveries = format!("{path}/{}/deliveries", made["id"].as_str().unwrap());
    create_instance(&hosts[0], polls).await;
    for part in 1..=kills {
        let some = async || inbox.accepted() >= events * part / (kills + 1);
        wait_for(PART_TIMEOUT, "some events arrived", some).await;
        let killed = hosts.remove(0).kill();
        hosts.push(killed.start().await);
    }
    let memory = |hosts: &[Host]| -> Vec<u64> {
        let footprints = hosts.iter().map(Host::footprint);
        footprints.map(|used| used.resident_kib).collect()
    };
    let before = memory(&hosts);
    let all = async || inbox.accepted() >= events;
    wait_for(PART_TIMEOUT, "every event arrived", all).await;
    let project = hosts[0].as_project();
    let ended = async || count(&project, &deliveries, "delivered").await == events;
    wait_for(PART_TIMEOUT, "every delivery has ended", ended).await;
    assert_eq!(count(&project, &deliveries, "failed").await, 0);
    for (before, after) in before.iter().zip(memory(&hosts)) {
        let growth = after.saturating_sub(*before);
        assert!(growth <= MAX_GROWTH_KIB, "the memory grew by {growth} KiB");
    }

    let received = inbox.received();
    let mut by_id = BTreeMap::<_, Vec<&Message>>::new();
    for message in &received {
        let messages = by_id.entry(message.id()).or_default();
        messages.push(message);
        assert_eq!(messages[0].body, message.body, "a message has one body");
        assert!(message.is_signed_with(made["secret"].as_str().unwrap()));
    }
    let numbers = by_id.values().map(|messages| {
        let number = &messages[0].json()["data"]["id"];
        number.as_str().unwrap().to_owned()
    });
    let numbers: BTreeSet<_> = numbers.collect();
    assert_eq!(numbers.len(), by_id.len(), "an event has one id");
    assert_eq!(numbers.len() as u64, events);
    check_attempts(&project, &deliveries, &by_id, kills).await;
    assert!(elsewhere.received().is_empty(), "no redirect is followed");
    verifiers::verify(&received, made["secret"].as_str().unwrap());
}
