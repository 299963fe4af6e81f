//! Search for tools in sessions: scope, reasons, connections, partial failures, and the schemas of
//! tools with suggestions for unknown slugs.

use harness::{Answer, Client, Guest, Host, guest};
use serde_json::{Value, json};

use crate::{
    given,
    tool_router_sessions::{SESSION_PATH, amys_session, create, execute_meta, keyed},
};

/// Publishes a toolkit whose tools send, delete and list things that no other toolkit has.
async fn parcels(host: &Host, thing: &str) -> String {
    let (toolkit, mut manifest) = given::manifest();
    let tool = |name: &str, description: String, destructive: bool| {
        json!({
            "slug": format!("{}_{name}", toolkit.to_uppercase()), "name": name, "description": description,
            "input": { "type": "object", "properties": { "weight": { "type": "number" } } },
            "output": { "type": "object" }, "hints": { "destructive": destructive }, "no_auth": true,
        })
    };
    manifest["tools"] = json!([
        tool("SEND", format!("Sends a {thing}."), false),
        tool("DELETE", format!("Deletes a {thing} for ever."), true),
        tool("LIST", format!("Lists each {thing}."), false),
    ]);
    host.publish(Guest::echo().component(), &manifest).await;
    toolkit
}

async fn search(project: &Client, session: &str, use_cases: &[&str]) -> Answer {
    let queries = use_cases.iter().map(|text| json!({ "use_case": text }));
    let arguments = json!({ "queries": queries.collect::<Vec<_>>() });
    let found = execute_meta(project, session, "SERVICE_SEARCH_TOOLS", arguments);
    found.await.expect(200)
}

fn thing() -> String {
    format!("thing{}", harness::unique(4))
}

#[tokio::test]
async fn search_explains_best_tool_with_schema() {
    let host = Host::shared().await;
    let (project, thing) = (host.new_project().await, thing());
    let toolkit = parcels(host, &thing).await;
    let session = create(&project, json!({ "user_id": "amy" })).await;
    let use_case = format!("remove a {thing}");
    let found = search(&project, &session, &[&use_case]).await;
    let slug = format!("{}_DELETE", toolkit.to_uppercase());
    let result = &found["data"]["results"][0];
    assert_eq!(result["primary_tool_slugs"][0], slug.as_str());
    assert_eq!(result["use_case"], use_case.as_str());
    given::assert_contains(&result["reasoning"], &thing);
    given::assert_contains(&result["known_pitfalls"], &slug);
    let schema = &found["data"]["tool_schemas"][&slug]["input_schema"];
    assert_eq!(schema["properties"]["weight"]["type"], "number");
    assert_eq!(found["error"], Value::Null);
}

#[tokio::test]
async fn reasons_name_each_field_once() {
    let host = Host::shared().await;
    let (project, thing) = (host.new_project().await, thing());
    let toolkit = given::slug();
    let mut manifest = guest::manifest(&toolkit);
    let tool = &mut manifest["tools"][0];
    tool["description"] = format!("Sends a {thing}. A {thing}\nis sent as a {thing}.").into();
    tool["input"] = json!({ "type": "object", "properties": { &thing: { "type": "number" } } });
    host.publish(Guest::echo().component(), &manifest).await;
    let session = create(&project, json!({ "user_id": "amy" })).await;
    let found = search(&project, &session, &[&thing]).await;
    let reasoning = found["data"]["results"][0]["reasoning"].as_str().unwrap();
    assert_eq!(reasoning.matches("description").count(), 1, "{reasoning}");
}

#[tokio::test]
async fn synonyms_of_author_find_tool_unshown() {
    let host = Host::shared().await;
    let (project, thing, word) = (host.new_project().await, thing(), thing());
    let toolkit = given::slug();
    let mut manifest = guest::manifest(&toolkit);
    let tool = |name: &str| {
        json!({
            "slug": format!("{}_{name}", toolkit.to_uppercase()), "name": name, "no_auth": true,
            "description": format!("Handles a {thing}."), "input": { "type": "object" },
            "output": { "type": "object" },
        })
    };
    let mut second = tool("SECOND");
    second["synonyms"] = json!([format!("{word} it")]);
    manifest["tools"] = json!([tool("FIRST"), second]);
    host.publish(Guest::echo().component(), &manifest).await;
    let session = create(&project, json!({ "user_id": "amy" })).await;
    let found = search(&project, &session, &[&format!("{word} the {thing}")]).await;
    let result = &found["data"]["results"][0];
    let slug = format!("{}_SECOND", toolkit.to_uppercase());
    assert_eq!(result["primary_tool_slugs"][0], slug.as_str());
    given::assert_contains(&result["reasoning"], "(synonyms)");
    let shown = project.get(&format!("/tools/{slug}")).await.expect(200);
    assert!(!shown.text.contains(&word), "{}", shown.text);
}

#[tokio::test]
async fn search_ranks_permitted_tools_alone() {
    let host = Host::shared().await;
    let (project, thing) = (host.new_project().await, thing());
    let inside = parcels(host, &thing).await;
    let outside = parcels(host, &thing).await;
    let config = json!({ "user_id": "amy", "toolkits": { "enable": [inside] } });
    let session = create(&project, config).await;
    let found = search(&project, &session, &[&format!("send a {thing}")]).await;
    let result = &found["data"]["results"][0];
    assert_eq!(result["toolkits"], json!([inside]));
    let text = found["data"].to_string();
    assert!(!text.contains(&outside.to_uppercase()), "{text}");
}

#[tokio::test]
async fn search_states_connections_of_toolkits() {
    let project = Host::shared().await.new_project().await;
    let toolkit = keyed(Host::shared().await).await;
    let config = json!({ "user_id": "amy", "toolkits": { "enable": [toolkit] } });
    let session = create(&project, config).await;
    let found = search(&project, &session, &[&toolkit]).await;
    let status = &found["data"]["toolkit_connection_statuses"][0];
    assert_eq!(status["toolkit"], toolkit.as_str());
    assert_eq!(status["has_active_connection"], false);
    let guidance = &found["data"]["next_steps_guidance"];
    given::assert_contains(guidance, "SERVICE_MANAGE_CONNECTIONS");
}

#[tokio::test]
async fn results_name_only_meta_tools_of_session() {
    let project = Host::shared().await.new_project().await;
    let toolkit = keyed(Host::shared().await).await;
    let config = json!({
        "user_id": "amy",
        "toolkits": { "enable": [toolkit] },
        "manage_connections": { "enable": false },
        "execute": { "enable_multi_execute": false },
    });
    let session = create(&project, config).await;
    let found = search(&project, &session, &[&toolkit]).await;
    let data = &found["data"];
    let plan = &data["results"][0]["recommended_plan_steps"];
    given::assert_contains(plan, "has connected");
    let text = data.to_string();
    for absent in ["SERVICE_MANAGE_CONNECTIONS", "SERVICE_MULTI_EXECUTE_TOOL"] {
        assert!(!text.contains(absent), "{text}");
    }
    assert!(text.contains("SERVICE_GET_TOOL_SCHEMAS"), "{text}");
}

#[tokio::test]
async fn failed_use_case_leaves_others_answered() {
    let host = Host::shared().await;
    let (project, thing) = (host.new_project().await, thing());
    parcels(host, &thing).await;
    let session = create(&project, json!({ "user_id": "amy" })).await;
    let (good, long) = (format!("list each {thing}"), "x".repeat(1_025));
    let queries = json!([
        { "use_case": " " },
        { "use_case": good },
        { "use_case": long },
        { "use_case": good, "known_fields": "x".repeat(501) },
    ]);
    let arguments = json!({ "queries": queries });
    let found = execute_meta(&project, &session, "SERVICE_SEARCH_TOOLS", arguments).await;
    let found = found.expect(200);
    let error = found["error"].as_str().unwrap();
    let start = "3 out of 4 searches failed, reasons: ";
    assert!(error.starts_with(start), "{error}");
    let results = &found["data"]["results"];
    for failed in [0, 2, 3] {
        assert!(results[failed]["error"].is_string(), "{failed}");
    }
    assert_eq!(results[1]["error"], Value::Null);
    assert_ne!(results[1]["primary_tool_slugs"], json!([]));
}

#[tokio::test]
async fn result_has_schemas_up_to_a_size() {
    let host = Host::shared().await;
    let (project, one, other) = (host.new_project().await, thing(), thing());
    let toolkit = given::slug();
    let mut manifest = guest::manifest(&toolkit);
    // Each schema has about 60 KB, so that four fit into 256 KiB.
    let values: Vec<_> = (0..60).map(|number| format!("{number:01000}")).collect();
    let tool = |number: usize| {
        let thing = if number < 3 { &one } else { &other };
        json!({
            "slug": format!("{}_SEND_{number}", toolkit.to_uppercase()), "name": "Send",
            "description": format!("Sends a {thing}."),
            "input": { "type": "object", "properties": { "kind": { "enum": values } } },
            "output": { "type": "object" }, "no_auth": true,
        })
    };
    manifest["tools"] = (0..6).map(tool).collect();
    host.publish(Guest::echo().component(), &manifest).await;
    let session = create(&project, json!({ "user_id": "amy" })).await;
    let use_cases = [&one, &other].map(|thing| format!("send a {thing}"));
    let found = search(&project, &session, &[&use_cases[0], &use_cases[1]]).await;
    let schemas = found["data"]["tool_schemas"].as_object().unwrap();
    assert_eq!(schemas.len(), 6);
    let schemas = schemas.values().map(|tool| &tool["input_schema"]);
    assert_eq!(schemas.filter(|schema| schema.is_object()).count(), 4);
}

#[tokio::test]
async fn too_many_use_cases_or_slugs_are_refused() {
    let (project, session) = amys_session().await;
    let queries = vec![json!({ "use_case": "send" }); 8];
    let slugs = json!({ "tool_slugs": vec!["A_B"; 51] });
    for (slug, arguments) in [
        ("SERVICE_SEARCH_TOOLS", json!({ "queries": queries })),
        ("SERVICE_SEARCH_TOOLS", json!({ "queries": [] })),
        ("SERVICE_GET_TOOL_SCHEMAS", slugs),
    ] {
        let refused = execute_meta(&project, &session, slug, arguments).await;
        refused.expect_error(400, "ActionExecute_ArgumentsInvalid");
    }
}

#[tokio::test]
async fn unknown_slugs_get_suggestions() {
    let host = Host::shared().await;
    let (project, thing) = (host.new_project().await, thing());
    let toolkit = parcels(host, &thing).await.to_uppercase();
    let session = create(&project, json!({ "user_id": "amy" })).await;
    let (known, unknown) = (format!("{toolkit}_SEND"), format!("{toolkit}_REMOVE"));
    let arguments = json!({ "tool_slugs": [known, unknown], "include": ["output_schema"] });
    let found = execute_meta(&project, &session, "SERVICE_GET_TOOL_SCHEMAS", arguments).await;
    let data = &found.expect(200)["data"];
    assert_eq!(data["success"], false);
    assert_eq!(data["not_found"], json!([unknown]));
    let suggestions = data["suggestions"][&unknown].as_array().unwrap();
    assert_eq!(suggestions[0], format!("{toolkit}_DELETE"));
    assert!(suggestions.len() <= 3);
    let schemas = &data["tool_schemas"][&known];
    assert!(schemas["output_schema"].is_object() && schemas["input_schema"].is_null());
}

#[tokio::test]
async fn search_operation_refers_to_left_out_schemas() {
    let host = Host::shared().await;
    let (project, thing) = (host.new_project().await, thing());
    // Their six tools match equally, and three tools are recommended.
    parcels(host, &thing).await;
    parcels(host, &thing).await;
    let session = create(&project, json!({ "user_id": "amy" })).await;
    let path = format!("{SESSION_PATH}/{session}/search");
    let queries = json!([{ "use_case": thing }, { "use_case": "" }]);
    let request = json!({ "queries": queries, "model": "any" });
    let found = project.post(&path, &request).await.expect(200);
    assert_eq!(found["success"], false);
    let error = found["error"].as_str().unwrap();
    assert!(error.starts_with("1 out of 2 searches failed"), "{error}");
    let result = &found["results"][0];
    let best = result["primary_tool_slugs"][0].as_str().unwrap();
    let best = &found["tool_schemas"][best];
    assert_eq!(best["hasFullSchema"], true);
    assert!(best["input_schema"].is_object() && best["schemaRef"].is_null());
    let related = result["related_tool_slugs"][0].as_str().unwrap();
    let related = &found["tool_schemas"][related];
    assert_eq!(related["hasFullSchema"], false);
    let call = &related["schemaRef"];
    let schemas = json!({ "slug": call["tool"], "arguments": call["args"] });
    let meta = format!("{SESSION_PATH}/{session}/execute_meta");
    let schemas = project.post(&meta, &schemas).await.expect(200);
    assert_eq!(schemas["data"]["success"], true);

    let refused = project.post(&path, &json!({ "queries": [] })).await;
    refused.expect(400);
    let off = json!({ "user_id": "amy", "search": { "enable": false } });
    let path = format!("{SESSION_PATH}/{}/search", create(&project, off).await);
    let refused = project.post(&path, &request).await.expect(403);
    assert_eq!(refused["error"]["code"], 4312);
}

#[tokio::test]
async fn text_that_is_no_slug_is_not_repeated() {
    let (host, project) = Host::shared_with_project().await;
    let tool = guest::tool(&keyed(host).await);
    let session = create(&project, json!({ "user_id": "amy" })).await;
    let slugs = json!({ "tool_slugs": ["Pass word!"] });
    let calls = json!([
        { "tool_slug": "Pass word!", "arguments": {} },
        { "tool_slug": tool, "arguments": {}, "account": "Pass word!" },
    ]);
    let calls = json!({ "tools": calls, "sync_response_to_workbench": false });
    for (slug, arguments) in [
        ("SERVICE_GET_TOOL_SCHEMAS", slugs),
        ("SERVICE_MULTI_EXECUTE_TOOL", calls),
    ] {
        let answer = execute_meta(&project, &session, slug, arguments).await;
        let text = answer.expect(200).text;
        assert!(!text.contains("Pass"), "{text}");
    }
    let text = project.get("/mcp/Pass%20word!").await.expect(404).text;
    assert!(!text.contains("Pass"), "{text}");
}

#[tokio::test]
async fn refusal_names_every_wrong_argument() {
    let (project, session) = amys_session().await;
    for (slug, arguments, expected) in [
        (
            "SERVICE_SEARCH_TOOLS",
            json!({ "queries": "x" }),
            &["queries: expected a list, got a string"][..],
        ),
        (
            "SERVICE_SEARCH_TOOLS",
            json!({ "query": "x" }),
            &["queries: is required; `query` was sent: did you mean `queries`?"],
        ),
        (
            "SERVICE_MULTI_EXECUTE_TOOL",
            json!({
                "tools": [{ "arguments": {} }, { "tool_slug": 1, "arguments": {} }],
                "sync_response_to_workbench": false,
            }),
            &[
                "tools[0].tool_slug: is required",
                "tools[1].tool_slug: expected a string, got a number",
            ],
        ),
        (
            "SERVICE_MULTI_EXECUTE_TOOL",
            json!({
                "tools": [{ "tool_slug": "A", "arguments": {}, "acount": "a" }, { "arguments": {}, "acount": "b" }],
                "sync_response_to_workbench": false,
            }),
            &[
                "tools[0].acount: is unknown; the nearest known name is `account`",
                "tools[1].acount: is unknown; the nearest known name is `account`",
                "tools[1].tool_slug: is required",
            ],
        ),
        (
            "SERVICE_GET_TOOL_SCHEMAS",
            json!({ "include": ["all"] }),
            &["include[0]: ", "tool_slugs: is required"],
        ),
        (
            "SERVICE_UPSERT_RECIPE",
            json!({}),
            &["name: is required", "steps: is required"],
        ),
        (
            "SERVICE_UPSERT_RECIPE",
            json!({ "name": "Xyz", "steps": [{ "name": "a", "tool": "B" }, { "name": 5 }] }),
            &[
                "steps[0].tool: is unknown; the nearest known name is `tool_slug`",
                "steps[1].name: expected a string, got a number",
            ],
        ),
        (
            "SERVICE_UPSERT_RECIPE",
            json!({ "name": "Xyz", "steps": [
                { "name": "a", "acount": "b", "if": { "equals": [1, 1], "less": [2, 1] } },
                { "name": "b", "if": { "equals": [1, 2, 3] } },
            ] }),
            &[
                "steps[0].acount: is unknown; the nearest known name is `account`",
                "steps[0].if: must have exactly one of equals, less, ",
                "steps[1].if.equals: expected a list of 2 values, got 3",
            ],
        ),
    ] {
        let refused = execute_meta(&project, &session, slug, arguments).await;
        let mut problems = refused.expect(400).problems();
        problems.sort_unstable();
        assert_eq!(problems.len(), expected.len(), "{slug}: {problems:?}");
        for (problem, expected) in problems.iter().zip(expected) {
            assert!(problem.starts_with(expected), "{slug}: {problems:?}");
        }
    }
}

#[tokio::test]
async fn list_ranks_tools_as_sessions_do() {
    let host = Host::shared().await;
    let (project, thing) = (host.new_project().await, thing());
    let toolkit = parcels(host, &thing).await;
    let first = async |query: &str, filter: &str| {
        let path = format!("/tools?query={}{filter}", query.replace(' ', "+"));
        let found = project.get(&path).await.expect(200);
        found["items"][0]["slug"].clone()
    };
    let delete = format!("{}_DELETE", toolkit.to_uppercase());
    let use_case = format!("please remove one {thing} from my list");
    assert_eq!(first(&use_case, "").await, delete);
    assert_eq!(first(&use_case, "&include_deprecated=null").await, delete);
    assert_eq!(first(&use_case, "&toolkit_slug=none").await, Value::Null);
    let literal = &delete[..delete.len() - 1];
    assert_eq!(first(literal, "").await, delete);
}
