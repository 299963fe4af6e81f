//! Webhook endpoints: creation, values, lists and deletion.

use harness::{Answer, Client, Guest, Host, guest, host::Setup, marked};
use serde_json::{Value, json};

use crate::given;

const ENDPOINTS_PATH: &str = "/webhook_endpoints";

/// A toolkit with a trigger that receives webhooks, and a project.
struct Given {
    project: Client,
    toolkit: String,
}

impl Given {
    async fn new(host: &Host) -> Self {
        let (toolkit, mut manifest) = given::manifest_with_key();
        manifest["triggers"] = json!([
            given::webhook_trigger(&toolkit, "ARRIVED"),
            given::trigger(&toolkit, "POLLED"),
        ]);
        host.publish(Guest::echo().component(), &manifest).await;
        let project = host.new_project().await;
        Self { project, toolkit }
    }

    async fn create(&self, client_id: &str) -> Answer {
        let body = json!({ "toolkit_slug": self.toolkit, "client_id": client_id });
        self.project.post(ENDPOINTS_PATH, &body).await
    }

    /// Creates an endpoint and returns its path.
    async fn endpoint(&self) -> String {
        let made = self.create("app").await.expect(201);
        format!("{ENDPOINTS_PATH}/{}", made["id"].as_str().unwrap())
    }
}

fn data(value: Value) -> Value {
    json!({ "data": value })
}

#[tokio::test]
async fn repeated_creation_finds_the_same_endpoint() {
    let given = Given::new(Host::shared().await).await;
    let made = given.create("app 1").await.expect(201);
    let id = made["id"].as_str().unwrap();
    assert!(id.starts_with("we_") && id.len() >= 25, "128 bits: {id}");
    let url = made["webhook_url"].as_str().unwrap();
    let expected = format!(
        "/api/v3.1/webhook_ingress/{}/{id}/trigger_event",
        given.toolkit
    );
    assert!(url.starts_with("http") && url.ends_with(&expected), "{url}");
    assert_eq!(made["client_id"], "app 1");
    assert_eq!(made["data"], Value::Null);
    let again = given.create(" app 1 ").await.expect(200);
    assert_eq!(again.json, made.json);
    let path = format!("{ENDPOINTS_PATH}/{id}");
    let read = given.project.get(&path).await.expect(200);
    assert_eq!(read.json, made.json);
    let other = given.create("app 2").await.expect(201);
    assert_ne!(other["id"], made["id"]);
    let stranger = Host::shared().await.new_project().await;
    let body = json!({ "toolkit_slug": given.toolkit, "client_id": "app 1" });
    let of_stranger = stranger.post(ENDPOINTS_PATH, &body).await.expect(201);
    assert_ne!(of_stranger["id"], made["id"]);
}

#[tokio::test]
async fn concurrent_equal_creations_make_one_endpoint() {
    let given = Given::new(Host::shared().await).await;
    let answers = futures::future::join_all((0..8).map(|_| given.create("app"))).await;
    let created = answers.iter().filter(|answer| answer.status == 201);
    assert_eq!(created.count(), 1, "{answers:#?}");
    for answer in &answers {
        assert_eq!(answer["id"], answers[0]["id"]);
    }
}

#[tokio::test]
async fn list_shows_endpoints_without_values() {
    let given = Given::new(Host::shared().await).await;
    let first = given.create("one").await.expect(201);
    let second = given.create("two").await.expect(201);
    let item = |made: &Answer, client: &str| json!({ "id": made["id"], "toolkit_slug": given.toolkit, "client_id": client });
    let expected = json!({ "items": [item(&second, "two"), item(&first, "one")] });
    let upper = given.toolkit.to_uppercase();
    for query in ["", &format!("?toolkit_slug={upper}")] {
        let listed = given.project.get(&format!("{ENDPOINTS_PATH}{query}")).await;
        assert_eq!(listed.expect(200).json, expected, "{query}");
    }
    let other = format!("{ENDPOINTS_PATH}?toolkit_slug=x");
    let other = given.project.get(&other).await;
    assert_eq!(other.expect(200)["items"], json!([]));
}

#[tokio::test]
async fn values_are_merged_replaced_and_shown_masked() {
    let given = Given::new(Host::shared().await).await;
    let path = given.endpoint().await;
    let secret = marked!("seal-");
    let both = data(json!({ "secret": secret, "token": "token-0123456789" }));
    let set = given.project.patch(&path, &both).await.expect(200);
    let masked = json!({ "secret": "seal...", "token": "toke..." });
    assert_eq!(set["data"], masked);
    let merged = data(json!({ "token": "other-0123456789" }));
    let set = given.project.patch(&path, &merged).await.expect(200);
    assert_eq!(
        set["data"],
        json!({ "secret": "seal...", "token": "othe..." })
    );
    let replaced = given.project.post(&path, &merged).await.expect(200);
    assert_eq!(replaced["data"], json!({ "token": "othe..." }));
    let read = given.project.get(&path).await.expect(200);
    assert_eq!(read.json, replaced.json);
}

#[tokio::test]
async fn unusable_values_change_nothing() {
    let given = Given::new(Host::shared().await).await;
    let path = given.endpoint().await;
    let most = "x".repeat(4 << 10);
    let right = data(json!({ "secret": most }));
    given.project.patch(&path, &right).await.expect(200);
    for wrong in [
        json!({ "secret": "" }),
        json!({ "secret": format!("{most}x") }),
        json!({ "secret": "another one", "word": "is no secret" }),
        json!({ "unknown": "x" }),
    ] {
        let answer = given.project.patch(&path, &data(wrong.clone())).await;
        answer.expect(400);
    }
    let read = given.project.get(&path).await.expect(200);
    assert_eq!(read["data"], json!({ "secret": "xxxx..." }));
}

#[tokio::test]
async fn schema_lists_secrets_of_webhook_triggers() {
    let given = Given::new(Host::shared().await).await;
    let path = format!("{ENDPOINTS_PATH}/schema?toolkit_slug={}", given.toolkit);
    let schema = given.project.get(&path).await.expect(200);
    let expected = json!({
        "toolkit_slug": given.toolkit,
        "setup_fields": {
            "secret": { "display_name": "secret", "description": "At the app.", "is_required": true, "is_secret": true },
            "token": { "display_name": "Token", "description": "", "is_required": false, "is_secret": true },
        },
    });
    assert_eq!(schema.json, expected);
    let unknown = format!("{ENDPOINTS_PATH}/schema?toolkit_slug=no_such_toolkit");
    given.project.get(&unknown).await.expect(404);
    let missing = format!("{ENDPOINTS_PATH}/schema");
    given.project.get(&missing).await.expect(400);
}

#[tokio::test]
async fn unusable_endpoints_are_not_created() {
    let given = Given::new(Host::shared().await).await;
    given.create(&"x".repeat(256)).await.expect(201);
    for client_id in ["", "  ", &"x".repeat(257)] {
        given.create(client_id).await.expect(400);
    }
    let plain = guest::manifest_with_key(&given::slug(), given::bearer());
    let host = Host::shared().await;
    host.publish(Guest::echo().component(), &plain).await;
    for (toolkit, status) in [
        (plain["slug"].clone(), 400),
        (json!("no_such_toolkit"), 404),
    ] {
        let body = json!({ "toolkit_slug": toolkit, "client_id": "app" });
        let answer = given.project.post(ENDPOINTS_PATH, &body).await;
        answer.expect(status);
    }
}

#[tokio::test]
async fn endpoints_of_a_project_are_limited() {
    let given = Given::new(Host::shared().await).await;
    for number in 0..100 {
        given.create(&number.to_string()).await.expect(201);
    }
    let refused = given.create("one more").await;
    refused.expect_error(422, "Webhook_TooManyEndpoints");
    given.create("99").await.expect(200);
}

#[tokio::test]
async fn deleted_endpoint_is_gone_with_its_values() {
    let given = Given::new(Host::shared().await).await;
    let path = given.endpoint().await;
    let values = data(json!({ "secret": "seal-0123456789" }));
    given.project.patch(&path, &values).await.expect(200);
    let deleted = given.project.delete(&path).await.expect(200);
    assert_eq!(deleted.json, json!({ "success": true }));
    given.project.get(&path).await.expect(404);
    given.project.patch(&path, &values).await.expect(404);
    given.project.delete(&path).await.expect(404);
    assert_eq!(given.project.get(ENDPOINTS_PATH).await["items"], json!([]));
    let again = given.create("app").await.expect(201);
    assert_eq!(again["data"], Value::Null);
}

#[tokio::test]
async fn endpoints_survive_a_kill() {
    let host = Setup::new().start().await;
    let given = Given::new(&host).await;
    let path = given.endpoint().await;
    let values = data(json!({ "secret": "seal-0123456789" }));
    let before = given.project.patch(&path, &values).await.expect(200);
    let key = given.project.key().to_owned();
    let host = host.kill().start().await;
    let read = host.with_key(&key).get(&path).await.expect(200);
    assert_eq!(read["data"], before["data"]);
    assert_eq!(read["created_at"], before["created_at"]);
}
