//! MCP endpoints, checked by the published conformance suite and the command line of the inspector.
//!
//! The suite expects tools with fixed names. A toolkit `test` has those that a tool of this server can be.
//! `tests/node/conformance.txt` lists the checks of features that the server does not have, with reasons.

use std::collections::BTreeSet;

use harness::{
    Client, Guest, Host, guest,
    guest::imports,
    mcp_programs::{Check, conformance, inspector},
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::given;

/// Checks that do not apply: a line for each, with the kind of endpoint (`server`, `session` or
/// `any`) and `SCENARIO` or `SCENARIO:CHECK`. Lines that start with `#` state the reasons.
const NOT_APPLICABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/node/conformance.txt");
/// Versions of the protocol.
const PROTOCOL_VERSIONS: [&str; 3] = ["2025-06-18", "2025-11-25", "2026-07-28"];

/// Publishes the toolkit of the suite and returns its slug.
async fn toolkit() -> &'static str {
    static PUBLISHED_ONCE: OnceCell<()> = OnceCell::const_new();
    PUBLISHED_ONCE
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

/// Returns the checks that do not apply to a kind of endpoint.
fn not_applicable(kind: &str) -> BTreeSet<String> {
    let listed = std::fs::read_to_string(NOT_APPLICABLE).unwrap();
    let lines = listed.lines().filter(|line| !line.starts_with('#'));
    let named = lines.filter_map(|line| line.split_once(' '));
    let named = named.filter(|(of, _)| *of == kind || *of == "any");
    named.map(|(_, check)| check.to_owned()).collect()
}

/// Asserts that all checks pass at an endpoint except those that do not apply, and that these fail.
async fn assert_conformance(kind: &str, url: &str, key: Option<&str>) {
    let excluded = not_applicable(kind);
    let mut unmet = BTreeSet::new();
    let mut used = BTreeSet::new();
    for version in PROTOCOL_VERSIONS {
        let arguments = ["--url", url, "--suite", "all", "--spec-version", version];
        let checks = conformance("server", &arguments, key).await;
        for check in checks.into_iter().filter(Check::has_failed) {
            let name = format!("{}:{}", check.scenario, check.id);
            match excluded
                .get(&name)
                .or_else(|| excluded.get(&check.scenario))
            {
                Some(listed) => drop(used.insert(listed.clone())),
                None => drop(unmet.insert((version, name, check.error_message))),
            }
        }
    }
    assert!(unmet.is_empty(), "{kind}: {unmet:#?}");
    let passing: Vec<_> = excluded.difference(&used).collect();
    assert!(
        passing.is_empty(),
        "{kind}: these checks pass: {passing:#?}"
    );
}

#[tokio::test]
async fn applicable_scenarios_pass_at_mcp_servers() {
    let project = Host::shared().await.new_project().await;
    let url = given::mcp_server_of(&project, toolkit().await).await;
    assert_conformance("server", &url, None).await;
}

#[tokio::test]
async fn applicable_scenarios_pass_at_sessions() {
    let project = Host::shared().await.new_project().await;
    let config = json!({
        "user_id": "amy", "toolkits": { "enable": [toolkit().await] }, "preload": { "tools": "all" },
    });
    let url = given::mcp_session(&project, &config).await;
    assert_conformance("session", &url, Some(project.key())).await;
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
    let server = given::mcp_server_of(&project, &given::toolkit_of(tool)).await;
    let config = json!({ "user_id": "amy", "preload": { "tools": [tool] } });
    let session = given::mcp_session(&project, &config).await;
    for url in [&server, &session] {
        let listed = inspected(url, &project, &["--method", "tools/list", "--strict"]).await;
        let tools = listed["tools"].as_array().unwrap();
        assert!(
            tools.iter().any(|listed| listed["name"] == tool),
            "{listed:#}"
        );
        let call = ["--method", "tools/call", "--tool-name", tool];
        let call = [&call[..], &["--tool-arg", "said=hello"]].concat();
        let called = inspected(url, &project, &call).await;
        assert_eq!(
            called["structuredContent"],
            json!({ "said": "hello" }),
            "{called:#}"
        );
    }
}

/// The suite checks this for a tool whose name no tool of this server can have. Published schemas have no
/// `$anchor`.
#[tokio::test]
async fn schema_keywords_of_2020_12_are_kept() {
    let host = Host::shared().await;
    let (slug, mut manifest) = given::manifest();
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": { "address": { "type": "object" } },
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
    let url = given::mcp_server_of(&project, &slug).await;
    let listed = inspected(&url, &project, &["--method", "tools/list"]).await;
    assert_eq!(listed["tools"][0]["inputSchema"], schema);
}
