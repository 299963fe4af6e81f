//! Usage statistics.

use harness::{Client, Host};
use serde_json::{Value, json};

use crate::{
    given,
    tool_router_execution::{execute, mail},
    tool_router_sessions::create,
};

/// Creates a project with three runs for ada and one for bob.
async fn project(host: &Host) -> (Client, String) {
    let project = host.new_project().await;
    let path = format!("/tools/execute/{}", given::shared_echo().await);
    for user in ["ada", "ada", "bob", "ada"] {
        let call = json!({ "arguments": {}, "version": "latest", "user_id": user });
        project.post(&path, &call).await.data();
    }
    let id = project.project_id().await;
    (project, id)
}

fn sums(count: u64) -> Value {
    json!({ "unit": "execution", "total_quantity": count.to_string(), "event_count": count })
}

#[tokio::test]
async fn project_reads_its_own_usage() {
    let host = Host::shared().await;
    let ((project, _), (_other, _)) = (project(host).await, project(host).await);
    let path = "/project/usage/summary";
    let sum = async |body: Value| {
        project.post(path, &body).await.expect(200)["entities"]["tool_execution"].clone()
    };
    assert_eq!(sum(json!({})).await, sums(4));
    let summary = project.post(path, &json!({})).await.expect(200);
    assert_eq!(summary["instant_charge"], "0");
    for (body, expected) in [
        (json!({ "filters": { "user_id": ["ada"] } }), sums(3)),
        (json!({ "from": 0, "to": 1000 }), sums(0)),
        (json!({ "entity_types": ["storage"] }), Value::Null),
    ] {
        assert_eq!(sum(body).await, expected);
    }
}

#[tokio::test]
async fn usage_is_filtered_by_session() {
    let host = Host::shared().await;
    let (project, _) = project(host).await;
    let call = json!({ "tool_slug": format!("{}_LIST", mail(host).await.to_uppercase()), "arguments": {} });
    let one = create(&project, json!({ "user_id": "ada" })).await;
    let other = create(&project, json!({ "user_id": "ada" })).await;
    for session in [&one, &one, &other] {
        execute(&project, session, call.clone()).await.expect(200);
    }
    let path = "/project/usage/summary";
    for (filters, expected) in [
        (json!({ "session_id": [one] }), 2),
        (json!({ "session_id": [one, other], "user_id": ["ada"] }), 3),
        (json!({ "session_id": [one], "user_id": ["bob"] }), 0),
        (json!({ "session_id": [] }), 7),
    ] {
        let sum = project.post(path, &json!({ "filters": filters })).await;
        let sum = sum.expect(200)["entities"]["tool_execution"].clone();
        assert_eq!(sum, sums(expected), "{filters}");
    }
}

#[tokio::test]
async fn groups_are_counted_ordered_and_cut() {
    let (project, _) = project(Host::shared().await).await;
    let path = "/project/usage/tool_execution";
    let by_user = json!({ "group_by": "user_id" });
    let all = project.post(path, &by_user).await.expect(200);
    let group = |key: &str, count: u64| json!({ "key": key, "total_quantity": count.to_string(), "event_count": count });
    assert_eq!(all["groups"], json!([group("ada", 3), group("bob", 1)]));
    assert_eq!(all["event_count"], 4);
    let body =
        json!({ "group_by": "user_id", "order_by": "key", "order_direction": "desc", "limit": 1 });
    let last = project.post(path, &body).await.expect(200);
    assert_eq!(last["groups"], json!([group("bob", 1)]));
    assert_eq!(last["event_count"], 4);
    let by_size = json!({ "group_by": "shoe_size" });
    project.post(path, &by_size).await.expect(400);
    let unknown = project.post("/project/usage/storage", &json!({})).await;
    unknown.expect(404);
}

#[tokio::test]
async fn organization_sees_usage_of_all_projects() {
    let host = Host::shared().await;
    let ((_, one), (_, other)) = (project(host).await, project(host).await);
    let body = json!({ "group_by": "project_id", "filters": { "project_id": [one, other] } });
    let org = host.as_org();
    let both = org.post("/org/usage/tool_execution", &body).await;
    let both = both.expect(200);
    assert_eq!(both["groups"].as_array().unwrap().len(), 2);
    assert_eq!(both["event_count"], 8);
    let body = json!({ "filters": { "project_id": [one] } });
    let sum = org.post("/org/usage/summary", &body).await.expect(200);
    assert_eq!(sum["entities"]["tool_execution"], sums(4));
}
