//! A PostgreSQL server of the test run's own, and a database for each server under test.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdout, Command, Stdio},
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

/// A server; it ends with this process.
#[derive(Debug)]
pub struct Postgres {
    url: String,
    /// The pipes to the script that keeps it.
    keeper: Mutex<(Child, BufReader<ChildStdout>)>,
}

/// A database, dropped with this value.
#[derive(Debug)]
pub struct Database {
    server: Arc<Postgres>,
    name: String,
}

impl Postgres {
    /// Starts one.
    ///
    /// # Panics
    /// When there is no PostgreSQL here.
    #[must_use]
    pub fn start() -> Arc<Self> {
        let mut command = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/postgres"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("tests/postgres can be run");
        let mut output = BufReader::new(child.stdout.take().expect("its output is a pipe"));
        let mut url = String::new();
        output.read_line(&mut url).expect("tests/postgres says where its server is");
        assert!(url.starts_with("postgres://"), "tests/postgres has started no server; see its message");
        Arc::new(Self { url: url.trim_end().to_owned(), keeper: Mutex::new((child, output)) })
    }

    /// The server that tests share when they do not stop it.
    #[must_use]
    pub fn shared() -> Arc<Self> {
        static SHARED: LazyLock<Arc<Postgres>> = LazyLock::new(Postgres::start);
        SHARED.clone()
    }

    /// Ends it as a crash would, and starts it again. Returns when it takes connections.
    ///
    /// # Panics
    /// When it does not come back.
    pub fn restart(&self) {
        let mut keeper = self.keeper.lock().expect("no panic holds it");
        let (child, output) = &mut *keeper;
        writeln!(child.stdin.as_mut().expect("its input is a pipe"), "restart").expect("the keeper listens");
        let mut line = String::new();
        output.read_line(&mut line).expect("the keeper answers");
        assert_eq!(line, "restarted\n");
    }

    /// Makes an empty database, or a copy of one that nobody uses.
    #[must_use]
    pub fn database(self: &Arc<Self>, like: Option<&Database>) -> Database {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("t{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let template = like.map_or("template0", |database| &database.name);
        self.say(&format!("create database {name} template {template}"));
        Database { server: self.clone(), name }
    }

    fn say(&self, statement: &str) {
        let url = format!("{}/postgres", self.url);
        let said = Command::new("psql").args([&*url, "-q", "-v", "ON_ERROR_STOP=1", "-c", statement]).output();
        let said = said.expect("`psql` can be run");
        assert!(said.status.success(), "{statement}: {}", String::from_utf8_lossy(&said.stderr));
    }
}

impl Database {
    /// Its address, as the setting `store` wants it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}/{}", self.server.url, self.name)
    }

    /// A copy; nobody may use the database meanwhile.
    #[must_use]
    pub fn copy(&self) -> Self {
        self.server.database(Some(self))
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // One that is left goes with its server.
        let drop = format!("drop database {} with (force)", self.name);
        Command::new("psql").args([&*format!("{}/postgres", self.server.url), "-q", "-c", &drop]).output().ok();
    }
}
