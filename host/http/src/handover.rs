//! Requests that are handed over to tasks of their own, so that they complete even if their clients
//! disconnect.

use std::sync::Arc;

use app::{App, core::tasks::Tasks};
use axum::response::{IntoResponse, Response};

use crate::{ApiError, CURRENT_REQUEST, HttpError, errors};

/// Answers the request in a task, which keeps the request and its permits if the client disconnects.
pub(crate) async fn answer_in_task(
    tasks: &Tasks,
    answer: impl Future<Output = Response> + Send + 'static,
) -> Response {
    in_task(tasks, answer)
        .await
        .unwrap_or_else(|| ApiError::Http(HttpError::Panic).into_response())
}

/// Runs work on accounts that consumes a one-time value to completion, even if the client disconnects: an
/// authorization code that was used without effect is lost.
pub async fn run_to_completion<T: Send + 'static>(
    app: &App,
    work: impl Future<Output = app::Result<T>> + Send + 'static,
) -> app::Result<T> {
    in_task(app.account_tasks(), work)
        .await
        .unwrap_or_else(|| Err(errors::internal("the task of a one-time value panicked")))
}

/// Does work in a task that has the context of the request. Returns `None` if the work panics or is
/// aborted.
async fn in_task<T: Send + 'static>(
    tasks: &Tasks,
    work: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    let context = CURRENT_REQUEST.with(Arc::clone);
    let owner = context.task.clone().zip(context.server.get().cloned());
    let task = CURRENT_REQUEST.scope(context, work);
    let output = match owner {
        Some((owner, server)) => tasks.start(server.app.shares.clone().run(owner, task)),
        None => tasks.start(task),
    };
    output.await.ok()
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio::sync::oneshot;

    use super::*;
    use crate::context::RequestContext;

    #[tokio::test]
    async fn task_keeps_the_request_of_its_caller() {
        let tasks = Tasks::default();
        let (sender, received) = oneshot::channel();
        let work = async move { sender.send(CURRENT_REQUEST.with(|request| request.peer)) };
        let context = RequestContext::new("req_x".into(), [127, 0, 0, 1].into(), None);
        let peer = context.peer;
        let called = CURRENT_REQUEST.scope(Arc::new(context), in_task(&tasks, work));
        assert!(called.now_or_never().is_none(), "the client disconnects");
        tasks.finish().await;
        assert_eq!(received.await, Ok(peer));
    }
}
