//! Runs Python in the workbench of the session.

use sandbox::Failure;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use workbench::{Excerpt, FILES_FOLDER, Finished};

use super::{MetaResult, MetaTool, Workflow, meta_result, parse};
use crate::{
    App, Result,
    agents::{SessionCaller, workbench::run_python},
};

/// Number of characters of the session's id by which results name the workbench.
const SUFFIX_CHARS: usize = 4;

#[derive(Deserialize)]
struct Arguments {
    code_to_execute: String,
    session_id: Option<String>,
}

/// The result of a script.
#[derive(Serialize)]
struct Data {
    results: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    results_file_path: Option<String>,
    stdout: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout_file_path: Option<String>,
    stderr: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr_file_path: Option<String>,
    /// Exit code; absent if the script was ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Names of variables that the next script does not get.
    lost_variables: Vec<String>,
    sandbox_id_suffix: String,
    session: Workflow,
}

/// Runs the code. A script that fails has a result too.
pub(super) async fn run(app: &App, caller: &SessionCaller, arguments: Value) -> Result<MetaResult> {
    let arguments: Arguments = parse(MetaTool::RemoteWorkbench, arguments)?;
    let ran = run_python(app, caller, arguments.code_to_execute).await?;
    let finished = ran.finished;
    let is_stored = ran.not_stored.is_none();
    let error = error(&finished).or(ran
        .not_stored
        .map(|cause| format!("the files and variables could not be stored: {cause}")));
    let [results_file_path, stdout_file_path, stderr_file_path] =
        [&finished.result, &finished.stdout, &finished.stderr]
            .map(|text| file_path(text).filter(|_| is_stored));
    let data = Data {
        results: finished.result.text,
        results_file_path,
        stdout: finished.stdout.text,
        stdout_file_path,
        stderr: finished.stderr.text,
        stderr_file_path,
        exit_code: finished.exit.ok(),
        error: error.clone(),
        lost_variables: finished.lost,
        sandbox_id_suffix: suffix(caller.session_id()),
        session: Workflow::new(arguments.session_id.as_deref()),
    };
    meta_result(&data, error)
}

/// Returns the reason why the script failed, if it did.
fn error(finished: &Finished) -> Option<String> {
    match &finished.exit {
        Err(Failure { kind, message, .. }) => Some(format!("{kind}: {message}")),
        Ok(0) => None,
        Ok(code) => {
            let reason = finished.error.clone();
            Some(reason.unwrap_or_else(|| format!("the script ended with exit code {code}")))
        }
    }
}

/// Returns the path of the file with the whole output, if the excerpt was truncated.
pub(super) fn file_path(text: &Excerpt) -> Option<String> {
    let file = text.file.as_ref()?;
    Some(format!("{FILES_FOLDER}/{file}"))
}

fn suffix(session: &str) -> String {
    let length = session.chars().count();
    let rest = session.chars().skip(length.saturating_sub(SUFFIX_CHARS));
    rest.collect()
}
