//! Trigger instances: creation, lists, changes and deletion.

use harness::{Answer, Client, Guest, Host, guest, host::Setup};
use serde_json::{Value, json};

use crate::given::{self, string};

const ACTIVE_PATH: &str = "/trigger_instances/active";

/// A toolkit with a webhook trigger, and an account of the user `amy` in a project.
struct Given {
    project: Client,
    toolkit: String,
    /// Slug of a trigger type that takes a `secret`, a `word` and `labels`.
    trigger: String,
    account: String,
}

impl Given {
    async fn new(host: &Host) -> Self {
        let toolkit = given::slug();
        let mut trigger = given::arrived(&toolkit);
        trigger["config"] = json!({
            "type": "object",
            "properties": {
                "secret": { "type": "string", "writeOnly": true },
                "word": { "type": "string" },
                "labels": { "type": "object" },
            },
        });
        let mut manifest = guest::manifest_with_key(&toolkit, given::bearer());
        manifest["triggers"] = json!([trigger, given::trigger(&toolkit, "OTHER")]);
        host.publish(Guest::echo().component(), &manifest).await;
        let project = host.new_project().await;
        let account = project.connect_with_key(&toolkit, "amy").await;
        Self {
            trigger: trigger["slug"].as_str().unwrap().to_owned(),
            project,
            toolkit,
            account,
        }
    }

    async fn upsert(&self, body: Value) -> Answer {
        let path = format!("/trigger_instances/{}/upsert", self.trigger);
        self.project.post(&path, &body).await
    }

    /// Creates an instance with a configuration.
    async fn instance(&self, config: Value) -> String {
        let body = json!({ "connected_account_id": self.account, "trigger_config": config });
        id(&self.upsert(body).await.expect(201))
    }

    /// Lists the ids of the instances that a query selects.
    async fn ids(&self, query: &str) -> Vec<String> {
        let listed = self.project.get(&format!("{ACTIVE_PATH}?{query}")).await;
        let listed = listed.expect(200);
        let items = listed["items"].as_array().unwrap().iter();
        items.map(|item| string(&item["id"])).collect()
    }

    async fn set(&self, id: &str, status: &str) -> Answer {
        let path = format!("/trigger_instances/manage/{id}");
        self.project
            .patch(&path, &json!({ "status": status }))
            .await
    }

    async fn remove(&self, id: &str) -> Answer {
        let path = format!("/trigger_instances/manage/{id}");
        self.project.delete(&path).await
    }
}

fn id(upserted: &Answer) -> String {
    string(&upserted["trigger_id"])
}

#[tokio::test]
async fn equal_upsert_finds_the_same_instance() {
    let given = Given::new(Host::shared().await).await;
    let body =
        |config: Value| json!({ "connected_account_id": given.account, "trigger_config": config });
    let first = given
        .upsert(body(json!({ "word": "a", "labels": { "x": 1, "y": [2] } })))
        .await
        .expect(201);
    let again = given
        .upsert(body(json!({ "labels": { "y": [2], "x": 1 }, "word": "a" })))
        .await
        .expect(200);
    assert_eq!(first["trigger_id"], again["trigger_id"]);
    assert_eq!(first["deprecated"]["uuid"], again["deprecated"]["uuid"]);
    let other = given.upsert(body(json!({ "word": "b" }))).await.expect(201);
    assert_ne!(first["trigger_id"], other["trigger_id"]);
    assert_eq!(given.ids("").await, [id(&other), id(&first)]);
}

#[tokio::test]
async fn concurrent_equal_upserts_create_one_instance() {
    let given = Given::new(Host::shared().await).await;
    let body = json!({ "connected_account_id": given.account, "trigger_config": { "word": "a" } });
    let upserts = (0..8).map(|_| given.upsert(body.clone()));
    let answers = futures::future::join_all(upserts).await;
    let created = answers.iter().filter(|answer| answer.status == 201);
    assert_eq!(created.count(), 1, "{answers:#?}");
    for answer in &answers {
        assert_eq!(answer["trigger_id"], answers[0]["trigger_id"]);
    }
}

#[tokio::test]
async fn upsert_accepts_older_spellings_of_members() {
    let given = Given::new(Host::shared().await).await;
    let older = json!({ "connectedAuthId": given.account, "triggerConfig": { "word": "older" } });
    let older = given.upsert(older).await.expect(201);
    let both = json!({
        "connected_account_id": given.account, "connectedAuthId": "ca_AAAAAAAAAAAA",
        "trigger_config": { "word": "newer" }, "triggerConfig": { "word": "older" },
        "toolkit_versions": { "other": "20250101_00" },
    });
    let both = given.upsert(both).await.expect(201);
    assert_ne!(older["trigger_id"], both["trigger_id"]);
    let listed = given.project.get(ACTIVE_PATH).await.expect(200);
    assert_eq!(
        listed["items"][0]["trigger_config"],
        json!({ "word": "newer" })
    );
    assert_eq!(
        listed["items"][1]["trigger_config"],
        json!({ "word": "older" })
    );
}

#[tokio::test]
async fn toolkit_without_credentials_names_its_account() {
    let host = Host::shared().await;
    let (toolkit, mut manifest) = given::manifest();
    let trigger = given::trigger(&toolkit, "POSTED");
    manifest["triggers"] = json!([trigger]);
    host.publish(Guest::echo().component(), &manifest).await;
    let path = format!("/trigger_instances/{}/upsert", string(&trigger["slug"]));
    let project = host.new_project().await;
    let refused = project.post(&path, &json!({ "user_id": "amy" })).await;
    let refused = refused.expect(404);
    assert!(refused.text.contains("`NO_AUTH`"), "{}", refused.text);
}

#[tokio::test]
async fn upsert_without_account_uses_the_users_newest() {
    let given = Given::new(Host::shared().await).await;
    let newest = given.project.connect_with_key(&given.toolkit, "amy").await;
    given.upsert(json!({ "user_id": "amy" })).await.expect(201);
    let listed = given.project.get(ACTIVE_PATH).await.expect(200);
    assert_eq!(listed["items"][0]["connected_account_id"], newest);
    assert_eq!(listed["items"][0]["user_id"], "amy");
    let nobody = given.upsert(json!({ "user_id": "bob" })).await.expect(404);
    assert_eq!(nobody["error"]["code"], 1810);
    given.upsert(json!({})).await.expect(404);
}

#[tokio::test]
async fn upsert_refuses_unusable_accounts_and_configurations() {
    let given = Given::new(Host::shared().await).await;
    let with = |account: &str, config: Value| json!({ "connected_account_id": account, "trigger_config": config });
    let unknown = "/trigger_instances/NO_SUCH_TRIGGER/upsert";
    let body = with(&given.account, json!({}));
    given.project.post(unknown, &body).await.expect(404);
    let body = with("ca_AAAAAAAAAAAA", json!({}));
    given.upsert(body).await.expect(404);
    let body = with("no id", json!({}));
    given.upsert(body).await.expect(400);
    let mut body = with(&given.account, json!({}));
    body["user_id"] = json!("bob");
    given.upsert(body.clone()).await.expect(400);
    body["user_id"] = json!("amy");
    body["toolkit_versions"] = json!("20250101_00");
    given.upsert(body).await.expect(404);
    let body = with(&given.account, json!({ "word": 7 }));
    let refused = given.upsert(body).await;
    let refused = refused.expect_error(400, "TriggerInstance_ConfigInvalid");
    assert!(
        refused["error"]["errors"][0]
            .as_str()
            .unwrap()
            .contains("word"),
        "{refused:#?}"
    );
    let body = with(&given.account, json!({ "wrod": "a", "session_id": 1 }));
    let problems = given.upsert(body).await.expect(400).problems();
    assert_eq!(
        problems[..2],
        [
            "unknown field `wrod`: did you mean `word`?",
            "unknown field `session_id`",
        ]
    );
    let known = ["known fields are", "`secret`", "`word`", "`labels`"];
    assert!(
        known.iter().all(|part| problems[2].contains(part)),
        "{problems:?}"
    );
    let large = "x".repeat(64 << 10);
    let body = with(&given.account, json!({ "word": large }));
    given.upsert(body).await.expect(400);
    let mut body = with(&given.account, json!({}));
    body["poll_interval_seconds"] = json!(1);
    given.upsert(body).await.expect(400);
    let elsewhere = Given::new(Host::shared().await).await;
    let body = with(&elsewhere.account, json!({}));
    given.upsert(body).await.expect(404);
    let other = Given::new(Host::shared().await).await;
    let account = given.project.connect_with_key(&other.toolkit, "amy").await;
    let refused = given.upsert(with(&account, json!({}))).await.expect(400);
    let expected = format!("connected_account_id: belongs to toolkit {}", other.toolkit);
    assert_eq!(refused.problems(), [expected]);

    let status = format!("/connected_accounts/{}/status", given.account);
    let paused = json!({ "enabled": false });
    given.project.patch(&status, &paused).await.expect(200);
    let body = with(&given.account, json!({}));
    given.upsert(body.clone()).await.expect(422);
    let path = format!("/connected_accounts/{}", given.account);
    given.project.delete(&path).await.expect(200);
    given.upsert(body).await.expect(410);
    assert_eq!(given.ids("show_disabled=true").await, [""; 0]);
}

#[tokio::test]
async fn list_filters_by_every_member() {
    let given = Given::new(Host::shared().await).await;
    let first = given.instance(json!({ "word": "a" })).await;
    let bob = given.project.connect_with_key(&given.toolkit, "bob").await;
    let path = format!("/trigger_instances/{}_OTHER/upsert", given.toolkit);
    let body = json!({ "connected_account_id": bob });
    let second = id(&given.project.post(&path, &body).await.expect(201));
    let listed = given.project.get(ACTIVE_PATH).await.expect(200);
    let [second_item, first_item] = [0, 1].map(|index| listed["items"][index].clone());
    assert_eq!(first_item["id"], *first);
    assert_eq!(first_item["trigger_name"], *given.trigger);
    assert_eq!(first_item["triggerName"], *given.trigger);
    assert_eq!(first_item["disabled_at"], Value::Null);
    assert_eq!(first_item["version"], "20260101_00");
    let account = async |id: &str| {
        let path = format!("/connected_accounts/{id}");
        given.project.get(&path).await.expect(200)
    };
    let amys = account(&given.account).await;
    let bobs = account(&bob).await;
    assert_eq!(
        first_item["connected_account_uuid"],
        amys["deprecated"]["uuid"]
    );
    let config = |account: &Answer| string(&account["auth_config"]["id"]);
    let upper = given.toolkit.to_uppercase();
    for (query, selects_first) in [
        (format!("connected_account_ids={}", given.account), true),
        (format!("connectedAccountIds={bob}"), false),
        (format!("auth_config_ids={}", config(&amys)), true),
        (format!("authConfigIds={}", config(&bobs)), false),
        ("user_ids=amy".to_owned(), true),
        (format!("trigger_ids={first}"), true),
        (format!("triggerIds={second}"), false),
        (
            format!("trigger_names={}", given.trigger.to_lowercase()),
            true,
        ),
        (format!("triggerNames={upper}_OTHER"), false),
        (
            format!(
                "deprecatedConnectedAccountUuids={}",
                string(&amys["deprecated"]["uuid"])
            ),
            true,
        ),
        (
            format!(
                "deprecatedAuthConfigUuids={}",
                string(&bobs["auth_config"]["deprecated"]["uuid"])
            ),
            false,
        ),
        (format!("trigger_ids={first}&triggerIds={second}"), true),
        ("limit=1".to_owned(), false),
        ("limit=1&page=2".to_owned(), true),
    ] {
        let expected = if selects_first { &first } else { &second };
        assert_eq!(
            given.ids(&query).await,
            std::slice::from_ref(expected),
            "{query}"
        );
    }
    assert_eq!(second_item["id"], *second);
    let path = format!("{ACTIVE_PATH}?limit=1");
    let page = given.project.get(&path).await.expect(200);
    let cursor = string(&page["next_cursor"]);
    assert_eq!(given.ids(&format!("cursor={cursor}")).await, [first]);
}

#[tokio::test]
async fn disabled_instance_is_hidden_until_enabled() {
    let given = Given::new(Host::shared().await).await;
    let one = given.instance(json!({ "word": "a" })).await;
    given.set(&one, "enable").await.expect(409);
    let path = format!("/trigger_instances/manage/{one}");
    let nothing = given.project.patch(&path, &json!({})).await;
    assert!(nothing.expect(400).text.contains("status: is required"));
    let disabled = given.set(&one, "disable").await.expect(200);
    assert_eq!(disabled["status"], "success");
    given.set(&one, "disable").await.expect(409);
    assert_eq!(given.ids("").await, [""; 0]);
    assert_eq!(
        given.ids("showDisabled=true").await,
        std::slice::from_ref(&one)
    );
    let all = format!("{ACTIVE_PATH}?show_disabled=true");
    let listed = given.project.get(&all).await.expect(200);
    assert!(listed["items"][0]["disabled_at"].is_string(), "{listed:#?}");
    assert_eq!(listed["items"][0]["disabled_reason"], Value::Null);
    given.set(&one, "enable").await.expect(200);
    assert_eq!(given.ids("").await, std::slice::from_ref(&one));
    given.set(&one, "disable").await.expect(200);
    let body = json!({ "connected_account_id": given.account, "trigger_config": { "word": "a" } });
    assert_eq!(id(&given.upsert(body).await.expect(200)), one);
    assert_eq!(given.ids("").await, std::slice::from_ref(&one));
    given.set(&one, "pause").await.expect(400);
    let path = format!("/trigger_instances/manage/{one}");
    let other_user = json!({ "status": "disable", "user_id": "bob" });
    given.project.patch(&path, &other_user).await.expect(404);
}

#[tokio::test]
async fn deleted_instance_is_gone() {
    let given = Given::new(Host::shared().await).await;
    let one = given.instance(json!({ "word": "a" })).await;
    let elsewhere = Host::shared().await.new_project().await;
    let path = format!("/trigger_instances/manage/{one}");
    elsewhere.delete(&path).await.expect(404);
    assert_eq!(given.remove(&one).await.expect(200)["trigger_id"], *one);
    given.remove(&one).await.expect(410);
    given.set(&one, "enable").await.expect(410);
    elsewhere.delete(&path).await.expect(404);
    given.remove("ti_AAAAAAAAAAAA").await.expect(404);
    given.remove("no id").await.expect(400);
    assert_eq!(given.ids("show_disabled=true").await, [""; 0]);
    assert_ne!(given.instance(json!({ "word": "a" })).await, one);
}

#[tokio::test]
async fn secrets_of_configurations_are_masked() {
    let given = Given::new(Host::shared().await).await;
    let secret = harness::secret();
    given
        .instance(json!({ "word": "visible", "secret": secret }))
        .await;
    let listed = given.project.get(ACTIVE_PATH).await.expect(200);
    let config = &listed["items"][0]["trigger_config"];
    assert_eq!(config["word"], "visible");
    assert_eq!(config["secret"], format!("{}...", &secret[..4]));
    assert_eq!(listed["items"][0]["triggerConfig"], *config);
}

#[tokio::test]
async fn deleted_account_ends_its_instances() {
    let given = Given::new(Host::shared().await).await;
    let one = given.instance(json!({ "word": "a" })).await;
    let two = given.instance(json!({ "word": "b" })).await;
    given.set(&two, "disable").await.expect(200);
    let path = format!("/connected_accounts/{}", given.account);
    given.project.delete(&path).await.expect(200);
    assert_eq!(given.ids("show_disabled=true").await, [""; 0]);
    for gone in [one, two] {
        given.remove(&gone).await.expect(410);
    }
}

#[tokio::test]
async fn legacy_id_of_instance_is_translated() {
    let given = Given::new(Host::shared().await).await;
    let body = json!({ "connected_account_id": given.account });
    let made = given.upsert(body).await.expect(201);
    let uuid = string(&made["deprecated"]["uuid"]);
    let path = format!("/migration/get-nanoid?type=TRIGGER_INSTANCE&uuid={uuid}");
    let found = given.project.get(&path).await.expect(200);
    assert_eq!(found["nanoid"], made["trigger_id"]);
    given.remove(&id(&made)).await.expect(200);
    given.project.get(&path).await.expect(410);
}

#[tokio::test]
async fn instances_past_the_limit_are_refused() {
    let setup = Setup::new().with("limits.accounts_per_project", "20");
    let host = setup.start().await;
    let given = Given::new(&host).await;
    given.instance(json!({ "word": "a" })).await;
    let second = given.instance(json!({ "word": "b" })).await;
    let third = json!({ "connected_account_id": given.account, "trigger_config": { "word": "c" } });
    let refused = given.upsert(third.clone()).await;
    refused.expect_error(422, "TriggerInstance_TooMany");
    let again = json!({ "connected_account_id": given.account, "trigger_config": { "word": "b" } });
    assert_eq!(id(&given.upsert(again).await.expect(200)), second);
    given.remove(&second).await.expect(200);
    given.upsert(third).await.expect(201);
}
