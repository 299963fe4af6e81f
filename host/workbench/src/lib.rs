//! Python and a shell for agents.
//!
//! Problem: a script of an agent is untrusted code, and an agent expects a system in which its files
//! and variables last from call to call.
//!
//! Guarantee: each call runs in a fresh instance of an interpreter in the sandbox. It sees the files
//! of its session and nothing of this machine: no file, no environment, no process, no network. What
//! leaves it are requests to its [`Session`], which decides about each. Files and variables change
//! only if the call ends by itself. Variables whose reading ends the interpreter or reaches a limit are
//! dropped, and the script runs without them.
//!
//! `interpreter` prepares the interpreter, `python` runs one script, `driver.py` is the part of it
//! that runs in the sandbox, `excerpt` cuts long output, and `shell` runs shell commands.

mod excerpt;
mod interpreter;
mod python;
mod shell;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use sandbox::{Failure, ProgramLimits, Refusal, Reservation, Sandbox, StoredFile, Usage};

pub use excerpt::{Excerpt, MAX_EXCERPT_BYTES};
pub use interpreter::MAX_CODE_BYTES;
pub use python::{MAX_READING_TIME, MAX_RESULT_CHARS, MAX_VARIABLES_BYTES};
pub use shell::{
    COMMAND_SHARES, CommandFinished, CommandNotRun, MAX_COMMAND_BYTES, MAX_COMMAND_WAIT,
    MAX_SHELL_FILE_BYTES, MAX_SHELL_FILES, MAX_SHELL_MEMORY_BYTES, MAX_SHELL_OUTPUT_BYTES,
    MAX_SHELL_STEPS, SHELL_ARG, Shell, ShellCommand, ShellLimits, ShellTurn, shell_child,
};

/// Folder of the session's files, which is also the current folder of a script.
pub const FILES_FOLDER: &str = "/mnt/files";
/// Folder, relative to [`FILES_FOLDER`], of output that was too long for a response.
pub const OUTPUTS_FOLDER: &str = "outputs";

/// Workbench of a node. Cloning is cheap.
#[derive(Clone)]
pub struct Workbench {
    sandbox: Sandbox,
    preparing: Arc<tokio::sync::Mutex<()>>,
}

/// Script of an agent.
pub struct Script {
    /// Id of the run, which names the files of long output.
    pub run_id: String,
    /// Tenant that the run counts against, for example the id of a project.
    pub tenant: Arc<str>,
    /// Source text.
    pub code: String,
    /// Files of the session. Each path is relative to [`FILES_FOLDER`].
    pub files: Vec<StoredFile>,
    /// Variables that an earlier script left, as [`Finished::variables`] had them.
    pub variables: Option<Bytes>,
    /// Limits of the run.
    pub limits: ProgramLimits,
    /// Session of the script.
    pub session: Arc<dyn Session>,
}

/// Session of a script: everything that it can reach.
#[async_trait]
pub trait Session: Send + Sync {
    /// Answers a call of `run_tool`, `search_tools`, `proxy` or `upload_file` with JSON. An error is
    /// a message for the script.
    async fn call(&self, function: &str, arguments: Bytes) -> Result<Bytes, String>;

    /// Returns the content of a file. The path is relative to [`FILES_FOLDER`].
    async fn read(&self, path: &str) -> Result<Bytes, String>;
}

/// Result of a script.
#[derive(Debug)]
pub struct Finished {
    /// Exit code, or the reason that the script was ended.
    pub exit: Result<i32, Failure>,
    /// Last line of the error that ended the script, if there is one.
    pub error: Option<String>,
    /// Value of the last expression, as text.
    pub result: Excerpt,
    /// Standard output.
    pub stdout: Excerpt,
    /// Standard error.
    pub stderr: Excerpt,
    /// Changed files in the order of their paths, with those of long output. Each path is relative
    /// to [`FILES_FOLDER`].
    pub changes: Vec<sandbox::FileChange>,
    /// Variables for the next script: empty if nothing is left, absent if they stay as they were.
    pub variables: Option<Bytes>,
    /// Names of variables that could not be kept.
    pub lost: Vec<String>,
    /// Resource usage of the run.
    pub usage: Usage,
    /// Reservation for the memory of all this; drop it with the result.
    pub memory: Reservation,
}

/// Script that did not run.
#[derive(Debug, thiserror::Error)]
pub enum NotRun {
    /// The script is larger than [`MAX_CODE_BYTES`].
    #[error(
        "the script has {0} bytes; at most {MAX_CODE_BYTES} are possible: write parts of it to files of the session"
    )]
    TooLong(usize),
    /// The sandbox lacks capacity, or the interpreter cannot be prepared.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl Workbench {
    /// Creates a workbench over the sandbox of the node.
    #[must_use]
    pub fn new(sandbox: Sandbox) -> Self {
        Self {
            sandbox,
            preparing: Arc::default(),
        }
    }

    /// Compiles the interpreter, unless this node has compiled it before. Without this, the first
    /// script waits for it.
    ///
    /// # Errors
    /// Returns an error if the interpreter cannot be compiled or stored.
    pub async fn prepare(&self) -> Result<(), Refusal> {
        let _turn = self.preparing.lock().await;
        interpreter::install(&self.sandbox).await
    }

    /// Runs a Python script.
    ///
    /// Dropping the future ends the script.
    ///
    /// # Errors
    /// Returns [`NotRun`] if nothing ran.
    pub async fn run_python(&self, script: Script) -> Result<Finished, NotRun> {
        python::run(self, script).await
    }
}
