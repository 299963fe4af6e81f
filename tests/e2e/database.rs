//! A failing database: it crashes, cuts connections, freezes, changes its tables, or has the wrong
//! certificate.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::future::join_all;
use harness::{
    Client, Guest, Host, PgBouncer, Postgres, SECRET_MARK,
    client::Body,
    host::{Setup, size},
    unique, wait_for, wait_until,
};
use reqwest::Method;
use serde_json::json;

use crate::given;

/// Time within which a request gets a response, whatever the database does.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);
/// Number of clients per server.
const CLIENTS_PER_SERVER: usize = 3;

/// Load of clients on servers, and the number of completed requests.
#[derive(Default)]
struct Load {
    stop: AtomicBool,
    made: AtomicUsize,
    /// True if the database is unavailable for some time, so that reads are refused too.
    away: bool,
}

impl Load {
    /// Creates and reads auth configs until stopped. Returns the names of the acknowledged ones.
    async fn work(&self, client: Client) -> Vec<String> {
        let mut acknowledged = Vec::new();
        while !self.stop.load(Ordering::Relaxed) {
            let name = unique(8);
            let answer = answered(&client, Method::POST, "/auth_configs", config(&name)).await;
            match answer.status {
                201 => {
                    self.made.fetch_add(1, Ordering::Relaxed);
                    acknowledged.push(name);
                }
                503 => assert!(!answer.header("retry-after").is_empty(), "{answer:#?}"),
                _ => panic!("neither done nor to be tried again: {answer:#?}"),
            }
            // The server itself repeats reads, provided that the database comes back soon.
            let read = answered(&client, Method::GET, "/auth_configs?limit=1", Body::None).await;
            if !(self.away && read.status == 503) {
                read.expect(200);
            }
        }
        acknowledged
    }

    /// Waits until more requests have completed.
    async fn goes_on(&self) {
        let before = self.made.load(Ordering::Relaxed);
        wait_until("all write", || async {
            self.made.load(Ordering::Relaxed) > before + 20
        })
        .await;
    }

    /// Cuts all connections to the database a number of times while clients send requests, and then asserts
    /// that every acknowledged auth config exists.
    async fn through_cuts(&self, hosts: &[&Host], times: usize) {
        let cuts = async {
            for _ in 0..times {
                let cut = "select count(pg_terminate_backend(pid)) from pg_stat_activity \
                           where datname = current_database() and application_name = 'toolhost'";
                let gone: usize = hosts[0].setup().database().say(cut)[0].parse().unwrap();
                assert!(gone > 0, "nobody was connected");
                self.goes_on().await;
            }
        };
        self.through(hosts, cuts).await;
    }

    /// Runs `trouble` while clients send requests, and then asserts that every acknowledged auth
    /// config exists.
    async fn through(&self, hosts: &[&Host], trouble: impl Future<Output = ()>) {
        let clients = hosts
            .iter()
            .flat_map(|host| (0..CLIENTS_PER_SERVER).map(|_| host.as_project()));
        let working = join_all(clients.map(|client| self.work(client)));
        let trouble = async {
            self.goes_on().await;
            trouble.await;
            self.goes_on().await;
            self.stop.store(true, Ordering::Relaxed);
        };
        let (acknowledged, ()) = tokio::join!(working, trouble);
        let mut found = BTreeSet::new();
        let mut cursor = String::new();
        loop {
            let path = format!("/auth_configs?limit=1000{cursor}");
            let page = hosts[0].as_project().get(&path).await.expect(200);
            for item in page["items"].as_array().unwrap() {
                let name = item["name"].as_str().unwrap().to_owned();
                assert!(found.insert(name), "it was made twice: {item:#}");
            }
            let Some(next) = page["next_cursor"].as_str() else {
                break;
            };
            cursor = format!("&cursor={next}");
        }
        let lost: Vec<_> = acknowledged
            .concat()
            .into_iter()
            .filter(|name| !found.contains(name))
            .collect();
        assert!(lost.is_empty(), "{lost:?}");
    }
}

fn config(name: &str) -> Body {
    let config = json!({ "type": "use_custom_auth", "authScheme": "API_KEY", "name": name, "credentials": {} });
    Body::Json(json!({ "toolkit": { "slug": "loaded" }, "auth_config": config }))
}

/// Sends a request that must get a response in time.
async fn answered(client: &Client, method: Method, path: &str, body: Body) -> harness::Answer {
    let answer = tokio::time::timeout(ANSWERED_WITHIN, client.send(method, path, body, &[])).await;
    answer.unwrap_or_else(|_| panic!("no answer about {path} in {ANSWERED_WITHIN:?}"))
}

/// Starts two servers on a new database of this PostgreSQL server, with a toolkit for the auth
/// configs.
async fn two_on(server: &Arc<Postgres>) -> [Host; 2] {
    two_with(Setup::embedded().on(server.database(None))).await
}

/// Starts two servers with the same settings, with a toolkit for the auth configs.
async fn two_with(setup: Setup) -> [Host; 2] {
    let one = setup.start().await;
    given::publish_with_key(&one, &Guest::echo(), "loaded").await;
    let two = one.setup().another().start().await;
    [one, two]
}

#[tokio::test(flavor = "multi_thread")]
async fn database_crash_loses_no_acknowledged_write() {
    let server = Postgres::start();
    let [one, two] = two_on(&server).await;
    let load = Load {
        away: true,
        ..Load::default()
    };
    let crashes = async {
        for _ in 0..size(3, 20) {
            let server = server.clone();
            tokio::task::spawn_blocking(move || server.restart())
                .await
                .unwrap();
            load.goes_on().await;
        }
    };
    load.through(&[&one, &two], crashes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cut_connections_lose_and_duplicate_nothing() {
    let [one, two] = two_on(&Postgres::shared()).await;
    let load = Load::default();
    load.through_cuts(&[&one, &two], size(20, 200)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pooled_transactions_lose_and_duplicate_nothing() {
    let database = Postgres::shared().database(None);
    // Fewer connections than clients, so that each transaction has any of them.
    let pooler = PgBouncer::start(&database, "transaction", 4).await;
    let setup = Setup::embedded().on(database).with("store", pooler.url());
    let [one, two] = two_with(setup).await;
    let load = Load::default();
    load.through_cuts(&[&one, &two], size(5, 50)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn session_pooler_needs_no_settings() {
    let database = Postgres::shared().database(None);
    let pooler = PgBouncer::start(&database, "session", 50).await;
    let setup = Setup::embedded().on(database).with("store", pooler.url());
    let host = setup.start().await;
    let accounts = host.as_project().get("/connected_accounts").await;
    accounts.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn frozen_database_is_reported_within_bounded_time() {
    let server = Postgres::start();
    let [one, two] = two_on(&server).await;
    server.freeze();
    let clients = [&one, &two].map(Host::as_project);
    let asked = clients.iter().flat_map(|client| {
        let write = answered(client, Method::POST, "/auth_configs", config("never"));
        let read = answered(client, Method::GET, "/auth_configs", Body::None);
        [
            futures::future::Either::Left(write),
            futures::future::Either::Right(read),
        ]
    });
    for answer in join_all(asked).await {
        let answer = answer.expect(503);
        assert!(!answer.header("retry-after").is_empty(), "{answer:#?}");
    }
    let ready = "/health/ready";
    assert_eq!(one.anonymous().try_get_root(ready).await, Some(503));
    server.thaw();
    for client in clients {
        let name = unique(8);
        wait_for(ANSWERED_WITHIN, "it is used again", || async {
            answered(&client, Method::POST, "/auth_configs", config(&name))
                .await
                .status
                == 201
        })
        .await;
    }
    assert_eq!(one.anonymous().try_get_root(ready).await, Some(200));
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_of_a_newer_version_are_tolerated() {
    let [one, two] = two_on(&Postgres::shared()).await;
    let load = Load::default();
    let additions = async {
        let database = one.setup().database();
        for number in 0..5 {
            // The store adds a new field in the same way.
            let field = format!("newer_{number}");
            database.say(&format!(
                "do $$ begin \
                 alter table auth_configs add column {field} text collate \"C\"; \
                 execute replace(replace(pg_get_functiondef('auth_configs_fields'::regproc), \
                     'select', 'select new.body->>''name'','), 'into new.', 'into new.{field}, new.'); \
                 update auth_configs set body = body; \
                 end $$"
            ));
            database.say(&format!(
                "create index auth_configs_by_{field} on auth_configs \
                 (project, {field} nulls first, created_at, id) where deleted_at is null"
            ));
            load.goes_on().await;
        }
        database.say("create table newer (id text primary key)");
        assert_eq!(
            database.say("select count(*) from auth_configs where newer_0 is null"),
            ["0"],
            "older ones fill it"
        );
    };
    load.through(&[&one, &two], additions).await;
    one.setup().another().start().await;
}

#[tokio::test]
async fn unusable_database_error_hides_the_password() {
    let server = Postgres::shared().database(None).url();
    let (address, _) = server.rsplit_once('/').unwrap();
    let guarded = address.replace("postgres@", &format!("guarded:{SECRET_MARK}@"));
    // A service manager restarts a server that ends with exit code 1.
    for (store, said, code) in [
        (
            format!("postgres://someone:{SECRET_MARK}@127.0.0.1:1/x"),
            "check that the server runs",
            1,
        ),
        (
            format!("{address}/nowhere?password={SECRET_MARK}"),
            "the database does not exist",
            78,
        ),
        (format!("{guarded}/postgres"), "the password is wrong", 78),
        (
            format!("mysql://someone:{SECRET_MARK}@127.0.0.1/x"),
            "postgres://user:password@host/database",
            1,
        ),
    ] {
        let setup = Setup::embedded().with("store", &store).with("log", "debug");
        let refused = setup
            .clone()
            .try_start()
            .await
            .expect_err("a server without a database");
        assert!(refused.output.contains(said), "{refused:#?}");
        assert_eq!(refused.code, Some(code), "{refused:#?}");
        let doctor = setup.command(&["doctor"]);
        let told = format!("{}{}", doctor.stdout, doctor.stderr);
        assert!(doctor.code == Some(1) && told.contains(said), "{doctor:#?}");
        assert!(
            !told.contains(SECRET_MARK) && !refused.output.contains(SECRET_MARK),
            "{told}{}",
            refused.output
        );
    }
}

#[tokio::test]
async fn database_certificate_is_verified() {
    let (server, authorities) = Postgres::start_with_tls();
    let setup = Setup::embedded().on(server.database(None));
    let verified = |authority: String, host: &str| {
        let url = setup.database().url().replacen("localhost", host, 1);
        setup.clone().with(
            "store",
            format!("{url}?sslmode=verify-full&sslrootcert={authority}"),
        )
    };
    let host = verified(authorities.right(), "localhost").start().await;
    let plain = "select count(*) from pg_stat_activity join pg_stat_ssl using (pid) \
                 where datname = current_database() and application_name = 'toolhost' and not ssl";
    assert_eq!(setup.database().say(plain), ["0"]);
    verified(authorities.right(), "localhost")
        .command(&["doctor"])
        .succeeded();
    drop(host);
    for (refused, said) in [
        (verified(authorities.wrong(), "localhost"), "UnknownIssuer"),
        (
            verified(authorities.right(), "127.0.0.1"),
            "not valid for name",
        ),
    ] {
        let refused = refused
            .try_start()
            .await
            .expect_err("a server on a database that nobody vouches for");
        assert_eq!(refused.code, Some(78), "{refused:#?}");
        assert!(
            refused.output.contains(said) && refused.output.contains("sslrootcert"),
            "{refused:#?}"
        );
    }
}
