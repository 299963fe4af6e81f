//! Projects of the organization.

use harness::{Answer, Client, Host, host::Setup, unique};
use serde_json::{Value, json};

const NEW_PROJECT_PATH: &str = "/org/owner/project/new";

async fn create(host: &Host, body: Value) -> Answer {
    host.as_org().post(NEW_PROJECT_PATH, &body).await
}

/// Returns the path of a project.
async fn path_of(project: &Client) -> String {
    format!("/org/owner/project/{}", project.project_id().await)
}

#[tokio::test]
async fn new_project_gets_a_key_on_request() {
    let host = Host::shared().await;
    let body = json!({ "name": unique(8), "should_create_api_key": true });
    let with = create(host, body).await.expect(200);
    let key = with["api_key"].as_str().unwrap();
    assert!(key.starts_with("ak_"), "{key}");
    assert_eq!(host.with_key(key).project_id().await, with["id"]);
    let without = create(host, json!({ "name": unique(8) })).await.expect(200);
    assert_eq!(without["api_key"], Value::Null);
}

#[tokio::test]
async fn a_name_is_checked_and_taken_once() {
    let host = Host::shared().await;
    let body = json!({ "name": unique(8) });
    create(host, body.clone()).await.expect(200);
    let taken = create(host, body).await.expect(400);
    assert_eq!(taken["error"]["slug"], "Project_NameTaken");
    for bad in [
        "ab",
        &"x".repeat(76),
        "with blank",
        "ünïcode",
        "",
        "a/b",
        "tab\t___",
    ] {
        let answer = create(host, json!({ "name": bad })).await.expect(400);
        assert!(!answer.problems().is_empty(), "{bad:?}: {answer:?}");
    }
}

#[tokio::test]
async fn project_list_is_newest_first() {
    let host = Setup::new().start().await;
    let mut names = Vec::new();
    for _ in 0..5 {
        let name = unique(8);
        create(&host, json!({ "name": name })).await.expect(200);
        names.insert(0, Value::from(name));
    }
    let mut listed = Vec::new();
    let mut path = "/org/owner/project/list?limit=2".to_owned();
    let pages = loop {
        let page = host.as_org().get(&path).await.expect(200);
        let projects = page["data"].as_array().unwrap().iter();
        listed.extend(projects.map(|project| project["name"].clone()));
        assert_eq!(page["total_items"], 6);
        assert_eq!(page["total_pages"], 3);
        match page["next_cursor"].as_str() {
            Some(cursor) => {
                let cursor = harness::fake_app::percent(cursor);
                path = format!("/org/owner/project/list?cursor={cursor}");
            }
            None => break page["current_page"].clone(),
        }
    };
    assert_eq!(pages, 3);
    assert_eq!(listed[..5], names[..]);
}

#[tokio::test]
async fn detail_shows_the_keys_of_the_project() {
    let (host, project) = Host::shared_with_project().await;
    let detail = host.as_org().get(&path_of(&project).await).await;
    let detail = detail.expect(200);
    assert_eq!(detail["api_keys"][0]["key"], project.key());
    assert!(detail["created_at"].as_str().unwrap().ends_with('Z'));
}

#[tokio::test]
async fn a_new_key_ends_every_older_one() {
    let (host, project) = Host::shared_with_project().await;
    let path = format!("{}/regenerate_api_key", path_of(&project).await);
    let made = host.as_org().post(&path, &json!({})).await.expect(200);
    let key = made["key"]
        .as_str()
        .or(made["api_key"]["key"].as_str())
        .expect("the answer has the key");
    project.get("/auth/session/info").await.expect(401);
    host.with_key(key).project_id().await;
}

#[tokio::test]
async fn deleted_project_frees_its_name() {
    let host = Host::shared().await;
    let body = json!({ "name": unique(8) });
    let made = create(host, body.clone()).await.expect(200);
    let path = format!("/org/owner/project/{}", made["id"].as_str().unwrap());
    host.as_org().delete(&path).await.expect(200);
    host.as_org().get(&path).await.expect(404);
    host.as_org().delete(&path).await.expect(404);
    create(host, body).await.expect(200);
}

#[tokio::test]
async fn commands_manage_projects() {
    let host = Setup::new().start().await;
    let command = |arguments: &[&str]| host.setup().command(arguments);
    let key = command(&["projects", "add", "staging"]).succeeded();
    let staging = host.with_key(key.trim());
    let id = staging.project_id().await;
    let listed = command(&["projects", "list"]).succeeded();
    let lines: Vec<_> = listed
        .lines()
        .map(|line| line.split_whitespace().take(2).collect::<Vec<_>>())
        .collect();
    assert_eq!(lines[0], [id.as_str(), "staging"], "{listed}");
    assert_eq!(lines[1][1], "demo", "{listed}");
    let taken = command(&["projects", "add", "staging"]).failed();
    assert!(taken.contains("staging"), "{taken}");
    command(&["projects", "remove", "staging"]).succeeded();
    staging.get("/auth/session/info").await.expect(401);
    let missing = command(&["projects", "remove", "staging"]).failed();
    assert!(missing.contains("`staging` does not exist"), "{missing}");
}
