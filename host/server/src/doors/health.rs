//! Whether the process lives, and whether it can do its work.

use std::sync::Arc;

use axum::{extract::State, http::StatusCode, response::Response};
use serde_json::json;

use crate::{Server, respond};

/// The process lives.
pub(crate) async fn live() -> Response {
    respond::json(StatusCode::OK, &json!({"status": "live"}))
}

/// The server can do its work: started, not stopping, and the store takes writes.
pub(crate) async fn ready(State(server): State<Arc<Server>>) -> Response {
    let trouble =
        if server.is_serving() { server.app.trouble() } else { Some("the server is starting or stopping".into()) };
    match trouble {
        None => respond::json(StatusCode::OK, &json!({"status": "ready"})),
        Some(why) => respond::json(StatusCode::SERVICE_UNAVAILABLE, &json!({"status": "not ready", "reason": why})),
    }
}
