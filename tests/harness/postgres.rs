//! A PostgreSQL server of the test run's own, and a database for each server under test.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    path::PathBuf,
    process::{Child, ChildStdout, Command, Stdio},
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

use tempfile::TempDir;

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/postgres");

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

/// Where the certificates of a server with TLS lie.
#[derive(Debug)]
pub struct Authorities(TempDir);

impl Postgres {
    /// Starts one.
    ///
    /// # Panics
    /// When there is no PostgreSQL here.
    #[must_use]
    pub fn start() -> Arc<Self> {
        Self::run(Command::new(PROGRAM))
    }

    /// Starts one that is reached by TLS, too.
    ///
    /// # Panics
    /// When there is no PostgreSQL or no `openssl` here.
    #[must_use]
    pub fn start_with_tls() -> (Arc<Self>, Authorities) {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let mut command = Command::new(PROGRAM);
        command.arg(free.expect("loopback can be used").port().to_string()).arg(folder.path());
        (Self::run(command), Authorities(folder))
    }

    fn run(mut command: Command) -> Arc<Self> {
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
        self.order("restart", "restarted");
    }

    /// Stops all of its processes where they are: connections stay, and nothing is answered.
    ///
    /// # Panics
    /// When that cannot be done.
    pub fn freeze(&self) {
        self.order("freeze", "freeze");
    }

    /// Lets them go on.
    ///
    /// # Panics
    /// When that cannot be done.
    pub fn thaw(&self) {
        self.order("thaw", "thaw");
    }

    fn order(&self, what: &str, done: &str) {
        let mut keeper = self.keeper.lock().expect("no panic holds it");
        let (child, output) = &mut *keeper;
        writeln!(child.stdin.as_mut().expect("its input is a pipe"), "{what}").expect("the keeper listens");
        let mut line = String::new();
        output.read_line(&mut line).expect("the keeper answers");
        assert_eq!(line.trim_end(), done);
    }

    /// The folder of everything that it writes.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        let (_, folder) = self.url.split_once('@').expect("the address has a user");
        PathBuf::from(folder.replace("%2F", "/"))
    }

    /// Makes an empty database, or a copy of one that nobody uses.
    #[must_use]
    pub fn database(self: &Arc<Self>, like: Option<&Database>) -> Database {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("t{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let template = like.map_or("template0", |database| &database.name);
        say(&format!("{}/postgres", self.url), &format!("create database {name} template {template}"));
        Database { server: self.clone(), name }
    }
}

/// Runs statements in a database and answers with the rows, values apart by `|`.
fn say(url: &str, statements: &str) -> Vec<String> {
    let said = Command::new("psql").args([url, "-qAt", "-v", "ON_ERROR_STOP=1", "-c", statements]).output();
    let said = said.expect("`psql` can be run");
    assert!(said.status.success(), "{statements}: {}", String::from_utf8_lossy(&said.stderr));
    String::from_utf8_lossy(&said.stdout).lines().map(str::to_owned).collect()
}

impl Database {
    /// Its address, as the setting `store` wants it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}/{}", self.server.url, self.name)
    }

    /// Its address for a user who exists for this alone, with every right, so that the database can tell who has done what.
    #[must_use]
    pub fn url_of_someone(&self) -> (String, String) {
        let user = format!("user_{}", crate::unique(8));
        self.say(&format!("create role {user} superuser login"));
        (self.url().replacen("postgres@", &format!("{user}@"), 1), user)
    }

    /// Runs statements in it and answers with the rows, values apart by `|`.
    ///
    /// # Panics
    /// When the server refuses one.
    pub fn say(&self, statements: &str) -> Vec<String> {
        say(&self.url(), statements)
    }

    /// Every row of every table, as text, one a line; none when the server does not answer.
    #[must_use]
    pub fn rows(&self) -> Option<Vec<u8>> {
        const EVERY: &str =
            r"select format('select t::text from %I t', tablename) from pg_tables where schemaname = 'public' \gexec";
        let mut psql = Command::new("psql");
        psql.args([&*self.url(), "-qAt"]).env("PGCONNECT_TIMEOUT", "5").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut asked = psql.stderr(Stdio::null()).spawn().expect("`psql` can be run");
        writeln!(asked.stdin.take().expect("its input is a pipe"), "{EVERY}").ok();
        let said = asked.wait_with_output().expect("`psql` can be waited for");
        said.status.success().then_some(said.stdout)
    }

    /// What PostgreSQL's own tool makes of it for safekeeping.
    ///
    /// # Panics
    /// When it fails.
    #[must_use]
    pub fn dump(&self) -> Vec<u8> {
        let said = Command::new("pg_dump").arg(self.url()).output().expect("`pg_dump` can be run");
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        said.stdout
    }

    /// A copy; nobody may use the database meanwhile.
    #[must_use]
    pub fn copy(&self) -> Self {
        self.server.database(Some(self))
    }
}

impl Authorities {
    /// The file of the authority that has signed the server's certificate.
    #[must_use]
    pub fn right(&self) -> String {
        self.0.path().join("root.crt").display().to_string()
    }

    /// The file of another one.
    #[must_use]
    pub fn wrong(&self) -> String {
        self.0.path().join("other.crt").display().to_string()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // One that is left goes with its server.
        let drop = format!("drop database {} with (force)", self.name);
        Command::new("psql").args([&*format!("{}/postgres", self.server.url), "-q", "-c", &drop]).output().ok();
    }
}
