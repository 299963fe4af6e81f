//! Health probes: liveness and readiness.

use std::sync::Arc;

use axum::{extract::State, http::StatusCode, response::Response};
use serde_json::json;

use crate::{Server, http::reply};

/// Reports that the process is alive.
pub(crate) async fn live() -> Response {
    reply::json(StatusCode::OK, &json!({"status": "live"}))
}

/// Reports readiness: the server has started, is not stopping, and the store accepts writes.
pub(crate) async fn ready(State(server): State<Arc<Server>>) -> Response {
    let trouble = if server.is_serving() {
        server.app.store_problem()
    } else {
        Some("the server is starting or stopping".into())
    };
    match trouble {
        None => reply::json(StatusCode::OK, &json!({"status": "ready"})),
        Some(why) => reply::json(
            StatusCode::SERVICE_UNAVAILABLE,
            &json!({"status": "not ready", "reason": why}),
        ),
    }
}
