//! The workbench of a session: Python scripts of an assistant.
//!
//! A script reaches the session and nothing else, see `requests`.

mod requests;

use std::pin::pin;

use futures::future::{Either, select};
use workbench::Finished;

use super::SessionCaller;
use crate::{
    App, Result,
    runs::{self, Script},
};

/// Runs a Python script in a session. Dropping the future ends the script and its requests.
///
/// # Errors
/// Fails if the script cannot run.
pub(super) async fn run_python(
    app: &App,
    caller: &SessionCaller,
    code: String,
) -> Result<Finished> {
    let (session, requests) = requests::channel();
    let script = Script { code, session };
    let run = pin!(runs::run_script(app, &caller.project, script));
    let answers = pin!(requests.answer_all(app, caller));
    match select(run, answers).await {
        Either::Left((finished, _)) => finished,
        // The script has ended, and its result follows.
        Either::Right(((), run)) => run.await,
    }
}
