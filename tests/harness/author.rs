//! Runs the author's command `toolkit` in a folder of its own.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::LazyLock,
};

use serde_json::Value;
use tempfile::{NamedTempFile, TempDir};

use crate::{
    BUILD_TIMEOUT, CONDITION_TIMEOUT, Client, Finished,
    process::{Process, beside, read, signal, spawn},
    wait_for,
};

/// Toolkits of the repository. Tests reuse their target folder and lock file, so that the SDK and
/// its dependencies are compiled only once.
const TOOLKITS_FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../toolkits");

/// Profile of the toolkits in Rust that tests over HTTP build. It takes a third of the time of the
/// template's profile, which the tests of the command use, and is the same in all of these tests, so
/// that the SDK is compiled only once for them.
pub const QUICK_PROFILE_VARIABLES: [(&str, &str); 3] = [
    ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
    ("CARGO_PROFILE_RELEASE_LTO", "off"),
    ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1"),
];

/// Returns the cache folder of artifacts made once for all runs: the SDK, the compilers of other
/// languages, and compiled crates. Toolkits that take the SDK from the command share the target
/// folder of the repository's, because their dependencies are the same.
pub fn cache() -> PathBuf {
    static CACHE_FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let cache = Path::new(TOOLKITS_FOLDER).join("../target/tmp/cache");
        let compiled = cache.join("toolkit/target");
        if !compiled.exists() {
            fs::create_dir_all(target()).expect("the toolkits' folder can be written");
            fs::create_dir_all(cache.join("toolkit")).expect("the target folder can be written");
            symlink(target(), compiled).expect("the cache folder can be written");
        }
        cache
    });
    CACHE_FOLDER.clone()
}

/// Returns the target folder in which the SDK and its dependencies are already compiled.
pub fn target() -> PathBuf {
    Path::new(TOOLKITS_FOLDER).join("target")
}

/// A toolkit author with an empty folder.
#[derive(Debug)]
pub struct Author {
    folder: TempDir,
}

/// A running `toolkit dev --json`. Dropping it kills the process.
#[derive(Debug)]
pub struct Dev {
    process: Process,
    events: NamedTempFile,
    errors: NamedTempFile,
}

impl Author {
    /// Creates an author.
    pub fn new() -> Self {
        let author = Self {
            folder: tempfile::tempdir().expect("a temporary folder can be made"),
        };
        fs::create_dir(author.path("tmp")).expect("the folder can be written");
        author
    }

    /// Returns a path in the folder.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.folder.path().join(relative)
    }

    /// Creates a new toolkit that builds with the already compiled dependencies.
    pub fn new_toolkit(&self, name: &str) {
        self.toolkit(&["new", name]).succeeded();
        let lock = Path::new(TOOLKITS_FOLDER).join("Cargo.lock");
        let copied = fs::copy(lock, self.path(name).join("Cargo.lock"));
        copied.expect("the toolkit's folder can be written");
    }

    /// Replaces a string in a file.
    pub fn edit(&self, file: &str, from: &str, to: &str) {
        let path = self.path(file);
        let text = fs::read_to_string(&path).expect("the file can be read");
        assert!(text.contains(from), "`{from}` is not in {file}:\n{text}");
        fs::write(&path, text.replace(from, to)).expect("the file can be written");
    }

    /// Runs a command until it ends.
    pub fn toolkit(&self, arguments: &[&str]) -> Finished {
        Finished::run(self.command(arguments))
    }

    /// Runs a command with `--json`, which must succeed, and returns its output.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let printed = self.toolkit(&[arguments, &["--json"]].concat());
        let printed = printed.succeeded();
        serde_json::from_str(&printed).unwrap_or_else(|cause| panic!("{cause}: {printed}"))
    }

    /// Starts `toolkit dev` on a toolkit with additional flags.
    pub fn dev(&self, toolkit: &str, flags: &[&str]) -> Dev {
        let mut command = self.command(&[&["dev", toolkit, "--json"], flags].concat());
        let file = || NamedTempFile::new().expect("a temporary file can be made");
        let end = |file: &NamedTempFile| file.reopen().expect("a temporary file can be opened");
        let events = file();
        let errors = file();
        command
            .stdin(Stdio::null())
            .stdout(end(&events))
            .stderr(end(&errors));
        Dev {
            process: Process(spawn(command)),
            events,
            errors,
        }
    }

    /// Builds a command that has not been started.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(beside("toolkit"));
        command.args(arguments).current_dir(self.folder.path());
        command
            .env("XDG_CACHE_HOME", cache())
            .env("TMPDIR", self.path("tmp"));
        command
            .env("CARGO_TARGET_DIR", target())
            .envs(QUICK_PROFILE_VARIABLES);
        command
    }
}

impl Default for Author {
    fn default() -> Self {
        Self::new()
    }
}

impl Dev {
    /// Returns all events so far.
    pub fn events(&self) -> Vec<Value> {
        let printed = self.printed();
        // The last line may be incomplete.
        let whole = printed.rfind('\n').map_or("", |end| &printed[..end]);
        whole
            .lines()
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|cause| panic!("{cause}: {line}"))
            })
            .collect()
    }

    /// Returns the events with this name.
    pub fn all(&self, name: &str) -> Vec<Value> {
        self.events()
            .into_iter()
            .filter(|event| event["event"] == name)
            .collect()
    }

    /// Waits for the event with this name and index, counted from 0.
    pub async fn event(&self, name: &str, number: usize) -> Value {
        wait_for(
            BUILD_TIMEOUT,
            &format!(
                "{name} {number} came after {}{}",
                self.printed(),
                self.errors()
            ),
            || async { self.all(name).len() > number },
        )
        .await;
        self.all(name).swap_remove(number)
    }

    /// Returns a client of the project.
    pub async fn project(&self) -> Client {
        let serving = self.event("serving", 0).await;
        let text = |name: &str| serving[name].as_str().unwrap_or_default().to_owned();
        Client::new(&text("url"), Some(("x-api-key", &text("api_key"))))
    }

    /// Returns everything that was written to standard error.
    pub fn errors(&self) -> String {
        read(&self.errors)
    }

    /// Sends a signal by name and waits until the process has ended.
    pub async fn end(mut self, by: &str) -> ExitStatus {
        signal(by, self.process.0.id());
        let ended = tokio::time::timeout(CONDITION_TIMEOUT, self.process.wait());
        ended.await.expect("toolkit dev ends in time")
    }

    fn printed(&self) -> String {
        read(&self.events)
    }
}
