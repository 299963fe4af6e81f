//! Scripts of agents.
//!
//! A script counts as an execution of its project, and so does each tool that it runs. A project
//! therefore runs few scripts at a time, so that its tools can run at the same time.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use gate::{Capacity, KeyedLimit};
use sandbox::{ProgramLimits, Sandbox, StoredFile};
use tokio::time::timeout;
use workbench::{Finished, Session, Workbench};

use super::{errors, run};
use crate::{
    App, Result,
    core::ids::{ProjectId, random_text},
    projects::Project,
};

/// Maximum time for which a script waits for other scripts of its project.
pub const MAX_SCRIPT_WAIT: Duration = Duration::from_secs(10);
/// Number of random characters in the id of a run.
const RUN_ID_CHARS: usize = 8;

/// The operator's settings of scripts.
#[derive(Debug, Clone, Copy)]
pub struct ScriptSettings {
    /// Limits of a script.
    pub limits: ProgramLimits,
    /// Maximum number of scripts of one project that run at the same time.
    pub per_project: usize,
}

/// The state of this module in the app.
pub(crate) struct Scripts {
    pub(super) workbench: Workbench,
    limits: ProgramLimits,
    projects: KeyedLimit<ProjectId>,
}

pub(crate) struct Script {
    /// Source text.
    pub code: String,
    /// Files of the session.
    pub files: Vec<StoredFile>,
    /// Variables that the last script of the session left.
    pub variables: Option<Bytes>,
    /// Everything that the script can reach.
    pub session: Arc<dyn Session>,
}

impl Scripts {
    pub(crate) fn new(sandbox: &Sandbox, settings: ScriptSettings) -> Self {
        Self {
            workbench: Workbench::new(sandbox.clone()),
            limits: settings.limits,
            projects: KeyedLimit::new(settings.per_project),
        }
    }
}

/// Runs a script of an agent. The first script of a server waits until the interpreter is compiled.
/// Fails if nothing ran. After that, every outcome is a [`Finished`].
pub(crate) async fn run_script(app: &App, project: &Project, script: Script) -> Result<Finished> {
    let permit = timeout(MAX_SCRIPT_WAIT, app.scripts.projects.acquire(&project.id)).await;
    let _permit = permit
        .ok()
        .flatten()
        .ok_or_else(|| errors::project_busy(Capacity::Scripts))?;
    let script = workbench::Script {
        run_id: random_text(RUN_ID_CHARS),
        tenant: project.tenant.clone(),
        code: script.code,
        files: script.files,
        variables: script.variables,
        limits: app.scripts.limits,
        session: script.session,
    };
    run::script(app, script).await
}
