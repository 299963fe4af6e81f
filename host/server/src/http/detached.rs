//! Requests and calls of tools that run in tasks of their own, so that they complete even if their
//! clients disconnect. A stopping server waits for them as for others, and aborts them afterwards.

use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use tokio::{sync::oneshot, task::JoinSet};

use crate::http::{ApiError, CURRENT_REQUEST, HttpError, context::RequestContext};

/// The tasks of such requests and calls. Dropping it aborts them.
#[derive(Default)]
pub(crate) struct Detached(Mutex<JoinSet<()>>);

impl Detached {
    /// Answers the request in a task. The request and its permits are handed over to the task.
    pub(crate) async fn answer(
        &self,
        answer: impl Future<Output = Response> + Send + 'static,
    ) -> Response {
        let context = CURRENT_REQUEST.with(RequestContext::hand_over);
        let (done, answered) = oneshot::channel();
        let task = async move {
            let response = answer.await;
            let (allowance, owner) =
                CURRENT_REQUEST.with(|context| (context.allowance.get(), context.owner.clone()));
            // The client may have disconnected.
            let _ = done.send((response, allowance, owner));
        };
        let owner = context.task.clone().zip(context.server.get().cloned());
        let task = CURRENT_REQUEST.scope(context, task);
        match owner {
            Some((owner, server)) => self.spawn(server.app.shares.clone().run(owner, task)),
            None => self.spawn(task),
        }
        match answered.await {
            Ok((response, allowance, owner)) => {
                CURRENT_REQUEST.with(|context| {
                    context.allowance.set(allowance);
                    if let Some(owner) = owner.into_inner() {
                        context.owner.get_or_init(|| owner);
                    }
                });
                response
            }
            Err(_) => ApiError::Http(HttpError::Panic).into_response(),
        }
    }

    /// Starts work in a task, which continues if the receiver of its output is dropped. The
    /// receiver gets an error if the work panics or a stopping server aborts it.
    pub(crate) fn start<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> oneshot::Receiver<T> {
        let (done, output) = oneshot::channel();
        self.spawn(async move {
            // The receiver may have been dropped.
            let _ = done.send(work.await);
        });
        output
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.0.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Takes the tasks, to wait for them or to abort them by dropping the set.
    pub(crate) fn take(&self) -> JoinSet<()> {
        std::mem::take(&mut *self.0.lock())
    }
}
