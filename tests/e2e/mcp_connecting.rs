//! Calls at MCP endpoints whose user has to connect an account first.

use harness::{
    Host,
    assistants::{Assistant, Library},
    secret, unique, wait_until,
};
use serde_json::{Value, json};

use crate::{
    approvals::call_over_mcp,
    given,
    mcp_endpoints::{Given, VERSION_MODES, failure, request, result},
};

/// Asserts that an assistant was asked to open a link that works.
async fn assert_link(given: &Given, asked: &Value, which: &str) {
    assert_eq!(asked["mode"], "url", "{which}");
    let link = asked["url"].as_str().unwrap();
    let opened = given::open(&given.project, link).await;
    assert_eq!(opened.status, 200, "{which}");
}

/// Returns the options of an assistant whose user opens addresses, and which fetches an address once.
fn options(url: &str, mode: &str, tool: &str, target: &str) -> Value {
    let call = json!({ "name": tool, "arguments": { "url": target } });
    json!({ "url": url, "mode": mode, "opens_urls": true, "calls": [call] })
}

async fn has_pending_account(given: &Given, user: &str) -> bool {
    let path = format!("/connected_accounts?user_ids={user}");
    let listed = given.project.get(&path).await.expect(200);
    !listed["items"].as_array().unwrap().is_empty()
}

#[tokio::test]
async fn call_goes_on_once_the_user_has_connected() {
    let given = Given::new().await;
    for library in Library::ALL {
        let (user, key, tag) = (unique(6), secret(), unique(8));
        let url = format!("{}?user_id={user}", given.url);
        let target = format!("https://api.example.com/echo/{tag}");
        let options = options(&url, "auto", &given.fetch, &target);
        let assistant = Assistant::start(library, &options);
        wait_until("a link is created", async || {
            has_pending_account(&given, &user).await
        })
        .await;
        given.connect(&user, &key).await;
        let report = assistant.report().await;
        let which = format!("{library:?}: {report:#}");
        assert_eq!(report["calls"][0]["is_error"], false, "{which}");
        let seen = Host::application().seen(&tag);
        assert_eq!(seen[0].header("authorization"), format!("Bearer {key}"));
        let [asked] = &report["asked"].as_array().unwrap()[..] else {
            panic!("{which}")
        };
        assert_link(&given, asked, &which).await;
    }
}

#[tokio::test]
async fn deleted_server_ends_its_waits() {
    let given = Given::new().await;
    let (user, tag) = (unique(6), unique(8));
    let url = format!("{}?user_id={user}", given.url);
    let target = format!("https://api.example.com/echo/{tag}");
    let accepted = json!({
        "arguments": { "url": target }, "inputResponses": { "connect": { "action": "accept" } },
    });
    let called = call_over_mcp(&given.project, &url, &given.fetch, &accepted);
    let deleted = async {
        // The call waits by the time that a later request is answered.
        result(&request(&given.project, &url, "tools/list", json!({}), &[]).await);
        let id = given.url.rsplit('/').next().unwrap();
        let deleted = given.project.delete(&format!("/mcp/{id}")).await;
        deleted.expect(200);
        given.connect(&user, &secret()).await;
    };
    let (called, ()) = tokio::join!(called, deleted);
    assert_eq!(called["isError"], true, "{called:#}");
    assert!(Host::application().seen(&tag).is_empty());
}

#[tokio::test]
async fn older_client_gets_the_link_in_an_error() {
    let given = Given::new().await;
    for library in Library::ALL {
        let url = format!("{}?user_id={}", given.url, unique(6));
        let options = options(&url, "legacy", &given.fetch, "https://api.example.com/");
        let report = Assistant::start(library, &options).report().await;
        let which = format!("{library:?}: {report:#}");
        let call = &report["calls"][0];
        assert_eq!(call["code"], -32042, "{which}");
        let asked = &call["asked"][0];
        assert!(
            asked["elicitationId"].as_str().unwrap().len() >= 22,
            "{which}"
        );
        assert_link(&given, asked, &which).await;
    }
}

#[tokio::test]
async fn client_without_elicitation_gets_a_failure() {
    let given = Given::new().await;
    let call = json!({ "name": given.fetch, "arguments": { "url": "https://api.example.com/" } });
    for library in Library::ALL {
        for (mode, _) in VERSION_MODES {
            let options = json!({ "url": given.url, "mode": mode, "calls": [call] });
            let report = Assistant::start(library, &options).report().await;
            let called = &report["calls"][0];
            assert_eq!(called["is_error"], true, "{report:#}");
            assert!(
                called["text"].as_str().unwrap().contains("/link/lt_"),
                "{report:#}"
            );
        }
    }
}

#[tokio::test]
async fn session_that_manages_connections_gives_a_link() {
    let given = Given::new().await;
    for (manages, has_link) in [(true, true), (false, false)] {
        let config = json!({
            "user_id": "amy", "preload": { "tools": [given.fetch] },
            "manage_connections": { "enable": manages },
        });
        let url = given::mcp_session(&given.project, &config).await;
        let arguments = json!({ "url": "https://api.example.com/" });
        let params = json!({ "name": given.fetch, "arguments": arguments });
        let key = [("x-api-key", given.project.key())];
        let called = result(&request(&given.project, &url, "tools/call", params, &key).await);
        assert_eq!(
            failure(&called).contains("/link/lt_"),
            has_link,
            "{called:#}"
        );
    }
}

#[tokio::test]
async fn helper_tool_connects_the_user_of_an_address() {
    let given = Given::new().await;
    let url = format!("{}?user_id=amy", given.url);
    let with_helpers = format!("{url}&include_service_helper_actions=true");
    let helper = "SERVICE_MANAGE_CONNECTIONS";
    for (url, is_listed) in [(&url, false), (&with_helpers, true)] {
        let listed = result(&request(&given.project, url, "tools/list", json!({}), &[]).await);
        let mut tools = listed["tools"].as_array().unwrap().iter();
        assert_eq!(
            tools.any(|tool| tool["name"] == helper),
            is_listed,
            "{listed:#}"
        );
    }
    let toolkit = given::keyed().await;
    let params = json!({ "name": helper, "arguments": { "toolkits": [toolkit, "no_such"] } });
    let call = async |url: &str| {
        result(&request(&given.project, url, "tools/call", params.clone(), &[]).await)
    };
    let called = call(&with_helpers).await;
    let results = &called["structuredContent"]["results"];
    assert_eq!(results[toolkit]["status"], "initiated", "{called:#}");
    assert_eq!(results["no_such"]["status"], "failed", "{called:#}");
    let link = results[toolkit]["redirect_url"].as_str().unwrap();
    assert_eq!(given::open(&given.project, link).await.status, 200);
    given.connect("amy", &secret()).await;
    let called = call(&with_helpers).await;
    assert_eq!(
        called["structuredContent"]["results"][toolkit]["status"], "active",
        "{called:#}"
    );
    let refused = call(&url).await;
    assert!(failure(&refused).contains(helper), "{refused:#}");
}
