//! Asymmetric signatures of messages, verified by another implementation than the server's.

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use ed25519_dalek::{Signature, Verifier, VerifyingKey};
use harness::{
    Answer, Client, Inbox,
    inbox::{INBOX_ORIGIN, Message},
    wait_until,
};
use serde_json::{Value, json};

use crate::{
    given::text,
    webhooks::{SUBSCRIPTIONS_PATH, path_of},
};

fn key(shown: &Answer) -> VerifyingKey {
    let key = text(&shown["public_key"]).strip_prefix("whpk_").unwrap();
    let bytes = BASE64.decode(key).unwrap();
    VerifyingKey::from_bytes(&bytes.try_into().unwrap()).unwrap()
}

/// Returns true if one of the asymmetric signatures of a message is made with a key.
fn is_signed_with(message: &Message, key: &VerifyingKey) -> bool {
    let timestamp = message.header("webhook-timestamp");
    let mut signed = format!("{}.{timestamp}.", message.id()).into_bytes();
    signed.extend(&message.body);
    let all = message.header("webhook-signature").split(' ');
    let mut asymmetric = all.filter_map(|text| text.strip_prefix("v1a,"));
    asymmetric.any(|text| {
        let signature = Signature::from_slice(&BASE64.decode(text).unwrap()).unwrap();
        key.verify(&signed, &signature).is_ok()
    })
}

/// Creates a subscription whose messages have asymmetric signatures.
async fn create(project: &Client) -> Answer {
    let body = json!({
        "webhook_url": INBOX_ORIGIN, "enabled_events": ["service.trigger.message"],
        "asymmetric_signatures": true,
    });
    project.post(SUBSCRIPTIONS_PATH, &body).await.expect(201)
}

/// Sends a test event and returns its message.
async fn send(project: &Client, inbox: &Inbox, path: &str) -> Message {
    let before = inbox.received().len();
    let test = format!("{path}/test");
    project.post(&test, &json!({})).await.expect(201);
    wait_until("it arrives", async || inbox.received().len() > before).await;
    inbox.received().remove(before)
}

#[tokio::test]
async fn asymmetric_signature_stands_beside_symmetric_one() {
    let inbox = Inbox::start();
    let host = inbox.setup().start().await;
    let project = host.as_project();
    let created = create(&project).await;
    let path = path_of(&created);
    let read = project.get(&path).await.expect(200);
    assert_eq!(read["public_key"], created["public_key"]);
    let message = send(&project, &inbox, &path).await;
    assert!(is_signed_with(&message, &key(&created)));
    assert!(message.is_signed_with(text(&created["secret"])));

    let off = json!({ "asymmetric_signatures": false });
    let plain = project.patch(&path, &off).await.expect(200);
    assert_eq!(plain["public_key"], Value::Null);
    let message = send(&project, &inbox, &path).await;
    assert!(!message.header("webhook-signature").contains("v1a"));
    assert!(message.is_signed_with(text(&created["secret"])));
    let on = json!({ "asymmetric_signatures": true });
    let other = project.patch(&path, &on).await.expect(200);
    assert_ne!(other["public_key"], created["public_key"]);
}

#[tokio::test]
async fn rotated_key_signs_alone_or_beside_old() {
    for overlap in ["0", "3600"] {
        let inbox = Inbox::start();
        let setup = inbox.setup().with("webhooks.secret_overlap_s", overlap);
        let host = setup.start().await;
        let project = host.as_project();
        let old = create(&project).await;
        let path = path_of(&old);
        let rotate = format!("{path}/rotate_secret");
        let new = project.post(&rotate, &json!({})).await.expect(200);
        let read = project.get(&path).await.expect(200);
        assert_eq!(read["public_key"], new["public_key"]);
        let message = send(&project, &inbox, &path).await;
        assert!(is_signed_with(&message, &key(&new)));
        assert_eq!(is_signed_with(&message, &key(&old)), overlap != "0");
    }
}
