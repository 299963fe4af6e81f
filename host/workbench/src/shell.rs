//! Runs a shell command of an agent.
//!
//! Problem: a command is untrusted input, and a shell is a large program that may have bugs.
//!
//! Guarantee: the command sees the files of its session and nothing of this machine. It can start no
//! process and reach no network. Its processor time, time, memory, output and files are limited. A
//! command that reaches a limit changes no file.
//!
//! It rests on two layers. The shell is an interpreter whose commands are its own code and whose
//! files are in its memory. It runs in a child process that the kernel confines
//! ([`sandbox::child`]), one for each command.

mod interpreter;
mod message;

use std::{
    path::{Path, PathBuf},
    process::Output,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use gate::{Busy, Gate, Permit, Queue, Shares};
use sandbox::{
    FileChange, Reservation,
    child::{ChildError, ChildLimits, ChildProgram},
};

pub use interpreter::shell_child;

use crate::Excerpt;
use message::{Reply, Request};

/// Argument that makes the program of [`Shell`] run a command.
pub const SHELL_ARG: &str = "run-shell-command";
/// Maximum size of a command, in bytes.
pub const MAX_COMMAND_BYTES: usize = 256 << 10;
/// Maximum size of each standard output of a command, in bytes. The rest is dropped.
pub const MAX_SHELL_OUTPUT_BYTES: usize = 8 << 20;
/// Shares of tenants in the commands that run at the same time on a node. Further commands wait.
pub const COMMAND_SHARES: Shares = Shares {
    total: 10,
    reserve: 8,
    base: 1,
    cap: 2,
};
/// Maximum time for which a command waits for others.
pub const MAX_COMMAND_WAIT: Duration = Duration::from_secs(10);
/// Maximum size of all files of a command together, in bytes, with those outside of
/// [`crate::FILES_FOLDER`].
pub const MAX_SHELL_FILE_BYTES: u64 = 96 << 20;
/// Maximum number of files of a command, and of folders.
pub const MAX_SHELL_FILES: u64 = 2_000;
/// Longest time that a command may be given.
const MAX_SHELL_TIME: Duration = Duration::from_secs(300);
/// Maximum number of simple commands that a command runs, and of turns of its loops.
pub const MAX_SHELL_STEPS: usize = 200_000;
/// Maximum memory of a command, in bytes.
pub const MAX_SHELL_MEMORY_BYTES: u64 = 512 << 20;
/// Exit code of a child that could not run the command, and wrote the reason to standard error.
const EXIT_REFUSED: u8 = 2;

/// Limits of one command, in addition to those that are constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShellLimits {
    /// Maximum time; at most five minutes.
    pub time: Duration,
    /// Maximum processor time, in seconds.
    pub cpu_seconds: u64,
}

/// The shell of a node. Cloning is cheap.
#[derive(Clone)]
pub struct Shell {
    program: Arc<PathBuf>,
    limits: ShellLimits,
    gate: Gate<Arc<str>>,
}

/// Permission to run one command.
pub struct ShellTurn<'a> {
    program: &'a Path,
    limits: ShellLimits,
    _permit: Permit<Arc<str>>,
}

/// Shell command of an agent.
#[derive(Debug)]
pub struct ShellCommand {
    /// Id of the run, which names the files of long output.
    pub run_id: String,
    /// Command.
    pub command: String,
    /// Advice in the failure of a command that needs a network.
    pub network_advice: String,
    /// Files of the session. Each path is relative to [`crate::FILES_FOLDER`].
    pub files: Vec<(String, Bytes)>,
}

/// Result of a command.
#[derive(Debug)]
pub struct CommandFinished {
    /// Exit code, or the limit that ended the command.
    pub exit: Result<i32, String>,
    /// Standard output.
    pub stdout: Excerpt,
    /// Standard error.
    pub stderr: Excerpt,
    /// Changed files in the order of their paths, with those of long output. Each path is relative
    /// to [`crate::FILES_FOLDER`].
    pub changes: Vec<FileChange>,
}

/// Command that did not run, or whose result is not known.
#[derive(Debug, thiserror::Error)]
pub enum CommandNotRun {
    /// The command is larger than [`MAX_COMMAND_BYTES`].
    #[error(
        "the command has {0} bytes; at most {MAX_COMMAND_BYTES} are possible: write parts of it to files of the session"
    )]
    TooLong(usize),
    /// Its output gets no memory. The command was ended.
    #[error("the output gets no memory")]
    Busy(Busy),
    /// The child process cannot be started or understood.
    #[error("the shell cannot be run: {0}")]
    Unavailable(String),
}

impl Shell {
    /// Creates a shell. `program` is the path of the server's own program, which has to call
    /// [`shell_child`] when its first argument is [`SHELL_ARG`].
    #[must_use]
    pub fn new(program: PathBuf, limits: ShellLimits) -> Self {
        Self {
            program: Arc::new(program),
            limits,
            gate: Gate::new(COMMAND_SHARES),
        }
    }

    /// Waits for permission to run a command of a tenant.
    ///
    /// # Errors
    /// Returns the reason if the tenant gets no permit in time.
    pub async fn acquire(&self, tenant: &Arc<str>) -> Result<ShellTurn<'_>, Busy> {
        let queue = Queue::time(MAX_COMMAND_WAIT);
        Ok(ShellTurn {
            program: &self.program,
            limits: self.limits,
            _permit: self.gate.acquire(tenant, queue).await?,
        })
    }
}

impl ShellTurn<'_> {
    /// Runs a command. Dropping the future ends the command. The memory of its result is reserved from
    /// `memory`.
    ///
    /// # Errors
    /// Returns [`CommandNotRun`] without a result.
    pub async fn run(
        self,
        command: ShellCommand,
        memory: &Reservation,
    ) -> Result<CommandFinished, CommandNotRun> {
        if command.command.len() > MAX_COMMAND_BYTES {
            return Err(CommandNotRun::TooLong(command.command.len()));
        }
        let request = Request {
            command: command.command,
            network_advice: command.network_advice,
            files: command.files,
        };
        let child = ChildProgram {
            program: self.program,
            argument: SHELL_ARG,
            limits: ChildLimits {
                cpu_seconds: self.limits.cpu_seconds,
                wall: self.limits.time,
                memory: MAX_SHELL_MEMORY_BYTES,
            },
            max_output_bytes: message::MAX_REPLY_BYTES,
        };
        let input = request
            .encode()
            .map_err(|cause| CommandNotRun::Unavailable(cause.to_string()))?;
        let ran = child
            .run(input, Some(memory))
            .await
            .map_err(|cause| match cause {
                ChildError::Io(cause) => CommandNotRun::Unavailable(cause.to_string()),
                ChildError::Busy(busy) => CommandNotRun::Busy(busy),
            })?;
        match ran {
            Some(output) => finish(output, &command.run_id, self.limits),
            None => {
                let seconds = self.limits.time.as_secs();
                Ok(ended(format!("it takes longer than {seconds} s")))
            }
        }
    }
}

fn finish(
    output: Output,
    run_id: &str,
    limits: ShellLimits,
) -> Result<CommandFinished, CommandNotRun> {
    let message = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let decoded = match output.status.code() {
        Some(0) => Reply::decode(output.stdout.into()),
        Some(code) if code == i32::from(EXIT_REFUSED) => {
            return Err(CommandNotRun::Unavailable(message()));
        }
        // A Rust program aborts when an allocation fails, and the kernel ends a process that has
        // used its processor time or overflows its stack.
        _ => {
            tracing::info!(status = %output.status, message = message(), "a shell command was ended");
            return Ok(ended(format!(
                "it takes more than {} s of processor time, or more than {} MiB of memory",
                limits.cpu_seconds,
                MAX_SHELL_MEMORY_BYTES >> 20
            )));
        }
    };
    let reply = decoded.map_err(|cause| CommandNotRun::Unavailable(cause.to_string()))?;
    let mut changes = reply.changes;
    let mut excerpt =
        |output, name: &str| Excerpt::new(output, &format!("{run_id}-{name}.txt"), &mut changes);
    let stdout = excerpt(reply.stdout, "stdout");
    let stderr = excerpt(reply.stderr, "stderr");
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(CommandFinished {
        exit: reply.exit,
        stdout,
        stderr,
        changes,
    })
}

/// Returns the result of a command that reached a limit of its process.
fn ended(limit: String) -> CommandFinished {
    CommandFinished {
        exit: Err(limit),
        stdout: Excerpt::default(),
        stderr: Excerpt::default(),
        changes: Vec::new(),
    }
}
