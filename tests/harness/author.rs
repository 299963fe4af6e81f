//! The author's command: `toolkit`, in a folder of its own.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Output, Stdio},
};

use serde_json::Value;
use tempfile::{NamedTempFile, TempDir};

use crate::{
    Client, LONG,
    host::{Process, beside, read, signal, spawn},
    wait_for, wait_until,
};

/// Toolkits of the repository. Their target folder and lock file are used here too, so that the SDK and what it needs
/// are compiled once for all.
const TOOLKITS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../toolkits");

/// Where authors keep what is made once for all runs: the compilers of other languages, the guest of imports.
#[must_use]
pub fn cache() -> PathBuf {
    Path::new(TOOLKITS).join("../target/tmp/cache")
}

/// Where the SDK and what it needs are compiled already.
#[must_use]
pub fn target() -> PathBuf {
    Path::new(TOOLKITS).join("target")
}

/// An author with an empty folder.
#[derive(Debug)]
pub struct Author {
    folder: TempDir,
}

/// `toolkit dev --json` under way. Dropped, it is killed.
#[derive(Debug)]
pub struct Dev {
    process: Process,
    events: NamedTempFile,
    errors: NamedTempFile,
}

impl Author {
    /// # Panics
    /// When there is no room for temporary files.
    #[must_use]
    pub fn new() -> Self {
        let author = Self { folder: tempfile::tempdir().expect("a temporary folder can be made") };
        fs::create_dir(author.path("tmp")).expect("the folder can be written");
        author
    }

    /// A path in the folder.
    #[must_use]
    pub fn path(&self, relative: &str) -> PathBuf {
        self.folder.path().join(relative)
    }

    /// A new toolkit, which builds with what is compiled already.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn new_toolkit(&self, name: &str) {
        let made = self.toolkit(&["new", name]);
        assert!(made.status.success(), "{made:#?}");
        let folder = self.path(name);
        fs::copy(Path::new(TOOLKITS).join("Cargo.lock"), folder.join("Cargo.lock"))
            .expect("the toolkit's folder can be written");
    }

    /// Replaces a text in a file.
    ///
    /// # Panics
    /// When it is not there.
    pub fn edit(&self, file: &str, from: &str, to: &str) {
        let path = self.path(file);
        let text = fs::read_to_string(&path).expect("the file can be read");
        assert!(text.contains(from), "`{from}` is not in {file}:\n{text}");
        fs::write(&path, text.replace(from, to)).expect("the file can be written");
    }

    /// Runs a command to its end.
    ///
    /// # Panics
    /// When there is no such command.
    #[must_use]
    pub fn toolkit(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the command can be started")
    }

    /// Runs a command with `--json` that must succeed; its answer.
    ///
    /// # Panics
    /// When it fails.
    #[must_use]
    pub fn json(&self, arguments: &[&str]) -> Value {
        let output = self.toolkit(&[arguments, &["--json"]].concat());
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "toolkit {arguments:?}\n{said}");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|cause| panic!("{cause}: {said}"))
    }

    /// Starts `toolkit dev` on a toolkit, with further flags.
    ///
    /// # Panics
    /// When there is no such command.
    #[must_use]
    pub fn dev(&self, toolkit: &str, flags: &[&str]) -> Dev {
        let mut command = self.command(&[&["dev", toolkit, "--json"], flags].concat());
        let file = || NamedTempFile::new().expect("a temporary file can be made");
        let end = |file: &NamedTempFile| file.reopen().expect("a temporary file can be opened");
        let (events, errors) = (file(), file());
        command.stdin(Stdio::null()).stdout(end(&events)).stderr(end(&errors));
        Dev { process: Process(spawn(command)), events, errors }
    }

    /// A command, to be started.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(beside("toolkit"));
        command.args(arguments).current_dir(self.folder.path());
        command.env("XDG_CACHE_HOME", cache()).env("TMPDIR", self.path("tmp"));
        command.env("CARGO_TARGET_DIR", target());
        command
    }
}

impl Default for Author {
    fn default() -> Self {
        Self::new()
    }
}

impl Dev {
    /// Everything that happened so far.
    ///
    /// # Panics
    /// When a line is not JSON.
    #[must_use]
    pub fn events(&self) -> Vec<Value> {
        let printed = self.printed();
        let event = |line: &str| serde_json::from_str(line).unwrap_or_else(|cause| panic!("{cause}: {line}"));
        // The last line may still be on its way.
        let whole = printed.rfind('\n').map_or("", |end| &printed[..end]);
        whole.lines().map(event).collect()
    }

    /// The events of one name.
    #[must_use]
    pub fn all(&self, name: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["event"] == name).collect()
    }

    /// Waits for the event of this name and number, from 0.
    ///
    /// # Panics
    /// When it does not come.
    pub async fn event(&self, name: &str, number: usize) -> Value {
        let come = || async { self.all(name).len() > number };
        wait_for(LONG, &format!("{name} {number} came after {}{}", self.printed(), self.errors()), come).await;
        self.all(name).swap_remove(number)
    }

    /// A client of the project.
    pub async fn project(&self) -> Client {
        let serving = self.event("serving", 0).await;
        let text = |name: &str| serving[name].as_str().unwrap_or_default().to_owned();
        Client::new(&text("url"), Some(("x-api-key", &text("api_key"))))
    }

    /// All that went to standard error.
    ///
    /// # Panics
    /// Never.
    #[must_use]
    pub fn errors(&self) -> String {
        read(&self.errors)
    }

    /// Sends a signal by name and waits for the end.
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
