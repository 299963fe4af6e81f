//! Runs of the sandbox. Everything that this crate runs in the sandbox starts here: calls of
//! components and requests without a guest, each a [`Run`], and scripts.
//!
//! Dropping the future of a run cancels it: the guest stops within a few milliseconds, its requests
//! are aborted, and its record says so.
use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use sandbox::{
    Action, Call, Component, Context, Digest, File, Grant, Limits, Outcome, Policy, ProxyRequest,
    ProxyResponse, Refusal, Reservation,
};

use workbench::{Finished, NotRun};

use super::{errors, record::OpenRecord};
use crate::{App, Error, Result, catalog::Release, projects::Project};

pub(super) struct Run<'a, 'r, W> {
    /// The project that the run counts against.
    pub project: &'a Project,
    /// The toolkit.
    pub release: &'a Release,
    /// The work: a [`Guest`] or a [`Request`].
    pub what: W,
    /// The hosts that the run may reach.
    pub policy: Arc<Policy>,
    /// The credential of its requests.
    pub credential: Option<Arc<dyn Grant>>,
    /// The limits of the run. The setting for the size of a file takes precedence for a guest.
    pub limits: Limits,
    /// The record in the execution log, or `None` if the run is a part of another operation, which
    /// reports its failure.
    pub record: Option<&'a mut OpenRecord<'r>>,
}

/// A call of the toolkit's component.
pub(super) struct Guest {
    pub action: Action,
    pub user_id: String,
    /// The fields of the account that the guest may read.
    pub fields: Vec<(String, String)>,
    pub files: Vec<File>,
    /// The reservation for the memory of the files.
    pub files_memory: Option<Reservation>,
    /// The state that a previous call of the same trigger left; empty for a tool.
    pub state: BTreeMap<String, Vec<u8>>,
}

/// A request without a guest.
pub(super) struct Request {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<Bytes>,
    /// Maximum size of a textual response that is decoded to UTF-8, in bytes.
    pub max_text_bytes: usize,
}

/// Calls a component. If this node does not have the component yet, installs it first.
pub(super) fn call(
    app: &App,
    mut run: Run<'_, '_, Guest>,
) -> impl Future<Output = Result<Outcome>> {
    let release = run.release;
    let max_cassette_bytes = app.log.recorder.max_bytes(run.project);
    let mut record = run.record.take();
    // The call is made before the future, which would hold the parts of the run several times.
    let call = to_call(run, record.as_deref(), app.files.settings.size);
    async move {
        let component = load_component(app, release).await?;
        let called =
            app.sandbox
                .call_or_cancel(component, call, max_cassette_bytes, |mut outcome| {
                    observe(&mut record, &mut outcome);
                });
        let ended = Box::pin(called).await;
        let (mut outcome, cassette) = ended.map_err(|refusal| refusal_error(refusal, release))?;
        observe(&mut record, &mut outcome);
        if let Some(record) = record {
            record.set_cassette(cassette);
        }
        Ok(outcome)
    }
}

fn to_call(
    run: Run<'_, '_, Guest>,
    record: Option<&OpenRecord<'_>>,
    max_file_bytes: u64,
) -> Box<Call> {
    let run_id = record.map(|record| record.id().to_string());
    Box::new(Call {
        component: run.release.digest,
        tenant: run.project.tenant.clone(),
        action: run.what.action,
        context: Context {
            run_id: run_id.unwrap_or_default(),
            user_id: run.what.user_id,
            fields: run.what.fields,
        },
        policy: run.policy,
        grant: run.credential,
        limits: Limits {
            file: max_file_bytes,
            ..run.limits
        },
        files: run.what.files,
        files_memory: run.what.files_memory,
        state: run.what.state,
        trace: record.and_then(OpenRecord::trace),
    })
}

/// Sends a request without a guest.
pub(super) async fn send(app: &App, run: Run<'_, '_, Request>) -> Result<Outcome<ProxyResponse>> {
    let request = ProxyRequest {
        tenant: run.project.tenant.clone(),
        policy: run.policy,
        grant: run.credential,
        limits: run.limits,
        method: run.what.method,
        url: run.what.url,
        headers: run.what.headers,
        body: run.what.body,
        max_text_bytes: run.what.max_text_bytes,
        trace: run.record.as_ref().and_then(|record| record.trace()),
    };
    let mut record = run.record;
    let sent = app.sandbox.send_proxy_request(request, |mut outcome| {
        observe(&mut record, &mut outcome);
    });
    let mut outcome = sent
        .await
        .map_err(|refusal| refusal_error(refusal, run.release))?;
    observe(&mut record, &mut outcome);
    Ok(outcome)
}

/// Runs a script of an agent.
pub(super) async fn script(app: &App, script: workbench::Script) -> Result<Finished> {
    let run = app.scripts.workbench.run_python(script).await;
    run.map_err(|cause| match cause {
        NotRun::TooLong(_) => errors::invalid(cause.to_string()),
        NotRun::Refused(Refusal::TenantBusy(capacity)) => errors::project_busy(capacity),
        NotRun::Refused(Refusal::NodeBusy(capacity)) => errors::node_busy(capacity),
        NotRun::Refused(Refusal::Unavailable(why)) => errors::unavailable(why),
        NotRun::Refused(refusal @ (Refusal::NotInstalled | Refusal::Quarantined)) => {
            errors::internal(refusal)
        }
    })
}

fn observe<T>(record: &mut Option<&mut OpenRecord<'_>>, outcome: &mut Outcome<T>) {
    if let Some(record) = record {
        record.observe(outcome);
    }
}

/// Loads a component, and installs it first if this node does not have it yet.
async fn load_component(app: &App, release: &Release) -> Result<Component> {
    let loaded = match app.sandbox.load(&release.digest).await {
        Err(Refusal::NotInstalled) => {
            Box::pin(install_component(app, release.digest)).await?;
            app.sandbox.load(&release.digest).await
        }
        loaded => loaded,
    };
    loaded.map_err(|refusal| refusal_error(refusal, release))
}

/// Compiles the component of a release, if this node has not done so yet.
pub(crate) async fn compile(app: &App, release: &Release) -> Result<()> {
    load_component(app, release).await.map(drop)
}

async fn install_component(app: &App, component: Digest) -> Result<()> {
    let installed = app
        .installations
        .install(&app.store, &app.sandbox, component);
    match installed.await {
        Ok(()) => Ok(()),
        Err(sandbox::InstallError::Unavailable(why)) => Err(errors::unavailable(why)),
        Err(other) => Err(errors::internal(format!(
            "component {component} cannot be installed: {other}"
        ))),
    }
}

fn refusal_error(refusal: Refusal, release: &Release) -> Error {
    match refusal {
        Refusal::TenantBusy(capacity) => errors::project_busy(capacity),
        Refusal::NodeBusy(capacity) => errors::node_busy(capacity),
        Refusal::NotInstalled => {
            errors::unavailable("the toolkit cannot be installed on this node")
        }
        Refusal::Quarantined => errors::quarantined(&release.slug, &release.version),
        Refusal::Unavailable(why) => errors::unavailable(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests the refusal directly, because no client request can make the host panic. The tests of
    /// the sandbox check that the refusal follows the third panic, and other tests check how errors
    /// of the table are sent.
    #[test]
    fn quarantined_component_is_refused() {
        let release = Release::for_test(&serde_json::json!([]));
        let error = refusal_error(Refusal::Quarantined, &release);
        assert!(error.is(&errors::QUARANTINED), "{error}");
        assert!(
            error.to_string().contains("20260101_00 of toolkit acme"),
            "{error}"
        );
    }
}
