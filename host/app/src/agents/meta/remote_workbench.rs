//! Runs Python in the workbench of the session.

use sandbox::Failure;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use workbench::Finished;

use super::{MetaResult, MetaTool, Workflow, parse};
use crate::{
    App, Result,
    agents::{SessionCaller, errors, workbench::run_python},
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
    stdout: String,
    stderr: String,
    /// None if the script was ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    sandbox_id_suffix: String,
    session: Workflow,
}

/// Runs the code. A script that fails has a result too.
pub(super) async fn run(app: &App, caller: &SessionCaller, arguments: Value) -> Result<MetaResult> {
    let Arguments {
        code_to_execute,
        session_id,
    } = parse(MetaTool::RemoteWorkbench, arguments)?;
    let finished = run_python(app, caller, code_to_execute).await?;
    let error = error(&finished);
    let data = Data {
        results: finished.result.text,
        stdout: finished.stdout.text,
        stderr: finished.stderr.text,
        exit_code: finished.exit.ok(),
        error: error.clone(),
        sandbox_id_suffix: suffix(caller.session_id()),
        session: Workflow::new(session_id.as_deref()),
    };
    Ok(MetaResult {
        data: serde_json::to_value(data).map_err(errors::internal)?,
        error,
    })
}

/// Returns the reason why the script failed, if it did.
fn error(finished: &Finished) -> Option<String> {
    match &finished.exit {
        Err(Failure { kind, message, .. }) => Some(format!("{kind}: {message}")),
        Ok(0) => None,
        Ok(code) => {
            let by_code = || format!("the script ended with exit code {code}");
            Some(finished.error.clone().unwrap_or_else(by_code))
        }
    }
}

fn suffix(session: &str) -> String {
    let length = session.chars().count();
    let rest = session.chars().skip(length.saturating_sub(SUFFIX_CHARS));
    rest.collect()
}
