//! Records of calls of tools that the host itself implements.
//!
//! Such a call may wait for minutes, so it reserves no capacity of the log while it works. Its
//! record is opened when it has ended. A refused call leaves no record, and neither does a
//! cancelled one: the tools that it ran have records of their own.

use std::sync::Arc;

use bytes::Bytes;

use super::{
    Execution,
    log::Subject,
    record::{OpenRecord, Start},
};
use crate::{
    App, Result,
    accounts::Source,
    core::{ids::SessionId, request_id::RequestId},
    projects::SharedProject,
};

pub(crate) struct HostCall<'a> {
    pub project: &'a SharedProject,
    /// The slug of the tool, with the default operator word.
    pub tool: Arc<str>,
    pub user: &'a str,
    /// The session of the call, unless a trigger instance calls.
    pub session: Option<SessionId>,
    pub request_id: RequestId,
    pub arguments: Bytes,
}

/// Does the work of a call, which returns data and a failure, and records it. Fails as the work
/// does.
pub(crate) async fn record_host_call(
    app: &App,
    call: HostCall<'_>,
    work: impl Future<Output = Result<(Bytes, Option<String>)>>,
) -> Result<Execution> {
    let start = Start::now(&app.clock);
    let (data, error) = work.await?;
    let subject = Subject {
        project: call.project.clone(),
        tool: call.tool.clone(),
        release: None,
        user: call.user.to_owned(),
        account: None,
        auth_config: None,
        source: Source::NoAuth,
        session: call.session,
        request_id: call.request_id,
        arguments: call.arguments,
        tokens: None,
    };
    let log_id = match app.log.reserve().await {
        Ok(slot) => {
            let record = OpenRecord::at(app, slot, subject, start);
            let log_id = record.id().clone();
            record.close(data.clone(), error.clone()).await;
            log_id
        }
        // The effects of the call are there, so the caller must get its result.
        Err(cause) => {
            tracing::warn!(%cause, tool = %call.tool, "a call of a meta tool is not recorded");
            app.sequence.log(start.time)
        }
    };
    Ok(Execution {
        log_id,
        data,
        error,
        release: None,
        beginning: None,
        unknown_arguments: Vec::new(),
    })
}
