//! The stream of a project's events.

use std::collections::BTreeSet;

use futures::{StreamExt as _, stream};
use harness::{
    Client, Guest, Host, Inbox, event_reader::EventReader, host::Setup, inbox::Reply, unique,
    wait_until,
};
use serde_json::json;

use crate::{
    given::{self, subscribe},
    polling,
};

pub(crate) const STREAM_PATH: &str = "/trigger_instances/stream";

async fn send(project: &Client, subscription: &str, number: u64) {
    let body = json!({ "data": { "number": number } });
    let path = format!("{subscription}/test");
    project.post(&path, &body).await.expect(201);
}

/// Reads events until those with all of the numbers have come, and returns the id of the last one.
async fn read(stream: &mut EventReader, numbers: std::ops::Range<u64>) -> String {
    let mut missing: BTreeSet<_> = numbers.collect();
    loop {
        let event = stream.next().await.expect("the stream is open");
        assert_eq!(event.data["id"], event.id.as_str());
        missing.remove(&event.data["data"]["number"].as_u64().unwrap());
        if missing.is_empty() {
            return event.id;
        }
    }
}

#[tokio::test]
async fn stream_sends_envelopes_of_own_project_only() {
    let host = Host::shared().await;
    let [project, other] = [host.new_project().await, host.new_project().await];
    let [own, foreign] = [subscribe(&project).await, subscribe(&other).await];
    let mut stream = project.open_stream(STREAM_PATH, None).await;
    send(&other, &foreign, 100).await;
    send(&project, &own, 1).await;
    let event = stream.next().await.unwrap();
    assert_eq!(event.data["type"], "service.trigger.message");
    assert_eq!(event.data["data"], json!({ "number": 1 }));
    assert_eq!(event.data["metadata"]["trigger_slug"], "TEST_EVENT");
    let path = format!("{STREAM_PATH}?last_event_id={}", event.id);
    other.get(&path).await.expect(404);
}

#[tokio::test]
async fn disabled_subscription_is_told_on_the_stream() {
    let inbox = Inbox::with(|_| Reply::Status(410));
    let host = inbox.setup().start().await;
    let project = host.as_project();
    let subscription = subscribe(&project).await;
    let mut stream = project.open_stream(STREAM_PATH, None).await;
    for number in 0..4 {
        send(&project, &subscription, number).await;
    }
    let event = loop {
        let event = stream.next().await.expect("the stream is open").data;
        if event["type"] == "service.webhook_subscription.disabled" {
            break event;
        }
    };
    let read = project.get(&subscription).await.expect(200);
    let expected = json!({
        "id": read["id"], "disabled_at": read["disabled_at"], "disabled_reason": "gone",
    });
    assert_eq!(event["data"], expected);
    assert!(event["metadata"]["project_id"].is_string(), "{event}");
    let own = json!({ "enabled_events": [event["type"]] });
    project.patch(&subscription, &own).await.expect(400);
}

#[tokio::test]
async fn filters_select_events_of_a_stream() {
    let project = Host::shared().await.new_project().await;
    let subscription = subscribe(&project).await;
    let path = format!("{STREAM_PATH}?trigger_slugs=test_event&toolkit_slugs=test&user_ids=test");
    let mut all = project.open_stream(&path, None).await;
    let mut events = Vec::new();
    for number in 0..3 {
        send(&project, &subscription, number).await;
        events.push(all.next().await.unwrap());
    }
    for name in ["trigger_id", "connected_account_id", "auth_config_id"] {
        let id = events[2].data["metadata"][name].as_str().unwrap();
        let path = format!("{STREAM_PATH}?{name}s={id}");
        let mut one = project.open_stream(&path, Some(&events[0].id)).await;
        assert_eq!(one.next().await.unwrap(), events[2], "{name}");
    }
}

/// Publishes a toolkit with a trigger, and lets an instance of it report an event.
async fn fire(host: &Host, project: &Client, toolkit: &str) {
    polling::publish(host, Guest::poll(), toolkit).await;
    let polled = polling::Given::of(project.clone(), toolkit).await;
    let id = polled.instance(&format!("/echo/{}", unique(8))).await;
    polled.report(&id).await;
}

#[tokio::test]
async fn toolkit_filter_compares_whole_slugs() {
    let (host, project) = Host::shared_with_project().await;
    let toolkit = given::slug();
    let path = format!("{STREAM_PATH}?toolkit_slugs={toolkit}");
    let mut stream = project.open_stream(&path, None).await;
    fire(host, &project, &format!("{toolkit}_more")).await;
    fire(host, &project, &toolkit).await;
    let event = stream.next().await.unwrap();
    let slug = format!("{}_POSTED", toolkit.to_uppercase());
    assert_eq!(event.data["metadata"]["trigger_slug"], slug);
}

#[tokio::test]
async fn stream_resumes_after_a_kill_without_loss() {
    let host = Setup::new().start().await;
    let subscription = subscribe(&host.as_project()).await;
    let mut stream = host.as_project().open_stream(STREAM_PATH, None).await;
    for number in 0..20 {
        send(&host.as_project(), &subscription, number).await;
    }
    let last = read(&mut stream, 0..20).await;
    for number in 20..40 {
        send(&host.as_project(), &subscription, number).await;
    }
    let host = host.kill().start().await;
    while stream.next().await.is_some() {}
    for number in 40..260 {
        send(&host.as_project(), &subscription, number).await;
    }
    let mut resumed = host
        .as_project()
        .open_stream(STREAM_PATH, Some(&last))
        .await;
    read(&mut resumed, 20..260).await;
    let path = format!("{STREAM_PATH}?last_event_id={last}");
    let mut by_parameter = host.as_project().open_stream(&path, None).await;
    read(&mut by_parameter, 20..260).await;
}

#[tokio::test]
async fn stream_without_events_resumes_without_loss() {
    let host = Setup::new().start().await;
    let subscription = subscribe(&host.as_project()).await;
    let mut stream = host.as_project().open_stream(STREAM_PATH, None).await;
    let opening_id = stream.opening_id().await;
    let host = host.kill().start().await;
    assert_eq!(stream.next().await, None);
    send(&host.as_project(), &subscription, 1).await;
    let mut resumed = host
        .as_project()
        .open_stream(STREAM_PATH, Some(&opening_id))
        .await;
    read(&mut resumed, 1..2).await;
    let path = format!("{STREAM_PATH}?last_event_id=at_noon");
    host.as_project().get(&path).await.expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn thousand_streams_cost_little_memory() {
    const STREAM_COUNT: u64 = 1_000;
    const MAX_COST_KIB: u64 = 100_000;
    let host = Setup::new()
        .with("limits.connections", "17600")
        .with("limits.in_flight", "2200")
        .start()
        .await;
    let project = host.as_project();
    let subscription = subscribe(&project).await;
    let before = host.footprint().resident_kib;
    let open = (0..STREAM_COUNT).map(|_| project.open_stream(STREAM_PATH, None));
    let opened = stream::iter(open).buffer_unordered(32);
    let mut streams: Vec<_> = opened.collect().await;
    send(&project, &subscription, 1).await;
    for stream in &mut streams {
        read(stream, 1..2).await;
    }
    // The server returns the memory of sent events after a while.
    wait_until("the open streams cost little memory", async || {
        host.footprint().resident_kib.saturating_sub(before) < MAX_COST_KIB
    })
    .await;
}

#[tokio::test]
async fn stopping_server_ends_its_streams() {
    let host = Setup::new().start().await;
    let mut stream = host.as_project().open_stream(STREAM_PATH, None).await;
    let ended = async { while stream.next().await.is_some() {} };
    let ((_, status), ()) = tokio::join!(host.terminate(), ended);
    assert!(status.success(), "{status}");
}
