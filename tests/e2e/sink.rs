//! The sink: a real NATS server that gets the events of all projects.

use std::collections::BTreeSet;

use harness::{
    Client, Inbox, Nats,
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

async fn wait_for_messages(sink: &Nats, ids: &BTreeSet<String>) -> Vec<StoredMessage> {
    wait_until("the sink has every event", async || {
        let stored = sink.messages().await;
        let stored: BTreeSet<_> = stored.into_iter().map(|message| message.id).collect();
        stored.is_superset(ids)
    })
    .await;
    sink.messages().await
}

#[tokio::test]
async fn events_reach_the_sink_in_their_third_version() {
    let sink = Nats::start().await;
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
    let mut sink = Nats::start().await;
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
    assert_eq!(stored.len(), ids.len(), "a repeated message is dropped");
}

#[tokio::test]
async fn unwanted_event_waits_and_stays_out_of_logs() {
    let sink = Nats::start().await;
    sink.delete_stream().await;
    let inbox = Inbox::start();
    let host = inbox.setup().with("sink.url", sink.url()).start().await;
    let given = Given::new(host.as_project()).await;
    // At its end, the output of the server is searched for the secret.
    let id = given.send(json!({ "text": secret() })).await;
    wait_until("the event has come back", async || {
        host.output().contains("no stream has the subject toolhost")
    })
    .await;
    sink.create_stream().await;
    wait_for_messages(&sink, &BTreeSet::from([id])).await;
}

#[tokio::test]
async fn sink_must_have_a_trusted_certificate() {
    let sink = Nats::start().await;
    let inbox = Inbox::start();
    let host = inbox.setup().with("sink.url", sink.tls_url());
    let host = host.start().await;
    let given = Given::new(host.as_project()).await;
    let id = given.send(json!({})).await;
    wait_until("the connection failed", async || {
        host.output().contains("client error: nats")
    })
    .await;
    assert!(sink.messages().await.is_empty());
    let setup = host.kill();
    let setup = setup.with_variable("SSL_CERT_FILE", sink.authority());
    let _host = setup.start().await;
    wait_for_messages(&sink, &BTreeSet::from([id])).await;
}
