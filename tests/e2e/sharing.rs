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
    let made = made(
        project,
        json!({ "account_type": "SHARED", "acl_config_for_shared": lists }),
    )
    .await
    .expect(201);
    made["id"].as_str().unwrap().to_owned()
}

async fn read(project: &Client, id: &str) -> Value {
    project.account(id).await["experimental"].clone()
}

async fn share(project: &Client, id: &str, experimental: Value) -> Answer {
    project
        .patch(
            &format!("/connected_accounts/{id}"),
            &json!({ "experimental": experimental }),
        )
        .await
}

/// Executes a tool for a user, with an account if one is named.
async fn execute(project: &Client, user: &str, account: Option<&str>) -> Answer {
    let tool = guest::tool(given::keyed().await);
    let url = format!("https://api.example.com/echo/{}", unique(8));
    let body = json!({ "arguments": { "url": url }, "user_id": user, "connected_account_id": account, "version": "latest" });
    project.post(&format!("/tools/execute/{tool}"), &body).await
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
        let id = shared(&project, lists.clone()).await;
        for user in admitted {
            execute(&project, user, Some(&id)).await.data();
            assert_eq!(
                proxy(&project, Some(user), &id).await.expect(200)["status"],
                200,
                "{user} {lists}"
            );
        }
        for user in refused {
            for refused in [
                execute(&project, user, Some(&id)).await,
                proxy(&project, Some(user), &id).await,
            ] {
                refused.assert_envelope();
                assert_eq!(
                    (refused.status, &refused["error"]["slug"]),
                    (403, &"ActionExecute_ConnectedAccountNotShared".into())
                );
                assert!(!refused.text.contains(SHARED_KEY), "{}", refused.text);
            }
        }
        assert_eq!(
            proxy(&project, None, &id).await.expect(200)["status"],
            200,
            "without a user the account's own is meant"
        );
    }
    let mine = made(&project, Value::Null).await.expect(201);
    let mine = mine["id"].as_str().unwrap();
    for refused in [
        execute(&project, "bob", Some(mine)).await,
        proxy(&project, Some("bob"), mine).await,
    ] {
        assert_eq!(
            refused.expect(400)["error"]["slug"],
            "ActionExecute_ConnectedAccountEntityIdMismatch"
        );
    }
    assert_eq!(
        proxy(&project, Some("amy"), mine).await.expect(200)["status"],
        200
    );
}

#[tokio::test]
async fn shared_account_must_be_named() {
    let project = Host::shared().await.new_project().await;
    let id = shared(&project, json!({ "allow_all_users": true })).await;
    for user in ["amy", "bob"] {
        let refused = execute(&project, user, None).await.expect(404);
        assert!(
            refused["error"]["suggested_fix"]
                .as_str()
                .unwrap()
                .contains("connected_account_id"),
            "{refused:?}"
        );
    }
    let private = made(&project, Value::Null).await.expect(201);
    shared(&project, json!({})).await;
    let ran = execute(&project, "amy", None).await.expect(200);
    let log = project.log(&ran["log_id"]).await;
    assert!(
        log.text.contains(private["id"].as_str().unwrap()) && !log.text.contains(&id),
        "{}",
        log.text
    );
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
        assert_eq!(
            made(&project, experimental).await.expect(201)["experimental"],
            private
        );
    }
    let made = made(&project, json!({ "account_type": "SHARED" }))
        .await
        .expect(201);
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
        let changed = share(&project, id, json!({ "acl_config_for_shared": change }))
            .await
            .expect(200);
        assert_eq!(
            (&changed["success"], &changed["id"], &changed["status"]),
            (&true.into(), &id.into(), &"ACTIVE".into())
        );
        let read = read(&project, id).await;
        let lists = &read["acl_config_for_shared"];
        assert_eq!(
            json!([
                lists["allow_all_users"],
                lists["allowed_user_ids"],
                lists["not_allowed_user_ids"]
            ]),
            shown
        );
    }
    execute(&project, "bob", Some(id)).await.data();
    share(&project, id, private.clone()).await.expect(200);
    assert_eq!(read(&project, id).await, private);
    execute(&project, "bob", Some(id)).await.expect(400);
    share(&project, id, json!({ "account_type": "SHARED" }))
        .await
        .expect(200);
    assert_eq!(
        read(&project, id).await["acl_config_for_shared"],
        nobody,
        "the lists went with the sharing"
    );
    project
        .patch(
            &format!("/connected_accounts/{id}"),
            &json!({ "alias": "ours" }),
        )
        .await
        .expect(200);
    assert_eq!(
        read(&project, id).await["account_type"],
        "SHARED",
        "what is not named stays"
    );
}

#[tokio::test]
async fn invalid_sharing_lists_are_refused() {
    let project = Host::shared().await.new_project().await;
    let only = "acl_config_for_shared is only valid on SHARED";
    let refused = made(
        &project,
        json!({ "acl_config_for_shared": { "allow_all_users": true } }),
    )
    .await
    .expect(400);
    assert!(
        refused["error"]["message"].as_str().unwrap().contains(only),
        "{refused:?}"
    );
    let config = given::auth_config(&project).await;
    let link = json!({ "auth_config_id": config, "user_id": "amy", "experimental": { "acl_config_for_shared": {} } });
    let refused = project
        .post("/connected_accounts/link", &link)
        .await
        .expect(400);
    assert!(
        refused["error"]["message"].as_str().unwrap().contains(only),
        "{refused:?}"
    );
    let private = made(&project, Value::Null).await.expect(201);
    let private = private["id"].as_str().unwrap();
    share(
        &project,
        private,
        json!({ "acl_config_for_shared": { "allowed_user_ids": ["bob"] } }),
    )
    .await
    .expect(400);
    assert_eq!(
        read(&project, private).await,
        json!({ "account_type": "PRIVATE" })
    );
    let id = shared(&project, json!({ "allowed_user_ids": ["bob"] })).await;
    let many: Vec<_> = (0..1_001).map(|number| format!("user-{number}")).collect();
    for lists in [
        json!({ "allowed_user_ids": many }),
        json!({ "not_allowed_user_ids": many }),
        json!({ "allowed_user_ids": [""] }),
        json!({ "allowed_user_ids": ["a".repeat(257)] }),
        json!({ "allowed_user_ids": "bob" }),
        json!({ "allow_all_users": "yes" }),
    ] {
        let refused = share(&project, &id, json!({ "acl_config_for_shared": lists }))
            .await
            .expect(400);
        refused.assert_envelope();
    }
    share(&project, &id, json!({ "account_type": "PUBLIC" }))
        .await
        .expect(400);
    assert_eq!(
        read(&project, &id).await["acl_config_for_shared"]["allowed_user_ids"],
        json!(["bob"])
    );
    share(
        &project,
        &id,
        json!({ "acl_config_for_shared": { "allowed_user_ids": many[..1_000] } }),
    )
    .await
    .expect(200);
    execute(&project, "user-999", Some(&id)).await.data();
}

#[tokio::test]
async fn account_lists_default_to_private() {
    let project = Host::shared().await.new_project().await;
    let private = made(&project, Value::Null).await.expect(201)["id"].clone();
    let shared = Value::from(shared(&project, json!({})).await);
    let listed = async |query: &str| {
        let page = project
            .get(&format!("/connected_accounts{query}"))
            .await
            .expect(200);
        let items: Vec<_> = page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["id"].clone())
            .collect();
        assert_eq!(page["total_items"], items.len());
        items
    };
    for query in ["", "?account_type=PRIVATE"] {
        assert_eq!(
            listed(query).await,
            std::slice::from_ref(&private),
            "{query}"
        );
    }
    assert_eq!(
        listed("?account_type=SHARED").await,
        std::slice::from_ref(&shared)
    );
    assert_eq!(
        listed("?account_type=SHARED&user_ids=bob").await,
        [] as [Value; 0]
    );
    assert_eq!(listed("?account_type=ALL").await, [shared, private]);
    project
        .get("/connected_accounts?account_type=OTHERS")
        .await
        .expect(400);
}

#[tokio::test]
async fn linked_account_takes_sharing_from_its_link() {
    let host = Host::shared().await;
    let project = host.new_project().await;
    let oauth = given::Oauth::new(host, &project).await;
    let sharing = json!({ "account_type": "SHARED", "acl_config_for_shared": { "allowed_user_ids": ["bob"] } });
    let body = json!({ "auth_config_id": oauth.config, "user_id": "amy", "experimental": sharing });
    let made = project
        .post("/connected_accounts/link", &body)
        .await
        .expect(201);
    let shown = json!({ "allow_all_users": false, "allowed_user_ids": ["bob"], "not_allowed_user_ids": [] });
    assert_eq!(
        made["experimental"],
        json!({ "account_type": "SHARED", "acl_config_for_shared": shown })
    );
    let id = made["connected_account_id"].as_str().unwrap();
    let early = json!({ "user_id": "bob", "connected_account_id": id, "version": "latest", "arguments": { "url": oauth.me() } });
    let path = format!("/tools/execute/{}", guest::tool(&oauth.slug));
    project.post(&path, &early).await.expect(422);
    let (mut browser, url) = (
        Browser::new(&project),
        made["redirect_url"].as_str().unwrap(),
    );
    let page = browser.open(url).await;
    let away = browser
        .send(url, &[("form-token", &link::form_token(&page))])
        .await;
    let landed = browser
        .open(&oauth.issuer.visit(away.header("location")).await)
        .await;
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
    let config = json!({ "type": "use_custom_auth", "authScheme": "API_KEY", "credentials": {}, "shared_credentials": common });
    let made = project
        .post(
            "/auth_configs",
            &json!({ "toolkit": { "slug": slug }, "auth_config": config }),
        )
        .await;
    let config = made.expect(201)["auth_config"]["id"].clone();
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
        let url = format!("https://api.example.com/echo/{tag}");
        project
            .execute(&guest::tool(&slug), json!({ "url": url }))
            .await
            .data();
        let seen = Host::application().seen(&tag).pop().unwrap();
        assert_eq!(
            (seen.header("x-team"), seen.header("authorization")),
            (sent, harness::marked!("k-"))
        );
    }
    let lacking = json!({ "auth_config": { "id": config }, "connection": { "state": { "authScheme": "API_KEY", "val": {} } } });
    let refused = project
        .post("/connected_accounts", &lacking)
        .await
        .expect(400);
    assert_eq!(refused.problems().len(), 1, "{refused:?}");
}
