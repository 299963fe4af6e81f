//! The real server in a process of its own, on a free port and in an empty folder.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
    os::unix::{fs::DirBuilderExt, process::ExitStatusExt},
    path::PathBuf,
    process::{Command, ExitStatus, Stdio},
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::json;
use tempfile::{NamedTempFile, TempDir};

use crate::{
    BucketService, Client, Database, FakeApp, Finished, Hunt, IdentityProvider, Postgres, bucket,
    hunt,
    process::{Process, beside, read, signal},
    provider, unique, wait_until,
};

/// Time that a start may take before the test fails. It allows for an unoptimized build on a busy
/// machine.
const START_TIMEOUT: Duration = Duration::from_secs(180);
/// Files that are expected to hold secrets: the client keys written by the first start, and the
/// master key.
const KEY_FILES: [&str; 2] = ["data.env", "data.key"];

/// Settings and folder of a server that can run, stop and run again.
#[derive(Debug, Clone)]
pub struct Setup {
    settings: BTreeMap<String, String>,
    folder: Arc<TempDir>,
    /// Database that holds the records; without one, the folder holds them. `TEST_STORE=postgres`
    /// puts the records of every test into PostgreSQL.
    database: Option<Arc<Database>>,
    /// Command with arguments that runs the server's binary; empty to run the binary directly.
    runner: Vec<String>,
    /// Keys that clients were given, including those of other servers on the same records.
    given: Arc<Mutex<BTreeSet<String>>>,
}

/// A running server. Dropping it kills the process without a shutdown, as a power failure would.
///
/// However the server ends, a check then asserts that no secret remains in its output, its folder
/// (temporary files included) or its database rows.
#[derive(Debug)]
pub struct Host {
    /// `http://127.0.0.1:port`
    pub url: String,
    /// Organization key of the first start.
    pub org_key: String,
    /// Project key of the first start.
    pub project_key: String,
    setup: Setup,
    process: Process,
    output: NamedTempFile,
}

/// A command that runs during a test. Dropping it kills the process.
#[derive(Debug)]
pub struct LeftRunning {
    pub process: Process,
    output: NamedTempFile,
}

/// A server that ended before it served requests.
#[derive(Debug)]
pub struct Refused {
    /// Exit code. `None` if a signal ended the process.
    pub code: Option<i32>,
    /// Signal that ended the process.
    pub signal: Option<i32>,
    /// Everything that the process printed.
    pub output: String,
}

/// Resource usage of the server's process, as reported by the operating system.
#[derive(Debug, Clone, Copy)]
pub struct Footprint {
    /// Open file descriptors.
    pub files: usize,
    /// Threads.
    pub threads: usize,
    /// Resident memory in KiB.
    pub resident_kib: u64,
    /// Peak resident memory in KiB.
    pub peak_kib: u64,
}

impl Setup {
    /// Creates an empty folder with settings for tests: no rate limits, and every log record is
    /// durable before its response.
    pub fn new() -> Self {
        let embedded = Self::embedded();
        if on_postgres() {
            embedded.on(Postgres::database_with_tables())
        } else {
            embedded
        }
    }

    /// Creates the same with the embedded store, also under `TEST_STORE=postgres`. For tests of
    /// that store's files.
    pub fn embedded() -> Self {
        let folder = Arc::new(tempfile::tempdir().expect("a temporary folder can be made"));
        let data = folder.path().join("data").display().to_string();
        let temporary = folder.path().display().to_string();
        Self {
            settings: BTreeMap::new(),
            folder,
            database: None,
            runner: Vec::new(),
            given: Arc::default(),
        }
        .with_variable("TMPDIR", temporary)
        .with("data", data)
        .with("listen", "127.0.0.1:0")
        .with("limits.failed_auth", "0")
        .with("logs.wait", "true")
    }

    /// Returns the settings of [`Setup::new`] on a copy of one installation. Servers on such copies
    /// have the same keys, so that one can load what another has compiled.
    pub async fn installed() -> Self {
        static SHARED_INSTALLATION: tokio::sync::OnceCell<Setup> =
            tokio::sync::OnceCell::const_new();
        SHARED_INSTALLATION
            .get_or_init(|| async {
                let (setup, status) = Self::new().start().await.terminate().await;
                assert!(status.success(), "{status}");
                setup
            })
            .await
            .copy()
    }

    /// Gives the server the components that another server has compiled. It loads them if both have
    /// the same keys.
    pub fn with_compiled_of(self, host: &Host) -> Self {
        let [from, to] = [host.data(), self.data()].map(|data| data.join("compiled"));
        let made = std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&to);
        made.expect("the folder can be written");
        for file in std::fs::read_dir(from).expect("the server has compiled something") {
            let file = file.expect("the folder can be read");
            // The other server may delete a file, and a file without a link is compiled again.
            std::fs::hard_link(file.path(), to.join(file.file_name())).ok();
        }
        self
    }

    /// Sets one more setting, named by its key in `toolhost.toml`.
    pub fn with(mut self, key: &str, value: impl Into<String>) -> Self {
        let name = format!("TOOLHOST_{}", key.replace('.', "__").to_uppercase());
        self.settings.insert(name, value.into());
        self
    }

    /// Sets an environment variable other than a setting of the server.
    pub fn with_variable(mut self, name: &str, value: impl Into<String>) -> Self {
        self.settings.insert(name.to_owned(), value.into());
        self
    }

    /// Stores the records in a database.
    pub fn on(self, database: Database) -> Self {
        let url = database.url();
        Self {
            database: Some(Arc::new(database)),
            ..self
        }
        .with("store", url)
    }

    /// Returns the database that holds the records.
    pub fn database(&self) -> &Database {
        self.database
            .as_ref()
            .expect("the records are in a database")
    }

    /// Returns settings for another server on the same database with the same master key, in a new
    /// folder.
    pub fn another(&self) -> Self {
        let fresh = Self::embedded();
        let key = self.folder.path().join("data.key").display().to_string();
        let data = fresh.data().display().to_string();
        Self {
            folder: fresh.folder,
            runner: Vec::new(),
            ..self.clone()
        }
        .with("data", data)
        .with("key_file", key)
    }

    /// Runs every command through another command.
    pub fn run_by(self, runner: Vec<String>) -> Self {
        Self { runner, ..self }
    }

    /// Stores the blobs in a bucket.
    pub fn in_bucket(self, service: &BucketService) -> Self {
        self.with("blobs", format!("s3://{}/components", bucket::BUCKET_NAME))
            .with("s3.endpoint", service.endpoint())
            .with("s3.access_key_id", bucket::ACCESS_KEY)
            .with("s3.secret_access_key", bucket::SECRET_KEY)
    }

    /// Redirects `https://{host}` to a fake provider of the test.
    pub fn with_application(self, hosts: &[&str], application: &FakeApp) -> Self {
        let pairs: Vec<_> = hosts
            .iter()
            .map(|host| format!("https://{host}={}", application.origin))
            .collect();
        self.rewriting(pairs.join(","))
    }

    /// Redirects more origins.
    fn rewriting(self, pairs: String) -> Self {
        let known = self.settings.get("TOOLHOST_NET__REWRITE");
        let all = known.into_iter().cloned().chain([pairs]);
        let all = all.collect::<Vec<_>>().join(",");
        self.with("net.rewrite", all)
    }

    /// Redirects the name of an identity provider to it.
    pub fn with_provider(self, provider: &IdentityProvider) -> Self {
        self.rewriting(format!("{}={}", provider::ISSUER_URL, provider.origin))
    }

    /// Returns the path of the data directory.
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Returns the same settings on a copy of the folder.
    pub fn copy(&self) -> Self {
        let fresh = Self::embedded();
        let [from, to] = [&self.folder, &fresh.folder].map(|folder| folder.path());
        let copied = Command::new("cp")
            .arg("-a")
            .arg(from.join("."))
            .arg(to)
            .status()
            .expect("`cp` can be run");
        assert!(copied.success(), "{} cannot be copied", from.display());
        let data = fresh.data().display().to_string();
        let temporary = to.display().to_string();
        let copy = Self {
            folder: fresh.folder,
            database: None,
            runner: Vec::new(),
            ..self.clone()
        }
        .with_variable("TMPDIR", temporary)
        .with("data", data);
        match &self.database {
            Some(database) => copy.on(database.copy()),
            None => copy,
        }
    }

    /// Runs another operator command with these settings until it ends.
    #[track_caller]
    pub fn command(&self, arguments: &[&str]) -> Finished {
        let mut command = self.program();
        command.args(arguments);
        let finished = Finished::run(command);
        for printed in [&finished.stdout, &finished.stderr] {
            hunt::assert_none(
                &format!("what `{}` prints", arguments.join(" ")),
                printed.as_bytes(),
            );
        }
        finished
    }

    /// Runs another operator command until it ends, and writes its standard input.
    #[track_caller]
    pub fn converse(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> String {
        let mut command = self.program();
        command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut process = command.spawn().expect("the command starts");
        let mut pipe = process.stdin.take().expect("the input is piped");
        pipe.write_all(input.as_ref()).expect("the command reads");
        drop(pipe);
        let output = process.wait_with_output().expect("the command ends");
        hunt::assert_none("what a command prints", &output.stdout);
        assert!(output.status.success(), "{arguments:?} failed");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Starts another operator command, which the test kills before it ends.
    pub fn begin(&self, arguments: &[&str]) -> Process {
        let mut command = self.program();
        command.args(arguments);
        Process::silent(command)
    }

    /// Starts another operator command that runs until the test kills it.
    pub fn leave(&self, arguments: &[&str]) -> LeftRunning {
        let mut command = self.program();
        command.args(arguments);
        let (process, output) = Process::logged(command);
        LeftRunning { process, output }
    }

    /// Starts the server and waits until it serves requests.
    pub async fn start(self) -> Host {
        self.try_start()
            .await
            .unwrap_or_else(|refused| panic!("the server did not start: {refused:#?}"))
    }

    /// Starts the server and waits until it serves requests or ends.
    pub async fn try_start(self) -> Result<Host, Refused> {
        let mut command = self.program();
        command.arg("serve");
        // The output goes to a file, so it does not accumulate in memory.
        let level = variable("TEST_LOG");
        if let Some(level) = level.filter(|_| !self.settings.contains_key("TOOLHOST_LOG")) {
            command.env("TOOLHOST_LOG", level);
        }
        let (mut process, output) = Process::logged(command);
        let begun = Instant::now();
        let mut anonymous = None;
        loop {
            if let Some(status) = process.status() {
                self.hunt(&output).unwrap_or_else(|found| panic!("{found}"));
                return Err(Refused {
                    code: status.code(),
                    signal: status.signal(),
                    output: read(&output),
                });
            }
            anonymous = anonymous.or_else(|| {
                let url = address(&read(&output))?;
                Some(Client::new(&url, None))
            });
            if let Some(client) = &anonymous
                && client.try_get_root("/health/ready").await == Some(200)
            {
                return Ok(Host {
                    url: client.url().to_owned(),
                    org_key: self.first_key("TOOLHOST_ORG_API_KEY"),
                    project_key: self.first_key("TOOLHOST_API_KEY"),
                    setup: self,
                    process,
                    output,
                });
            }
            if begun.elapsed() > START_TIMEOUT {
                panic!(
                    "the server neither served nor ended in {START_TIMEOUT:?}; it printed:\n{}",
                    read(&output)
                );
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Registers a client's key to be searched for when a server ends. A key of fewer than 16 bytes
    /// is ignored.
    fn note(&self, key: &str) {
        if key.len() >= 16 {
            self.given.lock().insert(key.to_owned());
        }
    }

    /// Searches everything that a server left behind for secrets. An unreachable database is
    /// skipped, because its test has stopped it.
    fn hunt(&self, output: &NamedTempFile) -> Result<(), String> {
        let folder = self.folder.path();
        let given = self.given.lock().clone();
        let mut keys: Vec<_> = given.into_iter().map(String::into_bytes).collect();
        let key_file = self
            .settings
            .get("TOOLHOST_KEY_FILE")
            .map_or_else(|| folder.join("data.key"), PathBuf::from);
        let lines = std::fs::read_to_string(key_file).unwrap_or_default();
        keys.extend(
            lines
                .lines()
                .filter_map(|line| hex::decode(line.rsplit(' ').next()?).ok()),
        );
        let hunt = Hunt::for_mark_and(&keys);
        hunt.within_file(output.path())?;
        hunt.within_folder(folder, &KEY_FILES)?;
        let rows = self.database.as_ref().and_then(|database| database.rows());
        hunt.within("the database", &rows.unwrap_or_default())
    }

    /// Builds the command of the server's binary in the folder, with only these settings in its
    /// environment.
    fn program(&self) -> Command {
        let mut command = match self.runner.split_first() {
            Some((runner, arguments)) => {
                let mut command = Command::new(runner);
                command.args(arguments).arg(beside("toolhost"));
                command
            }
            None => Command::new(beside("toolhost")),
        };
        command
            .current_dir(self.folder.path())
            .env_clear()
            .envs(&self.settings);
        command
    }

    /// Returns a client key that the first start wrote; empty without one.
    fn first_key(&self, name: &str) -> String {
        let text = std::fs::read_to_string(self.folder.path().join("data.env")).unwrap_or_default();
        let start = format!("export {name}=");
        let key = text.lines().find_map(|line| line.strip_prefix(&start));
        let key = key.unwrap_or_default();
        self.note(key);
        key.to_owned()
    }
}

/// Returns true if the records of every test are in PostgreSQL. Tests of the embedded store's files
/// are then skipped.
pub fn on_postgres() -> bool {
    variable("TEST_STORE").is_some_and(|store| store == "postgres")
}

/// Returns the extent of a test: one value for every run, a larger one before a release
/// (`TEST_SIZE=release`).
pub fn size<T>(every_run: T, release: T) -> T {
    let is_release = variable("TEST_SIZE").is_some_and(|size| size == "release");
    if is_release { release } else { every_run }
}

/// Returns a setting of the test run.
#[expect(
    clippy::disallowed_methods,
    reason = "the tests' settings are read here"
)]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl Default for Setup {
    fn default() -> Self {
        Self::new()
    }
}

impl Host {
    /// Returns the server shared by tests that neither stop it nor need their own settings. It
    /// reaches [`Host::application`] under the names in [`crate::fake_app::FAKE_APP_HOSTS`].
    pub async fn shared() -> &'static Self {
        static SHARED_HOST: tokio::sync::OnceCell<&Host> = tokio::sync::OnceCell::const_new();
        SHARED_HOST
            .get_or_init(|| async {
                let setup = Setup::installed()
                    .await
                    .with_application(&crate::fake_app::FAKE_APP_HOSTS, Self::application())
                    // A large component is compiled concurrently with other compilers, and with the
                    // least priority.
                    .with("sandbox.compile_cpu_s", "300");
                setup.start().await.until_exit()
            })
            .await
    }

    /// Returns the shared server and the client of a new project on it.
    pub async fn shared_with_project() -> (&'static Self, Client) {
        let host = Self::shared().await;
        (host, host.new_project().await)
    }

    /// Keeps the server running until this process ends. The search for secrets runs at that point:
    /// it fails the process instead of a test, and its message names the line where the secret was
    /// made.
    pub fn until_exit(self) -> &'static Self {
        let host: &Self = Box::leak(Box::new(self));
        let mut lasting = RUNNING_UNTIL_EXIT.lock();
        if lasting.is_empty() {
            #[expect(
                unsafe_code,
                reason = "the function is there to the end, and no panic leaves it"
            )]
            unsafe {
                libc::atexit(hunt_at_the_end);
            }
        }
        lasting.push(host);
        host
    }

    /// Returns the fake provider that the shared server reaches.
    pub fn application() -> &'static FakeApp {
        static SHARED_APPLICATION: OnceLock<FakeApp> = OnceLock::new();
        SHARED_APPLICATION.get_or_init(FakeApp::start)
    }

    /// Returns a client without a key.
    pub fn anonymous(&self) -> Client {
        Client::new(&self.url, None)
    }

    /// Returns a client with the organization key.
    pub fn as_org(&self) -> Client {
        Client::new(&self.url, Some(("x-org-api-key", &self.org_key)))
    }

    /// Returns a client with the key of the project made at the first start.
    pub fn as_project(&self) -> Client {
        self.with_key(&self.project_key)
    }

    /// Returns a client with any project key.
    pub fn with_key(&self, key: &str) -> Client {
        self.setup.note(key);
        Client::new(&self.url, Some(("x-api-key", key)))
    }

    /// Creates a project for one test and returns its client.
    pub async fn new_project(&self) -> Client {
        let body = json!({ "name": format!("test-{}", unique(8)), "should_create_api_key": true });
        let made = self
            .as_org()
            .post("/org/owner/project/new", &body)
            .await
            .expect(200);
        self.with_key(made["api_key"].as_str().expect("the new project has a key"))
    }

    /// Deletes a project.
    pub async fn delete_project(&self, id: &str) {
        let path = format!("/org/owner/project/{id}");
        self.as_org().delete(&path).await.expect(200);
    }

    /// Creates a user with this role and returns its client.
    pub async fn new_member(&self, role: &str) -> Client {
        let body = json!({ "email": format!("{}@example.com", unique(8)), "role": role });
        let made = self.as_org().post("/org/members", &body).await.expect(201);
        self.with_user_key(made["key"].as_str().expect("the new member has a key"))
    }

    /// Returns a client with the key of any user.
    pub fn with_user_key(&self, key: &str) -> Client {
        self.setup.note(key);
        Client::new(&self.url, Some(("x-user-api-key", key)))
    }

    /// Publishes a hand-made component and returns the response.
    pub async fn publish(&self, component: Vec<u8>, manifest: &serde_json::Value) -> crate::Answer {
        let bytes = crate::guest::with_manifest(component, manifest);
        let answer = self
            .as_org()
            .put(&crate::guest::address(manifest), bytes)
            .await;
        assert!(
            matches!(answer.status, 200 | 201),
            "publish {}: {answer:#?}",
            manifest["slug"]
        );
        answer
    }

    /// Sends a signal by name, for example `STOP`.
    pub fn signal(&self, name: &str) {
        signal(name, self.pid());
    }

    /// Stops the process with `SIGSTOP` and waits until all of its threads have stopped. On a busy
    /// machine, this takes a moment.
    pub async fn suspend(&self) {
        self.signal("STOP");
        let tasks = PathBuf::from(format!("/proc/{}/task", self.pid()));
        let stands = |task: std::io::Result<std::fs::DirEntry>| {
            let status = task.and_then(|task| std::fs::read_to_string(task.path().join("status")));
            status.is_ok_and(|status| status.lines().any(|line| line.starts_with("State:\tT")))
        };
        let all = || std::fs::read_dir(&tasks).is_ok_and(|mut tasks| tasks.all(stands));
        wait_until("the server stands still", || async { all() }).await;
    }

    /// Kills the process without a shutdown and waits until it has ended.
    pub fn kill(self) -> Setup {
        // Dropping the host ends the process.
        self.setup.clone()
    }

    /// Sends `SIGTERM` to the server and waits until it has ended.
    pub async fn terminate(self) -> (Setup, ExitStatus) {
        self.signal("TERM");
        self.end().await
    }

    /// Waits until the server has ended, with or without a request to stop.
    pub async fn end(mut self) -> (Setup, ExitStatus) {
        let ended = tokio::time::timeout(START_TIMEOUT, self.process.wait()).await;
        let status = ended
            .unwrap_or_else(|_| panic!("the server does not stop; it printed:\n{}", self.output()));
        (self.setup.clone(), status)
    }

    /// Returns everything that the server has printed so far, including its log.
    pub fn output(&self) -> String {
        read(&self.output)
    }

    /// Returns the path of the data directory.
    pub fn data(&self) -> PathBuf {
        self.setup.data()
    }

    /// Returns the settings and folder.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.process.0.id()
    }

    /// Returns the processor time that the server has used, in kernel ticks.
    pub fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid()))
            .expect("the process runs");
        let (_, fields) = stat.rsplit_once(") ").expect("its name ends with `)`");
        let times = fields.split(' ').skip(11).take(2);
        times.filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
    }

    /// Reads the resource usage of the process from the operating system.
    pub fn footprint(&self) -> Footprint {
        let process = PathBuf::from(format!("/proc/{}", self.pid()));
        let count = |name: &str| std::fs::read_dir(process.join(name)).map_or(0, Iterator::count);
        let status = std::fs::read_to_string(process.join("status")).unwrap_or_default();
        let kib = |name: &str| {
            let found = status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .unwrap_or("0 kB");
            found.trim().trim_end_matches(" kB").parse().unwrap_or(0)
        };
        Footprint {
            files: count("fd"),
            threads: count("task"),
            resident_kib: kib("VmRSS:"),
            peak_kib: kib("VmHWM:"),
        }
    }
}

/// Servers that run until this process ends.
static RUNNING_UNTIL_EXIT: Mutex<Vec<&Host>> = Mutex::new(Vec::new());

extern "C" fn hunt_at_the_end() {
    let lasting = std::mem::take(&mut *RUNNING_UNTIL_EXIT.lock());
    let mut found: Vec<_> = lasting
        .iter()
        .filter_map(|host| host.setup.hunt(&host.output).err())
        .collect();
    if on_postgres() {
        // The files of PostgreSQL for all tests: the write-ahead log, the server log, and the
        // tables that still exist.
        found.extend(
            Hunt::for_mark_and(&[])
                .within_folder(&Postgres::shared().folder(), &[])
                .err(),
        );
    }
    if !found.is_empty() {
        eprintln!("a server that tests share: {}", found.join("\n"));
        #[expect(unsafe_code, reason = "it ends the process, which is about to end")]
        unsafe {
            libc::_exit(101);
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.process.end();
        if !std::thread::panicking() {
            self.setup
                .hunt(&self.output)
                .unwrap_or_else(|found| panic!("{found}"));
        }
    }
}

impl LeftRunning {
    /// Returns everything that the command has printed so far.
    pub fn output(&self) -> String {
        let printed = read(&self.output);
        hunt::assert_none("what a command prints", printed.as_bytes());
        printed
    }
}

/// Returns the address from the output of the server.
fn address(printed: &str) -> Option<String> {
    let start = printed.find("http://127.0.0.1:")?;
    let rest = &printed[start + "http://127.0.0.1:".len()..];
    let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let complete = rest.len() > port.len() && !matches!(port.as_str(), "" | "0");
    complete.then(|| format!("http://127.0.0.1:{port}"))
}
