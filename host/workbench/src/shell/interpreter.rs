//! The child process that runs one command.

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use bashkit::{
    Bash, Builtin, BuiltinContext, ExecResult, ExecutionLimits, FileSystem, FileType, FsLimits,
    SessionLimits, StreamData, async_trait,
};
use bytes::Bytes;
use sandbox::{FileChange, child};
use tokio::runtime::Runtime;

use super::{
    EXIT_REFUSED, MAX_COMMAND_BYTES, MAX_SHELL_FILE_BYTES, MAX_SHELL_FILES, MAX_SHELL_OUTPUT_BYTES,
    MAX_SHELL_STEPS, MAX_SHELL_TIME,
    message::{MAX_REPLY_BYTES, Reply, Request},
};
use crate::FILES_FOLDER;

/// Maximum amount of work of the interpreter, in its own units.
const MAX_WORK_UNITS: u64 = 2_000_000_000;
/// Maximum size of all inputs of commands together, in bytes.
const MAX_INPUT_BYTES: u64 = 1 << 30;
/// Maximum size of the data between the commands of a pipeline, in bytes.
const MAX_PIPE_BYTES: u64 = 64 << 20;
/// Commands that need a network.
const NETWORK_COMMANDS: [&str; 7] = ["curl", "wget", "http", "ssh", "scp", "sftp", "rsync"];
/// Exit code of a command that needs a network.
const EXIT_NO_NETWORK: i32 = 1;

/// A command that fails, because no command has a network.
struct NetworkCommand {
    name: &'static str,
    /// Advice in the failure.
    advice: String,
}

#[async_trait]
impl Builtin for NetworkCommand {
    async fn execute(&self, _: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let Self { name, advice } = self;
        let message = format!("{name}: there is no network here: {advice}\n");
        Ok(ExecResult::err(message, EXIT_NO_NETWORK))
    }
}

/// Runs the shell child: reads a command with its files from standard input, and writes its output
/// with the changed files to standard output.
///
/// Call it first in `main`, before any thread starts, because it sets the limits of the process.
#[must_use]
pub fn shell_child() -> ExitCode {
    match reply().and_then(|reply| io::stdout().write_all(&reply)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(cause) => {
            let _ = writeln!(io::stderr(), "{cause}");
            ExitCode::from(EXIT_REFUSED)
        }
    }
}

fn reply() -> io::Result<Bytes> {
    child::limit_resources()?;
    let runtime = confined_runtime()?;
    let mut input = Vec::new();
    io::stdin().take(MAX_REPLY_BYTES).read_to_end(&mut input)?;
    let request = Request::decode(input.into())?;
    runtime.block_on(run(request))?.encode()
}

/// Starts a runtime and restricts its threads. It has one thread for the parser of the shell, which
/// starts before the restriction, because no thread can start after it.
fn confined_runtime() -> io::Result<Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .max_blocking_threads(1)
        .thread_keep_alive(2 * MAX_SHELL_TIME)
        .build()?;
    runtime.block_on(async { tokio::task::spawn_blocking(child::restrict).await })??;
    child::restrict()?;
    Ok(runtime)
}

async fn run(request: Request) -> io::Result<Reply> {
    let mut shell = shell(&request.network_advice);
    let files = shell.fs();
    let made = files.mkdir(Path::new(FILES_FOLDER), true).await;
    made.map_err(io::Error::other)?;
    for (path, content) in &request.files {
        let path = Path::new(FILES_FOLDER).join(path);
        if let Some(folder) = path.parent() {
            files.mkdir(folder, true).await.map_err(io::Error::other)?;
        }
        let written = files.write_file(&path, content).await;
        written.map_err(io::Error::other)?;
    }
    let output = match shell.exec(&request.command).await {
        Ok(output) => output,
        Err(cause) => return Ok(failed(cause)),
    };
    let mut stderr = output.stderr.into_bytes();
    for (truncated, name) in [
        (output.stdout_truncated, "standard output"),
        (output.stderr_truncated, "standard error"),
    ] {
        if truncated {
            let size = MAX_SHELL_OUTPUT_BYTES >> 20;
            stderr.extend_from_slice(format!("\n{name} is cut at {size} MiB\n").as_bytes());
        }
    }
    Ok(Reply {
        exit: Ok(output.exit_code),
        stdout: StreamData::into_bytes(output.stdout).into(),
        stderr: stderr.into(),
        changes: changes(&files, request.files).await?,
    })
}

/// Creates the shell. Commands that need a network fail with the advice.
fn shell(network_advice: &str) -> Bash {
    let limits = ExecutionLimits::new()
        .max_work_units(MAX_WORK_UNITS)
        .max_aggregate_input_bytes(MAX_INPUT_BYTES)
        .max_live_intermediate_bytes(MAX_PIPE_BYTES)
        .max_commands(MAX_SHELL_STEPS)
        .max_loop_iterations(MAX_SHELL_STEPS)
        .max_total_loop_iterations(MAX_SHELL_STEPS)
        .max_input_bytes(MAX_COMMAND_BYTES)
        .max_stdout_bytes(MAX_SHELL_OUTPUT_BYTES)
        .max_stderr_bytes(MAX_SHELL_OUTPUT_BYTES)
        // The parent ends the process at the limit of the command.
        .timeout(MAX_SHELL_TIME);
    let files = FsLimits::new()
        .max_total_bytes(MAX_SHELL_FILE_BYTES)
        .max_file_size(MAX_SHELL_FILE_BYTES)
        .max_file_count(MAX_SHELL_FILES)
        .max_dir_count(MAX_SHELL_FILES);
    let shell = Bash::builder()
        .limits(limits)
        .session_limits(SessionLimits::new().max_total_commands(MAX_SHELL_STEPS as u64))
        .filesystem_limits(files)
        .username("agent")
        .hostname("workbench")
        .env("HOME", FILES_FOLDER)
        .cwd(FILES_FOLDER);
    NETWORK_COMMANDS
        .into_iter()
        .fold(shell, |shell, name| {
            let advice = network_advice.to_owned();
            shell.builtin(name, Box::new(NetworkCommand { name, advice }))
        })
        .build()
}

/// Returns the result of a command that the shell ended.
fn failed(cause: bashkit::Error) -> Reply {
    let (exit, message) = match cause {
        bashkit::Error::ResourceLimit(limit) => (Err(limit.to_string()), String::new()),
        cause => (Ok(2), format!("{cause}\n")),
    };
    Reply {
        exit,
        stdout: Bytes::new(),
        stderr: message.into(),
        changes: Vec::new(),
    }
}

/// Returns the files of the session that differ from those at the beginning.
async fn changes(
    files: &Arc<dyn FileSystem>,
    before: Vec<(String, Bytes)>,
) -> io::Result<Vec<FileChange>> {
    let mut before: BTreeMap<_, _> = before.into_iter().collect();
    let mut changes = Vec::new();
    let mut folders = vec![PathBuf::from(FILES_FOLDER)];
    while let Some(folder) = folders.pop() {
        // The command may have removed the folder.
        let Ok(entries) = files.read_dir(&folder).await else {
            continue;
        };
        for entry in entries {
            let path = folder.join(entry.name);
            match entry.metadata.file_type {
                FileType::Directory => folders.push(path),
                FileType::File => {
                    let content = files.read_file(&path).await.map_err(io::Error::other)?;
                    let relative = path
                        .strip_prefix(FILES_FOLDER)
                        .map_err(io::Error::other)?
                        .to_string_lossy()
                        .into_owned();
                    let changed = before
                        .remove(&relative)
                        .is_none_or(|bytes| bytes != content);
                    changes.extend(changed.then(|| FileChange {
                        path: relative,
                        content: Some(content.into()),
                    }));
                }
                // Links and pipes do not last.
                _ => {}
            }
        }
    }
    let removed = before.into_keys().map(|path| FileChange {
        path,
        content: None,
    });
    changes.extend(removed);
    Ok(changes)
}
