//! Tools: their catalog entries and their execution.

use harness::{Guest, Host, guest};
use serde_json::{Value, json};

use crate::given;

/// Returns the slug of a toolkit with a strict schema, a tag and a second tool.
async fn strict() -> &'static str {
    static STRICT_SLUG: tokio::sync::OnceCell<String> = tokio::sync::OnceCell::const_new();
    STRICT_SLUG.get_or_init(|| async {
        let slug = given::slug();
        let mut manifest = guest::manifest(&slug);
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
    assert_eq!(
        tool["description"],
        "Finds a needle in a haystack.\n\n- quickly"
    );
}

#[tokio::test]
async fn arguments_round_trip_unchanged() {
    let project = Host::shared().await.new_project().await;
    let arguments = r#"{"z":"𝄞 \"quoted\" \\ \u0001","a":1e300,"m":12345678901234567,"half":0.1}"#;
    let body = format!(r#"{{"arguments":{arguments},"version":"latest"}}"#);
    let path = format!("/tools/execute/{}", given::shared_echo().await);
    let body = harness::client::Body::Raw("application/json", body.into_bytes());
    let answer = project.send(reqwest::Method::POST, &path, body, &[]).await;
    assert_eq!(
        answer.data(),
        serde_json::from_str::<Value>(arguments).unwrap()
    );
}

#[tokio::test]
async fn invalid_arguments_list_every_problem() {
    let project = Host::shared().await.new_project().await;
    let tool = guest::tool(strict().await);
    let answer = project
        .execute(&tool, json!({ "count": 0, "name": 7 }))
        .await
        .expect(400);
    answer.assert_envelope();
    let problems = answer.problems();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(
        problems.iter().any(|line| line.contains("count")),
        "{problems:?}"
    );
    assert!(
        problems.iter().any(|line| line.contains("name")),
        "{problems:?}"
    );
    let missing = project.execute(&tool, json!({})).await.expect(400);
    assert_eq!(missing.problems().len(), 2, "{missing:?}");
    assert_eq!(
        project
            .execute(&tool, json!({ "count": 1, "name": "x" }))
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn an_unknown_tool_is_not_found() {
    let project = Host::shared().await.new_project().await;
    for answer in [
        project.execute("NO_SUCH_TOOL", json!({})).await,
        project.get("/tools/NO_SUCH_TOOL").await,
    ] {
        let answer = answer.expect_error(404, "Tool_ToolNotFound");
        answer.assert_envelope();
        assert_eq!(answer["error"]["code"], 2401);
    }
}

#[tokio::test]
async fn slugs_are_found_in_any_case() {
    let project = Host::shared().await.new_project().await;
    let tool = given::shared_echo().await.to_lowercase();
    assert_eq!(
        project.execute(&tool, json!({ "a": 1 })).await.data(),
        json!({ "a": 1 })
    );
}

#[tokio::test]
async fn arguments_and_text_are_mutually_exclusive() {
    let project = Host::shared().await.new_project().await;
    let path = format!("/tools/execute/{}", given::shared_echo().await);
    project
        .post(
            &path,
            &json!({ "arguments": {}, "text": "do it", "version": "latest" }),
        )
        .await
        .expect(400);
    let answer = project
        .post(&path, &json!({ "text": "do it", "version": "latest" }))
        .await
        .expect(501);
    answer.assert_envelope();
    project
        .post(&path, &json!({ "arguments": [1], "version": "latest" }))
        .await
        .expect(400);
}

#[tokio::test]
async fn the_old_name_of_the_user_is_understood() {
    let host = Host::shared().await;
    let project = host.new_project().await;
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
    let call = |more: Value| {
        let mut body = json!({ "arguments": arguments, "version": "latest" });
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let (project, path) = (project.clone(), path.clone());
        async move { project.post(&path, &body).await }
    };
    call(json!({ "connected_account_id": id, "user_id": "amy" }))
        .await
        .data();
    assert_eq!(
        call(json!({ "connected_account_id": id }))
            .await
            .expect(400)["error"]["code"],
        1811
    );
    assert_eq!(
        call(json!({ "connected_account_id": id, "user_id": "bob" }))
            .await
            .expect(400)["error"]["code"],
        1812
    );
    let unknown = call(json!({ "connected_account_id": "ca_AAAAAAAAAAAA", "user_id": "amy" }))
        .await
        .expect(404);
    assert_eq!(unknown["error"]["code"], 1810);
}

#[tokio::test]
async fn a_disabled_account_does_not_execute() {
    let project = Host::shared().await.new_project().await;
    let slug = given::keyed().await;
    let id = project.connect_with_key(slug, "amy").await;
    let status = format!("/connected_accounts/{id}/status");
    project
        .patch(&status, &json!({ "enabled": false }))
        .await
        .expect(200);
    let path = format!("/tools/execute/{}", guest::tool(slug));
    let body = json!({
        "arguments": { "url": "https://api.example.com/echo/off" }, "version": "latest",
        "user_id": "amy", "connected_account_id": id,
    });
    let refused = project.post(&path, &body).await;
    refused.expect_error(422, "ActionExecute_ConnectedAccountExpired");
    project
        .patch(&status, &json!({ "enabled": true }))
        .await
        .expect(200);
    project.post(&path, &body).await.data();
}

#[tokio::test]
async fn failed_tool_run_is_a_200_response() {
    let project = Host::shared().await.new_project().await;
    let slug = given::keyed().await;
    project.connect_with_key(slug, "default").await;
    let answer = project
        .execute(
            &guest::tool(slug),
            json!({ "url": "https://elsewhere.example.org/" }),
        )
        .await;
    let answer = answer.expect(200);
    assert_eq!(answer["successful"], false);
    assert!(
        answer["error"]
            .as_str()
            .is_some_and(|text| !text.is_empty()),
        "{answer:?}"
    );
    assert!(answer["log_id"].is_string());
}

#[tokio::test]
async fn tool_list_filters_by_toolkit_and_text() {
    let project = Host::shared().await.new_project().await;
    let slug = strict().await;
    let found = |path: String| {
        let project = project.clone();
        async move {
            let page = project.get(&path).await.expect(200);
            let slugs = page["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| item["slug"].as_str().unwrap().to_owned());
            slugs.collect::<std::collections::BTreeSet<_>>()
        }
    };
    let (first, second) = (guest::tool(slug), format!("{}_SECOND", slug.to_uppercase()));
    let both = [first.clone(), second.clone()].into();
    assert_eq!(found(format!("/tools?toolkit_slug={slug}")).await, both);
    assert_eq!(
        found(format!(
            "/tools?tool_slugs={first},{second}&toolkit_slug=other"
        ))
        .await,
        both
    );
    assert_eq!(
        found(format!("/tools?toolkit_slug={slug}&important=true")).await,
        [first.clone()].into()
    );
    assert_eq!(
        found(format!("/tools?toolkit_slug={slug}&tags=counting,other")).await,
        [first.clone()].into()
    );
    assert_eq!(
        found(format!("/tools?toolkit_slug={slug}&search=haystack")).await,
        [second.clone()].into()
    );
    assert_eq!(
        found(format!("/tools?toolkit_slug={slug}&query=haystack")).await,
        [second].into()
    );
    assert_eq!(
        found(format!("/tools?toolkit_slug[]={slug}&important=true")).await,
        [first].into()
    );
    assert!(
        found("/tools?toolkit_slug=no_such_toolkit".into())
            .await
            .is_empty()
    );
}

#[tokio::test]
async fn a_record_says_schema_hints_and_versions() {
    let project = Host::shared().await.new_project().await;
    let slug = strict().await;
    let tool = project
        .get(&format!("/tools/{}", guest::tool(slug)))
        .await
        .expect(200);
    assert_eq!(tool["toolkit"]["slug"], *slug);
    assert_eq!(
        tool["input_parameters"]["required"],
        json!(["count", "name"])
    );
    for part in ["data", "error", "successful"] {
        assert!(
            tool["output_parameters"]["properties"][part].is_object(),
            "{part}: {tool:?}"
        );
    }
    assert!(
        tool["tags"]
            .as_array()
            .unwrap()
            .contains(&json!("readOnlyHint")),
        "{tool:?}"
    );
    assert_eq!(tool["available_versions"], json!(["20260101_00"]));
    assert_eq!(tool["is_deprecated"], false);
    let slugs = project.get("/tools/enum").await.expect(200);
    assert!(
        slugs
            .json
            .as_array()
            .unwrap()
            .contains(&guest::tool(slug).into()),
        "the enum lists it"
    );
}

#[tokio::test]
async fn both_prefixes_show_schemas_that_clients_convert() {
    let host = Host::shared().await;
    let slug = given::slug();
    let mut manifest = guest::manifest(&slug);
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
