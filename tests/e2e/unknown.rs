//! Parameters and members that the API does not know, and values of wrong types.

use harness::{Answer, Host, client::Body};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    description::{CLIENT_OPERATIONS, Clients},
    given,
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
        ["GET", "/toolkits?serch=x&limit=1", null, ["unknown query parameter `serch` is ignored; the nearest known name is `search`"]],
        ["GET", "/connected_accounts?limi=1&zzzzzzzz=1", null, ["unknown query parameter `limi` is ignored; the nearest known name is `limit`", "unknown query parameter `zzzzzzzz` is ignored"]],
        ["GET", "/auth/session/info?expand=%0d%0aall", null, ["unknown query parameter `expand` is ignored"]],
        ["GET", "/tools?toolkit_versions%5Bgh%5D=latest&cursor=", null, []],
        ["GET", "/trigger_instances/active?connectedAccountIds=a&user_ids[]=b", null, []],
        ["GET", "/mcp/servers?page_no=1&limit=null", null, []],
        ["GET", "/toolkits?limit=null", null, []],
        ["POST", "/connected_accounts/link", { "auth_config_id": config, "user_id": "amy", "callbackUrl": "https://a.example" }, ["unknown body member `callbackUrl` is ignored; the nearest known name is `callback_url`"]],
        ["POST", "/auth_configs", { "toolkit": { "slug": toolkit }, "auth_config": { "type": "use_custom_auth", "authScheme": "API_KEY", "credentials": {}, "nme": "n" } }, ["unknown body member `auth_config.nme` is ignored; the nearest known name is `auth_config.name`"]],
        ["POST", execute, { "argument": 1, "arguments": { "any": 1 }, "version": "latest" }, ["unknown body member `argument` is ignored; the nearest known name is `arguments`"]],
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
async fn filters_of_other_lists_are_refused() {
    let project = Host::shared().await.new_project().await;
    for path in [
        "/connected_accounts?user_id=eve",
        "/connected_accounts?toolkitSlugs=a",
        "/trigger_instances/active?user_id=eve",
        "/trigger_instances/stream?user_id=eve",
    ] {
        let refused = project.get(path).await.expect(400);
        assert!(refused.text.contains("is not allowed"), "{}", refused.text);
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
    let cases: [(&str, Value, &[&str]); 4] = [
        (
            "/auth_configs",
            wrong,
            &[
                "auth_config.authScheme: expected a string, got a list",
                "auth_config.is_enabled_for_tool_router: expected a boolean, got a text",
                "auth_config.name: expected a string, got 5",
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
            &["auth_config: expected an object, got a text"],
        ),
        (
            "/connected_accounts/link",
            json!({ "auth_config_id": given::auth_config(&project).await, "user_id": "" }),
            &["user_id: must have at least one character"],
        ),
    ];
    for (path, body, expected) in cases {
        let answer = project.post(path, &body).await.expect(400);
        let mut problems = answer.problems();
        problems.sort();
        assert_eq!(problems, expected, "{path}: {body}");
    }
    let body = json!({ "arguments": {}, "version": 5 });
    let answer = project.post(&execute, &body).await.expect(400);
    let named = "body: version: invalid type: integer `5`";
    assert!(answer.problems()[0].starts_with(named), "{answer:#?}");
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
    ] {
        let answer = project.get(path).await.expect(400);
        let problems = answer.problems();
        assert!(
            problems.iter().any(|line| line.starts_with(problem)),
            "{path}: {problems:?}"
        );
    }
    let filter = json!({ "filters": [{ "field": "colour", "operator": "==", "value": "red" }] });
    project
        .post("/logs/tool_execution", &filter)
        .await
        .expect(400)
        .assert_envelope();
}

#[tokio::test]
async fn malformed_ids_are_refused_in_every_path() {
    let host = Host::shared().await;
    let clients = Clients::of(host, host.new_project().await).await;
    let mut sent = 0;
    for operation in CLIENT_OPERATIONS.iter() {
        let unknown = operation.unknown();
        for (name, id) in &unknown {
            let kind = id.split_once('_').map_or("", |(kind, _)| kind);
            if ![
                "proj", "ac", "ca", "ti", "log", "ws", "wd", "we", "trs", "om",
            ]
            .contains(&kind)
            {
                continue;
            }
            let malformed = format!("{kind}_short");
            let values = unknown
                .iter()
                .map(|(other, id)| (*other, if other == name { &*malformed } else { *id }));
            let values: Vec<_> = values.collect();
            let client = clients.right(operation);
            let method = Method::from_bytes(operation.method.as_bytes()).unwrap();
            let path = operation.filled(&values);
            let refused = client.send(method, &path, operation.body(false), &[]).await;
            assert_eq!(refused.status, 400, "{path}: {refused:#?}");
            refused.assert_envelope();
            sent += 1;
        }
    }
    assert!(sent > 40, "{sent}");
}
