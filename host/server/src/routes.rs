//! Every route, in reading order. Each stands under both prefixes.

use std::sync::Arc;

use axum::{
    Router,
    http::{HeaderValue, header},
    middleware::map_response,
    response::Response,
    routing::{MethodRouter, delete, get, patch, post},
};

use crate::{
    Server,
    api::{action_logs, auth_configs, connected_accounts, logs, migration, projects, session, toolkits, tools},
    doors::health,
    respond,
};

/// Older clients call the first, newer ones the second. They differ in the default tool version only.
pub(crate) const PREFIXES: [&str; 2] = ["/api/v3", "/api/v3.1"];

/// Since when operations are deprecated that have been replaced: 21 November 2026.
const DEPRECATED: &str = "@1795219200";
/// Until when they are served at least.
const SUNSET: &str = "Sun, 21 Nov 2027 00:00:00 GMT";

/// The table.
fn table() -> Vec<(&'static str, MethodRouter<Arc<Server>>)> {
    vec![
        ("/auth/session/info", get(session::info)),
        // the organisation's, with its own key
        ("/org/owner/project/new", post(projects::create)),
        ("/org/owner/project/list", get(projects::list)),
        ("/org/owner/project/{nano_id}", get(projects::read).delete(projects::remove)),
        ("/org/owner/project/{nano_id}/regenerate_api_key", post(projects::regenerate_key)),
        ("/org/toolkits", get(toolkits::published)),
        (
            "/toolkits/{slug}/versions/{version}",
            get(toolkits::read_version).put(toolkits::publish).delete(toolkits::deprecate),
        ),
        // the catalogue
        ("/toolkits", get(toolkits::list)),
        ("/toolkits/categories", get(toolkits::categories)),
        ("/toolkits/changelog", get(toolkits::changelog)),
        ("/toolkits/multi", post(toolkits::several)),
        ("/toolkits/{slug}", get(toolkits::read)),
        ("/toolkits/{slug}/scopes/grant_context", get(toolkits::grant_context)),
        ("/toolkits/{slug}/scopes/recommended", post(toolkits::recommend)),
        ("/tools", get(tools::list)),
        ("/tools/enum", get(tools::slugs)),
        ("/tools/scopes/required", post(tools::scopes)),
        ("/tools/{tool_slug}", get(tools::read)),
        // running
        ("/tools/execute/{tool_slug}", post(tools::execute)),
        ("/tools/execute/{tool_slug}/input", post(tools::input)),
        ("/logs/tool_execution", post(logs::list)),
        ("/logs/tool_execution/{id}", get(logs::read)),
        ("/logs/tool_execution/{id}/cassette", get(logs::cassette)),
        ("/internal/action_execution/fields", replaced(get(action_logs::fields), "/logs/tool_execution")),
        ("/internal/action_execution/logs", replaced(post(action_logs::list), "/logs/tool_execution")),
        ("/internal/action_execution/log/{id}", replaced(get(action_logs::read), "/logs/tool_execution")),
        // connecting
        ("/auth_configs", get(auth_configs::list).post(auth_configs::create)),
        ("/auth_configs/{nanoid}", get(auth_configs::read).delete(auth_configs::remove)),
        ("/auth_configs/{nanoid}/{status}", patch(auth_configs::set_status)),
        ("/connected_accounts", get(connected_accounts::list).post(connected_accounts::create)),
        ("/connected_accounts/{nanoid}", get(connected_accounts::read).merge(delete(connected_accounts::remove))),
        ("/connected_accounts/{nanoid}/status", patch(connected_accounts::set_status)),
        ("/migration/get-nanoid", get(migration::nanoid)),
    ]
}

/// An operation that stays for older clients. Its answers say so, and what to use instead (RFC 9745, RFC 8594, RFC 5829).
fn replaced(methods: MethodRouter<Arc<Server>>, by: &'static str) -> MethodRouter<Arc<Server>> {
    methods.layer(map_response(move |mut response: Response| async move {
        let headers = response.headers_mut();
        headers.insert("deprecation", HeaderValue::from_static(DEPRECATED));
        headers.insert("sunset", HeaderValue::from_static(SUNSET));
        let link = format!("<{}{by}>; rel=\"successor-version\"", PREFIXES[1]);
        headers.extend(HeaderValue::try_from(link).ok().map(|link| (header::LINK, link)));
        response
    }))
}

/// The router over the table.
pub(crate) fn router(server: Arc<Server>) -> Router {
    let mut router = Router::new().route("/health/live", get(health::live)).route("/health/ready", get(health::ready));
    for prefix in PREFIXES {
        for (path, methods) in table() {
            router = router.route(&format!("{prefix}{path}"), methods);
        }
    }
    router.fallback(respond::unknown_route).method_not_allowed_fallback(respond::wrong_method).with_state(server)
}
