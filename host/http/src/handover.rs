//! Requests that are handed over to tasks of their own, so that they complete even if their clients
//! disconnect.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};

use crate::{ApiError, CURRENT_REQUEST, HttpError, detached::Detached};

/// Answers the request in a task, which keeps the request and its permits if the client disconnects.
pub(crate) async fn answer_in_task(
    tasks: &Detached,
    answer: impl Future<Output = Response> + Send + 'static,
) -> Response {
    let context = CURRENT_REQUEST.with(Arc::clone);
    let owner = context.task.clone().zip(context.server.get().cloned());
    let task = CURRENT_REQUEST.scope(context, answer);
    let answered = match owner {
        Some((owner, server)) => tasks.start(server.app.shares.clone().run(owner, task)),
        None => tasks.start(task),
    };
    answered
        .await
        .unwrap_or_else(|_| ApiError::Http(HttpError::Panic).into_response())
}
