//! MCP endpoints, checked by the published conformance suite and the command line of the inspector.
//!
//! The suite expects tools and resources with fixed names. A toolkit `test` has those that a tool of this
//! server can be. Scenarios of features that the server does not have are listed with the reason.

use std::collections::BTreeSet;

use harness::{
    Client, Guest, Host, guest,
    guest::imports,
    mcp_programs::{conformance, inspector},
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::given;

/// Checks that fail, each as `SCENARIO` or `SCENARIO:CHECK`, by the reason.
const EXPECTED: &[(&str, &[&str])] = &[];

/// Publishes the toolkit of the suite and returns its slug.
async fn toolkit() -> &'static str {
    static PUBLISHED: OnceCell<()> = OnceCell::const_new();
    PUBLISHED
        .get_or_init(|| async {
            let mut manifest = guest::manifest("test");
            let tool = manifest["tools"][0].clone();
            let names = ["SIMPLE_TEXT", "ERROR_HANDLING", "TOOL_WITH_PROGRESS"];
            let named = |name: &str| {
                let mut tool = tool.clone();
                tool["slug"] = json!(format!("TEST_{name}"));
                tool
            };
            manifest["tools"] = names.into_iter().map(named).collect();
            // The tools differ in the lengths of their slugs.
            let guest = Guest {
                imports: imports::SLEEP,
                items: r#"(data (i32.const 2048) "upstream_error")"#,
                execute: "(if (i32.eq (local.get $tool_len) (i32.const 19))
                    (then (return (call $fail (i32.const 2048) (i32.const 14) (i32.const 2048) (i32.const 14)))))
                  (if (i32.eq (local.get $tool_len) (i32.const 23)) (then (call $sleep (i32.const 2500))))
                  (call $ok (local.get $args) (local.get $args_len))",
                ..Guest::default()
            };
            let host = Host::shared().await;
            host.publish(guest.component(), &manifest).await;
        })
        .await;
    "test"
}

/// Runs the suite and returns the checks that failed.
async fn failed(url: &str, version: &str, key: Option<&str>) -> BTreeSet<String> {
    let arguments = ["--url", url, "--suite", "all", "--spec-version", version];
    let checks = conformance("server", &arguments, key).await;
    let failed = checks.into_iter().filter(|check| check.has_failed());
    failed
        .map(|check| {
            let reason = check.error_message.unwrap_or_default();
            eprintln!("{version} {}:{}: {reason}", check.scenario, check.id);
            format!("{}:{}", check.scenario, check.id)
        })
        .collect()
}

#[tokio::test]
async fn applicable_scenarios_of_the_suite_pass() {
    let project = Host::shared().await.new_project().await;
    let body = json!({ "name": "Suite", "auth_config_ids": [], "no_auth_apps": [toolkit().await] });
    let server = given::mcp_server(&project, &body).await;
    let made = json!({ "user_id": "amy", "preload": { "tools": ["TEST_SIMPLE_TEXT", "TEST_ERROR_HANDLING", "TEST_TOOL_WITH_PROGRESS"] } });
    let made = project
        .post("/tool_router/session", &made)
        .await
        .expect(201);
    let session = made["mcp"]["url"].as_str().unwrap();
    let mut unmet = BTreeSet::new();
    for version in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        unmet.extend(failed(&server, version, None).await);
        unmet.extend(failed(session, version, Some(project.key())).await);
    }
    let is_expected = |check: &str| {
        let scenario = check.split(':').next().unwrap_or_default();
        let mut names = EXPECTED.iter().flat_map(|(_, names)| *names);
        names.any(|name| *name == check || *name == scenario)
    };
    unmet.retain(|check| !is_expected(check));
    assert!(unmet.is_empty(), "{unmet:#?}");
}

/// Runs the inspector and returns the result of a method.
async fn inspected(url: &str, project: &Client, arguments: &[&str]) -> Value {
    let ended = inspector(url, Some(project.key()), arguments).await;
    serde_json::from_str(&ended.succeeded()).unwrap()
}

#[tokio::test]
async fn inspector_lists_and_calls_tools() {
    let project = Host::shared().await.new_project().await;
    let tool = given::shared_echo().await;
    let toolkit = tool.split('_').next().unwrap().to_lowercase();
    let body = json!({ "name": "Echo", "auth_config_ids": [], "no_auth_apps": [toolkit] });
    let server = given::mcp_server(&project, &body).await;
    let body = json!({ "user_id": "amy", "preload": { "tools": [tool] } });
    let made = project
        .post("/tool_router/session", &body)
        .await
        .expect(201);
    let session = made["mcp"]["url"].as_str().unwrap();
    for url in [&*server, session] {
        let listed = inspected(url, &project, &["--method", "tools/list", "--strict"]).await;
        let tools = listed["tools"].as_array().unwrap();
        assert!(
            tools.iter().any(|listed| listed["name"] == tool),
            "{listed:#}"
        );
        let call = [
            "--method",
            "tools/call",
            "--tool-name",
            tool,
            "--tool-arg",
            "said=hello",
        ];
        let called = inspected(url, &project, &call).await;
        assert_eq!(
            called["structuredContent"],
            json!({ "said": "hello" }),
            "{called:#}"
        );
    }
}

/// The suite checks this for a tool whose name no tool of this server can have.
#[tokio::test]
async fn schema_keywords_of_2020_12_are_kept() {
    let host = Host::shared().await;
    let slug = given::slug();
    let mut manifest = guest::manifest(&slug);
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": { "address": { "$anchor": "addressDef", "type": "object" } },
        "properties": {
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    });
    manifest["tools"][0]["input"] = schema.clone();
    host.publish(Guest::echo().component(), &manifest).await;
    let project = host.new_project().await;
    let body = json!({ "name": "Schema", "auth_config_ids": [], "no_auth_apps": [slug] });
    let url = given::mcp_server(&project, &body).await;
    let listed = inspected(&url, &project, &["--method", "tools/list"]).await;
    assert_eq!(listed["tools"][0]["inputSchema"], schema);
}
