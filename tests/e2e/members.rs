//! Members: users of the organization with their own keys.

use harness::{Host, client::Body, unique};
use reqwest::Method;
use serde_json::{Value, json};

use crate::given;

const SESSION_INFO_PATH: &str = "/auth/session/info";
const MEMBERS_PATH: &str = "/org/members";

#[tokio::test]
async fn member_is_added_listed_and_removed() {
    let host = Host::shared().await;
    let email = format!("{}@Example.com", unique(8));
    let body = json!({ "email": email, "name": "Ada", "role": "admin" });
    let made = host.as_org().post(MEMBERS_PATH, &body).await.expect(201);
    let (id, key) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    assert!(key.starts_with("uak_"), "{key}");
    let listed = host.as_org().get("/org/members?limit=1000").await;
    let listed = listed.expect(200);
    assert!(!listed.text.contains(key));
    let mut members = listed["items"].as_array().unwrap().iter();
    let found = members.find(|member| member["id"] == id).unwrap();
    assert_eq!(found["email"], email.to_lowercase());
    assert_eq!(found["role"], "admin");
    let path = format!("{MEMBERS_PATH}/{id}");
    let member = host.with_user_key(key);
    for (read, deleted) in [(200, 200), (401, 404)] {
        member.get(SESSION_INFO_PATH).await.expect(read);
        host.as_org().delete(&path).await.expect(deleted);
    }
}

#[tokio::test]
async fn invalid_or_known_members_are_refused() {
    let host = Host::shared().await;
    let known = json!({ "email": format!("{}@Example.com", unique(8)), "role": "admin" });
    host.as_org().post(MEMBERS_PATH, &known).await.expect(201);
    let lowercase = known["email"].as_str().unwrap().to_lowercase();
    for bad in [
        json!({ "email": lowercase, "role": "viewer" }),
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
    let session = host.new_project().await.get(SESSION_INFO_PATH).await;
    let project = &session["project"];
    let org = project["org_id"].as_str().unwrap();
    let id = project["nano_id"].as_str().unwrap();
    let oldest = host.as_project().project_id().await;
    let member = host.new_member("admin").await;
    let default = member.get(SESSION_INFO_PATH).await.expect(200);
    assert_eq!(default["project"]["nano_id"], oldest);
    assert_eq!(default["api_key"], Value::Null);
    assert_eq!(default["org_member"]["role"], "admin");
    let with = async |headers: &[(&str, &str)]| {
        member
            .send(Method::GET, SESSION_INFO_PATH, Body::None, headers)
            .await
    };
    let named = [("x-org-id", org), ("x-project-id", id)];
    assert_eq!(with(&named).await["project"]["nano_id"], id);
    with(&named[1..]).await.expect(400);
    for (org, id) in [("ok_AAAAAAAAAAAA", id), (org, "proj_AAAAAAAAAAAA")] {
        let unknown = [("x-org-id", org), ("x-project-id", id)];
        with(&unknown).await.expect(404);
    }
    let body = json!({ "email": format!("{}@example.com", unique(8)), "role": "viewer", "project_id": id });
    let made = host.as_org().post(MEMBERS_PATH, &body).await.expect(201);
    let own = host.with_user_key(made["key"].as_str().unwrap());
    assert_eq!(own.project_id().await, id);
}

#[tokio::test]
async fn a_viewer_looks_and_changes_nothing() {
    let host = Host::shared().await;
    let admin = host.new_member("admin").await;
    let viewer = host.new_member("viewer").await;
    for path in [
        "/auth_configs",
        "/connected_accounts",
        "/toolkits",
        "/org/project/config",
    ] {
        viewer.get(path).await.expect(200);
    }
    let (echo, nothing) = (given::shared_echo().await, json!({}));
    let listed = viewer.post("/logs/tool_execution", &nothing).await;
    listed.expect(200);
    viewer.execute(echo, nothing.clone()).await.expect(403);
    let changed = viewer.patch("/org/project/config", &nothing).await;
    changed.expect(403);
    admin.execute(echo, nothing).await.data();
}

#[tokio::test]
async fn member_lists_projects_in_pages() {
    let host = Host::shared().await;
    host.new_project().await;
    let member = host.new_member("viewer").await;
    let organizations = member.get("/org/list").await.expect(200);
    assert_eq!(organizations["total_items"], 1);
    let organizations = organizations["organizations"].as_array().unwrap();
    assert_eq!(organizations.len(), 1);
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
