//! A PostgreSQL server for the test run, and a database for each server under test.

use std::{
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, ChildStdout, Command, Stdio},
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU32, Ordering},
    },
};

use parking_lot::Mutex;
use tempfile::TempDir;

use crate::Finished;

const START_SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/postgres");
/// Statements that print every row of every table.
const ALL_ROWS_SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/all_rows.sql");
/// Statements that create the tables, as a server does.
const CREATE_TABLES_SQL: &str = include_str!("../../host/store/schema.sql");

/// A PostgreSQL server. It ends with this process.
#[derive(Debug)]
pub struct Postgres {
    url: String,
    /// Process of the script that runs the server, and its output.
    keeper: Mutex<(Child, BufReader<ChildStdout>)>,
}

/// A database, deleted when this value is dropped.
#[derive(Debug)]
pub struct Database {
    server: Arc<Postgres>,
    name: String,
}

/// Folder with the certificates of a server with TLS.
#[derive(Debug)]
pub struct Authorities(TempDir);

impl Postgres {
    /// Starts a server.
    pub fn start() -> Arc<Self> {
        Self::run(Command::new(START_SCRIPT))
    }

    /// Starts a server that also accepts TLS connections.
    pub fn start_with_tls() -> (Arc<Self>, Authorities) {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let mut command = Command::new(START_SCRIPT);
        command
            .arg(crate::free_port().to_string())
            .arg(folder.path());
        (Self::run(command), Authorities(folder))
    }

    fn run(mut command: Command) -> Arc<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("tests/postgres can be run");
        let mut output = BufReader::new(child.stdout.take().expect("its output is a pipe"));
        let mut url = String::new();
        output
            .read_line(&mut url)
            .expect("tests/postgres says where its server is");
        assert!(
            url.starts_with("postgres://"),
            "tests/postgres has started no server; see its message"
        );
        Arc::new(Self {
            url: url.trim_end().to_owned(),
            keeper: Mutex::new((child, output)),
        })
    }

    /// Returns the server shared by tests that do not stop it.
    pub fn shared() -> Arc<Self> {
        static SHARED_POSTGRES: LazyLock<Arc<Postgres>> = LazyLock::new(Postgres::start);
        SHARED_POSTGRES.clone()
    }

    /// Ends the server without a shutdown, as a crash would, and starts it again. Returns when it
    /// accepts connections.
    pub fn restart(&self) {
        self.order("restart", "restarted");
    }

    /// Suspends all processes of the server: connections stay open, and no query gets a response.
    pub fn freeze(&self) {
        self.order("freeze", "freeze");
    }

    /// Resumes the processes.
    pub fn thaw(&self) {
        self.order("thaw", "thaw");
    }

    fn order(&self, what: &str, done: &str) {
        let mut keeper = self.keeper.lock();
        let (child, output) = &mut *keeper;
        writeln!(child.stdin.as_mut().expect("its input is a pipe"), "{what}")
            .expect("the keeper listens");
        let mut line = String::new();
        output.read_line(&mut line).expect("the keeper answers");
        assert_eq!(line.trim_end(), done);
    }

    /// Returns the folder that holds all files of the server.
    pub fn folder(&self) -> PathBuf {
        let (_, folder) = self.url.split_once('@').expect("the address has a user");
        PathBuf::from(folder.replace("%2F", "/"))
    }

    /// Creates a database of the shared server that has all tables and no records. Copying them takes
    /// less time than the first start of a server, which creates each of them.
    pub fn database_with_tables() -> Database {
        static DATABASE_WITH_TABLES: LazyLock<Database> = LazyLock::new(|| {
            let database = Postgres::shared().database(None);
            database.say(CREATE_TABLES_SQL);
            database
        });
        DATABASE_WITH_TABLES.copy()
    }

    /// Creates an empty database, or a copy of one without connections.
    pub fn database(self: &Arc<Self>, like: Option<&Database>) -> Database {
        static NEXT_DATABASE_NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("t{}", NEXT_DATABASE_NUMBER.fetch_add(1, Ordering::Relaxed));
        let template = like.map_or("template0", |database| &database.name);
        // The default strategy writes every page to the log of the server, which takes twice as long.
        say(
            &format!("{}/postgres", self.url),
            &format!("create database {name} template {template} strategy file_copy"),
        );
        Database {
            server: self.clone(),
            name,
        }
    }
}

/// Returns a command that runs PostgreSQL's client itself. Debian's `psql` in the path is a script that
/// looks for it, which takes longer than most statements.
fn psql() -> Command {
    static SERVER_PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
        let versions = std::fs::read_dir("/usr/lib/postgresql");
        let programs = versions.into_iter().flatten().flatten();
        let programs = programs.map(|version| version.path().join("bin/psql"));
        let newest = programs.filter(|program| program.is_file()).max();
        newest.unwrap_or_else(|| "psql".into())
    });
    Command::new(&*SERVER_PROGRAM)
}

/// Runs statements in a database and returns the rows, with values separated by `|`.
fn say(url: &str, statements: &str) -> Vec<String> {
    let mut command = psql();
    command.args([url, "-qAt", "-v", "ON_ERROR_STOP=1", "-c", statements]);
    let rows = Finished::run(command).succeeded();
    rows.lines().map(str::to_owned).collect()
}

impl Database {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the folder with the socket and all files of its server.
    pub fn server_folder(&self) -> PathBuf {
        self.server.folder()
    }

    /// Returns the address in the form of the setting `store`.
    pub fn url(&self) -> String {
        format!("{}/{}", self.server.url, self.name)
    }

    /// Creates a superuser for one purpose and returns the address for it and its name, so that the
    /// database can attribute changes to it.
    pub fn url_of_new_superuser(&self) -> (String, String) {
        let user = format!("user_{}", crate::unique(8));
        self.say(&format!("create role {user} superuser login"));
        (
            self.url().replacen("postgres@", &format!("{user}@"), 1),
            user,
        )
    }

    /// Runs statements in the database and returns the rows, with values separated by `|`.
    pub fn say(&self, statements: &str) -> Vec<String> {
        say(&self.url(), statements)
    }

    /// Returns every row of every table as text, one per line, or `None` if the server does not
    /// respond.
    pub fn rows(&self) -> Option<Vec<u8>> {
        let mut client = psql();
        client.args([&*self.url(), "-qAt", "-f", ALL_ROWS_SCRIPT]);
        let said = client.env("PGCONNECT_TIMEOUT", "5").output();
        let said = said.expect("`psql` can be run");
        said.status.success().then_some(said.stdout)
    }

    /// Returns the output of `pg_dump`.
    pub fn dump(&self) -> Vec<u8> {
        let said = Command::new("pg_dump")
            .arg(self.url())
            .output()
            .expect("`pg_dump` can be run");
        assert!(
            said.status.success(),
            "{}",
            String::from_utf8_lossy(&said.stderr)
        );
        said.stdout
    }

    /// Copies the database, which must have no connections meanwhile.
    pub fn copy(&self) -> Self {
        self.server.database(Some(self))
    }
}

impl Authorities {
    /// Returns the file of the certificate authority that signed the server's certificate.
    pub fn right(&self) -> String {
        self.0.path().join("root.crt").display().to_string()
    }

    /// Returns the file of another certificate authority.
    pub fn wrong(&self) -> String {
        self.0.path().join("other.crt").display().to_string()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // If this fails, the database is deleted with its server.
        let drop = format!("drop database {} with (force)", self.name);
        psql()
            .args([&*format!("{}/postgres", self.server.url), "-q", "-c", &drop])
            .output()
            .ok();
    }
}
