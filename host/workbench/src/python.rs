//! Runs one Python script.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use sandbox::{
    Cause, Failure, FileChange, Preparation, Program, ProgramHost, ProgramLimits, ProgramOutcome,
    Refusal, StoredFile, kind,
};
use serde::Deserialize;

use crate::{
    Excerpt, FILES_FOLDER, Finished, MAX_CODE_BYTES, NotRun, Script, Session, Workbench,
    interpreter,
};

/// Maximum size of the variables that are kept for the next script, in bytes.
pub const MAX_VARIABLES_BYTES: usize = 8 << 20;
/// Maximum processor time for reading the variables of earlier scripts.
pub const MAX_READING_TIME: Duration = Duration::from_secs(10);
/// Maximum length of the value of the last expression, in characters.
pub const MAX_RESULT_CHARS: usize = 1 << 20;

const DRIVER_SOURCE: &str = include_str!("driver.py");
const DRIVER_PATH: &str = "/workbench/driver.py";
const SCRIPT_PATH: &str = "/workbench/script.py";
const VARIABLES_PATH: &str = "/workbench/variables";
/// Variable of the environment that makes the driver drop the variables of earlier scripts.
const DROP_VARIABLE: &str = "DROP_VARIABLES";
/// Function by which the driver says that it has read the variables, and that the script starts.
const BEGIN_FUNCTION: &str = "workbench.begin";
/// Function by which the driver reports the result of the script.
const REPORT_FUNCTION: &str = "workbench.report";
/// Function by which the driver keeps the variables of the script.
const KEEP_FUNCTION: &str = "workbench.keep";
/// Note in the standard error of a script that has ended the interpreter, for example with `os._exit`.
const UNREPORTED_END: &str =
    "The interpreter was ended without its result, and no variables last\n";
/// Number of requests of the driver itself. As many requests of the script as are permitted may be
/// refused before the program's own limit prevents these.
const DRIVER_REQUESTS: u32 = 3;

/// Result of a script as the driver reports it.
#[derive(Default, Deserialize)]
struct Report {
    exit_code: i32,
    result: String,
    error: Option<String>,
    lost: Vec<String>,
}

pub(crate) async fn run(workbench: &Workbench, script: Script) -> Result<Finished, NotRun> {
    if script.code.len() > MAX_CODE_BYTES {
        return Err(NotRun::TooLong(script.code.len()));
    }
    workbench.prepare().await?;
    let (outcome, host) = run_once(workbench, &script, Reading::Restore).await?;
    if script.variables.is_none() || host.has_begun() || !is_own_end(&outcome.exit) {
        return Ok(finish(outcome, &host, &script.run_id));
    }
    tracing::info!(exit = ?outcome.exit, "the variables of a session are dropped");
    let spent = outcome.usage.cpu;
    drop(outcome);
    let (mut outcome, host) = run_once(workbench, &script, Reading::Drop).await?;
    outcome.usage.cpu += spent;
    let mut finished = finish(outcome, &host, &script.run_id);
    if host.has_begun() {
        finished.variables.get_or_insert_default();
    }
    Ok(finished)
}

/// Treatment of the variables that earlier scripts have left.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// The script gets them.
    Restore,
    /// The script does without them, because reading them ends the interpreter.
    Drop,
}

/// Returns true if a program was ended by what it did, and not because this node lacked memory.
fn is_own_end(exit: &Result<i32, Failure>) -> bool {
    let failure = exit.as_ref().err();
    failure.is_none_or(|failure| failure.cause == Cause::Limit && failure.kind != kind::TIMEOUT)
}

async fn run_once(
    workbench: &Workbench,
    script: &Script,
    reading: Reading,
) -> Result<(ProgramOutcome, Arc<Host>), NotRun> {
    let host = Arc::new(Host {
        session: script.session.clone(),
        has_begun: AtomicBool::new(false),
        calls: AtomicU32::new(0),
        max_calls: script.limits.requests,
        report: Mutex::default(),
        variables: Mutex::default(),
    });
    let run = || {
        workbench
            .sandbox
            .run_program(program(script, &host, reading))
    };
    let outcome = match run().await {
        // The compiled form was damaged and removed.
        Err(Refusal::NotInstalled) => {
            workbench.prepare().await?;
            run().await?
        }
        outcome => outcome?,
    };
    Ok((outcome, host))
}

fn program(script: &Script, host: &Arc<Host>, reading: Reading) -> Program {
    let mut system_files = vec![
        (interpreter::LIBRARY_PATH.to_owned(), interpreter::library()),
        (
            DRIVER_PATH.to_owned(),
            Bytes::from_static(DRIVER_SOURCE.as_bytes()),
        ),
        (SCRIPT_PATH.to_owned(), script.code.clone().into()),
    ];
    let variables = script.variables.clone().filter(|bytes| !bytes.is_empty());
    let preparation = variables.is_some().then_some(Preparation {
        cpu: MAX_READING_TIME,
        ended_by: BEGIN_FUNCTION,
    });
    system_files.extend(variables.map(|bytes| (VARIABLES_PATH.to_owned(), bytes)));
    let mut environment = vec![
        ("HOME", FILES_FOLDER.to_owned()),
        ("PWD", FILES_FOLDER.to_owned()),
        ("MAX_VARIABLES_BYTES", MAX_VARIABLES_BYTES.to_string()),
        ("MAX_RESULT_CHARS", MAX_RESULT_CHARS.to_string()),
    ];
    if reading == Reading::Drop {
        environment.push((DROP_VARIABLE, "1".to_owned()));
    }
    let files = script.files.iter().map(|file| StoredFile {
        path: format!("{FILES_FOLDER}/{}", file.path),
        ..file.clone()
    });
    Program {
        module: interpreter::digest(),
        entry: interpreter::ENTRY_FUNCTION,
        tenant: script.tenant.clone(),
        arguments: vec!["python3".to_owned(), DRIVER_PATH.to_owned()],
        environment: environment
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
        system_files,
        files: files.collect(),
        folders: [FILES_FOLDER, "/tmp"].map(str::to_owned).into(),
        limits: ProgramLimits {
            requests: script
                .limits
                .requests
                .saturating_mul(2)
                .saturating_add(DRIVER_REQUESTS),
            ..script.limits
        },
        preparation,
        host: host.clone(),
    }
}

/// Session as the program sees it, and the results of the driver.
struct Host {
    session: Arc<dyn Session>,
    /// True once the variables are read. Reading them runs code of earlier scripts, which reaches no tool
    /// and reports nothing.
    has_begun: AtomicBool,
    calls: AtomicU32,
    max_calls: u32,
    report: Mutex<Bytes>,
    variables: Mutex<Option<Bytes>>,
}

impl Host {
    fn has_begun(&self) -> bool {
        self.has_begun.load(Relaxed)
    }
}

#[async_trait]
impl ProgramHost for Host {
    async fn call(&self, function: &str, input: Bytes) -> Result<Bytes, String> {
        match function {
            BEGIN_FUNCTION => self.has_begun.store(true, Relaxed),
            _ if !self.has_begun() => {
                return Err("the variables of earlier scripts are being read".to_owned());
            }
            REPORT_FUNCTION => *self.report.lock() = input,
            KEEP_FUNCTION => *self.variables.lock() = Some(input),
            _ if self.calls.fetch_add(1, Relaxed) >= self.max_calls => {
                return Err(format!("more than {} calls in one script", self.max_calls));
            }
            _ => return self.session.call(function, input).await,
        }
        Ok(Bytes::new())
    }

    async fn read(&self, path: &str) -> Result<Bytes, String> {
        match relative(path) {
            Some(path) => self.session.read(path).await,
            None => Err("it is not a file of the session".to_owned()),
        }
    }
}

/// Returns a path relative to the folder of the session's files, if it is in it.
fn relative(path: &str) -> Option<&str> {
    path.strip_prefix(FILES_FOLDER)?.strip_prefix('/')
}

fn finish(outcome: ProgramOutcome, host: &Host, run_id: &str) -> Finished {
    let mut error_output = outcome.stderr;
    // A script that was ended keeps nothing, and may have reported anything.
    let (report, variables) = if outcome.exit.is_err() {
        (Report::default(), None)
    } else if host.has_begun() && host.report.lock().is_empty() {
        // Variables that end the interpreter after they have pretended to be read do it only once.
        error_output = [&error_output, UNREPORTED_END.as_bytes()].concat().into();
        (Report::default(), Some(Bytes::new()))
    } else {
        let report = serde_json::from_slice(&host.report.lock());
        (report.unwrap_or_default(), host.variables.lock().take())
    };
    let in_session = outcome
        .changes
        .into_iter()
        .filter_map(|FileChange { path, content }| {
            let path = relative(&path)?.to_owned();
            Some(FileChange { path, content })
        });
    let mut changes: Vec<_> = in_session.collect();
    // The exit code of the interpreter says only that it could not run the driver.
    let exit = outcome.exit.map(|code| match code {
        0 => report.exit_code,
        code => code,
    });
    let mut excerpt =
        |output, name: &str| Excerpt::new(output, &format!("{run_id}-{name}.txt"), &mut changes);
    let result = excerpt(report.result.into(), "result");
    let stdout = excerpt(outcome.stdout, "stdout");
    let stderr = excerpt(error_output, "stderr");
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    Finished {
        exit,
        error: report.error,
        result,
        stdout,
        stderr,
        changes,
        variables: variables.filter(|bytes| bytes.len() <= 2 * MAX_VARIABLES_BYTES),
        lost: report.lost,
        usage: outcome.usage,
        memory: outcome.memory,
    }
}
