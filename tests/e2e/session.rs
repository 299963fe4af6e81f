//! Session information of a key.

use harness::{Host, client::Body};
use reqwest::Method;

use crate::given;

#[tokio::test]
async fn a_key_learns_its_project_under_both_prefixes() {
    let project = Host::shared().await.new_project().await;
    let older = project.get("/auth/session/info").await.expect(200);
    let newer = project.clone().with_newer_prefix();
    let newer = newer.get("/auth/session/info").await.expect(200);
    assert_eq!(older.json, newer.json);
    let id = given::text(&older["project"]["nano_id"]);
    assert!(id.starts_with("pr"), "{older:?}");
    for id in [&older["project"]["id"], &older["api_key"]["id"]] {
        let digits: Vec<_> = given::text(id).split('-').map(str::len).collect();
        assert_eq!(digits, [8, 4, 4, 4, 12], "{id} is a UUID");
    }
    assert_eq!(older["project"]["deleted"], false);
    assert!(older["org_member"]["role"].is_string(), "{older:?}");
    assert!(!older.text.contains(project.key()), "{older:?}");
}

#[tokio::test]
async fn missing_wrong_or_duplicate_key_is_unauthorized() {
    let (host, project) = Host::shared_with_project().await;
    let path = "/auth/session/info";
    let wrong = host.with_key("ak_0123456789abcdefghijklmnopqrstuv");
    let both = [("x-org-api-key", &*host.org_key)];
    let answers = [
        host.anonymous().get(path).await,
        wrong.get(path).await,
        host.as_org().get(path).await,
        host.with_key("").get(path).await,
        project.send(Method::GET, path, Body::None, &both).await,
    ];
    for answer in answers {
        let answer = answer.expect_error(401, "HTTP_Unauthorized");
        assert_eq!(answer["error"]["code"], 10401);
    }
    let shown = wrong.get(path).await;
    let message = given::text(&shown["error"]["message"]);
    assert!(message.starts_with("Invalid API key: ak_"), "{message}");
    assert!(message.ends_with('*'), "{message}");
    assert!(!message.contains("0123456789abcdef"), "{message}");
}
