//! The operator word: a change affects every identifier that carries it, and no stored data.

use harness::{Answer, Host, guest, host::Setup};
use serde_json::json;

use crate::{
    given,
    tool_router_sessions::{SESSION_PATH, create},
};

/// Returns everything that lists and records contain, with this word in identifiers.
async fn contents(host: &Host, slug: &str, config: &str, account: &str, word: &str) -> Vec<Answer> {
    let project = host.as_project();
    let all = [
        format!("/toolkits?managed_by={word}"),
        format!("/toolkits/{slug}"),
        "/tools".into(),
        format!("/auth_configs?is_{word}_managed=false"),
        format!("/auth_configs/{config}"),
        "/connected_accounts".into(),
        format!("/connected_accounts/{account}"),
    ];
    let mut answers = Vec::new();
    for path in all {
        answers.push(project.get(&path).await.expect(200));
    }
    answers
}

#[tokio::test]
async fn operator_word_can_change_without_data_loss() {
    let host = Setup::new().with("operator_word", "acme").start().await;
    let (slug, account) = given::fetcher(&host).await;
    let project = host.as_project();
    let managed =
        json!({ "toolkit": { "slug": slug }, "auth_config": { "type": "use_acme_managed_auth" } });
    let refused = project.post("/auth_configs", &managed).await.expect(400);
    assert_eq!(
        refused["error"]["code"], 306,
        "the word was understood: {refused:#?}"
    );
    let default = json!({ "toolkit": { "slug": slug }, "auth_config": { "type": "use_service_managed_auth" } });
    let refused = project.post("/auth_configs", &default).await.expect(400);
    assert_eq!(refused["error"]["slug"], "Request_Invalid");
    let other = project.get("/toolkits?managed_by=service").await;
    other.expect(400);
    let url = json!({ "url": "https://nowhere.example.org/" });
    project.execute(&guest::tool(&slug), url).await.expect(200);
    let managed = project.get("/auth_configs?is_acme_managed=true").await;
    assert_eq!(managed.expect(200)["total_items"], 0);

    let config = project.auth_config(&slug, "API_KEY", json!({})).await;
    let acme = contents(&host, &slug, &config, &account, "acme").await;
    for (answer, name) in acme.iter().zip([
        "acme_managed_auth_schemes",
        "acme_managed_auth",
        "items",
        "is_acme_managed",
        "is_acme_managed",
        "is_acme_managed",
        "is_acme_managed",
    ]) {
        assert!(
            answer.text.contains(&format!("\"{name}\"")),
            "{name}: {}",
            answer.text
        );
        assert!(!answer.text.contains("service"), "{}", answer.text);
    }
    let described = host.anonymous().get("/openapi.json").await.expect(200);
    for (said, default) in [
        ("\"is_acme_managed\"", "is_service_"),
        ("\"acme\"", "\"service\""),
    ] {
        assert!(
            described.text.contains(said) && !described.text.contains(default),
            "{said} in the description"
        );
    }
    let (setup, _) = host.terminate().await;
    let host = setup.with("operator_word", "service").start().await;
    let default = contents(&host, &slug, &config, &account, "service").await;
    for (answer, before) in default.iter().zip(&acme) {
        assert_eq!(answer.text.replace("service", "acme"), before.text);
    }
}

#[tokio::test]
async fn errors_name_members_and_meta_tools_by_operator_word() {
    let host = Setup::new().with("operator_word", "acme").start().await;
    let project = host.as_project();
    let experimental = |member: &str| json!({ "user_id": "amy", "experimental": { member: true } });
    let misspelled = experimental("restrict_egres_to_acme");
    let refused = project.post(SESSION_PATH, &misspelled).await.expect(400);
    let suggestion = "`experimental.restrict_egress_to_acme`";
    assert!(refused.text.contains(suggestion), "{}", refused.text);
    let session = create(&project, experimental("restrict_egress_to_acme")).await;
    let search = json!({ "slug": "ACME_SEARCH_TOOLS", "arguments": {} });
    let meta = format!("{SESSION_PATH}/{session}/execute_meta");
    let refused = project.post(&meta, &search).await.expect(400);
    assert!(
        refused.text.contains("schema of ACME_SEARCH_TOOLS"),
        "{}",
        refused.text
    );
    let other_word = "not with `SERVICE_`; send ACME_SEARCH_TOOLS";
    let default = json!({ "slug": "SERVICE_SEARCH_TOOLS", "arguments": {} });
    let refused = project.post(&meta, &default).await.expect(404);
    assert!(refused.text.contains(other_word), "{}", refused.text);
    let reasons = [
        ("SERVICE_SEARCH_TOOLS", other_word),
        ("ACME_SEARCH_TOOLS", "ACME_SEARCH_TOOLS is a meta tool"),
    ];
    let calls = reasons.map(|(slug, _)| json!({ "tool_slug": slug, "arguments": {} }));
    let arguments = json!({ "tools": calls, "sync_response_to_workbench": false });
    let several = json!({ "slug": "ACME_MULTI_EXECUTE_TOOL", "arguments": arguments });
    let done = project.post(&meta, &several).await.expect(200);
    for (index, (_, reason)) in reasons.into_iter().enumerate() {
        given::assert_contains(&done["data"]["results"][index]["error"], reason);
    }
}

#[tokio::test]
async fn meta_tool_logs_are_found_by_operator_word() {
    let host = Setup::new().with("operator_word", "acme").start().await;
    let project = host.as_project();
    let session = create(&project, json!({ "user_id": "amy" })).await;
    let search = json!({ "queries": [{ "use_case": "list mails" }] });
    let body = json!({ "slug": "ACME_SEARCH_TOOLS", "arguments": search });
    let meta = format!("{SESSION_PATH}/{session}/execute_meta");
    project.post(&meta, &body).await.expect(200);
    let schemas = json!({ "slug": "ACME_GET_TOOL_SCHEMAS", "arguments": { "tool_slugs": ["X"] } });
    project.post(&meta, &schemas).await.expect(200);
    let value = "ACME_SEARCH_TOOLS";
    for (operator, found) in [("==", value), ("!=", "ACME_GET_TOOL_SCHEMAS")] {
        let newer = json!({ "field": "tool_slug", "operator": operator, "value": value });
        let older = json!({ "field": "actionKey", "operation": operator, "value": value });
        let newer = ("/logs/tool_execution", json!({ "filters": [newer] }));
        let older = json!({ "search_params": [older] });
        let older = ("/internal/action_execution/logs", older);
        for ((path, body), list, slug) in [
            (newer, "logs", "/metadata/tool_slug"),
            (older, "data", "/actionKey"),
        ] {
            let listed = project.post(path, &body).await.expect(200);
            let logs = listed[list].as_array().unwrap();
            let slugs: Vec<_> = logs.iter().map(|log| log.pointer(slug)).collect();
            assert_eq!(slugs, [Some(&json!(found))], "{path} {operator}");
        }
    }
}
