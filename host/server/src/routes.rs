//! Every route, in reading order. Each stands under both prefixes.

use std::sync::Arc;

use axum::{
    Router,
    http::{HeaderValue, header},
    middleware::map_response,
    response::Response,
    routing::get,
};
use utoipa::openapi::Deprecated;
use utoipa_axum::{router::UtoipaMethodRouter, routes};

use crate::{
    Server,
    api::{action_logs, auth_configs, connected_accounts, files, logs, migration, projects, session, toolkits, tools},
    doors::{self, docs, health},
    openapi, respond,
};

/// Older clients call the first, newer ones the second. They differ in the default tool version only.
pub(crate) const PREFIXES: [&str; 2] = ["/api/v3", "/api/v3.1"];

/// Since when operations are deprecated that have been replaced: 21 November 2026.
const DEPRECATED: &str = "@1795219200";
/// Until when they are served at least.
const SUNSET: &str = "Sun, 21 Nov 2027 00:00:00 GMT";

/// A path and what answers there. Each handler has its method, and what it tells of itself, in `#[utoipa::path]`.
pub(crate) type Row = (&'static str, UtoipaMethodRouter<Arc<Server>>);

/// The table. What stands here is served, described in `docs/openapi.json` and probed by the tests, and nothing else.
pub(crate) fn table() -> Vec<Row> {
    vec![
        ("/auth/session/info", routes!(session::info)),
        // the organisation's, with its own key
        ("/org/owner/project/new", routes!(projects::create)),
        ("/org/owner/project/list", routes!(projects::list)),
        ("/org/owner/project/{nano_id}", routes!(projects::read, projects::remove)),
        ("/org/owner/project/{nano_id}/regenerate_api_key", routes!(projects::regenerate_key)),
        ("/org/toolkits", routes!(toolkits::published)),
        (
            "/toolkits/{slug}/versions/{version}",
            routes!(toolkits::read_version, toolkits::publish, toolkits::deprecate),
        ),
        // the catalogue
        ("/toolkits", routes!(toolkits::list)),
        ("/toolkits/categories", routes!(toolkits::categories)),
        ("/toolkits/changelog", routes!(toolkits::changelog)),
        ("/toolkits/multi", routes!(toolkits::several)),
        ("/toolkits/{slug}", routes!(toolkits::read)),
        ("/toolkits/{slug}/scopes/grant_context", routes!(toolkits::grant_context)),
        ("/toolkits/{slug}/scopes/recommended", routes!(toolkits::recommend)),
        ("/tools", routes!(tools::list)),
        ("/tools/enum", routes!(tools::slugs)),
        ("/tools/scopes/required", routes!(tools::scopes)),
        ("/tools/{tool_slug}", routes!(tools::read)),
        // running
        ("/tools/execute/proxy", routes!(tools::proxy)),
        ("/tools/execute/{tool_slug}", routes!(tools::execute)),
        ("/tools/execute/{tool_slug}/input", routes!(tools::input)),
        ("/logs/tool_execution", routes!(logs::list)),
        ("/logs/tool_execution/{id}", routes!(logs::read)),
        ("/logs/tool_execution/{id}/cassette", routes!(logs::cassette)),
        ("/internal/action_execution/fields", replaced(routes!(action_logs::fields), "/logs/tool_execution")),
        ("/internal/action_execution/logs", replaced(routes!(action_logs::list), "/logs/tool_execution")),
        ("/internal/action_execution/log/{id}", replaced(routes!(action_logs::read), "/logs/tool_execution")),
        ("/files/list", routes!(files::list)),
        ("/files/upload/request", routes!(files::request)),
        // connecting
        ("/auth_configs", routes!(auth_configs::list, auth_configs::create)),
        ("/auth_configs/{nanoid}", routes!(auth_configs::read, auth_configs::remove)),
        ("/auth_configs/{nanoid}/{status}", routes!(auth_configs::set_status)),
        ("/connected_accounts", routes!(connected_accounts::list, connected_accounts::create)),
        ("/connected_accounts/{nanoid}", routes!(connected_accounts::read, connected_accounts::remove)),
        ("/connected_accounts/{nanoid}/status", routes!(connected_accounts::set_status)),
        ("/migration/get-nanoid", routes!(migration::nanoid)),
    ]
}

/// An operation that stays for older clients. Its answers say so, and what to use instead (RFC 9745, RFC 8594, RFC 5829).
fn replaced(row: UtoipaMethodRouter<Arc<Server>>, by: &'static str) -> UtoipaMethodRouter<Arc<Server>> {
    let (schemas, mut described, methods) = row;
    for item in described.paths.values_mut() {
        for operation in [&mut item.get, &mut item.post].into_iter().flatten() {
            operation.deprecated = Some(Deprecated::True);
        }
    }
    let methods = methods.layer(map_response(move |mut response: Response| async move {
        let headers = response.headers_mut();
        headers.insert("deprecation", HeaderValue::from_static(DEPRECATED));
        headers.insert("sunset", HeaderValue::from_static(SUNSET));
        let link = format!("<{}{by}>; rel=\"successor-version\"", PREFIXES[1]);
        headers.extend(HeaderValue::try_from(link).ok().map(|link| (header::LINK, link)));
        response
    }));
    (schemas, described, methods)
}

/// The router over the table.
pub(crate) fn router(server: Arc<Server>) -> Router {
    let mut router = Router::new()
        .route("/health/live", get(health::live))
        .route("/health/ready", get(health::ready))
        .route("/files/{project}/{id}", get(doors::files::get).put(doors::files::put));
    let table = table();
    let description = docs::description(openapi::text(&table, &server.words));
    for prefix in PREFIXES {
        router = router.route(&format!("{prefix}/openapi.json"), description.clone());
        for (path, (_, _, methods)) in &table {
            router = router.route(&format!("{prefix}{path}"), methods.clone());
        }
    }
    router = router.route("/docs", get(docs::page)).route("/docs/{asset}", get(docs::asset));
    router.fallback(respond::unknown_route).method_not_allowed_fallback(respond::wrong_method).with_state(server)
}
