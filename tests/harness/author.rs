//! Runs the author's command `toolkit` in a folder of its own.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Output, Stdio},
    sync::LazyLock,
};

use serde_json::Value;
use tempfile::{NamedTempFile, TempDir};

use crate::{
    BUILD_TIMEOUT, Client,
    host::{Process, beside, read, signal, spawn},
    wait_for, wait_until,
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
///
/// # Panics
/// If the folder cannot be made.
#[must_use]
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
#[must_use]
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
    ///
    /// # Panics
    /// If no temporary folder can be made.
    #[must_use]
    pub fn new() -> Self {
        let author = Self {
            folder: tempfile::tempdir().expect("a temporary folder can be made"),
        };
        fs::create_dir(author.path("tmp")).expect("the folder can be written");
        author
    }

    /// Returns a path in the folder.
    #[must_use]
    pub fn path(&self, relative: &str) -> PathBuf {
        self.folder.path().join(relative)
    }

    /// Creates a new toolkit that builds with the already compiled dependencies.
    ///
    /// # Panics
    /// If it cannot be created.
    pub fn new_toolkit(&self, name: &str) {
        let made = self.toolkit(&["new", name]);
        assert!(made.status.success(), "{made:#?}");
        let folder = self.path(name);
        fs::copy(
            Path::new(TOOLKITS_FOLDER).join("Cargo.lock"),
            folder.join("Cargo.lock"),
        )
        .expect("the toolkit's folder can be written");
    }

    /// Replaces a string in a file.
    ///
    /// # Panics
    /// If the string does not occur in the file.
    pub fn edit(&self, file: &str, from: &str, to: &str) {
        let path = self.path(file);
        let text = fs::read_to_string(&path).expect("the file can be read");
        assert!(text.contains(from), "`{from}` is not in {file}:\n{text}");
        fs::write(&path, text.replace(from, to)).expect("the file can be written");
    }

    /// Runs a command until it ends.
    ///
    /// # Panics
    /// If the command does not exist.
    #[must_use]
    pub fn toolkit(&self, arguments: &[&str]) -> Output {
        self.command(arguments)
            .output()
            .expect("the command can be started")
    }

    /// Runs a command with `--json`, which must succeed, and returns its output.
    ///
    /// # Panics
    /// If the command fails.
    #[must_use]
    pub fn json(&self, arguments: &[&str]) -> Value {
        let output = self.toolkit(&[arguments, &["--json"]].concat());
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "toolkit {arguments:?}\n{said}");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|cause| panic!("{cause}: {said}"))
    }

    /// Starts `toolkit dev` on a toolkit with additional flags.
    ///
    /// # Panics
    /// If the command does not exist.
    #[must_use]
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
    #[must_use]
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
    ///
    /// # Panics
    /// If a line is not JSON.
    #[must_use]
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
    #[must_use]
    pub fn all(&self, name: &str) -> Vec<Value> {
        self.events()
            .into_iter()
            .filter(|event| event["event"] == name)
            .collect()
    }

    /// Waits for the event with this name and index, counted from 0.
    ///
    /// # Panics
    /// If the event does not occur in time.
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
    ///
    /// # Panics
    /// Never.
    #[must_use]
    pub fn errors(&self) -> String {
        read(&self.errors)
    }

    /// Sends a signal by name and waits until the process has ended.
    pub async fn end(mut self, by: &str) -> ExitStatus {
        signal(by, self.process.0.id());
        let mut status = None;
        wait_until("toolkit dev ends", || {
            status = self.process.0.try_wait().expect("the process can be asked");
            std::future::ready(status.is_some())
        })
        .await;
        status.expect("it has ended")
    }

    fn printed(&self) -> String {
        read(&self.events)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
