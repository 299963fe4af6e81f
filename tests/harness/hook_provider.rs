//! A fake provider of webhooks: the hooks of GitHub's repositories, and the notification channels of
//! Google Calendar.
//!
//! The name of a repository or calendar selects the behavior. A name that contains `refused` is
//! answered with 403, and `broken` with 500 once the first subscription exists. The first creation
//! for a name that contains `silent` succeeds without a response, and every creation for one that
//! contains `hanging` waits. A removal for a name that contains `stuck` is answered with 500. A
//! channel of a calendar whose name contains `brief` expires after [`BRIEF_LIFE_MS`], any other
//! after a week.

use std::{collections::BTreeSet, sync::Arc, time::SystemTime};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{delete, get, post},
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{host::Setup, loopback};

/// Time after which a brief channel expires, in milliseconds.
pub const BRIEF_LIFE_MS: u64 = 6_000;
const WEEK_MS: u64 = 7 * 24 * 3_600_000;

/// A running provider. It ends with the process.
#[derive(Debug, Clone)]
pub struct HookProvider {
    origin: String,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    hooks: Vec<Hook>,
    created: usize,
    seen: BTreeSet<String>,
    /// Repositories of creations that wait.
    hanging: Vec<String>,
    /// Repositories of removals that were refused.
    refused_removals: Vec<String>,
}

/// A hook or channel.
#[derive(Debug, Clone)]
pub struct Hook {
    pub id: String,
    /// Repository or calendar.
    pub place: String,
    pub url: String,
    pub secret: String,
}

type Provider = State<Arc<Mutex<Shared>>>;

impl HookProvider {
    /// Starts a provider on a free port.
    pub fn start() -> Self {
        let shared = Arc::<Mutex<Shared>>::default();
        let router = Router::new()
            .route("/repos/{owner}/{repo}/hooks", get(list).post(create))
            .route("/repos/{owner}/{repo}/hooks/{id}", delete(remove))
            .route(
                "/calendar/v3/calendars/{calendar}/events/watch",
                post(watch),
            )
            .route("/calendar/v3/calendars/{calendar}/events", get(events))
            .route("/calendar/v3/channels/stop", post(stop))
            .with_state(Arc::clone(&shared));
        Self {
            origin: loopback::serve(router),
            shared,
        }
    }

    /// Returns settings of a server that reaches the provider under the names of GitHub and Google.
    pub fn setup(&self) -> Setup {
        let hosts = ["api.github.com", "www.googleapis.com"];
        let pairs = hosts.map(|host| format!("https://{host}={}", self.origin));
        Setup::new().with("net.rewrite", pairs.join(","))
    }

    /// Returns the existing hooks of a repository or calendar.
    pub fn hooks(&self, place: &str) -> Vec<Hook> {
        let shared = self.shared.lock();
        let hooks = shared.hooks.iter().filter(|hook| hook.place == place);
        hooks.cloned().collect()
    }

    /// Returns the number of creations that wait for repositories whose names have a prefix.
    pub fn hanging(&self, prefix: &str) -> usize {
        let shared = self.shared.lock();
        let hanging = shared.hanging.iter();
        hanging.filter(|place| place.starts_with(prefix)).count()
    }

    /// Returns the number of removals that were refused for a repository.
    pub fn refused_removals(&self, place: &str) -> usize {
        let shared = self.shared.lock();
        let refused = shared.refused_removals.iter();
        refused.filter(|refused| *refused == place).count()
    }
}

impl Shared {
    fn add(&mut self, id: Option<&str>, place: &str, url: &Value, secret: &Value) -> Hook {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        self.created += 1;
        let hook = Hook {
            id: id.map_or_else(|| self.created.to_string(), str::to_owned),
            place: place.to_owned(),
            url: text(url),
            secret: text(secret),
        };
        self.hooks.push(hook.clone());
        hook
    }

    /// Returns the response to a creation intended to fail.
    fn failure(&mut self, place: &str) -> Option<Response> {
        let is_first = self.seen.insert(place.to_owned());
        let status = match place {
            place if place.contains("refused") => StatusCode::FORBIDDEN,
            place if place.contains("broken") && !is_first => StatusCode::INTERNAL_SERVER_ERROR,
            _ => return None,
        };
        Some((status, Json(json!({ "message": "as asked" }))).into_response())
    }
}

fn hook_json(hook: &Hook) -> Value {
    json!({ "id": hook.id.parse::<u64>().unwrap_or_default(), "config": { "url": hook.url } })
}

async fn list(State(shared): Provider, Path((owner, repo)): Path<(String, String)>) -> Json<Value> {
    let place = format!("{owner}/{repo}");
    let shared = shared.lock();
    let hooks = shared.hooks.iter().filter(|hook| hook.place == place);
    Json(hooks.map(hook_json).collect())
}

async fn create(
    State(shared): Provider,
    Path((owner, repo)): Path<(String, String)>,
    Json(body): Json<Value>,
) -> Response {
    let place = format!("{owner}/{repo}");
    let hook = {
        let mut shared = shared.lock();
        let is_hanging = place.contains("hanging");
        let is_first = !shared.seen.contains(&place);
        if let Some(failure) = shared.failure(&place) {
            return failure;
        }
        let config = &body["config"];
        let hook = shared.add(None, &place, &config["url"], &config["secret"]);
        if is_hanging {
            shared.hanging.push(place.clone());
        }
        (!is_hanging && (!is_first || !place.contains("silent"))).then_some(hook)
    };
    match hook {
        Some(hook) => (StatusCode::CREATED, Json(hook_json(&hook))).into_response(),
        None => std::future::pending().await,
    }
}

async fn remove(
    State(shared): Provider,
    Path((owner, repo, id)): Path<(String, String, String)>,
) -> StatusCode {
    let mut shared = shared.lock();
    if repo.contains("stuck") {
        shared.refused_removals.push(format!("{owner}/{repo}"));
        return StatusCode::INTERNAL_SERVER_ERROR;
    }
    shared.hooks.retain(|hook| hook.id != id);
    StatusCode::NO_CONTENT
}

async fn watch(State(shared): Provider, Path(calendar): Path<String>, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let mut shared = shared.lock();
    if let Some(failure) = shared.failure(&calendar) {
        return failure;
    }
    let hook = shared.add(
        body["id"].as_str(),
        &calendar,
        &body["address"],
        &body["token"],
    );
    let life = if calendar.contains("brief") {
        BRIEF_LIFE_MS
    } else {
        WEEK_MS
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "a channel expires at a real time"
    )]
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = u64::try_from(now.unwrap_or_default().as_millis()).unwrap_or(u64::MAX);
    Json(json!({
        "kind": "api#channel", "id": hook.id, "resourceId": calendar, "token": hook.secret,
        "expiration": (now + life).to_string(),
    }))
    .into_response()
}

async fn stop(State(shared): Provider, body: Bytes) -> StatusCode {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let mut shared = shared.lock();
    shared.hooks.retain(|hook| body["id"] != hook.id.as_str());
    StatusCode::NO_CONTENT
}

async fn events() -> Json<Value> {
    let event =
        json!({ "id": "ev1", "etag": "\"1\"", "status": "confirmed", "summary": "Standup" });
    Json(json!({ "items": [event] }))
}
