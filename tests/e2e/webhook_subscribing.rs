//! Subscribing at providers: trigger instances that create, renew and delete webhooks by themselves.

use harness::{
    Answer, Client, HookProvider, Host, client::Body, free_port, host::Setup, signed::hmac_sha256,
    unique, wait_until,
};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::documents::folder_with;

const STREAM_PATH: &str = "/trigger_instances/stream";
pub(crate) const GITHUB_TRIGGER: &str = "GITHUB_ISSUE_CHANGED";
const CALENDAR_TRIGGER: &str = "GOOGLECALENDAR_CALENDAR_CHANGED";

/// Returns settings of a server with the toolkits that subscribe, and their folder.
pub(crate) fn setup(provider: &HookProvider) -> (Setup, TempDir) {
    let toolkits = folder_with(&["github", "googlecalendar"]);
    let setup = provider
        .setup()
        .with("toolkits", toolkits.path().to_str().unwrap())
        .with("triggers.poll_interval_s", "1")
        .with("events.disable_after_s", "1");
    (setup, toolkits)
}

/// A provider, and a server that the tests share.
struct Shared {
    provider: HookProvider,
    host: &'static Host,
    _toolkits: TempDir,
}

async fn shared() -> &'static Shared {
    static SHARED_SETUP: OnceCell<Shared> = OnceCell::const_new();
    SHARED_SETUP
        .get_or_init(|| async {
            let provider = HookProvider::start();
            let (setup, toolkits) = setup(&provider);
            Shared {
                host: setup.start().await.until_exit(),
                provider,
                _toolkits: toolkits,
            }
        })
        .await
}

/// An account in a project.
pub(crate) struct Given {
    project: Client,
    account: String,
}

impl Given {
    pub(crate) async fn new(project: Client, toolkit: &str) -> Self {
        let token = json!({ "token": harness::secret() });
        let account = project.connect(toolkit, "BEARER_TOKEN", "amy", token).await;
        Self { project, account }
    }

    async fn github() -> Self {
        Self::new(shared().await.host.new_project().await, "github").await
    }

    async fn calendar() -> Self {
        Self::new(shared().await.host.new_project().await, "googlecalendar").await
    }

    /// Creates an instance and returns its id.
    pub(crate) async fn instance(&self, trigger: &str, config: Value) -> String {
        let body = json!({ "connected_account_id": self.account, "trigger_config": config });
        let path = format!("/trigger_instances/{trigger}/upsert");
        let made = self.project.post(&path, &body).await.expect(201);
        made["trigger_id"].as_str().unwrap().to_owned()
    }

    async fn read(&self, id: &str) -> Value {
        let path = format!("/trigger_instances/active?show_disabled=true&trigger_ids={id}");
        self.project.get(&path).await.expect(200)["items"][0].clone()
    }

    /// Creates an instance for the issues of a repository and returns its id.
    async fn watch(&self, repository: &str) -> String {
        let config = json!({ "repository": repository });
        self.instance(GITHUB_TRIGGER, config).await
    }

    /// Does the same and waits until the instance is subscribed.
    async fn subscribe(&self, repository: &str) -> String {
        let id = self.watch(repository).await;
        self.wait_for(&id, "subscribed").await;
        id
    }

    /// Waits until the subscription of an instance has a status, and returns the instance.
    pub(crate) async fn wait_for(&self, id: &str, status: &str) -> Value {
        let what = format!("the subscription is {status}");
        wait_until(&what, async || {
            self.read(id).await["subscription"]["status"] == status
        })
        .await;
        self.read(id).await
    }

    async fn set(&self, id: &str, status: &str) {
        let path = format!("/trigger_instances/manage/{id}");
        let body = json!({ "status": status });
        self.project.patch(&path, &body).await.expect(200);
    }
}

/// Returns the path of an address below the prefix.
pub(crate) fn path_of(url: &str) -> &str {
    url.split_once("/api/v3.1").expect("the newer prefix").1
}

/// Sends the event that an issue was opened, as GitHub signs it.
async fn deliver(client: &Client, url: &str, secret: &str, repository: &str) -> Answer {
    let body = format!(
        r#"{{"action":"opened","issue":{{"number":7,"state":"open","title":"A bug","html_url":"https://github.com/o/r/issues/7","created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z"}},"repository":{{"full_name":"{repository}"}}}}"#
    );
    let signature = format!("sha256={}", hmac_sha256(secret, &body));
    let delivery = unique(8);
    let headers = [
        ("x-github-event", "issues"),
        ("x-github-delivery", delivery.as_str()),
        ("x-hub-signature-256", &signature),
    ];
    let body = Body::Raw("application/json", body.into_bytes());
    client
        .send(Method::POST, path_of(url), body, &headers)
        .await
}

#[tokio::test]
async fn subscribed_instance_receives_with_a_hidden_secret() {
    let Shared { provider, host, .. } = shared().await;
    let given = Given::github().await;
    let repository = format!("o/{}", unique(6));
    let id = given.subscribe(&repository).await;
    let read = given.read(&id).await;
    assert_eq!(read["trigger_config"], json!({ "repository": repository }));
    assert_eq!(read["subscription"]["expires_at"], Value::Null);
    let hooks = provider.hooks(&repository);
    let [hook] = hooks.as_slice() else {
        panic!("one webhook is created: {hooks:?}")
    };
    assert!(hook.secret.len() >= 32 && !hook.secret.contains(':'));
    let log = host.output();
    assert!(!log.contains(&hook.secret), "the log has the secret");
    assert!(!read.to_string().contains(&hook.secret));
    let mut stream = given.project.open_stream(STREAM_PATH, None).await;
    // Another instance has its own webhook, and gets nothing of this one.
    let other = format!("o/{}", unique(6));
    given.subscribe(&other).await;
    let others = provider.hooks(&other);
    assert_ne!(others[0].url, hook.url);
    let refused = deliver(&given.project, &hook.url, &others[0].secret, &repository).await;
    assert_eq!(refused.status, 401);
    let sent = deliver(&given.project, &hook.url, &hook.secret, &other).await;
    sent.expect(200);
    let sent = deliver(&given.project, &hook.url, &hook.secret, &repository).await;
    sent.expect(200);
    let event = stream.next().await.expect("the stream is open");
    assert_eq!(event.data["metadata"]["trigger_id"], id.as_str());
    assert_eq!(event.data["data"]["repository"], repository);
}

#[tokio::test]
async fn disabled_and_deleted_instances_are_unsubscribed() {
    let Shared { provider, .. } = shared().await;
    let given = Given::github().await;
    let repository = format!("o/{}", unique(6));
    let id = given.subscribe(&repository).await;
    let url = provider.hooks(&repository)[0].url.clone();
    given.set(&id, "disable").await;
    given.wait_for(&id, "unsubscribed").await;
    assert!(provider.hooks(&repository).is_empty());
    given.set(&id, "enable").await;
    given.wait_for(&id, "subscribed").await;
    let hook = provider.hooks(&repository).remove(0);
    assert_eq!(hook.url, url);
    let path = format!("/trigger_instances/manage/{id}");
    given.project.delete(&path).await.expect(200);
    let refused = deliver(&given.project, &url, &hook.secret, &repository).await;
    assert_eq!(refused.status, 404);
    wait_until("the webhook is deleted", async || {
        provider.hooks(&repository).is_empty()
    })
    .await;
}

#[tokio::test]
async fn end_is_tried_five_times() {
    let Shared { provider, .. } = shared().await;
    let given = Given::github().await;
    let repository = format!("o/stuck-{}", unique(6));
    let id = given.subscribe(&repository).await;
    given.set(&id, "disable").await;
    given.wait_for(&id, "unsubscribed").await;
    assert_eq!(provider.refused_removals(&repository), 5);
}

#[tokio::test]
async fn deleted_account_is_unsubscribed_before() {
    let Shared { provider, .. } = shared().await;
    let given = Given::github().await;
    let repository = format!("o/{}", unique(6));
    given.subscribe(&repository).await;
    let path = format!("/connected_accounts/{}", given.account);
    given.project.delete(&path).await.expect(200);
    assert!(provider.hooks(&repository).is_empty());
}

#[tokio::test]
async fn deleted_project_is_unsubscribed_if_asked() {
    let Shared { provider, host, .. } = shared().await;
    let given = Given::github().await;
    let repository = format!("o/{}", unique(6));
    given.subscribe(&repository).await;
    let project = given.project.project_id().await;
    let path = format!("/org/owner/project/{project}?revoke_on_delete=true");
    host.as_org().delete(&path).await.expect(200);
    assert!(provider.hooks(&repository).is_empty());
}

#[tokio::test]
async fn given_secret_is_not_subscribed() {
    let Shared { provider, .. } = shared().await;
    let given = Given::github().await;
    let repository = format!("o/{}", unique(6));
    let config = json!({ "repository": repository, "secret": harness::secret() });
    let id = given.instance(GITHUB_TRIGGER, config).await;
    assert_eq!(given.read(&id).await["subscription"], Value::Null);
    // Without a repository, no webhook can be created, so that the secret is needed.
    let body = json!({ "connected_account_id": given.account, "trigger_config": {} });
    let path = format!("/trigger_instances/{GITHUB_TRIGGER}/upsert");
    given.project.post(&path, &body).await.expect(400);
    given.subscribe(&repository).await;
    assert_eq!(provider.hooks(&repository).len(), 1);
}

#[tokio::test]
async fn refused_subscription_disables_the_instance() {
    let given = Given::github().await;
    let mut stream = given.project.open_stream(STREAM_PATH, None).await;
    let repository = format!("o/refused-{}", unique(6));
    let id = given.watch(&repository).await;
    let read = given.wait_for(&id, "failed").await;
    assert_eq!(read["disabled_reason"], "subscription_auth_failure");
    let error = read["subscription"]["last_error"].as_str().unwrap();
    assert!(error.contains("forbidden"), "{error}");
    let event = stream.next().await.expect("the stream is open");
    assert_eq!(event.data["type"], "service.trigger.disabled");
    let reason = &event.data["data"]["disabled_reason"];
    assert_eq!(reason, "subscription_auth_failure");
}

#[tokio::test]
async fn subscription_is_renewed_before_it_expires() {
    let Shared { provider, .. } = shared().await;
    let given = Given::calendar().await;
    let calendar = format!("brief-{}", unique(6));
    let config = json!({ "calendar_id": calendar });
    let id = given.instance(CALENDAR_TRIGGER, config).await;
    let read = given.wait_for(&id, "subscribed").await;
    let first = provider.hooks(&calendar).remove(0);
    wait_until("the channel is renewed", async || {
        let expires_at = &given.read(&id).await["subscription"]["expires_at"];
        *expires_at != read["subscription"]["expires_at"]
    })
    .await;
    wait_until("the old channel is closed", async || {
        provider.hooks(&calendar).len() == 1
    })
    .await;
    let renewed = provider.hooks(&calendar);
    assert_ne!(renewed[0].id, first.id);
    let mut stream = given.project.open_stream(STREAM_PATH, None).await;
    let send = async |token: &str| {
        let headers = [
            ("x-goog-channel-id", renewed[0].id.as_str()),
            ("x-goog-channel-token", token),
            ("x-goog-resource-state", "exists"),
        ];
        let path = path_of(&renewed[0].url);
        given
            .project
            .send(Method::POST, path, Body::None, &headers)
            .await
    };
    assert_eq!(send("another token of a channel").await.status, 401);
    send(&renewed[0].secret).await.expect(200);
    let event = stream.next().await.expect("the stream is open");
    assert_eq!(event.data["data"]["summary"], "Standup");
}

#[tokio::test]
async fn failing_renewal_disables_the_instance() {
    let given = Given::calendar().await;
    let calendar = format!("brief-broken-{}", unique(6));
    let config = json!({ "calendar_id": calendar });
    let id = given.instance(CALENDAR_TRIGGER, config).await;
    given.wait_for(&id, "subscribed").await;
    wait_until("the instance is disabled", async || {
        given.read(&id).await["disabled_reason"] == "subscription_refresh_failure"
    })
    .await;
    let read = given.read(&id).await;
    assert_eq!(read["subscription"]["status"], "failed");
}

#[tokio::test]
async fn kill_while_subscribing_makes_one_webhook() {
    let provider = HookProvider::start();
    let (setup, _toolkits) = setup(&provider);
    // A restart keeps the port, and with it the address of the webhook.
    let setup = setup.with("listen", format!("127.0.0.1:{}", free_port()));
    let host = setup.start().await;
    let mut given = Given::new(host.as_project(), "github").await;
    let repository = format!("o/silent-{}", unique(6));
    let id = given.watch(&repository).await;
    wait_until("the webhook is created", async || {
        !provider.hooks(&repository).is_empty()
    })
    .await;
    assert_eq!(given.read(&id).await["subscription"]["status"], "pending");
    let host = host.kill().start().await;
    given.project = host.as_project();
    given.wait_for(&id, "subscribed").await;
    let hooks = provider.hooks(&repository);
    assert_eq!(hooks.len(), 1, "{hooks:?}");
    let sent = deliver(&given.project, &hooks[0].url, &hooks[0].secret, &repository).await;
    sent.expect(200);
}
