//! Fake providers that the pages and walks reach by `net.rewrite`.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use axum::{Json, Router, extract::Path as InPath, http::StatusCode, routing::get};
use serde_json::json;

/// Starts a fake provider on loopback and returns its origin.
#[expect(
    clippy::disallowed_methods,
    reason = "it serves for as long as the test runs"
)]
async fn serve(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    origin
}

/// Starts an Open-Meteo with one forecast.
pub(crate) async fn weather() -> String {
    let now = json!({ "current": { "time": "2026-03-01T07:00", "temperature_2m": 4.2, "wind_speed_10m": 11.0 } });
    serve(Router::new().route("/v1/forecast", get(async move || Json(now)))).await
}

/// Starts a provider with one item.
pub(crate) async fn items() -> String {
    let item = async |InPath(id): InPath<u64>| match id {
        7 => (StatusCode::OK, Json(json!({ "name": "seven" }))),
        _ => (
            StatusCode::NOT_FOUND,
            Json(json!({ "message": "no such item" })),
        ),
    };
    serve(Router::new().route("/v1/items/{id}", get(item))).await
}

/// Starts a Hacker News on which a story is posted before each request for the newest ones.
pub(crate) async fn news() -> String {
    let posted = Arc::new(AtomicU64::new(0));
    let newest = move || {
        let newest = posted.fetch_add(1, Ordering::Relaxed);
        async move { Json((0..=newest).collect::<Vec<_>>()) }
    };
    let story = async |InPath(file): InPath<String>| {
        let id: u64 = file.trim_end_matches(".json").parse().unwrap();
        Json(json!({ "id": id, "type": "story", "title": "A story" }))
    };
    let router = Router::new().route("/v0/newstories.json", get(newest));
    serve(router.route("/v0/item/{file}", get(story))).await
}

/// Starts a Resend with one domain.
pub(crate) async fn resend() -> String {
    let domains = json!({ "has_more": false, "data": [
        { "id": "d-1", "name": "mail.acme.com", "status": "verified", "region": "eu-west-1",
          "created_at": "2026-04-26T20:21:26Z" },
    ] });
    serve(Router::new().route("/domains", get(async move || Json(domains)))).await
}
