//! Connected accounts: access of users to providers.

use std::collections::BTreeSet;

use harness::{Guest, Host, fake_app::percent, guest, host::Setup};
use serde_json::{Value, json};

use crate::given;

const ACCOUNT_KEY: &str = harness::marked!("sk-live-");

#[tokio::test]
async fn connected_at_once_and_masked_everywhere() {
    let project = Host::shared().await.new_project().await;
    let config = given::auth_config(&project).await;
    let made = given::made_account(&project, &config, "amy", ACCOUNT_KEY).await;
    let id = made["id"].as_str().unwrap();
    assert!(id.starts_with("ca_") && id.len() == 15, "{id}");
    assert_eq!(made["status"], "ACTIVE");
    assert_eq!(made["redirect_url"], Value::Null);
    let read = project.account(id).await;
    assert_eq!(read["state"]["val"]["api_key"], "sk-l...");
    assert_eq!(read["data"]["api_key"], "sk-l...");
    assert_eq!(read["toolkit"]["slug"], given::keyed().await);
    assert_eq!(read["user_id"], "amy");
    let list = project.get("/connected_accounts").await.expect(200);
    for answer in [&made, &read, &list] {
        assert!(!answer.text.contains(ACCOUNT_KEY), "{}", answer.text);
    }
}

#[tokio::test]
async fn paused_account_is_named_if_none_is_active() {
    let project = Host::shared().await.new_project().await;
    let toolkit = given::keyed().await;
    let values = json!({ "api_key": ACCOUNT_KEY });
    let id = project.connect(toolkit, "API_KEY", "amy", values).await;
    let path = format!("/connected_accounts/{id}/status");
    let paused = project.patch(&path, &json!({ "enabled": false })).await;
    paused.expect(200);
    let call = json!({ "user_id": "amy", "arguments": { "url": "https://example.com" } });
    let path = format!("/tools/execute/{}", guest::tool(toolkit));
    let refused = project.post(&path, &call).await.expect(404);
    let expected = format!("account {id} is INACTIVE: enable it with PATCH");
    assert!(refused.text.contains(&expected), "{}", refused.text);
}

#[tokio::test]
async fn old_spellings_are_understood() {
    let project = Host::shared().await.new_project().await;
    let config = given::auth_config(&project).await;
    let body = json!({ "auth_config": { "id": config }, "connection": { "data": { "api_key": ACCOUNT_KEY } } });
    let made = project.post("/connected_accounts", &body).await.expect(201);
    let read = project.account(made["id"].as_str().unwrap()).await;
    assert_eq!(read["user_id"], "default");
    assert_eq!(read["status"], "ACTIVE");
    assert_eq!(made["redirect_uri"], made["redirect_url"]);
}

#[tokio::test]
async fn key_under_general_name_reads_back() {
    let project = Host::shared().await.new_project().await;
    let config = given::auth_config(&project).await;
    let state = |name: &str, key: &str| json!({ "authScheme": "API_KEY", "val": { name: key } });
    let connection = json!({ "state": state("generic_api_key", ACCOUNT_KEY) });
    let body = json!({ "auth_config": { "id": config }, "connection": connection });
    let made = project.post("/connected_accounts", &body).await.expect(201);
    let path = format!("/connected_accounts/{}", made["id"].as_str().unwrap());
    let other = harness::secret();
    let changed = json!({ "connection": { "state": state("api_key", &other) } });
    for key in [ACCOUNT_KEY, &other] {
        let read = project.get(&path).await.expect(200);
        let shown = json!(format!("{}...", &key[..4]));
        let val = &read["state"]["val"];
        assert_eq!((&val["generic_api_key"], &val["api_key"]), (&shown, &shown));
        project.patch(&path, &changed).await.expect(200);
    }
    let cleared = json!({ "connection": { "state": { "authScheme": "API_KEY", "val": { "api_key": null } } } });
    project.patch(&path, &cleared).await.expect(400);
}

#[tokio::test]
async fn missing_fields_are_named_and_nothing_is_made() {
    let project = Host::shared().await.new_project().await;
    let config = given::auth_config(&project).await;
    let state = json!({ "authScheme": "API_KEY", "val": { "apikey": "x" } });
    let connection = json!({ "user_id": "amy", "state": state });
    let body = json!({ "auth_config": { "id": config }, "connection": connection });
    let refused = project.post("/connected_accounts", &body).await.expect(400);
    assert_eq!(refused["error"]["code"], 612);
    let suggestion = "`apikey` was sent: did you mean `api_key`?";
    let problems = refused.problems().concat();
    assert!(problems.contains(suggestion), "{refused:?}");
    let unknown = given::account("ac_AAAAAAAAAAAA", "amy", ACCOUNT_KEY);
    let refused = project.post("/connected_accounts", &unknown).await;
    refused.expect(404);
    let accounts = project.get("/connected_accounts").await.expect(200);
    assert_eq!(accounts["total_items"], 0);
}

#[tokio::test]
async fn values_that_cannot_be_sent_are_refused() {
    let project = Host::shared().await.new_project().await;
    let config = given::auth_config(&project).await;
    let made = given::made_account(&project, &config, "amy", ACCOUNT_KEY).await;
    let path = format!("/connected_accounts/{}", made["id"].as_str().unwrap());
    let config_path = format!("/auth_configs/{config}");
    let [line_break, control] = ['\n', '\u{85}'].map(|end| json!(format!("{ACCOUNT_KEY}{end}")));
    let control_problem = "api_key: contains a line break or another control character";
    for (value, problem) in [
        (json!(5.0), "api_key: must be a string, not a number"),
        (line_break, "api_key: contains a line break"),
        (control, control_problem),
    ] {
        let state = json!({ "authScheme": "API_KEY", "val": { "api_key": value } });
        let account = json!({ "auth_config": { "id": config }, "connection": { "state": state } });
        let link = json!({
            "auth_config_id": config, "user_id": "amy", "connection_data": { "api_key": value },
        });
        let changed = json!({ "connection": { "state": state } });
        let shared = json!({ "type": "custom", "shared_connection_fields": { "api_key": value } });
        for refused in [
            project.post("/connected_accounts", &account).await,
            project.post("/connected_accounts/link", &link).await,
            project.patch(&path, &changed).await,
            project.patch(&config_path, &shared).await,
        ] {
            let problems = refused.expect(400).problems();
            assert!(problems[0].contains(problem), "{problems:?}");
        }
    }
}

#[tokio::test]
async fn the_list_filters_and_sorts() {
    let project = Host::shared().await.new_project().await;
    let config = given::auth_config(&project).await;
    let mut ids = Vec::new();
    for user in ["amy", "bob", "cleo"] {
        let made = given::made_account(&project, &config, user, ACCOUNT_KEY).await;
        ids.push(made["id"].as_str().unwrap().to_owned());
    }
    let path = format!("/connected_accounts/{}/status", ids[2]);
    let paused = project.patch(&path, &json!({ "enabled": false })).await;
    paused.expect(200);
    let one_id = format!("connected_account_ids={}", ids[1]);
    let several = format!("auth_config_ids={config}&user_ids=bob&statuses=ACTIVE");
    let toolkit = format!("toolkit_slugs={}", given::keyed().await);
    for (query, expected) in [
        ("", &["cleo", "bob", "amy"][..]),
        ("order_direction=asc", &["amy", "bob", "cleo"]),
        ("user_ids=amy,cleo", &["cleo", "amy"]),
        ("user_ids[]=amy&user_ids[]=bob", &["bob", "amy"]),
        ("statuses=ACTIVE", &["bob", "amy"]),
        ("statuses=INACTIVE", &["cleo"]),
        (&one_id, &["bob"]),
        (&several, &["bob"]),
        (&toolkit, &["cleo", "bob", "amy"]),
        ("toolkit_slugs=other", &[]),
    ] {
        let page = project.get(&format!("/connected_accounts?{query}")).await;
        let page = page.expect(200);
        let items = page["items"].as_array().unwrap().iter();
        let users: Vec<_> = items
            .map(|item| item["user_id"].as_str().unwrap())
            .collect();
        assert_eq!(users, expected, "{query}");
        assert_eq!(page["total_items"], users.len(), "{query}");
    }
}

#[tokio::test]
async fn switched_off_on_and_deleted() {
    let project = Host::shared().await.new_project().await;
    let config = given::auth_config(&project).await;
    let made = given::made_account(&project, &config, "amy", ACCOUNT_KEY).await;
    let path = format!("/connected_accounts/{}", made["id"].as_str().unwrap());
    let set = async |enabled: Value| {
        let body = json!({ "enabled": enabled });
        project.patch(&format!("{path}/status"), &body).await
    };
    for (enabled, status) in [(false, "INACTIVE"), (true, "ACTIVE")] {
        let changed = set(enabled.into()).await.expect(200);
        assert_eq!(changed["success"], true);
        let read = project.get(&path).await.expect(200);
        assert_eq!(read["status"], status);
        assert_eq!(read["is_disabled"], !enabled);
    }
    set("yes".into()).await.expect(400);
    assert_eq!(project.delete(&path).await.expect(200)["success"], true);
    project.get(&path).await.expect(404);
    project.delete(&path).await.expect(404);
    set(true.into()).await.expect(404);
}

#[tokio::test]
async fn newest_active_account_is_used() {
    let project = Host::shared().await.new_project().await;
    let slug = given::keyed().await;
    let tag = harness::unique(8);
    for key in [harness::marked!("first-"), harness::marked!("second-")] {
        let values = json!({ "api_key": key });
        project.connect(slug, "API_KEY", "default", values).await;
    }
    let url = json!({ "url": format!("https://api.example.com/echo/{tag}") });
    project.execute(&guest::tool(slug), url).await.data();
    let seen = &Host::application().seen(&tag)[0];
    let newest = harness::marked!("Bearer second-");
    assert_eq!(seen.header("authorization"), newest);
}

#[tokio::test]
async fn rows_of_a_page_are_read_at_once() {
    let setup = Setup::new().with("log", "warn,host_store=trace");
    let host = setup.start().await;
    let project = host.new_project().await;
    let slug = given::slug();
    given::publish_with_key(&host, &Guest::fetch(), &slug).await;
    for user in ["amy", "bob", "eve"] {
        project.connect_with_key(&slug, user).await;
    }
    // Recurring jobs read pages only.
    let count = |log: &str, collection: &str| {
        let collection = format!("collection=\"{collection}\"");
        log.lines()
            .filter(|line| line.contains(&collection) && !line.contains("kind=\"page\""))
            .count()
    };
    let before = host.output().len();
    let accounts = project.get("/connected_accounts").await.expect(200);
    let log = host.output().split_off(before);
    assert_eq!(accounts["items"].as_array().unwrap().len(), 3);
    assert_eq!(count(&log, "credentials"), 1, "{log}");
    assert_eq!(count(&log, "auth_configs"), 1, "{log}");

    let before = host.output().len();
    let configs = project.get("/auth_configs").await.expect(200);
    let log = host.output().split_off(before);
    for index in 0..3 {
        assert_eq!(configs["items"][index]["no_of_connections"], 1);
    }
    assert_eq!(count(&log, "connected_accounts"), 1, "{log}");
}

#[tokio::test]
async fn page_of_large_accounts_ends_by_its_bytes() {
    const ACCOUNT_COUNT: usize = 100;
    let project = Host::shared().await.new_project().await;
    let config = given::auth_config(&project).await;
    let mut made = BTreeSet::new();
    for user in 0..ACCOUNT_COUNT {
        let user = format!("user-{user}");
        let account = given::account_with_note(&config, &user, ACCOUNT_KEY, 60 << 10);
        let account = project.post("/connected_accounts", &account).await;
        made.insert(account.expect(201)["id"].as_str().unwrap().to_owned());
    }
    for order in ["created_at", "updated_at"] {
        let mut listed = Vec::new();
        let mut sizes = Vec::new();
        let mut cursor = String::new();
        loop {
            let path = format!("/connected_accounts?limit=100&order_by={order}{cursor}");
            let page = project.get(&path).await.expect(200);
            let items = page["items"].as_array().unwrap().iter();
            let ids: Vec<_> = items
                .map(|item| item["id"].as_str().unwrap().to_owned())
                .collect();
            sizes.push(ids.len());
            listed.extend(ids);
            let Some(next) = page["next_cursor"].as_str() else {
                break;
            };
            cursor = format!("&cursor={}", percent(next));
        }
        assert_eq!(sizes.len(), 2, "{sizes:?}");
        assert_eq!(listed.len(), ACCOUNT_COUNT, "{sizes:?}");
        assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), made);
    }
}
