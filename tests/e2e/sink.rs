//! The sink: a real NATS server or a real RabbitMQ server that gets the events of all projects.

use std::collections::BTreeSet;

use harness::{
    Client, Inbox, Nats, RabbitMq,
    inbox::INBOX_ORIGIN,
    nats::{MAX_MESSAGE_BYTES, StoredMessage},
    secret, unique, wait_until,
};
use serde_json::{Value, json};

/// A project whose test events go to a webhook and to the sink.
struct Given {
    project: Client,
    path: String,
    subscription: String,
}

impl Given {
    async fn new(project: Client) -> Self {
        let path = format!("/{}", unique(6));
        let body = json!({
            "webhook_url": format!("{INBOX_ORIGIN}{path}"), "enabled_events": ["service.trigger.message"], "version": "V3",
        });
        let made = project.post("/webhook_subscriptions", &body).await;
        let made = made.expect(201);
        Self {
            project,
            path,
            subscription: made["id"].as_str().unwrap().to_owned(),
        }
    }

    /// Sends a test event and returns the id of its message.
    async fn send(&self, data: Value) -> String {
        let path = format!("/webhook_subscriptions/{}/test", self.subscription);
        let sent = self.project.post(&path, &json!({ "data": data })).await;
        sent.expect(201)["message_id"].as_str().unwrap().to_owned()
    }
}

/// A server of the operator.
enum Sink {
    Nats(Nats),
    RabbitMq(RabbitMq),
}

impl Sink {
    async fn nats() -> Self {
        Self::Nats(Nats::start().await)
    }

    async fn rabbitmq() -> Self {
        Self::RabbitMq(RabbitMq::start().await)
    }

    fn url(&self) -> String {
        match self {
            Self::Nats(server) => server.url(),
            Self::RabbitMq(server) => server.url(),
        }
    }

    async fn run(&mut self) {
        match self {
            Self::Nats(server) => server.run().await,
            Self::RabbitMq(server) => server.run().await,
        }
    }

    fn kill(&mut self) {
        match self {
            Self::Nats(server) => server.kill(),
            Self::RabbitMq(server) => server.kill(),
        }
    }

    async fn messages(&self) -> Vec<StoredMessage> {
        match self {
            Self::Nats(server) => server.messages().await,
            Self::RabbitMq(server) => server.messages().await,
        }
    }
}

async fn wait_for_messages(sink: &Sink, ids: &BTreeSet<String>) -> Vec<StoredMessage> {
    wait_until("the sink has every event", async || {
        let stored = sink.messages().await;
        let stored: BTreeSet<_> = stored.into_iter().map(|message| message.id).collect();
        stored.is_superset(ids)
    })
    .await;
    sink.messages().await
}

#[tokio::test]
async fn events_reach_nats_in_their_third_version() {
    events_reach(Sink::nats().await).await;
}

#[tokio::test]
async fn events_reach_rabbitmq_in_their_third_version() {
    events_reach(Sink::rabbitmq().await).await;
}

async fn events_reach(sink: Sink) {
    let inbox = Inbox::start();
    let host = inbox.setup().with("sink.url", sink.url()).start().await;
    let given = Given::new(host.as_project()).await;
    let large = "x".repeat(MAX_MESSAGE_BYTES);
    given.send(json!({ "text": large })).await;
    let id = given.send(json!({ "text": "small" })).await;
    let stored = wait_for_messages(&sink, &BTreeSet::from([id.clone()])).await;
    assert_eq!(
        stored.len(),
        1,
        "a message past the limit of the sink is left out"
    );
    let project = given.project.project_id().await;
    assert_eq!(
        stored[0].subject,
        format!("toolhost.{project}.service.trigger.message")
    );
    wait_until("the webhook arrived", async || {
        inbox.received_at(&given.path).len() == 2
    })
    .await;
    let received = inbox.received_at(&given.path);
    let same = received.iter().find(|message| message.id() == id);
    assert_eq!(stored[0].body, same.unwrap().json());
    assert_eq!(stored[0].body["data"], json!({ "text": "small" }));
    let config = host.setup().command(&["config"]).succeeded();
    assert!(config.contains("url = "), "{config}");
    assert!(!config.contains(&sink.url()), "{config}");
}

#[tokio::test]
async fn dead_sink_loses_no_event_and_delays_no_other() {
    let (ids, stored) = outlive(Sink::nats().await).await;
    assert_eq!(stored.len(), ids.len(), "a repeated message is dropped");
}

#[tokio::test]
async fn dead_rabbitmq_loses_no_event_and_delays_no_other() {
    let (ids, stored) = outlive(Sink::rabbitmq().await).await;
    let stored: BTreeSet<_> = stored.into_iter().map(|message| message.id).collect();
    assert_eq!(stored, ids);
}

/// Sends events while the sink is dead, and kills the server. Returns the ids of all messages, and
/// those that the sink has in the end.
async fn outlive(mut sink: Sink) -> (BTreeSet<String>, Vec<StoredMessage>) {
    let inbox = Inbox::start();
    let host = inbox.setup().with("sink.url", sink.url()).start().await;
    let mut given = Given::new(host.as_project()).await;
    let mut ids = BTreeSet::new();
    for number in 0..10 {
        ids.insert(given.send(json!({ "number": number })).await);
    }
    sink.kill();
    for number in 10..60 {
        ids.insert(given.send(json!({ "number": number })).await);
    }
    wait_until("the webhooks arrived without the sink", async || {
        inbox.received_at(&given.path).len() >= 60
    })
    .await;
    let host = host.kill().start().await;
    given.project = host.as_project();
    ids.insert(given.send(json!({ "number": 60 })).await);
    sink.run().await;
    let stored = wait_for_messages(&sink, &ids).await;
    (ids, stored)
}

#[tokio::test]
async fn unwanted_event_waits_and_stays_out_of_logs() {
    let server = RabbitMq::start().await;
    server.delete_queue().await;
    let inbox = Inbox::start();
    let host = inbox.setup().with("sink.url", server.url()).start().await;
    let given = Given::new(host.as_project()).await;
    // At its end, the output of the server is searched for the secret.
    let id = given.send(json!({ "text": secret() })).await;
    wait_until("the event has come back", async || {
        host.output().contains("no queue is bound to toolhost")
    })
    .await;
    server.declare().await.expect("the server answers");
    wait_for_messages(&Sink::RabbitMq(server), &BTreeSet::from([id])).await;
}

#[tokio::test]
async fn sink_must_have_a_trusted_certificate() {
    let server = RabbitMq::start().await;
    let (url, authority) = (server.tls_url(), server.authority());
    let sink = Sink::RabbitMq(server);
    let inbox = Inbox::start();
    let host = inbox.setup().with("sink.url", url).start().await;
    let given = Given::new(host.as_project()).await;
    let id = given.send(json!({})).await;
    wait_until("the connection failed", async || {
        host.output().contains("the sink cannot be reached")
    })
    .await;
    assert!(sink.messages().await.is_empty());
    let setup = host.kill().with_variable("SSL_CERT_FILE", authority);
    let _host = setup.start().await;
    wait_for_messages(&sink, &BTreeSet::from([id])).await;
}

#[tokio::test]
async fn sink_gets_only_the_chosen_kinds() {
    let sink = Sink::nats().await;
    let inbox = Inbox::start();
    let host = inbox.setup().with("sink.url", sink.url());
    let host = host.with("sink.events", "service.connected_account.expired");
    let host = host.start().await;
    let given = Given::new(host.as_project()).await;
    let first = given.send(json!({})).await;
    wait_until("the webhook arrived", async || {
        inbox.received_at(&given.path).len() == 1
    })
    .await;
    // With the same records, a server that sends all kinds sends those that it stores from now on.
    let setup = host.kill().with("sink.events", "service.trigger.message");
    let host = setup.start().await;
    let given = Given {
        project: host.as_project(),
        ..given
    };
    let second = given.send(json!({})).await;
    let stored = wait_for_messages(&sink, &BTreeSet::from([second])).await;
    assert!(stored.iter().all(|message| message.id != first));
}
