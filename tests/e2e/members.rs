//! Members: users of the organization with their own keys.

use harness::{Client, Host, client::Body, unique};
use reqwest::Method;
use serde_json::{Value, json};

use crate::given;

const SESSION_INFO_PATH: &str = "/auth/session/info";
const MEMBERS_PATH: &str = "/org/members";

async fn as_member(client: &Client, path: &str, headers: &[(&str, &str)]) -> harness::Answer {
    client.send(Method::GET, path, Body::None, headers).await
}

#[tokio::test]
async fn member_is_added_listed_and_removed() {
    let host = Host::shared().await;
    let email = format!("{}@Example.com", unique(8));
    let body = json!({ "email": email, "name": "Ada", "role": "admin" });
    let made = host.as_org().post(MEMBERS_PATH, &body).await.expect(201);
    let (id, key) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    assert!(key.starts_with("uak_"), "{key}");
    host.as_org()
        .post(
            MEMBERS_PATH,
            &json!({ "email": email.to_lowercase(), "role": "viewer" }),
        )
        .await
        .expect(400);
    let listed = host
        .as_org()
        .get(&format!("{MEMBERS_PATH}?limit=1000"))
        .await
        .expect(200);
    assert!(!listed.text.contains(key));
    let found = listed["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|member| member["id"] == id)
        .unwrap();
    assert_eq!(
        (&found["email"], &found["role"]),
        (&email.to_lowercase().into(), &"admin".into())
    );
    host.with_user_key(key)
        .get(SESSION_INFO_PATH)
        .await
        .expect(200);
    host.as_org()
        .delete(&format!("{MEMBERS_PATH}/{id}"))
        .await
        .expect(200);
    host.with_user_key(key)
        .get(SESSION_INFO_PATH)
        .await
        .expect(401);
    host.as_org()
        .delete(&format!("{MEMBERS_PATH}/{id}"))
        .await
        .expect(404);
    for bad in [
        json!({ "email": "nobody", "role": "admin" }),
        json!({ "email": "a@b", "role": "owner" }),
        json!({ "email": "a@b", "role": "admin", "name": " " }),
    ] {
        host.as_org().post(MEMBERS_PATH, &bad).await.expect(400);
    }
}

#[tokio::test]
async fn member_acts_in_named_or_default_project() {
    let host = Host::shared().await;
    let project = host
        .new_project()
        .await
        .get(SESSION_INFO_PATH)
        .await
        .expect(200);
    let (org, id) = (
        project["project"]["org_id"].as_str().unwrap(),
        project["project"]["nano_id"].as_str().unwrap(),
    );
    let oldest =
        host.as_project().get(SESSION_INFO_PATH).await.expect(200)["project"]["nano_id"].clone();
    let member = host.new_member("admin").await;
    let default = member.get(SESSION_INFO_PATH).await.expect(200);
    assert_eq!(
        (&default["project"]["nano_id"], &default["api_key"]),
        (&oldest, &Value::Null)
    );
    assert_eq!(default["org_member"]["role"], "admin");
    let named = as_member(
        &member,
        SESSION_INFO_PATH,
        &[("x-org-id", org), ("x-project-id", id)],
    )
    .await
    .expect(200);
    assert_eq!(named["project"]["nano_id"], id);
    as_member(&member, SESSION_INFO_PATH, &[("x-project-id", id)])
        .await
        .expect(400);
    for (org, id) in [("ok_AAAAAAAAAAAA", id), (org, "proj_AAAAAAAAAAAA")] {
        as_member(
            &member,
            SESSION_INFO_PATH,
            &[("x-org-id", org), ("x-project-id", id)],
        )
        .await
        .expect(404);
    }
    let body = json!({ "email": format!("{}@example.com", unique(8)), "role": "viewer", "project_id": id });
    let made = host.as_org().post(MEMBERS_PATH, &body).await.expect(201);
    let own = host
        .with_user_key(made["key"].as_str().unwrap())
        .get(SESSION_INFO_PATH)
        .await
        .expect(200);
    assert_eq!(own["project"]["nano_id"], id);
}

#[tokio::test]
async fn a_viewer_looks_and_changes_nothing() {
    let host = Host::shared().await;
    let (admin, viewer) = (
        host.new_member("admin").await,
        host.new_member("viewer").await,
    );
    for path in [
        "/auth_configs",
        "/connected_accounts",
        "/toolkits",
        "/org/project/config",
    ] {
        viewer.get(path).await.expect(200);
    }
    viewer
        .post("/logs/tool_execution", &json!({}))
        .await
        .expect(200);
    viewer
        .execute(given::shared_echo().await, json!({}))
        .await
        .expect(403);
    viewer
        .patch("/org/project/config", &json!({}))
        .await
        .expect(403);
    admin
        .execute(given::shared_echo().await, json!({}))
        .await
        .data();
}

#[tokio::test]
async fn member_lists_projects_in_pages() {
    let host = Host::shared().await;
    host.new_project().await;
    let member = host.new_member("viewer").await;
    let organizations = member.get("/org/list").await.expect(200);
    assert_eq!(
        (
            organizations["organizations"].as_array().unwrap().len(),
            &organizations["total_items"]
        ),
        (1, &1.into())
    );
    let page = member.get("/org/project/list?limit=1").await.expect(200);
    assert!(
        page["data"].as_array().unwrap().len() == 1 && page["next_cursor"].is_string(),
        "{page:#?}"
    );
    let page = member.get("/org/project/list?limit=9999").await.expect(200);
    assert!(page["data"].as_array().unwrap().len() <= 50, "{page:#?}");
    host.as_project().get("/org/list").await.expect(401);
    member.get("/org/owner/project/list").await.expect(401);
    member.get(MEMBERS_PATH).await.expect(401);
}
