//! Every route, in reading order. Each stands under both prefixes.

use std::sync::Arc;

use axum::{
    Router,
    routing::{MethodRouter, delete, get, patch, post, put},
};

use crate::{
    Server,
    api::{auth_configs, connected_accounts, logs, projects, session, toolkits, tools},
    doors::health,
    respond,
};

/// Older clients call the first, newer ones the second. They differ in the default tool version only.
pub(crate) const PREFIXES: [&str; 2] = ["/api/v3", "/api/v3.1"];

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
        ("/toolkits/{slug}/versions/{version}", put(toolkits::publish).delete(toolkits::deprecate)),
        // the catalogue
        ("/toolkits", get(toolkits::list)),
        ("/toolkits/categories", get(toolkits::categories)),
        ("/toolkits/{slug}", get(toolkits::read)),
        ("/tools", get(tools::list)),
        ("/tools/enum", get(tools::slugs)),
        ("/tools/{tool_slug}", get(tools::read)),
        // running
        ("/tools/execute/{tool_slug}", post(tools::execute)),
        ("/logs/tool_execution", post(logs::list)),
        ("/logs/tool_execution/{id}", get(logs::read)),
        ("/logs/tool_execution/{id}/cassette", get(logs::cassette)),
        // connecting
        ("/auth_configs", get(auth_configs::list).post(auth_configs::create)),
        ("/auth_configs/{nanoid}", get(auth_configs::read).delete(auth_configs::remove)),
        ("/auth_configs/{nanoid}/{status}", patch(auth_configs::set_status)),
        ("/connected_accounts", get(connected_accounts::list).post(connected_accounts::create)),
        ("/connected_accounts/{nanoid}", get(connected_accounts::read).merge(delete(connected_accounts::remove))),
        ("/connected_accounts/{nanoid}/status", patch(connected_accounts::set_status)),
    ]
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
