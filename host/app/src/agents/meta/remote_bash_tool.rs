//! `REMOTE_BASH_TOOL`: runs a shell command over the files of the session.

use bytes::Bytes;
use gate::Capacity;
use sandbox::Reservation;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use workbench::{CommandFinished, CommandNotRun, ShellCommand};

use super::{MetaResult, MetaTool, Workflow, meta_result, parse, remote_workbench::file_path};
use crate::{
    App, Class, Result,
    agents::{
        SessionCaller, errors,
        session_files::{self, Turn},
    },
    core::ids::random_text,
    files::reserve_memory,
};

/// Number of random characters in the names of the files of long output.
const RUN_ID_CHARS: usize = 8;

#[derive(Deserialize)]
struct Arguments {
    command: String,
    session_id: Option<String>,
}

#[derive(Serialize)]
struct Data {
    stdout: String,
    #[serde(rename = "stdoutLines")]
    stdout_lines: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout_file_path: Option<String>,
    stderr: String,
    #[serde(rename = "stderrLines")]
    stderr_lines: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr_file_path: Option<String>,
    /// Exit code, if the command ended by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    session: Workflow,
}

/// Runs the meta tool. Fails if the arguments are invalid, if the session is busy, if the shell
/// cannot be run, or if the changed files cannot be stored.
pub(super) async fn run(app: &App, caller: &SessionCaller, arguments: Value) -> Result<MetaResult> {
    let arguments: Arguments = parse(MetaTool::RemoteBashTool, arguments)?;
    let command = arguments.command;
    let turn = Turn::take(app, caller).await?;
    let ran = turn.run(app, run_command(app, caller, &turn, command));
    let (finished, not_stored) = ran.await?;
    let is_stored = not_stored.is_none();
    let data = Data {
        stdout_file_path: file_path(&finished.stdout).filter(|_| is_stored),
        stdout: finished.stdout.text,
        stdout_lines: finished.stdout.lines,
        stderr_file_path: file_path(&finished.stderr).filter(|_| is_stored),
        stderr: finished.stderr.text,
        stderr_lines: finished.stderr.lines,
        exit_code: finished.exit.as_ref().ok().copied(),
        session: Workflow::new(arguments.session_id.as_deref()),
    };
    let error = finished.exit.err().map_or(not_stored, |limit| {
        Some(format!(
            "the command was ended and changed no file: {limit}; split it into smaller ones"
        ))
    });
    meta_result(&data, error)
}

/// Runs a command and stores the files that it has changed. Also returns the reason why they could
/// not be stored.
async fn run_command(
    app: &App,
    caller: &SessionCaller,
    turn: &Turn,
    command: String,
) -> Result<(CommandFinished, Option<String>)> {
    // The files take memory only while the command may run.
    let shell = app
        .shell
        .acquire(&caller.project.tenant)
        .await
        .map_err(|busy| errors::busy(Capacity::Scripts, busy))?;
    // The command may have waited long for its turn and its permit.
    let caller = &*caller.current(app).await?;
    MetaTool::RemoteBashTool.check_switched_on(caller.config())?;
    let (files, memory) = files(app, caller).await?;
    let command = ShellCommand {
        run_id: random_text(RUN_ID_CHARS),
        command,
        files,
    };
    let mut finished = shell
        .run(command, &memory)
        .await
        .map_err(|cause| match cause {
            CommandNotRun::TooLong(_) => {
                errors::arguments_invalid(MetaTool::RemoteBashTool.slug(), cause.to_string())
            }
            CommandNotRun::Busy(busy) => errors::busy(Capacity::Memory, busy),
            CommandNotRun::Unavailable(_) => errors::unavailable(cause),
        })?;
    let changes = std::mem::take(&mut finished.changes);
    if changes.is_empty() {
        return Ok((finished, None));
    }
    match session_files::apply(app, caller, changes, None, Some(turn)).await {
        Ok(()) => Ok((finished, None)),
        Err(cause) if matches!(cause.info().class, Class::Invalid | Class::StorageFull) => {
            let hint = cause.info().hint;
            let reason = format!("the command ran, but its files were not stored: {cause}; {hint}");
            Ok((finished, Some(reason)))
        }
        Err(cause) => Err(cause),
    }
}

/// Returns the files of the session with their contents, and the reservation for two copies of these:
/// one is sent to the shell.
async fn files(app: &App, caller: &SessionCaller) -> Result<(Vec<(String, Bytes)>, Reservation)> {
    let listed = session_files::list(app, caller, "").await?;
    let bytes = listed.iter().map(|file| file.size).sum::<u64>();
    let memory = reserve_memory(app, &caller.project.tenant, 2 * bytes)?;
    let mut files = Vec::new();
    for file in listed {
        let bytes = session_files::read(app, caller, &file.path).await?;
        files.push((file.path, bytes));
    }
    Ok((files, memory))
}
