//! Health probes: liveness and readiness.

use std::sync::Arc;

use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use http::{Json, Server, reply};
use serde::Serialize;

/// Result of a probe.
#[derive(Serialize)]
pub struct Health {
    status: Status,
    /// Reason why the server is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Live,
    Ready,
    #[serde(rename = "not ready")]
    NotReady,
}

/// Reports that the process is alive.
pub async fn live() -> Json<Health> {
    Json(Health {
        status: Status::Live,
        reason: None,
    })
}

/// Reports readiness: the server has started, is not stopping, and the store accepts writes.
pub async fn ready(State(server): State<Arc<Server>>) -> Response {
    let reason = if server.is_serving() {
        server.app.store_problem()
    } else {
        Some("the server is starting or stopping".to_owned())
    };
    if reason.is_none() {
        let status = Status::Ready;
        return Json(Health { status, reason }).into_response();
    }
    let status = Status::NotReady;
    reply::json(StatusCode::SERVICE_UNAVAILABLE, &Health { status, reason })
}
