//! Events about connected accounts.

use futures::future::join_all;
use harness::{Host, Inbox, fake_app, inbox::INBOX_ORIGIN, wait_until};
use serde_json::json;

use crate::given::{self, Oauth};

const EXPIRED_EVENT: &str = "service.connected_account.expired";

#[tokio::test]
async fn expired_account_is_one_event() {
    let inbox = Inbox::start();
    let setup = inbox.setup();
    let setup = setup.with_application(&fake_app::FAKE_APP_HOSTS, Host::application());
    let host = setup.start().await;
    let project = host.as_project();
    let body = json!({ "webhook_url": INBOX_ORIGIN, "enabled_events": [EXPIRED_EVENT] });
    let subscription = project.post("/webhook_subscriptions", &body).await;
    let subscription = subscription.expect(201);
    let oauth = Oauth::new(&host, &project).await;
    oauth.issuer.set(|settings| settings.lifetime = 1);
    let id = oauth.connect(&project).await;
    oauth.issuer.expire();
    oauth.issuer.revoke_all();
    for answer in join_all((0..8).map(|_| oauth.execute(&project))).await {
        // Later callers find no active account.
        assert!([404, 422].contains(&answer.status), "{answer:?}");
    }
    wait_until("the event arrived", async || !inbox.received().is_empty()).await;
    let message = inbox.received().remove(0);
    let event = message.json();
    assert_eq!(event["type"], EXPIRED_EVENT);
    assert_eq!(event["id"], message.id());
    let session = project.get("/auth/session/info").await.expect(200);
    let owner = &session["project"];
    assert_eq!(
        event["metadata"],
        json!({ "project_id": owner["nano_id"], "org_id": owner["org"]["id"] })
    );
    let path = format!("/connected_accounts/{id}");
    let read = project.get(&path).await.expect(200);
    assert_eq!(read["status"], "EXPIRED");
    assert_eq!(event["data"], read.json);
    for secret in oauth.issuer.secrets() {
        assert!(!event.to_string().contains(&secret), "{event}");
    }

    // Nothing else was sent before a later message.
    let test = subscription["id"].as_str().unwrap();
    let test = format!("/webhook_subscriptions/{test}/test");
    project.post(&test, &json!({})).await.expect(201);
    let is_test = |json: &serde_json::Value| json["type"] == "service.trigger.message";
    wait_until("a later message arrived", async || {
        inbox
            .received()
            .iter()
            .any(|message| is_test(&message.json()))
    })
    .await;
    assert_eq!(inbox.received().len(), 2);
}

#[tokio::test]
async fn event_masks_secrets_that_reads_show() {
    let inbox = Inbox::start();
    let setup = inbox.setup();
    let setup = setup.with_application(&fake_app::FAKE_APP_HOSTS, Host::application());
    let host = setup.start().await;
    let project = host.as_project();
    let shown = json!({ "mask_secret_keys_in_connected_account": false });
    given::configure(&project, shown).await;
    let body = json!({ "webhook_url": INBOX_ORIGIN, "enabled_events": [EXPIRED_EVENT] });
    let subscription = project.post("/webhook_subscriptions", &body).await;
    subscription.expect(201);
    let oauth = Oauth::new(&host, &project).await;
    oauth.issuer.set(|settings| settings.lifetime = 1);
    oauth.connect(&project).await;
    let secrets = oauth.issuer.secrets();
    oauth.issuer.expire();
    oauth.issuer.revoke_all();
    oauth.execute(&project).await.expect(422);
    wait_until("the event arrived", async || !inbox.received().is_empty()).await;
    let event = inbox.received().remove(0).json().to_string();
    for secret in secrets {
        assert!(!event.contains(&secret), "{event}");
    }
}
