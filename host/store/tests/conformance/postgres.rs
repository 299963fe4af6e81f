//! The shared backend, on a server of the test run's own: a database for each test.

use crate::suite::{COLLECTIONS, Place};
use host_store::{Folder, Store};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};

/// Ends when this process does, with the pipe between them.
static SERVER: LazyLock<(Child, String)> = LazyLock::new(|| {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/postgres");
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    assert!(url.starts_with("postgres://"), "tests/postgres has not started a server; see its message");
    (child, url.trim_end().to_owned())
});

static DATABASES: AtomicU32 = AtomicU32::new(0);

struct Database {
    url: String,
    blobs: tempfile::TempDir,
}

impl Place for Database {
    fn new() -> Database {
        let name = format!("t{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        let url = format!("{}/{name}", SERVER.1);
        Database { url, blobs: tempfile::tempdir().unwrap() }
    }

    async fn open(&self) -> Store {
        let (server, name) = self.url.rsplit_once('/').unwrap();
        let mut admin = PgConnection::connect(&format!("{server}/postgres")).await.unwrap();
        let exists = sqlx::query("select 1 from pg_database where datname = $1").bind(name);
        if exists.fetch_optional(&mut admin).await.unwrap().is_none() {
            let create = format!("create database {name} template template0");
            sqlx::query(AssertSqlSafe(create)).execute(&mut admin).await.unwrap();
        }
        let blobs = Folder::open(self.blobs.path()).unwrap();
        Store::connect(&self.url, Arc::new(blobs), COLLECTIONS).await.unwrap()
    }
}

crate::suite::promises!(Database);
