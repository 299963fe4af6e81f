//! Fake providers that the pages and walks reach by `net.rewrite`.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use axum::{
    Json, Router,
    extract::Path as InPath,
    http::StatusCode,
    routing::{get, post},
};
use harness::loopback::serve;
use serde_json::json;

/// Starts an Open-Meteo with one forecast.
pub(crate) fn weather() -> String {
    let now = json!({ "current": { "time": "2026-03-01T07:00", "temperature_2m": 4.2, "wind_speed_10m": 11.0 } });
    serve(Router::new().route("/v1/forecast", get(async move || Json(now))))
}

/// Starts a provider with one item.
pub(crate) fn items() -> String {
    let item = async |InPath(id): InPath<u64>| match id {
        7 => (StatusCode::OK, Json(json!({ "name": "seven" }))),
        _ => (
            StatusCode::NOT_FOUND,
            Json(json!({ "message": "no such item" })),
        ),
    };
    serve(Router::new().route("/v1/items/{id}", get(item)))
}

/// Starts a Hacker News on which a story is posted before each request for the newest ones.
pub(crate) fn news() -> String {
    let posted = Arc::new(AtomicU64::new(0));
    let story = async |InPath(file): InPath<String>| {
        let id: u64 = file.trim_end_matches(".json").parse().unwrap();
        Json(json!({ "id": id, "type": "story", "title": "A story" }))
    };
    let router = Router::new().route(
        "/v0/newstories.json",
        get(move || {
            let newest = posted.fetch_add(1, Ordering::Relaxed);
            async move { Json((0..=newest).collect::<Vec<_>>()) }
        }),
    );
    serve(router.route("/v0/item/{file}", get(story)))
}

/// Starts a Resend with one domain.
pub(crate) fn resend() -> String {
    let domains = json!({ "has_more": false, "data": [
        { "id": "d-1", "name": "mail.acme.com", "status": "verified", "region": "eu-west-1",
          "created_at": "2026-04-26T20:21:26Z" },
    ] });
    serve(Router::new().route("/domains", get(async move || Json(domains))))
}

/// Starts a GitHub with one user, who grants everything. Returns the value of `net.rewrite` that leads
/// to it.
pub(crate) fn github() -> String {
    let token =
        json!({ "access_token": harness::secret(), "scope": "read:user", "token_type": "bearer" });
    let user = json!({ "login": "octocat", "id": 1, "type": "User", "html_url": "https://github.com/octocat",
        "public_repos": 2, "followers": 20, "following": 0, "created_at": "2008-01-14T04:33:35Z" });
    let router = Router::new()
        .route("/login/oauth/access_token", post(async move || Json(token)))
        .route("/user", get(async move || Json(user)));
    let origin = serve(router);
    format!("https://github.com={origin},https://api.github.com={origin}")
}

/// Function of a shell that opens a link, and returns from the provider as its user does.
pub(crate) const USER_CONNECTS: &str = r#"
connects() {
  local token away state
  token=$(curl -sS -c cookies "$1" | grep -o 'name="form-token" value="[^"]*"' | cut -d'"' -f4)
  away=$(curl -sS -b cookies -o /dev/null -w '%{redirect_url}' --data-urlencode "form-token=$token" "$1")
  state=$(grep -o '[?&]state=[^&]*' <<<"$away" | cut -d= -f2)
  curl -sS -b cookies -o /dev/null -w '%{redirect_url}\n' "$TOOLHOST_URL/api/v3/toolkits/auth/callback?code=a-code&state=$state" |
    grep '^https://app.example.com/done?status=success'
}
"#;
