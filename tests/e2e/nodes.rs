//! Several servers on one database and one bucket: changes of one are visible to all, and no state
//! of one is needed by another.

use std::{os::unix::fs::PermissionsExt, time::Duration};

use futures::future::join_all;
use harness::{
    BucketService, Client, Database, Guest, Host, Postgres, guest, host::Setup, unique, wait_for,
    wait_until,
};
use reqwest::Method;
use serde_json::json;

use crate::{given, mcp_endpoints::request};

/// Time within which other servers must see a change.
const SEEN_WITHIN: Duration = Duration::from_secs(2);

fn database() -> Database {
    Postgres::shared().database(None)
}

/// Starts servers on one database and one bucket, which the first one initializes.
async fn nodes<const N: usize>() -> (BucketService, [Host; N]) {
    let bucket = BucketService::start();
    let first = Setup::embedded()
        .on(database())
        .in_bucket(&bucket)
        .start()
        .await;
    let rest = join_all((1..N).map(|_| first.setup().another().start())).await;
    let all: Vec<_> = std::iter::once(first).chain(rest).collect();
    let all = all.try_into().expect("there are as many as were started");
    (bucket, all)
}

/// Waits until a change of one server is seen on another.
async fn wait_until_seen<F: Future<Output = bool>>(what: &str, is_seen: impl FnMut() -> F) {
    wait_for(SEEN_WITHIN, what, is_seen).await;
}

async fn publish(host: &Host, guest: &Guest<'_>, slug: &str) {
    host.publish(guest.component(), &guest::manifest(slug))
        .await;
}

/// Publishes a guest on the first server and creates an MCP server for its tool. Returns the tool and
/// the address of the MCP server at each server.
async fn mcp_server(hosts: &[Host; 2], guest: &Guest<'_>) -> (String, [String; 2]) {
    let slug = given::slug();
    publish(&hosts[0], guest, &slug).await;
    let url = given::mcp_server_of(&hosts[0].as_project(), &slug).await;
    let id = url.rsplit('/').next().unwrap();
    let addresses = [0, 1].map(|number| format!("{}/v3/mcp/{id}", hosts[number].url));
    (guest::tool(&slug), addresses)
}

async fn ping(client: &Client, url: &str) -> u16 {
    request(client, url, "ping", json!({}), &[]).await.status
}

#[tokio::test(flavor = "multi_thread")]
async fn published_toolkit_reaches_all_servers() {
    let (_bucket, hosts) = nodes::<3>().await;
    let slug = given::slug();
    publish(&hosts[0], &Guest::echo(), &slug).await;
    for host in &hosts {
        let path = format!("/toolkits/{slug}");
        wait_until_seen("the toolkit is seen", async || {
            host.as_project().get(&path).await.status == 200
        })
        .await;
    }
    for host in &hosts {
        let project = host.as_project();
        let tool = guest::tool(&slug);
        let ran = project.execute(&tool, json!({ "a": 1 })).await;
        assert_eq!(ran.data(), json!({ "a": 1 }));
    }
    // Another server publishes the same bytes, and the request succeeds.
    publish(&hosts[2], &Guest::echo(), &slug).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn revoked_key_is_refused_by_all_servers() {
    const SESSION_INFO_PATH: &str = "/auth/session/info";
    let (_bucket, [one, two]) = nodes::<2>().await;
    let (id, project) = given::project(&one, json!({})).await;
    let [here, there] = [&one, &two].map(|host| host.with_key(project.key()));
    for client in [&here, &there] {
        client.get(SESSION_INFO_PATH).await.expect(200);
    }
    let path = format!("/org/owner/project/{id}/regenerate_api_key");
    one.as_org().post(&path, &json!({})).await.expect(200);
    here.get(SESSION_INFO_PATH).await.expect(401);
    wait_until_seen("the other server refuses the key", async || {
        there.get(SESSION_INFO_PATH).await.status == 401
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn change_of_mcp_server_is_seen_by_all() {
    let (_bucket, hosts) = nodes::<2>().await;
    let (_, [here, there]) = mcp_server(&hosts, &Guest::echo()).await;
    let client = hosts[0].anonymous();
    assert_eq!(ping(&client, &here).await, 200);
    assert_eq!(ping(&client, &there).await, 200);
    let project = hosts[0].as_project();
    given::configure(&project, json!({ "require_mcp_api_key": true })).await;
    wait_until_seen("the other server requires a key", async || {
        ping(&client, &there).await == 401
    })
    .await;
    let id = here.rsplit('/').next().unwrap();
    project.delete(&format!("/mcp/{id}")).await.expect(200);
    assert_eq!(ping(&client, &here).await, 404);
    wait_until_seen("the other server misses it", async || {
        ping(&client, &there).await == 404
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_first_starts_form_one_installation() {
    let bucket = BucketService::start();
    let first = Setup::embedded().on(database()).in_bucket(&bucket);
    // The servers share a master key, which the first start of an installation creates.
    let made = Setup::embedded().start().await.kill();
    let key = made.data().with_extension("key").display().to_string();
    let second = first.another().with("key_file", &key);
    let (one, two) = tokio::join!(first.with("key_file", &key).start(), second.start());
    assert_eq!(one.org_key, two.org_key);
    assert_eq!(one.project_key, two.project_key);
    for host in [&one, &two] {
        let listed = host.as_org().get("/org/owner/project/list").await;
        assert_eq!(listed.expect(200)["data"].as_array().unwrap().len(), 1);
        host.as_project().project_id().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_or_stopped_server_loses_nothing() {
    let (_bucket, [one, two, three]) = nodes::<3>().await;
    publish(&one, &Guest::echo(), "kept").await;
    let tool = guest::tool("kept");
    one.as_project().execute(&tool, json!({})).await.data();
    wait_until_seen("the toolkit is seen", async || {
        two.as_project().get("/toolkits/kept").await.status == 200
    })
    .await;
    let project = two.as_project();
    one.kill();
    let (_, status) = three.terminate().await;
    assert!(status.success(), "{status}");
    project.execute(&tool, json!({})).await.data();
    // One of the records is that of the killed server.
    let logs = project.post("/logs/tool_execution", &json!({})).await;
    assert_eq!(logs["logs"].as_array().unwrap().len(), 2, "{logs:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_call_is_cancelled_through_any_server() {
    let (_bucket, hosts) = nodes::<2>().await;
    let sleeping = Guest {
        imports: guest::imports::SLEEP,
        execute: "(call $sleep (i32.const 50000)) (call $ok (local.get $args) (local.get $args_len))",
        ..Guest::default()
    };
    let (tool, [here, there]) = mcp_server(&hosts, &sleeping).await;
    let project = hosts[0].as_project();
    let connection = unique(22);
    let headers = [("mcp-session-id", &*connection)];
    let params = json!({ "name": tool, "arguments": {} });
    let call = request(&project, &here, "tools/call", params, &headers);
    let notification = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 },
    });
    let notification = notification.to_string().into_bytes();
    let json = ("content-type", "application/json");
    let accept = ("accept", "application/json, text/event-stream");
    let headers = [headers[0], json, accept];
    let cancel = wait_until("the call has ended", async || {
        let client = hosts[1].anonymous();
        let sent = client.exchange(Method::POST, &there, &headers, notification.clone());
        assert_eq!(sent.await.status, 202);
        false
    });
    let ended = tokio::select! {
        ended = call => ended,
        () = cancel => unreachable!("it waits until the call has ended"),
    };
    let text = ended.text();
    assert!(text.contains("-32800"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_order_is_the_same_on_all_servers() {
    let (_bucket, hosts) = nodes::<2>().await;
    let slugs = [given::slug(), given::slug()];
    for slug in &slugs {
        publish(&hosts[0], &Guest::echo(), slug).await;
    }
    for (host, slug) in [(0, &slugs[0]), (1, &slugs[1]), (1, &slugs[1])] {
        let project = hosts[host].as_project();
        wait_until_seen("the toolkit is seen", async || {
            project.execute(&guest::tool(slug), json!({})).await.status == 200
        })
        .await;
    }
    for host in &hosts {
        wait_until_seen("the counts of both servers are seen", async || {
            let listed = host.as_project().get("/toolkits?sort_by=usage").await;
            listed["items"][0]["slug"] == slugs[1] && listed["items"][1]["slug"] == slugs[0]
        })
        .await;
    }
}

#[tokio::test]
async fn further_server_writes_its_keys_file() {
    let one = Setup::embedded().on(database()).start().await;
    let further = one.setup().another();
    // A volume is there before the server that uses it.
    std::fs::create_dir(further.data()).unwrap();
    let private = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(further.data(), private).unwrap();
    let two = further.start().await;
    assert_eq!(two.project_key, one.project_key);
    let command = two.setup().command(&["projects", "list"]);
    assert!(command.succeeded().contains("demo"));
}
