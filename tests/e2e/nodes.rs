//! Several servers on one database and one bucket: changes of one are visible to all, and no state
//! of one is needed by another.

use std::time::Duration;

use futures::future::join_all;
use harness::{
    BucketService, Database, Guest, Host, Postgres, guest, host::Setup, unique, wait_for,
    wait_until,
};
use reqwest::Method;
use serde_json::json;

use crate::{given, mcp_endpoints::request};

/// Time within which other servers must see a change.
const SEEN_WITHIN: Duration = Duration::from_secs(2);

/// Starts servers on one database, which the first one initializes.
async fn nodes<const N: usize>(bucket: &BucketService, database: Database) -> [Host; N] {
    let first = Setup::embedded()
        .on(database)
        .in_bucket(bucket)
        .start()
        .await;
    let rest = join_all((1..N).map(|_| first.setup().another().start())).await;
    let all: Vec<_> = std::iter::once(first).chain(rest).collect();
    all.try_into().expect("there are as many as were started")
}

fn database() -> Database {
    Postgres::shared().database(None)
}

#[tokio::test(flavor = "multi_thread")]
async fn published_toolkit_reaches_all_servers() {
    let bucket = BucketService::start();
    let hosts: [Host; 3] = nodes(&bucket, database()).await;
    let slug = given::slug();
    hosts[0]
        .publish(Guest::echo().component(), &guest::manifest(&slug))
        .await;
    for host in &hosts {
        let path = format!("/toolkits/{slug}");
        wait_for(SEEN_WITHIN, "the toolkit is seen", || async {
            host.as_project().get(&path).await.status == 200
        })
        .await;
    }
    for host in &hosts {
        let data = host
            .as_project()
            .execute(&guest::tool(&slug), json!({ "a": 1 }))
            .await
            .data();
        assert_eq!(data, json!({ "a": 1 }));
    }
    // Another server publishes the same bytes, and the request succeeds.
    hosts[2]
        .publish(Guest::echo().component(), &guest::manifest(&slug))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn revoked_key_is_refused_by_all_servers() {
    let bucket = BucketService::start();
    let [one, two]: [Host; 2] = nodes(&bucket, database()).await;
    let (id, project) = given::project(&one, json!({})).await;
    let key = project.key();
    for host in [&one, &two] {
        host.with_key(key)
            .get("/auth/session/info")
            .await
            .expect(200);
    }
    one.as_org()
        .post(
            &format!("/org/owner/project/{id}/regenerate_api_key"),
            &json!({}),
        )
        .await
        .expect(200);
    one.with_key(key)
        .get("/auth/session/info")
        .await
        .expect(401);
    let refused = || async { two.with_key(key).get("/auth/session/info").await.status == 401 };
    wait_for(SEEN_WITHIN, "the other server refuses the key", refused).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn required_mcp_key_is_required_by_all_servers() {
    let bucket = BucketService::start();
    let [one, two]: [Host; 2] = nodes(&bucket, database()).await;
    let slug = given::slug();
    one.publish(Guest::echo().component(), &guest::manifest(&slug))
        .await;
    let project = one.as_project();
    let body = json!({ "name": "Echo", "auth_config_ids": [], "no_auth_apps": [slug] });
    let url = given::mcp_server(&project, &body).await;
    let id = url.rsplit('/').next().unwrap();
    let url = format!("{}/v3/mcp/{id}", two.url);
    let status = async || {
        let client = two.anonymous();
        request(&client, &url, "ping", json!({}), &[]).await.status
    };
    assert_eq!(status().await, 200);
    let require = json!({ "require_mcp_api_key": true });
    let changed = project.patch("/org/project/config", &require).await;
    changed.expect(200);
    wait_for(SEEN_WITHIN, "the other server requires a key", || async {
        status().await == 401
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_mcp_server_is_gone_on_all_servers() {
    let bucket = BucketService::start();
    let [one, two]: [Host; 2] = nodes(&bucket, database()).await;
    let slug = given::slug();
    one.publish(Guest::echo().component(), &guest::manifest(&slug))
        .await;
    let project = one.as_project();
    let body = json!({ "name": "Echo", "auth_config_ids": [], "no_auth_apps": [slug] });
    let url = given::mcp_server(&project, &body).await;
    let id = url.rsplit('/').next().unwrap();
    let [here, there] = [&one, &two].map(|host| format!("{}/v3/mcp/{id}", host.url));
    let client = one.anonymous();
    let status = async |url: &str| request(&client, url, "ping", json!({}), &[]).await.status;
    assert_eq!((status(&here).await, status(&there).await), (200, 200));
    let removed = project.delete(&format!("/mcp/{id}")).await;
    removed.expect(200);
    assert_eq!(status(&here).await, 404);
    wait_for(SEEN_WITHIN, "the other server misses it", || async {
        status(&there).await == 404
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
        assert_eq!(
            host.as_org()
                .get("/org/owner/project/list")
                .await
                .expect(200)["data"]
                .as_array()
                .unwrap()
                .len(),
            1
        );
        host.as_project()
            .get("/auth/session/info")
            .await
            .expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_or_stopped_server_loses_nothing() {
    let bucket = BucketService::start();
    let [one, two, three]: [Host; 3] = nodes(&bucket, database()).await;
    one.publish(Guest::echo().component(), &guest::manifest("kept"))
        .await;
    one.as_project()
        .execute(&guest::tool("kept"), json!({}))
        .await
        .data();
    let path = "/toolkits/kept";
    wait_until("the toolkit is seen", || async {
        two.as_project().get(path).await.status == 200
    })
    .await;
    let project = two.as_project();
    one.kill();
    let (_, status) = three.terminate().await;
    assert!(status.success(), "{status}");
    project
        .execute(&guest::tool("kept"), json!({}))
        .await
        .data();
    let logs = project
        .post("/logs/tool_execution", &json!({}))
        .await
        .expect(200);
    assert_eq!(
        logs["logs"].as_array().unwrap().len(),
        2,
        "the killed server's record is there: {logs:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_call_is_cancelled_through_any_server() {
    let bucket = BucketService::start();
    let [one, two]: [Host; 2] = nodes(&bucket, database()).await;
    let slug = given::slug();
    let sleeping = Guest {
        imports: guest::imports::SLEEP,
        execute: "(call $sleep (i32.const 50000)) (call $ok (local.get $args) (local.get $args_len))",
        ..Guest::default()
    };
    one.publish(sleeping.component(), &guest::manifest(&slug))
        .await;
    let project = one.as_project();
    let body = json!({ "name": "Sleep", "auth_config_ids": [], "no_auth_apps": [slug] });
    let url = given::mcp_server(&project, &body).await;
    let id = url.rsplit('/').next().unwrap();
    let connection = unique(22);
    let headers = [("mcp-session-id", &*connection)];
    let params = json!({ "name": guest::tool(&slug), "arguments": {} });
    let call = request(&project, &url, "tools/call", params, &headers);
    let other = format!("{}/v3/mcp/{id}", two.url);
    let notification = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 },
    });
    let notification = notification.to_string().into_bytes();
    let json = ("content-type", "application/json");
    let accept = ("accept", "application/json, text/event-stream");
    let headers = [headers[0], json, accept];
    let cancel = wait_until("the call has ended", async || {
        let client = two.anonymous();
        let sent = client.exchange(Method::POST, &other, &headers, notification.clone());
        assert_eq!(sent.await.status, 202);
        false
    });
    let ended = tokio::select! {
        ended = call => ended,
        () = cancel => unreachable!("it waits until the call has ended"),
    };
    let text = String::from_utf8_lossy(&ended.bytes).into_owned();
    assert!(text.contains("-32800"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_order_is_the_same_on_all_servers() {
    let bucket = BucketService::start();
    let hosts: [Host; 2] = nodes(&bucket, database()).await;
    let mut tools = Vec::new();
    for _ in 0..2 {
        let slug = given::slug();
        hosts[0]
            .publish(Guest::echo().component(), &guest::manifest(&slug))
            .await;
        tools.push(slug);
    }
    for (host, slug) in [(0, &tools[0]), (1, &tools[1]), (1, &tools[1])] {
        let project = hosts[host].as_project();
        let ran = || async {
            let called = json!({ "arguments": {} });
            let path = format!("/tools/execute/{}", guest::tool(slug));
            project.post(&path, &called).await.status == 200
        };
        wait_for(SEEN_WITHIN, "the toolkit is seen", ran).await;
    }
    for host in &hosts {
        wait_for(
            SEEN_WITHIN,
            "the counts of both servers are seen",
            || async {
                let listed = host.as_project().get("/toolkits?sort_by=usage").await;
                listed["items"][0]["slug"] == tools[1] && listed["items"][1]["slug"] == tools[0]
            },
        )
        .await;
    }
}
