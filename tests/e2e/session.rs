//! Session information of a key.

use harness::Host;

use crate::given;

#[tokio::test]
async fn a_key_learns_its_project_under_both_prefixes() {
    let host = Host::shared().await;
    let project = host.new_project().await;
    let older = project.get("/auth/session/info").await.expect(200);
    let newer = project
        .clone()
        .with_newer_prefix()
        .get("/auth/session/info")
        .await
        .expect(200);
    assert_eq!(older.json, newer.json);
    assert!(
        older["project"]["nano_id"]
            .as_str()
            .unwrap()
            .starts_with("pr"),
        "{older:?}"
    );
    for id in [&older["project"]["id"], &older["api_key"]["id"]] {
        let digits = id.as_str().unwrap().split('-').map(str::len);
        assert_eq!(
            digits.collect::<Vec<_>>(),
            [8, 4, 4, 4, 12],
            "{id} is a UUID"
        );
    }
    assert_eq!(older["project"]["deleted"], false);
    assert!(
        older["api_key"]["id"].is_string() && older["org_member"]["role"].is_string(),
        "{older:?}"
    );
}

#[tokio::test]
async fn the_key_is_never_given_back_whole() {
    let project = Host::shared().await.new_project().await;
    let info = project.get("/auth/session/info").await.expect(200);
    assert!(!info.text.contains(project.key()), "{}", info.text);
}

#[tokio::test]
async fn missing_wrong_or_duplicate_key_is_unauthorized() {
    let host = Host::shared().await;
    let project = host.new_project().await;
    let path = "/auth/session/info";
    let wrong = host.with_key("ak_0123456789abcdefghijklmnopqrstuv");
    let answers = [
        host.anonymous().get(path).await,
        wrong.get(path).await,
        host.as_org().get(path).await,
        host.with_key("").get(path).await,
        project
            .send(
                reqwest::Method::GET,
                path,
                harness::client::Body::None,
                &[("x-org-api-key", &host.org_key)],
            )
            .await,
    ];
    for answer in answers {
        let answer = answer.expect_error(401, "HTTP_Unauthorized");
        answer.assert_envelope();
        assert_eq!(answer["error"]["code"], 10401);
    }
    let shown = wrong.get(path).await;
    let message = shown["error"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("Invalid API key: ak_") && message.ends_with('*'),
        "{message}"
    );
    assert!(!message.contains("0123456789abcdef"), "{message}");
}

#[tokio::test]
async fn a_deleted_projects_key_stops_working_at_once() {
    let host = Host::shared().await;
    let project = host.new_project().await;
    let id = project.project_id().await;
    project
        .execute(given::shared_echo().await, serde_json::json!({}))
        .await
        .expect(200);
    host.delete_project(&id).await;
    project
        .get("/auth/session/info")
        .await
        .expect(401)
        .assert_envelope();
    project
        .execute(given::shared_echo().await, serde_json::json!({}))
        .await
        .expect(401);
}
