//! Scripts of agents.
//!
//! A script counts as an execution of its project, and so does each tool that it runs. A project
//! therefore runs few scripts at a time, so that its tools find room beside them.

use std::{collections::HashMap, sync::Arc, time::Duration};

use bytes::Bytes;
use parking_lot::Mutex;
use sandbox::{ProgramLimits, Sandbox, StoredFile};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
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
    settings: ScriptSettings,
    /// The permits of each project that runs scripts.
    permits: Mutex<HashMap<ProjectId, Arc<Semaphore>>>,
}

/// A script to run.
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
            settings,
            permits: Mutex::default(),
        }
    }

    async fn acquire(&self, project: &ProjectId) -> Result<OwnedSemaphorePermit> {
        let permits = {
            let mut projects = self.permits.lock();
            projects.retain(|_, permits| Arc::strong_count(permits) > 1);
            let new = || Arc::new(Semaphore::new(self.settings.per_project));
            projects.entry(project.clone()).or_insert_with(new).clone()
        };
        match timeout(MAX_SCRIPT_WAIT, permits.acquire_owned()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(errors::project_busy()),
        }
    }
}

/// Runs a script of an agent. The first script of a server waits until the interpreter is compiled.
///
/// # Errors
/// Fails if nothing ran. After that, every outcome is a [`Finished`].
pub(crate) async fn run_script(app: &App, project: &Project, script: Script) -> Result<Finished> {
    let _permit = app.scripts.acquire(&project.id).await?;
    let script = workbench::Script {
        run_id: random_text(RUN_ID_CHARS),
        tenant: project.tenant.clone(),
        code: script.code,
        files: script.files,
        variables: script.variables,
        limits: app.scripts.settings.limits,
        session: script.session,
    };
    run::script(app, script).await
}
