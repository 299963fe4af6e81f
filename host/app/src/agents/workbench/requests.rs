//! Requests of scripts: executions of tools, searches, proxy requests and uploads.
//!
//! Problem: a script is untrusted, and wants to run tools.
//!
//! Guarantee: a script reaches nothing but its session. The call that runs the script answers its
//! requests sequentially, with the functions by which the session itself does the same. A request
//! therefore ends with the call, and has the scope of the session and its accounts.

mod functions;

use std::{borrow::Cow, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use workbench::Session;

use self::functions::{request_provider, run_tool, search_tools, upload_file};
use super::super::{SessionCaller, meta::MetaTool, session_files};
use crate::{App, Result};

/// Answer to a request: JSON, or a message for the script.
type Answer = std::result::Result<Bytes, String>;

/// The side of the script: a session that passes each request on.
pub(super) struct RequestSender(mpsc::Sender<Request>);

/// The side of the call that runs the script.
pub(super) struct RequestReceiver(mpsc::Receiver<Request>);

struct Request {
    what: Requested,
    answer: oneshot::Sender<Answer>,
}

enum Requested {
    /// A call of a function of the host.
    Call { function: String, arguments: Bytes },
    /// The content of a file of the session.
    Read { path: String },
}

/// Creates both sides.
pub(super) fn channel() -> (Arc<RequestSender>, RequestReceiver) {
    // A script waits for each answer.
    let (sender, receiver) = mpsc::channel(1);
    (Arc::new(RequestSender(sender)), RequestReceiver(receiver))
}

fn call_ended() -> String {
    "the call that runs the script has ended".to_owned()
}

impl RequestSender {
    async fn send(&self, what: Requested) -> Answer {
        let (answer, answered) = oneshot::channel();
        let sent = self.0.send(Request { what, answer }).await;
        sent.map_err(|_| call_ended())?;
        answered.await.map_err(|_| call_ended())?
    }
}

#[async_trait]
impl Session for RequestSender {
    async fn call(&self, function: &str, arguments: Bytes) -> Answer {
        let function = function.to_owned();
        self.send(Requested::Call {
            function,
            arguments,
        })
        .await
    }

    async fn read(&self, path: &str) -> Answer {
        let path = path.to_owned();
        self.send(Requested::Read { path }).await
    }
}

impl RequestReceiver {
    /// Answers the requests of the script until it has ended.
    pub(super) async fn answer_all(mut self, app: &App, caller: &SessionCaller) {
        while let Some(request) = self.0.recv().await {
            let answered = match request.what {
                Requested::Call {
                    function,
                    arguments,
                } => match current(app, caller).await {
                    Ok(caller) => answer(app, &caller, &function, arguments).await,
                    Err(cause) => Err(cause.full_text()),
                },
                Requested::Read { path } => session_files::read(app, caller, &path)
                    .await
                    .map_err(|cause| cause.full_text()),
            };
            // The receiver is gone if the script has been ended.
            let _ = request.answer.send(answered);
        }
    }
}

/// Returns the caller with the session as it is now. Fails if the session does not offer the workbench
/// anymore.
pub(super) async fn current<'a>(
    app: &App,
    caller: &'a SessionCaller,
) -> Result<Cow<'a, SessionCaller>> {
    let caller = caller.current(app).await?;
    MetaTool::RemoteWorkbench.check_switched_on(caller.config())?;
    Ok(caller)
}

async fn answer(app: &App, caller: &SessionCaller, function: &str, arguments: Bytes) -> Answer {
    let answered = match function {
        "run_tool" => return Box::pin(run_tool(app, caller, arguments)).await,
        "search_tools" => Box::pin(search_tools(app, caller, arguments)).await,
        "proxy" => Box::pin(request_provider(app, caller, arguments)).await,
        "upload_file" => Box::pin(upload_file(app, caller, arguments)).await,
        _ => return Err(format!("the workbench has no function {function}")),
    };
    answered.map_err(|cause| cause.full_text())
}
