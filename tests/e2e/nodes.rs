//! Several servers over one database and one bucket: what one does, all know; what one holds, nobody else needs.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

use futures::future::join_all;
use harness::{
    BucketService, Client, Database, Guest, Host, Postgres, guest, host::Setup, unique, wait_for, wait_until,
};
use reqwest::Method;
use serde_json::json;

/// How long other servers may take to see what one has done.
const SEEN: Duration = Duration::from_secs(2);

/// Servers over one database, the first of which has made it.
async fn nodes<const N: usize>(bucket: &BucketService, database: Database) -> [Host; N] {
    let first = Setup::embedded().on(database).in_bucket(bucket).start().await;
    let rest = join_all((1..N).map(|_| first.setup().another().start())).await;
    let all: Vec<_> = std::iter::once(first).chain(rest).collect();
    all.try_into().expect("there are as many as were started")
}

fn database() -> Database {
    Postgres::shared().database(None)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_server_publishes_all_can_run_within_two_seconds() {
    let bucket = BucketService::start();
    let hosts: [Host; 3] = nodes(&bucket, database()).await;
    let slug = crate::given::slug();
    hosts[0].publish(Guest::echo().component(), &guest::manifest(&slug)).await;
    for host in &hosts {
        let path = format!("/toolkits/{slug}");
        wait_for(SEEN, "the toolkit is seen", || async { host.as_project().get(&path).await.status == 200 }).await;
    }
    for host in &hosts {
        let data = host.as_project().execute(&guest::tool(&slug), json!({ "a": 1 })).await.data();
        assert_eq!(data, json!({ "a": 1 }));
    }
    // The same bytes are published by another server, as if nobody had before.
    hosts[2].publish(Guest::echo().component(), &guest::manifest(&slug)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_one_server_ends_is_refused_by_all_within_two_seconds() {
    let bucket = BucketService::start();
    let [one, two]: [Host; 2] = nodes(&bucket, database()).await;
    let body = json!({ "name": format!("test-{}", unique(8)), "should_create_api_key": true });
    let made = one.as_org().post("/org/owner/project/new", &body).await.expect(200);
    let (id, key) = (made["id"].as_str().unwrap(), made["api_key"].as_str().unwrap());
    for host in [&one, &two] {
        host.with_key(key).get("/auth/session/info").await.expect(200);
    }
    one.as_org().post(&format!("/org/owner/project/{id}/regenerate_api_key"), &json!({})).await.expect(200);
    one.with_key(key).get("/auth/session/info").await.expect(401);
    let refused = || async { two.with_key(key).get("/auth/session/info").await.status == 401 };
    wait_for(SEEN, "the other server refuses the key", refused).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_start_on_an_empty_database_at_once_are_one_installation() {
    let bucket = BucketService::start();
    let first = Setup::embedded().on(database()).in_bucket(&bucket);
    // They share a master key, which the first start of all would make.
    let made = Setup::embedded().start().await.kill();
    let key = made.data().with_extension("key").display().to_string();
    let second = first.another().with("key_file", &key);
    let (one, two) = tokio::join!(first.with("key_file", &key).start(), second.start());
    assert_eq!(one.org_key, two.org_key);
    assert_eq!(one.project_key, two.project_key);
    for host in [&one, &two] {
        assert_eq!(host.as_org().get("/org/owner/project/list").await.expect(200)["data"].as_array().unwrap().len(), 1);
        host.as_project().get("/auth/session/info").await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_or_asked_to_stop_takes_nothing_with_it() {
    let bucket = BucketService::start();
    let [one, two, three]: [Host; 3] = nodes(&bucket, database()).await;
    one.publish(Guest::echo().component(), &guest::manifest("kept")).await;
    one.as_project().execute(&guest::tool("kept"), json!({})).await.data();
    let path = "/toolkits/kept";
    wait_until("the toolkit is seen", || async { two.as_project().get(path).await.status == 200 }).await;
    let project = two.as_project();
    one.kill();
    let (_, status) = three.terminate().await;
    assert!(status.success(), "{status}");
    project.execute(&guest::tool("kept"), json!({})).await.data();
    let logs = project.post("/logs/tool_execution", &json!({})).await.expect(200);
    assert_eq!(logs["logs"].as_array().unwrap().len(), 2, "the killed server's record is there: {logs:#?}");
}

/// Makes auth configs until told otherwise, and counts them; answers with the ids of those that were acknowledged.
async fn load(client: Client, stop: &AtomicBool, made: &AtomicUsize) -> Vec<String> {
    let mut acknowledged = Vec::new();
    let body = json!({
        "toolkit": { "slug": "loaded" },
        "auth_config": { "type": "use_custom_auth", "authScheme": "API_KEY", "credentials": {} },
    });
    while !stop.load(Ordering::Relaxed) {
        let answer = client.post("/auth_configs", &body).await;
        match answer.status {
            201 => {
                made.fetch_add(1, Ordering::Relaxed);
                acknowledged.push(answer["auth_config"]["id"].as_str().unwrap().to_owned());
            }
            503 => assert!(!answer.header("retry-after").is_empty(), "{answer:#?}"),
            _ => panic!("neither done nor to be tried again: {answer:#?}"),
        }
    }
    acknowledged
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_crashes_under_load_loses_nothing_that_was_acknowledged() {
    let (bucket, server) = (BucketService::start(), Postgres::start());
    let hosts: [Host; 2] = nodes(&bucket, server.database(None)).await;
    let manifest = guest::manifest_with_key("loaded", crate::given::bearer());
    hosts[0].publish(Guest::echo().component(), &manifest).await;
    for host in &hosts {
        let seen = || async { host.as_project().get("/toolkits/loaded").await.status == 200 };
        wait_until("the toolkit is seen", seen).await;
    }
    let (stop, made) = (AtomicBool::new(false), AtomicUsize::new(0));
    let clients = hosts.iter().flat_map(|host| [host.as_project(), host.as_project(), host.as_project()]);
    let loads = join_all(clients.map(|client| load(client, &stop, &made)));
    let crashes = async {
        for _ in 0..3 {
            let before = made.load(Ordering::Relaxed);
            wait_until("all write", || async { made.load(Ordering::Relaxed) > before + 20 }).await;
            let server = server.clone();
            tokio::task::spawn_blocking(move || server.restart()).await.unwrap();
        }
        let before = made.load(Ordering::Relaxed);
        wait_until("all write again", || async { made.load(Ordering::Relaxed) > before + 20 }).await;
        stop.store(true, Ordering::Relaxed);
    };
    let (acknowledged, ()) = tokio::join!(loads, crashes);
    let project = hosts[1].as_project();
    for id in acknowledged.concat() {
        project.send(Method::GET, &format!("/auth_configs/{id}"), harness::client::Body::None, &[]).await.expect(200);
    }
}

#[tokio::test]
async fn a_database_that_cannot_be_used_is_refused_in_words_and_without_its_password() {
    let server = Postgres::shared().database(None).url();
    let (address, _) = server.rsplit_once('/').unwrap();
    let guarded = address.replace("postgres@", "guarded:0pen-sesame@");
    for (store, said) in [
        ("postgres://someone:0pen-sesame@127.0.0.1:1/x".to_owned(), "check that the server runs"),
        (format!("{address}/nowhere?password=0pen-sesame"), "there is no such database"),
        (format!("{guarded}/postgres"), "the password is wrong"),
        ("mysql://someone:0pen-sesame@127.0.0.1/x".to_owned(), "postgres://user:password@host/database"),
    ] {
        let setup = Setup::embedded().with("store", &store).with("log", "debug");
        let refused = setup.clone().try_start().await.expect_err("a server without a database");
        assert!(refused.output.contains(said), "{refused:#?}");
        let doctor = setup.command(&["doctor"]);
        let told = format!("{}{}", doctor.stdout, doctor.stderr);
        assert!(doctor.code == Some(1) && told.contains(said), "{doctor:#?}");
        assert!(!told.contains("sesame") && !refused.output.contains("sesame"), "{told}{}", refused.output);
    }
}
