//! Auth configs: the ways in which a project connects accounts of a toolkit.

use harness::{Client, Guest, Host, guest};
use serde_json::{Value, json};

use crate::given;

#[tokio::test]
async fn account_tells_that_its_config_was_deleted() {
    let project = Host::shared().await.new_project().await;
    let id = project.connect_with_key(given::keyed().await, "amy").await;
    let path = format!("/connected_accounts/{id}");
    let account = project.get(&path).await.expect(200);
    let config = account["auth_config"]["id"].as_str().unwrap();
    let deleted = project.delete(&format!("/auth_configs/{config}")).await;
    deleted.expect(200);
    let account = project.get(&path).await.expect(200);
    assert_eq!(account["status_reason"], "auth_config_gone");
    let change = json!({ "enabled": true });
    let refused = project.patch(&format!("{path}/status"), &change).await;
    let message = refused.expect(400)["error"]["message"].to_string();
    assert!(message.contains("was deleted"), "{message}");
}

#[tokio::test]
async fn made_read_listed_and_deleted() {
    let project = Host::shared().await.new_project().await;
    let id = given::auth_config(&project).await;
    assert!(id.starts_with("ac_") && id.len() == 15, "{id}");
    let path = format!("/auth_configs/{id}");
    let read = project.get(&path).await.expect(200);
    assert_eq!(read["name"], "mine");
    assert_eq!(read["auth_scheme"], "API_KEY");
    assert_eq!(read["type"], "custom");
    assert_eq!(read["status"], "ENABLED");
    assert_eq!(read["no_of_connections"], 0);
    assert_eq!(read["is_service_managed"], false);
    let list = project.get("/auth_configs").await.expect(200);
    assert_eq!(list["items"][0]["id"], id.as_str());
    let toolkit = format!("toolkit_slug={}", given::keyed().await);
    for (filter, found) in [
        (toolkit.as_str(), 1),
        ("search=MIN", 1),
        ("search=ac_", 0),
        ("deprecated_status=active", 1),
        ("deprecated_status=INACTIVE", 0),
        ("limit=null", 1),
    ] {
        assert_eq!(total(&project, filter).await, found, "{filter}");
    }
    project.delete(&path).await.expect(200);
    project.get(&path).await.expect(404);
    project.delete(&path).await.expect(404);
    assert_eq!(total(&project, "").await, 0);
}

/// Returns the number of auth configs that a query finds.
async fn total(project: &Client, query: &str) -> Value {
    let list = project.get(&format!("/auth_configs?{query}")).await;
    list.expect(200)["total_items"].clone()
}

#[tokio::test]
async fn a_disabled_config_hides_and_starts_no_connections() {
    let project = Host::shared().await.new_project().await;
    let id = given::auth_config(&project).await;
    given::made_account(&project, &id, "amy", &harness::secret()).await;
    let path = format!("/auth_configs/{id}");
    let named = json!({ "type": "custom", "name": "Main" });
    for (path, body) in [
        (&path, named),
        (&format!("{path}/ENABLED"), json!({})),
        (&format!("{path}/DISABLED"), json!({})),
    ] {
        let changed = project.patch(path, &body).await.expect(200);
        assert_eq!(changed["success"], true);
        assert!(changed["message"].is_string(), "{changed:?}");
    }
    assert_eq!(total(&project, "").await, 0);
    let all = project.get("/auth_configs?show_disabled=true").await;
    assert_eq!(all.expect(200)["items"][0]["status"], "DISABLED");
    let account = given::account(&id, "bob", &harness::secret());
    let refused = project.post("/connected_accounts", &account).await;
    assert!((400..500).contains(&refused.status), "{refused:?}");
    let accounts = project.get("/connected_accounts").await.expect(200);
    assert_eq!(accounts["items"][0]["auth_config"]["is_disabled"], true);
    for (state, status) in [("ENABLED", 200), ("ASLEEP", 400)] {
        let changed = project.patch(&format!("{path}/{state}"), &json!({})).await;
        changed.expect(status);
        assert_eq!(total(&project, "").await, 1);
    }
}

#[tokio::test]
async fn unsupported_auth_scheme_is_refused() {
    let project = Host::shared().await.new_project().await;
    let slug = given::keyed().await;
    let toolkit = json!({ "toolkit": { "slug": slug } });
    let managed = project.post("/auth_configs", &toolkit).await;
    assert_eq!(managed.expect(400)["error"]["code"], 306);
    for (slug, scheme, status) in [
        (slug, "BASIC", 400),
        (slug, "MAGIC", 400),
        (slug, "DCR_OAUTH", 400),
        (slug, "SAML", 400),
        ("no_such_toolkit", "API_KEY", 404),
    ] {
        let custom = json!({ "type": "use_custom_auth", "authScheme": scheme, "credentials": {} });
        let body = json!({ "toolkit": { "slug": slug }, "auth_config": custom });
        let refused = project.post("/auth_configs", &body).await;
        refused.expect(status);
    }
    let wrong = json!({ "toolkit": 7 });
    project.post("/auth_configs", &wrong).await.expect(400);
    assert_eq!(total(&project, "").await, 0);
}

#[tokio::test]
async fn tools_of_other_toolkits_are_refused() {
    let project = Host::shared().await.new_project().await;
    let slug = given::keyed().await;
    let (own, other) = (guest::tool(slug), given::shared_echo().await);
    let lists = |tool: &str| {
        json!({
            "restrict_to_following_tools": [tool],
            "tool_access_config": {
                "tools_available_for_execution": [tool],
                "tools_for_connected_account_creation": [tool],
            },
        })
    };
    let custom = json!({ "type": "use_custom_auth", "authScheme": "API_KEY", "credentials": {} });
    let create = async |lists: Value| {
        let config = given::merged(lists, &custom);
        let body = json!({ "toolkit": { "slug": slug }, "auth_config": config });
        project.post("/auth_configs", &body).await
    };
    let made = create(lists(&own.to_lowercase())).await.expect(201);
    let path = format!(
        "/auth_configs/{}",
        made["auth_config"]["id"].as_str().unwrap()
    );
    let change = async |lists: Value| {
        let body = given::merged(lists, &json!({ "type": "custom" }));
        project.patch(&path, &body).await
    };
    for (wrong, similar) in [
        (other.to_owned(), String::new()),
        (format!("{own}S"), format!("; did you mean `{own}`?")),
    ] {
        for (refused, start) in [
            (create(lists(&wrong)).await, "auth_config."),
            (change(lists(&wrong)).await, ""),
        ] {
            let line = |list: &str| {
                format!("{start}{list}[0]: {wrong} is not a tool of toolkit {slug}{similar}")
            };
            let expected = [
                line("restrict_to_following_tools"),
                line("tool_access_config.tools_available_for_execution"),
                line("tool_access_config.tools_for_connected_account_creation"),
            ];
            assert_eq!(refused.expect(400).problems(), expected);
        }
    }
    change(lists(&own)).await.expect(200);
    let read = project.get(&path).await.expect(200);
    assert_eq!(read["restrict_to_following_tools"], json!([own]));
}

#[tokio::test]
async fn null_clears_both_lists_of_tools() {
    let project = Host::shared().await.new_project().await;
    let path = format!("/auth_configs/{}", given::auth_config(&project).await);
    let own = guest::tool(given::keyed().await);
    let change = async |access: Value| {
        let body = json!({ "type": "custom", "tool_access_config": access });
        project.patch(&path, &body).await.expect(200);
        project.get(&path).await.expect(200)["tool_access_config"].clone()
    };
    let lists = |tools: &[&str]| {
        json!({
            "tools_available_for_execution": tools, "tools_for_connected_account_creation": tools,
        })
    };
    assert_eq!(change(lists(&[&own])).await, lists(&[&own]));
    assert_eq!(change(Value::Null).await, lists(&[]));
}

#[tokio::test]
async fn empty_name_is_refused() {
    let project = Host::shared().await.new_project().await;
    for name in ["", " "] {
        let settings = json!({
            "type": "use_custom_auth", "authScheme": "API_KEY", "name": name, "credentials": {},
        });
        let body = json!({ "toolkit": { "slug": given::keyed().await }, "auth_config": settings });
        let refused = project.post("/auth_configs", &body).await.expect(400);
        let expected = ["auth_config.name: must have 1 to 256 characters"];
        assert_eq!(refused.problems(), expected);
    }
}

#[tokio::test]
async fn only_the_oauth_scheme_requires_a_client() {
    let host = Host::shared().await;
    let mut manifest = guest::manifest_with_key(&given::slug(), given::bearer());
    let flow = json!({
        "mode": "OAUTH2", "name": "OAuth",
        "oauth2": { "authorize_url": "https://example.com/authorize", "token_url": "https://example.com/token" },
        "request": [{ "in": "header", "name": "authorization", "value": "Bearer {access_token}" }],
    });
    manifest["auth"].as_array_mut().unwrap().insert(0, flow);
    host.publish(Guest::fetch().component(), &manifest).await;
    let (project, slug) = (host.new_project().await, manifest["slug"].as_str().unwrap());
    let detail = project.get(&format!("/toolkits/{slug}")).await.expect(200);
    let modes = [0, 1].map(|place| &detail["auth_config_details"][place]["mode"]);
    assert_eq!(modes, ["OAUTH2", "API_KEY"]);
    let config = json!({ "type": "use_custom_auth", "authScheme": "OAUTH2", "credentials": {} });
    let body = json!({ "toolkit": { "slug": slug }, "auth_config": config });
    let refused = project.post("/auth_configs", &body).await.expect(400);
    assert!(refused.text.contains("client_id"), "{refused:?}");
    project.auth_config(slug, "API_KEY", json!({})).await;
}

#[tokio::test]
async fn active_accounts_are_counted() {
    let project = Host::shared().await.new_project().await;
    let id = given::auth_config(&project).await;
    given::made_account(&project, &id, "amy", &harness::secret()).await;
    let made = given::made_account(&project, &id, "bob", &harness::secret()).await;
    let path = format!("/auth_configs/{id}");
    assert_eq!(project.get(&path).await.expect(200)["no_of_connections"], 2);
    let account = format!("/connected_accounts/{}", made["id"].as_str().unwrap());
    project.delete(&account).await.expect(200);
    assert_eq!(project.get(&path).await.expect(200)["no_of_connections"], 1);
}

#[tokio::test]
async fn accounts_of_a_deleted_config_cannot_execute() {
    let project = Host::shared().await.new_project().await;
    let id = given::auth_config(&project).await;
    given::made_account(&project, &id, "default", &harness::secret()).await;
    let path = format!("/auth_configs/{id}");
    project.delete(&path).await.expect(200);
    let accounts = project.get("/connected_accounts").await.expect(200);
    assert_eq!(accounts["total_items"], 1);
    let tool = guest::tool(given::keyed().await);
    let url = json!({ "url": "https://api.example.com/echo/orphan" });
    let refused = project.execute(&tool, url).await;
    assert!((400..500).contains(&refused.status), "{refused:?}");
}
