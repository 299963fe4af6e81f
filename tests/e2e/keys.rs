//! API keys of a project: several keys, permissions and revocation.

use harness::{Answer, Client, Host, client::Body, host::Setup, unique};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::given;

const SESSION_INFO_PATH: &str = "/auth/session/info";

/// Creates a project and returns its client and the path of its keys.
async fn project(host: &Host) -> (Client, String) {
    let project = host.new_project().await;
    let id = project.project_id().await;
    (project, format!("/org/owner/project/{id}/api_keys"))
}

/// Creates another key of a project.
async fn key(host: &Host, keys: &str, body: Value) -> (Client, Answer) {
    let made = host.as_org().post(keys, &body).await.expect(201);
    (host.with_key(made["key"].as_str().unwrap()), made)
}

/// Returns the body that creates a key with permissions, each written as for the command: `AREA=ACCESS`.
fn may(permissions: &[&str]) -> Value {
    let pairs = permissions.iter().map(|pair| pair.split_once('=').unwrap());
    let permissions: Vec<_> = pairs
        .map(|(preset, access)| json!({ "preset": preset, "access": access }))
        .collect();
    json!({ "name": unique(4), "permissions": permissions })
}

/// Returns the entries of a list.
fn items(listed: &Answer) -> &[Value] {
    listed["items"].as_array().unwrap()
}

#[tokio::test]
async fn project_keys_are_revoked_independently() {
    let host = Host::shared().await;
    let (first, keys) = project(host).await;
    let (second, made) = key(host, &keys, json!({ "name": "ci" })).await;
    assert_eq!(first.project_id().await, second.project_id().await);
    let session = second.get(SESSION_INFO_PATH).await.expect(200);
    assert_eq!(session["api_key"]["name"], "ci");
    let listed = host.as_org().get(&keys).await.expect(200);
    let names: Vec<_> = items(&listed).iter().map(|key| &key["name"]).collect();
    assert_eq!(names, ["default", "ci"]);
    let path = format!("{keys}/{}", made["id"].as_str().unwrap());
    host.as_org().delete(&path).await.expect(200);
    second.get(SESSION_INFO_PATH).await.expect(401);
    first.get(SESSION_INFO_PATH).await.expect(200);
    host.as_org().delete(&path).await.expect(404);
}

#[tokio::test]
async fn last_use_of_a_key_survives_a_stop() {
    let host = Setup::embedded().start().await;
    let (client, keys) = project(&host).await;
    client.get(SESSION_INFO_PATH).await.expect(200);
    let (setup, _) = host.terminate().await;
    let host = setup.start().await;
    let listed = host.as_org().get(&keys).await.expect(200);
    assert!(
        listed["items"][0]["last_used_at"].is_string(),
        "{listed:#?}"
    );
}

#[tokio::test]
async fn requests_without_permission_count_toward_rates() {
    const RATE_PER_KEY: usize = 3;
    let host = Setup::new().with("limits.rate_per_key", RATE_PER_KEY.to_string());
    let host = host.start().await;
    let (_, keys) = project(&host).await;
    let (limited, _) = key(&host, &keys, may(&["tools=read"])).await;
    for _ in 0..RATE_PER_KEY {
        limited.get("/connected_accounts").await.expect(403);
    }
    limited.get("/connected_accounts").await.expect(429);
}

#[tokio::test]
async fn key_cannot_be_revoked_through_another_project() {
    let host = Host::shared().await;
    let ((victim, keys), (_, others)) = (project(host).await, project(host).await);
    let listed = host.as_org().get(&keys).await.expect(200);
    let id = items(&listed)[0]["id"].as_str().unwrap();
    let refused = host.as_org().delete(&format!("{others}/{id}")).await;
    refused.expect(404);
    victim.get(SESSION_INFO_PATH).await.expect(200);
    let path = "/org/owner/project/proj_AAAAAAAAAAAA/api_keys";
    host.as_org().get(path).await.expect(404);
    let made = host.as_org().post(path, &json!({ "name": "x" })).await;
    made.expect(404);
}

#[tokio::test]
async fn misspelled_restriction_creates_no_key() {
    let host = Host::shared().await;
    let (_, keys) = project(host).await;
    let nested = json!({ "name": "ci", "permissions": [{ "preset": "tools", "access": "read", "acess": "write" }] });
    for (path, body, named) in [
        (
            &*keys,
            json!({ "name": "ci", "permission": [] }),
            "permission",
        ),
        (
            &*keys,
            json!({ "name": "ci", "allowed_ip": ["10.0.0.1"] }),
            "allowed_ip",
        ),
        (&*keys, nested, "acess"),
        (
            &*keys,
            json!({ "name": "ci", "permissions": [
                { "preset": "tools", "access": "none" }, { "preset": "tools", "access": "read" },
            ] }),
            "permissions[1]: `tools` is there twice",
        ),
        (
            "/org/owner/project/new",
            json!({ "name": unique(8), "should_create_api_key": true, "api_key_permission": [] }),
            "api_key_permission",
        ),
        (
            &*keys,
            json!({ "name": "ci", "allowed_ips": [] }),
            "allowed_ips: is empty; leave it out for every address",
        ),
        (
            "/org/owner/project/new",
            json!({ "name": unique(8), "api_key_allowed_ips": ["10.0.0.1", "a", "b"] }),
            "api_key_allowed_ips[1]: is not an IP address or network; api_key_allowed_ips[2]: is",
        ),
    ] {
        let refused = host.as_org().post(path, &body).await.expect(400);
        let problem = refused.problems().join("; ");
        assert!(problem.contains(named), "{body}: {problem}");
    }
    let listed = host.as_org().get(&keys).await.expect(200);
    assert_eq!(items(&listed).len(), 1);
}

#[tokio::test]
async fn list_shows_last_use_of_a_key() {
    let host = Host::shared().await;
    let (_, keys) = project(host).await;
    let (client, made) = key(host, &keys, json!({ "name": "idle" })).await;
    assert_eq!(made["last_used_at"], Value::Null);
    let last_use =
        async || host.as_org().get(&keys).await.expect(200)["items"][1]["last_used_at"].clone();
    assert_eq!(last_use().await, Value::Null);
    client.get(SESSION_INFO_PATH).await.expect(200);
    let time = last_use().await;
    assert!(time.as_str().unwrap().ends_with('Z'), "{time}");
}

#[tokio::test]
async fn names_restrictions_and_number_of_keys_are_checked() {
    let host = Host::shared().await;
    let (_, keys) = project(host).await;
    for bad in [
        json!({ "name": "" }),
        json!({ "name": "x".repeat(101) }),
        json!({ "name": "x", "permissions": [{ "preset": "kitchen", "access": "read" }] }),
        json!({ "name": "x", "permissions": [{ "preset": "tools", "access": "all" }] }),
        json!({ "name": "x", "allowed_ips": ["somewhere"] }),
    ] {
        host.as_org().post(&keys, &bad).await.expect(400);
    }
    let another = json!({ "name": "one of many" });
    for _ in 1..95 {
        host.as_org().post(&keys, &another).await.expect(201);
    }
    let mut creates = JoinSet::new();
    for _ in 0..20 {
        let (org, keys, body) = (host.as_org(), keys.clone(), another.clone());
        creates.spawn(async move { org.post(&keys, &body).await.status });
    }
    let mut statuses = creates.join_all().await;
    statuses.sort_unstable();
    assert_eq!(statuses, [[201; 5].as_slice(), &[400; 15]].concat());
    let listed = host.as_org().get(&keys).await.expect(200);
    assert_eq!(items(&listed).len(), 100);
    host.as_org().post(&keys, &another).await.expect(400);
}

/// Returns true if the permission check lets a request pass.
async fn passes(client: &Client, method: &str, path: &str) -> bool {
    let body = match method {
        "GET" => Body::None,
        _ => Body::Json(json!({})),
    };
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let answer = client.send(method, path, body, &[]).await;
    if answer.status != 403 {
        assert_ne!(answer.status, 401, "{path}: {answer:#?}");
        return true;
    }
    answer.expect_error(403, "HTTP_Forbidden");
    false
}

#[tokio::test]
async fn restricted_key_reaches_only_its_areas() {
    let host = Host::shared().await;
    let (unrestricted, keys) = project(host).await;
    let tool = format!("/tools/execute/{}", given::shared_echo().await);
    let requests = [
        ("GET", "/auth_configs"),
        ("POST", "/auth_configs"),
        ("GET", "/connected_accounts"),
        ("POST", "/connected_accounts"),
        ("GET", "/tools"),
        ("GET", "/toolkits"),
        ("POST", tool.as_str()),
        ("POST", "/logs/tool_execution"),
        ("PATCH", "/org/project/config"),
    ];
    for (may_do, reached) in [
        ("", vec![]),
        ("auth_configs=read", vec![0]),
        (
            "auth_configs=write connected_accounts=read_write",
            vec![1, 2, 3],
        ),
        ("tools=read toolkits=read tool_execution=none", vec![4, 5]),
        ("tool_execution=write", vec![6]),
        (
            "observability=read session_management=read_write legacy_mcp=read",
            vec![7],
        ),
    ] {
        let permissions: Vec<_> = may_do.split_whitespace().collect();
        let (restricted, _) = key(host, &keys, may(&permissions)).await;
        restricted.get(SESSION_INFO_PATH).await.expect(200);
        for (place, (method, path)) in requests.into_iter().enumerate() {
            let expected = reached.contains(&place);
            let has_passed = passes(&restricted, method, path).await;
            assert_eq!(has_passed, expected, "{may_do}: {method} {path}");
            assert!(passes(&unrestricted, method, path).await, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn initial_key_permissions_survive_a_restart() {
    let host = Setup::new().start().await;
    let body = json!({
        "name": unique(8),
        "should_create_api_key": true,
        "api_key_permissions": [{ "preset": "toolkits", "access": "read" }],
    });
    let made = host.as_org().post("/org/owner/project/new", &body).await;
    let key = made["api_key"].as_str().unwrap();
    let host = host.kill().start().await;
    host.with_key(key).get("/toolkits").await.expect(200);
    host.with_key(key).get("/tools").await.expect(403);
}

#[tokio::test]
async fn key_is_refused_from_a_disallowed_address() {
    let host = Host::shared().await;
    let (_, keys) = project(host).await;
    for (addresses, status) in [
        (json!(["192.0.2.0/24"]), 403),
        (json!(["192.0.2.1", "127.0.0.0/8"]), 200),
    ] {
        let body = json!({ "name": "away", "allowed_ips": addresses });
        let (client, _) = key(host, &keys, body).await;
        client.get(SESSION_INFO_PATH).await.expect(status);
    }
}

#[tokio::test]
async fn leaked_key_can_be_revoked_without_disclosure() {
    let host = Host::shared().await;
    let (found, _) = project(host).await;
    let (untouched, _) = project(host).await;
    let revoke = async |body: Value| host.anonymous().post("/api_key_revocation", &body).await;
    let known = json!([
        found.key(),
        "ak_0123456789abcdefghijklmnopqrstuv",
        "not a key"
    ]);
    for keys in [known, json!(["nothing"])] {
        let answer = revoke(json!({ "api_keys": keys })).await.expect(200);
        assert_eq!(answer.json, json!({ "received": true }));
    }
    found.get(SESSION_INFO_PATH).await.expect(401);
    untouched.get(SESSION_INFO_PATH).await.expect(200);
    for bad in [
        json!({ "api_keys": [] }),
        json!({ "api_keys": vec!["x"; 101] }),
        json!({}),
    ] {
        revoke(bad).await.expect(400);
    }
}

#[tokio::test]
async fn start_replaces_a_revoked_organization_key() {
    let host = Setup::new().start().await;
    let keys = json!({ "api_keys": [host.org_key] });
    let revoked = host.anonymous().post("/api_key_revocation", &keys).await;
    revoked.expect(200);
    let path = "/org/owner/project/list";
    host.as_org().get(path).await.expect(401);
    let (before, again) = (host.org_key.clone(), host.kill().start().await);
    assert_ne!(again.org_key, before);
    again.as_org().get(path).await.expect(200);
}

#[tokio::test]
async fn commands_manage_keys_and_members() {
    let host = Setup::new().start().await;
    let run = |arguments: &[&str]| host.setup().command(arguments).succeeded();
    let options = ["--allow", "toolkits=read", "--from", "127.0.0.0/8"];
    let made = run(&[&["keys", "add", "demo", "dashboard"][..], &options].concat());
    let dashboard = host.with_key(made.trim());
    dashboard.get("/toolkits").await.expect(200);
    dashboard.get("/tools").await.expect(403);
    let listed = run(&["keys", "list", "demo"]);
    let line = listed.lines().find(|line| line.contains("dashboard"));
    let line = line.unwrap();
    assert!(
        line.contains("restricted") && line.contains("used 20") && !listed.contains(made.trim()),
        "{listed}"
    );
    let (id, _) = line.split_once(' ').unwrap();
    run(&["keys", "revoke", "demo", id]);
    dashboard.get("/toolkits").await.expect(401);

    let added = run(&["members", "add", "ada@example.com", "--project", "demo"]);
    let ada = host.with_user_key(added.trim());
    let session = ada.get(SESSION_INFO_PATH).await.expect(200);
    assert_eq!(session["org_member"]["role"], "viewer");
    assert!(run(&["members", "list"]).contains("ada@example.com"));
    run(&["members", "remove", "ada@example.com"]);
    ada.get(SESSION_INFO_PATH).await.expect(401);

    let refused = host.setup().command(&["keys", "add", "nowhere", "x"]);
    let said = refused.failed();
    assert!(said.contains("project `nowhere` does not exist"), "{said}");
    let similar = host.setup().command(&["keys", "list", "dmo"]).failed();
    let question = "`dmo` does not exist; did you mean `demo`?";
    assert!(similar.contains(question), "{similar}");
}

#[tokio::test]
async fn misspelled_options_of_key_commands_are_explained() {
    let host = Setup::new().start().await;
    let refused = |arguments: &[&str]| host.setup().command(arguments).stderr;
    for (allow, expected) in [
        (
            "session_tool_executon=write",
            "--allow: `session_tool_executon` is not an area; did you mean `session_tool_execution`?",
        ),
        (
            "tools=reed",
            "--allow: `reed` is not an access; did you mean `read`?",
        ),
    ] {
        let said = refused(&["keys", "add", "demo", "agent", "--allow", allow]);
        assert!(said.contains(expected), "{said}");
    }
    let said = refused(&["keys", "add", "demo", "x", "--from", "somewhere"]);
    assert!(
        said.contains("allowed_ips[0]") && !said.contains("correct the problems"),
        "{said}"
    );
    for url in ["127.0.0.1:19200", "localhost:19200"] {
        let said = refused(&["keys", "list", "demo", "--url", url]);
        assert!(said.contains("`http://`"), "{said}");
    }
}

#[tokio::test]
async fn keys_are_shown_beside_a_running_server() {
    let host = Setup::new().start().await;
    let added = host.setup().command(&["projects", "add", "staging"]);
    let added = added.succeeded();
    let expected = [&*host.org_key, &*host.project_key, added.trim()].map(str::to_owned);
    let show = |setup: &Setup| setup.command(&["keys", "show"]).succeeded();
    let shown = show(host.setup());
    for key in &expected {
        assert!(shown.contains(key), "{shown}");
    }
    assert!(
        shown.starts_with("OWNER") && shown.contains("  organization  "),
        "{shown}"
    );
    let (setup, _) = host.terminate().await;
    assert_eq!(show(&setup), shown);
}

#[tokio::test]
async fn commands_find_the_server_in_the_environment() {
    let host = Setup::new().start().await;
    let variables = |setup: Setup| {
        setup
            .with_variable("TOOLHOST_URL", &host.url)
            .with_variable("TOOLHOST_ORG_API_KEY", &host.org_key)
    };
    let elsewhere = variables(Setup::embedded());
    for arguments in [
        &["keys", "list", "demo"][..],
        &["members", "list"],
        &["oauth-apps", "list"],
        &["projects", "list"],
        &["toolkits", "list"],
    ] {
        elsewhere.command(arguments).succeeded();
    }
    // The variables name the server of the data directory, whose data are used while it is stopped.
    let own = variables(host.setup().clone());
    let (_, status) = host.terminate().await;
    assert!(status.success());
    own.command(&["toolkits", "list"]).succeeded();
}
