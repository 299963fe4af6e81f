//! The meta tool by which an assistant connects the toolkits of a session.

use futures::future::join_all;
use harness::{Client, Host};
use serde_json::{Value, json};

use crate::tool_router_sessions::{SESSION_PATH, create, execute_meta, keyed, with_keyed};

const MANAGE_TOOL: &str = "SERVICE_MANAGE_CONNECTIONS";

/// Asks for the connections of a session, and returns the data of the result.
async fn manage(project: &Client, session: &str, arguments: Value) -> Value {
    let answer = execute_meta(project, session, MANAGE_TOOL, arguments).await;
    answer.expect(200)["data"].clone()
}

#[tokio::test]
async fn toolkits_are_connected_by_links() {
    let (host, project) = Host::shared_with_project().await;
    let (connected, new) = (keyed(host).await, keyed(host).await);
    let account = project.connect_with_key(&connected, "amy").await;
    project.connect_with_key(&new, "bob").await;
    let session = create(&project, json!({ "user_id": "amy" })).await;
    let toolkits = json!({ "toolkits": [connected, new.to_uppercase(), "nonesuch"] });
    let data = manage(&project, &session, toolkits).await;
    let results = &data["results"];
    assert_eq!(results[&connected]["status"], "active");
    assert_eq!(results[&connected]["connected_account_id"], *account);
    assert_eq!(results[&connected]["redirect_url"], Value::Null);
    assert_eq!(results[&new]["status"], "initiated");
    assert_eq!(results[&new]["has_active_connection"], false);
    let url = results[&new]["redirect_url"].as_str().unwrap();
    assert!(url.contains("/link/"), "{url}");
    assert_eq!(results["nonesuch"]["status"], "failed");
    let counts = json!({
        "total_toolkits": 3, "active_connections": 1, "initiated_connections": 1, "failed_connections": 1,
    });
    assert_eq!(data["summary"], counts);

    let again = json!({ "toolkits": [connected], "reinitiate_all": true });
    let again = manage(&project, &session, again).await;
    let again = &again["results"][&connected];
    assert_eq!(again["status"], "initiated");
    assert_eq!(again["was_reinitiated"], true);
    assert_eq!(again["has_active_connection"], true);

    let too_many: Vec<_> = (0..21).map(|number| format!("t{number}")).collect();
    for wrong in [json!([]), json!(too_many)] {
        let arguments = json!({ "toolkits": wrong });
        let refused = execute_meta(&project, &session, MANAGE_TOOL, arguments).await;
        refused.expect_error(400, "ActionExecute_ArgumentsInvalid");
    }
}

#[tokio::test]
async fn toolkits_outside_of_the_session_stay_unconnected() {
    let (host, project) = Host::shared_with_project().await;
    let (permitted, other) = (keyed(host).await, keyed(host).await);
    project.connect_with_key(&other, "amy").await;
    let config = json!({ "user_id": "amy", "toolkits": { "enable": [permitted] } });
    let session = create(&project, config).await;
    let data = manage(&project, &session, json!({ "toolkits": [other] })).await;
    let result = &data["results"][&other];
    assert_eq!(result["status"], "failed");
    assert_eq!(result["connected_account_id"], Value::Null);
    let reason = result["error_message"].as_str().unwrap();
    assert!(reason.contains("toolkits.enable"), "{reason}");
    assert!(
        reason.contains("change `toolkits` of the session"),
        "{reason}"
    );
}

#[tokio::test]
async fn session_creates_no_link_beyond_its_limit() {
    let (project, toolkit) = with_keyed().await;
    project.connect_with_key(&toolkit, "amy").await;
    let session = async |user: &str, most: usize| {
        let most = json!({ "enable": true, "max_accounts_per_toolkit": most });
        create(&project, json!({ "user_id": user, "multi_account": most })).await
    };
    let amy = session("amy", 2).await;
    let link = async |session: &str| {
        let path = format!("{SESSION_PATH}/{session}/link");
        project.post(&path, &json!({ "toolkit": toolkit })).await
    };
    let pending = link(&amy).await.expect(201)["connected_account_id"].clone();
    let refused = link(&amy).await.expect(403);
    let error = &refused["error"];
    assert_eq!(error["slug"], "ToolRouterV2_TooManyAccounts");
    for text in [&error["message"], &error["suggested_fix"]] {
        let text = text.as_str().unwrap();
        assert!(
            text.contains("multi_account.max_accounts_per_toolkit"),
            "{text}"
        );
    }
    let again = json!({ "toolkits": [toolkit], "reinitiate_all": true });
    let managed = manage(&project, &amy, again).await;
    let managed = &managed["results"][&toolkit];
    assert_eq!(managed["status"], "failed");
    let reason = managed["error_message"].as_str().unwrap();
    assert!(reason.contains("has 2 accounts"), "{reason}");
    let pending = format!("/connected_accounts/{}", pending.as_str().unwrap());
    project.delete(&pending).await.expect(200);
    link(&amy).await.expect(201);
    let raised = json!({ "multi_account": { "max_accounts_per_toolkit": 3 } });
    let path = format!("{SESSION_PATH}/{amy}");
    project.patch(&path, &raised).await.expect(200);
    link(&amy).await.expect(201);

    let bob = session("bob", 3).await;
    let links = join_all((0..8).map(|_| link(&bob))).await;
    let created = links.iter().filter(|link| link.status == 201).count();
    assert!(created <= 3, "{created}");
    let accounts = project.get("/connected_accounts?user_ids=bob").await;
    let accounts = accounts.expect(200)["items"].as_array().unwrap().len();
    assert_eq!(accounts, created, "a refused link leaves no account");
}
