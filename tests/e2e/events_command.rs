//! `toolhost events`: following the events of a project, and sending webhooks again.

use std::sync::{Arc, Mutex};

use harness::{
    Client, Inbox,
    host::Setup,
    inbox::{INBOX_ORIGIN, Reply},
    loopback, wait_until,
};
use serde_json::{Value, json};
use tokio::{io::copy_bidirectional, net::TcpStream};

use crate::given::subscribe;

async fn send(project: &Client, subscription: &str, number: u64) -> String {
    let body = json!({ "data": { "number": number } });
    let path = format!("{subscription}/test");
    let sent = project.post(&path, &body).await.expect(201);
    sent["id"].as_str().unwrap().to_owned()
}

/// An address that stays the same when the server behind it is started again.
struct Relay {
    url: String,
    target: Arc<Mutex<String>>,
}

impl Relay {
    fn start(target: &str) -> Self {
        let (listener, address) = loopback::listen();
        let relay = Self {
            url: format!("http://{address}"),
            target: Arc::default(),
        };
        relay.point_to(target);
        let target = Arc::clone(&relay.target);
        loopback::serve_connections(listener, move |mut client| {
            let target = target.lock().unwrap().clone();
            async move {
                let mut server = TcpStream::connect(target).await?;
                let copied = copy_bidirectional(&mut client, &mut server).await;
                copied.map(drop)
            }
        });
        relay
    }

    fn point_to(&self, url: &str) {
        let address = url.strip_prefix("http://").unwrap();
        address.clone_into(&mut self.target.lock().unwrap());
    }
}

#[tokio::test]
async fn tail_misses_nothing_when_server_restarts() {
    let host = Setup::new().start().await;
    let relay = Relay::start(&host.url);
    let subscription = subscribe(&host.as_project()).await;
    let follow = |more: &[&str]| {
        let arguments = [&["events", "tail", "--url", &relay.url][..], more].concat();
        host.setup().leave(&arguments)
    };
    let tails = [follow(&[]), follow(&["--json"])];
    let prints = |number: u64| {
        let lines = tails.each_ref().map(|tail| {
            let output = tail.output().replace(' ', "");
            output.matches(&format!("{{\"number\":{number}}}")).count()
        });
        lines.into_iter().min().unwrap()
    };
    // A tail starts with the next event after it has connected.
    wait_until("the tails print an event", async || {
        send(&host.as_project(), &subscription, 0).await;
        prints(0) > 0
    })
    .await;
    let host = host.kill().start().await;
    relay.point_to(&host.url);
    for number in 1..=20 {
        send(&host.as_project(), &subscription, number).await;
    }
    let all = async || (1..=20).all(|number| prints(number) > 0);
    wait_until("the tails print the other events", all).await;
    for number in 1..=20 {
        assert_eq!(prints(number), 1, "{number} is printed once");
    }
    assert!(tails[0].output().contains("  TEST_EVENT  test  ti_"));
    let output = tails[1].output();
    let lines = output.lines().filter(|line| line.starts_with('{'));
    for line in lines {
        let event: Value = serde_json::from_str(line).unwrap();
        assert_eq!(event["type"], "service.trigger.message");
    }
}

#[tokio::test]
async fn tail_prints_only_selected_events() {
    let host = Setup::new().start().await;
    let subscription = subscribe(&host.as_project()).await;
    let follow = |user| {
        let arguments = ["events", "tail", "--toolkit", "test", "--user", user];
        host.setup().leave(&arguments)
    };
    let mut other = follow("ada");
    let own = follow("test");
    let connected = "connected, waiting for events\n";
    wait_until("the tails say that they are connected", async || {
        [&other, &own].iter().all(|tail| tail.output() == connected)
    })
    .await;
    wait_until("an event is printed", async || {
        send(&host.as_project(), &subscription, 0).await;
        own.output().contains("TEST_EVENT")
    })
    .await;
    assert_eq!(other.output(), connected);
    assert!(!other.process.has_ended());
}

#[tokio::test]
async fn failed_delivery_is_listed_shown_replayed() {
    let inbox = Inbox::with(|message| match message.repetition {
        0 | 1 => Reply::Status(500),
        _ => Reply::Status(200),
    });
    let host = inbox
        .setup()
        .with("webhooks.retry_delays_s", "0.1")
        .start()
        .await;
    let project = host.as_project();
    let run = |arguments: &[&str]| {
        let arguments = [&["events"], arguments].concat();
        host.setup().command(&arguments)
    };
    let subscription = subscribe(&project).await;
    let id = send(&project, &subscription, 1).await;
    let list = || run(&["list", "--status", "failed"]).succeeded();
    wait_until("the delivery has failed", async || list().contains(&id)).await;
    assert!(list().contains("the last attempt failed"));
    let shown = run(&["show", &id]).succeeded();
    let attempts = shown.lines().filter(|line| line.contains("500"));
    assert_eq!(attempts.filter(|line| line.contains("noted")).count(), 2);
    let shown = run(&["show", &id, "--json"]).succeeded();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["attempts"][1]["status"], 500);
    let replayed = run(&["replay", &id]).succeeded();
    assert!(replayed.contains("is sent again"), "{replayed}");
    let delivered = async || {
        let page = run(&["list", "--status", "delivered", "--json"]).succeeded();
        let page: Value = serde_json::from_str(&page).unwrap();
        page["items"][0]["id"] == id.as_str()
    };
    wait_until("the delivery has arrived", async || delivered().await).await;
    assert_eq!(list(), "");
    let range = ["replay", "--since", "2026-01-01T00:00:00Z"];
    let replayed = run(&range).succeeded();
    assert!(replayed.contains("0 events"), "{replayed}");
    let replayed = run(&[&range[..], &["--delivered"]].concat()).succeeded();
    assert!(replayed.contains("1 event is"), "{replayed}");
    wait_until("the delivery has arrived again", async || delivered().await).await;
    let copy = format!("{INBOX_ORIGIN}/copy");
    run(&["replay", &id, "--to", &copy]).succeeded();
    let copied = async || !inbox.received_at("/copy").is_empty();
    wait_until("it arrives at the other URL", copied).await;
}

#[tokio::test]
async fn refused_commands_name_the_remedy() {
    let host = Setup::new().start().await;
    let fails = |arguments: &[&str], part: &str| {
        let arguments = [&["events"], arguments].concat();
        let printed = host.setup().command(&arguments).failed();
        assert!(printed.contains(part), "{arguments:?}: {printed}");
    };
    fails(&["list"], "POST /api/v3.1/webhook_subscriptions");
    fails(&["tail", "--api-key", "ak_unknown"], "API key");
    fails(&["list", "--api-key", "ak_unknown"], "API key");
    let nowhere = ["tail", "--url", "http://127.0.0.1:1"];
    fails(&nowhere, "`toolhost serve`");
    subscribe(&host.as_project()).await;
    fails(&["show", "a/b"], "`toolhost events list`");
    fails(&["show", "wd_unknown"], "id of a delivery");
    fails(&["replay", "--since", "yesterday"], "ISO 8601");
    let nothing = host.setup().command(&["events", "replay"]);
    assert_eq!(nothing.code, Some(2), "{nothing:?}");
}
