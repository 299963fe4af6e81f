//! Members of bodies of sessions: unknown ones, those that this server does not have, and what a change
//! keeps.

use futures::future::join_all;
use harness::{Answer, Host, client::Body, host::Setup};
use serde_json::{Value, json};

use crate::{
    description::{CLIENT_OPERATIONS, Operation},
    given,
    tool_router_execution::with_mail,
    tool_router_sessions::{SESSION_PATH, amys_session, create},
};

/// Name that is not similar to any other.
const UNKNOWN_NAME: &str = "zzzzzzzz";

/// Operation ids of requests whose unknown members are refused.
const STRICT_OPERATIONS: [&str; 8] = [
    "tool_router_create",
    "tool_router_update",
    "tool_router_attach",
    "tool_router_link",
    "tool_router_execute",
    "tool_router_execute_meta",
    "tool_router_proxy_execute",
    "tool_router_search",
];

fn strict_operations() -> Vec<&'static Operation> {
    let strict = CLIENT_OPERATIONS.iter();
    let strict: Vec<_> = strict
        .filter(|operation| STRICT_OPERATIONS.contains(&operation.id()))
        .collect();
    assert_eq!(strict.len(), STRICT_OPERATIONS.len());
    strict
}

fn is_in_problems(answer: &Answer, text: &str) -> bool {
    answer.problems().iter().any(|line| line.contains(text))
}

/// Removes the members of a sample that are refused or ignored, and adds the pointers to its objects.
fn objects(schema: &Value, sample: &mut Value, pointer: &str, found: &mut Vec<String>) {
    for several in ["oneOf", "anyOf"] {
        let variants = schema[several].as_array().into_iter().flatten();
        if let Some(variant) = { variants }.find(|variant| variant["type"] != "null") {
            return objects(variant, sample, pointer, found);
        }
    }
    if let Some(items) = sample.as_array_mut() {
        for (index, item) in items.iter_mut().enumerate() {
            objects(&schema["items"], item, &format!("{pointer}/{index}"), found);
        }
    }
    let Some(properties) = schema["properties"].as_object() else {
        return;
    };
    let members = sample.as_object_mut().unwrap();
    members.retain(|name, _| properties[name]["x-unimplemented"].is_null());
    for (name, member) in members {
        let pointer = format!("{pointer}/{name}");
        objects(&properties[name], member, &pointer, found);
    }
    found.push(pointer.to_owned());
}

/// Returns a JSON pointer as paths in errors are written.
fn shown(pointer: &str) -> String {
    let mut path = String::new();
    for step in pointer.split('/').skip(1) {
        if step.parse::<usize>().is_ok() {
            path.push_str(&format!("[{step}]"));
        } else if path.is_empty() {
            path.push_str(step);
        } else {
            path.push_str(&format!(".{step}"));
        }
    }
    path
}

#[tokio::test]
async fn unknown_member_is_refused_at_any_depth() {
    let project = Host::shared().await.new_project().await;
    let mut sent = 0;
    for operation in strict_operations() {
        let Body::Json(mut sample) = operation.body(true) else {
            panic!("{} has no body", operation.path);
        };
        let mut pointers = Vec::new();
        objects(&operation.request_schema(), &mut sample, "", &mut pointers);
        for pointer in pointers {
            let mut body = sample.clone();
            body.pointer_mut(&pointer).unwrap()[UNKNOWN_NAME] = json!(1);
            let refused = operation.send(&project, Body::Json(body)).await.expect(400);
            let path = shown(&format!("{pointer}/{UNKNOWN_NAME}"));
            assert!(is_in_problems(&refused, &path), "{path}: {refused:#?}");
            sent += 1;
        }
    }
    assert!(sent > 35, "{sent}");
}

#[tokio::test]
async fn unknown_member_is_refused_with_nearest_name() {
    let (project, session) = amys_session().await;
    let path = format!("{SESSION_PATH}/{session}");
    let kit = given::keyed().await;
    let cases = json!([
        [{ "toolkts": {} }, "toolkts", "`toolkits`"],
        [{ "toolkits": { "enabl": [] } }, "toolkits.enabl", "`enable`"],
        [{ "tags": { "disabl": [] } }, "tags.disabl", "`disable`"],
        [{ "tools": { kit: { "tags": { "enabled": [] } } } }, format!("tools.{kit}.tags.enabled"), "`enable`"],
        [{ "tools": { kit: { "enabled": [] } } }, format!("tools.{kit}.enabled"), "`enable`"],
        [{ "search": { "enabled": false } }, "search.enabled", "`search.enable`"],
        [{ "execute": { "multi_execute": false } }, "execute.multi_execute", "`execute.enable_multi_execute`"],
        [{ "multi_account": { "explicit_selection": true } }, "multi_account.explicit_selection", "`multi_account.require_explicit_selection`"],
        [{ "workbench": { "enabled": false } }, "workbench.enabled", "`workbench.enable`"],
        [{ "experimental": { "permission": {} } }, "experimental.permission", "`experimental.permissions`"],
        [{ "require_approval": ["SEND"] }, "require_approval: belongs in", "`experimental.permissions.default`"],
        [{ "toolkits": [kit] }, "toolkits: expected an object such as {\"enable\": [\"github\"]}", "got a list"],
        [{ "tools": { kit: ["A"] } }, format!("tools.{kit}: expected an object such as {{\"enable\":"), "got a list"],
        [{ "tags": "readOnlyHint" }, "tags: expected a list such as [\"readOnlyHint\"]", "got a string"],
        [{ "preload": ["A"] }, "preload: expected an object such as {\"tools\":", "got a list"],
        [{ "permissions": { "default": "allow_all" } }, "permissions: belongs in", "`experimental.permissions`"],
        [{ "config": {} }, "config: is part of responses only", "belong at the top of the body"],
    ]);
    for case in cases.as_array().unwrap() {
        let refused = project.patch(&path, &case[0]).await.expect(400);
        for name in [&case[1], &case[2]] {
            let name = name.as_str().unwrap();
            assert!(is_in_problems(&refused, name), "{case}: {refused:#?}");
        }
    }
    let call = json!({ "tool_slug": "X", "request_state": "s", "input_responses": {
        "approval": { "action": "accept", "content": { "decison": "approve" } },
    } });
    let refused = project.post(&format!("{path}/execute"), &call).await;
    let refused = refused.expect(400);
    let nearest = "`input_responses.approval.content.decison` is not allowed; the nearest known name is `input_responses.approval.content.decision`";
    assert!(is_in_problems(&refused, nearest), "{refused:#?}");
    let read = project.get(&path).await.expect(200);
    assert_eq!(read["config_version"], 1);
}

#[tokio::test]
async fn warning_setting_accepts_unknown_members() {
    let host = Setup::new().with("sessions.unknown_members", "warn");
    let host = host.start().await;
    let project = host.new_project().await;
    let body = json!({ "user_id": "amy", "newest": 1, "search": { "theme_colour": 2 } });
    let created = project.post(SESSION_PATH, &body).await;
    let warnings = created.headers.get_all("x-toolhost-warning").into_iter();
    let warnings: Vec<_> = warnings.map(|value| value.to_str().unwrap()).collect();
    let expected = [
        "unknown body member `newest` is ignored",
        "unknown body member `search.theme_colour` is ignored",
    ];
    assert_eq!(warnings, expected);
    created.expect(201);
    let output = host.output();
    let logged = "`search.theme_colour` is ignored";
    assert!(output.contains(logged), "{output}");
}

#[tokio::test]
async fn warning_setting_refuses_what_may_restrict() {
    let host = Setup::new().with("sessions.unknown_members", "warn");
    let host = host.start().await;
    let project = host.new_project().await;
    let session = create(&project, json!({ "user_id": "amy" })).await;
    let harmless: serde_json::Map<_, _> = (0..=10)
        .map(|number| (format!("x{number}{number}"), json!(1)))
        .collect();
    for restriction in [
        json!({ "toolkits": { "enabl": [] } }),
        json!({ "search": { "enabled": false } }),
        json!({ "experimental": { "permission": { "default": "ask_every_call" } } }),
        json!({ "require_approval": ["hackernews"] }),
        json!({ "proxy_executes": { "enable": false } }),
        json!({ "expected_version": 77, "search": { "enable": false } }),
        // More than are compared.
        harmless.into(),
    ] {
        let path = format!("{SESSION_PATH}/{session}");
        project.patch(&path, &restriction).await.expect(400);
        let mut body = restriction;
        body["user_id"] = json!("amy");
        project.post(SESSION_PATH, &body).await.expect(400);
    }
}

#[tokio::test]
async fn harmless_members_are_accepted() {
    let project = Host::shared().await.new_project().await;
    let mut body = json!({
        "user_id": "amy", "instant": false, "premium_usage": { "tools": {} },
        "workbench": { "sandbox_size": "large" },
        "experimental": {
            "fast_mode": true, "submit_feedback": { "enable": true },
            "assistive_prompt_config": { "user_timezone": "Europe/Paris" },
            "link_url_overwrite": "https://links.example.com", "restrict_egress_to_service": true,
        },
    });
    let created = project.post(SESSION_PATH, &body).await.expect(201);
    assert_eq!(created["config"]["instant"], false);
    assert_eq!(created["config"]["preload"], json!({ "tools": [] }));
    assert_eq!(created["config"]["workbench"]["sandbox_size"], "large");
    assert_eq!(created["experimental"]["restrict_egress_to_service"], true);
    let path = format!("{SESSION_PATH}/{}", created["session_id"].as_str().unwrap());
    body.as_object_mut().unwrap().remove("user_id");
    let experimental = body["experimental"].as_object_mut().unwrap();
    experimental.remove("assistive_prompt_config");
    experimental.remove("restrict_egress_to_service");
    let changed = project.patch(&path, &body).await.expect(200);
    assert_eq!(changed["experimental"]["restrict_egress_to_service"], true);
    let queries = json!({ "queries": [{ "use_case": "read" }], "model": "m", "search_strategy": "auto",
        "experimental": { "custom_tools": [] } });
    let found = project.post(&format!("{path}/search"), &queries).await;
    found.expect(200);
}

#[tokio::test]
async fn partial_change_keeps_the_rest_of_blocks() {
    let project = Host::shared().await.new_project().await;
    let config = json!({
        "user_id": "amy",
        "workbench": { "enable": false, "enable_tool_execution": false },
        "manage_connections": { "enable": false, "callback_url": "https://app.example.com/done" },
        "search": { "enable": false },
        "execute": { "enable_multi_execute": false },
        "proxy_execute": { "enable": false },
        "multi_account": { "enable": true, "max_accounts_per_toolkit": 3, "require_explicit_selection": true },
    });
    let path = format!("{SESSION_PATH}/{}", create(&project, config).await);
    let change = json!({
        "workbench": { "auto_offload_threshold": 9000 },
        "manage_connections": { "enable": null, "enable_wait_for_connections": true },
        "search": {}, "execute": {}, "proxy_execute": {},
        "multi_account": { "enable": false },
    });
    let changed = project.patch(&path, &change).await.expect(200);
    let config = &changed["config"];
    let workbench = &config["workbench"];
    assert_eq!(workbench["enable"], false);
    assert_eq!(workbench["tool_execution_enabled"], false);
    assert_eq!(workbench["auto_offload_threshold"].to_string(), "9000");
    let connections = json!({ "enabled": false, "callback_url": "https://app.example.com/done",
        "enable_wait_for_connections": true, "enable_connection_removal": true });
    assert_eq!(config["manage_connections"], connections);
    assert_eq!(config["search"], json!({ "enable": false }));
    assert_eq!(config["execute"], json!({ "enable_multi_execute": false }));
    assert_eq!(config["proxy_execute"], json!({ "enable": false }));
    let accounts = json!({ "enable": false, "max_accounts_per_toolkit": 3, "require_explicit_selection": true });
    assert_eq!(config["multi_account"], accounts);

    let removed = json!({ "manage_connections": { "callback_url": null },
        "multi_account": { "max_accounts_per_toolkit": null }, "search": null });
    let changed = project.patch(&path, &removed).await.expect(200);
    let config = &changed["config"];
    assert_eq!(config["manage_connections"]["callback_url"], Value::Null);
    assert_eq!(config["manage_connections"]["enabled"], false);
    let most = &config["multi_account"]["max_accounts_per_toolkit"];
    assert_eq!(most, &Value::Null);
    assert_eq!(config["search"]["enable"], true);
}

#[tokio::test]
async fn change_without_effect_makes_no_version() {
    let (project, session) = amys_session().await;
    let path = format!("{SESSION_PATH}/{session}");
    let created = project.get(&path).await.expect(200);
    for change in [
        json!({ "tags": [] }),
        json!({ "tags": { "disable": [] }, "tools": {} }),
        json!({ "preload": { "tools": [] } }),
        json!({ "multi_account": { "enable": null, "max_accounts_per_toolkit": null } }),
    ] {
        let changed = project.patch(&path, &change).await.expect(200);
        assert_eq!(changed["config_version"], 1, "{change}");
        assert_eq!(changed["config"], created["config"], "{change}");
    }
}

#[tokio::test]
async fn contradicting_proxy_switches_are_refused() {
    let project = Host::shared().await.new_project().await;
    let contradiction = json!({
        "user_id": "amy", "proxy_execute": { "enable": false },
        "workbench": { "enable_proxy_execution": true },
    });
    let assert_refused = |refused: Answer| {
        let reasons = refused.expect(400)["error"]["errors"].to_string();
        for path in ["workbench.enable_proxy_execution", "proxy_execute.enable"] {
            assert!(reasons.contains(path), "{reasons}");
        }
    };
    assert_refused(project.post(SESSION_PATH, &contradiction).await);
    let session = create(&project, json!({ "user_id": "amy" })).await;
    let path = format!("{SESSION_PATH}/{session}");
    let [off, on] = ["proxy_execute", "workbench"].map(|part| json!({ part: contradiction[part] }));
    let both = json!({ "proxy_execute": off["proxy_execute"], "workbench": on["workbench"] });
    assert_refused(project.patch(&path, &both).await);
    // Without the contradiction, each is accepted; the later one is refused while the earlier one holds.
    project.patch(&path, &on).await.expect(200);
    project.patch(&path, &off).await.expect(200);
    assert_refused(project.patch(&path, &on).await);
    let other = json!({ "workbench": { "enable": true } });
    project.patch(&path, &other).await.expect(200);
    let permitted = json!({ "proxy_execute": null, "workbench": on["workbench"] });
    let changed = project.patch(&path, &permitted).await.expect(200);
    // Only the changes that changed something have made a version.
    assert_eq!(changed["config_version"], 3);
}

#[tokio::test]
async fn null_permissions_are_removed() {
    let (project, toolkit) = with_mail().await;
    let permissions = json!({ "permissions": { "default": "ask_every_call" } });
    let session = json!({ "user_id": "amy", "experimental": permissions });
    let path = format!("{SESSION_PATH}/{}", create(&project, session).await);
    let call = json!({ "tool_slug": format!("{}_SEND", toolkit.to_uppercase()), "arguments": {} });
    for (experimental, outcome) in [
        (json!({}), "input_required"),
        (json!({ "permissions": null }), "completed"),
    ] {
        let change = json!({ "experimental": experimental });
        project.patch(&path, &change).await.expect(200);
        let called = project.post(&format!("{path}/execute"), &call).await;
        assert_eq!(called.expect(200)["result_type"], outcome, "{change}");
    }
}

#[tokio::test]
async fn stale_or_empty_change_stores_nothing() {
    let (project, session) = amys_session().await;
    let path = format!("{SESSION_PATH}/{session}");
    let change =
        |version: u32| json!({ "search": { "enable": false }, "expected_config_version": version });
    for stale in [change(2), json!({ "expected_config_version": 99 })] {
        let refused = project.patch(&path, &stale).await;
        refused.expect_error(409, "ToolRouterV2_ConfigVersionChanged");
    }
    for empty in [
        json!({}),
        json!({ "expected_config_version": 1 }),
        json!({ "experimental": {} }),
    ] {
        let same = project.patch(&path, &empty).await.expect(200);
        assert_eq!(same["config_version"], 1, "{empty}");
        assert_eq!(same["config"]["search"]["enable"], true);
    }
    let changed = project.patch(&path, &change(1)).await.expect(200);
    assert_eq!(changed["config_version"], 2);
    let history = project.get(&format!("{path}/config_history")).await;
    assert_eq!(history.expect(200)["total_items"], 2);
}

#[tokio::test]
async fn concurrent_changes_show_what_they_stored() {
    let (project, session) = amys_session().await;
    let path = format!("{SESSION_PATH}/{session}");
    let change = async |number: u32| {
        let change = json!({ "workbench": { "auto_offload_threshold": number } });
        let changed = project.patch(&path, &change).await.expect(200);
        let shown = &changed["config"]["workbench"]["auto_offload_threshold"];
        assert_eq!(shown.as_f64(), Some(f64::from(number)));
        changed["config_version"].as_u64().unwrap()
    };
    let mut versions = join_all((1..=12).map(change)).await;
    versions.sort_unstable();
    assert_eq!(versions, (2..=13).collect::<Vec<_>>());
}
