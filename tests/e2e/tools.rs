//! Tools: their catalog entries and their execution.

use harness::{Guest, Host, guest};
use serde_json::{Value, json};

use crate::given;

/// Returns the slug of a toolkit with a strict schema, a tag and a second tool.
async fn strict() -> &'static str {
    static STRICT_SLUG: tokio::sync::OnceCell<String> = tokio::sync::OnceCell::const_new();
    STRICT_SLUG.get_or_init(|| async {
        let (slug, mut manifest) = given::manifest();
        let tool = &mut manifest["tools"][0];
        tool["input"] = json!({
            "type": "object",
            "properties": { "count": { "type": "integer", "minimum": 1 }, "name": { "type": "string" } },
            "required": ["count", "name"],
        });
        tool["tags"] = json!(["important", "counting"]);
        tool["hints"] = json!({ "read_only": true });
        let mut second = tool.clone();
        second["slug"] = json!(format!("{}_SECOND", slug.to_uppercase()));
        second["tags"] = json!([]);
        second["description"] = json!("Finds a needle in a haystack.");
        manifest["tools"].as_array_mut().unwrap().push(second);
        Host::shared().await.publish(Guest::echo().component(), &manifest).await;
        slug
    })
    .await
}

#[tokio::test]
async fn unknown_tool_suggests_a_similar_one() {
    let project = Host::shared().await.new_project().await;
    let slug = strict().await.to_uppercase();
    let message = async |tool: &str| {
        let path = format!("/tools/execute/{tool}");
        let body = json!({ "arguments": {}, "version": "latest" });
        let refused = project.post(&path, &body).await.expect(404);
        refused["error"]["message"].as_str().unwrap().to_owned()
    };
    let question = format!("did you mean `{slug}_SECOND`?");
    for tool in [
        format!("{slug}_SECNOD"),
        format!("{slug}-second").to_lowercase(),
        format!("{}%20second", slug.to_lowercase()),
        format!("{}Second", slug.to_lowercase()),
    ] {
        let message = message(&tool).await;
        assert!(message.contains(&question), "{tool}: {message}");
    }
    let without_toolkit = message("SECOND").await;
    assert!(without_toolkit.contains("_SECOND`?"), "{without_toolkit}");
    let unlike = message(&format!("{slug}_WEATHER_FORECAST_OF_TODAY")).await;
    assert!(!unlike.contains("did you mean"), "{unlike}");
}

#[tokio::test]
async fn unknown_toolkit_and_trigger_type_suggest_similar_ones() {
    let project = Host::shared().await.new_project().await;
    let toolkit = given::keyed().await;
    let trigger = given::keyed_trigger().await;
    for (path, slug) in [("toolkits", toolkit), ("triggers_types", &*trigger)] {
        let misspelled = &slug[..slug.len() - 1];
        let refused = project.get(&format!("/{path}/{misspelled}")).await;
        let refused = refused.expect(404);
        let question = format!("did you mean `{slug}`?");
        assert!(refused.text.contains(&question), "{}", refused.text);
    }
}

#[tokio::test]
async fn lines_of_a_description_are_joined() {
    let host = Host::shared().await;
    let slug = given::slug();
    let mut manifest = guest::manifest(&slug);
    manifest["tools"][0]["description"] = json!("Finds a needle\nin a haystack.\n\n- quickly");
    host.publish(Guest::echo().component(), &manifest).await;
    let project = host.new_project().await;
    let path = format!("/tools/{}?version=latest", guest::tool(&slug));
    let tool = project.get(&path).await.expect(200);
    let joined = "Finds a needle in a haystack.\n\n- quickly";
    assert_eq!(tool["description"], joined);
}

#[tokio::test]
async fn arguments_round_trip_unchanged() {
    let project = Host::shared().await.new_project().await;
    let arguments = r#"{"z":"𝄞 \"quoted\" \\ \u0001","a":1e300,"m":12345678901234567,"half":0.1}"#;
    let body = format!(r#"{{"arguments":{arguments},"version":"latest"}}"#);
    let path = format!("/tools/execute/{}", given::shared_echo().await);
    let body = harness::client::Body::Raw("application/json", body.into_bytes());
    let answer = project.send(reqwest::Method::POST, &path, body, &[]).await;
    let expected: Value = serde_json::from_str(arguments).unwrap();
    assert_eq!(answer.data(), expected);
}

#[tokio::test]
async fn invalid_arguments_list_every_problem() {
    let project = Host::shared().await.new_project().await;
    let tool = guest::tool(strict().await);
    let wrong = json!({ "count": 0, "name": 7 });
    let answer = project.execute(&tool, wrong).await.expect(400);
    assert_eq!(answer.problems().len(), 2, "{answer:?}");
    for argument in ["count", "name"] {
        given::assert_contains(&answer["error"]["errors"], argument);
    }
    let missing = project.execute(&tool, json!({})).await.expect(400);
    assert_eq!(missing.problems().len(), 2, "{missing:?}");
    let right = json!({ "count": 1, "name": "x" });
    project.execute(&tool, right).await.expect(200);
}

#[tokio::test]
async fn an_unknown_tool_is_not_found() {
    let project = Host::shared().await.new_project().await;
    for answer in [
        project.execute("NO_SUCH_TOOL", json!({})).await,
        project.get("/tools/NO_SUCH_TOOL").await,
    ] {
        let answer = answer.expect_error(404, "Tool_ToolNotFound");
        assert_eq!(answer["error"]["code"], 2401);
    }
}

#[tokio::test]
async fn slugs_are_found_in_any_case() {
    let project = Host::shared().await.new_project().await;
    let tool = given::shared_echo().await.to_lowercase();
    let ran = project.execute(&tool, json!({ "a": 1 })).await;
    assert_eq!(ran.data(), json!({ "a": 1 }));
}

#[tokio::test]
async fn arguments_and_text_are_mutually_exclusive() {
    let project = Host::shared().await.new_project().await;
    let path = format!("/tools/execute/{}", given::shared_echo().await);
    for (mut body, status) in [
        (json!({ "arguments": {}, "text": "do it" }), 400),
        (json!({ "text": "do it" }), 501),
        (json!({ "arguments": [1] }), 400),
    ] {
        body["version"] = json!("latest");
        let refused = project.post(&path, &body).await;
        refused.expect(status);
    }
}

#[tokio::test]
async fn the_old_name_of_the_user_is_understood() {
    let project = Host::shared().await.new_project().await;
    let slug = given::keyed().await;
    project.connect_with_key(slug, "amy").await;
    let path = format!("/tools/execute/{}", guest::tool(slug));
    let arguments = json!({ "url": "https://api.example.com/echo/alias" });
    let body = json!({ "arguments": arguments, "entity_id": "amy", "version": "latest" });
    assert_eq!(project.post(&path, &body).await.data()["method"], "GET");
    let body = json!({ "arguments": arguments, "user_id": "bob", "version": "latest" });
    let answer = project.post(&path, &body).await.expect(404);
    assert_eq!(answer["error"]["code"], 1810);
}

#[tokio::test]
async fn the_account_named_must_be_the_users() {
    let project = Host::shared().await.new_project().await;
    let slug = given::keyed().await;
    let id = project.connect_with_key(slug, "amy").await;
    let path = format!("/tools/execute/{}", guest::tool(slug));
    let arguments = json!({ "url": "https://api.example.com/echo/named" });
    let unknown = json!({ "connected_account_id": "ca_AAAAAAAAAAAA", "user_id": "amy" });
    for (more, status, code) in [
        (
            json!({ "connected_account_id": id, "user_id": "amy" }),
            200,
            Value::Null,
        ),
        (json!({ "connected_account_id": id }), 400, json!(1811)),
        (
            json!({ "connected_account_id": id, "user_id": "bob" }),
            400,
            json!(1812),
        ),
        (unknown, 404, json!(1810)),
    ] {
        let body = json!({ "arguments": arguments, "version": "latest" });
        let body = given::merged(body, &more);
        let answer = project.post(&path, &body).await.expect(status);
        assert_eq!(answer["error"]["code"], code, "{more}");
        assert_eq!(answer["successful"] == true, status == 200, "{more}");
    }
}

#[tokio::test]
async fn a_disabled_account_does_not_execute() {
    let project = Host::shared().await.new_project().await;
    let slug = given::keyed().await;
    let id = project.connect_with_key(slug, "amy").await;
    let status = format!("/connected_accounts/{id}/status");
    let enable = async |enabled: bool| {
        let change = json!({ "enabled": enabled });
        project.patch(&status, &change).await.expect(200);
    };
    enable(false).await;
    let path = format!("/tools/execute/{}", guest::tool(slug));
    let body = json!({
        "arguments": { "url": "https://api.example.com/echo/off" }, "version": "latest",
        "user_id": "amy", "connected_account_id": id,
    });
    let refused = project.post(&path, &body).await;
    refused.expect_error(422, "ActionExecute_ConnectedAccountExpired");
    enable(true).await;
    project.post(&path, &body).await.data();
}

#[tokio::test]
async fn tool_list_filters_by_toolkit_and_text() {
    let project = Host::shared().await.new_project().await;
    let slug = strict().await;
    let (first, second) = (guest::tool(slug), format!("{}_SECOND", slug.to_uppercase()));
    for (query, expected) in [
        (format!("toolkit_slug={slug}"), &[&first, &second][..]),
        (
            format!("tool_slugs={first},{second}&toolkit_slug=other"),
            &[&first, &second],
        ),
        (format!("toolkit_slug={slug}&important=true"), &[&first]),
        (
            format!("toolkit_slug={slug}&tags=counting,other"),
            &[&first],
        ),
        (format!("toolkit_slug={slug}&search=haystack"), &[&second]),
        (format!("toolkit_slug={slug}&query=haystack"), &[&second]),
        (format!("toolkit_slug[]={slug}&important=true"), &[&first]),
        ("toolkit_slug=no_such_toolkit".to_owned(), &[]),
    ] {
        let page = project.get(&format!("/tools?{query}")).await.expect(200);
        let items = page["items"].as_array().unwrap().iter();
        let mut slugs: Vec<_> = items.map(|item| given::text(&item["slug"])).collect();
        slugs.sort_unstable();
        assert_eq!(slugs, expected, "{query}");
    }
}

#[tokio::test]
async fn a_record_says_schema_hints_and_versions() {
    let project = Host::shared().await.new_project().await;
    let slug = strict().await;
    let tool = project.get(&format!("/tools/{}", guest::tool(slug))).await;
    let tool = tool.expect(200);
    assert_eq!(tool["toolkit"]["slug"], *slug);
    let required = json!(["count", "name"]);
    assert_eq!(tool["input_parameters"]["required"], required);
    for part in ["data", "error", "successful"] {
        let property = &tool["output_parameters"]["properties"][part];
        assert!(property.is_object(), "{part}: {tool:?}");
    }
    given::assert_contains(&tool["tags"], "\"readOnlyHint\"");
    assert_eq!(tool["available_versions"], json!(["20260101_00"]));
    assert_eq!(tool["is_deprecated"], false);
    let slugs = project.get("/tools/enum").await.expect(200);
    let slugs = slugs.json.as_array().unwrap();
    assert!(slugs.contains(&guest::tool(slug).into()));
}

#[tokio::test]
async fn both_prefixes_show_schemas_that_clients_convert() {
    let host = Host::shared().await;
    let (slug, mut manifest) = given::manifest();
    let properties = json!({
        "note": { "type": ["string", "null"] },
        "level": { "type": "string", "oneOf": [{ "const": "low" }, { "const": "high" }] },
    });
    manifest["tools"][0]["input"] = json!({ "type": "object", "properties": properties });
    host.publish(Guest::echo().component(), &manifest).await;
    let older = host.new_project().await;
    let newer = older.clone().with_newer_prefix();
    let single = json!({
        "note": { "type": "string", "nullable": true },
        "level": { "type": "string", "enum": ["low", "high"] },
    });
    for client in [older, newer] {
        let listed = client.get(&format!("/tools?toolkit_slug={slug}")).await;
        let read = client.get(&format!("/tools/{}", guest::tool(&slug))).await;
        for tool in [&listed.expect(200)["items"][0], &read.expect(200).json] {
            assert_eq!(tool["input_parameters"]["properties"], single);
            assert_eq!(tool["input_parameters"]["title"], tool["name"]);
        }
    }
}
