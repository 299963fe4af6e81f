//! The workbench of a session: Python scripts of an assistant, with files and variables that last.
//!
//! Scripts and commands of a session run sequentially, see `session_files`. A script reaches the session
//! and nothing else, see `requests`. What it leaves is stored when it ends by itself.

mod requests;
mod variables;

use futures::future::{Either, select};
use sandbox::StoredFile;
use workbench::Finished;

use super::{
    SessionCaller,
    session_files::{self, Turn},
};
use crate::{
    App, Result,
    runs::{self, Script},
};

/// A script that has run.
pub(super) struct Ran {
    pub finished: Finished,
    /// Reason why its files and variables could not be stored.
    pub not_stored: Option<String>,
}

/// Runs a Python script in a session. Dropping the future ends the script and its requests. Fails
/// if the script cannot run.
pub(super) async fn run_python(app: &App, caller: &SessionCaller, code: String) -> Result<Ran> {
    let turn = Turn::take(app, caller).await?;
    let caller = &*requests::current(app, caller).await?;
    // The future is large, and would be copied on the stack.
    let work = Box::pin(run_in_turn(app, caller, &turn, code));
    turn.run(app, work).await
}

async fn run_in_turn(app: &App, caller: &SessionCaller, turn: &Turn, code: String) -> Result<Ran> {
    let files = session_files::list(app, caller, "")
        .await?
        .into_iter()
        .map(|file| StoredFile {
            path: file.path,
            size: file.size,
            modified_ms: file.modified_at.0.max(0).cast_unsigned(),
        });
    let (session, requests) = requests::channel();
    let script = Script {
        code,
        files: files.collect(),
        variables: variables::load(app, caller).await?,
        session,
    };
    let run = Box::pin(runs::run_script(app, &caller.project, script));
    let answers = Box::pin(requests.answer_all(app, caller));
    let mut finished = match select(run, answers).await {
        Either::Left((finished, _)) => finished?,
        // The script has ended, and its result follows.
        Either::Right(((), run)) => run.await?,
    };
    // The tools of the script have run, so the caller must get its result in any case.
    let stored = store(app, caller, turn, &mut finished).await;
    Ok(Ran {
        finished,
        not_stored: stored.err().map(|cause| cause.full_text()),
    })
}

/// Stores what a script has left.
async fn store(
    app: &App,
    caller: &SessionCaller,
    turn: &Turn,
    finished: &mut Finished,
) -> Result<()> {
    let changes = std::mem::take(&mut finished.changes);
    let left = match finished.variables.take() {
        Some(left) => Some(variables::seal(app, caller, left).await?),
        None => None,
    };
    if changes.is_empty() && left.is_none() {
        return Ok(());
    }
    session_files::apply(app, caller, changes, left, Some(turn)).await
}
