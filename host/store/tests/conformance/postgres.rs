//! The shared backend, on a server that the test run starts, with a database for each test.

use crate::suite::{COLLECTIONS, Place, Thing};
use host_store::{Folder, Query, Store};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

/// The server process. It ends with this process, when the pipe between them closes.
static SHARED_SERVER: LazyLock<(Child, String)> = LazyLock::new(|| {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/postgres");
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut url)
        .unwrap();
    assert!(
        url.starts_with("postgres://"),
        "tests/postgres has not started a server; see its message"
    );
    (child, url.trim_end().to_owned())
});

static DATABASE_COUNT: AtomicU32 = AtomicU32::new(0);

struct Database {
    url: String,
    blobs: tempfile::TempDir,
}

impl Place for Database {
    fn new() -> Database {
        let name = format!("t{}", DATABASE_COUNT.fetch_add(1, Ordering::Relaxed));
        let url = format!("{}/{name}", SHARED_SERVER.1);
        Database {
            url,
            blobs: tempfile::tempdir().unwrap(),
        }
    }

    async fn open(&self) -> Store {
        let (server, name) = self.url.rsplit_once('/').unwrap();
        let mut admin = PgConnection::connect(&format!("{server}/postgres"))
            .await
            .unwrap();
        let exists = sqlx::query("select 1 from pg_database where datname = $1").bind(name);
        if exists.fetch_optional(&mut admin).await.unwrap().is_none() {
            let create = format!("create database {name} template template0");
            sqlx::query(AssertSqlSafe(create))
                .execute(&mut admin)
                .await
                .unwrap();
        }
        let blobs = Folder::open(self.blobs.path()).unwrap();
        Store::connect(&self.url, Arc::new(blobs), COLLECTIONS)
            .await
            .unwrap()
    }
}

crate::suite::promises!(Database);

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_of_two_processes_all_succeed() {
    let place = Database::new();
    crate::suite::all_succeed(&[place.open().await, place.open().await]).await;
}

impl Database {
    async fn admin(&self) -> PgConnection {
        PgConnection::connect(&self.url).await.unwrap()
    }

    /// Returns the number of full scans of a table, after all other connections have ended.
    async fn whole_reads(&self, table: &str) -> i64 {
        let mut admin = self.admin().await;
        let others = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()";
        let until = Instant::now() + Duration::from_secs(60);
        while sqlx::query_scalar::<_, i64>(others)
            .fetch_one(&mut admin)
            .await
            .unwrap()
            > 0
        {
            assert!(Instant::now() < until, "connections stay");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let reads = "select seq_scan from pg_stat_user_tables where relname = $1";
        sqlx::query_scalar(reads)
            .bind(table)
            .fetch_one(&mut admin)
            .await
            .unwrap()
    }
}

#[tokio::test]
async fn large_lists_are_paged_by_index() {
    let place = Database::new();
    place.open().await.close().await;
    let mut admin = place.admin().await;
    let load = "insert into things (id, project, revision, created_at, updated_at, body) \
                select 'r' || n, 'p', 1, n, n, json_build_object('name', 'n' || n, 'colour', 'c' || n % 40, 'rank', n % 40, \
                'due', n % 40, 'tags', json_build_array('t' || n % 40), 'on', n % 2 = 0, 'rest', repeat('x', 300)) \
                from generate_series(0, 99999) as n";
    for statement in [load, "vacuum analyze things"] {
        sqlx::query(statement).execute(&mut admin).await.unwrap();
    }
    admin.close().await.unwrap();
    let before = place.whole_reads("things").await;
    let store = place.open().await;
    let all = Query::for_project("p");
    for (query, total) in [
        (all.clone(), 100_000),
        (all.clone().descending(), 100_000),
        (all.clone().order_by("rank").descending(), 100_000),
        (all.clone().is("name", "n7"), 1),
        (all.clone().is("colour", "c7"), 2_500),
        (all.clone().is("rank", 7), 2_500),
        (all.clone().below("due", 1).descending(), 2_500),
        (all.clone().is("tags", "t7").descending(), 2_500),
        (all.clone().is("on", true), 50_000),
        (all.at_least("created_at", 97_500), 2_500),
    ] {
        for page in [0, 99] {
            let found = store
                .find::<Thing>(&query.clone().page(page * 20, 20))
                .await
                .unwrap();
            let length = 20.min(total - (page * 20).min(total));
            assert_eq!(
                (found.total, found.records.len() as u64),
                (total, length),
                "{query:?}"
            );
        }
    }
    store.close().await;
    assert_eq!(place.whole_reads("things").await, before);
}
