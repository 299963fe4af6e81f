//! Requests that are handed over to tasks of their own, so that they complete even if their clients
//! disconnect.

use axum::response::{IntoResponse, Response};
use tokio::sync::oneshot;

use crate::http::{
    ApiError, CURRENT_REQUEST, HttpError, context::RequestContext, detached::Detached,
};

/// Answers the request in a task. The request and its permits are handed over to the task.
pub(crate) async fn answer_in_task(
    tasks: &Detached,
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
        Some((owner, server)) => tasks.spawn(server.app.shares.clone().run(owner, task)),
        None => tasks.spawn(task),
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
