//! Shared accounts, which serve other users admitted by the project, and only if named. Also shared
//! values that all accounts of an auth config have in common.

use harness::{Answer, Client, Host, guest, unique};
use serde_json::{Value, json};

use crate::{
    given,
    link::{self, Browser},
};

const SHARED_KEY: &str = harness::marked!("sk-shared-");

/// Connects an account of Amy with the sharing settings of a request.
async fn made(project: &Client, experimental: Value) -> Answer {
    let config = given::auth_config(project).await;
    let mut body = given::account(&config, "amy", SHARED_KEY);
    body["connection"]["experimental"] = experimental;
    project.post("/connected_accounts", &body).await
}

/// Connects a shared account of Amy with these lists and returns its id.
async fn shared(project: &Client, lists: Value) -> String {
    let sharing = json!({ "account_type": "SHARED", "acl_config_for_shared": lists });
    let made = made(project, sharing).await.expect(201);
    given::string(&made["id"])
}

async fn read(project: &Client, id: &str) -> Value {
    project.account(id).await["experimental"].clone()
}

async fn share(project: &Client, id: &str, experimental: Value) -> Answer {
    let path = format!("/connected_accounts/{id}");
    let change = json!({ "experimental": experimental });
    project.patch(&path, &change).await
}

/// Changes the lists of a shared account.
async fn change_lists(project: &Client, id: &str, lists: Value) -> Answer {
    share(project, id, json!({ "acl_config_for_shared": lists })).await
}

/// Executes a tool for a user, with an account if one is named.
async fn execute(project: &Client, user: &str, account: Option<&str>) -> Answer {
    let tool = guest::tool(given::keyed().await);
    let url = format!("https://api.example.com/echo/{}", unique(8));
    let body = json!({ "arguments": { "url": url }, "user_id": user, "connected_account_id": account, "version": "latest" });
    project.post(&format!("/tools/execute/{tool}"), &body).await
}

/// Asserts that a user may send a proxy request with an account. Without a user, its owner is meant.
async fn assert_proxied(project: &Client, user: Option<&str>, account: &str) {
    let sent = proxy(project, user, account).await.expect(200);
    assert_eq!(sent["status"], 200, "{user:?}");
}

async fn proxy(project: &Client, user: Option<&str>, account: &str) -> Answer {
    let endpoint = format!("/echo/{}", unique(8));
    let body = json!({ "connected_account_id": account, "user_id": user, "endpoint": endpoint, "method": "GET" });
    project.post("/tools/execute/proxy", &body).await
}

#[tokio::test]
async fn shared_account_serves_only_admitted_users() {
    let project = Host::shared().await.new_project().await;
    for (lists, admitted, refused) in [
        (json!({}), &["amy"][..], &["bob", "eve", "default"][..]),
        (
            json!({ "allow_all_users": true }),
            &["amy", "bob", "eve"],
            &[],
        ),
        (
            json!({ "allowed_user_ids": ["bob"] }),
            &["amy", "bob", " bob "],
            &["eve", "Bob"],
        ),
        (
            json!({ "allow_all_users": true, "not_allowed_user_ids": ["bob", "amy"] }),
            &["amy", "eve"],
            &["bob"],
        ),
        (
            json!({ "allowed_user_ids": ["bob"], "not_allowed_user_ids": ["bob"] }),
            &["amy"],
            &["bob"],
        ),
    ] {
        let id = shared(&project, lists).await;
        for user in admitted {
            execute(&project, user, Some(&id)).await.data();
            assert_proxied(&project, Some(user), &id).await;
        }
        for user in refused {
            for refused in [
                execute(&project, user, Some(&id)).await,
                proxy(&project, Some(user), &id).await,
            ] {
                let slug = "ActionExecute_ConnectedAccountNotShared";
                let refused = refused.expect_error(403, slug);
                assert!(!refused.text.contains(SHARED_KEY), "{}", refused.text);
            }
        }
        assert_proxied(&project, None, &id).await;
    }
    let mine = made(&project, Value::Null).await.expect(201);
    let mine = mine["id"].as_str().unwrap();
    for refused in [
        execute(&project, "bob", Some(mine)).await,
        proxy(&project, Some("bob"), mine).await,
    ] {
        refused.expect_error(400, "ActionExecute_ConnectedAccountEntityIdMismatch");
    }
    assert_proxied(&project, Some("amy"), mine).await;
}

#[tokio::test]
async fn shared_account_must_be_named() {
    let project = Host::shared().await.new_project().await;
    let id = shared(&project, json!({ "allow_all_users": true })).await;
    for user in ["amy", "bob"] {
        let refused = execute(&project, user, None).await.expect(404);
        given::assert_contains(&refused["error"]["suggested_fix"], "connected_account_id");
    }
    let private = made(&project, Value::Null).await.expect(201);
    shared(&project, json!({})).await;
    let ran = execute(&project, "amy", None).await.expect(200);
    let log = project.log(&ran["log_id"]).await;
    assert!(log.text.contains(given::text(&private["id"])), "{log:?}");
    assert!(!log.text.contains(&id), "{log:?}");
}

#[tokio::test]
async fn unknown_sharing_settings_are_refused() {
    let project = Host::shared().await.new_project().await;
    let unknown = json!({ "zzzzzzzz": ["bob"] });
    let lists = json!({ "account_type": "SHARED", "acl_config_for_shared": unknown });
    for experimental in [unknown, lists] {
        let refused = made(&project, experimental).await.expect(400);
        let problems = refused.problems();
        assert!(problems[0].contains("zzzzzzzz: is unknown"), "{problems:?}");
    }
    let config = given::auth_config(&project).await;
    let mut body = given::account(&config, "amy", SHARED_KEY);
    body["experimental"] = json!({ "account_type": "SHARED" });
    let refused = project.post("/connected_accounts", &body).await;
    let problems = refused.expect(400).problems();
    assert!(problems[0].starts_with("experimental: "), "{problems:?}");
}

#[tokio::test]
async fn sharing_settings_can_be_patched_and_reset() {
    let project = Host::shared().await.new_project().await;
    let private = json!({ "account_type": "PRIVATE" });
    for experimental in [Value::Null, json!({}), private.clone()] {
        let made = made(&project, experimental).await.expect(201);
        assert_eq!(made["experimental"], private);
    }
    let shared = json!({ "account_type": "SHARED" });
    let made = made(&project, shared.clone()).await.expect(201);
    let nobody =
        json!({ "allow_all_users": false, "allowed_user_ids": [], "not_allowed_user_ids": [] });
    assert_eq!(
        made["experimental"],
        json!({ "account_type": "SHARED", "acl_config_for_shared": nobody })
    );
    let id = made["id"].as_str().unwrap();
    for (change, shown) in [
        (
            json!({ "allowed_user_ids": [" bob "] }),
            json!([false, ["bob"], []]),
        ),
        (
            json!({ "allow_all_users": true, "not_allowed_user_ids": ["eve"] }),
            json!([true, ["bob"], ["eve"]]),
        ),
        (json!({}), json!([true, ["bob"], ["eve"]])),
        (
            json!({ "allowed_user_ids": [], "not_allowed_user_ids": [] }),
            json!([true, [], []]),
        ),
    ] {
        let changed = change_lists(&project, id, change).await.expect(200);
        assert_eq!(changed["success"], true);
        assert_eq!(changed["id"], id);
        assert_eq!(changed["status"], "ACTIVE");
        let read = read(&project, id).await;
        let lists = &read["acl_config_for_shared"];
        let names = [
            "allow_all_users",
            "allowed_user_ids",
            "not_allowed_user_ids",
        ];
        assert_eq!(json!(names.map(|name| &lists[name])), shown);
    }
    execute(&project, "bob", Some(id)).await.data();
    share(&project, id, private.clone()).await.expect(200);
    assert_eq!(read(&project, id).await, private);
    execute(&project, "bob", Some(id)).await.expect(400);
    share(&project, id, shared).await.expect(200);
    let again = read(&project, id).await;
    assert_eq!(again["acl_config_for_shared"], nobody, "the lists are gone");
    let path = format!("/connected_accounts/{id}");
    let alias = json!({ "alias": "ours" });
    project.patch(&path, &alias).await.expect(200);
    assert_eq!(read(&project, id).await, again, "what is not named stays");
}

#[tokio::test]
async fn invalid_sharing_lists_are_refused() {
    let project = Host::shared().await.new_project().await;
    let only = "experimental.acl_config_for_shared: acl_config_for_shared is only valid on SHARED";
    let lists = json!({ "acl_config_for_shared": { "allow_all_users": true } });
    let refused = made(&project, lists).await.expect(400);
    given::assert_contains(&refused["error"]["message"], &format!("connection.{only}"));
    let config = given::auth_config(&project).await;
    let link = json!({ "auth_config_id": config, "user_id": "amy", "experimental": { "acl_config_for_shared": {} } });
    let refused = project.post("/connected_accounts/link", &link).await;
    given::assert_contains(&refused.expect(400)["error"]["message"], only);
    let private = made(&project, Value::Null).await.expect(201);
    let private = private["id"].as_str().unwrap();
    let bob = json!({ "allowed_user_ids": ["bob"] });
    let refused = change_lists(&project, private, bob.clone()).await;
    refused.expect(400);
    let unchanged = read(&project, private).await;
    assert_eq!(unchanged, json!({ "account_type": "PRIVATE" }));
    let id = shared(&project, bob).await;
    let many: Vec<_> = (0..1_001).map(|number| format!("user-{number}")).collect();
    for lists in [
        json!({ "allowed_user_ids": many }),
        json!({ "not_allowed_user_ids": many }),
        json!({ "allowed_user_ids": [""] }),
        json!({ "allowed_user_ids": ["a".repeat(257)] }),
        json!({ "allowed_user_ids": "bob" }),
        json!({ "allow_all_users": "yes" }),
    ] {
        change_lists(&project, &id, lists).await.expect(400);
    }
    let public = json!({ "account_type": "PUBLIC" });
    share(&project, &id, public).await.expect(400);
    let unchanged = read(&project, &id).await["acl_config_for_shared"].clone();
    assert_eq!(unchanged["allowed_user_ids"], json!(["bob"]));
    let most = json!({ "allowed_user_ids": many[..1_000] });
    change_lists(&project, &id, most).await.expect(200);
    execute(&project, "user-999", Some(&id)).await.data();
}

#[tokio::test]
async fn account_lists_default_to_private() {
    let project = Host::shared().await.new_project().await;
    let private = made(&project, Value::Null).await.expect(201)["id"].clone();
    let shared = Value::from(shared(&project, json!({})).await);
    let listed = async |query: &str| {
        let page = project.get(&format!("/connected_accounts{query}")).await;
        let page = page.expect(200);
        let items = page["items"].as_array().unwrap().iter();
        let ids: Vec<_> = items.map(|item| item["id"].clone()).collect();
        assert_eq!(page["total_items"], ids.len());
        json!(ids)
    };
    for (query, expected) in [
        ("", json!([private])),
        ("?account_type=PRIVATE", json!([private])),
        ("?account_type=SHARED", json!([shared])),
        ("?account_type=SHARED&user_ids=bob", json!([])),
        ("?account_type=ALL", json!([shared, private])),
    ] {
        assert_eq!(listed(query).await, expected, "{query}");
    }
    let unknown = "/connected_accounts?account_type=OTHERS";
    project.get(unknown).await.expect(400);
}

#[tokio::test]
async fn linked_account_takes_sharing_from_its_link() {
    let (project, oauth) = given::Oauth::in_new_project().await;
    let sharing = json!({ "account_type": "SHARED", "acl_config_for_shared": { "allowed_user_ids": ["bob"] } });
    let body = json!({ "auth_config_id": oauth.config, "user_id": "amy", "experimental": sharing });
    let made = project.post("/connected_accounts/link", &body).await;
    let made = made.expect(201);
    let shown = json!({ "allow_all_users": false, "allowed_user_ids": ["bob"], "not_allowed_user_ids": [] });
    assert_eq!(
        made["experimental"],
        json!({ "account_type": "SHARED", "acl_config_for_shared": shown })
    );
    let id = made["connected_account_id"].as_str().unwrap();
    let early = json!({ "user_id": "bob", "connected_account_id": id, "version": "latest", "arguments": { "url": oauth.me() } });
    let path = format!("/tools/execute/{}", guest::tool(&oauth.slug));
    project.post(&path, &early).await.expect(422);
    let mut browser = Browser::new(&project);
    let url = given::text(&made["redirect_url"]);
    let page = browser.open(url).await;
    let token = link::form_token(&page);
    let away = browser.send(url, &[("form-token", &token)]).await;
    let back = oauth.issuer.visit(away.header("location")).await;
    let landed = browser.open(&back).await;
    assert_eq!(landed.status, 302, "{landed:?}");
    assert_eq!(read(&project, id).await["acl_config_for_shared"], shown);
    project.post(&path, &early).await.data();
    let mut others = early.clone();
    others["user_id"] = "eve".into();
    project.post(&path, &others).await.expect(403);
}

#[tokio::test]
async fn account_values_override_shared_config_values() {
    let host = Host::shared().await;
    let (project, slug, tag) = (host.new_project().await, given::slug(), unique(8));
    let field = |name: &str, secret: bool| json!({ "name": name, "title": name, "secret": secret });
    let placed = |name: &str, value: &str| json!({ "in": "header", "name": name, "value": value });
    let scheme = json!({
        "mode": "API_KEY", "name": "Keys", "fields": [field("team", false), field("team_key", true), field("own_key", true)],
        "request": [placed("x-team", "{team}:{team_key}"), placed("authorization", "{own_key}")],
    });
    given::publish_with_scheme(host, &slug, scheme).await;
    let common = json!({ "team": "a-team", "team_key": harness::marked!("team-") });
    let common = json!({ "shared_credentials": common });
    let config = given::key_config(&project, &slug, &common).await;
    for (own, sent) in [
        (
            json!({ "own_key": harness::marked!("k-") }),
            harness::marked!("a-team:team-"),
        ),
        (
            json!({ "own_key": harness::marked!("k-"), "team": "b-team" }),
            harness::marked!("b-team:team-"),
        ),
    ] {
        let state = json!({ "authScheme": "API_KEY", "val": own });
        let body = json!({ "auth_config": { "id": config }, "connection": { "user_id": "default", "state": state } });
        project.post("/connected_accounts", &body).await.expect(201);
        let call = json!({ "url": format!("https://api.example.com/echo/{tag}") });
        project.execute(&guest::tool(&slug), call).await.data();
        let seen = Host::application().seen(&tag).pop().unwrap();
        assert_eq!(seen.header("x-team"), sent);
        assert_eq!(seen.header("authorization"), harness::marked!("k-"));
    }
    let lacking = json!({ "auth_config": { "id": config }, "connection": { "state": { "authScheme": "API_KEY", "val": {} } } });
    let refused = project.post("/connected_accounts", &lacking).await;
    let problems = refused.expect(400).problems();
    assert_eq!(problems.len(), 1, "{problems:?}");
}
