//! Parameters and members that the API does not know, and values of wrong types.

use harness::{Answer, Guest, Host, client::Body, guest};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    description::{CLIENT_OPERATIONS, Clients},
    given,
    tool_router_sessions::{SESSION_PATH, amys_session, create, execute_meta},
};

fn warnings(answer: &Answer) -> Vec<&str> {
    let values = answer.headers.get_all("x-toolhost-warning").into_iter();
    values.map(|value| value.to_str().unwrap()).collect()
}

#[tokio::test]
async fn unknown_names_are_ignored_with_a_warning() {
    let project = Host::shared().await.new_project().await;
    let execute = format!("/tools/execute/{}", given::shared_echo().await);
    let config = given::auth_config(&project).await;
    let toolkit = given::keyed().await;
    let requests = json!([
        ["GET", "/toolkits?source=x&limit=1", null, ["unknown query parameter `source` is ignored; the nearest known name is `search`"]],
        ["GET", "/connected_accounts?_=1&zzzzzzzz=1", null, ["unknown query parameter `_` is ignored", "unknown query parameter `zzzzzzzz` is ignored"]],
        ["GET", "/auth/session/info?expand=%0d%0aall", null, ["unknown query parameter `expand` is ignored"]],
        ["GET", format!("/tools?toolkit_versions%5B{toolkit}%5D=latest&cursor="), null, []],
        ["GET", "/tools?toolkit_versions%5BZZZZ%5D=20200101_00", null, ["toolkit_versions: ZZZZ does not exist"]],
        ["GET", "/trigger_instances/active?connectedAccountIds=a&user_ids[]=b", null, []],
        ["GET", "/mcp/servers?page_no=1&limit=null", null, []],
        ["GET", "/toolkits?limit=null", null, []],
        ["GET", format!("/tools?toolkit_slug={toolkit},{}", &toolkit[1..]), null, [format!("toolkit_slug: {} does not exist; did you mean `{toolkit}`?", &toolkit[1..])]],
        ["GET", "/files/list?tool_slug=ZZZZ", null, ["tool_slug: ZZZZ does not exist"]],
        ["POST", "/connected_accounts/link", { "auth_config_id": config, "user_id": "amy", "shade": {} }, ["unknown body member `shade` is ignored"]],
        ["POST", "/auth_configs", { "toolkit": { "slug": toolkit }, "auth_config": { "type": "use_custom_auth", "authScheme": "API_KEY", "credentials": {}, "nme": "n" } }, ["unknown body member `auth_config.nme` is ignored; the nearest known name is `auth_config.name`"]],
        ["POST", execute, { "arguments": { "any": 1 }, "version": "latest", "user_id": "amy" }, []],
    ]);
    for request in requests.as_array().unwrap() {
        let text = |index: usize| request[index].as_str().unwrap();
        let method = Method::from_bytes(text(0).as_bytes()).unwrap();
        let body = match &request[2] {
            Value::Null => Body::None,
            body => Body::Json(body.clone()),
        };
        let answer = project.send(method, text(1), body, &[]).await;
        assert!(
            (200..300).contains(&answer.status),
            "{request}: {answer:#?}"
        );
        assert_eq!(json!(warnings(&answer)), request[3], "{request}");
    }
}

#[tokio::test]
async fn misspelled_arguments_are_refused_and_others_named() {
    let host = Host::shared().await;
    let mut manifest = guest::manifest(&given::slug());
    let properties = json!({ "text": { "type": "string" }, "algorithm": { "type": "string" } });
    manifest["tools"][0]["input"] = json!({ "type": "object", "properties": properties });
    host.publish(Guest::echo().component(), &manifest).await;
    let slug = manifest["slug"].as_str().unwrap();
    let (project, tool) = (host.new_project().await, guest::tool(slug));
    let session = json!({ "user_id": "amy", "toolkits": { "enable": [slug] } });
    let session = create(&project, session).await;
    let direct = format!("/tools/execute/{tool}");
    let in_session = format!("{SESSION_PATH}/{session}/execute");
    for (path, mut body) in [
        (direct, json!({ "version": "latest" })),
        (in_session, json!({ "tool_slug": tool })),
    ] {
        body["arguments"] = json!({ "text": "x", "algoritm": "md5" });
        let refused = project.post(&path, &body).await.expect(400);
        let problem = "unknown argument `algoritm`: did you mean `algorithm`?";
        assert_eq!(refused.problems(), [problem], "{path}");
        body["arguments"] = json!({ "text": "x", "thread": 1 });
        let ran = project.post(&path, &body).await.expect(200);
        assert_eq!(ran["data"], body["arguments"], "{path}");
        let warning = "the schema of the tool does not describe the argument `thread`";
        assert_eq!(warnings(&ran), [warning], "{path}");
    }
}

#[tokio::test]
async fn arguments_outside_of_their_member_are_explained() {
    let host = Host::shared().await;
    let mut manifest = guest::manifest(&given::slug());
    let properties = json!({ "html": { "type": "string" } });
    manifest["tools"][0]["input"] =
        json!({ "type": "object", "properties": properties, "required": ["html"] });
    host.publish(Guest::echo().component(), &manifest).await;
    let tool = guest::tool(manifest["slug"].as_str().unwrap());
    let project = host.new_project().await;
    let path = format!("/tools/execute/{tool}");
    for (body, explanation) in [
        (json!({}), ""),
        (
            json!({ "html": "x" }),
            "; send the arguments inside `arguments`, which the body lacks",
        ),
    ] {
        let body = given::merged(json!({ "version": "latest" }), &body);
        let refused = project.post(&path, &body).await.expect(400);
        let problem = format!("html: is required{explanation}");
        assert_eq!(refused.problems(), [problem]);
    }
    let without_slug = project.post("/tools/execute", &json!({})).await;
    let text = without_slug.expect(405).text;
    assert!(text.contains("/tools/execute/{tool_slug}`?"), "{text}");
}

#[tokio::test]
async fn unknown_arguments_of_meta_tools_are_reported() {
    let (project, session) = amys_session().await;
    let manage = json!({ "toolkits": ["a"], "reinitiate": true });
    for (slug, arguments, meant) in [
        ("SERVICE_GET_RECIPE", json!({ "slugg": "A" }), "slug"),
        ("SERVICE_MANAGE_CONNECTIONS", manage, "reinitiate_all"),
    ] {
        let refused = execute_meta(&project, &session, slug, arguments).await;
        let problems = refused.expect(400).problems();
        let hint = format!("did you mean `{meant}`?");
        assert!(problems[0].contains(&hint), "{slug}: {problems:?}");
    }
    let unrelated = json!({ "timeout": 1 });
    let listed = execute_meta(&project, &session, "SERVICE_GET_RECIPE", unrelated).await;
    let warning = "the schema of the tool does not describe the argument `timeout`";
    assert_eq!(warnings(&listed.expect(200)), [warning]);
}

#[tokio::test]
async fn misspelled_and_foreign_filters_are_refused() {
    let project = Host::shared().await.new_project().await;
    for (path, hint) in [
        ("/connected_accounts?user_id=eve", "`user_ids`"),
        ("/connected_accounts?toolkitSlugs=a", "`toolkit_slugs`"),
        ("/connected_accounts?limi=1&_=1", "`limit`"),
        ("/trigger_instances/active?user_id=eve", "`user_ids`"),
        ("/trigger_instances/stream?user_id=eve", "`user_ids`"),
        ("/toolkits?serch=x", "`search`"),
        ("/auth_configs?isManaged=true", "`is_service_managed`"),
        ("/mcp/servers?toolkit=a", "`toolkits`"),
        ("/mcp/servers?status=a", "takes name, toolkits, "),
        (
            "/auth/session/info?user_id=eve",
            "takes no query parameters",
        ),
    ] {
        let refused = project.get(path).await.expect(400);
        assert_eq!(warnings(&refused), [""; 0], "{path}");
        let problems = refused.problems();
        assert!(problems[0].contains("is not allowed"), "{problems:?}");
        assert!(problems[0].contains(hint), "{path}: {problems:?}");
    }
    let config = given::auth_config(&project).await;
    let path = format!("/auth_configs/{config}");
    let misspelled = format!("{path}?revoke_on_delet=true");
    project.delete(&misspelled).await.expect(400);
    project.get(&path).await.expect(200);
}

#[tokio::test]
async fn unknown_filters_in_bodies_are_refused() {
    let project = Host::shared().await.new_project().await;
    for path in [
        "/logs/tool_execution",
        "/internal/trigger/logs",
        "/internal/action_execution/logs",
        "/project/usage/tool_execution",
        "/toolkits/multi",
    ] {
        let body = json!({ "toolkit_slug": "gmail" });
        let problems = project.post(path, &body).await.expect(400).problems();
        assert!(problems[0].contains("toolkit_slug"), "{problems:?}");
        let filtered = format!("{path}?user_id=eve");
        project.post(&filtered, &json!({})).await.expect(400);
    }
}

#[tokio::test]
async fn every_wrong_type_names_its_member() {
    let project = Host::shared().await.new_project().await;
    let execute = format!("/tools/execute/{}", given::shared_echo().await);
    let wrong = json!({
        "toolkit": { "slug": "x" },
        "auth_config": {
            "type": "use_custom_auth", "name": 5, "authScheme": ["API_KEY"], "is_enabled_for_tool_router": "yes",
            "restrict_to_following_tools": ["A", null],
        },
    });
    let cases: [(&str, Value, &[&str]); 7] = [
        (
            "/auth_configs",
            wrong,
            &[
                "auth_config.authScheme: expected a string, got a list",
                "auth_config.is_enabled_for_tool_router: expected a boolean, got a string",
                "auth_config.name: expected a string, got a number",
                "auth_config.restrict_to_following_tools[1]: expected a string, got null",
            ],
        ),
        (
            "/auth_configs",
            json!({ "toolkit": { "slug": "x" }, "auth_config": {} }),
            &["auth_config.type: is required"],
        ),
        (
            "/connected_accounts",
            json!({ "auth_config": "ac_x", "connection": {} }),
            &["auth_config: expected an object, got a string"],
        ),
        (
            "/auth_configs",
            json!({ "toolkit": { "slug": "x" }, "auth_config": { "types": "use_custom_auth" } }),
            &["auth_config.type: is required; `types` was sent: did you mean `type`?"],
        ),
        (
            "/connected_accounts/link",
            json!({ "auth_config_id": given::auth_config(&project).await, "user_id": "" }),
            &["user_id: must have at least one character"],
        ),
        (
            "/connected_accounts",
            json!({ "auth_config": { "id": given::auth_config(&project).await }, "connection": { "user_id": "" } }),
            &["connection.user_id: must have at least one character"],
        ),
        (
            "/webhook_subscriptions",
            json!({ "webhook_url": "ftp://x", "enabled_events": [] }),
            &[
                "enabled_events: must name an event",
                "webhook_url: must be an https URL",
            ],
        ),
    ];
    for (path, body, expected) in cases {
        let answer = project.post(path, &body).await.expect(400);
        let mut problems = answer.problems();
        problems.sort();
        assert_eq!(problems, expected, "{path}: {body}");
    }
    let body = json!({
        "arguments": {}, "version": 5, "custom_auth_params": { "parameters": [
            { "in": "query", "value": "v" }, { "name": "n", "in": "cookie", "value": "v" },
        ] },
    });
    let answer = project.post(&execute, &body).await.expect(400);
    let expected = [
        "version: expected a string, got a number",
        "custom_auth_params.parameters[0].name: is required",
        "custom_auth_params.parameters[1].in: must be one of query, header",
    ];
    assert_eq!(answer.problems(), expected);
    let twice = r#"{"toolkit":{"slug":"x"},"auth_config":{"type":"a","type":"b"}}"#;
    let twice = Body::Raw("application/json", twice.into());
    let answer = project
        .send(Method::POST, "/auth_configs", twice, &[])
        .await;
    let problems = answer.expect(400).problems();
    let start = "auth_config.type: is given twice";
    assert!(problems[0].starts_with(start), "{problems:?}");
}

#[tokio::test]
async fn errors_list_what_they_are_about() {
    let project = Host::shared().await.new_project().await;
    let config = format!("/auth_configs/{}", given::auth_config(&project).await);
    let changed = project.patch(&config, &json!({ "zzzz": 1 })).await;
    assert_eq!(
        changed.expect(400).problems(),
        [
            "type: is required",
            "unknown body member `zzzz` is not allowed",
        ]
    );
    let broken = Body::Raw("application/json", br#"{"type": "a"#.into());
    let broken = project.send(Method::PATCH, &config, broken, &[]).await;
    assert_eq!(
        broken.expect(400).problems(),
        ["body: is not JSON: line 1, column 11: a string is not closed"]
    );
    for (path, problem) in [
        (
            "/auth_configs?cursor=x",
            "cursor: is not a cursor that the server returned for this list",
        ),
        (
            "/auth_configs/ac_short",
            "nanoid: the text is not the id of an auth config: `ac_` and at least 12 letters or digits",
        ),
    ] {
        let refused = project.get(path).await.expect(400);
        assert_eq!(refused.problems(), [problem], "{path}");
    }
}

#[tokio::test]
async fn errors_repeat_no_value_of_the_caller() {
    let project = Host::shared().await.new_project().await;
    let execute = format!("/tools/execute/{}", given::shared_echo().await);
    let value = "value-of-the-caller";
    let config = given::auth_config(&project).await;
    for (path, body) in [
        (
            &*execute,
            json!({ "version": [value], "text": { "a": value } }),
        ),
        (&*execute, json!({ "connected_account_id": value })),
        (
            "/auth_configs",
            json!({ "toolkit": { "slug": given::keyed().await }, "auth_config": {
                "type": "use_custom_auth", "authScheme": value,
            } }),
        ),
        (
            "/connected_accounts",
            json!({ "auth_config": { "id": config }, "connection": { "state": {
                "authScheme": value, "val": {},
            } } }),
        ),
        (
            "/tool_router/session",
            json!({ "user_id": "amy", "tags": [value] }),
        ),
        (
            "/tool_router/session",
            json!({ "user_id": "amy", "toolkits": { "enable": [format!("{value}!")] } }),
        ),
        (
            "/tool_router/session",
            json!({ "user_id": "amy", "preload": { "tools": { "a": value } } }),
        ),
        (
            "/webhook_subscriptions",
            json!({ "webhook_url": "https://example.com", "enabled_events": [value] }),
        ),
    ] {
        let refused = project.post(path, &body).await.expect(400);
        assert!(!refused.text.contains(value), "{path}: {}", refused.text);
        assert!(!refused.text.contains("enum"), "{path}: {}", refused.text);
    }
    let body = json!({ "auth_config": { "id": config }, "connection": { "state": {
        "authScheme": "NO_SUCH_SCHEME", "val": {},
    } } });
    let refused = project.post("/connected_accounts", &body).await.expect(400);
    let problems = refused.problems();
    let expected = "connection.state.authScheme: must be one of ";
    assert!(problems[0].starts_with(expected), "{problems:?}");
}

#[tokio::test]
async fn long_lists_of_problems_are_counted() {
    let project = Host::shared().await.new_project().await;
    let list = vec![json!(1); 30];
    let body = json!({ "toolkit": { "slug": "x" }, "auth_config": {
        "type": "use_custom_auth", "restrict_to_following_tools": list,
    } });
    let refused = project.post("/auth_configs", &body).await;
    let problems = refused.expect(400).problems();
    assert_eq!(problems.len(), 21, "{problems:?}");
    assert_eq!(problems[20], "and at least 10 more");
}

#[tokio::test]
async fn values_out_of_range_are_refused() {
    let project = Host::shared().await.new_project().await;
    for (path, problem) in [
        (
            "/connected_accounts?statuses=READY",
            "statuses: must be one of",
        ),
        (
            "/connected_accounts?order_by=name",
            "order_by: must be one of",
        ),
        ("/toolkits?sort_by=stars", "sort_by: must be one of"),
        ("/tools?important=maybe", "important: must be true or false"),
        (
            "/auth_configs?deprecated_status=gone",
            "deprecated_status: must be one of",
        ),
        ("/auth_configs?limit=many", "limit: must be a number"),
        (
            "/connected_accounts?user_ids=",
            "user_ids: must not be empty",
        ),
        ("/files/list?tool_slug=", "tool_slug: must not be empty"),
        (
            "/tools?toolkit_versions=newest",
            "toolkit_versions: must be `latest` or a version",
        ),
        (
            "/triggers_types?toolkit_versions[gh]=20260101",
            "toolkit_versions: must be `latest` or a version",
        ),
        ("/connected_accounts?user_ids=%FF", "user_ids: contains"),
        (
            "/connected_accounts?user_ids[0]=a",
            "user_ids: takes no key in brackets",
        ),
        (
            "/connected_accounts?account_type=ALL&account_type=SHARED",
            "account_type: is sent with several values",
        ),
    ] {
        let problems = project.get(path).await.expect(400).problems();
        let is_named = problems.iter().any(|line| line.starts_with(problem));
        assert!(is_named, "{path}: {problems:?}");
    }
    let filter = json!({ "filters": [{ "field": "colour", "operator": "==", "value": "red" }] });
    let refused = project.post("/logs/tool_execution", &filter).await;
    refused.expect(400);
}

#[tokio::test]
async fn empty_booleans_are_refused_everywhere() {
    let host = Host::shared().await;
    let clients = Clients::of(host, host.new_project().await).await;
    for operation in CLIENT_OPERATIONS.iter() {
        for parameter in operation.parameters("query") {
            if parameter["schema"]["type"] != "boolean" {
                continue;
            }
            let name = parameter["name"].as_str().unwrap();
            let path = format!("{}?{name}=", operation.addressed());
            let client = clients.right(operation);
            let refused = client.send(operation.method(), &path, Body::None, &[]);
            let problems = refused.await.expect(400).problems();
            let expected = format!("{name}: must not be empty");
            assert!(problems[0].starts_with(&expected), "{path}: {problems:?}");
        }
    }
}

#[tokio::test]
async fn deletions_refuse_unknown_parameters() {
    let host = Host::shared().await;
    let clients = Clients::of(host, host.new_project().await).await;
    let deletions = CLIENT_OPERATIONS.iter();
    for operation in deletions.filter(|operation| operation.method == "DELETE") {
        let path = format!("{}?revoke=true", operation.addressed());
        let client = clients.right(operation);
        let refused = client.send(operation.method(), &path, Body::None, &[]);
        let problems = refused.await.expect(400).problems();
        let expected = "unknown query parameter `revoke` is not allowed";
        assert!(problems[0].starts_with(expected), "{path}: {problems:?}");
    }
}

#[tokio::test]
async fn malformed_ids_are_refused_in_every_path() {
    let host = Host::shared().await;
    let clients = Clients::of(host, host.new_project().await).await;
    let kinds = [
        "proj", "ac", "ca", "ti", "log", "ws", "wd", "we", "trs", "om",
    ];
    let mut sent = 0;
    for operation in CLIENT_OPERATIONS.iter() {
        let unknown = operation.unknown();
        for (name, id) in &unknown {
            let kind = id.split_once('_').map_or("", |(kind, _)| kind);
            if !kinds.contains(&kind) {
                continue;
            }
            let malformed = format!("{kind}_short");
            let values = unknown
                .iter()
                .map(|(other, id)| (*other, if other == name { &*malformed } else { *id }));
            let values: Vec<_> = values.collect();
            let client = clients.right(operation);
            let path = operation.filled(&values);
            let refused = client
                .send(operation.method(), &path, operation.body(false), &[])
                .await;
            assert_eq!(refused.status, 400, "{path}: {refused:#?}");
            refused.assert_envelope();
            sent += 1;
        }
    }
    assert!(sent > 40, "{sent}");
}
